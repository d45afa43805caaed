"""A pipe that wakes a rank on the same machine: MPI libraries cannot sleep until a message comes, a pipe can.

A byte in the pipe says that there may be a message and nothing more. One that is lost costs time, since no process
sleeps long; one too many costs a check.
"""

from __future__ import annotations

import os
import select
import tempfile
import time
from contextlib import suppress
from threading import Condition, Lock

_BYTE = b"!"


class WakeupPipe:
    """The pipe of this process. `address` is for processes that may wake it (`WakeupSender`), until `hide`.

    >>> pipe = WakeupPipe()
    >>> sender = WakeupSender(pipe.address)
    >>> pipe.hide()
    >>> before = pipe.wakeups
    >>> sender.wake()
    >>> pipe.sleep(60.0, before), pipe.sleep(0.0, pipe.wakeups)
    (True, False)
    >>> sender.close(), pipe.close()
    (None, None)
    """

    def __init__(self) -> None:
        self.wakeups, self.address = 0, ""
        self._pipe = -1
        self._leading, self._woken = Lock(), Condition()  # one thread listens to the pipe and tells the others
        if hasattr(os, "mkfifo"):
            with suppress(OSError):  # sleeping without a pipe will do
                folder = tempfile.mkdtemp(prefix="cosolve-")
                address = os.path.join(folder, "pipe")
                os.mkfifo(address, 0o600)
                self._pipe = os.open(address, os.O_RDWR | os.O_NONBLOCK)  # for writing too: it never ends
                self.address = address
                self._poll = select.poll()
                self._poll.register(self._pipe, select.POLLIN)

    def hide(self) -> None:
        """Remove the address: who has opened it keeps it."""
        if self.address:
            with suppress(OSError):
                os.unlink(self.address)
                os.rmdir(os.path.dirname(self.address))
            self.address = ""

    def sleep(self, seconds: float, before: int) -> bool:
        """Sleep until woken, at most so long; not at all if woken since `wakeups` was `before`. True if woken."""
        if self._pipe < 0:
            time.sleep(seconds)
        elif self._leading.acquire(blocking=False):
            try:
                woken = bool(self._poll.poll(1e3 * seconds))
                if woken:
                    os.read(self._pipe, 4096)
            finally:
                self._leading.release()
            if woken:
                with self._woken:
                    self.wakeups += 1
                    self._woken.notify_all()
        else:
            with self._woken:
                if self.wakeups == before:
                    self._woken.wait(seconds)
        return self.wakeups != before

    def close(self) -> None:
        """The receiver is closed."""
        self.hide()
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1


class WakeupSender:
    """Wakes the process whose pipe has this address; does nothing if the address cannot be reached."""

    def __init__(self, address: str) -> None:
        self._pipe = -1
        if address:
            with suppress(OSError):
                self._pipe = os.open(address, os.O_WRONLY | os.O_NONBLOCK)

    @property
    def is_near(self) -> bool:
        """True when the pipe is on this machine."""
        return self._pipe >= 0

    def wake(self) -> None:
        """Wake the other side, where it sleeps."""
        if self._pipe >= 0:
            with suppress(OSError):  # full: it has been woken often enough; broken: it is gone
                os.write(self._pipe, _BYTE)

    def close(self) -> None:
        """Close this end."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
