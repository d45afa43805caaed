"""Contacts and end stops, and the two functions that make switches smooth."""

from __future__ import annotations

from math import sqrt

from examples.elements.jit import compiled


@compiled
def hunt_crossley(depth: float, speed: float, stiffness: float, damping: float, exponent: float) -> float:
    """Compute the contact force `k d^n (1 + c d')`, never negative.

    Parameters
    ----------
    depth : float
        Penetration `d` in m; no force below 0.
    speed : float
        Its rate `d'` in m/s.
    stiffness : float
        `k` in N/m^n.
    damping : float
        `c` in s/m.
    exponent : float
        `n`, 1.5 for spheres.

    Returns
    -------
    float
        Force in N.

    Notes
    -----
    Damping grows with the depth, so the force starts at zero however fast the bodies meet, and they never stick.

    References
    ----------
    .. [1] K. H. Hunt, F. R. E. Crossley, Coefficient of restitution interpreted as damping in vibroimpact, Journal of
       Applied Mechanics 42(2), 1975.

    Examples
    --------
    >>> hunt_crossley(1e-3, 0.0, 1e6, 0.5, 1.0)
    1000.0
    >>> hunt_crossley(-1e-3, 2.0, 1e6, 0.5, 1.0), hunt_crossley(1e-3, -3.0, 1e6, 0.5, 1.0)
    (0.0, 0.0)
    """
    if depth <= 0.0:
        return 0.0
    force: float = stiffness * depth**exponent * (1.0 + damping * speed)
    return max(force, 0.0)


@compiled
def smooth_step(x: float) -> float:
    """Compute a smooth step: 0 below 0, 1 above 1, and a cubic in between.

    Parameters
    ----------
    x : float
        Argument.

    Returns
    -------
    float
        Value from 0 to 1.

    Examples
    --------
    >>> smooth_step(-1.0), smooth_step(0.5), smooth_step(3.0)
    (0.0, 0.5, 1.0)
    """
    if x <= 0.0:
        return 0.0
    return 1.0 if x >= 1.0 else x * x * (3.0 - 2.0 * x)


@compiled
def smooth_positive(x: float, width: float) -> float:
    """Compute a smooth `max(x, 0)`, `(x + sqrt(x^2 + w^2)) / 2`.

    Parameters
    ----------
    x : float
        Argument.
    width : float
        Width `w` of the rounded corner.

    Returns
    -------
    float
        Value, above 0.

    Examples
    --------
    >>> smooth_positive(0.0, 2.0), round(smooth_positive(100.0, 1.0), 4)
    (1.0, 100.0025)
    """
    return 0.5 * (x + sqrt(x * x + width * width))
