"""The elements of `modelDescription.xml`, of FMI 2.0 and 3.0, as the classes of `description.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from xml.etree.ElementTree import Element

from cosolve.basics.wording import shown
from cosolve.errors import SetupError
from cosolve.fmu import archive
from cosolve.fmu.description import (
    CO_SIMULATION,
    FLOATS,
    INTEGERS,
    MODEL_EXCHANGE,
    Description,
    Kind,
    Unknown,
    Variable,
    read_units,
    refuse_endless,
)
from cosolve.fmu.xml_text import as_number, as_whole, name_of, needed, number, truth, whole, word

_KINDS = {CO_SIMULATION: "CoSimulation", MODEL_EXCHANGE: "ModelExchange", "scheduled execution": "ScheduledExecution"}
TYPES_2 = {"Real": "Float64", "Integer": "Int32"}
#: FMI 2.0 capability flags under their FMI 3.0 names
_FLAGS_2 = {
    "canGetAndSetFMUstate": "canGetAndSetFMUState",
    "canSerializeFMUstate": "canSerializeFMUState",
    "providesDirectionalDerivative": "providesDirectionalDerivatives",
}
_TRUTHS = (
    *("needsExecutionTool", "canBeInstantiatedOnlyOncePerProcess", "canGetAndSetFMUState"),
    *("canSerializeFMUState", "providesDirectionalDerivatives", "providesAdjointDerivatives"),
    *("providesPerElementDependencies", "needsCompletedIntegratorStep", "completedIntegratorStepNotNeeded"),
    *("providesEvaluateDiscreteStates", "canHandleVariableCommunicationStepSize", "canInterpolateInputs"),
    *("canReturnEarlyAfterIntermediateUpdate", "mightReturnEarlyFromDoStep", "providesIntermediateUpdate"),
    "hasEventMode",
)
_CAUSALITIES = (
    *("parameter", "calculatedParameter", "input", "output", "local", "independent", "structuralParameter"),
    "dependent",
)
_VARIABILITIES = ("constant", "fixed", "tunable", "discrete", "continuous")
_INITIALS = ("exact", "approx", "calculated")
#: More are a mistake, and would ask for gigabytes before anything can be said about them.
MAX_INDICATORS = 10**6
REFERENCE = 2**32 - 1  # value references are unsigned numbers of 32 bits


def parse(root: Element, fmi: int, version: str) -> Description:
    """The whole of it; a `SetupError` says what is wrong with it."""
    kinds = {}
    for kind, tag in _KINDS.items():
        element = root.find(tag)
        if element is not None:
            kinds[kind] = _kind(element, fmi)
    types, items = _declared_types(root)
    elements = root.find("ModelVariables")
    if elements is None:
        raise SetupError("it has no ModelVariables")
    every = list(elements)
    names = unique_names(every)
    variables, declared = (_variables_2 if fmi == 2 else _variables_3)(every, names, types)
    structure = root.find("ModelStructure")
    outputs, derivatives, initial, indicators = (
        (_structure_2 if fmi == 2 else _structure_3)(structure, names, variables)
        if structure is not None
        else ((), (), (), 0)
    )
    if fmi == 2:
        indicators = whole(root, "numberOfEventIndicators", "the model") or 0
    if indicators > MAX_INDICATORS:
        raise SetupError(f"it has {indicators} event indicators; up to {MAX_INDICATORS} are taken")
    if MODEL_EXCHANGE in kinds:
        _refuse_bad_states(derivatives, variables)
    logs = root.find("LogCategories")
    notes = [*root.findall("VendorAnnotations/Tool"), *root.findall("Annotations/Annotation")]
    return Description(
        fmi=fmi,
        version=version,
        name=root.get("modelName", ""),
        token=root.get("guid" if fmi == 2 else "instantiationToken", ""),
        kinds=kinds,
        variables=variables,
        outputs=outputs,
        derivatives=derivatives,
        initial_unknowns=initial,
        event_indicators=indicators,
        description=root.get("description", ""),
        tool=root.get("generationTool", ""),
        author=root.get("author", ""),
        experiment=read_experiment(root.find("DefaultExperiment")),
        enumerations={name: items[kind] for name, kind in declared.items() if kind in items},
        log_categories=() if logs is None else tuple(entry.get("name", "") for entry in logs),
        annotations=tuple(note.get("name") or note.get("type") or "" for note in notes),
        units=read_units(root),
    )


def _kind(element: Element, fmi: int) -> Kind:
    """A kind of FMU with its flags."""
    return Kind(library_name(element), kind_flags(element, _FLAGS_2 if fmi == 2 else {}))


def library_name(element: Element) -> str:
    """The model identifier, which is the name of the library."""
    identifier = element.get("modelIdentifier", "").strip()
    if not archive.is_file_name(identifier):
        raise SetupError(
            f"{element.tag} has the modelIdentifier '{shown(identifier)}', but that is the name of a library in the "
            "FMU, without folders"
        )
    return identifier


def kind_flags(element: Element, names: Mapping[str, str] = _FLAGS_2) -> dict[str, str]:
    """Capability flags by their FMI 3.0 names, Booleans as `true` and `false` however they are written."""
    flags = {names.get(key, key): value for key, value in element.attrib.items()}
    for key in _TRUTHS:
        if flags.get(key, "").strip():
            flags[key] = "true" if truth(flags[key], f"{key} of {element.tag}") else "false"
        else:
            flags.pop(key, None)
    for key in ("maxOutputDerivativeOrder", "recommendedIntermediateInputSmoothness"):
        if key in flags:
            flags[key] = str(as_whole(flags[key] or "0", f"{key} of {element.tag}"))
    return flags


def read_experiment(element: Element | None) -> dict[str, float]:
    """Start time, stop time, tolerance and step that the FMU was made for."""
    if element is None:
        return {}
    found = {}
    for key in ("startTime", "stopTime", "tolerance", "stepSize"):
        value = number(element, key, "DefaultExperiment")
        if value is not None and isfinite(value):
            found[key] = value
    return found


def _declared_types(root: Element) -> tuple[dict[str, dict[str, str]], dict[str, dict[int, str]]]:
    """Attributes (unit, nominal ...) of declared types, and the items of enumerations."""
    types: dict[str, dict[str, str]] = {}
    items: dict[str, dict[int, str]] = {}
    for element in root.findall("TypeDefinitions/*"):
        inner = element[0] if element.tag == "SimpleType" and len(element) else element
        name = name_of(element, "a declared type")
        types[name] = {key: value for key, value in inner.attrib.items() if key in ("unit", "nominal")}
        what = f"an item of the type '{shown(name)}'"
        found = {needed(item, "value", what, -(2**63)): name_of(item, what) for item in inner.findall("Item")}
        if found:
            items[name] = found
    return types, items


def unique_names(every: list[Element]) -> list[str]:
    """The names in the order of the file, to which FMI 2.0 counts; with one of them twice the count has no meaning."""
    names = [name_of(element, f"variable number {n}") for n, element in enumerate(every, 1)]
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise SetupError(f"it has two variables called '{shown(twice)}', and names are unique in FMI")
    return names


_Types = dict[str, dict[str, str]]
_Found = tuple[dict[str, Variable], dict[str, str]]
_TAGS_2 = ("Real", "Integer", "Boolean", "String", "Enumeration")
_TAGS_3 = (*FLOATS, *INTEGERS, "Boolean", "String", "Binary", "Clock")


def _variables_2(every: list[Element], names: list[str], types: _Types) -> _Found:
    variables: dict[str, Variable] = {}
    declared: dict[str, str] = {}
    for element, name in zip(every, names, strict=True):
        what = f"the variable '{shown(name)}'"
        inner = next((child for child in element if child.tag in _TAGS_2), None)
        if inner is None:
            raise SetupError(f"{what} has no type, one of {', '.join(_TAGS_2)}")
        kind = inner.get("declaredType", "")
        given = {**types.get(kind, {}), **inner.attrib}
        derivative = whole(inner, "derivative", what, 1, len(names))
        variables[name] = Variable(
            name=name,
            reference=needed(element, "valueReference", what, 0, REFERENCE),
            type=TYPES_2.get(inner.tag, inner.tag),
            causality=word(element, "causality", what, _CAUSALITIES) or "local",
            variability=word(element, "variability", what, _VARIABILITIES)
            or ("continuous" if inner.tag == "Real" else "discrete"),
            initial=word(element, "initial", what, _INITIALS),
            start=inner.get("start"),
            unit=given.get("unit", ""),
            nominal=read_nominal(given.get("nominal"), what),
            description=element.get("description", ""),
            derivative_of=None if derivative is None else names[derivative - 1],
        )
        if kind:
            declared[name] = kind
    return variables, declared


def _variables_3(every: list[Element], names: list[str], types: _Types) -> _Found:
    by_reference: dict[int, Element] = {}
    for element, name in zip(every, names, strict=True):
        reference = needed(element, "valueReference", f"the variable '{shown(name)}'", 0, REFERENCE)
        other = by_reference.setdefault(reference, element)
        if other is not element:
            raise SetupError(
                f"'{shown(other.get('name'))}' and '{shown(name)}' have the value reference {reference} both, and "
                "value references are unique in FMI 3.0"
            )
    variables: dict[str, Variable] = {}
    declared: dict[str, str] = {}
    for (reference, element), name in zip(by_reference.items(), names, strict=True):
        what = f"the variable '{shown(name)}'"
        if element.tag not in _TAGS_3:
            raise SetupError(f"{what} is a <{shown(element.tag)}>, which is no type of FMI 3.0")
        kind = element.get("declaredType", "")
        given = {**types.get(kind, {}), **element.attrib}
        dimensions, shape = _dimensions(element, by_reference, what)
        derivative = whole(element, "derivative", what, 0, REFERENCE)
        if derivative is not None and derivative not in by_reference:
            raise SetupError(f"{what} is the derivative of the value reference {derivative}, which no variable has")
        starts = [child.get("value", "") for child in element.findall("Start")]  # strings and binaries
        variables[name] = Variable(
            name=name,
            reference=reference,
            type=element.tag,
            causality=word(element, "causality", what, _CAUSALITIES) or "local",
            variability=word(element, "variability", what, _VARIABILITIES)
            or ("continuous" if element.tag in FLOATS else "discrete"),
            initial=word(element, "initial", what, _INITIALS),
            start=starts[0] if starts else element.get("start"),
            unit=given.get("unit", ""),
            nominal=read_nominal(given.get("nominal"), what),
            description=element.get("description", ""),
            derivative_of=None if derivative is None else by_reference[derivative].attrib["name"],
            dimensions=dimensions,
            shape=shape,
            can_set_between=truth(element.get("intermediateUpdate") or "false", f"intermediateUpdate of {what}"),
        )
        if kind:
            declared[name] = kind
    return variables, declared


def _dimensions(
    element: Element, by_reference: Mapping[int, Element], what: str
) -> tuple[tuple[int | str, ...], tuple[int, ...]]:
    """What says how long each dimension is, and how long it is."""
    dimensions: list[int | str] = []
    shape: list[int] = []
    for dimension in element.findall("Dimension"):
        fixed = whole(dimension, "start", f"a dimension of {what}")
        if fixed is not None:
            dimensions.append(fixed)
            shape.append(fixed)
            continue
        reference = needed(dimension, "valueReference", f"a dimension of {what}", 0, REFERENCE)
        holder = by_reference.get(reference)
        if holder is None:
            raise SetupError(f"a dimension of {what} is the value reference {reference}, which no variable has")
        name = holder.attrib["name"]
        dimensions.append(name)
        shape.append(needed(holder, "start", f"'{shown(name)}', a dimension of {what},"))
    refuse_endless(what, shape)
    return tuple(dimensions), tuple(shape)


def read_nominal(text: str | None, what: str) -> float:
    """The first nominal value (arrays may have several); 1 where there is none that can scale anything."""
    words = (text or "").split()
    value = as_number(words[0], f"nominal of {what}") if words else None
    return abs(value) if value and isfinite(value) else 1.0


def _refuse_bad_states(derivatives: tuple[Unknown, ...], variables: Mapping[str, Variable]) -> None:
    """States and derivatives go to and from the FMU as vectors: there must be one state for each derivative."""
    seen = set()
    for unknown in derivatives:
        variable = variables[unknown.name]
        what = f"the derivative '{shown(unknown.name)}' in ModelStructure"
        if unknown.name in seen:
            raise SetupError(f"{what} stands there twice")
        seen.add(unknown.name)
        if variable.derivative_of is None:
            raise SetupError(f"{what} does not say what it is the derivative of")
        if variables[variable.derivative_of].shape != variable.shape:
            raise SetupError(f"{what} and its state '{shown(variable.derivative_of)}' have different shapes")


_Structure = tuple[tuple[Unknown, ...], tuple[Unknown, ...], tuple[Unknown, ...], int]


def _structure_2(structure: Element, names: list[str], _: Mapping[str, Variable]) -> _Structure:
    def named(text: str, what: str) -> str:
        return names[as_whole(text, what, 1, len(names)) - 1]

    def unknowns(tag: str) -> tuple[Unknown, ...]:
        return tuple(
            _unknown(element, "index", tag, named)
            for group in structure.findall(tag)
            for element in group.findall("Unknown")
        )

    return unknowns("Outputs"), unknowns("Derivatives"), unknowns("InitialUnknowns"), 0


def _structure_3(structure: Element, names: list[str], variables: Mapping[str, Variable]) -> _Structure:
    by_reference = {variables[name].reference: name for name in names}

    def named(text: str, what: str) -> str:
        reference = as_whole(text, what, 0, REFERENCE)
        if reference not in by_reference:
            raise SetupError(f"{what} is {reference}, which is the value reference of no variable")
        return by_reference[reference]

    def unknowns(tag: str) -> tuple[Unknown, ...]:
        return tuple(_unknown(element, "valueReference", tag, named) for element in structure.findall(tag))

    indicators = unknowns("EventIndicator")
    count = sum(variables[unknown.name].length for unknown in indicators)
    return unknowns("Output"), unknowns("ContinuousStateDerivative"), unknowns("InitialUnknown"), count


def _unknown(element: Element, key: str, tag: str, named: Callable[[str, str], str]) -> Unknown:
    name = named(element.get(key, ""), f"{key} of one of the {tag} in ModelStructure")
    what = f"dependencies of '{shown(name)}' in {tag}"
    said, kinds = element.get("dependencies"), element.get("dependenciesKind")
    depends = None if said is None else tuple(named(part, f"one of the {what}") for part in said.split())
    if kinds is None:
        return Unknown(name, depends)
    split = tuple(kinds.split())
    if len(split) != len(depends or ()):
        raise SetupError(f"there are {len(depends or ())} {what}, but {len(split)} dependenciesKind")
    return Unknown(name, depends, split if depends is not None else None)
