"""Subsystems on other machines: `Remote` asks, a server started by `cosolve serve` answers, through TCP.

Before anything else is read, both sides authenticate each other: an HMAC-SHA256 over a fresh nonce of the other side
proves that they share a key. Rare calls travel as Python pickles, which can run code, so the key is worth a login.
Messages are neither encrypted nor authenticated one by one: on networks that others can reach, use a tunnel (`ssh -L`);
see SECURITY.md. Every connection gets a process of its own on the server, with a subsystem of its own.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import pickle
import secrets
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from cosolve.basics.checks import positive
from cosolve.errors import SetupError, SubsystemError
from cosolve.process import message as m
from cosolve.process.channel import Disconnected, Tcp, TimedOut
from cosolve.process.ending import Asked, end_with, sigterm_raises
from cosolve.process.launch import kill_group, rebuilt
from cosolve.process.proxy import Proxy, told_as_setup
from cosolve.process.worker import Server

_HANDSHAKE = 10.0  # seconds
_NONCE, _MAC = 32, 32  # bytes
_LOADING = 60.0  # seconds beyond `timeout`
_PROGRAM = "import sys; sys.path[:] = {path!r}; from cosolve.process.remote import _answer; _answer({fd}, {parent})"
KEY = "COSOLVE_KEY"  # environment variable


class Remote(Proxy):
    """A subsystem that `cosolve serve FACTORY --port N` offers at `address` ("host:port").

    `key` is the one that the server prints (or the environment variable COSOLVE_KEY on both sides). A call that takes
    longer than `timeout` seconds, or a connection that breaks, ends the run with a sentence and its result.

    >>> import cosolve as cs
    >>> cs.Remote("localhost:5555:1", key="x")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: Remote: an address is 'host:port', not 'localhost:5555:1'
    """

    def __init__(self, address: str, *, key: str | None = None, timeout: float | None = None, name: str = "") -> None:
        host, _, port = str(address).rpartition(":")
        if not host or ":" in host or not port.isdecimal():
            raise SetupError(f"Remote: an address is 'host:port', not {address!r}")
        if timeout is not None:
            positive("Remote", "timeout", timeout, " of seconds or None")
        secret = key if key is not None else os.environ.get(KEY)
        if not secret:
            raise SetupError(f"Remote: give the key that the server at {address} prints, as key=... or in {KEY}")
        super().__init__()
        self._arguments = (address, key, timeout, name)
        self._address, self._where, self._key = (host, int(port)), address, secret.encode()
        self._timeout, self._count = timeout, 0
        self._channel: Tcp | None = self._connected()

    def __reduce__(self) -> Any:
        return _again, self._arguments

    def _connected(self) -> Tcp:
        try:
            channel = Tcp(socket.create_connection(self._address, timeout=_HANDSHAKE))
        except OSError as error:
            raise SetupError(
                f"Remote: nobody answers at {self._where} ({error}); start 'cosolve serve FACTORY --port "
                f"{self._address[1]}' there"
            ) from None
        try:
            _authenticate_server(channel, self._key)
        except (Disconnected, TimedOut):
            channel.close()
            raise SetupError(f"Remote: the server at {self._where} does not accept this key") from None
        weakref.finalize(self, channel.close)
        self._count += 1
        return channel

    def _loaded(self) -> dict[str, Any]:
        with told_as_setup(f"Remote {self._where}"):
            timeout = None if self._timeout is None else self._timeout + _LOADING
            answer = m.read_answer(self._exchange(m.write_request(m.LOAD), timeout))
            if answer.form == m.FAILURE:
                raise rebuilt(answer.value)
        about: dict[str, Any] = answer.value
        return about

    def start(self, t0: float) -> Any:
        with self._lock:
            if self._channel is None:  # a new run after a failure gets a new connection
                self._begin_anew()
                self._channel = self._connected()
        return super().start(t0)

    def _holder(self) -> int:
        return self._count

    def _call_far(self, request: m.Parts) -> memoryview:
        return self._exchange(request, self._timeout)

    def _exchange(self, request: m.Parts, timeout: float | None) -> memoryview:
        if self._channel is None:
            raise SubsystemError(f"the connection to {self._where} is closed; start a new run")
        try:
            self._channel.send(request)
            return self._channel.receive(timeout)
        except TimedOut:
            self.close()
            raise SubsystemError(
                f"the server at {self._where} gave no answer within {timeout:g} s; raise timeout if such a call "
                "may take that long"
            ) from None
        except Disconnected:
            self.close()
            raise SubsystemError(
                f"the server at {self._where} closed the connection: the process there crashed or was ended"
            ) from None
        except BaseException:  # Ctrl-C: the answer to this request would be taken for that to the next
            self.close()
            raise

    def close(self) -> None:
        """End the connection; `start` makes a new one."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None


