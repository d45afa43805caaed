"""A planar double pendulum of two rods (1 m, 1 kg each), integrated over macro steps of 10 ms and started anew in each.

Angles from the vertical, rates, and a torque about the first joint (zero here: it is where coupling would act):

    4/3 a1 + cos(d)/2 a2 = u - sin(d)/2 w2^2 - 3/2 g sin(p1) + D (w2 - w1)
    cos(d)/2 a1 + 1/3 a2 =     sin(d)/2 w1^2 - 1/2 g sin(p2) - D (w2 - w1)        d = p1 - p2

`D = 0` is smooth; `D = 2e4` is stiff (a fast rate of about 1e5 per second on a slow motion). The functions take the
module that has sin and cos, so that numba, JAX and CasADi share one text. Standard library only.
"""

from __future__ import annotations

from typing import Any

G = 9.81
H, T_END = 0.01, 1.0
START = [1.0, 0.5, 0.0, 0.0]
STIFF = 2e4


def accelerations(m: Any, p1: Any, p2: Any, w1: Any, w2: Any, u: Any, D: float) -> tuple[Any, Any]:
    """Both angular accelerations."""
    cos, sin = 0.5 * m.cos(p1 - p2), 0.5 * m.sin(p1 - p2)
    rub = D * (w2 - w1)
    f = u - sin * w2 * w2 - 1.5 * G * m.sin(p1) + rub
    g = sin * w1 * w1 - 0.5 * G * m.sin(p2) - rub
    det = 4.0 / 9.0 - cos * cos
    return (f / 3.0 - cos * g) / det, (4.0 / 3.0 * g - cos * f) / det


#: Centres (x, y) and angle of each rod, y up: the same motion with constraints.
def absolute(p1: float, p2: float) -> list[float]:
    """Absolute coordinates for two angles."""
    from math import cos, sin

    return [
        0.5 * sin(p1),
        -0.5 * cos(p1),
        p1,
        sin(p1) + 0.5 * sin(p2),
        -cos(p1) - 0.5 * cos(p2),
        p2,
    ]
