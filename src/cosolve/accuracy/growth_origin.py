"""Does a growing disturbance come from the coupling or from the model? Macro steps of other lengths tell them apart.

Where all subsystems show their state, the macro step is linearised there (`amplification.py`), for the step of the run
and for shorter ones: the model grows by time, at the same rate in steps of any length; the coupling at another rate, or
not at all. Otherwise small disturbances are followed for some hundred steps (`disturbed.py`).
"""

from __future__ import annotations

from math import log, nan
from typing import TYPE_CHECKING, Literal, TypeAlias

from cosolve.accuracy.amplification import AmplificationMatrix, StepFunction, linearise
from cosolve.accuracy.budget import Budget
from cosolve.accuracy.disturbed import Point, Trials, estimate
from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.errors import CosolveError
from cosolve.subsystem.base import has_capability

if TYPE_CHECKING:
    from cosolve.run.core import Core

Cause: TypeAlias = Literal["coupling", "model", "unknown"]

_DIVISORS = (2, 4, 8)
_FINE = (8, 25)  # parts of a step by which the growth of the model is known from that of the coupling
_SAME = 1.5  # growth by time at both of these is the model's where it differs by less
_MOST_COLUMNS = 200


def can_be_tried(core: Core) -> bool:
    """Whether the run can go on from where it stands after other steps were tried from there."""
    return not core.method.chooses_step and all(has_capability(s, "rollback") for s in core.plan.subsystems)


def columns(core: Core) -> int:
    """States and stored values of a macro step; 0 where they are not shown, or too many."""
    plan = core.plan
    if not all(has_capability(s, "state") for s in plan.subsystems):
        return 0
    known = plan.n_z * (core.method.degree + 1)
    if known > _MOST_COLUMNS:
        return 0
    try:
        states = sum(len(s.get_state()) for s in plan.subsystems)
    except CosolveError:  # of a process that is gone, say
        return 0
    return states + known if states + known <= _MOST_COLUMNS else 0


def blame(core: Core, H: float, sure: bool, mapped: bool, per_step: float, budget: Budget) -> tuple[Cause, float]:
    """Whose growth it is, and a step that is stable (NaN where none was found); the run stays where it is.

    Where it is `sure` that the coupling grows, only that step is asked for. `mapped` says that maps are cheap here;
    values have grown by the factor `per_step` in every macro step, of which the coupling must be the greater part.
    What would take more macro steps than the `budget` has left is not tried.
    """
    try:
        states = core.caller.save()
    except CosolveError:  # of a process that is gone, say
        return "unknown", nan
    try:
        return _by_maps(core, H, sure, log(per_step), budget) if mapped else _by_trials(core, H, sure, states, budget)
    except (CosolveError, ArithmeticError, ValueError):
        return ("coupling" if sure else "unknown"), nan
    finally:
        core.caller.restore(states)


def _by_maps(core: Core, H: float, sure: bool, seen: float, budget: Budget) -> tuple[Cause, float]:
    states, t, z, method = core.caller.save(), core.t, core.z, core.method.for_linearisation()

    def at(step: float) -> AmplificationMatrix:
        core.caller.restore(states)
        return linearise(StepFunction(SubsystemCaller(core.plan), method, step, t, z, budget))

    if not sure:
        here = at(H)
        if not here.unstable:
            return "model", nan
        fine = [(at(H / k), H / k) for k in _FINE]
        rates = [log(one.radius) / step for one, step in fine]
        by_time = max(rates) < _SAME * min(rates)  # that of a coupling changes with the step, or is the same by step
        if all(one.unstable for one, _ in fine) and min(rates) > 0.5 * log(here.radius) / H and by_time:
            return "model", nan
        if log(here.radius) - H * max(0.0, min(rates)) < 0.25 * seen:
            return "model", nan
    for divisor in _DIVISORS:
        if not at(H / divisor).unstable:
            return "coupling", H / divisor
    return "coupling", nan


def _by_trials(core: Core, H: float, sure: bool, states: list[object], budget: Budget) -> tuple[Cause, float]:
    trials = Trials(core.plan, core.method, point=Point(core.t, core.y, core.z, states), budget=budget)
    here = None if sure else estimate(trials, H)
    if here is not None and here.verdict != "unstable":
        return ("unknown" if here.verdict == "cannot tell" else "model"), nan
    for divisor in _DIVISORS:
        fine = estimate(trials, H / divisor)
        if fine.verdict == "stable":
            return "coupling", H / divisor
    if here is None or fine.verdict == "cannot tell":
        return ("coupling" if sure else "unknown"), nan
    same = log(fine.radius) * _DIVISORS[-1] > 0.5 * log(here.radius)
    return ("model" if same else "coupling"), nan
