"""Explicit one-step integration over a macro step, compiled: fixed steps, and Dormand-Prince with step control.

The projection (if any) follows every internal step and belongs to the step, so predictor, perturbed and corrected runs
are treated alike. The inputs are a polynomial in `s = (t - u_t0) / u_H`. After every step
the state is watched: a NaN, a singular position or a singular set of Euler angles stops the loop with a status.
"""

from __future__ import annotations

import numpy as np
from numba import types

from cosolve.multibody.equations.compile import by_address, compiled, inlined, internal
from cosolve.multibody.model.arrays import EULER_ANGLES, STATE, Arrays, Matrix, Vector

#: Why a loop ended.
OK, TOO_MANY_STEPS, STUCK, NOT_FINITE, SINGULAR, ANGLES, NOT_PROJECTED, NOT_CONVERGED = 0, 1, 2, 3, 4, 5, 6, 7

#: Parts of a step that are called by address, so that they are compiled once: `f(table, x, u, dx) -> margin` and
#: `f(table, x, level) -> iterations`; the table is the caller's, and so is what it means.
SLOPE, PROJECT = types.float64(*[types.int64] * 4), types.int64(*[types.int64] * 3)
slope_by, project_by = by_address(SLOPE), by_address(PROJECT)

#: Where a margin (see `constraints.factorise`) counts as zero, and below which its rate of change is looked at.
SINGULAR_MARGIN, SMALL_MARGIN = 1e-6, 0.05

#: Smallest `sin theta` of Euler angles.
SMALLEST_SINE = 1e-3


@internal
def copy_into(target: Vector, source: Vector) -> None:
    """Copy the numbers of one array into another (compiles much faster than an assignment to a slice)."""
    for k in range(len(target)):
        target[k] = source[k]


@compiled
def inputs_at(coef: Matrix, s: float, u: Vector) -> None:
    """Write the inputs at `s` into `u`.

    >>> u = np.zeros(1)
    >>> inputs_at(np.array([[1.0], [2.0]]), 0.5, u)
    >>> u
    array([2.])
    """
    last = len(coef) - 1
    for k in range(coef.shape[1]):
        value = coef[last, k]
        for j in range(last - 1, -1, -1):
            value = value * s + coef[j, k]
        u[k] = value


@internal
def watch(model: Arrays, x: Vector, x_old: Vector, margin: float, margin_old: float) -> int:
    """Status of the state after a step from `x_old`.

    A mechanism meets a singular position where the margin passes through zero; between two steps it falls linearly, so
    the position is met within the next step if the margin is smaller than its last decrease (taken 1.5 times).
    """
    if margin < SINGULAR_MARGIN or (margin < SMALL_MARGIN and margin < 1.5 * (margin_old - margin)):
        return SINGULAR
    for k in range(len(x)):
        if not np.isfinite(x[k]):
            return SINGULAR if margin < SMALL_MARGIN else NOT_FINITE
    if model.counts[0] == EULER_ANGLES:
        for i in range(model.counts[1]):
            sine, before = np.sin(x[STATE * i + 4]), np.sin(x_old[STATE * i + 4])
            if abs(sine) < SMALLEST_SINE or sine * before < 0.0:
                return ANGLES
    return OK


@inlined
def cross_fixed(
    model: Arrays, w: int, slope: int, project: int, level: int, t0: float, steps: Vector, x: Vector, u_t0: float,
    u_H: float, coef: Matrix, a: Matrix, b: Vector, c: Vector, margin: float,
) -> tuple[Vector, float, float, int]:  # fmt: skip
    """Explicit Runge-Kutta (a, b, c) over the step sizes `steps`. Gives state, time, margin, status."""
    stages, n = len(b), len(x)
    K, u = np.empty((stages, n)), np.empty(coef.shape[1])
    x_old, x_stage, x_new = np.empty(n), np.empty(n), x.copy()
    t = t0
    for h in steps:
        copy_into(x_old, x_new)
        here = 1.0
        for i in range(stages):
            copy_into(x_stage, x_old)
            for j in range(i):
                if a[i, j] != 0.0:
                    for k in range(n):
                        x_stage[k] += h * a[i, j] * K[j, k]
            inputs_at(coef, (t + c[i] * h - u_t0) / u_H, u)
            value = slope_by(slope, w, x_stage.ctypes.data, u.ctypes.data, K[i].ctypes.data)
            if i == 0:
                here = value
        for i in range(stages):
            if b[i] != 0.0:
                for k in range(n):
                    x_new[k] += h * b[i] * K[i, k]
        t += h
        status = watch(model, x_new, x_old, here, margin)
        margin = here
        if status == OK and project_by(project, w, x_new.ctypes.data, level) < 0:
            status = NOT_PROJECTED
        if status != OK:
            return x_old if status == SINGULAR else x_new, t, margin, status
    return x_new, t, margin, OK


