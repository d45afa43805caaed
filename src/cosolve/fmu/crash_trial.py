"""Calls that may crash, tried out in a copy of this process first, so that a crash there ends in a sentence here.

An FMU may crash when it saves or restores its state although it says that it can. A fork sees the instance as it is and
takes some milliseconds, once per FMU and process; where there is no fork (Windows) nothing is tried.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress

#: Seconds after which a copy that gives no answer is ended; that says nothing about the call.
_PATIENCE = 10.0


def crash_of(call: Callable[[], object]) -> str:
    """How a copy of this process dies of a call; empty where it lives, or where that cannot be tried.

    >>> crash_of(lambda: None), crash_of(lambda: 1 / 0)
    ('', '')
    """
    if not hasattr(os, "fork") or sys.platform == "darwin":  # libraries of macOS do not survive a fork
        return ""
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
    return _ending(child)


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
