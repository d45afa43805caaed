"""The NREL Phase VI wind turbine with blades that bend: motor start, wind, emergency brake, as four solvers.

    python -m examples.wind_turbine.run_flexible [--out DIR] [--step 4e-3]

What is printed and drawn (`DIR` is `build/wind_turbine` unless given; under a minute on one free core):

- speed, torque and deflections of the coupled run and of the undivided machine, and how far they are apart;
- subsystem steps per step with exact sensitivities of everything, and of a serial iteration;
- the energy that is missing in the end, for both rules of the time step;
- `flexible.png`: speed, torque, deflection and pitch with events; `iterations.png`; `energy.png`;
  `turbine.gif`: the turbine in motion, deflections magnified.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import cosolve as cs
from examples.wind_turbine.animation import draw_brake, draw_energy, draw_iterations, write_animation
from examples.wind_turbine.flexible import Turbine, reference, split
from examples.wind_turbine.flexible_monolithic import run as undivided
from examples.wind_turbine.flexible_study import ORDER, balance, kept

T_END = 10.0
BEFORE_PARKING = (
    8.0  # s: the parking brake pulls at the cut, and a serial iteration takes up to 49 subsystem steps then
)


def main(arguments: list[str] | None = None) -> None:
    """Table and pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/wind_turbine"))
    parser.add_argument("--step", type=float, default=4e-3)
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    flexible(chosen.out, chosen.step)


def flexible(out: Path, h: float, t_end: float = T_END) -> None:
    """Everything."""
    newton = cs.Implicit(degree=1, tol=1e-12, predictor=2, corrector=cs.Newton())
    balances, runs = {}, {}
    for rule, name in (("bdf2", "BDF2"), ("energy", "energy rule")):
        turbine = Turbine(rule=rule)  # type: ignore[arg-type]
        system, rotor = kept(turbine)
        run = cs.simulate(system, t_end=t_end, method=newton, step=h)
        states = rotor.states
        balances[name] = balance(turbine, run, states)
        if rule == "bdf2":
            runs["Newton, exact Jacobians"] = run
            _against(turbine, run, h, t_end)
            draw_brake(turbine, run, out / "flexible.png")
            write_animation(turbine, run, states, out / "turbine.gif")
    for name, found in balances.items():
        missing = np.abs(found.missing + found.shaft_missing).max() / found.throughput
        print(f"  {name:<14} energy missing at most {missing:.1e} of the throughput of {found.throughput / 1e3:.1f} kJ")
    serial = cs.Implicit(
        degree=1, tol=1e-10, corrector=cs.Relaxation(), sweep="gauss-seidel", order=ORDER, max_iterations=100
    )
    cut = replace(Turbine(), shaft_on_rotor=True)
    until = min(t_end, BEFORE_PARKING)
    runs["serial fixed point, to 1e-10"] = cs.simulate(split(cut), t_end=until, method=serial, step=h)
    for name, run in runs.items():
        counts = run.iterations + 1
        print(f"  {name:<30} {counts.mean():.2f} subsystem steps per step, at most {counts.max()}")
    draw_iterations(Turbine(), runs, out / "iterations.png")
    draw_energy(balances, out / "energy.png")
    print(f"  pictures in {out}")


def _against(turbine: Turbine, run: cs.Result, h: float, t_end: float) -> None:
    exact = undivided(*reference(turbine), h, t_end)
    print(f"flexible turbine, steps of {1e3 * h:g} ms, four subsystems and undivided\n")
    k = min(round(4.0 / h), len(run.t) - 1)
    speed, torque, tip = run["rotor.speed"], run["air.torque"], 1e3 * run["rotor.tip"]
    print(f"  at {run.t[k]:.2f} s {speed[k]:.4f} rad/s, {torque[k]:.1f} Nm, tip {tip[k, 0]:.2f} mm downwind")
    print(f"  torque from {torque[1:].min():.1f} to {torque[1:].max():.1f} Nm, tip up to {tip[:, 0].max():.2f} mm")
    off = [np.abs(a - b)[1:].max() for a, b in ((speed, exact.speed), (torque, exact.torque), (tip, 1e3 * exact.tip))]
    print(f"  apart by at most {off[0]:.1e} rad/s, {off[1]:.1e} Nm, {off[2]:.1e} mm\n")


if __name__ == "__main__":
    main()
