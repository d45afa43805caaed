"""A bell that wakes a rank on the same machine: MPI libraries cannot sleep until a message comes, a pipe can.

A ring says that there may be a message and nothing more. One that is lost costs time, since nobody sleeps long; one too
many costs a look.
"""

from __future__ import annotations

import os
import select
import tempfile
import time
from contextlib import suppress
from threading import Condition, Lock

_RING = b"!"


class Doorbell:
    """The bell of this process. `address` is for those who may ring it (`Ringer`), until `hide` is called.

    >>> bell = Doorbell()
    >>> ringer = Ringer(bell.address)
    >>> bell.hide()
    >>> before = bell.rings
    >>> ringer.ring()
    >>> bell.sleep(60.0, before), bell.sleep(0.0, bell.rings)
    (True, False)
    >>> ringer.close(), bell.close()
    (None, None)
    """

    def __init__(self) -> None:
        self.rings, self.address = 0, ""
        self._pipe = -1
        self._leading, self._rung = Lock(), Condition()  # one thread listens to the pipe and tells the others
        if hasattr(os, "mkfifo"):
            with suppress(OSError):  # sleeping without a bell will do
                folder = tempfile.mkdtemp(prefix="cosolve-")
                address = os.path.join(folder, "bell")
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
        """Until it rings, at most so long; not at all where it has rung since `rings` was `before`. True if it has."""
        if self._pipe < 0:
            time.sleep(seconds)
        elif self._leading.acquire(blocking=False):
            try:
                rung = bool(self._poll.poll(1e3 * seconds))
                if rung:
                    os.read(self._pipe, 4096)
            finally:
                self._leading.release()
            if rung:
                with self._rung:
                    self.rings += 1
                    self._rung.notify_all()
        else:
            with self._rung:
                if self.rings == before:
                    self._rung.wait(seconds)
        return self.rings != before

    def close(self) -> None:
        """Nobody listens any more."""
        self.hide()
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1


class Ringer:
    """Rings the bell at an address; does nothing where there is none that can be reached."""

    def __init__(self, address: str) -> None:
        self._pipe = -1
        if address:
            with suppress(OSError):
                self._pipe = os.open(address, os.O_WRONLY | os.O_NONBLOCK)

    @property
    def is_near(self) -> bool:
        """True when the bell is on this machine."""
        return self._pipe >= 0

    def ring(self) -> None:
        """Wake the other side, where it sleeps."""
        if self._pipe >= 0:
            with suppress(OSError):  # full: it has been rung often enough; broken: it is gone
                os.write(self._pipe, _RING)

    def close(self) -> None:
        """Ring no more."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
