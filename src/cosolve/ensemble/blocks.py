"""Blocks of variants: linear subsystems with plain connections, crossed by `kernel.py`.

Every variant has the same subsystems, ports and connections as a template; matrices, initial states and constant inputs
differ. The sums are those of the readable engine in the same order; only propagators (`propagators.py`) and, for
semi-implicit methods, the solution with the interface Jacobian are found by another route, to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from cosolve.ensemble.assemble import Code, Registers
from cosolve.ensemble.program import (
    Ahead,
    Integers,
    Layout,
    Matrices,
    Notes,
    Observed,
    StepWriter,
    Table,
    end_weight,
    lay_out,
    rows_of,
)
from cosolve.interface import Plan, System
from cosolve.method import GaussSeidel, Jacobi, Method, SemiImplicit
from cosolve.stepper import channels
from cosolve.stepsize import UniformClock
from cosolve.subsystem import Linear
from cosolve.subsystem.port import Matrix, Vector
from cosolve.subsystem.products import IN_ORDER

_CHECK_EVERY = 128  # steps between two looks for values that are not finite
_WORTH_COMPILING = 16  # steps in a row that repay machine code of their own
_LARGEST_INTERFACE = 64
_RCOND = 1e-13  # interface Jacobians worse than that are left to the readable engine, which finds the words
_KEEP = {"end": 0, "trajectory": 0, "max": 1, "min": 2, "peak": 3}


def why_not_blocks(system: System, method: Method, step: object, reduce: object) -> str | None:
    """Why variants of this system are not crossed in blocks, in one sentence; None when they are."""
    if callable(reduce):
        return "what is kept is a function of a whole result"
    if isinstance(step, bool) or not isinstance(step, (int, float, np.integer, np.floating)):
        return "the macro steps are not all of one length"
    if type(method) not in (Jacobi, GaussSeidel, SemiImplicit):
        return f"{method.name} does not run in blocks (Jacobi, GaussSeidel and SemiImplicit do)"
    if isinstance(method, (Jacobi, GaussSeidel)) and method.outputs != "as used":
        return f"{method.name} with outputs='exchanged' does not run in blocks"
    if isinstance(method, SemiImplicit) and method.jacobian != "auto":
        return "differenced Jacobians do not run in blocks"
    for name, subsystem in system.subsystems.items():
        if type(subsystem) is not Linear:
            return f"'{name}' ({type(subsystem).__name__}) is not a Linear subsystem"
    plan = system.plan()
    if plan.blocks:
        return f"{plan.blocks[0].label} is no plain connection"
    if plan.n_z > _LARGEST_INTERFACE:
        return f"it has {plan.n_z} coupling variables, and blocks are for at most {_LARGEST_INTERFACE}"
    for name, subsystem in system.subsystems.items():
        assert isinstance(subsystem, Linear)
        columns = len(subsystem.x0) + subsystem.B.shape[1] * (method.degree + 1)
        if columns > IN_ORDER:
            return f"'{name}' has {columns} columns to add up (at most {IN_ORDER} are added in a fixed order)"
    if _settled(plan, gather([system]).parts, gather([system]).offsets) is None:
        return "direct feed-through runs in a loop, which is closed at the start of each run"
    return None


def alike(system: System, template: System) -> bool:
    """True when a system differs from the template only in the numbers of its linear subsystems and constants."""
    if list(system.subsystems) != list(template.subsystems) or system._joins != template._joins:
        return False
    if system._constants.keys() != template._constants.keys():
        return False
    for ours, theirs in zip(system.subsystems.values(), template.subsystems.values(), strict=True):
        if type(ours) is not Linear or not isinstance(theirs, Linear) or len(ours.x0) != len(theirs.x0):
            return False
        if list(ours.inputs) != list(theirs.inputs) or list(ours.outputs) != list(theirs.outputs):
            return False
    return True


@dataclass(frozen=True)
class Ensemble:
    """The numbers of all variants: matrices of every subsystem, and every input's constant."""

    count: int
    parts: list[Matrices]
    offsets: list[Any]  # per input: a number for all variants, or one for each

    def some(self, chosen: slice) -> Ensemble:
        """A part of the variants."""
        parts = [Matrices(*(a[..., chosen] for a in (m.A, m.B, m.C, m.D, m.x0))) for m in self.parts]
        offsets = [o[chosen] if isinstance(o, np.ndarray) else o for o in self.offsets]
        return Ensemble(len(range(*chosen.indices(self.count))), parts, offsets)


