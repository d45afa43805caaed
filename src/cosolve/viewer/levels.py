"""Long columns at any zoom: the lowest and the highest value of every time slot, from levels computed once.

A column of ten million rows is read a single time, in blocks, and reduced to slots of 64 rows, these to slots of 512,
and so on. A picture of a window then takes the coarsest level that is still finer than its pixels; of short windows the
rows themselves are read. Slots begin at multiples of their length, so that a picture stands still while it is moved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

import numpy as np

from cosolve.basics.arrays import Matrix, Vector

#: Rows `first` to `last` (not included) of some columns, as a matrix.
Read = Callable[[int, int], Matrix]

_SLOT = 64  # rows in a slot of the first level
_RATIO = 8  # slots of one level in a slot of the next
_FEW = 512  # slots below which no coarser level is worth it
_BLOCK = 1 << 16  # numbers in a block of rows that is read at a time; at least one slot


@dataclass(frozen=True)
class Slots:
    """A window in slots that begin at the rows `first`; `low` is `high` where every slot is one row."""

    first: np.typing.NDArray[np.int64]
    low: Matrix
    high: Matrix

    @property
    def raw(self) -> bool:
        """True where nothing was left out."""
        return self.low is self.high


class Levels:
    """Some columns of so many rows, ready to be shown at any zoom.

    >>> values = np.sin(np.arange(100_000.0))[:, np.newaxis]
    >>> values[12_345] = 7.0                                       # one row out of a hundred thousand
    >>> levels = Levels(lambda first, last: values[first:last], 100_000, 1)
    >>> slots = levels.window(0, 100_000, 1000)
    >>> len(slots.first) <= 1000, float(slots.high.max()), slots.raw
    (True, 7.0, False)
    >>> levels.window(12_340, 12_350, 1000).low.ravel().round(2).tolist()[5]
    7.0
    """

    def __init__(self, read: Read, rows: int, width: int) -> None:
        self._read, self.rows, self.width = read, rows, width
        self._levels: list[tuple[int, Matrix, Matrix]] | None = None  # rows in a slot, lowest, highest
        self._building = Lock()  # the second thread waits for the first

    def window(self, first: int, last: int, most: int) -> Slots:
        """Rows `first` to `last` (not included) in at most so many slots."""
        first, last = max(0, first), min(self.rows, last)
        count = max(0, last - first)
        if count <= most:
            values = self._read(first, last)
            return Slots(np.arange(first, last), values, values)
        size = 1 << int(np.ceil(np.log2(count / max(1, most - 1))))  # one more where a window begins inside a slot
        begin = first // size * size
        if size < _SLOT:
            values = self._read(begin, last)
            return self._grouped(values, values, begin, size, size)
        slot, low, high = next(level for level in reversed(self._built()) if level[0] <= size)
        inside = slice(begin // slot, -(-last // slot))
        return self._grouped(low[inside], high[inside], begin, size // slot, size)

    @staticmethod
    def _grouped(low: Matrix, high: Matrix, begin: int, group: int, size: int) -> Slots:
        starts = np.arange(0, len(low), group)
        return Slots(
            begin + size * np.arange(len(starts)),
            np.fmin.reduceat(low, starts, axis=0),
            np.fmax.reduceat(high, starts, axis=0),
        )

    def _built(self) -> list[tuple[int, Matrix, Matrix]]:
        with self._building:
            if self._levels is None:
                low, high = self._first_level()
                levels = [(_SLOT, low, high)]
                while len(levels[-1][1]) > _FEW:
                    size, low, high = levels[-1]
                    starts = np.arange(0, len(low), _RATIO)
                    levels.append((_RATIO * size, np.fmin.reduceat(low, starts), np.fmax.reduceat(high, starts)))
                self._levels = levels
            return self._levels

    def _first_level(self) -> tuple[Matrix, Matrix]:
        slots = -(-self.rows // _SLOT)
        low, high = np.empty((slots, self.width)), np.empty((slots, self.width))
        at_once = max(1, _BLOCK * 16 // (_SLOT * self.width))
        for at in range(0, slots, at_once):
            end = min(slots, at + at_once)
            values = self._read(at * _SLOT, min(self.rows, end * _SLOT))
            whole = len(values) // _SLOT
            blocks = values[: whole * _SLOT].reshape(whole, _SLOT, self.width)
            np.fmin.reduce(blocks, axis=1, out=low[at : at + whole])
            np.fmax.reduce(blocks, axis=1, out=high[at : at + whole])
            if whole < end - at:  # the last slot is shorter
                low[end - 1] = np.fmin.reduce(values[whole * _SLOT :], axis=0)
                high[end - 1] = np.fmax.reduce(values[whole * _SLOT :], axis=0)
        return low, high


def scaled(values: Slots, factor: Vector, offset: Vector) -> Slots:
    """`factor * values + offset`, column by column; a negative factor turns lowest into highest."""
    if values.raw:
        both = values.low * factor + offset
        return Slots(values.first, both, both)
    one, other = values.low * factor + offset, values.high * factor + offset
    return Slots(values.first, np.fmin(one, other), np.fmax(one, other))
