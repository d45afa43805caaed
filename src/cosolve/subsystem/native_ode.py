"""The compiled step of an `Ode`: its integrator around its traced functions, as machine code."""

from __future__ import annotations

from typing import Any

import numpy as np

from cosolve.errors import SubsystemError
from cosolve.integrator import kernels, rosenbrock
from cosolve.integrator import machine_code as code
from cosolve.integrator.kernels import DOPRI5
from cosolve.integrator.rosenbrock import Rosenbrock
from cosolve.integrator.runge_kutta import DormandPrince, FixedStep
from cosolve.integrator.step_control import equal_steps
from cosolve.jit import ADVANCE_CALL, NumbaError, carray, doubles_at, njit, raising_address
from cosolve.subsystem.native import Native
from cosolve.subsystem.ode import Ode
from cosolve.subsystem.port import Ports
from cosolve.trace import Module, Traced, trace

# memory: ready, h or rtol, atol, steps of the last grid; then state, next step size, grid
_HEAD = 4

_equal_steps = njit(cache=True)(equal_steps)

_COMPILED: dict[tuple[Any, ...], tuple[Any, Any]] = {}


@njit()
def _fill_array(y: Any, value: Any) -> None:
    if len(value) != len(y):
        raise ValueError("output did not return one number per output")
    for k in range(len(y)):
        y[k] = value[k]


@njit()
def _fill_number(y: Any, value: float) -> None:
    y[0] = value


def _fixed(rhs: Any, output: Any, fill: Any, tableau: Any, nx: int, nu: int, ny: int) -> Any:
    a, b, c, _ = tableau
    run = kernels.compiled().fixed

    @njit(ADVANCE_CALL)
    def advance(data: int, mode: int, t0: float, t1: float, H: float, n: int, coefficients: Any, outputs: Any) -> Any:
        memory = carray(doubles_at(data), _HEAD + nx + 1)
        if memory[0] == 0.0:
            return 1
        u = carray(doubles_at(coefficients), (n, nu))
        x = memory[_HEAD : _HEAD + nx]
        span = t1 - t0
        count = _equal_steps(span, memory[1])
        new = run(rhs, t0, np.full(count, span / count), x.copy(), t0, H, u, a, b, c)
        return _arrive(output, fill, t1, new, u, x, carray(doubles_at(outputs), ny))

    return advance


def _explicit(rhs: Any, most: int) -> tuple[Any, Any]:
    """Dormand-Prince: a subsystem step, and its repetition on a given grid."""
    a, b, c, e = DOPRI5
    native = kernels.compiled()
    run, again = native.adaptive, native.again

    @njit()
    def advance(t0: float, t1: float, x: Any, H: float, u: Any, rtol: float, atol: float, h: float) -> Any:
        limit = np.int64(most)  # a number as any other, not a literal: the same compilation as in the Python engine
        return run(rhs, t0, t1, x, t0, H, u, a, b, c, e, rtol, atol, h, limit, limit)

    @njit()
    def repeat(t0: float, grid: Any, x: Any, H: float, u: Any) -> Any:
        return again(rhs, t0, grid, x, t0, H, u, a, b, c, np.int64(most))

    return advance, repeat


def _stiff(rhs: Any, most: int) -> tuple[Any, Any]:
    """The same for the Rosenbrock method."""
    native = rosenbrock.compiled()
    run, again = native.adaptive, native.fixed

    @njit()
    def advance(t0: float, t1: float, x: Any, H: float, u: Any, rtol: float, atol: float, h: float) -> Any:
        return run(rhs, t0, t1, x, t0, H, u, rtol, atol, h, np.int64(most))

    @njit()
    def repeat(t0: float, grid: Any, x: Any, H: float, u: Any) -> Any:
        return again(rhs, t0, grid, x, t0, H, u)

    return advance, repeat


def _adaptive(kind: Any, rhs: Any, output: Any, fill: Any, nx: int, nu: int, ny: int, most: int) -> Any:
    run, again = kind(rhs, most)

    @njit(ADVANCE_CALL)
    def advance(data: int, mode: int, t0: float, t1: float, H: float, n: int, coefficients: Any, outputs: Any) -> Any:
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

    return advance