def _again(address: str, key: str | None, timeout: float | None, name: str) -> Remote:
    """A copy has a connection of its own."""
    return Remote(address, key=key, timeout=timeout, name=name)


# -- the server ----------------------------------------------------------------------------------------------------


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
        raise SetupError("serve: hands connections to other processes, which Windows cannot do; use Linux or macOS")
    if ":" not in source:
        raise SetupError(f"serve: a factory is named as 'module:function' or 'file.py:function', not {source!r}")
    secret = key or os.environ.get(KEY) or secrets.token_hex(16)
    order = {"folder": os.getcwd(), "arguments": sys.argv, "script": None, "source": source}
    try:
        listener = socket.create_server((host, port))
    except OSError as error:
        raise SetupError(f"serve: cannot listen at {host}:{port}: {error}") from None
    children: list[subprocess.Popen[bytes]] = []
    with listener:
        if ready is not None:
            ready(f"{host}:{listener.getsockname()[1]}", secret)
        listener.settimeout(1.0)
        try:
            with suppress(Asked), sigterm_raises():
                _accept(listener, children, order, secret.encode())
        finally:
            for child in children:
                kill_group(child)


def _accept(
    listener: socket.socket, children: list[subprocess.Popen[bytes]], order: dict[str, Any], key: bytes
) -> None:
    """A process for every connection, in a group of its own: Ctrl-C reaches the server only, which ends them."""
    path = [os.path.abspath(entry) for entry in sys.path]
    while True:
        children[:] = [child for child in children if child.poll() is None]  # collects those that ended
        with suppress(TimeoutError):
            connection, _ = listener.accept()
            with connection:
                fd = connection.fileno()
                program = [sys.executable, "-c", _PROGRAM.format(path=path, fd=fd, parent=os.getpid())]
                child = subprocess.Popen(program, stdin=subprocess.PIPE, pass_fds=[fd], process_group=0)
            children.append(child)
            assert child.stdin is not None
            with child.stdin:
                child.stdin.write(pickle.dumps((order, key)))


class _Offered(Server):
    """Loads what the server offers, whatever is asked for."""

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__()
        self._order = order

    def _load(self, order: Any) -> dict[str, Any]:
        return super()._load(self._order)


def _answer(fd: int, parent: int) -> None:
    """One connection, in a process of its own."""
    end_with(parent)
    order, key = pickle.loads(sys.stdin.buffer.read())
    channel = Tcp(socket.socket(fileno=fd))
    with suppress(Disconnected, TimedOut):
        _authenticate_client(channel, key)
        server = _Offered(order)
        while True:
            channel.send(server.answer(channel.receive()))


def _authenticate_client(channel: Tcp, key: bytes) -> None:
    """Server side of the handshake: send a nonce, check the client's MAC of it, answer the client's nonce."""
    nonce = secrets.token_bytes(_NONCE)
    channel.send([nonce])
    reply = bytes(channel.receive(_HANDSHAKE))
    mac, client_nonce = reply[:_MAC], reply[_MAC:]
    if len(client_nonce) != _NONCE or not hmac.compare_digest(mac, _mac(key, b"client", nonce)):
        raise Disconnected
    channel.send([_mac(key, b"server", client_nonce)])


def _authenticate_server(channel: Tcp, key: bytes) -> None:
    """Client side: answer the server's nonce, send one, check the server's MAC of it."""
    nonce = secrets.token_bytes(_NONCE)
    channel.send([_mac(key, b"client", bytes(channel.receive(_HANDSHAKE))) + nonce])
    if not hmac.compare_digest(bytes(channel.receive(_HANDSHAKE)), _mac(key, b"server", nonce)):
        raise Disconnected


def _mac(key: bytes, side: bytes, nonce: bytes) -> bytes:
    """HMAC-SHA256 of a nonce; the label of the side keeps a MAC from being reflected."""
    return hmac.new(key, side + nonce, hashlib.sha256).digest()
