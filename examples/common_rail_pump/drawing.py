"""Pictures of the pump: the machine itself, what it does in a revolution, how long steps are, and its resonance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import cosolve as cs
from examples.common_rail_pump.model import Course
from examples.common_rail_pump.study import torque

#: mm in the drawing: radius of the eccentric, length of a piston, and how much its stroke is drawn too large
RADIUS, PISTON, LARGER = 12.0, 14.0, 2.0
VAPOUR = 0.05e6


def draw_machine(course: Course, path: Path, moments: int = 6) -> None:
    """The eccentric and its pistons over a third of a turn, cylinders coloured by their pressure, and where that is."""
    import matplotlib.pyplot as plt

    angle, pressures = np.degrees(course.x[:, 2]), 1e-6 * course.pressures["cylinders"]
    shown = np.linspace(60, 180, moments, endpoint=False) + 10
    rows = [int(np.abs(angle - one).argmin()) for one in shown]
    figure = plt.figure(figsize=(2.1 * moments, 5.4), layout="constrained")
    grid = figure.add_gridspec(2, moments, height_ratios=(1.25, 1))
    for k, row in enumerate(rows):
        ax = figure.add_subplot(grid[0, k])
        _draw_pump(ax, course, row)
        ax.set_title(f"{'abcdefgh'[k]}: {angle[row]:.0f}°", fontsize=10)
    curves = figure.add_subplot(grid[1, :])
    for i in range(3):
        curves.plot(angle, pressures[:, i], color=f"C{i}", label=f"cylinder {i + 1}")
    for k, row in enumerate(rows):
        curves.axvline(angle[row], color="0.6", lw=0.8, ls="--")
        curves.text(angle[row] + 1, 195, "abcdefgh"[k], fontsize=9)
    curves.set(xlabel="angle of the eccentric [deg]", ylabel="pressure [MPa]", xlim=(0, 360), ylim=(0, 210))
    curves.set_xticks(range(0, 361, 60))
    curves.grid(alpha=0.3)
    curves.legend(loc="center left", fontsize=8)
    colours = plt.cm.ScalarMappable(plt.Normalize(0, 190), "YlOrRd")
    figure.colorbar(colours, ax=figure.axes, label="cylinder pressure [MPa]", shrink=0.6, pad=0.01)
    figure.suptitle("Three pistons on an eccentric; dotted cylinders are not full (strokes drawn at double size)")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_pump(ax: Any, course: Course, row: int) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.patches import Circle, Polygon

    e = LARGER * 1e3 * course.pump.drive.eccentricity
    phi, lifts = course.x[row, 2], LARGER * 1e3 * course.x[row, 4:7]
    pressures = course.pressures_at(row)
    centre = -e * np.array([np.cos(phi), np.sin(phi)])
    ax.add_patch(Circle(tuple(centre), RADIUS, facecolor="0.82", edgecolor="0.3"))
    ax.add_patch(Circle((0.0, 0.0), 2.0, facecolor="0.3"))
    ax.plot([0.0, centre[0]], [0.0, centre[1]], color="0.3", lw=1.5)
    head = RADIUS + e + PISTON + 4.0
    for i in range(3):
        along = np.array([np.cos(2 * np.pi * i / 3), np.sin(2 * np.pi * i / 3)])
        across = np.array([-along[1], along[0]])

        def box(
            r1: float, r2: float, half: float, along: np.ndarray = along, across: np.ndarray = across, **look: Any
        ) -> None:
            corners = [r1 * along + half * across, r2 * along + half * across]
            corners += [r2 * along - half * across, r1 * along - half * across]
            ax.add_patch(Polygon(corners, **look))

        foot = RADIUS - e + lifts[i]
        colour = plt.get_cmap("YlOrRd")(1e-6 * pressures[i] / 190)
        hollow = pressures[i] < VAPOUR
        box(foot + PISTON, head, 4.0, facecolor=colour, edgecolor="0.6", hatch="..." if hollow else None)
        box(foot, foot + PISTON, 3.8, facecolor=f"C{i}", edgecolor="0.3", alpha=0.8)
        box(head, head + 1.5, 5.0, facecolor="0.3")
        ax.text(*((head + 6) * along), str(i + 1), ha="center", va="center", fontsize=9, color=f"C{i}")
    reach = head + 8
    ax.set(xlim=(-0.75 * reach, 1.05 * reach), ylim=(-reach, reach), aspect="equal")
    ax.axis("off")


def draw_revolution(course: Course, path: Path) -> None:
    """What an engineer looks at first, over the angle of the shaft."""
    import matplotlib.pyplot as plt

    angle, pressures = np.degrees(course.x[:, 2]), course.pressures
    figure, axes = plt.subplots(5, 1, figsize=(8, 10), sharex=True, layout="constrained")
    stroke, cylinder, rail, load, speed = axes
    for i in range(3):
        stroke.plot(angle, 1e3 * course.x[:, 4 + i], color=f"C{i}", label=f"piston {i + 1}")
        cylinder.plot(angle, 1e-6 * pressures["cylinders"][:, i], color=f"C{i}")
    rail.plot(angle, 1e-6 * pressures["port"], color="C3", label="port of the pump")
    rail.plot(angle, 1e-6 * pressures["rail"], color="C4", label="rail")
    load.plot(angle, torque(course), color="0.3")
    load.axhline(0, color="0.7", lw=0.8)
    speed.plot(angle, course.x[:, 3], color="C5", label="eccentric")
    speed.plot(angle, course.x[:, 1], color="C6", lw=0.8, label="gear")
    labels = ("stroke [mm]", "cylinders [MPa]", "pressure [MPa]", "torque of the\nliquid [Nm]", "speed [rad/s]")
    for ax, label in zip(axes, labels, strict=True):
        ax.set_ylabel(label)
        ax.grid(alpha=0.3)
    for ax in (stroke, rail, speed):
        ax.legend(loc="upper right", ncols=3, fontsize=8)
    cylinder.annotate("not full: the pressure\nrises late and steeply", (93, 90), (5, 120), fontsize=8)
    speed.set(xlabel="angle of the eccentric [deg]", xlim=(0, 360), xticks=range(0, 361, 60))
    figure.suptitle("Common-rail pump, 1800 rpm, 180 MPa: one revolution in steady operation")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_steps(run: cs.Result, limit: float, path: Path) -> None:
    """How long error-controlled steps are, below the forces that make them short; `limit` is that of equal steps."""
    import matplotlib.pyplot as plt

    ms = 1e3 * run.t
    figure, (force, steps) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained")
    for i in range(3):
        force.plot(ms, 1e-3 * run["hydraulics.force"][:, i], color=f"C{i}", label=f"piston {i + 1}")
    force.set_ylabel("force of the liquid [kN]")
    force.legend(loc="center left", fontsize=8)
    steps.semilogy(ms[:-1], 1e6 * np.diff(run.t), ".", ms=2, color="0.2")
    steps.axhline(1e6 * limit, color="C3", lw=0.9, label="limit of equal steps")
    steps.set(xlabel="t [ms]", ylabel="macro step [us]")
    steps.legend(loc="lower right", fontsize=8)
    for ax in (force, steps):
        ax.grid(alpha=0.3)
    figure.suptitle("Steps that choose themselves: shortest where a cylinder fills and another has emptied")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_resonance(found: dict[str, tuple[float, float]], path: Path) -> None:
    """Order 15 with and without the other side, and with other parts."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    names = list(found)[::-1]
    for ax, k, unit, label in ((axes[0], 0, 1.0, "speed [rad/s]"), (axes[1], 1, 1e-6, "port pressure [MPa]")):
        values = [unit * found[name][k] for name in names]
        bars = ax.barh(names, np.nan_to_num(values), color=["C0" if "alone" not in name else "C3" for name in names])
        ax.bar_label(bars, ["not there" if np.isnan(v) else f"{v:.2f}" for v in values], padding=3)
        ax.set(xlabel=f"order 15: {label}", xlim=(0, 1.25 * np.nanmax(values)))
    figure.savefig(path, dpi=120)
    plt.close(figure)


def animate(course: Course, path: Path, frames: int = 60) -> None:
    """One turn of the machine as a moving picture."""
    import matplotlib.pyplot as plt
    from matplotlib.animation import FuncAnimation, PillowWriter

    figure, ax = plt.subplots(figsize=(4, 4.4))

    def frame(k: int) -> list[Any]:
        ax.clear()
        _draw_pump(ax, course, k * (len(course.t) - 1) // frames)
        ax.set_title(f"{np.degrees(course.x[k * (len(course.t) - 1) // frames, 2]):.0f}°")
        return []

    FuncAnimation(figure, frame, frames=frames).save(path, PillowWriter(fps=15))
    plt.close(figure)
