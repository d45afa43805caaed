"""Liquids under pressure: volumes, orifices, check and limiting valves, leakage, pieces of line.

Volumes keep their mass, and pressure follows from the mean density, so that no balance can be wrong. The law is smooth
through cavitation: a volume that is not full stays at about the vapour pressure, and no pressure is below it, however
hard a piston pulls. Lines of many pieces are chains of volumes and `line_acceleration`; `characteristics.py` has the
other way.
"""

from __future__ import annotations

from math import nan, pi, sqrt
from typing import NamedTuple

from examples.elements.contact import smooth_positive, smooth_step
from examples.elements.jit import compiled


class Liquid(NamedTuple):
    """A liquid whose bulk modulus grows with pressure, `K = modulus + stiffening p`.

    Parameters
    ----------
    density : float
        Density at zero pressure in kg/m^3.
    modulus : float
        Bulk modulus at zero pressure in Pa.
    stiffening : float
        Growth of the bulk modulus with pressure.
    vapour_pressure : float
        Vapour pressure in Pa.
    width : float
        Width in Pa over which the corner at the vapour pressure is rounded.
    viscosity : float
        Dynamic viscosity in Pa s.

    Examples
    --------
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
    """Compute the pressure of a mean density.

    Parameters
    ----------
    density : float
        Mean density in kg/m^3; a volume that is not full has less than the liquid.
    liquid : Liquid
        The liquid.

    Returns
    -------
    float
        Pressure in Pa, never below the vapour pressure.

    Notes
    -----
    Formula::

        p = pv + (g + sqrt(g^2 + w^2)) / 2,      g = K0/c ((rho/rho0)^c - 1)

    Examples
    --------
    >>> diesel = Liquid(826.0, 1.45e9, 9.5, 5e3, 5e4, 4e-3)
    >>> liquid_pressure(600.0, diesel) < 5.1e3         # not full
    True
    """
    c = liquid.stiffening
    g: float = liquid.modulus / c * ((density / liquid.density) ** c - 1.0)
    return liquid.vapour_pressure + 0.5 * (g + sqrt(g * g + liquid.width * liquid.width))


@compiled
def liquid_density(pressure: float, liquid: Liquid) -> float:
    """Compute the density at a pressure above the vapour pressure.

    Parameters
    ----------
    pressure : float
        Pressure in Pa.
    liquid : Liquid
        The liquid.

    Returns
    -------
    float
        Density in kg/m^3; NaN at or below the vapour pressure.

    Examples
    --------
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
    """Compute the speed of sound in the full liquid.

    Parameters
    ----------
    pressure : float
        Pressure in Pa.
    liquid : Liquid
        The liquid.

    Returns
    -------
    float
        Speed in m/s.

    Examples
    --------
    >>> round(sound_speed(0.0, Liquid(826.0, 1.45e9, 9.5, 5e3, 5e4, 4e-3)))
    1325
    """
    stiffer = 1.0 + liquid.stiffening * pressure / liquid.modulus
    density = liquid.density * stiffer ** (1.0 / liquid.stiffening)
    return sqrt(liquid.modulus * stiffer / density)


@compiled
def orifice_flow(drop: float, upstream: float, area: float, laminar: float) -> float:
    """Compute the mass flow through an orifice.

    Parameters
    ----------
    drop : float
        Pressure drop in Pa; negative for flow back.
    upstream : float
        Density upstream in kg/m^3.
    area : float
        Area times discharge coefficient in m^2.
    laminar : float
        Pressure drop in Pa below which the flow is proportional to the drop.

    Returns
    -------
    float
        Mass flow in kg/s.

    Notes
    -----
    Formula::

        m = area sqrt(2 rho) dp / (dp^2 + d^2)^(1/4)

    Examples
    --------
    >>> round(orifice_flow(1e6, 826.0, 0.7e-6, 1e3), 6)              # 0.7 A sqrt(2 rho dp)
    0.028451
    >>> orifice_flow(-1e6, 826.0, 0.7e-6, 1e3) == -orifice_flow(1e6, 826.0, 0.7e-6, 1e3)
    True
    """
    return area * sqrt(2.0 * upstream) * drop / sqrt(sqrt(drop * drop + laminar * laminar))


