"""Two hinged rods, the tip of rod 1 slides along rod 2: the "slider-crank" of Lu (2015), 2.3.3.

Rod 1 turns about the origin, rod 2 about (1, 0); both angles count from the x-axis. The joint is an inplane joint: the
tip of rod 1 stays on the axis of rod 2, elastically (`flexible`, 2.3.3) or rigidly (`rigid`, 3.3.1.3 and
3.3.2.3; with a torsional spring on rod 1, 3.3.3.3). Each rod knows only its own angle, so what the other one adds
to its load is an input of its own (Lu (2015), 3.2.2, planar):

- rod 1: `lam`, `mu`, and the angle `phi2` of rod 2 (the direction of the force);
- rod 2: `lam`, `mu`, and centre `(x1, y1)` and angle `phi1` of rod 1 (the lever arm).

`spring` is the stiffness and damping of the torsional spring on rod 1, held constant by `System.set`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import njit

import cosolve as cs
from examples.planar.absolute import GROUND, Inplane, Mechanism, Pin
from examples.planar.case import Case, looped, rod

L1, L2, PIVOT_2 = np.sqrt(2.0), 2.0, 1.0
M1, M2, J1, J2 = np.sqrt(2.0), 2.0, np.sqrt(2.0) / 6.0, 2.0 / 3.0
GRAVITY, STIFFNESS = 9.81, 1e3
#: Moments of inertia about the hinges, and the moments of the weights of lying rods.
I1, I2 = J1 + M1 * L1**2 / 4, J2 + M2 * L2**2 / 4
WEIGHT_1, WEIGHT_2 = GRAVITY * M1 * L1 / 2, GRAVITY * M2 * L2 / 2
PHI_1, PHI_2 = np.pi / 4, np.pi / 2
#: Stiffness and damping of the torsional spring, relaxed at pi/4.
SPRING = (100.0, 5.0)
OUTPUTS_1, OUTPUTS_2 = ("phi", "w", "a", "x", "y"), ("phi", "w", "a")


# -- the rods ------------------------------------------------------------------------------------------------


@njit(cache=True)
def _turn_1(phi, w, lam, phi2, c, d):
    return (-WEIGHT_1 * np.cos(phi) - c * (phi - PHI_1) - d * w + L1 * np.cos(phi - phi2) * lam) / I1


@njit(cache=True)
def _arm(phi, x1, y1, phi1):
    """Distance from the hinge of rod 2 to the tip of rod 1, along rod 2."""
    rx, ry = x1 + 0.5 * L1 * np.cos(phi1) - PIVOT_2, y1 + 0.5 * L1 * np.sin(phi1)
    return rx * np.cos(phi) + ry * np.sin(phi)


@njit(cache=True)
def _turn_2(phi, lam, arm):
    return (-WEIGHT_2 * np.cos(phi) - arm * lam) / I2


@njit(cache=True)
def rod_1(t, s, u):
    lam, mu, phi2, c, d = u
    return np.array([s[1] + L1 * np.cos(s[0] - phi2) * mu, _turn_1(s[0], s[1], lam, phi2, c, d)])


@njit(cache=True)
def rod_1_motion(t, s, u):
    turn = _turn_1(s[0], s[1], u[0], u[2], u[3], u[4])
    return np.array([s[0], s[1], turn, 0.5 * L1 * np.cos(s[0]), 0.5 * L1 * np.sin(s[0])])


@njit(cache=True)
def rod_2(t, s, u):
    lam, mu, x1, y1, phi1 = u
    arm = _arm(s[0], x1, y1, phi1)
    return np.array([s[1] - arm * mu, _turn_2(s[0], lam, arm)])


@njit(cache=True)
def rod_2_motion(t, s, u):
    return np.array([s[0], s[1], _turn_2(s[0], u[0], _arm(s[0], u[2], u[3], u[4]))])


@njit(cache=True)
def levels(phi1, w1, a1, phi2, w2, a2):
    """Distance of the tip of rod 1 from the axis of rod 2, and its derivatives."""
    sin, cos, w = L1 * np.sin(phi1 - phi2), L1 * np.cos(phi1 - phi2), w1 - w2
    g = sin + PIVOT_2 * np.sin(phi2)
    dg = cos * w + PIVOT_2 * np.cos(phi2) * w2
    ddg = cos * (a1 - a2) - sin * w**2 + PIVOT_2 * (np.cos(phi2) * a2 - np.sin(phi2) * w2**2)
    return g, dg, ddg


def law(phi1: float, phi2: float) -> float:
    """Force of the elastic joint along the normal of rod 2."""
    return -STIFFNESS * float(levels(phi1, 0.0, 0.0, phi2, 0.0, 0.0)[0])


# -- their response, leading terms (Lu (2015), App. B, Eq. 200 with its sign mended) -----------------------------


def response_1(s: np.ndarray, u: np.ndarray, by_velocity: float, by_position: float) -> np.ndarray:
    """Derivatives of (phi, w, a, x, y) by (lam, mu, phi2, spring); the spring is no coupling variable: zeros."""
    phi, (lam, mu, phi2) = s[0], u[:3]
    arm, turned = L1 * np.cos(phi - phi2), L1 * np.sin(phi - phi2)  # the latter: derivative of the arm by phi2
    by = np.zeros((5, 5))
    by[2] = [arm / I1, 0.0, lam * turned / I1, 0.0, 0.0]
    by[1] = by_velocity * by[2]
    by[0] = by_position * by[2] + by_velocity * np.array([0.0, arm, mu * turned, 0.0, 0.0])
    by[3], by[4] = -0.5 * L1 * np.sin(phi) * by[0], 0.5 * L1 * np.cos(phi) * by[0]
    return by


def response_2(s: np.ndarray, u: np.ndarray, by_velocity: float, by_position: float) -> np.ndarray:
    """Derivatives of (phi, w, a) by (lam, mu, x1, y1, phi1)."""
    phi, (lam, mu, x1, y1, phi1) = s[0], u
    arm = _arm(phi, x1, y1, phi1)
    moved = np.array([np.cos(phi), np.sin(phi), 0.5 * L1 * np.sin(phi - phi1)])  # the arm by x1, y1, phi1
    by = np.zeros((3, 5))
    by[2] = np.array([-arm, 0.0, *(-lam * moved)]) / I2
    by[1] = by_velocity * by[2]
    by[0] = by_position * by[2] + by_velocity * np.array([0.0, -arm, *(-mu * moved)])
    return by


# -- the coupled system --------------------------------------------------------------------------------------


def _rods(spring: tuple[float, float], integrator: str, h: float, approximate: bool = False) -> cs.System:
    options = {"internal_step": h} if integrator.startswith("ode") else {"rtol": 1e-12, "atol": 1e-12}
    one: cs.Subsystem = cs.Ode(
        looped(rod_1),
        rod_1_motion,
        x0=[PHI_1, 0.0],
        inputs=["lam", "mu", "phi2", ("spring", 2)],
        outputs=OUTPUTS_1,
        integrator=integrator,
        **options,
    )
    two: cs.Subsystem = cs.Ode(
        looped(rod_2),
        rod_2_motion,
        x0=[PHI_2, 0.0],
        inputs=["lam", "mu", "x1", "y1", "phi1"],
        outputs=OUTPUTS_2,
        integrator=integrator,
        **options,
    )
    if approximate:
        one, two = cs.ApproximateJacobian(one, response_1), cs.ApproximateJacobian(two, response_2)
    system = cs.System({"one": one, "two": two})
    system.set("one.spring", spring)
    system.connect("two.phi", "one.phi2")
    system.connect("one.x", "two.x1")
    system.connect("one.y", "two.y1")
    system.connect("one.phi", "two.phi1")
    return system


def flexible(*, integrator: str = "ode4", h: float = 1e-3) -> cs.System:
    """The elastic joint, both rods take its force (F/F), n_g = 5."""
    system = _rods((0.0, 0.0), integrator, h)
    system.law({"one.lam": 1.0, "two.lam": 1.0}, law, of=["one.phi", "two.phi"], name="lam")
    for port in ("one.mu", "two.mu"):
        system.set(port, 0.0)
    return system


def rigid(
    spring: tuple[float, float] = (0.0, 0.0), *, integrator: str = "ode4", h: float = 1e-3, approximate: bool = False
) -> cs.System:
    """The rigid joint, with a torsional spring where one is given; `approximate` takes the leading terms above."""
    system = _rods(spring, integrator, h, approximate)
    of = [f"{rod}.{name}" for rod in ("one", "two") for name in ("phi", "w", "a")]
    system.constraint({"lam": ["one.lam", "two.lam"]}, levels, of=of, correction={"mu": ["one.mu", "two.mu"]})
    return system


# -- the whole mechanism -------------------------------------------------------------------------------------


def _start() -> np.ndarray:
    x1, y1 = 0.5 * L1 * np.cos(PHI_1), 0.5 * L1 * np.sin(PHI_1)
    x2, y2 = PIVOT_2 + 0.5 * L2 * np.cos(PHI_2), 0.5 * L2 * np.sin(PHI_2)
    return np.array([x1, y1, PHI_1, x2, y2, PHI_2])


_HINGES = (Pin(0, (-0.5 * L1, 0.0)), Pin(1, (-0.5 * L2, 0.0), GROUND, (PIVOT_2, 0.0)))


def reference(times: np.ndarray, spring: tuple[float, float] = (0.0, 0.0)) -> tuple[np.ndarray, np.ndarray]:
    """Angles of both rods and the joint force at `times`, rigid joint, monolithic in absolute coordinates."""

    def torsion(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        load = np.zeros(6)
        load[2] = -spring[0] * (q[2] - PHI_1) - spring[1] * v[2]
        return load

    joints = (*_HINGES, Inplane(0, (0.5 * L1, 0.0), 1, (0.0, 0.0)))
    q, _, lam = Mechanism((M1, M2), (J1, J2), joints, torsion).solve(_start(), times)
    return q[:, [2, 5]], lam[:, -1]


def reference_flexible(times: np.ndarray) -> np.ndarray:
    """Rows (phi1, w1, phi2, w2), elastic joint, monolithic in absolute coordinates.

    The force of the joint is the gradient of `STIFFNESS / 2 * distance^2`, taken in the coordinates of both bodies.
    """

    def elastic(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        tip = q[:2] + 0.5 * L1 * np.array([np.cos(q[2]), np.sin(q[2])])
        normal, along = np.array([-np.sin(q[5]), np.cos(q[5])]), np.array([np.cos(q[5]), np.sin(q[5])])
        gap = tip - q[3:5]
        turn = 0.5 * L1 * np.array([-np.sin(q[2]), np.cos(q[2])])
        gradient = np.array([*normal, normal @ turn, *(-normal), -(gap @ along)])
        return -STIFFNESS * (gap @ normal) * gradient

    q, v, _ = Mechanism((M1, M2), (J1, J2), _HINGES, elastic).solve(_start(), times)
    return np.array([q[:, 2], v[:, 2], q[:, 5], v[:, 5]]).T


def energy(phi1, w1, phi2, w2, stiffness: float = 0.0, spring: float = 0.0):
    """Kinetic, gravitational and elastic energy (arrays over time)."""
    kinetic = 0.5 * (I1 * w1**2 + I2 * w2**2)
    gap = L1 * np.sin(phi1 - phi2) + PIVOT_2 * np.sin(phi2)
    elastic = 0.5 * stiffness * gap**2 + 0.5 * spring * (phi1 - PHI_1) ** 2
    return kinetic + WEIGHT_1 * np.sin(phi1) + WEIGHT_2 * np.sin(phi2) + elastic


def _parts(r: cs.Result) -> list[np.ndarray]:
    return [rod(np.zeros(2), L1, r["one.phi"]), rod(np.array([PIVOT_2, 0.0]), L2, r["two.phi"])]


def _motion(r: cs.Result) -> tuple[np.ndarray, ...]:
    return r["one.phi"], r["one.w"], r["two.phi"], r["two.w"]


def _elastic_reference(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    states = reference_flexible(times)
    return states[:, [0, 2]], np.array([law(*row) for row in states[:, [0, 2]]])


RIGID_JOINT = Case(
    name="crank and sliding lever, rigid joint",
    build=lambda h: rigid(h=h),
    reference=reference,
    t_end=1.0,
    coordinates=("one.phi", "two.phi"),
    motion=tuple(f"{name}.{signal}" for name in ("one", "two") for signal in ("phi", "w", "a")),
    levels=levels,
    energy=lambda r: energy(*_motion(r)),
    parts=_parts,
)
SPRUNG_JOINT = replace(
    RIGID_JOINT,
    name="crank and sliding lever with torsional spring",
    build=lambda h: rigid(SPRING, h=h),
    reference=lambda times: reference(times, SPRING),
    energy=lambda r: energy(*_motion(r), spring=SPRING[0]),
    conservative=False,
)
ELASTIC_JOINT = replace(
    RIGID_JOINT,
    name="crank and sliding lever, elastic joint",
    build=lambda h: flexible(h=h),
    reference=_elastic_reference,
    energy=lambda r: energy(*_motion(r), stiffness=STIFFNESS),
    sampled=0.05,
)
