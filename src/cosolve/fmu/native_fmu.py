"""The compiled step of a co-simulation FMU: its C functions called by address, as `communication_step.py` does it.

For FMUs whose ports are all floats, that take the step in one piece and need no events or intermediate updates.
"""

from __future__ import annotations

from contextlib import suppress
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.records import Record, fill
from cosolve.basics.signals import hold, release
from cosolve.errors import EndOfSimulation, SubsystemError
from cosolve.fmu.log import FATAL
from cosolve.jit import (
    ADVANCE_CALL,
    KEEPING,
    bare,
    call_status_2,
    call_status_4,
    call_status_5,
    call_step_2,
    call_step_3,
    called,
    double_at,
    part,
    put_double_at,
    put_word_at,
    raising_address,
    record_at,
    types,
    word_at,
)
from cosolve.subsystem.native import Native

if TYPE_CHECKING:
    from cosolve.fmu.co_simulation import CoSimulationFmu


class _Memory(Record):
    """What compiled code has to know of an FMU: addresses, numbers, and the time it has come to."""

    component: int
    version: int
    set_values: int
    takes: int
    n_in: int
    u: int
    get_values: int
    gives: int
    n_out: int
    do_step: int
    no_return: int  # see communication_step.py
    derive: int
    derived: int
    orders: int
    slopes: int
    factorials: int
    through: int
    get_state: int
    set_state: int
    state: int
    flags: int
    time: float
    refs_in: int
    refs_out: int
    at_start: int
    failed: int


_memory_at = record_at(_Memory)
_STATE = 8 * (_Memory.dtype.names or ()).index("state")

#: Statuses that are not the FMU's: it wants more than this subsystem step does.
_UNUSUAL = 100


#: Statuses of the FMU, and its Booleans.
_int32: Any = types.int32
_int8: Any = types.int8
_seldom = bare  # not worth being copied into the subsystem step


@part
def _write(m: _Memory, values: int) -> int:
    """Set the inputs."""
    component, count = m.component, m.n_in
    if m.version == 2:
        return call_status_4(m.set_values, component, m.takes, count, values)
    return call_status_5(m.set_values, component, m.takes, m.refs_in, values, count)


@part
def _noted(m: _Memory, status: int) -> Any:
    """A bad status, kept for Python: after a fatal one nothing may be called."""
    if status > 1:
        m.failed = status
        return status
    return _int32(0)


@called(KEEPING)
def _save(w: int) -> Any:
    m = _memory_at(w)
    if m.failed == FATAL:
        return _int32(FATAL)
    return _noted(m, call_status_2(m.get_state, m.component, w + _STATE))


@called(KEEPING)
def _restore(w: int) -> Any:
    m = _memory_at(w)
    if m.failed == FATAL:  # nothing is called any more; Python says so as soon as it is asked
        return _int32(0)
    return _noted(m, call_status_2(m.set_state, m.component, m.state))


@_seldom
def _write_signal(m: _Memory, H: float, n: int, c: int) -> int:
    """Set inputs that change during the step: by derivatives, or held at their middle, or at their start."""
    width, u = m.n_in, m.u
    for k in range(width):
        value = double_at(c, k)
        if m.derive == 0 and word_at(m.at_start, k) == 0:
            value = double_at(c, (n - 1) * width + k)
            for j in range(n - 2, -1, -1):
                value = value * 0.5 + double_at(c, j * width + k)
        put_double_at(u, k, value)
    status = _write(m, u)
    if status > 1 or m.derive == 0:
        return status
    for k in range(width):
        for j in range(1, n):
            slope = double_at(c, j * width + k) * (double_at(m.factorials, j - 1) / H ** float(j))
            put_double_at(m.slopes, k * (n - 1) + j - 1, slope)
    count, orders, slopes = width * (n - 1), m.orders, m.slopes
    return call_status_5(m.derive, m.component, m.derived, count, orders, slopes)


@_seldom
def _write_end(m: _Memory, n: int, c: int) -> int:
    """Set the inputs to what they are at the end, for outputs that react to them."""
    width, u = m.n_in, m.u
    for k in range(width):
        total = double_at(c, k)
        if word_at(m.at_start, k) == 0:
            for j in range(1, n):
                total += double_at(c, j * width + k)
        put_double_at(u, k, total)
    return _write(m, u)


@_seldom
def _step_3(m: _Memory, t0: float, H: float) -> Any:
    """`fmi3DoStep`."""
    flags = m.flags
    for k in range(3):
        put_word_at(flags, k, 0)
    no_return = _int8(m.no_return)
    component = m.component
    status = call_step_3(m.do_step, component, t0, H, no_return, flags, flags + 8, flags + 16, flags + 24)
    if (word_at(flags, 0) | word_at(flags, 1) | word_at(flags, 2)) & 255 != 0:
        return _int32(_UNUSUAL)
    return status


@called(ADVANCE_CALL)
def _begin(w: int, mode: int, t0: float, t1: float, H: float, n: int, c: int, outputs: int) -> Any:
    """Set inputs, and their derivatives where the FMU takes them."""
    m = _memory_at(w)
    if m.failed == FATAL:
        return _int32(FATAL)
    return _noted(m, _write(m, c) if n == 1 else _write_signal(m, H, n, c))


