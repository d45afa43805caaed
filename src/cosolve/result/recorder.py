"""What a run writes down at every macro point, in memory. Streaming to disk: `store.py`, same contract."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.errors import SimulationError

if TYPE_CHECKING:
    from cosolve.result.result import Stats

#: The column that is not one entry per row: residual norms of all iterates, row after row; `norms_end` counts them.
NORMS = "norms"

_FIRST_ROWS = 1024
_FIRST_NUMBERS = 1 << 20
_RESERVED_BYTES = 256 << 20
_ALIGNED = 64  # bytes: a cache line


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
    def buffers(self, rows: int) -> Mapping[str, npt.NDArray[Any]]: ...
    def extend(self, block: Mapping[str, Any], counts: npt.NDArray[np.int64] | None = None) -> None: ...
    def columns(self) -> Mapping[str, npt.NDArray[Any]]: ...
    def flush(self) -> None: ...
    def finish(self, stats: Stats, error: str | None) -> SimulationError | None: ...
    def close(self) -> None: ...


class Memory:
    """Rows in growing arrays, all in one block of memory.

    What is the same in many rows (the length of equal steps, say) is kept as one value until it is read.
    """

    def __init__(self, layout: Layout, norms_before: int = 0) -> None:
        self.layout, self._widths = layout, layout.columns()
        rows = max(16, min(_FIRST_ROWS, _FIRST_NUMBERS // (1 + layout.n_y + layout.n_z)))  # few of wide fields
        self._data, self._rows = self._cut(rows), rows
        self._same: dict[str, list[tuple[int, int, Any]]] = {name: [] for name in self._data}  # first, last + 1, value
        self._count = 0
        self._norms = array("d")
        self._norms_before = norms_before  # those of rows that were cleared, or written by a run that goes on

    def _cut(self, rows: int) -> dict[str, npt.NDArray[Any]]:
        """Columns of so many rows, cut from one block: large blocks come in large pages, which are much cheaper."""
        sizes = {n: rows * (1 if w is None else w) * np.dtype(d).itemsize for n, (w, d) in self._widths.items()}
        block, at = np.empty(sum(sizes.values()) + _ALIGNED * len(sizes), np.uint8), 0
        columns = {}
        for name, (width, dtype) in self._widths.items():
            part: npt.NDArray[Any] = block[at : at + sizes[name]].view(dtype)
            columns[name] = part if width is None else part.reshape(rows, width)
            at += -(-sizes[name] // _ALIGNED) * _ALIGNED
        return columns

    def _grow(self, rows: int) -> None:
        grown = self._cut(rows)
        for name, old in self._data.items():
            grown[name][: self._count] = old[: self._count]
        self._data, self._rows = grown, rows

    def append(self, row: Row) -> None:
        """Add a macro point."""
        n = self._count
        if n == self._rows:
            self._grow(2 * n)
        data = self._data
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
        self._norms.extend(row.norms)
        data["norms_end"][n] = self._norms_before + len(self._norms)
        self._count = n + 1

    def reserve(self, rows: float) -> None:
        """Make room for about so many rows to come, within reason."""
        row_bytes = sum(column[:1].nbytes for column in self._data.values())
        wanted = self._count + int(min(rows, _RESERVED_BYTES // row_bytes))
        if wanted > self._rows:
            self._grow(wanted)

    def buffers(self, rows: int) -> Mapping[str, npt.NDArray[Any]]:
        """Where the next rows will be: what is written there need not be copied by `extend`."""
        if self._count + rows > self._rows:
            self._grow(max(2 * self._rows, self._count + rows))
        return {name: column[self._count : self._count + rows] for name, column in self._data.items()}

    def extend(self, block: Mapping[str, Any], counts: npt.NDArray[np.int64] | None = None) -> None:
        """Add many macro points at once: columns, or one row for all of them; `norms` with their `counts` per row."""
        rows = len(block["t"])
        ends = self._norms_before + len(self._norms) + (0 if counts is None else np.cumsum(counts))
        for name, target in self.buffers(rows).items():
            value: Any = ends if name == "norms_end" else block[name]
            if getattr(value, "ndim", 0) < target.ndim:
                self._note_same(name, rows, value)
            elif not np.may_share_memory(value, target) or value.ctypes.data != target.ctypes.data:
                target[:] = value
        self._norms.frombytes(np.ascontiguousarray(block[NORMS], np.float64).tobytes())
        self._count += rows

    def _note_same(self, name: str, rows: int, value: Any) -> None:
        same, first = self._same[name], self._count
        if same and same[-1][1] == first and _equal(same[-1][2], value):
            first = same.pop()[0]
        same.append((first, self._count + rows, value))

    def __len__(self) -> int:
        return self._count

    def same(self, name: str) -> Any:
        """What all rows of a column are, where they were given so; None otherwise."""
        held = self._same.get(name, ())
        return held[0][2] if len(held) == 1 and held[0][:2] == (0, self._count) else None

    def columns(self) -> Mapping[str, npt.NDArray[Any]]:
        """Views of what is there."""
        return _Columns(self._column, (*self._data, NORMS))

    def _column(self, name: str) -> npt.NDArray[Any]:
        if name == NORMS:
            return np.array(self._norms, dtype=np.float64)
        column = self._data[name]
        for first, end, value in self._same[name]:
            column[first:end] = value
        self._same[name].clear()
        return column[: self._count]

    def truncate(self, rows: int) -> None:
        """Forget all rows but the first so many."""
        for name in self._data:
            self._column(name)
        self._count = min(rows, self._count)
        norms = int(self._data["norms_end"][self._count - 1]) if self._count else 0
        del self._norms[max(0, norms - self._norms_before) :]

    def flush(self) -> None:
        """Nothing is held back."""

    def clear(self) -> None:
        """Forget the rows (a stream does so after writing a block)."""
        self._count = 0
        for same in self._same.values():
            same.clear()
        self._norms_before += len(self._norms)
        del self._norms[:]

    def finish(self, stats: Stats, error: str | None) -> SimulationError | None:
        """The run has ended; memory needs nothing written."""
        return None

    def close(self) -> None:
        """Nothing to do."""


def _equal(one: Any, other: Any) -> bool:
    """True for the same row, or the same number, NaN included."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other or (one != one and other != other))


class _Columns(Mapping[str, npt.NDArray[Any]]):
    """Columns that are put together when they are asked for."""

    def __init__(self, read: Callable[[str], npt.NDArray[Any]], names: tuple[str, ...]) -> None:
        self._read, self._names = read, names

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self._names:
            raise KeyError(name)
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
