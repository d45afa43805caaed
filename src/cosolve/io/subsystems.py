"""Subsystems from their tables: made by a function, an FMU, a registered kind or adapter, a system inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

from cosolve.basics import registry
from cosolve.basics.imports import call, import_callable, refuse_bad_arguments
from cosolve.basics.wording import shortened
from cosolve.errors import SetupError
from cosolve.fmu.places import looking_in
from cosolve.interface import System
from cosolve.io import named
from cosolve.io.kinds import made, options_of, table_of
from cosolve.io.schema import FactoryTable, FmuTable, InnerTable, PartsTable, SystemTable
from cosolve.io.toml_text import TomlFile, Where
from cosolve.subsystem import Ports, Subsystem

#: From a file, tables and where these stand to a system.
Assemble = Callable[[TomlFile, PartsTable, Where], System]

#: The system files that are being read, each inside the one before.
_reading: ContextVar[tuple[Path, ...]] = ContextVar("reading", default=())


def subsystem(file: TomlFile, where: Where, table: Mapping[str, Any], assemble: Assemble) -> Subsystem:
    """The subsystem of a table [subsystems.NAME]."""
    if "fmu" in table:
        return _fmu(file, where, file.validate(FmuTable, table, where))
    if not {"kind", "adapter"} & set(table) and {"A", "B", "C", "x0"} & set(table):
        table = {"kind": "linear", **table}
    if table.get("kind") == "system":
        return _inner(file, where, file.validate(InnerTable, table, where), assemble)
    for key, group in (("kind", "subsystems"), ("adapter", "adapters")):
        if key in table:
            return _registered(file, where, table, key, group)
    if not set(table) - {"parameters"}:
        raise file.refuse(
            where, "give factory = 'module:function', fmu = 'file.fmu', or kind = 'linear' with its matrices"
        )
    return _from_factory(file, where, file.validate(FactoryTable, table, where))


def _registered(file: TomlFile, where: Where, table: Mapping[str, Any], key: str, group: str) -> Subsystem:
    """A subsystem of a kind, or by an adapter, that has a name; its other keys are options."""
    name = table[key]
    with file.at(where, key):
        if not isinstance(name, str):
            raise SetupError(f"{key} is a name, or module:Class, not {shortened(name)}")
        factory = registry.lookup(group, name, file.folder, also=["system"] if key == "kind" else [])
    given = file.validate(table_of(key, name, factory), table, where)
    build = partial(made, group, name, file.folder, options_of(given, key, factory))
    with file.at(where):
        return _elsewhere(str(where[-1]), build) if given.isolated else build()  # type: ignore[attr-defined]


def _from_factory(file: TomlFile, where: Where, given: FactoryTable) -> Subsystem:
    build = partial(built, given.factory, file.folder, given.parameters)
    with file.at(where, "factory"):
        if not given.isolated:
            return build()
        # what is wrong with the names is found here already
        refuse_bad_arguments(given.factory, import_callable(given.factory, file.folder), given.parameters)
        return _elsewhere(str(where[-1]), build)


def built(factory: str, folder: Path, parameters: Mapping[str, Any]) -> Subsystem:
    """The subsystem that a function of the user returns, in this process or in one of its own."""
    found = call(factory, import_callable(factory, folder), parameters)
    if not isinstance(found, Subsystem):
        raise SetupError(f"'{factory}' returned a {type(found).__name__}, not a cosolve.Subsystem")
    return found


def _elsewhere(name: str, build: Callable[[], Subsystem]) -> Subsystem:
    """A subsystem in a process of its own."""
    found: Subsystem = registry.lookup("subsystems", "isolated")(build, name=name)
    Ports(found.inputs)  # which waits until it is built there
    return found


def _fmu(file: TomlFile, where: Where, given: FmuTable) -> Subsystem:
    from cosolve.fmu.load import load_fmu

    ports = {key: value for key in ("inputs", "outputs") if (value := getattr(given, key)) is not None}
    for key in given.options:
        if key in ("file", "name", *FmuTable.model_fields):
            raise file.refuse(
                where, f"'{key}' is no option; it has a key of its own, or follows from the table", "options"
            )
    with file.at(where, "options"):
        refuse_bad_arguments("load_fmu", load_fmu, {"file": given.fmu, **given.options})
    with file.at(where, "fmu"):
        return load_fmu(
            given.fmu,
            parameters=given.parameters,
            start=given.start,
            isolated=given.isolated,
            name=str(where[-1]),
            **ports,
            **given.options,
        )


# -- a system inside -------------------------------------------------------------------------------------------------


def _inner(file: TomlFile, where: Where, given: InnerTable, assemble: Assemble) -> Subsystem:
    """A system of its own as one subsystem; what a file of its own says about its run counts unless said otherwise."""
    from cosolve.run.nested import Nested

    method, step, startup, folder = given.method, given.step, given.startup, file.folder
    if given.file is None:
        system = assemble(file, given, where)
    else:
        with file.at(where, "file"), _reading_one(file, given.file) as inside:
            described = inside.validate(SystemTable, inside.data)
            if described.changes:
                raise inside.refuse(("changes", 0), "a system inside takes no changes; make them in the outer file")
            system = assemble(inside, described, ())
        run: Any = described.simulation
        if method is None:
            method, folder = run.method, inside.folder
        if step is None and given.substeps is None:
            step = run.step
        startup = run.startup if startup is None else startup
    with file.at(where, "method"):
        opened = named.open_method(method, folder)
        if opened is None:
            raise SetupError(
                "a system inside needs a method, such as method = 'implicit'; it cannot be left open there"
            )
    with file.at(where, "startup"):
        started = None if startup is None else named.startup(startup, folder)
    with file.at(where, "step"):
        control = named.step_control(step, folder) if isinstance(step, Mapping) else step
    with file.at(where):
        return Nested(
            system,
            method=opened,
            inputs=given.inputs,
            outputs=given.outputs,
            substeps=given.substeps,
            step=control,
            startup=started,
            workers=given.workers,
        )


@contextmanager
def _reading_one(file: TomlFile, name: str) -> Iterator[TomlFile]:
    """The file of a system inside, relative to the one that names it."""
    inside = TomlFile(file.folder / name)
    before = _reading.get() or (file.path,)
    if inside.path.resolve() in [path.resolve() for path in before]:
        raise SetupError(f"'{name}' would be inside itself; a system inside needs a file of its own")
    token = _reading.set((*before, inside.path))
    try:
        with looking_in(inside.folder):
            yield inside
    finally:
        _reading.reset(token)


def inner_files(file: TomlFile, table: Mapping[str, Any]) -> list[Path]:
    """The files of systems inside, and of those inside them."""
    if table.get("kind") != "system":
        return []
    inside, found = file, list[Path]()
    if isinstance(table.get("file"), str):
        inside = TomlFile(file.folder / table["file"])
        found.append(inside.path)
    parts = inside.data.get("subsystems", {}) if inside is not file else table.get("subsystems", {})
    return found + [path for each in parts.values() for path in inner_files(inside, each)]
