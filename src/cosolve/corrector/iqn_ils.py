"""Interface quasi-Newton with a least-squares model of the inverse Jacobian: IQN-ILS (Degroote et al. (2009)).

    z <- z - r - (dZ - dR) c,      c = argmin |r - dR c|

Outside the span of the differences seen so far the Jacobian is taken as the identity, which fits residuals of the form
`r = z - f(z)`. Differences of past macro steps are reused, the converged iterate is learnt too, and columns that depend
on newer ones are filtered out (QR2 of Haelterman et al. 2016, and where slopes contradict each other: `secants.py`).
"""

from __future__ import annotations

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import whole
from cosolve.corrector.algebra.least_squares import LeastSquares
from cosolve.corrector.base import InterfaceProblem


class IqnIls(LeastSquares):
    """Interface quasi-Newton method with an inverse least-squares model (IQN-ILS).

    Parameters
    ----------
    reuse : int, default 50
        Number of past macro steps whose differences are kept.
    initial : float, default 0.1
        Relaxation factor of the first correction, as long as no differences are known.
    filter_tol : float, default 1e-10
        Columns that depend linearly on newer ones to this relative tolerance are dropped (QR2 filter).
    columns : int, default 100
        Largest number of differences in all. Memory: two vectors per column.

    Notes
    -----
    With differences `dZ` of past iterates and `dR` of their residuals::

        z <- z - r - (dZ - dR) c,      c = argmin |r - dR c|.

    Outside their span the Jacobian is taken as the identity, which fits residuals `r = z - f(z)`. Coupling variables of
    different units are scaled by their residual sums, as in preCICE.

    References
    ----------
    .. [1] J. Degroote, K.-J. Bathe, J. Vierendeels, Performance of a new partitioned procedure versus a monolithic
       procedure in fluid-structure interaction, Computers & Structures 87, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[3.0, 1.0], [0.0, 2.0]])          # r(z) = A z - (1, 1)
    >>> solver = IqnIls()
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

    def __init__(self, reuse: int = 50, initial: float = 0.1, filter_tol: float = 1e-10, columns: int = 100) -> None:
        columns = whole("IqnIls", "columns", columns)
        super().__init__(reuse, initial, filter_tol, columns)

    def __repr__(self) -> str:
        return f"IqnIls(reuse={self.reuse}, initial={self.initial:g}, filter_tol={self.filter_tol:g})"

    def correct(self, z: Vector, r: Vector, problem: InterfaceProblem) -> Vector:
        self._learn(z, r)
        if not len(self._secants):
            return z - self.initial * r
        n = len(z) - self.followers
        c = self._secants.fit(r[:n])
        better = z[:n] - self._secants.dz(c) - (r[:n] - self._secants.dr(c))
        if not self.followers:
            return better
        return np.concatenate([better, z[n:] - r[n:] - self._secants.followed(c)])
