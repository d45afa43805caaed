"""Equations of motion in index-1 form and the projections on the constraints, compiled.

Index 1, Baumgarte's terms and projections: docs/theory.md, "Drift".
`w = (v, omega)` are the velocities, `M` is block-diagonal and constant. Each evaluation solves

    (C M^-1 C^T) lambda = -gamma - C M^-1 f - 2 alpha C w - beta^2 c,    w' = M^-1 (f + C^T lambda)
"""

from __future__ import annotations

import numpy as np

from cosolve.multibody.equations.compile import compiled, inlined, internal
from cosolve.multibody.equations.constraints import (
    add_transposed,
    constraint_rows,
    correction_rates,
    factorise,
    rows_times,
    solve_factorised,
    weigh_rows,
)
from cosolve.multibody.equations.forces import apply_loads
from cosolve.multibody.equations.joint_math import Triple
from cosolve.multibody.equations.kinematics import (
    BODY_WIDTH,
    POINT_WIDTH,
    move_bodies,
    move_markers,
    normalise,
    orientation_rate,
    rotate,
)
from cosolve.multibody.model.arrays import BETA_SQUARED, STATE, TWO_ALPHA, Arrays, Matrix, Vector


@internal
def divide_by_mass(model: Arrays, load: Matrix, acc: Matrix) -> None:
    """`acc = M^-1 f` from the first six columns of `load`."""
    for i in range(model.counts[1]):
        body = model.bodies[i]
        for n in range(3):
            acc[i, n] = load[i, n] / body[0]
            acc[i, 3 + n] = (
                body[10 + 3 * n] * load[i, 3] + body[11 + 3 * n] * load[i, 4] + body[12 + 3 * n] * load[i, 5]
            )


@inlined
def accelerations(
    model: Arrays, x: Vector, u: Vector, driven: Matrix, extra: Matrix, table: Matrix, points: Matrix, acc: Matrix,
    load: Matrix, lam: Vector,
) -> float:  # fmt: skip
    """Fill `acc` (free bodies x 6: v' in K0, omega' in the body frame), `load` and the multipliers; gives the margin.

    The corrections in the last six columns of `load` are projected on the tangent space of the constraints (weighted
    with the masses), so that they never break an internal joint.
    """
    move_bodies(model, x, driven, table)
    move_markers(model, table, points)
    corrected = apply_loads(model, x, u, driven, extra, table, points, load)
    divide_by_mass(model, load, acc)
    n_free, m = model.counts[1], len(model.rows)
    if m == 0:
        return 1.0
    J, weighted, L = np.empty((m, 12)), np.empty((m, 12)), np.empty((m, m))
    c, rate, gamma, scale = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    constraint_rows(model, table, points, driven, J, c, rate, gamma)
    weigh_rows(n_free, model.rows, model.bodies, J, weighted)
    margin = factorise(model.rows, J, weighted, L, scale)
    if corrected:
        rows_times(n_free, model.rows, J, load, 6, lam)
        solve_factorised(L, scale, lam)
        for k in range(m):
            lam[k] = -lam[k]
        add_transposed(n_free, model.rows, weighted, lam, load, 6)
        correction_rates(model, table, points, load, gamma)
    rows_times(n_free, model.rows, J, acc, 0, lam)
    for k in range(m):
        lam[k] = -gamma[k] - lam[k] - model.numbers[TWO_ALPHA] * rate[k] - model.numbers[BETA_SQUARED] * c[k]
    solve_factorised(L, scale, lam)
    add_transposed(n_free, model.rows, weighted, lam, acc, 0)
    return margin


@internal
def slopes(model: Arrays, x: Vector, acc: Matrix, load: Matrix, dx: Vector) -> None:
    """`dx` from velocities, corrections and accelerations: `r' = v + V_c`, `q' = P^T (omega + Omega_c) / 4`."""
    for i in range(model.counts[1]):
        row, out = x[STATE * i : STATE * (i + 1)], dx[STATE * i : STATE * (i + 1)]
        for n in range(3):
            out[n] = row[7 + n] + load[i, 6 + n]
            out[7 + n] = acc[i, n]
            out[10 + n] = acc[i, 3 + n]
        w: Triple = (row[10] + load[i, 9], row[11] + load[i, 10], row[12] + load[i, 11])
        orientation_rate(model.counts[0], row, w, out)


