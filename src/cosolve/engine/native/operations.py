"""The compiled engine: the operations of `operations.py` as machine code on one record of words (`wiring.py`).

`m` is the address of the record. Vectors are addresses of doubles that live until the end of the step, signals are
pairs of an address and a number of rows. A step that is out of the ordinary (a failed subsystem step, a NaN, a singular
Jacobian, an iteration that stands still) is not decided here: it sets a flag, after which nothing more is called, and
`loops.py` takes the step back for the Python engine. All numbers are formed as that engine forms them; tests hold the
two to the same bits.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, TypeAlias

from cosolve.basics.scale import SHARE
from cosolve.engine.corrections import LEAST, LITTLE, MUCH, is_too_much
from cosolve.engine.measure import DIVERGED, LOST, TINY
from cosolve.engine.native.interface import factorise, jacobian, norm_of, output_partials, solve
from cosolve.engine.native.parts import (
    GOOD,
    begin,
    combine,
    copy,
    evaluate,
    evaluate_law,
    finish,
    largest,
    law,
    restore_all,
    set_failed,
    subsystem,
    take,
)
from cosolve.engine.native.wiring import BIT_INTERPOLATION, JACOBIANS, NORM_COUNT, ExecutorRecord
from cosolve.engine.native.wiring import OPERATIONS as KNOWN_OPERATIONS
from cosolve.jit import (
    bare,
    c_address,
    c_call,
    compiled,
    double_at,
    doubles_at,
    part,
    put_double_at,
    short_loop,
    types,
    word_at,
)
from cosolve.signal.bdf import fill_bdf_weights, fill_mean_weights
from cosolve.signal.polynomial import fill_weights
from cosolve.subsystem.native import ADVANCE

#: Where the coefficients of a signal are, and how many rows.
Signal: TypeAlias = tuple[int, int]

# -- signals ---------------------------------------------------------------------------------------------------------


def _with(function: Any, **names: Any) -> Any:
    """The same code with other meanings of what it calls."""
    return FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__)


_fill_weights: Any = bare(fill_weights)
_fill_mean_weights: Any = bare(_with(fill_mean_weights, fill_weights=_fill_weights))
_fill_bdf_weights: Any = bare(_with(fill_bdf_weights, fill_weights=_fill_weights))
_FOUR_WORDS = types.int64(*[types.int64] * 4)
_call_four = c_call(_FOUR_WORDS)


@compiled
def _lagrange(nodes: int, count: int, out: int, scratch: int) -> int:
    work = doubles_at(scratch), doubles_at(scratch + 8 * (count + 1))
    _fill_weights(doubles_at(nodes), count, doubles_at(out), work[0], work[1])
    return 0


@compiled
def _means(nodes: int, count: int, out: int, scratch: int) -> int:
    whole = scratch + 8 * 2 * (count + 2)
    work = doubles_at(whole), doubles_at(scratch), doubles_at(scratch + 8 * (count + 2))
    _fill_mean_weights(doubles_at(nodes), count, doubles_at(out), work[0], work[1], work[2])
    return 0


@compiled
def _bdf(nodes: int, count: int, out: int, scratch: int) -> int:
    whole = scratch + 8 * 2 * (count + 2)
    work = doubles_at(whole), doubles_at(scratch), doubles_at(scratch + 8 * (count + 2))
    _fill_bdf_weights(doubles_at(nodes), count, doubles_at(out), work[0], work[1], work[2])
    return 0


#: The functions for the weights of past values and of end values, by kind of signal.
_WEIGHTS = {"lagrange": (_lagrange, _lagrange), "bdf": (_means, _bdf)}


def node_weights(signal: str) -> dict[str, int]:
    """Where the code for them is: called by address, so that no loop has it inside, which seldom needs it."""
    past, end = _WEIGHTS[signal]
    return {"past_weights": c_address(past, _FOUR_WORDS), "end_weights": c_address(end, _FOUR_WORDS)}


@part
def _weigh(m: ExecutorRecord, known: int, function: int, nodes: int, count: int, out: int) -> None:
    """Node weights for this step, unless they are there."""
    if m.weights_known & known == 0:
        _call_four(function, nodes, count, out, m.scratch)
        m.weights_known = m.weights_known | known


@part
def extrapolated(m: ExecutorRecord, degree: int) -> Signal:
    """Coefficients of the extrapolated signals; those of degree 0 are the newest values themselves."""
    values, n_z = m.history, m.n_z
    degree = min(degree, m.highest)
    if degree == 0:
        return values, 1
    n, weights = degree + 1, word_at(m.extrapolation, degree)
    _weigh(m, 1 << degree, m.past_weights, m.nodes, n, weights)
    at = take(m, n * n_z)
    combine(weights, n, 0, n, n, values, n_z, at)
    return at, n


@part
def predicted(m: ExecutorRecord, degree: int) -> int:
    """The ends of those signals."""
    at, n = extrapolated(m, degree)
    n_z = m.n_z
    z = take(m, n_z)
    for q in range(n_z):
        total = double_at(at, q)
        for j in range(1, n):
            short_loop()
            total += double_at(at, j * n_z + q)
        put_double_at(z, q, total)
    if m.added_ends != 0:
        for q in range(n_z):
            short_loop()
            put_double_at(z, q, double_at(z, q) + double_at(m.added_ends, q))
    return z


@part
def remembered(m: ExecutorRecord, z: int) -> int:
    """What the history keeps of a step that came to `z`: that, or what `means` says of the signal applied last."""
    if m.means == 0:
        return z
    n, n_z, signal = m.n_nodes, m.n_z, m.signal
    mean = take(m, n_z)
    if m.means == 2:
        copy(signal, mean, n_z // 2)
        copy(signal, mean + 8 * (n_z // 2), n_z // 2)
        return mean
    for q in range(n_z):
        total = double_at(signal, q)
        for j in range(1, n):
            short_loop()
            total += double_at(signal, j * n_z + q) / (j + 1.0)
        put_double_at(mean, q, total)
    return mean


@part
def _make_base(m: ExecutorRecord) -> None:
    """The part of interpolated signals that does not depend on their end."""
    n, n_z = m.n_nodes, m.n_z
    if m.base_known != m.step:
        if n > 1:
            weights = m.interpolation
            nodes = m.nodes - 8  # the end of the step stands before them
            _weigh(m, BIT_INTERPOLATION, m.end_weights, nodes, n, weights)
            combine(weights, n, 1, n - 1, n, m.history, n_z, m.base)
        m.base_known = m.step


@part
def ending_in(m: ExecutorRecord, z: int) -> Signal:
    """Coefficients of the signals that end in `z`."""
    _make_base(m)
    n, n_z, base, weights = m.n_nodes, m.n_z, m.base, m.interpolation
    at = take(m, n * n_z)
    for j in range(n):
        weight = double_at(weights, j * n)
        for q in range(n_z):
            short_loop()
            put_double_at(at, j * n_z + q, double_at(base, j * n_z + q) + weight * double_at(z, q))
    m.ends = z
    return at, n


# -- advancing -----------------------------------------------------------------------------------------------


@part
def _leave_start(m: ExecutorRecord) -> None:
    m.advance_count = m.advance_count + 1


@part
def sweep(m: ExecutorRecord, signal: Signal) -> None:
    """All subsystems advance over the step; their outputs go to `Y`."""
    at, n = signal
    _leave_start(m)
    m.signal = at
    if m.failed == 0:
        for i in range(m.n_subsystems):
            if begin(m, i, ADVANCE, n, at) != GOOD:
                return
        for i in range(m.n_subsystems):
            if finish(m, i, ADVANCE, n, subsystem(m, i).outputs) != GOOD:
                return


@part
def rollback(m: ExecutorRecord) -> None:
    """Back to the start of the step."""
    if m.advance_count != m.step and m.failed == 0 and restore_all(m) != 0:
        set_failed(m)


@part
def serial_order(m: ExecutorRecord) -> range:
    """The serial_order of a serial sweep."""
    return range(m.n_subsystems)


@part
def editable_signal(m: ExecutorRecord, signal: Signal) -> Signal:
    """A copy with as many rows as an interpolation needs."""
    given, n = signal
    _leave_start(m)
    _make_base(m)
    n_z, rows = m.n_z, max(n, m.n_nodes)
    at = take(m, rows * n_z)
    copy(given, at, n * n_z)
    for k in range(n * n_z, rows * n_z):
        short_loop()
        put_double_at(at, k, 0.0)
    return at, rows


@part
def advance(m: ExecutorRecord, place: int, signal: Signal) -> None:
    """The subsystem at this place of the order advances."""
    at, n = signal
    if m.failed == 0:
        i = word_at(m.order, place)
        if begin(m, i, ADVANCE, n, at) == GOOD:
            finish(m, i, ADVANCE, n, subsystem(m, i).outputs)


@part
def set_known_ends(m: ExecutorRecord, place: int, signal: Signal) -> None:
    """What it makes known replaces what was guessed."""
    at, rows = signal
    new = m.new
    if m.failed == 0:
        for k in range(word_at(m.known, place), word_at(m.known, place + 1)):
            row = word_at(m.copies, 2 * k)
            put_double_at(new, row, double_at(m.y, word_at(m.copies, 2 * k + 1)))
            _end_in(m, at, rows, row, double_at(new, row))
        for b in range(word_at(m.laws_known, place), word_at(m.laws_known, place + 1)):
            if m.failed == 0 and evaluate_law(m, b, new) == GOOD:
                for k in range(law(m, b).n_law_rows):
                    row = word_at(law(m, b).law_rows, k)
                    _end_in(m, at, rows, row, double_at(new, row))


@part
def _end_in(m: ExecutorRecord, at: int, rows: int, row: int, value: float) -> None:
    """The signal of coupling variable `row` ends in `value`."""
    n, n_z, base, weights = m.n_nodes, m.n_z, m.base, m.interpolation
    for j in range(rows):
        short_loop()
        known = 0.0
        if j < n:
            known = double_at(base, j * n_z + row) + double_at(weights, j * n) * value
        put_double_at(at, j * n_z + row, known)


@part
def end_values(m: ExecutorRecord, z: int) -> int:
    """Guessed values where they were read before they were known."""
    n_z, new, lagging = m.n_z, m.new, m.lagging
    at = take(m, n_z)
    for q in range(n_z):
        short_loop()
        put_double_at(at, q, double_at(z, q) if word_at(lagging, q) != 0 else double_at(new, q))
    m.ends = at
    return at


# -- coupling variables and their equations --------------------------------------------------------------------------


@part
def coupling_from_outputs(m: ExecutorRecord) -> int:
    """The coupling variables that the outputs ask for; evaluated once per subsystem step."""
    if m.asked_known == m.advance_count:
        return m.asked
    at = take(m, m.n_z)
    if m.failed == 0:
        evaluate(m, at)
    m.asked = at
    m.asked_known = m.advance_count
    return at


@part
def residual(m: ExecutorRecord, z: int) -> int:
    """`z - f(y)`."""
    return minus(m, z, coupling_from_outputs(m))


@part
def minus(m: ExecutorRecord, a: int, b: int) -> int:
    """`a - b`."""
    n_z = m.n_z
    at = take(m, n_z)
    for q in range(n_z):
        short_loop()
        put_double_at(at, q, double_at(a, q) - double_at(b, q))
    return at


@part
def newton_step(m: ExecutorRecord, r: int) -> int:
    """`dz` with `G dz = r`; `G` is made anew as often as the corrector wants, unless it is always the same."""
    dz = take(m, m.n_z)
    if m.counters < NORM_COUNT:
        m.uncorrected = r
    if m.failed == 0:
        if m.every != 0 or m.renewed_now != m.step:
            m.counters = m.counters + JACOBIANS
            m.renewed_now = m.step
            if m.jacobian_known != m.step and m.kept == 0:
                m.left = m.advance_count
                if output_partials(m) != GOOD or jacobian(m) != GOOD or factorise(m) != GOOD:
                    set_failed(m)
                if m.every == 0:
                    m.jacobian_known = m.step
                m.kept = m.keep
        if m.failed == 0 and solve(m, r, dz) != GOOD:
            set_failed(m)
    return dz


# -- iterations ------------------------------------------------------------------------------------------------------


@part
def another_problem(m: ExecutorRecord) -> bool:
    """True once."""
    first = m.problem == 0
    m.problem = 1 if first else 0
    return first


@part
def converged(m: ExecutorRecord, z: int, r: int, tol: float, max_iterations: int, accept_unconverged: bool) -> bool:
    """True when the tolerance is converged; also when the Python engine must find the words."""
    n_z, filled, counters = m.n_z, m.filled, m.counters
    count = counters // NORM_COUNT
    if count == 0:
        start = largest(m.sizes, n_z) + largest(z, n_z) + largest(r, n_z)
        m.start = start
    norm = norm_of(m, z, r)
    if count == 0:
        m.first_norm = norm
        m.uncorrected = r
    before = m.last_norm
    if filled < m.capacity:
        put_double_at(m.norms, filled, norm)
    else:
        set_failed(m)
    m.last_norm = norm
    m.filled = filled + 1
    m.counters = counters + NORM_COUNT
    if count > 0 and largest(z, n_z) > LOST * m.start:
        set_failed(m)
    if m.failed != 0 or norm <= tol:
        return True
    hopeless = count + 1 > max_iterations or not norm < DIVERGED * max(m.first_norm, 1.0)
    if hopeless or (count > 0 and norm > 0.5 * before):
        set_failed(m)
        return True
    looked_at = count == 1 and counters % NORM_COUNT >= JACOBIANS and m.examinations != 0
    if looked_at and norm > max(MUCH * before, LEAST):
        _hand_over(m)
        return True
    return False


@part
def already_evaluated(m: ExecutorRecord, z: int) -> bool:
    """Whether the last subsystem step ended in these values and no subsystem has advanced since."""
    step_count = m.advance_count
    return step_count != m.step and step_count != m.left and m.ends == z


@part
def residual_too_large(m: ExecutorRecord, z: int, r: int) -> bool:
    """Never here: the Python engine repeats a correction that has left too much, and so takes the step again."""
    if largest(r, m.n_z) > m.quiet:
        _judge_correction(m, z, r)
    return False


@part
def corrected_again(m: ExecutorRecord, z: int, r: int) -> int:
    """Not called."""
    return z


@part
def accept(m: ExecutorRecord, z: int) -> None:
    """The answer to the only problem."""
    m.accepted = z


@part
def accepted(m: ExecutorRecord) -> int:
    """That answer."""
    return m.accepted


# -- counters --------------------------------------------------------------------------------------------------------


@part
def record_scales(m: ExecutorRecord, z: int) -> None:
    """Let the sizes grow; not in a step that will be taken back."""
    sizes = m.sizes
    if m.failed == 0:
        for q in range(m.n_z):
            short_loop()
            put_double_at(sizes, q, max(double_at(sizes, q), abs(double_at(z, q))))
        _grow(sizes, m.open, m.n_z)
        sizes = m.y_sizes
        for k in range(m.n_y):
            short_loop()
            put_double_at(sizes, k, max(double_at(sizes, k), abs(double_at(m.y, k))))
        _grow(sizes, m.y_open, m.n_y)


@part
def _grow(sizes: int, is_open: int, count: int) -> None:
    """What has no nominal value counts at least so much beside the largest."""
    most = largest(sizes, count)
    least = min(most, max(1.0, SHARE * most))
    for q in range(count):
        short_loop()
        if word_at(is_open, q) != 0:
            put_double_at(sizes, q, max(double_at(sizes, q), least))


@part
def record_residual(m: ExecutorRecord, r: int) -> None:
    """The residual of the values that are end_values, and its largest entry."""
    m.residual = largest(r, m.n_z)
    m.noted = r


_is_too_much: Any = bare(is_too_much)


@bare
def _judge_correction(m: ExecutorRecord, z: int, r: int) -> None:
    counters = m.counters
    if counters < JACOBIANS or counters >= NORM_COUNT:  # not corrected, or iterated
        return
    sizes, plain, before = m.sizes, m.plain, m.uncorrected
    began = left = 0.0
    for q in range(m.n_z):
        short_loop()
        end, over = double_at(z, q), double_at(r, q)
        unit = 1.0 if word_at(plain, q) != 0 else max(double_at(sizes, q), max(abs(end), abs(end - over)))
        unit = max(unit, TINY)
        began = max(began, abs(double_at(before, q)) / unit)
        left = max(left, abs(over) / unit)
    tried_out = m.examinations != 0 and left > max(LITTLE * began, LEAST)
    if (tried_out or _is_too_much(began, left)) and m.failed == 0:
        _hand_over(m)


@bare
def _hand_over(m: ExecutorRecord) -> None:
    """The Python engine finds out why so much is left, and counts this step."""
    m.handed_over = 1
    set_failed(m)


#: What this engine gives a meaning; correctors that it knows are added for each method.
OPERATIONS: dict[str, Any] = {name: globals()[name] for name in KNOWN_OPERATIONS}
