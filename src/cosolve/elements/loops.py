"""Coaxial circular current loops: inductances and how they change with the distance (Maxwell (1873), art. 701).

A coil is a stack of such loops, a massive conductor is cut into rings: with their currents as states both are one
linear circuit whose inductances depend on the position.
"""

from __future__ import annotations

from math import pi

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector

MU_0 = 4e-7 * pi

#: The geometric mean distance of a rectangle to itself, as a share of the sum of its sides.
_MEAN_DISTANCE = 0.2235


def mutual_inductance(a: npt.ArrayLike, b: npt.ArrayLike, distance: npt.ArrayLike) -> Vector:
    """Of two thin loops of radii `a` and `b` in H, `distance` apart along their axis; arrays are broadcast.

    `M = mu0 sqrt(a b) ((2/k - k) K - 2/k E)`, `k^2 = 4 a b / ((a + b)^2 + d^2)`.

    >>> float(round(mutual_inductance(0.01, 1.0, 0.0) * 1e9, 4))     # a small loop in the middle of a large one
    0.1974
    >>> round(MU_0 * pi * 0.01**2 / 2 * 1e9, 4)
    0.1974
    """
    from scipy.special import ellipe, ellipk

    a, b, distance = (np.asarray(one, np.float64) for one in (a, b, distance))
    m = 4.0 * a * b / ((a + b) ** 2 + distance**2)
    k = np.sqrt(m)
    found: Vector = MU_0 * np.sqrt(a * b) * ((2.0 / k - k) * ellipk(m) - 2.0 / k * ellipe(m))
    return found


def mutual_inductance_slope(a: npt.ArrayLike, b: npt.ArrayLike, distance: npt.ArrayLike) -> Vector:
    """Its derivative by the distance in H/m, which times both currents is the force that pulls them together.

    >>> nearer, farther = mutual_inductance(0.02, 0.03, [0.00999, 0.01001])
    >>> bool(abs((farther - nearer) / 2e-5 / mutual_inductance_slope(0.02, 0.03, 0.01) - 1) < 1e-6)
    True
    """
    from scipy.special import ellipe, ellipk

    a, b, distance = (np.asarray(one, np.float64) for one in (a, b, distance))
    m = 4.0 * a * b / ((a + b) ** 2 + distance**2)
    shape = 2.0 * ellipk(m) - (2.0 - m) / (1.0 - m) * ellipe(m)
    found: Vector = MU_0 * np.sqrt(m) * distance / (4.0 * np.sqrt(a * b)) * shape
    return found


def self_inductance(radius: npt.ArrayLike, width: npt.ArrayLike, height: npt.ArrayLike) -> Vector:
    """Of one loop with a rectangular cross section in H; for sections that are nearly square.

    Flat ones make the inductance matrix of a cut conductor indefinite, and a circuit with such a matrix explodes: look
    at its smallest eigenvalue.

    >>> float(round(self_inductance(0.02, 1e-3, 1e-3) * 1e9, 3))
    97.524
    """
    radius = np.asarray(radius, np.float64)
    mean = _MEAN_DISTANCE * (np.asarray(width, np.float64) + np.asarray(height, np.float64))
    found: Vector = MU_0 * radius * (np.log(8.0 * radius / mean) - 2.0)
    return found


def inductance_matrix(radii: npt.ArrayLike, heights: npt.ArrayLike, width: float, height: float) -> Matrix:
    """Of coaxial loops of one section among each other, given where they are along the axis.

    Its sum over all entries is the inductance of the loops in series: a coil.

    >>> L = inductance_matrix([0.010, 0.013], [0.0, 0.0], 2.4e-3, 4e-3)
    >>> bool(L[0, 1] == L[1, 0] == mutual_inductance(0.010, 0.013, 0.0)), float(round(L.sum() * 1e9, 2))
    (True, 104.46)
    """
    radii, heights = np.asarray(radii, np.float64), np.asarray(heights, np.float64)
    n = len(radii)
    L = np.empty((n, n))
    for i in range(n):
        others = np.arange(n) != i
        L[i, others] = mutual_inductance(radii[i], radii[others], heights[i] - heights[others])
        L[i, i] = self_inductance(radii[i], width, height)
    return L


def loop_resistance(radius: npt.ArrayLike, area: npt.ArrayLike, conductivity: float) -> Vector:
    """Of one loop in Ohm.

    >>> float(round(loop_resistance(0.02, 1e-6, 5.8e7) * 1e3, 4))
    2.1666
    """
    found: Vector = 2.0 * pi * np.asarray(radius, np.float64) / (conductivity * np.asarray(area, np.float64))
    return found
