"""Dry friction with a state: the bristles of LuGre, which stick without creeping and slip with a Stribeck curve."""

from __future__ import annotations

from math import exp
from typing import NamedTuple

from cosolve.jit import compiled


class LuGre(NamedTuple):
    """The LuGre model (Canudas et al. (1995)): bristles of deflection `z` between two surfaces.

    `F = s0 z + s1 z' + s2 v`, `z' = v - s0 |v| z / g(v)`, `g = Fc + (Fs - Fc) exp(-(v / vs)^2)`. The deflection is a
    state of whoever uses it. `load` multiplies both levels of friction: a normal force that varies.

    A tuple, so that compiled right-hand sides can take one as a constant and call `bristle_rate` and `friction_force`.

    >>> brake = LuGre(stiffness=1e5, damping=100.0, viscosity=1.0, sliding=4.0, sticking=6.0, stribeck_speed=0.01)
    >>> z = brake.deflection(0.5)                    # where it comes to rest at that speed
    >>> abs(brake.rate(0.5, z)) < 1e-12, round(brake.force(0.5, z), 6)     # 4 N, and 0.5 N of viscosity
    (True, 4.5)
    """

    stiffness: float
    damping: float
    viscosity: float
    sliding: float
    sticking: float
    stribeck_speed: float

    def level(self, v: float) -> float:
        """The Stribeck curve: friction when sliding steadily, without viscosity."""
        return float(stribeck(v, self.sliding, self.sticking, self.stribeck_speed))

    def rate(self, v: float, z: float, load: float = 1.0) -> float:
        """How fast the bristles bend."""
        return float(bristle_rate(v, z, self.stiffness, load * self.level(v)))

    def force(self, v: float, z: float, load: float = 1.0) -> float:
        """The force against the motion."""
        return self.stiffness * z + self.damping * self.rate(v, z, load) + self.viscosity * v

    def deflection(self, v: float, load: float = 1.0) -> float:
        """How far the bristles are bent when sliding steadily."""
        return load * self.level(v) / self.stiffness * (1 if v > 0 else -1 if v < 0 else 0)


@compiled
def stribeck(v: float, sliding: float, sticking: float, speed: float) -> float:
    """`Fc + (Fs - Fc) exp(-(v / vs)^2)`.

    >>> stribeck(0.0, 4.0, 6.0, 0.01)
    6.0
    """
    return sliding + (sticking - sliding) * exp(-((v / speed) ** 2))


@compiled
def bristle_rate(v: float, z: float, stiffness: float, level: float) -> float:
    """`v - s0 |v| z / g`.

    >>> bristle_rate(0.1, 0.0, 1e5, 4.0)
    0.1
    """
    return v - stiffness * abs(v) * z / level
