"""The compiled crossing of a subsystem with inputs and outputs at two points of the step (`interface/stages.py`)."""

# mypy: disable-error-code="call-arg, no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from cosolve.jit import (
    CROSS,
    call_cross,
    called,
    double_at,
    part,
    put_double_at,
    raising_address,
    short_loop,
    word_at,
)
from cosolve.subsystem.native import ADVANCE, Native

# The words of a subsystem: how it crosses the part of the step up to the inner point and the part after it, where its
# state lies in either, sizes, the inner point (a double); then room for the coefficients of a line.
(
    _FIRST,
    _FIRST_DATA,
    _FIRST_STATE,
    _SECOND,
    _SECOND_DATA,
    _SECOND_STATE,
    _N_STATE,
    _WIDTH,
    _SIZE,
    _POINT,
    _HEAD,
) = range(11)


@part
def _copied(source, target, count):
    for k in range(count):
        short_loop()
        put_double_at(target, k, double_at(source, k))


@called(CROSS)
def _cross(w, mode, t0, t1, H, n, u, outputs):
    """As `Stages.advance`: the numbers are formed as in `signal/collocation.py`."""
    width, count, c, line = word_at(w, _WIDTH), word_at(w, _N_STATE), double_at(w, _POINT), w + 8 * _HEAD
    for k in range(width):
        short_loop()
        end, inner = double_at(u, k), double_at(u, width + k)
        begin = inner - (end - inner) * (c / (1.0 - c))
        put_double_at(line, k, begin)
        put_double_at(line, width + k, inner - begin)
    middle, inside = t0 + c * H, outputs + 8 * word_at(w, _SIZE)
    status = call_cross(word_at(w, _FIRST), word_at(w, _FIRST_DATA), ADVANCE, t0, middle, c * H, 2, line, inside)
    if status != 0:
        return status
    _copied(word_at(w, _FIRST_STATE), word_at(w, _SECOND_STATE), count)
    for k in range(width):
        short_loop()
        end, inner = double_at(u, k), double_at(u, width + k)
        put_double_at(line, k, inner)
        put_double_at(line, width + k, end - inner)
    rest = (1.0 - c) * H
    status = call_cross(word_at(w, _SECOND), word_at(w, _SECOND_DATA), ADVANCE, middle, t1, rest, 2, line, outputs)
    _copied(word_at(w, _SECOND_STATE), word_at(w, _FIRST_STATE), count)
    return status


def stages_native(first: Native, second: Native, c: float, width: int, size: int) -> Native | str:
    """The crossing by those of both parts of the step, or why there is none."""
    for one in (first, second):
        if one.begin or one.save or one.restore or not len(one.state):
            return "its state cannot be moved between the two parts of the step"
    data = np.zeros(_HEAD + 2 * width)
    data.view(np.int64)[:_POINT] = (
        *(first.cross, first.data, first.state.ctypes.data),
        *(second.cross, second.data, second.state.ctypes.data),
        *(len(first.state), width, size),
    )
    data[_POINT] = c

    def enter() -> None:
        first.enter()
        second.enter()

    def leave() -> None:
        second.leave()
        first.leave()  # where the state is

    made = Native(raising_address(_cross), data.ctypes.data, first.state, keep=(data, first, second))
    made.enter, made.leave = enter, leave
    made.any_step = first.any_step and second.any_step
    made.hands_back = first.hands_back or second.hands_back
    made.explain = first.explain or second.explain
    return made
