"""A system from its tables: subsystems, and everything that joins them, each complaint with its place in the file.

Inputs that nothing feeds are named in one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from re import ASCII, fullmatch
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.arrays import Matrix
from cosolve.basics.imports import call, import_callable
from cosolve.basics.placement import refuse_bad_placement
from cosolve.basics.wording import suggest
from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.interface.driven_inputs import Table
from cosolve.io.schema import EquationsTable, InputTable, LawTable, PartsTable, SystemTable
from cosolve.io.subsystems import inner_files, subsystem
from cosolve.io.toml_text import TomlFile, Where
from cosolve.subsystem import Subsystem

if TYPE_CHECKING:
    from cosolve.io.fields import Fields


def hold_unconnected(system: System) -> dict[str, list[float]]:
    """Hold every input that nothing feeds, an FMU's at its start value and others at 0; what they are held at.

    >>> import cosolve as cs
    >>> system = cs.System({"tank": cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["q"], outputs=["h"])})
    >>> hold_unconnected(system)
    {'tank.q': [0.0]}
    """
    held = {}
    for address in system.unconnected_inputs():
        name, port = address.split(".", 1)
        found = system.port(address, "input", "set")
        values = _start_value(system.subsystems[name], port)
        held[address] = values * found.length if len(values) == 1 else values
        system.set(address, held[address] if found.size else held[address][0])
    return held


def _start_value(subsystem: Subsystem, port: str) -> list[float]:
    """What the user gave an FMU's input to start with, else what its description says, else 0."""
    variable = (subsystem.known_variables or {}).get(port)
    if variable is None:
        return [0.0]
    given = subsystem.given_values.get(variable.name)
    if given is not None:
        return [float(value) for value in np.ravel(given)]
    words = [{"true": "1", "false": "0"}.get(word, word) for word in (variable.start or "0").split()]
    try:
        return [float(word) for word in words]
    except ValueError:  # not a number
        return [0.0]


#: Makes the subsystems of a file, given how each is made and the ranks that the file asks for.
Builder = Callable[[Mapping[str, Callable[[], Subsystem]], Mapping[str, int]], dict[str, Subsystem]]


def built_here(sources: Mapping[str, Callable[[], Subsystem]], ranks: Mapping[str, int]) -> dict[str, Subsystem]:
    """All of them, in this process."""
    return {name: source() for name, source in sources.items()}


def whole_system(file: TomlFile, described: SystemTable, build: Builder, complete: bool) -> System:
    """The system of a file; where it has to be `complete`, every input has to be fed, else such inputs are held."""
    with file.at(("simulation",), "ranks"):
        refuse_bad_placement(described.subsystems, described.simulation.ranks)
    system = open_system(file, described, build=build, ranks=described.simulation.ranks)
    for n, change in enumerate(described.changes):
        with file.at(("changes", n)):
            system.at(change.t, change.set)
    if complete:
        _refuse_unconnected(file, system)
    else:
        hold_unconnected(system)
    return system


def open_system(
    file: TomlFile,
    described: PartsTable,
    above: Where = (),
    build: Builder = built_here,
    ranks: Mapping[str, int] = MappingProxyType({}),
) -> System:
    """The system of the tables below `above`; inputs may be left open, to be connected outside."""
    sources = {
        name: partial(subsystem, file, (*above, "subsystems", name), table, open_system)
        for name, table in described.subsystems.items()
    }
    made = build(sources, ranks)
    fields = _fields(file, described, made, above)
    with file.at((*above, "subsystems")):
        system = System(made if fields is None else made | fields.weak)
    if fields is not None:
        fields.look_at(system)
    for n, connection in enumerate(described.connections):
        with file.at((*above, "connections", n)):
            if fields is None:
                system.connect(connection.source, *_several(connection.to))
            else:
                fields.feed(system, connection, n)
    for n, law in enumerate(described.laws):
        with file.at((*above, "laws", n)):
            _add_law(system, law, file.folder)
    for n, equations in enumerate(described.equations):
        with file.at((*above, "equations", n)):
            _add_equations(system, equations, file.folder)
    for n, constraint in enumerate(described.constraints):
        with file.at((*above, "constraints", n)):
            levels = _with_parameters(import_callable(constraint.levels, file.folder), constraint.parameters)
            system.constraint(
                constraint.multipliers,
                levels,
                of=_several(constraint.of),
                correction=constraint.correction or None,
                initial=constraint.initial,
            )
    for address, value in described.constants.items():
        with file.at((*above, "constants"), address):
            system.set(address, value)
    if isinstance(described, SystemTable):
        for address, given in described.inputs.items():
            with file.at(("inputs",), address):
                system.set(address, _drive(given, file.folder))
    return system


