"""Reading result files: columns of one run, each read when it is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from cosolve.basics.wording import shown
from cosolve.errors import OutputFileError
from cosolve.result.recorder import NORMS, Layout

FORMAT = "cosolve result 1"
_CACHE_BYTES = 64 << 20
_NAMES = (*Layout(0, 0, 0).columns(), NORMS)

Columns = Mapping[str, npt.NDArray[Any]]


class FileColumns(Mapping[str, npt.NDArray[Any]]):
    """The columns of one run in a file, each read when asked for; small ones are kept."""

    def __init__(self, path: Path, run: str) -> None:
        self.path, self.run = path, run
        self._kept: dict[str, npt.NDArray[Any]] = {}

    def columns(self) -> Columns:
        """Itself: the file is the mapping."""
        return self

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        kept = self._kept.get(name)
        if kept is not None:
            return kept
        values = self.read(name, slice(None))
        if values.nbytes + sum(array.nbytes for array in self._kept.values()) <= _CACHE_BYTES:
            values.flags.writeable = False
            self._kept[name] = values
        return values

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)

    @property
    def rows(self) -> int:
        """Valid rows."""
        with self.open() as file:
            return int(file["rows"][()])

    def width(self, name: str) -> int:
        """Numbers per row of a column."""
        with self.open() as file:
            return int(file[name].shape[1])

    def last(self, name: str) -> float:
        """The last value of a scalar column."""
        return float(self.read(name, slice(self.rows - 1, None))[0])

    def read(self, name: str, rows: slice) -> npt.NDArray[Any]:
        """Some rows of a column, as a new array."""
        with self.open() as file:
            if name not in _NAMES:
                raise KeyError(name)
            count = int(file["rows"][()])
            if name not in file:  # files from before there were residual norms
                return np.zeros(0 if name == NORMS else len(range(*rows.indices(count))), np.int64)
            dataset = file[name]
            if name == NORMS:
                return np.asarray(dataset[: int(file["norms_end"][count - 1]) if count else 0])
            start, stop, _ = rows.indices(count)
            if 0 in dataset.shape[1:]:
                return np.empty((stop - start, 0), dataset.dtype)
            return np.asarray(dataset[start:stop])

    def open(self) -> h5py.File:
        """The file, as long as it holds this run."""
        file = open_result(self.path)
        if file.attrs["run"] != self.run:
            file.close()
            raise OutputFileError(
                f"'{self.path}' now holds another run, so this result is gone; save each run to its own file"
            )
        return file


def open_result(path: Path) -> h5py.File:
    """A result file for reading, whether its run finished or not."""
    try:
        exists = path.exists()
    except (OSError, ValueError) as error:  # a name too long, or with a NUL
        raise OutputFileError(f"'{shown(path)}' is no path: {getattr(error, 'strerror', None) or error}") from None
    if not exists:
        raise OutputFileError(f"there is no result file '{path}'; check the path")
    try:
        readable = not path.is_dir() and h5py.is_hdf5(path)
    except OSError as failure:  # no plain file
        raise OutputFileError(f"'{path}' cannot be read: {reason(failure)}") from None
    if not readable:
        what = "a folder" if path.is_dir() else "not an HDF5 file"
        hint = "; read CSV with pandas.read_csv" if path.suffix.lower() == ".csv" else ""
        raise OutputFileError(f"'{path}' is {what}; load reads the .h5 files that cosolve writes{hint}")
    try:
        try:
            file = h5py.File(path, "r")
        except OSError:  # still open for writing, or left so by a killed run
            refuse_cut(path)
            file = h5py.File(path, "r", libver="latest", swmr=True)
    except OutputFileError:
        raise
    except OSError as failure:
        raise OutputFileError(
            f"'{path}' cannot be read: {reason(failure)}; if a run is writing it, wait until it ends"
        ) from failure
    found = file.attrs.get("format")
    if found != FORMAT:
        file.close()
        if isinstance(found, str) and found.startswith("cosolve result"):
            raise OutputFileError(
                f"'{path}' is a '{found}', but this version reads a '{FORMAT}'; use the one that wrote it"
            )
        raise OutputFileError(f"'{path}' is an HDF5 file, but not a cosolve result; check the path")
    return file


def refuse_cut(path: Path) -> None:
    """Raise where a file that was complete is shorter than it says: HDF5 would wait for the rest without end.

    Its first block has eight bytes of signature, version, two sizes, flags (3 while somebody may write), two addresses
    and the length of the file.
    """
    with path.open("rb") as file:
        head = file.read(36)
    length = int.from_bytes(head[28:36], "little")
    if len(head) < 36 or (head[8] >= 2 and head[11] == 0 and length > path.stat().st_size):
        raise OutputFileError(
            f"'{path}' cannot be read: it was cut off after {path.stat().st_size} of {length} bytes; copy it anew, or "
            "run again"
        )


def reason(failure: OSError) -> str:
    """The operating system's words for an error of HDF5, which wraps them in a long text."""
    if failure.errno:
        return os.strerror(failure.errno)
    text = str(failure)
    marker = "error message = '"
    return text[text.index(marker) + len(marker) :].split("'")[0] if marker in text else text
