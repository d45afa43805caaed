"""Compiled residual, interface Jacobian and its solution (`method/trial.py`, `corrector/linear_solve.py`)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np
from numba import njit

from cosolve.compiled.parts import FAILED, GOOD, bare, combine, cross, law, part, restore
from cosolve.compiled.wiring import (
    COPIES,
    COPY_FROM,
    COPY_ROWS,
    COUNTS,
    EXACT,
    LAW_NOMINAL,
    LAW_READS,
    LAW_READS_START,
    LAW_ROWS,
    LAW_ROWS_START,
    LAWS,
    NOISE,
    READS,
    READS_START,
    RESPONSE,
    RESPONSE_START,
    SUBSYSTEMS,
    Y_START,
)
from cosolve.subsystem.native import ADVANCE, REPLAY
from cosolve.subsystem.native_calls import call_nine, call_six, put_real, real, word

_LAW_INCREMENT = 6e-6  # as in interface/plan.py
_RCOND = 1e-14  # as in corrector/linear_solve.py
_GROWTH = 1e6  # as in method/implicit.py


@part
def end_in(base, weight, z, coefficients):
    """Coefficients of the signal that ends in `z`."""
    for j in range(len(weight)):
        for q in range(len(z)):
            coefficients[j, q] = base[j, q] + weight[j] * z[q]


@part
def predict(P, V, values, base, guess, z):
    """The first guess `z` (weights `P`), and the part of the signals that does not depend on their end (`V`)."""
    n = V.shape[0]
    if n > 1:
        combine(V[:, 1:], values[: n - 1], base)
    combine(P, values[: P.shape[1]], guess)
    for q in range(len(z)):
        total = guess[0, q]
        for j in range(1, P.shape[0]):
            total += guess[j, q]
        z[q] = total


@njit(cache=True)
def workspace(w, n_z):
    """Room for outputs, moved outputs, `dr/dy`, the interface Jacobian, and what its factorisation needs."""
    n_y = word(w, Y_START, word(w, COUNTS, SUBSYSTEMS))
    outputs = np.empty(n_y), np.empty(n_y), np.empty((n_z, n_y)), np.empty((n_z, n_z))
    scaling = np.empty(n_z), np.empty(n_z), np.empty((n_z, n_z))
    integers = np.empty(n_z, np.int32), np.zeros(4 + n_z, np.int32)
    return outputs, scaling, integers, (np.empty(4 * n_z), np.empty(2))


@part
def sweep(w, t0, t1, H, coefficients, u, y):
    """All subsystems cross the step."""
    for i in range(word(w, COUNTS, SUBSYSTEMS)):
        if cross(w, i, ADVANCE, t0, t1, H, coefficients, u, y) != GOOD:
            return FAILED
    return GOOD


@part
def residual(w, z, y, r, arguments, values):
    """`z - f(y)` for connections and laws."""
    for k in range(word(w, COUNTS, COPIES)):
        r[word(w, COPY_ROWS, k)] = z[word(w, COPY_ROWS, k)] - y[word(w, COPY_FROM, k)]
    for b in range(word(w, COUNTS, LAWS)):
        for k in range(word(w, LAW_READS_START, b), word(w, LAW_READS_START, b + 1)):
            arguments[k - word(w, LAW_READS_START, b)] = y[word(w, LAW_READS, k)]
        if law(w, b, arguments, values) != GOOD:
            return FAILED
        for k in range(word(w, LAW_ROWS_START, b), word(w, LAW_ROWS_START, b + 1)):
            r[word(w, LAW_ROWS, k)] = z[word(w, LAW_ROWS, k)] - values[k - word(w, LAW_ROWS_START, b)]
    return GOOD


@bare
def output_partials(w, y, dr_dy, arguments, values, other):
    """`dr/dy`: -1 for connections, minus central differences for laws."""
    dr_dy[:] = 0.0
    for k in range(word(w, COUNTS, COPIES)):
        dr_dy[word(w, COPY_ROWS, k), word(w, COPY_FROM, k)] += -1.0
    for b in range(word(w, COUNTS, LAWS)):
        first, last = word(w, LAW_READS_START, b), word(w, LAW_READS_START, b + 1)
        for k in range(first, last):
            arguments[k - first] = y[word(w, LAW_READS, k)]
        for k in range(first, last):
            x = arguments[k - first]
            step = _LAW_INCREMENT * max(real(w, LAW_NOMINAL, k), abs(x))
            arguments[k - first] = x + step
            plus = arguments[k - first]
            if law(w, b, arguments, values) != GOOD:
                return FAILED
            arguments[k - first] = x - step
            minus = arguments[k - first]
            if law(w, b, arguments, other) != GOOD:
                return FAILED
            arguments[k - first] = x
            for m in range(word(w, LAW_ROWS_START, b), word(w, LAW_ROWS_START, b + 1)):
                j = m - word(w, LAW_ROWS_START, b)
                dr_dy[word(w, LAW_ROWS, m), word(w, LAW_READS, k)] += -((values[j] - other[j]) / (plus - minus))
    return GOOD


@bare
def jacobian(w, z, y, base, weight, size, increment, t0, t1, H, slots, room_for):
    """`G = dr/dz + dr/dy dy/dz`, by constant responses where there are some and by differences elsewhere."""
    coefficients, u, moved, dr_dy, G = room_for
    G[:] = 0.0
    for m in range(len(z)):
        G[m, m] = 1.0
    for i in range(word(w, COUNTS, SUBSYSTEMS)):
        first, last = word(w, Y_START, i), word(w, Y_START, i + 1)
        width = word(w, READS_START, i + 1) - word(w, READS_START, i)
        for k in range(word(w, READS_START, i), word(w, READS_START, i + 1)):
            m = word(w, READS, k)
            if word(w, EXACT, i) == 0:
                shifted = z[m] + max(increment, real(w, NOISE, i)) * max(size[m], abs(z[m]))
                for j in range(len(weight)):
                    coefficients[j, m] = base[j, m] + weight[j] * shifted
                if restore(w, i, slots) != 0:
                    return FAILED
                if cross(w, i, REPLAY, t0, t1, H, coefficients, u, moved) != GOOD:
                    return FAILED
                for j in range(len(weight)):
                    coefficients[j, m] = base[j, m] + weight[j] * z[m]
                at = word(w, RESPONSE_START, i) + k - word(w, READS_START, i)
                for q in range(first, last):
                    put_real(w, RESPONSE, at + (q - first) * width, (moved[q] - y[q]) / (shifted - z[m]))
        for row in range(len(z)):
            for k in range(width):
                if last > first:
                    total = dr_dy[row, first] * real(w, RESPONSE, word(w, RESPONSE_START, i) + k)
                    for q in range(first + 1, last):
                        total += dr_dy[row, q] * real(w, RESPONSE, word(w, RESPONSE_START, i) + (q - first) * width + k)
                    G[row, word(w, READS, word(w, READS_START, i) + k)] += total
    return GOOD


@bare
def factorise(lapack, G, rows, columns, scaled, pivots, integers, work, rates):
    """LU factors of `G`, scaled by columns and then by rows (`corrector/linear_solve.py`)."""
    n = len(G)
    for q in range(n):
        largest = 0.0
        for p in range(n):
            if not np.isfinite(G[p, q]):
                return FAILED
            largest = max(largest, abs(G[p, q]))
        columns[q] = largest
        if largest == 0.0:
            return FAILED
    norm = 0.0
    for p in range(n):
        largest = 0.0
        for q in range(n):
            largest = max(largest, abs(G[p, q]) / columns[q])
        rows[p] = largest
        if largest == 0.0:
            return FAILED
    for q in range(n):
        total = 0.0
        for p in range(n):
            scaled[q, p] = G[p, q] / rows[p] / columns[q]  # Fortran order
            total += abs(scaled[q, p])
        norm = max(norm, total)
    if n == 1:  # scaled to 1 or -1: nothing for a library to do
        return GOOD
    size, info, letter = integers[0:1], integers[1:2], integers[2:3]
    size[0] = n
    call_six(
        lapack[0],
        size.ctypes.data,
        size.ctypes.data,
        scaled.ctypes.data,
        size.ctypes.data,
        pivots.ctypes.data,
        info.ctypes.data,
    )
    if info[0] != 0:
        return FAILED
    rates[0] = norm
    letter[0] = 49  # "1": the norm of the condition estimate
    call_nine(
        lapack[1],
        letter.ctypes.data,
        size.ctypes.data,
        scaled.ctypes.data,
        size.ctypes.data,
        rates[0:1].ctypes.data,
        rates[1:2].ctypes.data,
        work.ctypes.data,
        integers[4:].ctypes.data,
        info.ctypes.data,
    )
    return GOOD if rates[1] > _RCOND else FAILED


@bare
def solve(lapack, scaled, pivots, rows, columns, integers, r, x):
    """`x = G^-1 r` with the factors."""
    n = len(r)
    for p in range(n):
        x[p] = r[p] / rows[p]
    if n == 1:
        x[0] = x[0] * scaled[0, 0]
    else:
        size, info, letter, one = integers[0:1], integers[1:2], integers[2:3], integers[3:4]
        size[0], letter[0], one[0] = n, 78, 1  # "N": not transposed
        call_nine(
            lapack[2],
            letter.ctypes.data,
            size.ctypes.data,
            one.ctypes.data,
            scaled.ctypes.data,
            size.ctypes.data,
            pivots.ctypes.data,
            x.ctypes.data,
            size.ctypes.data,
            info.ctypes.data,
        )
    for p in range(n):
        x[p] = x[p] / columns[p]
        if not np.isfinite(x[p]):
            return FAILED
    return GOOD


@part
def largest(x):
    """The largest magnitude."""
    largest = 0.0
    for q in range(len(x)):
        largest = max(largest, abs(x[q]))
    return largest


@part
def norm_of(z, r, size, plain, least, start):
    """The largest row, each in units of its coupling variable."""
    norm = 0.0
    for q in range(len(z)):
        unit = 1.0 if plain[q] else max(size[q], min(abs(z[q]), _GROWTH * start))
        norm = max(norm, abs(r[q]) / max(unit, least[q]))
    return norm
