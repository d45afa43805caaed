"""Advice before a run, in plain words: whether a method with a step will work, and what would be better."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Literal
from warnings import catch_warnings, simplefilter

import numpy as np

from cosolve.analysis.black_box import estimate_stability, hides_state, limit_below, trials_of
from cosolve.analysis.jacobians import check_jacobians
from cosolve.analysis.modes import wrong_modes
from cosolve.analysis.stability import critical_step, growth_of_model, macro_map
from cosolve.analysis.structure import CouplingStructure, coupling_structure
from cosolve.basics.wording import listed
from cosolve.engine.readable.instant import MOST, equations_of, rows_of
from cosolve.engine.readable.machine import bind
from cosolve.engine.readable.self_check import NoWayBack, Repeated, same_outputs
from cosolve.engine.readable.serial import serial_note
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
from cosolve.method import DynamicStatic, GaussSeidel, Implicit, Jacobi, Method, SemiImplicit, Window
from cosolve.method.named import MethodLike, as_method
from cosolve.run.disturbed import estimate
from cosolve.run.ownership import trial_crew
from cosolve.signal import History
from cosolve.stepsize import refuse_bad_step
from cosolve.subsystem.base import has_capability

Level = Literal["good", "note", "warning", "error"]

#: Larger interfaces and states are not analysed unasked: the map is dense and costs one macro step per column.
_LARGEST_MAP = 400


@dataclass(frozen=True)
class Finding:
    """One remark: `code` for programs, `text` for people."""

    level: Level
    code: str
    text: str


@dataclass
class Advice:
    """What `check` found. `ok` is False when the run would be refused or is unstable; `radius` where it is known."""

    findings: list[Finding] = field(default_factory=list)
    radius: float | None = None

    @property
    def ok(self) -> bool:
        """True when nothing speaks against running."""
        return not any(finding.level == "error" for finding in self.findings)

    def add(self, level: Level, code: str, text: str) -> None:
        """Append a finding."""
        self.findings.append(Finding(level, code, text))

    def codes(self) -> set[str]:
        """Codes of all findings."""
        return {finding.code for finding in self.findings}

    def __str__(self) -> str:
        marks = {"good": "[ok]  ", "note": "[note]", "warning": "[warn]", "error": "[FAIL]"}
        return "\n".join(f"{marks[f.level]} {f.text}" for f in self.findings)


def check(system: System, method: MethodLike | None = None, step: float | None = None) -> Advice:
    """Say before the run whether a method and a macro step suit a system, and what to use instead.

    Without a method the families are compared; without `step` only the structure is examined.

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
    method = None if method is None else as_method(method)
    if step is not None:
        refuse_bad_step(step, "the macro step")
    refuse_no_system("check", system)
    try:
        plan = system.plan()
    except SetupError as error:
        advice.add("error", "incomplete-system", str(error))
        return advice
    try:
        found = coupling_structure(system)
    except CosolveError as error:
        advice.add("error", "start-failed", f"the subsystems do not start: {error}")
        return advice
    if method is not None:
        _check_capabilities(advice, method, found)
        _check_serial(advice, method, found)
    _check_dynamic_static(advice, method, found)
    _check_loops(advice, method, found)
    _check_start(advice, method, found)
    _check_held_copies(advice, method, found)
    _check_driven(advice, found)
    if not advice.ok or step is None:
        return advice
    if plan.n_z * 3 + plan.n_y > _LARGEST_MAP and not hides_state(plan):
        advice.add("note", "too-large", "too large for the stability map; test on a smaller version of the system")
        return advice
    _check_second_start(advice, system, step)
    if method is not None and "rollback" in method.needs:
        _check_rollback(advice, system, step)
        _check_solution(advice, system, method, step)
        if getattr(method, "jacobian", None) == "auto" and advice.ok:
            _check_jacobians(advice, system, method, step)
    if method is None:
        _compare_families(advice, system, step)
    elif method.chooses_step:
        advice.add("note", "not-analysed", f"{method.name} chooses its own steps; analyse GaussSeidel instead")
    else:
        _check_stability(advice, system, method, step)
    return advice


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


def _check_dynamic_static(advice: Advice, method: Method | None, found: CouplingStructure) -> None:
    """One set of differential equations around memoryless models: there is a method made for that."""
    plan = found.plan
    dynamic = [i for i, s in enumerate(plan.subsystems) if has_capability(s, "equations")]
    static = [
        i
        for i, s in enumerate(plan.subsystems)
        if has_capability(s, "state") and not len(s.get_state()) and found.feedthrough[i].any()
    ]
    if len(dynamic) != 1 or not static or len(dynamic) + len(static) < plan.n_subsystems or not found.in_cycle.any():
        return
    if not isinstance(method, DynamicStatic):
        names = listed((plan.names[i] for i in static), 3)
        advice.add(
            "note",
            "dynamic-static",
            f"'{plan.names[dynamic[0]]}' is the only dynamic subsystem beside static ones ({names}): DynamicStatic('C')"
            " calls these once per step of its implicit integration, without coupling error; worth it where they are "
            "expensive",
        )


