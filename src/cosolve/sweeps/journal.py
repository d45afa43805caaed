"""Finished cases of a sweep in a file, as they come: after a kill the same sweep runs only those that are missing.

The file begins with a line that names its format; records follow, each with its length and a checksum. The first says
which sweep it is, every other one holds cases that were finished together. A record that was being written when the
sweep ended, and whatever else is damaged at the end, is cut off: its cases run again.
"""

from __future__ import annotations

import os
import struct
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from cosolve.basics.atomic_files import sync_folder
from cosolve.basics.digest import digest
from cosolve.basics.file_lock import claim
from cosolve.errors import CosolveError, OutputFileError, SetupError
from cosolve.state.codec import from_bytes, to_bytes
from cosolve.sweeps.grid import Variants
from cosolve.sweeps.job import Case, Collected, Job, Sink

_KIND, _NUMBER = b"cosolve sweep", 1
_HEAD = b"%s %d\n" % (_KIND, _NUMBER)
_FRAME = struct.Struct("<QI")  # bytes of a record, and their checksum
_SYNC_EVERY = 1.0  # seconds


class Journal:
    """A sink that writes down what it hands on; `done` tells which cases (variant, method, step) are there."""

    def __init__(self, path: Path, job: Job, variants: Variants, sink: Sink) -> None:
        self.path, self._sink, self._new = path.absolute(), sink, Collected()
        self.done: npt.NDArray[np.bool_] = np.zeros((len(variants), len(job.methods), len(job.steps)), dtype=bool)
        self._synced = 0.0
        with _reporting_failures(self.path), ExitStack() as undone:
            self._file = undone.enter_context(self.path.open("ab+"))
            claim(self._file, self.path)
            self._take_over(_identity(job, variants))
            undone.pop_all()

    def _take_over(self, here: dict[str, Any]) -> None:
        """Read what is there, of this sweep and no other, and stand behind it."""
        self._file.seek(0)
        records, end = _records(self._file.read(), self.path)
        if not records:
            self._file.truncate(0)
            self._file.write(_HEAD)
            self._write(to_bytes(here))
            sync_folder(self.path.parent)
            return
        there = from_bytes(records[0], str(self.path))
        for what, value in here.items():
            if there.get(what) != value:
                raise SetupError(
                    f"sweep: '{self.path}' holds cases of another sweep (its {what} differs); save to another file, or "
                    "remove that one"
                )
        for record in records[1:]:
            held = Collected(**from_bytes(record, str(self.path)))
            self._note_done(held)
            held.hand_on(self._sink)
        self._file.truncate(end)

    def put(self, case: Case, cell: Any, labels: tuple[str, ...] | None = None) -> None:
        """What is kept of one run."""
        self._new.put(case, np.asarray(cell), labels)

    def put_many(self, variants: Any, method: int, step: int, cells: Any) -> None:
        """What is kept of many runs."""
        self._new.put_many(variants, method, step, cells)

    def fail(self, case: Case, message: str) -> None:
        """A run that did not work."""
        self._new.fail(case, message)

    def note(self, case: Case, message: str) -> None:
        """A run that worked, with something to say about it."""
        self._new.note(case, message)

    def commit(self) -> None:
        """What came since the last time is complete."""
        new, self._new = self._new, Collected()
        new.hand_on(self._sink)
        self._note_done(new)
        if new != Collected():
            with _reporting_failures(self.path):
                self._write(to_bytes(asdict(new)))

    def _note_done(self, held: Collected) -> None:
        for case in (*(case for case, *_ in held.cells), *(case for case, _ in held.failures)):
            self.done[case] = True
        for variants, method, step, _ in held.many:
            self.done[variants, method, step] = True

    def _write(self, record: bytes) -> None:
        self._file.write(_FRAME.pack(len(record), crc32(record)) + record)
        self._file.flush()
        if monotonic() - self._synced > _SYNC_EVERY:
            os.fsync(self._file.fileno())
            self._synced = monotonic()

    def close(self) -> None:
        """No more cases come."""
        with _reporting_failures(self.path):
            os.fsync(self._file.fileno())
            self._file.close()


def _records(data: bytes, path: Path) -> tuple[list[bytes], int]:
    """All whole records, and where they end; none where the sweep ended before it had said which one it is."""
    if _HEAD.startswith(data) or not any(data):  # zeros: a disk that lost its power before it had written anything
        return [], 0
    head, newline, _ = data[:64].partition(b"\n")
    kind, _, number = head.rpartition(b" ")
    if not newline or kind != _KIND or not number.isdigit():
        raise SetupError(f"sweep: '{path}' is no file of a sweep; save to another one")
    if int(number) != _NUMBER:
        raise SetupError(
            f"sweep: '{path}' has format {int(number)}, written by another version of cosolve; this one reads format "
            f"{_NUMBER}: go on with that version, or save to another file"
        )
    found: list[bytes] = []
    at = len(head) + 1
    while at + _FRAME.size <= len(data):
        length, checksum = _FRAME.unpack_from(data, at)
        record = data[at + _FRAME.size : at + _FRAME.size + length]
        if len(record) < length:
            break
        if not length or crc32(record) != checksum:  # a disk that lost its power may have left zeros
            if not found and any(data[at + _FRAME.size + length :]):
                raise SetupError(f"sweep: '{path}' is damaged at its beginning; remove it, and run anew")
            break
        found.append(record)
        at += _FRAME.size + length
    return (found, at) if found else ([], 0)


def _identity(job: Job, variants: Variants) -> dict[str, Any]:
    """What two sweeps must have in common for one to go on with the cases of the other."""
    columns = {name: np.asarray(column) for name, column in variants.table().items()}
    reduce = job.reduce if isinstance(job.reduce, str) else digest(job.reduce)
    return {
        "parameters": digest(variants.dims, variants.shape, columns),
        "methods": [repr(method) for method in job.methods],
        "steps": [repr(step) for step in job.steps],
        "time": [job.t_start, job.t_end],
        "record": list(job.record),
        "every": job.every,
        "reduce": reduce,
        "build": digest(job.build),
    }


class _reporting_failures:
    """Turns failures of the operating system into a sentence about the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OSError) and not isinstance(error, CosolveError):
            raise OutputFileError(
                f"sweep: '{self._path}' cannot be written: {error.strerror or error}; choose a path in a folder you "
                "can write to"
            ) from error
