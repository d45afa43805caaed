"""Rows of the basic constraints atpoint, inplane and perpendicular: value, rate, Jacobian and `gamma`, compiled.

With `d = p_a - p_b`, `n` an axis of the second marker and `a` one of the first (Lu (2015), 3.2.2):

    atpoint  c = d (one component per row),   inplane  c = d . n,   perpendicular  c = a . n

A row's Jacobian has six numbers for each of its two bodies (with respect to `v` in K0 and `omega` in the body frame);
its rate is `c' = J_a w_a + J_b w_b`, its acceleration `c'' = J_a w_a' + J_b w_b' + gamma`. The motion of driven bodies
is known, so their part of `c''` is moved into `gamma`.
"""

from __future__ import annotations

from math import sqrt

from cosolve.jit import formula, internal
from cosolve.multibody.equations.joint_math import Eight, Triple, cross, dot, minus, times, to_body
from cosolve.multibody.equations.kinematics import (
    BODY_OMEGA,
    BODY_R,
    BODY_V,
    BODY_W,
    POINT_A,
    POINT_C,
    POINT_P,
    POINT_V,
    axis_of,
    nine,
    triple_of,
)
from cosolve.multibody.model.arrays import PLANE, POINT, STATE, Index, Matrix, Vector


@formula
def _difference(points: Matrix, a: int, b: int, start: int) -> Triple:
    return minus(triple_of(points, a, start), triple_of(points, b, start))


@formula
def _point_row(points: Matrix, a: int, b: int, force: Triple) -> Eight:
    """Turns of both bodies in K0 (3 and 3), `gamma` without driven bodies, and value of an atpoint row."""
    turn_i = cross(triple_of(points, a, POINT_C), force)
    turn_j = times(-1.0, cross(triple_of(points, b, POINT_C), force))
    gamma = dot(_difference(points, a, b, POINT_A), force)
    return (*turn_i, *turn_j, gamma, dot(_difference(points, a, b, POINT_P), force))


@formula
def _plane_row(points: Matrix, table: Matrix, a: int, b: int, j: int, n: Triple) -> Eight:
    """The same of an inplane row with the normal `n`."""
    w_j = triple_of(table, j, BODY_OMEGA)
    d, d_dot = _difference(points, a, b, POINT_P), _difference(points, a, b, POINT_V)
    n_dot = cross(w_j, n)
    turn_i = cross(triple_of(points, a, POINT_C), n)
    turn_j = cross(n, minus(triple_of(points, a, POINT_P), triple_of(table, j, BODY_R)))
    gamma = dot(_difference(points, a, b, POINT_A), n) + 2.0 * dot(d_dot, n_dot) + dot(d, cross(w_j, n_dot))
    return (*turn_i, *turn_j, gamma, dot(d, n))


@formula
def _angle_row(table: Matrix, i: int, j: int, e: Triple, n: Triple) -> Eight:
    """The same of a perpendicular row."""
    w_i, w_j = triple_of(table, i, BODY_OMEGA), triple_of(table, j, BODY_OMEGA)
    e_dot, n_dot = cross(w_i, e), cross(w_j, n)
    gamma = dot(cross(w_i, e_dot), n) + 2.0 * dot(e_dot, n_dot) + dot(e, cross(w_j, n_dot))
    return (*cross(e, n), *cross(n, e), gamma, dot(e, n))


@formula
def _put_row(J: Matrix, k: int, table: Matrix, i: int, j: int, force: Triple, row: Eight, c: Vector, rate: Vector,
             gamma: Vector) -> None:  # fmt: skip
    """Row `k` from the direction of its force on the first body and from what it is made of."""
    own_i, own_j = to_body(nine(table, i), row[:3]), to_body(nine(table, j), row[3:6])
    total = 0.0
    for n in range(3):
        J[k, n], J[k, 3 + n] = force[n], own_i[n]
        J[k, 6 + n], J[k, 9 + n] = -force[n], own_j[n]
        total = total + force[n] * (table[i, BODY_V + n] - table[j, BODY_V + n])
        total = total + (own_i[n] * table[i, BODY_W + n] + own_j[n] * table[j, BODY_W + n])
    c[k], rate[k], gamma[k] = row[7], total, row[6]


@formula
def _move_known(J: Matrix, k: int, at: int, driven: Matrix, i: int, gamma: Vector) -> None:
    """The part of a driven body goes from the Jacobian into `gamma`."""
    total = gamma[k]
    for n in range(6):
        total = total + J[k, at + n] * driven[i, STATE + n]
        J[k, at + n] = 0.0
    gamma[k] = total


@internal
def constraint_rows(
    n_free: int, rows: Index, table: Matrix, points: Matrix, driven: Matrix, J: Matrix, c: Vector, rate: Vector,
    gamma: Vector,
) -> None:  # fmt: skip
    """Fill `J` (rows x 12), `c`, `c'` and `gamma` of all rows; parts of driven bodies are left out of `J`."""
    for k in range(len(rows)):
        kind, a, b, first, second = rows[k, 0], rows[k, 1], rows[k, 2], rows[k, 3], rows[k, 4]
        i, j = rows[k, 5], rows[k, 6]
        force: Triple = (0.0, 0.0, 0.0)  # direction of the constraint force on the first body
        if kind == POINT:
            force = (1.0 if first == 0 else 0.0, 1.0 if first == 1 else 0.0, 1.0 if first == 2 else 0.0)
            parts = _point_row(points, a, b, force)
        elif kind == PLANE:
            force = axis_of(points, b, second)
            parts = _plane_row(points, table, a, b, j, force)
        else:
            parts = _angle_row(table, i, j, axis_of(points, a, first), axis_of(points, b, second))
        _put_row(J, k, table, i, j, force, parts, c, rate, gamma)
        if i >= n_free:
            _move_known(J, k, 0, driven, i - n_free, gamma)
        if j >= n_free:
            _move_known(J, k, 6, driven, j - n_free, gamma)


