"""What the subsystems of a run were called for, and what they say of themselves."""

from __future__ import annotations

import numpy as np

from cosolve.engine.python.serial import serial_note
from cosolve.interface import Plan
from cosolve.result import Note, Stats
from cosolve.run.core import Core


def note_totals(stats: Stats, core: Core) -> None:
    """What the subsystems of a run were called for, and what they say of themselves."""
    caller, names = core.caller, core.plan.names
    stats.events = 0 if caller.watch is None else caller.watch.stops
    stats.retried = caller.retried()
    asked = {name: getattr(part, "inner_work", None) for name, part in zip(names, core.plan.subsystems, strict=True)}
    found = [
        Note("residual-left", core.corrections.note, "error"),
        Note("residual-not-small", core.corrections.found, "warning"),
        Note("branch", core.corrections.branches, "warning", remedy="take a smaller step, or degree 0"),
        *(Note("step-length", text, "warning", core.t_start, name) for name, text in core.steps_said.items()),
        Note("startup-order", core.startup_steps.note, "info"),
        Note("serial-order", serial_note(core.method, core.plan), "info"),
        Note("inexact-jacobian", core.corrections.remark, "info"),
        Note("unit", missing_units(core.plan), "info"),
        *(
            Note("nested", f"'{name}' took {tell()}", "info", None, name)
            for name, tell in asked.items()
            if callable(tell)
        ),
    ]
    for note in found:
        if note.text:
            stats.add(note)
    stats.calls = {n: int(c) for n, c in zip(names, caller.calls, strict=True)}
    stats.jacobians = {n: int(c) for n, c in zip(names, caller.jacobians, strict=True)}
    stats.seconds = {n: float(s) for n, s in zip(names, caller.seconds, strict=True)}


def missing_units(plan: Plan) -> str:
    """One sentence where a connection has a unit at one end only, so that nothing could be converted; empty elsewhere.

    >>> import cosolve as cs
    >>> ramp = cs.Static(lambda t, u: t, inputs=[], outputs=[cs.Port("x", unit="mm")])
    >>> gain = cs.Static(lambda t, u: 2 * u, inputs=["u"], outputs=["y"])
    >>> system = cs.System({"ramp": ramp, "gain": gain})
    >>> system.connect("ramp.x", "gain.u")
    >>> missing_units(system.plan())
    "'ramp.x' is in mm and 'gain.u', which takes its values, has no unit: they are passed on as they are"
    """
    outputs = [
        (part.start + ports.slice(port.name).start, f"{name}.{port.name}", port.unit)
        for name, ports, part in zip(plan.names, plan.output_ports, plan.y_slices, strict=True)
        for port in ports
    ]
    begins, copied, found = np.array([begin for begin, *_ in outputs]), np.full(plan.n_z + 1, -1), []
    copied[plan.copy_rows] = plan.copy_from
    for name, ports, part in zip(plan.names, plan.input_ports, plan.u_slices, strict=True):
        for port in ports:
            into = plan.u_source[part.start + ports.slice(port.name).start : part.stop]
            y = copied[into[0]] if port.length and into[0] >= 0 else -1
            if y >= 0:
                _, source, unit = outputs[int(np.searchsorted(begins, y, side="right")) - 1]
                if bool(unit) != bool(port.unit):
                    found.append((source, unit, f"{name}.{port.name}", port.unit))
    if not found:
        return ""
    source, unit, target, wanted = found[0]
    more = f" (so for {len(found) - 1} more)" if len(found) > 1 else ""
    ends = (
        f"'{source}' is in {unit} and '{target}', which takes its values, has no unit"
        if unit
        else f"'{target}' is in {wanted} and '{source}', whose values it takes, has no unit"
    )
    return f"{ends}: they are passed on as they are{more}"
