"""A `System` of FMUs as an SSP, whose annotation keeps method and step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from cosolve.accuracy.auto.choose import tolerance
from cosolve.errors import OutputFileError, SetupError
from cosolve.interface import System
from cosolve.io.assembly import Weighted
from cosolve.io.ssp.document import ANNOTATION, TOP, Affine
from cosolve.io.tables import method_table, step_table
from cosolve.method.named import MethodLike, as_method
from cosolve.stepsize import Adaptive
from cosolve.subsystem import Port, Subsystem
from cosolve.subsystem.port import Ports

_BASE = "http://ssp-standard.org/SSP1/SystemStructure"
_NAMESPACES = {
    "xmlns:ssd": f"{_BASE}Description",
    "xmlns:ssc": f"{_BASE}Common",
    "xmlns:ssv": f"{_BASE}ParameterValues",
}


def write_ssp(
    system: System,
    path: str | Path,
    *,
    method: MethodLike | None = None,
    step: float | Adaptive | None = None,
    rtol: float | None = None,
    t_end: float = 1.0,
    t_start: float = 0.0,
    version: Literal["1.0", "2.0"] = "1.0",
    fmus: Mapping[str, str | Path] | None = None,
) -> Path:
    """Write a system as an SSP; `read_ssp` returns a system that runs the same way.

    Parameters
    ----------
    system : System
        Its subsystems are FMUs. Connections and linear laws of one output can be written; other laws must become
        subsystems first.
    path : str or Path
        The file to write, ending in `.ssp`.
    method : Method, str, dict or None, default None
        Coupling method, kept in an annotation.
    step : float, Adaptive or None, default None
        Macro step in seconds, or error control, kept in an annotation.
    rtol : float or None, default None
        Wanted coupling error; what is not given of method and step is chosen when it runs.
    t_end : float, default 1.0
        End of the run in seconds.
    t_start : float, default 0.0
        Start of the run in seconds.
    version : {"1.0", "2.0"}, default "1.0"
        Version of SSP.
    fmus : mapping of str to path or None, default None
        FMUs that stand for other subsystems, for example from `export_fmu`.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    SetupError
        If something cannot be written.

    Examples
    --------
    >>> import cosolve as cs
    >>> clock = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    >>> cs.fmi.write_ssp(clock, "clock.ssp", method=cs.Jacobi(), step=0.1)
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: write_ssp: 'clock' is a Static; an SSP holds FMUs, so name one in fmus={'clock': ...}
    """
    path = Path(path)
    if version not in ("1.0", "2.0"):
        raise SetupError(f"write_ssp: version must be '1.0' or '2.0', not {version!r}")
    if path.suffix != ".ssp":
        raise SetupError(f"write_ssp: '{path}' must end in .ssp")
    files = {name: _file(name, subsystem, fmus or {}) for name, subsystem in system.subsystems.items()}
    content: dict[str, bytes] = {}
    sources: dict[str, str] = {}
    for name, file in files.items():
        data = file.read_bytes()
        same = next((inside for inside, there in content.items() if there == data), None)
        inside = same or f"resources/{file.stem}.fmu"
        if same is None and inside in content:
            inside = f"resources/{file.stem}-{sha256(data).hexdigest()[:8]}.fmu"
        content[inside], sources[name] = data, inside
    top = Element("ssd:SystemStructureDescription", {"version": version, "name": path.stem, **_NAMESPACES})
    structure = SubElement(top, "ssd:System", name=path.stem)
    _constants(structure, system, version)
    elements = SubElement(structure, "ssd:Elements")
    for name, subsystem in system.subsystems.items():
        _component(elements, name, subsystem, system, sources[name], version)
    _connections(structure, system)
    SubElement(top, "ssd:DefaultExperiment", startTime=repr(float(t_start)), stopTime=repr(float(t_end)))
    annotation = SubElement(SubElement(top, "ssd:Annotations"), "ssc:Annotation", type=ANNOTATION)
    rtol = tolerance(method, step, rtol)
    known = None if method is None or method == "auto" else method_table(as_method(method))
    run = {"method": json.dumps(known or "auto")}
    if rtol is not None:
        run["rtol"] = json.dumps(rtol)
    if step is not None:
        run["step"] = json.dumps(step_table(step))
    SubElement(annotation, "run", {"xmlns": "urn:cosolve:run", **run})
    indent(top)
    text = b'<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(top, "utf-8") + b"\n"
    _write(path, {TOP: text, **content})
    return path


def _file(name: str, subsystem: Subsystem, fmus: Mapping[str, str | Path]) -> Path:
    given = fmus.get(name, subsystem.model_file)
    if given is None:
        raise SetupError(
            f"write_ssp: '{name}' is a {type(subsystem).__name__}; an SSP holds FMUs, so name one in "
            f"fmus={{{name!r}: ...}}"
        )
    file = Path(given)
    if not file.is_file():
        raise SetupError(f"write_ssp: the FMU of '{name}' is not a file: '{file}'")
    return file


def _component(elements: Element, name: str, subsystem: Subsystem, system: System, source: str, version: str) -> None:
    component = SubElement(elements, "ssd:Component", name=name, type="application/x-fmu-sharedlibrary", source=source)
    connectors = SubElement(component, "ssd:Connectors")
    for kind, ports in (("input", system.inputs[name]), ("output", system.outputs[name])):
        for port in ports:
            connector = SubElement(connectors, "ssd:Connector", name=port.name, kind=kind)
            _type(connector, port, version)
    values = {key: value for key, value in subsystem.given_values.items() if key not in system.inputs[name]}
    if values:  # inputs have their values from the system
        _values(SubElement(component, "ssd:ParameterBindings"), values, version)


def _type(connector: Element, port: Port, version: str) -> None:
    SubElement(connector, "ssc:Real" if version == "1.0" else "ssc:Float64")
    if port.size is None:
        return
    if version == "1.0":
        raise SetupError(f"write_ssp: '{port.name}' is an array, which SSP 1.0 has not; write version='2.0'")
    SubElement(connector, "ssc:Dimension", size=str(port.size))


def _constants(structure: Element, system: System, version: str) -> None:
    """Inputs held at a constant are parameter values of the whole system."""
    for address in (*system._drivers(), *(one.subsystem for one in system._changes.listed)):
        raise SetupError(
            f"write_ssp: '{address}' changes with time by itself, which an SSP cannot hold; make it a subsystem (a "
            "Static without inputs, exported as an FMU)"
        )
    values: dict[str, Any] = {}
    for address, constant in system._constants.items():
        name, port = _whole(system.inputs, address)
        scalar = system.inputs[name].by_name[port].size is None
        values[address] = float(constant[0]) if scalar else constant
    if values:
        _values(SubElement(structure, "ssd:ParameterBindings"), values, version)


def _values(bindings: Element, values: Mapping[str, Any], version: str) -> None:
    inline = SubElement(SubElement(bindings, "ssd:ParameterBinding"), "ssd:ParameterValues")
    listed = SubElement(SubElement(inline, "ssv:ParameterSet", version=version, name="values"), "ssv:Parameters")
    for name, value in values.items():
        parameter = SubElement(listed, "ssv:Parameter", name=name)
        if isinstance(value, (bool, np.bool_)):
            SubElement(parameter, "ssv:Boolean", value="true" if value else "false")
        elif isinstance(value, str):
            SubElement(parameter, "ssv:String", value=value)
        elif isinstance(value, (int, np.integer)):
            SubElement(parameter, "ssv:Integer", value=str(int(value)))
        else:
            numbers = np.ravel(np.asarray(value, dtype=np.float64))
            SubElement(parameter, "ssv:Real", value=" ".join(repr(float(n)) for n in numbers))
            if np.ndim(value):
                SubElement(parameter, "ssc:Dimension", size=str(len(numbers)))


def _connections(structure: Element, system: System) -> None:
    connections = SubElement(structure, "ssd:Connections")
    for join in system._joins:
        if join.kind == "connect":
            change: Affine | None = Affine()
        else:
            change = _linear(join)
        if change is None:
            raise SetupError(
                f"write_ssp: {join.label} cannot be written; an SSP has linear functions of one output only; "
                "make it a subsystem (a Static, exported as an FMU)"
            )
        for _, _, drives in join.variables:
            for target, factor in drives.items():
                last = Affine(factor, join.offsets.get(target, 0.0))
                _connection(connections, system, join.of[0], target, change.then(last))


def _whole(ports: Mapping[str, Ports], address: str) -> tuple[str, str]:
    """Subsystem and port of an address; refuses elements of arrays, which an SSP cannot name."""
    name, port = address.split(".", 1)
    if port not in ports[name]:
        raise SetupError(
            f"write_ssp: '{address}' is an element of an array, and an SSP connects whole connectors only; join the "
            "whole ports by a subsystem in between (a Static, exported as an FMU)"
        )
    return name, port


def _linear(join: Any) -> Affine | None:
    """The linear function behind a law of one output, or None."""
    if join.kind != "law" or len(join.of) != 1 or len(join.variables) != 1:
        return None
    if isinstance(join.function, Affine):
        return join.function
    return Affine(join.function.coefficients[0]) if isinstance(join.function, Weighted) else None


def _connection(connections: Element, system: System, source: str, target: str, change: Affine) -> None:
    ends: dict[str, str] = {}
    for side, address, ports in (("start", source, system.outputs), ("end", target, system.inputs)):
        name, port = _whole(ports, address)
        ends |= {f"{side}Element": name, f"{side}Connector": port}
    connection = SubElement(connections, "ssd:Connection", ends)
    if not change.is_identity:
        connection.set("suppressUnitConversion", "true")  # the factor has it all
        SubElement(connection, "ssc:LinearTransformation", factor=repr(change.factor), offset=repr(change.offset))


def _write(path: Path, content: Mapping[str, bytes]) -> None:
    try:
        with ZipFile(path, "w") as file:
            for inside, data in content.items():  # no time stamps: same system, same bytes
                file.writestr(ZipInfo(inside), data, ZIP_STORED if inside.endswith(".fmu") else ZIP_DEFLATED)
    except OSError as error:
        raise OutputFileError(f"write_ssp: '{path}' cannot be written: {error.strerror or error}") from None
