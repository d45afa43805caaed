"""Advancing over a step in another process from compiled code, with compiled code at the other end.

Both processes share memory: a request with its counter, an answer with its counter, and a flag per side that says
"asleep". The writer stores its counter; the reader spins on the counter, then yields the core, then sets its flag and
sleeps on the pipe between the two, in Python (`native_exchange.py`), which also notices when the other side is gone. A
writer that finds the flag exchanges it for 0 and sends one wake-up. All these words are atomic and sequentially
consistent (`jit/atomics.py`); invariants: docs/architecture/process.md.

Rollback needs no message of its own: `save` and `restore` are noted here and done there before the next subsystem step.
"""

from __future__ import annotations

from cosolve.jit import (
    ADVANCE_CALL,
    KEEPING,
    call_advance,
    call_keep,
    call_nothing,
    call_two,
    called,
    double_at,
    exchange,
    load,
    njit,
    part,
    pause,
    put_double_at,
    store,
    types,
    words_at,
)

# The slots of one side, known to that side only. COUNT: of the last request. MINE, THEIRS: the flags. CALLBACK:
# Python's `f(what, count) -> status`. SPINS, YIELDS: how often to load before yielding, before sleeping. DOUBT: waits
# left in which the other side is taken to need this core.
REQUEST, ANSWER, COUNT, MINE, THEIRS, CALLBACK, YIELD, SPINS, YIELDS, DOUBT = range(10)
# near: may it ask, has it asked, what is to be done first, inputs, outputs, maximum of rows
READY, ASKED, KEPT, WIDTH, GIVES, MAX_ROWS = range(10, 16)
INNER, BEGIN, DATA, SAVE, RESTORE, STATE, SLOT, SIZE, STATUS = range(16, 25)  # far: its subsystem
LOST = 25  # 1: Python was interrupted before it heard what it was told
WORDS = 26
DOUBTS = 1000

# words of a request and of an answer, in the memory that both see
COUNTER, MODE, KEEP, ROWS, T0, T1, STEP, COEFFICIENTS = range(8)
RESULT, STAGE, OUTPUTS = range(1, 4)

LEAVE = -1  # a mode of its own
NOTHING, TO_SAVE, TO_RESTORE = range(3)
SLEEP, WAKE, CONSUME = range(3)  # for CALLBACK
DONE, OVER = (
    0x5D0E,
    0x50FE,
)  # what CALLBACK says; anything else is what is left of a call in which an exception was lost
GONE = 1 << 30  # a status of its own: there is no answer, and Python knows why


@part
def _tell(w: list[int], what: int) -> bool:
    """Python does it; True when that is done."""
    said = call_two(w[CALLBACK], what, w[COUNT])
    if said != DONE and said != OVER:  # Ctrl-C just before the first line of Python: its exception is gone
        w[LOST] = 1
        if what != SLEEP:
            said = call_two(w[CALLBACK], what, w[COUNT])
    return said == DONE


@part
def _publish(w: list[int], counter: int) -> None:
    """The request (or answer) is written: store its counter, wake the other side where it sleeps."""
    store(counter, w[COUNT])
    if load(w[THEIRS]) != 0 and exchange(w[THEIRS], 0) != 0:
        _tell(w, WAKE)


@part
def _wait(w: list[int], counter: int) -> int:
    """Until the other side has stored this count; anything but 0 when it will not."""
    awaited = w[COUNT]
    if w[DOUBT] > 0:
        w[DOUBT] -= 1
    else:
        for _ in range(w[SPINS]):
            if load(counter) == awaited:
                return 0
            pause()
        w[DOUBT] = DOUBTS
    for _ in range(w[YIELDS]):
        if load(counter) == awaited:
            return 0
        if w[YIELD] != 0:
            call_nothing(w[YIELD])
        else:
            pause()
    exchange(w[MINE], 1)
    status = 0
    while load(counter) != awaited:
        if w[LOST] != 0 or not _tell(w, SLEEP):
            status = 1
            break
        exchange(w[MINE], 1)
    if exchange(w[MINE], 0) == 0 and status == 0:  # a wake-up is on its way
        _tell(w, CONSUME)
    return status


# -- the side of the run ----------------------------------------------------------------------------------------------


@part
def _ask(w: list[int], mode: int, n: int) -> None:
    """Send what stands in the request."""
    request = words_at(w[REQUEST])
    request[MODE], request[KEEP], request[ROWS] = mode, w[KEPT], n
    w[COUNT] += 1
    _publish(w, w[REQUEST])


