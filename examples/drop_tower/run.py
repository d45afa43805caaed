"""A guided body falls onto a tilted block of foam: multibody side against finite elements, method by method.

    python examples/drop_tower/run.py [--out DIR] [--long]

What is printed and drawn (`DIR` is `build/drop_tower` unless given; about a minute on one core):

- a table: the first impact, coupled from 0.104 s on, when the body falls with 1 m/s: method, degree, start, macro step,
  subsystem steps of the finite elements, error against the undivided machine, largest force, time (`--long`: more
  steps);
- `fall.gif`: the fall, the impact in slow motion, the force (coupled run, tilt of 5 degrees);
- `impact.png`: foam and block at four instants; `forces.png`: force, height and rocking for three tilts;
- `start.png`: what a start without a past does to the force; `errors.png`: the table as a picture.

The same machine from a file: cosolve run examples/drop_tower/system.toml
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import cosolve as cs
from examples.drop_tower.model import DropTower, Fall, contact, split, undivided

BEGIN, WINDOW = 0.104, 0.024  # of the study: 7 ms before the touch, and past the lowest point
TILTS = (0.0, 2.5, 5.0)
RATES = cs.KnownRates({"mbs.place": "mbs.speed"})
NO_PAST = cs.RisingDegree()
US = 1e-6


@dataclass(frozen=True)
class Case:
    """A line of the table. `hermite`: the specimen moves the place on with the speed, and needs no past."""

    method: cs.Jacobi | cs.GaussSeidel | cs.SemiImplicit
    step: float
    hermite: bool = False
    past: bool = True

    @property
    def signals(self) -> str:
        """How the place goes on inside a macro step, and from what."""
        if self.hermite:
            return "place with its speed"
        return "speed known at the start" if self.past else "nothing known at the start"


CASES = (
    Case(cs.Jacobi(1), 4 * US, past=False),
    Case(cs.Jacobi(1), 4 * US),
    Case(cs.Jacobi(2), 8 * US),
    Case(cs.Jacobi(2), 4 * US),
    Case(cs.Jacobi(0), 20 * US, hermite=True),
    Case(cs.Jacobi(0), 4 * US, hermite=True),
    Case(cs.Jacobi(1), 4 * US, hermite=True),
    Case(cs.GaussSeidel(1), 40 * US, hermite=True),
    Case(cs.GaussSeidel(1), 20 * US, hermite=True),
    Case(cs.SemiImplicit(2), 100 * US),
)
MORE = (
    *(Case(cs.Jacobi(1), H * US) for H in (2, 1)),
    *(Case(cs.Jacobi(2), H * US) for H in (2, 1)),
    *(Case(cs.Jacobi(0), H * US, hermite=True) for H in (2, 1)),
    *(Case(cs.GaussSeidel(1), H * US, hermite=True) for H in (100, 10, 4)),
    Case(cs.GaussSeidel(1), 20 * US),
    *(Case(cs.GaussSeidel(2), H * US) for H in (20, 8, 4)),
    *(Case(cs.SemiImplicit(2), H * US) for H in (200, 50)),
)


def error(result: cs.Result, reference: Fall) -> float:
    """Root mean square over height, speed and force at the macro points, each relative to its range."""
    point, load, t = reference.point(), reference.load(), result.t - BEGIN
    pairs = (("mbs.place", point[:, 1]), ("mbs.speed", point[:, 4]), ("fe.load", load[:, 1]))
    shares = [(result[name][:, 1] - np.interp(t, reference.t, exact)) / np.ptp(exact) for name, exact in pairs]
    return float(np.sqrt(np.mean(np.square(shares))))


def study(machine: DropTower, x0: np.ndarray, cases: tuple[Case, ...]) -> list[tuple[Case, float, int]]:
    """Print the table; cases that finished, with errors and subsystem steps."""
    reference = undivided(machine, WINDOW, x0=x0, interval=2 * US)
    peak = reference.load()[:, 1].max()
    print(f"\nimpact from t = {BEGIN} s on, tilt {machine.tilt:g} deg, undivided: {peak:.1f} N at most\n")
    print(f"  {'method':<16} {'inside a macro step':<27} {'H in us':>7} {'steps':>9} {'error':>8} {'largest':>9} time")
    systems = {hermite: split(machine, x0=x0, hermite=hermite) for hermite in (False, True)}
    found = []
    for case in cases:
        begin = perf_counter()
        startup = None if case.hermite else RATES if case.past else NO_PAST
        said = f"  {case.method.label:<16} {case.signals:<27} {1e6 * case.step:>7g}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cs.errors.StabilityWarning)  # the table says so
                result = cs.simulate(
                    systems[case.hermite],
                    t_end=BEGIN + WINDOW,
                    t_start=BEGIN,
                    method=case.method,
                    step=case.step,
                    startup=startup,
                )
        except cs.errors.SimulationError as failure:
            print(f"{said}  unstable: {str(failure)[:60]} ...", flush=True)
            continue
        calls, off = result.stats.calls["fe"], error(result, reference)
        largest = result["fe.load"][:, 1].max()
        print(f"{said} {calls:>9} {off:>8.1e} {largest:>7.1f} N {perf_counter() - begin:>4.1f} s", flush=True)
        found.append((case, off, calls))
    return found


# -- pictures --------------------------------------------------------------------------------------------------------


def draw_scene(
    ax: Any, machine: DropTower, place: np.ndarray, block: np.ndarray, nodes: np.ndarray, top: float
) -> None:
    """Body, block and foam in mm; elements are coloured by how much they are compressed."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Polygon

    s, (rest, corners) = machine.specimen, machine.mesh
    now = 1e3 * (rest + nodes.reshape(-1, 2))
    areas = [_area(points[corners]) for points in (1e3 * rest, now)]
    ax.add_collection(
        PolyCollection(
            now[corners], array=100 * (1 - areas[1] / areas[0]), cmap="YlOrRd", clim=(0, 25), edgecolor="0.4", lw=0.5
        )
    )
    for width, height, (x, y), angle, colour in (
        (s.width, s.block_height, block[:2], block[2], "0.75"),
        (0.04, 0.12, place[:2] + 0.06 * np.array([-np.sin(place[2]), np.cos(place[2])]), place[2], "#9db8d2"),
    ):
        half = 0.5 * np.array([[-width, -height], [width, -height], [width, height], [-width, height]])
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        ax.add_patch(Polygon(1e3 * (half @ turn.T + [x, y]), facecolor=colour, edgecolor="0.3", lw=0.8))
    base = 1e3 * rest[: machine.elements[0] + 1]  # held by what the foam stands on
    ax.plot(base[[0, -1], 0], base[[0, -1], 1], color="0.2", lw=5, solid_capstyle="butt")
    ax.set(xlim=(-50, 50), ylim=(-6, top), aspect="equal", xlabel="mm")


