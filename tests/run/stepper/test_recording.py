"""A stepper that records gives the result of `simulate`, bit for bit on the same grid."""

import numpy as np
import pytest
from tests.run.stepper.models import CASES, two_mass

import cosolve as cs

NOT_TIMES = ("t", "y", "z", "H", "iterations", "residual", "error", "rejected", "calls", "norms", "norms_end")


def assert_same(one, other):
    for name in NOT_TIMES:
        assert np.array_equal(one.column(name), other.column(name), equal_nan=True), name
    assert one.names == other.names
    for name in one.names:
        assert np.array_equal(one[name], other[name])


@pytest.mark.parametrize("case", ["jacobi", "semi-implicit", "implicit newton", "adaptive", "dynamic-static"])
def test_the_result_is_that_of_simulate(case):
    build, method, step, startup = CASES[case]
    run = {"method": method, "step": step, "startup": startup, "t_end": 1.0}
    result = cs.simulate(build(), **run)
    with cs.Stepper(build(), **run, record=True) as stepper:
        while not stepper.done:
            stepper.step()
        found = stepper.result()
    assert_same(found, result)
    assert found.meta == result.meta
    for name in ("steps", "rejected", "iterations", "unconverged", "over_tolerance", "calls", "jacobians"):
        assert getattr(found.stats, name) == getattr(result.stats, name), name
    assert np.array_equal(found.stats.max_residual, result.stats.max_residual, equal_nan=True)


def test_named_quantities_and_files(tmp_path):
    run = {"method": cs.SemiImplicit(2), "step": 0.1, "t_end": 1.0}
    result = cs.simulate(two_mass(), **run, record=["one.x", "s"])
    file = tmp_path / "steps.h5"
    with cs.Stepper(two_mass(), **run, record=["one.x", "s"], save=file) as stepper:
        stepper.run_until(0.5)
        half = stepper.result()
        assert len(half.t) == 6
        stepper.run_until(1.0)
    assert_same(cs.load_result(file), result)
    assert_same(stepper.result(), result)
    assert cs.load_result(file).finished


def test_a_result_stays_when_the_run_goes_on_and_follows_it_back():
    run = {"method": cs.Implicit(1), "step": 0.1, "t_end": 1.0}
    whole = cs.simulate(two_mass(), **run)
    stepper = cs.Stepper(two_mass(), **run, record=True)
    stepper.run_until(0.3)
    first, here = stepper.result(), stepper.save()
    stepper.run_until(0.7)
    assert len(first.t) == 4
    assert len(stepper.result().t) == 8
    stepper.restore(here)
    assert np.array_equal(stepper.result().t, first.t)
    stepper.run_until(1.0)
    again = stepper.result()
    for name in ("t", "y", "z", "iterations", "norms", "norms_end"):
        assert np.array_equal(again.column(name), whole.column(name))
    assert again.stats.iterations == whole.stats.iterations


def test_a_restored_state_is_where_a_record_begins(tmp_path):
    run = {"method": cs.Jacobi(1), "step": 0.1}
    with cs.Stepper(two_mass(), **run) as stepper:
        stepper.run_until(0.5)
        here = stepper.save()
        with cs.Stepper(two_mass(), **run, save=tmp_path / "rest.h5") as later:
            later.restore(here)
            later.run_until(0.8)
            with pytest.raises(cs.errors.SetupError, match="streamed to a file cannot go back"):
                later.restore(here)
        assert np.allclose(cs.load_result(tmp_path / "rest.h5").t, [0.5, 0.6, 0.7, 0.8])
        with cs.Stepper(two_mass(), **run, record=True) as later:
            later.step()
            later.restore(here)  # nothing leads from 0.1 to there
            later.step()
            assert np.allclose(later.result().t, [0.5, 0.6])


def test_a_failure_is_in_the_result():
    def rhs(t, x, u):
        return [np.nan if t > 0.35 else 1.0]

    system = cs.System(
        {"a": cs.Ode(rhs, lambda t, x, u: x, x0=[0.0], inputs=[], outputs=["x"], integrator="ode1", internal_step=0.1)}
    )
    with cs.Stepper(system, method=cs.Jacobi(), step=0.1, record=True) as stepper:
        with pytest.raises(cs.errors.SimulationError):
            stepper.run_until(1.0)
        result = stepper.result()
    assert not result.finished
    assert np.allclose(result.t, [0.0, 0.1, 0.2, 0.3, 0.4][: len(result.t)])
    assert len(result.t) >= 4


def test_without_record_there_is_no_result():
    with pytest.raises(cs.errors.SetupError, match="records nothing; build it with record=True"):
        cs.Stepper(two_mass(), method=cs.Jacobi(), step=0.1).result()
