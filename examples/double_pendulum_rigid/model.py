"""Planar double pendulum with a rigid middle joint, cut at that joint (Lu (2015), 3.3.1.2).

Rod 1 turns about a hinge at the origin against a torsional spring; the tip of rod 1 and the near end of rod 2 coincide.
Angles count from the x-axis, gravity points down. Each rod is a subsystem in minimal
coordinates: `phi` for rod 1, `(x, y, phi)` of its centre for rod 2. Both take the multipliers

- `lam`: the joint force on rod 1, its opposite acts on rod 2;
- `mu`: the same lever arms in the kinematic equations, `q' = v + G^T mu` (Method 3 only);

and give position, velocity and acceleration. `reference` is built on other coordinates (`examples.planar.absolute`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

import cosolve as cs
from examples.planar.absolute import Mechanism, Pin
from examples.planar.case import Case, looped, rod

C_SPRING, D_SPRING, PHI_REST = 500.0, 50.0, np.pi / 4
GRAVITY = 9.81
#: Both rods: length 1, mass 1, moment of inertia 1/12 about the centre; rod 1 turns about its end.
INERTIA_END, INERTIA_CENTRE = 1.0 / 3.0, 1.0 / 12.0
PHI_1, PHI_2 = np.pi / 4, -np.pi / 4

MOTION_1 = ("phi", "w", "a")
MOTION_2 = ("x", "y", "phi", "vx", "vy", "w", "ax", "ay", "a")


# -- the rods ------------------------------------------------------------------------------------------------


@njit(cache=True)
def _turn_1(phi, w, fx, fy):
    torque = -C_SPRING * (phi - PHI_REST) - D_SPRING * w - 0.5 * GRAVITY * np.cos(phi)
    return (torque + np.cos(phi) * fy - np.sin(phi) * fx) / INERTIA_END


@njit(cache=True)
def _turn_2(phi, fx, fy):
    """Moment of the force -(fx, fy) at the near end about the centre."""
    return 0.5 * (np.cos(phi) * fy - np.sin(phi) * fx)


@njit(cache=True)
def rod_1(t, s, u):
    lx, ly, mx, my = u
    return np.array([s[1] + np.cos(s[0]) * my - np.sin(s[0]) * mx, _turn_1(s[0], s[1], lx, ly)])


@njit(cache=True)
def rod_1_motion(t, s, u):
    return np.array([s[0], s[1], _turn_1(s[0], s[1], u[0], u[1])])


@njit(cache=True)
def rod_2(t, s, u):
    lx, ly, mx, my = u
    turn = _turn_2(s[2], lx, ly) / INERTIA_CENTRE
    return np.array([s[3] - mx, s[4] - my, s[5] + _turn_2(s[2], mx, my), -lx, -ly - GRAVITY, turn])


@njit(cache=True)
def rod_2_motion(t, s, u):
    forces = np.array([-u[0], -u[1] - GRAVITY, _turn_2(s[2], u[0], u[1]) / INERTIA_CENTRE])
    return np.concatenate((s, forces))


@njit(cache=True)
def levels(phi1, w1, a1, x, y, phi2, vx, vy, w2, ax, ay, a2):
    """Tip of rod 1 minus near end of rod 2: position, velocity, acceleration."""
    c1, s1, c2, s2 = np.cos(phi1), np.sin(phi1), 0.5 * np.cos(phi2), 0.5 * np.sin(phi2)
    g = np.array([c1 - x + c2, s1 - y + s2])
    dg = np.array([-s1 * w1 - vx - s2 * w2, c1 * w1 - vy + c2 * w2])
    ddg = np.array(
        [-s1 * a1 - c1 * w1**2 - ax - s2 * a2 - c2 * w2**2, c1 * a1 - s1 * w1**2 - ay + c2 * a2 - s2 * w2**2]
    )
    return g, dg, ddg


def split(*, integrator: str = "ode4", h: float = 1e-3) -> cs.System:
    """The two rods and their joint; `h` is the inner step of a fixed-step `integrator`."""
    options = {"internal_step": h} if integrator.startswith("ode") else {"rtol": 1e-12, "atol": 1e-12}
    inputs = [("lam", 2), ("mu", 2)]
    start_2 = [np.cos(PHI_1) + 0.5 * np.cos(PHI_2), np.sin(PHI_1) + 0.5 * np.sin(PHI_2), PHI_2, 0.0, 0.0, 0.0]
    one = cs.Ode(
        looped(rod_1), rod_1_motion, x0=[PHI_1, 0.0], inputs=inputs, outputs=MOTION_1, integrator=integrator, **options
    )
    two = cs.Ode(
        looped(rod_2), rod_2_motion, x0=start_2, inputs=inputs, outputs=MOTION_2, integrator=integrator, **options
    )
    system = cs.System({"one": one, "two": two})
    of = [f"one.{name}" for name in MOTION_1] + [f"two.{name}" for name in MOTION_2]
    system.constraint(
        {"lam": ["one.lam", "two.lam"]}, levels, of=of, correction={"mu": ["one.mu", "two.mu"]}
    )  # rod 2 feels the reaction: its right-hand side carries the minus sign
    return system


# -- the whole mechanism -------------------------------------------------------------------------------------


def _spring(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    load = np.zeros(6)
    load[2] = -C_SPRING * (q[2] - PHI_REST) - D_SPRING * v[2]
    return load


MECHANISM = Mechanism(
    masses=(1.0, 1.0),
    inertias=(INERTIA_CENTRE, INERTIA_CENTRE),
    joints=(Pin(0, (-0.5, 0.0)), Pin(0, (0.5, 0.0), 1, (-0.5, 0.0))),
    load=_spring,
)


def reference(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angles of both rods and the joint force at `times`, monolithic."""
    ends = np.array([np.cos(PHI_1), np.sin(PHI_1)])
    start = np.concatenate([0.5 * ends, [PHI_1], ends + 0.5 * np.array([np.cos(PHI_2), np.sin(PHI_2)]), [PHI_2]])
    q, _, lam = MECHANISM.solve(start, times)
    return q[:, [2, 5]], lam[:, 2:]


def energy(phi1, w1, x, y, phi2, vx, vy, w2):
    """Kinetic, gravitational and spring energy (arrays over time)."""
    kinetic = 0.5 * (INERTIA_END * w1**2 + vx**2 + vy**2 + INERTIA_CENTRE * w2**2)
    return kinetic + GRAVITY * (0.5 * np.sin(phi1) + y) + 0.5 * C_SPRING * (phi1 - PHI_REST) ** 2


def _energy(r: cs.Result) -> np.ndarray:
    return energy(r["one.phi"], r["one.w"], *(r[f"two.{name}"] for name in ("x", "y", "phi", "vx", "vy", "w")))


def _parts(r: cs.Result) -> list[np.ndarray]:
    near = np.array([r["two.x"], r["two.y"]]).T - 0.5 * np.array([np.cos(r["two.phi"]), np.sin(r["two.phi"])]).T
    return [rod(np.zeros(2), 1.0, r["one.phi"]), rod(near, 1.0, r["two.phi"])]


CASE = Case(
    name="double pendulum",
    build=lambda h: split(h=h),
    reference=reference,
    t_end=0.5,
    coordinates=("one.phi", "two.phi"),
    motion=tuple(f"one.{name}" for name in MOTION_1) + tuple(f"two.{name}" for name in MOTION_2),
    levels=levels,
    energy=_energy,
    parts=_parts,
    inner=2,
    conservative=False,
)
