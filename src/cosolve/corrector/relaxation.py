"""Constant relaxation: `z <- z - alpha r` (Sicklinger (2014), 2.2.1, Algorithm 4.2, sign of Eq. 5.6).

Relaxation is Newton with the crude Jacobian `I / alpha` (Eq. 5.8). With residuals `r = z - f(z)` useful factors are
positive, and `alpha = 1` is the plain fixed-point iteration. Near a solution where `dr/dz = G` the error is multiplied
by `I - alpha G`, so what decides is `max |1 - alpha lambda|` over the eigenvalues of `G`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import nonzero
from cosolve.corrector.base import Corrector, InterfaceProblem
from cosolve.errors import SetupError


class Relaxation(Corrector):
    """Relaxation with a constant factor: `z <- z - alpha r`.

    Parameters
    ----------
    alpha : float, default 1.0
        Relaxation factor; not 0. With residuals `r = z - f(z)`, 1 is the plain fixed-point iteration.

    Notes
    -----
    Near a solution with `dr/dz = G` it converges if `|1 - alpha lambda| < 1` for all eigenvalues `lambda` of `G`; see
    `optimal_factor`.

    References
    ----------
    .. [1] S. A. Sicklinger, Stabilized co-simulation of coupled problems including fields and signals, dissertation,
       Technical University of Munich, 2014, Algorithm 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> halve = Relaxation(alpha=0.5)
    >>> halve.correct(np.array([3.0]), np.array([4.0]), None)
    array([1.])
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = nonzero("Relaxation", "alpha", alpha)

    def __repr__(self) -> str:
        return f"Relaxation(alpha={self.alpha:g})"

    def correct(self, z: Vector, r: Vector, problem: InterfaceProblem) -> Vector:
        return z - self.alpha * r


def optimal_factor(eigenvalues: npt.ArrayLike) -> float:
    """Compute the relaxation factor with the fastest convergence.

    Parameters
    ----------
    eigenvalues : array_like
        Eigenvalues of the interface Jacobian `G = dr/dz`, real or complex.

    Returns
    -------
    float
        The factor `alpha` that minimises `max |1 - alpha lambda|`.

    Raises
    ------
    SetupError
        If eigenvalues lie on both sides of the imaginary axis: no constant factor converges then.

    Notes
    -----
    For real eigenvalues it is `2 / (lambda_min + lambda_max)`, with the rate `(lambda_max - lambda_min) / (lambda_max +
    lambda_min)`; for `1 +- i sqrt(q)`, a force and a displacement exchanged in parallel, `1 / (1 + q)`.

    Examples
    --------
    >>> optimal_factor([1.0, 9.0])
    0.2
    >>> round(optimal_factor([1 + 2j, 1 - 2j]), 12)
    0.2
    """
    given = np.atleast_1d(np.asarray(eigenvalues, dtype=np.complex128)).ravel()
    real, square = given.real, np.abs(given) ** 2
    if not len(given) or not np.isfinite(square).all():
        raise SetupError(f"optimal_factor: needs finite eigenvalues, not {eigenvalues!r}")
    if not ((real > 0).all() or (real < 0).all()):
        raise SetupError(
            "optimal_factor: eigenvalues on both sides of the imaginary axis (or on it): no constant relaxation "
            "converges; use Newton or a quasi-Newton corrector"
        )
    if not given.imag.any():
        return float(2.0 / (real.min() + real.max()))
    # |1 - alpha lambda|^2 = 1 - 2 alpha Re + alpha^2 |lambda|^2 is convex in alpha, and so is the maximum of all
    low, high = sorted((0.0, float(real[0] / abs(real[0]) * np.abs(real / square).max())))
    while True:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            return middle
        worst = int(np.argmax(middle * (middle * square - 2.0 * real)))
        if middle * square[worst] > real[worst]:
            high = middle
        else:
            low = middle
