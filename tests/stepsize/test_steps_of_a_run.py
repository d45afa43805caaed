"""Every step of an error-controlled run against the formulas written out again: Schmoll (2015), Eqs. 2.30-2.32.

Both engines call the same functions, so that they agree shows nothing about them.
"""

import numpy as np
import pytest

import cosolve as cs

ALPHA, BETA, SHRINK, GROW = 0.7, 0.4, 0.25, 4.0
Q = 0.995  # hardly any safety: many steps are a little too long and repeated


def tanks() -> cs.System:
    fast = cs.Linear([[-3.0]], [[3.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])
    swing = cs.Linear(
        [[0.0, 1.0], [-25.0, -0.3]], [[0.0], [25.0]], [[1.0, 0.0]], x0=[0.0, 0.0], inputs=["u"], outputs=["x"]
    )
    system = cs.System({"fast": fast, "swing": swing})
    system.connect("fast.x", "swing.u")
    system.connect("swing.x", "fast.u")
    return system


def proposed(H: float, error: float, previous: float | None, order: int, controller: str) -> float:
    if controller == "I":
        factor = error ** (-1.0 / order)
    elif previous is None:
        factor = error ** (-ALPHA / order)
    else:
        factor = error ** (-ALPHA / order) * previous ** (BETA / order)
    return min(GROW, max(SHRINK, Q * factor)) * H


@pytest.mark.parametrize("compiled", [False, True], ids=["readable", "compiled"])
@pytest.mark.parametrize("controller", ["I", "PI"])
def test_lengths_follow_from_the_estimates(controller: str, compiled: bool) -> None:
    """The step after a repeated one knows of no estimate before that one.

    A step that was repeated once has an estimate of about 1: estimates go with the power `degree + 1` of the step.
    """
    degree = 2
    control = cs.Adaptive(rtol=3e-3, atol=3e-5, first_step=1e-3, controller=controller, q=Q, weights="newest")
    run = cs.simulate(tanks(), t_end=8.0, method=cs.Jacobi(degree), step=control, compiled=compiled)
    assert (run.stats.compiled_steps > 0) == compiled
    H, error, rejected = (run.column(name)[1:] for name in ("H", "error", "rejected"))
    alone = repeated = 0
    for n in range(degree + 3, len(H) - 2):  # past the start, and the end cuts the last one
        before = None if rejected[n] else error[n - 1]
        wanted = proposed(H[n], error[n], before, degree + 1, controller)
        if rejected[n + 1]:
            repeated += 1
            assert H[n + 1] < wanted
        else:
            alone += bool(rejected[n])
            assert H[n + 1] == pytest.approx(wanted, rel=1e-9)
    assert repeated >= 3
    assert alone >= 2  # steps after a repeated one, that is without a memory
    once = error[degree + 3 :][rejected[degree + 3 :] == 1]
    assert np.median(once) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("controller", ["I", "PI"])
def test_a_run_with_another_end_goes_on_with_the_step_that_was_due(controller: str) -> None:
    """The length and, for the second factor of PI, the last estimate are in the saved state."""
    control = cs.Adaptive(rtol=1e-4, first_step=1e-3, controller=controller)
    method = cs.SemiImplicit(1)

    def stepper(t_end: float) -> cs.Stepper:
        return cs.Stepper(tanks(), method=method, step=control, t_end=t_end)

    with stepper(3.0) as running:
        for _ in range(12):
            running.step()
        saved = running.save()
        lengths = np.diff([running.t, running.step(), running.step()])
    with stepper(4.0) as longer:
        longer.restore(saved)
        assert np.diff([longer.t, longer.step(), longer.step()]) == pytest.approx(lengths, rel=1e-9)


class Forward(cs.Subsystem):
    """Cannot go back."""

    inputs, outputs = ("u",), ("x",)

    def start(self, t0):
        return 0.0

    def advance(self, t0, t1, u):
        return t1


@pytest.mark.parametrize(
    ("options", "back", "first"),
    [
        ({"rtol": 1e-6}, True, 1e-4 * 20.0),  # a share of the run: too long a step would be repeated
        ({"rtol": 1e-6}, False, 3e-3 * 1e-3 * 20.0),  # an error of about H^2 must fit
        ({"rtol": 1.0}, False, 1e-4 * 20.0),
        ({"rtol": 1e-6, "first_step": 0.5}, False, 0.5),
        ({"rtol": 1e-6, "min_step": 0.1}, True, 0.1),
        ({"rtol": 1e-6, "first_step": 0.5, "max_step": 0.2}, True, 0.2),
    ],
)
def test_the_first_step(options, back: bool, first: float) -> None:
    one = cs.System({"a": cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[0.0], inputs=["u"], outputs=["x"])})
    one = one if back else cs.System({"a": Forward()})
    one.set("a.u", 0.0)
    with cs.Stepper(one, method=cs.Jacobi(0), step=cs.Adaptive(**options), t_end=20.0) as stepper:
        assert stepper.step() == pytest.approx(first, rel=1e-9)
