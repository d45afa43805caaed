"""Planar mechanisms in motion: a GIF, the same inline for a page, or a stroboscopic picture where nothing can move.

A mechanism is a list of parts; a part is an array of shape (frames, points, 2), the corners of its line in every frame.
Pictures are drawn by matplotlib without a display and without global state: same motion, same bytes.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cosolve.errors import SetupError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Part = npt.NDArray[np.float64]

_COLOURS = ("#1f6feb", "#d1570a", "#2a7f3f", "#8250df", "#0b7285", "#9a6700")
_GHOSTS = 12  # positions in a stroboscopic picture
_DPI = 72
_FASTEST = 50  # pictures per second: browsers slow down faster ones
_WIDTH = 4.5  # of the drawing, in inches


def write_gif(
    path: str | Path,
    parts: Sequence[npt.ArrayLike],
    times: npt.ArrayLike,
    *,
    title: str = "",
    traced: Sequence[int] = (),
    frames: int = 100,
    speed: float = 1.0,
) -> Path:
    """Write the motion of a planar mechanism as a GIF.

    Parameters
    ----------
    path : str or Path
        The file.
    parts : sequence of array_like
        Lines of the mechanism, each of shape (times, points, 2).
    times : array_like
        Times in seconds.
    title : str, default ""
        Title of the picture.
    traced : sequence of int, optional
        Parts whose last point leaves a trace.
    frames : int, default 100
        Largest number of pictures; at most 50 per second are shown.
    speed : float, default 1.0
        Factor on the speed of the motion.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> t = np.linspace(0.0, 1.0, 5)
    >>> rod = np.stack([np.zeros((5, 2)), np.array([np.cos(t), np.sin(t)]).T], axis=1)
    >>> with TemporaryDirectory() as folder:
    ...     path = write_gif(folder + "/rod.gif", [rod], t, traced=[0])
    ...     path.read_bytes()[:6]
    b'GIF89a'
    """
    path = Path(path)
    _write(path, *_checked(parts, times, traced), title, frames, speed)
    return path


def gif_html(
    parts: Sequence[npt.ArrayLike],
    times: npt.ArrayLike,
    *,
    title: str = "",
    traced: Sequence[int] = (),
    frames: int = 100,
    speed: float = 1.0,
) -> str:
    """The same as an HTML image that carries its data, for a report in one file.

    >>> rod = np.zeros((2, 2, 2))
    >>> rod[:, 1] = [[1.0, 0.0], [0.0, 1.0]]
    >>> gif_html([rod], [0.0, 1.0], title="quarter turn")[:50]
    '<img alt="quarter turn" src="data:image/gif;base64'
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "motion.gif"
        _write(path, *_checked(parts, times, traced), title, frames, speed)
        data = b64encode(path.read_bytes()).decode("ascii")
    return f'<img alt="{escape(title)}" src="data:image/gif;base64,{data}">'


def draw_strobe(
    axes: Axes, parts: Sequence[npt.ArrayLike], times: npt.ArrayLike, *, traced: Sequence[int] = ()
) -> None:
    """Draw some positions of a planar mechanism on top of each other, later ones stronger.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    parts : sequence of array_like
        Lines of the mechanism, each of shape (times, points, 2).
    times : array_like
        Times in seconds.
    traced : sequence of int, optional
        Parts whose last point leaves a trace.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> axes = Figure().subplots()
    >>> draw_strobe(axes, [np.zeros((3, 2, 2))], [0.0, 0.5, 1.0])
    >>> len(axes.lines)
    3
    """
    shown, t, leaves = _checked(parts, times, traced)
    pick = np.unique(np.linspace(0, len(t) - 1, min(_GHOSTS, len(t))).astype(int))
    for k in leaves:
        axes.plot(*shown[k][:, -1].T, color=_COLOURS[k % len(_COLOURS)], lw=0.8, alpha=0.6)
    for i, frame in enumerate(pick):
        strength = 0.15 + 0.85 * (i + 1) / len(pick)
        for k, part in enumerate(shown):
            axes.plot(*part[frame].T, "o-", color=_COLOURS[k % len(_COLOURS)], alpha=strength, ms=3, lw=1.8)
    _frame(axes, shown)


