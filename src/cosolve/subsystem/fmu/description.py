"""What an FMU says of itself: `modelDescription.xml` of FMI 2.0 and 3.0 in one form.

Type names and capability names are those of FMI 3.0 for both versions (`Real` is `Float64`, `Integer` is `Int32`). The
XML is read here and not by FMPy, whose flags for FMI 3.0 derivatives are not reliable; `inspect_fmu` shows what FMPy's
validation says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from cosolve.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

CO_SIMULATION, MODEL_EXCHANGE = "co-simulation", "model exchange"

_KINDS = {CO_SIMULATION: "CoSimulation", MODEL_EXCHANGE: "ModelExchange", "scheduled execution": "ScheduledExecution"}
_TYPES_2 = {"Real": "Float64", "Integer": "Int32"}
#: FMI 2.0 capability flags under their FMI 3.0 names
_FLAGS_2 = {
    "canGetAndSetFMUstate": "canGetAndSetFMUState",
    "canSerializeFMUstate": "canSerializeFMUState",
    "providesDirectionalDerivative": "providesDirectionalDerivatives",
}
FLOATS = ("Float64", "Float32")
INTEGERS = ("Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64", "Enumeration")


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable. `start` is text as it stands in the file; `shape` is () for a scalar."""

    name: str
    reference: int
    type: str
    causality: str = "local"
    variability: str = "continuous"
    initial: str | None = None
    start: str | None = None
    unit: str = ""
    nominal: float = 1.0
    description: str = ""
    derivative_of: str | None = None
    #: per dimension: its length, or the name of the structural parameter that holds it
    dimensions: tuple[int | str, ...] = ()
    shape: tuple[int, ...] = ()
    can_set_between: bool = False  # FMI 3.0: may be set in intermediate updates

    @property
    def length(self) -> int:
        """How many numbers it holds."""
        count = 1
        for n in self.shape:
            count *= n
        return count

    @property
    def is_float(self) -> bool:
        """True for real numbers."""
        return self.type in FLOATS


@dataclass(frozen=True, slots=True)
class Unknown:
    """An entry of ModelStructure; `dependencies` None means that nothing is said: on everything, perhaps."""

    name: str
    dependencies: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Kind:
    """One of co-simulation, model exchange, scheduled execution: the library's name and its capability flags."""

    identifier: str
    flags: Mapping[str, str] = field(default_factory=dict)

    def has(self, flag: str) -> bool:
        """A Boolean flag, by its FMI 3.0 name; absent is false.

        >>> Kind("m", {"canInterpolateInputs": "true"}).has("canInterpolateInputs")
        True
        """
        return self.flags.get(flag, "false").strip() in ("true", "1")

    def number(self, flag: str) -> int:
        """A whole-number flag; absent is 0."""
        return int(self.flags.get(flag, "0"))


@dataclass(frozen=True)
class Description:
    """The model description. `variables` keeps the order of the file."""

    fmi: int
    version: str
    name: str
    token: str
    kinds: Mapping[str, Kind]
    variables: Mapping[str, Variable]
    outputs: tuple[Unknown, ...] = ()
    derivatives: tuple[Unknown, ...] = ()
    initial_unknowns: tuple[Unknown, ...] = ()
    event_indicators: int = 0
    description: str = ""
    tool: str = ""
    author: str = ""
    experiment: Mapping[str, float] = field(default_factory=dict)  # startTime, stopTime, tolerance, stepSize
    enumerations: Mapping[str, Mapping[int, str]] = field(default_factory=dict)  # variable -> value -> item
    log_categories: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()

    def of(self, *causalities: str) -> list[Variable]:
        """The variables with one of these causalities."""
        return [v for v in self.variables.values() if v.causality in causalities]

    @property
    def states(self) -> list[Variable]:
        """Continuous states, in the order of their derivatives in ModelStructure."""
        found = []
        for unknown in self.derivatives:
            state = self.variables[unknown.name].derivative_of
            if state is not None:
                found.append(self.variables[state])
        return found


def read_description(folder: str | Path, sizes: Mapping[str, int] | None = None) -> Description:
    """The model description in the folder of an unpacked FMU.

    `sizes` gives values to structural parameters (FMI 3.0), on which the shapes of arrays may depend.
    """
    path = Path(folder) / "modelDescription.xml"
    read = _read(path, path.stat().st_mtime_ns)
    if not sizes:
        return read
    return _resized(read, sizes)


