"""Runge-Kutta loops written once: plain Python for any right-hand side, compiled by numba for jitted ones.

`rhs(t, x, u)` is the user's function; the inputs are the polynomial with coefficients `coef` in
`s = (t - u_t0) / u_H`, evaluated at the stage times (Schmoll (2015), App. C.1).

With the Butcher tableaus of the fixed-step family ODE1..ODE5 (Schmoll (2015), App. C.1), the pair 5(4) and Radau IIA.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.integrator import step_control
from cosolve.integrator.step_control import Rules
from cosolve.signal.polynomial import horner


class Tableau(NamedTuple):
    """Coefficients of an explicit Runge-Kutta method; `e` = weights of the embedded error estimate (or empty)."""

    a: Matrix
    b: Vector
    c: Vector
    e: Vector


def _tableau(rows: list[list[float]], b: list[float], lower: list[float] | None = None) -> Tableau:
    a = np.zeros((len(b), len(b)))
    for i, row in enumerate(rows, start=1):
        a[i, : len(row)] = row
    weights = np.array(b)
    error = np.zeros(0) if lower is None else weights - np.array(lower)
    found = Tableau(a, weights, a.sum(axis=1), error)
    for part in found:  # as numba sees constants of compiled code: one compilation of a loop serves both callers
        part.setflags(write=False)
    return found


_DORMAND_PRINCE = [
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
]
_DORMAND_PRINCE_B = [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]

FIXED: dict[str, Tableau] = {
    "ode1": _tableau([], [1.0]),
    "ode2": _tableau([[1.0]], [1 / 2, 1 / 2]),
    "ode3": _tableau([[1 / 3], [0.0, 2 / 3]], [1 / 4, 0.0, 3 / 4]),
    "ode4": _tableau([[1 / 2], [0.0, 1 / 2], [0.0, 0.0, 1.0]], [1 / 6, 1 / 3, 1 / 3, 1 / 6]),
    "ode5": _tableau(_DORMAND_PRINCE, _DORMAND_PRINCE_B),
}

#: Dormand and Prince (1980), 5(4), with the seventh stage, which is the first stage of the next step.
DOPRI5 = _tableau(
    [*_DORMAND_PRINCE, _DORMAND_PRINCE_B],
    [*_DORMAND_PRINCE_B, 0.0],
    [5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40],
)

_R = np.sqrt(6.0)
#: Matrices and nodes of Radau IIA with two and three stages (Hairer and Wanner: II, section IV.5).
RADAU: dict[int, tuple[Matrix, Vector]] = {
    2: (np.array([[5 / 12, -1 / 12], [3 / 4, 1 / 4]]), np.array([1 / 3, 1.0])),
    3: (
        np.array(
            [
                [(88 - 7 * _R) / 360, (296 - 169 * _R) / 1800, (-2 + 3 * _R) / 225],
                [(296 + 169 * _R) / 1800, (88 + 7 * _R) / 360, (-2 - 3 * _R) / 225],
                [(16 - _R) / 36, (16 + _R) / 36, 1 / 9],
            ]
        ),
        np.array([(4 - _R) / 10, (4 + _R) / 10, 1.0]),
    ),
}


class Kernels(NamedTuple):
    """The loops: `fixed` steps on a given grid, `adaptive` steps by the embedded error estimate, and these `again`."""

    fixed: Callable[..., Any]
    adaptive: Callable[..., Any]
    again: Callable[..., Any]


OK, TOO_MANY_STEPS, STUCK, NOT_FINITE = 0, 1, 2, 3

#: The next step is at most so many times longer. Where an error estimate would allow more, it has resolved nothing.
_LONGER = 10.0


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


def put_slope(out, given):  # type: ignore[no-untyped-def]
    """Write down what a right-hand side gave; a single number would be taken for all states otherwise."""
    if len(given) != len(out):
        raise ValueError("rhs did not return one number per state")
    out[:] = given


def _build(jit: Callable[[Any], Any], rules: Rules, add_up: Callable[..., Any]) -> Kernels:
    inputs, put = jit(horner), jit(put_slope)
    first_step, step_factor, error_norm, tolerances, is_last, is_stuck = rules

    @jit
    def fixed(rhs, t0, steps, x, u_t0, u_H, coef, a, b, c):  # type: ignore[no-untyped-def]
        """Explicit Runge-Kutta (a, b, c) over the step sizes `steps`, starting at `t0`."""
        stages = len(b)
        K = np.empty((stages, len(x)))
        t = t0
        for h in steps:
            for i in range(stages):
                ti = t + c[i] * h
                put(K[i], rhs(ti, add_up(x, h, a[i], K, i), inputs(coef, (ti - u_t0) / u_H)))
            x = add_up(x, h, b, K, stages)
            t += h
        return x

    @jit
    def adaptive(rhs, t0, t1, x, u_t0, u_H, coef, a, b, c, e, rtol, atol, h, max_steps, max_accepted):  # type: ignore[no-untyped-def]
        """Embedded pair of order 5(4). Returns state, time, next step size, accepted steps, status.

        Accepted steps are negative where next to nothing moved: their length says nothing about stability.
        """
        stages = len(b)
        K = np.empty((stages, len(x)))
        grid = np.empty(max_steps)
        accepted = 0
        t = t0
        tried = 0
        shrunk = False
        finite = True
        span = t1 - t0 if np.isfinite(t1) else u_H  # a free-running solver has no end in sight
        put(K[0], rhs(t, x.copy(), inputs(coef, (t - u_t0) / u_H)))
        if h <= 0.0:
            scale = tolerances(x, x, rtol, atol)
            h = first_step(error_norm(x, scale), error_norm(K[0], scale), span)
        proposed = h
        while t < t1 and accepted < max_accepted:
            if tried >= max_steps:
                return x, t, proposed, grid[:accepted], TOO_MANY_STEPS
            if is_stuck(h, t, span):
                return x, t, proposed, grid[:accepted], STUCK if finite else NOT_FINITE
            last = is_last(t, h, t1)
            step = t1 - t if last else h
            tried += 1
            for i in range(1, stages):
                ti = t + c[i] * step
                put(K[i], rhs(ti, add_up(x, step, a[i], K, i), inputs(coef, (ti - u_t0) / u_H)))
            x_new = add_up(x, step, b, K, stages)
            error = add_up(np.zeros(len(x)), step, e, K, stages)
            size = error_norm(error, tolerances(x, x_new, rtol, atol))
            finite = np.isfinite(size)
            if not finite:
                h = 0.1 * step
                shrunk = True
                continue
            factor = step_factor(size, 5, 0.9, 0.2, _LONGER)
            if size <= 1.0:
                grid[accepted] = -step if factor >= _LONGER else step
                accepted += 1
                t = t1 if last else t + step
                x = x_new
                K[0] = K[stages - 1]  # first same as last
                if shrunk:
                    factor = min(1.0, factor)
                shrunk = False
                h = step * factor
                proposed = h if not last else max(h, min(proposed, step * _LONGER))
            else:
                h = step * factor
                proposed = h
                shrunk = True
        return x, t, proposed, grid[:accepted], OK

    @jit
    def again(rhs, t0, steps, x, u_t0, u_H, coef, a, b, c, most):  # type: ignore[no-untyped-def]
        """The accepted steps of `adaptive` once more, for other inputs.

        A step in which nothing moved is divided where it is longer than the fastest motion that shows up in it now: the
        slopes of the last two stages, at the same time, tell how fast that is. NaN where that takes more than `most`.
        """
        last = len(b) - 1
        K = np.empty((last + 1, len(x)))
        t = t0
        for signed in steps:
            h, pieces = abs(signed), 1
            for attempt in range(2):
                part, new = h / pieces, x
                for k in range(pieces):
                    begin = t + k * part
                    start = new
                    for i in range(last + 1):
                        ti = begin + c[i] * part
                        put(K[i], rhs(ti, add_up(start, part, a[i], K, i), inputs(coef, (ti - u_t0) / u_H)))
                    new = add_up(start, part, b, K, last + 1)
                if signed > 0.0 or attempt > 0 or len(x) == 0:
                    break
                apart = add_up(x, h, a[last], K, last) - add_up(x, h, a[last - 1], K, last - 1)
                moved, turned = np.max(np.abs(apart)), np.max(np.abs(K[last] - K[last - 1]))
                if moved == 0.0 or h * turned <= moved:
                    break
                if not h * turned <= most * moved:  # NaN too
                    return np.full(len(x), np.nan)
                pieces = int(np.ceil(h * turned / moved))
            x = new
            t += h
        return x

    return Kernels(fixed, adaptive, again)


PYTHON = _build(lambda function: function, step_control.PYTHON, _add_up)


@cache
def compiled() -> Kernels:
    """The same loops compiled by numba (specialised for each right-hand side on first use)."""
    import numba

    return _build(numba.njit, step_control.compiled(), numba.njit(_add_up_compiled))


def is_compiled(function: object) -> bool:
    """True for functions jitted by numba."""
    return hasattr(function, "py_func") and hasattr(function, "nopython_signatures")
