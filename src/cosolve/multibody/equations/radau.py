"""Radau IIA with 2 or 3 stages for stiff models and for the stabilised index-2 (GGL) form, compiled.

Gear, Gupta and Leimkuhler (1985), with the correction term weighted by the mass:

    p' = N(p) (w + M^-1 C^T mu),   M w' = f + C^T lambda,   0 = c(p),   0 = C w

Unknowns of a stage are `(x, h lambda, h mu)`; with these the rows `c` and `C w` are as well scaled as rows divided by
`h` are for rates. The scheme is stiffly accurate: the new state is the last stage, so both constraints hold as exactly
as Newton's method solves. The Newton matrix is differenced at the first guess of a step and kept while it serves.
"""

from __future__ import annotations

import numpy as np

from cosolve.jit import address_of, compiled, inlined, internal
from cosolve.multibody.equations.constraints import add_transposed, weigh_rows
from cosolve.multibody.equations.dynamics import derivative, divide_by_mass, project_by, slopes, violations
from cosolve.multibody.equations.forces import apply_loads
from cosolve.multibody.equations.stepping import (
    NOT_CONVERGED,
    NOT_PROJECTED,
    OK,
    SINGULAR,
    SMALL_MARGIN,
    copy_into,
    inputs_at,
    watch,
)
from cosolve.multibody.equations.table import Workspace, make_workspace
from cosolve.multibody.model.arrays import STATE, Arrays, Matrix, Vector

#: Newton iterations before a step is given up, and after which a new matrix is made.
MOST, FRESH = 40, 8


@internal
def augmented(
    model: Arrays,
    ggl: bool,
    y: Vector,
    h: float,
    u: Vector,
    driven: Matrix,
    extra: Matrix,
    work: Workspace,
    out: Vector,
) -> None:
    """Slopes of the state and, in GGL form, constraint values and rates, for `y = (x, h lambda, h mu)`."""
    n_free, m = model.counts[1], len(model.rows)
    n = STATE * n_free
    x, dx = y[:n], out[:n]
    if not ggl:
        derivative(model, x, u, driven, extra, work, dx)
        return
    acc, load, lam = work.acc, work.load, work.lam
    violations(model, x, driven, work)
    apply_loads(model, x, u, extra, work.table, work.points, load)
    divide_by_mass(model.bodies, load, acc)
    weigh_rows(n_free, model.rows, model.bodies, work.J, work.weighted)
    for k in range(m):
        out[n + k], out[n + m + k] = work.c[k], work.rate[k]
        lam[k] = y[n + k] / h
    add_transposed(n_free, model.rows, work.weighted, lam, acc, 0)
    for k in range(m):
        lam[k] = y[n + m + k] / h
    add_transposed(n_free, model.rows, work.weighted, lam, load, 6)
    slopes(model.counts[0], x, acc, load, dx)


@compiled
def newton_matrix(
    model: Arrays, ggl: bool, y: Vector, h: float, u: Vector, driven: Matrix, extra: Matrix, A: Matrix
) -> Matrix:
    """Inverse of the Newton matrix of all stages, differenced at `y`."""
    size, n, s = len(y), STATE * model.counts[1], len(A)
    base, moved, shifted, work = np.empty(size), np.empty(size), y.copy(), make_workspace(model)
    augmented(model, ggl, y, h, u, driven, extra, work, base)
    G = np.empty((size, size))
    for k in range(size):
        step = 1e-8 * max(1.0, abs(y[k]))
        shifted[k] = y[k] + step
        augmented(model, ggl, shifted, h, u, driven, extra, work, moved)
        shifted[k] = y[k]
        for r in range(size):
            G[r, k] = (moved[r] - base[r]) / step
    whole = np.zeros((s * size, s * size))
    for i in range(s):
        for j in range(s):
            for r in range(size):
                for k in range(size):
                    if r < n:
                        whole[i * size + r, j * size + k] = -h * A[i, j] * G[r, k]
                    elif i == j:
                        whole[i * size + r, j * size + k] = G[r, k]
        for r in range(n):
            whole[i * size + r, i * size + r] += 1.0
    return np.ascontiguousarray(np.linalg.inv(whole))


