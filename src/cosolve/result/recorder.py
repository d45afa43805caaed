"""What a run writes down at every macro point, in memory. Streaming to disk: `store.py`, same contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from cosolve.subsystem.port import Vector

if TYPE_CHECKING:
    from cosolve.result.result import Stats

#: The column that is not one entry per row: residual norms of all iterates, row after row; `norms_end` counts them.
NORMS = "norms"

_FIRST_ROWS = 1024
_FIRST_NUMBERS = 1 << 20
_RESERVED_BYTES = 256 << 20


@dataclass(frozen=True)
class Layout:
    """The widths of the recorded columns."""

    n_y: int
    n_z: int
    n_subsystems: int

    def columns(self) -> dict[str, tuple[int | None, type]]:
        """Column name -> (width or None for a scalar, type)."""
        return {
            "t": (None, np.float64),
            "y": (self.n_y, np.float64),
            "z": (self.n_z, np.float64),
            "H": (None, np.float64),
            "iterations": (None, np.int32),
            "residual": (None, np.float64),
            "error": (None, np.float64),
            "rejected": (None, np.int32),
            "calls": (self.n_subsystems, np.int64),
            "seconds": (self.n_subsystems, np.float64),
            "norms_end": (None, np.int64),
        }


@dataclass(slots=True)
class Row:
    """One macro point: values there, and what the step that led to it took.

    `calls` and `seconds` are per subsystem and per step, rejected attempts included; `norms` are the residual norms of
    the iterates of the last step.
    """

    t: float
    y: Vector
    z: Vector
    H: float = np.nan
    iterations: int = 0
    residual: float = np.nan
    error: float = np.nan
    rejected: int = 0
    calls: npt.NDArray[np.int64] | None = None
    seconds: Vector | None = None
    norms: Sequence[float] = ()


class Recorder(Protocol):
    """Where rows go. `columns()` gives everything recorded so far."""

    def append(self, row: Row) -> None: ...
    def extend(self, block: Mapping[str, Any], counts: npt.NDArray[np.int64] | None = None) -> None: ...
    def columns(self) -> Mapping[str, npt.NDArray[Any]]: ...
    def finish(self, stats: Stats, error: str | None) -> None: ...
    def close(self) -> None: ...


class Memory:
    """Rows in growing arrays."""

    def __init__(self, layout: Layout) -> None:
        rows = max(16, min(_FIRST_ROWS, _FIRST_NUMBERS // (1 + layout.n_y + layout.n_z)))  # few of wide fields
        self._data: dict[str, npt.NDArray[Any]] = {
            name: np.empty((rows,) if width is None else (rows, width), dtype)
            for name, (width, dtype) in layout.columns().items()
        }
        self._count = 0
        self._norms: list[float] = []
        self._norms_before = 0  # those of rows that were cleared

    def append(self, row: Row) -> None:
        """Add a macro point."""
        n = self._count
        data = self._data
        if n == len(data["t"]):
            self._data = data = {name: np.concatenate([a, np.empty_like(a)]) for name, a in data.items()}
        data["t"][n] = row.t
        data["y"][n] = row.y
        data["z"][n] = row.z
        data["H"][n] = row.H
        data["iterations"][n] = row.iterations
        data["residual"][n] = row.residual
        data["error"][n] = row.error
        data["rejected"][n] = row.rejected
        data["calls"][n] = 0 if row.calls is None else row.calls
        data["seconds"][n] = 0.0 if row.seconds is None else row.seconds
        self._norms += row.norms
        data["norms_end"][n] = self._norms_before + len(self._norms)
        self._count = n + 1

    def reserve(self, rows: float) -> None:
        """Make room for about so many rows to come, within reason."""
        row_bytes = sum(array[:1].nbytes for array in self._data.values())
        more = int(min(rows, _RESERVED_BYTES // row_bytes)) - (len(self._data["t"]) - self._count)
        if more > 0:
            grown = {name: np.empty((len(a) + more, *a.shape[1:]), a.dtype) for name, a in self._data.items()}
            for name, array in self._data.items():
                grown[name][: self._count] = array[: self._count]
            self._data = grown

    def extend(self, block: Mapping[str, Any], counts: npt.NDArray[np.int64] | None = None) -> None:
        """Add many macro points at once: columns (or one value for all rows), `norms` with their `counts` per row."""
        rows = len(block["t"])
        while self._count + rows > len(self._data["t"]):
            self._data = {name: np.concatenate([a, np.empty_like(a)]) for name, a in self._data.items()}
        part = slice(self._count, self._count + rows)
        ends = self._norms_before + len(self._norms) + (0 if counts is None else np.cumsum(counts))
        for name, array in self._data.items():
            array[part] = ends if name == "norms_end" else block[name]
        self._norms += list(block[NORMS])
        self._count += rows

    def columns(self) -> Mapping[str, npt.NDArray[Any]]:
        """Views of what is there."""
        rows = {name: array[: self._count] for name, array in self._data.items()}
        return {**rows, NORMS: np.array(self._norms, dtype=np.float64)}

    def clear(self) -> None:
        """Forget the rows (a stream does so after writing a block)."""
        self._count = 0
        self._norms_before += len(self._norms)
        self._norms.clear()

    def finish(self, stats: Stats, error: str | None) -> None:
        """The run has ended; memory needs no last words."""

    def close(self) -> None:
        """Nothing to do."""
