"""The signals of a run that goes on, in bounded memory: first every row, then the lowest and highest of every slot.

The run hands over its chunks of steps without waiting (`put`); whoever looks takes them in (`take_in`); `chosen` cuts
out of a chunk what is recorded. When the rows
become too many, two slots at a time are made one, so that a run of any length fits and no peak is lost. After the run
the result itself is shown, with all its rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby
from threading import Lock, Thread
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.viewer.exhibit import slots_allowed
from cosolve.viewer.frames import Window
from cosolve.viewer.levels import Slots, scaled
from cosolve.viewer.signals import STEPS, Signals, factors

_NUMBERS = 1 << 19  # kept at most, lowest and highest each: more is not seen, and filling memory holds the run up
_LEAST_ROWS = 1 << 12
_MOST_WAITING = 1 << 12  # chunks, which may be single steps
_MOST_NUMBERS = 1 << 22  # in them
_MANY = 1 << 10  # steps in a chunk


class Growing:
    """Rows of the columns `y`, `z`, those about steps, seconds and calls, side by side.

    >>> from types import SimpleNamespace
    >>> from cosolve.result import Channel
    >>> grown = Growing(Signals({"a.x": Channel("y", (0,), True)}, ["a"]), widths=(1, 0, 1), most_rows=8)
    >>> for k in range(100):
    ...     step = dict.fromkeys(("H", *STEPS, "seconds", "calls"), 0.0)
    ...     step |= {"t": np.array([float(k)]), "y": np.array([[k % 50.0]]), "z": np.zeros((1, 0))}
    ...     grown.put(SimpleNamespace(**step))
    >>> grown.take_in()
    >>> window = grown.window([0], 0.0, 99.0, 100)
    >>> len(window.t) <= 9, float(window.slots.high.max()), window.rows
    (True, 49.0, 100)
    """

    def __init__(
        self,
        signals: Signals,
        widths: tuple[int, int, int],
        most_rows: int | None = None,
        chosen: Callable[[Any], Any] | None = None,
    ) -> None:
        self.signals, self._chosen = signals, chosen
        n_y, n_z, parts = widths
        self._at = {"y": 0, "z": n_y}
        for k, name in enumerate(STEPS):
            self._at[name] = n_y + n_z + k
        self._at["seconds"] = n_y + n_z + len(STEPS)
        self._at["calls"] = self._at["seconds"] + parts
        self._width, self._widths = self._at["calls"] + parts, {"y": n_y, "z": n_z, "seconds": parts, "calls": parts}
        self._most = most_rows or max(_LEAST_ROWS, _NUMBERS // self._width)
        self._waiting: deque[Any] = deque()
        self._numbers_waiting = 0
        self.bounded = True  # False where the numbers of chunks are in memory anyway, as those of a result
        self._lock = Lock()
        self._helper: Thread | None = None
        self.rows, self._slot, self._count = 0, 1, 0
        self._t, self._low = np.empty(64), np.empty((64, self._width))
        self._high: Matrix = self._low  # the same array as long as every slot is one row
        self._rest: tuple[Vector, Matrix] = np.zeros(0), np.zeros((0, self._width))  # of a slot that is not full yet

    def put(self, chunk: Any) -> None:
        """Steps of the run (`engine/chunk.py`); called by it, and back at once.

        Where nobody looks, a thread takes them in now and then, so that they do not pile up.
        """
        self._waiting.append(chunk)
        if self.bounded:
            self._numbers_waiting += len(chunk.t) * self._width
        full = self._numbers_waiting > _MOST_NUMBERS or len(self._waiting) > _MOST_WAITING
        if full and (self._helper is None or not self._helper.is_alive()):
            self._helper = Thread(target=self.take_in, name="cosolve viewer takes in")
            self._helper.start()

    def take_in(self) -> None:
        """Make what was put visible."""
        if not self._waiting:
            return
        with self._lock:
            self._numbers_waiting = 0
            chunks = [self._waiting.popleft() for _ in range(len(self._waiting))]
            for size, group in groupby(chunks, _size):
                if size == "one":
                    self._add(*self._together(list(group)))
                elif size == "few":
                    self._add(*self._side_by_side(list(group)))
                else:
                    for chunk in group:
                        self._add(chunk.t, self._columns(chunk))

    def _columns(self, chunk: Any) -> dict[str, Any]:
        """The columns of a chunk by name: a matrix, or one row or number where all rows are the same."""
        chunk = chunk if self._chosen is None else self._chosen(chunk)
        found = {name: np.asarray(getattr(chunk, name)) for name in self._at}
        return {
            name: value[:, np.newaxis] if value.ndim == 1 and len(value) == len(chunk.t) and name in STEPS else value
            for name, value in found.items()
        }

    def _together(self, chunks: list[Any]) -> tuple[Vector, dict[str, Any]]:
        """Single steps, of which there may be hundreds: a column at a time."""
        if self._chosen is not None:
            chunks = [self._chosen(chunk) for chunk in chunks]
        found, count = {}, len(chunks)
        for name in self._at:
            values, width = [getattr(chunk, name) for chunk in chunks], self._widths.get(name, 1)
            joined = np.concatenate(values, axis=None)
            if joined.size not in (count, count * width):  # some have a number for all subsystems, others one for each
                joined = np.vstack([np.broadcast_to(value, (1, width)) for value in values])
            found[name] = joined.reshape(count, -1)
        return np.concatenate([chunk.t for chunk in chunks]), found

    def _side_by_side(self, chunks: list[Any]) -> tuple[Vector, dict[str, Any]]:
        """Chunks of some steps each, as one: what a chunk costs by itself would be most of it."""
        if self._chosen is not None:
            chunks = [self._chosen(chunk) for chunk in chunks]
        t = np.concatenate([chunk.t for chunk in chunks])
        ends = np.cumsum([len(chunk.t) for chunk in chunks]).tolist()
        rows = [slice(end - len(chunk.t), end) for chunk, end in zip(chunks, ends, strict=True)]
        found = {}
        for name in self._at:
            together = np.empty((len(t), self._widths.get(name, 1)))
            for chunk, here in zip(chunks, rows, strict=True):
                value = getattr(chunk, name)
                together[here] = value[:, np.newaxis] if name in STEPS and np.ndim(value) else value
            found[name] = together
        return t, found

    def _table(self, columns: dict[str, Any], first: int, last: int) -> Matrix:
        """Some rows, all columns side by side."""
        found = np.empty((last - first, self._width))
        for name, at in self._at.items():
            value = columns[name]
            found[:, at : at + self._widths.get(name, 1)] = value[first:last] if value.ndim == 2 else value
        return found

    def _add(self, t: Vector, columns: dict[str, Any]) -> None:
        count = len(t)
        self.rows += count
        while self._count + (len(self._rest[0]) + count) // self._slot > self._most:
            self._coarsen()
        slot = self._slot
        done = min(count, slot - len(self._rest[0])) if len(self._rest[0]) else 0
        if done:  # the slot that is not full yet
            self._keep(t[:done], self._table(columns, 0, done))
            if len(self._rest[0]) == slot:
                times, rows = self._rest
                self._append(times[:1], np.fmin.reduce(rows)[np.newaxis], np.fmax.reduce(rows)[np.newaxis])
                self._rest = times[:0], rows[:0]
        whole = (count - done) // slot * slot
        if whole:
            low = self._table(columns, done, done + whole) if slot == 1 else np.empty((whole // slot, self._width))
            high = low if slot == 1 else np.empty_like(low)
            if slot > 1:
                self._reduce(columns, slice(done, done + whole), low, high)
            self._append(t[done : done + whole : slot], low, high)
        if done + whole < count:
            self._keep(t[done + whole :], self._table(columns, done + whole, count))

    def _keep(self, t: Vector, rows: Matrix) -> None:
        """Rows for a slot that is not full yet."""
        self._rest = np.concatenate([self._rest[0], t]), np.vstack([self._rest[1], rows])

    def _reduce(self, columns: dict[str, Any], rows: slice, low: Matrix, high: Matrix) -> None:
        """Lowest and highest of whole slots, by halves: long rows of numbers at a time, whatever the slots' length."""
        for name, at in self._at.items():
            value, here = columns[name], slice(at, at + self._widths.get(name, 1))
            if value.ndim != 2:
                low[:, here] = high[:, here] = value
                continue
            least = most = value[rows]
            while len(least) > len(low):
                least, most = np.fmin(least[::2], least[1::2]), np.fmax(most[::2], most[1::2])
            low[:, here], high[:, here] = least, most

    def _append(self, t: Vector, low: Matrix, high: Matrix) -> None:
        end = self._count + len(t)
        if end > len(self._t):
            size, same = max(end, 2 * len(self._t)), self._high is self._low
            self._t, self._low = _longer(self._t, size), _longer(self._low, size)
            self._high = self._low if same else _longer(self._high, size)
        self._t[self._count : end], self._low[self._count : end] = t, low
        if self._high is not self._low:
            self._high[self._count : end] = high
        self._count = end

    def _coarsen(self) -> None:
        """Two slots become one; a last single one goes back to the rows that wait, as its lowest and highest."""
        count = self._count // 2 * 2
        if self._count > count:  # as two rows: nothing of it is lost
            rest = np.vstack([self._low[count : count + 1], self._high[count : count + 1]])
            rest = np.repeat(rest, self._slot // 2, axis=0) if self._slot > 1 else rest[:1]
            times = np.concatenate([np.full(len(rest), self._t[count]), self._rest[0]])
            self._rest = times, np.vstack([rest, self._rest[1]])
        low, high = self._low[:count], self._high[:count]
        self._t, self._count, self._slot = self._t[:count:2].copy(), count // 2, 2 * self._slot
        self._low, self._high = np.fmin(low[::2], low[1::2]), np.fmax(high[::2], high[1::2])

    @property
    def span(self) -> tuple[float, float]:
        """The first and the last time."""
        with self._lock:
            last = self._rest[0][-1] if len(self._rest[0]) else self._t[self._count - 1] if self._count else 0.0
            first = self._t[0] if self._count else last
            return float(first), float(last)

    def window(self, addresses: Sequence[int], t0: float, t1: float, most: int) -> Window:
        """Some signals from `t0` to `t1` in at most so many slots."""
        most = slots_allowed(most)
        places = [self.signals.place(address) for address in addresses]
        columns = [self._at[column] + k for column, k, *_ in places]
        with self._lock:
            t, same = self._t[: self._count], self._high is self._low
            first = max(0, int(np.searchsorted(t, t0, side="left")) - 1)
            last = min(len(t), int(np.searchsorted(t, t1, side="right")) + 1)
            first = max(0, min(first, last - 1))
            size = 1 << max(0, int(np.ceil(np.log2(max(1, last - first) / max(1, most - 1)))))
            begin = first // size * size
            low, high = self._low[begin:last, columns], self._high[begin:last, columns]
            times = t[begin:last:size].copy()
            end_t, end = self._rest[0][-1:], self._rest[1][-1:, columns]
            rows = self.rows
        starts = np.arange(0, len(low), size)
        if size > 1:
            low, high, same = np.fmin.reduceat(low, starts), np.fmax.reduceat(high, starts), False
        if len(end) and end_t[0] <= t1:
            times, low, high = np.append(times, end_t), np.vstack([low, end]), np.vstack([high, end])
        slots = Slots(np.arange(len(times)), low, low if same else high)
        return Window(times, scaled(slots, *factors(places)), rows)


def _size(chunk: Any) -> str:
    rows = len(chunk.t)
    return "one" if rows == 1 else "few" if rows < _MANY else "many"


def _longer(array: Any, size: int) -> Any:
    grown = np.empty((size, *array.shape[1:]))
    grown[: len(array)] = array
    return grown
