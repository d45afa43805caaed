"""Plane fields as pictures: one snapshot in axes, a series of them as a GIF, or inline for a page.

Vectors are shown by their length.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.wording import did_you_mean
from cosolve.errors import SetupError
from cosolve.fields import FieldSeries, FieldSnapshot
from cosolve.fields.triangles import triangles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DPI = 80
_WIDTH = 6.5  # of the drawing, in inches


def draw_field(
    axes: Axes,
    snapshot: FieldSnapshot,
    field: str,
    *,
    limits: tuple[float, float] | None = None,
    colours: str = "viridis",
) -> Any:
    """Draw one field of a plane snapshot, on the moved mesh.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    snapshot : FieldSnapshot
        Mesh and values.
    field : str
        Name of the field; of a vector field the magnitude is drawn.
    limits : tuple of (float, float) or None, default None
        Values at the ends of the colours. None: the smallest and the largest.
    colours : str, default "viridis"
        Colour map of matplotlib.

    Returns
    -------
    matplotlib.collections.PolyCollection
        For `figure.colorbar`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import cosolve as cs
    >>> corner = cs.fields.FieldSnapshot(np.eye(3)[:, :2], {"triangle": np.array([[0, 1, 2]])}, {"p": np.arange(3.0)})
    >>> axes = Figure().subplots()
    >>> draw_field(axes, corner, "p").get_clim()
    (0.0, 2.0)
    """
    from matplotlib.tri import Triangulation

    values, per_cell = _values(snapshot, field)
    points, corners, cells = _triangles(snapshot)
    shown = values[cells] if per_cell else values
    low, high = limits or _limits([values])
    style: Any = {"shading": "flat" if per_cell else "gouraud", "rasterized": True}
    mesh = Triangulation(points[:, 0], points[:, 1], corners)
    drawn = axes.tripcolor(mesh, shown, vmin=low, vmax=high, cmap=colours, **style)
    axes.set(aspect="equal", xlabel="x in m", ylabel="y in m")
    return drawn


def write_field_gif(
    path: str | Path,
    series: FieldSeries | str | Path,
    field: str,
    *,
    frames: int = 60,
    per_second: int = 15,
    limits: tuple[float, float] | None = None,
    colours: str = "viridis",
    title: str = "",
) -> Path:
    """Write a field of plane snapshots as a GIF.

    Parameters
    ----------
    path : str or Path
        The file.
    series : FieldSeries, str or Path
        Snapshots, from `read_fields` or as a file.
    field : str
        Name of the field.
    frames : int, default 60
        Largest number of pictures.
    per_second : int, default 15
        Pictures per second.
    limits : tuple of (float, float) or None, default None
        Values at the ends of the colours. None: the smallest and the largest of all snapshots.
    colours : str, default "viridis"
        Colour map of matplotlib.
    title : str, default ""
        Title of the pictures.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> import cosolve as cs
    >>> def corner(t):
    ...     cells = {"triangle": np.array([[0, 1, 2]])}
    ...     return cs.fields.FieldSnapshot(np.eye(3)[:, :2], cells, {"p": t * np.arange(3.0)})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = cs.fields.FieldSeries.write(folder + "/p.vtkhdf", [0.0, 0.1], [corner(0.0), corner(0.1)])
    ...     write_field_gif(folder + "/p.gif", file, "p").read_bytes()[:6]
    b'GIF89a'
    """
    import matplotlib
    from matplotlib.animation import PillowWriter
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = series if isinstance(series, FieldSeries) else FieldSeries(Path(series))
    if not len(shown) or frames < 1 or per_second < 1:
        raise SetupError(f"write_field_gif: {len(shown)} snapshots, {frames} frames; at least one of each is needed")
    pick = np.unique(np.linspace(0, len(shown) - 1, min(frames, len(shown))).astype(int))
    span = limits or _limits([_values(shown[int(i)], field)[0] for i in pick])
    low, high = _extent([shown[int(i)] for i in pick])
    tall = float(np.clip(_WIDTH * (high[1] - low[1]) / max(high[0] - low[0], 1e-300), 1.0, 6.0)) + 1.0
    writer = PillowWriter(fps=per_second)
    with matplotlib.rc_context({"font.family": "DejaVu Sans", "font.size": 9}):
        figure = Figure(figsize=(_WIDTH + 1.5, tall))
        FigureCanvasAgg(figure)
        axes, bar = figure.subplots(1, 2, width_ratios=[40, 1])
        with writer.saving(figure, str(path), dpi=_DPI):
            for i in pick:
                axes.clear()
                drawn = draw_field(axes, shown[int(i)], field, limits=span, colours=colours)
                axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
                axes.set_title(f"{title or field}  t = {shown.t[i]:.4g} s", fontsize=10)
                if i == pick[0]:
                    figure.colorbar(drawn, cax=bar)
                writer.grab_frame()
    return Path(path)


def field_gif_html(series: FieldSeries | str | Path, field: str, **options: Any) -> str:
    """The same as an HTML image that carries its data, for a page in one file; options as of `write_field_gif`."""
    with TemporaryDirectory() as folder:
        data = b64encode(write_field_gif(Path(folder, "field.gif"), series, field, **options).read_bytes())
    return f'<img alt="{escape(field)}" src="data:image/gif;base64,{data.decode("ascii")}">'


def _values(snapshot: FieldSnapshot, field: str) -> tuple[npt.NDArray[np.float64], bool]:
    """The field as one number per point, or per cell, and whether it is per cell."""
    for data, per_cell in ((snapshot.point_data, False), (snapshot.cell_data, True)):
        if field in data:
            values = np.asarray(data[field], dtype=np.float64)
            return (values if values.ndim == 1 else np.linalg.norm(values, axis=1)), per_cell
    names = [*snapshot.point_data, *snapshot.cell_data]
    raise SetupError(f"the snapshot has no field '{field}'; {did_you_mean(field, names)}")


def _triangles(snapshot: FieldSnapshot) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Points in the plane, triangles between them, and the cell of each."""
    points = snapshot.points
    if points.shape[1] == 3 and np.ptp(points[:, 2]) == 0:
        points = points[:, :2]
    if points.shape[1] != 2:
        raise SetupError(
            "pictures are drawn of plane fields; look at fields in space with ParaView (cs.fields.FieldFile)"
        )
    corners, cells = triangles(snapshot.cells)
    if not len(corners):
        raise SetupError(f"pictures are drawn of triangles and quadrilaterals, not of {', '.join(snapshot.cells)}")
    return points, corners, cells


def _limits(values: Sequence[npt.NDArray[np.float64]]) -> tuple[float, float]:
    finite = [one[np.isfinite(one)] for one in values]
    low = min((float(one.min()) for one in finite if len(one)), default=0.0)
    high = max((float(one.max()) for one in finite if len(one)), default=1.0)
    return (low, high) if high > low else (low, low + 1.0)


def _extent(snapshots: Sequence[FieldSnapshot]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    low = np.min([one.points.min(axis=0) for one in snapshots], axis=0)
    high = np.max([one.points.max(axis=0) for one in snapshots], axis=0)
    margin = 0.03 * max(float((high - low).max()), 1e-9)
    return low[:2] - margin, high[:2] + margin
