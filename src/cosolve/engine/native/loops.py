"""The compiled loops over macro steps: equal ones, and error-controlled ones. `step` is the step function of a method.

A step that is out of the ordinary is taken back, and the loop returns: the Python engine takes that step.
"""

from __future__ import annotations

from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.scale import grow_floor, is_unseen
from cosolve.engine.native.operations import predicted, remembered
from cosolve.engine.native.parts import executor_at, push, record, restore_all, save_all
from cosolve.engine.native.parts import largest as largest_of
from cosolve.engine.native.wiring import NORM_COUNT, OWN_SWEEPS, ExecutorRecord, Integers
from cosolve.engine.step_functions import Bound
from cosolve.jit import bare, double_at, njit, part, put_double_at, put_word_at
from cosolve.stepsize.clock import TICKS, fit_ticks, time_of_tick
from cosolve.stepsize.control import TINY, is_no_gain, next_length, shorter_length
from cosolve.stepsize.sequence import LEAST_TICKS

_fit_ticks: Any = njit(cache=True)(fit_ticks)
_time_of_tick: Any = njit(cache=True)(time_of_tick)
_next_length: Any = njit(cache=True)(next_length)
_shorter_length: Any = njit(cache=True)(shorter_length)
_is_no_gain: Any = njit(cache=True)(is_no_gain)
_grow_floor: Any = njit(cache=True)(grow_floor)
_is_unseen: Any = njit(cache=True)(is_unseen)


def step(m: ExecutorRecord, o: Any) -> int:
    """Stands for the step function of a method."""
    raise NotImplementedError


@part
def _begin(w: ExecutorRecord, t0: float, t1: float, undo: bool) -> bool:
    """A macro step begins; False where it must not."""
    w.t0 = t0
    w.t1 = t1
    number = w.advance_count + 1
    w.advance_count = number
    w.step = number
    w.next = w.arena
    w.counters = 0
    return not undo or save_all(w) == 0


@part
def _is_bad(w: ExecutorRecord, undo: bool) -> bool:
    """Whether the step was out of the ordinary; it is taken back then."""
    bad = w.failed != 0
    if bad and undo:
        restore_all(w)
    return bad


@part
def _accept(
    w: ExecutorRecord, z: int, values: Matrix, Y: Matrix, Z: Matrix, R: Vector, counts: Integers, s: int, counted: int
) -> None:
    """The step is taken: write its row, move the history on; `counted` is what rejected attempts cost."""
    push(values, remembered(w, z))
    record(w, z, Y, Z, s)
    if w.noted != 0:
        put_double_at(R.ctypes.data, s, w.residual)
    put_word_at(counts.ctypes.data, s, counted + w.counters + _sweeps(w) * (1 + OWN_SWEEPS))


@part
def _sweeps(w: ExecutorRecord) -> int:
    """Of this step so far."""
    return w.advance_count - w.step


def equal_steps(
    address: int,
    o: Any,
    values: Matrix,
    times: Vector,
    H: float,
    undo: bool,
    Y: Matrix,
    Z: Matrix,
    R: Vector,
    counts: Integers,
) -> int:
    """Macro steps of equal length with a full history; returns how many were taken."""
    w = executor_at(address)
    w.length = H
    for s in range(len(Y)):
        if not _begin(w, times[s], times[s + 1], undo):
            return s
        z = step(w, o)
        if _is_bad(w, undo):
            return s
        _accept(w, z, values, Y, Z, R, counts, s, 0)
    return len(Y)


@part
def _estimate(z: int, predicted: int, left: int, nominal: Vector, largest: Vector, rtol: float, atol: float) -> float:
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
    return float(np.sqrt(total / len(nominal)))


