"""Slider-crank, cut between crank and connecting rod (Lu (2015), 3.3.3.4).

The crank (rod 1) turns about the origin under gravity and a constant force of 10 N in x at its centre. The connecting
rod (rod 2) ends in a slider on the x-axis that a spring of 10 N/m holds; the spring is relaxed at the start, where the
crank stands upright and the slider at x = sqrt(3). Minimal coordinates: the angle `phi`
of the crank; position `s` of the slider and angle `phi` of the connecting rod, which points from the slider to the
crank. The joint is a pin: `lam` acts on the tip of the crank, its opposite on the rod.
"""

from __future__ import annotations

import numpy as np
from numba import njit

import cosolve as cs
from examples.planar.absolute import GROUND, Inplane, Mechanism, Pin
from examples.planar.case import Case, looped, rod

GRAVITY, FORCE, STIFFNESS = 9.81, 10.0, 10.0
#: Crank: length 1, mass 1, J = 1/12. Connecting rod: length 2, mass 2, J = 2/3.
INERTIA_1, M2, J2 = 1.0 / 3.0, 2.0, 2.0 / 3.0
PHI_1, PHI_2, SLIDER = np.pi / 2, 5.0 * np.pi / 6.0, np.sqrt(3.0)

MOTION_1 = ("phi", "w", "a")
MOTION_2 = ("s", "phi", "v", "w", "as", "a")


@njit(cache=True)
def _turn_1(phi, lx, ly):
    cos, sin = np.cos(phi), np.sin(phi)
    return (-0.5 * GRAVITY * cos - 0.5 * FORCE * sin + cos * ly - sin * lx) / INERTIA_1


@njit(cache=True)
def _forces_2(s, phi, w, lx, ly):
    """Accelerations of slider and rod under the force -(lx, ly) at the crank end of the rod."""
    cos, sin = np.cos(phi), np.sin(phi)
    f_s = -STIFFNESS * (s - SLIDER) - lx + M2 * cos * w**2
    f_phi = -M2 * GRAVITY * cos - 2.0 * (cos * ly - sin * lx)
    a, b, d = M2, -M2 * sin, J2 + M2
    det = a * d - b * b
    return (d * f_s - b * f_phi) / det, (a * f_phi - b * f_s) / det


@njit(cache=True)
def crank(t, s, u):
    lx, ly, mx, my = u
    return np.array([s[1] + np.cos(s[0]) * my - np.sin(s[0]) * mx, _turn_1(s[0], lx, ly)])


@njit(cache=True)
def crank_motion(t, s, u):
    return np.array([s[0], s[1], _turn_1(s[0], u[0], u[1])])


@njit(cache=True)
def connecting_rod(t, s, u):
    lx, ly, mx, my = u
    a_s, a = _forces_2(s[0], s[1], s[3], lx, ly)
    return np.array([s[2] - mx, s[3] - 2.0 * (np.cos(s[1]) * my - np.sin(s[1]) * mx), a_s, a])


@njit(cache=True)
def connecting_rod_motion(t, s, u):
    a_s, a = _forces_2(s[0], s[1], s[3], u[0], u[1])
    return np.array([s[0], s[1], s[2], s[3], a_s, a])


@njit(cache=True)
def levels(phi1, w1, a1, s, phi2, v, w2, a_s, a2):
    """Tip of the crank minus crank end of the rod: position, velocity, acceleration."""
    c1, s1, c2, s2 = np.cos(phi1), np.sin(phi1), 2.0 * np.cos(phi2), 2.0 * np.sin(phi2)
    g = np.array([c1 - s - c2, s1 - s2])
    dg = np.array([-s1 * w1 - v + s2 * w2, c1 * w1 - c2 * w2])
    ddg = np.array([-s1 * a1 - c1 * w1**2 - a_s + s2 * a2 + c2 * w2**2, c1 * a1 - s1 * w1**2 - c2 * a2 + s2 * w2**2])
    return g, dg, ddg