@lru_cache(maxsize=64)
def _read(path: Path, changed: int) -> Description:
    text = path.read_bytes()
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:  # no FMU needs one, and entities can grow without limit
        raise SetupError(
            "modelDescription.xml defines a document type of its own, which FMI does not have; it is refused"
        )
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise SetupError(f"modelDescription.xml cannot be read as XML: {error}; export the FMU again") from None
    version = root.get("fmiVersion", "")
    if root.tag != "fmiModelDescription" or version.partition(".")[0] not in ("2", "3"):
        raise SetupError(
            f"FMI {version or '?'} is not supported; export the FMU for FMI 2.0 or 3.0"
            if root.tag == "fmiModelDescription"
            else f"modelDescription.xml starts with <{root.tag}>, not with <fmiModelDescription>"
        )
    try:
        return _parse(root, int(version[0]), version)
    except (KeyError, ValueError, IndexError) as error:
        what = f"{error}" if isinstance(error, SetupError) else f"{type(error).__name__} {error}"
        raise SetupError(f"modelDescription.xml is not valid: {what}; export the FMU again") from None


def _parse(root: ElementTree.Element, fmi: int, version: str) -> Description:
    kinds = {}
    for kind, tag in _KINDS.items():
        element = root.find(tag)
        if element is not None:
            flags = {_FLAGS_2.get(key, key) if fmi == 2 else key: value for key, value in element.attrib.items()}
            kinds[kind] = Kind(element.attrib["modelIdentifier"], flags)
    types, items = _declared_types(root)
    elements = root.find("ModelVariables")
    if elements is None:
        raise SetupError("it has no ModelVariables")
    variables, declared = (_variables_2 if fmi == 2 else _variables_3)(elements, types)
    structure = root.find("ModelStructure")
    names = list(variables)
    outputs, derivatives, initial, indicators = (
        (_structure_2 if fmi == 2 else _structure_3)(structure, names, variables)
        if structure is not None
        else ((), (), (), 0)
    )
    if fmi == 2:
        indicators = int(root.get("numberOfEventIndicators", "0"))
    experiment = root.find("DefaultExperiment")
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
        experiment={} if experiment is None else {key: float(value) for key, value in experiment.attrib.items()},
        enumerations={name: items[kind] for name, kind in declared.items() if kind in items},
        log_categories=() if logs is None else tuple(entry.get("name", "") for entry in logs),
        annotations=tuple(note.get("name") or note.get("type") or "" for note in notes),
    )


def _declared_types(root: ElementTree.Element) -> tuple[dict[str, dict[str, str]], dict[str, dict[int, str]]]:
    """Attributes (unit, nominal ...) of declared types, and the items of enumerations."""
    types: dict[str, dict[str, str]] = {}
    items: dict[str, dict[int, str]] = {}
    for element in root.findall("TypeDefinitions/*"):
        inner = element[0] if element.tag == "SimpleType" and len(element) else element
        name = element.attrib["name"]
        types[name] = {key: value for key, value in inner.attrib.items() if key in ("unit", "nominal")}
        found = {int(item.attrib["value"]): item.attrib["name"] for item in inner.findall("Item")}
        if found:
            items[name] = found
    return types, items


_Types = dict[str, dict[str, str]]
_Found = tuple[dict[str, Variable], dict[str, str]]


def _variables_2(elements: Iterable[ElementTree.Element], types: _Types) -> _Found:
    every = list(elements)
    order = [element.attrib["name"] for element in every]
    variables: dict[str, Variable] = {}
    declared: dict[str, str] = {}
    for element in every:
        inner = next(child for child in element if child.tag in ("Real", "Integer", "Boolean", "String", "Enumeration"))
        kind = inner.get("declaredType", "")
        given = {**types.get(kind, {}), **inner.attrib}
        name = element.attrib["name"]
        derivative = inner.get("derivative")
        variables[name] = Variable(
            name=name,
            reference=int(element.attrib["valueReference"]),
            type=_TYPES_2.get(inner.tag, inner.tag),
            causality=element.get("causality", "local"),
            variability=element.get("variability", "continuous" if inner.tag == "Real" else "discrete"),
            initial=element.get("initial"),
            start=inner.get("start"),
            unit=given.get("unit", ""),
            nominal=_nominal(given.get("nominal")),
            description=element.get("description", ""),
            derivative_of=None if derivative is None else order[int(derivative) - 1],
        )
        if kind:
            declared[name] = kind
    return variables, declared


