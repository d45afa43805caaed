"""The compiled crossing of a co-simulation FMU: its C functions called by address, as `communication_step.py` does it.

For FMUs whose ports are all floats, that take the step in one piece and need no events or intermediate updates.
"""

# mypy: disable-error-code="call-arg, no-untyped-call, no-untyped-def, var-annotated"

from __future__ import annotations

from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.errors import EndOfSimulation
from cosolve.jit import (
    CROSS,
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
    types,
    word_at,
)
from cosolve.subsystem.native import Native

if TYPE_CHECKING:
    from cosolve.fmu.co_simulation import CoSimulationFmu

# where things are in the FMU's words
COMPONENT, VERSION, SET, IN, N_IN, U, GET, OUT, N_OUT, STEP, NO_RETURN = range(
    11
)  # NO_RETURN: see communication_step.py
DERIVE, D_IN, ORDERS, SLOPES, FACTORIALS, THROUGH = range(11, 17)
GET_STATE, SET_STATE, STATE, FLAGS, TIME, REFS_IN, REFS_OUT, AT_START = range(17, 25)
_WORDS = 25

#: Statuses that are not the FMU's: it wants more than this crossing does.
_UNUSUAL = 100


_seldom: Any = bare  # not worth being copied into the crossing


@part
def _write(w, values):
    """Set the inputs."""
    component, count = word_at(w, COMPONENT), word_at(w, N_IN)
    if word_at(w, VERSION) == 2:
        return call_status_4(word_at(w, SET), component, word_at(w, IN), count, values)
    return call_status_5(word_at(w, SET), component, word_at(w, IN), word_at(w, REFS_IN), values, count)


@called(KEEPING)
def _save(w):
    return call_status_2(word_at(w, GET_STATE), word_at(w, COMPONENT), w + 8 * STATE)


@called(KEEPING)
def _restore(w):
    return call_status_2(word_at(w, SET_STATE), word_at(w, COMPONENT), word_at(w, STATE))


@_seldom
def _write_signal(w, H, n, c):
    """Set inputs that change during the step: by derivatives, or held at their middle, or at their start."""
    width, u = word_at(w, N_IN), word_at(w, U)
    for k in range(width):
        value = double_at(c, k)
        if word_at(w, DERIVE) == 0 and word_at(word_at(w, AT_START), k) == 0:
            value = double_at(c, (n - 1) * width + k)
            for j in range(n - 2, -1, -1):
                value = value * 0.5 + double_at(c, j * width + k)
        put_double_at(u, k, value)
    status = _write(w, u)
    if status > 1 or word_at(w, DERIVE) == 0:
        return status
    for k in range(width):
        for j in range(1, n):
            slope = double_at(c, j * width + k) * (double_at(word_at(w, FACTORIALS), j - 1) / H ** float(j))
            put_double_at(word_at(w, SLOPES), k * (n - 1) + j - 1, slope)
    count, orders, slopes = width * (n - 1), word_at(w, ORDERS), word_at(w, SLOPES)
    return call_status_5(word_at(w, DERIVE), word_at(w, COMPONENT), word_at(w, D_IN), count, orders, slopes)


@_seldom
def _write_end(w, n, c):
    """Set the inputs to what they are at the end, for outputs that react to them."""
    width, u = word_at(w, N_IN), word_at(w, U)
    for k in range(width):
        total = double_at(c, k)
        if word_at(word_at(w, AT_START), k) == 0:
            for j in range(1, n):
                total += double_at(c, j * width + k)
        put_double_at(u, k, total)
    return _write(w, u)


@_seldom
def _step_3(w, t0, H):
    """`fmi3DoStep`."""
    flags = word_at(w, FLAGS)
    for k in range(3):
        put_word_at(flags, k, 0)
    no_return = types.int8(word_at(w, NO_RETURN))
    component = word_at(w, COMPONENT)
    status = call_step_3(word_at(w, STEP), component, t0, H, no_return, flags, flags + 8, flags + 16, flags + 24)
    if (word_at(flags, 0) | word_at(flags, 1) | word_at(flags, 2)) & 255 != 0:
        return types.int32(_UNUSUAL)
    return status


@called(CROSS)
def _begin(w, mode, t0, t1, H, n, c, outputs):
    """Set inputs, and their derivatives where the FMU takes them."""
    status = _write(w, c) if n == 1 else _write_signal(w, H, n, c)
    return status if status > 1 else 0


