"""Coaxial circular current loops: inductances and how they change with the distance (Maxwell (1873), art. 701).

A coil is a stack of such loops, a massive conductor is cut into rings: with their currents as states both are one
linear circuit whose inductances depend on the position.
"""

from __future__ import annotations

from math import pi

import numpy as np
import numpy.typing as npt

from examples.elements.jit import Array

MU_0 = 4e-7 * pi

#: The geometric mean distance of a rectangle to itself, as a share of the sum of its sides.
_MEAN_DISTANCE = 0.2235


def mutual_inductance(a: npt.ArrayLike, b: npt.ArrayLike, distance: npt.ArrayLike) -> Array:
    """Compute the mutual inductance of two coaxial thin loops; arrays are broadcast.

    Parameters
    ----------
    a : array_like
        Radius of the first loop in m.
    b : array_like
        Radius of the second loop in m.
    distance : array_like
        Distance along the common axis in m.

    Returns
    -------
    ndarray
        Inductance in H.

    Notes
    -----
    Formula::

        M = mu0 sqrt(a b) ((2/k - k) K - 2/k E),      k^2 = 4 a b / ((a + b)^2 + d^2)

    with the complete elliptic integrals `K` and `E`.

    References
    ----------
    .. [1] J. C. Maxwell, A Treatise on Electricity and Magnetism, Clarendon Press, 1873, art. 701.

    Examples
    --------
    >>> float(round(mutual_inductance(0.01, 1.0, 0.0) * 1e9, 4))     # a small loop in the middle of a large one
    0.1974
    >>> round(MU_0 * pi * 0.01**2 / 2 * 1e9, 4)
    0.1974
    """
    from scipy.special import ellipe, ellipk

    a, b, distance = (np.asarray(one, np.float64) for one in (a, b, distance))
    m = 4.0 * a * b / ((a + b) ** 2 + distance**2)
    k = np.sqrt(m)
    found: Array = MU_0 * np.sqrt(a * b) * ((2.0 / k - k) * ellipk(m) - 2.0 / k * ellipe(m))
    return found


def mutual_inductance_slope(a: npt.ArrayLike, b: npt.ArrayLike, distance: npt.ArrayLike) -> Array:
    """Compute the derivative of the mutual inductance with respect to the distance.

    Parameters
    ----------
    a : array_like
        Radius of the first loop in m.
    b : array_like
        Radius of the second loop in m.
    distance : array_like
        Distance along the common axis in m.

    Returns
    -------
    ndarray
        Derivative in H/m; times both currents it is the force that pulls the loops together.

    References
    ----------
    .. [1] J. C. Maxwell, A Treatise on Electricity and Magnetism, Clarendon Press, 1873, art. 701.

    Examples
    --------
    >>> nearer, farther = mutual_inductance(0.02, 0.03, [0.00999, 0.01001])
    >>> bool(abs((farther - nearer) / 2e-5 / mutual_inductance_slope(0.02, 0.03, 0.01) - 1) < 1e-6)
    True
    """
    from scipy.special import ellipe, ellipk

    a, b, distance = (np.asarray(one, np.float64) for one in (a, b, distance))
    m = 4.0 * a * b / ((a + b) ** 2 + distance**2)
    shape = 2.0 * ellipk(m) - (2.0 - m) / (1.0 - m) * ellipe(m)
    found: Array = MU_0 * np.sqrt(m) * distance / (4.0 * np.sqrt(a * b)) * shape
    return found


def self_inductance(radius: npt.ArrayLike, width: npt.ArrayLike, height: npt.ArrayLike) -> Array:
    """Compute the inductance of a loop with a rectangular, nearly square cross-section.

    Parameters
    ----------
    radius : array_like
        Mean radius in m.
    width : array_like
        Radial width of the section in m.
    height : array_like
        Axial height of the section in m.

    Returns
    -------
    ndarray
        Inductance in H.

    Notes
    -----
    Flat sections make the inductance matrix of a conductor cut into loops indefinite, and the circuit unstable: look at
    its smallest eigenvalue.

    Examples
    --------
    >>> float(round(self_inductance(0.02, 1e-3, 1e-3) * 1e9, 3))
    97.524
    """
    radius = np.asarray(radius, np.float64)
    mean = _MEAN_DISTANCE * (np.asarray(width, np.float64) + np.asarray(height, np.float64))
    found: Array = MU_0 * radius * (np.log(8.0 * radius / mean) - 2.0)
    return found


def inductance_matrix(radii: npt.ArrayLike, heights: npt.ArrayLike, width: float, height: float) -> Array:
    """Compute the inductances of coaxial loops of one section.

    Parameters
    ----------
    radii : array_like
        Radii in m.
    heights : array_like
        Positions along the axis in m.
    width : float
        Radial width of the sections in m.
    height : float
        Axial height of the sections in m.

    Returns
    -------
    ndarray
        Shape (loops, loops), in H. The sum of all entries is the inductance of the loops in series.

    Examples
    --------
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


def loop_resistance(radius: npt.ArrayLike, area: npt.ArrayLike, conductivity: float) -> Array:
    """Compute the resistance of a loop.

    Parameters
    ----------
    radius : array_like
        Radius in m.
    area : array_like
        Cross-section in m^2.
    conductivity : float
        Conductivity in S/m.

    Returns
    -------
    ndarray
        Resistance in Ohm.

    Examples
    --------
    >>> float(round(loop_resistance(0.02, 1e-6, 5.8e7) * 1e3, 4))
    2.1666
    """
    found: Array = 2.0 * pi * np.asarray(radius, np.float64) / (conductivity * np.asarray(area, np.float64))
    return found
