"""The crank and sliding lever of Lu (2015), 3.3.3.3: both rods on stiff bushings instead of ideal hinges.

As in the source: 1e8 N/m and 1e5 Ns/m at both ground points, a torsional spring on rod 1, Method 3 with all coordinates
of both rods. Rods are stiff (3e5 1/s) and advanced by compiled inner steps of 5e-6 s.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import njit

import cosolve as cs
from examples.planar.case import rod
from examples.slider_crank import model
from examples.slider_crank.model import GRAVITY, J1, J2, L1, L2, M1, M2, PHI_1, PHI_2, PIVOT_2, SPRING

C_HINGE, D_HINGE = 1e8, 1e5
C_SPRING, D_SPRING = SPRING
INNER = 5e-6
MOTION = ("x", "y", "phi", "vx", "vy", "w", "ax", "ay", "a")


@njit(cache=True)
def _forces(s, half, pivot, m, J, fx, fy, torque):
    """Accelerations of a rod under the bushing at its near end, gravity, and a load reduced to the centre."""
    x, y, phi, vx, vy, w = s
    rx, ry = half * np.cos(phi), half * np.sin(phi)
    hx, hy = -C_HINGE * (x - rx - pivot) - D_HINGE * (vx + w * ry), -C_HINGE * (y - ry) - D_HINGE * (vy - w * rx)
    return (hx + fx) / m, (hy + fy) / m - GRAVITY, (torque - rx * hy + ry * hx) / J


@njit(cache=True)
def _load_1(s, value, phi2):
    """Force along the normal of rod 2 at the tip of rod 1, per unit of the multiplier, and its moment."""
    nx, ny = -np.sin(phi2), np.cos(phi2)
    return value * nx, value * ny, 0.5 * L1 * value * (np.cos(s[2]) * ny - np.sin(s[2]) * nx)


@njit(cache=True)
def _load_2(s, value, x1, y1, phi1):
    """The reaction on rod 2, in the line of action through the tip of rod 1."""
    nx, ny = -np.sin(s[2]), np.cos(s[2])
    arm = (x1 + 0.5 * L1 * np.cos(phi1) - s[0]) * ny - (y1 + 0.5 * L1 * np.sin(phi1) - s[1]) * nx
    return -value * nx, -value * ny, -value * arm


@njit(cache=True)
def _accelerations_1(s, u):
    fx, fy, torque = _load_1(s, u[0], u[2])
    return _forces(s, 0.5 * L1, 0.0, M1, J1, fx, fy, torque - C_SPRING * (s[2] - PHI_1) - D_SPRING * s[5])


@njit(cache=True)
def _accelerations_2(s, u):
    fx, fy, torque = _load_2(s, u[0], u[2], u[3], u[4])
    return _forces(s, 0.5 * L2, PIVOT_2, M2, J2, fx, fy, torque)


@njit(cache=True)
def rod_1(t, s, u):
    ax, ay, a = _accelerations_1(s, u)
    px, py, turn = _load_1(s, u[1], u[2])
    return np.array([s[3] + px, s[4] + py, s[5] + turn, ax, ay, a])


@njit(cache=True)
def rod_2(t, s, u):
    ax, ay, a = _accelerations_2(s, u)
    px, py, turn = _load_2(s, u[1], u[2], u[3], u[4])
    return np.array([s[3] + px, s[4] + py, s[5] + turn, ax, ay, a])


@njit(cache=True)
def rod_1_motion(t, s, u):
    return np.concatenate((s, np.array(_accelerations_1(s, u))))


@njit(cache=True)
def rod_2_motion(t, s, u):
    return np.concatenate((s, np.array(_accelerations_2(s, u))))


@njit(cache=True)
def levels(x1, y1, phi1, vx1, vy1, w1, ax1, ay1, a1, x2, y2, phi2, vx2, vy2, w2, ax2, ay2, a2):
    """Distance of the tip of rod 1 from the axis of rod 2, and its derivatives."""
    rx, ry = 0.5 * L1 * np.cos(phi1), 0.5 * L1 * np.sin(phi1)
    nx, ny = -np.sin(phi2), np.cos(phi2)
    dx, dy = x1 + rx - x2, y1 + ry - y2
    vx, vy = vx1 - ry * w1 - vx2, vy1 + rx * w1 - vy2
    ax, ay = ax1 - ry * a1 - rx * w1**2 - ax2, ay1 + rx * a1 - ry * w1**2 - ay2
    mx, my = -ny * w2, nx * w2  # rate of the normal
    ox, oy = -ny * a2 - nx * w2**2, nx * a2 - ny * w2**2  # and its acceleration
    return (
        dx * nx + dy * ny,
        vx * nx + vy * ny + dx * mx + dy * my,
        ax * nx + ay * ny + 2.0 * (vx * mx + vy * my) + dx * ox + dy * oy,
    )


def split() -> cs.System:
    """Both rods with all their coordinates, and their joint."""
    start_1 = [0.5 * L1 * np.cos(PHI_1), 0.5 * L1 * np.sin(PHI_1), PHI_1, 0.0, 0.0, 0.0]
    start_2 = [PIVOT_2 + 0.5 * L2 * np.cos(PHI_2), 0.5 * L2 * np.sin(PHI_2), PHI_2, 0.0, 0.0, 0.0]
    options = {"outputs": MOTION, "integrator": "ode4", "internal_step": INNER}
    one = cs.Ode(rod_1, rod_1_motion, x0=start_1, inputs=["lam", "mu", "phi2"], **options)
    two = cs.Ode(rod_2, rod_2_motion, x0=start_2, inputs=["lam", "mu", "x1", "y1", "phi1"], **options)
    system = cs.System({"one": one, "two": two})
    system.connect("two.phi", "one.phi2")
    for source, target in (("one.x", "two.x1"), ("one.y", "two.y1"), ("one.phi", "two.phi1")):
        system.connect(source, target)
    of = [f"{name}.{signal}" for name in ("one", "two") for signal in MOTION]
    system.constraint({"lam": ["one.lam", "two.lam"]}, levels, of=of, correction={"mu": ["one.mu", "two.mu"]})
    return system


def sag(r: cs.Result) -> np.ndarray:
    """Displacements of both bushings: rows (x, y) of rod 1, then of rod 2."""
    ends = []
    for name, half, pivot in (("one", 0.5 * L1, 0.0), ("two", 0.5 * L2, PIVOT_2)):
        phi = r[f"{name}.phi"]
        ends += [r[f"{name}.x"] - half * np.cos(phi) - pivot, r[f"{name}.y"] - half * np.sin(phi)]
    return np.array(ends)


def _parts(r: cs.Result) -> list[np.ndarray]:
    near = sag(r)
    return [
        rod(near[:2].T, L1, r["one.phi"]),
        rod(near[2:].T + np.array([PIVOT_2, 0.0]), L2, r["two.phi"]),
    ]


#: The reference is that of ideal hinges.
ON_BUSHINGS = replace(
    model.SPRUNG_JOINT,
    name="crank and sliding lever on bushings",
    build=lambda h: split(),
    motion=tuple(f"{name}.{signal}" for name in ("one", "two") for signal in MOTION),
    levels=levels,
    energy=lambda r: model.SPRUNG_JOINT.energy(r) + 0.5 * C_HINGE * (sag(r) ** 2).sum(axis=0),
    parts=_parts,
)
