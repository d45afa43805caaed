"""Butcher tableaus of the fixed-step family ODE1..ODE5 (Schmoll (2015), App. C.1), the pair 5(4) and Radau IIA."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosolve.basics.arrays import Matrix, Vector


class Tableau(NamedTuple):
    """Coefficients of an explicit Runge-Kutta method; `e` = weights of the embedded error estimate (or empty)."""

    a: Matrix
    b: Vector
    c: Vector
    e: Vector


def _tableau(rows: list[list[float]], b: list[float], lower: list[float] | None = None) -> Tableau:
    a = np.zeros((len(b), len(b)))
    for i, row in enumerate(rows, start=1):
        a[i, : len(row)] = row
    weights = np.array(b)
    error = np.zeros(0) if lower is None else weights - np.array(lower)
    found = Tableau(a, weights, a.sum(axis=1), error)
    for part in found:  # as numba sees constants of compiled code: one compilation of a loop serves both callers
        part.setflags(write=False)
    return found


_DORMAND_PRINCE = [
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
]
_DORMAND_PRINCE_B = [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]

FIXED: dict[str, Tableau] = {
    "ode1": _tableau([], [1.0]),
    "ode2": _tableau([[1.0]], [1 / 2, 1 / 2]),
    "ode3": _tableau([[1 / 3], [0.0, 2 / 3]], [1 / 4, 0.0, 3 / 4]),
    "ode4": _tableau([[1 / 2], [0.0, 1 / 2], [0.0, 0.0, 1.0]], [1 / 6, 1 / 3, 1 / 3, 1 / 6]),
    "ode5": _tableau(_DORMAND_PRINCE, _DORMAND_PRINCE_B),
}

#: Dormand and Prince (1980), 5(4), with the seventh stage, which is the first stage of the next step.
DOPRI5 = _tableau(
    [*_DORMAND_PRINCE, _DORMAND_PRINCE_B],
    [*_DORMAND_PRINCE_B, 0.0],
    [5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40],
)

_R = np.sqrt(6.0)
#: Matrices and nodes of Radau IIA with two and three stages (Hairer and Wanner: II, section IV.5).
RADAU: dict[int, tuple[Matrix, Vector]] = {
    2: (np.array([[5 / 12, -1 / 12], [3 / 4, 1 / 4]]), np.array([1 / 3, 1.0])),
    3: (
        np.array(
            [
                [(88 - 7 * _R) / 360, (296 - 169 * _R) / 1800, (-2 + 3 * _R) / 225],
                [(296 + 169 * _R) / 1800, (88 + 7 * _R) / 360, (-2 - 3 * _R) / 225],
                [(16 - _R) / 36, (16 + _R) / 36, 1 / 9],
            ]
        ),
        np.array([(4 - _R) / 10, (4 + _R) / 10, 1.0]),
    ),
}
