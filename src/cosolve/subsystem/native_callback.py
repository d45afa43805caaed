"""The subsystem step of a Python subsystem from compiled code: the loop is machine code, `advance` stays what it is.

The loop leaves the inputs in memory that both see and calls Python by the address of a callback. That hands `advance`
the same signal as the Python engine does, checks what it returns in the same way, and leaves it beside the inputs.
Nothing may be raised through compiled code: an exception is kept and becomes a status, and who is asked to explain that
raises it.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np

from cosolve.basics.wording import raised
from cosolve.errors import CosolveError, EndOfSimulation, SubsystemError
from cosolve.jit import (
    ADVANCE_CALL,
    KEEPING,
    c_call,
    called,
    double_at,
    part,
    put_double_at,
    raising_address,
    types,
    words_at,
)
from cosolve.signal.polynomial import Polynomial
from cosolve.subsystem.base import Subsystem, has_capability
from cosolve.subsystem.native import REPLAY, Native
from cosolve.subsystem.port import Ports

# words: the callback; how many inputs, outputs and rows of coefficients at most; where inputs and outputs lie
_CALL, _WIDTH, _GIVES, _MOST, _INPUTS, _OUTPUTS = range(6)
_ENDED = 6  # 1: the subsystem has advanced over its last step
_LOST = 7  # 1: Python was interrupted before it heard what it was told
_WORDS = 8

_SAVE, _RESTORE = REPLAY + 1, REPLAY + 2  # beside the modes of a subsystem step
_DONE, _KEPT = 0x5D0E, 0x50FE  # what the callback says; anything else is left of a call in which Ctrl-C was lost

_call = c_call(types.int64(types.int64, types.int64, types.float64, types.float64, types.float64))
_Callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, *[ctypes.c_double] * 3)

_LISTS, _NUMBERS = (list, tuple), {float}
_CLOSE = 1e-9  # of a step: an end of the run that is so close to the end of the step is there


@part
def _told(w: list[int], what: int, n: int, t0: float, t1: float, H: float) -> int:
    """Python does it: 0, or 1 where it could not."""
    said = _call(w[_CALL], what, n, t0, t1, H)
    if said != _DONE and said != _KEPT:
        w[_LOST] = 1
    return 0 if said == _DONE else 1


@called(ADVANCE_CALL)
def _begin(data: int, mode: int, t0: float, t1: float, H: float, n: int, coefficients: int, outputs: int) -> int:
    """No subsystem advances after one has ended the run."""
    return words_at(data)[_ENDED]


@called(ADVANCE_CALL)
def _advance(data: int, mode: int, t0: float, t1: float, H: float, n: int, coefficients: int, outputs: int) -> int:
    w = words_at(data)
    if n > w[_MOST]:
        return 1
    for k in range(n * w[_WIDTH]):
        put_double_at(w[_INPUTS], k, double_at(coefficients, k))
    status = _told(w, mode, n, t0, t1, H)
    if status == 0:
        for k in range(w[_GIVES]):
            put_double_at(outputs, k, double_at(w[_OUTPUTS], k))
    return status


@called(KEEPING)
def _save(data: int) -> int:
    return _told(words_at(data), _SAVE, 0, 0.0, 0.0, 0.0)


@called(KEEPING)
def _restore(data: int) -> int:
    return _told(words_at(data), _RESTORE, 0, 0.0, 0.0, 0.0)


class _Callee:
    """Python's side of the subsystem step, and what it keeps for later."""

    def __init__(self, subsystem: Subsystem, degree: int) -> None:
        self.subsystem, self.outputs = subsystem, Ports(subsystem.outputs)
        self.replays = has_capability(subsystem, "replay")
        self.rows, width = degree + 1, Ports(subsystem.inputs).length
        self.given, self.gives = np.zeros((self.rows, width)), np.zeros(self.outputs.length)
        self.put, self.target = struct.Struct(f"{len(self.gives)}d").pack_into, self.gives.data
        self.words = np.zeros(_WORDS, dtype=np.int64)
        self.words[[_WIDTH, _GIVES, _MOST]] = width, len(self.gives), self.rows
        self.words[[_INPUTS, _OUTPUTS]] = self.given.ctypes.data, self.gives.ctypes.data
        self.enter()

    def enter(self) -> None:
        """There is nothing to copy: the subsystem stays where it is. A run that is to end does not begin anew."""
        if self.words[_ENDED]:
            return
        self.words[_LOST] = 0
        self.error: BaseException | None = None
        self.state: Any = None
        self.undone = False  # True when steps are undone that cannot be advanced
        self.astray = False  # True when a way back has failed

    def answer(self, what: int, n: int, t0: float, t1: float, H: float) -> int:
        """Called by compiled code; nothing may be raised through it."""
        subsystem = self.subsystem
        try:
            if what <= REPLAY:
                advance = subsystem.replay if what and self.replays else subsystem.advance
                given = (self.given if n == self.rows else self.given[:n]).copy()
                found = advance(t0, t1, Polynomial(t0, H, given))
                if type(found) in _LISTS and len(found) == len(self.gives) and {*map(type, found)} == _NUMBERS:
                    self.put(self.target, 0, *found)  # nothing to be converted or refused
                else:
                    self.gives[:] = self.outputs.pack(found)
            elif what == _SAVE:
                self.state, self.undone = subsystem.save(), True
            else:
                self.astray = True
                subsystem.restore(self.state)
                self.astray = False
        except BaseException as error:
            self.error = error
            return _DONE if isinstance(error, EndOfSimulation) and self._last_step(error, t1, H) else _KEPT
        return _DONE

    def _last_step(self, end: EndOfSimulation, t1: float, H: float) -> bool:
        """Whether the run is to end after this step, which is advanced (`EndOfSimulation` says when that is so).

        Where steps are undone, the Python engine takes this one.
        """
        early = end.outputs is None or (end.time is not None and end.time < t1 - _CLOSE * H)
        if early or self.undone:
            return False
        try:
            self.gives[:] = self.outputs.pack(end.outputs)
        except Exception as error:
            self.error = error
            return False
        end.time = t1 if end.time is None else end.time
        self.words[_ENDED] = 1
        return True

    def leave(self) -> None:
        """Raise what is no failure of a step: Ctrl-C, and a way back that has failed."""
        error = self.error
        if error is not None and not isinstance(error, Exception):
            raise error
        if self.words[_LOST]:
            raise KeyboardInterrupt
        if self.astray and error is not None:
            raise SubsystemError(f"going back to a saved state failed: {raised(error)}") from error

    def explain(self, status: int) -> None:
        """Raise what the last step raised."""
        error = self.error
        if isinstance(error, CosolveError):
            raise error
        if error is not None:
            raise SubsystemError(raised(error)) from error


