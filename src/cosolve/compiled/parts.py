"""What compiled loops are made of: crossing a subsystem, evaluating laws, saving and restoring, moving the history on.

All of it repeats, number for number, what the readable engine does (`method/crew.py`, `interface/plan.py`,
`signal/history.py`); tests hold the two to the same bits.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np
from numba import carray, njit  # type: ignore[attr-defined]

from cosolve.compiled.wiring import Wiring
from cosolve.subsystem.native_calls import call_cross, call_one, call_two, doubles_at

GOOD, FAILED = 0, 1


@njit(cache=True)
def combine(W, values, coefficients):
    """`coefficients = W @ values`, row after row."""
    for j in range(W.shape[0]):
        for q in range(values.shape[1]):
            total = W[j, 0] * values[0, q]
            for k in range(1, W.shape[1]):
                total += W[j, k] * values[k, q]
            coefficients[j, q] = total


@njit(cache=True)
def cross(w: Wiring, i, mode, t0, t1, H, coefficients, u, y):
    """Subsystem `i` crosses the step; its outputs go to `y`."""
    first, last = w.u_start[i], w.u_start[i + 1]
    n, width = coefficients.shape[0], last - first
    for j in range(n):
        for k in range(width):
            source = w.source[first + k]
            u[j * width + k] = 0.0 if source < 0 else coefficients[j, source] * w.factor[first + k]
    for k in range(width):
        u[k] += w.offset[first + k]
    begin = w.y_start[i]
    status = call_cross(w.cross[i], w.data[i], mode, t0, t1, H, n, u.ctypes.data, y.ctypes.data + 8 * begin)
    w.trouble[0], w.trouble[1] = i, status
    if status != 0:
        return FAILED
    for k in range(begin, w.y_start[i + 1]):
        if not np.isfinite(y[k]):
            return FAILED
    w.trouble[0] = -1
    return GOOD


@njit(cache=True)
def law(w: Wiring, b, arguments, values):
    """The values of law `b` for given arguments."""
    status = call_two(w.law[b], arguments.ctypes.data, values.ctypes.data)
    if status != 0:
        return FAILED
    for k in range(w.law_rows_start[b + 1] - w.law_rows_start[b]):
        if not np.isfinite(values[k]):
            return FAILED
    return GOOD


@njit(cache=True)
def evaluate_law(w: Wiring, b, y, z, arguments, values):
    """The rows of `z` that belong to law `b`, from the outputs."""
    for k in range(w.law_reads_start[b], w.law_reads_start[b + 1]):
        arguments[k - w.law_reads_start[b]] = y[w.law_reads[k]]
    if law(w, b, arguments, values) != GOOD:
        return FAILED
    for k in range(w.law_rows_start[b], w.law_rows_start[b + 1]):
        z[w.law_rows[k]] = values[k - w.law_rows_start[b]]
    return GOOD


@njit(cache=True)
def evaluate(w: Wiring, y, z, arguments, values):
    """The coupling variables that the outputs ask for."""
    for k in range(len(w.copy_rows)):
        z[w.copy_rows[k]] = y[w.copy_from[k]]
    for b in range(len(w.law)):
        if evaluate_law(w, b, y, z, arguments, values) != GOOD:
            return FAILED
    return GOOD


@njit(cache=True)
def save(w: Wiring, i, slots):
    """Keep the state of subsystem `i`."""
    if w.save[i] != 0:
        return call_one(w.save[i], w.data[i])
    state = carray(doubles_at(w.state[i]), w.state_start[i + 1] - w.state_start[i])
    for k in range(len(state)):
        slots[w.state_start[i] + k] = state[k]
    return 0


@njit(cache=True)
def restore(w: Wiring, i, slots):
    """Subsystem `i` back to the state that was kept."""
    if w.restore[i] != 0:
        return call_one(w.restore[i], w.data[i])
    state = carray(doubles_at(w.state[i]), w.state_start[i + 1] - w.state_start[i])
    for k in range(len(state)):
        state[k] = slots[w.state_start[i] + k]
    return 0


@njit(cache=True)
def save_all(w: Wiring, slots):
    """Keep all states."""
    status = 0
    for i in range(len(w.cross)):
        status |= save(w, i, slots)
    return status


@njit(cache=True)
def restore_all(w: Wiring, slots):
    """All subsystems back to the states that were kept."""
    status = 0
    for i in range(len(w.cross)):
        status |= restore(w, i, slots)
    return status


@njit(cache=True)
def push(values, z):
    """The newest values come first."""
    for k in range(values.shape[0] - 1, 0, -1):
        for q in range(values.shape[1]):
            values[k, q] = values[k - 1, q]
    for q in range(values.shape[1]):
        values[0, q] = z[q]


@njit(cache=True)
def room(w: Wiring, rows):
    """Inputs, law arguments and law values of the largest subsystem or law."""
    width = 1
    for i in range(len(w.cross)):
        width = max(width, w.u_start[i + 1] - w.u_start[i])
    reads, size = 1, 1
    for b in range(len(w.law)):
        reads = max(reads, w.law_reads_start[b + 1] - w.law_reads_start[b])
        size = max(size, w.law_rows_start[b + 1] - w.law_rows_start[b])
    return np.zeros(rows * width), np.zeros(reads), np.zeros(size)
