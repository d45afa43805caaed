"""Columns of one run in a file, each read when it is asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from cosolve.errors import OutputFileError
from cosolve.result.recorder import NORMS, Layout

_CACHE_BYTES = 64 << 20
_FACTOR = 64  # a column is not larger than so many times its file
NAMES = (*Layout(0, 0, 0).columns(), NORMS)

Columns = Mapping[str, npt.NDArray[Any]]


class StoredColumns(Mapping[str, npt.NDArray[Any]]):
    """The columns of one run in a file; small ones are kept once they were read."""

    about: dict[str, Any]  # what the run says about itself
    ending: bytes  # how it ended

    def __init__(self, path: Path, run: str) -> None:
        self.path, self.run = path, run
        self._kept: dict[str, npt.NDArray[Any]] = {}

    @property
    @abstractmethod
    def rows(self) -> int:
        """Valid rows."""

    @abstractmethod
    def width(self, name: str) -> int:
        """Numbers per row of a column."""

    @abstractmethod
    def _read(self, name: str, start: int, stop: int) -> npt.NDArray[Any]:
        """Some rows of a column, or some residual norms, as a new array."""

    @property
    @abstractmethod
    def norms(self) -> int:
        """How many residual norms there are."""

    def repeated(self, name: str) -> tuple[int, Any] | None:
        """After how many rows a column is one number to the end, and which; None where it is not known to be."""
        return None

    def read(self, name: str, rows: slice) -> npt.NDArray[Any]:
        """Some rows of a column, as a new array."""
        if name not in NAMES:
            raise KeyError(name)
        start, stop, _ = rows.indices(self.norms if name == NORMS else self.rows)
        try:
            return self._read(name, start, stop)
        except MemoryError:
            raise OutputFileError(
                f"'{self.path}': rows {start} to {stop} of '{name}' do not fit in memory; read parts of it"
            ) from None

    def refuse_large(self, name: str, n_bytes: int) -> None:
        """Raise where a column asks for memory out of all proportion to the file."""
        size = self.path.stat().st_size
        if n_bytes > _FACTOR * max(size, 1 << 20):
            raise OutputFileError(
                f"'{self.path}' has {size} bytes, but its column '{name}' would take {n_bytes}; was it damaged?"
            )

    def last(self, name: str) -> float:
        """The last value of a scalar column."""
        return float(self.read(name, slice(self.rows - 1, None))[0])

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        kept = self._kept.get(name)
        if kept is not None:
            return kept
        values = self.read(name, slice(None))
        if values.nbytes + sum(array.nbytes for array in self._kept.values()) <= _CACHE_BYTES:
            values.flags.writeable = False
            self._kept[name] = values
        return values

    def columns(self) -> Columns:
        """Itself: the file is the mapping."""
        return self

    def close(self) -> None:
        """Nothing more is read."""

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


class HeldColumns(StoredColumns):
    """Columns in memory, as if they were in a file."""

    def __init__(self, columns: Columns) -> None:
        super().__init__(Path(), "")
        self._columns = columns

    @property
    def rows(self) -> int:
        return len(self._columns["t"])

    def width(self, name: str) -> int:
        values = self._columns[name]
        return int(values.shape[1]) if values.ndim == 2 else 0

    def _read(self, name: str, start: int, stop: int) -> npt.NDArray[Any]:
        return self._columns[name][start:stop]

    @property
    def norms(self) -> int:
        return len(self._columns[NORMS])


def as_stored(columns: Columns) -> StoredColumns:
    """Columns that can be read in parts, wherever they are."""
    return columns if isinstance(columns, StoredColumns) else HeldColumns(columns)
