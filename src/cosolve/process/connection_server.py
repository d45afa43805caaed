"""What `cosolve serve` runs: lets in who has the key and starts a process for every connection.

Only this process touches the network; it passes messages on to the others through pipes, without looking into them, and
never waits: neither for a process that computes nor for a client that does not read. It ends the process of
a client that is gone, and tells a client how its process ended.
"""

from __future__ import annotations

import os
import secrets
import select
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import monotonic

from cosolve.basics.processes import how_it_ended, kill_group, python_call, start
from cosolve.basics.signals import Terminated, signals_raise
from cosolve.errors import SetupError
from cosolve.process.channel import Outbox
from cosolve.process.data import pack
from cosolve.process.network import LARGEST, Listener
from cosolve.process.remote import KEY

_LENGTH = struct.Struct("<q")
_AT_ONCE = 65536  # bytes
_LOOK = 1.0  # seconds between two looks who is still there
_SOON = 0.005  # seconds until what could not be sent is tried again
_SHUTDOWN_TIMEOUT = 2.0  # seconds for a process to end by itself


def serve(
    source: str,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    key: str | None = None,
    ready: Callable[[str, str], None] | None = None,
) -> None:
    """Offer what the factory `source` ("file.py:function" or "module:function") builds, until Ctrl-C or SIGTERM.

    `ready(address, key)` is called once connections are accepted; without `key` a random one is made.
    """
    if os.name == "nt":
        raise SetupError("serve: waits for pipes and the network at once, which Windows cannot; use Linux or macOS")
    if ":" not in source:
        raise SetupError(f"serve: a factory is named as 'module:function' or 'file.py:function', not {source!r}")
    if not 0 <= port < 65536:
        raise SetupError(f"serve: a port is a number from 0 to 65535, not {port}")
    secret = key or os.environ.get(KEY) or secrets.token_hex(16)
    listener = Listener(host, port, secret)
    front = _Front(listener, source)
    try:
        with suppress(Terminated), signals_raise():
            if ready is not None:
                ready(f"[{host}]:{listener.port}" if ":" in host else f"{host}:{listener.port}", secret)
            front.run()
    finally:
        front.end()
        listener.close("the server was ended")


class _Front:
    """Passes messages between connections and processes."""

    def __init__(self, listener: Listener, source: str) -> None:
        self._listener = listener
        self._order = pack((source, sys.argv))
        self._poller = select.poll()
        for file in (listener.file, listener.watch_file):
            self._poller.register(file, select.POLLIN)
        self._served: dict[bytes, _Served] = {}
        self._by_file: dict[int, _Served] = {}
        self._leaving: list[tuple[float, subprocess.Popen[bytes]]] = []

    def run(self) -> None:
        """Until something is raised."""
        listener = self._listener
        due = monotonic() + _LOOK
        while True:
            patience = _SOON if listener.busy else max(0.0, due - monotonic())
            for file, _ in self._poller.poll(1e3 * patience):
                served = self._by_file.get(file)
                if served is not None:
                    self._from_process(served, file)
                elif file == listener.watch_file:
                    listener.watch()
            if listener.busy:
                listener.flush()
            if monotonic() >= due:
                self._look()
                due = monotonic() + _LOOK
            self._from_network()

    def _from_network(self) -> None:
        for peer, data in self._listener.events():
            if data is None:
                self._begin(peer)
                continue
            served = self._served.get(peer)
            if served is None:
                continue
            if not data or served.asked or self._listener.owes(peer):
                why = "a second question came before the answer to the first" if data else "an empty question"
                self._leave(served, why)
                continue
            served.asked = True
            self._write(served, data)

    def _begin(self, peer: bytes) -> None:
        """A process for this connection, in a group of its own: Ctrl-C reaches the server only, which ends them."""
        program = python_call("cosolve.process.offered_server:main", os.getpid())
        try:
            process = start(program, 2, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            self._listener.drop(peer, f"no process can be started there: {error}")
            return
        served = self._served[peer] = _Served(peer, process)
        self._by_file[served.read] = self._by_file[served.write] = served
        self._poller.register(served.read, select.POLLIN)
        self._write(served, self._order)

    def _write(self, served: _Served, message: bytes | bytearray) -> None:
        served.out += _LENGTH.pack(len(message))
        served.out += message
        self._push(served)

    def _push(self, served: _Served) -> None:
        """As much as the process takes; the rest when it reads again."""
        with suppress(OSError):  # it has ended, which its other pipe tells
            if not served.out.push():
                self._poller.register(served.write, select.POLLOUT)
                return
        with suppress(KeyError):
            self._poller.unregister(served.write)

    def _from_process(self, served: _Served, ready: int) -> None:
        if ready == served.write:
            self._push(served)
            return
        try:
            data = os.read(served.read, _AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._leave(served, f"the process of the subsystem there {self._exit_report(served)}")
            return
        answer = served.heard(data)
        if answer is not None:
            served.asked = False
            self._listener.send(served.peer, [memoryview(answer)])
        elif served.expected > LARGEST:
            self._leave(served, f"an answer of {served.expected} bytes is too long to be sent; at most {LARGEST} are")

    def _exit_report(self, served: _Served) -> str:
        try:
            return how_it_ended(served.process.wait(timeout=1.0))
        except subprocess.TimeoutExpired:
            return "closed its connection"

    def _leave(self, served: _Served, why: str) -> None:
        """Let go of a connection and of its process."""
        self._listener.drop(served.peer, why)
        self._served.pop(served.peer, None)
        for file in (served.read, served.write):
            self._by_file.pop(file, None)
            with suppress(KeyError):
                self._poller.unregister(file)
        served.close()
        if served.process.poll() is None:
            self._leaving.append((monotonic() + _SHUTDOWN_TIMEOUT, served.process))

    def _look(self) -> None:
        """Who is gone, who has to be ended, who was refused."""
        for peer in self._listener.lost():
            if (served := self._served.get(peer)) is not None:
                self._leave(served, "")
        for entry in list(self._leaving):
            patience, process = entry
            if process.poll() is None and monotonic() > patience:
                kill_group(process)
            if process.poll() is not None:
                self._leaving.remove(entry)
        for line in self._listener.complaints:
            print(f"serve: {line}", file=sys.stderr, flush=True)
        self._listener.complaints.clear()

    def end(self) -> None:
        """End all processes."""
        for served in self._served.values():
            kill_group(served.process)
            served.close()
        for _, process in self._leaving:
            kill_group(process)


class _Served:
    """One connection and its process."""

    def __init__(self, peer: bytes, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.peer, self.process = peer, process
        self.read, self.write = process.stdout.fileno(), process.stdin.fileno()
        for file in (self.read, self.write):
            os.set_blocking(file, False)
        self.asked = False
        self.out = Outbox(partial(os.write, self.write))  # what the process has not read yet
        self.expected = -1  # bytes of the answer that is on its way
        self._come = bytearray()

    def heard(self, data: bytes) -> bytes | bytearray | None:
        """A piece of an answer; the whole one where this was its end."""
        if not self._come and len(data) >= _LENGTH.size and len(data) == _LENGTH.size + _LENGTH.unpack_from(data)[0]:
            return data[_LENGTH.size :]
        self._come += data
        if len(self._come) < _LENGTH.size:
            return None
        (self.expected,) = _LENGTH.unpack_from(self._come)
        if len(self._come) < _LENGTH.size + self.expected:
            return None
        answer, self._come = self._come[_LENGTH.size :], bytearray()
        return answer

    def close(self) -> None:
        """Close the pipes, whereupon an idle process ends by itself."""
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
