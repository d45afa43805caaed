"""A common-rail pump: multibody side against hydraulics, and a resonance that neither of them shows alone.

    python examples/common_rail_pump/run.py [--out DIR] [--long]

What is printed and drawn (`DIR` is `build/common_rail_pump` unless given; about a minute on one core):

- a table: error against the undivided machine, crossings and time of Jacobi and Gauss-Seidel over one revolution;
- `revolution.png`: strokes, cylinder pressures, pressures of port and rail, torque and speed over one revolution;
- with `--long` (some minutes): `resonance.png`, order 15 of speed and port pressure, coupled and each side alone, and
  with other gear drives and another line.

The same machine from a file: cosolve run examples/common_rail_pump/system.toml
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import cosolve as cs
from examples.common_rail_pump.model import Course, Pump, running, undivided
from examples.common_rail_pump.study import coupled, error, last, order, resonance, revolutions, torque

STEPS = (10e-6, 5e-6)
METHODS = (cs.Jacobi(0), cs.Jacobi(1), cs.Jacobi(2), cs.GaussSeidel(1), cs.GaussSeidel(2))
T_END = 0.034


def study() -> None:
    """Error, crossings of each side and seconds, for each method and macro step."""
    reference = undivided(t_end=T_END, x0=running(), interval=1e-6)
    print(f"  {'H in us':<16}" + "".join(f"{1e6 * H:>10g}{'':>16}" for H in STEPS))
    for method in METHODS:
        print(f"  {method.label:<16}", end="", flush=True)
        for H in STEPS:
            begin = perf_counter()
            result = coupled(method, H, running(), T_END)
            calls, seconds = result.stats.calls["mbs"], perf_counter() - begin
            print(f"{error(result, reference):>10.1e} {calls:>7} {seconds:>5.1f} s", end="", flush=True)
        print()


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


def draw_resonance(path: Path) -> None:
    """Order 15 with and without the other side, and with other parts."""
    import matplotlib.pyplot as plt

    found = resonance()
    pump = Pump()
    for label, changed in (
        ("gear drive 4000 Nm/rad", replace(pump, drive=pump.drive._replace(gear_stiffness=4000.0))),
        ("gear drive 16000 Nm/rad", replace(pump, drive=pump.drive._replace(gear_stiffness=16000.0))),
        ("line 0.3 m", replace(pump, hydraulics=pump.hydraulics._replace(line_length=0.3))),
    ):
        course = last(revolutions(12, changed))
        found[label] = order(course.x[:, 3]), order(course.pressures["port"])
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    names = list(found)[::-1]
    for ax, k, unit, label in ((axes[0], 0, 1.0, "speed [rad/s]"), (axes[1], 1, 1e-6, "port pressure [MPa]")):
        values = [unit * found[name][k] for name in names]
        bars = ax.barh(names, np.nan_to_num(values), color=["C0" if "alone" not in name else "C3" for name in names])
        ax.bar_label(bars, ["not there" if np.isnan(v) else f"{v:.2f}" for v in values], padding=3)
        ax.set(xlabel=f"order 15: {label}", xlim=(0, 1.25 * np.nanmax(values)))
    figure.savefig(path, dpi=120)
    plt.close(figure)
    for name, (speed, port) in found.items():
        print(f"  {name:<26}{speed:>8.2f} rad/s {1e-6 * port:>8.2f} MPa")


def main(arguments: list[str] | None = None) -> None:
    """Print the table, draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/common_rail_pump"))
    parser.add_argument("--long", action="store_true", help="also the resonance study: six machines")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    print("one revolution in steady operation: error, crossings of each side, time\n")
    study()
    draw_revolution(revolutions(1, x0=running()), options.out / "revolution.png")
    if options.long:
        print("\namplitude of order 15")
        draw_resonance(options.out / "resonance.png")
    print(f"\npictures in {options.out}: revolution.png first")


if __name__ == "__main__":
    main()
