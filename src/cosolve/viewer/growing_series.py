"""The signals of a run that goes on, in bounded memory: first every row, then the lowest and highest of every slot.

The run hands over its chunks of steps without waiting (`put`); a reader takes them in (`take_in`); `chosen` cuts
out of a chunk what is recorded. When the slots become too many, two at a time are made one, so that a run of any length
fits and no peak is lost. After the run the result itself is shown, with all its rows.

The run and its readers share one interpreter, and every time it changes hands both wait: a call of numpy on many
numbers lets go of it and has to get it back. The loops over rows are therefore compiled, and keep it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby
from threading import Lock, Thread
from types import SimpleNamespace
from typing import Any

import numpy as np

from cosolve.jit import njit
from cosolve.viewer.frames import Window
from cosolve.viewer.levels import Slots, scaled
from cosolve.viewer.result_view import slots_allowed
from cosolve.viewer.signals import STEPS, Signals, factors

_NUMBERS = 1 << 19  # kept at most, lowest and highest each: more is not seen, and filling memory holds the run up
_LEAST_ROWS = 1 << 12
_MOST_WAITING = 1 << 12  # chunks, which may be single steps
_MOST_NUMBERS = 1 << 22  # in them
_LONG = 1 << 12  # steps in a chunk of compiled code


class GrowingSeries:
    """Rows of the columns `y`, `z`, those about steps, seconds and calls, side by side.

    >>> from types import SimpleNamespace
    >>> from cosolve.result import Channel
    >>> grown = GrowingSeries(Signals({"a.x": Channel("y", (0,), True)}, ["a"]), widths=(1, 0, 1), most_rows=8)
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
        self.rows, self._slot = 0, 1
        self._t, self._low, self._high = np.empty(64), np.empty((64, self._width)), np.empty((64, self._width))
        self._last_t, self._last = 0.0, np.full(self._width, np.nan)
        _load()

    def put(self, chunk: Any) -> None:
        """Steps of the run (`engine/chunk.py`); called by it, and back at once.

        Without readers a thread takes them in now and then, so that they do not pile up.
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
            if self._chosen is not None:
                chunks = [self._chosen(chunk) for chunk in chunks]
            for alone, group in groupby(chunks, lambda chunk: len(chunk.t) == 1):
                for chunk in [self._together(list(group))] if alone else group:
                    self._add(chunk)

    def _together(self, chunks: list[Any]) -> SimpleNamespace:
        """Single steps, of which there may be hundreds, as one chunk: a column at a time."""
        count, found = len(chunks), {"t": np.concatenate([chunk.t for chunk in chunks])}
        for name in self._at:
            values, width = [getattr(chunk, name) for chunk in chunks], self._widths.get(name, 1)
            joined = np.concatenate(values, axis=None)
            if joined.size not in (count, count * width):  # some have a number for all subsystems, others one for each
                joined = np.vstack([np.broadcast_to(value, (1, width)) for value in values])
            both = joined.reshape(count, -1)
            found[name] = both if both.shape[1] == width else np.broadcast_to(both, (count, width)).copy()
        return SimpleNamespace(**found)

    def _add(self, chunk: Any) -> None:
        count = len(chunk.t)
        if not count:
            return
        while (self.rows + count - 1) // self._slot >= self._most:
            self._coarsen()
        slots = (self.rows + count - 1) // self._slot + 1
        if slots > len(self._t):
            size, used = min(max(slots, 2 * len(self._t)), max(slots, self._most)), self._count
            self._t = _longer(self._t, size, used)
            self._low, self._high = _longer(self._low, size, used), _longer(self._high, size, used)
        rows, slot = self.rows, self._slot
        fold, begun = _fold_alone if count > _LONG else _fold, -rows % slot  # the row with which the next slot begins
        if begun < count:
            self._t[(rows + begun) // slot : slots] = chunk.t[begun::slot]
        for name, at in self._at.items():
            value = np.asarray(getattr(chunk, name), dtype=np.float64)
            if value.ndim == 1 and name in STEPS:
                value = value[:, np.newaxis]
            here = slice(at, at + self._widths.get(name, 1))
            if value.ndim == 2:
                fold(value, rows, slot, self._low[:, here], self._high[:, here])
                self._last[here] = value[-1]
            else:  # the same in all rows
                self._last[here] = value
                _fold_same(self._last[here], count, rows, slot, self._low[:, here], self._high[:, here])
        self.rows, self._last_t = rows + count, float(chunk.t[-1])

    @property
    def _count(self) -> int:
        """Slots with at least one row; the last of them may have room for more."""
        return -(-self.rows // self._slot)

    def _coarsen(self) -> None:
        """Two slots become one."""
        count = self._count
        self._slot *= 2
        half = -(-count // 2)
        self._t[:half] = self._t[:count:2].copy()
        _halve(self._low, self._high, count)

    @property
    def span(self) -> tuple[float, float]:
        """The first and the last time."""
        with self._lock:
            return (float(self._t[0]) if self.rows else 0.0), self._last_t

    def window(self, addresses: Sequence[int], t0: float, t1: float, most: int) -> Window:
        """Some signals from `t0` to `t1` in at most so many slots."""
        most = slots_allowed(most)
        places = [self.signals.place(address) for address in addresses]
        columns = np.array([self._at[column] + k for column, k, *_ in places], dtype=np.int64)
        with self._lock:
            count = self._count
            t = self._t[:count]
            first = max(0, int(np.searchsorted(t, t0, side="left")) - 1)
            last = min(count, int(np.searchsorted(t, t1, side="right")) + 1)
            first = max(0, min(first, last - 1))
            size = 1 << max(0, int(np.ceil(np.log2(max(1, last - first) / max(1, most - 1)))))
            begin = first // size * size
            times = t[begin:last:size].copy()
            low, high = np.empty((len(times), len(columns))), np.empty((len(times), len(columns)))
            _look(self._low, self._high, columns, begin, last, size, low, high)
            same, rows = self._slot == size == 1, self.rows
            if not same and last == count and self._last_t <= t1 and count:  # up to where the run is
                end = self._last[columns]
                times = np.append(times, self._last_t)
                low, high = np.vstack([low, end]), np.vstack([high, end])
        slots = Slots(np.arange(len(times)), low, low if same else high)
        return Window(times, scaled(slots, *factors(places)), rows)


def _longer(array: Any, size: int, used: int) -> Any:
    grown = np.empty((size, *array.shape[1:]))
    grown[:used] = array[:used]
    return grown


# -- compiled: row `rows + r` belongs to slot `(rows + r) // slot`; NaN counts only where there is nothing else


def _folded(values: Any, rows: int, slot: int, low: Any, high: Any) -> Any:
    for c in range(values.shape[1]):
        for r in range(len(values)):
            k, v = (rows + r) // slot, values[r, c]
            if (rows + r) % slot == 0:
                low[k, c] = high[k, c] = v
            else:
                low[k, c], high[k, c] = np.fmin(low[k, c], v), np.fmax(high[k, c], v)


_fold = njit(cache=True)(_folded)


@njit(cache=True, nogil=True)
def _fold_alone(values: Any, rows: int, slot: int, low: Any, high: Any) -> Any:
    """Of thousands of rows, which come from compiled code: that goes on meanwhile."""
    _fold(values, rows, slot, low, high)


@njit(cache=True)
def _fold_same(values: Any, count: int, rows: int, slot: int, low: Any, high: Any) -> Any:
    for k in range(rows // slot, (rows + count - 1) // slot + 1):
        for c in range(len(values)):
            v = values[c]
            if k * slot >= rows:
                low[k, c] = high[k, c] = v
            else:
                low[k, c], high[k, c] = np.fmin(low[k, c], v), np.fmax(high[k, c], v)


@njit(cache=True)
def _halve(low: Any, high: Any, count: int) -> Any:
    for k in range((count + 1) // 2):
        for c in range(low.shape[1]):
            a, b = 2 * k, min(2 * k + 1, count - 1)
            low[k, c] = np.fmin(low[a, c], low[b, c])
            high[k, c] = np.fmax(high[a, c], high[b, c])


@njit(cache=True)
def _look(low: Any, high: Any, columns: Any, begin: int, last: int, size: int, least: Any, most: Any) -> Any:
    """Lowest and highest of `size` slots each, of some columns."""
    for k in range(len(least)):
        for j in range(len(columns)):
            c, at = columns[j], begin + k * size
            least[k, j], most[k, j] = low[at, c], high[at, c]
            for i in range(at + 1, min(at + size, last)):
                least[k, j] = np.fmin(least[k, j], low[i, c])
                most[k, j] = np.fmax(most[k, j], high[i, c])


def _load() -> None:
    """Have the compiled loops at hand before a run begins."""
    two, part = np.zeros((2, 1)), np.zeros((2, 3))[:, 0:1]
    for values in (two, part):
        _fold(values, 0, 1, part, part)
        _fold_alone(values, 0, 1, part, part)
    _fold_same(np.zeros(1), 2, 0, 1, part, part)
    _halve(two, two, 2)
    _look(two, two, np.zeros(1, np.int64), 0, 2, 1, two, two)
