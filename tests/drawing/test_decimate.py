"""Thinned series keep their peaks, their ends and their order, at any length and with uneven steps."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cosolve.drawing.decimate import envelope


def test_single_point_peaks_survive_in_a_million_points():
    t = np.linspace(0.0, 10.0, 1_000_000)
    values = np.sin(t)
    values[123_457], values[654_321] = 40.0, -50.0
    t_few, few = envelope(t, values, 4000)
    assert len(few) <= 4000
    assert few.max() == 40.0
    assert few.min() == -50.0
    assert t_few[np.argmax(few)] == t[123_457]
    assert (t_few[0], t_few[-1]) == (t[0], t[-1])


def test_uneven_steps_leave_no_part_of_the_time_axis_empty():
    # 99 % of the points in the first millisecond: the rest must still be drawn in full
    t = np.concatenate([np.linspace(0.0, 1e-3, 99_000), np.linspace(1.001e-3, 1.0, 1000)])
    t_few, _ = envelope(t, np.cos(50 * t), 1000)
    assert np.diff(t_few).max() < 1.0 / 300


@given(st.integers(2, 3000), st.integers(6, 500))
def test_extremes_and_order_are_kept_whatever_the_length(count, points):
    rng = np.random.default_rng(count)
    t, values = np.cumsum(rng.random(count) + 1e-3), rng.standard_normal(count)
    t_few, few = envelope(t, values, points)
    assert len(t_few) <= max(points, 0)
    assert (few.min(), few.max()) == (values.min(), values.max())
    assert (np.diff(t_few) > 0).all()
