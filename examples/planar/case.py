"""A mechanism cut in two, its reference, and what a co-simulation of it is measured by (docs/validation/lu.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import cosolve as cs


@dataclass(frozen=True)
class Case:
    """One mechanism.

    `build(h)` gives the split system with inner steps of `h`; `reference(times)` the exact coordinates and multipliers;
    `levels(*motion)` the constraint from the outputs `motion`; `energy(result)` and `parts(result)` what is drawn.
    Errors are taken at multiples of `sampled` seconds, residuals at every macro point. Each macro step is advanced in
    `inner` steps.
    """

    name: str
    build: Callable[[float], cs.System]
    reference: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    t_end: float
    coordinates: Sequence[str]
    motion: Sequence[str]
    levels: Callable[..., Any]
    energy: Callable[[cs.Result], np.ndarray]
    parts: Callable[[cs.Result], list[np.ndarray]]
    sampled: float = 0.01
    inner: int = 1
    conservative: bool = True


class Errors(NamedTuple):
    """Largest errors of coordinates and multipliers, largest residual on each level."""

    coordinates: float
    multipliers: float
    position: float
    velocity: float
    acceleration: float


def method(treatment: cs.ConstraintTreatment | None, degree: int, **options: Any) -> cs.SemiImplicit:
    """One correction; with a rigid joint multipliers and copies of states enter the history as they were solved for."""
    return cs.SemiImplicit(degree=degree, constraints=treatment, final_update=treatment is None, **options)


def looped(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled right-hand side for an integrator whose loop stays in Python.

    The native loop would be compiled anew for every function, 1 to 3 s each; at one or two inner steps per macro step
    it saves 10 us a subsystem step, which short runs never earn back.
    """
    return lambda t, x, u: function(t, x, u)


def run(case: Case, treatment: cs.ConstraintTreatment | None, degree: int, H: float) -> cs.Result:
    """One co-simulation with `case.inner` Runge-Kutta steps of order 4 in every macro step."""
    return cs.simulate(case.build(H / case.inner), t_end=case.t_end, method=method(treatment, degree), step=H)


def exact(case: Case, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The reference at equal steps: coordinates and multipliers, one row per point."""
    usual = round(case.t_end / 1e-3)
    finer = usual if usual % steps == 0 else steps  # multiples of 1 ms share one solution
    coordinates, multipliers = _solved(case, finer)
    return coordinates[:: finer // steps], multipliers[:: finer // steps]


@lru_cache(maxsize=8)
def _solved(case: Case, steps: int) -> tuple[np.ndarray, np.ndarray]:
    coordinates, multipliers = case.reference(np.linspace(0.0, case.t_end, steps + 1))
    return coordinates, multipliers.reshape(steps + 1, -1)


def residuals(case: Case, result: cs.Result) -> np.ndarray:
    """The constraint on its three levels at every macro point: shape (points, 3, conditions)."""
    rows = np.array([result[name] for name in case.motion]).T
    return np.array([np.array(case.levels(*row)) for row in rows]).reshape(len(rows), 3, -1)


def errors(case: Case, result: cs.Result, sampled: float | None = None) -> Errors:
    """Errors against the reference, by default at the case's own sampling."""
    steps = len(result.t) - 1
    every = max(1, round((case.sampled if sampled is None else sampled) / case.t_end * steps))
    coordinates, multipliers = exact(case, steps)
    found = np.array([result[name] for name in case.coordinates]).T
    lam = result["lam"].reshape(steps + 1, -1)
    return Errors(
        float(np.abs(found - coordinates)[::every].max()),
        float(np.abs(lam - multipliers)[::every].max()),
        *(float(v) for v in np.abs(residuals(case, result)).max(axis=(0, 2))),
    )


def rod(start: np.ndarray, length: float, phi: np.ndarray) -> np.ndarray:
    """A rod from `start` in the direction `phi` over time: shape (frames, 2, 2)."""
    end = start + length * np.array([np.cos(phi), np.sin(phi)]).T
    return np.stack([np.broadcast_to(start, end.shape), end], axis=1)
