"""What compiled loops are made of: crossing a subsystem, evaluating laws, saving and restoring, moving the history on.

All of it repeats, number for number, what the readable engine does (`method/crew.py`, `interface/plan.py`,
`signal/history.py`); tests hold the two to the same bits.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cosolve.compiled.wiring import (
    COPIES,
    COPY_FROM,
    COPY_ROWS,
    COUNTS,
    CROSS,
    DATA,
    FACTOR,
    LAW,
    LAW_READS,
    LAW_READS_START,
    LAW_ROWS,
    LAW_ROWS_START,
    LAWS,
    OFFSET,
    RESTORE,
    SAVE,
    SOURCE,
    STATE,
    STATE_START,
    SUBSYSTEMS,
    TROUBLE,
    U_START,
    Y_START,
)
from cosolve.subsystem.native_calls import (
    call_cross,
    call_one,
    call_two,
    double_at,
    put_double_at,
    put_word,
    real,
    word,
)

GOOD, FAILED = 0, 1

#: Parts go into the loops that use them, and count no references to arrays: they make none, and that would be most of
#: their time.
part: Any = njit(cache=True, forceinline=True, _nrt=False)  # type: ignore[call-overload]
#: The same for functions that are called as they are.
bare: Any = njit(cache=True, _nrt=False)  # type: ignore[call-overload]


@part
def combine(W, values, coefficients):
    """`coefficients = W @ values`, row after row."""
    for j in range(W.shape[0]):
        for q in range(values.shape[1]):
            total = W[j, 0] * values[0, q]
            for k in range(1, W.shape[1]):
                total += W[j, k] * values[k, q]
            coefficients[j, q] = total


@part
def cross(w, i, mode, t0, t1, H, coefficients, u, y):
    """Subsystem `i` crosses the step; its outputs go to `y`."""
    first, last = word(w, U_START, i), word(w, U_START, i + 1)
    n, width = coefficients.shape[0], last - first
    for j in range(n):
        for k in range(width):
            source = word(w, SOURCE, first + k)
            u[j * width + k] = 0.0 if source < 0 else coefficients[j, source] * real(w, FACTOR, first + k)
    for k in range(width):
        u[k] += real(w, OFFSET, first + k)
    begin = word(w, Y_START, i)
    status = call_cross(
        word(w, CROSS, i), word(w, DATA, i), mode, t0, t1, H, n, u.ctypes.data, y.ctypes.data + 8 * begin
    )
    put_word(w, TROUBLE, 0, i)
    put_word(w, TROUBLE, 1, status)
    if status != 0:
        return FAILED
    for k in range(begin, word(w, Y_START, i + 1)):
        if not np.isfinite(y[k]):
            return FAILED
    put_word(w, TROUBLE, 0, -1)
    return GOOD


@part
def law(w, b, arguments, values):
    """The values of law `b` for given arguments."""
    status = call_two(word(w, LAW, b), arguments.ctypes.data, values.ctypes.data)
    if status != 0:
        return FAILED
    for k in range(word(w, LAW_ROWS_START, b + 1) - word(w, LAW_ROWS_START, b)):
        if not np.isfinite(values[k]):
            return FAILED
    return GOOD


@part
def evaluate_law(w, b, y, z, arguments, values):
    """The rows of `z` that belong to law `b`, from the outputs."""
    for k in range(word(w, LAW_READS_START, b), word(w, LAW_READS_START, b + 1)):
        arguments[k - word(w, LAW_READS_START, b)] = y[word(w, LAW_READS, k)]
    if law(w, b, arguments, values) != GOOD:
        return FAILED
    for k in range(word(w, LAW_ROWS_START, b), word(w, LAW_ROWS_START, b + 1)):
        z[word(w, LAW_ROWS, k)] = values[k - word(w, LAW_ROWS_START, b)]
    return GOOD


@part
def evaluate(w, y, z, arguments, values):
    """The coupling variables that the outputs ask for."""
    for k in range(word(w, COUNTS, COPIES)):
        z[word(w, COPY_ROWS, k)] = y[word(w, COPY_FROM, k)]
    for b in range(word(w, COUNTS, LAWS)):
        if evaluate_law(w, b, y, z, arguments, values) != GOOD:
            return FAILED
    return GOOD


@part
def save(w, i, slots):
    """Keep the state of subsystem `i`."""
    if word(w, SAVE, i) != 0:
        return call_one(word(w, SAVE, i), word(w, DATA, i))
    first = word(w, STATE_START, i)
    for k in range(word(w, STATE_START, i + 1) - first):
        slots[first + k] = double_at(word(w, STATE, i), k)
    return 0


@part
def restore(w, i, slots):
    """Subsystem `i` back to the state that was kept."""
    if word(w, RESTORE, i) != 0:
        return call_one(word(w, RESTORE, i), word(w, DATA, i))
    first = word(w, STATE_START, i)
    for k in range(word(w, STATE_START, i + 1) - first):
        put_double_at(word(w, STATE, i), k, slots[first + k])
    return 0


@part
def save_all(w, slots):
    """Keep all states."""
    status = 0
    for i in range(word(w, COUNTS, SUBSYSTEMS)):
        status |= save(w, i, slots)
    return status


@part
def restore_all(w, slots):
    """All subsystems back to the states that were kept."""
    status = 0
    for i in range(word(w, COUNTS, SUBSYSTEMS)):
        status |= restore(w, i, slots)
    return status


@part
def copy(values, rows, s):
    """Write a row."""
    for q in range(len(values)):
        rows[s, q] = values[q]


@part
def push(values, z):
    """The newest values come first."""
    for k in range(values.shape[0] - 1, 0, -1):
        for q in range(values.shape[1]):
            values[k, q] = values[k - 1, q]
    for q in range(values.shape[1]):
        values[0, q] = z[q]


@njit(cache=True)
def room(w, rows):
    """Inputs, law arguments and law values of the largest subsystem or law."""
    width = 1
    for i in range(word(w, COUNTS, SUBSYSTEMS)):
        width = max(width, word(w, U_START, i + 1) - word(w, U_START, i))
    reads, size = 1, 1
    for b in range(word(w, COUNTS, LAWS)):
        reads = max(reads, word(w, LAW_READS_START, b + 1) - word(w, LAW_READS_START, b))
        size = max(size, word(w, LAW_ROWS_START, b + 1) - word(w, LAW_ROWS_START, b))
    return np.zeros(rows * width), np.zeros(reads), np.zeros(size)
