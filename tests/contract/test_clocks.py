"""Macro points increase strictly and end exactly at `t_end`, for any span and any step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cosolve as cs
from cosolve.signal import Polynomial
from cosolve.stepsize import TickClock, UniformClock

starts = st.one_of(st.just(0.0), st.floats(-1e4, 1e4, allow_subnormal=False))
spans = st.one_of(
    st.floats(1e-3, 1e3),
    st.integers(1, 400).map(lambda n: n * 0.1),
    st.integers(1, 400).map(lambda n: n / 3),
)
steps = st.one_of(
    st.floats(1e-3, 1e2),
    st.sampled_from([0.1, 0.01, 0.2, 0.3, 0.7, 1 / 3, 1e-3, 0.05, 1.1]),
    st.integers(1, 500).map(lambda n: n * 1e-3),
)


@settings(max_examples=300)
@given(starts, spans, steps)
def test_uniform_clock(t_start, span, H):
    t_end = t_start + span
    if (t_end - t_start) / H > 5000:
        H = (t_end - t_start) / 4999.5
    clock = UniformClock(t_start, t_end, H)
    t = np.array([clock.time(n) for n in range(clock.count + 1)])
    lengths = np.array([clock.step(n) for n in range(clock.count)])
    assert np.array_equal(clock.times(0, clock.count), t)
    middle = clock.count // 2
    assert np.array_equal(clock.times(middle, clock.count), t[middle:])
    assert np.array_equal(clock.times(0, middle), t[: middle + 1])
    assert t[0] == t_start
    assert t[-1] == t_end
    assert (np.diff(t) > 0).all()
    assert lengths.max() <= H * (1 + 1e-8)
    rounding = 4 * np.spacing(max(abs(t_start), abs(t_end)))
    assert np.abs(lengths - np.diff(t)).max() <= rounding + 1e-15 * H
    assert len(set(lengths[:-1])) <= 1  # equal to the last bit: caches of step sizes rely on it
    assert clock.count - 1 < (t_end - t_start) / H * (1 + 1e-8)


@settings(max_examples=60)
@given(starts, spans, st.lists(steps, min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_tick_clock(t_start, span, wishes, random):
    t_end = t_start + span
    clock = TickClock(t_start, t_end)
    t, lengths = [clock.time], []
    for n in range(5000):
        if clock.done:
            break
        wish = random.choice(wishes) if n < 4000 else span
        ticks = clock.fit(max(wish, span / 1000))
        lengths.append(clock.length(ticks))
        clock.advance(ticks)
        t.append(clock.time)
    assert clock.done
    assert t[0] == t_start
    assert t[-1] == t_end
    assert (np.diff(t) > 0).all()
    assert np.abs(np.diff(t) - lengths).max() <= 8 * np.spacing(max(abs(t_start), abs(t_end), span))


def test_tick_clock_ends_at_t_end_where_start_plus_span_does_not():
    t_start, t_end = -10.1, 0.3
    assert t_start + (t_end - t_start) != t_end
    clock = TickClock(t_start, t_end)
    clock.advance(clock.fit(1e9))
    assert clock.time == t_end


def test_a_step_below_the_resolution_of_time_is_refused():
    with pytest.raises(cs.errors.SetupError, match="resolution"):
        UniformClock(1e16, 1e16 + 64, 0.5)


@pytest.mark.sample(6)
@pytest.mark.parametrize(("H", "t_end"), [(0.1, 1.0), (0.3, 1.0), (0.1, 0.3), (1e-3, 0.7), (5.0, 1.0)])
@pytest.mark.parametrize("t_start", [0.0, 0.1, -0.7])
def test_results_end_exactly_at_t_end(H, t_end, t_start):
    ball = cs.Ode(
        lambda t, x, u: [x[1], u[0]],
        lambda t, x, u: x[0],
        x0=[0, 1],
        inputs=["a"],
        outputs=["x"],
        integrator="ode4",
        internal_step=0.21,
    )
    spring = cs.Static(lambda t, u: -u[0], inputs=["x"], outputs=["f"])
    system = cs.System({"ball": ball, "spring": spring})
    system.connect("ball.x", "spring.x")
    system.connect("spring.f", "ball.a")
    end = t_start + t_end
    for method, step in [
        (cs.Jacobi(), H),
        (cs.Jacobi(), cs.Adaptive(rtol=1e-3, first_step=H, max_step=0.33)),
        (cs.LeaderFollower(leader="ball"), None),
        (cs.LeaderFollower(leader="ball"), H),
    ]:
        result = cs.simulate(system, t_start=t_start, t_end=end, method=method, step=step, every=3)
        assert result.t[-1] == end
        result = cs.simulate(system, t_start=t_start, t_end=end, method=method, step=step)
        assert (np.diff(result.t) > 1e-9 * min(H, 0.21)).all()  # no slivers either


def test_a_fixed_step_master_never_exceeds_its_own_step_after_being_cut_short():
    master = cs.Ode(
        lambda t, x, u: -x,
        lambda t, x, u: x,
        x0=[1.0],
        inputs=["u"],
        outputs=["x"],
        integrator="ode2",
        internal_step=0.1,
    )
    master.start(0.0)
    t, lengths = 0.0, []
    for macro_end in (0.25, 0.5, 0.75, 1.0):
        while t < macro_end:
            t1, _ = master.step(t, macro_end, Polynomial(t, macro_end - t, np.zeros((1, 1))))
            lengths.append(t1 - t)
            t = t1
    assert max(lengths) <= 0.1 + 1e-12
