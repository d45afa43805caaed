"""The compiled crossing of an `Ode` whose functions are jitted: its own integrator, called by address."""

# mypy: disable-error-code="call-arg, no-untyped-def"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.integrator import kernels, rosenbrock
from cosolve.integrator.rosenbrock import Rosenbrock
from cosolve.integrator.runge_kutta import DormandPrince, FixedStep
from cosolve.integrator.step_control import equal_steps
from cosolve.integrator.tableaus import DOPRI5
from cosolve.jit import CROSS, NumbaError, carray, doubles_at, njit, raising_address
from cosolve.subsystem.native import Native
from cosolve.subsystem.port import Ports

if TYPE_CHECKING:
    from cosolve.subsystem.ode import Ode

# memory: ready, h or rtol, atol, steps of the last grid; then state, next step size, grid
_HEAD = 4

_equal_steps = njit(cache=True)(equal_steps)

_COMPILED: dict[tuple[Any, ...], tuple[Any, Any]] = {}


@njit
def _fill_array(y, value):
    if len(value) != len(y):
        raise ValueError("output did not return one number per output")
    for k in range(len(y)):
        y[k] = value[k]


@njit
def _fill_number(y, value):
    y[0] = value


def _fixed(rhs: Any, output: Any, fill: Any, tableau: Any, nx: int, nu: int, ny: int) -> Any:
    a, b, c, _ = tableau
    run = kernels.compiled().fixed

    @njit(CROSS)
    def cross(data, mode, t0, t1, H, n, coefficients, outputs):
        memory = carray(doubles_at(data), _HEAD + nx + 1)
        if memory[0] == 0.0:
            return 1
        u = carray(doubles_at(coefficients), (n, nu))
        x = memory[_HEAD : _HEAD + nx]
        span = t1 - t0
        count = _equal_steps(span, memory[1])
        new = run(rhs, t0, np.full(count, span / count), x.copy(), t0, H, u, a, b, c)
        return _arrive(output, fill, t1, new, u, x, carray(doubles_at(outputs), ny))

    return cross


def _explicit(rhs: Any, most: int) -> tuple[Any, Any]:
    """Dormand-Prince: a crossing, and its repetition on a given grid."""
    a, b, c, e = DOPRI5
    native = kernels.compiled()
    run, again = native.adaptive, native.fixed

    @njit
    def cross(t0, t1, x, H, u, rtol, atol, h):
        limit = np.int64(most)  # a number as any other, not a literal: the same compilation as in the readable engine
        return run(rhs, t0, t1, x, t0, H, u, a, b, c, e, rtol, atol, h, limit, limit)

    @njit
    def repeat(t0, grid, x, H, u):
        return again(rhs, t0, grid, x, t0, H, u, a, b, c)

    return cross, repeat


def _stiff(rhs: Any, most: int) -> tuple[Any, Any]:
    """The same for the Rosenbrock method."""
    native = rosenbrock.compiled()
    run, again = native.adaptive, native.fixed

    @njit
    def cross(t0, t1, x, H, u, rtol, atol, h):
        return run(rhs, t0, t1, x, t0, H, u, rtol, atol, h, np.int64(most))

    @njit
    def repeat(t0, grid, x, H, u):
        return again(rhs, t0, grid, x, t0, H, u)

    return cross, repeat


def _adaptive(kind: Any, rhs: Any, output: Any, fill: Any, nx: int, nu: int, ny: int, most: int) -> Any:
    run, again = kind(rhs, most)

    @njit(CROSS)
    def cross(data, mode, t0, t1, H, n, coefficients, outputs):
        memory = carray(doubles_at(data), _HEAD + nx + 1 + most)
        if memory[0] == 0.0:
            return 1
        u = carray(doubles_at(coefficients), (n, nu))
        x, grid = memory[_HEAD : _HEAD + nx], memory[_HEAD + nx + 1 :]
        y = carray(doubles_at(outputs), ny)
        if mode == 1:
            taken = grid[: int(memory[3])].copy()
            return _arrive(output, fill, t1, again(t0, taken, x.copy(), H, u), u, x, y)
        new, _, h, taken, status = run(t0, t1, x.copy(), H, u, memory[1], memory[2], memory[_HEAD + nx])
        if status != 0:
            return 1
        memory[_HEAD + nx], memory[3] = h, len(taken)
        grid[: len(taken)] = taken
        return _arrive(output, fill, t1, new, u, x, y)

    return cross


@njit
def _arrive(output, fill, t, new, u, x, y):
    """Outputs of the new state, which takes the place of the old one."""
    for k in range(len(x)):
        if not np.isfinite(new[k]):
            return 1
        x[k] = new[k]
    end = u[0].copy()
    for j in range(1, len(u)):
        for k in range(len(end)):
            end[k] += u[j, k]
    fill(y, output(t, new.copy(), end))
    return 0


def ode_native(ode: Ode) -> Native | str:
    """The crossing of `ode`, or why there is none."""
    solver = ode._first_solver
    if not isinstance(solver, (FixedStep, DormandPrince, Rosenbrock)):
        return (
            f"its integrator {ode.integrator!r} is a library's; use 'auto', 'dopri5', 'rodas4' or one of ode1 to ode5"
        )
    for what, function in (("rhs", ode.rhs), ("output", ode.output_function)):
        if not kernels.is_compiled(function):
            return f"its {what} is a plain Python function; decorate it with numba.njit"
    sizes = len(ode.x0), Ports(ode.inputs).length, Ports(ode.outputs).length
    most = 0 if isinstance(solver, FixedStep) else solver.max_steps
    tableau = solver.tableau if isinstance(solver, FixedStep) else None
    kind = _stiff if isinstance(solver, Rosenbrock) else _explicit
    key = (id(ode.rhs), id(ode.output_function), *sizes, id(tableau), most, kind)
    if key not in _COMPILED:
        for fill in (_fill_array, _fill_number):
            try:
                functions = (ode.rhs, ode.output_function, fill)
                if tableau is None:
                    made = _adaptive(kind, *functions, *sizes, most)
                else:
                    made = _fixed(*functions, tableau, *sizes)
                break
            except NumbaError as error:
                why = str(error).strip().splitlines()[0]
        else:
            return f"numba cannot compile it: {why}"
        _COMPILED[key] = made, (ode.rhs, ode.output_function)  # kept, so that an id stays what it is
    where = raising_address(_COMPILED[key][0])
    first = [1.0, solver.h, 0.0] if isinstance(solver, FixedStep) else [1.0, solver.rtol, solver.atol]
    nx = sizes[0]
    data = np.concatenate([first, np.zeros(1 + nx + 1 + most)])
    state = data[_HEAD : _HEAD + nx + 1]

    def enter() -> None:
        data[0] = float(ode._solver is solver)  # not when it turned stiff
        state[:nx] = ode.x
        state[nx] = 0.0 if isinstance(solver, FixedStep) else solver.memory

    def leave() -> None:
        ode.x = state[:nx].copy()
        if not isinstance(solver, FixedStep) and data[0]:
            solver.memory = float(state[nx])

    made = Native(where, data.ctypes.data, state, enter=enter, leave=leave, any_step=True, keep=(data,))
    made.hands_back = tableau is None  # it may turn stiff
    return made
