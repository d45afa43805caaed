"""Where variants run one by one: here, in processes, or on a Dask cluster. Results never depend on it."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from time import perf_counter
from typing import Any

from cosolve.basics.packages import optional
from cosolve.errors import SetupError
from cosolve.sweeps.job import Item, Job, Sink
from cosolve.sweeps.single_runs import in_words, run_chunk, run_items
from cosolve.sweeps.workers import Workers

_SERIAL_FIRST = 1.0  # seconds of running here before anything else is thought of
_WORTH_STARTING = 5.0  # seconds of work left that repay starting processes
_LONGEST_CHUNK = 64

Tick = Callable[[int], None]


def cores() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def why_not_processes(job: Job) -> str | None:
    """Why the variants cannot run in other processes, in one sentence; None when they can."""
    for name, function in (("build", job.build), ("reduce", job.reduce)):
        module = getattr(function, "__module__", None)
        if callable(function) and module == "__main__" and not hasattr(sys.modules["__main__"], "__file__"):
            return f"{name} was typed in, so other processes cannot import it; put it into a file"
    try:
        pickle.dumps(job)
    except Exception:
        return "build (or reduce, or a method) cannot be sent to other processes; define it at the top of a module"
    return None


def run_here(job: Job, items: Sequence[Item], sink: Sink, tick: Tick) -> str:
    """All of them in this process."""
    run_items(job, items, sink, tick)
    return "in this process"


def run_anywhere(job: Job, items: Sequence[Item], workers: int, sink: Sink, tick: Tick) -> str:
    """Here as long as that is quick, then in processes where that is possible."""
    began = perf_counter()
    for done, item in enumerate(items, start=1):
        run_items(job, [item], sink, tick)
        spent = perf_counter() - began
        if workers > 1 and spent > _SERIAL_FIRST and spent / done * (len(items) - done) > _WORTH_STARTING:
            reason = why_not_processes(job)
            if reason is None:
                return run_in_processes(job, items[done:], workers, sink, tick)
            run_items(job, items[done:], sink, tick)
            return f"in this process: {reason}"
    return "in this process"


def chunks_of(items: Sequence[Item], workers: int) -> list[Sequence[Item]]:
    """Parts that are handed out one at a time."""
    size = max(1, min(_LONGEST_CHUNK, ceil(len(items) / (8 * workers))))
    return [items[k : k + size] for k in range(0, len(items), size)]


def run_in_processes(job: Job, items: Sequence[Item], workers: int, sink: Sink, tick: Tick) -> str:
    """A chunk at a time for each process; where one dies, its variants run again one by one, to find which kills it."""
    count = min(workers, len(items))
    waiting: list[Sequence[Item]] = list(reversed(chunks_of(items, count)))
    suspects: list[Item] = []
    died = 0
    with Workers(job, count) as staff:
        able = staff.can_start()
        while able and (waiting or staff.busy):
            staff.hand_out(waiting)
            for chunk, found in staff.collect():
                if found is None:
                    suspects.extend(chunk)
                else:
                    found.hand_on(sink)
                    tick(_runs(chunk))
        for item in suspects:
            found = staff.alone([item])
            if found is None:
                died += 1
                for m, s in item[2]:
                    sink.fail((item[0], m, s), "its worker process died (out of memory, or a crash in a library)")
            else:
                found.hand_on(sink)
            tick(len(item[2]))
    if not able:
        run_items(job, items, sink, tick)
        return "in this process: worker processes end at once (is the call under if __name__ == '__main__'?)"
    lost = f"; {died} of them ended their process" if died else ""
    return f"in {count} processes{lost}"


def _runs(items: Sequence[Item]) -> int:
    return sum(len(pairs) for _, _, pairs in items)


# -- Dask --------------------------------------------------------------------------------------------------


def run_on_dask(job: Job, items: Sequence[Item], workers: int, client: Any, sink: Sink, tick: Tick) -> str:
    """On a Dask cluster: the client's, the one in use, or a local one started for this sweep."""
    distributed = optional("dask.distributed", "cluster", "executor='dask'")
    own = None
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError:
            own = client = distributed.Client(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    elif not isinstance(client, distributed.Client):
        raise SetupError(f"sweep: client must be a dask.distributed.Client, not a {type(client).__name__}")
    try:
        size = max(1, sum(client.nthreads().values()))
        parts = list(_dask_chunks(items, size))
        futures = {client.submit(run_chunk, job, chunk, True, pure=False): chunk for chunk in parts}
        for future in distributed.as_completed(list(futures)):
            chunk = futures[future]
            if future.status == "finished":
                future.result().hand_on(sink)
            else:  # a worker that died, or a build that its machine does not have
                words = in_words("the cluster", future.exception())
                for variant, _, pairs in chunk:
                    for m, s in pairs:
                        sink.fail((variant, m, s), words)
            tick(_runs(chunk))
        return f"on a Dask cluster with {size} threads, {len(parts)} parts"
    finally:
        if own is not None:
            own.close()


def _dask_chunks(items: Sequence[Item], threads: int) -> Iterator[Sequence[Item]]:
    size = max(1, ceil(len(items) / (4 * threads)))
    size = size if size < 64 else ceil(size / 64) * 64  # whole blocks
    for k in range(0, len(items), size):
        yield items[k : k + size]
