"""The plan of a step with two collocation points: every quantity twice, at the end of the step and at the inner point.

Collocation (`signal/history.py`) asks for the coupling equations at two points at once. That is a coupling of
degree 0 between subsystems that take both values, `(u_1, u_c)`, draw the line through them, and give the outputs at
both points. So the methods and engines need to know nothing of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cosolve.basics.arrays import Index, Matrix, Vector
from cosolve.errors import EndOfSimulation
from cosolve.interface.plan import Plan
from cosolve.signal.history import parts, shapes
from cosolve.signal.polynomial import InputSignal, Polynomial
from cosolve.subsystem.base import Subsystem, has_capability
from cosolve.subsystem.port import Port, Ports


class Stages(Subsystem):
    """A subsystem that takes its inputs at two points of the step and gives its outputs at both: the end comes first.

    >>> import cosolve as cs
    >>> tank = cs.Linear([[0]], [[1]], [[1]], x0=[0], inputs=["q"], outputs=["h"])
    >>> both = Stages(tank, 0.5, Ports(["q"]), Ports(["h"]))
    >>> both.advance(0.0, 1.0, Polynomial(0.0, 1.0, np.array([[2.0, 1.0]])))    # from 0 to 2: h(1) = 1, h(0.5) = 1/4
    array([1.  , 0.25])
    """

    def __init__(self, inner: Subsystem, c: float, inputs: Ports, outputs: Ports) -> None:
        self.inner, self.c, self._ports = inner, c, outputs
        self.inputs, self.outputs = twice(inputs, c), twice(outputs, c)
        self.noise, self.runs_on, self.overshoots = inner.noise, inner.runs_on, inner.overshoots
        self._width = inputs.length
        for name in ("save", "restore", "get_state", "set_state"):
            if callable(getattr(inner, name, None)):
                setattr(self, name, getattr(inner, name))
        if has_capability(inner, "jacobian"):
            self.jacobian = self._jacobian
        if has_capability(inner, "compiled step"):
            self.native = self._native

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        """Advance over both parts of the step."""
        values, c = u.coefficients[0], self.c
        first, second = parts(c, values[: self._width], values[self._width :])
        middle = t0 + c * u.H
        try:
            inside = self._packed(self.inner.advance(t0, middle, Polynomial(t0, c * u.H, first)))
        except EndOfSimulation as end:
            end.outputs = None  # inside the step: it cannot be advanced
            raise
        try:
            at_end = self.inner.advance(middle, t1, Polynomial(middle, (1.0 - c) * u.H, second))
        except EndOfSimulation as end:
            if end.outputs is not None:
                end.outputs = np.concatenate([self._packed(end.outputs), inside])
            raise
        return np.concatenate([self._packed(at_end), inside])

    def _packed(self, outputs: Any) -> Vector:
        return np.array(self._ports.pack(outputs))

    def _jacobian(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        """Derivatives of the outputs at both points by the inputs at both points, in subsystem steps from the start."""
        values, c = u.coefficients[0], self.c
        first, _ = parts(c, values[: self._width], values[self._width :])
        scale = np.array([1.0, 1.0 / c])  # of the whole step, from the first part
        inside = Polynomial(t0, c * u.H, first)
        whole = Polynomial(t0, u.H, np.array([first[0], first[1] * scale[1]]))
        state, rows = self.inner.save(), []
        for t, signal, local in ((t1, whole, np.ones(2)), (t0 + c * u.H, inside, 1.0 / scale)):
            columns = []
            for shape in shapes(c):
                self.inner.restore(state)
                found = self.inner.jacobian(t0, t, signal, weight[0] * shape * local)
                columns.append(found.toarray() if hasattr(found, "toarray") else np.asarray(found))
            rows.append(columns)
        self.inner.restore(state)
        return np.block(rows)

    def _native(self, H: float, degree: int) -> Any:
        """The compiled step of both parts, where the subsystem has one."""
        from cosolve.subsystem.native_stages import stages_native

        first, second = self.inner.native(self.c * H, 1), self.inner.native((1.0 - self.c) * H, 1)
        for one in (first, second):
            if isinstance(one, str):
                return one
        made = stages_native(first, second, self.c, self._width, self._ports.length)
        if first.jacobian is not None and not isinstance(made, str):
            nothing = Polynomial(0.0, H, np.zeros((1, 2 * self._width)))  # it is the same for all signals
            made.jacobian = lambda weight: self._jacobian(0.0, H, nothing, weight)
        return made


def twice(ports: Ports, c: float) -> list[Port]:
    """The ports, and once more for the inner point."""
    return [*ports, *(replace(port, name=at(port.name, c)) for port in ports)]


def at(label: str, c: float) -> str:
    """The name of a quantity at the inner point."""
    return f"{label} (at {c:.3g} of the step)"


def staged(plan: Plan, c: float) -> Plan:
    """The plan whose quantities stand for both points: coupling variables `(z_1, z_c)`."""
    n_z, y_1, y_c = plan.n_z, *outputs_at(plan)
    u_source, u_factor, u_offset = (
        np.concatenate([np.concatenate([values[part], second[part]]) for part in plan.u_slices] or [values])
        for values, second in (
            (plan.u_source, np.where(plan.u_source >= 0, plan.u_source + n_z, -1)),
            (plan.u_factor, plan.u_factor),
            (plan.u_offset, plan.u_offset),
        )
    )
    u_slices = tuple(slice(2 * part.start, 2 * part.stop) for part in plan.u_slices)
    blocks = [replace(b, of=tuple((y_1[index], scalar) for index, scalar in b.of)) for b in plan.blocks]
    blocks += [
        replace(b, label=at(b.label, c), rows=b.rows + n_z, of=tuple((y_c[index], scalar) for index, scalar in b.of))
        for b in plan.blocks
    ]
    ports = dict(plan.z_ports)
    for name, (part, scalar) in plan.z_ports.items():
        ports[at(name, c)] = slice(part.start + n_z, part.stop + n_z), scalar
    several = zip(plan.subsystems, plan.input_ports, plan.output_ports, strict=True)
    subsystems = tuple(Stages(subsystem, c, u, y) for subsystem, u, y in several)
    return replace(
        plan,
        subsystems=subsystems,
        input_ports=tuple(Ports(subsystem.inputs) for subsystem in subsystems),
        output_ports=tuple(Ports(subsystem.outputs) for subsystem in subsystems),
        u_slices=u_slices,
        y_slices=tuple(slice(2 * part.start, 2 * part.stop) for part in plan.y_slices),
        n_u=2 * plan.n_u,
        n_y=2 * plan.n_y,
        n_z=2 * n_z,
        z_labels=(*plan.z_labels, *(at(label, c) for label in plan.z_labels)),
        z_nominal=np.tile(plan.z_nominal, 2),
        z_open=np.tile(plan.z_open, 2),
        z_initial=np.tile(plan.z_initial, 2),
        z_given=np.tile(plan.z_given, 2),
        z_ports=ports,
        u_source=u_source,
        u_factor=u_factor,
        u_offset=u_offset,
        copy_rows=np.concatenate([plan.copy_rows, plan.copy_rows + n_z]),
        copy_from=np.concatenate([y_1[plan.copy_from], y_c[plan.copy_from]]),
        blocks=tuple(blocks),
        y_owner=np.repeat(np.arange(plan.n_subsystems), [2 * (p.stop - p.start) for p in plan.y_slices]),
        _reads=tuple(np.unique(u_source[part][u_source[part] >= 0]) for part in u_slices),
    )


def outputs_at(plan: Plan) -> tuple[Index, Index]:
    """Where the outputs of a plan stand among those of the staged one: at the end, and at the inner point."""
    ends = [np.arange(2 * p.start, p.start + p.stop) for p in plan.y_slices]
    inner = [np.arange(p.start + p.stop, 2 * p.stop) for p in plan.y_slices]
    none = [np.zeros(0, dtype=np.intp)]
    return np.concatenate(none + ends), np.concatenate(none + inner)
