"""The times of a run, which may be ten million of them in a file: found by row and by time without keeping them all.

Of a long run only the time of every 64th row is kept. That is where the slots of every reduced picture begin
(`levels.py`), and it leads to within 64 rows of any moment; those are then read.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector

_EVERY = 64
_SHORT = 1 << 20  # rows up to which all times are kept
_BLOCK = 1 << 20  # rows that are read at a time

Rows = npt.NDArray[np.int64]


class Times:
    """The rising times of so many rows, read by `read(first, last)`.

    >>> times = Times(lambda first, last: 0.5 * np.arange(first, last), 3_000_000)
    >>> times.between(1000.2, 1001.0), times.last, times[1_000_000]         # one row more on either side
    ((2000, 2004), 1499999.5, 500000.0)
    >>> times.at(np.array([64, 128])).tolist(), times.part(7, 9).tolist()
    ([32.0, 64.0], [3.5, 4.0])
    """

    def __init__(self, read: Callable[[int, int], Vector], rows: int) -> None:
        self._read, self._rows = read, rows
        self._every = 1 if rows <= _SHORT else _EVERY
        self._kept: Vector | None = None
        self._lock = Lock()

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, row: int) -> float:
        return float(self.part(row, row + 1)[0])

    @property
    def last(self) -> float:
        """The time of the last row."""
        return self[self._rows - 1]

    @property
    def kept(self) -> Vector:
        """The times of every so many rows, read when they are first asked for."""
        with self._lock:
            if self._kept is None:
                parts = [
                    self._read(at, min(at + _BLOCK, self._rows))[:: self._every] for at in range(0, self._rows, _BLOCK)
                ]
                self._kept = np.concatenate(parts) if parts else np.zeros(0)
            return self._kept

    def part(self, first: int, last: int) -> Vector:
        """The times of some rows; `last` is not among them."""
        if self._every == 1:
            return self.kept[first:last]
        return self._read(first, min(last, self._rows))

    def at(self, rows: Rows) -> Vector:
        """The times of some rows, in rising order."""
        if not (rows % self._every).any():
            return self.kept[rows // self._every]
        return picked(self.part, rows, _BLOCK)

    def between(self, t0: float, t1: float) -> tuple[int, int]:
        """The rows of a window, with one more on either side."""
        first, last = self._place(t0, "left") - 1, self._place(t1, "right") + 1
        return max(0, min(first, self._rows - 1)), min(self._rows, last)

    def _place(self, t: float, side: Literal["left", "right"]) -> int:
        """How many rows come before a moment (`left`), or up to it (`right`)."""
        found = int(np.searchsorted(self.kept, t, side=side))
        if self._every == 1 or found == 0:
            return found
        begin = (found - 1) * self._every
        return begin + int(np.searchsorted(self.part(begin, begin + self._every), t, side=side))


def picked(read: Callable[[int, int], npt.NDArray[Any]], rows: Rows, block: int) -> npt.NDArray[Any]:
    """Single rows, in rising order, of something long: read in blocks, where there are any of them.

    >>> picked(lambda first, last: np.arange(first, last), np.array([1, 5, 6]), 4)
    array([1, 5, 6])
    """
    parts = []
    for at in range(int(rows[0]) if len(rows) else 0, int(rows[-1]) + 1 if len(rows) else 0, block):
        inside = rows[(rows >= at) & (rows < at + block)]
        if len(inside):
            parts.append(read(int(inside[0]), int(inside[-1]) + 1)[inside - inside[0]])
    return np.concatenate(parts) if parts else read(0, 0)
