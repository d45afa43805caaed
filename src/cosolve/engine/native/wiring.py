"""A plan as records of words and addresses: what compiled loops need to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.records import Record, fill
from cosolve.corrector.algebra.linear_solve import SPARSE_FROM
from cosolve.engine.python.serial import Serial
from cosolve.engine.step_functions import OPERATION_NAMES
from cosolve.interface.plan import Plan
from cosolve.signal import History
from cosolve.subsystem.base import has_capability
from cosolve.subsystem.native import Native

Integers = npt.NDArray[np.int64]

#: From the next size on interface Jacobians are sparse.
LARGEST = SPARSE_FROM - 1

#: Room for so many norms per step, on average.
NORMS_PER_STEP = 64

#: The operations that `engine/native/operations.py` gives a meaning, a module that is loaded only to compile.
OPERATIONS = OPERATION_NAMES - {"leader_step", "reevaluated", "corrected"}

#: Vectors and signals that a step may use; one that needs more is left to the Python engine.
ARENA_VECTORS = 256

#: Counts of one step share a word: sweeps, Jacobians, norms, and sweeps of the accepted attempt alone.
JACOBIANS, NORM_COUNT, OWN_SWEEPS = 1 << 16, 1 << 32, 1 << 48

#: The bit of `WEIGHTS_KNOWN` for the interpolation.
BIT_INTERPOLATION = 1 << 40


class ExecutorRecord(Record):
    """The executor's own record, as compiled code reads it. Fields are addresses unless said."""

    n_subsystems: int
    subsystems: int
    n_copies: int
    copies: int  # pairs: row of z, entry of y
    n_laws: int
    laws: int
    y: int
    arguments: int
    values: int
    slopes: int
    failure: int
    order: int  # of a serial sweep
    known: int  # the copies that are known after each place of it begin there; they, and the laws, come in this order
    laws_known: int
    lagging: int  # 1 for coupling variables that are read before they are known in that order
    n_y: int
    n_z: int
    # the step under way
    t0: float
    t1: float
    length: float
    failed: int  # 1: it is out of the ordinary
    advance_count: int  # a number of its own for the start of each step and for each subsystem step in it
    step: int  # that of the start; flags hold the number for which they are set, so that none has to be taken down
    left: int  # the subsystem step after which a subsystem advanced again
    base_known: int  # the step that `BASE` belongs to
    asked_known: int  # the advancing over that `ASKED` belongs to
    renewed_now: int  # the step in which the Jacobian was asked for
    jacobian_known: int  # the step that it belongs to
    keep: int  # 1: it is the same in every step
    kept: int  # 1: and there
    noted: int  # the residual that the step function records; 0 where it does not
    counters: int  # of this step: Jacobians and norms, in units of `JACOBIANS` and `NORM_COUNT`
    # signals
    history: int  # rows of values, the newest first
    nodes: int  # positions of these points
    weights_known: int  # bit d: extrapolation of degree d; _INTERPOLATION: those below
    past_weights: int  # the functions that make them
    end_weights: int
    means: int  # the history keeps, of the last signal of a step, 1: the mean, 2: the first half of the values, twice
    extrapolation: int  # addresses, by degree
    highest: int  # degree that the past allows
    interpolation: int
    n_nodes: int  # of an interpolation
    base: int  # of it: what does not depend on the end
    scratch: int  # twice the number of nodes and more
    # vectors: taken from here on, all given back at the end of a step
    arena: int
    arena_limit: int  # a vector that begins before it fits in
    next: int
    ends: int  # what the last signals ended in
    signal: int  # of the last sweep
    asked: int
    new: int  # values as they become known in a serial sweep
    accepted: int
    # the interface Jacobian
    sizes: int
    y_sizes: int
    y_open: int
    open: int  # words: 1 for variables without a nominal value
    increment: float
    every: int  # 1: renewed in every iteration
    dr_dy: int
    g: int
    rows: int
    columns: int
    scaled: int
    pivots: int
    integers: int
    work: int
    rates: int
    lapack: int
    # the iteration
    problem: int
    filled: int  # norms so far
    capacity: int
    norms: int
    plain: int  # words
    least: int
    start: float  # how large things are
    first_norm: float
    last_norm: float
    residual: float
    # corrections (`engine/corrections.py`)
    uncorrected: int  # the residual that the step began with
    quiet: float  # no residual up to this is looked at
    examinations: int  # how often subsystems may still be tried out
    handed_over: int  # 1: the step was, and nothing else was wrong
    # what a shadow adds in this step (`engine/native/given.py`); 0 in a run
    added: int  # rows of coefficients, for all inputs
    added_rows: int
    added_ends: int  # to predicted values
    n_u: int


