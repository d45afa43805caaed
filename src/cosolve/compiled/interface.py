"""Compiled residual, interface Jacobian and its solution (`method/trial.py`, `corrector/linear_solve.py`)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np
from numba import njit

from cosolve.compiled.parts import (
    FAILED,
    GOOD,
    bare,
    begin,
    call_law,
    combine,
    evaluate,
    finish,
    law,
    part,
    read_arguments,
    restore,
    subsystem,
)
from cosolve.compiled.wiring import (
    ARGUMENTS,
    COPIES,
    EXACT,
    FIRST,
    LAW_NOMINAL,
    LAW_READS,
    LAW_ROWS,
    N_COPIES,
    N_LAW_READS,
    N_LAW_ROWS,
    N_LAWS,
    N_READS,
    N_SUBSYSTEMS,
    NOISE,
    OTHER,
    OUTPUTS,
    OUTPUTS_MOVED,
    READS,
    RESPONSE,
    SIZE,
    VALUES,
)
from cosolve.subsystem.native import REPLAY
from cosolve.subsystem.native_calls import call_nine, call_six, double_at, finite, put_double_at, short_loop, word_at

_LAW_INCREMENT = 6e-6  # as in interface/plan.py
_RCOND = 1e-14  # as in corrector/linear_solve.py
_GROWTH = 1e6  # as in method/implicit.py


@part
def end_in(base, weight, z, coefficients):
    """Coefficients of the signal that ends in `z`."""
    for j in range(len(weight)):
        for q in range(len(z)):
            short_loop()
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
            short_loop()
            total += guess[j, q]
        z[q] = total


@njit(cache=True)
def workspace(n_y, n_z):
    """Room for `dr/dy`, the interface Jacobian, and what its factorisation needs."""
    scaling = np.empty(n_z), np.empty(n_z), np.empty((n_z, n_z))
    integers = np.empty(n_z, np.int32), np.zeros(4 + n_z, np.int32)
    return (np.empty((n_z, n_y)), np.empty((n_z, n_z))), scaling, integers, (np.empty(4 * n_z), np.empty(2))


@part
def residual(w, z, asked, r):
    """`z - f(y)`; `asked` gets `f(y)`, the values that the outputs ask for."""
    if evaluate(w, asked) != GOOD:
        return FAILED
    for q in range(len(z)):
        short_loop()
        r[q] = z[q] - asked[q]
    return GOOD


@part
def output_partials(w, dr_dy):
    """`dr/dy`: -1 for connections, minus central differences for laws."""
    dr_dy[:] = 0.0
    for k in range(word_at(w, N_COPIES)):
        short_loop()
        pair = word_at(w, COPIES) + 16 * k
        dr_dy[word_at(pair, 0), word_at(pair, 1)] += -1.0
    arguments, values, other = word_at(w, ARGUMENTS), word_at(w, VALUES), word_at(w, OTHER)
    for b in range(word_at(w, N_LAWS)):
        read_arguments(w, b, arguments)
        for k in range(word_at(law(w, b), N_LAW_READS)):
            x = double_at(arguments, k)
            step = _LAW_INCREMENT * max(double_at(word_at(law(w, b), LAW_NOMINAL), k), abs(x))
            plus, minus = x + step, x - step
            put_double_at(arguments, k, plus)
            if call_law(w, b, arguments, values) != GOOD:
                return FAILED
            put_double_at(arguments, k, minus)
            if call_law(w, b, arguments, other) != GOOD:
                return FAILED
            put_double_at(arguments, k, x)
            column = word_at(word_at(law(w, b), LAW_READS), k)
            for m in range(word_at(law(w, b), N_LAW_ROWS)):
                short_loop()
                slope = (double_at(values, m) - double_at(other, m)) / (plus - minus)
                dr_dy[word_at(word_at(law(w, b), LAW_ROWS), m), column] += -slope
    return GOOD


@part
def jacobian(w, z, base, weight, size, increment, t0, t1, H, coefficients, dr_dy, G):
    """`G = dr/dz + dr/dy dy/dz`, by constant responses where there are some and by differences elsewhere."""
    G[:] = 0.0
    for m in range(len(z)):
        short_loop()
        G[m, m] = 1.0
    for i in range(word_at(w, N_SUBSYSTEMS)):
        s = subsystem(w, i)
        exact = word_at(s, EXACT) != 0
        if not exact and _differences(w, i, z, base, weight, size, increment, t0, t1, H, coefficients) != GOOD:
            return FAILED
        first, count, width, response = word_at(s, FIRST), word_at(s, SIZE), word_at(s, N_READS), word_at(s, RESPONSE)
        if count == 0:
            continue
        for row in range(len(z)):
            for k in range(width):
                total = dr_dy[row, first] * double_at(response, k)
                for q in range(1, count):
                    short_loop()
                    total += dr_dy[row, first + q] * double_at(response, q * width + k)
                G[row, word_at(word_at(s, READS), k)] += total
    return GOOD


@part
def _differences(w, i, z, base, weight, size, increment, t0, t1, H, coefficients):
    """How the outputs of subsystem `i` respond to each coupling variable that it reads."""
    s = subsystem(w, i)
    y, moved, response = word_at(s, OUTPUTS), word_at(s, OUTPUTS_MOVED), word_at(s, RESPONSE)
    width = word_at(s, N_READS)
    for k in range(width):
        m = word_at(word_at(s, READS), k)
        shifted = z[m] + max(increment, double_at(s, NOISE)) * max(size[m], abs(z[m]))
        for j in range(len(weight)):
            short_loop()
            coefficients[j, m] = base[j, m] + weight[j] * shifted
        if restore(w, i) != 0:
            return FAILED
        if begin(w, i, REPLAY, t0, t1, H, len(weight), coefficients.ctypes.data, len(z)) != GOOD:
            return FAILED
        if finish(w, i, REPLAY, t0, t1, H, len(weight), moved) != GOOD:
            return FAILED
        for j in range(len(weight)):
            short_loop()
            coefficients[j, m] = base[j, m] + weight[j] * z[m]
        for q in range(word_at(s, SIZE)):
            short_loop()
            slope = (double_at(moved, q) - double_at(y, q)) / (shifted - z[m])
            put_double_at(response, q * width + k, slope)
    return GOOD


@part
def factorise(lapack, G, rows, columns, scaled, pivots, integers, work, rates):
    """Make `solve` know `G`."""
    if len(G) > 1:
        return _factors(lapack, G, rows, columns, scaled, pivots, integers, work, rates)
    scaled[0, 0] = G[0, 0]  # one unknown: nothing to scale
    return GOOD if finite(G[0, 0]) and G[0, 0] != 0.0 else FAILED


@bare
def _factors(lapack, G, rows, columns, scaled, pivots, integers, work, rates):
    """LU factors of `G`, scaled by columns and then by rows (`corrector/linear_solve.py`)."""
    n = len(G)
    for q in range(n):
        largest = 0.0
        for p in range(n):
            short_loop()
            if not finite(G[p, q]):
                return FAILED
            largest = max(largest, abs(G[p, q]))
        columns[q] = largest
        if largest == 0.0:
            return FAILED
    norm = 0.0
    for p in range(n):
        largest = 0.0
        for q in range(n):
            short_loop()
            largest = max(largest, abs(G[p, q]) / columns[q])
        rows[p] = largest
        if largest == 0.0:
            return FAILED
    for q in range(n):
        total = 0.0
        for p in range(n):
            short_loop()
            scaled[q, p] = G[p, q] / rows[p] / columns[q]  # Fortran order
            total += abs(scaled[q, p])
        norm = max(norm, total)
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


@part
def solve(lapack, scaled, pivots, rows, columns, integers, r, x):
    """`x = G^-1 r` after `factorise`."""
    if len(r) > 1:
        return _solve(lapack, scaled, pivots, rows, columns, integers, r, x)
    x[0] = r[0] / scaled[0, 0]
    return GOOD if finite(x[0]) else FAILED


@bare
def _solve(lapack, scaled, pivots, rows, columns, integers, r, x):
    n = len(r)
    for p in range(n):
        short_loop()
        x[p] = r[p] / rows[p]
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
        short_loop()
        x[p] = x[p] / columns[p]
        if not finite(x[p]):
            return FAILED
    return GOOD


@part
def largest(x):
    """The largest magnitude."""
    largest = 0.0
    for q in range(len(x)):
        short_loop()
        largest = max(largest, abs(x[q]))
    return largest


@part
def norm_of(z, r, size, plain, least, start):
    """The largest row, each in units of its coupling variable."""
    norm = 0.0
    for q in range(len(z)):
        short_loop()
        unit = 1.0 if plain[q] else max(size[q], min(abs(z[q]), _GROWTH * start))
        norm = max(norm, abs(r[q]) / max(unit, least[q]))
    return norm
