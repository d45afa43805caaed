"""Error-controlled steps that can be relied on: no collapse on smooth runs, errors in proportion, a limit of steps."""

from __future__ import annotations

import numpy as np
import pytest
from examples.two_mass.model import SCHMOLL, force_displacement, lu, split
from tests.accuracy.zoo import CASES

import cosolve as cs

OSCILLATOR = lu()


def largest_error(run: cs.Result) -> float:
    exact = OSCILLATOR.exact(run.t)
    names = ("one.x", "one.v", "two.x", "two.v")
    return max(np.abs(run[n] - exact[:, k]).max() / np.abs(exact[:, k]).max() for k, n in enumerate(names))


@pytest.mark.parametrize("weights", ["largest", "newest"])
def test_outputs_as_used_do_not_stop_a_smooth_run(weights: str) -> None:
    """F2: the force at a macro point was computed from extrapolated inputs, which no shorter next step can mend.

    Errors in the newest magnitude meet that near zero crossings of the force; without the second exchange that run
    ended with steps below 1e-15. As compiled: the same bits.
    """
    run = {"method": cs.Jacobi(1), "step": cs.Adaptive(rtol=1e-5, weights=weights), "t_end": 0.01}
    found = cs.simulate(force_displacement(SCHMOLL), **run, compiled=True)
    exact = SCHMOLL.exact(found.t)
    assert np.abs(found["one.x"] - exact[:, 0]).max() < 5e-5 * np.abs(exact[:, 0]).max()
    assert found.stats.rejected < 0.05 * found.stats.steps
    readable = cs.simulate(force_displacement(SCHMOLL), **run, compiled=False)
    assert np.array_equal(found.column("y"), readable.column("y"))
    assert np.array_equal(found.t, readable.t)


def test_a_jump_still_says_that_it_is_one() -> None:
    """A second exchange is no way across a jump, where every attempt has the same error too."""
    source = cs.Static(lambda t, u: float(t > 0.5), inputs=[], outputs=["y"])
    reader = cs.Linear([[-1]], [[1]], [[1]], x0=[0], inputs=["u"], outputs=["y"])
    system = cs.System({"source": source, "reader": reader})
    system.connect("source.y", "reader.u")
    with pytest.raises(cs.errors.StepSizeError, match=r"steps below .* a jump"):
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=cs.Adaptive(rtol=1e-4))


def test_steps_do_not_shrink_where_a_force_passes_through_zero() -> None:
    """F3: 311 steps and 50 rejections when errors are measured by the newest magnitude; 93 by the largest so far."""
    run = {"t_end": 0.5, "method": cs.Jacobi(1)}
    steps = {
        w: cs.simulate(split("F/F"), **run, step=cs.Adaptive(rtol=1e-2, weights=w)).stats for w in ("largest", "newest")
    }
    assert steps["largest"].steps < 110
    assert steps["newest"].steps > 250


@pytest.mark.sample(3)
@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.Jacobi(3), cs.GaussSeidel(2), cs.SemiImplicit(2)], ids=repr)
def test_errors_are_in_proportion_to_the_tolerance(method: cs.Method) -> None:
    """Everything by default: over three decades of rtol the ratio of error to rtol stays within a factor of 2."""
    ratios = []
    for rtol in (1e-2, 1e-3, 1e-4, 1e-5)[: 3 if method.degree == 1 else 4]:
        run = cs.simulate(split("F/D"), t_end=0.5, method=method, step=cs.Adaptive(rtol=rtol))
        ratios.append(largest_error(run) / rtol)
    assert max(ratios) < 2 * min(ratios)
    assert max(ratios) < 1.5


class OneWay(cs.Subsystem):
    """A mass that cannot go back."""

    def __init__(self, inner: cs.Subsystem) -> None:
        self.inner, self.inputs, self.outputs = inner, inner.inputs, inner.outputs

    def start(self, t0):
        return self.inner.start(t0)

    def output(self, t, u):
        return self.inner.output(t, u)

    def advance(self, t0, t1, u):
        return self.inner.advance(t0, t1, u)


def test_errors_are_in_proportion_without_rollback_too() -> None:
    """The first step cannot be repeated there, so that its length must follow the tolerance."""
    ratios = []
    for rtol in (1e-2, 1e-3, 1e-4, 1e-5):
        system = cs.System({name: OneWay(s) for name, s in split("D/D").subsystems.items()})
        for one, other in (("one", "two"), ("two", "one")):
            system.connect(f"{one}.x", f"{other}.foreign_x")
            system.connect(f"{one}.v", f"{other}.foreign_v")
        run = cs.simulate(system, t_end=0.5, method=cs.Jacobi(3), step=cs.Adaptive(rtol=rtol))
        ratios.append(largest_error(run) / rtol)
    assert max(ratios) < 1.5


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("step", [cs.Adaptive(rtol=1e-6), 1e-3], ids=["controlled", "equal"])
def test_a_run_takes_no_more_steps_than_it_may(step, compiled: bool) -> None:
    """F9: a sentence with how far it came, and everything up to there."""
    with pytest.raises(
        cs.errors.StepSizeError, match=r"max_steps = 100 macro steps and stands at t = 0\.\d+ of 0\.5"
    ) as caught:
        cs.simulate(split("D/D"), t_end=0.5, method=cs.Jacobi(2), step=step, max_steps=100, compiled=compiled)
    assert caught.value.result.stats.steps == 100
    assert len(caught.value.result.t) == 101
    assert caught.value.time == caught.value.result.t[-1]


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    run = {"t_end": 0.1, "method": cs.Jacobi(1), "step": 1e-3}
    limited, free = cs.simulate(split("F/D"), **run, max_steps=100), cs.simulate(split("F/D"), **run)
    assert np.array_equal(limited.column("y"), free.column("y"))


@pytest.mark.parametrize("most", [0, -1, 2.5, True, "100"])
def test_a_limit_is_a_whole_number(most) -> None:
    with pytest.raises(cs.errors.SetupError, match="max_steps must be a whole number"):
        cs.simulate(split("F/D"), t_end=0.1, method=cs.Jacobi(1), step=1e-3, max_steps=most)


def test_weights_are_known_by_name() -> None:
    with pytest.raises(cs.errors.SetupError, match="weights must be 'largest' or 'newest'"):
        cs.Adaptive(weights="all")


@pytest.mark.parametrize(
    ("name", "rtol"), [("two_mass_rigid", 1e-3), pytest.param("pendulum_rigid", 2.7e-6, marks=pytest.mark.slow)]
)
def test_joints_take_no_steps_in_which_multipliers_drown_in_rounding(name: str, rtol: float) -> None:
    """A drift over the square of the step: below some length every shorter attempt has a larger estimate."""
    case = CASES[name]
    control = cs.Adaptive(rtol=rtol, first_step=1e-3 * case.t_end, max_step=case.t_end / 40)
    result = cs.simulate(case.build(), t_end=case.t_end, method=cs.SemiImplicit(degree=2), step=control)
    assert result.stats.steps < 500
    assert result.H.min() > 1e-6
    assert case.error(result) < rtol
