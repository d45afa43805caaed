"""Runs that are made to learn something: kept in memory, with the coupling error by their shadow, and never raising."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import nan

import numpy as np

from cosolve.accuracy.auto import Trial
from cosolve.accuracy.auto.pilot_comparison import worst
from cosolve.accuracy.error_bar import estimated, output_parts
from cosolve.accuracy.recorded_run import Path
from cosolve.accuracy.resolution import resolution
from cosolve.accuracy.shadow import Shadow
from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import CosolveError, EndOfSimulation, SimulationError, StepSizeError
from cosolve.interface import Plan, System
from cosolve.method import Method
from cosolve.options import RunOptions
from cosolve.result import Result
from cosolve.run.simulate import run_given
from cosolve.run.startup import Startup, default_start
from cosolve.stepsize import Adaptive

LAGS = "it lags one macro step in an algebraic loop"


@dataclass(frozen=True)
class Pilots:
    """Pilot runs of a system; `options` are those of the run that they prepare, as far as they concern pilots."""

    system: System
    t_start: float
    t_end: float
    startup: Startup | None = None
    workers: int = 1
    compiled: bool | None = None
    stop_at_events: bool = False

    def pilot(self, method: Method, step: float | Adaptive, max_steps: int, *, shadow: bool = True) -> Trial:
        """A run, with its coupling error by its shadow where that is wanted; quiet whatever happens in it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial, result = self._run(method, step, max_steps)
            if result is None or trial.why:
                return trial
            plan = self.system.plan()
            trial = replace(trial, largest=_largest(plan, result), size=sizes(plan, trial.y))
            if result.stats.note("algebraic-loop"):
                return replace(trial, why=LAGS, hopeless=True)
            return self._shadowed(trial, result, plan) if shadow else trial

    def measured(self, method: Method, step: float | Adaptive | None, result: Result) -> Trial:
        """A run that was made elsewhere, with its coupling error by its shadow; quiet as well.

        What the signals of the shadow miss themselves, the share `R` of that error, is added.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial, plan = told(Trial(method, step), result), self.system.plan()
            trial = self._shadowed(replace(trial, size=sizes(plan, trial.y)), result, plan)
            z = np.asarray(result.column("z"))[:, : plan.n_z]
            return replace(trial, error=trial.error * (1.0 + resolution(method, z, result.H)))

    def judged(self, method: Method, step: float | Adaptive) -> Trial:
        """A run with a given step and its error bar, which is more careful than a shadow that another run checks."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial, result = self._run(method, step, None)
            if result is None:
                return trial
            if result.stats.note("algebraic-loop"):
                return replace(trial, why=LAGS, hopeless=True)
            try:
                bar = estimated(self.system, result, startup=self.startup, proven=True, refines=False)
            except CosolveError as failure:
                return replace(trial, why=f"its shadow failed ({failure})", hopeless=True)
        shadow = {name: n + bar.jacobians.get(name, 0) for name, n in bar.cost.items()}
        error = max(bar.unproven.values(), default=nan) if bar.reason else 0.5 * bar.worst
        return replace(trial, shadow=shadow, error=error, blind=bar.reason or "")

    def _run(self, method: Method, step: float | Adaptive, max_steps: int | None) -> tuple[Trial, Result | None]:
        failed = Trial(method, step)
        try:
            options = RunOptions(
                t_end=self.t_end,
                method=method,
                step=step,
                t_start=self.t_start,
                startup=self.startup,
                workers=self.workers,
                stop_at_events=self.stop_at_events,
                max_steps=max_steps,
                compiled=self.compiled,
            )
            result = run_given(self.system, options, proves=False)
        except SimulationError as error:
            steps = 0 if error.result is None else error.result.stats.steps
            over = isinstance(error, StepSizeError) and max_steps is not None and steps >= max_steps
            why = f"it needs more than {max_steps} steps" if over else str(error)
            trial = replace(failed, why=why, over=over)
            return (trial if error.result is None else told(trial, error.result)), None
        except CosolveError as error:  # whatever is wrong, it is wrong before the first step
            return replace(failed, why=str(error), hopeless=True), None
        return told(failed, result), result

    def _shadowed(self, trial: Trial, result: Result, plan: Plan) -> Trial:
        method = trial.method
        startup = self.startup or default_start(method)
        blind = _blind(method, startup, result)
        if blind:
            return replace(trial, blind=blind)
        z = np.asarray(result.column("z"))[:, : plan.n_z]
        path = Path(result.t.tolist(), result.H.tolist(), z, range(len(z)))
        shadow = Shadow(plan, method, startup, path)
        y = trial.y
        try:
            shadow.start(float(result.t[0]))
            if not np.allclose(shadow.y, y[0], rtol=1e-9, atol=1e-9 * np.abs(y[0]).max(initial=0.0)):
                return replace(trial, why="the system does not start twice in the same state", hopeless=True)
            with np.errstate(over="ignore", invalid="ignore"):
                error = worst(shadow.outputs() - y, trial.size)
        except EndOfSimulation as end:
            return replace(trial, blind=f"its shadow ended before it ({end})")
        except SimulationError:  # a shadow may fail where the run did not: another run tells more
            return trial
        except CosolveError as failure:
            return replace(trial, why=f"its shadow failed ({failure})", hopeless=True)
        finally:
            shadow.caller.close()
        calls = {
            name: int(n) for name, n in zip(plan.names, shadow.caller.calls + shadow.caller.jacobians, strict=True)
        }
        return replace(trial, shadow=calls, error=error)


