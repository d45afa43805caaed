"""Planar double pendulum whose middle joint is a stiff spring-damper (Schweizer and Lu (2014), 4.2).

Rod 1 hangs on a rigid hinge at the origin with a torsional spring; the tip of rod 1 and the near end of rod 2 are tied
by a bushing of 1e5 N/m and 1e2 Ns/m in both directions. Angles count from the x-axis, gravity points down. Cut at the
bushing:

- `split("F/F")`: both rods take the bushing force, one vector variable, n_g = 2;
- `split("F/D")`: rod 1 takes the force, rod 2 owns the bushing and takes the motion of rod 1, n_g = 4;
- `split("D/F")`: the mirror image, n_g = 8;
- `split("D/D")`: both own a copy of the bushing and take each other's motion, n_g = 8.

The right-hand sides are compiled by numba and run inside the native solvers of `cosolve.Ode`.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy.integrate import solve_ivp

import cosolve as cs

C_JOINT, D_JOINT = 1e5, 1e2
C_SPRING, D_SPRING, PHI_REST = 500.0, 5.0, 5.0 * np.pi / 16.0
GRAVITY = 9.81
#: Both rods: length 1, mass 1, moment of inertia 1/12 about the centre; rod 1 turns about its end.
INERTIA_END, INERTIA_CENTRE = 1.0 / 3.0, 1.0 / 12.0

ROD_1 = np.array([np.pi / 4, 0.0])
_PHI_2 = -np.pi / 4
ROD_2 = np.array(
    [np.cos(np.pi / 4) + 0.5 * np.cos(_PHI_2), np.sin(np.pi / 4) + 0.5 * np.sin(_PHI_2), _PHI_2, 0.0, 0.0, 0.0]
)
FOREIGN_2 = ["x2", "y2", "phi2", "vx2", "vy2", "w2"]


# -- mechanics -----------------------------------------------------------------------------------------------


@njit
def tip(phi, w):
    """Position and velocity of the tip of rod 1: (x, y, vx, vy)."""
    return np.cos(phi), np.sin(phi), -np.sin(phi) * w, np.cos(phi) * w


@njit
def near_end(x, y, phi, vx, vy, w):
    """Position and velocity of the near end of rod 2."""
    rx, ry = -0.5 * np.cos(phi), -0.5 * np.sin(phi)
    return x + rx, y + ry, vx - w * ry, vy + w * rx


@njit
def joint_force(phi1, w1, x2, y2, phi2, vx2, vy2, w2):
    """Force of the bushing on rod 1 (its opposite acts on rod 2)."""
    ax, ay, avx, avy = tip(phi1, w1)
    bx, by, bvx, bvy = near_end(x2, y2, phi2, vx2, vy2, w2)
    return C_JOINT * (bx - ax) + D_JOINT * (bvx - avx), C_JOINT * (by - ay) + D_JOINT * (bvy - avy)


@njit
def _rod_1(phi, w, fx, fy):
    torque = -C_SPRING * (phi - PHI_REST) - D_SPRING * w - 0.5 * GRAVITY * np.cos(phi)
    return (torque + np.cos(phi) * fy - np.sin(phi) * fx) / INERTIA_END


@njit
def _rod_2(phi, fx, fy):
    rx, ry = -0.5 * np.cos(phi), -0.5 * np.sin(phi)
    return -(rx * fy - ry * fx) / INERTIA_CENTRE


@njit
def rod_1_by_force(t, s, u):
    return np.array([s[1], _rod_1(s[0], s[1], u[0], u[1])])


@njit
def rod_1_by_motion(t, s, u):
    fx, fy = joint_force(s[0], s[1], u[0], u[1], u[2], u[3], u[4], u[5])
    return np.array([s[1], _rod_1(s[0], s[1], fx, fy)])


@njit
def rod_2_by_force(t, s, u):
    return np.array([s[3], s[4], s[5], -u[0], -u[1] - GRAVITY, _rod_2(s[2], u[0], u[1])])


@njit
def rod_2_by_motion(t, s, u):
    fx, fy = joint_force(u[0], u[1], s[0], s[1], s[2], s[3], s[4], s[5])
    return np.array([s[3], s[4], s[5], -fx, -fy - GRAVITY, _rod_2(s[2], fx, fy)])


@njit
def _states(t, s, u):
    return s


@njit
def _monolithic(t, s):
    fx, fy = joint_force(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7])
    one = _rod_1(s[0], s[1], fx, fy)
    return np.array([s[1], one, s[5], s[6], s[7], -fx, -fy - GRAVITY, _rod_2(s[4], fx, fy)])


def reference(times: np.ndarray) -> np.ndarray:
    """Monolithic solution (DOP853, 1e-11): rows (phi1, w1, x2, y2, phi2, vx2, vy2, w2)."""
    start = np.concatenate([ROD_1, ROD_2])
    found = solve_ivp(_monolithic, (0.0, times[-1]), start, method="DOP853", t_eval=times, rtol=1e-11, atol=1e-11)
    return found.y.T


def reference_force(states: np.ndarray) -> np.ndarray:
    """Bushing force on rod 1 for rows of states."""
    return np.array([joint_force(*row) for row in states])


# -- the coupled system --------------------------------------------------------------------------------------


def _law(phi1: float, w1: float, x: float, y: float, phi: float, vx: float, vy: float, w: float) -> np.ndarray:
    return np.array(joint_force(phi1, w1, x, y, phi, vx, vy, w))


def split(kind: str = "F/F", *, integrator: str = "ode4", h: float = 2.5e-4, rtol: float = 1e-10) -> cs.System:
    """Cut at the bushing: "F/F", "F/D", "D/F" or "D/D".

    `h` is the inner step of a fixed-step `integrator`, `rtol` the tolerance of an adaptive one.
    """
    if kind not in ("F/F", "F/D", "D/F", "D/D"):
        raise ValueError(f"split: kind must be 'F/F', 'F/D', 'D/F' or 'D/D', not {kind!r}")
    options = {"internal_step": h} if integrator.startswith("ode") else {"rtol": rtol, "atol": rtol}
    force = [("force", 2)]
    one = cs.Ode(
        rod_1_by_force if kind[0] == "F" else rod_1_by_motion,
        _states,
        x0=ROD_1,
        inputs=force if kind[0] == "F" else FOREIGN_2,
        outputs=["phi", "w"],
        integrator=integrator,
        **options,
    )
    two = cs.Ode(
        rod_2_by_force if kind[2] == "F" else rod_2_by_motion,
        _states,
        x0=ROD_2,
        inputs=force if kind[2] == "F" else ["phi1", "w1"],
        outputs=["x", "y", "phi", "vx", "vy", "w"],
        integrator=integrator,
        **options,
    )
    system = cs.System({"one": one, "two": two})
    motion_1 = ["one.phi", "one.w"]
    motion_2 = [f"two.{name}" for name in ("x", "y", "phi", "vx", "vy", "w")]
    # rod 2 feels the reaction: its right-hand side carries the minus sign
    driven = {f"{rod}.force": 1.0 for rod, letter in (("one", kind[0]), ("two", kind[2])) if letter == "F"}
    if driven:
        system.law(driven, _law, of=motion_1 + motion_2, name="joint")
    if kind[0] == "D":
        for source, target in zip(motion_2, FOREIGN_2, strict=True):
            system.connect(source, f"one.{target}")
    if kind[2] == "D":
        system.connect("one.phi", "two.phi1")
        system.connect("one.w", "two.w1")
    return system
