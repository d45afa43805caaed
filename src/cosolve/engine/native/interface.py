"""Compiled residual, interface Jacobian and its solution (readable: `trial.py`, `corrector/algebra`)."""

from __future__ import annotations

from cosolve.basics.lu import RCOND
from cosolve.engine.measure import GROWTH, TINY
from cosolve.engine.native.parts import FAILED, GOOD, begin, finish, law, law_failed, read_arguments, restore, subsystem
from cosolve.engine.native.wiring import ExecutorRecord, SubsystemRecord
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
def _clear(at: int, count: int) -> None:
    for k in range(count):
        short_loop()
        put_double_at(at, k, 0.0)


@part
def _add(at: int, index: int, value: float) -> None:
    put_double_at(at, index, double_at(at, index) + value)


@part
def output_partials(w: ExecutorRecord) -> int:
    """`dr/dy`: -1 for connections, minus central differences for laws."""
    into, n_y = w.dr_dy, w.n_y
    _clear(into, w.n_z * n_y)
    for k in range(w.n_copies):
        short_loop()
        pair = w.copies + 16 * k
        _add(into, word_at(pair, 0) * n_y + word_at(pair, 1), -1.0)
    arguments, values, slopes = w.arguments, w.values, w.slopes
    for b in range(w.n_laws):
        of = law(w, b)
        reads, rows, count = of.law_reads, of.law_rows, of.n_law_rows
        read_arguments(w, b, arguments)
        for k in range(of.n_law_reads):
            short_loop()
            size = double_at(w.y_sizes, word_at(of.law_reads, k))
            put_double_at(of.law_nominal, k, size if size > 0.0 else 1.0)
        if call_partials(of.partials, arguments, of.law_nominal, values, slopes) != 0:
            return law_failed(w)
        for k in range(of.n_law_reads):
            for m in range(count):
                short_loop()
                slope = double_at(slopes, k * count + m)
                if not finite(slope):
                    return law_failed(w)
                _add(into, word_at(rows, m) * n_y + word_at(reads, k), -slope)
    return GOOD


@part
def jacobian(w: ExecutorRecord) -> int:
    """`G = dr/dz + dr/dy dy/dz`, by constant responses where there are some and by differences elsewhere."""
    n_z, n_y = w.n_z, w.n_y
    most = 0
    for i in range(w.n_subsystems):
        short_loop()
        most = max(most, _columns(w, i))
    for i in range(w.n_subsystems):
        short_loop()
        if subsystem(w, i).respond != 0 and _respond(w, i) != GOOD:
            return FAILED
    for k in range(most):  # one column of each subsystem at a time, so that they may work side by side
        for i in range(w.n_subsystems):
            if k < _columns(w, i) and _shift(w, i, k) != GOOD:
                return FAILED
        for i in range(w.n_subsystems):
            if k < _columns(w, i) and _differ(w, i, k) != GOOD:
                return FAILED
    into, of = w.g, w.dr_dy
    _clear(into, n_z * n_z)
    for m in range(n_z):
        short_loop()
        put_double_at(into, m * n_z + m, 1.0)
    for i in range(w.n_subsystems):
        s = subsystem(w, i)
        first, count, width, response = s.first, s.size, s.n_reads, s.response
        if count == 0:
            continue
        for row in range(n_z):
            for k in range(width):
                total = double_at(of, row * n_y + first) * double_at(response, k)
                for q in range(1, count):
                    short_loop()
                    total += double_at(of, row * n_y + first + q) * double_at(response, q * width + k)
                _add(into, row * n_z + word_at(s.reads, k), total)
    return GOOD


@part
def _columns(w: ExecutorRecord, i: int) -> int:
    """How many differences the Jacobian of subsystem `i` takes."""
    s = subsystem(w, i)
    return 0 if s.exact != 0 or s.respond != 0 else s.n_reads


@part
def _respond(w: ExecutorRecord, i: int) -> int:
    """Ask subsystem `i`, back at the start of the step, for its Jacobian; inputs that read one variable add up."""
    if restore(w, i) != 0 or begin(w, i, REPLAY, w.n_nodes, w.signal) != GOOD:
        return FAILED
    s, n = subsystem(w, i), w.n_nodes
    t0, t1, H, by_input = w.t0, w.t1, w.length, s.by_input
    at, weights = s.respond, w.interpolation
    if call_response(at, s.data, t0, t1, H, n, s.u, weights, n, by_input) != 0:
        return FAILED
    response, width, reads = s.response, s.width, s.n_reads
    column, inputs = s.column, s.inputs
    _clear(response, s.size * reads)
    for q in range(s.size):
        for j in range(width):
            short_loop()
            if word_at(column, j) >= 0:
                share = double_at(by_input, q * width + j) * double_at(inputs, 3 * j + 1)
                if not finite(share):
                    return FAILED
                _add(response, q * reads + word_at(column, j), share)
    return GOOD