@njit()
def _arrive(output: Any, fill: Any, t: float, new: Any, u: Any, x: Any, y: Any) -> int:
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
    """The subsystem step of `ode`, or why there is none."""
    solver = ode._first_solver
    if not isinstance(solver, (FixedStep, DormandPrince, Rosenbrock)):
        return (
            f"its integrator {ode.integrator!r} is a library's; use 'auto', 'dopri5', 'rodas4' or one of ode1 to ode5"
        )
    why = "its rhs is a plain Python function, which 'rodas4' calls as it is; decorate it with numba.njit"
    if not isinstance(solver, Rosenbrock):
        made = _traced(ode, solver)
        if not isinstance(made, str):
            return made
        why = made
    jitted = kernels.is_compiled(ode.rhs) and kernels.is_compiled(ode.output_function)
    return _jitted(ode, solver) if jitted else why


def _traced(ode: Ode, solver: FixedStep | DormandPrince) -> Native | str:
    """The step with traced functions, or what cannot be traced."""
    module = traced_step(ode, solver)
    if isinstance(module, str):
        return module
    nx, nu = len(ode.x0), Ports(ode.inputs).length
    fixed = isinstance(solver, FixedStep)
    most = 0 if isinstance(solver, FixedStep) else solver.max_steps
    data = code.memory(nx, nu, most, (solver.h, 0.0) if isinstance(solver, FixedStep) else (solver.rtol, solver.atol))
    state = data[code.INPUTS + nu : code.INPUTS + nu + nx + 1]

    def enter() -> None:
        data[code.READY] = float(ode._solver is solver and module.unchanged())  # not when it turned stiff
        data[code.LAST] = np.nan
        state[:nx] = ode.x
        state[nx] = 0.0 if isinstance(solver, FixedStep) else solver.memory

    def leave() -> None:
        ode.x = state[:nx].copy()
        if not isinstance(solver, FixedStep) and data[code.READY]:
            solver.memory = float(state[nx])
        t = float(data[code.LAST])
        if t == t:
            compare(module, ode, t, ode.x, data[code.INPUTS : code.INPUTS + nu])

    made = Native(module.address("advance"), data.ctypes.data, state, enter=enter, leave=leave, any_step=True)
    made.keep = data, module
    made.hands_back = not fixed or any(traced.hands_back for traced in module.functions.values())
    made.captures = any(traced.captures for traced in module.functions.values())
    return made


def traced_step(ode: Ode, solver: FixedStep | DormandPrince) -> Module | str:
    """Machine code of the step of an `Ode`, with its functions inside; or what cannot be traced, and where."""
    nx, nu, ports = len(ode.x0), Ports(ode.inputs).length, Ports(ode.outputs)
    takes = [("t", None), ("x", nx), ("u", nu)]
    functions: dict[str, Traced] = {}
    for name, function, gives, names in (
        ("rhs", ode.rhs, nx, None),
        ("output", ode.output_function, ports.length, ports),
    ):
        found = trace(function, takes, gives, names)
        if isinstance(found, str):
            return f"its {name} stays in Python: {found}"
        functions[name] = found
    jitted = functions["rhs"].tape.jitted

    def around(places: list[int]) -> str:
        where = places[0], places[1], places[2]
        if isinstance(solver, FixedStep):
            return code.fixed_code(solver.tableau, nx, nu, where, jitted)
        return code.adaptive_code(nx, nu, where, jitted, solver.max_steps)

    module = Module(functions, around)
    if ode.last_point is None:
        return module
    return differs(module, ode, ode.last_point[0], ode.x, ode.last_point[1]) or module


def differs(module: Module, ode: Ode, t: float, x: Any, u: Any) -> str | None:
    """How machine code and Python differ there; None where they do not."""
    for name, function in (("rhs", ode.rhs), ("output", ode.output_function)):
        given = function(t, x.copy(), u.copy())
        found = module.differs(name, given if name == "rhs" else Ports(ode.outputs).pack(given), t, x, u)
        if found is not None:
            return f"its {name} stays in Python: {found}"
    return None


def compare(module: Module, ode: Ode, t: float, x: Any, u: Any) -> None:
    """Raise where machine code and Python differ."""
    found = differs(module, ode, t, x, u)
    if found is not None:
        raise SubsystemError(f"after t = {t:.9g} {found}; compiled=False runs it in Python")


def _jitted(ode: Ode, solver: FixedStep | DormandPrince | Rosenbrock) -> Native | str:
    """The step compiled by numba, of functions that cannot be traced, and of the stiff method."""
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
