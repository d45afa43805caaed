"""The file of a run while it goes on: it only grows, so that what was written stays readable whatever comes after.

HDF5 changes what it has written, and a write that fails in the middle of that costs the whole file, or the process. So
a run appends its rows to a journal, which becomes HDF5 when it ends (`store.py`). A journal begins with a line that
names its format and a JSON text (`about`), with its length and checksum. Blocks follow: a head, with its checksum, and
the columns one after the other, each with its own. A column that is the same in all rows of a block (the length of
equal steps, say) is one entry. A block that was being written when something ended the run is left out: it is the last.
docs/result-files.md has the layout.
"""

from __future__ import annotations

import io
import json
import os
import struct
from array import array
from bisect import bisect_right
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import finalize
from zlib import crc32

import numpy as np
import numpy.typing as npt

from cosolve.errors import OutputFileError
from cosolve.result.recorder import NORMS, Layout, Memory
from cosolve.result.stored import Columns, StoredColumns

MAGIC = b"cosolve journal 1\n"
_ABOUT = struct.Struct("<QI")  # bytes of the text, checksum
_HEAD = struct.Struct("<4sIQQ")  # kind, checksum of what follows, rows (bytes of a text), norms
_ENTRY = struct.Struct("<II")  # of a column: 1 where one entry stands for all rows, checksum
_ROWS, _ENDS = b"rows", b"ends"
_NARROW = 16  # numbers per row: wider columns are written row by row, so that a small file cannot ask for much memory
_ABOUT_BYTES = 1 << 30

Array = npt.NDArray[Any]


