"""The coupling error in a result file: a group with one column per output that has a bar, and a JSON text about it."""

from __future__ import annotations

import json
from dataclasses import asdict
from math import nan
from typing import Any

import h5py
import numpy as np

from cosolve.result.error_bar import ErrorBar
from cosolve.result.file_columns import FileColumns

ERROR_BAR = "error_bar"
_COLUMNS = ("bar", "estimate")


def write_error_bar(file: h5py.File, found: ErrorBar) -> None:
    """Write it, in place of an older one."""
    if ERROR_BAR in file:
        del file[ERROR_BAR]
    group = file.create_group(ERROR_BAR)
    about = {key: value for key, value in asdict(found).items() if key not in ("t", *_COLUMNS)}
    for key in ("worst", "ratio"):  # JSON has no NaN
        about[key] = about[key] if np.isfinite(about[key]) else None
    group["about"] = json.dumps(about)
    names = list(found.bar)
    group.create_dataset("names", data=names, dtype=h5py.string_dtype())
    for key, values in zip(_COLUMNS, (found.bar, found.estimate), strict=True):
        rows = np.column_stack([values[name] for name in names]) if names else np.zeros((len(found.t), 0))
        group.create_dataset(key, data=rows)


def read_error_bar(columns: FileColumns) -> ErrorBar:
    """Read it back."""
    with columns.open() as file:
        group = file[ERROR_BAR]
        about: dict[str, Any] = json.loads(group["about"].asstr()[()])
        names = group["names"].asstr()[:].tolist()
        bar, estimate = (dict(zip(names, np.ascontiguousarray(group[key][:].T), strict=True)) for key in _COLUMNS)
    for key in ("worst", "ratio"):
        about[key] = nan if about[key] is None else about[key]
    return ErrorBar(t=columns["t"], bar=bar, estimate=estimate, **about)
