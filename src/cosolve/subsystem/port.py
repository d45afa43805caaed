"""Ports: the named quantities through which a subsystem is coupled, and their place in flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_whole, positive, refuse_one_text
from cosolve.basics.wording import counted, shortened
from cosolve.errors import SetupError, SubsystemError
from cosolve.subsystem.units import Unit, parse_unit

_DOUBLE = np.dtype(np.float64)

#: What subsystems return most often.
_PLAIN = frozenset((np.ndarray, list, tuple, float, np.float64))
_NOTHING = np.zeros(0, dtype=bool)


@dataclass(frozen=True)
class Port:
    """One named input or output.

    Parameters
    ----------
    name : str
        The name. It may hold dots and brackets, as those of FMUs do.
    size : int or None, default None
        Number of values; None is a scalar. The elements of a vector are `name[0]`, `name[1]`, ...
    unit : str, default ""
        Name of the unit, as in "N" or "kg.m/s2". A connection converts values if both ports have a unit.
    nominal : float, default 1.0
        Magnitude in that unit that counts as one in increments and tolerances. If it is 1, the largest magnitude seen
        so far counts instead (docs/theory.md, "Scales").
    definition : Unit or None, default None
        Definition of the unit, if its name is not known to cosolve.

    Examples
    --------
    >>> Port("force", unit="N", nominal=1e3).length
    1
    """

    name: str
    size: int | None = None
    unit: str = ""
    nominal: float = 1.0
    definition: Unit | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SetupError(f"a port needs a non-empty name, not {self.name!r}")
        if self.size is not None and not is_whole(self.size, 1):
            raise SetupError(
                f"port '{self.name}': size must be a whole number of at least 1 (or None for a scalar), "
                f"not {self.size!r}"
            )
        positive(f"port '{self.name}'", "nominal", self.nominal)

    @property
    def known_unit(self) -> Unit | None:
        """Definition of the unit; None if it is not known."""
        return self.definition or parse_unit(self.unit)

    @property
    def length(self) -> int:
        """Number of values."""
        return 1 if self.size is None else self.size


PortLike: TypeAlias = str | tuple[str, int] | Port


class Ports:
    """An ordered set of ports with their slices in one flat array.

    >>> ports = Ports(["x", ("field", 3)])
    >>> ports.length, ports.slice("field")
    (4, slice(1, 4, None))
    """

    def __init__(self, ports: Iterable[PortLike]) -> None:
        refuse_one_text("ports", ports)
        if not isinstance(ports, Iterable) or getattr(ports, "ndim", 1) == 0:
            raise SetupError(f"ports are given as a list of names, not as {shortened(ports)}")
        self.ports = tuple(_as_port(port) for port in ports)
        self.slices: dict[str, slice] = {}
        start = 0
        for port in self.ports:
            if port.name in self.slices:
                raise SetupError(f"port '{port.name}' is listed twice")
            self.slices[port.name] = slice(start, start + port.length)
            start += port.length
        self.length = start
        self.by_name = {port.name: port for port in self.ports}

    def __iter__(self) -> Any:
        return iter(self.ports)

    def __len__(self) -> int:
        return len(self.ports)

    def __contains__(self, name: object) -> bool:
        return name in self.slices

    @property
    def names(self) -> list[str]:
        """Port names in order."""
        return [port.name for port in self.ports]

    def slice(self, name: str) -> slice:
        """Where the port `name`, or the element `name[k]` of a vector port, lives in the flat array."""
        exact = self.slices.get(name)
        if exact is not None:
            return exact
        base, k = self._element(name)
        start = self.slices[base].start + k
        return slice(start, start + 1)

    def find(self, name: str) -> Port | None:
        """The port of that name, or an element of a vector port as a scalar port; None when there is neither.

        A port whose own name ends in brackets comes before an element of another one.

        >>> Ports([Port("force", 3, "N")]).find("force[2]")
        Port(name='force[2]', size=None, unit='N', nominal=1.0, definition=None)
        >>> Ports(["x", ("r", 2)]).find("r[2]")
        Traceback (most recent call last):
            ...
        cosolve.errors.SetupError: 'r' has 2 elements, r[0] to r[1], so there is no 'r[2]'
        """
        if name in self.by_name:
            return self.by_name[name]
        try:
            base, _ = self._element(name)
        except KeyError:
            return None
        return replace(self.by_name[base], name=name, size=None)

    def _element(self, name: str) -> tuple[str, int]:
        """A vector port and the entry that `name` addresses; KeyError when it addresses none."""
        found = split_element(name)
        if found is None or found[0] not in self.slices:
            raise KeyError(name)
        port = self.by_name[found[0]]
        if port.size is None:
            raise SetupError(f"'{port.name}' is a scalar and has no elements; leave {name[len(port.name) :]} out")
        return port.name, element_index(name, found, port.size)

    def labels(self) -> list[str]:
        """One label per number: `x` for scalars, `field[2]` for entries of vectors."""
        return [
            port.name if port.size is None else f"{port.name}[{i}]" for port in self.ports for i in range(port.length)
        ]

    def pack(self, values: Any) -> Vector:
        """Flatten what a user returned for these ports: a flat array, one value per port, or a dict by name.

        >>> Ports(["x", ("r", 2)]).pack({"x": 1.0, "r": [2.0, 3.0]})
        array([1., 2., 3.])
        """
        if type(values) in _PLAIN:  # looked at once; whatever is unusual about it is left to the lines below
            try:
                given = np.asarray(values)
            except ValueError:
                given = _NOTHING
            if given.dtype is _DOUBLE and given.size == self.length:
                return given if given.ndim == 1 else given.reshape(-1)
        if isinstance(values, Mapping):
            missing, extra = set(self.slices) - set(values), set(values) - set(self.slices)
            if missing or extra:
                raise SubsystemError(
                    f"returned values for {sorted(map(str, values))}, expected exactly the ports {self.names}"
                )
            return self._pack_each([values[name] for name in self.slices])
        if type(values).__module__.partition(".")[0] == "pandas" and hasattr(values, "index"):
            labels = list(values.index)
            if all(isinstance(label, str) for label in labels):
                return self.pack(dict(zip(labels, np.asarray(values), strict=True)))
        if values is None:
            if not self.length:
                return np.zeros(0)
            raise SubsystemError(f"returned None, expected values for the ports {self.names}")
        flat = _numbers(values)
        if flat is None and isinstance(values, (list, tuple)) and len(values) == len(self.ports):
            return self._pack_each(values)
        if isinstance(values, np.ma.MaskedArray):
            raise SubsystemError(f"returned a masked array, expected plain numbers for the ports {self.names}")
        if flat is None:
            raise SubsystemError(f"returned {shortened(values)}, expected real numbers for the ports {self.names}")
        if flat.size != self.length:
            raise SubsystemError(f"returned {flat.size} numbers, expected {self.length} for the ports {self.names}")
        return flat

    def listed(self, values: Any) -> Sequence[float] | Vector:
        """The same, but a list of the right length is left alone, whatever it holds: for those who look at it later.

        >>> Ports(["x", "v"]).listed([1.0, 2.0])
        [1.0, 2.0]
        """
        kind = type(values)
        if (kind is list or kind is tuple) and len(values) == self.length:
            return values  # type: ignore[no-any-return]
        if kind is float and self.length == 1:
            return (values,)
        if kind is np.ndarray and values.dtype is _DOUBLE and values.shape == (self.length,):
            return values  # type: ignore[no-any-return]
        return self.pack(values)

    def _pack_each(self, values: Sequence[Any]) -> Vector:
        """One value per port, each of its port's length."""
        whole = np.empty(self.length)
        for port, value in zip(self.ports, values, strict=True):
            flat = None if isinstance(value, np.ma.MaskedArray) else _numbers(value)
            if flat is None:
                raise SubsystemError(f"returned {shortened(value)} for '{port.name}', expected real numbers")
            if flat.size != port.length:
                raise SubsystemError(f"returned {flat.size} numbers for '{port.name}', expected {port.length}")
            whole[self.slices[port.name]] = flat
        return whole