@internal
def derivative(model: Arrays, x: Vector, u: Vector, driven: Matrix, extra: Matrix, dx: Vector) -> float:
    """`x'` of the index-1 form; gives the margin (see `factorise`)."""
    n_free = model.counts[1]
    table, points = np.empty((model.counts[2], BODY_WIDTH)), np.empty((len(model.marker_body), POINT_WIDTH))
    acc, load, lam = np.empty((n_free, 6)), np.empty((n_free, 12)), np.empty(len(model.rows))
    margin = accelerations(model, x, u, driven, extra, table, points, acc, load, lam)
    slopes(model, x, acc, load, dx)
    return margin


@compiled
def residuals(model: Arrays, x: Vector, driven: Matrix, J: Matrix, c: Vector, rate: Vector) -> None:
    """Constraint values, rates and Jacobian rows at the state `x`."""
    table, points = np.empty((model.counts[2], BODY_WIDTH)), np.empty((len(model.marker_body), POINT_WIDTH))
    move_bodies(model, x, driven, table)
    move_markers(model, table, points)
    constraint_rows(model, table, points, driven, J, c, rate, np.empty(len(c)))


@inlined
def project(model: Arrays, x: Vector, driven: Matrix, level: int) -> int:
    """Project `x` in place: positions (`level` 1), then velocities too (2). Iterations, or -1 without convergence.

    `q -= M^-1 C^T (C M^-1 C^T)^-1 c(q)` by Newton with `C` evaluated anew, then
    `w -= M^-1 C^T (C M^-1 C^T)^-1 C w` at the projected position. Stops when the step no longer shrinks near rounding.
    """
    n_free, m = model.counts[1], len(model.rows)
    for i in range(n_free):
        normalise(model.counts[0], x[STATE * i : STATE * (i + 1)])
    if m == 0 or level == 0:
        return 0
    J, weighted, L = np.empty((m, 12)), np.empty((m, 12)), np.empty((m, m))
    c, rate, scale = np.empty(m), np.empty(m), np.empty(m)
    move = np.empty((n_free, 6))
    before = np.inf
    count = 0
    while True:
        residuals(model, x, driven, J, c, rate)
        size = 0.0
        for k in range(m):
            size = max(size, abs(c[k])) if c[k] == c[k] else np.inf
        if size <= 1e-15 or (size <= 1e-12 and size >= 0.5 * before):
            break
        if count >= 50 or not size < np.inf:
            return -1
        weigh_rows(n_free, model.rows, model.bodies, J, weighted)
        if size > 1e-3 * before or count == 0:  # a factor from nearby still serves for the last digits
            factorise(model.rows, J, weighted, L, scale)
        before = size
        solve_factorised(L, scale, c)
        move[:, :] = 0.0
        add_transposed(n_free, model.rows, weighted, c, move, 0)
        for i in range(n_free):
            for n in range(3):
                x[STATE * i + n] -= move[i, n]
            rotate(model.counts[0], x[STATE * i : STATE * (i + 1)], (-move[i, 3], -move[i, 4], -move[i, 5]))
        count += 1
    if level > 1:
        weigh_rows(n_free, model.rows, model.bodies, J, weighted)
        if count != 1 or before > 1e-6:  # after one small correction the factor is good enough for two passes
            factorise(model.rows, J, weighted, L, scale)
        for _ in range(2):  # the second pass removes the rounding of the first
            for k in range(m):
                c[k] = rate[k]
            solve_factorised(L, scale, c)
            move[:, :] = 0.0
            add_transposed(n_free, model.rows, weighted, c, move, 0)
            rows_times(n_free, model.rows, J, move, 0, c)
            for k in range(m):
                rate[k] -= c[k]
            for i in range(n_free):
                for n in range(6):
                    x[STATE * i + 7 + n] -= move[i, n]
    return count
