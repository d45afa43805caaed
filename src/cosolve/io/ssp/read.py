"""A system structure (.ssp, .ssd) as a `System` with its run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cosolve.accuracy.auto.choose import tolerance
from cosolve.basics.checks import as_path
from cosolve.basics.error_location import complaints_about
from cosolve.basics.wording import listed, suggest
from cosolve.errors import SetupError, warn
from cosolve.fmu.places import found_file, watching
from cosolve.interface import System
from cosolve.io import named
from cosolve.io.ssp.document import ANNOTATION, Affine, Component, Document, read_document
from cosolve.io.ssp.flatten import FlatStructure, Node
from cosolve.io.system_file import Description
from cosolve.method import Jacobi, SemiImplicit
from cosolve.method.named import MethodLike, as_method
from cosolve.options import RunOptions
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
    values: Mapping[str, Any] | None = None,
    fmu_options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Description:
    """Read an SSP.

    Parameters
    ----------
    path : str or Path
        An `.ssp` archive or a bare `.ssd`.
    method : Method, str, dict or None, default None
        Coupling method. None: that of the annotation that `write_ssp` writes; else `SemiImplicit` if all FMUs have
        rollback, `Jacobi` if not.
    step : float, Adaptive or None, default None
        Macro step in seconds, or error control. None: that of the annotation, else a thousandth of the run.
    rtol : float or None, default None
        Wanted coupling error; what is not given of method and step is then chosen when it runs, see `choose`.
    t_end : float or None, default None
        End of the run in seconds. None: that of the DefaultExperiment.
    component : callable or None, default None
        `component(source, name, parameters)` makes the subsystem of a component. None: `load_fmu`.
    variant : str or None, default None
        Another `.ssd` in the archive.
    values : mapping of str to value or None, default None
        Parameters and start values by address, as in `wheel.mass`, in place of those in the file.
    fmu_options : mapping of str to mapping or None, default None
        Further arguments of `load_fmu` by component; those under "" go to all.

    Returns
    -------
    Description
        `system`, `method`, `step`, `t_start`, `t_end`; `run()` simulates it.

    Raises
    ------
    SetupError
        If the file is wrong or a component cannot be loaded.

    Notes
    -----
    Nested systems become flat: the component `inner` of the system `sub` is the subsystem `sub/inner`; dots in names of
    components become underscores. Parameter bindings, mappings, linear transformations and unit conversions are
    applied. Inputs that nothing feeds are held at their bound or start value. What is left out is said in a warning.

    References
    ----------
    .. [1] Modelica Association, System Structure and Parameterization, versions 1.0 and 2.0.

    Examples
    --------
    >>> import cosolve as cs
    >>> cs.fmi.read_ssp("missing.ssp")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: there is no file 'missing.ssp'; give the path of an SSP
    """
    path = Path(found_file(as_path("read_ssp", path)))
    document = read_document(path, variant)
    for note in (*document.notes, *(document.step_notes if step is None and "step" not in document.run else ())):
        warn(note, UserWarning)
    flat = FlatStructure(document.structure, path.name)
    subsystems = {}
    of_components = _by_component(values or {}, flat)
    with watching():  # its FMUs are in it: no other caller needs them
        for where, part in flat.components.items():
            options = {**(fmu_options or {}).get("", {}), **(fmu_options or {}).get(_safe(where), {})}
            subsystems[_safe(where)] = _made(part, where, flat, component, of_components[where], options)
    if not subsystems:
        raise SetupError(f"{path.name}: there are no components in it")
    if len(subsystems) < len(flat.components):
        raise SetupError(f"{path.name}: two components have names that differ in dots only; rename one of them")
    system = System(subsystems)
    _join(system, flat)
    given = method if method is None or method == "auto" else as_method(method)
    return _described(path, document, system, given, step, t_end, rtol)


def _by_component(values: Mapping[str, Any], flat: FlatStructure) -> dict[str, dict[str, Any]]:
    """Values by address, sorted by component."""
    found: dict[str, dict[str, Any]] = {where: {} for where in flat.components}
    for address, value in values.items():
        where = next((where for where in found if address.startswith(f"{_safe(where)}.")), None)
        if where is None:
            hint = suggest(address.partition(".")[0], [_safe(where) for where in found])
            raise SetupError(f"{address}={value}: write it as COMPONENT.NAME; {hint}")
        found[where][address.removeprefix(f"{_safe(where)}.")] = value
    return found


def _made(
    part: Component,
    where: str,
    flat: FlatStructure,
    component: Factory | None,
    values: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Subsystem:
    parameters = {**flat.parameters(where), **values}
    with complaints_about(f"{flat.shown}: the component '{where}'"):
        if component is not None:
            return component(part.file, where, parameters)
        return _fmu(part, where, parameters, options)


def _fmu(part: Component, where: str, parameters: Mapping[str, Any], options: Mapping[str, Any]) -> Subsystem:
    from cosolve.fmu.archive import unpack
    from cosolve.fmu.description import read_description
    from cosolve.fmu.load import load_fmu

    variables = read_description(unpack(part.file)).variables
    fixed = ("parameter", "structuralParameter")
    starts = {k: v for k, v in parameters.items() if k in variables and variables[k].causality not in fixed}
    given = {k: v for k, v in parameters.items() if k not in starts}
    kind = _KINDS.get(part.implementation or "")
    return load_fmu(part.file, parameters=given, start=starts, name=where, kind=kind, **options)


def _join(system: System, flat: FlatStructure) -> None:
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
    with complaints_about(shown):
        if change == expected:
            system.connect(source, target)
        else:
            system.law(target, change, of=source, jacobian=change.jacobian)


def _hold(system: System, flat: FlatStructure, target: str, node: Node) -> None:
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
        method = None if given_method is None or given_method == "auto" else as_method(given_method, path.parent)
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
    given = {"method": method, "step": step, "startup": startup, "workers": workers, "rtol": rtol}
    return Description(path, system, RunOptions(t_end=t_end, t_start=document.t_start, **given))
