"""Pictures of the Thomson coil: curves over time, coil and plate in section with their currents, and both in motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from examples.thomson_coil import field, model

_HALF = 52.0  # of the view, in mm to either side of the axis
_FRAMES = np.concatenate([np.arange(0, 400, 40), np.arange(400, 3001, 130)]) * 1e-6  # the first part in slow motion
_LEVELS = 30  # lines of flux at the strongest moment


@dataclass(frozen=True)
class Section:
    """One instant: `boxes` (left, bottom, width, height in m, current density in A/m2), and lines of flux if known."""

    t: float
    z: float
    current: float
    force: float
    boxes: np.ndarray
    flux: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None


def sections(flight: model.Flight | field.Flight, instants: Sequence[float] | np.ndarray) -> list[Section]:
    """Of either model."""
    one = _of_rings if isinstance(flight, model.Flight) else _of_field
    return [one(flight, float(t)) for t in instants]


def _turns(p: model.ThomsonCoil, current: float) -> list[list[float]]:
    return [[r - p.wire[0] / 2, -p.wire[1], *p.wire, current / (p.wire[0] * p.wire[1])] for r in p.turns]


def _of_rings(flight: model.Flight, t: float) -> Section:
    p = flight.parameters
    rings, x = model.Rings(p), flight.states(np.array([t]))[0]
    radii, heights, w, h = p.ring_places
    z, current = float(x[-2]), float(x[rings.I0])
    bottoms = p.gap + z + heights - h / 2
    plate = [[r - w / 2, b, w, h, i / (w * h)] for r, b, i in zip(radii, bottoms, x[rings.Ip], strict=True)]
    return Section(t, z, current, rings.force(t, x[:-2], x[-2:]), np.array(_turns(p, current) + plate))


def _of_field(flight: field.Flight, t: float) -> Section:
    machine = flight.machine
    x = flight.x[np.abs(flight.t - t).argmin()]
    z, current = float(x[-2]), float(x[machine.I])
    (low, high), density = machine.of.corners, machine.densities(x)
    left, right = np.sqrt(low[0]), np.sqrt(high[0])
    plate = np.stack([left, low[1] + z, right - left, high[1] - low[1], density], axis=1)
    boxes = np.concatenate([_turns(machine.p, current), plate])
    flux = machine.of.picture(x[machine.psi], current, z)
    return Section(t, z, current, machine.force(x[:-2], z), boxes, flux)


# -- one section ---------------------------------------------------------------------------------------------------


def draw_sections(flight: model.Flight | field.Flight, path: Path) -> None:
    """Four instants below each other, both sides of the axis."""
    import matplotlib.pyplot as plt

    seen = sections(flight, (20e-6, 100e-6, 300e-6, 900e-6))
    largest, levels = _scales(seen)
    figure, axes = plt.subplots(len(seen), 1, figsize=(9, 7.6), sharex=True, layout="constrained")
    for ax, one in zip(axes, seen, strict=True):
        _draw(ax, one, largest, levels)
        ax.set_title(_said(one), fontsize=10, loc="left")
    axes[-1].set_xlabel("radius [mm]")
    _colour_bar(figure, axes, largest)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _said(one: Section) -> str:
    return f"{1e6 * one.t:.0f} us: {1e-3 * one.current:.2f} kA in the coil, {one.force:.0f} N, {1e3 * one.z:.2f} mm"


def _scales(seen: list[Section]) -> tuple[float, np.ndarray]:
    """The largest current density, and levels of the lines of flux: the same in all pictures, so that they compare."""
    largest = max(float(np.abs(one.boxes[:, 4]).max()) for one in seen)
    strongest = max((float(one.flux[2].max()) for one in seen if one.flux), default=1.0)
    return largest, strongest * (np.arange(_LEVELS) + 0.5) / _LEVELS


def _norm(largest: float) -> Any:
    """Colours in A/mm2 that show weak currents as well."""
    from matplotlib.colors import AsinhNorm

    return AsinhNorm(0.1e-6 * largest, -1e-6 * largest, 1e-6 * largest)


def _draw(ax: Any, one: Section, largest: float, levels: np.ndarray, top: float = 12.0) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    if one.flux is not None:
        r, heights, flux = one.flux
        for side in (-1, 1):
            ax.contour(1e3 * side * r, 1e3 * heights, flux, levels, colors="0.45", linewidths=0.6, zorder=1)
    shapes = [
        Rectangle((1e3 * (left if side > 0 else -left - w), 1e3 * bottom), 1e3 * w, 1e3 * h)
        for side in (-1, 1)
        for left, bottom, w, h, _ in one.boxes
    ]
    drawn = PatchCollection(shapes, cmap="RdBu_r", norm=_norm(largest), edgecolors="face", linewidths=0.2, zorder=2)
    drawn.set_array(np.tile(1e-6 * one.boxes[:, 4], 2))
    ax.add_collection(drawn)
    for outline in _outlines(one):
        ax.add_patch(Rectangle(*outline, fill=False, edgecolor="0.25", linewidth=0.7, zorder=3))
    ax.set(xlim=(-_HALF, _HALF), ylim=(-10, top), aspect="equal", ylabel="mm")


def _outlines(one: Section) -> list[tuple[tuple[float, float], float, float]]:
    """Edges of the turns and of the plate, on both sides of the axis, in mm."""
    below = one.boxes[:, 1] < 0
    plate = one.boxes[~below]
    left, bottom = plate[:, 0].min(), plate[:, 1].min()
    whole = [left, bottom, (plate[:, 0] + plate[:, 2]).max() - left, (plate[:, 1] + plate[:, 3]).max() - bottom]
    found = []
    for a, b, w, h in [*one.boxes[below][:, :4].tolist(), whole]:
        found += [((1e3 * a, 1e3 * b), 1e3 * w, 1e3 * h), ((-1e3 * (a + w), 1e3 * b), 1e3 * w, 1e3 * h)]
    return found


def _colour_bar(figure: Any, axes: Any, largest: float) -> None:
    import matplotlib.pyplot as plt

    scale = plt.cm.ScalarMappable(_norm(largest), "RdBu_r")
    label = "current density [A/mm²]; red: as in the coil, blue: against it"
    ticks = [s * k for k in (500, 200, 100, 50, 20) for s in (-1, 1)]
    figure.colorbar(scale, ax=axes, label=label, shrink=0.9, ticks=[0, *ticks], format="%g")


# -- in motion -----------------------------------------------------------------------------------------------------


def animate(flight: model.Flight | field.Flight, path: Path) -> None:
    """Latch and end stop over 3 ms as a GIF: the section above, force and distance below, with where we are."""
    import matplotlib.pyplot as plt
    from matplotlib.animation import PillowWriter

    seen = sections(flight, _FRAMES)
    largest, levels = _scales(seen)
    t = np.linspace(0, _FRAMES[-1], 1201)
    curves = flight.signals(t)
    figure, (ax, below) = plt.subplots(
        2, 1, figsize=(7.2, 4.6), layout="constrained", gridspec_kw={"height_ratios": (5, 4)}
    )
    right = below.twinx()
    below.plot(1e3 * t, 1e-3 * curves["F"], color="C3")
    right.plot(1e3 * t, 1e3 * curves["z"], color="C0")
    stop = 1e3 * _parameters(flight).travel
    right.axhline(stop, color="C0", lw=0.6, ls=":")
    right.annotate("end stop", (0.55, stop), (0, -3), textcoords="offset points", va="top", color="C0", fontsize=8)
    below.set_ylabel("force [kN]", color="C3")
    right.set_ylabel("distance [mm]", color="C0")
    below.set(xlabel="t [ms]", xlim=(0, 1e3 * t[-1]))
    now = below.axvline(0, color="0.3", lw=0.8)
    (first,) = below.plot([0], [0], "o", color="C3", ms=5)
    (second,) = right.plot([0], [0], "o", color="C0", ms=5)
    writer = PillowWriter(fps=10)
    with writer.saving(figure, str(path), dpi=80):
        for k, one in enumerate(seen):
            ax.clear()
            _draw(ax, one, largest, levels)
            ax.set_xlabel("radius [mm]")
            ax.set_title(f"t = {1e3 * one.t:.3f} ms, {1e-3 * one.current:.2f} kA in the coil", fontsize=10, loc="left")
            now.set_xdata([1e3 * one.t] * 2)
            first.set_data([1e3 * one.t], [1e-3 * one.force])
            second.set_data([1e3 * one.t], [1e3 * one.z])
            writer.grab_frame()
            if k == 0:
                figure.set_layout_engine("none")  # found once: it would take most of the time
        for _ in range(6):  # a rest before it begins again
            writer.grab_frame()
    plt.close(figure)


def _parameters(flight: model.Flight | field.Flight) -> model.ThomsonCoil:
    return flight.parameters if isinstance(flight, model.Flight) else flight.machine.p


# -- over time -----------------------------------------------------------------------------------------------------


def draw_motion(columns: Sequence[tuple[str, Any, Any]], held: dict[str, np.ndarray], path: Path) -> None:
    """Current, force, speed and distance; a column is a title, the undivided machine and a coupled run of it.

    `held` are the same signals without coupling, for the first column: the force is that on a plate that does not move.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(4, len(columns), figsize=(9, 9), sharex="col", layout="constrained")
    rows = (("I", "", 1e-3, "coil current [kA]"), ("F", "em.F", 1e-3, "force [kN]"))
    rows += (("v", "plate.v", 1.0, "speed [m/s]"), ("z", "plate.z", 1e3, "distance [mm]"))
    for column, (title, flight, result) in enumerate(columns):
        t = np.linspace(0, result.t[-1], 1500)
        exact = flight.signals(t)
        for ax, (of, name, unit, label) in zip(axes[:, column], rows, strict=True):
            ax.plot(1e3 * t, unit * exact[of], color="0.75", lw=4, label="undivided")
            if name:
                ax.plot(1e3 * result.t, unit * result[name], lw=1.2, label="coupled")
            if column == 0:
                ax.plot(1e3 * held["t"], unit * held[of], "--", color="C1", lw=1.2, label="without coupling")
            ax.axvline(1e3 * flight.diode, color="C3", lw=0.8, ls=":")
            ax.grid(alpha=0.3)
            ax.set_ylabel(label if column == 0 else "")
        axes[0, column].set_title(title)
        place = (1e3 * flight.diode + 0.04 * t[-1] * 1e3, 4.1)
        axes[0, column].annotate("the diode\ntakes over", place, color="C3", va="center")
        axes[-1, column].set_xlabel("t [ms]")
    axes[1, 0].legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_errors(rows: Sequence[Any], title: str, path: Path) -> None:
    """Errors over the macro step; the legend says what the shortest one cost."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 4.8), layout="constrained")
    for k, label in enumerate(dict.fromkeys(row.method for row in rows)):
        own = [row for row in rows if row.method == label]
        cost = f"{label}, advances {own[-1].work:.0f} times" if own[-1].work > 1.5 else label
        steps, errors = [1e6 * row.step for row in own], [row.error for row in own]
        ax.loglog(steps, errors, "o-" if len(own) > 1 else "*", ms=6 if len(own) > 1 else 12, color=f"C{k}", label=cost)
    ax.set(xlabel="macro step [us]", ylabel="error against the undivided machine", title=title)
    ax.grid(alpha=0.3, which="both")
    ax.legend(fontsize=9)
    figure.savefig(path, dpi=120)
    plt.close(figure)
