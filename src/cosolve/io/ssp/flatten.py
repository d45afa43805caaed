"""Nested systems made flat: every input of a component is followed back to what feeds it.

A component `inner` of a nested system `sub` is called `sub/inner`. Transformations and unit conversions along the way
are put together into one linear function per input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cosolve.basics.wording import listed
from cosolve.errors import SetupError
from cosolve.io.ssp.document import Affine, Component, Connection, Connector, SspSystem, Value, conversion
from cosolve.subsystem.units import Unit

Node = tuple[str, str]  # path of an element ("" is the whole system) and one of its connectors


@dataclass(frozen=True)
class InputSource:
    """What drives an input: the output `source`, or nothing but a constant (`source` is then an input from outside)."""

    source: Node
    change: Affine
    is_output: bool


class FlatStructure:
    """A structure without nesting: `components` by path, what feeds their inputs, and their parameter values."""

    def __init__(self, structure: SspSystem, shown: str) -> None:
        self.shown = shown
        self.components: dict[str, Component] = {}
        self._connectors: dict[Node, Connector] = {}
        self._incoming: dict[Node, tuple[Node, Connection, dict[str, Unit]]] = {}
        self._units: dict[str, Unit] = structure.units
        self.values: dict[Node, Value] = {}
        self._collect(structure, "")

    def _collect(self, structure: SspSystem, path: str) -> None:
        for connector in structure.connectors.values():
            self._connectors[path, connector.name] = connector
        for name, element in structure.elements.items():
            inner = _join(path, name)
            if isinstance(element, SspSystem):
                self._collect(element, inner)
                continue
            if inner in self.components:
                raise SetupError(f"{self.shown}: two components are called '{inner}' once nested ones are named")
            self.components[inner] = element
            for connector in element.connectors.values():
                self._connectors[inner, connector.name] = connector
        for connection in structure.connections:
            start = self._node(structure, path, connection.start)
            end = self._node(structure, path, connection.end)
            if end in self._incoming:
                raise SetupError(f"{self.shown}: '{_name(end)}' is fed by two connections; remove one of them")
            self._incoming[end] = (start, connection, structure.units)
        self._bind(structure, path)

    def _node(self, structure: SspSystem, path: str, end: tuple[str | None, str]) -> Node:
        element, connector = end
        if element is None:
            if connector not in structure.connectors:
                raise SetupError(
                    f"{self.shown}: a connection names the connector '{connector}' of the system '{structure.name}', "
                    f"which has {listed(structure.connectors)}"
                )
            return path, connector
        if element in structure.dictionaries:
            return f"dictionary {structure.dictionaries[element]}", connector
        if element not in structure.elements:
            raise SetupError(
                f"{self.shown}: a connection in '{structure.name}' names the element '{element}', but there are "
                f"{listed([*structure.elements, *structure.dictionaries])}"
            )
        inner = structure.elements[element]
        if inner.connectors and connector not in inner.connectors:
            raise SetupError(
                f"{self.shown}: a connection names the connector '{connector}' of '{_join(path, element)}', which has "
                f"{listed(inner.connectors)}"
            )
        return _join(path, element), connector

    # -- parameters ------------------------------------------------------------------------------------

    def _bind(self, structure: SspSystem, path: str) -> None:
        """Values given inside first, those given outside last: the outer ones count."""
        for name, element in structure.elements.items():
            if isinstance(element, Component):
                for binding in element.bindings:
                    for parameter, value in binding.items():
                        self.values[_join(path, name), parameter] = value
        for binding in structure.bindings:
            for parameter, value in binding.items():
                self.values[self._parameter(structure, path, parameter)] = value

    def _parameter(self, structure: SspSystem, path: str, name: str) -> Node:
        """A parameter named at a system: its own connector, or one of an element inside (`element.parameter`)."""
        if name in structure.connectors:
            return path, name
        for element, inner in structure.elements.items():
            if name.startswith(f"{element}."):
                rest = name[len(element) + 1 :]
                here = _join(path, element)
                return self._parameter(inner, here, rest) if isinstance(inner, SspSystem) else (here, rest)
        raise SetupError(
            f"{self.shown}: the parameters of '{structure.name}' name '{name}', which is neither one of its connectors "
            f"nor an element and its parameter; the elements are {listed(structure.elements)}"
        )

    def parameters(self, path: str) -> dict[str, Any]:
        """Values for a component: its own, and those of parameter connectors around it that lead there."""
        found = {name: value for (where, name), value in self.values.items() if where == path}
        for where, name in self._incoming:
            if where == path and self._kind((where, name)) in ("parameter", "structuralParameter"):
                feed = self.feed((where, name), {})
                if feed.source in self.values:
                    given = self.values[feed.source]
                    if isinstance(given.value, (bool, str)) and not feed.change.is_identity:
                        raise SetupError(
                            f"{self.shown}: the way to '{_name((where, name))}' transforms {given.value!r}, which is "
                            "no number"
                        )
                    found[name] = Value(feed.change(given.value) if not feed.change.is_identity else given.value)
        return {name: self._converted((path, name), value) for name, value in found.items()}

    def _kind(self, node: Node) -> str:
        return self._connectors[node].kind if node in self._connectors else ""

    def _converted(self, node: Node, given: Value) -> Any:
        connector = self._connectors.get(node)
        if not given.unit or connector is None or not connector.unit or connector.unit == given.unit:
            return given.value
        if isinstance(given.value, (bool, str)):
            return given.value
        units = self._units if given.definition is None else {**self._units, given.unit: given.definition}
        change = self._conversion(given.unit, connector.unit, units, f"the value of '{_name(node)}'")
        return [change(v) for v in given.value] if isinstance(given.value, list) else change(given.value)

    def constant(self, node: Node) -> Any:
        """The number (or numbers) that parameter bindings give an input, or None."""
        given = self.values.get(node)
        if given is None:
            return None
        value = self._converted(node, given)
        if isinstance(value, str):
            raise SetupError(f"{self.shown}: the input '{_name(node)}' needs a number, not {value!r}")
        return np.asarray(value, dtype=np.float64)

    # -- connections -----------------------------------------------------------------------------------

    def is_fed(self, node: Node) -> bool:
        """True when a connection ends there."""
        return node in self._incoming

    def feed(self, node: Node, port_units: dict[Node, str]) -> InputSource:
        """What drives an input of a component, through however many connectors of systems."""
        way, here = [node], node
        while here in self._incoming and (here == node or here[0] not in self.components):
            here = self._incoming[here][0]
            if here in way:
                raise SetupError(
                    f"{self.shown}: the connections of '{_name(here)}' run in a circle without a component"
                )
            way.append(here)
        change, unit = Affine(), self._unit(here, port_units)
        for end in reversed(way[:-1]):
            start, connection, units = self._incoming[end]
            wanted = self._unit(end, port_units)
            if unit and wanted and unit != wanted and not connection.suppress:
                what = f"the connection from '{_name(start)}' to '{_name(end)}'"
                change = change.then(self._conversion(unit, wanted, units, what))
            change = change.then(connection.transformation)
            unit = wanted or unit  # a connector without a unit passes on what it gets
        return InputSource(here, change, here[0] in self.components)

    def _unit(self, node: Node, port_units: dict[Node, str]) -> str:
        connector = self._connectors.get(node)
        return connector.unit if connector is not None and connector.unit else port_units.get(node, "")

    def _conversion(self, source: str, target: str, units: dict[str, Unit], what: str) -> Affine:
        for unit in (source, target):
            if unit not in units:
                raise SetupError(
                    f"{self.shown}: {what} goes from {source} to {target}, but the unit '{unit}' is not defined; "
                    "define it under Units, or set suppressUnitConversion"
                )
        change = conversion(units[source], units[target])
        if change is None:
            raise SetupError(
                f"{self.shown}: {what} goes from {source} to {target}, which measure different things; correct the "
                "units, or set suppressUnitConversion"
            )
        return change


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _name(node: Node) -> str:
    return f"{node[0]}.{node[1]}" if node[0] else node[1]
