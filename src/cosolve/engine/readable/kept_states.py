"""Saved states that change although nobody should touch them.

`save` of somebody's own solver easily returns the array that `advance` goes on to change. A method that repeats steps
then goes back to nowhere, without a word. So the first state that is restored in a run is compared with a copy made
when it was saved; plain values and arrays up to some megabytes, which is what such solvers return.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_LARGEST = 10_000_000  # bytes that are copied


class FirstStates:
    """Copies of the newest state of each subsystem until it was restored once."""

    def __init__(self, count: int) -> None:
        self.waiting = set(range(count))
        self._kept: dict[int, tuple[Any, Any]] = {}

    def note(self, i: int, state: Any) -> None:
        """Subsystem `i` has saved this."""
        if _size(state) <= _LARGEST:
            self._kept[i] = state, _copied(state)
        else:
            self.waiting.discard(i)

    def changed(self, i: int, state: Any) -> bool:
        """True when a state that is about to be restored for the first time is not what was saved."""
        kept = self._kept.pop(i, None)
        self.waiting.discard(i)
        return kept is not None and kept[0] is state and not _equal(*kept)


def _size(state: Any) -> float:
    """Bytes of plain values and arrays; infinite where there is anything else.

    >>> _size([np.zeros(3), 1.0, {"t": 2}]), _size(object())
    (40.0, inf)
    """
    if isinstance(state, np.ndarray) and state.dtype.kind in "biufc":
        return float(state.nbytes)
    if isinstance(state, (list, tuple)):
        return sum((_size(part) for part in state), 0.0)
    if isinstance(state, dict):
        return sum((_size(part) for part in state.values()), 0.0)
    return 8.0 if isinstance(state, (bool, int, float, complex, str, bytes, np.generic, type(None))) else np.inf


def _copied(state: Any) -> Any:
    if isinstance(state, np.ndarray):
        return state.copy()
    if isinstance(state, (list, tuple)):
        return [_copied(part) for part in state]
    return {key: _copied(part) for key, part in state.items()} if isinstance(state, dict) else state


def _equal(one: Any, two: Any) -> bool:
    if isinstance(one, np.ndarray):
        return bool(one.shape == two.shape and one.tobytes() == two.tobytes())
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(map(_equal, one, two))
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(_equal(one[key], two[key]) for key in one)
    return bool(one == two) or (one != one and two != two)