def gather(systems: Sequence[System]) -> Ensemble:
    """The numbers of systems that are alike."""

    def stacked(name: str, matrix: str) -> Matrix:
        found = np.array([getattr(s.subsystems[name], matrix) for s in systems])
        return np.ascontiguousarray(np.moveaxis(found, 0, -1))

    template = systems[0]
    plan = template.plan()
    parts = [Matrices(*(stacked(name, m) for m in ("A", "B", "C", "D", "x0"))) for name in template.subsystems]
    offsets: list[Any] = [float(value) for value in plan.u_offset]
    for target in template._constants:
        name, port = target.split(".")
        i = plan.names.index(name)
        first = plan.u_slices[i].start + plan.input_ports[i].slice(port).start
        values = np.array([s._constants[target] for s in systems])
        for k in range(values.shape[1]):
            offsets[first + k] = values[:, k].copy()
    return Ensemble(len(systems), parts, offsets)


@dataclass
class Crossed:
    """What came of a block run.

    `values[v, quantity]` or `values[v, quantity, row]`; `failed[v]`: the number of the step that failed, -1 where none;
    `alone[v]`: variants that the readable engine must run; `seconds` by what they went into.
    """

    values: Vector
    failed: Integers
    alone: Any
    times: Vector
    seconds: dict[str, float] = field(default_factory=dict)

    def message(self, v: int) -> str:
        """Why a variant failed."""
        t = self.times[self.failed[v]]
        return (
            f"an output is no longer finite after the macro step from t = {t:.9g}; a smaller step or a more stable "
            "method may help"
        )


@dataclass(frozen=True)
class Wanted:
    """What is run, and what is kept of it."""

    method: Method
    step: float
    t_start: float
    t_end: float
    record: tuple[str, ...]
    every: int
    reduce: str


