"""A user's solver in ten lines: whatever subset of the contract it implements, it can be coupled."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

import cosolve as cs

EXPLICIT = [
    cs.Jacobi(degree=0),
    cs.Jacobi(degree=2),
    cs.GaussSeidel(degree=1),
    cs.GaussSeidel(degree=1, order=["mass"]),
]
ITERATING = [cs.SemiImplicit(degree=1), cs.SemiImplicit(degree=2, jacobian="difference"), cs.Implicit(degree=1)]


class Minimal(cs.Subsystem):
    """x' = v, v' = -4 x + f by the midpoint rule; a plain number comes back."""

    inputs, outputs = ["f"], ["x"]

    def start(self, t0):
        self.x, self.v = 1.0, 0.0
        return self.x

    def advance(self, t0, t1, u):
        for k in range(20):
            h = (t1 - t0) / 20
            f = u(t0 + (k + 0.5) * h)[0]
            v_half = self.v + 0.5 * h * (f - 4 * self.x)
            x_half = self.x + 0.5 * h * self.v
            self.x, self.v = self.x + h * v_half, self.v + h * (f - 4 * x_half)
        return self.x


class WithRollback(Minimal):
    def save(self):
        return self.x, self.v

    def restore(self, state):
        self.x, self.v = state


class WithDict(WithRollback):
    outputs = ("x", "energy")

    def start(self, t0):
        super().start(t0)
        return self.all()

    def advance(self, t0, t1, u):
        super().advance(t0, t1, u)
        return self.all()

    def all(self):
        return {"energy": 0.5 * self.v**2 + 2 * self.x**2, "x": self.x}


class WithVector(WithRollback):
    inputs, outputs = [("f", 1)], [("state", 2), "x"]

    def start(self, t0):
        super().start(t0)
        return [[self.x, self.v], self.x]

    def advance(self, t0, t1, u):
        super().advance(t0, t1, u)
        return np.array([self.x, self.v]), self.x


class WithFlatArray(WithVector):
    def start(self, t0):
        return np.concatenate([np.ravel(v) for v in super().start(t0)])

    def advance(self, t0, t1, u):
        super().advance(t0, t1, u)
        return np.array([self.x, self.v, self.x])


class Logger(cs.Subsystem):
    """A sink: no outputs, nothing to return."""

    inputs = ("signal",)

    def start(self, t0):
        self.seen = []

    def advance(self, t0, t1, u):
        self.seen.append((t1, float(u(t1)[0])))


def coupled(mass):
    """The mass on a first-order actuator `f' = -f - x`; the exact solution is a matrix exponential."""
    actuator = cs.Linear([[-1.0]], [[-1.0]], [[1.0]], x0=[0.5], inputs=["x"], outputs=["f"])
    system = cs.System({"mass": mass, "actuator": actuator})
    system.connect("mass.x", "actuator.x")
    system.connect("actuator.f", "mass.f") if mass.inputs == ["f"] else system.law(
        "mass.f", lambda f: np.array([f]), of="actuator.f"
    )
    return system


A = np.array([[0, 1, 0], [-4, 0, 1], [-1, 0, -1.0]])
EXACT = (expm(A * 2.0) @ [1.0, 0.0, 0.5])[0]


def label(value):
    return value.label if isinstance(value, cs.Method) else value.__name__


@pytest.mark.sample(18)
@pytest.mark.parametrize("kind", [Minimal, WithRollback, WithDict, WithVector, WithFlatArray], ids=label)
@pytest.mark.parametrize("method", EXPLICIT + ITERATING, ids=label)
def test_every_kind_runs_under_every_method_it_allows(kind, method):
    system = coupled(kind())
    if kind is Minimal and method in ITERATING:
        with pytest.raises(
            cs.errors.CapabilityError, match=r"'mass' \(Minimal\).*save and restore.*Jacobi or GaussSeidel"
        ):
            cs.simulate(system, t_end=2.0, method=method, step=0.02)
        return
    result = cs.simulate(system, t_end=2.0, method=method, step=0.02)
    assert result["mass.x"][-1] == pytest.approx(EXACT, abs=0.02 if method.degree == 0 else 1e-3)


@pytest.mark.parametrize("kind", [Minimal, WithRollback, WithVector], ids=label)
def test_adaptive_steps_repeat_only_where_that_is_possible(kind):
    system = coupled(kind())
    result = cs.simulate(system, t_end=2.0, method=cs.Jacobi(degree=1), step=cs.Adaptive(rtol=1e-3, first_step=0.5))
    assert result["mass.x"][-1] == pytest.approx(EXACT, abs=0.02 if kind is not Minimal else 0.3)
    assert (result.stats.rejected > 0) == (kind is not Minimal)


def test_a_sink_may_return_nothing():
    for method in EXPLICIT:
        logger = Logger()
        system = cs.System({"mass": Minimal(), "log": logger})
        system.set("mass.f", 0.0)
        system.connect("mass.x", "log.signal")
        result = cs.simulate(system, t_end=1.0, method=method, step=0.1)
        points = {round(0.1 * n, 9) for n in range(1, 11)}  # besides, some saw the short pieces of a first macro step
        assert points <= {round(t, 9) for t, _ in logger.seen}
        assert logger.seen[-1][0] == 1.0
        assert "log.signal" in result


def test_an_own_subsystem_follows_a_master():
    system = coupled(Minimal())
    actuator = cs.Ode(
        lambda t, x, u: -x - u,
        lambda t, x, u: x,
        x0=[0.5],
        inputs=["x"],
        outputs=["f"],
        integrator="ode4",
        internal_step=0.03,
    )
    system = cs.System({"mass": Minimal(), "actuator": actuator})
    system.connect("mass.x", "actuator.x")
    system.connect("actuator.f", "mass.f")
    result = cs.simulate(system, t_end=2.0, method=cs.LeaderFollower(degree=1, leader="actuator"))
    assert result["mass.x"][-1] == pytest.approx(EXACT, abs=1e-3)


def test_an_own_subsystem_may_lead():
    class Leader(Minimal):
        def step(self, t0, t_max, u):
            t1 = min(t0 + 0.013, t_max)
            return t1, self.advance(t0, t1, u)

    result = cs.simulate(coupled(Leader()), t_end=2.0, method=cs.LeaderFollower(degree=2, leader="mass"))
    assert result["mass.x"][-1] == pytest.approx(EXACT, abs=1e-3)
    assert len(result) == int(np.ceil(2.0 / 0.013)) + 1


def test_outputs_may_live_in_one_reused_array():
    class Reuses(WithFlatArray):
        def __init__(self):
            self.buffer = np.zeros(3)

        def advance(self, t0, t1, u):
            self.buffer[:] = super().advance(t0, t1, u)
            return self.buffer

    for method in EXPLICIT + ITERATING:
        plain = cs.simulate(coupled(WithFlatArray()), t_end=1.0, method=method, step=0.05)
        reused = cs.simulate(coupled(Reuses()), t_end=1.0, method=method, step=0.05)
        assert np.array_equal(plain.column("y"), reused.column("y"))


def test_an_own_subsystem_with_direct_feed_through_is_consistent_at_the_start():
    class Damper(cs.Subsystem):
        inputs, outputs = ["v"], ["force"]

        def start(self, t0):
            return None

        def output(self, t, u):
            return -3.0 * u[0]

        def advance(self, t0, t1, u):
            return self.output(t1, u.end)

    system = cs.System({"damper": Damper(), "one": cs.Static(lambda t, u: 2.0, inputs=[], outputs=["v"])})
    system.connect("one.v", "damper.v")
    result = cs.simulate(system, t_end=1.0, method=cs.Jacobi(), step=0.5)
    assert result["damper.force"].tolist() == [-6.0, -6.0, -6.0]
