"""Results on disk: a journal while a run goes on, HDF5 when it has ended, CSV for spreadsheets.

A run appends its rows to a journal (`journal.py`), which holds the name of the result from the second row on; where
there is a file of that name, it stays until then. At the end an HDF5 file is written beside the journal, brought to the
disk, and takes its place; where that does not work, the journal stays, and `load` reads it as it reads that of a killed
run. One run at a time writes a file (`basics/file_lock.py`). docs/result-files.md has both layouts. Columns are read
when they are asked for.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from shutil import copyfile
from time import monotonic
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from cosolve.basics.atomic_files import draft_of, placed, replacing, sync_folder, take_place
from cosolve.basics.file_lock import claimed_draft
from cosolve.basics.hdf5 import written_hdf5
from cosolve.errors import OutputFileError, SetupError, SimulationError
from cosolve.result.error_bar import ErrorBar
from cosolve.result.file_about import about_text, channels_of, ending_of, ending_text, meta_of, subsystems_of
from cosolve.result.file_columns import FileColumns, open_result, reason
from cosolve.result.file_writing import read_error_bar, write_error_bar, write_result
from cosolve.result.journal import Journal
from cosolve.result.notes import Note
from cosolve.result.recorder import NORMS, Layout, Memory, Row
from cosolve.result.result import Channel, Result, Stats
from cosolve.result.stored import Columns, StoredColumns, as_stored

_HDF5 = (".h5", ".hdf5")
_BLOCK_ROWS = 4096
_BLOCK_BYTES = 8 << 20  # wide rows (fields) are flushed in smaller blocks
_FLUSH_SECONDS = 1.0


class Stream:
    """A recorder that appends rows to a file and keeps only the last block of them in memory.

    `simulate(..., save=path)` makes one. The path is tried before anything runs; the first two rows, then blocks of
    4096 rows (fewer where rows are wide), and whatever is there after a second, reach the file together. With the
    second row the file takes the place of an earlier one and `settled` is called; of a run that stops before that the
    rows are kept in memory only.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> stream = Stream(Path(folder.name, "run.h5"), Layout(1, 0, 1), {"a.x": Channel("y", (0,), True)}, ("a",), {})
    >>> for n in range(3):
    ...     stream.append(Row(0.1 * n, np.array([n]), np.zeros(0)))
    >>> stream.finish(Stats(steps=2), None)
    >>> load(folder.name + "/run.h5")["a.x"]
    array([0., 1., 2.])
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: Path,
        layout: Layout,
        channels: Mapping[str, Channel],
        subsystems: tuple[str, ...],
        meta: Mapping[str, Any],
        settled: Callable[[], None] | None = None,
    ) -> None:
        if path.suffix.lower() not in _HDF5:
            raise SetupError(
                f"a run is streamed to an HDF5 file, so '{path}' must end in .h5; "
                "result.save('....csv') writes CSV after the run"
            )
        refuse_unwritable(path)
        about = about_text(channels, subsystems, meta) | {"run": uuid4().hex}
        target = placed(path)
        self._target: Path | None = target  # where the file belongs, as long as it is a draft
        with _reporting_failures(path):
            draft = draft_of(target)
            file = claimed_draft(draft, target)
            self._begin(Journal.begin(file, draft, about, layout), Memory(layout))
        self._settled, self._about = settled, (channels, subsystems, meta)

    @classmethod
    def continued(cls, path: Path, rows: int) -> Stream:
        """The stream of a run that is resumed after its first so many rows; what came after them is gone.

        They are copied to a new file, which takes the place of the old one when it is whole.
        """
        path, made = placed(path), cls.__new__(cls)
        with closing(open_result(path)) as old:
            if old.rows < rows:
                raise OutputFileError(
                    f"'{path}' holds {old.rows} rows, but its saved state was written after {rows}; was the file cut, "
                    "or copied while the run went on? Run anew"
                )
            layout = _layout(old)
            made._about = channels_of(old), subsystems_of(old), meta_of(old)
            with _reporting_failures(path):
                file = claimed_draft(draft_of(path), path)
                journal = Journal.begin(file, draft_of(path), old.about | {"run": old.run}, layout)
                made._target, made._settled = path, None
                made._begin(journal, Memory(layout))
                for block in _blocks(old, rows):
                    counts = np.diff(block["norms_end"], prepend=journal.norms)
                    made._block.extend(block, counts)
                    made._put()
                journal.secure()
                made._settle()
        return made

    def _begin(self, journal: Journal, block: Memory) -> None:
        self._journal, self._block, self._block_rows = journal, block, _block_rows(block.layout)
        self._columns: Columns = journal
        self._failure: SimulationError | None = None
        self._open, self._flushed = True, 0.0  # so that the first rows are flushed at once
        self._named = False  # whether the name of the file is on the disk itself

    @property
    def path(self) -> Path:
        """Where the rows are now."""
        return self._journal.path

    @property
    def run(self) -> str:
        """The random text that tells this run from others."""
        return self._journal.run

    def append(self, row: Row) -> None:
        """Add a macro point; a file that can no longer be written stops the run."""
        self._block.append(row)
        self._flush_when_due()

    def buffers(self, rows: int) -> Mapping[str, npt.NDArray[Any]]:
        """Where the next rows will be."""
        return self._block.buffers(rows)

    def extend(self, block: Mapping[str, Any], counts: npt.NDArray[np.int64] | None = None) -> None:
        """Add many macro points at once; they go to the file when a block is full."""
        self._block.extend(block, counts)
        self._flush_when_due()

    def _flush_when_due(self) -> None:
        if len(self._block) >= self._block_rows or monotonic() - self._flushed > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Bring the rows so far to the file."""
        if not len(self._block) or not self._open:
            return
        t = float(self._block.columns()["t"][-1])
        try:
            self._look_after()
            self._put()
            if self._target is not None and (self._journal.rows > 1 or not self._target.exists()):
                self._settle()
        except (OSError, SetupError) as failure:
            why = (
                failure if not isinstance(failure, OSError) or isinstance(failure, OutputFileError) else reason(failure)
            )
            self._failure = SimulationError(
                f"the result file '{self._target or self.path}' could not be written any further at t = {t:.9g}: "
                f"{why}; what was written before is readable with cosolve.load_result; make room, or save to another "
                "disk",
                time=t,
            )
            raise self._failure from failure
        if self._target is None:
            self._flushed = monotonic()

    def _put(self) -> None:
        self._journal.add(self._block)
        self._block.clear()

    def _look_after(self) -> None:
        """The file is where it was: where it was deleted it is written anew, and one of others is left alone."""
        self._journal.refuse_changed()
        found = self._journal.same_file()
        if found is None:
            draft = draft_of(self._journal.path)
            self._journal.copy(claimed_draft(draft, self._journal.path))
            take_place(draft, self._journal.path)
        elif not found:
            raise OutputFileError("another file has taken its place")

    def secure(self) -> int:
        """Bring the rows so far to the disk itself, whatever happens to the machine; how many are there."""
        self.flush()
        with _reporting_failures(self.path):
            self._journal.secure()
            self._settle()
            if not self._named:
                sync_folder(self.path.parent)
                self._named = True
        return self._journal.rows

    def _settle(self) -> None:
        """The draft takes its place; that of an earlier file once it is on the disk itself."""
        if self._target is None:
            return
        target, self._target = self._target, None
        if target.exists():
            self._journal.secure()
        os.replace(self._journal.path, target)
        self._journal.path = target
        if self._settled is not None:
            self._settled()

    def columns(self) -> Columns:
        """What is on disk, read when it is asked for."""
        return self._columns

    def finish(self, stats: Stats, error: str | None) -> SimulationError | None:
        """Write the last rows and how the run ended; what kept rows from the file, where something did."""
        if not self._open:
            return self._failure
        with suppress(SimulationError):
            self.flush()
        if len(self._block) and not self._journal.cut():  # they could not be written
            self._journal.keep(self._block.columns())
            if self._failure is not None and error is None:
                error = str(self._failure)
        self._open = False
        if self._target is not None and error is not None and (self._target.exists() or not self._journal.rows):
            self._columns = {name: self._journal[name] for name in self._journal}  # an earlier file stays
            self._journal.path.unlink(missing_ok=True)
            self._journal.close()
            return self._failure
        try:
            self._columns = self._completed(stats, error)
        except OSError as failure:
            if isinstance(failure, OutputFileError):
                self._failure = self._failure or SimulationError(f"{failure}; the result cannot be completed")
            why = reason(failure)
            text = f"'{self.path}' could not be completed as HDF5 ({why}) and holds the rows as a run writes them"
            stats.add(Note("file", text, "warning", remedy="cosolve.load_result reads it, and its save() writes HDF5"))
            with suppress(OSError):
                self._settle()
            with suppress(OSError):
                self._journal.finish(ending_text(stats, error))
        return self._failure

    def _completed(self, stats: Stats, error: str | None) -> FileColumns:
        """The journal as HDF5 in its place; under another name where a file of others has taken that."""
        target = self._target or self.path
        if self._journal.same_file() is False:
            target = next(p for n in count(2) if not (p := target.with_name(f"{target.stem}-{n}.h5")).exists())
        draft = target.with_name(target.name + ".whole")
        try:
            with written_hdf5(draft, libver="latest") as file:
                channels, subsystems, meta = self._about
                result = Result(self._journal.columns, channels, subsystems, stats=stats, meta=meta, error=error)
                write_result(file, result, self.run, ending_text(stats, error))
            if os.name == "nt":
                self._journal.close()
            take_place(draft, target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        if self._target is not None:
            self.path.unlink(missing_ok=True)
        self._journal.path, self._target = target, None
        self._journal.close()
        return FileColumns(target, self.run)

    def close(self) -> None:
        """Let go of the file; what was flushed stays readable even without `finish`."""
        if self._open:
            self._open = False
            with suppress(OSError):
                if self._target is not None and (self._target.exists() or not self._journal.rows):
                    self._journal.path.unlink(missing_ok=True)
                else:
                    self._settle()
            self._journal.close()


def load(path: str | Path) -> Result:
    """Read a result from an HDF5 file, also one whose run was killed or is still going on.

    Columns are read when they are asked for, so files larger than the memory can be opened. An unfinished run gives
    a result whose `error` says so.

    >>> import tempfile
    >>> import cosolve as cs
    >>> clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
    >>> result = cs.simulate(cs.System({"clock": clock}), t_end=0.3, method=cs.Jacobi(), step=0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load(result.save(folder + "/run.h5"))["clock.t"]
    array([0. , 0.1, 0.2, 0.3])
    """
    columns = open_result(Path(path).absolute())
    channels, subsystems, meta = channels_of(columns), subsystems_of(columns), meta_of(columns)
    ending = ending_of(columns)
    if ending is not None:
        stats, error = ending
    else:
        stats = _recovered_stats(columns, subsystems)
        last = f"it ends at t = {columns.last('t'):.9g}" if columns.rows else "it holds no macro point"
        error = f"the run that wrote '{columns.path.name}' did not finish (it was killed, or is still going on); {last}"
    result = Result(columns.columns, channels, subsystems, stats=stats, meta=meta, error=error)
    if isinstance(columns, FileColumns) and columns.has_bar:
        result.read_error_bar = partial(read_error_bar, columns)
    return result


def save_result(result: Result, path: Path) -> Path:
    """Write a result to `.h5` (everything, bit for bit) or `.csv` (named quantities), block by block.

    >>> import tempfile
    >>> import cosolve as cs
    >>> clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
    >>> result = cs.simulate(cs.System({"clock": clock}), t_end=0.2, method=cs.Jacobi(), step=0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(save_result(result, Path(folder, "run.csv")).read_text().split())
    ['t,clock.t', '0.0,0.0', '0.1,0.1', '0.2,0.2']
    """
    path = Path(path)
    if path.suffix.lower() == ".csv":
        _save_csv(result, path)
    elif path.suffix.lower() in _HDF5:
        _save_hdf5(result, path)
    else:
        raise SetupError(
            f"'{path}' ends neither in .h5 nor in .csv; choose .h5 (everything) or .csv (named quantities)"
        )
    return path


# -- writing -----------------------------------------------------------------------------------------------


def _row_bytes(layout: Layout) -> int:
    return sum(np.dtype(dtype).itemsize * (1 if width is None else width) for width, dtype in layout.columns().values())


def _block_rows(layout: Layout) -> int:
    return max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // _row_bytes(layout)))


def _save_hdf5(result: Result, path: Path) -> None:
    if is_in(result, path):
        if result.error_bar is not None:
            add_error_bar(path, result.error_bar)
        return
    refuse_unwritable(path)
    with _reporting_failures(path), replacing(path) as draft, written_hdf5(draft, libver="latest") as file:
        write_result(file, result, uuid4().hex, ending_text(result.stats, result.error))
        if result.error_bar is not None:
            write_error_bar(file, result.error_bar)


def is_in(result: Result, path: Path) -> bool:
    """True for the HDF5 file that the columns of this result are read from."""
    columns = result._columns()
    return isinstance(columns, FileColumns) and path.exists() and path.samefile(columns.path)


def add_error_bar(path: Path, found: ErrorBar) -> None:
    """Put the coupling error into the file of a run that is over."""
    with _changed(path) as file:
        write_error_bar(file, found)


def rewrite_notes(path: Path, stats: Stats) -> None:
    """Put what was found after a run has finished into its file."""
    with _changed(path) as file:
        del file["outcome"]
        file["outcome"] = np.frombuffer(ending_text(stats, None), np.uint8)


@contextmanager
def _changed(path: Path) -> Iterator[Any]:
    """A copy of a result, to be changed, which takes its place."""
    with _reporting_failures(path), replacing(path) as draft:
        copyfile(path, draft)
        with written_hdf5(draft, "r+", libver="latest") as file:
            yield file


def _save_csv(result: Result, path: Path) -> None:
    refuse_unwritable(path)
    header = ["t"]
    for name, channel in result.channels.items():
        header += [name] if channel.scalar else [f"{name}[{i}]" for i in range(len(channel.part))]
    with _reporting_failures(path), replacing(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for block in _blocks(result._columns()):
            part = Result(partial(dict, block), result.channels, result.subsystems, stats=result.stats, meta={})
            values = np.column_stack([part.t, *(part[name] for name in result.channels)])
            writer.writerows(values.tolist())  # Python floats: the shortest text that reads back exactly


def _blocks(held: Columns, most: int | None = None) -> Iterator[dict[str, npt.NDArray[Any]]]:
    """All columns, or their first so many rows, in blocks of rows that fit in memory."""
    columns = as_stored(held)
    total = columns.rows if most is None else min(columns.rows, most)
    rows, norms = _block_rows(_layout(columns)), 0
    for start in range(0, total, rows):
        part = slice(start, min(start + rows, total))
        block = {name: columns.read(name, part) for name in columns if name != NORMS}
        end = int(block["norms_end"][-1])
        block[NORMS], norms = columns.read(NORMS, slice(norms, end)), end
        yield block


def _layout(columns: StoredColumns) -> Layout:
    return Layout(*(columns.width(name) for name in ("y", "z", "calls")))


def _recovered_stats(columns: StoredColumns, subsystems: tuple[str, ...]) -> Stats:
    """Totals from the rows of a run that did not write its own."""
    calls, seconds = np.zeros(len(subsystems), np.int64), np.zeros(len(subsystems))
    stats = Stats(steps=max(0, columns.rows - 1), wall_seconds=np.nan)
    for block in _blocks(columns):
        stats.iterations += int(block["iterations"].sum())
        stats.rejected += int(block["rejected"].sum())
        stats.max_residual = float(np.fmax(stats.max_residual, np.fmax.reduce(block["residual"])))
        calls += block["calls"].sum(axis=0)
        seconds += np.nansum(block["seconds"], axis=0)  # compiled steps are not timed one by one
    stats.calls = dict(zip(subsystems, calls.tolist(), strict=True))
    stats.seconds = dict(zip(subsystems, seconds.tolist(), strict=True))
    return stats


# -- small pieces ------------------------------------------------------------------------------------------


def refuse_unwritable(path: Path) -> None:
    """Raise unless `path` can be opened for writing; an existing file is not touched."""
    with _reporting_failures(path):
        if path.is_dir():
            raise _unwritable(path, "it is a folder")
        if not path.parent.exists():
            raise _unwritable(path, f"the folder '{path.parent}' does not exist")
        if path.exists():
            with path.open("ab"):
                return
        probe = placed(path).with_name(f".{uuid4().hex}")
        with probe.open("xb"):
            pass
        probe.unlink()


@contextmanager
def _reporting_failures(path: Path) -> Iterator[None]:
    """Turn failures of the operating system or of HDF5 into a sentence about `path`."""
    try:
        yield
    except OutputFileError:
        raise
    except OSError as failure:
        raise _unwritable(path, reason(failure)) from failure


def _unwritable(path: Path, why: str) -> OutputFileError:
    return OutputFileError(f"cannot write the result to '{path}': {why}; choose a path in a folder you can write to")
