"""Numbers behind the pictures of the rotor: couplings compared over tolerances, whirl measured in runs."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

import cosolve as cs
from examples.rotor_bearing.model import Rotor

STATES = ("rotor.x", "rotor.y", "rotor.vx", "rotor.vy")
VARIANTS = {"A": "A: fully implicit", "B": "B: at last corrector", "C": "C: at predictor"}


@dataclass(frozen=True)
class Effort:
    """One run: NRMSE of the states, steps, repetitions, corrector iterations per attempt, static calls, seconds."""

    error: float
    steps: int
    repetitions: int
    iterations: float
    calls: int
    seconds: float


def states(result: cs.Result) -> np.ndarray:
    """The states of a run, one row per time."""
    return np.column_stack([result[name] for name in STATES])


def compare(
    rotor: Rotor, tolerances: list[float], t_end: float, form: str = "polar", skip: float = 2e-3, h_max: float = 1e-4
) -> dict[str, list[Effort]]:
    """Couplings A, B and C over tolerances, as in the source's Figs. 5.5 and 5.6 (errors from the time `skip` on)."""
    exact = rotor.reference(t_end, form)
    cs.simulate(rotor.system(form), t_end=1e-4, method=cs.DynamicStatic("C"))  # what is compiled is compiled now
    found: dict[str, list[Effort]] = {variant: [] for variant in VARIANTS}
    for rtol in tolerances:
        for variant, efforts in found.items():
            method = cs.DynamicStatic(variant, rtol=rtol, first_step=1e-6, min_step=1e-11, max_step=h_max)  # type: ignore[arg-type]
            began = perf_counter()
            result = cs.simulate(rotor.system(form), t_end=t_end, method=method)
            seconds = perf_counter() - began
            late = result.t >= skip
            error = cs.analysis.nrmse(exact(result.t[late]), states(result)[late])
            stats = result.stats
            attempts = stats.calls["rotor"]
            iterations = float(np.nansum(result.iterations)) / attempts
            efforts.append(
                Effort(error, stats.steps, attempts - stats.steps, iterations, stats.calls["bearing"], seconds)
            )
    return found


def small_motion(rotor: Rotor, omega: float, t_end: float, offset: float = 1e-3) -> complex:
    """Growth rate and frequency (1/s) of the whirl in a run near the equilibrium, seen through its left eigenvector."""
    system = rotor.at_speed(omega, offset)
    result = cs.simulate(system.system("cartesian"), t_end=t_end, method=cs.DynamicStatic("C", rtol=1e-7))
    K, C = rotor.bearing.coefficients(rotor.equilibrium(omega), omega)
    A = np.block([[np.zeros((2, 2)), np.eye(2)], [-K / rotor.m, -C / rotor.m]])
    values, left = np.linalg.eig(A.T)
    fastest = left[:, np.argmax(values.real + 1e-9 * values.imag)]
    scale = rotor.bearing.c * np.array([1.0, 1.0, omega, omega])
    at_rest = np.concatenate([rotor.equilibrium(omega), np.zeros(2)])
    amplitude = (states(result) * scale - at_rest) @ fastest
    late = result.t > 0.1 * t_end
    growth = np.polyfit(result.t[late], np.log(np.abs(amplitude[late])), 1)[0]
    turning = np.polyfit(result.t[late], np.unwrap(np.angle(amplitude[late])), 1)[0]
    return complex(growth, abs(turning))


def measured_threshold(rotor: Rotor, around: float, t_end: float = 0.04) -> float:
    """The speed at which small motions neither grow nor decay, between runs at 95 % and 105 % of a guess."""
    low, high = 0.95 * around, 1.05 * around
    growth = [small_motion(rotor, omega, t_end).real for omega in (low, high)]
    return float(low - growth[0] * (high - low) / (growth[1] - growth[0]))


def run_up(rotor: Rotor, t_end: float, rtol: float = 1e-5) -> cs.Result:
    """A run-up under coupling C."""
    return cs.simulate(rotor.system("cartesian"), t_end=t_end, method=cs.DynamicStatic("C", rtol=rtol, max_step=2e-4))
