"""Rows of the basic constraints atpoint, inplane and perpendicular: value, rate, Jacobian and `gamma`, compiled.

With `d = p_a - p_b`, `n` an axis of the second marker and `a` one of the first (Lu (2015), 3.2.2):

    atpoint  c = d (one component per row),   inplane  c = d . n,   perpendicular  c = a . n

A row's Jacobian has six numbers for each of its two bodies (with respect to `v` in K0 and `omega` in the body frame);
its rate is `c' = J_a w_a + J_b w_b`, its acceleration `c'' = J_a w_a' + J_b w_b' + gamma`. The motion of driven bodies
is known, so their part of `c''` is moved into `gamma`.
"""

from __future__ import annotations

import numpy as np

from cosolve.multibody.equations.compile import internal
from cosolve.multibody.equations.joint_math import Triple, cross, dot, minus, plus, times, to_body, to_space, triple
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
)
from cosolve.multibody.model.arrays import PERPENDICULAR, PLANE, POINT, STATE, Arrays, Index, Matrix, Vector


@internal
def constraint_rows(
    model: Arrays, table: Matrix, points: Matrix, driven: Matrix, J: Matrix, c: Vector, rate: Vector, gamma: Vector
) -> None:
    """Fill `J` (rows x 12), `c`, `c'` and `gamma` of all rows; parts of driven bodies are left out of `J`."""
    n_free = model.counts[1]
    zero: Triple = (0.0, 0.0, 0.0)
    for k in range(len(model.rows)):
        row = model.rows[k]
        kind, a, b = row[0], row[1], row[2]
        i, j = row[5], row[6]
        w_i, w_j = triple(table[i], BODY_OMEGA), triple(table[j], BODY_OMEGA)
        force: Triple = zero  # direction of the constraint force on the first body
        turn_i: Triple = zero  # in K0
        turn_j: Triple = zero
        if kind in (POINT, PLANE):
            d = minus(triple(points[a], POINT_P), triple(points[b], POINT_P))
            d_dot = minus(triple(points[a], POINT_V), triple(points[b], POINT_V))
            d_acc = minus(triple(points[a], POINT_A), triple(points[b], POINT_A))
            if kind == POINT:
                comp = row[3]
                force = (1.0 if comp == 0 else 0.0, 1.0 if comp == 1 else 0.0, 1.0 if comp == 2 else 0.0)
                turn_j = times(-1.0, cross(triple(points[b], POINT_C), force))
                gamma[k] = dot(d_acc, force)
            else:
                force = axis_of(points, b, row[4])
                n_dot = cross(w_j, force)
                turn_j = cross(force, minus(triple(points[a], POINT_P), triple(table[j], BODY_R)))
                gamma[k] = dot(d_acc, force) + 2.0 * dot(d_dot, n_dot) + dot(d, cross(w_j, n_dot))
            turn_i = cross(triple(points[a], POINT_C), force)
            c[k] = dot(d, force)
        else:
            e, n = axis_of(points, a, row[3]), axis_of(points, b, row[4])
            turn_i = cross(e, n)
            turn_j = cross(n, e)
            c[k] = dot(e, n)
            e_dot, n_dot = cross(w_i, e), cross(w_j, n)
            gamma[k] = dot(cross(w_i, e_dot), n) + 2.0 * dot(e_dot, n_dot) + dot(e, cross(w_j, n_dot))
        own_i, own_j = to_body(nine(table, i), turn_i), to_body(nine(table, j), turn_j)
        total = 0.0
        for n3 in range(3):
            J[k, n3], J[k, 3 + n3] = force[n3], own_i[n3]
            J[k, 6 + n3], J[k, 9 + n3] = -force[n3], own_j[n3]
            total += force[n3] * (table[i, BODY_V + n3] - table[j, BODY_V + n3])
            total += own_i[n3] * table[i, BODY_W + n3] + own_j[n3] * table[j, BODY_W + n3]
        rate[k] = total
        for side in range(2):
            body = i if side == 0 else j
            if body >= n_free:
                for n6 in range(6):
                    gamma[k] += J[k, 6 * side + n6] * driven[body - n_free, STATE + n6]
                    J[k, 6 * side + n6] = 0.0


