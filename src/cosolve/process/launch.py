"""Starting a worker process, communicating with it, and finding out how it ended.

The worker is a fresh interpreter (never a fork, which would copy threads and locks in an unknown state) in a process
group of its own, so that Ctrl-C reaches only the run, which then ends its workers.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from cosolve.basics.processes import how_it_ended, kill_group, python_call, start
from cosolve.errors import SetupError, SubsystemError
from cosolve.process import message as m
from cosolve.process import shared_memory
from cosolve.process.channel import Channel, Disconnected, Pipe, TimedOut, pipe
from cosolve.process.pickles import Pickles

LOADING = 60.0  # seconds beyond `timeout` for starting Python and importing, or for compiling
_SHUTDOWN_TIMEOUT = 2.0  # seconds to end by itself when the run lets go
_QUOTED = 5  # lines of the log


class Child:
    """A process behind a channel, with a log of what it prints; ended with this object.

    It is ended when the interpreter is, too.
    """

    def __init__(self, command: Sequence[str], log: Path | None = None, env: Mapping[str, str] | None = None) -> None:
        self.log: IO[bytes] = tempfile.TemporaryFile() if log is None else log.open("w+b")  # noqa: SIM115
        self.process = start(command, self.log, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.channel: Channel = pipe(os.dup(self.process.stdout.fileno()), os.dup(self.process.stdin.fileno()))
        self.process.stdin.close()
        self.process.stdout.close()
        self._end = weakref.finalize(self, _end, self.process, self.log, os.getpid())
        weakref.finalize(self, self.channel.close)

    @property
    def closed(self) -> bool:
        """True once `close` was called."""
        return not self._end.alive

    def quoted(self) -> str:
        """The last lines that it printed, as the end of a sentence."""
        return log_tail(self.log)

    def how_it_ended(self) -> str:
        """How it came to its end, and its last lines."""
        return f"{ended(self.process)}{self.quoted()}"

    def kill(self) -> None:
        """End the process now."""
        kill_group(self.process)

    def close(self) -> None:
        """Let the process end by itself, or end it."""
        self.channel.close()
        self._end()


class Worker(Child):
    """The process of an isolated subsystem."""

    def __init__(self, order: dict[str, Any], transport: str, timeout: float | None, log: Path | None) -> None:
        self.transport, self.timeout = transport, timeout
        self.owed: BaseException | None = None  # what went wrong where nothing could be raised; the next call does
        super().__init__(python_call("cosolve.process.worker:main", os.getpid()), log)
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
            raise SetupError(f"its process was not ready within {timeout:g} s{self.quoted()}") from None
        except Disconnected:
            raise SetupError(f"its process {ended(self.process)} while loading{self.quoted()}") from None
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
        if self.closed:
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
            f"its process gave no answer within {self.timeout:g} s and was ended{self.quoted()}; "
            "raise timeout if such a call may take that long"
        )

    def gone(self) -> SubsystemError:
        """The words for a process that has ended."""
        return SubsystemError(f"its process {self.how_it_ended()}")

    @property
    def alive(self) -> bool:
        """False once the process has ended."""
        return self.process.poll() is None


def ended(process: subprocess.Popen[bytes], patience: float = 5.0) -> str:
    """How a process that has closed its connection came to its end; one that goes on is ended."""
    try:
        return how_it_ended(process.wait(timeout=patience))
    except subprocess.TimeoutExpired:
        kill_group(process)
        return "closed its connection"


def log_tail(log: IO[bytes]) -> str:
    """The last lines of a log, as the end of a sentence."""
    if log.closed:
        return ""
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - 4096))
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    return "; its last output: " + " / ".join(line[:200] for line in lines[-_QUOTED:]) if lines else ""


def _end(process: subprocess.Popen[bytes], log: IO[bytes], owner: int) -> None:
    if os.getpid() != owner:  # a fork of the run
        return
    try:
        process.wait(timeout=_SHUTDOWN_TIMEOUT)
    except subprocess.TimeoutExpired:
        kill_group(process)
    log.close()
