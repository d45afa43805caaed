"""Saved states that change although they must not, and runs that begin where the last one ended.

`save` of a user's solver easily returns the array that `advance` goes on to change. A method that repeats steps
then goes back to nowhere, silently. So the first state that is restored in a run is compared with a copy made
when it was saved; plain values and arrays up to some megabytes, which is what such solvers return.

`start` of a user's solver easily resets nothing, which shows in the second run only. So its states before and
after are compared: where they are the same, and not those of its first start, the run would go on with the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.errors import SubsystemError
from cosolve.subsystem.base import Subsystem, has_capability

_NO_RESET = (
    "it begins where its last run ended; start must put everything back that advance changes, since it is called for "
    "every new run"
)
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


def alike(subsystems: Sequence[Subsystem]) -> list[list[int]]:
    """Places of subsystems that are of one class of the user and can go back, where there are several."""
    kinds: dict[type, list[int]] = {}
    for i, subsystem in enumerate(subsystems):
        if _is_own(subsystem) and has_capability(subsystem, "rollback"):
            kinds.setdefault(type(subsystem), []).append(i)
    return [group for group in kinds.values() if len(group) > 1]


def shares_state(subsystems: Sequence[Subsystem], move: Callable[[], object]) -> int | None:
    """Which of these changes its saved state when the first of them moves; afterwards all stand where they were."""
    before = [subsystem.save() for subsystem in subsystems]
    copies = [_copied(state) for state in before]
    move()
    changed = [not _equal(_copied(s.save()), copy) for s, copy in zip(subsystems[1:], copies[1:], strict=True)]
    for subsystem, state in zip(subsystems, before, strict=True):
        subsystem.restore(state)
    return 1 + changed.index(True) if any(changed) else None


def suspicious(subsystems: Sequence[Subsystem], outputs: Sequence[Vector]) -> list[int]:
    """Subsystems of one class that give other outputs than the first of them from what they say is the same state."""
    first = _looked_at(subsystems[0])
    if first is None or first[0] is None:
        return []
    return [
        i
        for i in range(1, len(subsystems))
        if not np.array_equal(outputs[i], outputs[0]) and _equal(first, _looked_at(subsystems[i]) or ())
    ]


#: The states of subsystems after the first start that was seen of them.
_begun: WeakKeyDictionary[Subsystem, Any] = WeakKeyDictionary()


def started_anew(subsystem: Subsystem, start: Callable[[], Any]) -> Any:
    """What `start` gave; raises when it left the subsystem where the run before had left it."""
    own = _is_own(subsystem) and has_capability(subsystem, "rollback")
    before = _looked_at(subsystem) if own and _first_of(subsystem) is not None else None
    outputs = start()
    after = _looked_at(subsystem) if own else None
    if after is None:
        return outputs
    first = _first_of(subsystem)
    if first is None:
        with suppress(TypeError):  # not to be told from others that are equal
            _begun[subsystem] = after
    elif before is not None and _equal(before, after) and not _equal(first, after):
        raise SubsystemError(_NO_RESET)
    return outputs


#: Of subsystems without `save`: what the first start gave, and with what the last run ended.
_ends: WeakKeyDictionary[Subsystem, tuple[Vector, Vector]] = WeakKeyDictionary()


def refuse_no_reset(subsystem: Subsystem, outputs: Vector) -> None:
    """The same for a subsystem without `save`, by its outputs: these are those at the start of a run."""
    with suppress(TypeError):  # not to be told from others that are equal
        known = _ends.get(subsystem)
        if known is not None and np.array_equal(known[1], outputs) and not np.array_equal(known[0], outputs):
            raise SubsystemError(_NO_RESET)


def note_end(subsystem: Subsystem, first: Vector, last: Vector) -> None:
    """A run has ended with these outputs."""
    with suppress(TypeError):
        if _is_own(subsystem) and not has_capability(subsystem, "rollback") and not np.array_equal(first, last):
            _ends[subsystem] = first.copy(), last.copy()


def _is_own(subsystem: Subsystem) -> bool:
    """Whether it is of a class of the user."""
    return not type(subsystem).__module__.startswith("cosolve.")


def _first_of(subsystem: Subsystem) -> Any:
    try:
        return _begun.get(subsystem)
    except TypeError:
        return None


def _looked_at(subsystem: Subsystem) -> Any:
    """A copy of its state, in a tuple; None where there is none that can be compared."""
    try:
        state = subsystem.save()
    except Exception:  # before its start, say
        return None
    return (_copied(state),) if _size(state) <= _LARGEST else None


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
    if isinstance(one, np.ndarray) or isinstance(two, np.ndarray):
        if not (isinstance(one, np.ndarray) and isinstance(two, np.ndarray)):
            return False
        return bool(one.shape == two.shape and one.tobytes() == two.tobytes())
    if isinstance(one, (list, tuple)):
        return isinstance(two, (list, tuple)) and len(one) == len(two) and all(map(_equal, one, two))
    if isinstance(one, dict):
        return isinstance(two, dict) and one.keys() == two.keys() and all(_equal(one[key], two[key]) for key in one)
    return bool(one == two) or (one != one and two != two)
