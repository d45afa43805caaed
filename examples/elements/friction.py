"""Dry friction with a state: the bristles of LuGre, which stick without creeping and slip with a Stribeck curve."""

from __future__ import annotations

from math import exp
from typing import NamedTuple

from examples.elements.jit import compiled


class LuGre(NamedTuple):
    """The LuGre friction model: bristles between two surfaces whose deflection is a state.

    Parameters
    ----------
    stiffness : float
        Stiffness `s0` of the bristles in N/m.
    damping : float
        Damping `s1` of the bristles in N s/m.
    viscosity : float
        Viscous friction `s2` in N s/m.
    sliding : float
        Friction `Fc` when sliding in N.
    sticking : float
        Friction `Fs` when sticking in N.
    stribeck_speed : float
        Speed `vs` of the transition in m/s.

    Notes
    -----
    Equations::

        F = s0 z + s1 z' + s2 v,      z' = v - s0 |v| z / g(v),      g = Fc + (Fs - Fc) exp(-(v / vs)^2)

    The model that uses it integrates the deflection `z`. It is a tuple, so that compiled right-hand sides can take one
    as a constant and call `bristle_rate`.

    References
    ----------
    .. [1] C. Canudas de Wit, H. Olsson, K. J. Åström, P. Lischinsky, A new model for control of systems with friction,
       IEEE Transactions on Automatic Control 40(3), 1995.

    Examples
    --------
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
        """Compute the Stribeck curve: friction when sliding steadily, without viscosity.

        Parameters
        ----------
        v : float
            Sliding speed in m/s.

        Returns
        -------
        float
            `g(v)` in N.
        """
        return float(stribeck(v, self.sliding, self.sticking, self.stribeck_speed))

    def rate(self, v: float, z: float, load: float = 1.0) -> float:
        """Compute the rate of the deflection.

        Parameters
        ----------
        v : float
            Sliding speed in m/s.
        z : float
            Deflection of the bristles in m.
        load : float, default 1.0
            Factor on both levels of friction, as of a varying normal force.

        Returns
        -------
        float
            `z'` in m/s.
        """
        return float(bristle_rate(v, z, self.stiffness, load * self.level(v)))

    def force(self, v: float, z: float, load: float = 1.0) -> float:
        """Compute the friction force against the motion.

        Parameters
        ----------
        v : float
            Sliding speed in m/s.
        z : float
            Deflection of the bristles in m.
        load : float, default 1.0
            Factor on both levels of friction, as of a varying normal force.

        Returns
        -------
        float
            `F` in N.
        """
        return self.stiffness * z + self.damping * self.rate(v, z, load) + self.viscosity * v

    def deflection(self, v: float, load: float = 1.0) -> float:
        """Compute the deflection when sliding steadily.

        Parameters
        ----------
        v : float
            Sliding speed in m/s.
        load : float, default 1.0
            Factor on both levels of friction, as of a varying normal force.

        Returns
        -------
        float
            `z` in m.
        """
        return load * self.level(v) / self.stiffness * (1 if v > 0 else -1 if v < 0 else 0)


@compiled
def stribeck(v: float, sliding: float, sticking: float, speed: float) -> float:
    """Compute the Stribeck curve `Fc + (Fs - Fc) exp(-(v / vs)^2)`.

    Parameters
    ----------
    v : float
        Sliding speed in m/s.
    sliding : float
        `Fc` in N.
    sticking : float
        `Fs` in N.
    speed : float
        `vs` in m/s.

    Returns
    -------
    float
        Friction in N.

    Examples
    --------
    >>> stribeck(0.0, 4.0, 6.0, 0.01)
    6.0
    """
    return sliding + (sticking - sliding) * exp(-((v / speed) ** 2))


@compiled
def bristle_rate(v: float, z: float, stiffness: float, level: float) -> float:
    """Compute the rate of the bristles of `LuGre`, `v - s0 |v| z / g`.

    Parameters
    ----------
    v : float
        Sliding speed in m/s.
    z : float
        Deflection of the bristles in m.
    stiffness : float
        `s0` in N/m.
    level : float
        `g` in N.

    Returns
    -------
    float
        `z'` in m/s.

    Examples
    --------
    >>> bristle_rate(0.1, 0.0, 1e5, 4.0)
    0.1
    """
    return v - stiffness * abs(v) * z / level
