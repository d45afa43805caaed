"""Work on many points, shared among threads: compiled loops leave the interpreter to others meanwhile.

Every point is worked on by itself and its result has a place of its own, so that bits do not depend on who did it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from cosolve.basics.checks import whole

_PIECE = 4096  # points that are handed out at once


def in_threads(work: Callable[[int, int], None], count: int, workers: int | None, piece: int = _PIECE) -> None:
    """Call `work(first, last)` for pieces that make up all of `count`, in threads (None: as many as there are cores).

    >>> done = []
    >>> in_threads(lambda first, last: done.append(last - first), 10000, 1)
    >>> sum(done)
    10000
    """
    pieces = [(first, min(first + piece, count)) for first in range(0, count, piece)]
    threads = min(len(pieces), cores() if workers is None else whole("mapping", "workers", workers))
    if threads < 2:
        for first, last in pieces:
            work(first, last)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, *one) for one in pieces]:
            done.result()


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
