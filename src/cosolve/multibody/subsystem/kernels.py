"""Compiled entries to a multibody model that lives in a table of words: the same machine code for both engines.

The table holds, for each field below, the address of an array and its number of rows. Functions that take and give
plain numbers can be called by address, so the loop over macro steps is compiled once and the crossing is not compiled
again for it; and a call from Python does not unpack a dozen arrays.
"""

# mypy: disable-error-code="call-arg, arg-type, var-annotated, no-any-return"

from __future__ import annotations

from functools import cache
from math import ceil

import numpy as np

from cosolve.jit import carray, types
from cosolve.jit.calls import CROSS, doubles_at, words_at
from cosolve.multibody.equations import dynamics
from cosolve.multibody.equations.compile import address, by_address, compiled, internal
from cosolve.multibody.equations.kinematics import BODY_WIDTH, POINT_WIDTH
from cosolve.multibody.equations.observe import report
from cosolve.multibody.equations.radau import cross_radau
from cosolve.multibody.equations.stepping import PROJECT, SLOPE, cross_adaptive, cross_fixed, slope_by
from cosolve.multibody.model.arrays import Arrays, Index, Matrix, Vector

#: Fields of the table. The first eleven are those of `Arrays`; `BODIES` to `LOADS` are room for the equations.
DRIVEN, EXTRA, OPTIONS, A, B, C, E = range(11, 18)
STATE, RATES, BODIES, POINTS, ACCELERATIONS, LOADS, MULTIPLIERS = range(18, 25)
GRID, TAKEN, SEEN, END, ENTRIES = range(25, 30)

#: Columns of `OPTIONS`: projection, step (0: adaptive), tolerances, 1 for the stabilised index-2 form.
LEVEL, STEP, RTOL, ATOL, GGL = range(5)

#: Addresses in `ENTRIES`: the first two in the order of the modes of a crossing.
ADVANCE, REPLAY, OBSERVE, DERIVE, SETTLE = range(5)

#: Numbers behind the bodies in `STATE`: time, next step size, margin to a singular position.
TAIL = 3

#: `f(table, t0, t1, u_t0, u_H, n, coefficients) -> status` integrates; `f(table, u, y) -> 0` observes.
INTEGRATION = types.int64(types.int64, *[types.float64] * 4, types.int64, types.int64)
OBSERVATION = types.int64(*[types.int64] * 3)
_integrate, _observe = by_address(INTEGRATION), by_address(OBSERVATION)

_accelerations, _slopes, _project = dynamics.accelerations, dynamics.slopes, dynamics.project


@internal
def _whole(w: int, k: int) -> Index:
    """Field `k` as whole numbers."""
    words = words_at(w)
    return carray(words_at(words[2 * k]), words[2 * k + 1])


@internal
def _numbers(w: int, k: int) -> Vector:
    """Field `k` as numbers."""
    words = words_at(w)
    return carray(doubles_at(words[2 * k]), words[2 * k + 1])


@internal
def _whole_rows(w: int, k: int, width: int) -> Index:
    """Field `k` as rows of whole numbers."""
    words = words_at(w)
    return carray(words_at(words[2 * k]), (words[2 * k + 1], width))


@internal
def _rows(w: int, k: int, width: int) -> Matrix:
    """Field `k` as rows of numbers."""
    words = words_at(w)
    return carray(doubles_at(words[2 * k]), (words[2 * k + 1], width))


@internal
def _model(w: int) -> Arrays:
    return Arrays(
        _whole(w, 0),
        _numbers(w, 1),
        _rows(w, 2, 19),
        _whole(w, 3),
        _rows(w, 4, 12),
        _whole_rows(w, 5, 7),
        _whole_rows(w, 6, 3),
        _rows(w, 7, 16),
        _whole_rows(w, 8, 5),
        _whole_rows(w, 9, 6),
        _numbers(w, 10),
    )


@internal
def _arrive(state: Vector, x: Vector, t: float, margin: float) -> None:
    n = len(x)
    for k in range(n):
        state[k] = x[k]
    state[n], state[n + 2] = t, margin


@internal
def _equal_steps(span: float, step: float) -> Vector:
    """Equal steps, none longer than asked."""
    count = max(1, ceil(span / step - 1e-9))
    return np.full(count, span / count)


@compiled
def slope(w: int, x: int, u: int, dx: int) -> float:
    """`x'` of the index-1 form goes to `dx`, what it is made of stays in the table; gives the margin."""
    n, model = len(_numbers(w, STATE)) - TAIL, _model(w)
    load, acc, here = _rows(w, LOADS, 12), _rows(w, ACCELERATIONS, 6), carray(doubles_at(x), n)
    margin = _accelerations(
        model, here, carray(doubles_at(u), len(_numbers(w, END))), _rows(w, DRIVEN, 19), _rows(w, EXTRA, 12),
        _rows(w, BODIES, BODY_WIDTH), _rows(w, POINTS, POINT_WIDTH), acc, load, _numbers(w, MULTIPLIERS),
    )  # fmt: skip
    _slopes(model, here, acc, load, carray(doubles_at(dx), n))
    return margin


@compiled
def settle(w: int, x: int, level: int) -> int:
    """Project `x` in place; iterations, or -1 without convergence."""
    return _project(_model(w), carray(doubles_at(x), len(_numbers(w, STATE)) - TAIL), _rows(w, DRIVEN, 19), level)