@called(CROSS)
def _cross(w, mode, t0, t1, H, n, c, outputs):
    """Step, and read the outputs."""
    if word_at(w, VERSION) == 2:
        status = call_step_2(word_at(w, STEP), word_at(w, COMPONENT), t0, H, types.int32(word_at(w, NO_RETURN)))
    else:
        status = _step_3(w, t0, H)
    if status <= 1 and n > 1 and word_at(w, THROUGH) != 0:
        status = _write_end(w, n, c)
    if status > 1:
        return status
    put_double_at(w, TIME, t1)
    component, count = word_at(w, COMPONENT), word_at(w, N_OUT)
    if count == 0:
        return 0
    if word_at(w, VERSION) == 2:
        status = call_status_4(word_at(w, GET), component, word_at(w, OUT), count, outputs)
    else:
        status = call_status_5(word_at(w, GET), component, word_at(w, OUT), word_at(w, REFS_OUT), outputs, count)
    return status if status > 1 else 0


def fmu_native(fmu: CoSimulationFmu, H: float, degree: int) -> Native | str:
    """The crossing of `fmu` with steps `H` and inputs of that degree, or why there is none."""
    crossing, instance = fmu._crossing, fmu._instance
    inputs, outputs = crossing.inputs, fmu._outputs
    if any(v.type != "Float64" for v in (*inputs.variables, *outputs.variables)):
        return "some of its ports are not floats"
    if crossing.substeps != 1:
        return "its steps are cut into pieces"
    if instance.event_mode or fmu.listens:
        return "it has events or asks for its inputs inside the step"
    crossing.look_at_step(H)
    at, fmi = fmu.functions, instance.fmi
    kind = "Real" if fmi == 2 else "Float64"
    state_name = "FMUstate" if fmi == 2 else "FMUState"
    derives = not crossing.holds
    if derives and len(crossing.at_start):
        return "some of its inputs are discrete"
    room = _Room(inputs.variables, outputs.variables, degree)
    w = np.zeros(_WORDS, dtype=np.int64)
    w[COMPONENT], w[VERSION] = fmu.component, fmi
    w[SET], w[IN], w[N_IN], w[U] = at[f"fmi{fmi}Set{kind}"], _address(room.takes), inputs.length, _address(room.u)
    w[GET], w[OUT], w[N_OUT] = at[f"fmi{fmi}Get{kind}"], _address(room.gives), outputs.length
    w[STEP], w[NO_RETURN] = at[f"fmi{fmi}DoStep"], True
    if derives:
        w[DERIVE] = at["fmi2SetRealInputDerivatives"]
        w[D_IN], w[ORDERS] = _address(room.repeated), _address(room.orders)
        w[SLOPES], w[FACTORIALS] = _address(room.slopes), _address(room.factorials)
    w[THROUGH] = fmu.reacts
    room.at_start[crossing.at_start] = 1
    w[AT_START] = _address(room.at_start)
    w[FLAGS], w[REFS_IN], w[REFS_OUT] = _address(room.flags), len(room.takes), len(room.gives)
    native = Native(raising_address(_cross), w.ctypes.data, any_step=crossing.variable, keep=(w, room))
    native.begin = raising_address(_begin) if inputs.length else 0
    if hasattr(fmu, "save"):
        saved = fmu.save()  # memory of the FMU that is written again and again
        w[GET_STATE], w[SET_STATE], w[STATE] = (
            at[f"fmi{fmi}Get{state_name}"],
            at[f"fmi{fmi}Set{state_name}"],
            saved.pointer,
        )
        native.save, native.restore, native.keep = raising_address(_save), raising_address(_restore), (w, room, saved)

    def enter() -> None:
        w[TIME : TIME + 1].view(np.float64)[0] = fmu._time

    def leave() -> None:
        fmu._time = float(w[TIME : TIME + 1].view(np.float64)[0])

    def explain(status: int) -> None:
        if status == 2 and fmi == 2:
            raise crossing.discarded_2(fmu._time, H)
        if status == _UNUSUAL and room.flags[1] & 255:
            raise EndOfSimulation(f"the FMU '{fmu.file.name}' ends it{instance.log.remark}")
        instance.check(status, f"doStep at t = {fmu._time:.9g}")

    native.enter, native.leave, native.explain = enter, leave, explain
    if fmu._step_jacobian is not None:
        native.jacobian = fmu._step_jacobian.kept(H, inputs.length)
    return native


def _address(array: Any) -> int:
    return int(array.ctypes.data)


class _Room:
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
