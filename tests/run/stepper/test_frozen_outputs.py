"""A subsystem that does not react is named at the end of the run, and no other."""

import numpy as np
import pytest

import cosolve as cs


class Frozen(cs.Subsystem):
    """Takes a force and stands still."""

    inputs, outputs = ["f"], ["x"]

    def __init__(self, free_from=np.inf):
        self.free_from = free_from

    def start(self, t0):
        return 0.5

    def advance(self, t0, t1, u):
        return 0.5 if t1 < self.free_from else 0.5 + t1


def coupled(other, swing=1.0):
    mass = cs.Linear([[0, 1], [-1, 0]], [[0], [1]], [[1, 0]], x0=[swing, 0], inputs=["f"], outputs=["x"])
    system = cs.System({"mass": mass, "other": other})
    system.connect("mass.x", "other.f")
    system.connect("other.x", "mass.f")
    return system


@pytest.mark.parametrize("compiled", [False, None])
def test_one_that_stands_still_is_named(compiled):
    run = cs.simulate(coupled(Frozen()), t_end=3.0, method=cs.Jacobi(1), step=0.1, compiled=compiled)
    assert "the outputs of 'other' did not change in 30 macro steps, although its inputs did" in run.stats.note(
        "frozen-outputs"
    )
    assert "NOTE: the outputs of 'other'" in str(run.stats)


def test_one_that_moves_late_is_not():
    assert not cs.simulate(coupled(Frozen(2.95)), t_end=3.0, method=cs.Jacobi(1), step=0.1).stats.note("frozen-outputs")


def test_one_that_nothing_pushes_is_not():
    """At rest with a constant input: there is nothing to react to."""
    rest = coupled(Frozen(), swing=0.5)
    assert not cs.simulate(rest, t_end=3.0, method=cs.Jacobi(1), step=0.1).stats.note("frozen-outputs")


def test_nothing_is_said_of_a_few_steps():
    assert not cs.simulate(coupled(Frozen()), t_end=1.0, method=cs.Jacobi(1), step=0.1).stats.note("frozen-outputs")


def test_one_that_moves_for_a_moment_is_not():
    """Every macro point is looked at, not only those at which steps are handed over."""

    class Blinking(Frozen):
        def advance(self, t0, t1, u):
            return 0.7 if 1.45 < t1 < 1.55 else 0.5

    assert not cs.simulate(coupled(Blinking()), t_end=3.0, method=cs.Jacobi(1), step=0.1).stats.note("frozen-outputs")
