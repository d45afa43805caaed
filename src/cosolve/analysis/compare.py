"""One system under several methods, side by side: accuracy against a reference run, and what it cost."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from cosolve.basics.arrays import Vector
from cosolve.errors import CosolveError, SetupError, SimulationError, StabilityWarning
from cosolve.interface import System
from cosolve.method import Method
from cosolve.method.named import MethodLike, as_method, proposals
from cosolve.result import Result, Stats
from cosolve.run.checkpoints import RunAwareProgress
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
    #: why there is no reference
    error: SimulationError | None = None


def compare(
    system: System,
    methods: Sequence[MethodLike],
    *,
    t_end: float,
    step: float | Adaptive | None,
    reference: tuple[Method, float | Adaptive | None] | None = None,
    progress: Callable[[float], None] | None = None,
    **options: Any,
) -> Comparison:
    """Run a system with each method and measure the distance to a reference run.

    Without a `reference` (a method and its step) the implicit method of degree 2 with an eighth of the step is taken,
    or Gauss-Seidel where subsystems cannot roll back. `progress` is told how much of all runs is done, the reference
    counted as many times as its steps are finer. Further options go to `simulate`. A method that fails or does not
    fit is reported, not raised; growth without bound is in its `stats.notes`, without a warning.

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
    chosen = [as_method(one) for one in methods]
    weight = step / fine if isinstance(step, (int, float)) and isinstance(fine, (int, float)) else _REFINEMENT
    parts = _parts(progress, [weight, *(1.0 for _ in chosen)])
    exact: Result | None = None
    failure: SimulationError | None = None
    try:
        exact = simulate(system, t_end=t_end, method=method, step=fine, progress=parts[0], **options)
    except SimulationError as error:
        failure = error
    entries = [
        _entry(system, one, step, t_end, exact, options | {"progress": part})
        for one, part in zip(chosen, parts[1:], strict=True)
    ]
    return Comparison(label, entries, failure)


class _Part:
    """The progress of one run among several: a stretch of the whole."""

    def __init__(self, progress: Callable[[float], None], begin: float, share: float) -> None:
        self._progress, self._begin, self._share = progress, begin, share

    def __call__(self, fraction: float) -> None:
        self._progress(self._begin + self._share * fraction)

    def watch(self, run: Any) -> None:
        """The run begins: what shows the whole may look at it."""
        if isinstance(self._progress, RunAwareProgress):
            self._progress.watch(run)


def _parts(progress: Callable[[float], None] | None, weights: Sequence[float]) -> list[_Part | None]:
    if progress is None:
        return [None] * len(weights)
    shares = [weight / sum(weights) for weight in weights]
    return [_Part(progress, sum(shares[:k]), share) for k, share in enumerate(shares)]


def _default_reference(system: System, step: float | Adaptive | None) -> tuple[Method, float | Adaptive]:
    if step is None:
        raise SetupError("compare: give a step, or a reference with its own step")
    plan = system.plan()
    fitting = [method for method in proposals("reference") if not method.complaints(plan)]
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