class SubsystemRecord(Record):
    """Of one subsystem."""

    advance_call: int
    begin: int
    data: int
    u: int
    width: int
    inputs: int  # triples: entry of z or -1, factor, offset
    outputs: int  # its part of y
    outputs_moved: int  # the same for a step that is tried for a difference
    first: int  # entry of y
    first_input: int  # entry of u
    size: int
    save: int
    restore: int
    state: int
    slot: int
    n_state: int
    exact: int  # 1: its Jacobian is constant
    noise: float
    reads: int  # entries of z
    n_reads: int
    response: int  # d outputs / d coupling variables it reads, row by row
    respond: int  # where its own Jacobian is, if it changes from step to step
    by_input: int  # what that writes: d outputs / d inputs
    column: int  # per input: which of the coupling variables it reads, or -1
    past: int  # rows of subsystem steps that count (`engine/python/replay_check.py`), 0 where they are not needed
    past_count: int
    past_capacity: int  # rows that there is room for
    past_length: int  # numbers in a row


class LawRecord(Record):
    """Of one law."""

    law: int
    partials: int
    law_reads: int
    n_law_reads: int
    law_rows: int
    n_law_rows: int
    law_nominal: int


@dataclass
class Wiring:
    """Subsystems and connections for compiled loops: records of words that hold numbers and addresses.

    Compiled functions get `address`, that of the executor's record; everything else is found from there.
    `keep` holds what the addresses lead to.
    """

    executor: Any
    subsystems: Any
    laws: Any
    responses: list[Vector]  # per subsystem
    reads: Integers  # how many coupling variables each subsystem reads
    failure: Integers  # the subsystem that failed last (-1: a law), and its status (0: an output that is not finite)
    keep: list[Any]

    def put(self, **fields: Any) -> None:
        """Fields of the executor's record: whole numbers, doubles, or arrays by their address."""
        fill(self.executor, **fields)

    def keep_past(self, i: int, rows: Matrix) -> None:
        """Subsystem `i` writes down its subsystem steps there."""
        self.keep.append(rows)
        fill(self.subsystems[i : i + 1], past=rows, past_count=0, past_capacity=len(rows), past_length=rows.shape[1])

    def take_past(self, i: int) -> int:
        """How many rows subsystem `i` has written; the next ones begin anew."""
        count = int(self.subsystems["past_count"][i])
        self.subsystems["past_count"][i] = 0
        return count

    @property
    def address(self) -> int:
        """Of the executor's record."""
        return int(self.executor.ctypes.data)

    @property
    def exact(self) -> Integers:
        """1 for subsystems with a constant Jacobian; may be written."""
        exact: Integers = self.subsystems["exact"]
        return exact

    @property
    def respond(self) -> Integers:
        """Addresses of Jacobians that change from step to step, 0 where differences are taken; may be written."""
        respond: Integers = self.subsystems["respond"]
        return respond

    @property
    def differenced(self) -> Integers:
        """How many differences the Jacobian of each subsystem takes."""
        return np.where((self.exact != 0) | (self.respond != 0), 0, self.reads)