@formula
def _weigh(J: Matrix, k: int, at: int, bodies: Matrix, i: int, weighted: Matrix) -> None:
    for n in range(3):
        weighted[k, at + n] = J[k, at + n] / bodies[i, 0]
        weighted[k, at + 3 + n] = (
            bodies[i, 10 + 3 * n] * J[k, at + 3]
            + bodies[i, 11 + 3 * n] * J[k, at + 4]
            + bodies[i, 12 + 3 * n] * J[k, at + 5]
        )


@formula
def _no_weight(k: int, at: int, weighted: Matrix) -> None:
    for n in range(6):
        weighted[k, at + n] = 0.0


@internal
def weigh_rows(n_free: int, rows: Index, bodies: Matrix, J: Matrix, weighted: Matrix) -> None:
    """`weighted = J M^-1`, row by row."""
    for k in range(len(J)):
        for side in range(2):
            i = rows[k, 5 + side]
            if i < n_free:
                _weigh(J, k, 6 * side, bodies, i, weighted)
            else:
                _no_weight(k, 6 * side, weighted)


@formula
def _products(value: float, A: Matrix, k: int, at: int, B: Matrix, n: int, start: int) -> float:
    """`value` and six products of entries of two rows, added one by one."""
    for s in range(6):
        value = value + A[k, at + s] * B[n, start + s]
    return value


@internal
def factorise(rows: Index, J: Matrix, weighted: Matrix, L: Matrix, scale: Vector) -> float:
    """Cholesky factor of `C M^-1 C^T`, scaled to a unit diagonal; gives the smallest diagonal entry of the factor.

    That entry is the sine of the angle (in the metric of the inertia) between a row and the span of the rows before it:
    one for rows that do not touch each other, zero where a row says nothing new.
    """
    m = len(J)
    margin = 1.0
    for k in range(m):
        i, j = rows[k, 5], rows[k, 6]
        for n in range(k + 1):
            p, q = rows[n, 5], rows[n, 6]
            value = 0.0
            if i == p:
                value = _products(value, J, k, 0, weighted, n, 0)
            if i == q:
                value = _products(value, J, k, 0, weighted, n, 6)
            if j == p:
                value = _products(value, J, k, 6, weighted, n, 0)
            if j == q:
                value = _products(value, J, k, 6, weighted, n, 6)
            L[k, n] = value
        scale[k] = sqrt(L[k, k])
    for k in range(m):
        for n in range(k + 1):
            value = L[k, n] / (scale[k] * scale[n])
            for s in range(n):
                value -= L[k, s] * L[n, s]
            if n < k:
                L[k, n] = value / L[n, n]
            else:
                L[k, k] = sqrt(0.0 if value < 0.0 else value)
                if not L[k, k] >= margin:  # also where it is not a number
                    margin = L[k, k]
    return margin


@internal
def solve_factorised(L: Matrix, scale: Vector, b: Vector) -> None:
    """Overwrite `b` by the solution of `C M^-1 C^T x = b`."""
    m = len(b)
    for k in range(m):
        value = b[k] / scale[k]
        for n in range(k):
            value -= L[k, n] * b[n]
        b[k] = value / L[k, k]
    for k in range(m - 1, -1, -1):
        value = b[k]
        for n in range(k + 1, m):
            value -= L[n, k] * b[n]
        b[k] = value / L[k, k]
    for k in range(m):
        b[k] /= scale[k]


@internal
def rows_times(n_free: int, rows: Index, J: Matrix, w: Matrix, at: int, out: Vector) -> None:
    """`out = C w` for the velocities in columns `at` to `at + 5` of `w` (free bodies x ...)."""
    for k in range(len(J)):
        i, j, value = rows[k, 5], rows[k, 6], 0.0
        if i < n_free:
            value = _products(value, J, k, 0, w, i, at)
        if j < n_free:
            value = _products(value, J, k, 6, w, j, at)
        out[k] = value


@formula
def _add_six(J: Matrix, k: int, start: int, factor: float, w: Matrix, i: int, at: int) -> None:
    for n in range(6):
        w[i, at + n] = w[i, at + n] + J[k, start + n] * factor


@internal
def add_transposed(n_free: int, rows: Index, J: Matrix, y: Vector, w: Matrix, at: int) -> None:
    """Add `J^T y` to columns `at` to `at + 5` of `w` (with `J M^-1` in place of `J`: `M^-1 C^T y`)."""
    for k in range(len(J)):
        i, j = rows[k, 5], rows[k, 6]
        if i < n_free:
            _add_six(J, k, 0, y[k], w, i, at)
        if j < n_free:
            _add_six(J, k, 6, y[k], w, j, at)
