"""The compiled loops over macro steps: equal ones, and error-controlled ones. `step` is the text of a method.

A step that is out of the ordinary is taken back, and the loop returns: the readable engine takes that step.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated, attr-defined"

from __future__ import annotations

from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from cosolve.engine.native.parts import largest as largest_of
from cosolve.engine.native.parts import push, record, restore_all, save_all
from cosolve.engine.native.verbs import predicted, remembered
from cosolve.engine.native.wiring import (
    ARENA,
    COUNTERS,
    CROSSING,
    FILLED,
    LENGTH,
    NEXT,
    NODES,
    NORM_COUNT,
    NOTED,
    OWN_SWEEPS,
    RESIDUAL,
    STEP,
    T0,
    T1,
    TROUBLED,
    WEIGHTS_KNOWN,
)
from cosolve.engine.texts import Bound
from cosolve.jit import (
    bare,
    double_at,
    njit,
    part,
    put_double_at,
    put_word_at,
    word_at,
)
from cosolve.stepsize.clock import TICKS, fit_ticks, time_of_tick
from cosolve.stepsize.control import TINY, grow_floor, is_no_gain, is_unseen, next_length, shorter_length
from cosolve.stepsize.sequence import LEAST_TICKS

_fit_ticks: Any = njit(cache=True)(fit_ticks)
_time_of_tick: Any = njit(cache=True)(time_of_tick)
_next_length: Any = njit(cache=True)(next_length)
_shorter_length: Any = njit(cache=True)(shorter_length)
_is_no_gain: Any = njit(cache=True)(is_no_gain)
_grow_floor: Any = njit(cache=True)(grow_floor)
_is_unseen: Any = njit(cache=True)(is_unseen)


def step(m, o):
    """Stands for the text of a method."""


@part
def _begin(w, t0, t1, undo):
    """A macro step begins; False where it must not."""
    put_double_at(w, T0, t0)
    put_double_at(w, T1, t1)
    number = word_at(w, CROSSING) + 1
    put_word_at(w, CROSSING, number)
    put_word_at(w, STEP, number)
    put_word_at(w, NEXT, word_at(w, ARENA))
    put_word_at(w, COUNTERS, 0)
    return not undo or save_all(w) == 0


@part
def _is_bad(w, undo):
    """Whether the step was out of the ordinary; it is taken back then."""
    bad = word_at(w, TROUBLED) != 0
    if bad and undo:
        restore_all(w)
    return bad


@part
def _accept(w, z, values, Y, Z, R, counts, s, counted):
    """The step is taken: write its row, move the history on; `counted` is what rejected attempts cost."""
    push(values, remembered(w, z))
    record(w, z, Y, Z, s)
    if word_at(w, NOTED) != 0:
        put_double_at(R.ctypes.data, s, double_at(w, RESIDUAL))
    put_word_at(counts.ctypes.data, s, counted + word_at(w, COUNTERS) + _sweeps(w) * (1 + OWN_SWEEPS))


@part
def _sweeps(w):
    """Of this step so far."""
    return word_at(w, CROSSING) - word_at(w, STEP)


def equal_steps(w, o, values, times, H, undo, Y, Z, R, counts):
    """Macro steps of equal length with a full history; returns how many were taken."""
    put_double_at(w, LENGTH, H)
    return _equal_steps(w, o, values, times, undo, Y, Z, R, counts)


def _equal_steps(w, o, values, times, undo, Y, Z, R, counts):
    for s in range(len(Y)):
        if not _begin(w, times[s], times[s + 1], undo):
            return s
        z = step(w, o)
        if _is_bad(w, undo):
            return s
        _accept(w, z, values, Y, Z, R, counts, s, 0)
    return len(Y)


@part
def _estimate(z, predicted, left, nominal, largest, rtol, atol):
    """The error estimate, added up in order (`stepsize/control.py`); `left` is the residual, where there is one."""
    total = 0.0
    for q in range(len(nominal)):
        of, by = double_at(z, q), double_at(predicted, q)
        weight = atol * nominal[q] + rtol * max(max(abs(of), abs(by)), largest[q])
        off = abs(of - by)
        if left != 0:
            off = max(off, abs(double_at(left, q)))
        share = off / max(weight, TINY)
        total = share * share if q == 0 else total + share * share
    return np.sqrt(total / len(nominal))


def controlled_steps(
    w,
    o,
    guess,
    values,
    steps,
    clock,
    tolerances,
    numbers,
    nominal,
    most,
    is_open,
    largest,
    may_reject,
    rows,
    Y,
    Z,
    R,
    counts,
):
    """Steps until the rows are full, the end is reached, or one is out of the ordinary; how many were taken.

    `clock`: start, end, tick, proposed length, last error (NaN: none), and 1 in the end where shorter steps do not help
    (given as -1 where nobody wants to know). `tolerances`: rtol, atol, and whether `largest` follows the coupling
    variables. `numbers`: those of `Adaptive`. `rows`: time, length, error, rejections.
    """
    return _controlled_steps(
        w,
        o,
        guess,
        values,
        steps,
        clock,
        tolerances,
        numbers,
        nominal,
        most,
        is_open,
        largest,
        may_reject,
        rows,
        Y,
        Z,
        R,
        counts,
    )


def _controlled_steps(
    w,
    o,
    guess,
    values,
    steps,
    clock,
    tolerances,
    numbers,
    nominal,
    most,
    is_open,
    largest,
    may_reject,
    rows,
    Y,
    Z,
    R,
    counts,
):
    t_start, t_end = clock[0], clock[1]
    span = t_end - t_start
    tick, H, previous = int(clock[2]), clock[3], clock[4]
    order, nodes = guess + 1, word_at(w, NODES)
    s = 0
    rejected = counted = 0
    before, error_before = np.nan, np.nan  # length and error of a rejected attempt
    while s < len(Y) and tick < TICKS:
        ticks = _fit_ticks(H, span, tick)
        t0, t1 = _time_of_tick(tick, t_start, t_end, span), _time_of_tick(tick + ticks, t_start, t_end, span)
        length = span * (ticks / TICKS)
        back = 0.0
        for j in range(len(steps)):
            back += steps[j]
            put_double_at(nodes, j + 1, -back / length)
        put_word_at(w, WEIGHTS_KNOWN, 0)
        put_double_at(w, LENGTH, length)
        if not _begin(w, t0, t1, True):
            return s
        z = step(w, o)
        if _is_bad(w, True):
            return s
        ahead = predicted(w, guess)
        error = _estimate(z, ahead, word_at(w, NOTED), nominal, largest, tolerances[0], tolerances[1])
        if may_reject and error > 1.0 and numbers[0] * (1 + 1e-9) < length:
            restore_all(w)
            counters = word_at(w, COUNTERS)
            counted += counters % NORM_COUNT + _sweeps(w)
            put_word_at(w, FILLED, word_at(w, FILLED) - counters // NORM_COUNT)  # only norms of accepted steps are kept
            shorter = _shorter_length(length, error, order, numbers)
            if _is_unseen(nominal):
                return s  # nothing has a size yet
            if _fit_ticks(shorter, span, tick) <= LEAST_TICKS or t0 + shorter == t0:
                return s  # the readable engine says what is wrong
            if clock[5] >= 0.0 and _is_no_gain(length, error, before, error_before):
                clock[5] = 1.0
                return s  # the readable engine looks for what was wrong before the step
            if not length > 0.5 * before:  # NaN: the first attempt
                before, error_before = length, error
            H, previous = shorter, np.nan
            rejected += 1
            continue
        tick += ticks
        _grow_floor(nominal, most, is_open, largest_of(z, len(most)))
        for j in range(len(steps) - 1, 0, -1):
            steps[j] = steps[j - 1]
        steps[0] = length
        before, error_before = np.nan, np.nan
        if tolerances[2] != 0.0:
            for q in range(len(largest)):
                largest[q] = max(largest[q], abs(double_at(z, q)))
        H, previous = _next_length(length, error, previous, order, numbers), error
        _accept(w, z, values, Y, Z, R, counts, s, counted)
        rows[s, 0], rows[s, 1], rows[s, 2], rows[s, 3] = t1, length, error, rejected
        rejected = counted = 0
        clock[2], clock[3], clock[4] = tick, H, previous
        s += 1
    return s


_made: dict[Any, Any] = {}


def loop(kind: str, bound: Bound) -> Any:
    """`equal_steps` or `controlled_steps` around the text of a method, as machine code."""
    key = kind, bound.step
    if key not in _made:
        inner = _around(globals()[f"_{kind}"], {"step": bound.step}, bound)
        within = bare(inner)
        _made[key] = njit(cache=bound.cached)(_around(globals()[kind], {f"_{kind}": within}, bound))
    return _made[key]


def _around(template: Any, names: dict[str, Any], bound: Bound) -> Any:
    made = FunctionType(template.__code__, {**globals(), **names, "__sources__": bound.sources}, template.__name__)
    made.__qualname__ = f"{template.__name__}_{bound.name}"
    return made


@cache
def compiled_text(function: Any, cached: bool) -> Any:
    """A text as a part of the loop around it."""
    return part(function)
