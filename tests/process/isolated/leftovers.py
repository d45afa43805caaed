"""Files of shared memory that a test may leave behind."""

from __future__ import annotations

from pathlib import Path
from time import monotonic, sleep

_FOLDER = Path("/dev/shm")


def leftovers() -> set[Path]:
    """What is there now, also of tests that run at the same time."""
    return set(_FOLDER.glob("cosolve-*")) if _FOLDER.is_dir() else set()


def stay(before: set[Path], seconds: float = 10.0) -> set[Path]:
    """What came since then and does not go away; files of others live for a moment only, until both ends see them."""
    left, deadline = leftovers() - before, monotonic() + seconds
    while left and monotonic() < deadline:
        sleep(0.01)
        left &= leftovers()
    return left
