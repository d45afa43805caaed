"""A system structure (.ssp, .ssd) as a `System` with its run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cosolve.basics.checks import as_path
from cosolve.basics.wording import listed
from cosolve.errors import SetupError, warn
from cosolve.fmu.places import found_file, watching
from cosolve.interface import System
from cosolve.io import named
from cosolve.io.ssp.affine import Affine
from cosolve.io.ssp.document import ANNOTATION, Component, Document, read_document
from cosolve.io.ssp.flatten import Flat, Node
from cosolve.io.system_file import Description
from cosolve.method import Jacobi, Method, SemiImplicit
from cosolve.method.named import MethodLike, as_method
from cosolve.run.choose import tolerance
from cosolve.run.startup import Startup
from cosolve.stepsize import Adaptive
from cosolve.subsystem import Subsystem
from cosolve.subsystem.base import has_capability

Factory = Callable[[Path, str, Mapping[str, Any]], Subsystem]

_KINDS = {"CoSimulation": "co-simulation", "ModelExchange": "model-exchange"}


def read_ssp(
    path: str | Path,
    *,
    method: MethodLike | None = None,
    step: float | Adaptive | None = None,
    rtol: float | None = None,
    t_end: float | None = None,
    component: Factory | None = None,
    variant: str | None = None,
) -> Description:
    """Read an SSP (`.ssp`, or a bare `.ssd`): its `system`, and `method`, `step`, `t_start`, `t_end` to run it with.

    With `rtol`, or `method="auto"`, what is not given of method and step is chosen when it runs (see `cs.choose`).

    Nested systems become flat: the component `inner` of the system `sub` is the subsystem `sub/inner`; dots in names
    of components become underscores, connectors keep theirs. Parameter bindings, mappings, linear transformations and
    unit conversions are applied. Inputs that nothing feeds are held at their bound value, or their start value, and can
    be changed by `system.set` or in a `Stepper`. `component(source, name, parameters)` makes the subsystem of a
    component (one of `load_fmu` unless given); `variant` names another `.ssd` in the archive.

    Method and step come from the arguments, else from the annotation that `write_ssp` writes; else `SemiImplicit` where
    all FMUs can roll back and `Jacobi` where not, with a thousand steps. What is left out (empty entries of a mapping,
    a step size that another tool has annotated for itself) is said in a warning.

    >>> import cosolve as cs
    >>> cs.read_ssp("missing.ssp")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: there is no file 'missing.ssp'; give the path of an SSP
    """
    path = Path(found_file(as_path("read_ssp", path)))
    document = read_document(path, variant)
    for note in (*document.notes, *(document.step_notes if step is None and "step" not in document.run else ())):
        warn(note, UserWarning)
    flat = Flat(document.structure, path.name)
    subsystems = {}
    with watching():  # its FMUs are in it: nobody else need know
        for where, part in flat.components.items():
            subsystems[_safe(where)] = _made(part, where, flat, component)
    if not subsystems:
        raise SetupError(f"{path.name}: there are no components in it")
    if len(subsystems) < len(flat.components):
        raise SetupError(f"{path.name}: two components have names that differ in dots only; rename one of them")
    system = System(subsystems)
    _join(system, flat)
    given = method if method is None or method == "auto" else as_method(method)
    return _described(path, document, system, given, step, t_end, rtol)


def _made(part: Component, where: str, flat: Flat, component: Factory | None) -> Subsystem:
    parameters = flat.parameters(where)
    try:
        if component is not None:
            return component(part.file, where, parameters)
        return _fmu(part, where, parameters)
    except SetupError as error:
        raise SetupError(f"{flat.shown}: the component '{where}': {error}") from None


def _fmu(part: Component, where: str, parameters: Mapping[str, Any]) -> Subsystem:
    from cosolve.fmu.archive import unpack
    from cosolve.fmu.description import read_description
    from cosolve.fmu.load import load_fmu

    variables = read_description(unpack(part.file)).variables
    fixed = ("parameter", "structuralParameter")
    starts = {k: v for k, v in parameters.items() if k in variables and variables[k].causality not in fixed}
    given = {k: v for k, v in parameters.items() if k not in starts}
    kind = _KINDS.get(part.implementation or "")
    return load_fmu(part.file, parameters=given, start=starts, name=where, kind=kind)


def _join(system: System, flat: Flat) -> None:
    """Connections, laws for those that transform, and constants for inputs that nothing feeds."""
    units = {
        (where, port.name): port.unit
        for where in flat.components
        for ports in (system.inputs[_safe(where)], system.outputs[_safe(where)])
        for port in ports
    }
    for where, part in flat.components.items():
        _refuse_unknown(system, where, part, flat.shown)
        for port in system.inputs[_safe(where)]:
            target, node = f"{_safe(where)}.{port.name}", (where, port.name)
            if not flat.is_fed(node):
                _hold(system, flat, target, node)
                continue
            feed = flat.feed(node, units)
            if not feed.is_output:
                value = flat.constant(feed.source)
                system.set(target, feed.change(0.0 if value is None else value))
                continue
            source = f"{_safe(feed.source[0])}.{feed.source[1]}"
            _connect(system, source, target, feed.change, flat.shown)


def _connect(system: System, source: str, target: str, change: Affine, shown: str) -> None:
    out = source.split(".", 1)
    if out[1] not in system.outputs[out[0]]:
        raise SetupError(f"{shown}: '{target}' is connected to '{source}', which is no output of '{out[0]}'")
    try:
        expected: Affine | None = Affine(*system.unit_change(source, target))
    except SetupError:
        expected = None
    try:
        if change == expected:
            system.connect(source, target)
        else:
            system.law(target, change, of=source, jacobian=change.jacobian)
    except SetupError as error:
        raise SetupError(f"{shown}: {error}") from None


def _hold(system: System, flat: Flat, target: str, node: Node) -> None:
    """An input that nothing feeds: its bound value, else the start value in the FMU's description, else 0."""
    value = flat.constant(node)
    if value is None:
        name, port = target.split(".", 1)
        variables = getattr(getattr(system.subsystems[name], "description", None), "variables", {})
        value = _numbers(variables[port].start if port in variables else None)
    system.set(target, value)


