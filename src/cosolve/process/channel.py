"""Byte channels between two processes: pipes and TCP. Messages are length-prefixed; an empty one is a wake-up."""

from __future__ import annotations

import os
import select
import socket
import struct
from collections.abc import Sequence
from time import monotonic
from typing import Protocol

_LENGTH = struct.Struct("<q")
_WAKE_UP = _LENGTH.pack(0)


class Disconnected(Exception):
    """The other side has closed its end, or is gone."""


class TimedOut(Exception):
    """The other side did not answer within the timeout."""


class Channel(Protocol):
    """One end: messages out, messages in."""

    def send(self, parts: Sequence[bytes | memoryview]) -> None:
        """Send one message, given in one or several pieces."""
        ...

    def receive(self, timeout: float | None = None) -> memoryview:
        """The next message, valid until the next call; raises `Disconnected` or `TimedOut`."""
        ...

    def close(self) -> None:
        """Let go of this end."""
        ...


class Pipe:
    """A pair of pipes given by their file descriptors.

    >>> import os
    >>> (a, b), (c, d) = os.pipe(), os.pipe()
    >>> one, two = Pipe(a, d), Pipe(c, b)
    >>> one.send([b"hel", b"lo"])
    >>> bytes(two.receive())
    b'hello'
    >>> one.close(), two.close()
    (None, None)
    """

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._poll = select.poll()
        self._poll.register(read, select.POLLIN)
        self._room = select.poll()
        self._room.register(write, select.POLLOUT)

    def send(self, parts: Sequence[bytes | memoryview]) -> None:
        self._send(b"".join([_LENGTH.pack(sum(map(len, parts))), *parts]))

    def wake(self) -> None:
        """Wake a sleeping reader."""
        self._send(_WAKE_UP)

    def _send(self, data: bytes) -> None:
        try:
            sent = os.write(self._write, data)
            if sent < len(data):
                rest = memoryview(data)[sent:]
                while len(rest):
                    rest = rest[os.write(self._write, rest) :]
        except OSError:
            raise Disconnected from None

    def wait(self, timeout: float | None) -> bool:
        """True as soon as there is something to read (or the other side is gone)."""
        return bool(self._poll.poll(None if timeout is None else max(0.0, 1e3 * timeout)))

    def receive(self, timeout: float | None = None) -> memoryview:
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            length = self.length(deadline)
            if length:
                return self.body(length, deadline)

    def length(self, deadline: float | None = None) -> int:
        """Length of the message that comes next; 0 for a wake-up."""
        return int(_LENGTH.unpack(self.body(_LENGTH.size, deadline))[0])

    def body(self, count: int, deadline: float | None = None) -> memoryview:
        """Exactly `count` bytes."""
        data = bytearray(count)
        rest = memoryview(data)
        while len(rest):
            if deadline is not None and not self.wait(deadline - monotonic()):
                raise TimedOut
            try:
                got = os.readv(self._read, [rest])
            except OSError:
                raise Disconnected from None
            if not got:
                raise Disconnected
            rest = rest[got:]
        return memoryview(data)

    def close(self) -> None:
        for fd in (self._read, self._write):
            if fd >= 0:
                os.close(fd)
        self._read = self._write = -1


class Tcp:
    """A connected socket."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection

    def send(self, parts: Sequence[bytes | memoryview]) -> None:
        try:
            self._socket.settimeout(None)
            self._socket.sendall(b"".join([_LENGTH.pack(sum(map(len, parts))), *parts]))
        except OSError:
            raise Disconnected from None

    def receive(self, timeout: float | None = None) -> memoryview:
        deadline = None if timeout is None else monotonic() + timeout
        return self._body(int(_LENGTH.unpack(self._body(_LENGTH.size, deadline))[0]), deadline)

    def _body(self, count: int, deadline: float | None) -> memoryview:
        data = bytearray(count)
        rest = memoryview(data)
        while len(rest):
            if deadline is not None:
                self._socket.settimeout(max(1e-6, deadline - monotonic()))
            try:
                got = self._socket.recv_into(rest)
            except TimeoutError:
                raise TimedOut from None
            except OSError:
                raise Disconnected from None
            if not got:
                raise Disconnected
            rest = rest[got:]
        return memoryview(data)

    def close(self) -> None:
        self._socket.close()
