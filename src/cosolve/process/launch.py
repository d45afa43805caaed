"""Starting a worker process, talking to it, and finding out how it ended.

The worker is a fresh interpreter (never a fork, which would copy threads and locks in an unknown state) in a process
group of its own, so that Ctrl-C reaches only the run, which then ends its workers.
"""

from __future__ import annotations

import os
import pickle
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from cosolve.errors import SetupError, SubsystemError
from cosolve.process import message as m
from cosolve.process import shared_memory
from cosolve.process.channel import Channel, Disconnected, Pipe, Tcp, TimedOut

_PROGRAM = "import sys; sys.path[:] = {path!r}; from cosolve.process.worker import main; main({parent}, {port})"
LOADING = 60.0  # seconds beyond `timeout` for starting Python and importing, or for compiling
_FAREWELL = 2.0  # seconds to end by itself when the run lets go
_QUOTED = 5  # lines of the log


class Worker:
    """One process and the channel to it; ended when this object is (or the interpreter)."""

    def __init__(self, order: dict[str, Any], transport: str, timeout: float | None, log: Path | None) -> None:
        self.transport, self.timeout = transport, timeout
        self.owed: BaseException | None = None  # what went wrong where nothing could be raised; the next call does
        self._log: IO[bytes] = tempfile.TemporaryFile() if log is None else log.open("w+b")  # noqa: SIM115
        listener = socket.create_server(("127.0.0.1", 0)) if transport == "tcp" else None
        port = 0 if listener is None else listener.getsockname()[1]
        path = [os.path.abspath(entry) for entry in sys.path]
        group: dict[str, Any] = (
            {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}  # type: ignore[attr-defined,unused-ignore]
            if os.name == "nt"
            else {"process_group": 0}
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(path=path, parent=os.getpid(), port=port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            bufsize=0,
            **group,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.channel: Channel
        self._end = weakref.finalize(self, _end, self.process, self._log, os.getpid())
        self._order, self._listener = order, listener
        if listener is None:
            self.pipe = Pipe(os.dup(self.process.stdout.fileno()), os.dup(self.process.stdin.fileno()))
            self.process.stdin.close()
            self.process.stdout.close()
            self.channel = self.pipe
            weakref.finalize(self, self.pipe.close)
            self._send_order()

    def _send_order(self) -> None:
        with suppress(Disconnected):  # told about when the answer is read
            self.channel.send(m.write_request(m.LOAD, content=pickle.dumps(self._order)))

    def loaded(self) -> dict[str, Any]:
        """Wait until the subsystem is there; what it is."""
        timeout = None if self.timeout is None else self.timeout + LOADING
        try:
            if self._listener is not None:
                self.channel = self._accepted(self._listener, timeout)
                self._send_order()
            answer = m.read_answer(self.channel.receive(timeout))
        except TimedOut:
            self.kill()
            raise SetupError(f"its process was not ready within {timeout:g} s{self._quoted()}") from None
        except Disconnected:
            raise SetupError(f"its process {self._how_it_ended()} while loading{self._quoted()}") from None
        if answer.form == m.FAILURE:
            self.kill()
            raise rebuilt(answer.value)
        about: dict[str, Any] = answer.value
        return about

    def _accepted(self, listener: socket.socket, timeout: float | None) -> Tcp:
        """The connection of our worker: it knows a token that nobody else does."""
        assert self.process.stdin is not None
        token = secrets.token_bytes(32)
        with suppress(OSError):  # it may have ended already
            self.process.stdin.write(token)
        began = time.monotonic()
        with listener:
            listener.settimeout(0.2)
            while True:
                if timeout is not None and time.monotonic() - began > timeout:
                    raise TimedOut
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    if self.process.poll() is not None:
                        raise Disconnected from None
                    continue
                channel = Tcp(connection)
                with suppress(Disconnected, TimedOut):
                    if secrets.compare_digest(bytes(channel.receive(10.0)), token):
                        weakref.finalize(self, channel.close)
                        return channel
                channel.close()

    def share_memory(self, message: int) -> str:
        """Turn to shared memory for messages of this size; the reason where that cannot be had, else ''."""
        try:
            path = shared_memory.create(message)
        except OSError as error:
            return str(error)
        try:
            near = shared_memory.SharedMemory(path, self.pipe, side=0)
            answer = m.read_answer(self.call(m.write_request(m.ATTACH, content=pickle.dumps(path))))
            if answer.form == m.FAILURE:
                return str(answer.value[2])
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
        return how_it_ended(self.process)

    def _quoted(self) -> str:
        return last_words(self._log)


def how_it_ended(process: subprocess.Popen[bytes], patience: float = 5.0) -> str:
    """How a process that has closed its connection came to its end; one that goes on is ended."""
    try:
        code = process.wait(timeout=patience)
    except subprocess.TimeoutExpired:
        kill_group(process)
        return "closed its connection"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    what = {"SIGSEGV": "crashed", "SIGBUS": "crashed", "SIGABRT": "aborted", "SIGFPE": "crashed"}
    return f"{what.get(name, 'was ended')} (signal {-code}, {name})"


def last_words(log: IO[bytes]) -> str:
    """The last lines of a log, as the end of a sentence."""
    if log.closed:
        return ""
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - 4096))
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    return "; its last words: " + " / ".join(line[:200] for line in lines[-_QUOTED:]) if lines else ""


def rebuilt(failure: tuple[bytes | None, str, str, str]) -> Exception:
    """The exception that was raised over there, with its traceback as a note."""
    packed, kind, text, where = failure
    error: Exception | None = None
    if packed is not None:
        with suppress(Exception):  # a type that cannot be imported here
            error = pickle.loads(packed)
    if error is None:
        error = SubsystemError(f"{text} ({kind})")
    error.add_note("In the process of the subsystem:\n" + where)
    return error


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End the process and whatever it started."""
    with suppress(OSError):
        if os.name == "nt":
            process.kill()
        elif process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


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
