"""A stiff one-step method that restarts for free: RODAS of order 4(3) (Hairer and Wanner (1996), IV.7, VI.3).

Six linear solves with one matrix per step, no Newton iteration, no history. Jacobian and time derivative are taken by
differences, so any right-hand side will do; inputs are the polynomial of the macro step. Like the explicit kernels it
is written once and runs compiled for jitted right-hand sides.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.lu import eliminate, lu_factor, lu_solve, substitute
from cosolve.errors import NonFiniteError
from cosolve.integrator import kernels, step_control
from cosolve.integrator.kernels import NOT_FINITE, OK, STUCK, TOO_MANY_STEPS, put_slope
from cosolve.integrator.step_control import Rules
from cosolve.signal.polynomial import InputSignal, horner

GAMMA = 0.25
#: Stage times, factors of the time derivative, and the two triangles of the transformed method.
TIMES = np.array([0.0, 0.386, 0.21, 0.63, 1.0, 1.0])
BY_TIME = np.array([0.25, -0.1043, 0.1035, -0.03620000000000023, 0.0, 0.0])
A = np.zeros((6, 6))
A[1, :1] = 1.544
A[2, :2] = 0.9466785280815826, 0.2557011698983284
A[3, :3] = 3.314825187068521, 2.896124015972201, 0.9986419139977817
A[4, :4] = 1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895
A[5, :5] = *A[4, :4], 1.0
C = np.zeros((6, 6))
C[1, :1] = -5.6688
C[2, :2] = -2.430093356833875, -0.2063599157091915
C[3, :3] = -0.1073529058151375, -9.594562251023355, -20.47028614809616
C[4, :4] = 7.496443313967647, -10.24680431464352, -33.99990352819905, 11.7089089320616
C[5, :5] = 8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054


class StiffKernel(NamedTuple):
    """`adaptive` advances over a macro step, `fixed` repeats it on a given grid."""

    adaptive: Callable[..., Any]
    fixed: Callable[..., Any]


def _lapack(matrix):  # type: ignore[no-untyped-def]
    """Factors for `_lapack_solve`, and whether there are any: how good they are is left to the error estimate."""
    lu, pivots, _ = lu_factor(matrix)
    return (lu, pivots), bool(np.diag(lu).all())


def _lapack_solve(factors, rhs):  # type: ignore[no-untyped-def]
    lu, pivots = factors
    return lu_solve(lu, pivots, rhs)


def _compiled_factors(njit: Any) -> tuple[Any, Any]:
    """The same for compiled code, which has no Python to call."""
    eliminated, substituted = njit(eliminate), njit(substitute)

    @njit
    def factor(matrix):  # type: ignore[no-untyped-def]
        order = np.empty(len(matrix), np.intp)
        return (matrix, order), eliminated(matrix, order, len(matrix), 0.0)

    @njit
    def solve(factors, rhs):  # type: ignore[no-untyped-def]
        x = np.empty(len(rhs))
        substituted(factors[0], factors[1], len(rhs), rhs, x)
        return x

    return factor, solve


def _build(
    jit: Callable[[Any], Any], rules: Rules, factor: Callable[..., Any], solve: Callable[..., Any]
) -> StiffKernel:
    inputs, put = jit(horner), jit(put_slope)
    first_step, step_factor, error_norm, tolerances, is_last, is_stuck = rules

    @jit
    def slope(rhs, t, x, u_t0, u_H, coef, out):  # type: ignore[no-untyped-def]
        put(out, rhs(t, x.copy(), inputs(coef, (t - u_t0) / u_H)))
        return out

    @jit
    def step(rhs, t, h, x, f0, u_t0, u_H, coef):  # type: ignore[no-untyped-def]
        """One step: the new state and its error estimate."""
        n = len(x)
        matrix, f = np.empty((n, n)), np.empty(n)
        least = max(1e-6, 1e-3 * np.abs(x).max()) if n > 0 else 0.0
        for j in range(n):
            shift = 1.5e-8 * max(abs(x[j]), abs(h * f0[j]), least)
            moved = x.copy()
            moved[j] += shift
            shift = moved[j] - x[j]
            slope(rhs, t, moved, u_t0, u_H, coef, f)
            matrix[:, j] = (f0 - f) / shift
            matrix[j, j] += 1.0 / (h * GAMMA)
        later, before = t + 1e-4 * h, t - 1e-4 * h
        by_time = slope(rhs, later, x, u_t0, u_H, coef, f).copy()
        by_time = by_time - slope(rhs, before, x, u_t0, u_H, coef, f)
        if later > before:  # else the step is so short that its ends are as good as one time
            by_time = by_time / (later - before)
        factors, regular = factor(matrix)
        if not regular:  # 1 / (h GAMMA) is an eigenvalue of the Jacobian; that of another step is not
            return x.copy(), np.full(n, np.nan)
        U = np.empty((6, n))
        stage = x.copy()
        for i in range(6):
            if i == 0:
                right = f0 + (h * BY_TIME[0]) * by_time
            else:
                stage = x.copy()
                for j in range(i):
                    stage = stage + A[i, j] * U[j]
                right = slope(rhs, t + TIMES[i] * h, stage, u_t0, u_H, coef, f) + (h * BY_TIME[i]) * by_time
                for j in range(i):
                    right = right + (C[i, j] / h) * U[j]
            U[i] = solve(factors, right)
        return stage + U[5], U[5].copy()

    @jit
    def fixed(rhs, t0, steps, x, u_t0, u_H, coef):  # type: ignore[no-untyped-def]
        t, f0 = t0, np.empty(len(x))
        for h in steps:
            slope(rhs, t, x, u_t0, u_H, coef, f0)
            x = step(rhs, t, h, x, f0, u_t0, u_H, coef)[0]
            t += h
        return x

    @jit
    def adaptive(rhs, t0, t1, x, u_t0, u_H, coef, rtol, atol, h, max_steps):  # type: ignore[no-untyped-def]
        """State, time, next step size, accepted steps, status."""
        grid, accepted, tried, t, finite = np.empty(max_steps), 0, 0, t0, True
        span = t1 - t0
        f0 = slope(rhs, t, x, u_t0, u_H, coef, np.empty(len(x)))
        if h <= 0.0:
            scale = tolerances(x, x, rtol, atol)
            h = first_step(error_norm(x, scale), error_norm(f0, scale), span)
        proposed = h
        while t < t1:
            if tried >= max_steps:
                return x, t, proposed, grid[:accepted], TOO_MANY_STEPS
            if is_stuck(h, t, span):
                return x, t, proposed, grid[:accepted], STUCK if finite else NOT_FINITE
            last = is_last(t, h, t1)
            size = t1 - t if last else h
            tried += 1
            new, error = step(rhs, t, size, x, f0, u_t0, u_H, coef)
            norm = error_norm(error, tolerances(x, new, rtol, atol))
            finite = np.isfinite(norm)
            if not finite:
                h = 0.1 * size
                continue
            h = size * step_factor(norm, 4, 0.9, 0.2, 5.0)
            if norm <= 1.0:
                grid[accepted] = size
                accepted += 1
                t = t1 if last else t + size
                x = new
                proposed = max(h, proposed) if last else h  # a step cut at the end says nothing against longer ones
                if t < t1:
                    f0 = slope(rhs, t, x, u_t0, u_H, coef, f0)
            else:
                proposed = h
        return x, t, proposed, grid[:accepted], OK

    return StiffKernel(adaptive, fixed)


PYTHON = _build(lambda function: function, step_control.PYTHON, _lapack, _lapack_solve)


@cache
def compiled() -> StiffKernel:
    """The same method compiled by numba."""
    import numba

    return _build(numba.njit, step_control.compiled(), *_compiled_factors(numba.njit))


class Rosenbrock:
    """Adaptive RODAS 4(3) whose only memory is the next step size; `replay` repeats the steps of the last `integrate`.

    >>> import numpy as np
    >>> from cosolve.signal import Polynomial
    >>> stiff = Rosenbrock(1e-6, 1e-9)
    >>> u = Polynomial(0.0, 1.0, np.zeros((1, 1)))
    >>> x = stiff.integrate(lambda t, x, u: -1e6 * (x - np.cos(t)), 0.0, 1.0, np.array([2.0]), u)
    >>> bool(abs(x[0] - np.cos(1.0)) < 1e-5), len(stiff.grid) < 60
    (True, True)
    """

    def __init__(self, rtol: float, atol: float, max_steps: int = 10_000) -> None:
        self.rtol, self.atol, self.max_steps = rtol, atol, max_steps
        self.noise = rtol
        self.memory: Any = 0.0
        self.grid: Vector = np.zeros(0)

    def integrate(self, rhs: Any, t0: float, t1: float, x: Vector, u: InputSignal) -> Vector:
        """State at `t1`."""
        kernel = compiled() if kernels.is_compiled(rhs) else PYTHON
        new, t, self.memory, self.grid, status = kernel.adaptive(
            *(rhs, t0, t1, x, u.t0, u.H, u.coefficients, self.rtol, self.atol, self.memory, self.max_steps)
        )
        if status == NOT_FINITE:
            raise NonFiniteError(f"rhs returns a NaN or an infinity near t = {t:.9g}")
        if status != OK:
            reason = f"more than {self.max_steps} steps" if status == TOO_MANY_STEPS else "a vanishing step"
            raise RuntimeError(f"the stiff solver needs {reason} at t = {t:.6g}; check rhs for a jump")
        result: Vector = new
        return result

    def replay(self, rhs: Any, t0: float, t1: float, x: Vector, u: InputSignal) -> Vector:
        """State at `t1` on the grid of the last `integrate`."""
        kernel = compiled() if kernels.is_compiled(rhs) else PYTHON
        result: Vector = kernel.fixed(rhs, t0, self.grid, x, u.t0, u.H, u.coefficients)
        return result
