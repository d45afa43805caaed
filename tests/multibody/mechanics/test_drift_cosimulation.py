"""P4: a drift remedy inside a co-simulated subsystem (applied-force 3.3 and 4.5), crank with sliding lever, F/F, k = 0.

Subsystem 1 (the crank) in absolute coordinates against the same in its minimal coordinate; the projection belongs to
`advance`, so predictor and perturbed runs see it too.
"""

import numpy as np
import pytest
from tests.multibody.mechanics.constrained import Constrained, rk4_step

import cosolve as cs

G = 9.81
M1, J1, L1 = np.sqrt(2), np.sqrt(2) / 6, np.sqrt(2)
H, SUBSTEPS, T = 1e-3, 2, 1.0


class Crank(cs.Subsystem):
    """The crank in (x, y, phi) with two constraints: index 1, RK4, with or without projection."""

    inputs, outputs = ["lam", "phi2"], ["phi", "x", "y"]

    def __init__(self, projected):
        self.projected = projected
        self.worst = 0.0

    def system(self, u, t0, t1):
        def force(t, q, v):
            lam, phi2 = u(t)
            fx, fy = -np.sin(phi2) * lam, np.cos(phi2) * lam
            rx, ry = L1 / 2 * np.cos(q[2]), L1 / 2 * np.sin(q[2])
            return np.array([fx, fy - M1 * G, rx * fy - ry * fx])

        return Constrained(
            np.diag([M1, M1, J1]),
            force,
            lambda q: np.array([q[0] - L1 / 2 * np.cos(q[2]), q[1] - L1 / 2 * np.sin(q[2])]),
            lambda q: np.array([[1.0, 0, L1 / 2 * np.sin(q[2])], [0, 1.0, -L1 / 2 * np.cos(q[2])]]),
            lambda q, v: v[2] ** 2 * L1 / 2 * np.array([np.cos(q[2]), np.sin(q[2])]),
        )

    def start(self, t0):
        self.q = np.array([L1 / 2 * np.cos(np.pi / 4), L1 / 2 * np.sin(np.pi / 4), np.pi / 4])
        self.v = np.zeros(3)
        return self.q[[2, 0, 1]]

    def advance(self, t0, t1, u):
        system, h = self.system(u, t0, t1), (t1 - t0) / SUBSTEPS
        for k in range(SUBSTEPS):
            self.q, self.v, _ = rk4_step(system, t0 + k * h, h, self.q, self.v, 0.0, 0.0)
            if self.projected:
                self.q, self.v = system.project(self.q, self.v)
        self.worst = max(self.worst, np.abs(system.c(self.q)).max())
        return self.q[[2, 0, 1]]

    def save(self):
        return self.q, self.v

    def restore(self, state):
        self.q, self.v = state


def minimal_crank():
    def rhs(t, x, u):
        lam, phi2 = u
        return [x[1], (-M1 * G * L1 / 2 * np.cos(x[0]) + L1 * np.cos(x[0] - phi2) * lam) / (4 * J1)]

    return cs.Ode(
        rhs,
        lambda t, x, u: [x[0], L1 / 2 * np.cos(x[0]), L1 / 2 * np.sin(x[0])],
        x0=[np.pi / 4, 0.0],
        inputs=["lam", "phi2"],
        outputs=["phi", "x", "y"],
        integrator="ode4",
        internal_step=H / SUBSTEPS,
    )


def lever(lam="lam"):
    def rhs(t, x, u):
        lam, xs, ys, phi1 = u
        r = np.array([xs + L1 / 2 * np.cos(phi1) - 1.0, ys + L1 / 2 * np.sin(phi1)])
        torque = -(r[0] * np.cos(x[0]) + r[1] * np.sin(x[0])) * lam
        return [x[1], (-2 * G * np.cos(x[0]) + torque) / (8 / 3)]

    return cs.Ode(
        rhs,
        lambda t, x, u: [x[0]],
        x0=[np.pi / 2, 0.0],
        inputs=[lam, "x1", "y1", "phi1"],
        outputs=["phi"],
        integrator="ode4",
        internal_step=H / SUBSTEPS,
    )


def joint_force(phi1, phi2):
    tip = L1 * np.array([np.cos(phi1), np.sin(phi1)]) - [1.0, 0.0]
    return -1e3 * (tip @ [-np.sin(phi2), np.cos(phi2)])


def run(crank, t_end=T):
    system = cs.System({"one": crank, "two": lever()})
    system.law({"one.lam": 1, "two.lam": 1}, joint_force, of=["one.phi", "two.phi"])
    system.connect("two.phi", "one.phi2")
    system.connect("one.x", "two.x1")
    system.connect("one.y", "two.y1")
    system.connect("one.phi", "two.phi1")
    return cs.simulate(system, t_end=t_end, step=H, method=cs.SemiImplicit(degree=0))["one.phi"]


@pytest.fixture(scope="module")
def minimal():
    return run(minimal_crank())


@pytest.mark.sample(1)
@pytest.mark.covers("DR-08")
@pytest.mark.parametrize("projected", [True, False])
def test_absolute_and_minimal_coordinates_agree_in_cosimulation(minimal, projected):
    crank = Crank(projected)
    phi = run(crank)
    assert np.abs(phi - minimal).max() < 1e-11
    if projected:
        assert crank.worst < 1e-14
    else:
        assert 1e-14 < crank.worst < 1e-12  # drift, over one second still small


class _Lever:
    """A joint end whose law is a Python function: force along the lever's normal at the tip of the crank."""

    name, body, kind, constants = "tip", "crank", 0, np.zeros(0)
    inputs = (("lam", 1), ("phi2", 1))

    @staticmethod
    def law(u, z):
        lam, phi2 = u
        phi = 2 * np.arctan2(z[6], z[3])
        force = lam * np.array([-np.sin(phi2), np.cos(phi2), 0.0])
        lever = L1 / 2 * np.array([np.cos(phi), np.sin(phi), 0.0])
        return np.concatenate([force, np.cross(lever, force), np.zeros(6)])


@pytest.mark.covers("DR-08")
def test_the_multibody_subsystem_does_the_same(minimal):
    model = cs.multibody.MultibodyModel(gravity=(0, -G, 0))
    model.planar_body("crank", M1, J1, position=(0.5, 0.5), angle=np.pi / 4)
    model.marker("pin", "crank", (-L1 / 2, 0, 0))
    model.joint("hinge", "revolute", "pin", "ground")
    crank = cs.multibody.MultibodySubsystem(
        model, integrator="rk4", internal_step=H / SUBSTEPS, ends=[_Lever()], monitors=["position_residual"]
    )
    system = cs.System({"one": crank, "two": lever(("lam", 1))})  # a joint end has vector inputs

    def angle(q):
        return 2 * np.arctan2(q[3], q[0])

    system.law(
        {"one.tip_lam": 1, "two.lam": 1},
        lambda q, phi2: [joint_force(angle(q), phi2)],
        of=["one.tip_q", "two.phi"],
    )
    system.connect("two.phi", "one.tip_phi2")
    system.law("two.x1", lambda r: r[0], of=["one.tip_r"])
    system.law("two.y1", lambda r: r[1], of=["one.tip_r"])
    system.law("two.phi1", angle, of=["one.tip_q"])
    result = cs.simulate(system, t_end=0.4, step=H, method=cs.SemiImplicit(degree=0))
    phi = 2 * np.arctan2(result["one.tip_q"][:, 3], result["one.tip_q"][:, 0])
    assert np.abs(phi - minimal[: len(phi)]).max() < 1e-11
    assert result["one.position_residual"].max() < 1e-14