def callback_native(subsystem: Subsystem, degree: int) -> Native | str:
    """The subsystem step of any subsystem, with Python at its end, or why there is none.

    >>> import cosolve as cs
    >>> class Tank(cs.Subsystem):
    ...     inputs, outputs = ["inflow"], ["level"]
    ...     def start(self, t0):
    ...         self.level = 1.0
    ...         return self.level
    ...     def advance(self, t0, t1, u):
    ...         self.level += (t1 - t0) * u(t0)[0]
    ...         return self.level
    >>> callback_native(Tank(), degree=1).any_step
    True
    """
    if subsystem.noise and not has_capability(subsystem, "replay"):
        return "its outputs are noisy, which difference quotients of the Python engine allow for; define replay"
    callee = _Callee(subsystem, degree)
    callback = _Callback(callee.answer)
    callee.words[_CALL] = ctypes.c_void_p.from_buffer(callback).value or 0  # `ctypes.cast` would keep it alive
    made = Native(raising_address(_advance), callee.words.ctypes.data, begin=raising_address(_begin), any_step=True)
    made.runs_python = True
    made.enter, made.leave, made.explain, made.keep = callee.enter, callee.leave, callee.explain, (callee, callback)
    if has_capability(subsystem, "rollback"):
        made.save, made.restore = raising_address(_save), raising_address(_restore)
    return made
