"""The compiled step of a subsystem with inputs and outputs at two points of the step (`interface/stages.py`)."""

from __future__ import annotations

import numpy as np

from cosolve.basics.records import Record, fill
from cosolve.jit import (
    ADVANCE_CALL,
    call_advance,
    called,
    double_at,
    part,
    put_double_at,
    raising_address,
    record_at,
    short_loop,
)
from cosolve.subsystem.native import ADVANCE, Native


class _Memory(Record):
    """How it advances over the part of the step up to the inner point and the part after it, where its state lies."""

    first: int
    first_data: int
    first_state: int
    second: int
    second_data: int
    second_state: int
    n_state: int
    width: int
    size: int
    line: int  # room for the coefficients of a line
    point: float


_memory_at = record_at(_Memory)


@part
def _copied(source: int, target: int, count: int) -> None:
    for k in range(count):
        short_loop()
        put_double_at(target, k, double_at(source, k))


@called(ADVANCE_CALL)
def _advance(w: int, mode: int, t0: float, t1: float, H: float, n: int, u: int, outputs: int) -> int:
    """As `Stages.advance`: the numbers are formed as in `signal/history.py`."""
    m = _memory_at(w)
    width, count, c, line = m.width, m.n_state, m.point, m.line
    for k in range(width):
        short_loop()
        end, inner = double_at(u, k), double_at(u, width + k)
        begin = inner - (end - inner) * (c / (1.0 - c))
        put_double_at(line, k, begin)
        put_double_at(line, width + k, inner - begin)
    middle, inside = t0 + c * H, outputs + 8 * m.size
    status = call_advance(m.first, m.first_data, ADVANCE, t0, middle, c * H, 2, line, inside)
    if status != 0:
        return status
    _copied(m.first_state, m.second_state, count)
    for k in range(width):
        short_loop()
        end, inner = double_at(u, k), double_at(u, width + k)
        put_double_at(line, k, inner)
        put_double_at(line, width + k, end - inner)
    rest = (1.0 - c) * H
    status = call_advance(m.second, m.second_data, ADVANCE, middle, t1, rest, 2, line, outputs)
    _copied(m.second_state, m.first_state, count)
    return status


def stages_native(first: Native, second: Native, c: float, width: int, size: int) -> Native | str:
    """The subsystem step by those of both parts of the step, or why there is none."""
    for one in (first, second):
        if one.begin or one.save or one.restore or not len(one.state):
            return "its state cannot be moved between the two parts of the step"
    memory, line = np.zeros((), _Memory.dtype), np.zeros(2 * width)
    fill(memory, first=first.advance, first_data=first.data, first_state=first.state, n_state=len(first.state))
    fill(memory, second=second.advance, second_data=second.data, second_state=second.state)
    fill(memory, width=width, size=size, line=line, point=c)

    def enter() -> None:
        first.enter()
        second.enter()

    def leave() -> None:
        second.leave()
        first.leave()  # where the state is

    made = Native(raising_address(_advance), memory.ctypes.data, first.state, keep=(memory, line, first, second))
    made.enter, made.leave = enter, leave
    made.any_step = first.any_step and second.any_step
    made.hands_back = first.hands_back or second.hands_back
    made.captures, made.runs_python = first.captures, first.runs_python
    made.explain = first.explain or second.explain
    return made