@inlined
def cross_adaptive(
    model: Arrays, w: int, slope: int, project: int, level: int, t0: float, t1: float, x: Vector, u_t0: float,
    u_H: float, coef: Matrix, a: Matrix, b: Vector, c: Vector, e: Vector, rtol: float, atol: float, h: float,
    grid: Vector, margin: float,
) -> tuple[Vector, float, float, int, float, int]:  # fmt: skip
    """Embedded pair 5(4). Gives state, time, margin, status, next step size and the number of steps put in `grid`."""
    stages, n = len(b), len(x)
    K, u = np.empty((stages, n)), np.empty(coef.shape[1])
    x_now, x_stage, x_new = x.copy(), np.empty(n), np.empty(n)
    accepted, tried, t = 0, 0, t0
    shrunk, finite, fresh = False, True, True
    here = margin
    span = t1 - t0
    if h <= 0.0:
        h = 1e-2 * span
    proposed = h
    while t < t1:
        if tried >= len(grid):
            return x_now, t, margin, TOO_MANY_STEPS, proposed, accepted
        if h < 1e-14 * max(abs(t), span):
            return x_now, t, margin, STUCK if finite else NOT_FINITE, proposed, accepted
        last = t + h * (1.0 + 1e-10) >= t1
        step = t1 - t if last else h
        tried += 1
        if fresh:
            inputs_at(coef, (t - u_t0) / u_H, u)
            here = slope_by(slope, w, x_now.ctypes.data, u.ctypes.data, K[0].ctypes.data)
            fresh = False
        for i in range(1, stages):
            copy_into(x_stage, x_now)
            for j in range(i):
                if a[i, j] != 0.0:
                    for k in range(n):
                        x_stage[k] += step * a[i, j] * K[j, k]
            inputs_at(coef, (t + c[i] * step - u_t0) / u_H, u)
            slope_by(slope, w, x_stage.ctypes.data, u.ctypes.data, K[i].ctypes.data)
        size = 0.0
        for k in range(n):
            move, error = 0.0, 0.0
            for i in range(stages):
                move += step * b[i] * K[i, k]
                error += step * e[i] * K[i, k]
            x_new[k] = x_now[k] + move
            size += (error / (atol + rtol * max(abs(x_now[k]), abs(x_new[k])))) ** 2
        size = np.sqrt(size / max(n, 1))
        finite = np.isfinite(size)
        if not finite:
            h = 0.1 * step
            shrunk = True
            continue
        factor = 0.9 * size**-0.2 if size > 0.0 else 10.0
        if size > 1.0:
            h = step * max(0.2, factor)
            proposed = h
            shrunk = True
            continue
        grid[accepted] = step
        accepted += 1
        t = t1 if last else t + step
        status = watch(model, x_new, x_now, here, margin)
        margin = here
        if status == OK and project_by(project, w, x_new.ctypes.data, level) < 0:
            status = NOT_PROJECTED
        if status != SINGULAR:
            copy_into(x_now, x_new)
        fresh = True  # the projection moved the state, so the last slope is not the next one
        if status != OK:
            return x_now, t, margin, status, proposed, accepted
        factor = min(1.0 if shrunk else 10.0, max(0.2, factor))
        shrunk = False
        h = step * factor
        proposed = h if not last else max(h, min(proposed, step * 10.0))
    return x_now, t, margin, OK, proposed, accepted
