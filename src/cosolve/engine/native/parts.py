"""Pieces of compiled loops: subsystem steps, laws, saving and restoring, moving the history on.

All of it repeats, number for number, what the Python engine does (`engine/python/subsystem_caller.py`,
`interface/plan.py`, `signal/history.py`); tests hold the two to the same bits.
"""

from __future__ import annotations

from cosolve.basics.arrays import Matrix
from cosolve.engine.native.wiring import ExecutorRecord, LawRecord, SubsystemRecord
from cosolve.jit import (
    call_advance,
    call_keep,
    call_law,
    double_at,
    finite,
    part,
    put_double_at,
    put_word_at,
    record_at,
    short_loop,
    word_at,
)

GOOD, FAILED = 0, 1

executor_at, _subsystem_at, _law_at = record_at(ExecutorRecord), record_at(SubsystemRecord), record_at(LawRecord)
_SUBSYSTEM_BYTES, _LAW_BYTES = SubsystemRecord.dtype.itemsize, LawRecord.dtype.itemsize


@part
def set_failed(w: ExecutorRecord) -> None:
    """The step is out of the ordinary: what follows does nothing, and at its end the step is taken back."""
    w.failed = 1


@part
def take(w: ExecutorRecord, count: int) -> int:
    """Room for so many doubles, until the end of the step."""
    at = w.next
    if at < w.arena_limit:
        w.next = at + 8 * count
    else:
        set_failed(w)
    return at


@part
def combine(weights: int, stride: int, first: int, count: int, rows: int, values: int, n_z: int, out: int) -> None:
    """`rows` rows of sums of `count` vectors, with weights from column `first` on."""
    for j in range(rows):
        of = weights + 8 * (j * stride + first)
        for q in range(n_z):
            short_loop()
            total = double_at(of, 0) * double_at(values, q)
            for k in range(1, count):
                short_loop()
                total += double_at(of, k) * double_at(values, k * n_z + q)
            put_double_at(out, j * n_z + q, total)


@part
def largest(at: int, count: int) -> float:
    """The largest magnitude."""
    found = 0.0
    for q in range(count):
        short_loop()
        found = max(found, abs(double_at(at, q)))
    return found


@part
def subsystem(w: ExecutorRecord, i: int) -> SubsystemRecord:
    """The record of subsystem `i`."""
    return _subsystem_at(w.subsystems + _SUBSYSTEM_BYTES * i)


@part
def law(w: ExecutorRecord, b: int) -> LawRecord:
    """The record of law `b`."""
    return _law_at(w.laws + _LAW_BYTES * b)


@part
def begin(w: ExecutorRecord, i: int, mode: int, n: int, coefficients: int) -> int:
    """Give subsystem `i` its inputs; `coefficients` is where `n` rows of `n_z` numbers are."""
    s, n_z = subsystem(w, i), w.n_z
    u, width, inputs = s.u, s.width, s.inputs
    for j in range(n):
        row = coefficients + 8 * j * n_z
        for k in range(width):
            short_loop()
            source = word_at(inputs, 3 * k)
            value = 0.0 if source < 0 else double_at(row, source) * double_at(inputs, 3 * k + 1)
            put_double_at(u, j * width + k, value + double_at(inputs, 3 * k + 2) if j == 0 else value)
    rows = _rows(w, n)
    if rows != n:
        _add(w, s, n, rows)
    if s.begin == 0:
        return GOOD
    t0, t1, H = w.t0, w.t1, w.length
    status = call_advance(s.begin, s.data, mode, t0, t1, H, rows, u, s.outputs)
    return GOOD if status == 0 else _failed(w, i, status)


@part
def _rows(w: ExecutorRecord, n: int) -> int:
    """How many rows of coefficients the inputs have where `n` come from the coupling variables."""
    return n if w.added == 0 else w.added_rows


@part
def _add(w: ExecutorRecord, s: SubsystemRecord, n: int, rows: int) -> None:
    """Add to the inputs of a subsystem, whose first `n` rows are there, what a shadow adds."""
    u, width, added, row = s.u, s.width, w.added + 8 * s.first_input, w.n_u
    for j in range(rows):
        for k in range(width):
            short_loop()
            given = double_at(u, j * width + k) if j < n else 0.0
            put_double_at(u, j * width + k, given + double_at(added, j * row + k))


@part
def finish(w: ExecutorRecord, i: int, mode: int, n: int, outputs: int) -> int:
    """Subsystem `i` advances over the step with the inputs it has; `outputs` is where its outputs go."""
    s, rows = subsystem(w, i), _rows(w, n)
    t0, t1, H = w.t0, w.t1, w.length
    status = call_advance(s.advance_call, s.data, mode, t0, t1, H, rows, s.u, outputs)
    if status != 0:
        return _failed(w, i, status)
    for k in range(s.size):
        short_loop()
        if not finite(double_at(outputs, k)):
            return _failed(w, i, 0)
    if s.past != 0:
        _write_down(s, t0, t1, H, rows, outputs)
    return GOOD


