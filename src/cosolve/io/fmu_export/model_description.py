"""The modelDescription.xml of an exported FMU, for FMI 2.0 and 3.0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from cosolve.io.fmu_export.interface import Variable


@dataclass(frozen=True)
class Facts:
    """What the description says besides the variables."""

    name: str
    identifier: str
    token: str
    description: str
    tool: str
    saves: bool
    serialises: bool
    step: float | None
    #: for outputs that react at once to certain inputs only: the references of these; others are not said
    dependencies: Mapping[int, Sequence[int]] = field(default_factory=dict)


def model_description(version: str, facts: Facts, variables: Sequence[Variable]) -> bytes:
    """The file's content."""
    root = _root(version, facts)
    kind = SubElement(root, "CoSimulation", modelIdentifier=facts.identifier, needsExecutionTool="true")
    state, serialise = ("FMUstate", "FMUstate") if version == "2.0" else ("FMUState", "FMUState")
    kind.set("canHandleVariableCommunicationStepSize", "true")
    kind.set(f"canGetAndSet{state}", _flag(facts.saves))
    kind.set(f"canSerialize{serialise}", _flag(facts.serialises))
    units = sorted({v.unit for v in variables if v.unit})
    if units:
        definitions = SubElement(root, "UnitDefinitions")
        for unit in units:
            SubElement(definitions, "Unit", name=unit)
    categories = SubElement(root, "LogCategories")
    for category in ("logStatusWarning", "logStatusDiscard", "logStatusError", "logStatusFatal", "logAll"):
        SubElement(categories, "Category", name=category)
    if facts.step is not None:
        SubElement(root, "DefaultExperiment", stepSize=repr(facts.step))
    (_variables_2 if version == "2.0" else _variables_3)(root, variables, facts.dependencies)
    indent(root)
    text: bytes = tostring(root, "utf-8")
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + text + b"\n"


def _root(version: str, facts: Facts) -> Element:
    token = "guid" if version == "2.0" else "instantiationToken"
    return Element(
        "fmiModelDescription",
        {
            "fmiVersion": version,
            "modelName": facts.name,
            token: facts.token,
            "description": facts.description,
            "generationTool": facts.tool,
            "variableNamingConvention": "structured",
        },
    )


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _attributes(variable: Variable) -> dict[str, str]:
    return {
        "name": variable.name,
        "valueReference": str(variable.reference),
        "causality": variable.causality,
        "variability": "fixed" if variable.causality == "parameter" else "continuous",
    }


def _variables_2(root: Element, variables: Sequence[Variable], depends: Mapping[int, Sequence[int]]) -> None:
    listed = SubElement(root, "ModelVariables")
    time = SubElement(listed, "ScalarVariable", name="time", valueReference="0", causality="independent")
    time.set("variability", "continuous")
    SubElement(time, "Real")
    for variable in variables:
        element = SubElement(listed, "ScalarVariable", _attributes(variable))
        real = SubElement(element, "Real", {"unit": variable.unit} if variable.unit else {})
        if variable.start is not None:
            real.set("start", repr(variable.start))
    structure = SubElement(root, "ModelStructure")
    places = {v.reference: place for place, v in enumerate(variables, start=2)}
    outputs = [v.reference for v in variables if v.causality == "output"]
    for part in ("Outputs", "InitialUnknowns") if outputs else ():
        unknowns = SubElement(structure, part)
        for reference in outputs:
            unknown = SubElement(unknowns, "Unknown", index=str(places[reference]))
            if part == "Outputs" and reference in depends:
                unknown.set("dependencies", " ".join(str(places[r]) for r in depends[reference]))


def _variables_3(root: Element, variables: Sequence[Variable], depends: Mapping[int, Sequence[int]]) -> None:
    listed = SubElement(root, "ModelVariables")
    SubElement(listed, "Float64", name="time", valueReference="0", causality="independent", variability="continuous")
    for variable in variables:
        element = SubElement(listed, "Float64", _attributes(variable))
        if variable.unit:
            element.set("unit", variable.unit)
        if variable.start is not None:
            starts = variable.start if isinstance(variable.start, tuple) else (variable.start,)
            element.set("start", " ".join(map(repr, starts)))
        if variable.size is not None:
            SubElement(element, "Dimension", start=str(variable.size))
    structure = SubElement(root, "ModelStructure")
    for part in ("Output", "InitialUnknown"):
        for variable in variables:
            if variable.causality == "output":
                unknown = SubElement(structure, part, valueReference=str(variable.reference))
                if part == "Output" and variable.reference in depends:
                    unknown.set("dependencies", " ".join(map(str, depends[variable.reference])))
