"""Compiled residual, interface Jacobian and its solution (readable: `trial.py`, `corrector/algebra`)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np

from cosolve.engine.native.parts import (
    FAILED,
    GOOD,
    begin,
    combine,
    evaluate,
    finish,
    law,
    law_failed,
    read_arguments,
    restore,
    subsystem,
)
from cosolve.engine.native.wiring import (
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
    OUTPUTS,
    OUTPUTS_MOVED,
    PARTIALS,
    READS,
    RESPONSE,
    SIZE,
    SLOPES,
    VALUES,
)
from cosolve.jit import (
    bare,
    call_nine,
    call_partials,
    call_six,
    double_at,
    finite,
    njit,
    part,
    put_double_at,
    short_loop,
    word_at,
)
from cosolve.subsystem.native import REPLAY

_RCOND = 1e-14  # as in corrector/algebra/linear_solve.py
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
    if P.shape[0] > 1:
        combine(P, values[: P.shape[1]], guess)
    for q in range(len(z)):
        total = guess[0, q] if P.shape[0] > 1 else values[0, q]
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
def _clear(at, count):
    for k in range(count):
        short_loop()
        put_double_at(at, k, 0.0)


@part
def _add(at, index, value):
    put_double_at(at, index, double_at(at, index) + value)


@part
def output_partials(w, dr_dy):
    """`dr/dy`: -1 for connections, minus central differences for laws."""
    into, n_y = dr_dy.ctypes.data, dr_dy.shape[1]
    _clear(into, dr_dy.size)
    for k in range(word_at(w, N_COPIES)):
        short_loop()
        pair = word_at(w, COPIES) + 16 * k
        _add(into, word_at(pair, 0) * n_y + word_at(pair, 1), -1.0)
    arguments, values, slopes = word_at(w, ARGUMENTS), word_at(w, VALUES), word_at(w, SLOPES)
    for b in range(word_at(w, N_LAWS)):
        of = law(w, b)
        reads, rows, count = word_at(of, LAW_READS), word_at(of, LAW_ROWS), word_at(of, N_LAW_ROWS)
        read_arguments(w, b, arguments)
        if call_partials(word_at(of, PARTIALS), arguments, word_at(of, LAW_NOMINAL), values, slopes) != 0:
            return law_failed(w)
        for k in range(word_at(of, N_LAW_READS)):
            for m in range(count):
                short_loop()
                slope = double_at(slopes, k * count + m)
                if not finite(slope):
                    return law_failed(w)
                _add(into, word_at(rows, m) * n_y + word_at(reads, k), -slope)
    return GOOD


@part
def jacobian(w, z, base, weight, size, increment, t0, t1, H, coefficients, dr_dy, G):
    """`G = dr/dz + dr/dy dy/dz`, by constant responses where there are some and by differences elsewhere."""
    n_z, n_y = dr_dy.shape
    most = 0
    for i in range(word_at(w, N_SUBSYSTEMS)):
        short_loop()
        most = max(most, _columns(w, i))
    for k in range(most):  # one column of each subsystem at a time, so that they may work side by side
        for i in range(word_at(w, N_SUBSYSTEMS)):
            if (
                k < _columns(w, i)
                and _shift(w, i, k, z, base, weight, size, increment, t0, t1, H, coefficients) != GOOD
            ):
                return FAILED
        for i in range(word_at(w, N_SUBSYSTEMS)):
            if k < _columns(w, i) and _differ(w, i, k, z, size, increment, t0, t1, H, len(weight)) != GOOD:
                return FAILED
    into, of = G.ctypes.data, dr_dy.ctypes.data
    _clear(into, n_z * n_z)
    for m in range(n_z):
        short_loop()
        put_double_at(into, m * n_z + m, 1.0)
    for i in range(word_at(w, N_SUBSYSTEMS)):
        s = subsystem(w, i)
        first, count, width, response = word_at(s, FIRST), word_at(s, SIZE), word_at(s, N_READS), word_at(s, RESPONSE)
        if count == 0:
            continue
        for row in range(n_z):
            for k in range(width):
                total = double_at(of, row * n_y + first) * double_at(response, k)
                for q in range(1, count):
                    short_loop()
                    total += double_at(of, row * n_y + first + q) * double_at(response, q * width + k)
                _add(into, row * n_z + word_at(word_at(s, READS), k), total)
    return GOOD


@part
def _columns(w, i):
    """How many differences the Jacobian of subsystem `i` takes."""
    return 0 if word_at(subsystem(w, i), EXACT) != 0 else word_at(subsystem(w, i), N_READS)


@part
def _shifted(s, k, z, size, increment):
    """The coupling variable that column `k` of the subsystem at `s` is about, moved a little."""
    m = word_at(word_at(s, READS), k)
    known, largest = double_at(z.ctypes.data, m), double_at(size.ctypes.data, m)
    return known + max(increment, double_at(s, NOISE)) * max(largest, abs(known))


@part
def _shift(w, i, k, z, base, weight, size, increment, t0, t1, H, coefficients):
    """Give subsystem `i`, back at the start of the step, its inputs with the moved variable of column `k`."""
    s = subsystem(w, i)
    m, n_z = word_at(word_at(s, READS), k), len(z)
    _end_one(base, weight, m, _shifted(s, k, z, size, increment), coefficients)
    if restore(w, i) != 0:
        return FAILED
    status = begin(w, i, REPLAY, t0, t1, H, len(weight), coefficients.ctypes.data, n_z)
    _end_one(base, weight, m, double_at(z.ctypes.data, m), coefficients)
    return status


@part
def _end_one(base, weight, m, value, coefficients):
    """The signal of coupling variable `m` ends in `value`."""
    n_z = base.shape[1]
    for j in range(len(weight)):
        short_loop()
        at = j * n_z + m
        put_double_at(coefficients.ctypes.data, at, double_at(base.ctypes.data, at) + weight[j] * value)


@part
def _differ(w, i, k, z, size, increment, t0, t1, H, n):
    """How the outputs of subsystem `i` respond to that."""
    s = subsystem(w, i)
    y, moved, response, width = (
        word_at(s, OUTPUTS),
        word_at(s, OUTPUTS_MOVED),
        word_at(s, RESPONSE),
        word_at(s, N_READS),
    )
    if finish(w, i, REPLAY, t0, t1, H, n, moved) != GOOD:
        return FAILED
    by = _shifted(s, k, z, size, increment) - double_at(z.ctypes.data, word_at(word_at(s, READS), k))
    for q in range(word_at(s, SIZE)):
        short_loop()
        put_double_at(response, q * width + k, (double_at(moved, q) - double_at(y, q)) / by)
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
    """LU factors of `G`, scaled by columns and then by rows (`corrector/algebra/linear_solve.py`)."""
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
