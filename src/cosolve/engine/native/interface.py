"""Compiled residual, interface Jacobian and its solution (readable: `trial.py`, `corrector/algebra`)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

from cosolve.basics.lu import RCOND
from cosolve.engine.measure import GROWTH, TINY
from cosolve.engine.native.parts import (
    FAILED,
    GOOD,
    begin,
    finish,
    law,
    law_failed,
    read_arguments,
    restore,
    subsystem,
)
from cosolve.engine.native.wiring import (
    ARGUMENTS,
    BASE,
    BY_INPUT,
    COLUMN,
    COLUMNS,
    COPIES,
    DATA,
    DR_DY,
    ENDS,
    EXACT,
    FIRST,
    INCREMENT,
    INPUTS,
    INTEGERS,
    INTERPOLATION,
    LAPACK,
    LAW_NOMINAL,
    LAW_READS,
    LAW_ROWS,
    LEAST,
    LENGTH,
    N_COPIES,
    N_LAW_READS,
    N_LAW_ROWS,
    N_LAWS,
    N_NODES,
    N_READS,
    N_SUBSYSTEMS,
    N_Y,
    N_Z,
    NOISE,
    OUTPUTS,
    OUTPUTS_MOVED,
    PARTIALS,
    PIVOTS,
    PLAIN,
    RATES,
    READS,
    RESPOND,
    RESPONSE,
    ROWS,
    SCALED,
    SIGNAL,
    SIZE,
    SIZES,
    SLOPES,
    START,
    T0,
    T1,
    VALUES,
    WIDTH,
    WORK,
    G,
    U,
)
from cosolve.jit import (
    bare,
    call_nine,
    call_partials,
    call_response,
    call_six,
    double_at,
    finite,
    part,
    put_double_at,
    put_word_at,
    short_loop,
    word_at,
)
from cosolve.subsystem.native import REPLAY


@part
def _clear(at, count):
    for k in range(count):
        short_loop()
        put_double_at(at, k, 0.0)


@part
def _add(at, index, value):
    put_double_at(at, index, double_at(at, index) + value)


@part
def output_partials(w):
    """`dr/dy`: -1 for connections, minus central differences for laws."""
    into, n_y = word_at(w, DR_DY), word_at(w, N_Y)
    _clear(into, word_at(w, N_Z) * n_y)
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
def jacobian(w):
    """`G = dr/dz + dr/dy dy/dz`, by constant responses where there are some and by differences elsewhere."""
    n_z, n_y = word_at(w, N_Z), word_at(w, N_Y)
    most = 0
    for i in range(word_at(w, N_SUBSYSTEMS)):
        short_loop()
        most = max(most, _columns(w, i))
    for i in range(word_at(w, N_SUBSYSTEMS)):
        short_loop()
        if word_at(subsystem(w, i), RESPOND) != 0 and _respond(w, i) != GOOD:
            return FAILED
    for k in range(most):  # one column of each subsystem at a time, so that they may work side by side
        for i in range(word_at(w, N_SUBSYSTEMS)):
            if k < _columns(w, i) and _shift(w, i, k) != GOOD:
                return FAILED
        for i in range(word_at(w, N_SUBSYSTEMS)):
            if k < _columns(w, i) and _differ(w, i, k) != GOOD:
                return FAILED
    into, of = word_at(w, G), word_at(w, DR_DY)
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
    s = subsystem(w, i)
    return 0 if word_at(s, EXACT) != 0 or word_at(s, RESPOND) != 0 else word_at(s, N_READS)


@part
def _respond(w, i):
    """Ask subsystem `i`, back at the start of the step, for its Jacobian; inputs that read one variable add up."""
    if restore(w, i) != 0 or begin(w, i, REPLAY, word_at(w, N_NODES), word_at(w, SIGNAL)) != GOOD:
        return FAILED
    s, n = subsystem(w, i), word_at(w, N_NODES)
    t0, t1, H, by_input = double_at(w, T0), double_at(w, T1), double_at(w, LENGTH), word_at(s, BY_INPUT)
    at, weights = word_at(s, RESPOND), word_at(w, INTERPOLATION)
    if call_response(at, word_at(s, DATA), t0, t1, H, n, word_at(s, U), weights, n, by_input) != 0:
        return FAILED
    response, width, reads = word_at(s, RESPONSE), word_at(s, WIDTH), word_at(s, N_READS)
    column, inputs = word_at(s, COLUMN), word_at(s, INPUTS)
    _clear(response, word_at(s, SIZE) * reads)
    for q in range(word_at(s, SIZE)):
        for j in range(width):
            short_loop()
            if word_at(column, j) >= 0:
                share = double_at(by_input, q * width + j) * double_at(inputs, 3 * j + 1)
                if not finite(share):
                    return FAILED
                _add(response, q * reads + word_at(column, j), share)
    return GOOD


@part
def _shifted(w, s, k):
    """The coupling variable that column `k` of the subsystem at `s` is about, moved a little."""
    m = word_at(word_at(s, READS), k)
    known, size = double_at(word_at(w, ENDS), m), double_at(word_at(w, SIZES), m)
    size = max(size, abs(known))
    return known + max(double_at(w, INCREMENT), double_at(s, NOISE)) * (size if size != 0.0 else 1.0)


@part
def _shift(w, i, k):
    """Give subsystem `i`, back at the start of the step, its inputs with the moved variable of column `k`."""
    s = subsystem(w, i)
    m = word_at(word_at(s, READS), k)
    _end_one(w, m, _shifted(w, s, k))
    if restore(w, i) != 0:
        return FAILED
    status = begin(w, i, REPLAY, word_at(w, N_NODES), word_at(w, SIGNAL))
    _end_one(w, m, double_at(word_at(w, ENDS), m))
    return status


@part
def _end_one(w, m, value):
    """The signal of coupling variable `m` ends in `value`."""
    n, n_z, weights = word_at(w, N_NODES), word_at(w, N_Z), word_at(w, INTERPOLATION)
    for j in range(n):
        short_loop()
        at = j * n_z + m
        put_double_at(word_at(w, SIGNAL), at, double_at(word_at(w, BASE), at) + double_at(weights, j * n) * value)


@part
def _differ(w, i, k):
    """How the outputs of subsystem `i` respond to that."""
    s = subsystem(w, i)
    y, moved, response, width = (
        word_at(s, OUTPUTS),
        word_at(s, OUTPUTS_MOVED),
        word_at(s, RESPONSE),
        word_at(s, N_READS),
    )
    if finish(w, i, REPLAY, word_at(w, N_NODES), moved) != GOOD:
        return FAILED
    by = _shifted(w, s, k) - double_at(word_at(w, ENDS), word_at(word_at(s, READS), k))
    for q in range(word_at(s, SIZE)):
        short_loop()
        put_double_at(response, q * width + k, (double_at(moved, q) - double_at(y, q)) / by)
    return GOOD


@part
def factorise(w):
    """Make `solve` know `G`."""
    if word_at(w, N_Z) > 1:
        return _factors(w)
    value = double_at(word_at(w, G), 0)  # one unknown: nothing to scale
    put_double_at(word_at(w, SCALED), 0, value)
    return GOOD if finite(value) and value != 0.0 else FAILED


@bare
def _factors(w):
    """LU factors of `G`, scaled by columns and then by rows (`corrector/algebra/linear_solve.py`)."""
    n, of = word_at(w, N_Z), word_at(w, G)
    rows, columns, scaled = word_at(w, ROWS), word_at(w, COLUMNS), word_at(w, SCALED)
    for q in range(n):
        found = 0.0
        for p in range(n):
            short_loop()
            value = double_at(of, p * n + q)
            if not finite(value):
                return FAILED
            found = max(found, abs(value))
        put_double_at(columns, q, found)
        if found == 0.0:
            return FAILED
    for p in range(n):
        found = 0.0
        for q in range(n):
            short_loop()
            found = max(found, abs(double_at(of, p * n + q)) / double_at(columns, q))
        put_double_at(rows, p, found)
        if found == 0.0:
            return FAILED
    norm = 0.0
    for q in range(n):
        total = 0.0
        for p in range(n):
            short_loop()
            value = double_at(of, p * n + q) / double_at(rows, p) / double_at(columns, q)
            put_double_at(scaled, q * n + p, value)  # Fortran order
            total += abs(value)
        norm = max(norm, total)
    lapack, pivots, integers, rates = word_at(w, LAPACK), word_at(w, PIVOTS), word_at(w, INTEGERS), word_at(w, RATES)
    size, info, letter = integers, integers + 8, integers + 16
    put_word_at(size, 0, n)
    put_word_at(info, 0, 0)
    call_six(word_at(lapack, 0), size, size, scaled, size, pivots, info)
    if word_at(info, 0) != 0:
        return FAILED
    put_double_at(rates, 0, norm)
    put_word_at(letter, 0, 49)  # "1": the norm of the condition estimate
    call_nine(word_at(lapack, 1), letter, size, scaled, size, rates, rates + 8, word_at(w, WORK), integers + 32, info)
    return GOOD if double_at(rates, 1) > RCOND else FAILED


@part
def solve(w, r, x):
    """`x = G^-1 r` after `factorise`."""
    if word_at(w, N_Z) > 1:
        return _solve(w, r, x)
    put_double_at(x, 0, double_at(r, 0) / double_at(word_at(w, SCALED), 0))
    return GOOD if finite(double_at(x, 0)) else FAILED


@bare
def _solve(w, r, x):
    n, integers, columns = word_at(w, N_Z), word_at(w, INTEGERS), word_at(w, COLUMNS)
    for p in range(n):
        short_loop()
        put_double_at(x, p, double_at(r, p) / double_at(word_at(w, ROWS), p))
    size, info, letter, one = integers, integers + 8, integers + 16, integers + 24
    put_word_at(size, 0, n)
    put_word_at(letter, 0, 78)  # "N": not transposed
    put_word_at(one, 0, 1)
    call_nine(
        word_at(word_at(w, LAPACK), 2), letter, size, one, word_at(w, SCALED), size, word_at(w, PIVOTS), x, size, info
    )
    for p in range(n):
        short_loop()
        value = double_at(x, p) / double_at(columns, p)
        put_double_at(x, p, value)
        if not finite(value):
            return FAILED
    return GOOD


@part
def norm_of(w, z, r):
    """The largest row, each in units of its coupling variable."""
    sizes, plain, least, start = word_at(w, SIZES), word_at(w, PLAIN), word_at(w, LEAST), double_at(w, START)
    norm = 0.0
    for q in range(word_at(w, N_Z)):
        short_loop()
        unit = max(max(double_at(sizes, q), TINY), min(abs(double_at(z, q)), GROWTH * start))
        if word_at(plain, q) != 0:
            unit = 1.0
        norm = max(norm, abs(double_at(r, q)) / max(unit, double_at(least, q)))
    return norm
