"""Planar four-bar linkage, cut in the middle of its coupler (Lu (2015), 3.3.3.5).

Rod 1 (1 kg, 1 m) turns about the origin and is driven by the moment 1 Nm/s * t; rod 3 (2 kg, 2 m) turns about (2, 0).
The coupler of 2 m is cut into two halves 21 and 22 (1 kg, 1 m each): subsystem one holds rods 1 and 21, subsystem two
rods 22 and 3. The planar fixed joint between the halves has three conditions: two for the position and one for the
angle, `lam = (force x, force y, moment)` on half 21, their opposites on half 22. Pivot distance and branch are not
given by the source; they are chosen here.
"""

from __future__ import annotations

import numpy as np
from numba import njit

import cosolve as cs
from examples.planar.absolute import GROUND, Mechanism, Pin, SameAngle
from examples.planar.case import Case, looped, rod

GRAVITY, PIVOT_3 = 9.81, 2.0
PHI_1 = np.pi / 4


def _closed(phi: float) -> tuple[float, float]:
    """Angles of coupler and rod 3 (both 2 m) for an angle of rod 1, open branch."""
    dx, dy = PIVOT_3 - np.cos(phi), -np.sin(phi)  # from the tip of rod 1 to the pivot of rod 3
    direction, half = np.arctan2(dy, dx), np.arccos(np.hypot(dx, dy) / 4.0)
    return direction + half, np.pi + direction - half


PHI_2, PHI_3 = _closed(PHI_1)

MOTION_1 = ("phi1", "phi21", "w1", "w21", "a1", "a21")
MOTION_2 = ("phi22", "phi3", "w22", "w3", "a22", "a3")


@njit(cache=True)
def _solve(a, b, d, f, g):
    det = a * d - b * b
    return (d * f - b * g) / det, (a * g - b * f) / det


@njit(cache=True)
def _forces_1(t, phi1, phi21, w1, w21, lx, ly, lp):
    """Accelerations of rods 1 and 21: J + m l^2/4 (+ m_21 l^2) = 4/3 and 1/3, coupling m l^2/2 cos = cos/2."""
    c1, s1, c2, s2 = np.cos(phi1), np.sin(phi1), np.cos(phi21), np.sin(phi21)
    half_cos, half_sin = 0.5 * np.cos(phi1 - phi21), 0.5 * np.sin(phi1 - phi21)
    f = t - 1.5 * GRAVITY * c1 + c1 * ly - s1 * lx - half_sin * w21**2
    g = -0.5 * GRAVITY * c2 + c2 * ly - s2 * lx + lp + half_sin * w1**2
    return _solve(4.0 / 3.0, half_cos, 1.0 / 3.0, f, g)


@njit(cache=True)
def _forces_2(phi22, phi3, w22, w3, lx, ly, lp):
    """Accelerations of rods 22 and 3; the centre of rod 22 is (2, 0) + 2 e(phi3) - e(phi22) / 2."""
    c2, s2, c3, s3 = np.cos(phi22), np.sin(phi22), np.cos(phi3), np.sin(phi3)
    cos, sin = np.cos(phi3 - phi22), np.sin(phi3 - phi22)
    f = 0.5 * GRAVITY * c2 + c2 * ly - s2 * lx - lp - sin * w3**2
    g = -4.0 * GRAVITY * c3 - 2.0 * (c3 * ly - s3 * lx) + sin * w22**2
    return _solve(1.0 / 3.0, -cos, 20.0 / 3.0, f, g)


@njit(cache=True)
def left(t, s, u):
    phi1, phi21, w1, w21 = s
    lx, ly, lp, mx, my, mp = u
    a1, a21 = _forces_1(t, phi1, phi21, w1, w21, lx, ly, lp)
    shift_1 = np.cos(phi1) * my - np.sin(phi1) * mx
    shift_21 = np.cos(phi21) * my - np.sin(phi21) * mx + mp
    return np.array([w1 + shift_1, w21 + shift_21, a1, a21])


@njit(cache=True)
def left_motion(t, s, u):
    a1, a21 = _forces_1(t, s[0], s[1], s[2], s[3], u[0], u[1], u[2])
    return np.array([s[0], s[1], s[2], s[3], a1, a21])


@njit(cache=True)
def right(t, s, u):
    phi22, phi3, w22, w3 = s
    lx, ly, lp, mx, my, mp = u
    a22, a3 = _forces_2(phi22, phi3, w22, w3, lx, ly, lp)
    shift_22 = np.cos(phi22) * my - np.sin(phi22) * mx - mp
    shift_3 = -2.0 * (np.cos(phi3) * my - np.sin(phi3) * mx)
    return np.array([w22 + shift_22, w3 + shift_3, a22, a3])


@njit(cache=True)
def right_motion(t, s, u):
    a22, a3 = _forces_2(s[0], s[1], s[2], s[3], u[0], u[1], u[2])
    return np.array([s[0], s[1], s[2], s[3], a22, a3])


@njit(cache=True)
def _arm(length, phi, w, a):
    """A rod of this length: vector, velocity, acceleration."""
    x, y = length * np.cos(phi), length * np.sin(phi)
    return np.array([[x, y], [-y * w, x * w], [-y * a - x * w**2, x * a - y * w**2]])


