"""A common-rail pump: three pistons on an eccentric, driven through gears, against the high-pressure hydraulics.

Multibody side: gear and eccentric shaft turn on two springs behind a drive of slightly uneven speed; each piston is
pressed onto the eccentric by its spring and by the liquid. Hydraulic side: a throttle meters the feed into a gallery,
suction valves let it into the cylinders (which do not fill, so that they cavitate), outlet valves lead to a port, a
line and the rail, from where injectors and a limiting valve take it. Positions and speeds of the pistons go one way,
forces come back: nine signals.

Torsion of the drive, the column of liquid in the line and the fifteenth order of the pump speed all lie near 450 Hz.
Neither side alone shows what that does.

Volumes keep their masses, so the balance of the liquid is exact. Topology after Schmoll (2015), 3.1.4; all numbers are
judgement of a passenger-car pump of 0.7 cm3 per revolution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from math import cos, pi, sin, sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit

import cosolve as cs
from examples import elements

#: Machine code is kept on disk only under the full name of this module: numba keeps the names of the parameters'
#: classes with it, and a system file loads the same file as `model`, where no other process would find them.
_jitted = njit(cache="." in __name__)

Liquid = elements.Liquid
smooth_step, smooth_positive = elements.smooth_step, elements.smooth_positive
pressure_of, density_of = elements.liquid_pressure, elements.liquid_density
orifice, line_acceleration = elements.orifice_flow, elements.line_acceleration
valve_rate, limiting_flow = elements.valve_rate, elements.limiting_flow

SEGMENTS = 6

#: Names of the states: angles and speeds of gear and eccentric, positions and speeds of the pistons.
MOTION = ("phi_g", "w_g", "phi_e", "w_e", "x1", "x2", "x3", "v1", "v2", "v3")
#: Masses of gallery, cylinders, port, line and rail; flows in the line; openings of the valves; what has passed so far.
LIQUID = (
    *("gallery", "cylinder1", "cylinder2", "cylinder3", "port", "rail"),
    *(f"line{k}" for k in range(1, SEGMENTS)),
    *(f"flow{k}" for k in range(1, SEGMENTS + 1)),
    *("suction1", "suction2", "suction3", "outlet1", "outlet2", "outlet3"),
    *("fed", "injected", "limited", "leaked"),
)


class Drive(NamedTuple):
    """SI units: speed and its unevenness, inertias, springs and dampers of gears and shaft; eccentric and pistons."""

    speed: float = 60 * pi
    unevenness: float = 0.01
    gear_inertia: float = 8e-4
    shaft_inertia: float = 2e-4
    gear_stiffness: float = 8000.0
    gear_damping: float = 0.113
    shaft_stiffness: float = 2.5e4
    shaft_damping: float = 0.05
    drag: float = 0.01
    eccentricity: float = 3.5e-3
    piston_mass: float = 0.05
    contact_stiffness: float = 5e7
    contact_damping: float = 1000.0
    preload: float = 120.0
    return_stiffness: float = 1.2e4


class Hydraulics(NamedTuple):
    """SI units; areas of orifices are geometric, `discharge` multiplies them all."""

    speed: float = 60 * pi
    bore: float = 6.5e-3
    eccentricity: float = 3.5e-3
    dead_volume: float = 80e-9
    feed_pressure: float = 0.5e6
    throttle: float = 0.34 * 1.2e-6
    gallery: float = 3e-6
    suction_area: float = 6e-6
    suction_opening: float = 0.05e6
    outlet_area: float = 3e-6
    outlet_opening: float = 0.5e6
    port: float = 3e-6
    line_length: float = 0.6
    line_bore: float = 2.4e-3
    rail: float = 20e-6
    rail_pressure: float = 180e6
    limiting: float = 1.6e-9  # kg/(s Pa) above the rail pressure
    nozzle: float = 0.25e-6
    injection_time: float = 0.6e-3
    back_pressure: float = 8e6
    leakage: float = 1e-14  # kg/(s Pa)
    discharge: float = 0.7
    valve_lag: float = 1e-4


@dataclass(frozen=True)
class Pump:
    """Both sides and the liquid between them."""

    drive: Drive = field(default_factory=Drive)
    hydraulics: Hydraulics = field(default_factory=Hydraulics)
    liquid: Liquid = field(default_factory=lambda: Liquid(826.0, 1.45e9, 9.5, 5e3, 5e4, 4e-3))

    def __post_init__(self) -> None:
        for name in ("feed_pressure", "rail_pressure", "back_pressure"):
            given = getattr(self.hydraulics, name)
            if not given > self.liquid.vapour_pressure:
                raise cs.errors.SetupError(
                    f"common-rail pump: {name} = {given:g} Pa is not above the vapour pressure of "
                    f"{self.liquid.vapour_pressure:g} Pa, where a liquid cavitates; pressures are absolute"
                )

    @property
    def piston_area(self) -> float:
        return pi / 4 * self.hydraulics.bore**2

    @property
    def revolution(self) -> float:
        """Seconds per revolution."""
        return 2 * pi / self.drive.speed

    def strokes(self, angle: float) -> tuple[np.ndarray, np.ndarray]:
        """Where the eccentric wants the pistons, and the derivative by its angle."""
        turned = angle - 2 * pi / 3 * np.arange(3)
        return self.drive.eccentricity * (1 - np.cos(turned)), self.drive.eccentricity * np.sin(turned)

    def motion0(self) -> np.ndarray:
        """At the angles and the speed of the drive, pistons on the eccentric."""
        speed = self.drive.speed * (1 + self.drive.unevenness)
        x, slope = self.strokes(0.0)
        return np.array([0.0, speed, 0.0, speed, *x, *(slope * speed)])

    def liquid0(self) -> np.ndarray:
        """Cylinders three quarters full, the gallery at 0.3 MPa, the rest at rail pressure, and nothing flows."""
        h, low, high = self.hydraulics, density_of(0.3e6, self.liquid), density_of(180e6, self.liquid)
        stroke = 2 * self.drive.eccentricity
        volumes = h.dead_volume + self.piston_area * (stroke - self.strokes(0.0)[0])
        cylinders = 0.75 * density_of(h.feed_pressure, self.liquid) * volumes
        piece = pi / 4 * h.line_bore**2 * h.line_length / SEGMENTS
        inner = [high * piece] * (SEGMENTS - 1)
        return np.array([low * h.gallery, *cylinders, high * h.port, high * h.rail, *inner, *np.zeros(SEGMENTS + 10)])


# -- the multibody side ----------------------------------------------------------------------------------------------


@_jitted
def _motion_rates(t, x, forces, d):
    found = np.empty(10)
    engine = d.speed * t + d.unevenness / 3 * sin(3 * d.speed * t)
    engine_speed = d.speed * (1 + d.unevenness * cos(3 * d.speed * t))
    gear = d.gear_stiffness * (engine - x[0]) + d.gear_damping * (engine_speed - x[1])
    shaft = d.shaft_stiffness * (x[0] - x[2]) + d.shaft_damping * (x[1] - x[3])
    torque = 0.0
    for i in range(3):
        turned = x[2] - 2 * pi / 3 * i
        slope = d.eccentricity * sin(turned)
        depth = d.eccentricity * (1 - cos(turned)) - x[4 + i]
        pressing = d.contact_damping * (slope * x[3] - x[7 + i]) * smooth_step(depth / 1e-5)
        contact = smooth_positive(d.contact_stiffness * depth + pressing, 1.0)
        torque += contact * slope
        found[4 + i] = x[7 + i]
        found[7 + i] = (contact - d.preload - d.return_stiffness * x[4 + i] - forces[i]) / d.piston_mass
    found[0], found[2] = x[1], x[3]
    found[1] = (gear - shaft) / d.gear_inertia
    found[3] = (shaft - d.drag * x[3] - torque) / d.shaft_inertia
    return found


@cache
def _motion_laws(drive: Drive) -> tuple[Callable, Callable]:
    """Rates and outputs, compiled once."""

    @njit
    def rhs(t, x, u):
        return _motion_rates(t, x, u, drive)

    @njit
    def output(t, x, u):
        return np.concatenate((x[4:10], x[:4]))

    return rhs, output


def mechanics(
    pump: Pump | None = None, internal_step: float = 1e-7, x0: np.ndarray | None = None, warm: bool = False
) -> cs.Ode:
    """Drive, eccentric and pistons: forces of the liquid in, positions and speeds of the pistons out; and the shaft.

    `warm` begins with the state of `running`.

    >>> [port.name for port in mechanics().outputs]
    ['x', 'v', 'shaft']
    """
    pump, x0 = Pump() if pump is None else pump, running()[:10] if warm else x0
    rhs, output = _motion_laws(pump.drive)
    return cs.Ode(
        rhs,
        output,
        x0=pump.motion0() if x0 is None else x0,
        inputs=[cs.Port("force", 3)],
        outputs=[cs.Port("x", 3), cs.Port("v", 3), cs.Port("shaft", 4)],
        integrator="ode4",
        internal_step=internal_step,
    )


# -- the hydraulic side ----------------------------------------------------------------------------------------------


@_jitted
def _between(p1, rho1, p2, rho2, area, laminar):
    return orifice(p1 - p2, rho1 if p1 > p2 else rho2, area, laminar)


@_jitted
def _window(t, speed, duration):
    """Three injections per revolution, with ramps of 0.1 ms."""
    period = 2 * pi / (3 * speed)
    u = (t - 0.35 * period) % period
    return smooth_step(u / 1e-4) * smooth_step((duration - u) / 1e-4)


@_jitted
def _liquid_rates(t, x, strokes, h, liquid):
    found = np.zeros(len(x))
    area = pi / 4 * h.bore**2
    line_area = pi / 4 * h.line_bore**2
    gallery_rho = x[0] / h.gallery
    gallery = pressure_of(gallery_rho, liquid)
    feed_rho = density_of(h.feed_pressure, liquid)
    port_rho, rail_rho = x[4] / h.port, x[5] / h.rail
    port, rail = pressure_of(port_rho, liquid), pressure_of(rail_rho, liquid)

    fed = _between(h.feed_pressure, feed_rho, gallery, gallery_rho, h.discharge * h.throttle, 1e4)
    found[0] += fed
    leaked = 0.0
    for i in range(3):
        rho = x[1 + i] / (h.dead_volume + area * (2 * h.eccentricity - strokes[i]))
        p = pressure_of(rho, liquid)
        y_in, y_out = x[17 + i], x[20 + i]
        suction = _between(gallery, gallery_rho, p, rho, y_in * h.discharge * h.suction_area, 2e4)
        outlet = _between(p, rho, port, port_rho, y_out * h.discharge * h.outlet_area, 0.2e6)
        leak = h.leakage * (p - 0.1e6)
        found[17 + i] = valve_rate(y_in, gallery - p, h.suction_opening, h.valve_lag)
        found[20 + i] = valve_rate(y_out, p - port, h.outlet_opening, h.valve_lag)
        found[0] -= suction
        found[1 + i] = suction - outlet - leak
        found[4] += outlet
        leaked += leak

    piece = h.line_length / 6
    before, before_rho = port, port_rho
    found[4] -= x[11]
    for k in range(6):
        if k < 5:
            after_rho = x[6 + k] / (line_area * piece)
            after = pressure_of(after_rho, liquid)
            found[6 + k] = x[11 + k] - x[12 + k]
        else:
            after_rho, after = rail_rho, rail
        rho = 0.5 * (before_rho + after_rho)
        found[11 + k] = line_acceleration(x[11 + k], before, after, rho, piece, h.line_bore, liquid.viscosity)
        before, before_rho = after, after_rho

    window = _window(t, h.speed, h.injection_time)
    injected = window * h.discharge * h.nozzle * sqrt(2 * rail_rho * max(rail - h.back_pressure, 0.0))
    limited = limiting_flow(rail, h.rail_pressure, h.limiting, 0.1e6)
    found[5] = x[16] - injected - limited
    found[23], found[24], found[25], found[26] = fed, injected, limited, leaked
    return found


@_jitted
def _cylinder_pressures(x, strokes, h, liquid):
    area = pi / 4 * h.bore**2
    found = np.empty(3)
    for i in range(3):
        found[i] = pressure_of(x[1 + i] / (h.dead_volume + area * (2 * h.eccentricity - strokes[i])), liquid)
    return found


@cache
def _liquid_laws(h: Hydraulics, liquid: Liquid) -> tuple[Callable, Callable]:
    """Rates and outputs, compiled once."""
    area = pi / 4 * h.bore**2

    @njit
    def rhs(t, x, u):
        return _liquid_rates(t, x, u, h, liquid)

    @njit
    def output(t, x, u):
        found = np.empty(11)
        found[:3] = area * _cylinder_pressures(x, u, h, liquid)
        found[3], found[4] = pressure_of(x[4] / h.port, liquid), pressure_of(x[5] / h.rail, liquid)
        found[5:] = x[17:23]
        return found

    return rhs, output


def hydraulics(
    pump: Pump | None = None, internal_step: float = 1e-7, x0: np.ndarray | None = None, warm: bool = False
) -> cs.Ode:
    """Gallery to rail: positions and speeds of the pistons in, forces on them out.

    And the pressures of port and rail, and how far the valves are open. `warm` begins with the state of `running`.

    >>> [port.name for port in hydraulics().outputs]
    ['force', 'pressure', 'valves']
    """
    pump, x0 = Pump() if pump is None else pump, running()[10:] if warm else x0
    if not pump.hydraulics.valve_lag > internal_step:
        raise cs.errors.SetupError(
            f"common-rail pump: valves with a lag of {pump.hydraulics.valve_lag:g} s chatter in internal steps of "
            f"{internal_step:g} s; give a shorter internal_step or a longer valve_lag"
        )
    rhs, output = _liquid_laws(pump.hydraulics, pump.liquid)
    return cs.Ode(
        rhs,
        output,
        x0=pump.liquid0() if x0 is None else x0,
        inputs=[cs.Port("x", 3), cs.Port("v", 3)],
        outputs=[cs.Port("force", 3), cs.Port("pressure", 2), cs.Port("valves", 6)],
        integrator="ode4",
        internal_step=internal_step,
    )


# -- together --------------------------------------------------------------------------------------------------------


def split(pump: Pump | None = None, internal_step: float = 1e-7, x0: np.ndarray | None = None) -> cs.System:
    """Both sides and the nine signals between them; `x0` holds the motion first, then the liquid.

    >>> len(split().plan().z_labels)
    9
    """
    first, second = (None, None) if x0 is None else (x0[:10], x0[10:])
    system = cs.System(
        {"mbs": mechanics(pump, internal_step, first), "hydraulics": hydraulics(pump, internal_step, second)}
    )
    system.connect("mbs.x", "hydraulics.x")
    system.connect("mbs.v", "hydraulics.v")
    system.connect("hydraulics.force", "mbs.force")
    return system


COUPLED, STROKES, FORCES = 0, 1, 2


@_jitted
def _together(t, x, d, h, liquid, alone, table):
    """Both sides at once, or one of them alone: with ideal strokes at constant speed, or with forces from a table."""
    found = np.zeros(len(x))
    area = pi / 4 * h.bore**2
    strokes, forces = x[4:7].copy(), np.empty(3)
    if alone == STROKES:
        for i in range(3):
            strokes[i] = d.eccentricity * (1 - cos(d.speed * t - 2 * pi / 3 * i))
    if alone == FORCES:
        for i in range(3):
            place = ((x[2] / (2 * pi) - i / 3) % 1.0) * len(table)
            k = int(place) % len(table)
            share = place - int(place)
            forces[i] = area * ((1 - share) * table[k] + share * table[(k + 1) % len(table)])
    else:
        forces[:] = area * _cylinder_pressures(x[10:], strokes, h, liquid)
        found[10:] = _liquid_rates(t, x[10:], strokes, h, liquid)
    if alone != STROKES:
        found[:10] = _motion_rates(t, x[:10], forces, d)
    return found


@_jitted
def _march(x, t0, h, keep, count, d, hyd, liquid, alone, table):
    rows = np.empty((count + 1, len(x)))
    rows[0] = x
    for k in range(count):
        for i in range(keep):
            t = t0 + (k * keep + i) * h
            k1 = _together(t, x, d, hyd, liquid, alone, table)
            k2 = _together(t + 0.5 * h, x + 0.5 * h * k1, d, hyd, liquid, alone, table)
            k3 = _together(t + 0.5 * h, x + 0.5 * h * k2, d, hyd, liquid, alone, table)
            k4 = _together(t + h, x + h * k3, d, hyd, liquid, alone, table)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        rows[k + 1] = x
    return rows


@dataclass(frozen=True)
class Course:
    """The undivided machine over time: states at even intervals; motion first, then the liquid."""

    pump: Pump
    t: np.ndarray
    x: np.ndarray

    @property
    def pressures(self) -> dict[str, np.ndarray]:
        """Of the cylinders (a column each), the port and the rail, in Pa."""
        p, h = self.pump, self.pump.hydraulics
        by_density = np.vectorize(lambda rho: pressure_of(rho, p.liquid))
        volumes = h.dead_volume + p.piston_area * (2 * h.eccentricity - self.x[:, 4:7])
        return {
            "cylinders": by_density(self.x[:, 11:14] / volumes),
            "port": by_density(self.x[:, 14] / h.port),
            "rail": by_density(self.x[:, 15] / h.rail),
        }

    def pressures_at(self, row: int) -> np.ndarray:
        """Of the cylinders, at one moment."""
        return _cylinder_pressures(self.x[row, 10:], self.x[row, 4:7], self.pump.hydraulics, self.pump.liquid)

    def signals(self) -> dict[str, np.ndarray]:
        """What both sides exchange: positions, speeds, forces."""
        return {
            "mbs.x": self.x[:, 4:7],
            "mbs.v": self.x[:, 7:10],
            "hydraulics.force": self.pump.piston_area * self.pressures["cylinders"],
        }


def undivided(
    pump: Pump | None = None,
    t_end: float = 0.4,
    *,
    x0: np.ndarray | None = None,
    step: float = 1e-7,
    interval: float = 1e-5,
    alone: int = COUPLED,
    table: np.ndarray | None = None,
) -> Course:
    """Both sides in one system of equations, by the classical Runge-Kutta method: no part of the coupling engine.

    `alone=STROKES` leaves the mechanics out: ideal strokes at constant speed. `alone=FORCES` leaves the hydraulics out:
    the pressure of a cylinder comes from a `table` over one turn of the eccentric.
    """
    pump = Pump() if pump is None else pump
    keep, count = max(round(interval / step), 1), round(t_end / interval)
    x = np.concatenate([pump.motion0(), pump.liquid0()]) if x0 is None else x0
    table = np.zeros(1) if table is None else table
    rows = _march(x, 0.0, interval / keep, keep, count, pump.drive, pump.hydraulics, pump.liquid, alone, table)
    t = interval * np.arange(count + 1)
    if alone == STROKES:
        rows[:, :10] = _ideal_motion(pump, t)
    return Course(pump, t, rows)


def _ideal_motion(pump: Pump, t: np.ndarray) -> np.ndarray:
    """Angles, speeds and strokes at constant speed, in the order of `MOTION`."""
    speed = np.full(len(t), pump.drive.speed)
    angle = speed * t
    turned = angle[:, None] - 2 * pi / 3 * np.arange(3)
    e = pump.drive.eccentricity
    strokes, speeds = e * (1 - np.cos(turned)), e * np.sin(turned) * pump.drive.speed
    return np.column_stack([angle, speed, angle, speed, strokes, speeds])


def running() -> np.ndarray:
    """The state after eighteen revolutions of the undivided machine, when every revolution is like the last.

    Kept in `running.csv`, because it takes half a minute to get there; angles are counted from that moment.
    """
    return np.loadtxt(Path(__file__).with_name("running.csv"), delimiter=",", comments="#", usecols=1)
