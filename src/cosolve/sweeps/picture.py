"""Maps over two parameters: where a method is stable, how large a quantity gets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.wording import did_you_mean, listed
from cosolve.errors import SetupError
from cosolve.result.plot import save_figure

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


_DECADES = 1e9  # largest over smallest magnitude that colours tell apart


def plot_map(
    found: xr.Dataset,
    x: str,
    y: str,
    value: str | None = None,
    *,
    limit: float | None = None,
    log: bool = False,
    path: str | Path | None = None,
    **labels: Any,
) -> Figure:
    """Draw a quantity of a sweep over two dimensions.

    Parameters
    ----------
    found : xarray.Dataset
        What `sweep` returned.
    x : str
        Dimension of the horizontal axis.
    y : str
        Dimension of the vertical axis.
    value : str or None, default None
        The quantity. None: the only one.
    limit : float or None, default None
        Draw a line where the quantity has this value.
    log : bool, default False
        Colour magnitudes by their logarithm.
    path : str, Path or None, default None
        File to write the picture to.
    **labels : object
        Values of the other dimensions, as in `coupling="Jacobi(1)"`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; crosses mark failed runs.

    Examples
    --------
    >>> import cosolve as cs
    >>> def tank(rate, level):
    ...     return cs.System({"a": cs.Linear([[-rate]], [], [[1]], x0=[level], inputs=[], outputs=["h"])})
    >>> found = cs.sweep(tank, {"rate": [1.0, 2.0], "level": [1.0, 2.0]}, methods=cs.Jacobi(), steps=0.1, t_end=1)
    >>> cs.plot.plot_map(found, "rate", "level", "a.h", limit=0.5).axes[0].get_xlabel()
    'rate'
    """
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    value = _quantity(found, value)
    chosen = found[[value, "error"]]
    for dim, label in labels.items():
        _refuse_other_dimension(chosen, dim)
        chosen = chosen.isel({dim: _position(dim, chosen[dim].values, label)})
    for dim in (x, y):
        _refuse_other_dimension(chosen, dim)
    if x == y:
        raise SetupError(f"plot_map: x and y are both '{x}'; a map needs two dimensions")
    for dim in [str(d) for d in chosen.sizes if d not in (x, y)]:
        if chosen.sizes[dim] > 1:
            some = listed(chosen[dim].values, 4, quote=False)
            raise SetupError(f"plot_map: say which {dim}, {dim}=...; there are {some}")
        chosen = chosen.isel({dim: 0})
    values = chosen[value].transpose(y, x).values
    along = {dim: chosen[dim].values for dim in (x, y)}
    places = [_places(along[dim]) for dim in (x, y)]
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
    failed = (chosen["error"] != "").transpose(*(d for d in (y, x) if d in chosen["error"].dims)).values
    if failed.shape == values.shape and failed.any():  # not where an axis is time, or entries of a row
        rows, columns = np.nonzero(failed)
        axes.plot(places[0][columns], places[1][rows], "x", color="crimson", markersize=4, label="failed")
        axes.legend(loc="upper right", fontsize="small")
    for dim, axis, where in ((x, axes.xaxis, places[0]), (y, axes.yaxis, places[1])):
        axis.set_label_text(dim)
        if not _numeric(along[dim]):
            axis.set_ticks(where, [str(label) for label in along[dim]])
        elif _geometric(where):
            getattr(axes, f"set_{axis.axis_name}scale")("log")
    if path is not None:
        save_figure(figure, path, "map")
    return figure


def _quantity(found: xr.Dataset, value: str | None) -> str:
    """The variable to draw; the only one where none is named."""
    names = [str(name) for name in found.data_vars if name not in ("error", "note")]
    if value is None and len(names) == 1:
        return names[0]
    if value not in names:
        hint = did_you_mean(value or "", names, most=len(names))
        what = f"there is no quantity '{value}'" if value else "say which quantity to draw"
        raise SetupError(f"plot_map: {what}; {hint}")
    return value


def _refuse_other_dimension(found: xr.Dataset, dim: str) -> None:
    if dim in found.sizes:
        return
    if dim in found.coords and found[dim].dims == ("variant",):
        raise SetupError(f"plot_map: '{dim}' was given row by row; a map needs a full grid, {{'{dim}': [...]}}")
    raise SetupError(f"plot_map: there is no dimension '{dim}'; there are {', '.join(map(str, found.sizes))}")


def _position(dim: str, labels: Any, wanted: Any) -> int:
    """Where a label is found first; numbers up to the ninth digit."""
    if _numeric(labels) and isinstance(wanted, (int, float, np.number)):
        matches = np.isclose(labels, wanted, rtol=1e-9, atol=0.0, equal_nan=True)
    else:
        matches = np.array([bool(label is wanted or label == wanted) for label in labels])
    if matches.any():
        return int(matches.argmax())
    texts = [str(label) for label in labels]
    hint = did_you_mean(wanted if isinstance(wanted, str) else "", texts, quote=False)
    raise SetupError(f"plot_map: {dim} has no {wanted!r}; {hint}")


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