@compiled
def volume_pressure(mass: float, volume: float, liquid: Liquid) -> float:
    """Compute the pressure in a volume from the mass in it.

    Parameters
    ----------
    mass : float
        Mass in kg.
    volume : float
        Volume in m^3.
    liquid : Liquid
        The liquid.

    Returns
    -------
    float
        Pressure in Pa; about the vapour pressure if the volume is not full.

    Examples
    --------
    >>> diesel = Liquid(826.0, 1.45e9, 9.5, 5e3, 5e4, 4e-3)
    >>> round(volume_pressure(831.6e-6, 1e-6, diesel) / 1e6, 1), volume_pressure(400e-6, 1e-6, diesel) > 5e3
    (10.1, True)
    """
    return liquid_pressure(mass / volume, liquid)


@compiled
def valve_rate(opening: float, drop: float, full: float, lag: float) -> float:
    """Compute the rate of the opening of a check valve.

    Parameters
    ----------
    opening : float
        Opening from 0 to 1.
    drop : float
        Pressure drop in Pa.
    full : float
        Pressure drop in Pa from which on it is fully open; below 0 it closes.
    lag : float
        Time constant of the poppet in s.

    Returns
    -------
    float
        Rate in 1/s.

    Notes
    -----
    Its flow is an `orifice_flow` through `opening` times its area.

    Examples
    --------
    >>> valve_rate(0.0, 1e5, 5e4, 1e-4), valve_rate(0.5, -1e5, 5e4, 1e-4)
    (10000.0, -5000.0)
    """
    return (smooth_step(drop / full) - opening) / lag


@compiled
def limiting_flow(pressure: float, limit: float, conductance: float, width: float) -> float:
    """Compute the mass flow of a pressure-limiting valve.

    Parameters
    ----------
    pressure : float
        Pressure in Pa.
    limit : float
        Pressure in Pa at which it opens.
    conductance : float
        Mass flow per pressure above the limit in kg/(s Pa).
    width : float
        Width in Pa of the rounded corner.

    Returns
    -------
    float
        Mass flow in kg/s.

    Examples
    --------
    >>> round(limiting_flow(190e6, 180e6, 1.6e-9, 0.1e6), 6), limiting_flow(170e6, 180e6, 1.6e-9, 0.1e6) < 1e-6
    (0.016, True)
    """
    return conductance * smooth_positive(pressure - limit, width)


@compiled
def gap_conductance(
    density: float, viscosity: float, diameter: float, clearance: float, length: float, eccentricity: float
) -> float:
    """Compute the leakage along a piston in its bore, per pressure drop.

    Parameters
    ----------
    density : float
        Density in kg/m^3.
    viscosity : float
        Dynamic viscosity in Pa s.
    diameter : float
        Diameter in m.
    clearance : float
        Radial clearance `c` in m.
    length : float
        Length of the gap in m.
    eccentricity : float
        Eccentricity `e` as a fraction of the clearance, 0 to 1.

    Returns
    -------
    float
        Mass flow per pressure drop in kg/(s Pa).

    Notes
    -----
    Laminar flow in a ring, `pi D c^3 rho (1 + 1.5 e^2) / (12 eta l)`.

    Examples
    --------
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
    """Compute the rate of the mass flow in a piece of line.

    Parameters
    ----------
    flow : float
        Mass flow in kg/s.
    before : float
        Pressure upstream in Pa.
    after : float
        Pressure downstream in Pa.
    density : float
        Density in kg/m^3.
    length : float
        Length in m.
    bore : float
        Inner diameter in m.
    viscosity : float
        Dynamic viscosity in Pa s.

    Returns
    -------
    float
        Rate in kg/s^2.

    Notes
    -----
    Inertia, laminar and turbulent friction with the speed `w`: `A ((p1 - p2)/l - 32 eta w/D^2 - 0.03 rho w |w| / 2D)`,
    where `|w|` is rounded at 0.1 m/s.

    Examples
    --------
    >>> round(line_acceleration(0.0, 2e5, 1e5, 826.0, 0.1, 2.4e-3, 4e-3), 3)         # kg/s2, from rest
    4.524
    """
    area = 0.25 * pi * bore * bore
    w = flow / (density * area)
    laminar = 32.0 * viscosity * w / (bore * bore)
    turbulent = 0.03 * density * w * sqrt(w * w + 0.01) / (2.0 * bore)
    return area * ((before - after) / length - laminar - turbulent)