def _write(
    path: Path,
    parts: list[Part],
    times: npt.NDArray[np.float64],
    traced: Sequence[int],
    title: str,
    frames: int,
    speed: float,
) -> None:
    if frames < 1 or not speed > 0:
        raise SetupError(f"animation: frames must be at least 1 and speed positive, not {frames!r} and {speed!r}")
    import matplotlib
    from matplotlib.animation import PillowWriter

    duration = float(times[-1] - times[0]) / speed
    count = max(2, min(frames, len(times), round(_FASTEST * duration) + 1)) if frames > 1 else 1
    pick = np.unique(np.linspace(0, len(times) - 1, count).astype(int))
    writer = PillowWriter(fps=max(1, round((len(pick) - 1) / duration)) if duration > 0 else 1)
    with matplotlib.rc_context({"font.family": "DejaVu Sans", "font.size": 9}):
        figure, update = _picture(parts, times, traced, title)
        with writer.saving(figure, str(path), dpi=_DPI):
            for frame in pick:
                update(int(frame))
                writer.grab_frame()


def _picture(
    parts: list[Part], times: npt.NDArray[np.float64], traced: Sequence[int], title: str
) -> tuple[Figure, Callable[[int], None]]:
    """A figure, and the function that puts it to a frame."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure()
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    _frame(axes, parts)
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    height = float(np.clip(_WIDTH * (high - low) / (right - left), 1.5, 6.0))
    border = (0.7, 0.2, 0.5, 0.3)  # left, right, below, above, in inches: the frame stands still
    wide, tall = _WIDTH + border[0] + border[1], height + border[2] + border[3]
    figure.set_size_inches(wide, tall)
    figure.subplots_adjust(border[0] / wide, border[2] / tall, 1 - border[1] / wide, 1 - border[3] / tall)
    traces = {k: axes.plot([], [], color=_COLOURS[k % len(_COLOURS)], lw=0.8, alpha=0.6)[0] for k in traced}
    lines = [axes.plot([], [], "o-", color=_COLOURS[k % len(_COLOURS)], lw=3, ms=5)[0] for k in range(len(parts))]
    clock = axes.set_title(f"{title}  t = {times[0]:.2f} s".strip(), fontsize=10)

    def update(frame: int) -> None:
        for line, part in zip(lines, parts, strict=True):
            line.set_data(*part[frame].T)
        for k, trace in traces.items():
            trace.set_data(*parts[k][: frame + 1, -1].T)
        clock.set_text(f"{title}  t = {times[frame]:.2f} s".strip())

    return figure, update


def _frame(axes: Axes, parts: list[Part]) -> None:
    corners = np.concatenate([part.reshape(-1, 2) for part in parts])
    low, high = corners.min(axis=0), corners.max(axis=0)
    margin = 0.08 * max(float((high - low).max()), 1e-9)
    axes.set(xlim=(low[0] - margin, high[0] + margin), ylim=(low[1] - margin, high[1] + margin), aspect="equal")
    axes.set(xlabel="x in m", ylabel="y in m")
    axes.grid(alpha=0.3)


def _checked(
    parts: Sequence[npt.ArrayLike], times: npt.ArrayLike, traced: Sequence[int]
) -> tuple[list[Part], npt.NDArray[np.float64], Sequence[int]]:
    t = np.asarray(times, dtype=np.float64).reshape(-1)
    arrays = [np.asarray(part, dtype=np.float64) for part in parts]
    for k, part in enumerate(arrays):
        if part.ndim != 3 or part.shape[2] != 2 or len(part) != len(t) or not np.isfinite(part).all():
            raise SetupError(
                f"animation: part {k} has shape {part.shape}; expected finite numbers of shape ({len(t)}, points, 2), "
                "one frame for every time"
            )
    if not arrays or not len(t):
        raise SetupError("animation: no parts or no frames given; nothing to draw")
    wrong = [k for k in traced if not 0 <= k < len(arrays)]
    if wrong:
        raise SetupError(f"animation: traced names part {wrong[0]}, but there are {len(arrays)}")
    return arrays, t, traced
