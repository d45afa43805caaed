"""A common-rail pump: multibody side against hydraulics, and a resonance that neither of them shows alone.

    python examples/common_rail_pump/run.py [--out DIR] [--long] [--animate]

What is printed and drawn (`DIR` is `build/common_rail_pump` unless given; under a minute on one free core):

- a table over one revolution: method, degree, step, subsystem steps of each side, error against the undivided machine,
time;
- `machine.png`: the eccentric and its pistons, cylinders coloured by their pressure;
- `revolution.png`: strokes, cylinder pressures, pressures of port and rail, torque and speed over one revolution;
- `steps.png`: how long error-controlled steps are;
- with `--long` (some minutes): `resonance.png`, order 15 of speed and port pressure, coupled and each side alone, and
  with other gear drives and another line;
- with `--animate`: `machine.gif`.

The same machine from a file: cosolve run examples/common_rail_pump/system.toml
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

import cosolve as cs
from examples.common_rail_pump.drawing import animate, draw_machine, draw_resonance, draw_revolution, draw_steps
from examples.common_rail_pump.model import Pump, running, undivided
from examples.common_rail_pump.study import (
    chatter,
    coupled,
    detuned,
    error,
    last,
    order,
    resonance,
    revolutions,
)

T_END = 0.034
CONTROL = cs.Adaptive(rtol=1e-5, min_step=1e-7, max_step=1e-4, first_step=1e-7)
RUNS: tuple[tuple[cs.Method, float | cs.Adaptive], ...] = (
    (cs.Jacobi(1), 20e-6),
    (cs.Jacobi(1), 10e-6),
    (cs.Jacobi(2), 10e-6),
    (cs.GaussSeidel(1), 40e-6),
    (cs.GaussSeidel(2), 10e-6),
    (cs.GaussSeidel(2), CONTROL),
    (cs.Jacobi(2), CONTROL),
)


def study() -> cs.Result:
    """Print a line for every run; the last one, with error-controlled steps, comes back."""
    reference = undivided(t_end=T_END, x0=running(), interval=1e-6)
    print(f"  {'method':<14}{'degree':>6}  {'step':<22}{'steps':>9}{'error':>10}{'time':>9}")
    for method, step in RUNS:
        begin = perf_counter()
        run = coupled(method, step, running(), T_END)
        seconds, calls = perf_counter() - begin, run.stats.calls["mbs"]
        given = f"{1e6 * step:g} us" if isinstance(step, float) else f"by tolerance {step.rtol:g}"
        name, found = type(method).__name__, error(run, reference)
        print(f"  {name:<14}{method.degree:>6}  {given:<22}{calls:>9}{found:>10.1e}{seconds:>7.1f} s", flush=True)
        for sentence in chatter(run):
            print(f"      {sentence}")
    return run


def main(arguments: list[str] | None = None) -> None:
    """Print the table, draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/common_rail_pump"))
    parser.add_argument("--long", action="store_true", help="also the resonance study: six machines")
    parser.add_argument("--animate", action="store_true", help="also a moving picture")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    print("one revolution in steady operation, against the undivided machine\n")
    draw_steps(study(), 22e-6, options.out / "steps.png")
    course = revolutions(1, x0=running())
    draw_machine(course, options.out / "machine.png")
    draw_revolution(course, options.out / "revolution.png")
    if options.animate:
        animate(course, options.out / "machine.gif")
    if options.long:
        print("\namplitude of order 15")
        found = resonance()
        for label, changed in detuned(Pump()).items():
            end = last(revolutions(14, changed))
            found[label] = order(end.x[:, 3]), order(end.pressures["port"])
        for name, (speed, port) in found.items():
            print(f"  {name:<26}{speed:>8.2f} rad/s {1e-6 * port:>8.2f} MPa")
        draw_resonance(found, options.out / "resonance.png")
    print(f"\npictures in {options.out}: machine.png first")


if __name__ == "__main__":
    main()