def told(trial: Trial, result: Result) -> Trial:
    """What a run says without a shadow."""
    stats, estimates = result.stats, result.column("error")[1:]
    finite = estimates[np.isfinite(estimates)]
    return replace(
        trial,
        steps=stats.steps,
        level=float(np.sqrt(np.mean(finite**2))) if len(finite) else nan,
        subsystem_steps=subsystem_steps(result),
        seconds=_seconds(result),
        t=np.array(result.t),
        y=np.array(result.column("y")),
    )


def subsystem_steps(result: Result) -> Mapping[str, int]:
    """What a run took from each subsystem, Jacobians included."""
    return {name: n + result.stats.jacobians.get(name, 0) for name, n in result.stats.calls.items()}


def _seconds(result: Result) -> Mapping[str, float]:
    """The shortest time of a subsystem step of each subsystem; 0 where compiled code does not tell."""
    calls, seconds = result.column("calls")[1:], result.column("seconds")[1:]
    with np.errstate(invalid="ignore", divide="ignore"):
        each = np.where(calls > 0, seconds / calls, np.inf)
    best = np.min(np.where(np.isfinite(each), each, np.inf), axis=0, initial=np.inf)
    return {n: float(s) if np.isfinite(s) else 0.0 for n, s in zip(result.subsystems, best, strict=True)}


def _largest(plan: Plan, result: Result) -> float:
    """The largest coupling variable in units of its nominal value; 1 where some have none that was given."""
    if plan.z_open.any():
        return 1.0
    z = np.abs(np.asarray(result.column("z"))[:, : plan.n_z])
    return float((z.max(axis=0, initial=0.0) / plan.z_nominal).max(initial=0.0))


def _blind(method: Method, startup: Startup, result: Result) -> str:
    """Why a run has no shadow although it went well."""
    if method.declaration is None:
        return f"{method.name} draws no signals that could be drawn better"
    if startup.own_steps:
        return f"{type(startup).__name__} takes steps of its own"
    if result.stats.events:
        return "macro steps ended at events, where values may jump"
    if result.ended:
        return "a subsystem ended it"
    return ""


def sizes(plan: Plan, y: Matrix) -> Vector:
    """For each entry of the outputs the largest magnitude of its port over the run."""
    largest: Vector = np.abs(y).max(axis=0, initial=0.0)
    for part in output_parts(plan).values():
        largest[part] = largest[part].max(initial=0.0)
    return largest