class Journal(StoredColumns):
    """Rows in an open journal. `about` is what the run says about itself, `ending` how it ended, if it did.

    >>> import tempfile
    >>> from cosolve.result.recorder import Row
    >>> rows = Memory(Layout(1, 0, 1))
    >>> for n in range(3):
    ...     rows.append(Row(0.1 * n, np.array([n]), np.zeros(0)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "run.h5")
    ...     with path.open("xb+", buffering=0) as file:
    ...         Journal.begin(file, path, {"run": "1"}, Layout(1, 0, 1)).add(rows)
    ...     journal = Journal.opened(path)
    ...     journal["t"], journal.rows
    ...     journal.close()
    (array([0. , 0.1, 0.2]), 3)
    """

    def __init__(self, file: io.FileIO, path: Path, about: dict[str, Any], layout: Layout) -> None:
        super().__init__(path, str(about["run"]))
        self.about, self._layout, self._file, self.ending = about, layout, file, b""
        self._widths = {**layout.columns(), NORMS: (None, np.float64)}
        self._head = _HEAD.size + _ENTRY.size * len(self._widths)
        self.end = 0
        self._at, self._row_ends, self._norm_ends = array("Q"), array("Q"), array("Q")  # of blocks
        self._tail: Columns | None = None
        self._lock = Lock()
        # Also where the journal is dropped in a cycle of references (a traceback holds it): the file is not part of it.
        self._closed = finalize(self, file.close)

    @classmethod
    def begin(cls, file: io.FileIO, path: Path, about: dict[str, Any], layout: Layout) -> Journal:
        """A journal without rows."""
        made = cls(file, path, about, layout)
        text = json.dumps({"layout": [layout.n_y, layout.n_z, layout.n_subsystems], **about}).encode()
        file.truncate(0)
        made._write([MAGIC, _ABOUT.pack(len(text), crc32(text)), text])
        return made

    @classmethod
    def opened(cls, path: Path) -> Journal:
        """The rows that are in a journal now; a sentence where it is none, or damaged at its beginning."""
        file = path.open("rb", buffering=0)
        try:
            length, checksum = _ABOUT.unpack(file.read(len(MAGIC) + _ABOUT.size)[len(MAGIC) :])
            text = file.read(length) if length <= min(_ABOUT_BYTES, os.fstat(file.fileno()).st_size) else b""
            if len(text) != length or crc32(text) != checksum:
                raise ValueError("its beginning was cut off or changed")
            about = json.loads(text)
            made = cls(file, path, about, Layout(*(_size(n) for n in about.pop("layout"))))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, struct.error) as error:
            file.close()
            raise OutputFileError(f"'{path}' is the damaged file of a run that did not finish: {error}") from None
        made.end = len(MAGIC) + _ABOUT.size + length
        made._scan()
        return made

    # -- writing

    def add(self, block: Memory) -> None:
        """Append rows; what cannot be written as a whole is not there."""
        entries, parts, count, columns = b"", [], len(block), block.columns()
        for name, (width, kind) in self._widths.items():
            same = block.same(name) if (width or 1) <= _NARROW and name not in ("t", NORMS) else None
            values = columns[name] if same is None else np.full((1, *(() if width is None else (width,))), same, kind)
            part = np.ascontiguousarray(values).data.cast("B") if values.size else b""
            entries += _ENTRY.pack(same is not None, crc32(part))
            parts.append(part)
        body = struct.pack("<QQ", count, len(columns[NORMS])) + entries
        at = self.end
        self._write([_ROWS, struct.pack("<I", crc32(body)), body, *parts])
        self._note(at, count, len(columns[NORMS]))

    def finish(self, ending: bytes) -> None:
        """Append how the run ended."""
        body = struct.pack("<QQ", len(ending), crc32(ending)) + bytes(self._head - _HEAD.size)
        self._write([_ENDS, struct.pack("<I", crc32(body)), body, ending])
        self.ending = ending

    def keep(self, tail: Columns) -> None:
        """Rows that could not be written stand behind those in the file."""
        self._tail = {name: np.array(tail[name]) for name in tail}
        self._kept.clear()

    def _write(self, parts: list[bytes | memoryview]) -> None:
        with self._lock:
            try:
                self._file.seek(self.end)
                at = self.end
                for part in parts:
                    view = memoryview(part)
                    while view:
                        done = self._file.write(view)
                        view, at = view[done:], at + done
            except OSError:
                self._file.truncate(self.end)
                raise
            self.end = at
            self._kept.clear()

    def cut(self) -> bool:
        """Forget blocks that another program has cut off; whether there were any."""
        size, before = os.fstat(self._file.fileno()).st_size, len(self._at)
        while self._at and self.end > size:
            self._drop()
        return len(self._at) < before

    def _drop(self) -> None:
        """Forget the last block."""
        self.end = self._at.pop()
        self._row_ends.pop()
        self._norm_ends.pop()

    def secure(self) -> None:
        """Bring everything to the disk itself."""
        os.fsync(self._file.fileno())

    def refuse_changed(self) -> None:
        """Raise where the file is not as long as it was left."""
        size = os.fstat(self._file.fileno()).st_size
        if size != self.end:
            raise OutputFileError(f"it has {size} bytes instead of {self.end}: another program has changed it")

    def same_file(self) -> bool | None:
        """Whether the file is still under its name: False where another one is, None where none is."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), self.path.stat())
        except FileNotFoundError:
            return None

    def copy(self, file: io.FileIO) -> None:
        """The same bytes in another file, which takes the place of this one."""
        with self._lock:
            self._file.seek(0)
            file.truncate(0)
            left = self.end
            while left:
                data = self._file.read(min(left, 1 << 20))
                left -= len(data)
                while data:
                    data = data[file.write(data) :]
            self._file.close()
            self._file = file

    def close(self) -> None:
        """Nothing more is read or written."""
        self._closed()

    # -- reading

    def _scan(self) -> None:
        """Find the blocks; the last ones count only if all of them is there, after a power cut as well."""
        size = os.fstat(self._file.fileno()).st_size
        while self.end + self._head <= size:
            kind, checksum, rows, norms = _HEAD.unpack((head := self._bytes(self.end, self._head))[: _HEAD.size])
            if crc32(head[8:]) != checksum:
                break
            if kind == _ENDS:
                text = self._bytes(self.end + self._head, min(rows, size))
                self.ending = text if len(text) == rows and crc32(text) == norms else b""
                break
            length = self._head + sum(n for n, _ in self._parts(head, rows, norms).values())
            if kind != _ROWS or not rows or self.end + length > size:
                break
            self._note(self.end, rows, norms)
            self.end += length
        if not self.ending:  # after a power cut any block may be missing that was not brought to the disk itself
            sound = next((block for block in range(len(self._at)) if not self._whole(block)), len(self._at))
            while len(self._at) > sound:
                self._drop()

    def _note(self, at: int, rows: int, norms: int) -> None:
        self._at.append(at)
        self._row_ends.append((self._row_ends[-1] if self._row_ends else 0) + rows)
        self._norm_ends.append((self._norm_ends[-1] if self._norm_ends else 0) + norms)

    def _parts(self, head: bytes, rows: int, norms: int) -> dict[str, tuple[int, int]]:
        """Bytes and checksum of each column of a block."""
        found = {}
        for k, (name, (width, kind)) in enumerate(self._widths.items()):
            same, checksum = _ENTRY.unpack_from(head, _HEAD.size + k * _ENTRY.size)
            same = same and name not in ("t", NORMS) and (width or 1) <= _NARROW
            count = norms if name == NORMS else 1 if same else rows
            found[name] = count * (1 if width is None else width) * np.dtype(kind).itemsize, checksum
        return found

    def _whole(self, block: int) -> bool:
        try:
            for name in self._widths:
                self._chunk(block, name)
        except OutputFileError:
            return False
        return True

    def _bytes(self, at: int, length: int) -> bytes:
        with self._lock:
            self._file.seek(at)
            found = b""
            while len(found) < length and (more := self._file.read(length - len(found))):
                found += more
            return found

    def _chunk(self, block: int, name: str) -> Array:
        """A column of a block: all its rows, or one entry that stands for them."""
        at, rows = self._at[block], self._row_ends[block] - (self._row_ends[block - 1] if block else 0)
        norms = self._norm_ends[block] - (self._norm_ends[block - 1] if block else 0)
        head, data, length, checksum = self._bytes(at, self._head), b"", 1, 0
        if len(head) == self._head:
            parts = self._parts(head, rows, norms)
            before = list(parts)[: list(parts).index(name)]
            length, checksum = parts[name]
            data = self._bytes(at + self._head + sum(parts[other][0] for other in before), length)
        if len(data) < length or crc32(data) != checksum:
            raise OutputFileError(
                f"'{self.path}' was damaged by another program: rows {self._row_ends[block] - rows} to "
                f"{self._row_ends[block] - 1} of '{name}' are not what the run has written"
            )
        width, kind = self._widths[name]
        values: Array = np.frombuffer(data, kind) if data else np.empty(0, kind)
        return values if width is None else values.reshape(-1 if width else rows, width)

    @property
    def rows(self) -> int:
        """Valid rows."""
        return self._in_file(self._row_ends) + (0 if self._tail is None else len(self._tail["t"]))

    def _in_file(self, ends: array[int]) -> int:
        return ends[-1] if ends else 0

    def width(self, name: str) -> int:
        """Numbers per row of a column."""
        return self._widths[name][0] or 0

    def _read(self, name: str, start: int, stop: int) -> Array:
        ends = self._norm_ends if name == NORMS else self._row_ends
        width, kind = self._widths[name]
        there, at = self._in_file(ends), start
        found: Array = np.empty((max(0, stop - start), *(() if width is None else (width,))), kind)
        while at < min(stop, there):
            block = bisect_right(ends, at)
            first, last = (ends[block - 1] if block else 0), min(ends[block], stop)
            chunk = self._chunk(block, name)
            one = len(chunk) != ends[block] - first
            found[at - start : last - start] = chunk if one else chunk[at - first : last - first]
            at = last
        if stop > there and self._tail is not None:
            found[at - start :] = self._tail[name][at - there : stop - there]
        return found

    @property
    def norms(self) -> int:
        """How many residual norms there are."""
        return self._in_file(self._norm_ends) + (0 if self._tail is None else len(self._tail[NORMS]))

    def repeated(self, name: str) -> tuple[int, Any] | None:
        """After how many rows a column is one number to the end, and which; None where it is not known to be."""
        width, _ = self._widths[name]
        if name in ("t", NORMS) or (width or 1) > _NARROW or self._tail is not None:
            return None
        value, first = None, len(self._at)
        for block in reversed(range(len(self._at))):
            rows = self._row_ends[block] - (self._row_ends[block - 1] if block else 0)
            chunk = self._chunk(block, name)
            if len(chunk) == rows or (value is not None and chunk.tobytes() != value.tobytes()):
                break
            value, first = chunk, block
        if value is None or not value.size or (not (value == value.flat[0]).all() and not np.isnan(value).all()):
            return None
        return (self._row_ends[first - 1] if first else 0), value.flat[0]


def _size(number: Any) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 1 << 32:
        raise ValueError(f"{number!r} is no width of a column")
    return number


def is_journal(path: Path) -> bool:
    """True for a file that begins as a journal does."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