@internal
def correction_rates(model: Arrays, table: Matrix, points: Matrix, load: Matrix, gamma: Vector) -> None:
    """Add to `gamma` what the corrections `V_c`, `Omega_c` (columns 6 to 11 of `load`) change of the rates `C w`.

    A turn of a body turns all vectors fixed to it, and their rates, alike: `d(x) = Omega_c x x` in K0.
    """
    n_free = model.counts[1]
    zero: Triple = (0.0, 0.0, 0.0)
    for k in range(len(model.rows)):
        row = model.rows[k]
        kind, a, b = row[0], row[1], row[2]
        i, j = row[5], row[6]
        v_i, v_j, o_i, o_j = zero, zero, zero, zero
        if i < n_free:
            v_i, o_i = triple(load[i], 6), to_space(nine(table, i), triple(load[i], 9))
        if j < n_free:
            v_j, o_j = triple(load[j], 6), to_space(nine(table, j), triple(load[j], 9))
        w_i, w_j = triple(table[i], BODY_OMEGA), triple(table[j], BODY_OMEGA)
        if kind == PERPENDICULAR:
            e, n = axis_of(points, a, row[3]), axis_of(points, b, row[4])
            e_dot, n_dot = cross(w_i, e), cross(w_j, n)
            gamma[k] += dot(cross(o_i, e_dot), n) + dot(e_dot, cross(o_j, n))
            gamma[k] += dot(cross(o_i, e), n_dot) + dot(e, cross(o_j, n_dot))
            continue
        c_i, c_j = triple(points[a], POINT_C), triple(points[b], POINT_C)
        turned = minus(cross(o_i, cross(w_i, c_i)), cross(o_j, cross(w_j, c_j)))
        if kind == POINT:
            gamma[k] += turned[row[3]]
        else:
            n = axis_of(points, b, row[4])
            n_dot = cross(w_j, n)
            d = minus(triple(points[a], POINT_P), triple(points[b], POINT_P))
            d_dot = minus(triple(points[a], POINT_V), triple(points[b], POINT_V))
            shifted = minus(plus(v_i, cross(o_i, c_i)), plus(v_j, cross(o_j, c_j)))
            gamma[k] += dot(turned, n) + dot(d_dot, cross(o_j, n)) + dot(shifted, n_dot) + dot(d, cross(o_j, n_dot))


@internal
def weigh_rows(n_free: int, rows: Index, bodies: Matrix, J: Matrix, weighted: Matrix) -> None:
    """`weighted = J M^-1`, row by row."""
    for k in range(len(J)):
        for side in range(2):
            i = rows[k, 5 + side]
            at = 6 * side
            if i >= n_free:
                for n in range(6):
                    weighted[k, at + n] = 0.0
                continue
            body = bodies[i]
            for n in range(3):
                weighted[k, at + n] = J[k, at + n] / body[0]
                weighted[k, at + 3 + n] = (
                    body[10 + 3 * n] * J[k, at + 3] + body[11 + 3 * n] * J[k, at + 4] + body[12 + 3 * n] * J[k, at + 5]
                )


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
                for s in range(6):
                    value += J[k, s] * weighted[n, s]
            if i == q:
                for s in range(6):
                    value += J[k, s] * weighted[n, 6 + s]
            if j == p:
                for s in range(6):
                    value += J[k, 6 + s] * weighted[n, s]
            if j == q:
                for s in range(6):
                    value += J[k, 6 + s] * weighted[n, 6 + s]
            L[k, n] = value
        scale[k] = np.sqrt(L[k, k])
    for k in range(m):
        for n in range(k + 1):
            value = L[k, n] / (scale[k] * scale[n])
            for s in range(n):
                value -= L[k, s] * L[n, s]
            if n < k:
                L[k, n] = value / L[n, n]
            else:
                L[k, k] = np.sqrt(max(value, 0.0)) if value == value else value
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
        value = 0.0
        for side in range(2):
            i = rows[k, 5 + side]
            if i < n_free:
                for n in range(6):
                    value += J[k, 6 * side + n] * w[i, at + n]
        out[k] = value


@internal
def add_transposed(n_free: int, rows: Index, J: Matrix, y: Vector, w: Matrix, at: int) -> None:
    """Add `J^T y` to columns `at` to `at + 5` of `w` (with `J M^-1` in place of `J`: `M^-1 C^T y`)."""
    for k in range(len(J)):
        for side in range(2):
            i = rows[k, 5 + side]
            if i < n_free:
                for n in range(6):
                    w[i, at + n] += J[k, 6 * side + n] * y[k]
