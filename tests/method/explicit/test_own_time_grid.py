"""Solvers with a time grid of their own: long micro steps, overshoot, rejected steps (Schmoll (2015), 2.4.5)."""

from collections.abc import Callable

import numpy as np
import pytest
from examples.two_mass.study import engine, global_error, known_past, with_micro_steps
from tests.choice import quick

import cosolve as cs
from cosolve.subsystem.interpolated_outputs import AcceptedSteps


def free_error(p: int, H: float, h: float, t_end: float, back: int | None = None) -> float:
    """Jacobi with both solvers on their own grid of step `h`."""
    system = with_micro_steps("ode5", h, free=True, degree=back)
    return global_error(engine(cs.Jacobi(p), H, t_end, system=system, startup=known_past()))


@pytest.mark.covers("SC-19")
@pytest.mark.parametrize("p", quick([0, 1, 2], 1))
@pytest.mark.parametrize("H", quick([3e-6, 5.6e-6], 5.6e-6))
def test_micro_steps_longer_than_the_macro_step(p: int, H: float) -> None:
    """h = 1e-5 > H: nothing is gained, nothing lost; within a factor of 2 of H = h (T = 0.02 s)."""
    equal, longer = (free_error(p, step, 1e-5, 0.02) for step in (1e-5, H))
    assert equal / 2 < longer < 2 * equal


@pytest.mark.slow
@pytest.mark.covers("SC-19")
@pytest.mark.parametrize("p", [0, 1, 2])
def test_micro_steps_longer_than_the_macro_step_over_a_second(p: int) -> None:
    """The same over the full second of the source, H = 3e-6."""
    equal, longer = (free_error(p, step, 1e-5, 1.0) for step in (1e-5, 3e-6))
    assert equal / 2 < longer < 2 * equal


@pytest.mark.covers("SC-20")
@pytest.mark.parametrize("p", quick([0, 1, 2, 3], 2))
def test_overshoot_keeps_the_order(p: int) -> None:
    """Micro steps never meet the macro points (h = 0.83 H); interpolated back with degree p the order stays p + 1."""
    steps = (4e-6, 2e-6) if p == 0 else (1e-5, 5e-6)
    errors = [free_error(p, H, 0.83 * H, 0.01) for H in steps]
    assert cs.analysis.convergence_order(steps, errors) == pytest.approx(p + 1, abs=0.1)


@pytest.mark.covers("SC-20")
@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 2, 3])
def test_back_interpolation_of_lower_degree_costs_order(p: int) -> None:
    """Degree p - 1 falls to order p (reached from above, hence the wider margin) and is less accurate."""
    steps = (1e-5, 5e-6, 2.5e-6)
    errors = [free_error(p, H, 0.83 * H, 0.005, back=p - 1) for H in steps]
    observed = cs.analysis.convergence_order(steps[1:], errors[1:])
    assert p - 0.1 < observed < p + 0.25
    assert errors[-1] > 2 * free_error(p, steps[-1], 0.83 * steps[-1], 0.005)


# -- rejected micro steps ----------------------------------------------------------------------------------

Tool = Callable[[Callable], None]


def tool(rejections: dict[int, list[float]], *, go_back: bool) -> Tool:
    """A solver that owns its loop: Euler steps of 1/64 s on x' = u - x.

    `rejections` maps the number of a step to trial step lengths that it throws away, each with absurd values;
    `go_back` makes it ask again at the accepted point afterwards, as real solvers do.
    """

    def run(exchange: Callable) -> None:
        h, n, x = 1 / 64, 0, 1.0
        while True:
            u = exchange(n * h, [x])
            for trial in rejections.get(n, []):
                exchange(n * h + trial, [1e30])
                if go_back:
                    exchange(n * h, [x])
            x += h * (u[0] - x)
            n += 1

    return run


def coupled(run: Tool) -> cs.System:
    other = cs.Ode(
        lambda t, x, u: -2 * x + u,
        lambda t, x, u: x,
        x0=[0.5],
        inputs=["u"],
        outputs=["x"],
        integrator="ode4",
        internal_step=0.01,
    )
    system = cs.System({"tool": cs.CallbackSubsystem(run, inputs=["u"], outputs=["x"]), "other": other})
    system.connect("tool.x", "other.u")
    system.connect("other.x", "tool.u")
    return system


@pytest.mark.covers("SC-21")
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("go_back", [False, True], ids=["shorter next", "asks again"])
def test_rejected_steps_do_not_change_a_bit(degree: int, go_back: bool) -> None:
    """Absurd values of rejected trials, inside macro steps and across macro points, leave all exchanges unchanged."""
    rejections = {0: [1 / 64], 3: [1 / 64], 5: [0.2, 0.1, 1 / 64], 6: [1 / 64], 12: [0.5], 31: [1 / 64], 32: [0.3]}
    clean, disturbed = (
        cs.simulate(coupled(tool(trials, go_back=go_back)), t_end=1.0, method=cs.Jacobi(degree), step=0.1)
        for trials in ({}, rejections)
    )
    for name in ("tool.x", "other.x"):
        assert np.array_equal(clean[name], disturbed[name])
    assert np.abs(clean["tool.x"]).max() < 2


@pytest.mark.covers("SC-21")
def test_only_points_that_the_solver_has_left_behind_count() -> None:
    """The newest offer stays unpublished until time moves on; going back withdraws what lies ahead."""
    steps = AcceptedSteps()
    for t, y in [(0.0, 0.0), (1.0, 1.0), (2.0, 99.0)]:
        steps.offer(t, np.array([y]))
    assert steps.times == [0.0, 1.0]
    for t, y in [(1.0, 1.0), (1.5, 1.5), (2.0, 2.0), (2.5, 2.5)]:  # back to 1.0, then shorter steps
        steps.offer(t, np.array([y]))
    assert steps.times == [0.0, 1.0, 1.5, 2.0]
    assert steps.at(1.75, degree=3)[0] == pytest.approx(1.75, abs=1e-14)


@pytest.mark.covers("SC-20")
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_back_interpolation_is_exact_for_polynomials(degree: int) -> None:
    """Uneven internal points, any macro point between them."""
    steps = AcceptedSteps()
    for t in (0.0, 0.3, 0.4, 0.9, 1.1, 1.6):
        steps.accept(t, np.array([t**degree]))
    for t in (1.15, 1.3, 1.6):
        expected = t**degree if degree else 1.0
        assert steps.at(t, degree)[0] == pytest.approx(expected, rel=1e-13)
