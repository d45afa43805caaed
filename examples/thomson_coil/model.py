"""A Thomson coil: a capacitor discharges into a flat coil, and the currents that it induces throw a plate off.

Two solvers share it. The electromagnetic side knows circuit and conductors: the coil's ten turns and a plate that is
cut into rings, all of them current loops with one axis, whose mutual inductances depend on how far the plate has gone.
The mechanical side knows the mass that moves, a latch and end stops. Distance and speed go one way, a force comes back.

    [Lc + Ll  M(z)'] d [I0]   [U - (Rc + Rl) I0 - z' M'(z)' Ip]
    [M(z)     Lp   ] dt [Ip] = [   - Rp Ip - z' M'(z) I0       ],   C U' = -I0,   F = I0 M'(z)' Ip

A diode takes the capacitor out of the circuit when its voltage has fallen to zero: an event, located inside the step.
Conductors warm up without losing heat, and their resistance grows with it.

The device is of the class of Peng et al. (2016), 2 mF at 360 V for 3.1 mm in 2 ms; the geometry is our own choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import pi, sin
from typing import Any

import numpy as np
from numba import njit
from scipy.linalg import cho_factor, cho_solve

import cosolve as cs
from examples import elements

# Machine code on disk knows its module by name: loaded by a system file this one is plain `model`, and keeps none.
_compiled = njit(cache=True)
# compiled functions call them by these names
hunt_crossley, capacitor_rate = elements.hunt_crossley, elements.capacitor_rate
tabulated_inductance, transformer_rates = elements.tabulated_inductance, elements.transformer_rates
warm_resistance = elements.warm_resistance


@dataclass(frozen=True)
class Metal:
    """Conductivity in S/m, density in kg/m3, heat capacity in J/(kg K); resistance grows by `warming` per K."""

    conductivity: float
    density: float
    heat: float
    warming: float = 0.0039


@dataclass(frozen=True)
class ThomsonCoil:
    """Parameters in SI units."""

    copper: Metal = Metal(5.8e7, 8960.0, 385.0)
    aluminium: Metal = Metal(3.5e7, 2700.0, 900.0)
    #: mean radii of the turns, and the section of their conductor: radial width and height
    turns: tuple[float, ...] = tuple(np.linspace(0.010, 0.037, 10).tolist())
    wire: tuple[float, float] = (2.4e-3, 4e-3)
    #: the plate: inner and outer radius, thickness, and into how many rings it is cut, radially and axially
    plate: tuple[float, float, float] = (0.005, 0.045, 3e-3)
    rings: tuple[int, int] = (24, 2)
    gap: float = 1e-3
    capacitance: float = 2e-3
    voltage: float = 300.0
    lead: tuple[float, float] = (20e-3, 2e-6)  # resistance and inductance
    mass: float = 0.1515
    #: amplitude of the bistable latch in N and its period; stops at 0 and `travel`, as Hunt-Crossley contacts
    latch: float = 250.0
    period: float = 4e-3
    travel: float = 4.2e-3
    stop: tuple[float, float, float] = (5e8, 0.6, 1.5)
    #: the inductances are tabulated from here to there
    table: tuple[float, float, float] = field(default=(-1e-3, 15e-3, 10e-6))

    def __post_init__(self) -> None:
        inner, outer, thickness = self.plate
        lengths = {"gap": self.gap, "wire": min(self.wire), "turns": min(self.turns), "plate": min(inner, thickness)}
        amounts = {"capacitance": self.capacitance, "voltage": self.voltage, "mass": self.mass, "lead": min(self.lead)}
        for name, value in {**lengths, **amounts, "period": self.period, "travel": self.travel}.items():
            if not 0 < value < np.inf:
                raise cs.errors.SetupError(
                    f"ThomsonCoil: {name} = {getattr(self, name)!r} must be above zero (SI units)"
                )
        if not outer > inner:
            raise cs.errors.SetupError(
                f"ThomsonCoil: plate = {self.plate!r} must be inner radius, outer radius, thickness"
            )
        if not np.all(np.diff(self.turns) > self.wire[0]):
            raise cs.errors.SetupError(
                f"ThomsonCoil: turns overlap; their radii must grow by more than {self.wire[0]:g} m each"
            )
        first, last, spacing = self.table
        if not (first < 0 < last and 0 < spacing < last and first > -self.gap - self.wire[1] / 2):
            raise cs.errors.SetupError(
                f"ThomsonCoil: table = {self.table!r} must begin below 0 and above the coil's middle, end above 0, and "
                "have a spacing"
            )

    @classmethod
    def of(cls, p: ThomsonCoil | Mapping[str, Any] | None) -> ThomsonCoil:
        """As it is, from the parameters that differ (in a system file: `p = {voltage = 250.0}`), or as it stands here.

        >>> ThomsonCoil.of({"voltage": 250.0}).voltage
        250.0
        """
        if isinstance(p, ThomsonCoil):
            return p
        given = {name: tuple(v) if isinstance(v, list) else v for name, v in (p or {}).items()}
        names = [one.name for one in fields(cls)]
        for name in given:
            if name not in names:
                raise cs.errors.SetupError(f"ThomsonCoil has no parameter '{name}'; there are {', '.join(names)}")
        return cls(**given)

    # -- inductances and resistances ---------------------------------------------------------------------

    @cached_property
    def ring_places(self) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Radii of the rings, their heights above the lower face of the plate, and the section of one."""
        (inner, outer, thickness), (radial, axial) = self.plate, self.rings
        width, height = (outer - inner) / radial, thickness / axial
        radii = inner + width * (np.arange(radial) + 0.5)
        heights = height * (np.arange(axial) + 0.5)
        return np.tile(radii, axial), np.repeat(heights, radial), width, height

    @cached_property
    def coil_inductance(self) -> float:
        """Of all turns in series, without the lead."""
        return float(elements.inductance_matrix(np.array(self.turns), np.zeros(len(self.turns)), *self.wire).sum())

    @cached_property
    def coil_resistance(self) -> float:
        return float(elements.loop_resistance(self.turns, self.wire[0] * self.wire[1], self.copper.conductivity).sum())

    @cached_property
    def plate_inductance(self) -> np.ndarray:
        """Of the rings among each other."""
        radii, heights, width, height = self.ring_places
        return elements.inductance_matrix(radii, heights, width, height)

    @cached_property
    def plate_resistance(self) -> np.ndarray:
        radii, _, width, height = self.ring_places
        return elements.loop_resistance(radii, width * height, self.aluminium.conductivity)

    def mutual(self, z: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inductances between the coil and each ring when the plate has gone `z`, and their derivatives by it."""
        radii, heights, _, _ = self.ring_places
        away = np.atleast_1d(z)[:, np.newaxis, np.newaxis] + self.gap + self.wire[1] / 2 + heights[:, np.newaxis]
        a, b = radii[:, np.newaxis], np.array(self.turns)
        return elements.mutual_inductance(a, b, away).sum(axis=-1), elements.mutual_inductance_slope(a, b, away).sum(
            axis=-1
        )

    @cached_property
    def mutual_table(self) -> tuple[np.ndarray, np.ndarray]:
        first, last, spacing = self.table
        return self.mutual(first + spacing * np.arange(round((last - first) / spacing) + 1))

    def coupling_factor(self, z: float) -> float:
        """How much of the coil's field the plate would hold back if it had no resistance: 1 is all."""
        M = self.mutual(z)[0][0]
        return float(np.sqrt(M @ np.linalg.solve(self.plate_inductance, M) / self.coil_inductance))


# -- the electromagnetic side ---------------------------------------------------------------------------------


class Rings:
    """States: currents `I0`, `Ip`, voltage `U`, temperatures `Tc`, `Tp`, heat `Q` of the lead, the capacitor `on`."""

    def __init__(self, p: ThomsonCoil) -> None:
        self.p, n = p, len(p.plate_resistance)
        self.n = n
        self.I0, self.Ip, self.U, self.Tc, self.Q, self.on = 0, slice(1, n + 1), n + 1, n + 2, 2 * n + 3, 2 * n + 4
        self.Tp = slice(n + 3, 2 * n + 3)
        values, slopes = p.mutual_table
        self.table = np.ascontiguousarray(values), np.ascontiguousarray(slopes)
        inverse = cho_solve(cho_factor(p.plate_inductance), np.eye(n))
        _, _, width, height = p.ring_places
        radii = p.ring_places[0]
        plate_heat = p.aluminium.density * p.aluminium.heat * 2 * pi * radii * width * height
        coil_heat = p.copper.density * p.copper.heat * 2 * pi * sum(p.turns) * p.wire[0] * p.wire[1]
        self.constants = (
            *(inverse, p.coil_inductance + p.lead[1], p.coil_resistance, p.lead[0], p.plate_resistance),
            *(p.capacitance, coil_heat, plate_heat, p.copper.warming, p.aluminium.warming),
        )

    @property
    def x0(self) -> np.ndarray:
        x = np.zeros(2 * self.n + 5)
        x[self.U], x[self.on] = self.p.voltage, 1.0
        return x

    def mutual(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Tabulated inductances at `z`; a sentence where the plate has left the table."""
        first, last, spacing = self.p.table
        if not first <= z < last:
            raise cs.errors.SubsystemError(
                f"the plate is at z = {1e3 * z:.4g} mm, but inductances are tabulated from {1e3 * first:g} to "
                f"{1e3 * last:g} mm; widen ThomsonCoil.table, or end the run before"
            )
        return tabulated_inductance(z - first, spacing, *self.table)

    def slope(self, t: float, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        M, slope = self.mutual(u[0])
        return _rates(x, u[1], M, slope, *self.constants)

    def force(self, t: float, x: np.ndarray, u: np.ndarray) -> float:
        return float(x[self.I0] * (self.mutual(u[0])[1] @ x[self.Ip]))

    def energies(self, x: np.ndarray, z: float) -> dict[str, float]:
        """In the capacitor, in the field, and turned into heat so far, in J."""
        I0, Ip, M = x[self.I0], x[self.Ip], self.mutual(z)[0]
        _, L, *_ = self.constants
        coil_heat, plate_heat = self.constants[6:8]
        return {
            "capacitor": 0.5 * self.p.capacitance * x[self.U] ** 2,
            "field": 0.5 * L * I0**2 + I0 * (M @ Ip) + 0.5 * Ip @ self.p.plate_inductance @ Ip,
            "heat": coil_heat * x[self.Tc] + float(plate_heat @ x[self.Tp]) + x[self.Q],
        }


@_compiled
def _rates(x, speed, M, slope, inverse, L, Rc, Rl, Rp, C, coil_heat, plate_heat, copper, aluminium):
    n = len(Rp)
    I0, Ip, U, Tc, Tp, on = x[0], x[1 : n + 1], x[n + 1], x[n + 2], x[n + 3 : 2 * n + 3], x[2 * n + 4]
    Rc, Rp = warm_resistance(Rc, copper, Tc), warm_resistance(Rp, aluminium, Tp)
    coil = on * U - (Rc + Rl) * I0 - speed * np.dot(slope, Ip)
    found = np.zeros_like(x)
    found[0], found[1 : n + 1] = transformer_rates(coil, -Rp * Ip - speed * slope * I0, M, L, inverse)
    found[n + 1] = capacitor_rate(I0, C, on)
    found[n + 2] = Rc * I0 * I0 / coil_heat
    found[n + 3 : 2 * n + 3] = Rp * Ip * Ip / plate_heat
    found[2 * n + 3] = Rl * I0 * I0
    return found


#: what passes between the two sides, with units for plots, reports and other connections
MOTION, FORCE = [cs.Port("z", unit="m"), cs.Port("v", unit="m/s")], [cs.Port("F", unit="N")]


def electromagnetics(
    p: ThomsonCoil | Mapping[str, Any] | None = None, internal_step: float = 1e-7, integrator: str = "ode4"
) -> cs.HybridOde:
    """The circuit and the conductors: distance and speed of the plate in, force on it out.

    >>> coil = electromagnetics()
    >>> [port.name for port in coil.inputs], [port.name for port in coil.outputs]
    (['z', 'v'], ['F'])
    """
    rings = Rings(ThomsonCoil.of(p))

    def switch(t: float, x: np.ndarray, u: np.ndarray, changed: np.ndarray) -> np.ndarray:
        if changed[0] < 0:
            x[rings.U] = x[rings.on] = 0.0
        return x

    return cs.HybridOde(
        rings.slope,
        rings.force,
        x0=rings.x0,
        inputs=MOTION,
        outputs=FORCE,
        indicators=lambda t, x, u: x[rings.U] if x[rings.on] else 1.0,
        jump=switch,
        integrator=integrator,
        internal_step=internal_step if integrator.startswith("ode") else None,
    )


# -- the mechanical side ------------------------------------------------------------------------------------------


def mechanics(
    p: ThomsonCoil | Mapping[str, Any] | None = None,
    internal_step: float = 1e-7,
    latched: bool = False,
    opens_by: float | None = None,
) -> cs.Ode:
    """The mass that moves, in free flight or with latch and stops: force in, distance and speed out.

    With `opens_by` the run ends with a sentence at the first macro point from that time on where the plate is not
    beyond the ridge of the latch: it has not been thrown over it, or it has come back.

    >>> [port.name for port in mechanics().outputs]
    ['z', 'v']
    """
    p = ThomsonCoil.of(p)
    constants = holding(p, latched)

    @njit
    def rhs(t, x, u):
        return np.array([x[1], acceleration(x[0], x[1], u[0], *constants)])

    @njit
    def output(t, x, u):
        return x

    ports = {"x0": [0.0, 0.0], "inputs": FORCE, "outputs": MOTION}
    how: dict[str, Any] = {**ports, "integrator": "ode4", "internal_step": internal_step}
    if opens_by is None:
        return cs.Ode(rhs, output, **how)
    # plain functions: to compile them would take longer than such a run
    return LatchedPlate(rhs.py_func, output.py_func, ridge=p.period / 2, opens_by=opens_by, **how)


class LatchedPlate(cs.Ode):
    """A plate that has to be beyond `ridge`, in m, from the time `opens_by` on."""

    native = None  # subsystem steps are looked at one by one

    def __init__(self, *arguments: Any, ridge: float, opens_by: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.ridge, self.opens_by, self.highest = ridge, opens_by, 0.0

    def start(self, t0: float) -> Any:
        self.highest = 0.0
        return super().start(t0)

    def advance(self, t0: float, t1: float, u: Any) -> Any:
        found = super().advance(t0, t1, u)
        z = float(self.x[0])
        self.highest = max(self.highest, z)
        if t1 >= self.opens_by and z < self.ridge:
            furthest = f"{1e3 * self.highest:.4g} mm"
            if self.highest < self.ridge:
                what = f"it came no further than {furthest}; a higher voltage would throw it over"
            else:
                what = f"it was at {furthest} and came back; a lower voltage or a softer stop would keep it"
            raise cs.errors.SubsystemError(
                f"at {1e3 * t1:.4g} ms the plate is at z = {1e3 * z:.4g} mm, and the latch holds it open beyond "
                f"{1e3 * self.ridge:g} mm only: {what}"
            )
        return found

    def save(self) -> Any:
        return super().save(), self.highest

    def restore(self, state: Any) -> None:
        before, self.highest = state
        super().restore(before)


def holding(p: ThomsonCoil, latched: bool) -> tuple[float, ...]:
    """Constants of the mechanical side; in free flight there is neither latch nor stop."""
    stiffness, damping, exponent = p.stop
    return p.mass, latched * p.latch, p.period, p.travel, latched * stiffness, damping, exponent


@_compiled
def acceleration(z, v, F, mass, latch, period, travel, stiffness, damping, exponent):
    force = F - latch * sin(2 * pi * z / period)
    force += hunt_crossley(-z, -v, stiffness, damping, exponent)
    return (force - hunt_crossley(z - travel, v, stiffness, damping, exponent)) / mass


# -- together -----------------------------------------------------------------------------------------------------


def split(
    p: ThomsonCoil | Mapping[str, Any] | None = None, internal_step: float = 1e-7, latched: bool = False
) -> cs.System:
    """Both sides and the three signals between them.

    >>> split().plan().z_labels
    ('plate.z', 'plate.v', 'em.F')
    """
    p = ThomsonCoil.of(p)
    return connected(electromagnetics(p, internal_step), mechanics(p, internal_step, latched))


def connected(em: cs.Subsystem, plate: cs.Subsystem) -> cs.System:
    """Any electromagnetic side with any mechanical one."""
    system = cs.System({"em": em, "plate": plate})
    system.connect("plate.z", "em.z")
    system.connect("plate.v", "em.v")
    system.connect("em.F", "plate.F")
    return system


@dataclass(frozen=True)
class Flight:
    """The undivided machine: electrical states, then `z` and `v`, at short intervals, and when the diode took over."""

    parameters: ThomsonCoil
    t: np.ndarray
    x: np.ndarray
    slopes: np.ndarray
    diode: float

    def states(self, t: np.ndarray) -> np.ndarray:
        """Rows are times: cubics through the points and slopes around each."""
        t = np.atleast_1d(t)
        k = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 2)
        h = (self.t[k + 1] - self.t[k])[:, np.newaxis]
        s = (t - self.t[k])[:, np.newaxis] / h
        r = 1.0 - s
        ends = r * r * (1 + 2 * s) * self.x[k] + s * s * (1 + 2 * r) * self.x[k + 1]
        return ends + h * s * r * (r * self.slopes[k] - s * self.slopes[k + 1])

    def signals(self, t: np.ndarray) -> dict[str, np.ndarray]:
        """`z`, `v`, `F` and the coil current `I`."""
        of, x = Rings(self.parameters), self.states(t)
        force = np.array([of.force(0.0, row[:-2], row[-2:]) for row in x])
        return {"z": x[:, -2], "v": x[:, -1], "F": force, "I": x[:, 0]}


def undivided(
    p: ThomsonCoil | Mapping[str, Any] | None = None,
    t_end: float = 1e-3,
    latched: bool = False,
    step: float = 1e-7,
    keep: int = 5,
) -> Flight:
    """Both sides in one system of equations, by the classical Runge-Kutta method: no part of the coupling engine.

    Every `keep`-th point is kept. The diode takes over where a shortened step ends with an empty capacitor.
    """
    p = ThomsonCoil.of(p)
    of = Rings(p)
    machine = (*of.table, p.table[0], p.table[2], of.constants, holding(p, latched))
    x = np.concatenate([of.x0, [0.0, 0.0]])
    count = round(t_end / step / keep)
    t, rows, slopes = _march(x, 0.0, t_end / count / keep, keep, count, of.U, machine)
    n = len(t) - 1
    if n == count:
        return Flight(p, t, rows, slopes, np.inf)
    x, diode = rows[-1].copy(), t[-1]
    x[of.U] = x[of.on] = 0.0
    rest = round((t_end - diode) / step / keep)
    after = _march(x, diode, (t_end - diode) / rest / keep, keep, rest, of.U, machine)
    # the diode's moment stands there once: the state after it, which differs in the switch only
    return Flight(p, *(np.concatenate([a[:-1], b]) for a, b in zip((t, rows, slopes), after, strict=True)), diode)


@_compiled
def _together(x, machine):
    values, slopes, first, spacing, constants, held = machine
    z, v = x[-2], x[-1]
    M, slope = tabulated_inductance(z - first, spacing, values, slopes)
    found = np.empty_like(x)
    found[:-2] = _rates(x[:-2], v, M, slope, *constants)
    n = len(M)
    found[-2] = v
    found[-1] = acceleration(z, v, x[0] * np.dot(slope, x[1 : n + 1]), *held)
    return found


@_compiled
def _runge_kutta(x, h, machine):
    k1 = _together(x, machine)
    k2 = _together(x + 0.5 * h * k1, machine)
    k3 = _together(x + 0.5 * h * k2, machine)
    k4 = _together(x + h * k3, machine)
    return x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


@_compiled
def _march(x, t, h, keep, count, U, machine):
    """Steps of length `h`, up to `count * keep` of them or until the capacitor is empty."""
    times, rows, slopes = np.empty(count + 2), np.empty((count + 2, len(x))), np.empty((count + 2, len(x)))
    times[0], rows[0], slopes[0] = t, x, _together(x, machine)
    for k in range(count):
        for i in range(keep):
            new = _runge_kutta(x, h, machine)
            if x[U] > 0.0 and new[U] <= 0.0:
                low, high = 0.0, h
                for _ in range(60):
                    middle = 0.5 * (low + high)
                    if _runge_kutta(x, middle, machine)[U] > 0.0:
                        low = middle
                    else:
                        high = middle
                x = _runge_kutta(x, high, machine)
                times[k + 1], rows[k + 1], slopes[k + 1] = t + (k * keep + i) * h + high, x, _together(x, machine)
                return times[: k + 2], rows[: k + 2], slopes[: k + 2]
            x = new
        times[k + 1], rows[k + 1], slopes[k + 1] = t + (k + 1) * keep * h, x, _together(x, machine)
    return times[: count + 1], rows[: count + 1], slopes[: count + 1]
