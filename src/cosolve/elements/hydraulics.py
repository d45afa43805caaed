"""Liquids under pressure: volumes, orifices, check and limiting valves, leakage, pieces of line.

Volumes keep their mass, and pressure follows from the mean density, so that no balance can be wrong. The law is smooth
through cavitation: a volume that is not full stays at about the vapour pressure, and no pressure is below it, however
hard a piston pulls. Lines of many pieces are chains of volumes and `line_acceleration`; `characteristics.py` has the
other way.
"""

from __future__ import annotations

from math import nan, pi, sqrt
from typing import NamedTuple

from cosolve.elements.contact import smooth_positive, smooth_step
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
    """Density at a pressure above that of the vapour; not a number where there is none, at or below it.

    >>> diesel = Liquid(826.0, 1.45e9, 9.5, 5e3, 5e4, 4e-3)
    >>> round(liquid_density(1e5, diesel), 2), liquid_density(-1e5, diesel)
    (826.05, nan)
    """
    q = pressure - liquid.vapour_pressure
    if q <= 0.0:
        return nan
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
def volume_pressure(mass: float, volume: float, liquid: Liquid) -> float:
    """Pressure in a volume that holds so much liquid; what is not full stays at the vapour pressure.

    >>> diesel = Liquid(826.0, 1.45e9, 9.5, 5e3, 5e4, 4e-3)
    >>> round(volume_pressure(831.6e-6, 1e-6, diesel) / 1e6, 1), volume_pressure(400e-6, 1e-6, diesel) > 5e3
    (10.1, True)
    """
    return liquid_pressure(mass / volume, liquid)


@compiled
def valve_rate(opening: float, drop: float, full: float, lag: float) -> float:
    """Rate of the opening (0 to 1) of a check valve, whose poppet follows the pressure drop with a `lag` in s.

    It wants to be shut for every drop below 0 and is open from the drop `full` on. Its flow is an `orifice_flow`
    through `opening` times its area.

    >>> valve_rate(0.0, 1e5, 5e4, 1e-4), valve_rate(0.5, -1e5, 5e4, 1e-4)
    (10000.0, -5000.0)
    """
    return (smooth_step(drop / full) - opening) / lag


@compiled
def limiting_flow(pressure: float, limit: float, conductance: float, width: float) -> float:
    """Mass flow of a valve that limits a pressure: proportional to what is above `limit`, its corner rounded.

    >>> round(limiting_flow(190e6, 180e6, 1.6e-9, 0.1e6), 6), limiting_flow(170e6, 180e6, 1.6e-9, 0.1e6) < 1e-6
    (0.016, True)
    """
    return conductance * smooth_positive(pressure - limit, width)


@compiled
def gap_conductance(
    density: float, viscosity: float, diameter: float, clearance: float, length: float, eccentricity: float
) -> float:
    """Leakage per pressure drop, in kg/(s Pa), along a piston in its bore: laminar flow in a ring of width `clearance`.

    `pi D c^3 rho (1 + 1.5 e^2) / (12 eta l)`, with the radial clearance and the share `eccentricity` (0 to 1) of it by
    which the piston is out of the middle: 2.5 times as much where it lies against the wall.

    >>> middle = gap_conductance(826.0, 4e-3, 6.5e-3, 2e-6, 0.03, 0.0)
    >>> gap_conductance(826.0, 4e-3, 6.5e-3, 2e-6, 0.03, 1.0) / middle
    2.5
    """
    shape = 1.0 + 1.5 * eccentricity * eccentricity
    return pi * diameter * clearance * clearance * clearance * density * shape / (12.0 * viscosity * length)


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
