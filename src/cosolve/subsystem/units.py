"""Units of ports: what their names mean, and how values go from one unit to another.

Names are those of FMI, Modelica and SSP: `kg.m/s2`, `1/min`, `W/(m2.K)`, `degC`, `%`, with SI prefixes. Revolutions
and radians are kept apart from plain numbers, so `rpm` becomes `rad/s` but `1/min` does not: it does not say what it
counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from math import pi


@dataclass(frozen=True)
class Unit:
    """A unit by its definition: `base value = factor * value + offset`.

    Parameters
    ----------
    name : str
        Its name.
    factor : float, default 1.0
        Factor to base units.
    offset : float, default 0.0
        Offset in base units, for temperatures.
    exponents : dict of str to int, optional
        Exponents of the base units kg, m, s, A, K, mol, cd and rad, as in FMI.

    Examples
    --------
    >>> Unit("mm", 1e-3, exponents={"m": 1})
    Unit(name='mm', factor=0.001, offset=0.0, exponents={'m': 1})
    """

    name: str
    factor: float = 1.0
    offset: float = 0.0
    exponents: dict[str, int] = field(default_factory=dict)


def conversion(source: Unit, target: Unit) -> tuple[float, float] | None:
    """Factor and offset from values in `source` to values in `target`; None between different physical kinds.

    >>> conversion(Unit("degC", 1.0, 273.15, {"K": 1}), Unit("K", exponents={"K": 1}))
    (1.0, 273.15)
    """
    if _kind(source) != _kind(target):
        return None
    return source.factor / target.factor, (source.offset - target.offset) / target.factor


def _kind(unit: Unit) -> dict[str, int]:
    return {base: power for base, power in unit.exponents.items() if power}


#: symbol -> factor to base units, exponents; those with True take SI prefixes
_SYMBOLS: dict[str, tuple[float, dict[str, int], bool]] = {
    **{base: (1.0, {base: 1}, True) for base in ("m", "s", "A", "K", "mol", "cd", "rad")},
    "g": (1e-3, {"kg": 1}, True),
    "N": (1.0, {"kg": 1, "m": 1, "s": -2}, True),
    "Pa": (1.0, {"kg": 1, "m": -1, "s": -2}, True),
    "J": (1.0, {"kg": 1, "m": 2, "s": -2}, True),
    "W": (1.0, {"kg": 1, "m": 2, "s": -3}, True),
    "VA": (1.0, {"kg": 1, "m": 2, "s": -3}, True),
    "var": (1.0, {"kg": 1, "m": 2, "s": -3}, True),
    "Hz": (1.0, {"s": -1}, True),
    "Bq": (1.0, {"s": -1}, True),
    "C": (1.0, {"A": 1, "s": 1}, True),
    "V": (1.0, {"kg": 1, "m": 2, "s": -3, "A": -1}, True),
    "F": (1.0, {"kg": -1, "m": -2, "s": 4, "A": 2}, True),
    "Ohm": (1.0, {"kg": 1, "m": 2, "s": -3, "A": -2}, True),
    "S": (1.0, {"kg": -1, "m": -2, "s": 3, "A": 2}, True),
    "Wb": (1.0, {"kg": 1, "m": 2, "s": -2, "A": -1}, True),
    "T": (1.0, {"kg": 1, "s": -2, "A": -1}, True),
    "H": (1.0, {"kg": 1, "m": 2, "s": -2, "A": -2}, True),
    "lm": (1.0, {"cd": 1}, True),
    "lx": (1.0, {"cd": 1, "m": -2}, True),
    "bar": (1e5, {"kg": 1, "m": -1, "s": -2}, True),
    "eV": (1.602176634e-19, {"kg": 1, "m": 2, "s": -2}, True),
    "cal": (4.184, {"kg": 1, "m": 2, "s": -2}, True),
    "Wh": (3600.0, {"kg": 1, "m": 2, "s": -2}, True),
    "l": (1e-3, {"m": 3}, True),
    "L": (1e-3, {"m": 3}, True),
    "t": (1e3, {"kg": 1}, False),
    "min": (60.0, {"s": 1}, False),
    "h": (3600.0, {"s": 1}, False),
    "d": (86400.0, {"s": 1}, False),
    "deg": (pi / 180, {"rad": 1}, False),
    "rev": (2 * pi, {"rad": 1}, False),
    "rpm": (pi / 30, {"rad": 1, "s": -1}, False),
    "degC": (1.0, {"K": 1}, False),
    "degF": (5 / 9, {"K": 1}, False),
    "degR": (5 / 9, {"K": 1}, False),
    "%": (1e-2, {}, False),
    "ppm": (1e-6, {}, False),
    "in": (0.0254, {"m": 1}, False),
    "inch": (0.0254, {"m": 1}, False),
    "ft": (0.3048, {"m": 1}, False),
    "yd": (0.9144, {"m": 1}, False),
    "mi": (1609.344, {"m": 1}, False),
    "nmi": (1852.0, {"m": 1}, False),
    "kn": (1852 / 3600, {"m": 1, "s": -1}, False),
    "lb": (0.45359237, {"kg": 1}, False),
    "lbm": (0.45359237, {"kg": 1}, False),
    "lbf": (4.4482216152605, {"kg": 1, "m": 1, "s": -2}, False),
    "psi": (6894.757293168361, {"kg": 1, "m": -1, "s": -2}, False),
    "atm": (101325.0, {"kg": 1, "m": -1, "s": -2}, False),
    "mmHg": (133.322387415, {"kg": 1, "m": -1, "s": -2}, False),
}

#: zero of the scale in kelvin, for temperatures that stand alone; in `W/degC` a degree is a difference
_ZEROS = {"degC": 273.15, "degF": 273.15 - 32 * 5 / 9}

_POWERS = {
    "f": -15,
    "p": -12,
    "n": -9,
    "u": -6,
    "m": -3,
    "c": -2,
    "d": -1,
    "da": 1,
    "h": 2,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
}
_PREFIXES = {letter: float(f"1e{power}") for letter, power in _POWERS.items()}

_SPELLINGS = {"°C": "degC", "°F": "degF", "°": "deg", "µ": "u", "μ": "u", "Ω": "Ohm", "·": ".", "*": "."}
_FACTOR = re.compile(r"([A-Za-z%]+)\^?([+-]?\d+)?")


@lru_cache(maxsize=1024)
def parse_unit(name: str) -> Unit | None:
    """The unit of that name, or None where the name means nothing to us.

    >>> parse_unit("kg.m/s2").exponents, parse_unit("km/h").factor, parse_unit("degC").offset
    ({'kg': 1, 'm': 1, 's': -2}, 0.2777777777777778, 273.15)
    >>> parse_unit("furlong") is None
    True
    """
    text = name.strip()
    for odd, plain in _SPELLINGS.items():
        text = text.replace(odd, plain)
    if text in ("1", "-"):
        return Unit(name)
    if text in _ZEROS:
        factor, exponents, _ = _SYMBOLS[text]
        return Unit(name, factor, _ZEROS[text], dict(exponents))
    over, *under = re.split(r"/(?![^(]*\))", text)  # not inside brackets
    above, below, powers = 1.0, 1.0, dict[str, int]()
    for sign, part in ((1, over), *((-1, u) for u in under)):
        found = _product(part.strip())
        if found is None:
            return None
        above, below = (above * found[0], below) if sign > 0 else (above, below * found[0])
        for base, power in found[1].items():
            powers[base] = powers.get(base, 0) + sign * power
    return Unit(name, above / below, 0.0, {base: power for base, power in powers.items() if power})


def _product(text: str) -> tuple[float, dict[str, int]] | None:
    """Symbols joined by dots."""
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    total, powers = 1.0, dict[str, int]()
    for word in text.split("."):
        if word.strip() == "1":
            continue
        found = _FACTOR.fullmatch(word.strip())
        symbol = _symbol(found[1]) if found else None
        if found is None or symbol is None:
            return None
        power = int(found[2] or 1)
        total = total * symbol[0] ** power if power > 0 else total / symbol[0] ** -power
        for base, exponent in symbol[1].items():
            powers[base] = powers.get(base, 0) + power * exponent
    return total, powers


def _symbol(word: str) -> tuple[float, dict[str, int]] | None:
    if word in _SYMBOLS:
        return _SYMBOLS[word][:2]
    for length in (1, 2):
        known = _SYMBOLS.get(word[length:])
        if word[:length] in _PREFIXES and known is not None and known[2]:
            if word[length:] == "g":  # 1 mg is 1e-6 kg, without a rounding error on the way
                return float(f"1e{_POWERS[word[:length]] - 3}"), known[1]
            return _PREFIXES[word[:length]] * known[0], known[1]
    return None
