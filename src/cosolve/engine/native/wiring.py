"""A plan as records of words and addresses: what compiled loops need to know, and why there may be none."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.corrector.algebra.linear_solve import SPARSE_FROM
from cosolve.engine.readable.serial import Serial
from cosolve.interface.plan import Plan
from cosolve.signal import History
from cosolve.subsystem.base import has_capability
from cosolve.subsystem.native import Native

Integers = npt.NDArray[np.int64]

#: From the next size on interface Jacobians are sparse.
_LARGEST = SPARSE_FROM - 1


# The words of the machine's own record, as compiled code reads them. Names in capitals are places; addresses unless
# said.
(
    N_SUBSYSTEMS,
    SUBSYSTEMS,
    N_COPIES,
    COPIES,  # pairs: row of z, entry of y
    N_LAWS,
    LAWS,
    Y,
    ARGUMENTS,
    VALUES,
    SLOPES,
    TROUBLE,
    ORDER,  # of a serial sweep
    KNOWN,  # the copies that are known after each place of it begin there; they, and the laws, come in this order
    LAWS_KNOWN,
    LAGGING,  # 1 for coupling variables that are read before they are known in that order
    N_Y,
    N_Z,
    # the step under way
    T0,  # a double
    T1,  # a double
    LENGTH,  # a double
    TROUBLED,  # 1: it is out of the ordinary
    CROSSING,  # a number of its own for the start of each step and for each crossing in it
    STEP,  # that of the start; flags hold the number for which they are set, so that none has to be taken down
    LEFT,  # the crossing after which somebody moved again
    BASE_KNOWN,  # the step that `BASE` belongs to
    ASKED_KNOWN,  # the crossing that `ASKED` belongs to
    RENEWED_NOW,  # the step in which the Jacobian was asked for
    JACOBIAN_KNOWN,  # the step that it belongs to
    KEEP,  # 1: it is the same in every step
    KEPT,  # 1: and there
    NOTED,  # the residual that the text notes; 0 where it does not
    COUNTERS,  # of this step: Jacobians and norms, in units of `JACOBIANS` and `NORM_COUNT`
    # signals
    HISTORY,  # rows of values, the newest first
    NODES,  # positions of these points
    WEIGHTS_KNOWN,  # bit d: extrapolation of degree d; _INTERPOLATION: those below
    PAST_WEIGHTS,  # the functions that make them
    END_WEIGHTS,
    MEANS,  # the history keeps, of the last signal of a step, 1: the mean, 2: the first half of the values, twice
    EXTRAPOLATION,  # addresses, by degree
    INTERPOLATION,
    N_NODES,  # of an interpolation
    BASE,  # of it: what does not depend on the end
    SCRATCH,  # twice the number of nodes and more
    # vectors: taken from here on, all given back at the end of a step
    ARENA,
    ARENA_LIMIT,  # a vector that begins before it fits in
    NEXT,
    ENDS,  # what the last signals ended in
    SIGNAL,  # of the last sweep
    ASKED,
    NEW,  # values as they become known in a serial sweep
    ACCEPTED,
    # the interface Jacobian
    SIZES,
    NOMINAL,
    OPEN,  # words: 1 for variables without a nominal value
    INCREMENT,  # a double
    EVERY,  # 1: renewed in every iteration
    DR_DY,
    G,
    ROWS,
    COLUMNS,
    SCALED,
    PIVOTS,
    INTEGERS,
    WORK,
    RATES,
    LAPACK,
    # the iteration
    PROBLEM,
    FILLED,  # norms so far
    CAPACITY,
    NORMS,
    PLAIN,  # words
    LEAST,
    START,  # a double: how large things are
    FIRST_NORM,  # a double
    LAST_NORM,  # a double
    RESIDUAL,  # a double
    # corrections (`engine/corrections.py`)
    UNCORRECTED,  # the residual that the step began with
    QUIET,  # a double: no residual up to this is looked at
    EXAMINATIONS,  # how often subsystems may still be tried out
    HANDED_OVER,  # 1: the step was, and nothing else was wrong
    MACHINE_WORDS,
) = range(81)

#: Room for so many norms per step, on average.
NORMS_PER_STEP = 64

#: The verbs that `verbs.py` gives a meaning; written down here, since that module is loaded only to compile.
VERBS = frozenset(
    (
        *("extrapolated", "predicted", "ending_in", "sweep", "rewind", "places", "open_signal", "cross", "end_known"),
        *("used", "asked", "residual", "minus", "solved", "another_problem", "met", "tried", "accept", "agreed"),
        *("remember", "note_residual", "left_too_much", "repeated"),
    )
)

#: Vectors and signals that a step may use; one that needs more is left to the readable engine.
ARENA_VECTORS = 256

#: Counts of one step share a word: sweeps, Jacobians, norms, and sweeps of the accepted attempt alone.
JACOBIANS, NORM_COUNT, OWN_SWEEPS = 1 << 16, 1 << 32, 1 << 48

#: The bit of `WEIGHTS_KNOWN` for the interpolation.
BIT_INTERPOLATION = 1 << 40

# Of a subsystem's record.
(
    CROSS,
    BEGIN,
    DATA,
    U,
    WIDTH,
    INPUTS,  # triples: entry of z or -1, factor, offset
    OUTPUTS,  # its part of y
    OUTPUTS_MOVED,  # the same for a crossing that is tried for a difference
    FIRST,  # entry of y
    SIZE,
    SAVE,
    RESTORE,
    STATE,
    SLOT,
    N_STATE,
    EXACT,  # 1: its Jacobian is constant
    NOISE,  # a double
    READS,  # entries of z
    N_READS,
    RESPONSE,  # d outputs / d coupling variables it reads, row by row
    RESPOND,  # where its own Jacobian is, if it changes from step to step
    BY_INPUT,  # what that writes: d outputs / d inputs
    COLUMN,  # per input: which of the coupling variables it reads, or -1
    PAST,  # rows of crossings that count (`engine/readable/past.py`), 0 where nobody wants them
    PAST_COUNT,
    PAST_ROOM,  # rows that there is room for
    PAST_LENGTH,  # numbers in a row
    _SUBSYSTEM_WORDS,
) = range(28)

# Of a law's.
LAW, PARTIALS, LAW_READS, N_LAW_READS, LAW_ROWS, N_LAW_ROWS, LAW_NOMINAL, _LAW_WORDS = range(8)

SUBSYSTEM_BYTES, LAW_BYTES = 8 * _SUBSYSTEM_WORDS, 8 * _LAW_WORDS


@dataclass
class Wiring:
    """Subsystems and connections for compiled loops: records of words that hold numbers and addresses.

    Compiled functions get `address`, that of the plan's record; everything else is found from there. `keep` holds what
    the addresses lead to.
    """

    plan: Integers
    subsystems: Integers
    laws: Integers
    responses: list[Vector]  # per subsystem
    reads: Integers  # how many coupling variables each subsystem reads
    trouble: Integers  # the subsystem that failed last (-1: a law), and its status (0: an output that is not finite)
    keep: list[Any]

    def put(self, **places: Any) -> None:
        """Words of the machine's record: whole numbers, doubles, or arrays by their address."""
        for name, value in places.items():
            place = globals()[name]
            if isinstance(value, float):
                self.plan.view(np.float64)[place] = value
            elif isinstance(value, np.ndarray):
                self.plan[place] = value.ctypes.data
            else:
                self.plan[place] = value

    def keep_past(self, i: int, rows: Matrix) -> None:
        """Subsystem `i` writes down its crossings there."""
        self.keep.append(rows)
        self.subsystems[i, [PAST, PAST_COUNT, PAST_ROOM, PAST_LENGTH]] = rows.ctypes.data, 0, *rows.shape

    def take_past(self, i: int) -> int:
        """How many rows subsystem `i` has written; the next ones begin anew."""
        count = int(self.subsystems[i, PAST_COUNT])
        self.subsystems[i, PAST_COUNT] = 0
        return count

    @property
    def address(self) -> int:
        """Of the plan's record."""
        return int(self.plan.ctypes.data)

    @property
    def exact(self) -> Integers:
        """1 for subsystems with a constant Jacobian; may be written."""
        return self.subsystems[:, EXACT]

    @property
    def respond(self) -> Integers:
        """Addresses of Jacobians that change from step to step, 0 where differences are taken; may be written."""
        return self.subsystems[:, RESPOND]

    @property
    def differenced(self) -> Integers:
        """How many differences the Jacobian of each subsystem takes."""
        return np.where((self.exact != 0) | (self.respond != 0), 0, self.reads)