@called(ADVANCE_CALL)
def _advance(w: int, mode: int, t0: float, t1: float, H: float, n: int, c: int, outputs: int) -> Any:
    """Step, and read the outputs."""
    m = _memory_at(w)
    if m.failed == FATAL:
        return _int32(FATAL)
    if m.version == 2:
        status = call_step_2(m.do_step, m.component, t0, H, _int32(m.no_return))
    else:
        status = _step_3(m, t0, H)
    if status <= 1 and n > 1 and m.through != 0:
        status = _write_end(m, n, c)
    if status > 1:
        return _noted(m, status)
    m.time = t1
    component, count = m.component, m.n_out
    if count == 0:
        return 0
    if m.version == 2:
        status = call_status_4(m.get_values, component, m.gives, count, outputs)
    else:
        status = call_status_5(m.get_values, component, m.gives, m.refs_out, outputs, count)
    return _noted(m, status)


def fmu_native(fmu: CoSimulationFmu, H: float, degree: int) -> Native | str:
    """The subsystem step of `fmu` with steps `H` and inputs of that degree, or why there is none."""
    communication, instance = fmu._communication, fmu._instance
    inputs, outputs = communication.inputs, fmu._outputs
    if any(v.type != "Float64" for v in (*inputs.variables, *outputs.variables)):
        return "some of its ports are not floats"
    if any(v.negated for v in (*inputs.variables, *outputs.variables)):
        return "some of its ports are negated aliases"
    if communication.substeps != 1:
        return "its steps are cut into pieces"
    if instance.event_mode or fmu.listens:
        return "it has events or asks for its inputs inside the step"
    communication.look_at_step(H)
    at, fmi = fmu.functions, instance.fmi
    kind = "Real" if fmi == 2 else "Float64"
    state_name = "FMUstate" if fmi == 2 else "FMUState"
    derives = not communication.holds
    if derives and len(communication.at_start):
        return "some of its inputs are discrete"
    buffers = _Buffers(inputs.variables, outputs.variables, degree)
    w = np.zeros((), _Memory.dtype)
    fill(w, component=fmu.component, version=fmi, do_step=at[f"fmi{fmi}DoStep"], no_return=True, through=fmu.reacts)
    fill(w, set_values=at[f"fmi{fmi}Set{kind}"], takes=buffers.takes, n_in=inputs.length, u=buffers.u)
    fill(w, get_values=at[f"fmi{fmi}Get{kind}"], gives=buffers.gives, n_out=outputs.length)
    if derives:
        fill(w, derive=at["fmi2SetRealInputDerivatives"], derived=buffers.repeated, orders=buffers.orders)
        fill(w, slopes=buffers.slopes, factorials=buffers.factorials)
    buffers.at_start[communication.at_start] = 1
    fill(w, at_start=buffers.at_start, flags=buffers.flags, refs_in=len(buffers.takes), refs_out=len(buffers.gives))
    native = Native(raising_address(_advance), w.ctypes.data, any_step=communication.variable, keep=(w, buffers))
    native.begin = raising_address(_begin) if inputs.length else 0
    if hasattr(fmu, "save"):
        saved = fmu.save()  # memory of the FMU that is written again and again
        fill(w, get_state=at[f"fmi{fmi}Get{state_name}"], set_state=at[f"fmi{fmi}Set{state_name}"], state=saved.pointer)
        native.save, native.restore, native.keep = (
            raising_address(_save),
            raising_address(_restore),
            (w, buffers, saved),
        )

    held: list[bool] = []  # for each time that it was entered, whether signals wait

    def enter() -> None:
        w["time"] = fmu._time
        if instance.binary.embeds_python:
            held.append(hold())

    def leave() -> None:
        fmu._time = float(w["time"])
        if w["failed"] == FATAL:
            with suppress(SubsystemError):  # raised again by whatever is called next
                instance.check(FATAL, f"doStep at t = {fmu._time:.9g}")
        if held and held.pop():
            release()

    def explain(status: int) -> None:
        if status == 2 and fmi == 2:
            raise communication.discarded_2(fmu._time, H)
        if status == _UNUSUAL and buffers.flags[1] & 255:
            raise EndOfSimulation(f"the FMU '{fmu.file.name}' ends it{instance.log.remark}")
        instance.check(status, f"doStep at t = {fmu._time:.9g}")

    native.enter, native.leave, native.explain = enter, leave, explain
    if fmu._step_jacobian is not None:
        native.jacobian = fmu._step_jacobian.kept(H, inputs.length)
    return native


class _Buffers:
    """Arrays whose addresses the FMU gets."""

    def __init__(self, takes: Any, gives: Any, degree: int) -> None:
        self.takes = np.array([v.reference for v in takes], dtype=np.uint32)
        self.gives = np.array([v.reference for v in gives], dtype=np.uint32)
        count = sum(v.length for v in takes)
        self.u, self.flags = np.zeros(count), np.zeros(4, dtype=np.int64)
        self.at_start = np.zeros(max(count, 1), dtype=np.int64)
        self.repeated = np.repeat(self.takes, max(degree, 1))
        self.orders = np.tile(np.arange(1, degree + 1, dtype=np.int32), len(self.takes))
        self.slopes = np.zeros((count, max(degree, 1)))
        self.factorials = np.array([float(factorial(j)) for j in range(1, degree + 1)])
