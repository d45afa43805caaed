"""Compiled entries to a multibody model that lives in a table of words: the same machine code for both engines.

The table holds, for each field below, the address of an array and its number of rows. Functions that take and give
plain numbers can be called by address, so the loop over macro steps is compiled once and the crossing is not compiled
again for it; and a call from Python does not unpack a dozen arrays.
"""

# mypy: disable-error-code="call-arg, arg-type, var-annotated"

from __future__ import annotations

from functools import cache
from math import ceil
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

from cosolve.mechanics.arrays import Arrays, Index, Matrix, Vector
from cosolve.mechanics.compile import address, compiled, internal
from cosolve.mechanics.observe import observe
from cosolve.mechanics.radau import cross_radau
from cosolve.mechanics.stepping import cross_adaptive, cross_fixed
from cosolve.subsystem.native_calls import CROSS, doubles_at, words_at

#: Fields of the table. The first eleven are those of `Arrays`.
DRIVEN, EXTRA, OPTIONS, A, B, C, E = range(11, 18)
STATE, GRID, TAKEN, SEEN, MULTIPLIERS, END, ENTRIES = range(18, 25)
FIELDS = 25

#: Columns of `OPTIONS`: projection, step (0: adaptive), tolerances, 1 for the stabilised index-2 form.
LEVEL, STEP, RTOL, ATOL, GGL = range(5)

#: Numbers behind the bodies in `STATE`: time, next step size, margin to a singular position.
TAIL = 3

#: `f(table, t0, t1, u_t0, u_H, n, coefficients) -> status` integrates; `f(table, u, y) -> 0` observes.
INTEGRATE = types.int64(types.int64, *[types.float64] * 4, types.int64, types.int64)
OBSERVE = types.int64(*[types.int64] * 3)

_I64, _F64 = ir.IntType(64), ir.DoubleType()


@intrinsic
def _call_integrate(typing: Any, at: Any, w: Any, t0: Any, t1: Any, u_t0: Any, u_H: Any, n: Any, c: Any) -> Any:
    """An `INTEGRATE` by address."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(_I64, [_I64, *[_F64] * 4, _I64, _I64]).as_pointer()
        return builder.call(builder.inttoptr(values[0], kind), values[1:])

    return types.int64(types.int64, *INTEGRATE.args), generate


@intrinsic
def _call_observe(typing: Any, at: Any, w: Any, u: Any, y: Any) -> Any:
    """An `OBSERVE` by address."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(_I64, [_I64] * 3).as_pointer()
        return builder.call(builder.inttoptr(values[0], kind), values[1:])

    return types.int64(types.int64, *OBSERVE.args), generate


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
def adaptive(w: int, t0: float, t1: float, u_t0: float, u_H: float, n: int, coefficients: int) -> int:
    """Dormand-Prince from the state in the table, which moves on; its grid is kept for `fixed`."""
    state, o, grid = _numbers(w, STATE), _numbers(w, OPTIONS), _numbers(w, GRID)
    a, b, c, e = _rows(w, A, len(_numbers(w, B))), _numbers(w, B), _numbers(w, C), _numbers(w, E)
    coef, at = carray(doubles_at(coefficients), (n, len(_numbers(w, END)))), len(state) - TAIL
    x, t, margin, status, h, taken = cross_adaptive(
        *(_model(w), int(o[LEVEL]), t0, t1, state[:at], u_t0, u_H, coef, _rows(w, DRIVEN, 19), _rows(w, EXTRA, 12)),
        *(a, b, c, e, o[RTOL], o[ATOL], state[at + 1], grid, state[at + 2]),
    )
    _arrive(state, x, t, margin)
    state[at + 1], _whole(w, TAKEN)[0] = h, taken
    return status


@compiled
def fixed(w: int, t0: float, t1: float, u_t0: float, u_H: float, n: int, coefficients: int) -> int:
    """Runge-Kutta in equal steps or, where the integrator is adaptive, on the grid that it took last."""
    state, o = _numbers(w, STATE), _numbers(w, OPTIONS)
    steps = _numbers(w, GRID)[: _whole(w, TAKEN)[0]]
    if o[STEP] > 0.0:
        steps = _equal_steps(t1 - t0, o[STEP])
    a, b, c = _rows(w, A, len(_numbers(w, B))), _numbers(w, B), _numbers(w, C)
    coef, at = carray(doubles_at(coefficients), (n, len(_numbers(w, END)))), len(state) - TAIL
    x, t, margin, status = cross_fixed(
        *(_model(w), int(o[LEVEL]), t0, steps, state[:at], u_t0, u_H, coef, _rows(w, DRIVEN, 19), _rows(w, EXTRA, 12)),
        *(a, b, c, state[at + 2]),
    )
    _arrive(state, x, t, margin)
    return status


@compiled
def radau(w: int, t0: float, t1: float, u_t0: float, u_H: float, n: int, coefficients: int) -> int:
    """Radau IIA in equal steps."""
    state, o = _numbers(w, STATE), _numbers(w, OPTIONS)
    coef, at = carray(doubles_at(coefficients), (n, len(_numbers(w, END)))), len(state) - TAIL
    x, t, margin, status = cross_radau(
        *(_model(w), o[GGL] != 0.0, int(o[LEVEL]), t0, _equal_steps(t1 - t0, o[STEP]), state[:at], u_t0, u_H, coef),
        *(_rows(w, DRIVEN, 19), _rows(w, EXTRA, 12), _rows(w, A, len(_numbers(w, C))), _numbers(w, C), state[at + 2]),
    )
    _arrive(state, x, t, margin)
    return status


@compiled
def outputs(w: int, u: int, y: int) -> int:
    """What the observed markers do in the state of the table for the inputs `u`; the multipliers stay in the table."""
    state, seen = _numbers(w, STATE), _whole(w, SEEN)
    observe(
        *(_model(w), state[: len(state) - TAIL], carray(doubles_at(u), len(_numbers(w, END)))),
        *(_rows(w, DRIVEN, 19), _rows(w, EXTRA, 12), seen, carray(doubles_at(y), 19 * len(seen))),
        _numbers(w, MULTIPLIERS),
    )
    return 0


@compiled
def _cross(w: int, mode: int, t0: float, t1: float, H: float, n: int, coefficients: int, y: int) -> int:
    """A crossing as compiled loops want it: integrate or repeat, then observe with the inputs at the end."""
    entries, end = _whole(w, ENTRIES), _numbers(w, END)
    status = _call_integrate(entries[mode], w, t0, t1, t0, H, n, coefficients)
    if status != 0:
        return status
    coef = carray(doubles_at(coefficients), (n, len(end)))
    for k in range(len(end)):
        end[k] = coef[0, k]
        for j in range(1, n):
            end[k] += coef[j, k]
    return _call_observe(entries[2], w, end.ctypes.data, y)


@cache
def cross_address() -> int:
    """Where the crossing is."""
    return address(_cross, CROSS)


@cache
def entry_addresses(integrator: str) -> tuple[int, int, int]:
    """Where its parts are: to advance, to repeat, to observe."""
    runs = {"dopri5": (adaptive, fixed), "rk4": (fixed, fixed), "radau": (radau, radau)}[integrator]
    first, second = (address(run, INTEGRATE) for run in runs)
    return first, second, address(outputs, OBSERVE)
