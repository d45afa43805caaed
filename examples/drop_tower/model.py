"""A drop tower: a guided body falls onto a foam block; multibody side against finite elements.

Multibody side, in a plane: the falling body (three coordinates) slides in guides of a carriage, with clearance and dry
friction, and the carriage slides on rails down to a stop. Finite elements: the foam specimen, fixed at its base and
turned by a tilt, and the aluminium end of the body, a rigid block that is tied to the body's reference point by its
own stiffness. Contact and friction between block and foam are inside the finite elements.

Both meet at the reference point, the lower end of the body: position, angle and their speeds go one way, force and
moment come back. After Schmoll (2015), 3.3.4; all numbers are our own judgement.

The foam: `examples.elements.foam_forces`, with lumped masses; its base is fixed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from math import cos, sin, sqrt, tanh
from typing import Any, NamedTuple

import numpy as np
from numba import njit

import cosolve as cs
from examples import elements

hunt_crossley, smooth_step = elements.hunt_crossley, elements.smooth_step
stribeck, bristle_rate, foam_forces = elements.stribeck, elements.bristle_rate, elements.foam_forces

#: Machine code goes to disk with the names of its argument types: under the name that a system file gives this module
#: no other process would find them.
kept = njit(cache=__name__ != "model")

#: States of the multibody side: body, carriage, bristles of both guides and of the rails.
BODY = ("x", "y", "angle", "vx", "vy", "spin", "carriage", "carriage_speed", "upper", "lower", "rails")


class Tower(NamedTuple):
    """The multibody side in SI units."""

    body_mass: float = 5.0
    body_inertia: float = 0.02
    below_centre: float = 60e-3  # where the reference point is
    carriage_mass: float = 10.0
    gravity: float = 9.81
    guide: float = 40e-3  # above and below the centre of the body
    clearance: float = 0.1e-3
    guide_stiffness: float = 2e6
    guide_damping: float = 500.0
    bristle_stiffness: float = 1e5
    bristle_damping: float = 100.0
    viscosity: float = 1.0
    stribeck_speed: float = 0.01
    guide_sliding: float = 4.0
    guide_sticking: float = 6.0
    guide_load: float = 0.1 / 4  # more friction per N of lateral force
    rail_sliding: float = 6.0
    rail_sticking: float = 9.0
    stop: float = 100e-3  # below the start
    stop_stiffness: float = 2e6
    stop_damping: float = 2e3


class Specimen(NamedTuple):
    """Foam and block in SI units."""

    width: float = 60e-3
    height: float = 50e-3
    depth: float = 47.1e-3
    density: float = 120.0
    shear: float = 0.75e6
    viscosity: float = 1500.0
    block_mass: float = 0.1526
    block_height: float = 20e-3
    tie: float = 9.891e9
    tie_damping: float = 0.05
    contact_stiffness: float = 2e6
    contact_damping: float = 0.5
    friction: float = 0.3
    friction_speed: float = 0.01
    gravity: float = 9.81


@dataclass(frozen=True)
class DropTower:
    """Both sides; `tilt` in degrees; `drop` from the face of the block to the top of the untilted foam."""

    tilt: float = 0.0
    drop: float = 58.5e-3
    elements: tuple[int, int] = (6, 5)
    tower: Tower = field(default_factory=Tower)
    specimen: Specimen = field(default_factory=Specimen)

    @cached_property
    def mesh(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes (the fixed ones of the base first, the top ones last) and elements."""
        s = self.specimen
        nodes, corners = elements.block_mesh(s.width, s.height, self.elements)
        angle, middle = np.radians(self.tilt), np.array([0.0, s.height / 2])
        turn = np.array([[cos(angle), -sin(angle)], [sin(angle), cos(angle)]])
        return middle + (nodes - middle) @ turn.T, corners

    @cached_property
    def slopes(self) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of the shape functions by the reference place, and the volume, at each point of each element."""
        return elements.shape_slopes(*self.mesh, self.specimen.depth)

    @cached_property
    def masses(self) -> np.ndarray:
        """Of the nodes: a quarter of each element."""
        return elements.lumped_masses(self.mesh[1], self.slopes[1], self.specimen.density)

    def step_limits(self) -> dict[str, float]:
        """How long internal steps of the classical Runge-Kutta method may be, part by part.

        >>> {what: f"{h:.1e}" for what, h in DropTower().step_limits().items()}
        {'the viscosity of the foam': '5.6e-06', 'the tie': '1.1e-05', 'the contact of a corner node': '2.3e-05'}
        """
        s, (nx, ny) = self.specimen, self.elements
        size = min(s.width / nx, s.height / ny)
        return {
            "the viscosity of the foam": 2.785 * s.density * size**2 / (4 * s.viscosity),
            "the tie": 2.785 / sqrt(s.tie / s.block_mass),
            "the contact of a corner node": 2.785 / sqrt(s.contact_stiffness / self.masses[-1]),
        }

    def body0(self) -> np.ndarray:
        """At rest; the reference point is the upper end of the block."""
        s = self.specimen
        y = s.height + self.drop + s.block_height + self.tower.below_centre
        return np.array([0.0, y, *np.zeros(9)])

    def foam0(self) -> np.ndarray:
        """Block (centre, angle, speeds), displacements and speeds of the nodes."""
        s = self.specimen
        y = s.height + self.drop + s.block_height / 2
        return np.array([0.0, y, *np.zeros(4 + 4 * len(self.mesh[0]))])


# -- the multibody side ----------------------------------------------------------------------------------------------


@kept
def _friction(v, z, load, sliding, sticking, p):
    """Force against the motion, and how fast the bristles bend."""
    level = load * stribeck(v, sliding, sticking, p.stribeck_speed)
    rate = bristle_rate(v, z, p.bristle_stiffness, level)
    return p.bristle_stiffness * z + p.bristle_damping * rate + p.viscosity * v, rate


@kept
def _body_rates(x, load, p):
    """`load`: force and moment at the reference point."""
    found = np.empty(11)
    angle, spin, slip = x[2], x[5], x[4] - x[7]
    fx, fy = load[0], load[1] - p.body_mass * p.gravity
    # the reference point lies below the centre
    moment = load[2] + p.below_centre * (sin(angle) * load[1] + cos(angle) * load[0])
    carriage = -p.carriage_mass * p.gravity
    for k in range(2):
        arm = p.guide if k == 0 else -p.guide
        place, speed = x[0] - arm * sin(angle), x[3] - arm * cos(angle) * spin
        side = 1.0 if place > 0 else -1.0
        depth = side * place - p.clearance
        push = 0.0
        if depth > 0:
            push = p.guide_stiffness * depth + p.guide_damping * side * speed * smooth_step(depth / 1e-5)
            push = max(push, 0.0)
        friction, found[8 + k] = _friction(
            slip, x[8 + k], 1 + p.guide_load * push, p.guide_sliding, p.guide_sticking, p
        )
        fx -= side * push
        moment += arm * cos(angle) * side * push
        fy -= friction
        carriage += friction
    friction, found[10] = _friction(x[7], x[10], 1.0, p.rail_sliding, p.rail_sticking, p)
    carriage -= friction
    below = -x[6] - p.stop
    if below > 0:
        carriage += max(p.stop_stiffness * below - p.stop_damping * x[7], 0.0)
    found[0], found[1], found[2], found[6] = x[3], x[4], x[5], x[7]
    found[3], found[4] = fx / p.body_mass, fy / p.body_mass
    found[5], found[7] = moment / p.body_inertia, carriage / p.carriage_mass
    return found


@kept
def _reference_point(x, p):
    """Position, angle and speeds of the reference point."""
    s, c = sin(x[2]), cos(x[2])
    b = p.below_centre
    return np.array([x[0] + b * s, x[1] - b * c, x[2], x[3] + b * c * x[5], x[4] + b * s * x[5], x[5]])


@cache
def _tower_functions(p: Tower) -> tuple[Any, Any]:
    """Right-hand side and outputs: compiled once, however many systems have them."""

    @njit
    def rhs(t, x, u):
        return _body_rates(x, u, p)

    @njit
    def output(t, x, u):
        return np.concatenate((_reference_point(x, p), x[6:7]))

    return rhs, output


def tower(machine: DropTower | None = None, internal_step: float = 2e-6, x0: np.ndarray | None = None) -> cs.Ode:
    """Body and carriage: force and moment at the reference point in, its motion out; and the carriage.

    >>> [port.name for port in tower().outputs]
    ['place', 'speed', 'carriage']
    """
    machine = DropTower() if machine is None else machine
    return cs.Ode(
        *_tower_functions(machine.tower),
        x0=machine.body0() if x0 is None else x0,
        inputs=[cs.Port("load", 3)],
        outputs=[cs.Port("place", 3), cs.Port("speed", 3), cs.Port("carriage", 1)],
        integrator="ode4",
        internal_step=internal_step,
    )


# -- finite elements -------------------------------------------------------------------------------------------------


@kept
def _tie(x, point, s):
    """Force and moment that the tie exerts on the block, at its upper end."""
    h = 0.5 * s.block_height
    si, co = sin(x[2]), cos(x[2])
    px, py = x[0] - h * si, x[1] + h * co
    vx, vy = x[3] - h * co * x[5], x[4] - h * si * x[5]
    inertia = s.block_mass / 12 * (s.width**2 + s.block_height**2)
    turning = s.tie * s.width**2 / 12
    c = 2 * s.tie_damping * sqrt(s.tie * s.block_mass)
    ct = 2 * s.tie_damping * sqrt(turning * inertia)
    fx = s.tie * (point[0] - px) + c * (point[3] - vx)
    fy = s.tie * (point[1] - py) + c * (point[4] - vy)
    return fx, fy, turning * (point[2] - x[2]) + ct * (point[5] - x[5])


@kept
def _foam_rates(x, point, s, nodes, corners, slopes, volumes, masses, per_row):
    n = len(nodes)
    found = np.zeros(len(x))
    u, v = x[6 : 6 + 2 * n].reshape(n, 2), x[6 + 2 * n :].reshape(n, 2)
    force = foam_forces(u, v, corners, slopes, volumes, s.shear, s.viscosity)
    tx, ty, turning = _tie(x, point, s)
    h = 0.5 * s.block_height
    si, co = sin(x[2]), cos(x[2])
    fx, fy = tx, ty - s.block_mass * s.gravity
    moment = turning - h * (co * tx + si * ty)
    for i in range(n - per_row, n):
        rx, ry = nodes[i, 0] + u[i, 0] - x[0], nodes[i, 1] + u[i, 1] - x[1]
        depth = -rx * si + ry * co + h  # above the lower face
        if depth > 0:
            wx, wy = v[i, 0] - (x[3] - ry * x[5]), v[i, 1] - (x[4] + rx * x[5])
            pressed = hunt_crossley(depth, -wx * si + wy * co, s.contact_stiffness, s.contact_damping, 1.0)
            rubbed = s.friction * pressed * tanh((wx * co + wy * si) / s.friction_speed)
            nx, ny = -si * pressed + co * rubbed, co * pressed + si * rubbed  # on the block
            fx += nx
            fy += ny
            moment += rx * ny - ry * nx
            force[i, 0] -= nx
            force[i, 1] -= ny
    found[0], found[1], found[2] = x[3], x[4], x[5]
    inertia = s.block_mass / 12 * (s.width**2 + s.block_height**2)
    found[3], found[4], found[5] = fx / s.block_mass, fy / s.block_mass, moment / inertia
    for i in range(per_row, n):  # the base is fixed
        for k in range(2):
            found[6 + 2 * i + k] = v[i, k]
            found[6 + 2 * (n + i) + k] = force[i, k] / masses[i]
    return found


@cache
def _specimen_rates(machine: DropTower) -> Any:
    """Right-hand side, compiled once as well."""
    s, (nodes, corners), (slopes, volumes) = machine.specimen, machine.mesh, machine.slopes
    masses, per_row = machine.masses, machine.elements[0] + 1

    @njit
    def rhs(t, x, u):
        return _foam_rates(x, u, s, nodes, corners, slopes, volumes, masses, per_row)

    return rhs


@cache
def _specimen_outputs(s: Specimen, shape: bool) -> Any:
    @njit
    def output(t, x, u):
        fx, fy, moment = _tie(x, u, s)
        return np.array([-fx, -fy, -moment])

    @njit
    def output_and_shape(t, x, u):
        return np.concatenate((output(t, x, u), x[:3], x[6 : 6 + (len(x) - 6) // 2]))

    return output_and_shape if shape else output


def specimen(
    machine: DropTower | None = None,
    internal_step: float = 2e-6,
    x0: np.ndarray | None = None,
    *,
    tilt: float = 0.0,
    hermite: bool = False,
    shape: bool = False,
) -> cs.Subsystem:
    """Block and foam: motion of the reference point in, force and moment there out.

    `hermite`: inside a macro step it moves the place on with the speed. `shape`: outputs for pictures, the place of the
    block and the displacements of the nodes. `tilt` in degrees where no machine is given.

    >>> [port.name for port in specimen().inputs]
    ['place', 'speed']
    """
    machine = DropTower(tilt) if machine is None else machine
    for what, longest in machine.step_limits().items():
        if internal_step > longest:
            raise cs.errors.SetupError(
                f"specimen: internal steps of {internal_step:g} s are too long for {what}, which is stable up to "
                f"{longest:.2g} s; take shorter ones"
            )
    pictured = [cs.Port("block", 3), cs.Port("nodes", 2 * len(machine.mesh[0]))] if shape else []
    ode = cs.Ode(
        _specimen_rates(machine),
        _specimen_outputs(machine.specimen, shape),
        x0=machine.foam0() if x0 is None else x0,
        inputs=[cs.Port("place", 3), cs.Port("speed", 3)],
        outputs=[cs.Port("load", 3), *pictured],
        integrator="ode4",
        internal_step=internal_step,
    )
    return cs.IntegratedInputs(ode, {"place": "speed"}) if hermite else ode


# -- together --------------------------------------------------------------------------------------------------------


def split(
    machine: DropTower | None = None,
    internal_step: float = 2e-6,
    x0: np.ndarray | None = None,
    *,
    hermite: bool = False,
    shape: bool = False,
) -> cs.System:
    """Both sides and the nine signals between them; `x0` holds the states of the tower first, then of the specimen.

    >>> len(split().plan().z_labels)
    9
    """
    first, second = (None, None) if x0 is None else (x0[:11], x0[11:])
    fe = specimen(machine, internal_step, second, hermite=hermite, shape=shape)
    system = cs.System({"mbs": tower(machine, internal_step, first), "fe": fe})
    system.connect("mbs.place", "fe.place")
    system.connect("mbs.speed", "fe.speed")
    system.connect("fe.load", "mbs.load")
    return system


@kept
def _together(x, p, s, nodes, corners, slopes, volumes, masses, per_row):
    found = np.empty(len(x))
    point = _reference_point(x[:11], p)
    fx, fy, moment = _tie(x[11:], point, s)
    found[:11] = _body_rates(x[:11], np.array([-fx, -fy, -moment]), p)
    found[11:] = _foam_rates(x[11:], point, s, nodes, corners, slopes, volumes, masses, per_row)
    return found


@kept
def _march(x, h, keep, count, p, s, mesh):
    nodes, corners, slopes, volumes, masses, per_row = mesh
    rows = np.empty((count + 1, len(x)))
    rows[0] = x
    for k in range(count):
        for _ in range(keep):
            k1 = _together(x, p, s, nodes, corners, slopes, volumes, masses, per_row)
            k2 = _together(x + 0.5 * h * k1, p, s, nodes, corners, slopes, volumes, masses, per_row)
            k3 = _together(x + 0.5 * h * k2, p, s, nodes, corners, slopes, volumes, masses, per_row)
            k4 = _together(x + h * k3, p, s, nodes, corners, slopes, volumes, masses, per_row)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        rows[k + 1] = x
    return rows


@dataclass(frozen=True)
class Fall:
    """The undivided machine over time; rows of states, the tower's first."""

    machine: DropTower
    t: np.ndarray
    x: np.ndarray

    def point(self) -> np.ndarray:
        """Motion of the reference point: place, then speed."""
        return np.array([_reference_point(row, self.machine.tower) for row in self.x[:, :11]])

    def load(self) -> np.ndarray:
        """Force and moment on the body there."""
        point = self.point()
        return -np.array([_tie(row, at, self.machine.specimen) for row, at in zip(self.x[:, 11:], point, strict=True)])


