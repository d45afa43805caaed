"""Pictures of mechanisms in space: stacked diagrams over time, and bodies as moving lines, written as a GIF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np


def stack(path: Path, rows: Sequence[tuple[str, Sequence[tuple]]], *, logarithmic: bool = False) -> None:
    """Diagrams over time, one above the other; a row is (label, curves), a curve (t, values, label, style)."""
    import matplotlib.pyplot as plt

    size = (9, 1.2 + 2.5 * len(rows))
    figure, panels = plt.subplots(len(rows), 1, figsize=size, sharex=True, layout="constrained", squeeze=False)
    for axes, (label, curves) in zip(panels[:, 0], rows, strict=True):
        for t, values, name, style in curves:
            draw = axes.semilogy if logarithmic else axes.plot
            draw(t, np.maximum(values, 1e-17) if logarithmic else values, label=name, **{"lw": 1.1, **style})
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        if any(name for _, _, name, _ in curves):
            axes.legend(fontsize=8, ncols=2)
    panels[-1, 0].set_xlabel("t in s")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def residual_rows(levels: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> list[tuple[str, list[tuple]]]:
    """Rows for `stack`: the largest residual at each level, by name; levels are (3, points, conditions)."""
    return [
        (f"{word} residual", [(t[1:], np.abs(g[k]).max(axis=1)[1:], name, {}) for name, (t, g) in levels.items()])
        for k, word in enumerate(("position", "velocity", "acceleration"))
    ]


def rotations(q: np.ndarray) -> np.ndarray:
    """Rotation matrices (n x 3 x 3) of Euler parameters (n x 4)."""
    q = q / np.linalg.norm(q, axis=1)[:, None]
    a, b, c, d = q.T
    return np.array(
        [
            [1 - 2 * (c * c + d * d), 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), 1 - 2 * (b * b + d * d), 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), 1 - 2 * (b * b + c * c)],
        ]
    ).transpose(2, 0, 1)


def frames_of(r: np.ndarray, q: np.ndarray, points: np.ndarray) -> np.ndarray:
    """A polygon of body-fixed `points` (k x 3) at all times: n x k x 3."""
    return r[:, None, :] + np.einsum("nij,kj->nki", rotations(q), points)


def animate(
    path: Path,
    t: np.ndarray,
    lines: Sequence[np.ndarray],
    *,
    every: int = 10,
    title: str = "",
    trace: np.ndarray | None = None,
    fixed: Sequence[np.ndarray] = (),
) -> None:
    """Write a GIF of polygons (each n x k x 3), every n-th point; `trace` (n x 3) leaves its path behind."""
    import matplotlib.pyplot as plt
    from matplotlib.animation import FuncAnimation, PillowWriter

    everything = np.concatenate([line.reshape(-1, 3) for line in [*lines, *fixed]])
    low, high = everything.min(axis=0), everything.max(axis=0)
    centre, half = (low + high) / 2, 0.55 * float((high - low).max())
    figure = plt.figure(figsize=(5, 5))
    axes = figure.add_subplot(projection="3d")
    axes.set(
        xlim=(centre[0] - half, centre[0] + half),
        ylim=(centre[1] - half, centre[1] + half),
        zlim=(centre[2] - half, centre[2] + half),
        xlabel="x in m",
        ylabel="y in m",
        zlabel="z in m",
    )
    axes.set_box_aspect((1, 1, 1))
    axes.locator_params(nbins=5)
    axes.tick_params(labelsize=7)
    for line in fixed:
        axes.plot(*line.T, color="0.5", lw=1)
    drawn = [axes.plot([], [], [], "o-", lw=2, ms=3)[0] for _ in lines]
    (path_drawn,) = axes.plot([], [], [], color="0.6", lw=0.8)
    frames = range(0, len(t), every)

    def show(n: int) -> list:
        for artist, line in zip(drawn, lines, strict=True):
            artist.set_data_3d(*line[n].T)
        if trace is not None:
            path_drawn.set_data_3d(*trace[: n + 1].T)
        axes.set_title(f"{title}\nt = {t[n]:.2f} s", fontsize=9)
        return [*drawn, path_drawn]

    FuncAnimation(figure, show, frames=frames).save(path, writer=PillowWriter(fps=20), dpi=70)
    plt.close(figure)