def _check_driven(advice: Advice, found: CouplingStructure) -> None:
    """Driven inputs with kinks of subsystems that cannot be stopped there."""
    plan = found.plan
    for one in plan.driven:
        i = next(i for i, part in enumerate(plan.u_slices) if part.start <= one.entries[0] < part.stop)
        subsystem = plan.subsystems[i]
        memoryless = has_capability(subsystem, "state") and not len(subsystem.get_state())
        if not subsystem.stops_inside and not memoryless and not one.drive.smooth:
            advice.add(
                "note",
                "driven-inside",
                f"'{plan.names[i]}' cannot be stopped inside a macro step, so where the {one.drive.label} for "
                f"'{one.target}' has a kink or a jump inside one it gets a smooth signal with the same ends and the "
                "same mean; let macro points fall on the times of the table to have it exact",
            )


def _check_second_start(advice: Advice, system: System, H: float) -> None:
    """Begin twice, and cross one step each time: a run must not go on where the last one ended."""
    plan = system.plan()
    crew, found = trial_crew(plan), []
    if all(type(subsystem).__module__.startswith("cosolve.") for subsystem in plan.subsystems):
        return
    try:
        for _ in range(2):
            _, z = crew.start(0.0)
            found.append(crew.sweep(Window(0.0, H, H), z[np.newaxis, :]))
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
    """Cross one step twice from the same saved states: a state that is shared instead of saved gives itself away."""
    plan = system.plan()
    crew = trial_crew(plan)
    _, z = crew.start(0.0)
    states, window, held = crew.save(), Window(0.0, H, H), z[np.newaxis, :]
    step = Repeated(crew, window, held, partial(crew.restore_one, states=states))
    try:
        first = crew.sweep(window, held)
        crew.restore(states)
        again = crew.sweep(window, held)
    except SubsystemError as error:
        advice.add("error", "failed-step", f"one step of H = {H:.6g} could not be crossed twice: {error}")
        return
    for i, part in enumerate(plan.y_slices):
        try:
            same_outputs(step, i, first[part], again[part])
        except NoWayBack as wrong:
            advice.add("error", "inexact-rollback", str(wrong))


