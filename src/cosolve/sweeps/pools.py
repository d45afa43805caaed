"""Where variants run one by one: here, in processes, or on a Dask cluster. Results never depend on it."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from math import ceil
from time import perf_counter
from typing import Any

from cosolve.errors import SetupError
from cosolve.sweeps.job import Collected, Item, Job, Sink
from cosolve.sweeps.single_runs import in_words, run_chunk, run_items

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
    """A few chunks at a time, so that few are under suspicion when a process dies."""
    workers = min(workers, len(items))
    waiting: list[Sequence[Item]] = list(reversed(chunks_of(items, workers)))
    if not _can_start(workers):
        run_items(job, items, sink, tick)
        return "in this process: worker processes end at once (is the call under if __name__ == '__main__'?)"
    died = 0
    while waiting:
        suspects = _until_broken(job, waiting, workers, sink, tick)
        for chunk in suspects:  # each alone: who kills its process?
            for item in chunk:
                died += not _alone(job, item, sink, tick)
    lost = f"; {died} of them ended their process" if died else ""
    return f"in {workers} processes{lost}"


def _pool(workers: int) -> ProcessPoolExecutor:
    from multiprocessing import get_context

    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def _can_start(workers: int) -> bool:
    with _pool(1) as pool:
        try:
            return pool.submit(os.getpid).result() > 0
        except BrokenProcessPool:
            return False


def _until_broken(
    job: Job, waiting: list[Sequence[Item]], workers: int, sink: Sink, tick: Tick
) -> list[Sequence[Item]]:
    """Run chunks until none is left or a process dies; the chunks that were under way then."""
    running: dict[Future[Collected], Sequence[Item]] = {}
    with _pool(workers) as pool:
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    chunk = waiting.pop()
                    try:
                        running[pool.submit(run_chunk, job, chunk, False)] = chunk
                    except BrokenProcessPool:
                        waiting.append(chunk)
                        raise
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    found = future.result()  # raises when its process is gone
                    chunk = running.pop(future)
                    found.hand_on(sink)
                    tick(_runs(chunk))
        except BrokenProcessPool:
            return list(running.values())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return []


def _alone(job: Job, item: Item, sink: Sink, tick: Tick) -> bool:
    """Run one variant in a process of its own; False when that dies."""
    with _pool(1) as pool:
        try:
            pool.submit(run_chunk, job, [item], False).result().hand_on(sink)
            return True
        except BrokenProcessPool:
            for m, s in item[2]:
                sink.fail((item[0], m, s), "its worker process died (out of memory, or a crash in a library)")
            return False
        finally:
            tick(len(item[2]))


def _runs(items: Sequence[Item]) -> int:
    return sum(len(pairs) for _, _, pairs in items)


# -- Dask --------------------------------------------------------------------------------------------------


def run_on_dask(job: Job, items: Sequence[Item], workers: int, client: Any, sink: Sink, tick: Tick) -> str:
    """On a Dask cluster: the client's, the one in use, or a local one started for this sweep."""
    try:
        import dask.distributed
    except ImportError:
        raise SetupError("executor='dask' needs Dask: pip install cosolve[cluster]") from None
    distributed: Any = dask.distributed
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
