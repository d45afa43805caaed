"""The variables of an exported FMU: which ports of the system they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cosolve.basics.wording import suggest
from cosolve.errors import SetupError
from cosolve.interface import Plan
from cosolve.io.fmu_export.source import Model
from cosolve.subsystem.feedthrough import feedthrough
from cosolve.subsystem.port import Ports


@dataclass(frozen=True)
class Variable:
    """One variable: an input or output of the port `address`, or a parameter.

    `size` is the length of an array (FMI 3), None for a scalar, which may be one `entry` of a vector port.
    """

    name: str
    causality: str
    address: str
    reference: int
    size: int | None = None
    entry: int | None = None
    unit: str = ""
    start: float | tuple[float, ...] | None = None

    @property
    def length(self) -> int:
        """How many numbers it stands for."""
        return 1 if self.size is None else self.size

    def table(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @staticmethod
    def of(table: Mapping[str, Any]) -> Variable:
        """From plain values."""
        start = table["start"]
        return Variable(**{**table, "start": tuple(start) if isinstance(start, list) else start})


def variables(
    model: Model,
    arrays: bool,
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
    parameters: Mapping[str, float],
) -> list[Variable]:
    """Inputs that `System.set` holds and outputs (all, or those named), and parameters; reference 0 is time.

    Vector ports are arrays, or become scalars `name[1]`, `name[2]`, ...
    """
    plan = model.system.plan()
    held, given = _held(plan), _outputs(plan)
    found: list[Variable] = []
    for causality, chosen, known in (("input", inputs, held), ("output", outputs, given)):
        for address in _chosen(chosen, known, causality):
            values, scalar, unit = known[address]
            name = address.partition(".")[2] if model.single else address
            if scalar or arrays:
                start: Any = None if causality == "output" else float(values[0]) if scalar else tuple(values.tolist())
                found.append(
                    Variable(name, causality, address, _next(found), None if scalar else len(values), None, unit, start)
                )
                continue
            for k, value in enumerate(values):
                start = None if causality == "output" else float(value)
                found.append(Variable(f"{name}[{k + 1}]", causality, address, _next(found), None, k, unit, start))
    taken = {variable.name for variable in found}
    for name, value in parameters.items():
        if name in taken:
            raise SetupError(f"export: '{name}' is the name of a parameter and of a port; rename the parameter")
        found.append(Variable(name, "parameter", name, _next(found), start=value))
    return found


def dependencies(model: Model, shown: Sequence[Variable]) -> dict[int, list[int]]:
    """Which inputs each output of a single subsystem, already started, reacts to at once, by their references."""
    if not model.single:
        return {}
    plan = model.system.plan()
    pattern = feedthrough(plan.subsystems[0], 0.0, plan.u_offset.copy())
    inputs, outputs = plan.input_ports[0], plan.output_ports[0]

    def entries(ports: Ports, variable: Variable) -> list[int]:
        inside = ports.slice(variable.address.partition(".")[2])
        every = list(range(inside.start, inside.stop))
        return every if variable.entry is None else [every[variable.entry]]

    return {
        output.reference: [
            v.reference
            for v in shown
            if v.causality == "input" and pattern[np.ix_(entries(outputs, output), entries(inputs, v))].any()
        ]
        for output in shown
        if output.causality == "output"
    }


def _next(found: list[Variable]) -> int:
    return len(found) + 1  # 0 is time


def _held(plan: Plan) -> dict[str, tuple[Any, bool, str]]:
    found = {}
    for i, name in enumerate(plan.names):
        for port in plan.input_ports[i]:
            inside, base = plan.input_ports[i].slice(port.name), plan.u_slices[i].start
            into = slice(base + inside.start, base + inside.stop)
            if (plan.u_source[into] < 0).all() and not set(range(into.start, into.stop)) & set(plan.u_driven.tolist()):
                found[f"{name}.{port.name}"] = (plan.u_offset[into], port.size is None, port.unit)
    return found


def _outputs(plan: Plan) -> dict[str, tuple[Any, bool, str]]:
    return {
        f"{name}.{port.name}": (np.zeros(port.length), port.size is None, port.unit)
        for name, ports in zip(plan.names, plan.output_ports, strict=True)
        for port in ports
    }


def _chosen(chosen: Sequence[str] | None, known: Mapping[str, Any], causality: str) -> list[str]:
    if chosen is None:
        return list(known)
    full = [address if address in known else f"model.{address}" for address in chosen]
    for address, found in zip(chosen, full, strict=True):
        if found not in known:
            what = "an input that System.set holds" if causality == "input" else "an output"
            raise SetupError(f"export: '{address}' is not {what}; {suggest(address, list(known))}")
    return full
