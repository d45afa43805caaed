"""Byte channels between two processes of one machine. Messages are length-prefixed; an empty one is a wake-up."""

from __future__ import annotations

import os
import select
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Protocol

_LENGTH = struct.Struct("<q")
_WAKE_UP = _LENGTH.pack(0)
_AT_ONCE = 1 << 18  # bytes


class Disconnected(Exception):
    """The other side has closed its end, or is gone; the text says why where that is known."""


class TimedOut(Exception):
    """The other side did not answer within the timeout."""


class Channel(Protocol):
    """One end: messages out, messages in."""

    def send(self, parts: Sequence[bytes | memoryview]) -> None:
        """Send one message, given in one or several pieces."""

    def receive(self, timeout: float | None = None) -> memoryview:
        """The next message, valid until the next call; raises `Disconnected` or `TimedOut`."""

    def close(self) -> None:
        """Let go of this end."""


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
        _write_all(self._write, b"".join([_LENGTH.pack(sum(map(len, parts))), *parts]))

    def wake(self) -> None:
        """Wake a sleeping reader."""
        _write_all(self._write, _WAKE_UP)

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


class ThreadedPipe:
    """The same where the system cannot wait for a pipe with a time limit: a thread reads all the time.

    >>> import os
    >>> (a, b), (c, d) = os.pipe(), os.pipe()
    >>> one, two = ThreadedPipe(a, d), ThreadedPipe(c, b)
    >>> one.send([b"hel", b"lo"])
    >>> bytes(two.receive(60.0))
    b'hello'
    >>> one.close(), two.close()
    (None, None)
    """

    def __init__(self, read: int, write: int) -> None:
        self._write = write
        self._messages: SimpleQueue[bytes | None] = SimpleQueue()
        Thread(target=_collect, args=(read, self._messages), daemon=True).start()

    def send(self, parts: Sequence[bytes | memoryview]) -> None:
        _write_all(self._write, b"".join([_LENGTH.pack(sum(map(len, parts))), *parts]))

    def receive(self, timeout: float | None = None) -> memoryview:
        try:
            message = self._messages.get(timeout=timeout)
        except Empty:
            raise TimedOut from None
        if message is None:
            self._messages.put(None)
            raise Disconnected
        return memoryview(message)

    def close(self) -> None:
        """The other side sees the end and closes, whereupon the thread ends."""
        if self._write >= 0:
            os.close(self._write)
        self._write = -1


class Outbox(bytearray):
    """Bytes for a side that may not take all of them at once; `write` takes some and says how many."""

    def __init__(self, write: Callable[[memoryview], int]) -> None:
        super().__init__()
        self._write = write

    def push(self) -> bool:
        """Give as much as the other side takes; True when nothing is left."""
        try:
            while self:
                with memoryview(self) as view:
                    sent = self._write(view[:_AT_ONCE])
                del self[:sent]
        except BlockingIOError:
            return False
        return True


def _collect(read: int, messages: SimpleQueue[bytes | None]) -> None:
    """Whole messages, then None."""
    with open(read, "rb", closefd=True) as stream, suppress(OSError):
        while len(head := stream.read(_LENGTH.size)) == _LENGTH.size:
            (length,) = _LENGTH.unpack(head)
            body = stream.read(length)
            if len(body) < length:
                break
            messages.put(body)
    messages.put(None)


def _write_all(fd: int, data: bytes) -> None:
    try:
        sent = os.write(fd, data)
        if sent < len(data):
            rest = memoryview(data)[sent:]
            while len(rest):
                rest = rest[os.write(fd, rest) :]
    except OSError:
        raise Disconnected from None


def pipe(read: int, write: int) -> Pipe | ThreadedPipe:
    """The channel over two pipes on this system."""
    return ThreadedPipe(read, write) if os.name == "nt" else Pipe(read, write)
