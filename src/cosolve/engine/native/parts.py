"""What compiled loops are made of: crossing a subsystem, evaluating laws, saving and restoring, moving the history on.

All of it repeats, number for number, what the readable engine does (`engine/readable/crew.py`, `interface/plan.py`,
`signal/history.py`); tests hold the two to the same bits.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

from cosolve.engine.native.wiring import (
    ARENA_LIMIT,
    ARGUMENTS,
    BEGIN,
    COPIES,
    CROSS,
    DATA,
    INPUTS,
    LAW,
    LAW_BYTES,
    LAW_READS,
    LAW_ROWS,
    LAWS,
    LENGTH,
    N_COPIES,
    N_LAW_READS,
    N_LAW_ROWS,
    N_LAWS,
    N_STATE,
    N_SUBSYSTEMS,
    N_Z,
    NEXT,
    OUTPUTS,
    PAST,
    PAST_COUNT,
    PAST_LENGTH,
    PAST_ROOM,
    RESTORE,
    SAVE,
    SIZE,
    SLOT,
    STATE,
    STEP,
    SUBSYSTEM_BYTES,
    SUBSYSTEMS,
    T0,
    T1,
    TROUBLE,
    TROUBLED,
    VALUES,
    WIDTH,
    U,
    Y,
)
from cosolve.jit import (
    call_cross,
    call_keep,
    call_law,
    double_at,
    finite,
    part,
    put_double_at,
    put_word_at,
    short_loop,
    word_at,
)

GOOD, FAILED = 0, 1


@part
def has(w, flag):
    """Whether a flag is set for this step."""
    return word_at(w, flag) == word_at(w, STEP)


@part
def mark(w, flag):
    """Set a flag for this step."""
    put_word_at(w, flag, word_at(w, STEP))


@part
def troubled(w):
    """Whether the step is out of the ordinary."""
    return word_at(w, TROUBLED) != 0


@part
def trouble(w):
    """The step is out of the ordinary: what follows does nothing, and at its end the step is taken back."""
    put_word_at(w, TROUBLED, 1)


@part
def take(w, count):
    """Room for so many doubles, until the end of the step."""
    at = word_at(w, NEXT)
    if at < word_at(w, ARENA_LIMIT):
        put_word_at(w, NEXT, at + 8 * count)
    else:
        trouble(w)
    return at


@part
def combine(weights, stride, first, count, rows, values, n_z, out):
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
def largest(at, count):
    """The largest magnitude."""
    found = 0.0
    for q in range(count):
        short_loop()
        found = max(found, abs(double_at(at, q)))
    return found


@part
def subsystem(w, i):
    """The record of subsystem `i`."""
    return word_at(w, SUBSYSTEMS) + SUBSYSTEM_BYTES * i


@part
def law(w, b):
    """The record of law `b`."""
    return word_at(w, LAWS) + LAW_BYTES * b


@part
def begin(w, i, mode, n, coefficients):
    """Give subsystem `i` its inputs; `coefficients` is where `n` rows of `n_z` numbers are."""
    s, n_z = subsystem(w, i), word_at(w, N_Z)
    u, width, inputs = word_at(s, U), word_at(s, WIDTH), word_at(s, INPUTS)
    for j in range(n):
        row = coefficients + 8 * j * n_z
        for k in range(width):
            short_loop()
            source = word_at(inputs, 3 * k)
            value = 0.0 if source < 0 else double_at(row, source) * double_at(inputs, 3 * k + 1)
            put_double_at(u, j * width + k, value + double_at(inputs, 3 * k + 2) if j == 0 else value)
    if word_at(s, BEGIN) == 0:
        return GOOD
    t0, t1, H = double_at(w, T0), double_at(w, T1), double_at(w, LENGTH)
    status = call_cross(word_at(s, BEGIN), word_at(s, DATA), mode, t0, t1, H, n, u, word_at(s, OUTPUTS))
    return GOOD if status == 0 else _failed(w, i, status)


@part
def finish(w, i, mode, n, outputs):
    """Subsystem `i` crosses the step with the inputs it has; `outputs` is where its outputs go."""
    s = subsystem(w, i)
    t0, t1, H = double_at(w, T0), double_at(w, T1), double_at(w, LENGTH)
    status = call_cross(word_at(s, CROSS), word_at(s, DATA), mode, t0, t1, H, n, word_at(s, U), outputs)
    if status != 0:
        return _failed(w, i, status)
    for k in range(word_at(s, SIZE)):
        short_loop()
        if not finite(double_at(outputs, k)):
            return _failed(w, i, 0)
    if word_at(s, PAST) != 0:
        _write_down(s, t0, t1, H, n, outputs)
    return GOOD


@part
def _write_down(s, t0, t1, H, n, outputs):
    """A crossing that counts, until another one from the same point takes its place (`Past.crossed`)."""
    k, length, values = word_at(s, PAST_COUNT), word_at(s, PAST_LENGTH), n * word_at(s, WIDTH)
    while k > 0 and double_at(word_at(s, PAST), (k - 1) * length) >= t0:
        k -= 1
    if k >= word_at(s, PAST_ROOM) or 4 + values + word_at(s, SIZE) > length:
        return
    row = word_at(s, PAST) + 8 * length * k
    put_double_at(row, 0, t0)
    put_double_at(row, 1, t1)
    put_double_at(row, 2, H)
    put_double_at(row, 3, float(n))
    for j in range(values):
        put_double_at(row, 4 + j, double_at(word_at(s, U), j))
    for j in range(word_at(s, SIZE)):
        put_double_at(row, length - word_at(s, SIZE) + j, double_at(outputs, j))
    put_word_at(s, PAST_COUNT, k + 1)


@part
def _failed(w, i, status):
    """Note which subsystem failed (-1: a law)."""
    put_word_at(word_at(w, TROUBLE), 0, i)
    put_word_at(word_at(w, TROUBLE), 1, status)
    trouble(w)
    return FAILED


@part
def law_values(w, b, arguments, values):
    """The values of law `b` for given arguments."""
    if call_law(word_at(law(w, b), LAW), arguments, values) != 0:
        return law_failed(w)
    for k in range(word_at(law(w, b), N_LAW_ROWS)):
        short_loop()
        if not finite(double_at(values, k)):
            return law_failed(w)
    return GOOD


@part
def law_failed(w):
    """Note that a law failed."""
    return _failed(w, -1, 0)


@part
def read_arguments(w, b, arguments):
    """What law `b` reads of the outputs."""
    reads, y = word_at(law(w, b), LAW_READS), word_at(w, Y)
    for k in range(word_at(law(w, b), N_LAW_READS)):
        short_loop()
        put_double_at(arguments, k, double_at(y, word_at(reads, k)))


@part
def evaluate_law(w, b, z):
    """The rows of `z` that belong to law `b`, from the outputs."""
    arguments, values, rows = word_at(w, ARGUMENTS), word_at(w, VALUES), word_at(law(w, b), LAW_ROWS)
    read_arguments(w, b, arguments)
    if law_values(w, b, arguments, values) != GOOD:
        return FAILED
    for k in range(word_at(law(w, b), N_LAW_ROWS)):
        short_loop()
        put_double_at(z, word_at(rows, k), double_at(values, k))
    return GOOD


@part
def evaluate(w, z):
    """The coupling variables that the outputs ask for."""
    copies, y = word_at(w, COPIES), word_at(w, Y)
    for k in range(word_at(w, N_COPIES)):
        short_loop()
        put_double_at(z, word_at(copies, 2 * k), double_at(y, word_at(copies, 2 * k + 1)))
    for b in range(word_at(w, N_LAWS)):
        if evaluate_law(w, b, z) != GOOD:
            return FAILED
    return GOOD


@part
def save(w, i):
    """Keep the state of subsystem `i`."""
    s = subsystem(w, i)
    if word_at(s, SAVE) != 0:
        return call_keep(word_at(s, SAVE), word_at(s, DATA))
    copy(word_at(s, STATE), word_at(s, SLOT), word_at(s, N_STATE))
    return 0


@part
def restore(w, i):
    """Subsystem `i` back to the state that was kept."""
    s = subsystem(w, i)
    if word_at(s, RESTORE) != 0:
        return call_keep(word_at(s, RESTORE), word_at(s, DATA))
    copy(word_at(s, SLOT), word_at(s, STATE), word_at(s, N_STATE))
    return 0


@part
def copy(source, target, count):
    """So many doubles."""
    for k in range(count):
        short_loop()
        put_double_at(target, k, double_at(source, k))


@part
def save_all(w):
    """Keep all states."""
    status = 0
    for i in range(word_at(w, N_SUBSYSTEMS)):
        status |= save(w, i)
    return status


@part
def restore_all(w):
    """All subsystems back to the states that were kept."""
    status = 0
    for i in range(word_at(w, N_SUBSYSTEMS)):
        status |= restore(w, i)
    return status


@part
def record(w, z, Y_rows, Z_rows, s):
    """Write the row of step `s`."""
    copy(word_at(w, Y), Y_rows.ctypes.data + 8 * s * Y_rows.shape[1], Y_rows.shape[1])
    copy(z, Z_rows.ctypes.data + 8 * s * Z_rows.shape[1], Z_rows.shape[1])


@part
def push(values, z):
    """The newest values come first."""
    n_z, at = values.shape[1], values.ctypes.data
    for k in range((values.shape[0] - 1) * n_z - 1, -1, -1):
        short_loop()
        put_double_at(at, k + n_z, double_at(at, k))
    copy(z, at, n_z)
