"""Maps over two parameters: where a method is stable, how large a quantity gets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.wording import listed
from cosolve.errors import SetupError
from cosolve.result.plot import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cosolve.sweeps.labelled import SweepResult


_DECADES = 1e9  # largest over smallest magnitude that colours tell apart


def draw_map(
    result: SweepResult,
    x: str,
    y: str,
    value: str | None,
    *,
    limit: float | None,
    log: bool,
    path: str | Path | None,
) -> Figure:
    """A map of one quantity over the dimensions `x` and `y`."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    for dim in (x, y):
        if dim not in result.dims:
            if dim in result.columns:
                raise SetupError(f"plot_map: '{dim}' was given row by row; a map needs a full grid, {{'{dim}': [...]}}")
            raise SetupError(f"plot_map: there is no dimension '{dim}'; there are {', '.join(result.dims)}")
    if x == y:
        raise SetupError(f"plot_map: x and y are both '{x}'; a map needs two dimensions")
    if value is not None and "quantity" in result.dims:
        result = result.sel(quantity=value)
    for dim in [d for d in result.dims if d not in (x, y)]:
        if len(result.coords[dim]) > 1:
            some = listed(result.coords[dim], 4, quote=False)
            raise SetupError(f"plot_map: say which {dim}, {dim}=...; there are {some}")
        value = str(result.coords[dim][0]) if dim == "quantity" else value
        result = result.sel(**{dim: result.coords[dim][0]})
    values = result.values if result.dims == (y, x) else result.values.T
    places = [_places(result.coords[dim]) for dim in (x, y)]
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes: Any = figure.subplots()
    shown = np.abs(values) if log else values
    norm, beyond = None, False
    if log and (shown > 0).any():
        least = np.nanmin(shown[shown > 0])
        beyond = bool((shown > _DECADES * least).any())  # runs that grew without bounds would use up the colours
        shown = np.clip(shown, least, _DECADES * least)
        norm = LogNorm(least, max(np.nanmax(shown), 1.01 * least))
    mesh = axes.pcolormesh(*places, np.ma.masked_invalid(shown), norm=norm, shading="nearest", cmap="viridis")
    figure.colorbar(mesh, ax=axes, label=value, extend="max" if beyond else "neither")
    if limit is not None and min(values.shape) > 1 and np.isfinite(values).any():
        above = np.where(np.isfinite(values), np.abs(values) if log else values, np.inf) > limit
        if above.any() and not above.all():
            axes.contour(*places, above.astype(float), levels=[0.5], colors="white", linewidths=1.5)
    failed = result.failed if result.dims == (y, x) else result.failed.T
    if failed.any():
        rows, columns = np.nonzero(failed)
        axes.plot(places[0][columns], places[1][rows], "x", color="crimson", markersize=4, label="failed")
        axes.legend(loc="upper right", fontsize="small")
    for dim, axis, where in ((x, axes.xaxis, places[0]), (y, axes.yaxis, places[1])):
        axis.set_label_text(dim)
        if not _numeric(result.coords[dim]):
            axis.set_ticks(where, [str(label) for label in result.coords[dim]])
        elif _geometric(where):
            getattr(axes, f"set_{axis.axis_name}scale")("log")
    if path is not None:
        save_figure(figure, path, "map")
    return figure


def _geometric(where: Any) -> bool:
    """True for values that grow by equal factors."""
    if len(where) < 3 or not (where > 0).all():
        return False
    growth = np.diff(np.log(where))
    return bool(np.ptp(growth) < 1e-6 * np.abs(growth).max())


def _numeric(labels: Any) -> bool:
    return isinstance(labels, np.ndarray) and labels.dtype.kind in "fiu"


def _places(labels: Any) -> Any:
    return labels.astype(np.float64) if _numeric(labels) else np.arange(len(labels), dtype=np.float64)