def _numbers(text: str | None) -> float | list[float]:
    """A start value as the model description writes it: a number, several, or a Boolean; 0 without one."""
    words = [{"true": "1", "false": "0"}.get(word, word) for word in (text or "0").split()]
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return 0.0
    return numbers[0] if len(numbers) == 1 else numbers


def _refuse_unknown(system: System, where: str, part: Component, shown: str) -> None:
    """Input and output connectors must be variables of the component."""
    known = {*system.inputs[_safe(where)].names, *system.outputs[_safe(where)].names}
    for connector in part.connectors.values():
        if connector.kind in ("input", "output", "inout") and connector.name not in known:
            raise SetupError(
                f"{shown}: '{part.file.name}' has no {connector.kind} '{connector.name}', which the component "
                f"'{where}' declares; it has {listed(sorted(known), quote=False)}"
            )


def _safe(name: str) -> str:
    """A component's name as that of a subsystem: addresses are split at their first dot."""
    return name.replace(".", "_")


def _described(
    path: Path,
    document: Document,
    system: System,
    given_method: MethodLike | None,
    step: float | Adaptive | None,
    t_end: float | None,
    rtol: float | None,
) -> Description:
    """The run: arguments first, then the annotation, then what suits the components."""
    run = document.run
    startup: Startup | None = None
    asked_here = rtol is not None or given_method == "auto"
    if asked_here:
        rtol = tolerance(given_method, step, rtol)
    try:
        if given_method is None and rtol is None and "method" in run:
            given_method = json.loads(run["method"])
            rtol = json.loads(run["rtol"]) if "rtol" in run else None
        method = None if given_method is None or given_method == "auto" else _method(given_method)
        is_open = rtol is not None or given_method == "auto"
        if step is None and not asked_here and "step" in run:
            given = json.loads(run["step"])
            step = named.step_control(given) if isinstance(given, Mapping) else given
        if "startup" in run:
            startup = named.startup(json.loads(run["startup"]))
        workers = int(run.get("workers", "1"))
    except (ValueError, SetupError) as error:
        raise SetupError(f"{path.name}: the annotation {ANNOTATION} cannot be used: {error}") from None
    if is_open:
        rtol = tolerance(given_method, step, rtol)
    elif method is None:
        plan = system.plan()
        rolls_back = all(has_capability(s, "rollback") for s in plan.subsystems)
        method = SemiImplicit(degree=1) if rolls_back else Jacobi(degree=1)
    if t_end is None:
        t_end = document.t_start + 1.0 if document.t_end is None else document.t_end
    if step is None and method is not None and not is_open and not method.chooses_step:
        step = (t_end - document.t_start) / 1000
    return Description(path, system, method, step, t_end, document.t_start, startup, workers, rtol=rtol)


def _method(given: MethodLike) -> Method:
    return given if isinstance(given, Method) else named.method(given)
