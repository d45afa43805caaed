"""A recloser closes and opens: magnetic actuators against contacts, springs and a frame that three poles share.

    python examples/recloser/run.py [--out DIR] [--bars]

What is printed and drawn (`DIR` is `build/recloser` unless given; under a minute on one free core):

- a table for closing: method, degree, step, subsystem steps of each side, error against the undivided machine over the
whole
  motion and before the contacts touch, time;
- `switch.png`: the switch with its contacts at five moments;
- `closing.png`, `opening.png`: travel, gap, forces and coil current of one pole;
- `three_poles.png`: the contacts of three poles, closed a third of a period of the grid apart;
- with `--bars`, a second table: the contact spring between elastic bars as a finite-element side (`mechanism.py`).

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
from examples.recloser import mechanism
from examples.recloser.drawing import draw_pole, draw_poles, draw_switch
from examples.recloser.model import OPEN, Motion, Recloser, not_latched, split, undivided

RUNS: tuple[tuple[cs.Method, float], ...] = (
    (cs.Jacobi(0), 1e-4),
    (cs.Jacobi(1), 5e-4),
    (cs.Jacobi(1), 1e-4),
    (cs.Jacobi(2), 1e-3),
    (cs.Jacobi(2), 5e-4),
    (cs.Jacobi(2), 1e-4),
    (cs.GaussSeidel(2), 5e-4),
    (cs.GaussSeidel(2), 1e-4),
)
T_END, TOUCH = 60e-3, 33.5e-3
BAR_RUNS = ((cs.Jacobi(1), 2e-6), (cs.Jacobi(2), 5e-6), (cs.Jacobi(2), 2e-6), (cs.Jacobi(3), 2e-6))
BAR_END, BAR_TOUCH = 14.76e-3, 11.75e-3


def errors(result: cs.Result, reference: Motion | mechanism.BarMotion, touch: float) -> tuple[float, float]:
    """Of the whole motion and before the touch: root mean squares, each signal relative to its range."""
    places = np.rint(result.t / (reference.t[1] - reference.t[0])).astype(int)
    shares = np.array(
        [(np.ravel(result[name]) - values[places]) / np.ptp(values) for name, values in reference.signals().items()]
    )
    before = shares[:, result.t <= touch]
    return float(np.sqrt(np.mean(shares**2))), float(np.sqrt(np.mean(before**2)))


def table(system: cs.System, runs, reference: Motion | mechanism.BarMotion, touch: float) -> cs.Result:
    """A line for every run; the last one comes back."""
    print(f"  {'method':<14}{'degree':>6}{'step':>10}{'subsystem steps':>11}{'whole':>10}{'before':>10}{'time':>9}")
    for method, H in runs:
        begin = perf_counter()
        run = cs.simulate(system, t_end=float(reference.t[-1]), method=method, step=H)
        seconds, calls = perf_counter() - begin, run.stats.calls["mbs"]
        whole, before = errors(run, reference, touch)
        name, step = type(method).__name__, f"{1e6 * H:g} us"
        print(f"  {name:<14}{method.degree:>6}{step:>10}{calls:>11}{whole:>10.1e}{before:>10.1e}{seconds:>7.1f} s")
    return run


def main(arguments: list[str] | None = None) -> None:
    """Print the table, draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/recloser"))
    parser.add_argument("--bars", action="store_true", help="also the mechanism of elastic bars")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    reference = undivided(Recloser(), T_END)
    print("one pole closes: error against the undivided machine, over the whole motion and before the touch\n")
    run = table(split(), RUNS, reference, TOUCH)
    for sentence in not_latched(run.t, run["mbs.r"], reference.recloser):
        print(f"      {sentence}")
    draw_switch(reference, options.out / "switch.png")
    draw_pole(reference, options.out / "closing.png")
    draw_pole(undivided(Recloser(action=OPEN), T_END), options.out / "opening.png")
    draw_poles(undivided(Recloser(3), 70e-3), options.out / "three_poles.png")
    if options.bars:
        print("\nthe contact spring between elastic bars, until 3 ms after the touch\n")
        table(mechanism.split(), BAR_RUNS, mechanism.undivided(t_end=BAR_END), BAR_TOUCH)
    print(f"\npictures in {options.out}: switch.png first")


if __name__ == "__main__":
    main()
