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
    combine,
    cross,
    evaluate,
    evaluate_law,
    push,
    restore_all,
    room,
    save_all,
)
from cosolve.compiled.wiring import Wiring
from cosolve.subsystem.native import ADVANCE


@njit(cache=True)
def jacobi(w: Wiring, W, values, times, H, slots, Y, Z):
    """All subsystems with extrapolated inputs; returns the number of steps taken."""
    n = W.shape[0]
    coefficients = np.empty((n, values.shape[1]))
    z, y = np.empty(values.shape[1]), np.empty(w.y_start[-1])
    u, arguments, out = room(w, n)
    for s in range(len(Y)):
        if len(slots) and save_all(w, slots) != 0:
            return s
        combine(W, values, coefficients)
        bad = False
        for i in range(len(w.cross)):
            if cross(w, i, ADVANCE, times[s], times[s + 1], H, coefficients, u, y) != GOOD:
                bad = True
                break
        if bad or evaluate(w, y, z, arguments, out) != GOOD:
            if len(slots):
                restore_all(w, slots)
            return s
        push(values, z)
        Y[s], Z[s] = y, z
    return len(Y)


@njit(cache=True)
def gauss_seidel(w: Wiring, W, V, values, times, H, slots, Y, Z):
    """One after the other; what is known at the end of the step is interpolated (weights `V`) for those that follow."""
    rows = max(W.shape[0], V.shape[0])
    coefficients = np.empty((rows, values.shape[1]))
    given, base = np.empty((W.shape[0], values.shape[1])), np.zeros((V.shape[0], values.shape[1]))
    z, y = np.empty(values.shape[1]), np.empty(w.y_start[-1])
    u, arguments, out = room(w, rows)
    for s in range(len(Y)):
        if len(slots) and save_all(w, slots) != 0:
            return s
        combine(W, values, given)
        if V.shape[0] > 1:
            combine(V[:, 1:], values[: V.shape[0] - 1], base)
        coefficients[:] = 0.0
        coefficients[: W.shape[0]] = given
        bad = False
        for place in range(len(w.order)):
            if cross(w, w.order[place], ADVANCE, times[s], times[s + 1], H, coefficients, u, y) != GOOD:
                bad = True
                break
            for k in range(w.known_start[place], w.known_start[place + 1]):
                row = w.copy_rows[w.known[k]]
                z[row] = y[w.copy_from[w.known[k]]]
                _replace(coefficients, base, V, row, z[row])
            for k in range(w.laws_known_start[place], w.laws_known_start[place + 1]):
                b = w.laws_known[k]
                if evaluate_law(w, b, y, z, arguments, out) != GOOD:
                    bad = True
                    break
                for m in range(w.law_rows_start[b], w.law_rows_start[b + 1]):
                    _replace(coefficients, base, V, w.law_rows[m], z[w.law_rows[m]])
            if bad:
                break
        if bad or evaluate(w, y, z, arguments, out) != GOOD:
            if len(slots):
                restore_all(w, slots)
            return s
        push(values, z)
        Y[s], Z[s] = y, z
    return len(Y)


@njit(cache=True)
def _replace(coefficients, base, V, row, value):
    """The signal of coupling variable `row` ends in `value`."""
    for j in range(coefficients.shape[0]):
        coefficients[j, row] = base[j, row] + V[j, 0] * value if j < V.shape[0] else 0.0
