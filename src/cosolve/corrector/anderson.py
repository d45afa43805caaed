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
    """Anderson acceleration of the relaxed fixed-point iteration.

    Parameters
    ----------
    depth : int, default 10
        Largest number of differences that are combined.
    mixing : float, default 1.0
        Relaxation factor `beta` of the combined residual; not 0.
    initial : float, default 0.1
        Relaxation factor of the first correction of a macro step, as long as no differences are known.
    reuse : int, default 0
        Number of past macro steps whose differences are kept; 0 starts anew in every step.
    filter_tol : float, default 1e-10
        Columns that depend linearly on newer ones to this relative tolerance are dropped.

    Notes
    -----
    Formula::

        z <- z - beta r - (dZ - beta dR) c,      c = argmin |r - dR c|

    References
    ----------
    .. [1] D. G. Anderson, Iterative procedures for nonlinear integral equations, Journal of the ACM 12(4), 1965.
    .. [2] H. Fang, Y. Saad, Two classes of multisecant methods for nonlinear acceleration, Numerical Linear Algebra
       with Applications 16(3), 2009.

    Examples
    --------
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
