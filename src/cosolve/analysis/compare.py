"""One system under several methods, side by side: accuracy against a reference run, and what it cost."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from cosolve.basics.arrays import Vector
from cosolve.errors import CosolveError, SetupError, SimulationError, StabilityWarning
from cosolve.interface import System
from cosolve.method import GaussSeidel, Implicit, Method
from cosolve.method.named import MethodLike, as_method
from cosolve.result import Result, Stats
from cosolve.run.simulate import simulate
from cosolve.stepsize import Adaptive

_REFINEMENT = 8


@dataclass(frozen=True)
class Entry:
    """How one method did.

    `error` is the largest over all outputs and macro points, in units of each output's largest reference value (NaN
    where there is none), `worst` the output it belongs to; `failure` says why a run stopped or was refused.
    """

    label: str
    stats: Stats
    error: float = np.nan
    worst: str = ""
    failure: str | None = None
    refused: bool = False


@dataclass(frozen=True)
class Comparison:
    """What `compare` found, and which run it took as the reference."""

    reference: str
    entries: list[Entry]


def compare(
    system: System,
    methods: Sequence[MethodLike],
    *,
    t_end: float,
    step: float | Adaptive | None,
    reference: tuple[Method, float | Adaptive | None] | None = None,
    **options: Any,
) -> Comparison:
    """Run a system with each method and measure the distance to a reference run.

    Without a `reference` (a method and its step) the implicit method of degree 2 with an eighth of the step is taken,
    or Gauss-Seidel where subsystems cannot roll back. Further options go to `simulate`. A method that fails or does not
    fit is reported, not raised; growth without bound is in its `stats.growth`, without a warning.

    >>> import cosolve as cs
    >>> tank = lambda h: cs.Linear([[-1]], [[1]], [[1]], x0=[h], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(1), "two": tank(0)})
    >>> system.connect("one.h", "two.q")
    >>> system.connect("two.h", "one.q")
    >>> found = compare(system, [cs.Jacobi(1), cs.SemiImplicit(1)], t_end=1.0, step=0.1)
    >>> found.reference
    'Implicit(2), step 0.0125'
    >>> [entry.error < 0.02 for entry in found.entries]
    [True, True]
    """
    method, fine = reference or _default_reference(system, step)
    label = f"{method.label}, step {fine:g}" if isinstance(fine, (int, float)) else f"{method.label}, {fine}"
    exact: Result | None = None
    try:
        exact = simulate(system, t_end=t_end, method=method, step=fine, **options)
    except SimulationError as error:
        label += f", which stopped, so there are no errors to show: {error}"
    entries = [_entry(system, m, step, t_end, exact, options) for m in map(as_method, methods)]
    return Comparison(label, entries)


def _default_reference(system: System, step: float | Adaptive | None) -> tuple[Method, float | Adaptive]:
    if step is None:
        raise SetupError("compare: give a step, or a reference with its own step")
    plan = system.plan()
    fitting = [m for m in (Implicit(degree=2), GaussSeidel(degree=2)) if not m.complaints(plan)]
    if not fitting:
        raise SetupError(
            "compare: no reference fits this system by itself; give one, such as semi-implicit with a small step"
        )
    if isinstance(step, Adaptive):
        atol = None if step.atol is None else step.atol / 100
        return fitting[0], Adaptive(rtol=step.rtol / 100, atol=atol)
    return fitting[0], step / _REFINEMENT


def _entry(
    system: System,
    method: Method,
    step: float | Adaptive | None,
    t_end: float,
    exact: Result | None,
    options: Mapping[str, Any],
) -> Entry:
    if method.chooses_step and isinstance(step, Adaptive):
        step = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StabilityWarning)  # the comparison shows it
            result = simulate(system, t_end=t_end, method=method, step=step, **options)
    except SimulationError as error:
        stats = Stats() if error.result is None else error.result.stats
        return Entry(method.label, stats, failure=str(error))
    except CosolveError as error:
        return Entry(method.label, Stats(), failure=str(error), refused=True)
    if exact is None:
        return Entry(method.label, result.stats)
    return Entry(method.label, result.stats, *_distance(exact, result))


def _distance(exact: Result, result: Result) -> tuple[float, str]:
    """The largest relative error over all outputs, and the name of the output."""
    found = {
        name: _relative(CubicSpline(exact.t, exact[name])(result.t), result[name])
        for name, channel in result.channels.items()
        if channel.column == "y"
    }
    worst = max(found, key=lambda name: found[name])
    return found[worst], worst


def _relative(exact: Vector, values: Vector) -> float:
    scale = float(np.abs(exact).max())
    return float(np.abs(values - exact).max()) / (scale or 1.0)