def wire(
    plan: Plan, natives: list[Native], laws: list[tuple[int, int]], order: list[int], degree: int, past: History
) -> Wiring:
    """The records for subsystems and laws that have their addresses, with signals of this degree from such a past.

    Of a law: the address of the law, and of its partial derivatives (0 where nobody asks for them).
    """
    depth, reach = past.depth, past.reach
    rows = max(degree, depth) + 2
    keep: list[Any] = []

    def at(array: Any) -> int:
        keep.append(array)
        return int(array.ctypes.data)

    def words(values: Any) -> int:
        return at(np.array(values, dtype=np.int64).reshape(-1))

    count = plan.n_subsystems
    inputs = np.zeros((len(plan.u_source), 3))
    inputs.view(np.int64)[:, 0] = plan.u_source
    inputs[:, 1], inputs[:, 2] = np.where(plan.u_source >= 0, plan.u_factor, 0.0), plan.u_offset
    y, moved = np.zeros(plan.n_y), np.zeros(plan.n_y)
    records, responses = np.zeros((count, _SUBSYSTEM_WORDS), np.int64), []
    for i, native in enumerate(natives):
        width, reads = plan.input_ports[i].length, plan.reads(i)
        first, size = plan.y_slices[i].start, plan.output_ports[i].length
        responses.append(np.zeros(size * len(reads)))
        record = records[i]
        record[[CROSS, BEGIN, DATA]] = native.cross, native.begin, native.data
        record[[U, WIDTH]] = at(np.zeros(max(1, rows * width))), width
        record[INPUTS] = at(inputs) + inputs.strides[0] * plan.u_slices[i].start
        record[[OUTPUTS, OUTPUTS_MOVED, FIRST, SIZE]] = at(y) + 8 * first, at(moved) + 8 * first, first, size
        record[[SAVE, RESTORE, STATE, N_STATE]] = native.save, native.restore, at(native.state), len(native.state)
        record[SLOT] = at(np.zeros(max(1, len(native.state))))
        record.view(np.float64)[NOISE] = (
            0.0 if has_capability(plan.subsystems[i], "replay") else plan.subsystems[i].noise ** 0.5
        )
        record[[READS, N_READS, RESPONSE]] = words(reads), len(reads), at(responses[i])
        source = plan.u_source[plan.u_slices[i]]
        record[[BY_INPUT, COLUMN]] = (
            at(np.zeros(size * width if native.response else 0)),
            words(np.where(source >= 0, np.searchsorted(reads, source), -1)),
        )
    place = {i: k for k, i in enumerate(order)}
    copied = np.array([place[int(i)] for i in plan.y_owner[plan.copy_from]], np.int64)
    copies = np.argsort(copied, kind="stable")
    found = [max((place[i] for i in plan.owners(block)), default=0) for block in plan.blocks]
    blocks = [(plan.blocks[b], laws[b]) for b in np.argsort(np.array(found, np.int64), kind="stable")]
    of_laws = np.zeros((len(blocks), _LAW_WORDS), np.int64)
    for record, (block, addresses) in zip(of_laws, blocks, strict=True):
        record[[LAW, PARTIALS]] = addresses
        record[[LAW_READS, N_LAW_READS]] = words(block.y_index), len(block.y_index)
        record[[LAW_ROWS, N_LAW_ROWS, LAW_NOMINAL]] = words(block.rows), len(block.rows), at(block.y_nominal)
    takes, gives = (max((len(getattr(b, name)) for b, _ in blocks), default=1) for name in ("y_index", "rows"))
    trouble, head = np.zeros(2, np.int64), np.zeros(MACHINE_WORDS, np.int64)
    head[[N_SUBSYSTEMS, SUBSYSTEMS, N_LAWS, LAWS]] = count, at(records), len(blocks), at(of_laws)
    head[[N_COPIES, COPIES]] = len(copies), words(np.column_stack([plan.copy_rows, plan.copy_from])[copies])
    head[[Y, TROUBLE, ORDER]] = at(y), at(trouble), words(order)
    head[LAGGING] = words(Serial(plan, order).lagging)
    sizes = takes, 2 * gives, takes * gives  # values of a law twice, for differences
    head[[ARGUMENTS, VALUES, SLOPES]] = [at(np.zeros(max(1, size))) for size in sizes]
    head[[KNOWN, LAWS_KNOWN]] = [
        words(np.searchsorted(np.sort(at_place), range(count + 1))) for at_place in (copied, found)
    ]
    head[[N_Y, N_Z, N_NODES]] = plan.n_y, plan.n_z, degree + 1
    n_z, doubles = plan.n_z, head.view(np.float64)
    nodes = np.array([1.0, *(-float(j) for j in range(depth + 2))])
    head[NODES], head[WEIGHTS_KNOWN] = at(nodes) + 8, -1
    extrapolation = [np.array(past.past_weights(tuple(nodes[1 : d + 2 + reach]))) for d in range(depth + 1)]
    head[EXTRAPOLATION] = words([at(weights) for weights in extrapolation])
    head[INTERPOLATION] = at(
        np.array(past.end_weights(tuple(nodes[: degree + 1 + reach]))) if degree else np.ones((1, 1))
    )
    head[BASE], head[SCRATCH] = at(np.zeros((degree + 1) * n_z)), at(np.zeros((depth + 3) ** 2 + 2 * depth + 8))
    head[MEANS] = reach
    arena, largest = np.zeros(ARENA_VECTORS * (rows + 1) * n_z), (rows + 1) * n_z
    head[[ARENA, ARENA_LIMIT, NEXT]] = at(arena), at(arena) + arena.nbytes - 8 * largest, at(arena)
    head[[NEW, ENDS, SIGNAL, ASKED, ACCEPTED]] = at(np.zeros(n_z))
    head[[DR_DY, G, SCALED]] = at(np.zeros(n_z * plan.n_y + 1)), at(np.zeros(n_z * n_z)), at(np.zeros(n_z * n_z))
    head[[ROWS, COLUMNS, WORK, RATES]] = [at(np.zeros(size)) for size in (n_z, n_z, 4 * n_z, 2)]
    head[[PIVOTS, INTEGERS]] = at(np.zeros(n_z, np.int64)), at(np.zeros(4 + n_z, np.int64))
    doubles[[LAST_NORM, RESIDUAL]] = np.nan
    return Wiring(head, records, of_laws, responses, records[:, N_READS].copy(), trouble, keep)


