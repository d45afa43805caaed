"""Two FMUs in a loop: a quarter car on a kerb, explicit and semi-implicit, against the exact motion.

    python examples/quarter_car_fmus/run.py [--out DIR] [--fmi 3.0]

Makes `chassis.fmu` and `wheel.fmu` from Python functions (no compiler needed; pythonfmu or pythonfmu3 is, see
docs/howto-export.md), couples them, and draws `car.png` (`DIR` is `build/quarter_car_fmus` unless given): motion and
suspension force, and the error of three methods at the same step. `car.toml` in the same folder is for the command
line.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import cosolve as cs
from examples.quarter_car_fmus.model import exact, from_fmus, make_fmus

METHODS = (cs.Jacobi(degree=0), cs.Jacobi(degree=1), cs.SemiImplicit(degree=1))
H, T_END = 5e-3, 1.5
#: where the explicit methods no longer work
H_LONG = 2e-2


def runs(folder: Path, H: float) -> dict[str, cs.Result]:
    """All methods on the FMUs in a folder; what a run that blew up has, counts too."""
    found = {}
    for method in METHODS:
        try:
            found[method.label] = cs.simulate(from_fmus(folder), t_end=T_END, method=method, step=H)
        except cs.errors.SimulationError as failure:
            if failure.result is None:
                raise
            found[method.label] = failure.result
    return found


def error(result: cs.Result, name: str = "chassis.z") -> float:
    """The largest error over time, relative to the largest value."""
    reference = exact(result.t)[name]
    with np.errstate(over="ignore"):
        return float(np.abs(result[name] - reference).max() / np.abs(reference).max())


def draw(found: dict[str, cs.Result], long: dict[str, cs.Result], path: Path) -> None:
    """Motion, force and errors."""
    import matplotlib.pyplot as plt

    figure, (motion, force, errors) = plt.subplots(3, 1, figsize=(8, 8), sharex=True, layout="constrained")
    best = found[METHODS[-1].label]
    reference = exact(best.t)
    for name, colour in (("chassis.z", "C0"), ("wheel.z", "C1")):
        motion.plot(best.t, 1e3 * reference[name], color="0.7", lw=4)
        motion.plot(best.t, 1e3 * best[name], color=colour, label=f"{name.partition('.')[0]}, {METHODS[-1].label}")
    motion.plot([], [], color="0.7", lw=4, label="exact")
    motion.set(ylabel="height [mm]", title=f"Two FMUs in a loop: a quarter car on a kerb, H = {H:g} s")
    force.plot(best.t, 1e-3 * reference["chassis.force"], color="0.7", lw=4)
    force.plot(best.t, 1e-3 * best["chassis.force"], color="C2")
    force.set(ylabel="suspension force [kN]")
    for some, style, h in ((found, "-", H), (long, "--", H_LONG)):
        for k, (label, result) in enumerate(some.items()):
            difference = 1e3 * np.abs(result["chassis.z"] - exact(result.t)["chassis.z"])
            errors.semilogy(result.t[1:], difference[1:], style, color=f"C{k}", label=f"{label}, H = {h:g} s")
    errors.set(xlabel="t [s]", ylabel="error of the chassis [mm]", ylim=(1e-3, 1e7))
    for axes in (motion, errors):
        axes.legend(ncols=2 if axes is errors else 1)
    for axes in (motion, force, errors):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    """Make the FMUs, print the table, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/quarter_car_fmus"))
    parser.add_argument("--fmi", choices=("2.0", "3.0"), default="2.0")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    made = make_fmus(options.out, options.fmi)
    print(f"made {made[0]} and {made[1]} (FMI {options.fmi}); see them with: cosolve inspect {made[1]}\n")
    print(f"{'method':<18}" + "".join(f"{f'error at H = {h:g}':>20}" for h in (H, H_LONG)))
    found, long = runs(options.out, H), runs(options.out, H_LONG)
    for label in found:
        print(f"{label:<18}" + "".join(f"{error(some[label]):>20.1e}" for some in (found, long)))
    draw(found, long, options.out / "car.png")
    print(f"\npicture in {options.out / 'car.png'}; the same from a file: cosolve run {options.out / 'car.toml'}")


if __name__ == "__main__":
    main()