def _check_solution(advice: Advice, system: System, method: Method, H: float) -> None:
    """Whether the first macro step has values that agree, for a method that looks for them."""
    if not advice.ok or method.script is None:
        return
    plan = system.plan()
    crew = trial_crew(plan)
    _, z = crew.start(0.0)
    with catch_warnings():
        simplefilter("ignore")  # about Jacobians, which are looked at next
        try:
            failed: Exception | None = bind(method, crew, watched=True)(
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
    crew = trial_crew(plan)
    y, z = crew.start(0.0)
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
    left_open = crew.undetermined(0.0, y, z, looped=bool(found.loops))
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
    if method is None or method.degree > 0 or not isinstance(method, (SemiImplicit, Implicit)):
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


def _check_black_box(advice: Advice, system: System, method: Method, H: float) -> None:
    """The same by trying it out, for systems with subsystems that hide their state."""
    try:
        trials = trials_of(system, method, H)
        here = estimate(trials, H)
    except CosolveError as error:
        advice.add("note", "not-analysed", f"stability was not analysed: {error}")
        return
    advice.radius = here.radius if np.isfinite(here.radius) else None
    how = f"at H = {H:g} (estimated from {here.macro_steps} macro steps from the start, with and without a push)"
    if here.verdict == "stable":
        advice.add("good", "stable", f"{here} {how}")
        return
    if here.verdict == "cannot tell":
        what = "run it with two steps and compare, and mind warnings of growth"
        reason = str(here).removeprefix("cannot tell: ")
        advice.add("note", "not-analysed", f"whether it is stable {how} cannot be told: {reason}; {what}")
        return
    fine = estimate(trials, H / 8)
    if fine.radius > 1.0 and 0.5 < 8 * np.log(fine.radius) / np.log(here.radius) < 4.0:
        text = f"{here} {how}, but the coupled system itself grows about as fast: this is the model, not the coupling"
        advice.add("warning", "growing-system", text)
        return
    advice.add("error", "unstable", f"{here} {how}")
    try:
        limit = limit_below(trials, H)
    except CosolveError:
        limit = 0.0
    if limit > 0.0:
        found = f"becomes unstable at about H = {limit:.3g}; stay below it ({trials.macro_steps} macro steps in all)"
        advice.add("note", "critical-step", f"{method.label} {found}")
    _suggest_others(advice, system, method, H, limit)


def _check_stability(advice: Advice, system: System, method: Method, H: float) -> None:
    if hides_state(system.plan()):
        _check_black_box(advice, system, method, H)
        return
    try:
        here = macro_map(system, method, H)
    except SetupError as error:
        advice.add("note", "not-analysed", f"stability was not analysed: {error}")
        return
    advice.radius = here.radius
    at = "" if here.linear else " (linearised at the initial state only: it may differ later)"
    if not here.unstable:
        wrong = wrong_modes(system, method, H, here)
        if wrong and wrong[0].spoils:
            code = "ringing" if wrong[0].rings else "wrong-motion"
            advice.add("warning", code, f"stable at H = {H:g}{at}, but {wrong[0].text}")
            _suggest_others(advice, system, method, H, H)
            return
        advice.add("good", "stable", f"stable: spectral radius {here.radius:.4g} at H = {H:g}{at}")
        if wrong:
            advice.add("note", "unresolved-motion", wrong[0].text)
        return
    # growth of the model by time does not depend on the step, that of coupling does: it may have a band of steps around
    # one, or be the same by step at any length, where subsystems react at once
    fine = [(macro_map(system, method, H / k), H / k) for k in (100, 317)]
    unstable = all(at_fine.unstable for at_fine, _ in fine)
    rates = [np.log(f.radius) / step for f, step in fine]
    at_once = unstable and rates[1] > 2.0 * rates[0]
    grows = unstable and min(rates) > 0.5 * np.log(here.radius) / H and not at_once
    if (
        not grows and not at_once and not here.linear and fine[0][0].unstable
    ):  # a piece of a motion: the same time in short steps
        grows = 0.5 < np.log(max(growth_of_model(system, method, H, here), 1e-300)) / np.log(here.radius) < 2.0
    if grows:
        advice.add(
            "warning",
            "growing-system",
            f"spectral radius {here.radius:.4g} at H = {H:g}{at}, but the coupled system itself grows about as fast: "
            "this is the model, not the coupling",
        )
        return
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
        limit = critical_step(system, method, step_range=(H * 1e-4, H))
        if limit > 0.0 and np.isfinite(limit):
            advice.add("note", "critical-step", f"{method.label} becomes unstable at H = {limit:.4g}; stay below it")
    _suggest_others(advice, system, method, H, limit)


def _suggest_others(advice: Advice, system: System, method: Method, H: float, limit: float) -> None:
    """The other methods that serve at this step, all of them tried; `limit` is that of `method`, 0 if unknown."""
    serving = []
    for other in (*_families(), Implicit(1), Implicit(0)):
        radius, wrong = _stable_radius(system, other, H)
        if other.label != method.label and radius is not None and not wrong:
            serving.append(f"{other.label} (radius {radius:.4g})")
    if serving:
        said = ", ".join(serving[:5])
        written = "; BDF2 is degree=1 with signal='bdf'" if "BDF2" in said else ""
        advice.add("note", "alternatives", f"stable at H = {H:g}: {said}{written}")
    else:
        less = "; take a smaller one" if limit > 0.0 else ", nor is any known to be at a smaller one"
        advice.add("note", "alternatives", f"no other standard method serves at this step{less}")


def _compare_families(advice: Advice, system: System, H: float) -> None:
    for method in _families():
        if method.complaints(system.plan()):
            continue
        radius, wrong = _stable_radius(system, method, H)
        if radius is not None and not wrong:
            advice.add("good", "stable", f"{method.label}: stable at H = {H:g}, spectral radius {radius:.4g}")
        elif radius is not None:
            advice.add("note", "unresolved", f"{method.label}: stable at H = {H:g}, but {wrong}")
        else:
            advice.add("note", "unstable", f"{method.label}: not stable at H = {H:g}")
    if not any(finding.code == "stable" for finding in advice.findings):
        advice.add("error", "unstable", f"no standard method serves at H = {H:g}; take a smaller step")


def _families() -> list[Method]:
    return [
        SemiImplicit(1),
        SemiImplicit(2),
        SemiImplicit(0),
        SemiImplicit(1, signal="bdf"),
        SemiImplicit(2, signal="bdf"),
        SemiImplicit(1, signal="collocation"),
        GaussSeidel(1),
        GaussSeidel(2),
        Jacobi(1),
        Jacobi(2),
        Jacobi(0),
    ]


def _stable_radius(system: System, method: Method, H: float) -> tuple[float | None, str]:
    """The spectral radius, None where it is not stable; and what else is wrong."""
    try:
        if hides_state(system.plan()):
            tried = estimate_stability(system, method, H)
            return (tried.radius if tried.verdict == "stable" else None), ""
        found = macro_map(system, method, H)
    except CosolveError:
        return None, ""
    if found.unstable:
        return None, ""
    wrong = wrong_modes(system, method, H, found)
    return found.radius, wrong[0].text if wrong and wrong[0].spoils else ""
