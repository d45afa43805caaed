"""Stepping by hand advances over the macro steps of `simulate`, and inputs can be changed between them."""

import numpy as np
import pytest
from tests.run.stepper.models import CASES, two_mass

import cosolve as cs


@pytest.mark.parametrize("case", ["jacobi", "semi-implicit", "implicit newton", "adaptive", "dynamic-static"])
def test_steps_by_hand_are_those_of_simulate(case):
    build, method, step, startup = CASES[case]
    result = cs.simulate(build(), t_end=1.0, method=method, step=step, startup=startup)
    with cs.Stepper(build(), method=method, step=step, startup=startup, t_end=1.0) as stepper:
        times, values = [stepper.t], [[stepper[name] for name in stepper.names]]
        while stepper.t < 1.0:
            times.append(stepper.step())
            values.append([stepper[name] for name in stepper.names])
    assert times == list(result.t)
    for k, name in enumerate(stepper.names):
        assert [row[k] for row in values] == list(result[name])
    with pytest.raises(cs.errors.SetupError, match="reached its t_end = 1; give"):
        stepper.step()


def test_run_until_ends_exactly_there_and_does_not_disturb_the_grid():
    stepper = cs.Stepper(two_mass(), method=cs.Jacobi(), step=0.1)
    assert stepper.run_until(0.3) == 0.3
    stepper.run_until(0.3)
    assert stepper.steps == 3
    assert stepper.run_until(0.55) == 0.55  # two and a half steps
    assert stepper.steps == 6
    assert stepper.step() == pytest.approx(0.65, abs=1e-15)  # a new grid from there
    assert stepper.step(step=0.02) == pytest.approx(0.67, abs=1e-15)
    with pytest.raises(cs.errors.SetupError, match=r"from 0\.67 on"):
        stepper.run_until(0.1)
    with pytest.raises(cs.errors.SetupError, match="step must be a positive"):
        stepper.step(step=-1.0)


def test_a_million_steps_end_where_they_should():
    """Time is an index: no rounding piles up in an open run."""
    from cosolve.stepsize.sequence import OpenClock

    assert OpenClock(0.0, 0.1).time(10**6) == 1e5
    assert OpenClock(1.0, 1e-3).time(10**6) == 1001.0


def test_an_input_that_is_held_can_be_changed_between_steps():
    """x' = u - x with u switched from 0 to 2 at t = 1: known solution."""
    tank = cs.Ode(lambda t, x, u: u - x, lambda t, x, u: x, x0=[1.0], inputs=["q"], outputs=["h"])
    system = cs.System({"tank": tank})
    system.set("tank.q", 0.0)
    with cs.Stepper(system, method=cs.Jacobi(degree=0), step=0.1) as stepper:
        stepper.run_until(1.0)
        assert stepper["tank.h"] == pytest.approx(np.exp(-1.0), rel=1e-7)
        stepper.set("tank.q", 2.0)
        assert stepper["tank.q"] == 2.0
        stepper.run_until(2.0)
        assert stepper["tank.h"] == pytest.approx(2.0 + (np.exp(-1.0) - 2.0) * np.exp(-1.0), rel=1e-7)
        stepper.set("tank.q", 0.0)
        assert stepper["tank.q"] == 0.0
    again = cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=0), step=0.1)  # the system itself is as it was
    assert again["tank.h"][-1] == pytest.approx(np.exp(-1.0), rel=1e-7)


def test_what_cannot_be_set_or_asked_for_is_refused():
    stepper = cs.Stepper(two_mass(), method=cs.Jacobi(), step=0.1)
    with pytest.raises(
        cs.errors.SetupError, match=r"'one\.force' is not an input that System\.set holds; .* one\.extra, two\.extra"
    ):
        stepper.set("one.force", 1.0)
    with pytest.raises(cs.errors.SetupError, match="takes one finite number, not nan"):
        stepper.set("one.extra", np.nan)
    with pytest.raises(KeyError, match=r"has no 'one\.y'; did you mean 'one\.x"):
        stepper["one.y"]
    with pytest.raises(cs.errors.SetupError, match="without t_end give a step that limits them"):
        cs.Stepper(two_mass(), method=cs.LeaderFollower(leader="one"))
    with pytest.raises(cs.errors.SetupError, match="need a first length"):
        cs.Stepper(two_mass(), method=cs.Jacobi(), step=cs.Adaptive())


def test_a_run_that_stopped_goes_on_from_a_saved_state_only():
    system = cs.System({"box": cs.Static(lambda t, u: np.sqrt(0.55 - t), inputs=[], outputs=["y"])})
    stepper = cs.Stepper(system, method=cs.Jacobi(), step=0.1)
    stepper.run_until(0.3)
    here = stepper.save()
    with pytest.raises(cs.errors.NonFiniteError) as caught, np.errstate(invalid="ignore"):
        stepper.run_until(1.0)
    assert caught.value.time == pytest.approx(0.5)
    with pytest.raises(cs.errors.SetupError, match="the run has stopped"):
        stepper.step()
    with pytest.raises(cs.errors.SetupError, match="cannot be saved"):
        stepper.save()
    stepper.restore(here)
    assert stepper.step() == pytest.approx(0.4)


def test_an_adaptive_run_ends_at_the_asked_time_and_keeps_its_pace():
    build, method, step, _ = CASES["adaptive"]
    with cs.Stepper(build(), method=method, step=step) as stepper:
        assert stepper.run_until(1.0) == 1.0
        before = stepper.step() - 1.0
        t = stepper.run_until(stepper.t + 1e-3 * before)
        assert stepper.step() - t > 0.1 * before  # growing from the sliver it could be 4e-3 of it at most


def test_outputs_that_react_at_once_follow_a_changed_input_and_nothing_else_moves():
    """Two gains in a row behind a state: y = 2 u + x, w = 3 y; looking must not change what comes after."""
    lag = cs.Ode(lambda t, x, u: u - x, lambda t, x, u: x + 2 * u, x0=[1.0], inputs=["u"], outputs=["y"])
    gain = cs.Static(lambda t, u: 3 * u, inputs=["u"], outputs=["w"])
    system = cs.System({"lag": lag, "gain": gain})
    system.connect("lag.y", "gain.u")
    system.set("lag.u", 0.0)
    stepper = cs.Stepper(system, method=cs.Jacobi(), step=0.1)
    stepper.set("lag.u", 0.5)
    assert stepper["lag.y"] == 2.0
    assert stepper["gain.w"] == 6.0
    assert stepper["gain.u"] == 2.0
    after = stepper.step(), stepper["lag.y"], stepper["gain.w"]
    blind = cs.Stepper(system, method=cs.Jacobi(), step=0.1)
    blind.set("lag.u", 0.5)
    assert (blind.step(), blind["lag.y"], blind["gain.w"]) == after


def test_a_system_is_in_one_run_at_a_time():
    system = two_mass()
    first = cs.Stepper(system, method=cs.Jacobi(), step=0.1)
    first.step()
    here = first.save()
    expected = first.step(), first["one.x"]
    cs.simulate(system, t_end=0.5, method=cs.Jacobi(), step=0.1)
    for use in (first.step, first.save):
        with pytest.raises(cs.errors.SetupError, match=r"another run .* of the same system has begun since"):
            use()
    first.restore(here)
    assert (first.step(), first["one.x"]) == expected
