"""Macro points on their way to the recorder: packed one by one as they come, handed over as columns.

Packing a row of a few numbers into bytes costs a tenth of writing it into the columns, one entry each. Rows hold totals
of calls, seconds and rejections since the start of the run; their differences say what each step took.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.method import Outcome
from cosolve.result import Layout

Counts = npt.NDArray[np.int64]

_HEAD = (("t", "f8"), ("H", "f8"), ("residual", "f8"), ("error", "f8"))
_COUNTS = (("iterations", "i8"), ("rejected", "i8"), ("norms", "i8"))
_PACK = Struct("=4d3q").pack


class Rows:
    """Rows that are not written down yet, of a run that counts in `calls` and `seconds`.

    `totals` (calls, seconds, rejected) are those of the last row that is written down.

    >>> calls, seconds = np.array([3]), np.array([0.5])
    >>> rows = Rows(Layout(1, 0, 1), calls, seconds)
    >>> for n in (1, 2):
    ...     calls += 1
    ...     step = Outcome(np.array([10.0 * n]), np.zeros(0), np.zeros(0), 0, t1=0.1 * n, H=0.1)
    ...     rows.add(step, step.y, step.z, rejected=0)
    >>> columns, counts = rows.take()
    >>> columns["y"].tolist(), columns["calls"].tolist(), len(rows)
    ([[10.0], [20.0]], [[1], [1]], 0)
    """

    def __init__(self, layout: Layout, calls: Counts, seconds: Vector) -> None:
        self._calls, self._seconds = calls.data, seconds.data
        self.totals = calls.copy(), seconds.copy(), 0
        many = layout.n_subsystems
        wide = (("y", "f8", layout.n_y), ("z", "f8", layout.n_z), ("calls", "i8", many), ("seconds", "f8", many))
        self._type = np.dtype([*_HEAD, *_COUNTS, *((name, kind, (width,)) for name, kind, width in wide)])
        self._rows = bytearray()
        self._norms: list[float] = []

    def __len__(self) -> int:
        return len(self._rows) // self._type.itemsize

    def add(self, step: Outcome, y: Vector, z: Vector, rejected: int) -> None:
        """A macro point: the step that led to it, the values to write down, and the total of rejections."""
        head = _PACK(step.t1, step.H, step.residual, step.error, step.iterations, rejected, len(step.norms))
        self._rows += b"".join((head, y.tobytes(), z.tobytes(), self._calls, self._seconds))
        self._norms += step.norms

    def take(self) -> tuple[dict[str, Any], Counts]:
        """All rows as columns, and how many residual norms belong to each of them; they are gone from here then."""
        rows = np.frombuffer(self._rows, self._type)
        columns: dict[str, Any] = {name: rows[name] for name in self._type.names or ()}
        counts, columns["norms"] = columns["norms"], self._norms
        self._rows, self._norms = bytearray(), []
        for name, before in zip(("calls", "seconds", "rejected"), self.totals, strict=True):
            columns[name] = np.diff(rows[name], axis=0, prepend=np.array([before]))
        self.totals = rows["calls"][-1].copy(), rows["seconds"][-1].copy(), int(rows["rejected"][-1])
        return columns, counts
