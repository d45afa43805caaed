"""Closed-form limits of the journal bearing: infinitely long and short bearings, classical coefficients.

For checks, first guesses and hand calculation. Dimensionless as in `reynolds.py` (frame of the line of centres,
journal not whirling); Guembel's condition, which for a resting journal is the half-Sommerfeld film of length pi.
After Lang and Steinhilper (1978); coefficients: Friswell et al. (2010), ch. 5.
"""

from __future__ import annotations

import numpy as np

from examples.rotor_bearing.reynolds import Array


def long_bearing(eps: float) -> Array:
    """`(F_r, F_delta)` per unit of width of the infinitely long bearing.

    >>> long_bearing(0.6).round(4).tolist()
    [-0.4767, 0.9984]
    """
    q = 1 - eps**2
    return np.array([-2 * eps**2 / q, np.pi * eps / np.sqrt(q)]) / (2 + eps**2)


def short_bearing(eps: float, width: float) -> Array:
    """`(F_r, F_delta)` of a bearing with `width = B/R` much smaller than one (Ocvirk).

    >>> short_bearing(0.5, 0.1).round(6).tolist()
    [-0.000741, 0.001008]
    """
    q = 1 - eps**2
    return width**2 * np.array([-(eps**2) / (6 * q**2), np.pi * eps / (24 * q**1.5)])


def short_bearing_coefficients(eps: float) -> tuple[Array, Array]:
    """Stiffness times `c / W` and damping times `c omega / W` of the short bearing that carries the load `W`.

    Axes: the second is the direction opposite to the load, the first the direction in which the rotation displaces the
    journal (x and y for a load in -y and a positive speed).

    >>> K, C = short_bearing_coefficients(0.5)
    >>> K.round(3).tolist(), C.round(3).tolist()
    ([[2.21, 0.858], [-3.977, 2.923]], [[3.054, -2.245], [-2.245, 6.615]])
    """
    e2, q, pi2 = eps**2, 1 - eps**2, np.pi**2
    h = (pi2 * q + 16 * e2) ** -1.5
    side = np.pi / (eps * np.sqrt(q))
    kxx = 4 * (pi2 * (2 - e2) + 16 * e2)
    kxy = side * (pi2 * q**2 - 16 * e2**2)
    kyx = -side * (pi2 * q * (1 + 2 * e2) + 32 * e2 * (1 + e2))
    kyy = 4 * (pi2 * (1 + 2 * e2) + 32 * e2 * (1 + e2) / q)
    cxx = 2 * np.pi * np.sqrt(q) / eps * (pi2 * (1 + 2 * e2) - 16 * e2)
    cxy = -8 * (pi2 * (1 + 2 * e2) - 16 * e2)
    cyy = 2 * side * (pi2 * q**2 + 48 * e2)
    return h * np.array([[kxx, kxy], [kyx, kyy]]), h * np.array([[cxx, cxy], [cxy, cyy]])
