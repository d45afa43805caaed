"""The compiled step of a `OneStep` whose functions are jitted: they are called as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from cosolve.integrator.kernels import is_compiled
from cosolve.jit import ADVANCE_CALL, RESPONSE, NumbaError, carray, double_at, doubles_at, njit, raising_address
from cosolve.subsystem.native import Native
from cosolve.subsystem.one_step import OneStep

_COMPILED: dict[tuple[Any, ...], tuple[Any, ...]] = {}


@njit()
def _taken(status: Any) -> Any:
    return status


@njit()
def _nothing(status: Any) -> int:
    return 0


@njit()
def _ends(coefficients: int, n: int, nu: int) -> Any:
    """The inputs at the end of the step."""
    u = carray(doubles_at(coefficients), (n, nu))
    end = u[0].copy()
    for j in range(1, n):
        for k in range(nu):
            end[k] += u[j, k]
    return end


def _step(step: Any, status_of: Any, nx: int, nu: int, ny: int) -> Any:
    @njit(ADVANCE_CALL)
    def advance(data: int, mode: int, t0: float, t1: float, H: float, n: int, coefficients: int, outputs: int) -> Any:
        x, y = carray(doubles_at(data), nx), np.full(ny, np.nan)
        new = np.full(nx, np.nan)
        status = status_of(step(t0, H, x.copy(), _ends(coefficients, n, nu), new, y))
        if status != 0:
            return status
        for k in range(nx):
            if not np.isfinite(new[k]):
                return 1
        into = carray(doubles_at(outputs), ny)
        for k in range(nx):  # a slice would bring numba's sentence about shapes with it, and seconds to compile it
            x[k] = new[k]
        for k in range(ny):
            into[k] = y[k]
        return 0

    return advance


def _responding(jacobian: Any, nx: int, nu: int, ny: int) -> Any:
    @njit(RESPONSE)
    def response(
        data: int, t0: float, t1: float, H: float, n: int, coefficients: int, weight: int, stride: int, result: int
    ) -> int:
        reach = 0.0  # of a change of that shape, at the end of the step
        for j in range(n):
            reach += double_at(weight, j * stride)
        D = np.zeros((ny, nu))
        jacobian(t0, H, carray(doubles_at(data), nx).copy(), _ends(coefficients, n, nu), D)
        into = carray(doubles_at(result), (ny, nu))
        for i in range(ny):
            for k in range(nu):
                into[i, k] = D[i, k] * reach
        return 0

    return response


def one_step_native(solver: OneStep) -> Native | str:
    """The subsystem step of `solver`, or why there is none."""
    step, jacobian = solver.step_function, solver.jacobian_function
    for what, function in (("step", step), ("jacobian", jacobian)):
        if function is not None and not is_compiled(function):
            return f"its {what} is a plain Python function; decorate it with numba.njit"
    sizes = len(solver.x0), solver._n_inputs, solver._n_outputs
    key = (id(step), id(jacobian), *sizes)
    if key not in _COMPILED:
        made = _compiled(step, jacobian, sizes)
        if isinstance(made, str):
            return made
        _COMPILED[key] = *made, step, jacobian  # kept, so that an id stays what it is
    advance, response = _COMPILED[key][:2]
    state = np.zeros(max(1, sizes[0]))

    def enter() -> None:
        state[: sizes[0]] = solver.x

    def leave() -> None:
        solver.x = state[: sizes[0]].copy()

    native = Native(raising_address(advance), state.ctypes.data, state, enter=enter, leave=leave, any_step=True)
    if response is not None:
        native.response = raising_address(response)
    return native


def _compiled(step: Any, jacobian: Any, sizes: tuple[int, int, int]) -> tuple[Any, Any] | str:
    """Subsystem step and response, or why numba cannot compile them."""
    why = ""
    for status_of in (_taken, _nothing):  # of a step that returns a number, and of one that returns nothing
        try:
            advance = _step(step, status_of, *sizes)
            return advance, None if jacobian is None else _responding(jacobian, *sizes)
        except NumbaError as error:
            why = why or str(error).strip().splitlines()[0]
    return f"numba cannot compile it: {why}"