def contact(machine: DropTower, t: np.ndarray, place: np.ndarray, load: np.ndarray, threshold: float = 15.0) -> str:
    """The first impact in words, from places of the reference point and loads over time; or that there was none.

    >>> machine, t = DropTower(), np.array([0.0, 0.01])
    >>> contact(machine, t, np.array([[0.0, 0.1285, 0.0], [0.0, 0.128, 0.0]]), np.zeros((2, 3)))
    'no contact up to t = 0.01 s: 58.0 mm are left to fall; take a longer t_end'
    """
    during = np.flatnonzero(load[:, 1] > threshold)
    if not len(during):
        s, top = machine.specimen, machine.mesh[0][:, 1].max()
        left = 1e3 * (place[:, 1].min() - s.block_height - top)
        return f"no contact up to t = {t[-1]:g} s: {left:.1f} mm are left to fall; take a longer t_end"
    ended = np.flatnonzero(np.diff(during) > 1)
    first, last = during[0], during[ended[0]] if len(ended) else during[-1]
    peak = load[first : last + 1, 1].max()
    lasts = f"to {1e3 * t[last]:.1f} ms" if last + 1 < len(t) else "on, still at the end"
    return f"contact from {1e3 * t[first]:.1f} {lasts}, {peak:.1f} N at most"


def undivided(
    machine: DropTower | None = None,
    t_end: float = 0.15,
    *,
    x0: np.ndarray | None = None,
    step: float = 2e-6,
    interval: float = 1e-4,
) -> Fall:
    """Both sides in one system of equations, by the classical Runge-Kutta method: no part of the coupling engine."""
    machine = DropTower() if machine is None else machine
    keep, count = max(round(interval / step), 1), round(t_end / interval)
    x = np.concatenate([machine.body0(), machine.foam0()]) if x0 is None else x0
    mesh = (*machine.mesh, *machine.slopes, machine.masses, machine.elements[0] + 1)
    rows = _march(x, interval / keep, keep, count, machine.tower, machine.specimen, mesh)
    return Fall(machine, interval * np.arange(count + 1), rows)