@njit(cache=True)
def levels(phi1, phi21, w1, w21, a1, a21, phi22, phi3, w22, w3, a22, a3):
    """End of half 21 minus end of half 22, and the difference of their angles, on all three levels."""
    gap = np.zeros((3, 3))
    gap[:, :2] = _arm(1.0, phi1, w1, a1) + _arm(1.0, phi21, w21, a21) + _arm(1.0, phi22, w22, a22)
    gap[:, :2] -= _arm(2.0, phi3, w3, a3)
    gap[0, 0] -= PIVOT_3
    gap[:, 2] = np.array([phi21 - phi22, w21 - w22, a21 - a22])
    return gap[0], gap[1], gap[2]


def split(*, integrator: str = "ode4", h: float = 1e-3) -> cs.System:
    """Both halves of the linkage and their joint."""
    options = {"internal_step": h} if integrator.startswith("ode") else {"rtol": 1e-12, "atol": 1e-12}
    inputs = [("lam", 3), ("mu", 3)]
    one = cs.Ode(
        looped(left),
        left_motion,
        x0=[PHI_1, PHI_2, 0.0, 0.0],
        inputs=inputs,
        outputs=MOTION_1,
        integrator=integrator,
        **options,
    )
    two = cs.Ode(
        looped(right),
        right_motion,
        x0=[PHI_2, PHI_3, 0.0, 0.0],
        inputs=inputs,
        outputs=MOTION_2,
        integrator=integrator,
        **options,
    )
    system = cs.System({"one": one, "two": two})
    of = [f"one.{name}" for name in MOTION_1] + [f"two.{name}" for name in MOTION_2]
    system.constraint({"lam": ["one.lam", "two.lam"]}, levels, of=of, correction={"mu": ["one.mu", "two.mu"]})
    return system


def _drive(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    load = np.zeros(12)
    load[2] = t
    return load


#: Bodies: rod 1, half 21, half 22, rod 3.
MECHANISM = Mechanism(
    masses=(1.0, 1.0, 1.0, 2.0),
    inertias=(1 / 12, 1 / 12, 1 / 12, 2 / 3),
    joints=(
        Pin(0, (-0.5, 0.0)),
        Pin(1, (-0.5, 0.0), 0, (0.5, 0.0)),
        Pin(3, (-1.0, 0.0), GROUND, (PIVOT_3, 0.0)),
        Pin(2, (0.5, 0.0), 3, (1.0, 0.0)),
        Pin(1, (0.5, 0.0), 2, (-0.5, 0.0)),
        SameAngle(1, 2),
    ),
    load=_drive,
)


def reference(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows (phi1, phi21, phi3) and the multipliers of the cut, monolithic in absolute coordinates."""
    e1, e2, e3 = (np.array([np.cos(phi), np.sin(phi)]) for phi in (PHI_1, PHI_2, PHI_3))
    start = np.concatenate(
        [0.5 * e1, [PHI_1], e1 + 0.5 * e2, [PHI_2], e1 + 1.5 * e2, [PHI_2], [PIVOT_3 + e3[0], e3[1]], [PHI_3]]
    )
    q, _, lam = MECHANISM.solve(start, times)
    return q[:, [2, 5, 11]], lam[:, -3:]


def energy(phi1, phi21, w1, w21, phi22, phi3, w22, w3):
    """Kinetic and gravitational energy (arrays over time); the driving moment adds to it."""
    one = 2 / 3 * w1**2 + 1 / 6 * w21**2 + 0.5 * np.cos(phi1 - phi21) * w1 * w21
    two = 1 / 6 * w22**2 + 10 / 3 * w3**2 - np.cos(phi3 - phi22) * w3 * w22
    height = 1.5 * np.sin(phi1) + 0.5 * np.sin(phi21) - 0.5 * np.sin(phi22) + 4.0 * np.sin(phi3)
    return one + two + GRAVITY * height


def _energy(r: cs.Result) -> np.ndarray:
    one = (r[f"one.{name}"] for name in ("phi1", "phi21", "w1", "w21"))
    return energy(*one, *(r[f"two.{name}"] for name in ("phi22", "phi3", "w22", "w3")))


def _parts(r: cs.Result) -> list[np.ndarray]:
    rod_1 = rod(np.zeros(2), 1.0, r["one.phi1"])
    rod_3 = rod(np.array([PIVOT_3, 0.0]), 2.0, r["two.phi3"])
    return [
        rod_1,
        rod(rod_1[:, 1], 1.0, r["one.phi21"]),
        rod(rod_3[:, 1], -1.0, r["two.phi22"]),
        rod_3,
    ]


CASE = Case(
    name="four-bar linkage",
    build=lambda h: split(h=h),
    reference=reference,
    t_end=0.5,
    coordinates=("one.phi1", "one.phi21", "two.phi3"),
    motion=tuple(f"one.{name}" for name in MOTION_1) + tuple(f"two.{name}" for name in MOTION_2),
    levels=levels,
    energy=_energy,
    parts=_parts,
    sampled=0.05,
    conservative=False,
)
