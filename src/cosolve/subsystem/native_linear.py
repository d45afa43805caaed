"""The compiled step of a linear subsystem: one product, added up in the order of `products.product`.

The propagator belongs to one step length. At another one the subsystem step asks Python for it, by the address of a
callback, so that both engines use the very same matrix: steps of changing length cost a matrix exponential in either of
them.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from cosolve.basics.products import IN_ORDER
from cosolve.jit import (
    ADVANCE_CALL,
    call_one,
    called,
    double_at,
    part,
    put_double_at,
    raising_address,
    short_loop,
    word_at,
)
from cosolve.subsystem.linear import Linear
from cosolve.subsystem.native import Native

# The words of a subsystem: sizes, 1 with direct feed-through, step length (a double), address of the callback; then,
# as doubles, the state, room for the next one, the propagator, C and D.
_NX, _NU, _NY, _THROUGH, _LENGTH, _CALLBACK, _HEAD = range(7)
_DONE = 0x5D0E  # anything else is what is left of a call in which Ctrl-C was lost, before the first line of Python


@part
def _product(row: int, x: int, n: int) -> float:
    """Of a row with the state, added up in order."""
    total = double_at(row, 0) * double_at(x, 0)
    for j in range(1, n):
        short_loop()
        total += double_at(row, j) * double_at(x, j)
    return total


@called(ADVANCE_CALL)
def _advance(w: int, mode: int, t0: float, t1: float, H: float, n: int, c: int, outputs: int) -> int:
    if H != double_at(w, _LENGTH):
        put_double_at(w, _LENGTH, H)
        if call_one(word_at(w, _CALLBACK), w) != _DONE:
            put_double_at(w, _LENGTH, np.nan)
            return 1
    nx, nu, ny, through = word_at(w, _NX), word_at(w, _NU), word_at(w, _NY), word_at(w, _THROUGH) != 0
    columns, x = nx + n * nu, w + 8 * _HEAD
    new, P = x + 8 * nx, x + 16 * nx
    C = P + 8 * nx * columns
    D = C + 8 * ny * nx
    for i in range(nx):
        row = P + 8 * i * columns
        total = _product(row, x, nx)
        for j in range(n * nu):
            short_loop()
            total += double_at(row, nx + j) * double_at(c, j)
        put_double_at(new, i, total)
    for i in range(nx):
        short_loop()
        put_double_at(x, i, double_at(new, i))
    for i in range(ny):
        total = _product(C + 8 * i * nx, x, nx)
        if through:
            fed = 0.0
            for j in range(nu):
                end = double_at(c, j)
                for k in range(1, n):
                    short_loop()
                    end += double_at(c, k * nu + j)
                share = double_at(D, i * nu + j) * end
                fed = share if j == 0 else fed + share
            total += fed
        put_double_at(outputs, i, total)
    return 0


def linear_native(linear: Linear, H: float, degree: int) -> Native | str:
    """The subsystem step of `linear` with steps `H` and inputs of that degree, or why there is none."""
    P = linear._propagator(H, degree)
    if P.shape[1] > IN_ORDER or P.size > 1 << 16:
        return f"it has {P.shape[1]} columns to add up (at most {IN_ORDER} are added in a fixed order)"
    nx, nu, ny = len(linear.x0), linear.B.shape[1], linear.C.shape[0]
    if nx == 0:
        return "it has no state"
    data = np.concatenate([np.zeros(_HEAD + 2 * nx), P.ravel(), linear.C.ravel(), linear.D.ravel()])
    data.view(np.int64)[: _THROUGH + 1], data[_LENGTH] = (nx, nu, ny, linear.D.any()), H
    state, flow = data[_HEAD : _HEAD + nx], data[_HEAD + 2 * nx :][: P.size]
    failure: list[BaseException] = []

    def renew(_: int) -> int:
        try:
            flow[:] = linear._propagator(float(data[_LENGTH]), degree).ravel()
        except BaseException as error:  # nothing may pass through compiled code
            failure.append(error)
            return 0
        return _DONE

    callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(renew)
    data.view(np.int64)[_CALLBACK] = ctypes.cast(callback, ctypes.c_void_p).value or 0

    def enter() -> None:
        state[:] = linear.x

    def leave() -> None:
        linear.x = state.copy()
        if failure:
            raise failure.pop()
        if np.isnan(data[_LENGTH]):
            raise KeyboardInterrupt

    def jacobian(weight: Any) -> Any:
        return linear.step_jacobian(H, weight)

    made = Native(raising_address(_advance), data.ctypes.data, state, any_step=True, keep=(data, callback))
    made.enter, made.leave, made.jacobian = enter, leave, jacobian
    return made
