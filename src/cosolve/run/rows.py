"""Macro steps of the Python engine on their way into the recorder: packed as they come, handed over as columns.

Packing a row of a few numbers into bytes costs a tenth of writing it into the columns, one entry each. Rows hold totals
of calls, seconds and rejections since the start of the run; their differences say what each step took.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.engine.chunk import Chunk
from cosolve.method import Outcome
from cosolve.result import Layout

Counts = npt.NDArray[np.int64]

_HEAD = (("t", "f8"), ("H", "f8"), ("residual", "f8"), ("error", "f8"))
_COUNTS = (("iterations", "i8"), ("rejected", "i8"), ("norms", "i8"))
_PACK = Struct("=4d3q").pack


class Rows:
    """Rows that are not handed over yet, of a run that counts in `calls` and `seconds`.

    `totals` (calls, seconds, rejected) are those of the last row that was handed over.

    >>> calls, seconds = np.array([3]), np.array([0.5])
    >>> rows = Rows(Layout(1, 0, 1), calls, seconds)
    >>> for n in (1, 2):
    ...     calls += 1
    ...     step = Outcome(np.array([10.0 * n]), np.zeros(0), np.zeros(0), 0, t1=0.1 * n, H=0.1)
    ...     rows.add(step, step.y, step.z, rejected=0)
    >>> chunk = rows.take()
    >>> chunk.y.tolist(), chunk.calls.tolist(), len(rows)
    ([[10.0], [20.0]], [[1], [1]], 0)
    """

    def __init__(self, layout: Layout, calls: Counts, seconds: Vector) -> None:
        self._calls, self._seconds = calls, seconds
        self._calls_now, self._seconds_now = calls.data, seconds.data
        many = layout.n_subsystems
        wide = (("y", "f8", layout.n_y), ("z", "f8", layout.n_z), ("calls", "i8", many), ("seconds", "f8", many))
        self._type = np.dtype([*_HEAD, *_COUNTS, *((name, kind, (width,)) for name, kind, width in wide)])
        self._empty()
        self.count_from(0)

    def _empty(self) -> None:
        self._rows = bytearray()
        self._norms: list[float] = []
        self._unconverged = self._renewed = 0

    def __len__(self) -> int:
        return len(self._rows) // self._type.itemsize

    def count_from(self, rejected: int) -> None:
        """What was called until now belongs to no row that comes."""
        self.totals = self._calls.copy(), self._seconds.copy(), rejected

    def add(self, step: Outcome, y: Vector, z: Vector, rejected: int) -> None:
        """A macro point: the step that led to it, the values to write down, and the total of rejections."""
        head = _PACK(step.t1, step.H, step.residual, step.error, step.iterations, rejected, len(step.norms))
        self._rows += b"".join((head, y.tobytes(), z.tobytes(), self._calls_now, self._seconds_now))
        self._norms += step.norms
        if not step.converged:
            self._unconverged += 1
        if step.renewed:
            self._renewed += 1

    def take(self) -> Chunk:
        """All rows; they are gone from here then."""
        rows = np.frombuffer(self._rows, self._type)
        took: dict[str, Any] = {}
        for name, before in zip(("calls", "seconds", "rejected"), self.totals, strict=True):
            took[name] = differences = rows[name].copy()
            differences[1:] -= rows[name][:-1]
            differences[0] -= before
        self.totals = rows["calls"][-1].copy(), rows["seconds"][-1].copy(), int(rows["rejected"][-1])
        columns: dict[str, Any] = {name: rows[name] for name in ("t", "y", "z", "H", "iterations", "residual", "error")}
        chunk = Chunk(
            **(columns | took),
            norms=self._norms,
            counts=rows["norms"],
            unconverged=self._unconverged,
            renewed=self._renewed,
            compiled=False,
        )
        self._empty()
        return chunk

    def single(self, step: Outcome, z: Vector, rejected: int) -> Chunk:
        """One step by itself, without copying what may be a wide field."""
        calls, seconds, before = self.totals
        self.count_from(rejected)
        return Chunk(
            *(np.array([step.t1]), step.y[np.newaxis], z[np.newaxis], np.array([step.H]), np.array([step.iterations])),
            *(np.array([step.residual]), (self._calls - calls)[np.newaxis], np.array([rejected - before])),
            error=np.array([step.error]),
            norms=step.norms,
            counts=np.array([len(step.norms)]),
            seconds=(self._seconds - seconds)[np.newaxis],
            unconverged=int(not step.converged),
            renewed=int(step.renewed),
            compiled=False,
        )
