"""Draws docs/images/demo.png: the double pendulum of the demonstration under three methods. Run from anywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cosolve.basics.arrays import Vector
from cosolve.demo import Runs, double_pendulum, run_case
from cosolve.report.comparison import values_of

IMAGE = Path(__file__).parent.parent / "docs" / "images" / "demo.png"
COLOURS = {"explicit": "#c8442b", "semi-implicit": "#0072b2", "implicit": "#00886a", "exact": "#c3cad3"}
INK, RULE = "#38424f", "#e3e7ec"


def main() -> None:
    """Run the case and draw angle, force and error."""
    runs = run_case(double_pendulum())
    figure = Figure(figsize=(10.5, 3.7), layout="constrained", facecolor="white")
    angle, force, error = figure.subplots(1, 3)
    _motion(angle, runs, "upper.phi", "angle of the upper link [rad]", (0.70, 1.22), 12)
    _motion(force, runs, "joint[0]", "horizontal joint force [N]", (-75.0, 110.0), 12)
    _error(error, runs)
    handles, labels = angle.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize=10.5, labelcolor=INK)
    IMAGE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGE, dpi=130)
    print(f"{IMAGE} ({IMAGE.stat().st_size // 1000} kB)")


def _names(runs: Runs) -> dict[str, str]:
    return dict(zip(runs.results, ("explicit", "semi-implicit", "implicit"), strict=True))


def _motion(axes: Axes, runs: Runs, name: str, title: str, limits: tuple[float, float], every: int) -> None:
    dense = np.linspace(0.0, runs.case.t_end, 2000)
    axes.plot(dense, runs.case.exact(dense)[name], color=COLOURS["exact"], linewidth=6, label="exact")
    for label, who in _names(runs).items():
        t, values = runs.results[label].t, values_of(runs.results[label], name)
        if who == "explicit":
            t, values = _until_gone(t, values, limits)
            axes.plot(t, values, color=COLOURS[who], linewidth=1.4, label=who)
            axes.plot(t[-1:], np.clip(values[-1:], *limits), "x", color=COLOURS[who], clip_on=False)
        else:
            start = 0 if who == "implicit" else every
            axes.plot(
                *(t, values, "o-" if who == "implicit" else "s-"),
                color=COLOURS[who],
                linewidth=1.2,
                markersize=3.6,
                markevery=(start, 2 * every),
                label=who,
            )
    axes.set_ylim(*limits)
    _finish(axes, title)


def _until_gone(t: Vector, values: Vector, limits: tuple[float, float]) -> tuple[Vector, Vector]:
    """Up to the last time the run was still inside the picture at the start of its blow-up."""
    span = limits[1] - limits[0]
    gone = np.flatnonzero((values < limits[0] - span) | (values > limits[1] + span))
    return (t[: gone[0] + 1], values[: gone[0] + 1]) if gone.size else (t, values)


def _error(axes: Axes, runs: Runs) -> None:
    comparison = runs.comparison
    for label, who in _names(runs).items():
        t, distance = runs.results[label].t[1:], comparison.errors(label, "upper.phi")[1:]
        style = "--" if who == "implicit" else "-"
        axes.semilogy(t, distance, style, color=COLOURS[who], linewidth=1.4)
        where = {"explicit": (0.97, 0.95), "semi-implicit": (0.97, 0.11), "implicit": (0.97, 0.04)}[who]
        text = f"{who}: spectral radius {runs.radius[label]:.3f}"
        axes.text(*where, text, transform=axes.transAxes, ha="right", fontsize=8.5, color=COLOURS[who])
    axes.set_ylim(1e-13, 1e10)
    _finish(axes, "error of that angle [rad]")


def _finish(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=10.5, color=INK)
    axes.set_xlabel("time [s]", fontsize=9.5, color=INK)
    axes.set_xlim(0.0, 1.0)
    axes.grid(color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=9, length=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(RULE)


if __name__ == "__main__":
    main()
