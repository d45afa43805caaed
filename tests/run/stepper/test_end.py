"""A subsystem that asks for the end of the simulation is no failure: the run ends there, with a whole result."""

import numpy as np
import pytest
from tests.run.stepper.models import CASES

import cosolve as cs

H = 0.1


class Countdown(cs.Subsystem):
    """x' = -1 from 1; wants the end when x would fall below 0.35 (at t = 0.65), inside the step to 0.7."""

    inputs, outputs = ["u"], ["x"]

    def __init__(self, how):
        self.how = how

    def start(self, t0):
        self.t, self.x = t0, 1.0
        return self.x

    def advance(self, t0, t1, u):
        end = 0.65
        if self.how == "whole step" and t1 > end:
            self.x -= t1 - t0
            raise cs.errors.EndOfSimulation("almost empty", outputs=self.x)
        if self.how == "inside" and t1 >= end:
            reached = max(t0, end)
            self.x -= reached - t0
            raise cs.errors.EndOfSimulation("almost empty", time=reached, outputs=self.x if reached > t0 else None)
        if self.how == "no step" and t1 > end:
            raise cs.errors.EndOfSimulation("almost empty")
        self.x -= t1 - t0
        return self.x

    def save(self):
        return self.x

    def restore(self, state):
        self.x = state


class Forgetful(Countdown):
    save = restore = None  # cannot go back


def coupled(how, kind=Countdown):
    follower = cs.Ode(lambda t, x, u: u - x, lambda t, x, u: x, x0=[0.0], inputs=["q"], outputs=["h"])
    system = cs.System({"tank": kind(how), "follower": follower})
    system.connect("tank.x", "follower.q")
    system.connect("follower.h", "tank.u")
    return system


EXPLICIT = [cs.Jacobi(1), cs.GaussSeidel(1)]
CORRECTED = [cs.SemiImplicit(1), cs.Implicit(1)]


@pytest.mark.parametrize("method", EXPLICIT + CORRECTED, ids=lambda m: m.label)
def test_the_step_that_asked_for_the_end_is_the_last(method):
    result = cs.simulate(coupled("whole step"), t_end=2.0, method=method, step=H)
    whole = cs.simulate(coupled("never"), t_end=2.0, method=method, step=H)
    assert result.t[-1] == whole.t[7] == pytest.approx(0.7)
    assert result.finished
    assert result.error is None
    assert result.ended == "ended at t = 0.7 because 'tank' asked for it: almost empty"
    assert result.ended in str(result.stats)
    assert np.array_equal(result["follower.h"], whole["follower.h"][:8])


@pytest.mark.parametrize("method", EXPLICIT, ids=lambda m: m.label)
def test_without_saved_states_the_last_point_is_that_before_the_end(method):
    result = cs.simulate(coupled("inside"), t_end=2.0, method=method, step=H)
    assert result.t[-1] == pytest.approx(0.6)
    assert result.ended == "ended at t = 0.6 because 'tank' asked for it at t = 0.65: almost empty"


@pytest.mark.parametrize("method", CORRECTED, ids=lambda m: m.label)
@pytest.mark.parametrize("step", [H, cs.Adaptive(rtol=1e-4, first_step=H)], ids=["fixed", "adaptive"])
def test_with_saved_states_the_last_step_is_cut_to_end_there(method, step):
    result = cs.simulate(coupled("inside"), t_end=2.0, method=method, step=step)
    assert result.t[-1] == 0.65
    assert result["tank.x"][-1] == pytest.approx(0.35, abs=1e-12)
    exact = 2.0 - 0.65 - 2.0 * np.exp(-0.65)  # h' = (1 - t) - h
    assert result["follower.h"][-1] == pytest.approx(exact, abs=2e-3)
    assert result.ended == "ended at t = 0.65 because 'tank' asked for it: almost empty"


