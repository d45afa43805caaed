"""The NREL Phase VI wind turbine with rigid blades: against the wind tunnel, and its emergency brake as three solvers.

    python examples/wind_turbine/run.py [--out DIR]

What is printed and drawn (`DIR` is `build/wind_turbine` unless given; under a minute on one free core):

- torque and thrust of the steady rotor against the tests, and force coefficients along the blade;
- a table for the emergency brake: method, step, steps of the rotor per macro step, errors of speed and torque against
  one program for all equations, and the spectral radius that `cs.check` finds before the run;
- `brake.png`: speed, torque and pitch with events; `loads.png`: against the measurement; `coupling.png`: loose and
  strong coupling, and subsystem steps per step; `report.html`: the strongly coupled run.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import cosolve as cs
from examples.wind_turbine.aerodynamics import Rotor, steady
from examples.wind_turbine.data import SPAN, STALLED, TESTS
from examples.wind_turbine.drawing import draw_brake, draw_coupling, draw_loads, events
from examples.wind_turbine.drive import Train
from examples.wind_turbine.monolithic import Course, undivided
from examples.wind_turbine.rigid import BY_SECANT, ORDER, Turbine, by_jacobian, split

T_END = 8.0
LIGHT = 60.0  # kg m2, of a rotor that the air is half a rotor for
NAMES = {"secant": "Implicit, secant", "jacobian": "Implicit, exact Jacobian"}


def against_measurement() -> None:
    """Print torque, thrust and coefficients."""
    print("steady rotor against the wind tunnel\n")
    print(f"  {'test':<10}{'wind':>6}{'torque':>10}{'measured':>10}{'':>8}{'thrust':>9}{'measured':>10}")
    for name, test in TESTS.items():
        found = steady(Rotor(wind=test.wind, density=test.density), test.rpm * np.pi / 30)
        off = f"{100 * (found.torque / test.torque - 1):+.1f} %"
        torques = f"{found.torque:>10.1f}{test.torque:>10.1f}{off:>8}"
        print(f"  {name:<10}{test.wind:>6g}{torques}{found.thrust:>9.0f}{test.thrust:>10.0f}")
    speed = np.radians(432.0)
    for wind, measured in STALLED.items():
        plain, delayed = (steady(Rotor(wind=wind, stall_delay=delay), speed).torque for delay in (False, True))
        print(f"  {'H, stalled':<10}{wind:>6g}{plain:>10.1f}{measured:>10.1f}   with stall delay {delayed:.0f} Nm")
    test = TESTS["S0700000"]
    found = steady(Rotor(wind=test.wind, density=test.density), test.rpm * np.pi / 30)
    print(f"\n  {'r / R':<10}{'across':>8}{'measured':>10}{'':>8}{'along':>8}{'measured':>10}")
    for at, *both in SPAN:
        text = f"  {at:<10.2f}"
        for ours, theirs in zip((found.across, found.along), both, strict=True):
            here = np.interp(at * 5.029, found.r, ours)
            text += f"{here:>8.3f}{theirs:>10.3f}{100 * (here / theirs - 1):>+6.0f} %"
        print(text)


def brake(turbine: Turbine, step: float, methods: dict[str, cs.Method]) -> tuple[Course, dict[str, cs.Result]]:
    """A line for every run; the reference and the runs come back."""
    reference = undivided(turbine, T_END, step)
    system, runs = split(turbine), {}
    for name, method in methods.items():
        text = f"  {turbine.train.inertia:>6g}{1e3 * step:>6g} ms  {name:<26}"
        radius = "" if name in NAMES.values() else f"{cs.analysis.spectral_radius(system, method, step):.4f}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of growth, before it fails
                run = cs.simulate(system, t_end=T_END, step=step, method=method, startup=cs.RisingDegree())
        except cs.errors.SimulationError as error:
            print(f"{text}{'':>28}{radius:>9}  {str(error).split(':')[0]}")
            continue
        runs[name] = run
        speed = np.degrees(np.abs(run["drive.speed"] - reference.speed).max())
        torque = np.abs(run["aero.torque"] - reference.torque).max()
        steps = run.stats.calls["aero"] / run.stats.steps
        print(f"{text}{steps:>6.2f}{speed:>11.1e}{torque:>11.1e}{radius:>9}")
    return reference, runs


def main(arguments: list[str] | None = None) -> None:
    """Print the tables, draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/wind_turbine"))
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    against_measurement()

    loose = {"Jacobi(1)": cs.Jacobi(1), "GaussSeidel(1)": cs.GaussSeidel(1, order=ORDER)}
    held = {"Jacobi(0)": cs.Jacobi(0), "GaussSeidel(0)": cs.GaussSeidel(0, order=ORDER)}
    print("\nemergency brake, largest errors against one program for all equations\n")
    print(f"  {'J':>6}{'step':>9}  {'method':<26}{'cross.':>6}{'deg/s':>11}{'Nm':>11}{'radius':>9}")
    for step in (4e-3, 2e-3):
        strong = {NAMES["jacobian"]: by_jacobian(step)}
        reference, runs = brake(Turbine(), step, loose | held | strong)
        if step == 4e-3:
            _, secant = brake(Turbine(), step, {NAMES["secant"]: BY_SECANT})
            strong_runs = secant | {name: run for name, run in runs.items() if name in strong}
            draw_coupling(reference, {name: runs[name] for name in loose}, strong_runs, options.out / "coupling.png")
            cs.write_report(secant[NAMES["secant"]], options.out / "report.html", title="Emergency brake, rigid blades")
    light = Turbine(train=Train(inertia=LIGHT))
    brake(light, 2e-3, loose | {NAMES["jacobian"]: by_jacobian(2e-3, light.train)})

    course = undivided(Turbine(), T_END, 1e-3)
    print("\n  " + ", ".join(f"{name} at {t:.3f} s" for name, t in events(course, Train().parking_speed).items()))
    fastest, torque = np.degrees(course.speed.max()), course.torque
    print(f"  fastest {fastest:.2f} deg/s; torque {torque.min():.1f} to {torque.max():.1f} Nm")
    draw_brake(course, Train().parking_speed, options.out / "brake.png")
    draw_loads(options.out / "loads.png")
    print(f"\npictures in {options.out}: brake.png first")


if __name__ == "__main__":
    main()
