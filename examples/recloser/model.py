"""A recloser: magnetic actuators close and open the contacts of a medium-voltage switch, one pole or three on a frame.

Electromagnetic side of a pole: a magnet holds the armature in either end position, a coil moves it. The magnetic
circuit has the closing gap (branch 1, whose flux is the state), the opening gap (branch 2), leakage, saturating iron
and an eddy-current ring; a capacitor discharges into the coil to close, a constant voltage opens.

Mechanical side: moving contact, armature, stator, fixed contact and frame point of each pole, along one axis, positive
in the direction of closing. A preloaded spring presses the contact forward from the armature up to a stop; when the
contacts have met, the armature travels on and compresses it. An opening spring acts between stator and armature. Four
contacts per pole: electrical, spring stop, both end stops of the armature.

Travel and speed of each armature go one way, the magnetic force comes back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from math import pi
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.optimize import brentq, fsolve

import cosolve as cs
from examples import elements

#: Machine code is kept on disk only under the full name of this module: numba keeps the names of the parameters'
#: classes with it, and a system file loads the same file as `model`, where no other process would find them.
_jitted = njit(cache="." in __name__)

contact_force = elements.hunt_crossley

MU_0 = 4e-7 * pi

#: Masses of a pole, in the order of the states: positions of all poles first, then speeds.
PARTS = ("contact", "armature", "stator", "fixed", "frame")
REST, CLOSE, OPEN = 0, 1, 2


class Magnet(NamedTuple):
    """SI units; reluctances in 1/H."""

    magnet_drop: float = 7200.0  # 9e5 A/m over 8 mm
    magnet_reluctance: float = 8e-3 / (1.05 * 4e-7 * pi * 60e-4)
    closing_area: float = 45e-4
    opening_area: float = 8e-4
    opening_reluctance: float = 3e6
    leakage_reluctance: float = 4e6
    stroke: float = 14e-3
    least_gap: float = 0.1e-3
    overrun: float = 0.05e-3  # the travel counts up to here beyond either end
    iron_area: float = 45e-4
    iron_length: float = 0.25
    turns: float = 350.0
    resistance: float = 4.0
    eddy_resistance: float = 5e-5
    capacitance: float = 33e-3
    closing_voltage: float = 85.0
    opening_voltage: float = -120.0


class Mechanism(NamedTuple):
    """SI units: masses, springs, dampers; contacts are `k d (1 + c d')`."""

    contact: float = 1.0
    armature: float = 2.5
    stator: float = 6.0
    fixed: float = 3.0
    frame: float = 20.0
    gap: float = 11.5e-3
    stroke: float = 14e-3
    contact_preload: float = 1500.0
    contact_spring: float = 2e5
    opening_preload: float = 300.0
    opening_spring: float = 2.5e4
    electrical_stiffness: float = 2e8
    spring_stop_stiffness: float = 2e8
    stop_stiffness: float = 3e8
    contact_damping: float = 2.0
    drag: float = 60.0
    stator_stiffness: float = 2e7
    stator_damping: float = 4e3
    fixed_stiffness: float = 3e7
    fixed_damping: float = 3e3
    ground_stiffness: float = 4e6
    ground_damping: float = 4e3
    neighbour_stiffness: float = 1.5e7
    neighbour_damping: float = 2e3


@dataclass(frozen=True)
class Recloser:
    """One pole or three, what their coils do, and when each begins."""

    poles: int = 1
    action: int = CLOSE
    delays: tuple[float, ...] = (0.0, 20e-3 / 3, 40e-3 / 3)
    magnet: Magnet = field(default_factory=Magnet)
    mechanism: Mechanism = field(default_factory=Mechanism)

    @property
    def closed(self) -> bool:
        """Whether it begins closed."""
        return self.action == OPEN

    def rest(self) -> tuple[np.ndarray, np.ndarray]:
        """Flux of a pole and all positions where everything stands still without current."""
        m, p = self.mechanism, self.poles
        guess = np.zeros((p, 5))
        guess[:, 0], guess[:, 1] = (m.gap, m.stroke) if self.closed else (0.0, 0.0)

        def still(z: np.ndarray) -> np.ndarray:
            travel = z.reshape(p, 5)[:, 1] - z.reshape(p, 5)[:, 2]
            forces = np.array([_force(_rest_flux(r, self.magnet), r, self.magnet) for r in travel])
            x = np.concatenate([z, np.zeros(5 * p)])
            return 1e-3 * _motion_rates(x, forces, m, p)[5 * p :] * _masses(m, p)

        found, _, worked, said = fsolve(still, guess.ravel(), xtol=1e-14, full_output=True)
        travel = found.reshape(p, 5)[:, 1] - found.reshape(p, 5)[:, 2]
        if (worked != 1 and not np.abs(still(found)).max() < 1e-9) or np.abs(travel - guess[:, 1]).max() > 1e-3:
            place, at = ("closed", "its far end") if self.closed else ("open", "the open stop")
            raise cs.errors.SetupError(
                f"the recloser has no {place} position of rest: without current the armature does not stay at {at}; "
                f"look at the springs and the magnet ({' '.join(said.split())})"
            )
        return np.array([_rest_flux(r, self.magnet) for r in travel]), found


# -- the electromagnetic side of a pole ----------------------------------------------------------------------------


@_jitted
def _circuit(flux, r, m):
    """Drop over the parallel branches, reluctance of the opening branch, and the drop that is left over."""
    r = min(max(r, -m.overrun), m.stroke + m.overrun)
    first = (m.stroke - r + m.least_gap) / (MU_0 * m.closing_area)
    second = m.opening_reluctance + (r + m.least_gap) / (MU_0 * m.opening_area)
    parallel = 1.0 / m.magnet_reluctance + 1.0 / second + 1.0 / m.leakage_reluctance
    drop = (m.magnet_drop / m.magnet_reluctance - flux) / parallel
    density = flux / m.iron_area
    iron = m.iron_length * (200.0 * density + 3.0 * density**15)
    return drop, second, flux * first + iron - drop


@_jitted
def _force(flux, r, m):
    drop, second, _ = _circuit(flux, r, m)
    opening = drop / second
    return flux * flux / (2 * MU_0 * m.closing_area) - opening * opening / (2 * MU_0 * m.opening_area)


@_jitted
def _flux_rates(t, x, r, action, begin, m):
    """Of flux and capacitor voltage; the coil does nothing before its time."""
    found = np.zeros(2)
    left_over = _circuit(x[0], r, m)[2]
    if action == REST or t < begin:
        found[0] = -m.eddy_resistance * left_over
        return found
    U = x[1] if action == CLOSE else m.opening_voltage
    n, R = m.turns, m.resistance
    found[0] = (n * U / R - left_over) / (n * n / R + 1.0 / m.eddy_resistance)
    if action == CLOSE:
        found[1] = -(U - n * found[0]) / R / m.capacitance
    return found


def _rest_flux(r: float, m: Magnet) -> float:
    """The flux that stays without current."""
    return float(brentq(lambda flux: _circuit(flux, r, m)[2], 0.0, 10e-3, xtol=1e-18))


@cache
def _circuit_laws(m: Magnet, action: int, begin: float) -> tuple[Callable, Callable]:
    """Rates and outputs of a pole, compiled once for poles that do the same."""

    @njit
    def rhs(t, x, u):
        return _flux_rates(t, x, u[0], action, begin, m)

    @njit
    def output(t, x, u):
        rates = _flux_rates(t, x, u[0], action, begin, m)
        current = (
            -m.capacitance * rates[1] if action == CLOSE else (m.opening_voltage - m.turns * rates[0]) / m.resistance
        )
        return np.array([_force(x[0], u[0], m), x[0], current if t >= begin and action != REST else 0.0])

    return rhs, output


def actuator(recloser: Recloser | None = None, pole: int = 0, internal_step: float = 1e-6) -> cs.Ode:
    """The magnetic circuit and the coil of one pole: travel and speed of the armature in, force out; and flux, current.

    >>> [port for port in actuator().outputs]
    ['F', 'flux', 'current']
    """
    recloser = Recloser() if recloser is None else recloser
    m = recloser.magnet
    rhs, output = _circuit_laws(m, recloser.action, recloser.delays[pole])
    x0 = [recloser.rest()[0][pole], m.closing_voltage]
    return cs.Ode(
        rhs,
        output,
        x0=x0,
        inputs=["r", "w"],
        outputs=["F", "flux", "current"],
        integrator="ode4",
        internal_step=internal_step,
    )


# -- the mechanical side -------------------------------------------------------------------------------------------


def _masses(m: Mechanism, poles: int) -> np.ndarray:
    return np.tile([m.contact, m.armature, m.stator, m.fixed, m.frame], poles)


@_jitted
def _contact_of(x, i, n, m):
    """Force between the electrical contacts of pole `i`."""
    depth = x[5 * i] - x[5 * i + 3] - m.gap
    speed = x[5 * (n + i)] - x[5 * (n + i) + 3]
    return contact_force(depth, speed, m.electrical_stiffness, m.contact_damping, 1.0)


@_jitted
def _motion_rates(x, forces, m, n):
    found = np.empty(10 * n)
    found[: 5 * n] = x[5 * n :]
    for i in range(n):
        zc, za, zs, zf, zp = x[5 * i : 5 * i + 5]
        vc, va, vs, vf, vp = x[5 * (n + i) : 5 * (n + i) + 5]
        q, dq, r, dr = za - zc, va - vc, za - zs, va - vs
        electrical = _contact_of(x, i, n, m)
        spring = m.contact_preload + m.contact_spring * q
        spring -= contact_force(-q, -dq, m.spring_stop_stiffness, m.contact_damping, 1.0)
        stops = contact_force(-r, -dr, m.stop_stiffness, m.contact_damping, 1.0)
        stops -= contact_force(r - m.stroke, dr, m.stop_stiffness, m.contact_damping, 1.0)
        drive = forces[i] - m.opening_preload - m.opening_spring * r + stops  # armature against stator
        stator = m.stator_stiffness * (zs - zp) + m.stator_damping * (vs - vp)
        fixed = m.fixed_stiffness * (zf - zp) + m.fixed_damping * (vf - vp)
        frame = stator + fixed - m.ground_stiffness * zp - m.ground_damping * vp
        for k in (i - 1, i + 1):
            if 0 <= k < n:
                frame -= m.neighbour_stiffness * (zp - x[5 * k + 4]) + m.neighbour_damping * (vp - x[5 * (n + k) + 4])
        at = 5 * (n + i)
        found[at] = (spring - electrical - m.drag * vc) / m.contact
        found[at + 1] = (drive - spring - m.drag * va) / m.armature
        found[at + 2] = (-drive - stator) / m.stator
        found[at + 3] = (electrical - fixed) / m.fixed
        found[at + 4] = frame / m.frame
    return found


@cache
def _motion_laws(m: Mechanism, n: int) -> tuple[Callable, Callable]:
    """Rates and outputs of `n` poles, compiled once."""

    @njit
    def rhs(t, x, u):
        return _motion_rates(x, u, m, n)

    @njit
    def output(t, x, u):
        found = np.empty(4 * n)
        for i in range(n):
            found[i] = x[5 * i + 1] - x[5 * i + 2]
            found[n + i] = x[5 * (n + i) + 1] - x[5 * (n + i) + 2]
            found[2 * n + i] = _contact_of(x, i, n, m)
            found[3 * n + i] = x[5 * i + 3] + m.gap - x[5 * i]
        return found

    return rhs, output


def mechanics(recloser: Recloser | None = None, internal_step: float = 1e-6) -> cs.Ode:
    """All poles on the frame: magnetic forces in, travel and speed of the armatures out; and the contact forces.

    >>> [port.name for port in mechanics().outputs]
    ['r', 'w', 'contact', 'gap']
    """
    recloser = Recloser() if recloser is None else recloser
    m, n = recloser.mechanism, recloser.poles
    rhs, output = _motion_laws(m, n)
    return cs.Ode(
        rhs,
        output,
        x0=np.concatenate([recloser.rest()[1], np.zeros(5 * n)]),
        inputs=[cs.Port("F", n)],
        outputs=[cs.Port(name, n) for name in ("r", "w", "contact", "gap")],
        integrator="ode4",
        internal_step=internal_step,
    )


# -- together ------------------------------------------------------------------------------------------------------


def split(recloser: Recloser | None = None, internal_step: float = 1e-6, isolated: bool = False) -> cs.System:
    """The mechanical side and an electromagnetic one for each pole; `isolated`, each of those in a process of its own.

    >>> split().plan().n_z
    3
    """
    recloser = Recloser() if recloser is None else recloser
    build = [partial(actuator, recloser, i, internal_step) for i in range(recloser.poles)]
    sides = {f"em{i + 1}": cs.remote.Isolated(one, timeout=600.0) if isolated else one() for i, one in enumerate(build)}
    system = cs.System({"mbs": mechanics(recloser, internal_step), **sides})
    for i, name in enumerate(sides):
        system.connect(f"mbs.r[{i}]", f"{name}.r")
        system.connect(f"mbs.w[{i}]", f"{name}.w")
        system.connect(f"{name}.F", f"mbs.F[{i}]")
    return system


@_jitted
def _together(t, x, m, magnet, n, actions, delays):
    """Mechanics first, then flux and voltage of each pole."""
    found = np.empty(len(x))
    forces = np.empty(n)
    for i in range(n):
        flux, r = x[10 * n + 2 * i], x[5 * i + 1] - x[5 * i + 2]
        forces[i] = _force(flux, r, magnet)
        at = 10 * n + 2 * i
        found[at : at + 2] = _flux_rates(t, x[at : at + 2], r, actions[i], delays[i], magnet)
    found[: 10 * n] = _motion_rates(x[: 10 * n], forces, m, n)
    return found


@_jitted
def _march(x, h, keep, count, m, magnet, n, actions, delays):
    rows = np.empty((count + 1, len(x)))
    rows[0] = x
    for k in range(count):
        for i in range(keep):
            t = (k * keep + i) * h
            k1 = _together(t, x, m, magnet, n, actions, delays)
            k2 = _together(t + 0.5 * h, x + 0.5 * h * k1, m, magnet, n, actions, delays)
            k3 = _together(t + 0.5 * h, x + 0.5 * h * k2, m, magnet, n, actions, delays)
            k4 = _together(t + h, x + h * k3, m, magnet, n, actions, delays)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        rows[k + 1] = x
    return rows


@dataclass(frozen=True)
class Motion:
    """The undivided machine over time; rows of states, mechanics first."""

    recloser: Recloser
    t: np.ndarray
    x: np.ndarray

    def part(self, name: str, pole: int = 0) -> np.ndarray:
        return self.x[:, 5 * pole + PARTS.index(name)]

    def travel(self, pole: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Of the armature against the stator, and its speed."""
        n = self.recloser.poles
        speeds = self.x[:, 5 * (n + pole) + 1] - self.x[:, 5 * (n + pole) + 2]
        return self.part("armature", pole) - self.part("stator", pole), speeds

    def contact(self, pole: int = 0) -> np.ndarray:
        """Force between the electrical contacts."""
        r = self.recloser
        return np.array([_contact_of(row, pole, r.poles, r.mechanism) for row in self.x])

    def approach(self, pole: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """How far the contacts are apart, and the speed at which they come together."""
        n = self.recloser.poles
        gap = self.part("fixed", pole) + self.recloser.mechanism.gap - self.part("contact", pole)
        return gap, self.x[:, 5 * (n + pole)] - self.x[:, 5 * (n + pole) + 3]

    def flux(self, pole: int = 0) -> np.ndarray:
        return self.x[:, 10 * self.recloser.poles + 2 * pole]

    def current(self, pole: int = 0) -> np.ndarray:
        """In the coil."""
        r = self.recloser
        at, m = 10 * r.poles + 2 * pole, r.magnet
        rates = [
            _flux_rates(t, row[at : at + 2], z, r.action, r.delays[pole], m)
            for t, row, z in zip(self.t, self.x, self.travel(pole)[0], strict=True)
        ]
        voltage = self.x[:, at + 1] if r.action == CLOSE else m.opening_voltage
        return np.where(self.t < r.delays[pole], 0.0, (voltage - m.turns * np.array(rates)[:, 0]) / m.resistance)

    def signals(self) -> dict[str, np.ndarray]:
        """What the sides exchange, by the names of a coupled run of one pole."""
        travel, speed = self.travel()
        force = np.array([_force(f, r, self.recloser.magnet) for f, r in zip(self.flux(), travel, strict=True)])
        return {"mbs.r": travel, "mbs.w": speed, "em1.F": force}


def not_latched(t: np.ndarray, travel: np.ndarray, recloser: Recloser, slack: float = 0.2e-3) -> list[str]:
    """A sentence for every pole whose armature does not rest at the far end of its stroke in the end.

    `travel` has a column for each pole, as `mbs.r` of a coupled run does.

    >>> weak = Recloser(magnet=Magnet(closing_voltage=50.0))
    >>> not_latched(np.array([0.0, 0.06]), np.array([[0.0], [1e-5]]), weak)[0]
    'pole 1 has not closed at t = 0.06 s: its armature stands at 0.01 of 14 mm; give it more than 50 V or a later end'
    """
    m, found = recloser.magnet, []
    end = 0.0 if recloser.closed else m.stroke
    voltage, deed = (-m.opening_voltage, "opened") if recloser.closed else (m.closing_voltage, "closed")
    for i, place in enumerate(travel.reshape(len(t), -1)[-1]):
        if abs(place - end) > slack:
            found.append(
                f"pole {i + 1} has not {deed} at t = {t[-1]:g} s: its armature stands at {1e3 * place:.3g} of "
                f"{1e3 * m.stroke:g} mm; give it more than {voltage:g} V or a later end"
            )
    return found


def undivided(
    recloser: Recloser | None = None,
    t_end: float = 60e-3,
    *,
    step: float = 1e-6,
    interval: float = 1e-5,
    energised: tuple[int, ...] | None = None,
) -> Motion:
    """All sides in one system of equations, by the classical Runge-Kutta method: no part of the coupling engine.

    `energised` names the poles whose coils do anything; all, unless said.
    """
    recloser = Recloser() if recloser is None else recloser
    n = recloser.poles
    flux, z = recloser.rest()
    circuit = np.column_stack([flux, np.full(n, recloser.magnet.closing_voltage)]).ravel()
    x = np.concatenate([z, np.zeros(5 * n), circuit])
    on = range(n) if energised is None else energised
    actions = np.array([recloser.action if i in on else REST for i in range(n)])
    keep, count = max(round(interval / step), 1), round(t_end / interval)
    delays = np.array(recloser.delays)
    rows = _march(x, interval / keep, keep, count, recloser.mechanism, recloser.magnet, n, actions, delays)
    return Motion(recloser, interval * np.arange(count + 1), rows)
