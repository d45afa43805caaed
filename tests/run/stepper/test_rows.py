"""Rows are gathered and written in blocks: nothing of that may show in a result, however the run ends."""

import sys

import numpy as np
import pytest

import cosolve as cs
from cosolve.run.engines import StepByStep


class Counter(cs.Subsystem):
    """Counts its subsystem steps; what happens at the last one is up to the test."""

    inputs, outputs = ["u"], ["n", "u_end"]

    def __init__(self, last=None, fate=None):
        self.last, self.fate = last, fate

    def start(self, t0):
        self.n = 0
        return [0.0, 0.0]

    def advance(self, t0, t1, u):
        self.n += 1
        if self.n == self.last:
            return self.fate()
        return [float(self.n), u.end[0]]

    def save(self):
        return self.n

    def restore(self, state):
        self.n = state


def _system(**last):
    system = cs.System({"a": Counter(**last), "b": Counter()})
    system.connect("a.n", "b.u")
    system.connect("b.n", "a.u")
    return system


def _run(system, steps=700, method=None, **options):
    return cs.simulate(system, t_end=float(steps), step=1.0, method=method or cs.Jacobi(1), compiled=False, **options)


@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.Implicit(0, corrector=cs.Relaxation(0.9), tol=1e-3)])
@pytest.mark.parametrize("every", [1, 7])
def test_blocks_of_any_length_hold_the_same_rows(monkeypatch, method, every):
    gathered = _run(_system(), 40, method, every=every)
    monkeypatch.setattr(sys.modules["cosolve.run.engines"], "_WRITE_EVERY", -1.0)  # every row by itself
    single = _run(_system(), 40, method, every=every)
    for name, column in gathered._columns().items():
        if name != "seconds":
            np.testing.assert_array_equal(column, single._columns()[name], err_msg=name)
    assert gathered.stats.calls == single.stats.calls
    assert gathered._columns()["calls"].sum(axis=0).tolist() == list(gathered.stats.calls.values())


class Fives:
    """A fast engine of a user: five steps at a time, and now and then it must pass."""

    reason, loading, worth_it = None, 0.0, True

    def __init__(self, core):
        self._steps, self._turn = StepByStep(core), 0

    def take(self, buffers=None):
        self._turn += 1
        if self._turn % 3 == 0:
            return None
        chunk = self._steps.take(5)
        chunk.compiled, chunk.seconds = True, np.nan
        return chunk


@pytest.mark.parametrize("every", [1, 7, 1000])
def test_another_engine_is_booked_like_our_own(monkeypatch, every):
    method = cs.Implicit(0, corrector=cs.Relaxation(0.9), tol=1e-3)
    ours = _run(_system(), 40, method, every=every)
    monkeypatch.setattr("cosolve.run.engines.Chunks", Fives)
    monkeypatch.setattr("cosolve.run.engines._WRITE_EVERY", np.inf)  # fives even on a busy machine
    theirs = cs.simulate(_system(), t_end=40.0, step=1.0, method=method, every=every)
    for name, column in ours._columns().items():
        if name != "seconds":
            np.testing.assert_array_equal(theirs._columns()[name], column, err_msg=name)
    assert theirs.stats.compiled_steps == 37  # fives, with three steps in between that it passed
    for name in ("steps", "iterations", "calls", "max_residual", "unconverged", "notes"):
        assert getattr(theirs.stats, name) == getattr(ours.stats, name), name


def _over():
    raise cs.errors.EndOfSimulation("enough")


@pytest.mark.parametrize("every", [1, 7, 1000])
def test_an_end_inside_a_step_leaves_the_point_before_it(every):
    ended = _run(_system(last=25, fate=_over), every=every)
    assert ended.t[-1] == ended["a.n"][-1] == 24.0
    assert ended._columns()["calls"].sum(axis=0).tolist() == [24, 24]  # the step that was left belongs to no row
    assert ended.stats.calls == {"a": 25, "b": 24}


def _interrupted():
    raise KeyboardInterrupt


def test_ctrl_c_keeps_every_row_before_it(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        _run(_system(last=500, fate=_interrupted), save=tmp_path / "run.h5")
    kept = cs.load_result(tmp_path / "run.h5")
    np.testing.assert_array_equal(kept["a.n"], np.arange(500.0))  # the start and 499 steps
    assert "KeyboardInterrupt" in kept.error


def test_a_failure_keeps_every_row_before_it():
    with pytest.raises(cs.errors.SubsystemError, match="'a' failed while advancing at t = 499: no more") as stopped:
        _run(_system(last=500, fate=lambda: (_ for _ in ()).throw(ValueError("no more"))))
    np.testing.assert_array_equal(stopped.value.result["a.n"], np.arange(500.0))


def test_the_first_of_two_that_fail_in_one_sweep_is_named():
    system = cs.System({"a": Counter(3, lambda: [float("nan"), 0.0]), "b": Counter(3, _broken)})
    system.connect("a.n", "b.u")
    system.connect("b.n", "a.u")
    for workers in (1, 2):
        with pytest.raises(cs.errors.NonFiniteError, match="'a' returned nan for output 'n' while advancing at t = 2"):
            _run(system, workers=workers)


def _broken():
    raise RuntimeError("broken")


def test_what_a_list_holds_is_looked_at():
    """One list of all numbers is made into an array at once; what is unusual in it is still sorted out by name."""
    for good in ([7, 8], (7, 8.0), [np.array([7.0]), np.array([8.0])], [np.float32(7), True], {"u_end": 8, "n": 7}):
        assert _run(_system(last=2, fate=lambda good=good: good), 2)["a.n"][-1] == 7.0
    for bad in (["7", 8.0], [None, 8.0], [7j, 8.0], [7.0]):
        with pytest.raises(cs.errors.SubsystemError, match="'a' failed while advancing at t = 1: returned"):
            _run(_system(last=2, fate=lambda bad=bad: bad), 2)
    with pytest.raises(cs.errors.NonFiniteError, match="'a' returned -inf for output 'u_end'"):
        _run(_system(last=2, fate=lambda: [1.0, np.float64("-inf")]), 2)
    assert _run(_system(last=2, fate=lambda: [1e308, 1e308]), 2)["a.n"][-1] == 1e308  # large is not infinite
