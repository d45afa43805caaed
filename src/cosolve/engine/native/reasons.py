"""Why a run is not compiled: every reason once, with what would work, and where each is found."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING

from cosolve.engine.native.laws import Law, obstacle
from cosolve.engine.native.wiring import LARGEST, OPERATIONS
from cosolve.engine.step_functions import option_obstacle, step_function_obstacle
from cosolve.interface import Plan, System
from cosolve.interface.stages import staged
from cosolve.method import Method
from cosolve.method.named import MethodLike, as_method
from cosolve.stepsize.sequence import Controlled, GivenSteps, Uniform
from cosolve.subsystem.base import has_capability
from cosolve.subsystem.native import Native

if TYPE_CHECKING:
    from cosolve.run import Core

#: Reasons by name. Each says what is in the way, and what to do where something can be done.
REASONS = {
    # the method
    "no operations": "{method} is not written in operations; give the method a `step_function` in cosolve.operations",
    "operation": "{method} is not compiled: {found}, which only the Python engine knows",
    "option": "{method} is not compiled: {found}; give it as a number",
    "corrector": "{corrector} runs in the Python engine; Newton per step or iteration is compiled",
    "kept jacobian": "Jacobians that are kept for a run belong to the Python engine; refresh='step' is compiled",
    "norm": "norms of whole fields belong to the Python engine; norm='entries' is compiled",
    "approximate": "approximate subsystem steps belong to the Python engine; local='converged' is compiled",
    "step function": "numba cannot compile the macro step of {method}: {error}",
    # the system
    "many variables": "it has {count} coupling variables, and compiled loops are for at most {most}",
    "uncoupled": "nothing is coupled",
    "changes": "parameters change during the run; compiled runs keep them",
    "driven": "'{name}' follows a function of time, which the Python engine evaluates",
    "equations": "{law} is solved by the Python engine",
    "plain law": "{law} stays in Python: {why}",
    "changed": "what {law} has captured was changed during the run",
    "captured": "'{name}' runs Python code in its steps, which could change what {other} has captured",
    "law jacobian": "{law} has a Jacobian of its own, which the Python engine calls; without it the law is compiled",
    "law": "numba cannot compile a law: {error}",
    # a subsystem
    "no subsystem step": "'{name}' ({kind}) has no compiled step",
    "subsystem": "'{name}' cannot be advanced from compiled code: {why}",
    "own jacobian": "'{name}' gives a Jacobian of its own that may change from step to step; "
    "runs with jacobian='difference' are compiled",
    "one step": "'{name}' is compiled for one step length only; give a fixed step",
    "no rollback": "'{name}' has no rollback: steps of changing length are compiled only where they can be undone",
    "hands back": "'{name}' may hand a step back, and '{stuck}' cannot be set back",
    # the run
    "events": "macro steps that end at events are advanced by the Python engine; stop_at_events=False is compiled",
    "own steps": "the method chooses its own steps; a fixed step and Adaptive are compiled",
    "start": "the run has a start of its own",
    "workers": "workers were asked for; compiled runs use one thread",
    "failing": "its first steps keep failing in compiled code (an integrator that turned stiff, say)",
}


def reason(which: str, /, **what: object) -> str:
    """A reason in words.

    >>> reason("one step", name="pump")
    "'pump' is compiled for one step length only; give a fixed step"
    """
    return REASONS[which].format(**what)


def why_not_compiled(system: System, method: MethodLike, step: object = None) -> str | None:
    """Say why a run does not use the compiled macro loop.

    Parameters
    ----------
    system : System
        The coupled system.
    method : Method, str or dict
        The coupling method.
    step : float, Adaptive or None, default None
        Macro step or error control. None looks at system and method only.

    Returns
    -------
    str or None
        One sentence without a period, or None if it does.

    Examples
    --------
    >>> import cosolve as cs
    >>> tank = lambda: cs.Linear([[-1]], [[1]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(), "two": tank()})
    >>> system.connect("one.h", "two.q")
    >>> system.law("one.q", lambda h: -h, of="two.h")
    >>> cs.analysis.why_not_compiled(system, cs.Jacobi(1), 0.1) is None
    True
    >>> system = cs.System({"one": tank(), "two": tank()})
    >>> system.connect("one.h", "two.q")
    >>> system.law("one.q", lambda h: print(h), of="two.h")
    >>> cs.analysis.why_not_compiled(system, cs.Jacobi(1), 0.1)
    'the law for one.q stays in Python: it uses print (<doctest ...>, line 1)'
    """
    plan = system.plan()
    method = as_method(method)
    found = by_method(method) or by_plan(plan) or by_laws(plan)
    if found is not None or step is None:
        return found
    length = float(step) if isinstance(step, (int, float)) else 1.0
    plan, method = carried_out(plan, method)
    made = natives_of(plan, length, method.degree)
    if isinstance(made, str):
        return made
    return None if isinstance(step, (int, float)) else by_changing_steps(plan, made, method)


def uncompiled_note(core: Core) -> str:
    """What keeps a run in Python although the method could be compiled: functions that cannot; else empty."""
    plan, windows = core.plan, core.windows
    if by_method(core.method) or by_plan(plan):
        return ""
    plain = [
        (name, subsystem)
        for name, subsystem in zip(plan.names, plan.subsystems, strict=True)
        if has_capability(subsystem, "compiled step")
        and any(isinstance(value, FunctionType) for value in vars(subsystem).values())
    ]
    found = [(f"'{name}'", subsystem.native(windows.usual, core.method.degree)) for name, subsystem in plain]
    said = [f"{name}: {why}" for name, why in found if isinstance(why, str) and "Python" in why]
    law = by_laws(plan)
    return "; ".join([*said, *([law] if law else [])])


def by_method(method: Method) -> str | None:
    """Why the macro step of this method is not compiled."""
    declaration = method.declaration
    if declaration is None:
        return reason("no operations", method=method.name)
    corrector = declaration.corrector
    found = step_function_obstacle(
        declaration, OPERATIONS if corrector is None or corrector.step_function is None else OPERATIONS | {"corrected"}
    )
    if found is not None and corrector is not None and corrector.step_function is None:
        return reason("corrector", corrector=repr(corrector))
    if found is not None:
        return reason("operation", method=method.name, found=found)
    if (reads := option_obstacle(method, declaration)) is not None:
        return reason("option", method=method.name, found=reads)
    if corrector is not None and corrector.refresh == "run":
        return reason("kept jacobian")
    if declaration.norm != "entries":
        return reason("norm")
    return None if declaration.local == "converged" else reason("approximate")


def by_plan(plan: Plan) -> str | None:
    """Why this system is not compiled, whatever the method."""
    if plan.n_z > LARGEST:
        return reason("many variables", count=plan.n_z, most=LARGEST)
    if not plan.n_z:
        return reason("uncoupled")
    if plan.changes.listed:
        return reason("changes")
    if plan.driven:
        return reason("driven", name=plan.driven[0].target)
    for name, subsystem in zip(plan.names, plan.subsystems, strict=True):
        if not has_capability(subsystem, "compiled step"):
            return reason("no subsystem step", name=name, kind=type(subsystem).__name__)
    for block in plan.blocks:
        if block.implicit:
            return reason("equations", law=block.label)
        if block.jacobian is not None:
            return reason("law jacobian", law=block.label)
    return None


def by_run(core: Core) -> str | None:
    """Why this run is not compiled, as far as that is known before it."""
    if core.caller.watch is not None:
        return reason("events")
    found = by_method(core.method) or by_plan(core.plan)
    if found is not None:
        return found
    if type(core.windows) not in (Uniform, Controlled, GivenSteps):
        return reason("own steps")
    if core.startup.own_steps:
        return reason("start")
    return None if core.caller.pool is None else reason("workers")


def by_changing_steps(plan: Plan, natives: list[Native], method: Method) -> str | None:
    """Why steps of changing length cannot be compiled."""
    declaration = method.declaration
    corrected = declaration is not None and declaration.corrector is not None and declaration.jacobian == "auto"
    for name, subsystem, native in zip(plan.names, plan.subsystems, natives, strict=True):
        if not native.any_step:
            return reason("one step", name=name)
        if corrected and has_capability(subsystem, "jacobian") and not native.response:
            return reason("own jacobian", name=name)
        if not (native.save or len(native.state)):
            return reason("no rollback", name=name)
    return None


def by_steps_handed_back(plan: Plan, natives: list[Native]) -> str | None:
    """Why steps that a subsystem may hand back cannot be compiled with a method that undoes none."""
    back = [native.hands_back for native in natives]
    stuck = [name for name, n in zip(plan.names, natives, strict=True) if not (n.save or len(n.state))]
    return reason("hands back", name=plan.names[back.index(True)], stuck=stuck[0]) if any(back) and stuck else None


def natives_of(plan: Plan, H: float, degree: int) -> list[Native] | str:
    """The compiled steps of all subsystems, or why one of them has none."""
    found = []
    for name, subsystem in zip(plan.names, plan.subsystems, strict=True):
        native = subsystem.native(H, degree)
        if isinstance(native, str):
            return reason("subsystem", name=name, why=native)
        found.append(native)
    return found


def by_laws(plan: Plan) -> str | None:
    """Which law stays in Python, and why."""
    for block in plan.blocks:
        why = obstacle(block)
        if why is not None:
            return reason("plain law", law=block.label, why=why)
    return None


def by_captured(plan: Plan, natives: list[Native], laws: list[Law]) -> str | None:
    """Which subsystem runs Python beside functions that have captured something it could change."""
    python = [name for name, native in zip(plan.names, natives, strict=True) if native.runs_python]
    owners = [f"'{name}'" for name, native in zip(plan.names, natives, strict=True) if native.captures]
    owners += [block.label for block, law in zip(plan.blocks, laws, strict=True) if law.captures]
    return reason("captured", name=python[0], other=owners[0]) if python and owners else None


def carried_out(plan: Plan, method: Method) -> tuple[Plan, Method]:
    """What the loops are made for: with coupling equations inside the step that of degree 0 at both points."""
    if method.inner_point is None:
        return plan, method
    return staged(plan, method.inner_point), method.at_stages()
