"""The native engine: the verbs of `verbs.py` as machine code on one record of words (`wiring.py`).

`m` is the address of the record. Vectors are addresses of doubles that live until the end of the step, signals are
pairs of an address and a number of rows. A step that is out of the ordinary (a failed crossing, a NaN, a singular
Jacobian, an iteration that stands still) is not decided here: it sets a flag, after which nothing more is called, and
`loops.py` takes the step back for the readable engine. All numbers are formed as that engine forms them; tests hold the
two to the same bits.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

from types import FunctionType
from typing import Any

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
    has,
    largest,
    law,
    mark,
    restore_all,
    subsystem,
    take,
    trouble,
    troubled,
)
from cosolve.engine.native.wiring import (
    ACCEPTED,
    ASKED,
    ASKED_KNOWN,
    BASE,
    BASE_KNOWN,
    BIT_INTERPOLATION,
    CAPACITY,
    COPIES,
    COUNTERS,
    CROSSING,
    END_WEIGHTS,
    ENDS,
    EVERY,
    EXAMINATIONS,
    EXTRAPOLATION,
    FILLED,
    FIRST_NORM,
    HANDED_OVER,
    HISTORY,
    INTERPOLATION,
    JACOBIAN_KNOWN,
    JACOBIANS,
    KEEP,
    KEPT,
    KNOWN,
    LAGGING,
    LAST_NORM,
    LAW_ROWS,
    LAWS_KNOWN,
    LEFT,
    MEANS,
    N_LAW_ROWS,
    N_NODES,
    N_SUBSYSTEMS,
    N_Z,
    NEW,
    NODES,
    NOMINAL,
    NORM_COUNT,
    NORMS,
    NOTED,
    OPEN,
    ORDER,
    OUTPUTS,
    PAST_WEIGHTS,
    PLAIN,
    PROBLEM,
    QUIET,
    RENEWED_NOW,
    RESIDUAL,
    SCRATCH,
    SIGNAL,
    SIZES,
    START,
    STEP,
    UNCORRECTED,
    WEIGHTS_KNOWN,
    Y,
)
from cosolve.jit import (
    bare,
    c_address,
    c_call,
    compiled,
    double_at,
    doubles_at,
    part,
    put_double_at,
    put_word_at,
    short_loop,
    types,
    word_at,
)
from cosolve.signal.bdf import fill_bdf_weights, fill_mean_weights
from cosolve.signal.polynomial import fill_weights
from cosolve.subsystem.native import ADVANCE

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
    room = doubles_at(scratch), doubles_at(scratch + 8 * (count + 1))
    _fill_weights(doubles_at(nodes), count, doubles_at(out), room[0], room[1])
    return 0


@compiled
def _means(nodes: int, count: int, out: int, scratch: int) -> int:
    whole = scratch + 8 * 2 * (count + 2)
    room = doubles_at(whole), doubles_at(scratch), doubles_at(scratch + 8 * (count + 2))
    _fill_mean_weights(doubles_at(nodes), count, doubles_at(out), room[0], room[1], room[2])
    return 0


@compiled
def _bdf(nodes: int, count: int, out: int, scratch: int) -> int:
    whole = scratch + 8 * 2 * (count + 2)
    room = doubles_at(whole), doubles_at(scratch), doubles_at(scratch + 8 * (count + 2))
    _fill_bdf_weights(doubles_at(nodes), count, doubles_at(out), room[0], room[1], room[2])
    return 0


#: The functions for the weights of past values and of end values, by kind of signal.
_WEIGHTS = {"lagrange": (_lagrange, _lagrange), "bdf": (_means, _bdf)}


def node_weights(signal: str) -> dict[str, int]:
    """Where the code for them is: called by address, so that no loop has it inside, which seldom needs it."""
    past, end = _WEIGHTS[signal]
    return {"PAST_WEIGHTS": c_address(past, _FOUR_WORDS), "END_WEIGHTS": c_address(end, _FOUR_WORDS)}


@part
def _weigh(m, known, function, nodes, count, out):
    """Node weights for this step, unless they are there."""
    if word_at(m, WEIGHTS_KNOWN) & known == 0:
        _call_four(word_at(m, function), nodes, count, out, word_at(m, SCRATCH))
        put_word_at(m, WEIGHTS_KNOWN, word_at(m, WEIGHTS_KNOWN) | known)


@part
def extrapolated(m, degree):
    """Coefficients of the extrapolated signals; those of degree 0 are the newest values themselves."""
    values, n_z = word_at(m, HISTORY), word_at(m, N_Z)
    if degree == 0:
        return values, 1
    n, weights = degree + 1, word_at(word_at(m, EXTRAPOLATION), degree)
    _weigh(m, 1 << degree, PAST_WEIGHTS, word_at(m, NODES), n, weights)
    at = take(m, n * n_z)
    combine(weights, n, 0, n, n, values, n_z, at)
    return at, n


@part
def predicted(m, degree):
    """The ends of those signals."""
    at, n = extrapolated(m, degree)
    n_z = word_at(m, N_Z)
    z = take(m, n_z)
    for q in range(n_z):
        total = double_at(at, q)
        for j in range(1, n):
            short_loop()
            total += double_at(at, j * n_z + q)
        put_double_at(z, q, total)
    return z


@part
def remembered(m, z):
    """What the history keeps of a step that came to `z`: that, or what `MEANS` says of the signal applied last."""
    if word_at(m, MEANS) == 0:
        return z
    n, n_z, signal = word_at(m, N_NODES), word_at(m, N_Z), word_at(m, SIGNAL)
    mean = take(m, n_z)
    if word_at(m, MEANS) == 2:
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
def _make_base(m):
    """The part of interpolated signals that does not depend on their end."""
    n, n_z = word_at(m, N_NODES), word_at(m, N_Z)
    if not has(m, BASE_KNOWN):
        if n > 1:
            weights = word_at(m, INTERPOLATION)
            nodes = word_at(m, NODES) - 8  # the end of the step stands before them
            _weigh(m, BIT_INTERPOLATION, END_WEIGHTS, nodes, n, weights)
            combine(weights, n, 1, n - 1, n, word_at(m, HISTORY), n_z, word_at(m, BASE))
        mark(m, BASE_KNOWN)


@part
def ending_in(m, z):
    """Coefficients of the signals that end in `z`."""
    _make_base(m)
    n, n_z, base, weights = word_at(m, N_NODES), word_at(m, N_Z), word_at(m, BASE), word_at(m, INTERPOLATION)
    at = take(m, n * n_z)
    for j in range(n):
        weight = double_at(weights, j * n)
        for q in range(n_z):
            short_loop()
            put_double_at(at, j * n_z + q, double_at(base, j * n_z + q) + weight * double_at(z, q))
    put_word_at(m, ENDS, z)
    return at, n


# -- crossing the step -----------------------------------------------------------------------------------------------


@part
def _leave_start(m):
    put_word_at(m, CROSSING, word_at(m, CROSSING) + 1)


@part
def sweep(m, signal):
    """All subsystems cross the step; their outputs go to `Y`."""
    at, n = signal
    _leave_start(m)
    put_word_at(m, SIGNAL, at)
    if not troubled(m):
        for i in range(word_at(m, N_SUBSYSTEMS)):
            if begin(m, i, ADVANCE, n, at) != GOOD:
                return
        for i in range(word_at(m, N_SUBSYSTEMS)):
            if finish(m, i, ADVANCE, n, word_at(subsystem(m, i), OUTPUTS)) != GOOD:
                return


@part
def rewind(m):
    """Back to the start of the step."""
    if word_at(m, CROSSING) != word_at(m, STEP) and not troubled(m) and restore_all(m) != 0:
        trouble(m)


@part
def places(m):
    """The places of a serial sweep."""
    return range(word_at(m, N_SUBSYSTEMS))


@part
def open_signal(m, signal):
    """A copy with as many rows as an interpolation needs."""
    given, n = signal
    _leave_start(m)
    _make_base(m)
    n_z, rows = word_at(m, N_Z), max(n, word_at(m, N_NODES))
    at = take(m, rows * n_z)
    copy(given, at, n * n_z)
    for k in range(n * n_z, rows * n_z):
        short_loop()
        put_double_at(at, k, 0.0)
    return at, rows


@part
def cross(m, place, signal):
    """The subsystem at this place of the order crosses."""
    at, n = signal
    if not troubled(m):
        i = word_at(word_at(m, ORDER), place)
        if begin(m, i, ADVANCE, n, at) == GOOD:
            finish(m, i, ADVANCE, n, word_at(subsystem(m, i), OUTPUTS))


@part
def end_known(m, place, signal):
    """What it makes known replaces what was guessed."""
    at, rows = signal
    new = word_at(m, NEW)
    if not troubled(m):
        for k in range(word_at(word_at(m, KNOWN), place), word_at(word_at(m, KNOWN), place + 1)):
            row = word_at(word_at(m, COPIES), 2 * k)
            put_double_at(new, row, double_at(word_at(m, Y), word_at(word_at(m, COPIES), 2 * k + 1)))
            _end_in(m, at, rows, row, double_at(new, row))
        for b in range(word_at(word_at(m, LAWS_KNOWN), place), word_at(word_at(m, LAWS_KNOWN), place + 1)):
            if not troubled(m) and evaluate_law(m, b, new) == GOOD:
                for k in range(word_at(law(m, b), N_LAW_ROWS)):
                    row = word_at(word_at(law(m, b), LAW_ROWS), k)
                    _end_in(m, at, rows, row, double_at(new, row))


@part
def _end_in(m, at, rows, row, value):
    """The signal of coupling variable `row` ends in `value`."""
    n, n_z, base, weights = word_at(m, N_NODES), word_at(m, N_Z), word_at(m, BASE), word_at(m, INTERPOLATION)
    for j in range(rows):
        short_loop()
        known = 0.0
        if j < n:
            known = double_at(base, j * n_z + row) + double_at(weights, j * n) * value
        put_double_at(at, j * n_z + row, known)


@part
def used(m, z):
    """Guessed values where they were read before they were known."""
    n_z, new, lagging = word_at(m, N_Z), word_at(m, NEW), word_at(m, LAGGING)
    at = take(m, n_z)
    for q in range(n_z):
        short_loop()
        put_double_at(at, q, double_at(z, q) if word_at(lagging, q) != 0 else double_at(new, q))
    put_word_at(m, ENDS, at)
    return at


# -- coupling variables and their equations --------------------------------------------------------------------------


@part
def asked(m):
    """The coupling variables that the outputs ask for; evaluated once per crossing."""
    if word_at(m, ASKED_KNOWN) == word_at(m, CROSSING):
        return word_at(m, ASKED)
    at = take(m, word_at(m, N_Z))
    if not troubled(m):
        evaluate(m, at)
    put_word_at(m, ASKED, at)
    put_word_at(m, ASKED_KNOWN, word_at(m, CROSSING))
    return at


@part
def residual(m, z):
    """`z - f(y)`."""
    return minus(m, z, asked(m))


@part
def minus(m, a, b):
    """`a - b`."""
    n_z = word_at(m, N_Z)
    at = take(m, n_z)
    for q in range(n_z):
        short_loop()
        put_double_at(at, q, double_at(a, q) - double_at(b, q))
    return at


@part
def solved(m, r):
    """`dz` with `G dz = r`; `G` is made anew as often as the corrector wants, unless it is always the same."""
    dz = take(m, word_at(m, N_Z))
    if word_at(m, COUNTERS) < NORM_COUNT:
        put_word_at(m, UNCORRECTED, r)
    if not troubled(m):
        if word_at(m, EVERY) != 0 or not has(m, RENEWED_NOW):
            put_word_at(m, COUNTERS, word_at(m, COUNTERS) + JACOBIANS)
            mark(m, RENEWED_NOW)
            if not has(m, JACOBIAN_KNOWN) and word_at(m, KEPT) == 0:
                put_word_at(m, LEFT, word_at(m, CROSSING))
                if output_partials(m) != GOOD or jacobian(m) != GOOD or factorise(m) != GOOD:
                    trouble(m)
                if word_at(m, EVERY) == 0:
                    mark(m, JACOBIAN_KNOWN)
                put_word_at(m, KEPT, word_at(m, KEEP))
        if not troubled(m) and solve(m, r, dz) != GOOD:
            trouble(m)
    return dz


# -- iterations ------------------------------------------------------------------------------------------------------


@part
def another_problem(m):
    """True once."""
    first = word_at(m, PROBLEM) == 0
    put_word_at(m, PROBLEM, 1 if first else 0)
    return first


@part
def met(m, z, r, tol, max_iterations, accept_unconverged):
    """True when the tolerance is met; also when the readable engine must find the words."""
    n_z, filled, counters = word_at(m, N_Z), word_at(m, FILLED), word_at(m, COUNTERS)
    count = counters // NORM_COUNT
    if count == 0:
        start = largest(word_at(m, SIZES), n_z) + largest(z, n_z) + largest(r, n_z)
        put_double_at(m, START, start)
    norm = norm_of(m, z, r)
    if count == 0:
        put_double_at(m, FIRST_NORM, norm)
        put_word_at(m, UNCORRECTED, r)
    before = double_at(m, LAST_NORM)
    if filled < word_at(m, CAPACITY):
        put_double_at(word_at(m, NORMS), filled, norm)
    else:
        trouble(m)
    put_double_at(m, LAST_NORM, norm)
    put_word_at(m, FILLED, filled + 1)
    put_word_at(m, COUNTERS, counters + NORM_COUNT)
    if count > 0 and largest(z, n_z) > LOST * double_at(m, START):
        trouble(m)
    if troubled(m) or norm <= tol:
        return True
    hopeless = count + 1 > max_iterations or not norm < DIVERGED * max(double_at(m, FIRST_NORM), 1.0)
    if hopeless or (count > 0 and norm > 0.5 * before):
        trouble(m)
        return True
    looked_at = count == 1 and counters % NORM_COUNT >= JACOBIANS and word_at(m, EXAMINATIONS) != 0
    if looked_at and norm > max(MUCH * before, LEAST):
        _hand_over(m)
        return True
    return False


@part
def tried(m, z):
    """Whether the last crossing ended in these values and nobody has moved since."""
    crossing = word_at(m, CROSSING)
    return crossing != word_at(m, STEP) and crossing != word_at(m, LEFT) and word_at(m, ENDS) == z


@part
def left_too_much(m, z, r):
    """Never here: the readable engine repeats a correction that has left too much, and so takes the step again."""
    if largest(r, word_at(m, N_Z)) > double_at(m, QUIET):
        _judge_correction(m, z, r)
    return False


@part
def repeated(m, z, r):
    """Not called."""
    return z


@part
def accept(m, z):
    """The answer to the only problem."""
    put_word_at(m, ACCEPTED, z)


@part
def agreed(m):
    """That answer."""
    return word_at(m, ACCEPTED)


# -- books -----------------------------------------------------------------------------------------------------------


@part
def remember(m, z):
    """Let the sizes grow; not in a step that will be taken back."""
    sizes = word_at(m, SIZES)
    if not troubled(m):
        for q in range(word_at(m, N_Z)):
            short_loop()
            put_double_at(sizes, q, max(double_at(sizes, q), abs(double_at(z, q))))
        greatest, nominal, is_open = largest(sizes, word_at(m, N_Z)), word_at(m, NOMINAL), word_at(m, OPEN)
        for q in range(word_at(m, N_Z)):
            short_loop()
            if word_at(is_open, q) != 0:
                put_double_at(sizes, q, max(double_at(sizes, q), min(double_at(nominal, q), greatest)))


@part
def note_residual(m, r):
    """The residual of the values that are used, and its largest entry."""
    put_double_at(m, RESIDUAL, largest(r, word_at(m, N_Z)))
    put_word_at(m, NOTED, r)


_is_too_much: Any = bare(is_too_much)


@bare
def _judge_correction(m, z, r):
    counters = word_at(m, COUNTERS)
    if counters < JACOBIANS or counters >= NORM_COUNT:  # not corrected, or iterated
        return
    sizes, plain, before = word_at(m, SIZES), word_at(m, PLAIN), word_at(m, UNCORRECTED)
    began = left = 0.0
    for q in range(word_at(m, N_Z)):
        short_loop()
        end, over = double_at(z, q), double_at(r, q)
        unit = 1.0 if word_at(plain, q) != 0 else max(double_at(sizes, q), max(abs(end), abs(end - over)))
        unit = max(unit, TINY)
        began = max(began, abs(double_at(before, q)) / unit)
        left = max(left, abs(over) / unit)
    tried_out = word_at(m, EXAMINATIONS) != 0 and left > max(LITTLE * began, LEAST)
    if (tried_out or _is_too_much(began, left)) and not troubled(m):
        _hand_over(m)


@bare
def _hand_over(m):
    """The readable engine finds out why so much is left, and counts this step."""
    put_word_at(m, HANDED_OVER, 1)
    trouble(m)


#: What this engine gives a meaning; correctors that it knows are added for each method.
VERBS: dict[str, Any] = {
    verb.__name__: verb
    for verb in (
        *(extrapolated, predicted, ending_in, sweep, rewind, places, open_signal, cross, end_known, used, asked),
        *(residual, minus, solved, another_problem, met, tried, accept, agreed, remember, note_residual),
        *(left_too_much, repeated),
    )
}
