"""The compiled crossing of a linear subsystem: one product, added up in the order of `products.product`.

The propagator belongs to one step length. At another one the crossing asks Python for it, by the address of a callback,
so that both engines use the very same matrix: steps of changing length cost a matrix exponential in either of them.
"""

# mypy: disable-error-code="call-arg"

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.products import IN_ORDER
from cosolve.jit import CROSS, call_one, carray, cfunc, doubles_at, words_at
from cosolve.subsystem.native import Native

if TYPE_CHECKING:
    from cosolve.subsystem.linear import Linear

_HEAD = 6  # states, inputs, outputs, 1 with direct feed-through, step length, address of the callback (a whole number)
_LENGTH, _CALLBACK = 4, 5
_DONE = 0x5D0E  # anything else is what is left of a call in which Ctrl-C was lost, before the first line of Python


@cfunc(CROSS, cache=True)
def _cross(data, mode, t0, t1, H, n, coefficients, outputs):  # type: ignore[no-untyped-def]
    head = carray(doubles_at(data), _HEAD)
    if H != head[_LENGTH]:
        head[_LENGTH] = H
        if call_one(words_at(data)[_CALLBACK], data) != _DONE:
            head[_LENGTH] = np.nan
            return 1
    nx, nu, ny, through = int(head[0]), int(head[1]), int(head[2]), head[3] != 0.0
    columns = nx + n * nu
    block = carray(doubles_at(data + 8 * _HEAD), 2 * nx + nx * columns + ny * (nx + nu))
    x, new = block[:nx], block[nx : 2 * nx]
    P = block[2 * nx : 2 * nx + nx * columns]
    C = block[2 * nx + nx * columns : 2 * nx + nx * columns + ny * nx]
    D = block[2 * nx + nx * columns + ny * nx :]
    c, y = carray(doubles_at(coefficients), n * nu), carray(doubles_at(outputs), ny)
    for i in range(nx):
        total = P[i * columns] * x[0]
        for j in range(1, nx):
            total += P[i * columns + j] * x[j]
        for j in range(n * nu):
            total += P[i * columns + nx + j] * c[j]
        new[i] = total
    for i in range(nx):
        x[i] = new[i]
    for i in range(ny):
        total = C[i * nx] * x[0]
        for j in range(1, nx):
            total += C[i * nx + j] * x[j]
        if through:
            fed = 0.0
            for j in range(nu):
                end = c[j]
                for k in range(1, n):
                    end += c[k * nu + j]
                fed = D[i * nu] * end if j == 0 else fed + D[i * nu + j] * end
            total += fed
        y[i] = total
    return 0


def linear_native(linear: Linear, H: float, degree: int) -> Native | str:
    """The crossing of `linear` with steps `H` and inputs of that degree, or why there is none."""
    P = linear._propagator(H, degree)
    if P.shape[1] > IN_ORDER or P.size > 1 << 16:
        return f"it has {P.shape[1]} columns to add up (at most {IN_ORDER} are added in a fixed order)"
    nx, nu, ny = len(linear.x0), linear.B.shape[1], linear.C.shape[0]
    if nx == 0:
        return "it has no state"
    parts: list[Any] = [[nx, nu, ny, float(linear.D.any()), H, 0.0], np.zeros(2 * nx), P.ravel()]
    data = np.concatenate([*parts, linear.C.ravel(), linear.D.ravel()])
    state, flow = data[_HEAD : _HEAD + nx], data[_HEAD + 2 * nx :][: P.size]
    trouble: list[BaseException] = []

    def renew(_: int) -> int:
        try:
            flow[:] = linear._propagator(float(data[_LENGTH]), degree).ravel()
        except BaseException as error:  # nothing may pass through compiled code
            trouble.append(error)
            return 0
        return _DONE

    callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(renew)
    data.view(np.int64)[_CALLBACK] = ctypes.cast(callback, ctypes.c_void_p).value or 0

    def enter() -> None:
        state[:] = linear.x

    def leave() -> None:
        linear.x = state.copy()
        if trouble:
            raise trouble.pop()
        if np.isnan(data[_LENGTH]):
            raise KeyboardInterrupt

    def jacobian(weight: Any) -> Any:
        return linear.step_jacobian(H, weight)

    assert _cross.address is not None
    made = Native(_cross.address, data.ctypes.data, state, any_step=True, keep=(data, callback))
    made.enter, made.leave, made.jacobian = enter, leave, jacobian
    return made
