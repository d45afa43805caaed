"""Values of a system file that are given besides it, by their keys: what the command line changes.

A key is the way through the tables, `simulation.step` or `connections.0.to` (places in lists count from 0). A way that
begins with a subsystem is short: `wheel.mass` is a parameter, start value or input of the FMU `wheel`, a parameter of a
factory, or a key of the subsystem's own table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cosolve.basics.wording import shown, suggest
from cosolve.errors import SetupError
from cosolve.io.schema import FactoryTable, FmuTable, SystemTable

Way = tuple[str | int, ...]


def change(data: dict[str, Any], key: str, value: Any, folder: Path) -> Way:
    """Put a value in the place of what a system file in `folder` says; the way to it.

    >>> data = {"subsystems": {"tank": {"factory": "m:tank"}}, "connections": [{"to": "a.u"}]}
    >>> change(data, "simulation.step", 0.2, Path()), change(data, "tank.area", 3.0, Path())
    (('simulation', 'step'), ('subsystems', 'tank', 'parameters', 'area'))
    >>> change(data, "connections.0.to", "b.u", Path()), data["connections"]
    (('connections', 0, 'to'), [{'to': 'b.u'}])
    """
    parts = key.split(".")
    subsystems = data.get("subsystems")
    known = subsystems if isinstance(subsystems, Mapping) else {}
    if parts[0] not in SystemTable.model_fields and parts[0] in known and len(parts) > 1:
        parts = _of_subsystem(known[parts[0]], parts[0], ".".join(parts[1:]), folder)
    elif parts[0] not in SystemTable.model_fields or len(parts) == 1:
        hint = suggest(parts[0], [*known, *SystemTable.model_fields])
        if len(parts) == 1 and known:
            hint = f"such as {next(iter(known))}.{key}"
        raise SetupError(f"{key}={shown(value)}: write it as TABLE.KEY or SUBSYSTEM.NAME; {hint}")
    if parts[0] in ("constants", "inputs"):  # one of them drives an input
        _forget(data.get("inputs" if parts[0] == "constants" else "constants", {}), ".".join(parts[1:]))
    return tuple(_put(data, parts, value, key))


def _of_subsystem(table: Any, name: str, rest: str, folder: Path) -> list[str]:
    """The way to what is called `rest` in a subsystem."""
    inside = ["subsystems", name]
    if not isinstance(table, Mapping):
        return [*inside, rest]
    if "fmu" in table:
        causality = _causality(folder, str(table["fmu"]), rest)
        if causality == "input":
            return ["constants", f"{name}.{rest}"]
        if causality is None and rest.partition(".")[0] in FmuTable.model_fields:
            return [*inside, *rest.split(".")]
        parameter = causality in (None, "parameter", "structuralParameter")
        return [*inside, "parameters" if parameter else "start", rest]
    if "factory" in table and rest.partition(".")[0] not in FactoryTable.model_fields:
        return [*inside, "parameters", rest]
    return [*inside, *rest.split(".")]


def _causality(folder: Path, fmu: str, name: str) -> str | None:
    """What a variable of an FMU is; None where there is none, or no FMU, which is said later."""
    from cosolve.fmu.archive import unpack
    from cosolve.fmu.description import read_description

    try:
        path = folder / fmu
        variables = read_description(unpack(path if path.exists() else Path(fmu))).variables
    except SetupError:
        return None
    return variables[name].causality if name in variables else None


def _put(table: Any, parts: list[str], value: Any, key: str) -> Iterator[str | int]:
    """Walk to a place, through tables that are not there yet as well, and put the value there; the way to it."""
    while parts:
        if isinstance(table, list):
            if not parts[0].isdigit() or int(parts[0]) >= len(table):
                many = f"has places 0 to {len(table) - 1}" if table else "is empty"
                raise SetupError(f"{key}={shown(value)}: '{parts[0]}' is no place in the list, which {many}")
            place: Any = int(parts[0])
            used = 1
        elif isinstance(table, dict):  # addresses may stand there with their dots
            joined = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
            place = next((name for name in joined if name in table), parts[0])
            used = place.count(".") + 1
        else:
            raise SetupError(f"{key}={shown(value)}: there is nothing below {shown(table)}")
        yield place
        parts = parts[used:]
        if not parts:
            table[place] = value
        else:
            table = table[place] if isinstance(table, list) else table.setdefault(place, {})


def _forget(table: Any, address: str) -> None:
    """Take what stands under an address out of a table, however it is written."""
    if not isinstance(table, dict):
        return
    table.pop(address, None)
    name, _, rest = address.partition(".")
    if rest and isinstance(table.get(name), dict):
        table[name].pop(rest, None)


def isolate(data: Mapping[str, Any]) -> None:
    """Let every FMU of a system file, and of systems inside it, run in a process of its own."""
    tables = data.get("subsystems")
    for table in tables.values() if isinstance(tables, Mapping) else ():
        if isinstance(table, dict):
            if "fmu" in table:
                table["isolated"] = True
            isolate(table)
