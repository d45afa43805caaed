"""The times of a run, which may be ten million of them in a file: found by row and by time without keeping them all.

Of a long run only the time of every 64th row is kept. That is where the slots of every reduced picture begin
(`levels.py`), and it leads to within 64 rows of any moment; those are then read.

With them goes what every macro step had to correct, coupling variable by coupling variable.

A macro step begins with extrapolated coupling variables; where they are afterwards is recorded. The difference is the
residual before any correction: methods that iterate remove it, explicit ones leave it behind as their coupling error.
It is computed from the recorded values and times when it is displayed, so that runs pay nothing for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector

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


_SAME_STEP = 1e-6  # relative: a row that was recorded after several steps has no residual


def degree(meta: Mapping[str, Any]) -> int:
    """The degree of the extrapolation of a run, which its method says.

    >>> degree({"method": "Jacobi(degree=2, outputs='as_used')"}), degree({})
    (2, 0)
    """
    found = re.search(r"\bdegree=(\d)\b", str(meta.get("method", "")))
    return int(found[1]) if found else 0


def before_correction(t: Vector, z: Matrix, H: Vector, degree: int) -> Matrix:
    """`z` minus its extrapolation from the rows before, for all rows but the first `degree + 1`.

    NaN where a row was recorded after several steps, and where two of the rows are at the same time.

    >>> t = np.arange(5.0)
    >>> before_correction(t, t[:, np.newaxis] ** 2, np.ones(5), 1).ravel()      # second differences
    array([2., 2., 2.])
    """
    count = len(t) - degree - 1
    if count <= 0:
        return np.full((0, z.shape[1]), np.nan)
    now = t[degree + 1 :]
    past = [slice(degree - k, degree - k + count) for k in range(degree + 1)]
    found = np.array(z[degree + 1 :], np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        for rows in past:
            weight = np.ones(count)
            for others in past:
                if others != rows:
                    weight *= (now - t[others]) / (t[rows] - t[others])
            found -= weight[:, np.newaxis] * z[rows]
        whole = np.abs(np.diff(t)[degree:] - H[degree + 1 :]) <= _SAME_STEP * H[degree + 1 :]
    found[~whole | ~np.isfinite(found).all(axis=1)] = np.nan
    return found
