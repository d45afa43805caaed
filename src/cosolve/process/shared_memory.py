"""The fast channel: shared memory, polled for some microseconds before the reader sleeps on a pipe.

A mapped file holds one mailbox per direction. The writer copies the message, then stores the counter; the reader loads
the counter in a loop and, where nothing comes, sets a flag and sleeps on the pipe between the two, into which the
writer puts a wake-up when it sees the flag. The pipe also tells at once when the other side is gone, and carries
messages that do not fit. Invariants: docs/architecture/process.md.
"""

from __future__ import annotations

import mmap
import os
import platform
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from time import monotonic

from cosolve.process.channel import Pipe, TimedOut

_CONTROL = 64  # bytes per direction: counter, length, flag of the sleeping reader; a cache line of its own
_COUNTER, _LENGTH, _ASLEEP = range(3)
_IN_PIPE = -1
LARGEST = 64 * 2**20  # longer messages go through the pipe

# Loads of the counter before yielding the core (about 40 ns each). Spinning needs stores to arrive in order, which
# other processors than x86 do not promise to plain memory accesses, and a second core for the other side.
_SPINS = 300 if platform.machine() in ("x86_64", "AMD64") and (os.cpu_count() or 1) > 1 else 0
_YIELDS = 300  # some 0.5 us each (or as long as the others take), before sleeping
_DOUBTS = 1000  # waits that yield after every load, once spinning did not help: the other side may need this core
_yield: Callable[[], object] = getattr(os, "sched_yield", lambda: None)
_LONG = 1e-3  # after a wait as long as this, the next one sleeps at once: the subsystem is at real work
_NAPS = (0.05, 1.0)  # a wake-up lost between flag and counter costs the first, doubled up to the second


class SharedMemory:
    """One end of the mapped file `path`; the two ends have opposite `side` 0 and 1."""

    def __init__(self, path: str, pipe: Pipe, side: int) -> None:
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._pipe = pipe
        self._bytes = memoryview(self._map)
        self._words = self._bytes.cast("q")
        self._capacity = (len(self._map) - 2 * _CONTROL) // 2
        self._out, self._in = side * _CONTROL // 8, (1 - side) * _CONTROL // 8
        self._out_box, self._in_box = (2 * _CONTROL + s * self._capacity for s in (side, 1 - side))
        self._sent = self._received = 0
        self._patient, self._doubt = True, 0

    def send(self, parts: Sequence[bytes | memoryview]) -> None:
        """Put the message into the mailbox, or into the pipe where it does not fit."""
        words, out = self._words, self._out
        size = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
        fits = size <= self._capacity
        if fits:
            at = self._out_box
            for part in parts:
                self._bytes[at : at + len(part)] = part
                at += len(part)
        words[out + _LENGTH] = size if fits else _IN_PIPE
        self._sent += 1
        words[out + _COUNTER] = self._sent
        if not fits:
            self._pipe.send(parts)
        elif not _SPINS or words[out + _ASLEEP]:
            self._pipe.wake()

    def receive(self, timeout: float | None = None) -> memoryview:
        """The next message; a view into the mailbox, valid until this side sends again."""
        words, counter, awaited = self._words, self._in, self._received + 1
        self._received = awaited
        if not _SPINS:
            return self._announced(timeout)
        if not (self._patient and self._watch(awaited)):
            early = self._sleep(awaited, timeout)
            if early is not None:
                return early
        size = words[counter + _LENGTH]
        if size == _IN_PIPE:
            return self._pipe.receive(timeout)
        return self._bytes[self._in_box : self._in_box + size]

    def _watch(self, awaited: int) -> bool:
        """Spin, then yield the core, for a short time; True when the message arrived."""
        words, counter = self._words, self._in
        if self._doubt:
            self._doubt -= 1
        else:
            for _ in repeat(None, _SPINS):
                if words[counter] == awaited:
                    return True
            self._doubt = _DOUBTS
        for _ in repeat(None, _YIELDS):
            if words[counter] == awaited:
                return True
            _yield()
        return False

    def _announced(self, timeout: float | None) -> memoryview:
        """Without spinning, every message is announced through the pipe."""
        deadline = None if timeout is None else monotonic() + timeout
        length = self._pipe.length(deadline)
        if length:
            return self._pipe.body(length, deadline)
        return self._bytes[self._in_box : self._in_box + self._words[self._in + _LENGTH]]

    def _sleep(self, awaited: int, timeout: float | None) -> memoryview | None:
        """Wait on the pipe; gives the message where it came that way."""
        words, counter, pipe = self._words, self._in, self._pipe
        began = monotonic()
        nap, longest = _NAPS
        words[counter + _ASLEEP] = 1
        try:
            while words[counter] != awaited:
                left = nap if timeout is None else min(nap, began + timeout - monotonic())
                if left < 0:
                    raise TimedOut
                if pipe.wait(left):
                    if words[counter] == awaited:
                        break
                    length = pipe.length()
                    if length:
                        return pipe.body(length)
                else:
                    nap = min(2 * nap, longest)
        finally:
            words[counter + _ASLEEP] = 0
            self._patient = monotonic() - began < _LONG
        if words[counter + _LENGTH] != _IN_PIPE:
            while pipe.wait(0.0):  # wake-ups that were not needed
                if pipe.length():
                    raise RuntimeError("a message came through the pipe out of turn")
        return None

    def close(self) -> None:
        """Let go of the memory (it goes back when both sides have)."""
        with suppress(BufferError):  # a view of the last message may still be about
            self._words.release()
            self._bytes.release()
            self._map.close()
        self._pipe.close()


def create(message: int) -> str:
    """A file for messages of up to `message` bytes each way, in memory where the system has a place for that.

    Its pages are claimed now, so that a full memory disk is an `OSError` here and not a crash later. Delete the file
    as soon as both sides have opened it.
    """
    capacity = -(-min(max(message, 4096), LARGEST) // 64) * 64
    folder = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  names in it are drawn by lot
    handle, path = tempfile.mkstemp(prefix="cosolve-", dir=folder)
    try:
        size = 2 * (_CONTROL + capacity)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, size)
        else:
            os.write(handle, bytes(size))
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(handle)
    return path
