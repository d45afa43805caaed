"""One method with one step size for all variants: programs, coefficients, and what is done in which step."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.lu import RCOND
from cosolve.engine.blocks.assemble import Code, Registers
from cosolve.engine.blocks.program import (
    Layout,
    Notes,
    Observed,
    StepData,
    StepWriter,
    Table,
    end_weight,
    lay_out,
    returns_coupling_from_outputs,
)
from cosolve.engine.blocks.variants import Ensemble, settled
from cosolve.interface import Plan
from cosolve.interface.channels import channels
from cosolve.method import Method
from cosolve.result import find_channel
from cosolve.stepsize import UniformClock
from cosolve.stepsize.graded import grading

_CHECK_EVERY = 128  # steps between two looks for values that are not finite
_WORTH_COMPILING = 16  # steps in a row that repay machine code of their own
_WORTH_THREADS = 1 << 15  # propagators from which several threads are worth their start


@dataclass(frozen=True)
class BlockTask:
    """What is run, and what is kept of it."""

    method: Method
    step: float
    t_start: float
    t_end: float
    record: tuple[str, ...]
    every: int
    reduce: str


def in_threads(work: Callable[[tuple[int, int]], None], count: int, workers: int) -> None:
    """`work((first, last))` on parts of `range(count)`, in threads where there are several workers."""
    workers = min(workers, count)
    if workers <= 1:
        work((0, count))
        return
    pieces = min(count, 4 * workers)  # other load on the machine makes threads finish at different times
    parts = pairwise([count * k // pieces for k in range(pieces + 1)])
    taking = Lock()

    def take() -> None:
        while True:
            with taking:
                part = next(parts, None)
            if part is None:
                return
            work(part)

    with ThreadPoolExecutor(workers - 1) as pool:  # this thread takes its share
        others = [pool.submit(take) for _ in range(workers - 1)]
        take()
        for other in others:
            other.result()


class BlockRun:
    """Programs, coefficients and schedule of one method with one step size."""

    def __init__(
        self,
        plan: Plan,
        ensemble: Ensemble,
        wanted: BlockTask,
        workers: int,
        propagate: Callable[[Ensemble, float, int], list[Matrix]] | None,
    ) -> None:
        self.plan, self.ensemble, self.method = plan, ensemble, wanted.method
        self._workers, self._propagate = workers, propagate or self._series
        self._made: dict[tuple[float, int], list[Matrix]] = {}
        self._summed: dict[float, list[Matrix]] = {}
        self.propagator_seconds = 0.0
        self.alone = ensemble.odd.copy()
        self.clock = UniformClock(wanted.t_start, wanted.t_end, wanted.step)
        count = self.clock.count
        self.points = self.clock.times(0, count)
        steps = np.arange(1, count + 1)
        kept = steps % wanted.every == 0
        kept[-1] = True
        #: macro points that are recorded, the start included
        self.recorded = np.concatenate([[0], steps[kept]])
        found = settled(plan, ensemble.parts, ensemble.offsets)
        assert found is not None
        y, z = found
        sums = self._observed(wanted.record)
        sources: dict[str, list[Any]] = {"y": y, "z": z, "one": [1.0]}
        self.first = [self._at_start(terms, sources) for terms in sums]
        if wanted.reduce == "end":
            kept[:-1] = False
        self.rows = int(kept.sum()) + 1 if wanted.reduce == "trajectory" else 1
        assert wanted.method.declaration is not None
        self.declaration = wanted.method.declaration
        layout = lay_out(plan, ensemble.parts, returns_coupling_from_outputs(self.method, self.declaration))
        self.start, self.start_z = self._start_rows(layout, z), z
        self.table = Table(ensemble.count)
        ones = self.table.row(1.0)
        assert ones is not None
        self._schedule(layout, sums, kept, ones, wanted.reduce)

    def _schedule(self, layout: Layout, sums: list[Observed], kept: Any, ones: int, reduce: str) -> None:
        """What the kernel does in every step."""
        plan, method, count = self.plan, self.method, self.clock.count
        back = max(method.degree, self.declaration.guess)
        registers = Registers(layout.width, back + 2, plan.n_y, len(sums))
        code = self.code = Code(registers)
        self._degree = method.degree if plan.n_z else 0  # of input signals
        writer = StepWriter(plan, method, layout, self.ensemble.parts, self.ensemble.offsets, self.table)
        written: dict[tuple[float, tuple[float, ...]], Any] = {}
        programs: dict[tuple[Any, int, bool, bool], int] = {}
        # the first macro steps may be advanced in pieces, which are steps like others of which nothing is kept
        opening, counts = self._opening()
        self.extra = len(opening) - len(counts)
        #: the macro step that each step belongs to
        self.macro = np.concatenate([np.repeat(np.arange(len(counts)), counts), np.arange(len(counts), count)])
        kept = kept[self.macro] & (np.diff(self.macro, append=count) > 0)
        count += self.extra
        steady = len(opening) + back if self.extra else back  # the first step that comes after equal ones only
        s = np.arange(count)
        last = s == count - 1
        alike = ((np.minimum(s, steady) * registers.turns + s % registers.turns) * 2 + kept) * 2 + last
        _, firsts, kinds = np.unique(alike, return_index=True, return_inverse=True)
        made = []
        for first in map(int, firsts):
            H, past = self._length(opening, first), self._past(opening, first, back)
            phase = first % registers.turns
            if (H, past) not in written:
                written[H, past] = writer.write(self._ahead(H, past), sums)
            for observe, outputs in [(bool(kept[first]), bool(last[first])), (False, True)]:
                key = ((H, past), phase, observe, outputs)
                if key not in programs:
                    programs[key] = code.add(written[H, past], phase, ones, observe=observe, outputs=outputs)
                made.append(programs[key])
        row = np.cumsum(kept) if reduce == "trajectory" else 0
        check = (s % _CHECK_EVERY == _CHECK_EVERY - 1) | last
        since = s - s % _CHECK_EVERY  # the first step after the last look
        self.schedule = np.zeros((count, 6), dtype=np.int64)
        self.schedule[:, :2] = np.array(made).reshape(-1, 2)[kinds]
        self.schedule[:, 2:5] = np.column_stack([np.where(kept, row, -1), check, since])
        self.steps, self._engine = 0, None
        depth = [0] * layout.width
        for place in layout.z_place:
            depth[place] = back
        notes = written.get((self.clock.H, (self.clock.H,) * back))
        if notes is not None:
            self._take_together(notes, depth, steady)
        places = sorted(set(layout.z_place))
        given = range(registers.first_output, registers.first_output + plan.n_y)
        self.watched = np.array(
            [[*given, *(bank * layout.width + k for k in places)] for bank in range(registers.turns)], dtype=np.int64
        )

    def _opening(self) -> tuple[list[float], list[int]]:
        """Lengths of the first steps, and how many of them are in each macro step."""
        found: list[float] = []
        counts = []
        graded, clock = grading(self.method), self.clock
        for n in range(min(2, clock.count)):
            pieces = graded.pieces(clock.time(n), clock.step(n), found[::-1])
            found += pieces
            counts.append(len(pieces))
        return found, counts

    def _length(self, opening: list[float], s: int) -> float:
        """Length of step `s`."""
        return opening[s] if s < len(opening) else self.clock.step(s - self.extra)

    def _past(self, opening: list[float], s: int, back: int) -> tuple[float, ...]:
        """Lengths of the steps before step `s`, the newest first, as far as they matter."""
        return tuple(self._length(opening, k) for k in range(s - 1, max(-1, s - 1 - back), -1))

    def _take_together(self, notes: Notes, depth: list[int], steady: int) -> None:
        """Ordinary steps of which nothing is kept go through machine code, up to the next look."""
        count = len(self.schedule)
        s = np.arange(count)
        special = (s < steady) | (s == count - 1) | (self.schedule[:, 2] >= 0)  # the last one gives outputs
        stop = np.where(special, s, np.where(self.schedule[:, 3] > 0, s + 1, count))
        length = np.minimum.accumulate(stop[::-1])[::-1] - s
        if not (length >= _WORTH_COMPILING).any():
            return
        from cosolve.engine.blocks import kernel, machine_code

        text = machine_code.generate(notes, self.table, self.code.registers, depth, kernel.BLOCK)
        if text is None:
            return
        self.steps, self._engine = machine_code.compiled(text)
        self.schedule[:, 5] = np.where(length > 1, length, 0)

    def _ahead(self, H: float, past: tuple[float, ...]) -> StepData:
        """A step of length `H` after steps of these lengths."""
        inverse = None
        if self.declaration.corrector is not None:
            weight = end_weight(self.method, past, H)[:, 0]
            inverse = self._inverse(self._propagators(H, len(weight) - 1), weight)
        return StepData(H, past, lambda rows: self._propagators(H, rows - 1), inverse)

    def _propagators(self, H: float, degree: int) -> list[Matrix]:
        if (H, degree) not in self._made:
            began = perf_counter()
            made = self._made[H, degree] = self._propagate(self.ensemble, H, degree)
            for k, P in enumerate(made):
                bad = ~np.isfinite(P).all(axis=(0, 1))
                if bad.any():
                    self.alone |= bad
                    made[k] = np.where(bad, 0.0, P)
            self.propagator_seconds += perf_counter() - began
        return self._made[H, degree]

    def _series(self, ensemble: Ensemble, H: float, degree: int) -> list[Matrix]:
        """Propagators of a lower degree are the first columns of those of the highest one."""
        if H not in self._summed or degree > self._degree:
            self._degree = max(degree, self._degree)
            self._summed[H] = self._sums(ensemble, H, self._degree)
        widths = [m.A.shape[1] + m.B.shape[1] * (degree + 1) for m in ensemble.parts]
        return [P[:, :width] for P, width in zip(self._summed[H], widths, strict=True)]

    def _sums(self, ensemble: Ensemble, H: float, degree: int) -> list[Matrix]:
        from cosolve.engine.blocks.propagators import propagators

        found = []
        for m in ensemble.parts:
            n, p = m.B.shape[:2]
            same = bool((m.A == m.A[..., :1]).all() and (m.B == m.B[..., :1]).all())  # then one is enough
            count = 1 if same else ensemble.count
            P = np.empty((n, n + p * (degree + 1), count))
            A, B = np.ascontiguousarray(m.A[..., :count]), np.ascontiguousarray(m.B[..., :count])

            def work(part: tuple[int, int], A: Matrix = A, B: Matrix = B, P: Matrix = P) -> None:
                propagators(A, B, H, degree, *part, P)

            in_threads(work, count, self._workers if count >= _WORTH_THREADS else 1)
            found.append(np.broadcast_to(P, (*P.shape[:2], ensemble.count)) if same else P)
        return found

    def _inverse(self, made: list[Matrix], weight: Vector) -> Matrix:
        """Inverses of `G = dr/dz + dr/dy dy/dz` (`engine/python/trial.py`), rows and columns scaled meanwhile."""
        plan, count = self.plan, self.ensemble.count
        G = np.zeros((count, plan.n_z, plan.n_z))
        G[:, range(plan.n_z), range(plan.n_z)] = 1.0
        for i, (m, P) in enumerate(zip(self.ensemble.parts, made, strict=True)):
            n, p = m.B.shape[:2]
            response = np.einsum("j,mjkv->vmk", weight, P[:, n:].reshape(n, len(weight), p, count))
            J = np.moveaxis(m.C, 2, 0) @ response + np.moveaxis(m.D, 2, 0) * weight.sum()
            by_z, reads, part = plan.by_variables(i, J), plan.reads(i), plan.y_slices[i]
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
        self.alone |= bad | singular | ~(rcond > RCOND)  # the Python engine raises the error
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
            channel = find_channel(found, name)
            assert channel is not None  # checked before
            for m, k in enumerate(channel.part):
                if channel.column == "y":
                    sums.append([(1.0, "y", k)])
                elif not channel.factor:
                    sums.append([(1.0, "z", k)])
                else:  # an input
                    owner, port = name.split(".", 1)
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
