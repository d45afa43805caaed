"""The worker processes of a sweep: each has a pipe of its own, through which one part of the work after the other goes.

A pipe tells at once when its process dies, and with what part of the work; nothing is shared that a process could take
along half written. Workers end when their pipe is closed, and with the process of the sweep even when that is killed.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any

from cosolve.basics.processes import ctrl_c_later, end_on_sigterm, end_with_thread, hear_ctrl_c_but_go_on
from cosolve.errors import SetupError
from cosolve.sweeps.job import Collected, Item, Job
from cosolve.sweeps.single_runs import run_chunk

_SHUTDOWN_TIMEOUT = 5.0  # seconds to end by itself, or on SIGTERM

Chunk = Sequence[Item]


class Worker:
    """One process and the chunk that it is at (None: it waits for one)."""

    def __init__(self, order: bytes) -> None:
        context = multiprocessing.get_context("spawn")
        self.chunk: Chunk | None = None
        self.pipe: Connection[Any, Any]
        self.pipe, far = context.Pipe()
        self.process = context.Process(target=_work, args=(far, order), name="cosolve sweep")
        if os.name != "nt":
            resource_tracker.ensure_running()  # here, because starting it unblocks Ctrl-C
        with ctrl_c_later(), far:
            self.process.start()

    def give(self, chunk: Chunk) -> None:
        """Let it run a chunk."""
        self.chunk = chunk
        with suppress(OSError):  # found dead when its answer is taken
            self.pipe.send(chunk)

    def take(self) -> Collected | None:
        """What came of its chunk; None when the process died over it."""
        ready = wait([self.pipe, self.process.sentinel])
        self.chunk = None
        if self.pipe not in ready and not self.pipe.poll():  # what it started may still hold the pipe
            return None
        try:
            found = self.pipe.recv()
        except (EOFError, OSError):
            return None
        if isinstance(found, BaseException):
            raise found
        assert isinstance(found, Collected)
        return found

    def end(self, now: bool) -> None:
        """Let it end by itself if it can, or at once."""
        self.pipe.close()
        if now or self.chunk is not None:
            self.process.terminate()
        self.process.join(_SHUTDOWN_TIMEOUT)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        self.process.close()


class Workers:
    """Several of them; ended on leaving, at once when that is by an exception (Ctrl-C, for example)."""

    def __init__(self, job: Job, count: int) -> None:
        self._order = pickle.dumps(job)
        self._count = count
        self._all: list[Worker] = []

    def __enter__(self) -> Workers:
        try:
            while len(self._all) < self._count:
                self._all.append(Worker(self._order))
        except BaseException:
            self._end(now=True)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(now=error is not None)

    def _end(self, now: bool) -> None:
        for worker in self._all:  # all of them know before one is waited for
            worker.pipe.close()
            if now:
                worker.process.terminate()
        for worker in self._all:
            worker.end(now)
        self._all.clear()

    @property
    def busy(self) -> bool:
        """True while some chunk is under way."""
        return any(worker.chunk is not None for worker in self._all)

    def can_start(self) -> bool:
        """False when processes end before they can be given anything."""
        self._all[0].give([])
        return self._all[0].take() is not None

    def hand_out(self, waiting: list[Chunk]) -> None:
        """Give every worker that has none the last of the chunks, which are taken off the list."""
        for worker in self._all:
            if waiting and worker.chunk is None:
                worker.give(waiting.pop())

    def collect(self) -> list[tuple[Chunk, Collected | None]]:
        """Wait until chunks are done; each with what came of it, or None where its process died over it."""
        busy = [worker for worker in self._all if worker.chunk is not None]
        ready = wait([source for worker in busy for source in (worker.pipe, worker.process.sentinel)])
        done: list[tuple[Chunk, Collected | None]] = []
        for worker in busy:
            if worker.pipe in ready or worker.process.sentinel in ready:
                assert worker.chunk is not None
                done.append((worker.chunk, self._taken(worker)))
        return done

    def alone(self, chunk: Chunk) -> Collected | None:
        """Run a chunk while the others wait; None when its process dies over it."""
        worker = self._all[0]
        worker.give(chunk)
        return self._taken(worker)

    def _taken(self, worker: Worker) -> Collected | None:
        found = worker.take()
        if found is None:  # another one takes its place
            self._all[self._all.index(worker)] = Worker(self._order)
            worker.end(now=True)
        return found


def _work(pipe: Connection[Any, Any], order: bytes) -> None:
    """In the process: run chunks until the pipe is closed."""
    hear_ctrl_c_but_go_on()
    end_on_sigterm()
    end_with_thread()
    threading.Thread(target=_end_with_sweep, name="parent watch", daemon=True).start()
    job: Job | None = None
    while True:
        try:
            chunk = pipe.recv()
        except (EOFError, OSError):
            return
        found: Collected | BaseException
        try:
            if job is None:
                job = _loaded(order)
            found = run_chunk(job, chunk, False)
        except BaseException as error:
            found = error
        with suppress(BrokenPipeError):
            pipe.send(found)


def _loaded(order: bytes) -> Job:
    try:
        job: Job = pickle.loads(order)  # noqa: S301  of the process that has started this one
    except Exception as error:
        raise SetupError(
            f"sweep: the worker processes cannot load build, reduce or a method ({type(error).__name__}: {error}); "
            "define them at the top of a module, or give executor='serial'"
        ) from None
    return job


def _end_with_sweep() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
