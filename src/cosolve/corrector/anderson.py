"""Anderson acceleration of the relaxed fixed-point iteration (Anderson (1965); type II of Fang and Saad (2009)).

    z <- z - beta r - (dZ - beta dR) c,      c = argmin |r - dR c|

`beta` is the mixing factor; `dZ`, `dR` hold differences of past iterates and of their residuals.
"""

from __future__ import annotations

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import nonzero, whole
from cosolve.corrector.algebra.least_squares import LeastSquares
from cosolve.corrector.base import InterfaceProblem


class Anderson(LeastSquares):
    """Combine the last `depth` differences so that the residual becomes smallest, then relax by `mixing`.

    Every step begins anew with a relaxation by `initial`, unless differences of the last `reuse` steps are kept.
    Columns that depend on newer ones to `filter_tol` are dropped.

    >>> import numpy as np
    >>> A = np.array([[3.0, 1.0], [0.0, 2.0]])          # r(z) = A z - (1, 1)
    >>> anderson = Anderson(depth=2)
    >>> anderson.start_run(["a", "b"]); anderson.start_step()
    >>> z = np.zeros(2)
    >>> for _ in range(4):
    ...     z = anderson.correct(z, A @ z - 1.0, None)
    >>> bool(np.allclose(A @ z, 1.0))
    True
    """

    def __init__(
        self, depth: int = 10, mixing: float = 1.0, initial: float = 0.1, reuse: int = 0, filter_tol: float = 1e-10
    ) -> None:
        self.depth, self.mixing = whole("Anderson", "depth", depth), nonzero("Anderson", "mixing", mixing)
        super().__init__(reuse, initial, filter_tol, columns=self.depth)

    def __repr__(self) -> str:
        return f"Anderson(depth={self.depth}, mixing={self.mixing:g}, initial={self.initial:g}, reuse={self.reuse})"

    def correct(self, z: Vector, r: Vector, problem: InterfaceProblem) -> Vector:
        self._learn(z, r)
        if not len(self._secants):
            return z - self.initial * r
        c = self._secants.fit(r)
        return z - self._secants.dz(c) - self.mixing * (r - self._secants.dr(c))
