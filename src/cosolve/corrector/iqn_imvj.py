"""Multi-vector quasi-Newton, IQN-IMVJ (Bogaers et al. (2014), restarted as in Scheufele and Mehl (2017)).

The inverse Jacobian of the last step is kept as a matrix and updated only where this step has seen differences:

    M = M_old + (dZ - M_old dR) dR^+,      z <- z - M r

so nothing has to be chosen about how many past steps to reuse. `M - I` is held in factored form and compressed by
singular values when it exceeds `rank`; nothing is `n x n`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import whole
from cosolve.corrector.algebra.least_squares import LeastSquares
from cosolve.corrector.algebra.low_rank import LowRank
from cosolve.corrector.base import InterfaceProblem


class IqnImvj(LeastSquares):
    """Interface quasi-Newton method with a multi-vector Jacobian (IQN-IMVJ).

    The inverse Jacobian of the last step is kept and updated only in the directions seen in this step, so no number of
    steps to reuse is chosen.

    Parameters
    ----------
    initial : float, default 0.1
        Relaxation factor of the first correction, as long as nothing is known.
    filter_tol : float, default 1e-10
        Columns that depend linearly on newer ones to this relative tolerance are dropped.
    columns : int, default 50
        Largest number of differences of one macro step.
    rank : int, default 100
        Largest number of columns of the factored inverse Jacobian; it is compressed by singular values above that.

    Notes
    -----
    Formula::

        M = M_old + (dZ - M_old dR) dR^+,      z <- z - M r

    References
    ----------
    .. [1] A. E. J. Bogaers, S. Kok, B. D. Reddy, T. Franz, Quasi-Newton methods for implicit black-box FSI coupling,
       Computer Methods in Applied Mechanics and Engineering 279, 2014.
    .. [2] K. Scheufele, M. Mehl, Robust multisecant quasi-Newton variants for parallel fluid-structure simulations and
       other multiphysics applications, SIAM Journal on Scientific Computing 39(5), 2017.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[3.0, 1.0], [0.0, 2.0]])          # r(z) = A z - (1, 1)
    >>> solver = IqnImvj()
    >>> solver.start_run(["a", "b"])
    >>> for start in (0.0, 5.0):                        # two steps; the second one begins with what the first learnt
    ...     solver.start_step()
    ...     z, evaluations = np.full(2, start), 1
    ...     while abs(A @ z - 1.0).max() > 1e-12:
    ...         z, evaluations = solver.correct(z, A @ z - 1.0, None), evaluations + 1
    ...     solver.accept(z, A @ z - 1.0)
    ...     print(evaluations)
    4
    2
    """

    def __init__(self, initial: float = 0.1, filter_tol: float = 1e-10, columns: int = 50, rank: int = 100) -> None:
        columns = whole("IqnImvj", "columns", columns)
        self.rank = whole("IqnImvj", "rank", rank)
        super().__init__(0, initial, filter_tol, columns)

    def __repr__(self) -> str:
        return f"IqnImvj(initial={self.initial:g}, filter_tol={self.filter_tol:g}, rank={self.rank})"

    def _begin(self, labels: Sequence[str]) -> None:
        super()._begin(labels)
        self._old = LowRank(len(labels), self.rank)  # M_old - I
        self._old_of_followers = LowRank(len(labels), self.rank, self.followers)

    def correct(self, z: Vector, r: Vector, problem: InterfaceProblem) -> Vector:
        self._learn(z, r)
        if not len(self._secants) and not len(self._old):
            return z - self.initial * r
        n = len(z) - self.followers
        c = self._secants.fit(r[:n])
        rest = r[:n] - self._secants.dr(c)  # what this step knows nothing about
        better = z[:n] - self._secants.dz(c) - rest - self._old @ rest
        if not self.followers:
            return better
        return np.concatenate([better, z[n:] - r[n:] - self._secants.followed(c) - self._old_of_followers @ rest])

    def accept(self, z: Vector, r: Vector) -> None:
        self._learn(z, r)
        dR, dZ, P = self._secants.pairs()
        if len(dR):
            if self.followers:
                self._old_of_followers.add(self._secants.following() - self._old_of_followers @ dR, P)
            self._old.add(dZ - dR - self._old @ dR, P)
