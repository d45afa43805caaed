"""Compiled loops of `method/explicit.py`: macro steps of equal length with a full history.

A step that is out of the ordinary (a failed crossing, a NaN) is not decided here: the loop goes back to the
beginning of that step and returns, and the readable engine takes it.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np

from cosolve.engine.native.parts import (
    FAILED,
    GOOD,
    begin,
    combine,
    evaluate,
    evaluate_law,
    finish,
    law,
    push,
    record,
    restore_all,
    save_all,
    subsystem,
    sweep,
)
from cosolve.engine.native.wiring import (
    COPIES,
    KNOWN,
    LAW_ROWS,
    LAWS_KNOWN,
    N_LAW_ROWS,
    N_SUBSYSTEMS,
    ORDER,
    OUTPUTS,
    Y,
)
from cosolve.jit import bare, double_at, njit, part, word_at
from cosolve.subsystem.native import ADVANCE


@njit(cache=True)
def jacobi(w, W, values, times, H, undo, Y_rows, Z_rows):
    """All subsystems with extrapolated inputs; returns the number of steps taken."""
    coefficients, z = np.empty((W.shape[0], values.shape[1])), values[0].copy()
    return _jacobi(w, W, values, times, H, undo, Y_rows, Z_rows, coefficients, z)


@bare
def _jacobi(w, W, values, times, H, undo, Y_rows, Z_rows, coefficients, z):
    n, n_z = coefficients.shape
    held = n == 1  # then the newest values are the coefficients
    given = z.ctypes.data if held else coefficients.ctypes.data
    for s in range(len(Y_rows)):
        if undo and save_all(w) != 0:
            return s
        if not held:
            combine(W, values, coefficients)
        if sweep(w, times[s], times[s + 1], H, n, given, n_z) != GOOD or evaluate(w, z) != GOOD:
            if undo:
                restore_all(w)
            return s
        push(values, z)
        record(w, z, Y_rows, Z_rows, s)
    return len(Y_rows)


@njit(cache=True)
def gauss_seidel(w, W, V, values, times, H, undo, Y_rows, Z_rows):
    """One after the other; what is known at the end of the step is interpolated (weights `V`) for those that follow."""
    n_z, rows = values.shape[1], max(W.shape[0], V.shape[0])
    room = np.empty((rows, n_z)), np.empty((W.shape[0], n_z)), np.zeros((V.shape[0], n_z)), np.empty(n_z)
    return _gauss_seidel(w, W, V, values, times, H, undo, Y_rows, Z_rows, room)


@bare
def _gauss_seidel(w, W, V, values, times, H, undo, Y_rows, Z_rows, room):
    coefficients, given, base, z = room
    for s in range(len(Y_rows)):
        if undo and save_all(w) != 0:
            return s
        combine(W, values, given)
        if V.shape[0] > 1:
            combine(V[:, 1:], values[: V.shape[0] - 1], base)
        for j in range(coefficients.shape[0]):
            for q in range(coefficients.shape[1]):
                coefficients[j, q] = given[j, q] if j < W.shape[0] else 0.0
        bad = False
        for place in range(word_at(w, N_SUBSYSTEMS)):
            if _serial(w, place, times[s], times[s + 1], H, coefficients, base, V, z) != GOOD:
                bad = True
                break
        if bad or evaluate(w, z) != GOOD:
            if undo:
                restore_all(w)
            return s
        push(values, z)
        record(w, z, Y_rows, Z_rows, s)
    return len(Y_rows)


@part
def _serial(w, place, t0, t1, H, coefficients, base, V, z):
    """The subsystem at this place of the order crosses, and what it makes known replaces what was guessed."""
    i = word_at(word_at(w, ORDER), place)
    n, n_z = coefficients.shape
    status = begin(w, i, ADVANCE, t0, t1, H, n, coefficients.ctypes.data, n_z)
    if status == GOOD:
        status = finish(w, i, ADVANCE, t0, t1, H, n, word_at(subsystem(w, i), OUTPUTS))
    if status != GOOD:
        return status
    for k in range(word_at(word_at(w, KNOWN), place), word_at(word_at(w, KNOWN), place + 1)):
        row = word_at(word_at(w, COPIES), 2 * k)
        z[row] = double_at(word_at(w, Y), word_at(word_at(w, COPIES), 2 * k + 1))
        _replace(coefficients, base, V, row, z[row])
    for b in range(word_at(word_at(w, LAWS_KNOWN), place), word_at(word_at(w, LAWS_KNOWN), place + 1)):
        if evaluate_law(w, b, z) != GOOD:
            return FAILED
        for m in range(word_at(law(w, b), N_LAW_ROWS)):
            row = word_at(word_at(law(w, b), LAW_ROWS), m)
            _replace(coefficients, base, V, row, z[row])
    return GOOD


@part
def _replace(coefficients, base, V, row, value):
    """The signal of coupling variable `row` ends in `value`."""
    for j in range(coefficients.shape[0]):
        coefficients[j, row] = base[j, row] + V[j, 0] * value if j < V.shape[0] else 0.0
