"""Units as a model description defines them: powers of the SI base units, a factor and an offset."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from cosolve.errors import SetupError
from cosolve.fmu.xml_text import finite, name_of, truth, whole
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
