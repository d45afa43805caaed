"""Reading result files. They may come from elsewhere: what is not laid out as cosolve does it is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from cosolve.basics.plain_file import refuse_no_file
from cosolve.basics.wording import shown
from cosolve.errors import CosolveError, OutputFileError, SetupError
from cosolve.result.journal import Journal, is_journal
from cosolve.result.recorder import NORMS, Layout
from cosolve.result.stored import StoredColumns

FORMAT = "cosolve result 1"
ERROR_BAR = "error_bar"
KINDS = {**{name: np.dtype(kind) for name, (_, kind) in Layout(0, 0, 0).columns().items()}, NORMS: np.dtype(float)}
WIDE = ("y", "z", "calls", "seconds")


class FileColumns(StoredColumns):
    """The columns of one run in an HDF5 file; `about` is what the run says about itself, `ending` how it ended."""

    def __init__(self, path: Path, run: str) -> None:
        super().__init__(path, run)
        with self.open() as file:
            self.about = json.loads(text_of(file, path, "about"))
            if not isinstance(self.about, dict):
                raise ValueError("about")
            self.ending = bytes(dataset(file, path, "outcome")[:])
            self.has_bar = ERROR_BAR in file
            self._rows = int(_number(file, path, "rows"))
            self._count = 0
            self._widths = dict.fromkeys(KINDS, 0)
            there = [name for name in KINDS if not (name in (NORMS, "norms_end") and name not in file)]
            for name in there:  # files from before there were residual norms have none
                column = self._column(file, name)
                self._widths[name] = column.shape[1] if name in WIDE else 0
                if name != NORMS and not 0 <= self._rows <= len(column):
                    raise OutputFileError(f"'{path}' has {self._rows} rows, but {len(column)} of '{name}'")
            self._there = set(there)
            if "norms_end" in self._there and self._rows:
                self._count = int(self._column(file, "norms_end")[self._rows - 1])
                if not 0 <= self._count <= len(self._column(file, NORMS)):
                    raise OutputFileError(f"'{path}' does not have the {self._count} residual norms that it says")

    @property
    def rows(self) -> int:
        """Valid rows."""
        return self._rows

    def width(self, name: str) -> int:
        """Numbers per row of a column."""
        return self._widths[name]

    @property
    def norms(self) -> int:
        """How many residual norms there are."""
        return self._count

    def _read(self, name: str, start: int, stop: int) -> npt.NDArray[Any]:
        if name not in self._there:
            return np.zeros(max(0, stop - start), np.int64)
        with self.open() as file:
            column = self._column(file, name)
            if 0 in column.shape[1:]:
                return np.empty((max(0, stop - start), 0), column.dtype)
            width = column.shape[1] if name in WIDE else 1
            self.refuse_large(name, max(0, stop - start) * width * column.dtype.itemsize)
            return np.asarray(column[start:stop])

    def _column(self, file: h5py.File, name: str) -> h5py.Dataset:
        found = dataset(file, self.path, name)
        if found.dtype != KINDS[name] or found.ndim != (2 if name in WIDE else 1):
            raise OutputFileError(
                f"'{self.path}': its column '{name}' is of another kind ({found.dtype}, {found.ndim}D)"
            )
        return found

    @contextmanager
    def open(self) -> Iterator[h5py.File]:
        """The file, as long as it holds this run; a sentence where HDF5 cannot read it."""
        with hdf5_read(self.path) as file:
            if attribute(file, "format") != FORMAT:
                raise _other_format(self.path, attribute(file, "format"))
            run = attribute(file, "run")
            if self.run and run != self.run:
                raise OutputFileError(
                    f"'{self.path}' now holds another run, so this result is gone; save each run to its own file"
                )
            self.run = run
            yield file


def open_result(path: Path) -> FileColumns | Journal:
    """A result file for reading, whether its run finished or not."""
    try:
        refuse_no_file(path, folder=True)
        if path.is_dir():
            raise OutputFileError(f"'{path}' is a folder; load_result reads the .h5 files that cosolve writes")
        if is_journal(path):
            return Journal.opened(path)
    except FileNotFoundError:
        raise OutputFileError(f"there is no result file '{shown(path)}'; check the path") from None
    except SetupError as error:
        raise OutputFileError(str(error)) from None
    except OutputFileError:
        raise
    except OSError as failure:
        raise OutputFileError(f"'{shown(path)}' cannot be read: {reason(failure)}") from None
    return FileColumns(path, "")


@contextmanager
def hdf5_read(path: Path, **options: Any) -> Iterator[h5py.File]:
    """An HDF5 file for reading; a sentence for whatever is wrong with it."""
    try:
        if not h5py.is_hdf5(path):
            hint = "; read CSV with pandas.read_csv" if path.suffix.lower() == ".csv" else ""
            raise OutputFileError(f"'{path}' is not an HDF5 file{hint}")
        refuse_cut(path)
        with h5py.File(path, "r", **options) as file:
            yield file
    except CosolveError:
        raise
    except OSError as failure:
        raise OutputFileError(f"'{path}' cannot be read: {reason(failure)}; was it damaged?") from failure
    except (LookupError, RuntimeError, ValueError, TypeError, ArithmeticError, AttributeError, MemoryError) as failure:
        said = str(failure.args[0]) if failure.args else type(failure).__name__
        raise OutputFileError(f"'{path}' cannot be read, was it cut or damaged? {said}") from failure


def dataset(group: h5py.Group, path: Path, name: str) -> h5py.Dataset:
    """A dataset of a file that may come from elsewhere: in the file itself, not packed, not computed."""
    found = group.get(name, getlink=True)
    if found is None:
        raise OutputFileError(f"'{path}' has no '{name}'; was it damaged?")
    if not isinstance(found, h5py.HardLink) or not isinstance(group[name], h5py.Dataset):
        raise OutputFileError(f"'{path}': its '{name}' is no dataset of the file itself")
    made = group[name]
    plan = made.id.get_create_plist()
    if plan.get_external_count() or made.is_virtual:
        raise OutputFileError(f"'{path}': its '{name}' lies in another file, which is not read")
    if any(plan.get_filter(k)[0] not in _FILTERS for k in range(plan.get_nfilters())):
        raise OutputFileError(f"'{path}': its '{name}' is packed in a way that is not read")
    return made


_FILTERS = (h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE)


def text_of(group: h5py.Group, path: Path, name: str) -> str:
    """A text of fixed length: others have no checksum, and damaged ones may keep HDF5 busy for ever."""
    found = dataset(group, path, name)
    if found.shape != () or found.dtype.kind != "S":
        raise OutputFileError(f"'{path}': its '{name}' is no text of fixed length; was it damaged?")
    return bytes(found[()]).decode()


def _number(group: h5py.Group, path: Path, name: str) -> int:
    found = dataset(group, path, name)
    if found.shape != () or found.dtype.kind not in "iu":
        raise OutputFileError(f"'{path}': its '{name}' is no whole number; was it damaged?")
    return int(found[()])


def attribute(group: h5py.Group, name: str) -> str:
    """A text of fixed length; empty where it is none."""
    if name not in group.attrs or group.attrs.get_id(name).dtype.kind != "S":
        return ""
    return bytes(np.ravel(group.attrs[name])[:1].tobytes()).rstrip(b"\0").decode()


def _other_format(path: Path, found: str) -> OutputFileError:
    if found.startswith("cosolve result"):
        return OutputFileError(
            f"'{path}' is a '{found}', but this version reads a '{FORMAT}'; use the one that wrote it"
        )
    return OutputFileError(f"'{path}' is an HDF5 file, but not a cosolve result; check the path")


def written_now(path: Path) -> bool:
    """True for a file of HDF5 that is being written, or whose writer was killed."""
    with path.open("rb") as file:
        head = file.read(12)
    return len(head) == 12 and head[8] >= 2 and head[11] != 0


def refuse_cut(path: Path) -> None:
    """Raise where a file that was complete is shorter than it says.

    Its first block has eight bytes of signature, version, two sizes, flags (3 while a writer may be active), two
    addresses and the length of the file.
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
