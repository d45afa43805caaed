"""Advice before a run, in plain words: whether a method with a step will work, and what would be better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf
from time import monotonic
from typing import Literal
from warnings import catch_warnings, simplefilter

import numpy as np

from cosolve.accuracy.budget import Budget, OverBudget
from cosolve.accuracy.disturbed import LEAST, Estimate, Trials, estimate
from cosolve.analysis.black_box import hides_state, limit_below, trials_of
from cosolve.analysis.jacobians import check_jacobians
from cosolve.analysis.modes import fastest_turns, wrong_modes
from cosolve.analysis.stability import amplification_matrix, critical_step, growth_of_model, rates_in_short_steps
from cosolve.analysis.structure import CouplingStructure, coupling_structure
from cosolve.basics.checks import positive
from cosolve.basics.error_location import raised_at
from cosolve.basics.wording import listed
from cosolve.engine.python.executor import bind
from cosolve.engine.python.instant import MOST, equations_of, rows_of
from cosolve.engine.python.self_check import Repeated, RollbackMismatch, same_outputs
from cosolve.engine.python.serial import serial_note
from cosolve.errors import (
    ConvergenceError,
    CosolveError,
    EndOfSimulation,
    SetupError,
    SingularInterfaceError,
    SubsystemError,
)
from cosolve.interface import System
from cosolve.interface.system import refuse_no_system
from cosolve.method import Method, Window
from cosolve.method.named import MethodLike, as_method, method_classes, proposals
from cosolve.signal import History
from cosolve.state.ownership import trial_caller
from cosolve.stepsize import refuse_bad_step
from cosolve.subsystem.base import has_capability

Level = Literal["good", "note", "warning", "error"]

#: Larger interfaces and states are not analysed unasked: the map is dense and costs one macro step per column.
_LARGEST_MAP = 400

#: Other methods that are named, at most.
_SHOWN = 5

#: For all trials of one check.
SECONDS = 30.0


@dataclass(frozen=True)
class Finding:
    """One remark of `check`.

    Parameters
    ----------
    level : {"good", "note", "warning", "error"}
        How serious it is.
    code : str
        What it is about, for programs.
    text : str
        A sentence.
    """

    level: Level
    code: str
    text: str


@dataclass(repr=False)
class Advice:
    """What `check` found; `print` lists it.

    Parameters
    ----------
    findings : list of Finding
        The remarks.
    radius : float or None, default None
        Spectral radius, if it is known.
    """

    findings: list[Finding] = field(default_factory=list)
    radius: float | None = None

    @property
    def ok(self) -> bool:
        """False if the run would be refused or is unstable."""
        return not any(finding.level == "error" for finding in self.findings)

    def add(self, level: Level, code: str, text: str) -> None:
        """Append a remark.

        Parameters
        ----------
        level : {"good", "note", "warning", "error"}
            See `Finding`.
        code : str
            See `Finding`.
        text : str
            See `Finding`.
        """
        self.findings.append(Finding(level, code, text))

    def codes(self) -> set[str]:
        """Return the codes of all remarks.

        Returns
        -------
        set of str
            The codes.
        """
        return {finding.code for finding in self.findings}

    def __str__(self) -> str:
        marks = {"good": "[ok]  ", "note": "[note]", "warning": "[warn]", "error": "[FAIL]"}
        return "\n".join(f"{marks[f.level]} {f.text}" for f in self.findings)

    __repr__ = __str__  # what a notebook shows


def check(
    system: System, method: MethodLike | None = None, step: float | None = None, *, seconds: float | None = None
) -> Advice:
    """Say before a run whether a method and a macro step suit a system, and what to use instead.

    Parameters
    ----------
    system : System
        The coupled system. Its subsystems are started.
    method : Method, str, dict or None, default None
        The method to check. None compares the families of methods.
    step : float or None, default None
        Macro step in seconds. None examines the structure only, not stability.
    seconds : float or None, default None
        Time that trials may take, where subsystems do not show their state and stability has to be tried out; what was
        not found by then is said. None allows 30.

    Returns
    -------
    Advice
        Findings of the levels "good", "note", "warning" and "error"; `advice.ok` says whether it can run, `print` lists
        them.

    Examples
    --------
    >>> import cosolve as cs
    >>> def mass(x):
    ...     return cs.Linear([[0, 1], [-1, -0.1]], [[0], [1]], [[1, 0]], x0=[x, 0], inputs=["f"], outputs=["x"])
    >>> system = cs.System({"one": mass(0), "two": mass(1)})
    >>> system.law({"one.f": 1, "two.f": -1}, lambda x1, x2: 9 * (x2 - x1), of=["one.x", "two.x"])
    >>> print(cs.check(system, cs.SemiImplicit(degree=1), step=0.05))
    [ok]   SemiImplicit(1) can run this system
    [ok]   stable: spectral radius 0.9975 at H = 0.05
    """
    advice = Advice()
    examine(advice, system, method, step, seconds=seconds)
    return advice


class TrialProgress:
    """What is being tried, for a progress bar: `progress(fraction, about)` before every macro step.

    The fraction is that of the seconds which all trials may take; once they are over, `OverBudget` is raised.

    >>> clock = iter([0.0, 1.0, 2.0, 11.0])
    >>> trying = TrialProgress(lambda fraction, about: print(f"{fraction:.2f} {about}"), 10.0, clock.__next__)
    >>> budget = trying.next("Jacobi(1)")
    >>> budget.take()
    0.10 Jacobi(1), macro step 1
    >>> budget.take()
    0.20 Jacobi(1), macro step 2
    >>> budget.take()
    Traceback (most recent call last):
    ...
    cosolve.accuracy.budget.OverBudget: the 10 s for trials are over
    >>> trying.ended
    True
    """

    def __init__(
        self,
        progress: Callable[[float, str], object] | None,
        seconds: float = inf,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.seconds, self.ended = seconds, False
        self._progress, self._clock = progress, clock
        self._began, self._share, self._about, self._steps = clock(), 0.0, "", 0

    def next(self, about: str, most: float = inf) -> Budget:
        """The next method, for which at most so many macro steps are taken."""
        self._about, self._steps = about, 0
        return Budget(most, self._tell)

    def over(self) -> bool:
        """Whether there is no time left; remembered in `ended`."""
        self._share = (self._clock() - self._began) / self.seconds
        self.ended = self.ended or self._share >= 1.0
        return self.ended

    def _tell(self) -> None:
        if self.over():
            raise OverBudget(f"the {self.seconds:g} s for trials are over")
        self._steps += 1
        if self._progress is not None:
            self._progress(self._share, f"{self._about}, macro step {self._steps}")


def examine(
    advice: Advice,
    system: System,
    method: MethodLike | None,
    step: float | None,
    progress: Callable[[float, str], object] | None = None,
    seconds: float | None = None,
) -> None:
    """`check` that leaves what it finds in `advice` as it goes on, and tells a bar what it tries."""
    trying = TrialProgress(progress, SECONDS if seconds is None else positive("check", "seconds", seconds))
    method = None if method is None else as_method(method)
    if step is not None:
        refuse_bad_step(step, "the macro step")
    refuse_no_system("check", system)
    try:
        plan = system.plan()
    except SetupError as error:
        advice.add("error", "incomplete-system", str(error))
        return
    try:
        found = coupling_structure(system)
    except CosolveError as error:
        place = raised_at(error)
        where = f" ({place})" if place else ""
        advice.add("error", "start-failed", f"the subsystems do not start: {error}{where}")
        return
    if method is not None:
        _check_capabilities(advice, method, found)
        _check_serial(advice, method, found)
    _check_recommended(advice, method, found)
    _check_loops(advice, method, found)
    _check_start(advice, method, found)
    _check_held_copies(advice, method, found)
    _check_driven(advice, found)
    if not advice.ok or step is None:
        return
    if plan.n_z * 3 + plan.n_y > _LARGEST_MAP and not hides_state(plan):
        advice.add("note", "too-large", "too large for the stability map; test on a smaller version of the system")
        return
    _check_second_start(advice, system, step)
    if method is not None and "rollback" in method.needs:
        _check_rollback(advice, system, step)
        _check_solution(advice, system, method, step)
        if method.declaration is not None and method.declaration.jacobian == "auto" and advice.ok:
            _check_jacobians(advice, system, method, step)
    if method is None:
        _compare_families(advice, system, step, trying)
    elif method.chooses_step:
        advice.add("note", "not-analysed", f"{method.name} chooses its own steps; analyse GaussSeidel instead")
    else:
        limit = _check_stability(advice, system, method, step, trying)
        if limit is not None:
            _suggest_others(advice, system, method, step, limit, trying)
    if trying.ended:
        more = f"seconds={2 * trying.seconds:g} (--seconds {2 * trying.seconds:g} on the command line) allows more"
        advice.add("note", "trials-ended", f"not all was tried: the {trying.seconds:g} s for trials are over; {more}")


def _check_capabilities(advice: Advice, method: Method, found: CouplingStructure) -> None:
    complaints = method.complaints(found.plan)
    for complaint in complaints:
        advice.add("error", "capability", complaint)
    if not complaints:
        advice.add("good", "capability", f"{method.label} can run this system")


def _check_serial(advice: Advice, method: Method, found: CouplingStructure) -> None:
    """A serial sweep that hands nothing on."""
    note = serial_note(method, found.plan) if advice.ok else ""
    if note:
        advice.add("note", "serial-is-parallel", note)


def _check_recommended(advice: Advice, method: Method | None, found: CouplingStructure) -> None:
    """Methods that are made for systems like this one."""
    looped = bool(found.in_cycle.any())
    for name, kind in method_classes().items():
        reason = kind.recommended(found.plan, found.feedthrough, looped)
        if reason and not isinstance(method, kind):
            advice.add("note", name, reason)


def _check_driven(advice: Advice, found: CouplingStructure) -> None:
    """Driven inputs with kinks of subsystems that cannot be stopped there."""
    plan = found.plan
    for one in plan.driven:
        i = next(i for i, part in enumerate(plan.u_slices) if part.start <= one.entries[0] < part.stop)
        subsystem = plan.subsystems[i]
        memoryless = has_capability(subsystem, "state") and not len(subsystem.get_state())
        if not subsystem.variable_step and not memoryless and not one.drive.smooth:
            advice.add(
                "note",
                "driven-inside",
                f"'{plan.names[i]}' cannot be stopped inside a macro step, so where the {one.drive.label} for "
                f"'{one.target}' has a kink or a jump inside one it gets a smooth signal with the same ends and the "
                "same mean; let macro points fall on the times of the table to have it exact",
            )


def _check_second_start(advice: Advice, system: System, H: float) -> None:
    """Begin twice, and advance over one step each time: a run must not go on where the last one ended."""
    plan = system.plan()
    caller, found = trial_caller(plan), []
    if all(type(subsystem).__module__.startswith("cosolve.") for subsystem in plan.subsystems):
        return
    try:
        for _ in range(2):
            _, z = caller.start(0.0)
            found.append(caller.sweep(Window(0.0, H, H), z[np.newaxis, :]))
    except (SubsystemError, EndOfSimulation) as error:
        if found:
            advice.add("error", "no-second-run", f"a second run could not begin: {error}")
        return
    for name, part in zip(plan.names, plan.y_slices, strict=True):
        if not np.allclose(found[0][part], found[1][part], rtol=1e-6, atol=1e-12 * float(np.abs(found[0]).max())):
            advice.add(
                "warning",
                "no-second-run",
                f"'{name}' does not begin anew: the first step of two runs gave {found[0][part]}, then "
                f"{found[1][part]}; start() must put everything back that advance() changes, unless it is meant to be "
                "noisy",
            )


def _check_rollback(advice: Advice, system: System, H: float) -> None:
    """Repeat one step from the same saved states: a state that is shared instead of saved shows."""
    plan = system.plan()
    caller = trial_caller(plan)
    _, z = caller.start(0.0)
    states, window, held = caller.save(), Window(0.0, H, H), z[np.newaxis, :]
    step = Repeated(caller, window, held, partial(caller.restore_one, states=states))
    try:
        first = caller.sweep(window, held)
        caller.restore(states)
        again = caller.sweep(window, held)
    except SubsystemError as error:
        advice.add("error", "failed-step", f"one step of H = {H:.6g} could not be advanced twice: {error}")
        return
    for i, part in enumerate(plan.y_slices):
        try:
            same_outputs(step, i, first[part], again[part])
        except RollbackMismatch as wrong:
            advice.add("error", "inexact-rollback", str(wrong))


def _check_solution(advice: Advice, system: System, method: Method, H: float) -> None:
    """Whether the first macro step has values that agree, for a method that looks for them."""
    if not advice.ok or method.declaration is None:
        return
    plan = system.plan()
    caller = trial_caller(plan)
    _, z = caller.start(0.0)
    with catch_warnings():
        simplefilter("ignore")  # about Jacobians, which are looked at next
        try:
            failed: Exception | None = bind(method, caller, watched=True)(
                History(z, method.depth), Window(0.0, H, H)
            ).unsolved
        except (ConvergenceError, SingularInterfaceError) as error:
            failed = error
        except CosolveError:  # said elsewhere
            failed = None
    if failed is not None:
        advice.add("error", "no-solution", str(failed))


def _check_jacobians(advice: Advice, system: System, method: Method, H: float) -> None:
    """Derivatives that subsystems and laws provide, against differences."""
    for finding in check_jacobians(system, H, method=method):
        advice.add("warning", "wrong-jacobian", finding.text)


def _check_loops(advice: Advice, method: Method | None, found: CouplingStructure) -> None:
    for loop in found.loops:
        path = " -> ".join((*loop, loop[0]))
        text = f"algebraic loop (feed-through all the way round): {path}"
        if method is not None and method.explicit:
            advice.add(
                "warning",
                "algebraic-loop",
                f"{text}; explicit methods lag one step in it and may be unstable however small the step; "
                "use SemiImplicit or Implicit, or cut the loop by giving out a state instead "
                "(an acceleration input is a typical cause)",
            )
        else:
            advice.add("note", "algebraic-loop", f"{text}; SemiImplicit and Implicit methods solve it")


def _check_start(advice: Advice, method: Method | None, found: CouplingStructure) -> None:
    """Unknowns of equations, and variables in algebraic loops, that the instant t = 0 does not determine."""
    plan = found.plan
    equations = equations_of(plan.blocks)
    unknowns = rows_of(equations)
    if not len(unknowns) and not found.loops:
        return
    caller = trial_caller(plan)
    y, z = caller.start(0.0)
    cost = (
        "with degree 1 or more a wrong start value costs orders of accuracy, may stay visible for the whole run, and "
        "keeps Adaptive from leaving t = 0"
    )
    if len(unknowns) > MOST:
        advice.add(
            "note",
            "unsolved-start",
            f"the equations have {len(unknowns)} unknowns, more than the {MOST} that are solved for at t = 0, so they "
            f"start at their initial values; give good ones with initial=...: {cost}",
        )
    left_open = caller.undetermined(0.0, y, z, looped=bool(found.loops))
    for name, (part, scalar) in plan.z_ports.items():
        rows = np.arange(plan.n_z)[part]
        if not left_open[rows].any():
            continue
        value = f"{z[part.start]:.6g}" if scalar else np.array2string(z[rows], precision=6, threshold=8)
        if not np.isin(rows, unknowns).any():
            advice.add(
                "warning",
                "undetermined-loop",
                f"the algebraic loop through '{name}' has more than one solution at t = 0 (its gain is 1): it starts "
                f"at {value}, and other values would do as well; take a connection out of the loop, or state what is "
                "missing by equations",
            )
            continue
        given = bool(plan.z_given[rows].all())
        block = next(block for block in equations if rows[0] in block.rows)
        off = float(np.abs(block.call(z[block.rows], y[block.y_index])).max())
        advice.add(
            "note" if (given and off < 1e-6) or (method is not None and method.degree == 0) else "warning",
            "undetermined-start",
            f"'{name}' cannot be determined at t = 0 ({block.label} do not react to it at once, or not independently "
            f"of other unknowns; their residual is {off:.3g}), so it starts at "
            f"{'your' if given else 'the'} initial value {value}"
            f"{', which should be right' if given else f'; give the right one with initial={{{name!r}: ...}}'}: {cost}",
        )


def _check_held_copies(advice: Advice, method: Method | None, found: CouplingStructure) -> None:
    """A trap (docs/theory.md, "Semi-implicit"): held copies of states lead by half a step and take damping away."""
    if method is None or method.degree > 0 or method.explicit or not method.holds_ends:
        return
    plan = found.plan
    reacts = np.concatenate([pattern.any(axis=1) for pattern in found.feedthrough])
    held = [
        plan.y_label(int(source))
        for row, source in zip(plan.copy_rows, plan.copy_from, strict=True)
        if found.in_cycle[row] and not reacts[source]
    ]
    if held:
        advice.add(
            "warning",
            "held-displacement",
            f"degree 0 holds the copied state {listed(held, 3)} at its end value over the step: "
            "it leads by half a step, which acts like negative damping (displacement-type coupling); use degree 1, or "
            "couple by a force law",
        )


def _check_black_box(advice: Advice, system: System, method: Method, H: float, trying: TrialProgress) -> float | None:
    """The same by trying it out, for systems with subsystems that hide their state."""
    try:
        trials = trials_of(system, method, H, budget=trying.next(method.label))
        here = estimate(trials, H)
    except CosolveError as error:
        advice.add("note", "not-analysed", f"stability was not analysed: {error}")
        return None
    advice.radius = here.radius if np.isfinite(here.radius) else None
    how = f"at H = {H:g} (estimated from {here.macro_steps} macro steps from the start, with and without a push)"
    if here.verdict == "stable":
        tried = f"{here} {how}" if here.macro_steps else f"stable at H = {H:g}: {here.reason}"
        advice.add("good", "stable", tried)
        return None
    if here.verdict == "cannot tell":
        reason = str(here).removeprefix("cannot tell: ")
        found = f"{here.macro_steps} macro steps of trials do not tell whether it is stable at H = {H:g}: {reason}"
        shorter = "" if trying.ended else f"; check a shorter step, {H / 10:g} say"
        advice.add("note", "not-analysed", found + shorter)
        return None
    if _model_grows(trials, H, here):
        text = f"{here} {how}, but the coupled system itself grows about as fast: this is the model, not the coupling"
        advice.add("warning", "growing-system", text)
        return None
    advice.add("error", "unstable", f"{here} {how}")
    try:
        limit = limit_below(trials, H)
    except CosolveError:
        limit = 0.0
    if limit > 0.0:
        found = f"becomes unstable at about H = {limit:.3g}; stay below it ({trials.macro_steps} macro steps in all)"
        advice.add("note", "critical-step", f"{method.label} {found}")
    return limit


def _model_grows(trials: Trials, H: float, here: Estimate) -> bool:
    """Whether growth per second is about the same in ever shorter steps: that of a coupling changes, or ends."""
    rates = [np.log(here.radius) / H]
    for divisor in (8, 64):
        fine = estimate(trials, H / divisor)
        if not fine.radius > 1.0 + fine.accuracy:
            return False
        rates.append(np.log(fine.radius) * divisor / H)
    return bool(0.5 < rates[1] / rates[0] < 4.0 and 0.7 < rates[2] / rates[1] < 1.4)


def _check_stability(advice: Advice, system: System, method: Method, H: float, trying: TrialProgress) -> float | None:
    """Whether it is stable; where another method should be taken, the limit below which this one is, 0 if unknown."""
    if hides_state(system.plan()):
        return _check_black_box(advice, system, method, H, trying)
    try:
        here = amplification_matrix(system, method, H)
    except SetupError as error:
        advice.add("note", "not-analysed", f"stability was not analysed: {error}")
        return None
    advice.radius = here.radius
    at = "" if here.linear else " (linearised at the initial state only: it may differ later)"
    if not here.unstable:
        wrong = wrong_modes(system, method, H, here)
        if wrong and wrong[0].spoils:
            code = "ringing" if wrong[0].rings else "wrong-motion"
            advice.add("warning", code, f"stable at H = {H:g}{at}, but {wrong[0].text}")
            return H
        advice.add("good", "stable", f"stable: spectral radius {here.radius:.4g} at H = {H:g}{at}")
        if wrong:
            advice.add("note", "unresolved-motion", wrong[0].text)
        turns, shown = fastest_turns(system, H)
        if turns > 0.5:
            text = (
                f"a motion seen in '{shown}' turns {turns:.2g} times per step: at macro points it looks like a "
                "slower one, which may drive the others; error_bar=True tells whether it does"
            )
            advice.add("note", "aliased-motion", text)
        return None
    # growth of the model by time does not depend on the step, that of coupling does: it may have a band of steps around
    # one, or be the same by step at any length, where subsystems react at once
    short, rates = rates_in_short_steps(system, method, H)
    at_once = rates[1] > 2.0 * rates[0] > 0.0
    grows = min(rates) > 0.5 * np.log(here.radius) / H and not at_once
    if not grows and not at_once and not here.linear and rates[0]:  # a piece of a motion: the same time in short steps
        grows = 0.5 < np.log(max(growth_of_model(system, method, H, here), 1e-300)) / np.log(here.radius) < 2.0
    if grows:
        advice.add(
            "warning",
            "growing-system",
            f"spectral radius {here.radius:.4g} at H = {H:g}{at}, but the coupled system itself grows about as fast: "
            "this is the model, not the coupling",
        )
        return None
    advice.add("error", "unstable", f"unstable: spectral radius {here.radius:.4g} at H = {H:g}{at}")
    limit = 0.0
    if at_once:
        advice.add(
            "note",
            "at-every-step",
            f"{method.label} is unstable at every shorter step too, it grows by step and not by time: subsystems react "
            "at once (an added mass, a loop without delay)",
        )
    else:
        limit = critical_step(system, method, step_range=(min(H * 1e-4, short), H))
        if limit > 0.0 and np.isfinite(limit):
            advice.add("note", "critical-step", f"{method.label} becomes unstable at H = {limit:.4g}; stay below it")
    return limit


def _suggest_others(
    advice: Advice, system: System, method: Method, H: float, limit: float, trying: TrialProgress
) -> None:
    """The other methods that serve at this step, all of them tried; `limit` is that of `method`, 0 if unknown."""
    serving = []
    for other in (*proposals("check"), *proposals("other")):
        if other.label == method.label:
            continue
        if trying.over():
            break
        radius, wrong = _stable_radius(system, other, H, trying)
        if radius is not None and not wrong:
            serving.append(f"{other.label} (radius {radius:.4g})")
        if len(serving) == _SHOWN:
            break
    if serving:
        said = ", ".join(serving)
        written = "; BDF2 is degree=1 with signal='bdf'" if "BDF2" in said else ""
        advice.add("note", "alternatives", f"stable at H = {H:g}: {said}{written}")
    elif not trying.ended:
        less = "; take a smaller one" if limit > 0.0 else ", nor is any known to be at a smaller one"
        advice.add("note", "alternatives", f"no other standard method serves at this step{less}")


def _compare_families(advice: Advice, system: System, H: float, trying: TrialProgress) -> None:
    for method in proposals("check"):
        if method.complaints(system.plan()):
            continue
        radius, wrong = _stable_radius(system, method, H, trying)
        if trying.ended:
            return
        if radius is not None and not wrong:
            advice.add("good", "stable", f"{method.label}: stable at H = {H:g}, spectral radius {radius:.4g}")
        elif radius is not None:
            advice.add("note", "unresolved", f"{method.label}: stable at H = {H:g}, but {wrong}")
        else:
            advice.add("note", "unstable", f"{method.label}: not stable at H = {H:g}")
    if not any(finding.code == "stable" for finding in advice.findings):
        advice.add("error", "unstable", f"no standard method serves at H = {H:g}; take a smaller step")


def _stable_radius(system: System, method: Method, H: float, trying: TrialProgress) -> tuple[float | None, str]:
    """The spectral radius, None where it is not stable; and what else is wrong. What is not seen soon is not stable."""
    budget = trying.next(f"{method.label} instead", LEAST)
    try:
        if hides_state(system.plan()):
            tried = estimate(trials_of(system, method, H, budget=budget), H)
            return (tried.radius if tried.verdict == "stable" else None), ""
        found = amplification_matrix(system, method, H)
    except CosolveError:
        return None, ""
    if found.unstable:
        return None, ""
    wrong = wrong_modes(system, method, H, found)
    return found.radius, wrong[0].text if wrong and wrong[0].spoils else ""
