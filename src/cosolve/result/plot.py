"""A quick look at a result with matplotlib, without a display and without global state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosolve.basics.atomic_files import replacing
from cosolve.drawing.decimate import band, envelope
from cosolve.errors import OutputFileError, SetupError
from cosolve.result.representation import method_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cosolve.result.result import Result

_MOST_PANELS = 12
_MOST_LINES = 10  # entries of a vector drawn one by one; longer ones as lowest, mean and highest


def plot_series(result: Result, names: Sequence[str], path: str | Path | None = None) -> Figure:
    """Panels of quantities over time; long series are thinned to what a screen can show, peaks stay.

    >>> import cosolve as cs
    >>> clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
    >>> result = cs.simulate(cs.System({"clock": clock}), t_end=1.0, method=cs.Jacobi(), step=0.1)
    >>> len(plot_series(result, ["clock.t"]).axes)
    1
    """
    from matplotlib.figure import Figure

    chosen = list(names) or [n for n, c in result.channels.items() if c.column == "y" and c.scalar][:_MOST_PANELS]
    if not chosen:
        raise SetupError("plot: this result has no scalar outputs; name what to plot")
    figure = Figure(figsize=(8.0, 1.2 + 1.8 * len(chosen)), layout="constrained")
    axes = np.atleast_1d(figure.subplots(len(chosen), 1, sharex=True))
    if not len(result):
        raise SetupError("plot: this result has no macro points")
    t, bars = result.t, {} if result.error_bar is None else result.error_bar.bar
    for axis, name in zip(axes, chosen, strict=True):
        values = result[name].reshape(len(t), -1)
        if values.shape[1] > _MOST_LINES:
            values = np.stack([values.max(axis=1), values.mean(axis=1), values.min(axis=1)], axis=1)
            labels: Sequence[str | None] = ("highest", "mean", "lowest")
        else:
            labels = [None] if result.channel(name).scalar else [f"[{i}]" for i in range(values.shape[1])]
        for column, label in zip(values.T, labels, strict=True):
            (drawn,) = axis.plot(*envelope(t, column), linewidth=1.2, label=label, marker="o" if len(t) == 1 else None)
            if name in bars:  # the coupling error, of vectors that of the worst entry, which holds for their mean too
                axis.fill_between(*band(t, column, bars[name]), color=drawn.get_color(), alpha=0.3, linewidth=0)
        if name in bars:  # in words too, since the band of a small error is thinner than the line
            text = f"coupling error at most about {bars[name].max():.2g}"
            axis.set_title(text, loc="right", fontsize="small", color="0.35")
        if labels[0] is not None:
            axis.legend(loc="upper right", fontsize="small", ncols=5)
        unit = result.channel(name).unit
        axis.set_ylabel(f"{name} [{unit}]" if unit else name)
        axis.grid(alpha=0.3)
    axes[-1].set_xlabel("t [s]")
    method = method_label(result)
    axes[0].set_title(
        method if result.finished else f"{method}, stopped at t = {t[-1]:.4g}", fontsize="medium", loc="left"
    )
    if path is not None:
        save_figure(figure, path, "plot")
    return figure


def save_figure(figure: Figure, path: str | Path, what: str) -> None:
    """Write a figure, or say why it cannot be written."""
    try:
        with replacing(path) as draft:
            figure.savefig(draft, format=Path(path).suffix[1:] or None)
    except OSError as error:
        raise OutputFileError(f"the {what} cannot be written to '{path}': {error.strerror or error}") from error