@compiled
def newton_update(
    model: Arrays, ggl: bool, x: Vector, Y: Matrix, h: float, u: Matrix, driven: Matrix, extra: Matrix, A: Matrix,
    inverse: Matrix,
) -> float:  # fmt: skip
    """One Newton correction of the stages `Y` (stages x unknowns); inputs, drives and loads one per stage.

    Gives the size of the correction relative to the states; near a singular position multipliers keep some rounding.
    """
    s, size, n = Y.shape[0], Y.shape[1], len(x)
    G, r, work = np.empty((s, size)), np.empty(s * size), make_workspace(model)
    for i in range(s):
        augmented(model, ggl, Y[i], h, u[i], driven[i], extra[i], work, G[i])
    for i in range(s):
        for k in range(size):
            if k < n:
                value = Y[i, k] - x[k]
                for j in range(s):
                    value -= h * A[i, j] * G[j, k]
            else:
                value = G[i, k]
            r[i * size + k] = value
    move = inverse @ r
    change = 0.0
    for i in range(s):
        for k in range(size):
            Y[i, k] -= move[i * size + k]
            if k < n:
                relative = abs(move[i * size + k]) / (1.0 + abs(Y[i, k]))
                if not relative <= change:
                    change = relative
    return change


@compiled
def settled(change: float, before: float) -> bool:
    """True when Newton's corrections have become rounding."""
    return change <= 2e-16 or (change <= 1e-11 and change >= 0.3 * before)


@compiled
def first_guess(
    model: Arrays, ggl: bool, x: Vector, h: float, u: Vector, driven: Matrix, extra: Matrix, c: Vector, Y: Matrix
) -> float:
    """Stages on the tangent at the start, multipliers of the index-1 form; gives the margin there."""
    m, n = len(model.rows), len(x)
    work, dx = make_workspace(model), np.empty(n)
    margin = derivative(model, x, u, driven, extra, work, dx)
    for i in range(len(c)):
        for k in range(n):
            Y[i, k] = x[k] + c[i] * h * dx[k]
        if ggl:
            for k in range(m):
                Y[i, n + k] = h * work.lam[k]
                Y[i, n + m + k] = 0.0
    return margin


@inlined
def advance_radau(
    model: Arrays, w: int, project: int, ggl: bool, level: int, t0: float, count: int, h: float, x: Vector,
    u_t0: float, u_H: float, coef: Matrix, driven: Matrix, extra: Matrix, A: Matrix, c: Vector, margin: float,
) -> tuple[Vector, float, float, int]:  # fmt: skip
    """Radau IIA in `count` steps `h`. Gives state, time, margin, status."""
    s, n, m = len(c), len(x), len(model.rows)
    size = n + (2 * m if ggl else 0)
    Y, u, u_start = np.empty((s, size)), np.empty((s, coef.shape[1])), np.empty(coef.shape[1])
    drives, extras = np.empty((s, *driven.shape)), np.empty((s, *extra.shape))
    for i in range(s):
        for k in range(driven.shape[0]):
            for n_d in range(driven.shape[1]):
                drives[i, k, n_d] = driven[k, n_d]
        for k in range(extra.shape[0]):
            for n_e in range(extra.shape[1]):
                extras[i, k, n_e] = extra[k, n_e]
    x_old, x_new = np.empty(n), x.copy()
    inverse = np.empty((0, 0))
    t, h_made, old = t0, 0.0, 0
    for _ in range(count):
        copy_into(x_old, x_new)
        inputs_at(coef, (t - u_t0) / u_H, u_start)
        for i in range(s):
            inputs_at(coef, (t + c[i] * h - u_t0) / u_H, u[i])
        here = first_guess(model, ggl, x_old, h, u_start, driven, extra, c, Y)
        status = watch(model.counts[0], x_old, x_old, here, margin)
        margin = here
        if status != OK:
            return x_old, t, margin, status
        if h != h_made or old > FRESH:
            singular = False
            try:
                inverse = newton_matrix(model, ggl, Y[s - 1], h, u[s - 1], driven, extra, A)
            except Exception:  # a matrix without inverse; compiled code knows no other kinds
                singular = True
            if singular:
                return x_old, t, margin, SINGULAR
            h_made = h
        before, old = np.inf, 0
        while True:
            change = newton_update(model, ggl, x_old, Y, h, u, drives, extras, A, inverse)
            old += 1
            if settled(change, before):
                break
            if old >= MOST or not change < 1e10:
                return x_old, t, margin, SINGULAR if margin < SMALL_MARGIN else NOT_CONVERGED
            before = change
        copy_into(x_new, Y[s - 1, :n])
        t += h
        status = watch(model.counts[0], x_new, x_old, 1.0, 1.0)
        if status == OK and project_by(project, w, address_of(x_new), level) < 0:
            status = NOT_PROJECTED
        if status != OK:
            return x_new, t, margin, status
    return x_new, t, margin, OK
