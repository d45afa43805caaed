"""Ports of a multibody subsystem: which inputs and outputs there are, and where they live in the flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import as_list
from cosolve.errors import SetupError
from cosolve.multibody.equations.python_callbacks import Law
from cosolve.multibody.model.arrays import Index
from cosolve.multibody.model.build import Built
from cosolve.subsystem.port import Port

#: Inputs at a marker: name -> unit; outputs: name, size, unit.
INPUTS = {"force": "N", "torque": "N m", "shift": "m/s", "turn": "rad/s"}
OUTPUTS = (
    ("position", 3, "m"),
    ("orientation", 4, ""),
    ("velocity", 3, "m/s"),
    ("angular_velocity", 3, "rad/s"),
    ("acceleration", 3, "m/s^2"),
    ("angular_acceleration", 3, "rad/s^2"),
)
END_OUTPUTS = ("r", "q", "v", "w", "a", "alpha")


class Layout(NamedTuple):
    """Ports, and the arrays that tell the compiled equations about them."""

    inputs: list[Port]
    outputs: list[Port]
    ports: Index
    ends: Index
    end_constants: Vector
    seen: Index  # observed markers, 19 numbers each
    laws: list[Law]


def lay_out(built: Built, ports: Sequence[Any], ends: Sequence[Any]) -> Layout:
    """Numbering of all inputs and outputs: markers first, then joint ends."""
    inputs: list[Port] = []
    outputs: list[Port] = []
    rows: list[list[int]] = []
    end_rows: list[list[int]] = []
    constants: list[Vector] = []
    seen: list[int] = []
    laws: list[Law] = []
    n_u = 0
    n_constants = 0
    for entry in as_list("MultibodySubsystem", "ports", ports):
        marker, wanted = (entry, ("force", "torque")) if isinstance(entry, str) else _pair(entry)
        if marker not in built.marker_index:
            raise SetupError(
                f"MultibodySubsystem: port {marker!r} is not a marker of the model; there are "
                f"{', '.join(built.marker_index)}"
            )
        index = built.marker_index[marker]
        if index in seen:
            raise SetupError(f"MultibodySubsystem: the marker '{marker}' is listed twice as a port")
        row = [index, -1, -1, -1, -1]
        for k, (name, unit) in enumerate(INPUTS.items()):
            if name in wanted:
                row[1 + k] = n_u
                inputs.append(Port(f"{marker}_{name}", 3, unit))
                n_u += 3
        rows.append(row)
        seen.append(index)
        outputs += [Port(f"{marker}_{name}", size, unit) for name, size, unit in OUTPUTS]
    for end in ends:
        bodies = (*built.free, *built.others)
        if end.body not in bodies:
            raise SetupError(
                f"MultibodySubsystem: joint end '{end.name}' names the body {end.body!r}, but the model has "
                f"{', '.join(bodies)}"
            )
        body = built.body_index(end.body)
        size = sum(n for _, n in end.inputs)
        inputs += [Port(f"{end.name}_{suffix}", n) for suffix, n in end.inputs]
        law = getattr(end, "law", None)
        values = np.asarray(end.constants, dtype=np.float64).reshape(-1)
        end_rows.append(
            [body, -1 if law is not None else int(end.kind), n_u, n_u + size, n_constants, n_constants + len(values)]
        )
        if law is not None and body < len(built.free):
            laws.append((body, slice(n_u, n_u + size), law))
        constants.append(values)
        n_u += size
        n_constants += len(values)
        seen.append(built.marker_index[end.body])
        outputs += [
            Port(f"{end.name}_{short}", length, unit)
            for short, (_, length, unit) in zip(END_OUTPUTS, OUTPUTS, strict=True)
        ]
    return Layout(
        inputs,
        outputs,
        np.array(rows, dtype=np.int64).reshape(-1, 5),
        np.array(end_rows, dtype=np.int64).reshape(-1, 6),
        np.concatenate([np.zeros(0), *constants]),
        np.array(seen, dtype=np.int64),
        laws,
    )


def _pair(entry: Any) -> tuple[str, tuple[str, ...]]:
    """`(marker, [inputs])` as given by the user."""
    good = isinstance(entry, (tuple, list)) and len(entry) == 2 and not isinstance(entry[1], str)
    wanted = tuple(entry[1]) if good else ()
    if not good or any(name not in INPUTS for name in wanted):
        raise SetupError(
            f"MultibodySubsystem: a port is a marker or (marker, list of inputs out of {', '.join(INPUTS)}), "
            f"not {entry!r}"
        )
    return str(entry[0]), wanted
