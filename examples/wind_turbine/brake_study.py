"""How wrong loose coupling is in the emergency brake, over the way in which the pitch drive moves.

    python -m examples.wind_turbine.brake_study

The air that the blades push aside answers their acceleration. Loose coupling extrapolates the rate of the pitch: where
it jumps within a step, an extrapolated rate has an acceleration of `jump / H`, and the torque is wrong by about as much
however short the step is. Where the drive needs some steps to move, the error falls with the step.
"""

from __future__ import annotations

import sys
from math import radians
from pathlib import Path
from typing import NamedTuple

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.wind_turbine.control import Schedule
from examples.wind_turbine.rigid import ORDER, Turbine, by_jacobian, split

T_END = 4.6
LOOSE = {"Jacobi(1)": cs.Jacobi(1), "GaussSeidel(1)": cs.GaussSeidel(1, order=ORDER)}


class Errors(NamedTuple):
    """Largest error of the torque in per cent of the largest torque: first 0.1 s, run-up, brake (before it stands)."""

    first: float
    run_up: float
    brake: float


def errors(method: cs.Method, step: float, rate: float, lag: float) -> Errors:
    """Of a loose coupling against the coupled solution with the same step; `rate` of the brake's pitch in deg/s."""
    turbine = Turbine(schedule=Schedule(brake_rate=radians(rate), rate=radians(rate / 2), lag=lag, gain=0.5 / lag))
    exact = cs.simulate(split(turbine), t_end=T_END, method=by_jacobian(step), step=step)
    loose = cs.simulate(split(turbine), t_end=T_END, method=method, step=step)
    torque, t, turning = exact["aero.torque"], exact.t, exact["drive.speed"] > 1.0
    wrong = np.abs(loose["aero.torque"] - torque)
    fast = float(t[np.argmax(exact["control.brake"] > 0.5)]) if (exact["control.brake"] > 0.5).any() else T_END
    parts = (t <= 0.1), (t > 0.1) & (t < fast), (t >= fast) & turning
    return Errors(*(100.0 * float(wrong[k].max(initial=0.0) / np.abs(torque[k]).max(initial=1e-300)) for k in parts))


def main() -> None:
    print("torque error of loose coupling in % of the largest torque: first 0.1 s, run-up, brake")
    for lag in (0.1, 0.02, 0.001):
        for rate in (30.0, 60.0, 120.0):
            for name, method in LOOSE.items():
                found = [errors(method, step, rate, lag) for step in (4e-3, 2e-3, 1e-3)]
                shown = "   ".join(f"{e.first:5.2f} {e.run_up:6.3f} {e.brake:6.3f}" for e in found)
                print(f"lag {lag:g} s, {rate:3.0f} deg/s, {name:14}: {shown}", flush=True)


if __name__ == "__main__":
    main()
