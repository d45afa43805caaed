"""A quick look at a result with matplotlib, without a display."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosolve.errors import SetupError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cosolve.result.result import Result

_MOST_PANELS = 12


def plot_series(result: Result, names: Sequence[str], path: str | Path | None = None) -> Figure:
    """Panels of quantities over time."""
    from matplotlib.figure import Figure

    chosen = list(names) or [n for n, c in result.channels.items() if c.column == "y" and c.scalar][:_MOST_PANELS]
    if not chosen:
        raise SetupError("plot: this result has no scalar outputs; name what to plot")
    figure = Figure(figsize=(8.0, 1.2 + 1.8 * len(chosen)), layout="constrained")
    axes = np.atleast_1d(figure.subplots(len(chosen), 1, sharex=True))
    for axis, name in zip(axes, chosen, strict=True):
        axis.plot(result.t, result[name], linewidth=1.2)
        unit = result.channels[name].unit
        axis.set_ylabel(f"{name} [{unit}]" if unit else name)
        axis.grid(alpha=0.3)
    axes[-1].set_xlabel("t [s]")
    axes[0].set_title(str(result.meta.get("method", "")), fontsize="medium")
    if path is not None:
        figure.savefig(path)
    return figure
