"""A correction that corrects nothing: rollback and Jacobians are tried out, and who is wrong is named."""

import numpy as np
import pytest

import cosolve as cs
from cosolve.engine.readable import machine
from cosolve.engine.readable.self_check import examine


class Mass(cs.Subsystem):
    """A mass on a spring, by its exact solution under a held force; `wrong` spoils its rollback or its Jacobian."""

    inputs, outputs = ("f",), ("x",)

    def __init__(self, x0, wrong="", factor=1.0):
        self.x0, self.wrong, self.factor = x0, wrong, factor

    def start(self, t0):
        self.x, self.extra = np.array([self.x0, 0.0]), 0.0
        return [self.x0]

    def advance(self, t0, t1, u):
        H, f = t1 - t0, u.end[0]
        c, s = np.cos(3.0 * H), np.sin(3.0 * H)
        x, v = self.x[0] - f / 9.0, self.x[1]
        self.x = np.array([x * c + v / 3.0 * s + f / 9.0, v * c - 3.0 * x * s])
        self.extra += 0.1 * self.x[0] if self.wrong == "hidden" else 0.0
        return [self.x[0] + self.extra]

    def save(self):
        return self.x.copy()

    def restore(self, state):
        if self.wrong == "half":
            self.x[0] = state[0]
        elif self.wrong != "nothing":
            self.x = state.copy()


class Derived(Mass):
    """The same with its derivative, times `factor`."""

    def jacobian(self, t0, t1, u, weight):
        return [[self.factor * (1.0 - np.cos(3.0 * (t1 - t0))) / 9.0]]


def pair(one, two):
    system = cs.System({"one": one, "two": two})
    system.law({"one.f": 1, "two.f": -1}, lambda a, b: 60.0 * (b - a), of=["one.x", "two.x"], name="F")
    return system


def run(system, method=None):
    return cs.simulate(system, t_end=2.0, method=method or cs.SemiImplicit(degree=0), step=0.1)


@pytest.mark.parametrize("wrong", ["nothing", "half", "hidden"])
def test_wrong_rollback_is_named(wrong):
    with pytest.raises(cs.SubsystemError, match=r"'two' does not come back to its saved state: the step from t = 0"):
        run(pair(Mass(0.0), Mass(1.0, wrong)))


@pytest.mark.parametrize("factor", [-1.0, 0.0, 3.0])
def test_wrong_jacobian_is_named(factor):
    with pytest.warns(cs.StabilityWarning, match=r"the jacobian of 'two' does not agree with differences") as caught:
        run(pair(Derived(0.0), Derived(1.0, factor=factor)))
    assert len(caught) == 1


@pytest.mark.parametrize("wrong", ["nothing", "half", "hidden"])
def test_wrong_rollback_is_named_where_an_iteration_fails(wrong):
    with pytest.raises(cs.ConvergenceError, match=r"did not converge .*; 'two' does not come back to its saved state"):
        run(pair(Mass(0.0), Mass(1.0, wrong)), cs.Implicit(degree=0))


def test_wrong_jacobian_is_named_where_an_iteration_fails():
    method = cs.Implicit(degree=0, max_iterations=5)
    with pytest.raises(cs.ConvergenceError, match=r"did not converge .*; .* the jacobian of 'two' does not agree"):
        run(pair(Derived(0.0), Derived(1.0, factor=-1.0)), method)


def test_healthy_subsystems_pay_nothing():
    """Two crossings a step for the correction, one more for each difference; nobody is called for an examination."""
    result = run(pair(Mass(0.0), Mass(1.0)))
    assert result.stats.calls == {"one": 60, "two": 60}
    assert run(pair(Derived(0.0), Derived(1.0))).stats.calls == {"one": 40, "two": 40}


def test_a_kink_is_nobodys_fault(monkeypatch):
    """One correction cannot meet a kink: looked at, found good, and the run is what it would be without."""
    examined = []

    def counted(*arguments):
        examined.append(examine(*arguments))
        return examined[-1]

    def stop(a, b):
        return 400.0 * max(b - a - 0.3, 0.0)

    def kinked():
        system = cs.System({"one": Derived(0.0), "two": Derived(1.0)})
        system.law({"one.f": 1, "two.f": -1}, stop, of=["one.x", "two.x"], name="F")
        return system

    monkeypatch.setattr(machine, "examine", counted)
    looked = run(kinked())
    assert examined == [""] * len(examined) != []
    assert len(examined) <= 4
    monkeypatch.setattr(machine, "_EXAMINATIONS", 0)
    unlooked = run(kinked())
    assert np.array_equal(looked["one.x"], unlooked["one.x"])
    assert looked.stats.calls == unlooked.stats.calls
