"""Explicit one-step integration over a macro step, compiled: fixed steps, and Dormand-Prince with step control.

The projection (if any) follows every internal step and belongs to the step, so predictor, perturbed and corrected runs
are treated alike. The inputs are a polynomial in `s = (t - u_t0) / u_H`. After every step
the state is watched: a NaN, a singular position or a singular set of Euler angles stops the loop with a status.
"""

from __future__ import annotations

from math import sin, sqrt

from cosolve.integrator import step_control
from cosolve.jit import (
    address_of,
    entry,
    field_size,
    finite,
    index_field,
    internal,
    larger,
    matrix_at,
    matrix_field,
    row_of,
    smaller,
    vector_at,
    vector_field,
    whole,
)
from cosolve.multibody.equations.dynamics import project_by, slope_by
from cosolve.multibody.equations.table import (
    ATOL,
    DERIVE,
    END,
    ENTRIES,
    GRID,
    LEVEL,
    NOW,
    OPTIONS,
    RTOL,
    SETTLE,
    STAGES,
    STEP,
    TAIL,
    TAKEN,
    A,
    B,
    C,
    E,
)
from cosolve.multibody.equations.table import STATE as STATE_FIELD
from cosolve.multibody.model.arrays import EULER_ANGLES, STATE, Matrix, Vector

#: Why a loop ended.
OK, TOO_MANY_STEPS, STUCK, NOT_FINITE, SINGULAR, ANGLES, NOT_PROJECTED, NOT_CONVERGED = 0, 1, 2, 3, 4, 5, 6, 7

#: Where a margin (see `constraints.factorise`) counts as zero, and below which its rate of change is looked at.
SINGULAR_MARGIN, SMALL_MARGIN = 1e-6, 0.05

#: Smallest `sin theta` of Euler angles.
SMALLEST_SINE = 1e-3

equal_steps, step_factor = internal(step_control.equal_steps), internal(step_control.step_factor)
is_last, is_stuck = internal(step_control.is_last), internal(step_control.is_stuck)


@internal
def copy_into(target: Vector, source: Vector) -> None:
    """Copy the numbers of one array into another (compiles much faster than an assignment to a slice)."""
    for k in range(len(target)):
        target[k] = source[k]


@internal
def inputs_at(coef: Matrix, s: float, u: Vector) -> None:
    """Write the inputs at `s` into `u`."""
    last = len(coef) - 1
    for k in range(coef.shape[1]):
        value = coef[last, k]
        for j in range(last - 1, -1, -1):
            value = value * s + coef[j, k]
        u[k] = value


