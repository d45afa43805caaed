"""Equations of motion in index-1 form and the projections on the constraints, compiled.

Index 1, Baumgarte's terms and projections: docs/theory.md, "Drift".
`w = (v, omega)` are the velocities, `M` is block-diagonal and constant. Each evaluation solves

    (C M^-1 C^T) lambda = -gamma - C M^-1 f - 2 alpha C w - beta^2 c,    w' = M^-1 (f + C^T lambda)
"""

from __future__ import annotations

from functools import cache

import numpy as np

from cosolve.jit import (
    address_of,
    c_address,
    c_call,
    entry,
    field_size,
    formula,
    index_field,
    inlined,
    internal,
    matrix_field,
    types,
    vector_at,
)
from cosolve.multibody.equations.constraints import (
    add_transposed,
    constraint_rows,
    factorise,
    rows_times,
    solve_factorised,
    weigh_rows,
)
from cosolve.multibody.equations.corrections import CORRECTIONS
from cosolve.multibody.equations.forces import apply_loads
from cosolve.multibody.equations.joint_math import Four, Triple
from cosolve.multibody.equations.kinematics import move_bodies, move_markers, normalise, orientation_rate, rotate
from cosolve.multibody.equations.table import DRIVEN, END, ENTRIES, EXTRA, VIOLATE, Workspace, model_at, workspace_at
from cosolve.multibody.model.arrays import BETA_SQUARED, CORRECTION_RATES, STATE, TWO_ALPHA, Arrays, Matrix, Vector

#: Parts of a step that are called by address, so that they are compiled once: `slope(table, x, u, dx) -> margin`,
#: `settle(table, x, level) -> iterations` and `violate(table, x) -> 0`.
SLOPE, PROJECT, VIOLATION = (
    types.float64(*[types.int64] * 4),
    types.int64(*[types.int64] * 3),
    types.int64(*[types.int64] * 2),
)
slope_by, project_by, violate_by = c_call(SLOPE), c_call(PROJECT), c_call(VIOLATION)
corrections_by = c_call(CORRECTIONS)


@formula
def _divide(bodies: Matrix, i: int, load: Matrix, acc: Matrix) -> None:
    for n in range(3):
        acc[i, n] = load[i, n] / bodies[i, 0]
        acc[i, 3 + n] = (
            bodies[i, 10 + 3 * n] * load[i, 3] + bodies[i, 11 + 3 * n] * load[i, 4] + bodies[i, 12 + 3 * n] * load[i, 5]
        )


@internal
def divide_by_mass(bodies: Matrix, load: Matrix, acc: Matrix) -> None:
    """`acc = M^-1 f` from the first six columns of `load`."""
    for i in range(len(acc)):
        _divide(bodies, i, load, acc)


@inlined
def violations(model: Arrays, x: Vector, driven: Matrix, work: Workspace) -> None:
    """Motion of bodies and markers at the state `x`, and constraint rows: values, rates, Jacobian rows and `gamma`."""
    move_bodies(model.counts, x, driven, work.table)
    move_markers(model.marker_body, model.markers, work.table, work.points)
    constraint_rows(model.counts[1], model.rows, work.table, work.points, driven, work.J, work.c, work.rate, work.gamma)


@inlined
def balance(model: Arrays, x: Vector, u: Vector, extra: Matrix, work: Workspace) -> float:
    """Fill `acc` (free bodies x 6: v' in K0, omega' in the body frame), `load` and the multipliers; gives the margin.

    After `violations`. The corrections in the last six columns of `load` are projected on the tangent space of the
    constraints (weighted with the masses), so that they never break an internal joint.
    """
    J, weighted, L, gamma, lam = work.J, work.weighted, work.L, work.gamma, work.lam
    acc, load, scale = work.acc, work.load, work.scale
    corrected = apply_loads(model, x, u, extra, work.table, work.points, load)
    divide_by_mass(model.bodies, load, acc)
    n_free, m = model.counts[1], len(model.rows)
    if m == 0:
        return 1.0
    weigh_rows(n_free, model.rows, model.bodies, J, weighted)
    margin = factorise(model.rows, J, weighted, L, scale)
    if corrected:
        rows_times(n_free, model.rows, J, load, 6, lam)
        solve_factorised(L, scale, lam)
        for k in range(m):
            lam[k] = -lam[k]
        add_transposed(n_free, model.rows, weighted, lam, load, 6)
        corrections_by(
            model.parts[CORRECTION_RATES], n_free, m, address_of(model.rows), address_of(work.table),
            address_of(work.points), address_of(load), address_of(gamma),
        )  # fmt: skip
    rows_times(n_free, model.rows, J, acc, 0, lam)
    alpha, beta = model.numbers[TWO_ALPHA], model.numbers[BETA_SQUARED]
    for k in range(m):
        lam[k] = -gamma[k] - lam[k] - alpha * work.rate[k] - beta * work.c[k]
    solve_factorised(L, scale, lam)
    add_transposed(n_free, model.rows, weighted, lam, acc, 0)
    return margin


@formula
def _angular(x: Vector, at: int, load: Matrix, i: int) -> Triple:
    return (x[at + 10] + load[i, 9], x[at + 11] + load[i, 10], x[at + 12] + load[i, 11])


