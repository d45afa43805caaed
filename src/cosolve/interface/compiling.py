"""Compiling a system: from names to flat arrays and index maps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cosolve.errors import SetupError
from cosolve.interface.changes import Changes
from cosolve.interface.driven_inputs import Drive, Driven
from cosolve.interface.plan import Block, Plan
from cosolve.interface.system import Join, System
from cosolve.subsystem.port import Port, Ports, split_element


def compile_plan(
    system: System,
    joins: list[Join],
    constants: dict[str, npt.NDArray[np.float64]],
    drivers: dict[str, Drive],
    changes: Changes,
) -> Plan:
    """The plan of a system; refuses inputs that nothing feeds."""
    if not system.subsystems:
        raise SetupError("the system has no subsystems; give System a dict of names and subsystems")
    for address in system.unconnected_inputs():
        raise SetupError(
            f"input '{address}' is not connected; connect an output to it, let a law drive it, "
            f"or hold it with system.set('{address}', value)"
        )
    names = tuple(system.subsystems)
    position = {name: i for i, name in enumerate(names)}
    u_slices, n_u = _stack([system.inputs[n].length for n in names])
    y_slices, n_y = _stack([system.outputs[n].length for n in names])
    u_source = np.full(n_u, -1, dtype=np.intp)
    u_factor, u_offset = np.zeros(n_u), np.zeros(n_u)

    def entries(address: str, ports: dict[str, Ports], slices: tuple[slice, ...]) -> npt.NDArray[np.intp]:
        name, port = address.split(".", 1)
        inside = ports[name].slice(port)
        base = slices[position[name]].start
        return np.arange(base + inside.start, base + inside.stop, dtype=np.intp)

    y_nominal = np.array([port.nominal for n in names for port in system.outputs[n] for _ in range(port.length)])
    y_given = np.where(y_nominal == 1.0, 0.0, y_nominal)
    labels: list[str] = []
    nominal: list[float] = []
    unsaid: list[bool] = []
    start_values: list[float] = []
    given: list[bool] = []
    z_ports: dict[str, tuple[slice, bool]] = {}
    copy_rows: list[npt.NDArray[np.intp]] = []
    copy_from: list[npt.NDArray[np.intp]] = []
    blocks: list[Block] = []
    shared: dict[str, slice] = {}  # outputs that already have a coupling variable
    for join in joins:
        rows = []
        for variable, size, drives in join.variables:
            length = 1 if size is None else size
            known = _shared(shared, variable) if join.kind == "connect" else None
            if known is not None:
                part = known
            else:
                part = slice(len(labels), len(labels) + length)
                labels += [variable] if size is None else [f"{variable}[{i}]" for i in range(length)]
                ports_driven = [system.port(target, "input", join.kind) for target in drives]
                if join.kind == "connect":  # the variable is in the unit of the output
                    scales = [p.nominal / abs(f) for p, f in zip(ports_driven, drives.values(), strict=True)]
                    source = system.port(variable, "output", join.kind)
                    if source.nominal != 1.0 and all(port.nominal == 1.0 for port in ports_driven):
                        scales, ports_driven = [source.nominal], [source]
                else:
                    scales = [port.nominal for port in ports_driven]
                nominal += [max(scales)] * length
                unsaid += [all(port.nominal == 1.0 for port in ports_driven)] * length
                value = np.broadcast_to((join.initial or {}).get(variable, 0.0), (length,))
                start_values += [float(v) for v in value]
                given += [variable in (join.initial or {})] * length
                if variable in z_ports:
                    raise SetupError(f"two coupling variables are called '{variable}'; give one another name")
                z_ports[variable] = (part, size is None)
                if join.kind == "connect":
                    shared[variable] = part
                    copy_rows.append(np.arange(part.start, part.stop, dtype=np.intp))
                    copy_from.append(entries(variable, system.outputs, y_slices))
            for target, factor in drives.items():
                into = entries(target, system.inputs, u_slices)
                u_source[into], u_factor[into] = np.arange(part.start, part.stop), factor
                u_offset[into] = join.offsets.get(target, 0.0)
            rows.append(np.arange(part.start, part.stop, dtype=np.intp))
        if join.kind != "connect":
            assert join.function is not None
            of = tuple(
                (
                    entries(source, system.outputs, y_slices),
                    system.port(source, "output", join.kind).size is None,
                )
                for source in join.of
            )
            layout = Ports([Port(variable, size) for variable, size, _ in join.variables])
            blocks.append(
                Block(
                    join.label,
                    np.concatenate(rows),
                    layout,
                    of,
                    join.function,
                    join.jacobian,
                    join.kind in ("equations", "constraint"),
                    np.array([0.0 if unsaid[m] else nominal[m] for m in np.concatenate(rows)]),
                    np.concatenate([np.zeros(0), *(y_given[index] for index, _ in of)]),
                    join.levels,
                    solve_start=join.solve_start,
                )
            )
    for target, constant in constants.items():
        u_offset[entries(target, system.inputs, u_slices)] = constant
    driven = [Driven(target, entries(target, system.inputs, u_slices), drive) for target, drive in drivers.items()]
    y_owner = np.repeat(np.arange(len(names), dtype=np.intp), [part.stop - part.start for part in y_slices])
    empty = [np.zeros(0, dtype=np.intp)]
    return Plan(
        names=names,
        subsystems=tuple(system.subsystems.values()),
        input_ports=tuple(system.inputs[n] for n in names),
        output_ports=tuple(system.outputs[n] for n in names),
        u_slices=u_slices,
        y_slices=y_slices,
        n_u=n_u,
        n_y=n_y,
        n_z=len(labels),
        z_labels=tuple(labels),
        z_nominal=np.array(nominal),
        z_initial=np.array(start_values),
        z_given=np.array(given, dtype=bool),
        z_ports=z_ports,
        u_source=u_source,
        u_factor=u_factor,
        u_offset=u_offset,
        copy_rows=np.concatenate(empty + copy_rows),
        copy_from=np.concatenate(empty + copy_from),
        blocks=tuple(blocks),
        y_owner=y_owner,
        driven=tuple(driven),
        changes=changes,
        z_open=np.array(unsaid, dtype=bool),
        _reads=tuple(np.unique(u_source[part][u_source[part] >= 0]) for part in u_slices),
    )


def _shared(shared: dict[str, slice], variable: str) -> slice | None:
    """The coupling variables of an output that is connected already, by itself or as an element of a vector."""
    found = split_element(variable)
    if variable in shared or found is None or found[0] not in shared:
        return shared.get(variable)
    start = shared[found[0]].start + int(found[1])
    return slice(start, start + 1)


def _stack(lengths: Sequence[int]) -> tuple[tuple[slice, ...], int]:
    """Consecutive slices of the given lengths, and their total."""
    ends = np.cumsum([0, *lengths])
    return tuple(slice(int(a), int(b)) for a, b in pairwise(ends)), int(ends[-1])