def _numbers(values: Any) -> Vector | None:
    """A flat array of doubles, or None for anything that is not plainly real numbers (text, complex, ragged)."""
    try:
        array = np.asarray(values)
    except ValueError:  # ragged
        return None
    return array.astype(np.float64).reshape(-1) if array.dtype.kind in "fiub" else None


def split_element(name: str) -> tuple[str, str] | None:
    """`y[2]` as `('y', '2')`; None for a name without brackets at its end.

    >>> split_element("a.y[2]"), split_element("a.y")
    (('a.y', '2'), None)
    """
    base, bracket, index = name[:-1].rpartition("[") if name.endswith("]") else ("", "", "")
    return (base, index) if bracket and base else None


def element_index(name: str, found: tuple[str, str], size: int) -> int:
    """The index in `found` as a number, or a sentence that says which elements there are."""
    base, index = found
    k = int(index) if index.isdecimal() and index.isascii() and str(int(index)) == index else -1
    if not 0 <= k < size:
        shown = base.partition(".")[2] or base
        which = f"{shown}[0] to {shown}[{size - 1}]" if size > 1 else f"{shown}[0]"
        raise SetupError(f"'{base}' has {counted(size, 'element')}, {which}, so there is no '{name}'")
    return k


@lru_cache(maxsize=1024)
def _plain(name: str) -> Port:
    """A scalar; the same one for all subsystems, of which sweeps build thousands."""
    return Port(name)


def _as_port(port: PortLike) -> Port:
    if isinstance(port, Port):
        return port
    if isinstance(port, str):
        return _plain(port)
    if isinstance(port, (tuple, list)) and len(port) == 2:
        return Port(port[0], port[1])
    raise SetupError(f"a port is a name, a (name, size) pair or a Port, not {port!r}")
