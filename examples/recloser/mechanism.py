"""The contact spring of the recloser between two elastic bars: a finite-element side that impacts pass through.

Part A, a rod, hangs on the moving contact (reference point a); part B, a tube, on the armature (reference point b). The
preloaded contact spring and its stop act between the free ends of both. Finite-element side: displacement and speed of
a and b in, the forces of the elements there out. Multibody side: contact and armature without the bars, opening spring,
electrical contact, end stops, guides and a given actuator force; stator and fixed contact stand still.

Displacements are counted from the open position, positive in the direction of closing. The bars' masses are lumped; the
nodes at a and b move with the reference points, so that their masses would make accelerations inputs and are left out.
An impact of the contacts runs through the bars at the speed of sound: what is coupled here is stiff on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, pi
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.optimize import fsolve

import cosolve as cs
from examples.recloser.model import Mechanism, contact_force

STEEL_E, STEEL_RHO = 2.1e11, 7850.0


class Chain(NamedTuple):
    """A bar as the compiled loop wants it: elements, their stiffness and damping, and the mass of an inner node."""

    elements: int
    stiffness: float
    damping: float
    mass: float


@dataclass(frozen=True)
class BarMechanism:
    """Both bars, the masses that are left on the multibody side, and the course of the actuator force."""

    rod: cs.structures.Bar = field(
        default_factory=lambda: cs.structures.Bar(8, 0.06, STEEL_E, STEEL_RHO, pi / 4 * 0.016**2, clamped=False)
    )
    tube: cs.structures.Bar = field(
        default_factory=lambda: cs.structures.Bar(
            6, 0.04, STEEL_E, STEEL_RHO, pi / 4 * (0.03**2 - 0.02**2), clamped=False
        )
    )
    rayleigh: float = 2e-7  # damping = rayleigh * stiffness, in s
    mechanism: Mechanism = field(default_factory=Mechanism)
    holding: float = -500.0  # the actuator force goes from here ...
    rise: float = 3800.0  # ... by so much ...
    rise_time: float = 8e-3  # ... with this time constant

    @property
    def masses(self) -> tuple[float, float]:
        """Of contact and armature without the bars."""
        m = self.mechanism
        return m.contact - float(self.rod.mass().sum()), m.armature - float(self.tube.mass().sum())

    @property
    def chains(self) -> tuple[Chain, Chain]:
        """Rod and tube."""
        return self._chain(self.rod), self._chain(self.tube)

    def _chain(self, bar: cs.structures.Bar) -> Chain:
        k = bar.E * bar.area / bar.element_length
        return Chain(bar.elements, k, self.rayleigh * k, float(bar.mass()[1]))

    @property
    def nodes(self) -> int:
        """Free nodes of both bars."""
        return self.rod.elements + self.tube.elements

    def rest(self) -> tuple[np.ndarray, np.ndarray]:
        """Displacements of contact and armature, and of the free nodes, in the open position with the actuator holding.

        >>> (a, b), inside = BarMechanism().rest()
        >>> round(float(1e6 * b), 2), round(float(1e6 * a), 2)       # um: the stops give way to 800 N and to 1500 N
        (-2.67, 4.83)
        """
        rod, tube = self.chains
        n = self.nodes

        def still(z: np.ndarray) -> np.ndarray:
            u, inner = np.array([z[0], 0.0, z[1], 0.0]), np.concatenate([z[2:], np.zeros(n)])
            ends = _end_forces(inner, u, rod, tube)
            outer = _motion_rates(np.array([z[0], z[1], 0.0, 0.0]), ends, self.holding, self.mechanism, self.masses)
            inside = _bar_rates(inner, u, rod, tube, self.mechanism)[n:]
            return np.concatenate([outer[2:] * self.masses, inside * _node_masses(rod, tube)])

        guess = np.full(2 + n, -2.7e-6)
        guess[0] = guess[2 : 2 + rod.elements] = 4.8e-6
        found, _, worked, said = fsolve(still, guess, xtol=1e-15, full_output=True)
        if worked != 1 and np.abs(still(found)).max() > 1e-6:
            raise cs.errors.SetupError(f"the mechanism finds no position of rest: {said}")
        return found[:2], found[2:]


# -- the finite-element side -----------------------------------------------------------------------------------------


@njit(cache=True)
def _node_masses(rod, tube):
    found = np.empty(rod.elements + tube.elements)
    found[: rod.elements] = rod.mass
    found[rod.elements :] = tube.mass
    found[rod.elements - 1] *= 0.5
    found[-1] *= 0.5
    return found


@njit(cache=True)
def _end_forces(x, u, rod, tube):
    """Of the first element of each bar on its reference point."""
    n, na = rod.elements + tube.elements, rod.elements
    a = rod.stiffness * (x[0] - u[0]) + rod.damping * (x[n] - u[1])
    b = tube.stiffness * (x[na] - u[2]) + tube.damping * (x[n + na] - u[3])
    return np.array([a, b])


@njit(cache=True)
def _bar_rates(x, u, rod, tube, m):
    """Of displacements and speeds of the free nodes: the rod's from a to its free end, then the tube's."""
    n, na = rod.elements + tube.elements, rod.elements
    force = np.zeros(n)
    for first, count, k, d, place, speed in (
        (0, na, rod.stiffness, rod.damping, u[0], u[1]),
        (na, tube.elements, tube.stiffness, tube.damping, u[2], u[3]),
    ):
        before, before_speed = place, speed
        for i in range(first, first + count):
            pull = k * (x[i] - before) + d * (x[n + i] - before_speed)
            force[i] -= pull
            if i > first:
                force[i - 1] += pull
            before, before_speed = x[i], x[n + i]
    q, dq = x[n - 1] - x[na - 1], x[2 * n - 1] - x[n + na - 1]
    spring = m.contact_preload + m.contact_spring * q
    spring -= contact_force(-q, -dq, m.spring_stop_stiffness, m.contact_damping, 1.0)
    force[na - 1] += spring
    force[n - 1] -= spring
    found = np.empty(2 * n)
    found[:n] = x[n:]
    found[n:] = force / _node_masses(rod, tube)
    return found


def bars(bar_mechanism: BarMechanism | None = None, internal_step: float = 1e-7) -> cs.Ode:
    """Rod, tube and the spring between them: displacements and speeds of a and b in, forces on a and b out.

    >>> [port for port in bars().outputs]
    ['Fa', 'Fb']
    """
    given = BarMechanism() if bar_mechanism is None else bar_mechanism
    (rod, tube), m = given.chains, given.mechanism

    @njit
    def rhs(t, x, u):
        return _bar_rates(x, u, rod, tube, m)

    @njit
    def output(t, x, u):
        return _end_forces(x, u, rod, tube)

    return cs.Ode(
        rhs,
        output,
        x0=np.concatenate([given.rest()[1], np.zeros(given.nodes)]),
        inputs=["za", "va", "zb", "vb"],
        outputs=["Fa", "Fb"],
        integrator="ode4",
        internal_step=internal_step,
    )


# -- the multibody side ----------------------------------------------------------------------------------------------


@njit(cache=True)
def _electrical(x, m):
    return contact_force(x[0] - m.gap, x[2], m.electrical_stiffness, m.contact_damping, 1.0)


@njit(cache=True)
def _motion_rates(x, ends, actuator, m, masses):
    _, zb, va, vb = x
    stops = contact_force(-zb, -vb, m.stop_stiffness, m.contact_damping, 1.0)
    stops -= contact_force(zb - m.stroke, vb, m.stop_stiffness, m.contact_damping, 1.0)
    contact = ends[0] - _electrical(x, m) - m.drag * va
    armature = ends[1] + actuator - m.opening_preload - m.opening_spring * zb + stops - m.drag * vb
    return np.array([va, vb, contact / masses[0], armature / masses[1]])


def bodies(bar_mechanism: BarMechanism | None = None, internal_step: float = 1e-7) -> cs.Ode:
    """Contact and armature: forces of the bars in, displacements and speeds of a and b out; and the contact force.

    >>> [port for port in bodies().outputs]
    ['za', 'va', 'zb', 'vb', 'contact']
    """
    given = BarMechanism() if bar_mechanism is None else bar_mechanism
    m, masses = given.mechanism, given.masses
    holding, rise, rise_time = given.holding, given.rise, given.rise_time

    @njit
    def rhs(t, x, u):
        return _motion_rates(x, u, holding + rise * (1.0 - exp(-t / rise_time)), m, masses)

    @njit
    def output(t, x, u):
        return np.array([x[0], x[2], x[1], x[3], _electrical(x, m)])

    return cs.Ode(
        rhs,
        output,
        x0=np.concatenate([given.rest()[0], np.zeros(2)]),
        inputs=["Fa", "Fb"],
        outputs=["za", "va", "zb", "vb", "contact"],
        integrator="ode4",
        internal_step=internal_step,
    )


# -- together --------------------------------------------------------------------------------------------------------

#: What the sides exchange.
SIGNALS = ("mbs.za", "mbs.va", "mbs.zb", "mbs.vb", "fe.Fa", "fe.Fb")


def split(bar_mechanism: BarMechanism | None = None, internal_step: float = 1e-7) -> cs.System:
    """Both sides and the six signals between them.

    >>> split().plan().n_z
    6
    """
    system = cs.System({"mbs": bodies(bar_mechanism, internal_step), "fe": bars(bar_mechanism, internal_step)})
    for name in SIGNALS:
        side, port = name.split(".")
        system.connect(name, f"{'fe' if side == 'mbs' else 'mbs'}.{port}")
    return system


@njit(cache=True)
def _together(t, x, rod, tube, m, masses, course):
    """Contact and armature first, then the nodes of the bars."""
    found = np.empty(len(x))
    u = np.array([x[0], x[2], x[1], x[3]])
    actuator = course[0] + course[1] * (1.0 - exp(-t / course[2]))
    found[:4] = _motion_rates(x[:4], _end_forces(x[4:], u, rod, tube), actuator, m, masses)
    found[4:] = _bar_rates(x[4:], u, rod, tube, m)
    return found


@njit(cache=True)
def _march(x, h, keep, count, rod, tube, m, masses, course):
    rows = np.empty((count + 1, len(x)))
    rows[0] = x
    for k in range(count):
        for i in range(keep):
            t = (k * keep + i) * h
            k1 = _together(t, x, rod, tube, m, masses, course)
            k2 = _together(t + 0.5 * h, x + 0.5 * h * k1, rod, tube, m, masses, course)
            k3 = _together(t + 0.5 * h, x + 0.5 * h * k2, rod, tube, m, masses, course)
            k4 = _together(t + h, x + h * k3, rod, tube, m, masses, course)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        rows[k + 1] = x
    return rows


@dataclass(frozen=True)
class BarMotion:
    """The undivided mechanism over time; rows of states, contact and armature first."""

    bar_mechanism: BarMechanism
    t: np.ndarray
    x: np.ndarray

    def signals(self) -> dict[str, np.ndarray]:
        """What the sides exchange, by the names of a coupled run."""
        x, n, (rod, tube) = self.x, self.bar_mechanism.nodes, self.bar_mechanism.chains
        first, second = 4, 4 + rod.elements  # the nodes next to a and to b
        fa = rod.stiffness * (x[:, first] - x[:, 0]) + rod.damping * (x[:, first + n] - x[:, 2])
        fb = tube.stiffness * (x[:, second] - x[:, 1]) + tube.damping * (x[:, second + n] - x[:, 3])
        return dict(zip(SIGNALS, (x[:, 0], x[:, 2], x[:, 1], x[:, 3], fa, fb), strict=True))

    def contact(self) -> np.ndarray:
        """Force between the electrical contacts."""
        return np.array([_electrical(row[:4], self.bar_mechanism.mechanism) for row in self.x])

    def touch(self) -> tuple[float, float]:
        """When the contacts meet, and the speed then."""
        k = int((self.x[:, 0] > self.bar_mechanism.mechanism.gap).argmax())
        return float(self.t[k]), float(self.x[k - 1, 2])

    def stop(self) -> float:
        """When the armature meets its stop."""
        return float(self.t[(self.x[:, 1] > self.bar_mechanism.mechanism.stroke).argmax()])


def undivided(
    bar_mechanism: BarMechanism | None = None, t_end: float = 30e-3, *, step: float = 1e-7, interval: float = 1e-6
) -> BarMotion:
    """Both sides in one system of equations, by the classical Runge-Kutta method: no part of the coupling engine."""
    given = BarMechanism() if bar_mechanism is None else bar_mechanism
    rod, tube = given.chains
    outer, inner = given.rest()
    x = np.concatenate([outer, np.zeros(2), inner, np.zeros(given.nodes)])
    keep, count = max(round(interval / step), 1), round(t_end / interval)
    course = np.array([given.holding, given.rise, given.rise_time])
    rows = _march(x, interval / keep, keep, count, rod, tube, given.mechanism, given.masses, course)
    return BarMotion(given, interval * np.arange(count + 1), rows)
