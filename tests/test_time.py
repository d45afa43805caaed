"""Time is an index: no drift over a million steps, and the last step ends exactly at `t_end`."""

from fractions import Fraction

import numpy as np
import pytest

import cosolve as cs
from cosolve.stepsize import TickClock, UniformClock


def source() -> cs.System:
    """The cheapest system there is."""
    return cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})


@pytest.mark.parametrize("H", [0.1, 1e-3, 0.7, 1 / 3, 1e-6, 0.30000000000000004])
def test_a_million_uniform_steps_do_not_drift(H: float) -> None:
    """Every macro point is n H to rounding, where a sum of doubles is off by thousands of ulps."""
    n = 1_000_000
    clock = UniformClock(0.0, n * H, H)
    assert clock.count == n
    assert clock.time(n) == n * H
    for k in (1, 7, 999, 123_456, 500_000, 999_999):
        exact = float(Fraction(n * H) * k / n)
        assert abs(clock.time(k) - exact) <= 2 * np.spacing(exact)
    times = np.array([clock.time(k) for k in range(0, n + 1, 97)])
    assert np.all(np.diff(times) > 0)


def test_a_sum_of_doubles_would_drift() -> None:
    """What the index avoids: 0.1 added a million times misses 100 000 by more than 1e-6."""
    assert abs(np.cumsum(np.full(1_000_000, 0.1))[-1] - 100_000.0) > 1e-6
    assert UniformClock(0.0, 100_000.0, 0.1).time(1_000_000) == 100_000.0


@pytest.mark.parametrize(
    ("t_start", "t_end", "H"),
    [(0.0, 1.0, 0.1), (0.0, 0.3, 0.1), (0.0, 2.1, 0.3), (0.2, 1.1, 0.1), (-0.7, 0.7, 0.07), (0.0, 1e-3, 1e-6)],
)
def test_steps_like_a_tenth_divide_the_span(t_start: float, t_end: float, H: float) -> None:
    """The span is H times an integer up to rounding: no tiny extra step at the end."""
    result = cs.simulate(source(), t_start=t_start, t_end=t_end, method=cs.Jacobi(), step=H)
    assert result.t[-1] == t_end
    assert len(result.H) == round((t_end - t_start) / H)
    assert np.ptp(result.H) == 0.0


@pytest.mark.parametrize(("t_end", "H", "count"), [(1.0, 0.3, 4), (1.0, 0.999, 2), (1.0, 2.0, 1), (0.25, 0.1, 3)])
def test_a_step_that_does_not_divide_the_span_is_cut_at_the_end(t_end: float, H: float, count: int) -> None:
    """The last step is the shorter one and ends exactly at `t_end`."""
    result = cs.simulate(source(), t_end=t_end, method=cs.Jacobi(), step=H)
    assert result.t[-1] == t_end
    assert len(result.H) == count
    assert result.H[:-1] == pytest.approx(np.full(count - 1, H), rel=1e-15)
    assert result.H[-1] <= H


def test_ten_thousand_steps_of_the_engine() -> None:
    """The loop uses the clock: the subsystem sees n H at every macro point and `t_end` at the last."""
    result = cs.simulate(source(), t_end=1000.0, method=cs.Jacobi(), step=0.1)
    assert result.stats.steps == 10_000
    assert result.t[-1] == result["clock.t"][-1] == 1000.0
    exact = np.arange(10_001) / 10.0
    assert np.all(np.abs(result.t - exact) <= 2 * np.spacing(np.maximum(exact, 1.0)))


@pytest.mark.slow
def test_a_million_steps_of_the_engine() -> None:
    """The same, a hundred times as long, recording every thousandth point."""
    result = cs.simulate(source(), t_end=100_000.0, method=cs.Jacobi(), step=0.1, every=1000)
    assert result.stats.steps == 1_000_000
    assert result.t[-1] == 100_000.0
    exact = np.arange(1001) * 100.0
    assert np.all(np.abs(result.t - exact) <= 2 * np.spacing(np.maximum(exact, 1.0)))


def test_a_million_variable_steps_end_exactly() -> None:
    """Ticks are integers: a million steps of changing length add up to the span without rounding."""
    clock = TickClock(0.0, 0.3)
    sizes = 0.3e-6 * (0.5 + np.random.default_rng(3).random(1_000_000))
    total = 0
    for H in sizes:
        if clock.done:
            break
        ticks = clock.fit(float(H))
        total += ticks
        clock.advance(ticks)
    while not clock.done:
        ticks = clock.fit(1e-3)
        total += ticks
        clock.advance(ticks)
    assert clock.time == 0.3
    assert clock.length(total) == 0.3


def test_error_controlled_steps_end_exactly() -> None:
    """Whatever the step control proposes, the last point is `t_end` itself."""
    a = cs.Static(lambda t, u: np.sin(7 * t), inputs=[], outputs=["y"])
    b = cs.Static(lambda t, u: u[0], inputs=["u"], outputs=["y"])
    system = cs.System({"a": a, "b": b})
    system.connect("a.y", "b.u")
    for t_end in (0.3, 1.1, np.pi):
        result = cs.simulate(system, t_end=t_end, method=cs.Jacobi(2), step=cs.Adaptive(rtol=1e-3, first_step=1e-2))
        assert result.t[-1] == t_end
        assert np.all(np.diff(result.t) > 0)