def cross_blocks(
    plan: Plan,
    ensemble: Ensemble,
    wanted: Wanted,
    workers: int = 1,
    propagate: Callable[[Ensemble, float, int], list[Matrix]] | None = None,
) -> Crossed:
    """Run all variants of an ensemble; `propagate` gives the propagators (by default those of `propagators.py`)."""
    from cosolve.ensemble import kernel

    began = perf_counter()
    run = _Run(plan, ensemble, wanted, workers, propagate)
    instructions, terms, starts = run.code.arrays(8 * kernel.BLOCK)
    blocks = -(-ensemble.count // kernel.BLOCK)
    coefficients = np.empty((blocks, len(run.table.rows), kernel.BLOCK))
    for k, row in enumerate(run.table.rows):
        coefficients[:, k] = in_blocks(row, blocks, kernel.BLOCK) if isinstance(row, np.ndarray) else row
    live = np.zeros((blocks, run.code.registers.n_live, kernel.BLOCK))
    for k, row in enumerate(run.start):
        live[:, k] = in_blocks(row, blocks, kernel.BLOCK)
    keep = _KEEP[wanted.reduce]
    first = run.first if keep != kernel.PEAK else [np.abs(row) for row in run.first]
    out = np.empty((blocks, run.rows, len(first), kernel.BLOCK))
    for q, row in enumerate(first):
        out[:, 0, q] = in_blocks(row, blocks, kernel.BLOCK)
    failed = np.full((blocks, kernel.BLOCK), -1, dtype=np.int64)
    failed.reshape(-1)[: ensemble.count][run.alone] = 0  # nothing to look for there
    laid_out = perf_counter()
    registers = run.code.registers

    def cross(part: tuple[int, int]) -> None:
        kernel.run(
            *(np.array(part), coefficients, live, instructions, terms, starts, run.schedule, run.steps, keep),
            *(registers.first_observed, run.watched, registers.size, out, failed),
        )

    with np.errstate(all="ignore"):
        in_threads(cross, blocks, workers)
    crossed = perf_counter()
    # (block, row, quantity, place) to (variant, quantity, row)
    values = np.moveaxis(out, (0, 3, 2, 1), (0, 1, 2, 3)).reshape(blocks * kernel.BLOCK, len(first), run.rows)
    values = values[: ensemble.count]
    found = failed.reshape(-1)[: ensemble.count].copy()
    found[run.alone] = -1
    _blank(values, found, run.recorded, wanted.reduce)
    if wanted.reduce != "trajectory":
        values = values[:, :, 0]
    seconds = {
        "propagators": run.propagator_seconds,
        "preparing": laid_out - began - run.propagator_seconds,
        "loop": crossed - laid_out,
        "collecting": perf_counter() - crossed,
    }
    return Crossed(values, found, run.alone, run.points, seconds)


def in_blocks(row: Vector, blocks: int, width: int) -> Matrix:
    """One number per variant, in blocks; the last block is filled up with its last variant."""
    rest = blocks * width - len(row)
    return (np.concatenate([row, np.full(rest, row[-1])]) if rest else row).reshape(blocks, width)


def in_threads(work: Callable[[tuple[int, int]], None], count: int, workers: int) -> None:
    """`work((first, last))` on parts of `range(count)`, in threads where there are several workers."""
    workers = min(workers, count)
    if workers <= 1:
        work((0, count))
        return
    pieces = min(count, 4 * workers)  # other load on the machine makes threads finish at different times
    ends = [count * k // pieces for k in range(pieces + 1)]
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(work, pairwise(ends)):
            pass


def _blank(values: Matrix, failed: Integers, recorded: Integers, reduce: str) -> None:
    """NaN for what failed; of trajectories, what was before stays."""
    for v in np.flatnonzero(failed >= 0):
        if reduce == "trajectory":
            values[v][:, recorded >= failed[v] + 1] = np.nan
        else:
            values[v] = np.nan


def _settled(plan: Plan, parts: list[Matrices], offsets: list[Any]) -> tuple[list[Vector], list[Vector]] | None:
    """Outputs and coupling variables at the start, one row each; None when feed-through runs in a loop."""
    count = parts[0].x0.shape[-1]
    states = [(m.C * m.x0[np.newaxis]).cumsum(axis=1)[:, -1] for m in parts]  # as products.product
    y = np.concatenate(states)
    fed = [m.D.any(axis=2) for m in parts]
    for _ in range(plan.n_subsystems + 1):
        before = y.copy()
        for i, m in enumerate(parts):
            if not fed[i].any():
                continue
            u = np.empty((m.B.shape[1], count))
            for k in range(len(u)):
                at = plan.u_slices[i].start + k
                source = int(plan.u_source[at])
                u[k] = offsets[at] if source < 0 else plan.u_factor[at] * y[_origin(plan, source)]
            # as Linear.output: products side by side, so that the sum is formed the same way
            through = np.where(m.D != 0.0, m.D * u[np.newaxis], 0.0)
            y[plan.y_slices[i]] = states[i] + np.ascontiguousarray(np.moveaxis(through, 2, 0)).sum(axis=2).T
        if np.array_equal(before, y, equal_nan=True):
            return list(y), [y[_origin(plan, q)] for q in range(plan.n_z)]
    return None


def _origin(plan: Plan, q: int) -> int:
    """The output that coupling variable `q` copies."""
    return int(plan.copy_from[int(np.flatnonzero(plan.copy_rows == q)[0])])


class _Run:
    """Programs, coefficients and schedule of one method with one step size."""

    def __init__(
        self,
        plan: Plan,
        ensemble: Ensemble,
        wanted: Wanted,
        workers: int,
        propagate: Callable[[Ensemble, float, int], list[Matrix]] | None,
    ) -> None:
        self.plan, self.ensemble, self.method = plan, ensemble, wanted.method
        self._workers, self._propagate = workers, propagate or self._series
        self._made: dict[tuple[float, int], list[Matrix]] = {}
        self.propagator_seconds = 0.0
        self.alone = np.zeros(ensemble.count, dtype=bool)
        self.clock = UniformClock(wanted.t_start, wanted.t_end, wanted.step)
        count = self.clock.count
        self.points = self.clock.times(0, count)
        steps = np.arange(1, count + 1)
        kept = steps % wanted.every == 0
        kept[-1] = True
        #: macro points that are recorded, the start included
        self.recorded = np.concatenate([[0], steps[kept]])
        settled = _settled(plan, ensemble.parts, ensemble.offsets)
        assert settled is not None
        y, z = settled
        sums = self._observed(wanted.record)
        sources: dict[str, list[Any]] = {"y": y, "z": z, "one": [1.0]}
        self.first = [self._at_start(terms, sources) for terms in sums]
        if wanted.reduce == "end":
            kept[:-1] = False
        self.rows = int(kept.sum()) + 1 if wanted.reduce == "trajectory" else 1
        layout = lay_out(plan, ensemble.parts, self.method)
        self.start = self._start_rows(layout, z)
        self.table = Table(ensemble.count)
        ones = self.table.row(1.0)
        assert ones is not None
        self._schedule(layout, sums, kept, ones, wanted.reduce)

    def _schedule(self, layout: Layout, sums: list[Observed], kept: Any, ones: int, reduce: str) -> None:
        """What the kernel does in every step."""
        plan, method, count = self.plan, self.method, self.clock.count
        guess = method.predictor if isinstance(method, SemiImplicit) and method.predictor is not None else method.degree
        back = max(method.degree, min(guess, max(method.degree, 1)))
        registers = Registers(layout.width, back + 2, plan.n_y, len(sums))
        code = self.code = Code(registers)
        writer = StepWriter(plan, method, layout, self.ensemble.parts, self.ensemble.offsets, self.table)
        written: dict[tuple[int, float], Any] = {}
        programs: dict[tuple[int, float, int, bool, bool], int] = {}
        schedule = np.full((count, 6), -1, dtype=np.int64)
        row, last_check = 0, 0
        for s in range(count):
            points, H, phase = min(s, back) + 1, self.clock.step(s), s % registers.turns
            if (points, H) not in written:
                written[points, H] = writer.write(self._ahead(points, H), sums)
            check = s - last_check + 1 == _CHECK_EVERY or s == count - 1
            for column, (observe, outputs) in enumerate([(bool(kept[s]), s == count - 1), (False, True)]):
                key = (points, H, phase, observe, outputs)
                if key not in programs:
                    programs[key] = code.add(written[points, H], phase, ones, observe=observe, outputs=outputs)
                schedule[s, column] = programs[key]
            if kept[s]:
                row += reduce == "trajectory"
                schedule[s, 2] = row
            schedule[s, 3:] = check, last_check, 0
            if check:
                last_check = s + 1
        self.schedule = schedule
        self.steps, self._engine = 0, None
        depth = [0] * layout.width
        for place in layout.z_place:
            depth[place] = back
        steady = written.get((back + 1, self.clock.H))
        if steady is not None:
            self._take_together(steady, depth, back)
        places = sorted(set(layout.z_place))
        given = range(registers.first_output, registers.first_output + plan.n_y)
        self.watched = np.array(
            [[*given, *(bank * layout.width + k for k in places)] for bank in range(registers.turns)], dtype=np.int64
        )

    def _take_together(self, notes: Notes, depth: list[int], back: int) -> None:
        """Ordinary steps of which nothing is kept go through machine code, up to the next look."""
        schedule, count = self.schedule, self.clock.count
        length, end = 0, count - 1  # the last step gives outputs
        for s in range(end - 1, back - 1, -1):
            if self.clock.step(s) != self.clock.H or schedule[s, 2] >= 0:
                length = 0
                continue
            length = 1 if schedule[s, 3] else length + 1
            schedule[s, 5] = length if length > 1 else 0
        if not (schedule[:, 5] >= _WORTH_COMPILING).any():
            schedule[:, 5] = 0
            return
        from cosolve.ensemble import kernel, machine_code

        text = machine_code.generate(notes, self.table, self.code.registers, depth, kernel.BLOCK)
        if text is None:
            schedule[:, 5] = 0
            return
        self.steps, self._engine = machine_code.compiled(text)

    def _ahead(self, points: int, H: float) -> Ahead:
        """A step of length `H` with so many past points."""
        rows = rows_of(self.plan, self.method, points)
        made = self._propagators(H, rows - 1)
        inverse = None
        if isinstance(self.method, SemiImplicit):
            weight = end_weight(self.method, points, self.clock.H, H)[:, 0]
            inverse = self._inverse(made, weight)
        return Ahead(points, H, self.clock.H, made, inverse)

    def _propagators(self, H: float, degree: int) -> list[Matrix]:
        if (H, degree) not in self._made:
            began = perf_counter()
            made = self._made[H, degree] = self._propagate(self.ensemble, H, degree)
            for P in made:
                bad = ~np.isfinite(P).all(axis=(0, 1))
                self.alone |= bad
                P[:, :, bad] = 0.0
            self.propagator_seconds += perf_counter() - began
        return self._made[H, degree]

    def _series(self, ensemble: Ensemble, H: float, degree: int) -> list[Matrix]:
        from cosolve.ensemble.propagators import propagators

        found = []
        for m in ensemble.parts:
            n, p = m.B.shape[:2]
            P = np.empty((n, n + p * (degree + 1), ensemble.count))
            A, B = np.ascontiguousarray(m.A), np.ascontiguousarray(m.B)

            def work(part: tuple[int, int], A: Matrix = A, B: Matrix = B, P: Matrix = P) -> None:
                propagators(A, B, H, degree, *part, P)

            in_threads(work, ensemble.count, self._workers if ensemble.count >= 1024 else 1)
            found.append(P)
        return found

    def _inverse(self, made: list[Matrix], weight: Vector) -> Matrix:
        """Inverses of `G = dr/dz + dr/dy dy/dz` (`method/trial.py`), rows and columns scaled meanwhile."""
        plan, count = self.plan, self.ensemble.count
        G = np.zeros((count, plan.n_z, plan.n_z))
        G[:, range(plan.n_z), range(plan.n_z)] = 1.0
        for i, (m, P) in enumerate(zip(self.ensemble.parts, made, strict=True)):
            n, p = m.B.shape[:2]
            response = np.einsum("j,mjkv->vmk", weight, P[:, n:].reshape(n, len(weight), p, count))
            J = np.moveaxis(m.C, 2, 0) @ response + np.moveaxis(m.D, 2, 0) * weight.sum()
            by_z, reads, part = J @ plan.input_map(i), plan.reads(i), plan.y_slices[i]
            for q, k in zip(plan.copy_rows, plan.copy_from, strict=True):
                if part.start <= k < part.stop:
                    G[:, q, reads] -= by_z[:, k - part.start]
        if not plan.n_z:
            return np.zeros((0, 0, count))
        size = np.abs(G)
        columns = size.max(axis=1)
        rows = (size / np.where(columns == 0.0, 1.0, columns)[:, np.newaxis]).max(axis=2)
        bad = ~np.isfinite(size).all(axis=(1, 2)) | (columns == 0.0).any(axis=1) | (rows == 0.0).any(axis=1)
        G[bad], rows[bad], columns[bad] = np.eye(plan.n_z), 1.0, 1.0
        scaled = G / rows[:, :, np.newaxis] / columns[:, np.newaxis]
        singular = np.abs(np.linalg.det(scaled)) == 0.0
        scaled[singular] = np.eye(plan.n_z)
        inverse = np.linalg.inv(scaled)
        rcond = 1.0 / (np.abs(scaled).sum(axis=1).max(axis=1) * np.abs(inverse).sum(axis=1).max(axis=1))
        self.alone |= bad | singular | ~(rcond > _RCOND)
        inverse = inverse / columns[:, :, np.newaxis] / rows[:, np.newaxis]
        return np.ascontiguousarray(np.moveaxis(inverse, 0, 2))

    # -- the start, and what is looked at --------------------------------------------------------------

    def _start_rows(self, layout: Layout, z: list[Vector]) -> list[Vector]:
        rows: list[Any] = [row for m in self.ensemble.parts for row in m.x0]
        rows += [None] * (layout.width - len(rows))
        for q, place in enumerate(layout.z_place):
            if rows[place] is None:
                rows[place] = z[q]
        return rows

    def _observed(self, record: tuple[str, ...]) -> list[Observed]:
        """Recorded quantities as sums of outputs, coupling variables and constants."""
        found = channels(self.plan)
        sums: list[Observed] = []
        for name in record:
            channel = found[name]
            for m, k in enumerate(channel.part):
                if channel.column == "y":
                    sums.append([(1.0, "y", k)])
                elif not channel.factor:
                    sums.append([(1.0, "z", k)])
                else:  # an input
                    owner, port = name.split(".")
                    i = self.plan.names.index(owner)
                    at = self.plan.u_slices[i].start + self.plan.input_ports[i].slice(port).start + m
                    terms: Observed = [(channel.factor[m], "z", k)] if channel.factor[m] else []
                    sums.append([*terms, (self.ensemble.offsets[at], "one", 0)])
        return sums

    def _at_start(self, terms: Observed, sources: dict[str, list[Any]]) -> Vector:
        total = np.zeros(self.ensemble.count)
        for factor, kind, k in terms:
            total = total + factor * sources[kind][k]
        return total
