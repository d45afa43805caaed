"""Worker threads wait for worker processes: subsystems advance over a step at the same time (Schmoll (2015), 2.6.3)."""

from functools import partial

import numpy as np
import pytest
from tests.process.isolated import models

import cosolve as cs

RUN = {"t_end": 1.0, "method": cs.Jacobi(degree=1), "step": 0.1}


def _system(one, two):
    system = cs.System({"one": cs.remote.Isolated(one, timeout=600.0), "two": cs.remote.Isolated(two, timeout=60.0)})
    system.connect("one.x", "two.u")
    system.connect("two.x", "one.u")
    return system


def _meeting(folder, patience):
    return _system(
        partial(models.Rendezvous, str(folder), "one", "two", patience),
        partial(models.Rendezvous, str(folder), "two", "one", patience),
    )


@pytest.mark.covers("SC-25")
def test_two_busy_subsystems_are_inside_the_same_step_together(tmp_path):
    """Each subsystem step returns only when the other one has begun; one after the other that can never happen."""
    (tmp_path / "together").mkdir()
    (tmp_path / "alone").mkdir()
    together = _meeting(tmp_path / "together", 60.0)
    result = cs.simulate(together, **RUN, workers=2)
    assert len(result.t) == 11
    with pytest.raises(cs.errors.SubsystemError, match="two never came"):
        cs.simulate(_meeting(tmp_path / "alone", 0.2), **RUN, workers=1)


@pytest.mark.covers("SC-25")
def test_one_after_the_other_costs_the_sum_and_gives_the_same_bits(tmp_path):
    """Each call's time is inside that of the run; without threads no two calls overlap, so that their sum is too.

    Both are statements about one clock, true on any machine. In parallel the two meet in every step, so that each
    subsystem's own time holds the wait for the other one.
    """
    serial = cs.simulate(_system(models.Plain, models.Plain), **RUN, workers=1)
    parallel = cs.simulate(_meeting(tmp_path, 60.0), **RUN, workers=2)
    for channel in serial.names:
        assert np.array_equal(serial[channel], parallel[channel])
    assert 0.0 < sum(serial.stats.seconds.values()) <= serial.stats.wall_seconds
    assert 0.0 < max(parallel.stats.seconds.values()) <= parallel.stats.wall_seconds
    assert serial.stats.calls == parallel.stats.calls == {"one": 10, "two": 10}


def test_more_processes_than_cores():
    """Five processes on however few cores: the same bits as in this process."""
    ring = [models.Plain for _ in range(5)]
    results = []
    for wrap in (lambda factory: factory(), partial(cs.remote.Isolated, timeout=600.0)):
        system = cs.System({f"s{k}": wrap(factory) for k, factory in enumerate(ring)})
        for k in range(5):
            system.connect(f"s{k}.x", f"s{(k + 1) % 5}.u")
        results.append(
            cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=1), step=0.05, workers=4 * len(results) or 1)
        )
    for channel in results[0].names:
        assert np.array_equal(results[0][channel], results[1][channel])
