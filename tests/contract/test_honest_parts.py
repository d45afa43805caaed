"""Subsystems and laws that break a promise of the contract in silence: each is named before its numbers are used."""

import numpy as np
import pandas as pd
import pytest

import cosolve as cs


class Oscillator(cs.Subsystem):
    """Where its state is kept, and whether it can go back, is up to subclasses."""

    inputs, outputs = ["f"], ["x", "v"]

    def __init__(self, x0=1.0):
        self.x0 = x0

    def start(self, t0):
        self.s = np.array([self.x0, 0.0])
        return self.s.copy()

    def advance(self, t0, t1, u):
        x, v = self.s
        self.s = self.s + (t1 - t0) * np.array([v, u(t0)[0] - 40.0 * x])
        return self.s.copy()


class Honest(Oscillator):
    def save(self):
        return self.s.copy()

    def restore(self, state):
        self.s = state.copy()


class InClass(Oscillator):
    """The state is an attribute of the class."""

    shared = np.zeros(2)

    @property
    def s(self):
        return InClass.shared

    @s.setter
    def s(self, value):
        InClass.shared = value

    save, restore = Honest.save, Honest.restore


class InDefault(Oscillator):
    """The state is a mutable default argument."""

    def __init__(self, x0=1.0, kept=[None]):  # noqa: B006
        super().__init__(x0)
        self.kept = kept

    @property
    def s(self):
        return self.kept[0]

    @s.setter
    def s(self, value):
        self.kept[0] = value

    save, restore = Honest.save, Honest.restore


def pair(one, two, law=lambda x, y: 20.0 * (y - x - 0.3)):
    system = cs.System({"a": one, "b": two})
    system.law({"a.f": 1, "b.f": -1}, law, of=["a.x", "b.x"])
    return system


METHODS = [cs.Jacobi(0), cs.Jacobi(1), cs.GaussSeidel(1)]


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("kind", [InClass, InDefault])
def test_instances_that_share_a_state_are_named(method, kind):
    with pytest.raises(cs.errors.SubsystemError, match="'a' and 'b' share their state"):
        cs.simulate(pair(kind(), kind()), t_end=0.5, step=0.01, method=method)


class Clock(cs.Subsystem):
    """All instances are in the same state at the same time, and their outputs differ: nothing is shared."""

    inputs, outputs = ["u"], ["y"]

    def __init__(self, gain):
        self.gain = gain

    def start(self, t0):
        self.t = t0
        return 0.0

    def advance(self, t0, t1, u):
        self.t = t1
        return self.gain * self.t + 0.1 * u(t1)[0]

    def save(self):
        return self.t

    def restore(self, state):
        self.t = state


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_equal_states_are_no_shared_state(method):
    """And what was tried out leaves no trace: bits and counts are those of two classes that nothing asks about."""

    class Other(Clock):
        pass

    class Second(Honest):
        pass

    def run(one, two):
        system = cs.System({"one": one(1.0), "two": two(2.0)})
        system.connect("one.y", "two.u")
        system.connect("two.y", "one.u")
        return cs.simulate(system, t_end=0.5, step=0.01, method=method)

    twins, others = run(Clock, Clock), run(Clock, Other)
    np.testing.assert_array_equal(twins["two.y"], others["two.y"])
    assert twins.stats.calls == others.stats.calls
    alike = cs.simulate(pair(Honest(), Honest(2.0)), t_end=0.5, step=0.01, method=method)
    apart = cs.simulate(pair(Honest(), Second(2.0)), t_end=0.5, step=0.01, method=method)
    np.testing.assert_array_equal(alike["b.x"], apart["b.x"])


def test_one_object_in_two_wrappers_is_refused():
    part = Honest()
    first, second = (cs.SecantJacobian(part) for _ in range(2))
    with pytest.raises(cs.errors.SetupError, match="'a' and 'b' are the same object"):
        cs.simulate(pair(first, second), t_end=0.5, step=0.01, method=cs.Jacobi(1))


@pytest.mark.parametrize("method", [*METHODS, cs.SemiImplicit(1), cs.Implicit(0)], ids=str)
def test_a_law_that_is_no_function_is_refused(method):
    calls = []

    def law(x, y):
        calls.append(x)
        return 20.0 * (y - x - 0.3) + 0.01 * len(calls)

    with pytest.raises(
        cs.errors.SubsystemError, match=r"the law for a\.f, b\.f gave two values for the same arguments"
    ):
        cs.simulate(pair(Honest(), Honest(2.0), law), t_end=0.5, step=0.01, method=method)


class NoReset(Oscillator):
    """A second start changes nothing."""

    def start(self, t0):
        if not hasattr(self, "s"):
            self.s = np.array([self.x0, 0.0])
        return self.s.copy()


def test_a_start_that_does_not_reset_is_refused_in_the_second_run():
    system = pair(NoReset(), Oscillator(2.0))
    cs.simulate(system, t_end=0.5, step=0.01, method=cs.Jacobi(1))
    with pytest.raises(cs.errors.SubsystemError, match=r"'a' .*it begins where its last run ended"):
        cs.simulate(system, t_end=0.5, step=0.01, method=cs.Jacobi(1))


def test_another_initial_value_is_no_missing_reset():
    one = Oscillator()
    system = pair(one, Oscillator(2.0))
    cs.simulate(system, t_end=0.5, step=0.01, method=cs.Jacobi(1))
    one.x0 = 3.0
    assert cs.simulate(system, t_end=0.5, step=0.01, method=cs.Jacobi(1))["a.x"][0] == 3.0


def test_a_pandas_series_counts_by_its_labels():
    class Labelled(Honest):
        def start(self, t0):
            return pd.Series(super().start(t0)[::-1], index=["v", "x"])

        def advance(self, t0, t1, u):
            return pd.Series(super().advance(t0, t1, u)[::-1], index=["v", "x"])

    class Numbered(Honest):
        def advance(self, t0, t1, u):
            return pd.Series(super().advance(t0, t1, u))

    run = {"t_end": 0.5, "step": 0.01, "method": cs.Jacobi(1)}
    right = cs.simulate(pair(Honest(), Honest(2.0)), **run)["a.x"]
    for kind in (Labelled, Numbered):
        np.testing.assert_array_equal(cs.simulate(pair(kind(), Honest(2.0)), **run)["a.x"], right)

    class Wrong(Honest):
        def start(self, t0):
            return pd.Series([1.0, 0.0], index=["x", "speed"])

    with pytest.raises(cs.errors.SubsystemError, match=r"'speed'.*expected exactly the ports"):
        cs.simulate(pair(Wrong(), Honest(2.0)), **run)
