"""Worker threads wait for worker processes: subsystems cross a step at the same time (Schmoll (2015), 2.6.3)."""

from functools import partial

import numpy as np
import pytest
from tests.isolated import models
from tests.undisturbed import undisturbed

import cosolve as cs


def _system(one, two):
    system = cs.System({"one": cs.Isolated(one, timeout=60.0), "two": cs.Isolated(two, timeout=60.0)})
    system.connect("one.x", "two.u")
    system.connect("two.x", "one.u")
    return system


def _meeting(folder, patience):
    return _system(
        partial(models.Meeting, str(folder), "one", "two", patience),
        partial(models.Meeting, str(folder), "two", "one", patience),
    )


@pytest.mark.covers("SC-25")
def test_two_busy_subsystems_are_inside_the_same_step_together(tmp_path):
    """Each crossing returns only when the other one has begun; one after the other that can never happen."""
    (tmp_path / "together").mkdir()
    (tmp_path / "alone").mkdir()
    together = _meeting(tmp_path / "together", 30.0)
    result = cs.simulate(together, t_end=1.0, method=cs.Jacobi(degree=1), step=0.1, workers=2)
    assert len(result.t) == 11
    with pytest.raises(cs.SubsystemError, match="two never came"):
        cs.simulate(_meeting(tmp_path / "alone", 0.2), t_end=1.0, method=cs.Jacobi(degree=1), step=0.1, workers=1)


@pytest.mark.covers("SC-25")
def test_cost_of_a_parallel_step_is_that_of_the_slowest():
    """Wall time of Jacobi is `max(S1 + K1, S2 + K2)` per step, of a serial run the sum; all measured in one run.

    `seconds` holds solver plus coupling time of each call. Equal loads: at most 0.65 of the serial sum.
    """
    run = partial(cs.simulate, t_end=1.0, method=cs.Jacobi(degree=1), step=0.1)
    even = _system(partial(models.Load, 0.04), partial(models.Load, 0.04))
    other = _system(partial(models.Load, 0.04), partial(models.Load, 0.01))
    run(other, workers=2)  # starts the processes, which is not part of a step

    def check():
        serial, parallel = run(even, workers=1), run(even, workers=2)
        for channel in serial.names:
            assert np.array_equal(serial[channel], parallel[channel])
        model = max(parallel.stats.seconds.values())
        assert parallel.stats.wall_seconds <= 1.25 * model
        assert parallel.stats.wall_seconds <= 0.65 * sum(serial.stats.seconds.values())
        assert serial.stats.wall_seconds >= sum(serial.stats.seconds.values())
        uneven = run(other, workers=2)
        assert uneven.stats.wall_seconds <= 1.25 * uneven.stats.seconds["one"]
        assert uneven.stats.seconds["two"] < 0.75 * uneven.stats.seconds["one"]

    undisturbed(check)


def test_more_processes_than_cores():
    """Five processes on however few cores: the same bits as in this process."""
    ring = [models.Plain for _ in range(5)]
    results = []
    for wrap in (lambda factory: factory(), partial(cs.Isolated, timeout=60.0)):
        system = cs.System({f"s{k}": wrap(factory) for k, factory in enumerate(ring)})
        for k in range(5):
            system.connect(f"s{k}.x", f"s{(k + 1) % 5}.u")
        results.append(
            cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=1), step=0.05, workers=4 * len(results) or 1)
        )
    for channel in results[0].names:
        assert np.array_equal(results[0][channel], results[1][channel])
