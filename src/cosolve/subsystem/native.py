"""Subsystems that can be advanced from compiled code: a machine-code function and the memory it works on.

`advance(data, mode, t0, t1, H, n, coefficients, outputs) -> status` advances over a macro step: `data` is the address
that belongs to the subsystem, `coefficients` the address of `n` rows of input coefficients, `outputs` where the outputs
go. `mode` 0 advances, `mode` 1 repeats on the internal grid of the last advance (noise-free differences). Status 0 is
good; anything else, or an exception, makes the Python engine take the step, which raises the error.
All these functions are called in numba's own convention: `called` makes them, `raising_address` says where they are.

A subsystem may take its inputs ahead: where there is a `begin`, with the arguments of `advance`, it is called first,
and `advance` goes on from there. A parallel sweep begins with all subsystems before it goes on with the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector

ADVANCE, REPLAY = 0, 1


def _nothing() -> None:
    """Nothing to copy."""


@dataclass
class Native:
    """How compiled code advances one subsystem.

    `state` is the memory that a rollback has to copy; where that is not enough (the state of a library object), `save`
    and `restore` are addresses of functions `f(data) -> status`, and `state` is empty (or not, where they cost little
    enough for explicit steps to be undone). `enter` brings the subsystem's present state into that memory, `leave`
    takes it back. `jacobian(weight)` gives a `dy/du` that is the same in every step of this size, where there is one;
    one that changes has the address of a function
    `response(data, t0, t1, H, n, coefficients, weight, stride, result) -> status`, called with the subsystem at its
    state at `t0`: it writes `dy/du`, row by row, for changes of the inputs of the shape of the polynomial whose `n`
    coefficients begin at `weight` and lie `stride` doubles apart.
    """

    advance: int
    data: int
    state: Vector = field(default_factory=lambda: np.zeros(0))
    save: int = 0
    restore: int = 0
    begin: int = 0
    response: int = 0
    enter: Callable[[], None] = _nothing
    leave: Callable[[], None] = _nothing
    jacobian: Callable[[Vector], Matrix] | None = None
    any_step: bool = False  # True when it advances over steps of any length, not only of the one it was made for
    hands_back: bool = False  # True when a bad status may mean a step that the Python engine advances all the same
    captures: bool = False  # True when Python code could change what it was made from
    runs_python: bool = False  # True when its steps call Python
    explain: Callable[[int], None] | None = None  # raises with the words for a bad status
    keep: tuple[Any, ...] = ()  # whatever must stay in memory meanwhile


@contextmanager
def entered(natives: Sequence[Native]) -> Iterator[None]:
    """All of them are entered inside, and left at the end, also where one of them raises."""
    with ExitStack() as stack:
        for native in natives:
            native.enter()
            stack.callback(native.leave)
        yield
