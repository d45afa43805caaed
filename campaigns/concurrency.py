"""Several at once: simulations in threads, processes that compile the same with an empty cache, forks and spawns."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
from tests.process.isolated.leftovers import leftovers, stay
from tests.process.isolated.models import Plain
from tests.processes import environment, started

import cosolve as cs
from campaigns.page import Outcome
from campaigns.soak import _masses

PROGRAM = """
import numpy as np
import cosolve as cs
from campaigns.concurrency import digest, simulated
print(digest(simulated(COMPILED)))
"""


def simulated(compiled: bool, isolated: bool = False) -> cs.Result:
    """A run of two masses, or of one and a process."""
    system = _masses()
    if isolated:
        system = cs.System({"a": Plain(), "b": cs.remote.Isolated(Plain, timeout=120.0)})
        system.connect("a.x", "b.u")
        system.connect("b.x", "a.u")
    return cs.simulate(system, t_end=0.5, method=cs.Jacobi(degree=1), step=1e-3, compiled=compiled)


def digest(result: cs.Result) -> str:
    """All bits of the result."""
    return b"".join(np.ascontiguousarray(result[name]).tobytes() for name in result.names).hex()[-4096:]


def in_threads(count: int, compiled: bool, isolated: bool = False) -> int:
    """How many of so many runs at the same time have other bits than a run alone, or fail."""
    expected = digest(simulated(compiled, isolated))
    wrong: list[object] = []
    barrier = threading.Barrier(count)

    def work() -> None:
        try:
            barrier.wait(60.0)
            if digest(simulated(compiled, isolated)) != expected:
                wrong.append("other bits")
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600.0)
        if thread.is_alive():
            wrong.append("hangs")
    return len(wrong)


def cold(count: int) -> int:
    """How many of so many processes that begin with one empty cache of machine code end with other bits, or fail."""
    expected = digest(simulated(True))
    with tempfile.TemporaryDirectory() as folder:
        given = environment(NUMBA_CACHE_DIR=str(Path(folder, "numba")), XDG_CACHE_HOME=folder)
        command = [sys.executable, "-c", PROGRAM.replace("COMPILED", "True")]
        wrong, running = 0, []
        for _ in range(count):
            running.append(started(command, limit=1200.0, env=given, stdout=-1))
        processes = [one.__enter__() for one in running]
        for one, process in zip(running, processes, strict=True):
            said = process.communicate()[0]
            wrong += process.returncode != 0 or said.strip() != expected
            one.__exit__(None, None, None)
    return wrong


def _child(queue: Any, compiled: bool) -> None:
    queue.put(digest(simulated(compiled)))


def by(method: str, count: int) -> int:
    """How many children of this process, made by fork or spawn after it has run something, fail or differ."""
    expected = digest(simulated(True))
    context: Any = multiprocessing.get_context(method)
    queue = context.Queue()
    children = [context.Process(target=_child, args=(queue, True)) for _ in range(count)]
    for child in children:
        child.start()
    found = [queue.get(timeout=600.0) for _ in children]
    for child in children:
        child.join(60.0)
    return sum(one != expected for one in found) + sum(child.exitcode != 0 for child in children)


def forked_with_process() -> int:
    """A fork of a run with a process of its own must not end that process when it goes: 1 where it does."""
    apart = cs.remote.Isolated(Plain, timeout=120.0)
    apart.start(0.0)
    pid = os.fork()
    if pid == 0:
        apart.__dict__.clear()
        os._exit(0)
    os.waitpid(pid, 0)
    alive = apart._worker.alive
    apart.close()
    return int(not alive)


def run(quick: bool = False) -> Outcome:
    """The campaign."""
    outcome = Outcome(["what", "at once", "failed or other bits"])
    before = leftovers()
    n = 2 if quick else 8
    outcome.rows.append(["threads, Python engine", n, in_threads(n, False)])
    if not quick:
        outcome.rows.append(["threads, compiled engine", n, in_threads(n, True)])
        outcome.rows.append(["threads, a process each", n, in_threads(n, False, isolated=True)])
        outcome.rows.append(["processes with one empty cache", 4, cold(4)])
        outcome.rows.append(["forks after a compiled run", 4, by("fork", 4)])
        outcome.rows.append(["spawned after a compiled run", 4, by("spawn", 4)])
        outcome.rows.append(["fork of a run with a process", 1, forked_with_process()])
        outcome.rows.append(["files of shared memory left", "", len(stay(before))])
    outcome.good = not any(row[2] for row in outcome.rows)
    return outcome
