"""The signals of a run that goes on, in bounded memory: first every row, then the lowest and highest of every slot.

The run hands over its chunks of steps without waiting (`put`); whoever looks takes them in (`take_in`). When the rows
become too many, two slots at a time are made one, so that a run of any length fits and no peak is lost. After the run
the result itself is shown, with all its rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.viewer.exhibit import slots_allowed
from cosolve.viewer.frames import Window
from cosolve.viewer.levels import Slots, scaled
from cosolve.viewer.signals import STEPS, Signals, factors

_NUMBERS = 1 << 22  # kept at most, lowest and highest each
_LEAST_ROWS = 1 << 11


class Growing:
    """Rows of the columns `y`, `z`, those about steps, seconds and calls, side by side.

    >>> from cosolve.result import Channel
    >>> grown = Growing(Signals({"a.x": Channel("y", (0,), True)}, ["a"]), widths=(1, 0, 1), most_rows=8)
    >>> for k in range(100):
    ...     step = dict.fromkeys(("H", *STEPS, "seconds", "calls"), 0.0)
    ...     grown.put(step | {"t": np.array([float(k)]), "y": np.array([[k % 50.0]]), "z": np.zeros((1, 0))})
    >>> grown.take_in()
    >>> window = grown.window([0], 0.0, 99.0, 100)
    >>> len(window.t) <= 9, float(window.slots.high.max()), window.rows
    (True, 49.0, 100)
    """

    def __init__(self, signals: Signals, widths: tuple[int, int, int], most_rows: int | None = None) -> None:
        self.signals = signals
        n_y, n_z, parts = widths
        self._at = {"y": 0, "z": n_y}
        for k, name in enumerate(STEPS):
            self._at[name] = n_y + n_z + k
        self._at["seconds"] = n_y + n_z + len(STEPS)
        self._at["calls"] = self._at["seconds"] + parts
        self._width, self._widths = self._at["calls"] + parts, {"y": n_y, "z": n_z, "seconds": parts, "calls": parts}
        self._most = most_rows or max(_LEAST_ROWS, _NUMBERS // self._width)
        self._waiting: deque[dict[str, Any]] = deque()
        self._lock = Lock()  # between those who look, never held by the run
        self.rows, self._slot, self._count = 0, 1, 0
        self._t, self._low = np.empty(64), np.empty((64, self._width))
        self._high: Matrix = self._low  # the same array as long as every slot is one row
        self._rest: tuple[Vector, Matrix] = np.zeros(0), np.zeros((0, self._width))  # of a slot that is not full yet

    def put(self, chunk: dict[str, Any]) -> None:
        """Steps of the run; called by it, and back at once."""
        self._waiting.append(chunk)

    def take_in(self) -> None:
        """Make what was put visible."""
        with self._lock:
            chunks = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if chunks:
                self._add(np.concatenate([chunk["t"] for chunk in chunks]), np.vstack([self._table(c) for c in chunks]))

    def _table(self, chunk: dict[str, Any]) -> Matrix:
        found = np.empty((len(chunk["t"]), self._width))
        for name, at in self._at.items():
            value, width = chunk[name], self._widths.get(name, 1)
            found[:, at : at + width] = (
                np.asarray(value).reshape(-1, 1) if np.ndim(value) == 1 and width == 1 else value
            )
        return found

    def _add(self, t: Vector, values: Matrix) -> None:
        self.rows += len(t)
        t, values = np.concatenate([self._rest[0], t]), np.vstack([self._rest[1], values])
        while self._count + len(t) // self._slot > self._most:
            t, values = self._coarser(t, values)
        whole = len(t) // self._slot * self._slot
        self._rest = t[whole:].copy(), values[whole:].copy()
        starts = np.arange(0, whole, self._slot)
        if not len(starts):
            return
        low = values[:whole] if self._slot == 1 else np.fmin.reduceat(values[:whole], starts)
        high = low if self._slot == 1 else np.fmax.reduceat(values[:whole], starts)
        self._append(t[starts], low, high)

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

    def _coarser(self, t: Vector, values: Matrix) -> tuple[Vector, Matrix]:
        """Two slots become one; a last single one goes back to the rows that wait, as its lowest and highest."""
        count = self._count // 2 * 2
        if self._count > count:  # as two rows: nothing of it is lost
            rest = np.vstack([self._low[count : count + 1], self._high[count : count + 1]])
            rest = np.repeat(rest, max(1, self._slot // 2), axis=0) if self._slot > 1 else rest[:1]
            t, values = np.concatenate([np.full(len(rest), self._t[count]), t]), np.vstack([rest, values])
        pairs = np.arange(0, count, 2)
        low = np.fmin.reduceat(self._low[:count], pairs) if count else self._low[:0].copy()
        high = np.fmax.reduceat(self._high[:count], pairs) if count else self._high[:0].copy()
        self._t, self._low, self._high = self._t[:count:2].copy(), low, high
        self._count, self._slot = len(pairs), 2 * self._slot
        return t, values

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


def _longer(array: Any, size: int) -> Any:
    grown = np.empty((size, *array.shape[1:]))
    grown[: len(array)] = array
    return grown
