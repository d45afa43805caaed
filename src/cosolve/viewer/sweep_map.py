"""The result of a sweep as maps: one quantity over two parameters, and everything that is known of one run in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.packages import optional
from cosolve.basics.plain_file import refuse_no_file
from cosolve.basics.wording import did_you_mean
from cosolve.errors import SetupError
from cosolve.viewer.frames import plain_dict

if TYPE_CHECKING:
    import xarray as xr

_TOLD = ("error", "note")
_MOST_CELLS = 250_000
_MOST_PACKED = 1100  # times smaller than its numbers is what is packed, at most
_ROWS = "variant"  # the dimension of variants that were given row by row


class SweepMap:
    """A Dataset of `cs.sweep`, cut into maps.

    >>> import cosolve as cs
    >>> def tank(rate, level):
    ...     return cs.System({"a": cs.Linear([[-rate]], [], [[1]], x0=[level], inputs=[], outputs=["h"])})
    >>> found = cs.sweep(tank, {"rate": [1.0, 2.0], "level": [1.0, 3.0]}, methods=cs.Jacobi(), steps=0.1, t_end=1)
    >>> shown = SweepMap(found, "tank")
    >>> [one["name"] for one in shown.about()["dimensions"]]
    ['rate', 'level']
    >>> np.round(shown.map("a.h", "rate", "level", {})["values"], 2).tolist()       # rows are levels
    [[0.37, 0.14], [1.1, 0.41]]
    >>> shown.cell({"rate": 1, "level": 0})["at"]
    {'rate': 2.0, 'level': 1.0}
    """

    def __init__(self, found: xr.Dataset, label: str) -> None:
        self._found, self.label = found, label
        self.quantities = [str(n) for n in found.data_vars if n not in _TOLD and found[n].dtype.kind in "fiub"]
        if not self.quantities:
            raise SetupError(f"'{label}' holds no numbers over parameters; view shows what cs.sweep returned")

    def about(self) -> dict[str, Any]:
        """Dimensions and quantities, and what was written down about the whole sweep."""
        found = self._found
        along_rows = [str(name) for name, coord in found.coords.items() if coord.dims == (_ROWS,) and name != _ROWS]
        return plain_dict(
            {
                "title": self.label,
                "dimensions": [
                    {"name": str(dim), "labels": self._labels(str(dim)), "numeric": self._is_numeric(str(dim))}
                    for dim in found.sizes
                ],
                "columns": [name for name in along_rows if self._is_numeric(name)],
                "quantities": [
                    {
                        "name": name,
                        "unit": str(found[name].attrs.get("units", "")),
                        "dimensions": [str(dim) for dim in found[name].dims],
                    }
                    for name in self.quantities
                ],
                "failed": int((found["error"] != "").sum()) if "error" in found else 0,
                "runs": int(found["error"].size) if "error" in found else int(found[self.quantities[0]].size),
                "facts": {str(key): str(value) for key, value in found.attrs.items()},
            }
        )

    def map(self, quantity: str, x: str, y: str, at: Mapping[str, int]) -> dict[str, Any]:
        """The values of a quantity, row by row of `y`, at the chosen places of all other dimensions; `y` may be ''.

        Of variants given row by row `x` and `y` are columns, and the values one row of points.
        """
        if quantity not in self.quantities:
            raise SetupError(f"there is no quantity '{quantity}'; {did_you_mean(quantity, self.quantities)}")
        rowwise = _ROWS in self._found[quantity].dims and x != _ROWS and x in self._found.coords
        axes = [_ROWS] if rowwise else [dim for dim in (y, x) if dim]
        values = self._cut(quantity, axes, at)
        if values.size > _MOST_CELLS:
            raise SetupError(
                f"a map of {values.size} runs is more than the page shows ({_MOST_CELLS}); view a part of it"
            )
        told = {name: self._cut(name, axes, at, values.shape) for name in _TOLD if name in self._found}
        shown: dict[str, Any] = {"values": values if rowwise or y else values[np.newaxis]}
        for name, texts in told.items():
            places = np.argwhere(texts != "")
            shown[name] = [[*(int(k) for k in place), str(texts[tuple(place)])] for place in places[:2000]]
        if rowwise:
            shown["points"] = [self._labels(name) for name in (x, y) if name]
        return plain_dict(shown)

    def cell(self, at: Mapping[str, int]) -> dict[str, Any]:
        """Everything about one run, at a place of every dimension."""
        found = self._found.isel({dim: self._place(dim, k) for dim, k in at.items()})
        where = {str(name): coord.item() for name, coord in found.coords.items() if coord.ndim == 0}
        values = {name: found[name].item() for name in self.quantities if found[name].ndim == 0}
        told = {name: str(found[name].item()) for name in _TOLD if name in found and found[name].ndim == 0}
        return plain_dict({"at": where, "values": values, **told})

    def _cut(self, name: str, axes: list[str], at: Mapping[str, int], shape: tuple[int, ...] = ()) -> Any:
        """A variable over some axes; over an axis that it has not (an error over time), the same everywhere."""
        variable = self._found[name]
        for dim in axes:
            if not shape and dim not in variable.dims:
                have = ", ".join(str(one) for one in variable.dims)
                raise SetupError(f"'{name}' has no dimension '{dim}'; it has {have}")
        rest = {dim: self._place(str(dim), at.get(str(dim), 0)) for dim in variable.dims if dim not in axes}
        inside = [dim for dim in axes if dim in variable.dims]
        values = variable.isel(rest).transpose(*inside).values
        if shape:
            values = values.reshape([self._found.sizes[dim] if dim in inside else 1 for dim in axes])
            values = np.broadcast_to(values, shape)
        return values

    def _place(self, dim: str, k: int) -> int:
        if dim not in self._found.sizes:
            raise SetupError(f"there is no dimension '{dim}'; there are {', '.join(map(str, self._found.sizes))}")
        return min(max(0, int(k)), self._found.sizes[dim] - 1)

    def _labels(self, dim: str) -> list[Any]:
        if dim not in self._found.coords:
            return list(range(self._found.sizes[dim]))
        values = self._found[dim].values
        return values.tolist() if self._is_numeric(dim) else [str(value) for value in values]

    def _is_numeric(self, dim: str) -> bool:
        return dim not in self._found.coords or self._found[dim].dtype.kind in "fiu"


def places(given: Any) -> dict[str, int]:
    """Places of dimensions, as a page sends them: an object of whole numbers, or JSON of one.

    >>> places('{"rate": 3}')
    {'rate': 3}
    """
    try:
        found = json.loads(given) if isinstance(given, str) else given
        return {str(name): int(k) for name, k in found.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise SetupError("places of a sweep are whole numbers by the names of its dimensions") from None


def is_sweep(shown: object) -> bool:
    """Whether something is a Dataset of xarray, which need not be installed for the question."""
    kind = type(shown)
    return kind.__name__ == "Dataset" and kind.__module__.partition(".")[0] == "xarray"


def read_sweep(path: Path) -> SweepMap:
    """A sweep from a netCDF file."""
    refuse_no_file(path)
    if not path.exists():
        raise SetupError(f"there is no file '{path}'; check the path")
    xr = optional("xarray", "netcdf", "a netCDF file")
    optional("h5netcdf", "netcdf", "a netCDF file")
    from cosolve.result.file_columns import dataset, hdf5_read

    with hdf5_read(path) as file:
        for name in file:
            held = dataset(file, path, name)
            if held.size * held.dtype.itemsize > _MOST_PACKED * path.stat().st_size:
                raise SetupError(f"'{path}': '{name}' is larger than the file can hold; was it damaged?")
        with xr.open_dataset(path, engine="h5netcdf") as found:
            return SweepMap(found.load(), path.name)