def given_steps(
    address: int,
    o: Any,
    values: Matrix,
    steps: Vector,
    times: Vector,
    lengths: Vector,
    undo: bool,
    added: Any,
    added_ends: Matrix,
    Y: Matrix,
    Z: Matrix,
    R: Vector,
    counts: Integers,
) -> int:
    """Macro steps of given lengths with a full history; returns how many were taken.

    `added` has what a shadow adds to all inputs in each step, row by row, and `added_ends` to predicted values; both
    are empty in a run.
    """
    w = executor_at(address)
    nodes = w.nodes
    w.added_rows = added.shape[1]
    for s in range(len(Y)):
        length = lengths[s]
        back = 0.0
        for j in range(len(steps)):
            back += steps[j]
            put_double_at(nodes, j + 1, -back / length)
        w.weights_known = 0
        w.length = length
        if len(added) > 0:
            w.added = added.ctypes.data + 8 * s * added.shape[1] * added.shape[2]
            w.added_ends = added_ends.ctypes.data + 8 * s * added_ends.shape[1]
        if not _begin(w, times[s], times[s + 1], undo):
            return s
        z = step(w, o)
        if _is_bad(w, undo):
            return s
        for j in range(len(steps) - 1, 0, -1):
            steps[j] = steps[j - 1]
        steps[0] = length
        _accept(w, z, values, Y, Z, R, counts, s, 0)
    return len(Y)


def controlled_steps(
    address: int,
    o: Any,
    guess: int,
    values: Matrix,
    steps: Vector,
    clock: Vector,
    tolerances: Vector,
    numbers: Vector,
    nominal: Vector,
    is_open: Integers,
    largest: Vector,
    may_reject: bool,
    rows: Matrix,
    Y: Matrix,
    Z: Matrix,
    R: Vector,
    counts: Integers,
) -> int:
    """Steps until the rows are full, the end is reached, or one is out of the ordinary; how many were taken.

    `clock`: start, end, tick, proposed length, last error (NaN: none), and 1 in the end where shorter steps do not help
    (given as -1 where it is not needed). `tolerances`: rtol, atol, and whether `largest` follows the coupling
    variables. `numbers`: those of `Adaptive`. `rows`: time, length, error, rejections.
    """
    w = executor_at(address)
    t_start, t_end = clock[0], clock[1]
    span = t_end - t_start
    tick, H, previous = int(clock[2]), clock[3], clock[4]
    order, nodes = guess + 1, w.nodes
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
        w.weights_known = 0
        w.length = length
        if not _begin(w, t0, t1, True):
            return s
        z = step(w, o)
        if _is_bad(w, True):
            return s
        ahead = predicted(w, guess)
        error = _estimate(z, ahead, w.noted, nominal, largest, tolerances[0], tolerances[1])
        if may_reject and error > 1.0 and numbers[0] * (1 + 1e-9) < length:
            restore_all(w)
            counters = w.counters
            counted += counters % NORM_COUNT + _sweeps(w)
            w.filled = w.filled - counters // NORM_COUNT  # only norms of accepted steps are kept
            shorter = _shorter_length(length, error, order, numbers)
            if tick == 0 or _is_unseen(nominal):
                return s  # nothing may have a size yet, which the Python engine finds out
            if _fit_ticks(shorter, span, tick) <= LEAST_TICKS or t0 + shorter == t0:
                return s  # the Python engine says what is wrong
            if clock[5] >= 0.0 and _is_no_gain(length, error, before, error_before):
                clock[5] = 1.0
                return s  # the Python engine looks for what was wrong before the step
            if not length > 0.5 * before:  # NaN: the first attempt
                before, error_before = length, error
            H, previous = shorter, np.nan
            rejected += 1
            continue
        tick += ticks
        _grow_floor(nominal, is_open, largest_of(z, len(nominal)))
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


def _entry(*arguments: Any) -> int:
    """What Python calls; the loop inside makes no arrays."""
    return _inside(*arguments)


def _inside(*arguments: Any) -> int:
    """Stands for one of the loops."""
    raise NotImplementedError


def loop(kind: str, bound: Bound) -> Any:
    """`equal_steps`, `given_steps` or `controlled_steps` around the step function of a method, as machine code."""
    key = kind, bound.step
    if key not in _made:
        within = bare(_around(kind, globals()[kind], {"step": bound.step}, bound))
        _made[key] = njit(cache=bound.cached)(_around(kind, _entry, {"_inside": within}, bound))
    return _made[key]


def _around(kind: str, template: Any, names: dict[str, Any], bound: Bound) -> Any:
    made = FunctionType(template.__code__, {**globals(), **names, "__sources__": bound.sources}, kind)
    made.__qualname__ = f"{kind}_{bound.name}"
    return made


@cache
def compiled_step_function(function: Any, cached: bool) -> Any:
    """A step function as a part of the loop around it."""
    return part(function)
