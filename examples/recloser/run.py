"""A recloser closes and opens: magnetic actuators against contacts, springs and a frame that three poles share.

    python examples/recloser/run.py [--out DIR]

What is printed and drawn (`DIR` is `build/recloser` unless given; about a minute on one core):

- a table: error against the undivided machine, crossings and time of Jacobi over the macro step, for the whole closing
  and before the contacts touch;
- `closing.png`, `opening.png`: travel, gap, forces and coil current of one pole;
- `three_poles.png`: the contacts of three poles, closed a third of a period of the grid apart.

The same machine from a file: cosolve run examples/recloser/system.toml
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from time import perf_counter

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import cosolve as cs
from examples.recloser.model import CLOSE, OPEN, Motion, Recloser, split, undivided

STEPS = (1e-3, 5e-4, 2e-4, 1e-4, 5e-5)
METHODS = (cs.Jacobi(0), cs.Jacobi(1), cs.Jacobi(2), cs.GaussSeidel(2))
T_END, TOUCH = 60e-3, 33.5e-3


def errors(result: cs.Result, reference: Motion) -> tuple[float, float]:
    """Of the whole motion and before the touch: root mean squares, each signal relative to its range."""
    places = np.rint(result.t / (reference.t[1] - reference.t[0])).astype(int)
    shares = np.array(
        [(np.ravel(result[name]) - values[places]) / np.ptp(values) for name, values in reference.signals().items()]
    )
    before = shares[:, result.t <= TOUCH]
    return float(np.sqrt(np.mean(shares**2))), float(np.sqrt(np.mean(before**2)))


def study(reference: Motion) -> None:
    """Errors, crossings and seconds."""
    print(f"  {'H in us':<16}" + "".join(f"{1e6 * H:>10g}{'':>23}" for H in STEPS))
    for method in METHODS:
        print(f"  {method.label:<16}", end="", flush=True)
        for H in STEPS:
            begin = perf_counter()
            result = cs.simulate(split(), t_end=T_END, method=method, step=H)
            whole, before = errors(result, reference)
            seconds, calls = perf_counter() - begin, result.stats.calls["mbs"]
            print(f"{whole:>10.1e} {before:>9.1e} {calls:>5} {seconds:>5.1f} s", end="", flush=True)
        print()


def draw_pole(course: Motion, path: Path) -> None:
    """Travel, forces and current of one pole over time."""
    import matplotlib.pyplot as plt

    ms, (travel, _), (gap, _) = 1e3 * course.t, course.travel(), course.approach()
    figure, (motion, force, current) = plt.subplots(3, 1, figsize=(8, 7.5), sharex=True, layout="constrained")
    motion.plot(ms, 1e3 * travel, label="armature, from the open stop")
    motion.plot(ms, 1e3 * gap, label="gap of the contacts")
    motion.axhline(0, color="0.7", lw=0.8)
    force.plot(ms, 1e-3 * course.signals()["em1.F"], label="magnetic force")
    force.plot(ms, 1e-3 * course.contact(), lw=0.8, label="contact force")
    current.plot(ms, course.current(), color="C3")
    closing = course.recloser.action == CLOSE
    for ax, label in ((motion, "mm"), (force, "kN"), (current, "coil current [A]")):
        ax.set_ylabel(label)
        ax.grid(alpha=0.3)
    force.set_ylim(-2, 8)
    for ax in (motion, force):
        ax.legend()
    current.set_xlabel("t [ms]")
    figure.suptitle("One pole closes" if closing else "One pole opens")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_poles(course: Motion, path: Path) -> None:
    """Gaps and contact forces of three poles."""
    import matplotlib.pyplot as plt

    figure, (gaps, forces) = plt.subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
    for pole in range(3):
        gaps.plot(1e3 * course.t, 1e3 * course.approach(pole)[0], label=f"pole {pole + 1}")
        forces.plot(1e3 * course.t, 1e-3 * course.contact(pole), lw=0.8)
    gaps.axhline(0, color="0.7", lw=0.8)
    gaps.set(ylabel="gap of the contacts [mm]", xlim=(15, 1e3 * course.t[-1]))
    forces.set(ylabel="contact force [kN]", xlabel="t [ms]", ylim=(0, 8))
    for ax in (gaps, forces):
        ax.grid(alpha=0.3)
    gaps.legend()
    figure.suptitle("Three poles on one frame, 20/3 ms apart")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    """Print the table, draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/recloser"))
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    reference = undivided(Recloser(), T_END)
    print("closing: error of the whole motion and before the touch, crossings of each side, time\n")
    study(reference)
    draw_pole(reference, options.out / "closing.png")
    draw_pole(undivided(Recloser(action=OPEN), T_END), options.out / "opening.png")
    draw_poles(undivided(Recloser(3), 70e-3), options.out / "three_poles.png")
    print(f"\npictures in {options.out}: closing.png first")


if __name__ == "__main__":
    main()