@part
def _shifted(w: ExecutorRecord, s: SubsystemRecord, k: int) -> float:
    """The coupling variable that column `k` of the subsystem at `s` is about, moved a little."""
    m = word_at(s.reads, k)
    known, size = double_at(w.ends, m), double_at(w.sizes, m)
    size = max(size, abs(known))
    return known + max(w.increment, s.noise) * (size if size != 0.0 else 1.0)


@part
def _shift(w: ExecutorRecord, i: int, k: int) -> int:
    """Give subsystem `i`, back at the start of the step, its inputs with the moved variable of column `k`."""
    s = subsystem(w, i)
    m = word_at(s.reads, k)
    _end_one(w, m, _shifted(w, s, k))
    if restore(w, i) != 0:
        return FAILED
    status = begin(w, i, REPLAY, w.n_nodes, w.signal)
    _end_one(w, m, double_at(w.ends, m))
    return status


@part
def _end_one(w: ExecutorRecord, m: int, value: float) -> None:
    """The signal of coupling variable `m` ends in `value`."""
    n, n_z, weights = w.n_nodes, w.n_z, w.interpolation
    for j in range(n):
        short_loop()
        at = j * n_z + m
        put_double_at(w.signal, at, double_at(w.base, at) + double_at(weights, j * n) * value)


@part
def _differ(w: ExecutorRecord, i: int, k: int) -> int:
    """How the outputs of subsystem `i` respond to that."""
    s = subsystem(w, i)
    y, moved, response, width = (
        s.outputs,
        s.outputs_moved,
        s.response,
        s.n_reads,
    )
    if finish(w, i, REPLAY, w.n_nodes, moved) != GOOD:
        return FAILED
    by = _shifted(w, s, k) - double_at(w.ends, word_at(s.reads, k))
    for q in range(s.size):
        short_loop()
        put_double_at(response, q * width + k, (double_at(moved, q) - double_at(y, q)) / by)
    return GOOD


@part
def factorise(w: ExecutorRecord) -> int:
    """Make `solve` know `G`."""
    if w.n_z > 1:
        return _factors(w)
    value = double_at(w.g, 0)  # one unknown: nothing to scale
    put_double_at(w.scaled, 0, value)
    return GOOD if finite(value) and value != 0.0 else FAILED


@bare
def _factors(w: ExecutorRecord) -> int:
    """LU factors of `G`, scaled by columns and then by rows (`corrector/algebra/linear_solve.py`)."""
    n, of = w.n_z, w.g
    rows, columns, scaled = w.rows, w.columns, w.scaled
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
    lapack, pivots, integers, rates = w.lapack, w.pivots, w.integers, w.rates
    size, info, letter = integers, integers + 8, integers + 16
    put_word_at(size, 0, n)
    put_word_at(info, 0, 0)
    call_six(word_at(lapack, 0), size, size, scaled, size, pivots, info)
    if word_at(info, 0) != 0:
        return FAILED
    put_double_at(rates, 0, norm)
    put_word_at(letter, 0, 49)  # "1": the norm of the condition estimate
    call_nine(word_at(lapack, 1), letter, size, scaled, size, rates, rates + 8, w.work, integers + 32, info)
    return GOOD if double_at(rates, 1) > RCOND else FAILED


@part
def solve(w: ExecutorRecord, r: int, x: int) -> int:
    """`x = G^-1 r` after `factorise`."""
    if w.n_z > 1:
        return _solve(w, r, x)
    put_double_at(x, 0, double_at(r, 0) / double_at(w.scaled, 0))
    return GOOD if finite(double_at(x, 0)) else FAILED


@bare
def _solve(w: ExecutorRecord, r: int, x: int) -> int:
    n, integers, columns = w.n_z, w.integers, w.columns
    for p in range(n):
        short_loop()
        put_double_at(x, p, double_at(r, p) / double_at(w.rows, p))
    size, info, letter, one = integers, integers + 8, integers + 16, integers + 24
    put_word_at(size, 0, n)
    put_word_at(letter, 0, 78)  # "N": not transposed
    put_word_at(one, 0, 1)
    call_nine(word_at(w.lapack, 2), letter, size, one, w.scaled, size, w.pivots, x, size, info)
    for p in range(n):
        short_loop()
        value = double_at(x, p) / double_at(columns, p)
        put_double_at(x, p, value)
        if not finite(value):
            return FAILED
    return GOOD


@part
def norm_of(w: ExecutorRecord, z: int, r: int) -> float:
    """The largest row, each in units of its coupling variable."""
    sizes, plain, least, start = w.sizes, w.plain, w.least, w.start
    norm = 0.0
    for q in range(w.n_z):
        short_loop()
        unit = max(max(double_at(sizes, q), TINY), min(abs(double_at(z, q)), GROWTH * start))
        if word_at(plain, q) != 0:
            unit = 1.0
        norm = max(norm, abs(double_at(r, q)) / max(unit, double_at(least, q)))
    return norm