def obstacle(plan: Plan) -> str | None:
    """Why this plan cannot be wired at all, or None."""
    if plan.n_z > _LARGEST:
        return f"it has {plan.n_z} coupling variables, and compiled loops are for at most {_LARGEST}"
    if not plan.n_z:
        return "nothing is coupled"
    if plan.changes.listed:
        return "parameters change during the run"
    if plan.driven:
        return f"'{plan.driven[0].target}' follows a function of time, which the readable engine evaluates"
    for name, subsystem in zip(plan.names, plan.subsystems, strict=True):
        if not has_capability(subsystem, "compiled crossing"):
            return f"'{name}' ({type(subsystem).__name__}) has no compiled crossing"
    for block in plan.blocks:
        if block.implicit:
            return f"{block.label} is solved by the readable engine"
        if not is_compiled(block.function):
            return f"{block.label} is a plain Python function; decorate it with numba.njit"
        if block.jacobian is not None:
            return f"{block.label} has a Jacobian of its own, which the readable engine calls"
    return None


def is_compiled(function: object) -> bool:
    """True for functions jitted by numba, and for C functions (`ctypes`) of doubles that return a double.

    >>> is_compiled(lambda x: x)
    False
    """
    takes = getattr(function, "argtypes", None)
    if takes is not None:
        return all(kind is ctypes.c_double for kind in (getattr(function, "restype", None), *takes))
    return hasattr(function, "py_func") and hasattr(function, "nopython_signatures")