def _variables_3(elements: Iterable[ElementTree.Element], types: _Types) -> _Found:
    every = list(elements)
    by_reference = {int(element.attrib["valueReference"]): element for element in every}
    names = {reference: element.attrib["name"] for reference, element in by_reference.items()}
    variables: dict[str, Variable] = {}
    declared: dict[str, str] = {}
    for element in every:
        kind = element.get("declaredType", "")
        given = {**types.get(kind, {}), **element.attrib}
        name = element.attrib["name"]
        dimensions: list[int | str] = []
        shape: list[int] = []
        for dimension in element.findall("Dimension"):
            if "start" in dimension.attrib:
                dimensions.append(int(dimension.attrib["start"]))
                shape.append(int(dimension.attrib["start"]))
            else:
                holder = int(dimension.attrib["valueReference"])
                dimensions.append(names[holder])
                shape.append(int(by_reference[holder].attrib["start"].split()[0]))
        derivative = element.get("derivative")
        starts = [child.get("value", "") for child in element.findall("Start")]  # strings and binaries
        variables[name] = Variable(
            name=name,
            reference=int(element.attrib["valueReference"]),
            type=element.tag,
            causality=element.get("causality", "local"),
            variability=element.get("variability", "continuous" if element.tag in FLOATS else "discrete"),
            initial=element.get("initial"),
            start=starts[0] if starts else element.get("start"),
            unit=given.get("unit", ""),
            nominal=_nominal(given.get("nominal")),
            description=element.get("description", ""),
            derivative_of=None if derivative is None else names[int(derivative)],
            dimensions=tuple(dimensions),
            shape=tuple(shape),
            can_set_between=element.get("intermediateUpdate", "false") in ("true", "1"),
        )
        if kind:
            declared[name] = kind
    return variables, declared


def _nominal(text: str | None) -> float:
    value = abs(float(text.split()[0])) if text else 1.0
    return value if value > 0.0 else 1.0


_Structure = tuple[tuple[Unknown, ...], tuple[Unknown, ...], tuple[Unknown, ...], int]


def _structure_2(structure: ElementTree.Element, names: list[str], _: Mapping[str, Variable]) -> _Structure:
    def unknowns(tag: str) -> tuple[Unknown, ...]:
        return tuple(
            Unknown(
                names[int(element.attrib["index"]) - 1],
                _split(element.get("dependencies"), lambda text: names[int(text) - 1]),
                _split(element.get("dependenciesKind"), str),
            )
            for element in structure.findall(f"{tag}/Unknown")
        )

    return unknowns("Outputs"), unknowns("Derivatives"), unknowns("InitialUnknowns"), 0


def _structure_3(structure: ElementTree.Element, names: list[str], variables: Mapping[str, Variable]) -> _Structure:
    by_reference = {variables[name].reference: name for name in names}

    def unknowns(tag: str) -> tuple[Unknown, ...]:
        return tuple(
            Unknown(
                by_reference[int(element.attrib["valueReference"])],
                _split(element.get("dependencies"), lambda text: by_reference[int(text)]),
                _split(element.get("dependenciesKind"), str),
            )
            for element in structure.findall(tag)
        )

    indicators = unknowns("EventIndicator")
    count = sum(variables[unknown.name].length for unknown in indicators)
    return unknowns("Output"), unknowns("ContinuousStateDerivative"), unknowns("InitialUnknown"), count


def _split(text: str | None, of: Callable[[str], str]) -> tuple[str, ...] | None:
    if text is None:
        return None
    return tuple(of(part) for part in text.split())


def _resized(read: Description, sizes: Mapping[str, int]) -> Description:
    from dataclasses import replace

    variables = {}
    for name, variable in read.variables.items():
        shape = tuple(
            sizes.get(dimension, length) if isinstance(dimension, str) else length
            for dimension, length in zip(variable.dimensions, variable.shape, strict=True)
        )
        variables[name] = variable if shape == variable.shape else replace(variable, shape=shape)
    return replace(read, variables=variables)