@part
def _heard(w: list[int]) -> int:
    """Wait for the answer to what was asked, if anything was; 0, or GONE."""
    if w[ASKED] != 0:
        w[ASKED] = 0
        if _wait(w, w[ANSWER]) != 0:
            w[READY] = 0
        elif words_at(w[ANSWER])[STAGE] == NOTHING:  # otherwise what was kept for it is still to be done
            w[KEPT] = NOTHING
    return 0 if w[READY] != 0 else GONE


@called(ADVANCE_CALL)
def begin(data: int, mode: int, t0: float, t1: float, H: float, n: int, coefficients: int, outputs: int) -> int:
    """Ask for the subsystem step; the run does something else until it wants the answer."""
    w = words_at(data)
    if n > w[MAX_ROWS] or _heard(w) != 0:
        return GONE
    request = w[REQUEST]
    put_double_at(request, T0, t0)
    put_double_at(request, T1, t1)
    put_double_at(request, STEP, H)
    for k in range(n * w[WIDTH]):
        put_double_at(request, COEFFICIENTS + k, double_at(coefficients, k))
    _ask(w, mode, n)
    w[ASKED] = 1
    return 0


@called(ADVANCE_CALL)
def advance(data: int, mode: int, t0: float, t1: float, H: float, n: int, coefficients: int, outputs: int) -> int:
    """Read the answer."""
    w = words_at(data)
    if _heard(w) != 0:
        return GONE
    for k in range(w[GIVES]):
        put_double_at(outputs, k, double_at(w[ANSWER], OUTPUTS + k))
    return words_at(w[ANSWER])[RESULT]


@called(KEEPING)
def save(data: int) -> int:
    """Keep the state there before the next subsystem step; after a way back that is the state already kept."""
    w = words_at(data)
    _heard(w)
    if w[KEPT] != TO_RESTORE:
        w[KEPT] = TO_SAVE
    return 0


@called(KEEPING)
def restore(data: int) -> int:
    """Go back there before the next subsystem step; nothing to do when there was none since the state was kept."""
    w = words_at(data)
    _heard(w)
    if w[KEPT] != TO_SAVE:
        w[KEPT] = TO_RESTORE
    return 0


@njit(types.void(types.intp), cache=True)
def dismiss(data: int) -> None:
    """Let the far side leave its loop; it does not answer that."""
    w = words_at(data)
    if _heard(w) == 0:
        _ask(w, LEAVE, 0)
    w[READY], w[KEPT] = 0, NOTHING


# -- the side of the subsystem ----------------------------------------------------------------------------------------


@part
def _keep(w: list[int], what: int) -> int:
    """Save or restore the subsystem."""
    if what == TO_SAVE and w[SAVE] != 0:
        return call_keep(w[SAVE], w[DATA])
    if what == TO_RESTORE and w[RESTORE] != 0:
        return call_keep(w[RESTORE], w[DATA])
    source, target = (w[STATE], w[SLOT]) if what == TO_SAVE else (w[SLOT], w[STATE])
    for k in range(w[SIZE]):
        put_double_at(target, k, double_at(source, k))
    return 0


@njit(types.int64(types.intp), cache=True, nogil=True)
def serve(data: int) -> int:
    """Answer until told to leave (0) or until the run is gone (1). Python's other threads run meanwhile."""
    w = words_at(data)
    request, answer = words_at(w[REQUEST]), words_at(w[ANSWER])
    while True:
        w[COUNT] += 1
        if _wait(w, w[REQUEST]) != 0:
            return 1
        status, stage, mode = 0, request[KEEP], request[MODE]
        if stage != NOTHING and (mode != LEAVE or stage == TO_RESTORE):
            status = _keep(w, stage)
        if mode == LEAVE:
            w[STATUS] = status
            return 0
        if status == 0:
            stage = NOTHING
            at, gives, n = w[REQUEST], w[ANSWER] + 8 * OUTPUTS, request[ROWS]
            t0, t1, H, given = double_at(at, T0), double_at(at, T1), double_at(at, STEP), at + 8 * COEFFICIENTS
            if w[BEGIN] != 0:
                status = call_advance(w[BEGIN], w[DATA], mode, t0, t1, H, n, given, gives)
            if status == 0:
                status = call_advance(w[INNER], w[DATA], mode, t0, t1, H, n, given, gives)
        answer[RESULT], answer[STAGE] = status, stage
        _publish(w, w[ANSWER])
