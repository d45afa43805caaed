"""What an FMU says of itself: `modelDescription.xml` of FMI 1.0, 2.0 and 3.0 in one form.

Type names and capability names are those of FMI 3.0 for all versions (`Real` is `Float64`, `Integer` is `Int32`). The
XML is read here and not by FMPy, whose flags for FMI 3.0 derivatives are not reliable; `inspect_fmu` shows what FMPy's
validation says.

Units are as a model description defines them: powers of the SI base units, a factor and an offset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from pathlib import Path
from xml.etree.ElementTree import Element

from cosolve.basics.wording import shown
from cosolve.errors import SetupError
from cosolve.fmu import archive
from cosolve.fmu.xml_text import as_whole, finite, name_of, read_xml, truth, whole
from cosolve.subsystem.units import Unit

BASE_UNITS = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")


def read_units(root: Element) -> dict[str, Unit]:
    """The units under UnitDefinitions that say what they measure, by name, and their display units.

    A display unit (`degC` of the unit `K`, say) is left out where a unit of its own has the same name.
    """
    units: dict[str, Unit] = {}
    for element in root.findall("UnitDefinitions/Unit"):
        name = name_of(element, "a unit")
        base = element.find("BaseUnit")
        if base is not None:
            units[name] = _base(name, base, f"the unit '{name}'")
    for element in root.findall("UnitDefinitions/Unit"):
        unit = units.get(element.attrib["name"])
        for other in () if unit is None else element.findall("DisplayUnit"):
            assert unit is not None
            name = name_of(other, f"a display unit of '{element.attrib['name']}'")
            if not truth(other.get("inverse", "false"), f"inverse of '{name}'"):
                units.setdefault(name, _displayed(name, unit, other, f"the display unit '{name}'"))
    return units


def _base(name: str, element: Element, what: str) -> Unit:
    powers = {key: whole(element, key, what, -1000, 1000) for key in BASE_UNITS}
    return Unit(
        name,
        _factor(element, what),
        finite(element, "offset", what, 0.0),
        {key: power for key, power in powers.items() if power},
    )


def _displayed(name: str, unit: Unit, element: Element, what: str) -> Unit:
    """`displayed = factor * value + offset`, turned round and put into the unit's own definition."""
    factor, offset = _factor(element, what), finite(element, "offset", what, 0.0)
    return Unit(name, unit.factor / factor, unit.offset - unit.factor * offset / factor, unit.exponents)


def _factor(element: Element, what: str) -> float:
    factor = finite(element, "factor", what, 1.0)
    if factor == 0.0:
        raise SetupError(f"factor of {what} is 0, which no unit has")
    return factor


CO_SIMULATION, MODEL_EXCHANGE = "co-simulation", "model exchange"

#: Larger ones are mistakes, and would ask for gigabytes before anything can be said about them.
_MAX_LENGTH = 10**8

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
    negated: bool = False  # FMI 1.0: the value of its reference with the other sign

    @property
    def length(self) -> int:
        """How many numbers it holds."""
        return prod(self.shape)

    @property
    def is_float(self) -> bool:
        """True for real numbers."""
        return self.type in FLOATS

    @property
    def is_continuous(self) -> bool:
        """True for real numbers that may change at any time; others change at events and samples only."""
        return self.is_float and self.variability == "continuous"


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
        return truth(self.flags.get(flag, "false"), flag)

    def number(self, flag: str) -> int:
        """A whole-number flag; absent is 0."""
        return as_whole(self.flags.get(flag, "0"), flag)


@dataclass(frozen=True)
class Description:
    """The model description. `variables` keeps the order of the file.

    `fmi` is the version of the functions, 2 or 3; those of FMI 1.0 have their names in FMI 2.0 (`binary_fmi1.py`).
    """

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
    unnamed_states: int = 0  # FMI 1.0 has no names for them
    description: str = ""
    tool: str = ""
    author: str = ""
    experiment: Mapping[str, float] = field(default_factory=dict)  # startTime, stopTime, tolerance, stepSize
    enumerations: Mapping[str, Mapping[int, str]] = field(default_factory=dict)  # variable -> value -> item
    log_categories: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    units: Mapping[str, Unit] = field(default_factory=dict)  # those that say what they measure

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

    @property
    def way_back(self) -> str:
        """What it takes to restore states: a flag, or a later version of FMI."""
        return "canGetAndSetFMUState" + ("" if self.version[:1] != "1" else ", FMI 2.0 and later")

    @property
    def state_count(self) -> int:
        """How many numbers the continuous states are."""
        return self.unnamed_states + sum(variable.length for variable in self.states)


def read_description(folder: str | Path, sizes: Mapping[str, int] | None = None) -> Description:
    """The model description in the folder of an unpacked FMU; what is wrong with it is said with the FMU's name.

    `sizes` gives values to structural parameters (FMI 3.0), on which the shapes of arrays may depend.
    """
    path = Path(folder) / "modelDescription.xml"
    try:
        read = _read(path, path.stat().st_mtime_ns)
        return _resized(read, sizes) if sizes else read
    except SetupError as error:
        raise SetupError(f"'{archive.origin(Path(folder))}': {error}") from None
    except OSError as error:
        raise SetupError(f"'{path}' cannot be read: {error.strerror or error}") from None


@lru_cache(maxsize=64)
def _read(path: Path, changed: int) -> Description:
    from cosolve.fmu import description_fmi1, description_xml  # which make the classes above

    try:
        root = read_xml(path)
    except SetupError as error:
        raise SetupError(f"its modelDescription.xml {error}; export the FMU again") from None
    if root.tag != "fmiModelDescription":
        raise SetupError(f"its modelDescription.xml starts with <{shown(root.tag)}>, not with <fmiModelDescription>")
    version = root.get("fmiVersion", "").strip()
    if version.partition(".")[0] not in ("1", "2", "3"):
        raise SetupError(f"FMI {shown(version) or '?'} is not supported; export the FMU for FMI 1.0, 2.0 or 3.0")
    try:
        if version[0] == "1":
            return description_fmi1.parse(root, version)
        return description_xml.parse(root, int(version[0]), version)
    except SetupError as error:
        raise SetupError(f"its modelDescription.xml is not valid: {error}; export the FMU again") from None


def refuse_endless(what: str, shape: list[int] | tuple[int, ...]) -> None:
    """Raise for an array of an impossible size."""
    if prod(shape) > _MAX_LENGTH:
        raise SetupError(f"{what} is an array of {prod(shape)} numbers; up to {_MAX_LENGTH} are taken")


def _resized(read: Description, sizes: Mapping[str, int]) -> Description:
    variables = {}
    for name, variable in read.variables.items():
        shape = tuple(
            sizes.get(dimension, length) if isinstance(dimension, str) else length
            for dimension, length in zip(variable.dimensions, variable.shape, strict=True)
        )
        refuse_endless(f"'{shown(name)}'", shape)
        variables[name] = variable if shape == variable.shape else replace(variable, shape=shape)
    return replace(read, variables=variables)
