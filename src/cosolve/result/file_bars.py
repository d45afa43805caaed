"""The coupling error in a result file: a group with one column per output that has a bar, and a JSON text about it."""

from __future__ import annotations

import json
from dataclasses import asdict
from math import nan
from typing import Any

import h5py
import numpy as np

from cosolve.errors import OutputFileError
from cosolve.result.error_bar import ErrorBar
from cosolve.result.file_columns import ERROR_BAR, FileColumns, dataset, text_of

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