@internal
def watch(kind: int, x: Vector, x_old: Vector, margin: float, margin_old: float) -> int:
    """Status of the state after a step from `x_old`; `kind` says how orientations are kept.

    A mechanism meets a singular position where the margin passes through zero; between two steps it falls linearly, so
    the position is met within the next step if the margin is smaller than its last decrease (taken 1.5 times).
    """
    if margin < SINGULAR_MARGIN or (margin < SMALL_MARGIN and margin < 1.5 * (margin_old - margin)):
        return SINGULAR
    for k in range(len(x)):
        if not finite(x[k]):
            return SINGULAR if margin < SMALL_MARGIN else NOT_FINITE
    if kind == EULER_ANGLES:
        for i in range(len(x) // STATE):
            sine, before = sin(x[STATE * i + 4]), sin(x_old[STATE * i + 4])
            if abs(sine) < SMALLEST_SINE or sine * before < 0.0:
                return ANGLES
    return OK


@internal
def _stage(w: int, slope: int, x: Vector, h: float, i: int, a: Matrix, K: Matrix, coef: Matrix, s: float) -> float:
    """Slope `K[i]` of stage `i` of a step `h` from `x`, with the inputs at `s`; gives the margin there.

    The state of the stage goes to the last row of `K` but one.
    """
    x_stage, u = row_of(K, len(K) - 2), vector_field(w, NOW)
    copy_into(x_stage, x)
    for j in range(i):
        if a[i, j] != 0.0:
            for k in range(len(x)):
                x_stage[k] += h * a[i, j] * K[j, k]
    inputs_at(coef, s, u)
    margin: float = slope_by(slope, w, address_of(x_stage), address_of(u), address_of(row_of(K, i)))
    return margin


@internal
def _arrive(w: int, x: Vector, x_old: Vector, margin: float, margin_old: float) -> int:
    """Watch the state after a step and project it; gives the status."""
    status = watch(index_field(w, 0)[0], x, x_old, margin, margin_old)
    if status == OK:
        level = whole(vector_field(w, OPTIONS)[LEVEL])
        if project_by(index_field(w, ENTRIES)[SETTLE], w, address_of(x), level) < 0:
            return NOT_PROJECTED
    return status


@entry
def fixed(w: int, t0: float, t1: float, u_t0: float, u_H: float, rows: int, coefficients: int) -> int:
    """Runge-Kutta in equal steps or, where the integrator is adaptive, on the grid that it took last.

    The state in the table moves on. Gives the status.
    """
    state, options, slope = vector_field(w, STATE_FIELD), vector_field(w, OPTIONS), index_field(w, ENTRIES)[DERIVE]
    n = len(state) - TAIL
    x, margin = vector_at(address_of(state), n), state[n + 2]
    coef = matrix_at(coefficients, rows, field_size(w, END))
    a, b, c = matrix_field(w, A, field_size(w, B)), vector_field(w, B), vector_field(w, C)
    grid, count, step = vector_field(w, GRID), index_field(w, TAKEN)[0], 0.0
    if options[STEP] > 0.0:
        count = equal_steps(t1 - t0, options[STEP])
        step = (t1 - t0) / count
    K, stages = matrix_field(w, STAGES, n), len(b)
    x_old = row_of(K, len(K) - 1)
    t, status = t0, OK
    for s in range(count):
        h = step if step > 0.0 else grid[s]
        copy_into(x_old, x)
        here = 1.0
        for i in range(stages):
            value = _stage(w, slope, x_old, h, i, a, K, coef, (t + c[i] * h - u_t0) / u_H)
            if i == 0:
                here = value
        for i in range(stages):
            if b[i] != 0.0:
                for k in range(n):
                    x[k] += h * b[i] * K[i, k]
        t += h
        status = _arrive(w, x, x_old, here, margin)
        margin = here
        if status == SINGULAR:
            copy_into(x, x_old)
        if status != OK:
            break
    state[n], state[n + 2] = t, margin
    return status


@entry
def adaptive(w: int, t0: float, t1: float, u_t0: float, u_H: float, rows: int, coefficients: int) -> int:
    """Embedded pair 5(4); the state in the table moves on, the steps go to the grid. Gives the status."""
    state, options, slope = vector_field(w, STATE_FIELD), vector_field(w, OPTIONS), index_field(w, ENTRIES)[DERIVE]
    n = len(state) - TAIL
    x, h, margin = vector_at(address_of(state), n), state[n + 1], state[n + 2]
    coef = matrix_at(coefficients, rows, field_size(w, END))
    a, b, c, e = matrix_field(w, A, field_size(w, B)), vector_field(w, B), vector_field(w, C), vector_field(w, E)
    rtol, atol, grid, K = options[RTOL], options[ATOL], vector_field(w, GRID), matrix_field(w, STAGES, n)
    stages, x_new = len(b), row_of(K, len(K) - 1)
    accepted, tried, t, status = 0, 0, t0, OK
    shrunk, sound, fresh = False, True, True
    here = margin
    span = t1 - t0
    if h <= 0.0:
        h = 1e-2 * span
    proposed = h
    while t < t1:
        if tried >= len(grid):
            status = TOO_MANY_STEPS
            break
        if is_stuck(h, t, span):
            status = STUCK if sound else NOT_FINITE
            break
        last = is_last(t, h, t1)
        step = t1 - t if last else h
        tried += 1
        if fresh:
            here = _stage(w, slope, x, step, 0, a, K, coef, (t - u_t0) / u_H)
            fresh = False
        for i in range(1, stages):
            _stage(w, slope, x, step, i, a, K, coef, (t + c[i] * step - u_t0) / u_H)
        size = 0.0
        for k in range(n):
            move, error = 0.0, 0.0
            for i in range(stages):
                move += step * b[i] * K[i, k]
                error += step * e[i] * K[i, k]
            x_new[k] = x[k] + move
            relative = error / (atol + rtol * larger(abs(x[k]), abs(x_new[k])))
            size += relative * relative
        size = sqrt(size / (n if n > 1 else 1))
        sound = finite(size)
        if not sound:
            h = 0.1 * step
            shrunk = True
            continue
        factor = step_factor(size, 5, 0.9, 0.2, 10.0)
        if size > 1.0:
            h = step * factor
            proposed = h
            shrunk = True
            continue
        grid[accepted] = step
        accepted += 1
        t = t1 if last else t + step
        status = _arrive(w, x_new, x, here, margin)
        margin = here
        if status != SINGULAR:
            copy_into(x, x_new)
        fresh = True  # the projection moved the state, so the last slope is not the next one
        if status != OK:
            break
        h = step * (smaller(1.0, factor) if shrunk else factor)
        shrunk = False
        proposed = h if not last else larger(h, smaller(proposed, step * 10.0))
    state[n], state[n + 1], state[n + 2] = t, proposed, margin
    index_field(w, TAKEN)[0] = accepted
    return status
