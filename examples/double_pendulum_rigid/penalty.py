"""The double pendulum of Lu (2015), 3.3.3.2: rod 1 hangs on a stiff bushing instead of an ideal hinge.

Lu's Method 3 was shown on coupling bodies with all their coordinates and no reaction on them, so the ground hinge is an
elastic atpoint joint of 1e8 N/m and 1e5 Ns/m. Its damper makes rod 1 stiff: 4e5 1/s. An
explicit Runge-Kutta method needs inner steps of 5e-6 s for that, 200 in a macro step of 1 ms; compiled, a subsystem
step takes a fraction of a millisecond. The bushing sags by 2.4e-7 m. Its damper sees `v`, not `x' = v + mu`, which adds
`d mu` to its force and 1.5e-8 m to the sag at H = 1e-3, of second order like mu.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import njit

import cosolve as cs
from examples.double_pendulum_rigid.model import (
    C_SPRING,
    CASE,
    D_SPRING,
    GRAVITY,
    INERTIA_CENTRE,
    MOTION_2,
    PHI_1,
    PHI_2,
    PHI_REST,
    looped,
    rod_2,
    rod_2_motion,
)
from examples.planar.case import rod

C_HINGE, D_HINGE = 1e8, 1e5
INNER = 5e-6
MOTION_1 = ("x", "y", "phi", "vx", "vy", "w", "ax", "ay", "a")


@njit(cache=True)
def _forces_1(s, lx, ly):
    """Accelerations of rod 1: bushing at its near end, joint force at its tip, torsional spring, gravity."""
    x, y, phi, vx, vy, w = s
    rx, ry = 0.5 * np.cos(phi), 0.5 * np.sin(phi)
    hx, hy = -C_HINGE * (x - rx) - D_HINGE * (vx + w * ry), -C_HINGE * (y - ry) - D_HINGE * (vy - w * rx)
    torque = -C_SPRING * (phi - PHI_REST) - D_SPRING * w + rx * (ly - hy) - ry * (lx - hx)
    return hx + lx, hy + ly - GRAVITY, torque / INERTIA_CENTRE


@njit(cache=True)
def rod_1(t, s, u):
    lx, ly, mx, my = u
    ax, ay, a = _forces_1(s, lx, ly)
    turn = 0.5 * (np.cos(s[2]) * my - np.sin(s[2]) * mx)
    return np.array([s[3] + mx, s[4] + my, s[5] + turn, ax, ay, a])


@njit(cache=True)
def rod_1_motion(t, s, u):
    return np.concatenate((s, np.array(_forces_1(s, u[0], u[1]))))


@njit(cache=True)
def levels(x1, y1, phi1, vx1, vy1, w1, ax1, ay1, a1, x, y, phi2, vx, vy, w2, ax, ay, a2):
    """Tip of rod 1 minus near end of rod 2: position, velocity, acceleration."""
    c1, s1, c2, s2 = 0.5 * np.cos(phi1), 0.5 * np.sin(phi1), 0.5 * np.cos(phi2), 0.5 * np.sin(phi2)
    g = np.array([x1 + c1 - x + c2, y1 + s1 - y + s2])
    dg = np.array([vx1 - s1 * w1 - vx - s2 * w2, vy1 + c1 * w1 - vy + c2 * w2])
    ddg = np.array(
        [
            ax1 - s1 * a1 - c1 * w1**2 - ax - s2 * a2 - c2 * w2**2,
            ay1 + c1 * a1 - s1 * w1**2 - ay + c2 * a2 - s2 * w2**2,
        ]
    )
    return g, dg, ddg


def split() -> cs.System:
    """Both rods with all their coordinates, and their joint."""
    e1, e2 = np.array([np.cos(PHI_1), np.sin(PHI_1)]), np.array([np.cos(PHI_2), np.sin(PHI_2)])
    inputs = [("lam", 2), ("mu", 2)]
    one = cs.Ode(
        rod_1,
        rod_1_motion,
        x0=[*(0.5 * e1), PHI_1, 0.0, 0.0, 0.0],
        inputs=inputs,
        outputs=MOTION_1,
        integrator="ode4",
        internal_step=INNER,
    )
    two = cs.Ode(
        looped(rod_2),
        rod_2_motion,
        x0=[*(e1 + 0.5 * e2), PHI_2, 0.0, 0.0, 0.0],
        inputs=inputs,
        outputs=MOTION_2,
        integrator="ode4",
        internal_step=5e-4,
    )
    system = cs.System({"one": one, "two": two})
    of = [f"one.{name}" for name in MOTION_1] + [f"two.{name}" for name in MOTION_2]
    system.constraint({"lam": ["one.lam", "two.lam"]}, levels, of=of, correction={"mu": ["one.mu", "two.mu"]})
    return system


def _parts(r: cs.Result) -> list[np.ndarray]:
    near = np.array([r["one.x"], r["one.y"]]).T - 0.5 * np.array([np.cos(r["one.phi"]), np.sin(r["one.phi"])]).T
    return [rod(near, 1.0, r["one.phi"]), CASE.parts(r)[1]]


def _energy(r: cs.Result) -> np.ndarray:
    """As with the ideal hinge; the bushing holds less than 1e-5 J."""
    ideal = CASE.energy(r)
    near = np.array([r["one.x"], r["one.y"]]) - 0.5 * np.array([np.cos(r["one.phi"]), np.sin(r["one.phi"])])
    return ideal + 0.5 * C_HINGE * (near**2).sum(axis=0)


#: The reference is that of the ideal hinge.
ON_BUSHING = replace(
    CASE,
    name="double pendulum on a bushing",
    build=lambda h: split(),
    motion=tuple(f"one.{name}" for name in MOTION_1) + tuple(f"two.{name}" for name in MOTION_2),
    levels=levels,
    energy=_energy,
    parts=_parts,
)