@part
def _write_down(s: SubsystemRecord, t0: float, t1: float, H: float, n: int, outputs: int) -> None:
    """A advancing over that counts, until another one from the same point takes its place (`Past.advanced`)."""
    k, length, values = s.past_count, s.past_length, n * s.width
    while k > 0 and double_at(s.past, (k - 1) * length) >= t0:
        k -= 1
    if k >= s.past_capacity or 4 + values + s.size > length:
        return
    row = s.past + 8 * length * k
    put_double_at(row, 0, t0)
    put_double_at(row, 1, t1)
    put_double_at(row, 2, H)
    put_double_at(row, 3, float(n))
    for j in range(values):
        put_double_at(row, 4 + j, double_at(s.u, j))
    for j in range(s.size):
        put_double_at(row, length - s.size + j, double_at(outputs, j))
    s.past_count = k + 1


@part
def _failed(w: ExecutorRecord, i: int, status: int) -> int:
    """Note which subsystem failed (-1: a law)."""
    put_word_at(w.failure, 0, i)
    put_word_at(w.failure, 1, status)
    set_failed(w)
    return FAILED


@part
def law_values(w: ExecutorRecord, b: int, arguments: int, values: int) -> int:
    """The values of law `b` for given arguments."""
    if call_law(law(w, b).law, arguments, values) != 0:
        return law_failed(w)
    for k in range(law(w, b).n_law_rows):
        short_loop()
        if not finite(double_at(values, k)):
            return law_failed(w)
    return GOOD


@part
def law_failed(w: ExecutorRecord) -> int:
    """Note that a law failed."""
    return _failed(w, -1, 0)


@part
def read_arguments(w: ExecutorRecord, b: int, arguments: int) -> None:
    """What law `b` reads of the outputs."""
    reads, y = law(w, b).law_reads, w.y
    for k in range(law(w, b).n_law_reads):
        short_loop()
        put_double_at(arguments, k, double_at(y, word_at(reads, k)))


@part
def evaluate_law(w: ExecutorRecord, b: int, z: int) -> int:
    """The rows of `z` that belong to law `b`, from the outputs."""
    arguments, values, rows = w.arguments, w.values, law(w, b).law_rows
    read_arguments(w, b, arguments)
    if law_values(w, b, arguments, values) != GOOD:
        return FAILED
    for k in range(law(w, b).n_law_rows):
        short_loop()
        put_double_at(z, word_at(rows, k), double_at(values, k))
    return GOOD


@part
def evaluate(w: ExecutorRecord, z: int) -> int:
    """The coupling variables that the outputs ask for."""
    copies, y = w.copies, w.y
    for k in range(w.n_copies):
        short_loop()
        put_double_at(z, word_at(copies, 2 * k), double_at(y, word_at(copies, 2 * k + 1)))
    for b in range(w.n_laws):
        if evaluate_law(w, b, z) != GOOD:
            return FAILED
    return GOOD


@part
def save(w: ExecutorRecord, i: int) -> int:
    """Keep the state of subsystem `i`."""
    s = subsystem(w, i)
    if s.save != 0:
        return call_keep(s.save, s.data)
    copy(s.state, s.slot, s.n_state)
    return 0


@part
def restore(w: ExecutorRecord, i: int) -> int:
    """Subsystem `i` back to the state that was kept."""
    s = subsystem(w, i)
    if s.restore != 0:
        return call_keep(s.restore, s.data)
    copy(s.slot, s.state, s.n_state)
    return 0


@part
def copy(source: int, target: int, count: int) -> None:
    """So many doubles."""
    for k in range(count):
        short_loop()
        put_double_at(target, k, double_at(source, k))


@part
def save_all(w: ExecutorRecord) -> int:
    """Keep all states."""
    status = 0
    for i in range(w.n_subsystems):
        status |= save(w, i)
    return status


@part
def restore_all(w: ExecutorRecord) -> int:
    """All subsystems back to the states that were kept."""
    status = 0
    for i in range(w.n_subsystems):
        status |= restore(w, i)
    return status


@part
def record(w: ExecutorRecord, z: int, Y_rows: Matrix, Z_rows: Matrix, s: int) -> None:
    """Write the row of step `s`."""
    copy(w.y, Y_rows.ctypes.data + 8 * s * Y_rows.shape[1], Y_rows.shape[1])
    copy(z, Z_rows.ctypes.data + 8 * s * Z_rows.shape[1], Z_rows.shape[1])


@part
def push(values: Matrix, z: int) -> None:
    """The newest values come first."""
    n_z, at = values.shape[1], values.ctypes.data
    for k in range((values.shape[0] - 1) * n_z - 1, -1, -1):
        short_loop()
        put_double_at(at, k + n_z, double_at(at, k))
    copy(z, at, n_z)
