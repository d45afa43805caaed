"""Rows are gathered and written in blocks: nothing of that may show in a result, however the run ends."""

import sys

import numpy as np
import pytest

import cosolve as cs


class Counter(cs.Subsystem):
    """Counts its crossings; what happens at the last one is up to the test."""

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


def _interrupted():
    raise KeyboardInterrupt


def test_ctrl_c_keeps_every_row_before_it(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        _run(_system(last=500, fate=_interrupted), save=tmp_path / "run.h5")
    kept = cs.load_result(tmp_path / "run.h5")
    np.testing.assert_array_equal(kept["a.n"], np.arange(500.0))  # the start and 499 steps
    assert "KeyboardInterrupt" in kept.error


def test_a_failure_keeps_every_row_before_it():
    with pytest.raises(cs.SubsystemError, match="'a' failed while crossing the step at t = 499: no more") as stopped:
        _run(_system(last=500, fate=lambda: (_ for _ in ()).throw(ValueError("no more"))))
    np.testing.assert_array_equal(stopped.value.result["a.n"], np.arange(500.0))


def test_the_first_of_two_that_fail_in_one_sweep_is_named():
    system = cs.System({"a": Counter(3, lambda: [float("nan"), 0.0]), "b": Counter(3, _broken)})
    system.connect("a.n", "b.u")
    system.connect("b.n", "a.u")
    for workers in (1, 2):
        with pytest.raises(cs.NonFiniteError, match="'a' returned nan for output 'n' while crossing the step at t = 2"):
            _run(system, workers=workers)


def _broken():
    raise RuntimeError("broken")


def test_what_a_list_holds_is_looked_at():
    """One list of all numbers is made into an array at once; what is unusual in it is still sorted out by name."""
    for good in ([7, 8], (7, 8.0), [np.array([7.0]), np.array([8.0])], [np.float32(7), True], {"u_end": 8, "n": 7}):
        assert _run(_system(last=2, fate=lambda good=good: good), 2)["a.n"][-1] == 7.0
    for bad in (["7", 8.0], [None, 8.0], [7j, 8.0], [7.0]):
        with pytest.raises(cs.SubsystemError, match="'a' failed while crossing the step at t = 1: returned"):
            _run(_system(last=2, fate=lambda bad=bad: bad), 2)
    with pytest.raises(cs.NonFiniteError, match="'a' returned -inf for output 'u_end'"):
        _run(_system(last=2, fate=lambda: [1.0, np.float64("-inf")]), 2)
    assert _run(_system(last=2, fate=lambda: [1e308, 1e308]), 2)["a.n"][-1] == 1e308  # large is not infinite