@compiled
def adaptive(w: int, t0: float, t1: float, u_t0: float, u_H: float, n: int, coefficients: int) -> int:
    """Dormand-Prince from the state in the table, which moves on; its grid is kept for `fixed`."""
    state, o, grid, entries = _numbers(w, STATE), _numbers(w, OPTIONS), _numbers(w, GRID), _whole(w, ENTRIES)
    a, b, c, e = _rows(w, A, len(_numbers(w, B))), _numbers(w, B), _numbers(w, C), _numbers(w, E)
    coef, at = carray(doubles_at(coefficients), (n, len(_numbers(w, END)))), len(state) - TAIL
    x, t, margin, status, h, taken = cross_adaptive(
        _model(w), w, entries[DERIVE], entries[SETTLE], int(o[LEVEL]), t0, t1, state[:at], u_t0, u_H, coef,
        a, b, c, e, o[RTOL], o[ATOL], state[at + 1], grid, state[at + 2],
    )  # fmt: skip
    _arrive(state, x, t, margin)
    state[at + 1], _whole(w, TAKEN)[0] = h, taken
    return status


@compiled
def fixed(w: int, t0: float, t1: float, u_t0: float, u_H: float, n: int, coefficients: int) -> int:
    """Runge-Kutta in equal steps or, where the integrator is adaptive, on the grid that it took last."""
    state, o, entries = _numbers(w, STATE), _numbers(w, OPTIONS), _whole(w, ENTRIES)
    steps = _numbers(w, GRID)[: _whole(w, TAKEN)[0]]
    if o[STEP] > 0.0:
        steps = _equal_steps(t1 - t0, o[STEP])
    a, b, c = _rows(w, A, len(_numbers(w, B))), _numbers(w, B), _numbers(w, C)
    coef, at = carray(doubles_at(coefficients), (n, len(_numbers(w, END)))), len(state) - TAIL
    x, t, margin, status = cross_fixed(
        _model(w), w, entries[DERIVE], entries[SETTLE], int(o[LEVEL]), t0, steps, state[:at], u_t0, u_H, coef,
        a, b, c, state[at + 2],
    )  # fmt: skip
    _arrive(state, x, t, margin)
    return status


@compiled
def radau(w: int, t0: float, t1: float, u_t0: float, u_H: float, n: int, coefficients: int) -> int:
    """Radau IIA in equal steps."""
    state, o, project = _numbers(w, STATE), _numbers(w, OPTIONS), _whole(w, ENTRIES)[SETTLE]
    coef, at = carray(doubles_at(coefficients), (n, len(_numbers(w, END)))), len(state) - TAIL
    steps = _equal_steps(t1 - t0, o[STEP])
    x, t, margin, status = cross_radau(
        _model(w), w, project, o[GGL] != 0.0, int(o[LEVEL]), t0, steps, state[:at], u_t0, u_H, coef,
        _rows(w, DRIVEN, 19), _rows(w, EXTRA, 12), _rows(w, A, len(_numbers(w, C))), _numbers(w, C), state[at + 2],
    )  # fmt: skip
    _arrive(state, x, t, margin)
    return status


@compiled
def outputs(w: int, u: int, y: int) -> int:
    """What the observed markers do in the state of the table for the inputs `u`; the multipliers stay in the table."""
    state, seen = _numbers(w, STATE), _whole(w, SEEN)
    slope_by(_whole(w, ENTRIES)[DERIVE], w, state.ctypes.data, u, _numbers(w, RATES).ctypes.data)
    report(
        *(_model(w), state[: len(state) - TAIL], _rows(w, DRIVEN, 19), _rows(w, BODIES, BODY_WIDTH)),
        *(_rows(w, POINTS, POINT_WIDTH), _rows(w, ACCELERATIONS, 6), seen, carray(doubles_at(y), 19 * len(seen))),
    )
    return 0


@compiled
def _cross(w: int, mode: int, t0: float, t1: float, H: float, n: int, coefficients: int, y: int) -> int:
    """A crossing as compiled loops want it: integrate or repeat, then observe with the inputs at the end."""
    entries, end = _whole(w, ENTRIES), _numbers(w, END)
    status = _integrate(entries[mode], w, t0, t1, t0, H, n, coefficients)
    if status != 0:
        return status
    coef = carray(doubles_at(coefficients), (n, len(end)))
    for k in range(len(end)):
        end[k] = coef[0, k]
        for j in range(1, n):
            end[k] += coef[j, k]
    return _observe(entries[OBSERVE], w, end.ctypes.data, y)


@cache
def cross_address() -> int:
    """Where the crossing is."""
    return address(_cross, CROSS)


@cache
def parts_of_crossing(integrator: str) -> tuple[int, int, int]:
    """The first three `ENTRIES`."""
    runs = {"dopri5": (adaptive, fixed), "rk4": (fixed, fixed), "radau": (radau, radau)}[integrator]
    first, second = (address(run, INTEGRATION) for run in runs)
    return first, second, address(outputs, OBSERVATION)


@cache
def parts_of_step() -> tuple[int, int]:
    """The other two."""
    return address(slope, SLOPE), address(settle, PROJECT)