def wire(
    plan: Plan, natives: list[Native], laws: list[tuple[int, int]], order: list[int], degree: int, past: History
) -> Wiring:
    """The records for subsystems and laws that have their addresses, with signals of this degree from such a past.

    Of a law: the address of the law, and of its partial derivatives (0 where they are not needed).
    """
    depth, reach = past.depth, past.reach
    rows = max(degree, depth) + 2
    keep: list[Any] = []

    def put(record: Any, **fields: Any) -> None:
        keep.extend(fields.values())
        fill(record, **fields)

    def zeros(size: int) -> Vector:
        return np.zeros(max(1, size))

    def words(values: Any) -> Integers:
        return np.array(values, dtype=np.int64).reshape(-1)

    count = plan.n_subsystems
    inputs = np.zeros((len(plan.u_source), 3))
    inputs.view(np.int64)[:, 0] = plan.u_source
    inputs[:, 1], inputs[:, 2] = np.where(plan.u_source >= 0, plan.u_factor, 0.0), plan.u_offset
    y, moved = np.zeros(plan.n_y), np.zeros(plan.n_y)
    records, responses = np.zeros(count, SubsystemRecord.dtype), []
    for i, (native, subsystem) in enumerate(zip(natives, plan.subsystems, strict=True)):
        width, reads, u, of = plan.input_ports[i].length, plan.reads(i), plan.u_slices[i], plan.y_slices[i]
        size = plan.output_ports[i].length
        responses.append(np.zeros(size * len(reads)))
        source = plan.u_source[u]
        record = records[i : i + 1]
        put(record, advance_call=native.advance, begin=native.begin, data=native.data, first=of.start, size=size)
        put(record, u=zeros(rows * width), width=width, inputs=inputs[u.start :], first_input=u.start)
        put(record, outputs=y[of.start :], outputs_moved=moved[of.start :])
        put(record, save=native.save, restore=native.restore)
        put(record, state=native.state, n_state=len(native.state), slot=zeros(len(native.state)))
        put(record, noise=0.0 if has_capability(subsystem, "replay") else subsystem.noise**0.5)
        put(record, reads=words(reads), n_reads=len(reads), response=responses[i])
        put(record, by_input=np.zeros(size * width if native.response else 0))
        put(record, column=words(np.where(source >= 0, np.searchsorted(reads, source), -1)))
    place = {i: k for k, i in enumerate(order)}
    copied = np.array([place[int(i)] for i in plan.y_owner[plan.copy_from]], np.int64)
    copies = np.argsort(copied, kind="stable")
    found = [max((place[i] for i in plan.owners(block)), default=0) for block in plan.blocks]
    blocks = [(plan.blocks[b], laws[b]) for b in np.argsort(np.array(found, np.int64), kind="stable")]
    of_laws = np.zeros(len(blocks), LawRecord.dtype)
    for b, (block, (law, partials)) in enumerate(blocks):
        reads, gives = words(block.y_index), words(block.rows)
        put(of_laws[b : b + 1], law=law, partials=partials, law_rows=gives, n_law_rows=len(gives))
        put(of_laws[b : b + 1], law_reads=reads, n_law_reads=len(reads), law_nominal=np.ones(len(reads)))
    most_reads, most_rows = (max((len(getattr(b, name)) for b, _ in blocks), default=1) for name in ("y_index", "rows"))
    n_z, failure, executor = plan.n_z, np.zeros(2, np.int64), np.zeros((), ExecutorRecord.dtype)
    nodes = np.array([1.0, *(-float(j) for j in range(depth + 2))])
    extrapolation = [np.array(past.past_weights(tuple(nodes[1 : d + 2 + reach]))) for d in range(depth + 1)]
    keep.extend(extrapolation)
    ends = np.array(past.end_weights(tuple(nodes[: degree + 1 + reach]))) if degree else np.ones((1, 1))
    arena, largest, new = np.zeros(ARENA_VECTORS * (rows + 1) * n_z), (rows + 1) * n_z, np.zeros(n_z)
    put(executor, n_subsystems=count, subsystems=records, n_laws=len(blocks), laws=of_laws, failure=failure)
    put(executor, n_copies=len(copies), copies=words(np.column_stack([plan.copy_rows, plan.copy_from])[copies]))
    put(executor, y=y, order=words(order), lagging=words(Serial(plan, order).lagging))
    # values of a law twice, for differences
    put(executor, arguments=zeros(most_reads), values=zeros(2 * most_rows), slopes=zeros(most_reads * most_rows))
    put(executor, known=words(np.searchsorted(np.sort(copied), range(count + 1))))
    put(executor, laws_known=words(np.searchsorted(np.sort(found), range(count + 1))))
    put(executor, n_y=plan.n_y, n_z=n_z, n_nodes=degree + 1, nodes=nodes[1:], weights_known=-1, means=reach)
    put(executor, extrapolation=words([weights.ctypes.data for weights in extrapolation]), highest=depth)
    put(executor, interpolation=ends)
    put(executor, base=np.zeros((degree + 1) * n_z), scratch=np.zeros((depth + 3) ** 2 + 2 * depth + 8))
    put(executor, arena=arena, arena_limit=arena.ctypes.data + arena.nbytes - 8 * largest, next=arena)
    put(executor, new=new, ends=new, signal=new, asked=new, accepted=new)
    put(executor, dr_dy=np.zeros(n_z * plan.n_y + 1), g=np.zeros(n_z * n_z), scaled=np.zeros(n_z * n_z))
    put(executor, rows=np.zeros(n_z), columns=np.zeros(n_z), work=np.zeros(4 * n_z), rates=np.zeros(2))
    put(executor, pivots=np.zeros(n_z, np.int64), integers=np.zeros(4 + n_z, np.int64))
    put(executor, last_norm=np.nan, residual=np.nan, n_u=len(plan.u_source))
    return Wiring(executor, records, of_laws, responses, records["n_reads"].copy(), failure, keep)
