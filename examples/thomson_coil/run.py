"""A Thomson coil throws a plate off: circuit and eddy currents against latch and end stop, method by method.

    python examples/thomson_coil/run.py [--out DIR] [--long]

What is printed and drawn (`DIR` is `build/thomson_coil` unless given; about a minute on one core):

- a table: error against the undivided machine, crossings and time of Jacobi for degrees 0 to 3 and of the implicit
  method, over the macro step, in free flight (`--long`: down to 1 us, some minutes);
- `motion.png`: current, force, speed and distance, in free flight and with latch and end stop;
- `section.png`: coil and plate in section at four instants, with the currents that flow against each other;
- `errors.png`: the table as lines.

The same machine from a file: cosolve run examples/thomson_coil/system.toml
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from time import perf_counter

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # 48 rings: threads would only wait for each other

import numpy as np

import cosolve as cs
from examples.thomson_coil.model import Flight, Rings, ThomsonCoil, split, undivided

STEPS = (100e-6, 50e-6, 25e-6, 12.5e-6)
LONG_STEPS = (*STEPS, 6.25e-6, 2e-6, 1e-6)
METHODS = (cs.Jacobi(0), cs.Jacobi(1), cs.Jacobi(2), cs.Jacobi(3), cs.SemiImplicit(2))
SIGNALS = {"plate.z": "z", "plate.v": "v", "em.F": "F"}


def error(result: cs.Result, reference: Flight, until: float = np.inf) -> float:
    """Root mean square over signals and macro points, each signal relative to its range."""
    seen = result.t <= until
    exact = reference.signals(result.t[seen])
    shares = [(result[name][seen] - exact[of]) / np.ptp(exact[of]) for name, of in SIGNALS.items()]
    return float(np.sqrt(np.mean(np.square(shares))))


def study(steps: tuple[float, ...], internal_step: float = 5e-7) -> dict[str, list[tuple[float, int, float]]]:
    """Error, crossings of the electromagnetic side and seconds, for each method and macro step in free flight."""
    reference, found = undivided(), {}
    for method in METHODS:
        rows = []
        for H in steps:
            begin = perf_counter()
            result = cs.simulate(split(internal_step=internal_step), t_end=1e-3, method=method, step=H)
            rows.append((error(result, reference), result.stats.calls["em"], perf_counter() - begin))
        found[method.label] = rows
        print(f"  {method.label:<16}" + "".join(f"{e:>10.1e} {n:>5} {s:>5.1f} s" for e, n, s in rows))
    return found


def draw_motion(path: Path) -> None:
    """Free flight and the latched machine beside each other."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(4, 2, figsize=(9, 9), sharex="col", layout="constrained")
    for column, (latched, t_end) in enumerate(((False, 1e-3), (True, 3e-3))):
        reference = undivided(t_end=t_end, latched=latched)
        system = split(internal_step=5e-7, latched=latched)
        result = cs.simulate(system, t_end=t_end, method=cs.Jacobi(2), step=5e-6)
        t = np.linspace(0, t_end, 1500)
        exact = reference.signals(t)
        rows = (("I", "", 1e-3, "coil current [kA]"), ("F", "em.F", 1e-3, "force [kN]"))
        rows += (("v", "plate.v", 1.0, "speed [m/s]"), ("z", "plate.z", 1e3, "distance [mm]"))
        for ax, (of, name, unit, label) in zip(axes[:, column], rows, strict=True):
            ax.plot(1e3 * t, unit * exact[of], color="0.75", lw=4, label="undivided")
            if name:
                ax.plot(1e3 * result.t, unit * result[name], lw=1.2, label="Jacobi(2), H = 5 us")
            ax.axvline(1e3 * reference.diode, color="C3", lw=0.8, ls=":")
            ax.grid(alpha=0.3)
            ax.set_ylabel(label if column == 0 else "")
        axes[0, column].set_title("free flight" if not latched else "with latch and end stop")
        axes[0, column].annotate(
            "the diode\ntakes over", (1e3 * reference.diode, 3.6), (0.25 if not latched else 0.5, 3.6), color="C3"
        )
        axes[-1, column].set_xlabel("t [ms]")
    axes[1, 0].legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_section(path: Path, instants: tuple[float, ...] = (20e-6, 100e-6, 300e-6, 900e-6)) -> None:
    """Current density in coil and plate, seen from the side; the axis is at the left."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    p = ThomsonCoil()
    of, rows = Rings(p), undivided(p).states(np.array(instants))
    radii, heights, width, height = p.ring_places
    densities = [np.concatenate([[x[of.I0] / (p.wire[0] * p.wire[1])], x[of.Ip] / (width * height)]) for x in rows]
    largest = max(np.abs(one).max() for one in densities) * 1e-6
    colours = plt.get_cmap("RdBu_r")
    figure, axes = plt.subplots(len(instants), 1, figsize=(8, 7), sharex=True, layout="constrained")
    for ax, t, x, density in zip(axes, instants, rows, densities, strict=True):
        z = x[-2]
        boxes = [(r - p.wire[0] / 2, -p.wire[1], *p.wire, density[0]) for r in p.turns]
        boxes += [
            (r - width / 2, p.gap + z + h - height / 2, width, height, d)
            for r, h, d in zip(radii, heights, density[1:], strict=True)
        ]
        for left, bottom, w, h, value in boxes:
            colour = colours(0.5 + 0.5e-6 * value / largest)
            ax.add_patch(
                Rectangle((1e3 * left, 1e3 * bottom), 1e3 * w, 1e3 * h, facecolor=colour, edgecolor="0.6", lw=0.3)
            )
        ax.set(xlim=(0, 50), ylim=(-5, 8), aspect="equal", ylabel="mm")
        said = (
            f"{1e6 * t:.0f} us: {1e-3 * x[0]:.2f} kA in the coil, {of.force(t, x[:-2], x[-2:]):.0f} N, {1e3 * z:.2f} mm"
        )
        ax.set_title(said, fontsize=9, loc="left")
    axes[-1].set_xlabel("radius [mm]")
    scale = plt.cm.ScalarMappable(plt.Normalize(-largest, largest), colours)
    figure.colorbar(scale, ax=axes, label="current density [A/mm²]; red: as in the coil, blue: against it")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_errors(found: dict[str, list[tuple[float, int, float]]], steps: tuple[float, ...], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
    for label, rows in found.items():
        ax.loglog([1e6 * H for H in steps], [row[0] for row in rows], "o-", label=label)
    ax.set(xlabel="macro step [us]", ylabel="error against the undivided machine", title="Thomson coil in free flight")
    ax.grid(alpha=0.3, which="both")
    ax.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    """Print the table, draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/thomson_coil"))
    parser.add_argument("--long", action="store_true", help="macro steps down to 1 us, internal steps of 0.1 us")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    steps = LONG_STEPS if options.long else STEPS
    print("free flight: error, crossings of the electromagnetic side, time\n")
    print(f"  {'H in us':<16}" + "".join(f"{1e6 * H:>10g}{'':>14}" for H in steps))
    found = study(steps, 1e-7 if options.long else 5e-7)
    draw_errors(found, steps, options.out / "errors.png")
    draw_motion(options.out / "motion.png")
    draw_section(options.out / "section.png")
    print(f"\npictures in {options.out}: section.png first")


if __name__ == "__main__":
    main()
