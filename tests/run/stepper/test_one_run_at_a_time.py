"""Subsystems are in the state of one run: another that begins meanwhile is refused, or the first one is told."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cosolve as cs


class Mass(cs.Subsystem):
    """An oscillator, Heun's method."""

    inputs, outputs = ["f"], ["x", "v"]

    def start(self, t0):
        self.s = np.array([1.0, 0.0])
        return self.s.copy()

    def advance(self, t0, t1, u):
        def slope(t, s):
            return np.array([s[1], -40.0 * s[0] - s[1] + u(t)[0]])

        first = slope(t0, self.s)
        self.s = self.s + 0.5 * (t1 - t0) * (first + slope(t1, self.s + (t1 - t0) * first))
        return self.s.copy()

    def save(self):
        return self.s.copy()

    def restore(self, state):
        self.s = state.copy()


def linear():
    return cs.Linear([[0, 1.0], [-40, -1.0]], [[0], [1.0]], np.eye(2), x0=[1.0, 0.0], inputs=["f"], outputs=["x", "v"])


def pair(one, two):
    system = cs.System({"a": one, "b": two})
    law = lambda x, v, y, w: 20 * (y - x - 0.3) + (w - v)  # noqa: E731
    system.law({"a.f": 1, "b.f": -1}, law, of=["a.x", "a.v", "b.x", "b.v"])
    return system


RUN = {"t_end": 0.5, "step": 0.01, "method": cs.SemiImplicit(1)}


@pytest.mark.parametrize("kind", [Mass, linear])
@pytest.mark.parametrize("shared", ["system", "subsystem"])
def test_a_second_run_is_refused_while_the_first_goes_on(kind, shared):
    """The first one waits in mid-run until the second has tried, and is right to the last bit afterwards."""
    part = kind()
    first = pair(part, kind())
    second = first if shared == "system" else pair(part, kind())
    inside, tried = threading.Event(), threading.Event()

    def wait(fraction):
        inside.set()
        assert tried.wait(60.0)

    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(cs.simulate, first, **RUN, progress=wait)
        assert inside.wait(60.0)
        try:
            with pytest.raises(cs.errors.SetupError, match="'a' is being advanced by another run"):
                cs.simulate(second, **RUN)
            assert "'a' is being advanced by another run" in str(cs.check(second, RUN["method"], RUN["step"]))
            told = cs.analysis.estimate_stability(second, RUN["method"], RUN["step"])
            assert "'a' is being advanced by another run" in str(told)
        finally:
            tried.set()
        found = run.result()
    np.testing.assert_array_equal(found["a.x"], cs.simulate(pair(kind(), kind()), **RUN)["a.x"])


def test_a_run_from_a_callback_of_the_same_system_is_refused():
    system = pair(Mass(), Mass())
    with pytest.raises(cs.errors.SetupError, match="in a callback of it"):
        cs.simulate(system, **RUN, progress=lambda fraction: cs.simulate(system, **RUN))
    cs.simulate(system, **RUN)  # it is free again


@pytest.mark.parametrize("other", ["check", "simulate", "stepper", "graph"])
def test_a_stepper_is_told_that_its_subsystems_were_moved(other):
    system = pair(Mass(), Mass())
    with cs.Stepper(system, method=cs.SemiImplicit(1), step=0.01) as stepper:
        stepper.run_until(0.2)
        kept = stepper.save()
        {
            "check": lambda: cs.check(system, cs.SemiImplicit(1), 0.01),
            "simulate": lambda: cs.simulate(system, **RUN),
            "stepper": lambda: cs.Stepper(system, method=cs.SemiImplicit(1), step=0.01).close(),
            "graph": lambda: cs.analysis.estimate_stability(system, cs.SemiImplicit(1), 0.01),
        }[other]()
        with pytest.raises(
            cs.errors.SetupError, match="another run \\(or a check\\) of the same system has begun since"
        ):
            stepper.step()
        stepper.restore(kept)
        stepper.run_until(0.5)
        assert stepper["a.x"] == cs.simulate(pair(Mass(), Mass()), **RUN)["a.x"][-1]


def test_two_threads_cannot_step_one_stepper():
    """The second is refused while the first is inside a step; what the first did stands."""
    inside, tried = threading.Event(), threading.Event()

    class Slow(Mass):
        def advance(self, t0, t1, u):
            if t0 > 0.1:
                inside.set()
                assert tried.wait(60.0)
            return super().advance(t0, t1, u)

    with cs.Stepper(pair(Slow(), Mass()), method=cs.Jacobi(1), step=0.01) as stepper, ThreadPoolExecutor(1) as pool:
        run = pool.submit(stepper.run_until, 0.5)
        assert inside.wait(60.0)
        try:
            with pytest.raises(cs.errors.SetupError, match="advanced by another thread"):
                stepper.step()
        finally:
            tried.set()
        assert run.result() == 0.5
        alone = cs.simulate(pair(Mass(), Mass()), t_end=0.5, step=0.01, method=cs.Jacobi(1))
        assert stepper["a.x"] == alone["a.x"][-1]


def test_runs_one_after_the_other_and_of_other_systems_are_free():
    systems = [pair(Mass(), Mass()) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda system: cs.simulate(system, **RUN)["a.x"], systems))
    for one in found:
        np.testing.assert_array_equal(one, found[0])
