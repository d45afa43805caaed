"""Macro-step control of semi-implicit and implicit runs on the oscillator."""

from dataclasses import replace

import numpy as np
import pytest
from examples.two_mass.model import lu, split

import cosolve as cs

P = lu()
METHODS = [cs.SemiImplicit, cs.Implicit]


#: The coupling force is of the order of 1e3 N; measured against 1 N alone its zero crossings would need tiny steps
#: (with errors in units of the newest magnitudes; the largest so far take care of that themselves).
SIZE = 1e3


def controlled(method, rtol, kind="F/F", **options):
    step = cs.Adaptive(rtol=rtol, atol=SIZE * rtol if kind == "F/F" else rtol, weights="newest", **options)
    result = cs.simulate(split(kind), t_end=0.5, method=method, step=step)
    error = np.abs(result["one.x"] - P.exact(result.t)[:, 0]).max()
    return result, error


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [0, 1, 2])
def test_error_follows_the_tolerance(method, k):
    """Estimate ~ H^(k+1) = tolerance, and so is the global error of an order k+1 method: slope 1 over a decade."""
    tolerances = ((1e-1, 1e-2), (1e-2, 1e-3), (1e-3, 1e-4))[k]
    errors = [controlled(method(degree=k), rtol)[1] for rtol in tolerances]
    slope = np.log10(errors[0] / errors[1])
    assert slope == pytest.approx(1.0, abs=0.15)


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [0, 1, 2])
def test_number_of_steps_shows_the_order(method, k):
    """H ~ rtol^(1/(k+1)): the count grows by 10^(1/(k+1)) per decade."""
    tolerances = ((1e-1, 1e-2), (1e-2, 1e-3), (1e-3, 1e-4))[k]
    steps = [controlled(method(degree=k), rtol)[0].stats.steps for rtol in tolerances]
    assert np.log10(steps[1] / steps[0]) == pytest.approx(1 / (k + 1), abs=0.07)


@pytest.mark.parametrize("method", METHODS)
def test_the_run_ends_on_time_and_counts_its_steps(method):
    result, _ = controlled(method(degree=2), 1e-3)
    assert result.t[-1] == 0.5
    assert result.stats.steps == len(result.t) - 1
    assert (result.H > 0).all()
    assert result.H.sum() == pytest.approx(0.5, rel=1e-12)
    assert (result.column("error")[1:] <= 1.0).all()  # rejected steps leave no trace but their count


CONTROL = cs.Adaptive(rtol=1e-3, atol=1e-3 * SIZE, weights="newest")


def kicked(rate_jump_at, solver="dopri5"):
    """The F/F oscillator whose mass 1 is pushed by a constant extra force from some time on."""

    def push(t, s, u):
        extra = 2e5 if t >= rate_jump_at else 0.0
        return np.array([s[1], (-P.c1 * s[0] - P.d1 * s[1] + u[0] + extra) / P.m1])

    one = cs.Ode(push, lambda t, s, u: s, x0=[P.x1, P.v1], inputs=["f"], outputs=["x", "v"], integrator=solver)
    base = split("F/F")
    system = cs.System({"one": one, "two": base.subsystems["two"]})
    law = base.plan().blocks[0].function
    system.law({"one.f": 1.0, "two.f": -1.0}, law, of=["one.x", "one.v", "two.x", "two.v"], name="lam")
    return system


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", METHODS)
def test_a_jump_makes_steps_repeat(method):
    """The force rate jumps at t = 0.2: steps there are rejected and the next ones are much shorter."""
    t_jump = 0.2003
    result = cs.simulate(kicked(t_jump), t_end=0.4, method=method(degree=2), step=CONTROL)
    rejected_at = result.t[np.flatnonzero(result.column("rejected"))]
    assert ((rejected_at > t_jump - 1e-3) & (rejected_at < t_jump + 1e-2)).any()
    before = result.H[(result.t[1:] > 0.15) & (result.t[1:] < t_jump - 1e-2)]
    near = result.H[(result.t[1:] > t_jump - 1e-3) & (result.t[1:] < t_jump + 5e-3)]
    assert near.min() < 0.2 * np.median(before)
    quiet = cs.simulate(kicked(9.0), t_end=0.4, method=method(degree=2), step=CONTROL)
    assert result.stats.rejected > quiet.stats.rejected


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", METHODS)
def test_without_rejection_nothing_repeats(method):
    """`reject=False`: as many subsystem calls as accepted steps need, and a larger error."""
    free = cs.simulate(kicked(0.2003), t_end=0.4, method=method(degree=2), step=replace(CONTROL, reject=False))
    assert free.stats.rejected == 0


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["F/D", "D/F", "D/D"])
def test_other_splits_are_controlled_alike(kind):
    """A tolerance ten times smaller: ten times less error (slope +-0.15)."""
    errors = [controlled(cs.SemiImplicit(degree=1), rtol, kind)[1] for rtol in (1e-2, 1e-3)]
    assert np.log10(errors[0] / errors[1]) == pytest.approx(1.0, abs=0.15)


def test_the_controllers_exponent():
    """Halving the tolerance moves the estimate to 2, and the step shrinks by 2^(-1/(k+1)) (controller "I")."""
    control = cs.Adaptive(rtol=1e-4, controller="I", q=1.0)
    for k in (0, 1, 2):
        assert control.next_step(1e-3, 2.0, None, degree=k) == pytest.approx(1e-3 * 2 ** (-1 / (k + 1)), rel=1e-12)
