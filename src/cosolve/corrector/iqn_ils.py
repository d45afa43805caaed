"""Interface quasi-Newton with a least-squares model of the inverse Jacobian, IQN-ILS (Degroote, Bathe, Vierendeels 2009).

    z <- z - r - (dZ - dR) c,      c = argmin |r - dR c|

Outside the span of the differences seen so far the Jacobian is taken as the identity, which fits residuals of the form
`r = z - f(z)`. Differences of past macro steps are reused, the converged iterate is learnt too, and columns that depend
on newer ones are filtered out (QR2 of Haelterman et al. 2016).
"""

from __future__ import annotations

from collections.abc import Sequence

from cosolve.corrector.base import Corrector, InterfaceProblem
from cosolve.corrector.secants import Balance, Secants, is_count, refuse_bad_options
from cosolve.errors import SetupError
from cosolve.subsystem.port import Vector


class IqnIls(Corrector):
    """IQN-ILS with the differences of this step and of the last `reuse` steps, at most `columns` of them.

    As long as nothing is known, the first correction is a relaxation by `initial`. Memory: two vectors per column.

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

    def __init__(
        self, reuse: int = 8, initial: float = 0.1, filter_tol: float = 1e-6, columns: int = 100
    ) -> None:
        if not is_count(reuse, 0):
            raise SetupError(f"IqnIls: reuse must be a whole number of steps from 0, not {reuse!r}")
        refuse_bad_options("IqnIls", initial, filter_tol, columns)
        self.reuse, self.initial, self.filter_tol, self.columns = int(reuse), float(initial), filter_tol, int(columns)
        self.start_run(())

    def __repr__(self) -> str:
        return f"IqnIls(reuse={self.reuse}, initial={self.initial:g}, filter_tol={self.filter_tol:g})"

    def start_run(self, labels: Sequence[str]) -> None:
        self._secants = Secants(len(labels), self.columns, self.filter_tol)
        self._balance = Balance(labels)
        self._last: tuple[Vector, Vector] | None = None

    def start_step(self) -> None:
        self._last = None
        self._secants.next_step(self.reuse)

    def correct(self, z: Vector, r: Vector, problem: InterfaceProblem) -> Vector:
        self._learn(z, r)
        if not len(self._secants):
            return z - self.initial * r
        c = self._secants.fit(r)
        return z - self._secants.dz(c) - (r - self._secants.dr(c))

    def accept(self, z: Vector, r: Vector) -> None:
        self._learn(z, r)

    def _learn(self, z: Vector, r: Vector) -> None:
        pass