def split(*, integrator: str = "ode4", h: float = 1e-3) -> cs.System:
    """Crank and connecting rod and their joint."""
    options = {"internal_step": h} if integrator.startswith("ode") else {"rtol": 1e-12, "atol": 1e-12}
    inputs = [("lam", 2), ("mu", 2)]
    one = cs.Ode(
        looped(crank), crank_motion, x0=[PHI_1, 0.0], inputs=inputs, outputs=MOTION_1, integrator=integrator, **options
    )
    start_2 = [SLIDER, PHI_2, 0.0, 0.0]
    two = cs.Ode(
        looped(connecting_rod),
        connecting_rod_motion,
        x0=start_2,
        inputs=inputs,
        outputs=MOTION_2,
        integrator=integrator,
        **options,
    )
    system = cs.System({"one": one, "two": two})
    of = [f"one.{name}" for name in MOTION_1] + [f"two.{name}" for name in MOTION_2]
    system.constraint({"lam": ["one.lam", "two.lam"]}, levels, of=of, correction={"mu": ["one.mu", "two.mu"]})
    return system


def _loads(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    load = np.zeros(6)
    load[0] = FORCE
    end = -np.array([np.cos(q[5]), np.sin(q[5])])  # from the centre of the rod to the slider
    pull = -STIFFNESS * (q[3] + end[0] - SLIDER)
    load[3], load[5] = pull, -end[1] * pull
    return load


MECHANISM = Mechanism(
    masses=(1.0, M2),
    inertias=(1.0 / 12.0, J2),
    joints=(Pin(0, (-0.5, 0.0)), Inplane(1, (-1.0, 0.0), GROUND), Pin(0, (0.5, 0.0), 1, (1.0, 0.0))),
    load=_loads,
)


def reference(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows (phi1, slider, phi2) and the joint force, monolithic in absolute coordinates."""
    start = np.array([0.0, 0.5, PHI_1, SLIDER + np.cos(PHI_2), np.sin(PHI_2), PHI_2])
    q, _, lam = MECHANISM.solve(start, times)
    return np.array([q[:, 2], q[:, 3] - np.cos(q[:, 5]), q[:, 5]]).T, lam[:, -2:]


def energy(phi1, w1, s, phi2, v, w2):
    """Kinetic, gravitational and elastic energy, and the work still in the constant force (arrays over time)."""
    vx, vy = v - np.sin(phi2) * w2, np.cos(phi2) * w2
    kinetic = 0.5 * INERTIA_1 * w1**2 + 0.5 * M2 * (vx**2 + vy**2) + 0.5 * J2 * w2**2
    potential = GRAVITY * (0.5 * np.sin(phi1) + M2 * np.sin(phi2)) - 0.5 * FORCE * np.cos(phi1)
    return kinetic + potential + 0.5 * STIFFNESS * (s - SLIDER) ** 2


def _energy(r: cs.Result) -> np.ndarray:
    return energy(r["one.phi"], r["one.w"], *(r[f"two.{name}"] for name in ("s", "phi", "v", "w")))


def _parts(r: cs.Result) -> list[np.ndarray]:
    slider = np.array([r["two.s"], np.zeros(len(r.t))]).T
    box = slider[:, np.newaxis] + np.array([[-0.15, -0.08], [0.15, -0.08], [0.15, 0.08], [-0.15, 0.08], [-0.15, -0.08]])
    return [rod(np.zeros(2), 1.0, r["one.phi"]), rod(slider, 2.0, r["two.phi"]), box]


CASE = Case(
    name="slider-crank",
    build=lambda h: split(h=h),
    reference=reference,
    t_end=1.0,
    coordinates=("one.phi", "two.s", "two.phi"),
    motion=tuple(f"one.{name}" for name in MOTION_1) + tuple(f"two.{name}" for name in MOTION_2),
    levels=levels,
    energy=_energy,
    parts=_parts,
    sampled=0.05,
)
