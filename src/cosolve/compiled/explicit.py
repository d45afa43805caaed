"""Compiled loops of `method/explicit.py`: macro steps of equal length with a full history.

A step that is out of the ordinary (a failed crossing, a NaN) is not decided here: the loop goes back to the
beginning of that step and returns, and the readable engine takes it.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np
from numba import njit

from cosolve.compiled.parts import (
    GOOD,
    bare,
    combine,
    copy,
    cross,
    evaluate,
    evaluate_law,
    part,
    push,
    restore_all,
    room,
    save_all,
)
from cosolve.compiled.wiring import (
    COPY_FROM,
    COPY_ROWS,
    COUNTS,
    KNOWN,
    KNOWN_START,
    LAW_ROWS,
    LAW_ROWS_START,
    LAWS_KNOWN,
    LAWS_KNOWN_START,
    ORDER,
    SUBSYSTEMS,
    Y_START,
)
from cosolve.subsystem.native import ADVANCE
from cosolve.subsystem.native_calls import word


@njit(cache=True)
def jacobi(w, W, values, times, H, slots, Y, Z):
    """All subsystems with extrapolated inputs; returns the number of steps taken."""
    n = W.shape[0]
    coefficients = np.empty((n, values.shape[1]))
    z, y = np.empty(values.shape[1]), np.empty(word(w, Y_START, word(w, COUNTS, SUBSYSTEMS)))
    u, arguments, out = room(w, n)
    return _jacobi(w, W, values, times, H, slots, Y, Z, coefficients, z, y, u, arguments, out)


@bare
def _jacobi(w, W, values, times, H, slots, Y, Z, coefficients, z, y, u, arguments, out):
    for s in range(len(Y)):
        if len(slots) and save_all(w, slots) != 0:
            return s
        combine(W, values, coefficients)
        bad = False
        for i in range(word(w, COUNTS, SUBSYSTEMS)):
            if cross(w, i, ADVANCE, times[s], times[s + 1], H, coefficients, u, y) != GOOD:
                bad = True
                break
        if bad or evaluate(w, y, z, arguments, out) != GOOD:
            if len(slots):
                restore_all(w, slots)
            return s
        push(values, z)
        copy(y, Y, s)
        copy(z, Z, s)
    return len(Y)


@njit(cache=True)
def gauss_seidel(w, W, V, values, times, H, slots, Y, Z):
    """One after the other; what is known at the end of the step is interpolated (weights `V`) for those that follow."""
    rows = max(W.shape[0], V.shape[0])
    coefficients = np.empty((rows, values.shape[1]))
    given, base = np.empty((W.shape[0], values.shape[1])), np.zeros((V.shape[0], values.shape[1]))
    z, y = np.empty(values.shape[1]), np.empty(word(w, Y_START, word(w, COUNTS, SUBSYSTEMS)))
    u, arguments, out = room(w, rows)
    room_for = (coefficients, given, base, z, y, u, arguments, out)
    return _gauss_seidel(w, W, V, values, times, H, slots, Y, Z, room_for)


@bare
def _gauss_seidel(w, W, V, values, times, H, slots, Y, Z, room_for):
    coefficients, given, base, z, y, u, arguments, out = room_for
    for s in range(len(Y)):
        if len(slots) and save_all(w, slots) != 0:
            return s
        combine(W, values, given)
        if V.shape[0] > 1:
            combine(V[:, 1:], values[: V.shape[0] - 1], base)
        for j in range(coefficients.shape[0]):
            for q in range(coefficients.shape[1]):
                coefficients[j, q] = given[j, q] if j < W.shape[0] else 0.0
        bad = False
        for place in range(word(w, COUNTS, SUBSYSTEMS)):
            if cross(w, word(w, ORDER, place), ADVANCE, times[s], times[s + 1], H, coefficients, u, y) != GOOD:
                bad = True
                break
            for k in range(word(w, KNOWN_START, place), word(w, KNOWN_START, place + 1)):
                row = word(w, COPY_ROWS, word(w, KNOWN, k))
                z[row] = y[word(w, COPY_FROM, word(w, KNOWN, k))]
                _replace(coefficients, base, V, row, z[row])
            for k in range(word(w, LAWS_KNOWN_START, place), word(w, LAWS_KNOWN_START, place + 1)):
                b = word(w, LAWS_KNOWN, k)
                if evaluate_law(w, b, y, z, arguments, out) != GOOD:
                    bad = True
                    break
                for m in range(word(w, LAW_ROWS_START, b), word(w, LAW_ROWS_START, b + 1)):
                    _replace(coefficients, base, V, word(w, LAW_ROWS, m), z[word(w, LAW_ROWS, m)])
            if bad:
                break
        if bad or evaluate(w, y, z, arguments, out) != GOOD:
            if len(slots):
                restore_all(w, slots)
            return s
        push(values, z)
        copy(y, Y, s)
        copy(z, Z, s)
    return len(Y)


@part
def _replace(coefficients, base, V, row, value):
    """The signal of coupling variable `row` ends in `value`."""
    for j in range(coefficients.shape[0]):
        coefficients[j, row] = base[j, row] + V[j, 0] * value if j < V.shape[0] else 0.0
