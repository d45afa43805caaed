"""`modelDescription.xml` of FMI 1.0 as the classes of `description.py`.

What FMI 1.0 says in other words is said in those of FMI 2.0: causality `internal` or `none` with variability
`parameter` is a parameter, `DirectDependency` of an output is an entry of ModelStructure, `Implementation` makes it a
co-simulation FMU, else it is one for model exchange. The states of model exchange have no names there, only a number
(`unnamed_states`).
"""

from __future__ import annotations

from xml.etree.ElementTree import Element

from cosolve.basics.wording import shown
from cosolve.errors import SetupError
from cosolve.fmu.description import CO_SIMULATION, MODEL_EXCHANGE, Description, Kind, Unknown, Variable
from cosolve.fmu.description_xml import (
    MAX_INDICATORS,
    REFERENCE,
    TYPES_2,
    kind_flags,
    library_name,
    read_experiment,
    read_nominal,
    unique_names,
)
from cosolve.fmu.xml_text import name_of, needed, truth, whole, word

_TAGS = ("Real", "Integer", "Boolean", "String", "Enumeration")
_CAUSALITIES = ("input", "output", "internal", "none")
_VARIABILITIES = ("constant", "parameter", "discrete", "continuous")
_ALIASES = ("noAlias", "alias", "negatedAlias")
_MAX_STATES = 10**7


def parse(root: Element, version: str) -> Description:
    """The whole of it; a `SetupError` says what is wrong with it."""
    types, items = _declared_types(root)
    elements = root.find("ModelVariables")
    every = [] if elements is None else list(elements)
    names = unique_names(every)
    variables: dict[str, Variable] = {}
    outputs: list[Unknown] = []
    enumerations: dict[str, dict[int, str]] = {}
    for element, name in zip(every, names, strict=True):
        variable, declared = _variable(element, name, types)
        variables[name] = variable
        if declared in items:
            enumerations[name] = items[declared]
        if variable.causality == "output":
            outputs.append(Unknown(name, _dependencies(element, name, set(names))))
    states = whole(root, "numberOfContinuousStates", "the model") or 0
    indicators = whole(root, "numberOfEventIndicators", "the model") or 0
    for count, what, limit in ((states, "states", _MAX_STATES), (indicators, "event indicators", MAX_INDICATORS)):
        if count > limit:
            raise SetupError(f"it has {count} {what}; up to {limit} are taken")
    notes = root.findall("VendorAnnotations/Tool")
    return Description(
        fmi=2,
        version=version,
        name=root.get("modelName", ""),
        token=root.get("guid", ""),
        kinds=_kinds(root),
        variables=variables,
        outputs=tuple(outputs),
        event_indicators=indicators,
        unnamed_states=states,
        description=root.get("description", ""),
        tool=root.get("generationTool", ""),
        author=root.get("author", ""),
        experiment=read_experiment(root.find("DefaultExperiment")),
        enumerations=enumerations,
        annotations=tuple(note.get("name", "") for note in notes),
    )


def _kinds(root: Element) -> dict[str, Kind]:
    identifier = library_name(root)
    implementation = root.find("Implementation")
    if implementation is None:
        return {MODEL_EXCHANGE: Kind(identifier)}
    for tag, own in (("CoSimulation_StandAlone", False), ("CoSimulation_Tool", True)):
        element = implementation.find(tag)
        if element is not None:
            capabilities = element.find("Capabilities")
            flags = {} if capabilities is None else kind_flags(capabilities)
            return {CO_SIMULATION: Kind(identifier, flags | ({"needsExecutionTool": "true"} if own else {}))}
    raise SetupError("its Implementation holds neither CoSimulation_StandAlone nor CoSimulation_Tool")


def _declared_types(root: Element) -> tuple[dict[str, dict[str, str]], dict[str, dict[int, str]]]:
    """Unit and nominal value of declared types; items of enumerations, which count from 1."""
    types: dict[str, dict[str, str]] = {}
    items: dict[str, dict[int, str]] = {}
    for element in root.findall("TypeDefinitions/Type"):
        name = name_of(element, "a declared type")
        inner = element[0] if len(element) else element
        types[name] = {key: value for key, value in inner.attrib.items() if key in ("unit", "nominal")}
        found = inner.findall("Item")
        if found:
            items[name] = {n: name_of(item, f"an item of '{shown(name)}'") for n, item in enumerate(found, 1)}
    return types, items


def _variable(element: Element, name: str, types: dict[str, dict[str, str]]) -> tuple[Variable, str]:
    """A variable, and the name of its declared type."""
    what = f"the variable '{shown(name)}'"
    inner = next((child for child in element if child.tag in _TAGS), None)
    if inner is None:
        raise SetupError(f"{what} has no type, one of {', '.join(_TAGS)}")
    declared = inner.get("declaredType", "")
    given = {**types.get(declared, {}), **inner.attrib}
    said = word(element, "causality", what, _CAUSALITIES) or "internal"
    variability = word(element, "variability", what, _VARIABILITIES) or "continuous"
    start = inner.get("start")
    causality = said if said in ("input", "output") else "local"
    if variability == "parameter" and causality == "local":
        causality = "calculatedParameter" if start is None else "parameter"
    if variability == "parameter":
        variability = "fixed"
    elif variability == "continuous" and inner.tag != "Real":
        variability = "discrete"
    exact = truth(inner.get("fixed") or "true", f"fixed of {what}")
    variable = Variable(
        name=name,
        reference=needed(element, "valueReference", what, 0, REFERENCE),
        type=TYPES_2.get(inner.tag, inner.tag),
        causality=causality,
        variability=variability,
        initial=None if start is None or causality == "input" else "exact" if exact else "approx",
        start=start,
        unit=given.get("unit", ""),
        nominal=read_nominal(given.get("nominal"), what),
        description=element.get("description", ""),
        negated=word(element, "alias", what, _ALIASES) == "negatedAlias",
    )
    return variable, declared


def _dependencies(element: Element, name: str, names: set[str]) -> tuple[str, ...] | None:
    """The inputs that an output depends on at once; None where it does not say."""
    direct = element.find("DirectDependency")
    if direct is None:
        return None
    found = tuple((child.text or "").strip() for child in direct.findall("Name"))
    for other in found:
        if other not in names:
            raise SetupError(f"the output '{shown(name)}' depends on '{shown(other)}', which is no variable")
    return found
