"""Liquids under pressure: density and pressure, orifices, valves, lines.

Volumes keep their mass, and pressure follows from the mean density, so that no balance can be wrong. The law is smooth
through cavitation: a volume that is not full stays at about the vapour pressure.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import NamedTuple

from cosolve.jit import compiled


class Liquid(NamedTuple):
    """A liquid whose bulk modulus grows with pressure, `K = modulus + stiffening p`.

    `width` is over how many Pa the corner at the vapour pressure is rounded.

    >>> diesel = Liquid(826.0, 1.45e9, 9.5, 5e3, 5e4, 4e-3)
    >>> p = 180e6
    >>> round(liquid_pressure(liquid_density(p, diesel), diesel) / p, 12)
    1.0
    >>> round(sound_speed(p, diesel))
    1877
    """

    density: float
    modulus: float
    stiffening: float
    vapour_pressure: float
    width: float
    viscosity: float


@compiled
def liquid_pressure(density: float, liquid: Liquid) -> float:
    """Pressure of a mean density: `pv + (g + sqrt(g^2 + w^2)) / 2`, `g = K0/c ((rho/rho0)^c - 1)`.

    >>> diesel = Liquid(826.0, 1.45e9, 9.5, 5e3, 5e4, 4e-3)
    >>> liquid_pressure(600.0, diesel) < 5.1e3         # not full
    True
    """
    c = liquid.stiffening
    g: float = liquid.modulus / c * ((density / liquid.density) ** c - 1.0)
    return liquid.vapour_pressure + 0.5 * (g + sqrt(g * g + liquid.width * liquid.width))


@compiled
def liquid_density(pressure: float, liquid: Liquid) -> float:
    """Density at a pressure above that of the vapour.

    >>> round(liquid_density(1e5, Liquid(826.0, 1.45e9, 9.5, 5e3, 5e4, 4e-3)), 2)
    826.05
    """
    q = pressure - liquid.vapour_pressure
    g = q - liquid.width * liquid.width / (4.0 * q)
    ratio: float = (1.0 + liquid.stiffening * g / liquid.modulus) ** (1.0 / liquid.stiffening)
    return liquid.density * ratio


@compiled
def sound_speed(pressure: float, liquid: Liquid) -> float:
    """Of the full liquid.

    >>> round(sound_speed(0.0, Liquid(826.0, 1.45e9, 9.5, 5e3, 5e4, 4e-3)))
    1325
    """
    stiffer = 1.0 + liquid.stiffening * pressure / liquid.modulus
    density = liquid.density * stiffer ** (1.0 / liquid.stiffening)
    return sqrt(liquid.modulus * stiffer / density)


@compiled
def orifice_flow(drop: float, upstream: float, area: float, laminar: float) -> float:
    """Mass flow for a pressure drop, `area sqrt(2 rho) dp / (dp^2 + d^2)^(1/4)`; `area` includes the discharge.

    `upstream` is the density where it comes from. Below `laminar` the flow is proportional to the drop, so that it
    passes through zero with a finite slope.

    >>> round(orifice_flow(1e6, 826.0, 0.7e-6, 1e3), 6)              # 0.7 A sqrt(2 rho dp)
    0.028451
    >>> orifice_flow(-1e6, 826.0, 0.7e-6, 1e3) == -orifice_flow(1e6, 826.0, 0.7e-6, 1e3)
    True
    """
    return area * sqrt(2.0 * upstream) * drop / sqrt(sqrt(drop * drop + laminar * laminar))


@compiled
def line_acceleration(
    flow: float, before: float, after: float, density: float, length: float, bore: float, viscosity: float
) -> float:
    """Rate of the mass flow in a piece of line between two pressures: inertia, laminar and turbulent friction.

    `A ((p1 - p2)/l - 32 eta w/D^2 - 0.03 rho w |w| / 2D)` with the speed `w`, whose modulus is rounded at 0.1 m/s.

    >>> round(line_acceleration(0.0, 2e5, 1e5, 826.0, 0.1, 2.4e-3, 4e-3), 3)         # kg/s2, from rest
    4.524
    """
    area = 0.25 * pi * bore * bore
    w = flow / (density * area)
    laminar = 32.0 * viscosity * w / (bore * bore)
    turbulent = 0.03 * density * w * sqrt(w * w + 0.01) / (2.0 * bore)
    return area * ((before - after) / length - laminar - turbulent)
