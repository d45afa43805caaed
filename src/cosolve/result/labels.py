"""Names and units of the columns in a result file, as datasets that h5py, pandas and xarray find.

`y_names` and `z_names` name the columns of `y` (outputs) and `z` (coupling variables), `subsystems` those of `calls`
and `seconds`. They are attached as HDF5 dimension scales, as `t` is to the rows of everything.
"""

from __future__ import annotations

from collections.abc import Mapping

import h5py

from cosolve.result.recorder import Layout
from cosolve.result.result import Channel

#: Wider columns (large fields) go without names: the file would hold more text than numbers.
MAX_NAMES = 100_000


def column_labels(channels: Mapping[str, Channel], column: str, width: int) -> list[tuple[str, str]]:
    """Name and unit of each entry of `y` or `z`; an entry that no quantity shows as it is, is `z[3]`.

    >>> column_labels({"a.x": Channel("y", (1,), True, unit="m"), "a.u": Channel("y", (2, 3), False)}, "y", 4)
    [('y[0]', ''), ('a.x', 'm'), ('a.u[0]', ''), ('a.u[1]', '')]
    """
    labels = [(f"{column}[{k}]", "") for k in range(width)]
    plain = [c for c in channels.items() if c[1].column == column and not c[1].factor]
    scaled = [c for c in channels.items() if c[1].column == column and c[1].factor]
    seen = set()
    for name, channel in plain + scaled:  # a variable's own name comes before that of an input it drives
        for i, k in enumerate(channel.part):
            same = not channel.factor or (channel.factor[i] == 1.0 and channel.offset[i] == 0.0)
            if same and k not in seen:
                labels[k] = (name if channel.scalar else f"{name}[{i}]", channel.unit)
                seen.add(k)
    return labels


def write_labels(file: h5py.File, channels: Mapping[str, Channel], subsystems: tuple[str, ...]) -> None:
    """Put names and units into a new file, whose columns are there."""
    text = h5py.string_dtype()
    file["t"].make_scale("t")
    for name in Layout(0, 0, 0).columns():
        if name != "t":
            file[name].dims[0].attach_scale(file["t"])
    file.create_dataset("subsystems", data=list(subsystems), dtype=text).make_scale("subsystems")
    for name in ("calls", "seconds"):
        file[name].dims[1].attach_scale(file["subsystems"])
    for column in ("y", "z"):
        width = file[column].shape[1]
        if not 0 < width <= MAX_NAMES:
            continue
        labels = column_labels(channels, column, width)
        names = file.create_dataset(f"{column}_names", data=[name for name, _ in labels], dtype=text)
        names.make_scale(f"{column}_names")
        file[column].dims[1].attach_scale(names)
        units = file.create_dataset(f"{column}_units", data=[unit for _, unit in labels], dtype=text)
        units.dims[0].attach_scale(names)
