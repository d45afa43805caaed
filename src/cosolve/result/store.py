"""Results on disk: HDF5 while a run goes on and afterwards, CSV for spreadsheets.

A file holds one resizable dataset per recorded column (`t`, `y`, `z`, `H`, ...), the number of `rows` that are valid,
names of what is in the columns (`labels.py`), the coupling error where it was asked for (`file_bars.py`), and JSON
texts: `about` (channels, subsystems, meta; written first) and `outcome` (stats and error; written last).
docs/result-files.md has the whole layout. Rows are appended in single-writer-multiple-reader mode and `rows` is raised
only after they were flushed, so a run that is killed at any moment leaves a file that `load` reads up to the last
flush. Columns are read when they are asked for.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from shutil import disk_usage
from time import monotonic
from typing import Any
from uuid import uuid4

import h5py
import numpy as np
import numpy.typing as npt

from cosolve.errors import OutputFileError, SetupError, SimulationError
from cosolve.result.error_bar import ErrorBar
from cosolve.result.file_bars import ERROR_BAR, read_error_bar, write_error_bar
from cosolve.result.file_columns import FORMAT, Columns, FileColumns, open_result, reason
from cosolve.result.labels import write_labels
from cosolve.result.recorder import NORMS, Layout, Memory, Row
from cosolve.result.result import Channel, Result, Stats
from cosolve.version import VERSION

_HDF5 = (".h5", ".hdf5")
_BLOCK_ROWS = 4096
_BLOCK_BYTES = 8 << 20  # wide rows (fields) are flushed in smaller blocks
_CHUNK_BYTES = 64 << 10
_FLUSH_SECONDS = 1.0


class Stream:
    """A recorder that appends rows to an HDF5 file and keeps only the last block of them in memory.

    `simulate(..., save=path)` makes one. The path is tried before anything runs; the first row, then blocks of 4096
    rows (fewer where rows are wide), and whatever is there after a second, reach the file together.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> stream = Stream(Path(folder.name, "run.h5"), Layout(1, 0, 1), {"a.x": Channel("y", (0,), True)}, ("a",), {})
    >>> for n in range(3):
    ...     stream.append(Row(0.1 * n, np.array([n]), np.zeros(0)))
    >>> stream.finish(Stats(steps=2), None)
    >>> stream.close()
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
    ) -> None:
        if path.suffix.lower() not in _HDF5:
            raise SetupError(
                f"a run is streamed to an HDF5 file, so '{path}' must end in .h5; "
                "result.save('....csv') writes CSV after the run"
            )
        run = uuid4().hex
        file = _create(path, layout, channels, subsystems, meta, run)
        file.swmr_mode = True
        self._begin(path.absolute(), file, run, Memory(layout))

    @classmethod
    def continued(cls, path: Path, rows: int) -> Stream:
        """The stream of a run that is resumed after its first so many rows; what came after them is gone.

        They are copied to a new file, which takes the place of the old one when it is whole: a file that was left in
        the middle of writing can be read, but not written any further.
        """
        path = path.absolute()
        with open_result(path) as old:
            run, there = str(old.attrs["run"]), int(old["rows"][()])
            if there < rows:
                raise OutputFileError(
                    f"'{path}' holds {there} rows, but its saved state was written after {rows}; was the file cut, or "
                    "copied while the run went on? Run anew"
                )
            norms = int(old["norms_end"][rows - 1]) if rows else 0
            about = json.loads(old["about"].asstr()[()])
        columns, made = FileColumns(path, run), cls.__new__(cls)
        with _writing(path):
            made._begin(path, _replaced(path, columns, about, rows), run, Memory(_layout(columns), norms))
        return made

    def _begin(self, path: Path, file: h5py.File, run: str, block: Memory) -> None:
        self.path, self.run = path, run  # absolute: the run may change the working directory
        self._file: h5py.File | None = file
        layout = block.layout
        self._block, self._rows, self._block_rows = block, 0, _block_rows(layout)
        self._reserve = (1 << 20) + 2 * self._block_rows * _row_bytes(layout)
        self._flushed = 0.0  # so that the first row is flushed at once
        self._columns = FileColumns(self.path, run)

    def append(self, row: Row) -> None:
        """Add a macro point; a file that can no longer be written stops the run."""
        self._block.append(row)
        self._rows += 1
        if self._rows >= self._block_rows or monotonic() - self._flushed > _FLUSH_SECONDS:
            self._flush_and_watch(row.t)

    def _flush_and_watch(self, t: float) -> None:
        self._flush(t)
        if disk_usage(self.path.parent).free < self._reserve:  # HDF5 itself may crash on a full disk
            raise SimulationError(
                f"the disk of '{self.path}' is full, so the run stopped at t = {t:.9g}; everything up to there "
                "is kept; make room, save to another disk, or record fewer points with every=...",
                time=t,
            )

    def room(self, rows: int) -> Mapping[str, npt.NDArray[Any]]:
        """Where the next rows will be."""
        return self._block.room(rows)

    def extend(self, block: Mapping[str, Any], counts: npt.NDArray[np.int64] | None = None) -> None:
        """Add many macro points at once; they go to the file when a block is full."""
        self._block.extend(block, counts)
        self._rows += len(block["t"])
        if self._rows >= self._block_rows or monotonic() - self._flushed > _FLUSH_SECONDS:
            self._flush_and_watch(float(block["t"][-1]))

    def flush(self) -> None:
        """Bring the rows so far to the file."""
        if self._rows:
            self._flush(float(self._block.columns()["t"][-1]))

    def secure(self) -> int:
        """Bring the rows so far to the disk itself, whatever happens to the machine; how many are there."""
        self.flush()
        if self._file is None:
            return 0
        with _writing(self.path):
            os.fsync(self._file.id.get_vfd_handle())
        return int(self._file["rows"][()])

    def columns(self) -> Columns:
        """What is on disk, read when it is asked for."""
        return self._columns

    def finish(self, stats: Stats, error: str | None) -> None:
        """Write the last rows and how the run ended; the file is complete after that."""
        if self._file is None:
            return
        self.flush()
        try:
            _write_outcome(self._file, stats, error)
            self._file.flush()
        except OSError as failure:
            self._abandon()
            raise _unwritable(self.path, reason(failure)) from failure

    def close(self) -> None:
        """Close the file; what was flushed stays readable even without `finish`."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _flush(self, t: float) -> None:
        if self._file is None:
            return
        try:
            _extend(self._file, self._block.columns())
        except OSError as failure:
            self._abandon()
            raise SimulationError(
                f"the result file '{self.path}' could not be written any further at t = {t:.9g}: {reason(failure)}; "
                "what was written before is readable with cosolve.load; save to another disk",
                time=t,
            ) from failure
        self._block.clear()
        self._rows, self._flushed = 0, monotonic()

    def _abandon(self) -> None:
        """Let go of a file that cannot be written any more, leaving on disk what is there."""
        file, self._file = self._file, None
        assert file is not None
        with suppress(OSError, RuntimeError):  # HDF5 tries to write its caches once more
            file.close()


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
    path = Path(path).absolute()
    with open_result(path) as file:
        about = json.loads(file["about"].asstr()[()])
        outcome = bytes(file["outcome"][:])
        columns = FileColumns(path, str(file.attrs["run"]))
        channels = {name: _channel(entry) for name, entry in about["channels"].items()}
        subsystems, has_bar = tuple(about["subsystems"]), ERROR_BAR in file
    ending = _ending(outcome)
    if ending is not None:
        known = {field.name for field in fields(Stats)}  # a later version may count more
        stats, error = Stats(**{k: v for k, v in ending["stats"].items() if k in known}), ending["error"]
    else:
        stats = _recovered_stats(columns, subsystems)
        last = f"it ends at t = {columns.last('t'):.9g}" if columns.rows else "it holds no macro point"
        error = f"the run that wrote '{path.name}' did not finish (it was killed, or is still going on); {last}"
    result = Result(columns.columns, channels, subsystems, stats=stats, meta=about["meta"], error=error)
    if has_bar:
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


def _create(
    path: Path,
    layout: Layout,
    channels: Mapping[str, Channel],
    subsystems: tuple[str, ...],
    meta: Mapping[str, Any],
    run: str,
) -> h5py.File:
    """A new file with empty columns."""
    refuse_unwritable(path)
    about = {
        "channels": {name: _channel_entry(channel) for name, channel in channels.items()},
        "subsystems": list(subsystems),
        "meta": dict(meta),
    }
    with _writing(path):
        file = h5py.File(path, "w", libver="latest")
    file.attrs["format"], file.attrs["run"], file.attrs["cosolve"] = FORMAT, run, VERSION
    file["about"] = json.dumps(about, default=_plain)
    file["rows"] = np.int64(0)
    file.create_dataset("outcome", (0,), np.uint8, maxshape=(None,), chunks=(1024,))
    file.create_dataset(NORMS, (0,), np.float64, maxshape=(None,), chunks=(_BLOCK_ROWS,))
    for name, (width, dtype) in layout.columns().items():
        tail = () if width is None else (width,)
        if 0 in tail:  # HDF5 has no chunks of width 0
            file.create_dataset(name, (0, 0), dtype)
            continue
        rows = max(1, min(_BLOCK_ROWS, _CHUNK_BYTES // (np.dtype(dtype).itemsize * max((1, *tail)))))
        file.create_dataset(name, (0, *tail), dtype, maxshape=(None, *tail), chunks=(rows, *tail))
    write_labels(file, channels, subsystems)
    file.flush()
    return file


def _extend(file: h5py.File, block: Columns) -> None:
    """Append a block of rows; they count once all of them are on disk."""
    old = int(file["rows"][()])
    new = old + len(block["t"])
    norms, dataset = block[NORMS], file[NORMS]
    if len(norms):
        dataset.resize(len(dataset) + len(norms), axis=0)
        dataset[-len(norms) :] = norms
    for name, values in block.items():
        if name != NORMS and (values.ndim == 1 or values.shape[1]):
            dataset = file[name]
            dataset.resize(new, axis=0)
            dataset[old:new] = values
    file.flush()
    file["rows"][()] = new
    file.flush()


def _write_outcome(file: h5py.File, stats: Stats, error: str | None) -> None:
    text = json.dumps({"stats": asdict(stats), "error": error}, default=_plain).encode()
    file["outcome"].resize((len(text),))
    file["outcome"][:] = np.frombuffer(text, np.uint8)


def _ending(outcome: bytes) -> dict[str, Any] | None:
    """How a run ended; None where it did not, or was killed while it wrote that."""
    try:
        read: dict[str, Any] = json.loads(outcome)
    except ValueError:
        return None
    return read


def _replaced(path: Path, columns: FileColumns, about: Mapping[str, Any], rows: int) -> h5py.File:
    """A new file with the first rows of a result in the place of the old one, open for more.

    It can be read at any moment from when it has its name, because it is in the mode for that already.
    """
    draft = path.with_name(path.name + ".part")
    channels = {name: _channel(entry) for name, entry in about["channels"].items()}
    file = _create(draft, _layout(columns), channels, tuple(about["subsystems"]), about["meta"], columns.run)
    try:
        for block in _blocks(columns, rows):
            _extend(file, block)
        file.swmr_mode = True
        os.fsync(file.id.get_vfd_handle())
        if os.name != "nt":
            os.replace(draft, path)
            return file
        file.close()
        os.replace(draft, path)
        file = h5py.File(path, "r+", libver="latest")
        file.swmr_mode = True
    except BaseException:
        file.close()
        draft.unlink(missing_ok=True)
        raise
    return file


def _row_bytes(layout: Layout) -> int:
    return sum(np.dtype(dtype).itemsize * (1 if width is None else width) for width, dtype in layout.columns().values())


def _block_rows(layout: Layout) -> int:
    return max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // _row_bytes(layout)))


def _save_hdf5(result: Result, path: Path) -> None:
    columns = result._columns()
    if isinstance(columns, FileColumns) and path.exists() and path.samefile(columns.path):
        if result.error_bar is not None:
            add_error_bar(path, result.error_bar)
        return
    file = _create(path, _layout(columns), result.channels, result.subsystems, result.meta, uuid4().hex)
    with _writing(path), file:
        for block in _blocks(columns):
            _extend(file, block)
        _write_outcome(file, result.stats, result.error)
        if result.error_bar is not None:
            write_error_bar(file, result.error_bar)


def add_error_bar(path: Path, found: ErrorBar) -> None:
    """Put the coupling error into the file of a run that is over."""
    with _writing(path), h5py.File(path, "r+", libver="latest") as file:
        write_error_bar(file, found)


def _save_csv(result: Result, path: Path) -> None:
    refuse_unwritable(path)
    header = ["t"]
    for name, channel in result.channels.items():
        header += [name] if channel.scalar else [f"{name}[{i}]" for i in range(len(channel.part))]
    with _writing(path), path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for block in _blocks(result._columns()):
            part = Result(partial(dict, block), result.channels, result.subsystems, stats=result.stats, meta={})
            values = np.column_stack([part.t, *(part[name] for name in result.channels)])
            writer.writerows(values.tolist())  # Python floats: the shortest text that reads back exactly


def _blocks(columns: Columns, most: int | None = None) -> Iterator[dict[str, npt.NDArray[Any]]]:
    """All columns, or their first so many rows, in blocks of rows that fit in memory."""
    total = columns.rows if isinstance(columns, FileColumns) else len(columns["t"])
    total = total if most is None else min(total, most)
    rows, norms = _block_rows(_layout(columns)), 0
    for start in range(0, total, rows):
        part = slice(start, min(start + rows, total))
        if isinstance(columns, FileColumns):
            block = {name: columns.read(name, part) for name in columns if name != NORMS}
        else:
            block = {name: array[part] for name, array in columns.items() if name != NORMS}
        end = int(block["norms_end"][-1])
        block[NORMS], norms = columns[NORMS][norms:end], end
        yield block


def _layout(columns: Columns) -> Layout:
    wide = ("y", "z", "calls")
    if isinstance(columns, FileColumns):
        return Layout(*(columns.width(name) for name in wide))
    return Layout(*(columns[name].shape[1] for name in wide))


def _recovered_stats(columns: FileColumns, subsystems: tuple[str, ...]) -> Stats:
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


def _channel_entry(channel: Channel) -> dict[str, Any]:
    """A channel as JSON; a run of consecutive columns (a field) is two numbers."""
    entry = {**asdict(channel), "part": list(channel.part)}
    if len(channel.part) > 1 and channel.part == tuple(range(channel.part[0], channel.part[-1] + 1)):
        entry["part"] = {"from": channel.part[0], "to": channel.part[-1]}
    return entry


def _channel(entry: Mapping[str, Any]) -> Channel:
    part = entry["part"]
    columns = range(part["from"], part["to"] + 1) if isinstance(part, dict) else part
    return Channel(
        entry["column"],
        tuple(columns),
        entry["scalar"],
        tuple(entry["factor"]),
        tuple(entry["offset"]),
        entry["unit"],
    )


def _plain(value: Any) -> Any:
    """NumPy numbers and arrays as JSON; anything else by its text."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else str(value)


def refuse_unwritable(path: Path) -> None:
    """Raise unless `path` can be opened for writing; an existing file is not touched."""
    with _writing(path):
        existed = path.exists()
        if path.is_dir():
            raise _unwritable(path, "it is a folder")
        if not path.parent.exists():
            raise _unwritable(path, f"the folder '{path.parent}' does not exist")
        with path.open("ab"):
            pass
        if not existed:
            path.unlink()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn failures of the operating system or of HDF5 into a sentence about `path`."""
    try:
        yield
    except OutputFileError:
        raise
    except OSError as failure:
        raise _unwritable(path, reason(failure)) from failure


def _unwritable(path: Path, why: str) -> OutputFileError:
    return OutputFileError(f"cannot write the result to '{path}': {why}; choose a path in a folder you can write to")
