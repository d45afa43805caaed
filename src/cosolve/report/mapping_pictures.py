"""The quality of a mapping as a picture: its four measures over the target points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.mapping.quality import MappingQuality

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 20000  # points in a picture; the worst ones are always among them


def draw_mapping(figure: Figure, quality: MappingQuality) -> None:
    r"""Draw the quality of a mapping over the target points: distance, row sums, errors of linear and quadratic fields.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        An empty figure.
    quality : MappingQuality
        From `mapping_quality`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import cosolve.mapping as cm
    >>> coarse, fine = cm.Mesh.line([0.0, 1.0, 2.0]), cm.Mesh.line([0.0, 0.5, 1.5, 2.0])
    >>> figure = Figure()
    >>> draw_mapping(figure, cm.mapping_quality(cm.barycentric(coarse, fine), coarse, fine))
    >>> [axes.get_title() for axes in figure.axes][:2]
    ['distance from the source\nlargest 0', '|row sum - 1|\nlargest 0']
    """
    points = quality.points
    for k, (name, values) in enumerate(quality.columns().items()):
        shown = np.sort(np.argsort(-values, kind="stable")[:: max(1, len(values) // _MOST)])
        place: Any = {"projection": "3d"} if points.shape[1] == 3 else {}
        axes = figure.add_subplot(2, 2, k + 1, **place)
        if points.shape[1] == 1:
            axes.plot(points[:, 0], values, ".", ms=3)
        else:
            style: Any = {"c": values[shown], "s": 3, "cmap": "viridis", "rasterized": True}
            drawn = axes.scatter(*points[shown].T, **style)
            axes.set_aspect("equal")
            figure.colorbar(drawn, ax=axes, shrink=0.7, format="%.1e")
        axes.set_title(f"{name}\nlargest {values.max():.3g}", fontsize=9)
    figure.suptitle(quality.method, fontsize=10)