@formula
def _put_slopes(x: Vector, at: int, acc: Matrix, load: Matrix, i: int, rate: Four, dx: Vector) -> None:
    for n in range(3):
        dx[at + n] = x[at + 7 + n] + load[i, 6 + n]
        dx[at + 7 + n] = acc[i, n]
        dx[at + 10 + n] = acc[i, 3 + n]
    for n in range(4):
        dx[at + 3 + n] = rate[n]


@internal
def slopes(kind: int, x: Vector, acc: Matrix, load: Matrix, dx: Vector) -> None:
    """`dx` from velocities, corrections and accelerations: `r' = v + V_c`, `q' = P^T (omega + Omega_c) / 4`."""
    for i in range(len(acc)):
        at = STATE * i
        _put_slopes(x, at, acc, load, i, orientation_rate(kind, x, at, _angular(x, at, load, i)), dx)


@internal
def derivative(
    model: Arrays, x: Vector, u: Vector, driven: Matrix, extra: Matrix, work: Workspace, dx: Vector
) -> float:
    """`x'` of the index-1 form; gives the margin (see `factorise`)."""
    violations(model, x, driven, work)
    margin = balance(model, x, u, extra, work)
    slopes(model.counts[0], x, work.acc, work.load, dx)
    return margin


@internal
def clear(rows: Matrix) -> None:
    """Zeros everywhere (compiles much faster than an assignment to all)."""
    for k in range(rows.shape[0]):
        for n in range(rows.shape[1]):
            rows[k, n] = 0.0


@entry
def violate(w: int, x: int) -> int:
    """Motion of bodies and markers, and the constraint rows, at the state `x`; they stay in the table."""
    model = model_at(w)
    violations(model, vector_at(x, STATE * model.counts[1]), matrix_field(w, DRIVEN, 19), workspace_at(w))
    return 0


@entry
def slope(w: int, x: int, u: int, dx: int) -> float:
    """`x'` of the index-1 form goes to `dx`, what it is made of stays in the table; gives the margin."""
    violate_by(index_field(w, ENTRIES)[VIOLATE], w, x)
    model, work = model_at(w), workspace_at(w)
    here = vector_at(x, STATE * model.counts[1])
    margin = balance(model, here, vector_at(u, field_size(w, END)), matrix_field(w, EXTRA, 12), work)
    slopes(model.counts[0], here, work.acc, work.load, vector_at(dx, len(here)))
    return margin


@formula
def _step_back(x: Vector, at: int, move: Matrix, i: int) -> Triple:
    """Shift a body by `-move`; the turn that goes with it."""
    for n in range(3):
        x[at + n] = x[at + n] - move[i, n]
    return (-move[i, 3], -move[i, 4], -move[i, 5])


@formula
def _slow_down(x: Vector, at: int, move: Matrix, i: int) -> None:
    for n in range(6):
        x[at + 7 + n] = x[at + 7 + n] - move[i, n]


@entry
def settle(w: int, address: int, level: int) -> int:
    """Project the state at an address: positions (`level` 1), then velocities too (2). Iterations, -1 if they diverge.

    `q -= M^-1 C^T (C M^-1 C^T)^-1 c(q)` by Newton with `C` evaluated anew, then
    `w -= M^-1 C^T (C M^-1 C^T)^-1 C w` at the projected position. Stops when the step no longer shrinks near rounding.
    """
    model, violate = model_at(w), index_field(w, ENTRIES)[VIOLATE]
    n_free, m, kind = model.counts[1], len(model.rows), model.counts[0]
    x = vector_at(address, STATE * n_free)
    for i in range(n_free):
        normalise(kind, x, STATE * i)
    if m == 0 or level == 0:
        return 0
    work = workspace_at(w)
    J, weighted, L, c, rate, scale, move = work.J, work.weighted, work.L, work.c, work.rate, work.scale, work.move
    before = np.inf
    count = 0
    while True:
        violate_by(violate, w, address)
        size = 0.0
        for k in range(m):
            if c[k] != c[k]:
                size = np.inf
            elif abs(c[k]) > size:
                size = abs(c[k])
        if size <= 1e-15 or (size <= 1e-12 and size >= 0.5 * before):
            break
        if count >= 50 or not size < np.inf:
            return -1
        weigh_rows(n_free, model.rows, model.bodies, J, weighted)
        if size > 1e-3 * before or count == 0:  # a factor from nearby still serves for the last digits
            factorise(model.rows, J, weighted, L, scale)
        before = size
        solve_factorised(L, scale, c)
        clear(move)
        add_transposed(n_free, model.rows, weighted, c, move, 0)
        for i in range(n_free):
            at = STATE * i
            rotate(kind, x, at, _step_back(x, at, move, i))
        count += 1
    if level > 1:
        weigh_rows(n_free, model.rows, model.bodies, J, weighted)
        if count != 1 or before > 1e-6:  # after one small correction the factor is good enough for two passes
            factorise(model.rows, J, weighted, L, scale)
        for _ in range(2):  # the second pass removes the rounding of the first
            for k in range(m):
                c[k] = rate[k]
            solve_factorised(L, scale, c)
            clear(move)
            add_transposed(n_free, model.rows, weighted, c, move, 0)
            rows_times(n_free, model.rows, J, move, 0, c)
            for k in range(m):
                rate[k] -= c[k]
            for i in range(n_free):
                _slow_down(x, STATE * i, move, i)
    return count


@cache
def step_parts() -> tuple[int, int, int]:
    """Addresses of `slope`, `settle` and `violate`, as in `ENTRIES`."""
    return c_address(slope, SLOPE), c_address(settle, PROJECT), c_address(violate, VIOLATION)
