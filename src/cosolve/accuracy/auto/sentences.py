"""What a choice says of itself: one sentence, with the numbers that led to it."""

from __future__ import annotations

from collections.abc import Sequence

from cosolve.accuracy.auto.candidates import Candidates
from cosolve.accuracy.auto.trial import Trial
from cosolve.stepsize import Adaptive


def percent(error: float) -> str:
    """A large error.

    >>> percent(0.314), percent(1e9)
    ('31 %', 'more than 100 %')
    """
    return f"{100 * error:.0f} %" if error < 1 else "more than 100 %"


def chosen(pilot: Trial, step: Adaptive, tolerance: float, remark: str) -> str:
    """Method, step, and what the pilot said."""
    what = f"{pilot.method.label}, Adaptive(rtol={step.rtol:g}) for a coupling error of {tolerance:g}"
    told = f"a pilot of {pilot.steps} steps"
    if not pilot.known:
        told += f" ran well, but {pilot.blind}, so successive runs must agree"
    elif pilot.power is not None:
        told += f" has a coupling error of about {pilot.error:.1e}, by another one"
    else:
        told += f" had a coupling error of {pilot.error:.1e} ({pilot.factor:.2g} times its rtol)"
    return f"{what}: {told}; {remark}"


def faster(one: Trial, other: Trial, tolerance: float) -> str:
    """Why the method with more subsystem steps."""
    slow = max(one.seconds, key=lambda name: one.seconds[name])
    ratio = other.time(tolerance) / one.time(tolerance)
    return (
        f"{other.method.label} would take fewer subsystem steps but about {ratio:.2g} times as long: a subsystem step "
        f"of '{slow}' was measured to take {one.seconds[slow]:.1e} s"
    )


def others(best: Trial, trials: Sequence[Trial], found: Candidates) -> str:
    """Why no other method, where none was priced."""
    for trial in trials:
        if trial.why and trial.method != best.method:
            return f"{trial.method.label} was given up ({_brief(trial.why, 70)})"
    if found.complaints and best.method.explicit:
        return found.complaints[0]
    if best.method.explicit and found.corrected is not None:
        return "that is so cheap that no other method was tried"
    return found.complaints[0] if found.complaints else "the method was given"


def nothing(tolerance: float, trials: Sequence[Trial], complaints: Sequence[str]) -> str:
    """No method was found: how far the best trial came, what ended it, and what to do."""
    best = max(trials, key=lambda trial: trial.t[-1] if len(trial.t) and trial.steps else -1.0, default=None)
    why = complaints[0] if best is None else f"{_tried(best)}: {best.why}"
    return (
        f"no method and step were found for rtol = {tolerance:g} ({_brief(why, 170)}); loosen rtol, or give method and "
        "step"
    )


def none_at(tolerance: float, step: object, trials: Sequence[Trial]) -> str:
    """No method was found for a step that was given."""
    first = trials[0]
    why = _brief(f"{first.method.label}: {first.why or first.blind}", 120)
    return f"no method was found for rtol = {tolerance:g} with step {step} ({why}); give no step, or method and step"


def everything(trials: Sequence[Trial], complaints: Sequence[str]) -> str:
    """All that was tried, for users who want details."""
    return "; ".join([*dict.fromkeys(f"{_tried(trial)}: {trial.why}" for trial in trials), *complaints])


def _brief(text: str, most: int) -> str:
    """The first clause of a sentence, and no more than so many letters of it."""
    clause = text.split(";")[0]
    return clause if len(clause) <= most else clause[: most - 4].rsplit(" ", 1)[0] + " ..."


def _tried(trial: Trial) -> str:
    came = f" came to t = {trial.t[-1]:.4g}" if len(trial.t) and trial.steps else " failed"
    return f"{trial.method.label}{came}"


def over(error: float, tolerance: float) -> str:
    """A run that has missed its tolerance by what it knows itself."""
    return (
        f"the coupling error is about {error:.1e}, more than the {tolerance:g} that was asked for, and shorter steps "
        "did not bring it down; ask for less, or give method and step"
    )


def repeated(sentence: str, rtol: float, moved: float, missed: bool = False) -> str:
    """A choice whose run was in doubt, or has missed its tolerance."""
    first = sentence.partition("; in doubt")[0].partition("; its run had")[0]
    if missed:
        return f"{first}; its run had a coupling error of {moved:.1e}, so again with rtol {rtol:g}"
    return f"{first}; in doubt, since it moved the run before it by {moved:.1e}, so again with rtol {rtol:g}"


def doubt(moved: float, allowed: float, last: bool) -> str:
    """A run that is too far from the one before it."""
    if not last:
        return f"in doubt: the run differs by {moved:.1e} from the one before it, where {allowed:.1e} is explained"
    return (
        f"no estimate of the coupling error: the last two runs differ by {moved:.1e} where {allowed:.1e} is allowed; "
        "events between macro points (take stop_at_events, or a shorter step), or subsystems less accurate than that, "
        "are usual reasons"
    )


def missed() -> str:
    """A run that stays below half of what an earlier one has reached."""
    return (
        "no estimate of the coupling error: a run with other steps reached more than twice these values, so this one "
        "may have stepped over a pulse or an event; give a step shorter than it lasts, or limit the subsystem's own "
        "steps"
    )
