"""Calls that may crash, tried out in a copy of this process first, so that a crash there ends in a sentence here.

An FMU may crash when it saves or restores its state although it says that it can. A fork sees the instance as it is and
takes some milliseconds, once per FMU and process; where there is no fork (Windows) nothing is tried.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import numpy.typing as npt

#: Seconds after which a copy that gives no answer is ended; that says nothing about the call.
_PATIENCE = 10.0


def crash_of(call: Callable[[], object]) -> str:
    """How a copy of this process dies of a call; empty where it lives, or where that cannot be tried.

    >>> crash_of(lambda: None), crash_of(lambda: 1 / 0)
    ('', '')
    """
    child = _copied(call)
    return "" if child is None else _ending(child)


def answer_of(call: Callable[[], npt.NDArray[np.float64]], length: int) -> npt.NDArray[np.float64] | None:
    """What a call gives in a copy of this process; None where it fails there, or where that cannot be tried.

    >>> answer_of(lambda: np.array([1.0, 2.0]), 2)
    array([1., 2.])
    """
    with mmap.mmap(-1, max(8 * length + 1, 1)) as shared:

        def told() -> None:
            values = np.asarray(call(), dtype=np.float64)
            if values.shape == (length,) and np.isfinite(values).all():
                shared[1:] = values.tobytes()
                shared[:1] = b"\x01"

        child = _copied(told)
        if child is None or _ending(child) or shared[:1] != b"\x01":
            return None
        return np.frombuffer(shared[1 : 8 * length + 1])


def _copied(call: Callable[[], object]) -> int | None:
    """The number of a copy of this process that makes the call and ends; None where there are no copies."""
    if not hasattr(os, "fork") or sys.platform == "darwin":  # libraries of macOS do not survive a fork
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other threads do not matter to a few calls into the library
        child = os.fork()
    if child == 0:
        try:
            faulthandler.disable()
            _silence()
            with suppress(BaseException):
                call()
        finally:
            os._exit(0)
    return child


def _silence() -> None:
    """What a copy prints would be read as words of this process."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _ending(child: int) -> str:
    until, pause = time.monotonic() + _PATIENCE, 1e-4
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return ""
        time.sleep(pause)
        pause = min(2.0 * pause, 0.01)
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else ""
