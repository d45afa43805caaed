"""Contacts and end stops, and the two functions that make switches smooth."""

from __future__ import annotations

from math import sqrt

from cosolve.jit import compiled


@compiled
def hunt_crossley(depth: float, speed: float, stiffness: float, damping: float, exponent: float) -> float:
    """Force of a contact by its penetration and the speed of that, `k d^n (1 + c d')`, never negative.

    Damping grows with the depth, so the force begins at zero however fast the bodies meet, and they never stick
    (Hunt and Crossley (1975)).

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
    """0 below 0, 1 above 1, and the cubic with level ends in between.

    >>> smooth_step(-1.0), smooth_step(0.5), smooth_step(3.0)
    (0.0, 0.5, 1.0)
    """
    if x <= 0.0:
        return 0.0
    return 1.0 if x >= 1.0 else x * x * (3.0 - 2.0 * x)


@compiled
def smooth_positive(x: float, width: float) -> float:
    """`max(x, 0)` with its corner rounded over `width`: `(x + sqrt(x^2 + w^2)) / 2`.

    >>> smooth_positive(0.0, 2.0), round(smooth_positive(100.0, 1.0), 4)
    (1.0, 100.0025)
    """
    return 0.5 * (x + sqrt(x * x + width * width))
