"""Runge-Kutta loops written once: plain Python for any right-hand side, compiled by numba for jitted ones.

`rhs(t, x, u)` is the user's function; the inputs are the polynomial with coefficients `coef` in
`s = (t - u_t0) / u_H`, evaluated at the stage times (Schmoll (2015), App. C.1).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np


class Kernels(NamedTuple):
    """The two loops: `fixed` steps on a given grid, `adaptive` steps by the embedded error estimate."""

    fixed: Callable[..., Any]
    adaptive: Callable[..., Any]


OK, TOO_MANY_STEPS, STUCK, NOT_FINITE = 0, 1, 2, 3


def horner(coef, s):  # type: ignore[no-untyped-def]
    """The input polynomial at a fraction `s` of the macro step."""
    value = coef[-1].copy()
    for j in range(len(coef) - 2, -1, -1):
        value = value * s + coef[j]
    return value


def _add_up(x, h, weights, K, count):  # type: ignore[no-untyped-def]
    """`x + h * sum(weights[j] * K[j])`, slope after slope."""
    for j in range(count):
        if weights[j] != 0.0:
            x = x + (h * weights[j]) * K[j]
    return x.copy() if count == 0 else x


def _add_up_compiled(x, h, weights, K, count):  # type: ignore[no-untyped-def]
    """The same sums in the same order, without arrays in between."""
    total = x.copy()
    for j in range(count):
        if weights[j] != 0.0:
            factor = h * weights[j]
            for q in range(len(x)):
                total[q] = total[q] + factor * K[j, q]
    return total


def _build(jit: Callable[[Any], Any], add_up: Callable[..., Any]) -> Kernels:
    inputs = jit(horner)

    @jit
    def fixed(rhs, t0, steps, x, u_t0, u_H, coef, a, b, c):  # type: ignore[no-untyped-def]
        """Explicit Runge-Kutta (a, b, c) over the step sizes `steps`, starting at `t0`."""
        stages = len(b)
        K = np.empty((stages, len(x)))
        t = t0
        for h in steps:
            for i in range(stages):
                ti = t + c[i] * h
                K[i] = rhs(ti, add_up(x, h, a[i], K, i), inputs(coef, (ti - u_t0) / u_H))
            x = add_up(x, h, b, K, stages)
            t += h
        return x

    @jit
    def adaptive(rhs, t0, t1, x, u_t0, u_H, coef, a, b, c, e, rtol, atol, h, max_steps, max_accepted):  # type: ignore[no-untyped-def]
        """Embedded pair of order 5(4). Returns state, time, next step size, accepted steps, status."""
        stages = len(b)
        K = np.empty((stages, len(x)))
        grid = np.empty(max_steps)
        accepted = 0
        t = t0
        tried = 0
        shrunk = False
        finite = True
        span = t1 - t0 if np.isfinite(t1) else u_H  # a free-running solver has no end in sight
        K[0] = rhs(t, x.copy(), inputs(coef, (t - u_t0) / u_H))
        if h <= 0.0:  # first guess from the size of the state and its slope (Hairer, Nørsett and Wanner (1993), II.4)
            scale = atol + rtol * np.abs(x)
            d0 = np.sqrt(np.mean((x / scale) ** 2)) if len(x) > 0 else 0.0
            d1 = np.sqrt(np.mean((K[0] / scale) ** 2)) if len(x) > 0 else 0.0
            h = 0.01 * d0 / d1 if d0 > 1e-5 and d1 > 1e-5 else 1e-3 * span
            h = min(h, span)
        proposed = h
        while t < t1 and accepted < max_accepted:
            if tried >= max_steps:
                return x, t, proposed, grid[:accepted], TOO_MANY_STEPS
            if h < 1e-14 * max(abs(t), abs(span)):
                return x, t, proposed, grid[:accepted], STUCK if finite else NOT_FINITE
            last = t + h * (1.0 + 1e-10) >= t1
            step = t1 - t if last else h
            tried += 1
            for i in range(1, stages):
                ti = t + c[i] * step
                K[i] = rhs(ti, add_up(x, step, a[i], K, i), inputs(coef, (ti - u_t0) / u_H))
            x_new = add_up(x, step, b, K, stages)
            error = add_up(np.zeros(len(x)), step, e, K, stages)
            scale = atol + rtol * np.maximum(np.abs(x), np.abs(x_new))
            size = np.sqrt(np.mean((error / scale) ** 2)) if len(x) > 0 else 0.0
            finite = np.isfinite(size)
            if not finite:
                h = 0.1 * step
                shrunk = True
                continue
            factor = 0.9 * size**-0.2 if size > 0.0 else 10.0
            if size <= 1.0:
                grid[accepted] = step
                accepted += 1
                t = t1 if last else t + step
                x = x_new
                K[0] = K[stages - 1]  # first same as last
                factor = min(10.0, max(0.2, factor))
                if shrunk:
                    factor = min(1.0, factor)
                shrunk = False
                h = step * factor
                proposed = h if not last else max(h, min(proposed, step * 10.0))
            else:
                h = step * max(0.2, factor)
                proposed = h
                shrunk = True
        return x, t, proposed, grid[:accepted], OK

    return Kernels(fixed, adaptive)


PYTHON = _build(lambda function: function, _add_up)


@cache
def compiled() -> Kernels:
    """The same loops compiled by numba (specialised for each right-hand side on first use)."""
    import numba

    return _build(numba.njit, numba.njit(_add_up_compiled))


def is_compiled(function: object) -> bool:
    """True for functions jitted by numba."""
    return hasattr(function, "py_func") and hasattr(function, "nopython_signatures")
