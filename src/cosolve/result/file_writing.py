"""Writing a result as HDF5, when all of it is known.

The coupling error is a group with one column per output that has a bar, and a JSON text about it.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from math import nan
from typing import Any

import h5py
import numpy as np

from cosolve.errors import OutputFileError
from cosolve.result.error_bar import ErrorBar
from cosolve.result.file_about import about_text
from cosolve.result.file_columns import ERROR_BAR, FORMAT, KINDS, WIDE, FileColumns, dataset, text_of
from cosolve.result.labels import write_labels
from cosolve.result.recorder import NORMS
from cosolve.result.result import Result
from cosolve.result.stored import as_stored
from cosolve.version import VERSION

_COLUMNS = ("bar", "estimate")


def write_error_bar(file: h5py.File, found: ErrorBar) -> None:
    """Write it, in place of an older one."""
    if ERROR_BAR in file:
        del file[ERROR_BAR]
    group = file.create_group(ERROR_BAR)
    about = {key: value for key, value in asdict(found).items() if key not in ("t", *_COLUMNS)}
    for key in ("worst", "ratio"):  # JSON has no NaN
        about[key] = about[key] if np.isfinite(about[key]) else None
    group["about"] = np.bytes_(json.dumps(about))
    names = list(found.bar)
    group["names"] = np.bytes_(json.dumps(names))
    for key, values in zip(_COLUMNS, (found.bar, found.estimate), strict=True):
        rows = np.column_stack([values[name] for name in names]) if names else np.zeros((len(found.t), 0))
        group.create_dataset(key, data=rows)


def read_error_bar(columns: FileColumns) -> ErrorBar:
    """Read it back."""
    with columns.open() as file:
        group = file.get(ERROR_BAR, getlink=True) and file[ERROR_BAR]
        if not isinstance(group, h5py.Group):
            raise OutputFileError(f"'{columns.path}': its error bar cannot be read; was it damaged?")
        about: dict[str, Any] = json.loads(text_of(group, columns.path, "about"))
        names = json.loads(text_of(group, columns.path, "names"))
        tables = [dataset(group, columns.path, key) for key in _COLUMNS]
        for table in tables:
            if table.shape != (columns.rows, len(names)) or table.dtype != float:
                raise OutputFileError(f"'{columns.path}': its error bar does not fit its rows; was it damaged?")
            columns.refuse_large(ERROR_BAR, table.size * table.dtype.itemsize)
        bar, estimate = (dict(zip(names, np.ascontiguousarray(table[:].T), strict=True)) for table in tables)
        for key in ("worst", "ratio"):
            about[key] = nan if about[key] is None else float(about[key])
        return ErrorBar(t=columns["t"], bar=bar, estimate=estimate, **about)


_PIECE_ROWS = 4096
_PART_BYTES = 16 << 20


def write_result(file: h5py.File, result: Result, run: str, ending: bytes) -> None:
    """Fill a new file: columns, their names and units, and what there is to say about the run."""
    for name, text in {"format": FORMAT, "run": run, "cosolve": VERSION}.items():
        file.attrs[name] = np.bytes_(text)
    # a text of fixed length may be a long one; others are lost beyond 32 MB
    file["about"] = np.bytes_(json.dumps(about_text(result.channels, result.subsystems, result.meta)))
    file["outcome"] = np.frombuffer(ending, np.uint8)
    columns = as_stored(result._columns())
    file["rows"] = np.int64(columns.rows)
    for name, kind in KINDS.items():
        rows = len(columns[name]) if name == NORMS else columns.rows
        tail = (columns.width(name),) if name in WIDE else ()
        same, end = columns.repeated(name), rows
        options: dict[str, Any] = {}
        if same is not None and same[0] < rows:  # of pieces in which nothing was written HDF5 keeps none
            end, options = same[0], {"chunks": (min(_PIECE_ROWS, rows), *tail), "fillvalue": same[1]}
        dataset = file.create_dataset(name, (rows, *tail), kind, **options)
        step = max(1, _PART_BYTES // (kind.itemsize * max((1, *tail))))
        for start in range(0, 0 if 0 in tail else end, step):
            part = slice(start, min(start + step, end))
            dataset[part] = columns.read(name, part)
    write_labels(file, result.channels, result.subsystems)