def _area(quads: np.ndarray) -> np.ndarray:
    """By the diagonals."""
    one, two = quads[:, 2] - quads[:, 0], quads[:, 3] - quads[:, 1]
    return 0.5 * (one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0])


def draw_impact(machine: DropTower, run: cs.Result, path: Path) -> None:
    """Four instants."""
    import matplotlib.pyplot as plt

    load = run["fe.load"][:, 1]
    instants = [0.105, run.t[(load > 15).argmax()] + 2e-3, run.t[run["mbs.place"][:, 1].argmin()], 0.145]
    figure, axes = plt.subplots(1, 4, figsize=(11, 5), sharey=True, layout="constrained")
    for ax, t in zip(axes, instants, strict=True):
        k = int(np.abs(run.t - t).argmin())
        draw_scene(ax, machine, run["mbs.place"][k], run["fe.block"][k], run["fe.nodes"][k], 160)
        ax.set_title(
            f"{1e3 * run.t[k]:.1f} ms: {round(load[k]) + 0} N, {1e3 * run['mbs.place'][k, 2]:.1f} mrad", fontsize=9
        )
    axes[0].set_ylabel("mm")
    figure.colorbar(axes[0].collections[0], ax=axes, label="compressed by %", shrink=0.7)
    figure.suptitle(f"body, aluminium block and foam, tilt {machine.tilt:g} deg (GaussSeidel(1), H = 20 us)")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_forces(falls: dict[float, Fall], run: cs.Result, path: Path) -> None:
    """Force, lateral force, height and rocking over time, for all tilts; the last one coupled too."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(4, 1, figsize=(8, 9), sharex=True, layout="constrained")
    signals = (("fe.load", 1, 1.0), ("fe.load", 0, 1.0), ("mbs.place", 1, 1e3), ("mbs.place", 2, 1e3))
    for colour, (tilt, fall) in enumerate(falls.items()):
        exact = {"mbs.place": fall.point(), "fe.load": fall.load()}
        for ax, (name, k, unit) in zip(axes, signals, strict=True):
            ax.plot(1e3 * fall.t, unit * exact[name][:, k], color=f"C{colour}", lw=1.2, label=f"tilt {tilt:g} deg")
    for ax, (name, k, unit) in zip(axes, signals, strict=True):
        ax.plot(1e3 * run.t, unit * run[name][:, k], "k--", lw=0.9, label="the last one coupled")
        ax.grid(alpha=0.3)
    labels = ("vertical force [N]", "lateral force [N]", "reference point [mm]", "rocking [mrad]")
    for ax, label in zip(axes, labels, strict=True):
        ax.set_ylabel(label)
    axes[0].legend()
    axes[0].set_title("first impact, undivided; dashed: coupled by GaussSeidel(1), H = 20 us")
    axes[-1].set(xlabel="t [ms]", xlim=(105, 150))
    axes[2].set_ylim(55, 90)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_start(machine: DropTower, x0: np.ndarray, path: Path) -> None:
    """The first 0.15 ms with H = 1 us: the interface stands still for one step, or it does not."""
    import matplotlib.pyplot as plt

    exact = undivided(machine, 150 * US, x0=x0, step=0.5 * US, interval=US)
    figure, axes = plt.subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
    for ax, startup, title in (
        (axes[0], NO_PAST, "RisingDegree(): the place is held for one macro step, and the tie (40 kHz) rings"),
        (axes[1], RATES, 'KnownRates({"mbs.place": "mbs.speed"})'),
    ):
        system = split(machine, internal_step=US, x0=x0)
        run = cs.simulate(system, t_start=BEGIN, t_end=BEGIN + 150 * US, method=cs.Jacobi(2), step=US, startup=startup)
        ax.plot(1e6 * exact.t, exact.load()[:, 1], color="0.75", lw=4, label="undivided")
        ax.plot(1e6 * (run.t - BEGIN), run["fe.load"][:, 1], lw=1.2, label="Jacobi(2), H = 1 us")
        ax.set(ylabel="vertical force [N]", title=title)
        ax.grid(alpha=0.3)
        ax.legend()
    axes[-1].set_xlabel("us after the start of the coupling at 0.104 s, at 1 m/s")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_errors(found: list[tuple[Case, float, int]], path: Path) -> None:
    """Error over what it costs."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
    lines: dict[str, list[tuple[int, float, float]]] = {}
    for case, off, calls in found:
        lines.setdefault(f"{case.method.label}, {case.signals}", []).append((calls, off, case.step))
    for label, points in lines.items():
        points.sort()
        ax.loglog([p[0] for p in points], [p[1] for p in points], "o-", label=label)
        for calls, off, step in points:
            ax.annotate(f"{1e6 * step:g}", (calls, off), xytext=(4, 4), textcoords="offset points", fontsize=7)
    ax.set(xlabel="subsystem steps of the finite elements (beside the points: H in us)", ylabel="error")
    ax.set_title("first impact: down and left is better")
    ax.grid(alpha=0.3, which="both")
    ax.legend(fontsize=7)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def animate(machine: DropTower, run: cs.Result, path: Path) -> None:
    """The fall, then the impact in slow motion; beside it the force."""
    import matplotlib.pyplot as plt
    from matplotlib.animation import FuncAnimation, PillowWriter

    times = np.concatenate([np.linspace(0.0, 0.108, 10), np.linspace(0.109, 0.1475, 34)])
    places = [int(np.abs(run.t - t).argmin()) for t in times]
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 5), width_ratios=(1, 1.3), layout="constrained")
    load = run["fe.load"]

    def frame(k: int) -> None:
        left.clear()
        right.clear()
        draw_scene(left, machine, run["mbs.place"][k], run["fe.block"][k], run["fe.nodes"][k], 260)
        left.set_title(f"t = {1e3 * run.t[k]:.1f} ms", fontsize=10)
        right.plot(1e3 * run.t, load[:, 1], color="0.85")
        right.plot(1e3 * run.t[: k + 1], load[: k + 1, 1], color="C3", label="vertical")
        right.plot(1e3 * run.t[: k + 1], load[: k + 1, 0], color="C0", label="lateral")
        right.set(xlim=(100, 150), xlabel="t [ms]", ylabel="force on the body [N]", title="from 108 ms on: slow motion")
        right.grid(alpha=0.3)
        right.legend(loc="upper right")

    FuncAnimation(figure, frame, frames=places).save(path, PillowWriter(fps=12), dpi=75)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    """Print the table, draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/drop_tower"))
    parser.add_argument("--long", action="store_true", help="more steps in the table")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    machine = DropTower(TILTS[-1])
    print("undivided, from rest, three tilts", flush=True)
    falls = {}
    for tilt in TILTS:
        fall = falls[tilt] = undivided(DropTower(tilt), 0.15)
        print(f"  {tilt:g} deg: {contact(fall.machine, fall.t, fall.point(), fall.load())}", flush=True)
    x0 = falls[TILTS[-1]].x[round(BEGIN / 1e-4)]
    found = study(machine, x0, (*CASES, *MORE) if options.long else CASES)
    draw_errors(found, options.out / "errors.png")
    draw_start(machine, x0, options.out / "start.png")
    print("\ncoupled from rest by GaussSeidel(1), H = 20 us", flush=True)
    begin = perf_counter()
    system = split(machine, hermite=True, shape=True)
    run = cs.simulate(system, t_end=0.15, method=cs.GaussSeidel(1), step=20 * US, every=5)
    said = contact(machine, run.t, run["mbs.place"], run["fe.load"])
    print(f"  {machine.tilt:g} deg: {said}, {perf_counter() - begin:.1f} s\n\npictures ...", flush=True)
    draw_forces(falls, run, options.out / "forces.png")
    draw_impact(machine, run, options.out / "impact.png")
    animate(machine, run, options.out / "fall.gif")
    print(f"in {options.out}: fall.gif first")


if __name__ == "__main__":
    main()
