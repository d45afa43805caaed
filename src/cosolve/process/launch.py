"""Starting a worker process, talking to it, and finding out how it ended.

The worker is a fresh interpreter (never a fork, which would copy threads and locks in an unknown state) in a process
group of its own, so that Ctrl-C reaches only the run, which then ends its workers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from cosolve.errors import SetupError, SubsystemError
from cosolve.process import message as m
from cosolve.process import shared_memory
from cosolve.process.channel import Channel, Disconnected, Pipe, TimedOut, pipe
from cosolve.process.ending import how_it_ended, kill_group
from cosolve.process.pickles import Pickles

_PROGRAM = "import sys; sys.path[:] = {path!r}; from cosolve.process.worker import main; main({parent})"
LOADING = 60.0  # seconds beyond `timeout` for starting Python and importing, or for compiling
_FAREWELL = 2.0  # seconds to end by itself when the run lets go
_QUOTED = 5  # lines of the log


class Worker:
    """One process and the channel to it; ended when this object is (or the interpreter)."""

    def __init__(self, order: dict[str, Any], transport: str, timeout: float | None, log: Path | None) -> None:
        self.transport, self.timeout = transport, timeout
        self.owed: BaseException | None = None  # what went wrong where nothing could be raised; the next call does
        self._log: IO[bytes] = tempfile.TemporaryFile() if log is None else log.open("w+b")  # noqa: SIM115
        path = [os.path.abspath(entry) for entry in sys.path]
        group: dict[str, Any] = (
            {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}  # type: ignore[attr-defined,unused-ignore]
            if os.name == "nt"
            else {"process_group": 0}
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(path=path, parent=os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            bufsize=0,
            **group,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._end = weakref.finalize(self, _end, self.process, self._log, os.getpid())
        self.channel: Channel = pipe(os.dup(self.process.stdout.fileno()), os.dup(self.process.stdin.fileno()))
        self.process.stdin.close()
        self.process.stdout.close()
        weakref.finalize(self, self.channel.close)
        self._contents = Pickles()
        with suppress(Disconnected):  # told about when the answer is read
            self.channel.send(m.write_request(m.LOAD, content=self._contents.pack(order)))

    def loaded(self) -> dict[str, Any]:
        """Wait until the subsystem is there; what it is."""
        timeout = None if self.timeout is None else self.timeout + LOADING
        try:
            answer = m.read_answer(self.channel.receive(timeout))
        except TimedOut:
            self.kill()
            raise SetupError(f"its process was not ready within {timeout:g} s{self._quoted()}") from None
        except Disconnected:
            raise SetupError(f"its process {self._how_it_ended()} while loading{self._quoted()}") from None
        if answer.form == m.FAILURE:
            self.kill()
            raise self._contents.unpack_error(answer.value)
        about: dict[str, Any] = self._contents.unpack(answer.value)
        return about

    def share_memory(self, message: int) -> str:
        """Turn to shared memory for messages of this size; the reason where that cannot be had, else ''."""
        try:
            path = shared_memory.create(message)
        except OSError as error:
            return str(error)
        assert isinstance(self.channel, Pipe)
        self.pipe = self.channel
        try:
            near = shared_memory.SharedMemory(path, self.pipe, side=0)
            answer = m.read_answer(self.call(m.write_request(m.ATTACH, content=self._contents.pack(path))))
            if answer.form == m.FAILURE:
                return str(self._contents.unpack_error(answer.value))
        finally:
            with suppress(OSError):
                os.unlink(path)
        self.channel = near
        return ""

    def call(self, request: m.Parts, extra: float = 0.0) -> memoryview:
        """Send a request, wait for the answer (`extra` seconds longer); a sentence where it crashes or hangs."""
        if self.owed is not None:
            owed, self.owed = self.owed, None
            raise owed
        if not self._end.alive:
            raise SubsystemError("its process was closed; start a new run")
        try:
            self.channel.send(request)
            return self.channel.receive(None if self.timeout is None else self.timeout + extra)
        except TimedOut:
            raise self.late() from None
        except Disconnected:
            raise self.gone() from None
        except BaseException:  # Ctrl-C: the answer to this request would be taken for that to the next
            self.kill()
            raise

    def late(self) -> SubsystemError:
        """End the process, which hangs; the words for it."""
        self.kill()
        return SubsystemError(
            f"its process gave no answer within {self.timeout:g} s and was ended{self._quoted()}; "
            "raise timeout if such a call may take that long"
        )

    def gone(self) -> SubsystemError:
        """The words for a process that has ended."""
        return SubsystemError(f"its process {self._how_it_ended()}{self._quoted()}")

    @property
    def alive(self) -> bool:
        """False once the process has ended."""
        return self.process.poll() is None

    def kill(self) -> None:
        """End the process now."""
        kill_group(self.process)

    def close(self) -> None:
        """Let the process end by itself, or end it."""
        self.channel.close()
        self._end()

    def _how_it_ended(self) -> str:
        return ended(self.process)

    def _quoted(self) -> str:
        return last_words(self._log)


def ended(process: subprocess.Popen[bytes], patience: float = 5.0) -> str:
    """How a process that has closed its connection came to its end; one that goes on is ended."""
    try:
        return how_it_ended(process.wait(timeout=patience))
    except subprocess.TimeoutExpired:
        kill_group(process)
        return "closed its connection"


def last_words(log: IO[bytes]) -> str:
    """The last lines of a log, as the end of a sentence."""
    if log.closed:
        return ""
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - 4096))
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    return "; its last words: " + " / ".join(line[:200] for line in lines[-_QUOTED:]) if lines else ""


def _end(process: subprocess.Popen[bytes], log: IO[bytes], owner: int) -> None:
    if os.getpid() != owner:  # a fork of the run
        return
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    try:
        process.wait(timeout=_FAREWELL)
    except subprocess.TimeoutExpired:
        kill_group(process)
    log.close()