def _fields(file: TomlFile, described: PartsTable, made: Mapping[str, Subsystem], above: Where) -> Fields | None:
    """Meshes, fields and filters; None where there are none, which is quick."""
    if not (described.meshes or described.fields or any(each.filters for each in described.connections)):
        return None
    from cosolve.io.fields import Fields

    return Fields(file, described, made, above)


def files_used(file: TomlFile, described: SystemTable) -> list[Path]:
    """The files that inputs, meshes and systems inside are read from."""
    found = [_found(each.table, file.folder) for each in described.inputs.values() if each.table is not None]
    found += [_found(each.file, file.folder) for each in described.meshes.values() if each.file is not None]
    for table in described.subsystems.values():
        found += inner_files(file, table)
    return found


def _drive(given: InputTable, folder: Path) -> Table | Callable[[float], Any]:
    if given.table is not None:
        path = _found(given.table, folder)
        return Table.read(path, given.column, time=given.time, kind=given.kind, beyond=given.beyond)
    if given.function is not None:
        return _with_parameters(import_callable(given.function, folder), given.parameters)
    return Table(given.times or [], given.values or [], kind=given.kind, beyond=given.beyond)


def _found(table: str, folder: Path) -> Path:
    path = folder / table
    return path if path.exists() else Path(table)


def _refuse_unconnected(file: TomlFile, system: System) -> None:
    for address in system.unconnected_inputs():
        name, port = address.split(".", 1)
        key = address if fullmatch(r"[\w-]+", port, ASCII) else f'"{address}"'
        raise file.refuse(
            ("subsystems", name),
            f"the input '{address}' is not connected; let a connection or a law drive it, or hold it: "
            f"[constants] {key} = 0.0, or cosolve run --input {address}=0.0",
        )


def _add_law(system: System, law: LawTable, folder: Path) -> None:
    if law.linear is not None:  # one value, which may drive several inputs
        inputs = law.inputs if isinstance(law.inputs, dict) else dict.fromkeys(_several(law.inputs), 1.0)
        weighted = Weighted(tuple(law.linear.values()))
        system.law(inputs, weighted, of=list(law.linear), jacobian=weighted.jacobian, name=law.name)
        return
    if law.factory is not None:
        function = call(law.factory, import_callable(law.factory, folder), law.parameters)
    else:
        assert law.function is not None
        function = _with_parameters(import_callable(law.function, folder), law.parameters)
    system.law(law.inputs, function, of=_several(law.of or []), name=law.name)


def _add_equations(system: System, equations: EquationsTable, folder: Path) -> None:
    if equations.linear is None:
        assert equations.residual is not None
        residual = _with_parameters(import_callable(equations.residual, folder), equations.parameters)
        of = _several(equations.of or [])
    else:
        unknowns = list(equations.unknowns)
        of = list(dict.fromkeys(name for row in equations.linear for name in row if name not in unknowns))
        known = [*unknowns, *(f"{name}.{port}" for name, ports in system.outputs.items() for port in ports.names)]
        for name in of:
            if "." not in name:
                raise SetupError(f"'{name}' is neither an unknown nor an output; {suggest(name, known)}")
        if len(equations.linear) != len(unknowns):
            raise SetupError(
                f"there are {len(unknowns)} unknowns but {len(equations.linear)} linear equations; give one for each"
            )
        residual = _Rows(tuple(equations.linear), (*unknowns, *of))
    system.equations(equations.unknowns, residual, of=of, initial=equations.initial, solve_start=equations.solve_start)


@dataclass(frozen=True)
class Weighted:
    """The sum of the arguments, each times its coefficient."""

    coefficients: tuple[float, ...]

    def __call__(self, *values: Any) -> Any:
        return sum(c * value for c, value in zip(self.coefficients, values, strict=True))

    def jacobian(self, *values: Any) -> Matrix:
        return np.kron(np.array([self.coefficients]), np.eye(np.size(values[0])))


@dataclass(frozen=True)
class _Rows:
    """Linear residuals: for each equation the coefficients of arguments, by name."""

    rows: tuple[Mapping[str, float], ...]
    names: tuple[str, ...]

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        by_name = dict(zip(self.names, values, strict=True))
        return tuple(sum(c * by_name[name] for name, c in row.items()) for row in self.rows)


def _with_parameters(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Callable[..., Any]:
    return partial(function, **parameters) if parameters else function


def _several(addresses: str | list[str]) -> list[str]:
    return [addresses] if isinstance(addresses, str) else addresses
