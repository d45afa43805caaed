"""Pictures of long series: no peak is lost, at any zoom, in files, in memory and while a run goes on."""

from types import SimpleNamespace

import numpy as np
import pytest

import cosolve as cs
from cosolve.result import Channel
from cosolve.viewer.growing_series import GrowingSeries
from cosolve.viewer.levels import Levels
from cosolve.viewer.result_view import ResultView
from cosolve.viewer.signals import STEPS, Signals


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 4095, 100_003])
@pytest.mark.parametrize("most", [16, 500])
def test_lowest_and_highest_are_those_of_the_rows(rows, most):
    values = np.random.default_rng(rows).normal(size=(rows, 2))
    levels = Levels(lambda a, b: values[a:b], rows, 2)
    for first, last in ((0, rows), (rows // 3, rows), (rows // 3, rows // 2 + 1)):
        slots = levels.window(first, last, most)
        assert len(slots.first) <= most
        ends = np.append(slots.first[1:], max(last, slots.first[-1] + 1) if slots.raw else rows)
        for k, (a, b) in enumerate(zip(slots.first, ends, strict=True)):
            if not slots.raw and k == len(slots.first) - 1:  # the last slot may reach beyond the window
                b = min(rows, a + (slots.first[1] - slots.first[0] if k else rows))
                assert slots.low[k, 0] <= values[a : min(last, b), 0].min()
                assert slots.high[k, 0] >= values[a : min(last, b), 0].max()
            else:
                assert slots.low[k, 0] == values[a:b, 0].min()
                assert slots.high[k, 1] == values[a:b, 1].max()


def test_slots_stand_still_while_a_picture_moves():
    values = np.random.default_rng(1).normal(size=(50_000, 1))
    levels = Levels(lambda a, b: values[a:b], 50_000, 1)
    one, moved = levels.window(10_000, 30_000, 300), levels.window(10_777, 30_777, 300)
    shared = np.intersect1d(one.first, moved.first)
    assert len(shared) > 100  # begin at the same rows, so the same pixels are drawn
    inner = shared[2:-2]
    assert (one.low[np.isin(one.first, inner)] == moved.low[np.isin(moved.first, inner)]).all()


def test_nan_does_not_hide_a_peak():
    values = np.full((10_000, 1), np.nan)
    values[5_000] = 3.0
    slots = Levels(lambda a, b: values[a:b], 10_000, 1).window(0, 10_000, 100)
    assert np.nanmax(slots.high) == 3.0
    assert np.isnan(slots.high).sum() == len(slots.high) - 1


def test_a_file_is_shown_as_the_memory_is(result, tmp_path):
    result_views = [ResultView(one, "") for one in (result, cs.load_result(result.save(tmp_path / "run.h5")))]
    for signal in result_views[0].signals.all:
        one, other = (result_view.window([signal.id], 0.0, 2.0, 50) for result_view in result_views)
        np.testing.assert_array_equal(one.slots.low, other.slots.low)
        assert one.frame() == other.frame()


def test_a_negative_factor_turns_lowest_into_highest(result):
    """`two.f` is minus the coupling variable `spring`."""
    result_view = ResultView(result, "")
    spring, force = (result_view.signals.by_name[name].id for name in ("spring", "two.f"))
    both = result_view.window([spring, force], 0.0, 2.0, 20).slots
    assert not both.raw
    np.testing.assert_array_equal(both.low[:, 1], -both.high[:, 0])


@pytest.mark.parametrize("chunk", [1, 7, 3000])
def test_a_run_of_any_length_fits_and_keeps_its_peaks(chunk):
    """12 000 rows in room for 64: a peak of one row is there to the end, early or late."""
    signals = Signals({"a.x": Channel("y", (0,), True)}, ["a"])
    growing = GrowingSeries(signals, (1, 0, 1), most_rows=64)
    values = np.sin(np.arange(12_000.0))
    values[[3, 6_001, 11_999]] = [5.0, -6.0, 7.0]
    rest = dict.fromkeys((*STEPS, "seconds", "calls"), 0.0)
    for at in range(0, 12_000, chunk):
        part = values[at : at + chunk]
        columns = {"t": at + np.arange(float(len(part))), "y": part[:, np.newaxis], "z": np.zeros((len(part), 0))}
        growing.put(SimpleNamespace(**rest, **columns))
        growing.take_in()
        assert growing._count <= 64
    window = growing.window([0], 0.0, 12_000.0, 1000)
    assert (growing.rows, growing.span) == (12_000, (0.0, 11_999.0))
    assert (window.slots.low.min(), window.slots.high.max()) == (-6.0, 7.0)
    early = growing.window([0], 0.0, 100.0, 1000)
    assert early.slots.high.max() == 5.0
    assert (np.diff(window.t) >= 0).all()


@pytest.mark.parametrize("sizes", [(1,), (5,), (2000,), (1, 1, 40, 2000, 3)])
def test_steps_look_the_same_however_they_come(sizes):
    """One by one, a few or thousands at a time, with a number for all steps or for each, all taken in at once."""
    chance = np.random.default_rng(5)
    values, effort = chance.standard_normal((4000, 3)), chance.integers(0, 9, 4000)
    signals = Signals({"a.x": Channel("y", (0,), True), "b.u": Channel("z", (0,), True)}, ["a", "b"])
    growing = GrowingSeries(signals, (2, 1, 2), most_rows=8000)
    at, k = 0, 0
    while at < 4000:
        rows = slice(at, min(4000, at + sizes[k % len(sizes)]))
        n = rows.stop - at
        each: dict[str, object] = dict.fromkeys(STEPS, effort[rows] if k % 2 else 4)
        each |= {"seconds": 0.5 if k % 3 else np.full((n, 2), 0.5), "calls": np.array([1, 2])}
        growing.put(SimpleNamespace(t=np.arange(4000.0)[rows], y=values[rows, :2], z=values[rows, 2:], **each))
        at, k = rows.stop, k + 1
    growing.take_in()
    found = growing._low[: growing._count]
    assert growing.rows == growing._count == 4000
    np.testing.assert_array_equal(found[:, :3], values)
    steps = found[:, 3 : 3 + len(STEPS)]
    assert ((steps == 4) | (steps == effort[:, np.newaxis])).all()
    np.testing.assert_array_equal(found[:, 3 + len(STEPS) :], np.tile([0.5, 0.5, 1, 2], (4000, 1)))


def test_a_difference_needs_no_common_grid(masses):
    fine, coarse = (cs.simulate(masses, t_end=1.0, method=cs.Jacobi(degree=2), step=H) for H in (0.005, 0.02))
    from cosolve.viewer.result_view import Difference

    one, other = ResultView(fine, "fine"), ResultView(coarse, "coarse")
    address = one.signals.by_name["two.x"].id
    window = Difference(one, other, address).window(0.0, 1.0, 5000)
    expected = fine["two.x"] - np.interp(fine.t, coarse.t, coarse["two.x"])
    np.testing.assert_allclose(window.slots.low.ravel(), expected, atol=1e-14)
    with pytest.raises(cs.errors.SetupError, match=r"'coarse' has no 'corrections'"):
        Difference(one, other, next(s.id for s in one.signals.all if s.name == "corrections"))


@pytest.mark.parametrize("count", [1, 63, 64, 5_000])
def test_times_of_a_long_run_are_found_without_keeping_them_all(monkeypatch, count):
    """Of long runs every 64th time is kept: rows of windows and times of rows are those of the whole column."""
    from cosolve.viewer import times

    t = np.cumsum(np.random.default_rng(3).integers(0, 3, count)).astype(float)  # with equal times, as at events
    monkeypatch.setattr(times, "_BLOCK", 640)
    whole = times.Times(lambda first, last: t[first:last], count)
    monkeypatch.setattr(times, "_SHORT", 0)
    reads = []
    sparse = times.Times(lambda first, last: reads.append(last - first) or t[first:last], count)
    for t0, t1 in [(-1.0, t[-1] + 1), (t[0], t[0]), (t[-1], t[-1] + 5), (t[count // 3], t[count // 2]), (7.5, 7.6)]:
        assert sparse.between(t0, t1) == whole.between(t0, t1)
    for rows in [np.arange(count), np.arange(0, count, 64), np.unique(np.linspace(0, count - 1, 50).astype(int))]:
        assert (sparse.at(rows) == t[rows]).all()
    reads.clear()
    sparse.between(t[0], t[-1])
    assert sum(reads) <= 128


def test_where_no_page_looks_steps_do_not_pile_up():
    """A run of many single steps whose page was closed: what waits to be looked at stays bounded."""
    growing = GrowingSeries(Signals({"a.x": Channel("y", (0,), True)}, ["a"]), (1, 0, 1), most_rows=64)
    rest = dict.fromkeys((*STEPS, "seconds", "calls"), 0.0) | {"y": np.ones((1, 1)), "z": np.zeros((1, 0))}
    for k in range(20_000):
        growing.put(SimpleNamespace(t=np.array([float(k)]), **rest))
        if k % 1000 == 0 and growing._helper is not None:
            growing._helper.join(10.0)
            assert len(growing._waiting) <= 4097 + 1000
    growing.take_in()
    assert growing.rows == 20_000
