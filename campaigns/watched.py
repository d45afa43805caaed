"""Cases in a process of their own, one after the other: one that hangs or crashes is noted, and the rest goes on."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from tests.processes import children

C = TypeVar("C")
Verdict = tuple[str, str]


def verdicts(judge: Callable[[C, int], Verdict], cases: Sequence[C], limit: float) -> Iterator[tuple[C, Verdict]]:
    """`judge(case, pid)` for each case, in another process; ("HANG", ...) after `limit` seconds, or ("CRASH", ...)."""
    waiting = list(reversed(cases))
    while waiting:
        with _JudgeProcess(judge) as one:
            while waiting:
                case = waiting.pop()
                found = one.verdict(case, limit)
                yield case, found
                if found[0] in ("HANG", "CRASH", "ORPHAN"):
                    break


class _JudgeProcess:
    """The process."""

    def __init__(self, judge: Callable[[Any, int], Verdict]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, far = context.Pipe()
        self._process = context.Process(target=_serve, args=(far, judge))
        self._process.start()
        far.close()

    def __enter__(self) -> _JudgeProcess:
        return self

    def __exit__(self, *what: object) -> None:
        self._pipe.close()
        self._process.join(10.0)
        self._kill()

    def _kill(self) -> None:
        if self._process.pid is not None and self._process.is_alive():
            for pid in [*children(self._process.pid), self._process.pid]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._process.join()

    def verdict(self, case: object, limit: float) -> Verdict:
        """What the process says about this case, or what became of the process."""
        try:
            self._pipe.send(case)
            if not self._pipe.poll(limit):
                self._kill()
                return "HANG", f"no end within {limit:g} s"
            found: Verdict = self._pipe.recv()
            return found
        except (EOFError, OSError):
            self._process.join()
            return "CRASH", f"the process ended with {self._process.exitcode}"


def _serve(pipe: Connection[Any, Any], judge: Callable[[Any, int], Verdict]) -> None:
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115  what models print is not ours
    with suppress(EOFError):
        while True:
            pipe.send(judge(pipe.recv(), os.getpid()))
