"""A system structure description as plain objects: what the XML says, checked piece by piece, nothing built yet.

Elements are found by their local names, so the namespaces of SSP 1.0 and 2.0 are both understood.

`Unit` and `Affine` are units and linear transformations: what happens to a value on its way along a connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from urllib.parse import unquote, urlparse
from xml.etree.ElementTree import Element

import numpy as np

from cosolve.basics.arrays import Matrix
from cosolve.basics.plain_file import refuse_no_file
from cosolve.basics.wording import listed, shown
from cosolve.errors import SetupError
from cosolve.fmu.archive import unpack
from cosolve.fmu.description import BASE_UNITS
from cosolve.fmu.xml_text import as_number, as_whole, read_xml, truth
from cosolve.subsystem import units
from cosolve.subsystem.units import Unit


@dataclass(frozen=True)
class Affine:
    """`factor * value + offset`; also a law between two ports.

    >>> Affine(2.0, 1.0)(3.0), Affine(2.0, 1.0)([3.0, 4.0]), Affine(2.0).then(Affine(1.0, 5.0))
    (7.0, [7.0, 9.0], Affine(factor=2.0, offset=5.0))
    """

    factor: float = 1.0
    offset: float = 0.0

    def __call__(self, value: Any) -> Any:
        if isinstance(value, list):  # several numbers of a parameter
            return [self(one) for one in value]
        return self.factor * value + self.offset

    def jacobian(self, value: Any) -> Matrix:
        """The derivative, for a law."""
        return self.factor * np.eye(np.size(value))

    def then(self, other: Affine) -> Affine:
        """First this one, then the other."""
        return Affine(other.factor * self.factor, other.factor * self.offset + other.offset)

    @property
    def is_identity(self) -> bool:
        """True when it changes nothing."""
        return self.factor == 1.0 and self.offset == 0.0


def conversion(source: Unit, target: Unit) -> Affine | None:
    """From values in `source` to values in `target`; None between different physical kinds.

    >>> conversion(Unit("mm", 1e-3, exponents={"m": 1}), Unit("m", exponents={"m": 1}))
    Affine(factor=0.001, offset=0.0)
    >>> conversion(Unit("degC", 1.0, 273.15, {"K": 1}), Unit("K", exponents={"K": 1}))(20.0)
    293.15
    """
    change = units.conversion(source, target)
    return None if change is None else Affine(*change)


T = TypeVar("T")

TOP = "SystemStructure.ssd"
ANNOTATION = "org.cosolve.run"

#: one description may name another; more of them than this come from references that multiply
MAX_DESCRIPTIONS = 1000
#: how tools call the step of a run in their annotations
_STEPS = ("stepsize", "basestepsize", "communicationstepsize", "fixedstepsize", "step")
_FMU = "application/x-fmu-sharedlibrary"
_DEFINITIONS = ("application/x-ssp-definition", "application/x-ssp-package")
_WHOLE = ("Integer", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64")

End = tuple[str | None, str]  # element (None: the system itself) and connector


@dataclass(frozen=True)
class Connector:
    """A port of a component or a system."""

    name: str
    kind: str
    unit: str = ""


@dataclass(frozen=True)
class Connection:
    """From one connector to another; unit conversion unless suppressed, then the transformation."""

    start: End
    end: End
    transformation: Affine
    suppress: bool


@dataclass(frozen=True)
class Value:
    """A parameter value as it is written, with its unit where it has one (defined in the same file, or in the SSD)."""

    value: Any
    unit: str = ""
    definition: Unit | None = None


Binding = dict[str, Value]  # parameter names, relative to the element that carries it


@dataclass
class Component:
    """An FMU."""

    name: str
    file: Path
    implementation: str | None
    connectors: dict[str, Connector]
    bindings: list[Binding]


@dataclass
class SspSystem:
    """A system: elements and how they are connected. `dictionaries`: names of references -> name of the dictionary."""

    name: str
    connectors: dict[str, Connector] = field(default_factory=dict)
    elements: dict[str, Component | SspSystem] = field(default_factory=dict)
    dictionaries: dict[str, str] = field(default_factory=dict)
    connections: list[Connection] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    units: dict[str, Unit] = field(default_factory=dict)


@dataclass
class Document:
    """The whole description: `run` is the annotation of cosolve, `{}` without one.

    `notes` are sentences about what was left out, `step_notes` about steps that other tools have annotated.
    """

    structure: SspSystem
    t_start: float
    t_end: float | None
    run: dict[str, str]
    notes: list[str] = field(default_factory=list)
    step_notes: list[str] = field(default_factory=list)


def read_document(path: Path, variant: str | None = None) -> Document:
    """Read a `.ssp` (or one variant in it) or a `.ssd`."""
    try:
        return _read_document(path, variant, (), _Shared())
    except RecursionError:
        raise SetupError(f"{path.name}: systems lie in systems without end; take some levels away") from None


@dataclass
class _Shared:
    """What one reading has in common, however many descriptions refer to each other."""

    count: int = 0
    notes: list[str] = field(default_factory=list)


def _read_document(path: Path, variant: str | None, above: tuple[Path, ...], shared: _Shared) -> Document:
    """`above` are the descriptions that refer to this one."""
    refuse_no_file(path, folder=True)
    shared.count += 1
    if shared.count > MAX_DESCRIPTIONS:
        raise SetupError(f"{path.name}: more than {MAX_DESCRIPTIONS} descriptions are referred to; take some away")
    if path.suffix.lower() == ".ssp" or path.is_dir():
        folder = unpack(path, TOP, "SSP")
        file = folder / (variant or TOP)
        if not file.resolve().is_relative_to(folder.resolve()):
            raise SetupError(f"{path.name}: the variant '{shown(variant)}' lies outside the SSP; it is refused")
        return _Reader(file, folder, path.name, above, shared).document()
    if not path.is_file():
        raise SetupError(f"there is no file '{path}'; give a system structure (.ssp or .ssd)")
    return _Reader(path, None, path.name, above, shared).document()


class _Reader:
    """Reads one `.ssd` file. Sources are looked for next to it, and must not leave `root` where there is one."""

    def __init__(self, file: Path, root: Path | None, name: str, above: tuple[Path, ...], shared: _Shared) -> None:
        self.file, self.root, self.name, self.above, self.shared = file, root, name, above, shared

    def refuse(self, sentence: str) -> SetupError:
        return SetupError(f"{self.name}: {shown(sentence, 500)}")

    def note(self, sentence: str) -> None:
        self.shared.notes.append(f"{self.name}: {shown(sentence, 500)}")

    def document(self) -> Document:
        if self.file.resolve() in self.above:
            names = " -> ".join(p.name for p in (*self.above, self.file))
            raise self.refuse(f"the system refers to itself ({names}); remove one of these references")
        top = self._xml(self.file, "SystemStructureDescription")
        system = _child(top, "System")
        if system is None:
            raise self.refuse("there is no System in it")
        units = {u.name: u for u in (self._unit(e) for e in _children(top, "Units", "Unit"))}
        experiment = _child(top, "DefaultExperiment")
        start = None if experiment is None else experiment.get("startTime")
        stop = None if experiment is None else experiment.get("stopTime")
        run: dict[str, str] = {}
        for annotation in _children(top, "Annotations", "Annotation"):
            if annotation.get("type") == ANNOTATION and len(annotation):
                run = dict(annotation[0].attrib)
        holders = [holder for holder in (top, system, experiment) if holder is not None]
        return Document(
            self._structure(system, units),
            self._number(start, "the start time") if start else 0.0,
            self._number(stop, "the stop time") if stop else None,
            run,
            self.shared.notes,
            [f"{self.name}: {note}" for holder in holders for note in _annotated_steps(holder)],
        )

    # -- files -----------------------------------------------------------------------------------------

    def _xml(self, path: Path, expected: str) -> Element:
        try:
            root = read_xml(path)
        except SetupError as error:
            raise self.refuse(f"'{path.name}' {error}") from None
        except FileNotFoundError:
            raise self.refuse(f"there is no file '{path.name}' in it") from None
        except OSError as error:
            raise self.refuse(f"'{path.name}' cannot be read: {error.strerror or error}") from None
        if _local(root) != expected:
            raise self.refuse(f"'{path.name}' begins with {_local(root)}, but {expected} is expected")
        return root

    def _source(self, source: str, what: str, inside: Path | None = None) -> Path:
        """The file behind the URI of a source: next to the description, or `inside` a component."""
        try:
            parsed = urlparse(source)
        except ValueError as error:
            raise self.refuse(f"{what} lies at '{shown(source)}', which is no address ({error})") from None
        if parsed.scheme not in ("", "file"):
            raise self.refuse(f"{what} lies at '{source}'; only files are read, so fetch it and put it into the SSP")
        folder = self.file.parent
        if inside is not None:
            folder = unpack(inside) if inside.suffix == ".fmu" else inside.parent
        path = folder.joinpath(*PurePosixPath(unquote(parsed.path)).parts)
        try:
            refuse_no_file(path, folder=True)
        except SetupError as error:
            raise self.refuse(f"{what} lies at '{shown(source)}': {error}") from None
        path = path.resolve()
        root = self.root if inside is None else folder
        if root is not None and not path.is_relative_to(root.resolve()):
            raise self.refuse(f"{what} lies at '{source}', outside the SSP; it is refused")
        if not path.exists():
            raise self.refuse(f"{what} lies at '{source}', but there is no such file")
        return path

    # -- pieces ----------------------------------------------------------------------------------------

    def _structure(self, system: Element, units: dict[str, Unit]) -> SspSystem:
        name = self._name(system, "a system")
        found = SspSystem(name, self._connectors(system, name), units=units)
        elements = _child(system, "Elements")
        for element in () if elements is None else elements:
            kind, inner = _local(element), self._name(element, f"an element of '{name}'")
            if inner in found.elements or inner in found.dictionaries:
                raise self.refuse(f"'{name}' has two elements called '{inner}'; rename one of them")
            if kind == "System":
                found.elements[inner] = self._structure(element, units)
            elif kind == "Component":
                found.elements[inner] = self._component(element, inner)
            elif kind == "SignalDictionaryReference":
                found.dictionaries[inner] = element.get("dictionary", inner)
        found.bindings = self._bindings(system, name)
        found.connections = [self._connection(c, name) for c in _children(system, "Connections", "Connection")]
        return found

    def _component(self, element: Element, name: str) -> Component | SspSystem:
        source, kind = element.get("source"), element.get("type", _FMU)
        if not source:
            raise self.refuse(f"the component '{name}' has no source")
        path = self._source(source, f"the source of '{name}'")
        bindings = self._bindings(element, name, path)
        if kind in _DEFINITIONS or path.suffix in (".ssd", ".ssp"):
            variant = urlparse(source).fragment or None  # of an archive: x.ssp#other.ssd
            inner = _read_document(path, variant, (*self.above, self.file.resolve()), self.shared).structure
            inner.name = name
            inner.connectors |= self._connectors(element, name)
            inner.bindings += bindings
            return inner
        if kind != _FMU:
            raise self.refuse(f"the component '{name}' is of type '{kind}'; FMUs and system structures are understood")
        return Component(name, path, element.get("implementation"), self._connectors(element, name), bindings)

    def _connectors(self, element: Element, owner: str) -> dict[str, Connector]:
        found: dict[str, Connector] = {}
        for connector in _children(element, "Connectors", "Connector"):
            name = self._name(connector, f"a connector of '{owner}'")
            units = [t.get("unit", "") for t in connector if "unit" in t.attrib]
            found[name] = Connector(name, connector.get("kind", ""), units[0] if units else "")
        return found

    def _connection(self, connection: Element, owner: str) -> Connection:
        start, end = connection.get("startConnector"), connection.get("endConnector")
        if not start or not end:
            raise self.refuse(f"a connection in '{owner}' lacks its startConnector or endConnector")
        ends = ((connection.get("startElement") or None, start), (connection.get("endElement") or None, end))
        what = f"the connection from '{_shown(ends[0])}' to '{_shown(ends[1])}' in '{owner}'"
        return Connection(*ends, self._transformation(connection, what), _is_true(connection, "suppressUnitConversion"))

    def _transformation(self, element: Element, what: str) -> Affine:
        for inner in element:
            kind = _local(inner)
            if kind == "LinearTransformation":
                factor, offset = inner.get("factor", "1"), inner.get("offset", "0")
                return Affine(
                    self._number(factor, f"the factor of {what}"), self._number(offset, f"its offset of {what}")
                )
            if kind.endswith("Transformation"):
                raise self.refuse(f"{what} has a {kind}; only linear transformations are understood")
        return Affine()

    def _unit(self, element: Element) -> Unit:
        name = self._name(element, "a unit")
        base = _child(element, "BaseUnit")
        if base is None:
            raise self.refuse(f"the unit '{name}' has no BaseUnit")
        powers = {key: self._whole(base.get(key, "0"), f"{key} of the unit '{name}'") for key in BASE_UNITS}
        factor = self._number(base.get("factor", "1"), f"the factor of the unit '{name}'")
        if factor == 0.0:
            raise self.refuse(f"the factor of the unit '{name}' is 0; give another")
        offset = self._number(base.get("offset", "0"), f"the offset of the unit '{name}'")
        return Unit(name, factor, offset, {key: power for key, power in powers.items() if power})

    # -- parameters ------------------------------------------------------------------------------------

    def _bindings(self, element: Element, owner: str, component: Path | None = None) -> list[Binding]:
        found = []
        for binding in _children(element, "ParameterBindings", "ParameterBinding"):
            what = f"the parameters of '{owner}'"
            values = self._parameter_set(binding, what, component)
            mapping = _child(binding, "ParameterMapping")
            if mapping is not None:
                values = self._mapped(values, mapping, what, component)
            prefix = binding.get("prefix", "")
            found.append({prefix + name: value for name, value in values.items()})
        return found

    def _parameter_set(self, binding: Element, what: str, component: Path | None) -> Binding:
        if binding.get("source"):
            inside = component if binding.get("sourceBase") == "component" else None
            root: Element | None = self._xml(self._source(binding.get("source", ""), what, inside), "ParameterSet")
        else:
            inline = _child(binding, "ParameterValues")
            root = None if inline is None else _child(inline, "ParameterSet")
        if root is None:
            raise self.refuse(f"{what} have neither a source nor values")
        units = {u.name: u for u in (self._unit(e) for e in _children(root, "Units", "Unit"))}
        found = {}
        for parameter in _children(root, "Parameters", "Parameter"):
            name = self._name(parameter, f"one of {what}")
            if not len(parameter):
                raise self.refuse(f"the parameter '{name}' has no value")
            unit = parameter[0].get("unit", "")
            found[name] = Value(self._value(parameter[0], name), unit, units.get(unit))
        return found

    def _mapped(self, values: Binding, mapping: Element, what: str, component: Path | None) -> Binding:
        if mapping.get("source"):
            inside = component if mapping.get("sourceBase") == "component" else None
            entries = self._xml(self._source(mapping.get("source", ""), what, inside), "ParameterMapping")
        else:
            inline = _child(mapping, "ParameterMapping")
            if inline is None:
                raise self.refuse(f"{what} have a mapping with neither a source nor entries")
            entries = inline
        found, empty = {}, []
        for entry in entries:
            if _local(entry) != "MappingEntry":
                continue
            source, target = entry.get("source", ""), entry.get("target", "")
            if not source or not target:  # a place in a form that was not filled in
                empty.append(target or source)
                continue
            if source not in values:
                known = listed(values, quote=False)
                raise self.refuse(f"{what}: the mapping names '{source}', but the values are {known}")
            change = self._transformation(entry, f"the mapping of '{source}'")
            given = values[source]
            keeps = "" if _is_true(entry, "suppressUnitConversion") else given.unit
            if change.is_identity:
                found[target] = Value(given.value, keeps, given.definition)
            elif isinstance(given.value, (bool, str)):
                raise self.refuse(f"{what}: the mapping of '{source}' transforms {given.value!r}, which is no number")
            else:
                found[target] = Value(change(given.value), keeps, given.definition)
        if empty:
            self.note(
                f"{what}: {len(empty)} entries of the mapping have no source or no target "
                f"({listed(empty, quote=False)}); they are left out"
            )
        return found

    def _value(self, element: Element, name: str) -> Any:
        kind, text = _local(element), element.get("value")
        if text is None:
            raise self.refuse(f"the parameter '{name}' has no value")
        if kind in ("String", "Binary", "Enumeration"):  # an enumeration names its item
            return text
        if kind == "Boolean":
            return self._read(truth, text, f"the parameter '{name}'")
        read = self._whole if kind in _WHOLE else self._number
        parts = [read(part, f"the parameter '{name}'") for part in text.split()]
        if not parts:
            raise self.refuse(f"the parameter '{name}' has no value")
        return parts[0] if len(parts) == 1 else parts

    # -- small things ----------------------------------------------------------------------------------

    def _name(self, element: Element, what: str) -> str:
        name = element.get("name")
        if not name:
            raise self.refuse(f"{what} has no name")
        return name

    def _number(self, text: str, what: str) -> float:
        return self._read(as_number, text, what)

    def _whole(self, text: str, what: str) -> int:
        return self._read(as_whole, text, what, -(2**63), 2**64)

    def _read(self, read: Callable[..., T], *arguments: Any) -> T:
        try:
            return read(*arguments)
        except SetupError as error:
            raise self.refuse(str(error)) from None


def _annotated_steps(holder: Element) -> Iterator[str]:
    """A sentence for each step size that another tool has written into its annotation."""
    for annotation in _children(holder, "Annotations", "Annotation"):
        kind = annotation.get("type", "")
        for element in () if kind == ANNOTATION else annotation.iter():
            for key, value in element.attrib.items():
                if key.lower() in _STEPS:
                    yield (
                        f"the annotation '{shown(kind)}' has {key} = {shown(value)}, which is meant for another tool "
                        "and not used; give step= to choose the step"
                    )


def _shown(end: End) -> str:
    return end[1] if end[0] is None else f"{end[0]}.{end[1]}"


def _is_true(element: Element, attribute: str) -> bool:
    return element.get(attribute, "false").strip().lower() in ("true", "1")


def _local(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _child(element: Element, name: str) -> Element | None:
    return next((inner for inner in element if _local(inner) == name), None)


def _children(element: Element, group: str, name: str) -> Iterator[Element]:
    inside = _child(element, group)
    return iter(()) if inside is None else (inner for inner in inside if _local(inner) == name)
