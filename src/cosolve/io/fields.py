"""Meshes and fields of a file, and what happens to values on their way through a connection with filters.

Filters are linear with a constant: each connection becomes one law with its exact Jacobian. Only `weak` remembers
something from step to step, so that it is a small subsystem of its own behind the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack

from cosolve import mapping as mappings
from cosolve.basics.arrays import Matrix
from cosolve.basics.error_location import complaints_about
from cosolve.basics.imports import call, import_callable, refuse_bad_arguments
from cosolve.basics.wording import suggest
from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.io.schema import ConnectionTable, FieldTable, FilterTable, MeshTable, PartsTable, Quantity
from cosolve.io.toml_text import TomlFile, Where
from cosolve.mapping import FieldMapping, Mesh, field_to_loads, loads_to_field, read_mesh
from cosolve.subsystem import Port, Ports, Subsystem, relaxed_prediction


class Fields:
    """The meshes of a system by name, and which ports are fields on them; those of `weak` have relaxed predictions."""

    def __init__(
        self, file: TomlFile, described: PartsTable, subsystems: Mapping[str, Subsystem], above: Where = ()
    ) -> None:
        self._file, self._above = file, above
        self.declared = described.fields
        self.meshes: dict[str, Mesh] = {}
        for name, table in described.meshes.items():
            with file.at((*above, "meshes", name)):
                self.meshes[name] = _mesh(file, name, table)
        self.weak: dict[str, Subsystem] = {}
        self._weak_of: dict[int, str] = {}
        for n, connection in enumerate(described.connections):
            if connection.filters and connection.filters[-1].weak is not None:
                with file.at((*above, "connections", n)):
                    self._add_weak(n, connection, connection.filters[-1].weak, subsystems)

    def _add_weak(self, n: int, connection: ConnectionTable, beta: float, subsystems: Mapping[str, Subsystem]) -> None:
        target = _several(connection.to)[0]
        name = connection.name or f"weak_{target.replace('.', '_')}"
        if name in subsystems or name in self.weak:
            raise SetupError(f"weak makes a subsystem '{name}', which there is already; give the connection a name")
        owner, _, inner = target.partition(".")
        port = Ports(subsystems[owner].inputs).find(inner) if owner in subsystems else None
        port = port or Port("u")  # System says what is wrong with the address
        self.weak[name] = relaxed_prediction(beta, port.size, unit=port.unit, nominal=port.nominal)
        self._weak_of[n] = name

    def look_at(self, system: System) -> None:
        """Refuse fields that are no ports, or not as long as their mesh has points."""
        for address, table in self.declared.items():
            with self._file.at((*self._above, "fields"), address):
                self._refuse_misfit(system, address, table)

    def _refuse_misfit(self, system: System, address: str, table: FieldTable) -> None:
        if table.mesh not in self.meshes:
            raise SetupError(f"there is no mesh '{table.mesh}'; {_meshes(table.mesh, self.meshes)}")
        name, _, inner = address.partition(".")
        both = [port for ports in (system.inputs, system.outputs) for port in ports.get(name, ())]
        found = next((port for port in both if port.name == inner), None)
        if found is None:
            known = [f"{owner}.{port}" for owner in system.subsystems for port in _ports(system, owner)]
            raise SetupError(f"'{address}' is no port; {suggest(address, known)}")
        points = self.meshes[table.mesh].n_points
        if found.length != points * table.components:
            raise SetupError(
                f"'{address}' carries {found.length} numbers, but the mesh '{table.mesh}' has {points} points with "
                f"{table.components} component{'s' * (table.components != 1)} each; correct the mesh or 'components'"
            )

    def feed(self, system: System, connection: ConnectionTable, n: int) -> None:
        """Add connection `n`: straight, or through its filters as a law."""
        targets, weak = _several(connection.to), self._weak_of.get(n)
        chain = Chain(system.port(connection.source, "output", "connect").size is None)
        place = _Place(connection, self)
        added: list[str] = []
        for k, each in enumerate(connection.filters):
            with complaints_about(f"filter {k + 1}"):
                if each.add is not None:
                    for source in each.add:
                        system.port(source, "output", "add")
                    added += list(each.add)
                step = _step(each, place)
            if step is not None:
                chain.steps.append(step)
        place.refuse_elsewhere()
        first = [f"{weak}.u"] if weak is not None else targets
        if chain.steps and all(each.map is not None or each.weak is not None for each in connection.filters):
            chain.convert(*_same_change(system, connection.source, first))
        chain.refuse_misfit(system, connection.source, first[0], added)
        if not chain.steps:
            system.connect(connection.source, *first)
        else:
            name = None if weak is not None else connection.name
            drives = dict.fromkeys(first, 1.0)
            system.law(drives, chain, of=[connection.source, *added], jacobian=chain.jacobian, name=name)
        if weak is not None:
            system.connect(f"{weak}.y", *targets)

    def mesh(self, name: str) -> Mesh:
        """A mesh by its name."""
        if name not in self.meshes:
            raise SetupError(f"there is no mesh '{name}'; {_meshes(name, self.meshes)}")
        return self.meshes[name]


class _Place:
    """Where on its way a field is: on which mesh, and as what."""

    def __init__(self, connection: ConnectionTable, fields: Fields) -> None:
        self.fields, self._source = fields, connection.source
        start = fields.declared.get(connection.source)
        ends = {to: fields.declared[to] for to in _several(connection.to) if to in fields.declared}
        self.end = next(iter(ends.values()), None)
        for to, other in ends.items():
            if self.end is not None and (other.mesh, other.quantity) != (self.end.mesh, self.end.quantity):
                raise SetupError(
                    f"'{to}' lies on another mesh than '{next(iter(ends))}'; give it a connection of its own"
                )
        self.mesh = None if start is None else start.mesh
        self.quantity: Quantity = "field" if start is None else start.quantity

    def refuse_elsewhere(self) -> None:
        """Raise when a field has not come to the mesh where it goes, or as something else."""
        if self.end is None or self.mesh is None:
            return
        if self.mesh != self.end.mesh:
            raise SetupError(
                f"'{self._source}' lies on the mesh '{self.mesh}' and goes to the mesh '{self.end.mesh}'; say how: "
                'filters = [{map = "mortar"}]'
            )
        if self.quantity != self.end.quantity:
            wanted = "to_loads" if self.end.quantity == "loads" else "to_field"
            raise SetupError(
                f"'{self._source}' arrives as {_as(self.quantity)} and is wanted as {_as(self.end.quantity)}; add "
                f'{{{wanted} = "{self.mesh}"}} to its filters'
            )


@dataclass
class Chain:
    """The filters of a connection one after the other: a function of the source, and of outputs that are added."""

    scalar: bool
    steps: list[tuple[str, Any]] = field(default_factory=list)

    def __call__(self, value: Any, *others: Any) -> Any:
        rest = iter(others)
        for kind, what in self.steps:
            if kind == "scale":
                value = what * value
            elif kind == "offset":
                value = value + what
            elif kind == "add":
                for factor in what:
                    value = value + factor * next(rest)
            else:
                value = what["function"](value)
        return value

    def jacobian(self, value: Any, *others: Any) -> Matrix | csr_array:
        """Derivatives by the source and by all that is added; they do not depend on the values."""
        if self.scalar:
            return np.array([[float(entry) for entry in self._slopes()]])
        parts: list[Any] = [eye_array(np.size(value), format="csr")]
        rest = iter(others)
        for kind, what in self.steps:
            if kind == "scale":
                parts = [what * part for part in parts]
            elif kind == "add":
                parts += [factor * eye_array(np.size(next(rest)), format="csr") for factor in what]
            elif kind == "map":
                L = what["jacobian"](np.zeros(parts[0].shape[0]))
                parts = [L @ part for part in parts]
        return csr_array(hstack(parts))

    def convert(self, factor: float, offset: float) -> None:
        """Change the unit of what comes out."""
        self.steps += [("scale", factor)] * (factor != 1.0) + [("offset", offset)] * (offset != 0.0)

    def _slopes(self) -> Iterator[float]:
        slopes = [1.0]
        for kind, what in self.steps:
            if kind == "scale":
                slopes = [what * slope for slope in slopes]
            elif kind == "add":
                slopes += list(what)
        return iter(slopes)

    def refuse_misfit(self, system: System, source: str, target: str, added: list[str]) -> None:
        """Raise when what comes out is not what the input takes; tried with zeros."""
        sizes = [system.port(address, "output", "connect").size for address in (source, *added)]
        zeros = [0.0 if size is None else np.zeros(size) for size in sizes]
        wanted = system.port(target, "input", "connect")
        try:
            found = np.size(self(*zeros))
        except ValueError:
            raise SetupError(
                f"what is added or set off does not fit '{source}', which carries {np.size(zeros[0])} numbers"
            ) from None
        if found != wanted.length or (self.scalar and wanted.size is not None):
            raise SetupError(
                f"{found} number{'s come' if found != 1 else ' comes'} out of the filters, but '{target}' takes "
                f"{wanted.length}; make the sizes equal, or map to the mesh of the input"
            )


def _same_change(system: System, source: str, targets: list[str]) -> tuple[float, float]:
    """The change of units on the way to all targets."""
    changes = {system.unit_change(source, target) for target in targets}
    if len(changes) > 1:
        raise SetupError(f"{', '.join(targets)} are in different units; give each a connection of its own")
    return changes.pop()


def _step(each: FilterTable, place: _Place) -> tuple[str, Any] | None:
    """One filter, and where the field is after it."""
    if each.scale is not None:
        return "scale", each.scale
    if each.offset is not None:
        return "offset", each.offset if isinstance(each.offset, float | int) else np.array(each.offset, dtype=float)
    if each.add is not None:
        return "add", list(each.add.values())
    if each.map is not None:
        return "map", _mapped(each, place)
    if each.to_loads is not None:
        return "map", _converted(each.to_loads, place, "loads", field_to_loads)
    if each.to_field is not None:
        return "map", _converted(each.to_field, place, "field", loads_to_field)
    return None


def _mapped(each: FilterTable, place: _Place) -> Any:
    """The mapping to the mesh of the input: loads by the transpose of the way back."""
    if place.mesh is None or place.end is None:
        raise SetupError(
            "map needs to know on which meshes the two ports lie; say so in [fields], such as "
            'fields = {"wing.u" = {mesh = "wing"}}'
        )
    source, target = place.fields.mesh(place.mesh), place.fields.mesh(place.end.mesh)
    kind = each.kind or ("conservative" if place.quantity == "loads" else "consistent")
    name = str(each.map).replace("-", "_")
    method: Callable[..., FieldMapping] = getattr(mappings, name)
    pair = (source, target) if kind == "consistent" else (target, source)
    refuse_bad_arguments(str(each.map), method, {"source": source, "target": target, **each.options})
    made = method(*pair, **each.options)
    place.mesh = place.end.mesh
    return made.as_law(kind)


def _converted(name: str, place: _Place, quantity: Quantity, method: Callable[[Mesh], FieldMapping]) -> Any:
    if place.mesh is not None and name != place.mesh:
        raise SetupError(f"the field lies on the mesh '{place.mesh}' here, not on '{name}'")
    made = method(place.fields.mesh(name))
    place.mesh, place.quantity = name, quantity
    return made.as_law()


def _mesh(file: TomlFile, name: str, table: MeshTable) -> Mesh:
    if table.file is not None:
        path = file.folder / table.file
        return read_mesh(path if path.exists() else table.file, group=table.group, name=name)
    if table.factory is not None:
        made = call(table.factory, import_callable(table.factory, file.folder), table.parameters)
        if not isinstance(made, Mesh):
            raise SetupError(f"'{table.factory}' returned a {type(made).__name__}, not a cosolve.mapping.Mesh")
        return made
    if table.line is not None:
        return Mesh.line(table.line, closed=table.closed, name=name)
    assert table.points is not None
    cells = {"lines": table.lines, "triangles": table.triangles, "quadrilaterals": table.quadrilaterals}
    return Mesh(table.points, **cells, name=name)


def _as(quantity: str) -> str:
    return "loads" if quantity == "loads" else "a field"


def _meshes(name: str, known: Mapping[str, Mesh]) -> str:
    return suggest(name, known) if known else "describe it in [meshes.NAME]"


def _ports(system: System, name: str) -> list[str]:
    return [*system.inputs[name].names, *system.outputs[name].names]


def _several(addresses: str | list[str]) -> list[str]:
    return [addresses] if isinstance(addresses, str) else addresses
