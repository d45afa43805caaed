"""Jacobi subsystems run at the same time (Schmoll (2015), 2.6.3): shown by meetings inside the macro step.

A subsystem that returns only when another one is inside the same macro step can be coupled in parallel only. Where all
meet in every step, a step lasts as long as its slowest subsystem, and two equal loads take half of the serial time.
What threads and processes add to that is a matter of the machine (benchmarks/RESULTS.md).
"""

import threading

import numpy as np
import pytest

import cosolve as cs

STEPS = 20
WAIT = 60.0  # seconds until a meeting is given up; nothing passes by waiting


class Log:
    """Who entered and left a macro step, in order, and how many were inside at once."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, str]] = []
        self.inside = self.most = 0
        self._lock = threading.Lock()

    def note(self, name: str, what: str) -> None:
        with self._lock:
            self.entries.append((name, what))
            self.inside += 1 if what == "in" else -1
            self.most = max(self.most, self.inside)


class Member(cs.Subsystem):
    """Inside its macro step it waits at the barrier, where there is one."""

    inputs, outputs = ("u",), ("y",)

    def __init__(self, name: str, log: Log, barrier: threading.Barrier | None = None) -> None:
        self.name, self.log, self.barrier = name, log, barrier

    def start(self, t0: float) -> float:
        return 0.0

    def advance(self, t0: float, t1: float, u) -> float:
        self.log.note(self.name, "in")
        if self.barrier is not None:
            self.barrier.wait()
        self.log.note(self.name, "out")
        return t1 + 0.5 * u(t1)[0]


def run(count: int, method: cs.Method, workers: int, barrier: threading.Barrier | None = None):
    """A ring of subsystems; the log and the result."""
    log = Log()
    names = [f"s{k}" for k in range(count)]
    system = cs.System({name: Member(name, log, barrier) for name in names})
    for name, after in zip(names, [*names[1:], names[0]], strict=True):
        system.connect(f"{name}.y", f"{after}.u")
    return log, cs.simulate(system, t_end=1.0, method=method, step=1.0 / STEPS, workers=workers)


@pytest.mark.covers("SC-25")
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize(("count", "workers"), [(2, 2), (3, 3), (2, 5), (4, 2)])
def test_as_many_as_there_are_workers_are_inside_a_step_together(count: int, workers: int, degree: int) -> None:
    """All wait for each other in every macro step; four subsystems on two threads meet two by two.

    A step is as many meetings long as its slowest thread has subsystems: half of the serial time for two equal loads.
    """
    together = min(count, workers)
    meetings = []
    barrier = threading.Barrier(together, action=lambda: meetings.append(1), timeout=WAIT)
    log, parallel = run(count, cs.Jacobi(degree), workers, barrier)
    assert log.most == together
    assert len(meetings) == count // together * sum(parallel.stats.calls.values()) // count
    _, serial = run(count, cs.Jacobi(degree), 1)
    for name in serial.names:
        assert np.array_equal(parallel[name], serial[name])


@pytest.mark.covers("SC-25")
@pytest.mark.parametrize(
    ("method", "workers"), [(cs.Jacobi(1), 1), (cs.GaussSeidel(1), 1), (cs.GaussSeidel(1), 2)], ids=repr
)
def test_a_serial_run_is_inside_one_subsystem_at_a_time(method: cs.Method, workers: int) -> None:
    """With one thread, and in a serial sweep whatever the number of threads: a meeting never takes place."""
    log, result = run(2, method, workers)
    assert log.most == 1
    assert log.entries == [("s0", "in"), ("s0", "out"), ("s1", "in"), ("s1", "out")] * result.stats.calls["s0"]
    with pytest.raises(cs.errors.SubsystemError, match=r"BrokenBarrierError"):
        run(2, method, workers, threading.Barrier(2, timeout=0.05))


@pytest.mark.covers("SC-25")
def test_a_slow_subsystem_does_not_wait_for_the_others() -> None:
    """Unequal loads: while `slow` is inside one macro step, `fast` leaves its own and does not begin another."""

    class Slow(Member):
        def advance(self, t0: float, t1: float, u) -> float:
            self.log.note(self.name, "in")
            assert left.acquire(timeout=WAIT)  # comes back only after `fast` has left this step
            self.log.note(self.name, "out")
            return t1

    class Fast(Member):
        def advance(self, t0: float, t1: float, u) -> float:
            y = super().advance(t0, t1, u)
            left.release()
            return y

    left, log = threading.Semaphore(0), Log()
    system = cs.System({"slow": Slow("slow", log), "fast": Fast("fast", log)})
    system.connect("slow.y", "fast.u")
    system.connect("fast.y", "slow.u")
    result = cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=1.0 / STEPS, workers=2)
    steps = [log.entries[k : k + 4] for k in range(0, len(log.entries), 4)]
    assert len(steps) == result.stats.calls["slow"]
    for step in steps:
        assert sorted(step) == [("fast", "in"), ("fast", "out"), ("slow", "in"), ("slow", "out")]
        assert step[-1] == ("slow", "out")
