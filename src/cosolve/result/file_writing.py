"""Writing a result as HDF5, when all of it is known."""

from __future__ import annotations

import json
from typing import Any

import h5py
import numpy as np

from cosolve.result.file_about import about_text
from cosolve.result.file_columns import FORMAT, KINDS, WIDE
from cosolve.result.labels import write_labels
from cosolve.result.recorder import NORMS
from cosolve.result.result import Result
from cosolve.result.stored import as_stored
from cosolve.version import VERSION

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
