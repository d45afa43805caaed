"""Runs are deterministic: same inputs, same bits, serial or parallel."""

import numpy as np
import pytest
from examples.two_mass.model import SCHMOLL, force_displacement, split
from examples.two_mass.study import with_micro_steps

import cosolve as cs

METHODS = [cs.Jacobi(2), cs.GaussSeidel(2), cs.SemiImplicit(1), cs.Implicit(1)]


@pytest.mark.sample(3)
@pytest.mark.covers("SC-24")
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.label)
@pytest.mark.parametrize(
    "build",
    [force_displacement, lambda: split("F/F", SCHMOLL), lambda: with_micro_steps("ode5", 1e-5)],
    ids=["exact", "force law", "micro steps"],
)
def test_in_process_runs_are_identical(build, method: cs.Method) -> None:
    """Serial, repeated on the same objects, on fresh objects, and on two threads: identical trajectories.

    Here in one process; tests/process/isolated compares transports between processes, tests/engine/native the
    compiled loop.
    """
    system = build()
    first = cs.simulate(system, t_end=0.02, method=method, step=1e-4)
    runs = [
        cs.simulate(system, t_end=0.02, method=method, step=1e-4),
        cs.simulate(build(), t_end=0.02, method=method, step=1e-4),
        cs.simulate(build(), t_end=0.02, method=method, step=1e-4, workers=2),
    ]
    for run in runs:
        for column in ("t", "y", "z", "H"):
            assert np.array_equal(first.column(column), run.column(column), equal_nan=True)


@pytest.mark.covers("SC-24")
def test_error_controlled_runs_are_identical() -> None:
    """The step sequence depends on the values alone, not on timing."""
    control = cs.Adaptive(rtol=1e-4, first_step=1e-5)
    one, two = (
        cs.simulate(force_displacement(), t_end=0.01, method=cs.Jacobi(2), step=control, workers=w) for w in (1, 2)
    )
    assert np.array_equal(one.t, two.t)
    assert np.array_equal(one.column("y"), two.column("y"))