@pytest.mark.parametrize("method", EXPLICIT + CORRECTED, ids=lambda m: m.label)
def test_a_step_that_was_not_taken_is_left_out_and_the_last_point_is_always_recorded(method):
    result = cs.simulate(coupled("no step"), t_end=2.0, method=method, step=H, every=4)
    assert np.allclose(result.t, [0.0, 0.4, 0.6], atol=1e-12)
    assert result.ended.startswith("ended at t = 0.6 because 'tank' asked for it")
    assert result.stats.steps == 6
    assert result.column("calls").sum() + 2 >= result.stats.total_calls  # those of the attempt belong to no row


def test_dynamic_static_ends_as_well():
    build, method, step, startup = CASES["dynamic-static"]
    system = build()
    spring = system.subsystems["spring"]
    inner = spring.output

    def output(t, u):
        if t > 0.5:
            raise cs.errors.EndOfSimulation("broken")
        return inner(t, u)

    spring.output = output
    result = cs.simulate(system, t_end=1.0, method=method, step=step, startup=startup)
    assert 0.3 < result.t[-1] <= 0.5
    assert "because 'spring' asked for it" in result.ended


def test_a_stepper_is_done_and_says_why():
    with cs.Stepper(coupled("whole step"), method=cs.Jacobi(1), step=H) as stepper:
        assert stepper.run_until(2.0) == pytest.approx(0.7)
        assert stepper.done
        assert stepper.ended.endswith("asked for it: almost empty")
        with pytest.raises(cs.errors.SetupError, match=r"has ended at t = 0\.7 because 'tank' asked for it"):
            stepper.step()
    with cs.Stepper(coupled("inside"), method=cs.Jacobi(1), step=H) as stepper:
        here = stepper.save()
        assert stepper.run_until(2.0) == pytest.approx(0.6)
        with pytest.raises(cs.errors.SetupError, match="in the middle of a step cannot be saved"):
            stepper.save()
        stepper.restore(here)
        assert not stepper.done
        assert stepper.step() == H


def test_asking_for_the_end_at_the_start_says_that_nothing_has_run():
    class Never(Countdown):
        def start(self, t0):
            raise cs.errors.EndOfSimulation("no licence")

    with pytest.raises(
        cs.errors.SimulationError, match=r"ended at t = 0 because 'tank' .* no licence, before anything has run"
    ):
        cs.simulate(coupled("never", Never), t_end=1.0, method=cs.Jacobi(), step=H)


def test_it_travels_from_another_process():
    system = coupled("never")
    system = cs.System({"tank": cs.remote.Isolated(Countdown("whole step")), "follower": system.subsystems["follower"]})
    system.connect("tank.x", "follower.q")
    system.connect("follower.h", "tank.u")
    result = cs.simulate(system, t_end=2.0, method=cs.Jacobi(1), step=H)
    assert result.ended == "ended at t = 0.7 because 'tank' asked for it: almost empty"
    system.subsystems["tank"].close()


def test_a_result_file_keeps_the_reason_and_a_state_is_saved_where_there_is_one(tmp_path):
    for how, saved in (("whole step", True), ("no step", False)):
        state = tmp_path / f"{how}.state"
        file = tmp_path / f"{how}.h5"
        result = cs.simulate(
            coupled(how, Countdown), t_end=2.0, method=cs.Jacobi(1), step=H, save=file, save_state=state
        )
        assert cs.load_result(file).ended == result.ended != ""
        assert state.exists() is saved
        assert ("no state was saved" in result.ended) is not saved


def test_a_sweep_notes_it():
    def build(how):
        return coupled(["never", "whole step"][how])

    found = cs.sweep(
        build, {"how": [0, 1]}, t_end=1.0, methods=cs.Jacobi(1), steps=H, record=["tank.x"], executor="serial"
    )
    assert not cs.failed_runs(found)
    assert [str(note) for note in cs.failed_runs(found, variable="note")] == [
        "how = 1: ended at t = 0.7 because 'tank' asked for it: almost empty"
    ]
    assert float(found["tank.x"].sel(how=1)) == pytest.approx(0.3)
    assert not cs.failed_runs(found.sel(how=[0]), variable="note")
