"""What kinematic corrections change of the rates of the constraints, compiled and called by address (`links.py`)."""

from __future__ import annotations

from cosolve.jit import entry, formula, index_rows_at, matrix_at, types, vector_at
from cosolve.multibody.equations.joint_math import Triple, cross, dot, minus, plus, to_space
from cosolve.multibody.equations.kinematics import (
    BODY_OMEGA,
    BODY_WIDTH,
    POINT_C,
    POINT_P,
    POINT_V,
    POINT_WIDTH,
    axis_of,
    nine,
    triple_of,
)
from cosolve.multibody.model.arrays import PERPENDICULAR, POINT, Matrix

#: Signature of `correction_rates`.
CORRECTIONS = types.int64(*[types.int64] * 7)


@formula
def _angle_change(table: Matrix, i: int, j: int, e: Triple, n: Triple, o_i: Triple, o_j: Triple, value: float) -> float:
    e_dot, n_dot = cross(triple_of(table, i, BODY_OMEGA), e), cross(triple_of(table, j, BODY_OMEGA), n)
    value = value + (dot(cross(o_i, e_dot), n) + dot(e_dot, cross(o_j, n)))
    return value + (dot(cross(o_i, e), n_dot) + dot(e, cross(o_j, n_dot)))


@formula
def _turned(table: Matrix, points: Matrix, a: int, b: int, i: int, j: int, o_i: Triple, o_j: Triple) -> Triple:
    c_i, c_j = triple_of(points, a, POINT_C), triple_of(points, b, POINT_C)
    w_i, w_j = triple_of(table, i, BODY_OMEGA), triple_of(table, j, BODY_OMEGA)
    return minus(cross(o_i, cross(w_i, c_i)), cross(o_j, cross(w_j, c_j)))


@formula
def _plane_change(
    table: Matrix, points: Matrix, a: int, b: int, j: int, n: Triple, turned: Triple, v_i: Triple, v_j: Triple,
    o_i: Triple, o_j: Triple,
) -> float:  # fmt: skip
    c_i, c_j = triple_of(points, a, POINT_C), triple_of(points, b, POINT_C)
    n_dot = cross(triple_of(table, j, BODY_OMEGA), n)
    d = minus(triple_of(points, a, POINT_P), triple_of(points, b, POINT_P))
    d_dot = minus(triple_of(points, a, POINT_V), triple_of(points, b, POINT_V))
    shifted = minus(plus(v_i, cross(o_i, c_i)), plus(v_j, cross(o_j, c_j)))
    return dot(turned, n) + dot(d_dot, cross(o_j, n)) + dot(shifted, n_dot) + dot(d, cross(o_j, n_dot))


@entry
def correction_rates(n_free: int, count: int, rows: int, table: int, points: int, load: int, gamma: int) -> int:
    """Add to `gamma` what the corrections `V_c`, `Omega_c` (columns 6 to 11 of `load`) change of the rates `C w`.

    A turn of a body turns all vectors fixed to it, and their rates, alike: `d(x) = Omega_c x x` in K0. The arguments
    after `count` are addresses (see `Arrays` and `Workspace`).
    """
    of_rows, of_gamma, of_load = index_rows_at(rows, count, 7), vector_at(gamma, count), matrix_at(load, n_free, 12)
    of_bodies, of_points = matrix_at(table, 0, BODY_WIDTH), matrix_at(points, 0, POINT_WIDTH)
    zero: Triple = (0.0, 0.0, 0.0)
    for k in range(count):
        row = of_rows[k]
        kind, a, b, i, j = row[0], row[1], row[2], row[5], row[6]
        v_i, v_j, o_i, o_j = zero, zero, zero, zero
        if i < n_free:
            v_i, o_i = triple_of(of_load, i, 6), to_space(nine(of_bodies, i), triple_of(of_load, i, 9))
        if j < n_free:
            v_j, o_j = triple_of(of_load, j, 6), to_space(nine(of_bodies, j), triple_of(of_load, j, 9))
        if kind == PERPENDICULAR:
            e, n = axis_of(of_points, a, row[3]), axis_of(of_points, b, row[4])
            of_gamma[k] = _angle_change(of_bodies, i, j, e, n, o_i, o_j, of_gamma[k])
            continue
        turned = _turned(of_bodies, of_points, a, b, i, j, o_i, o_j)
        if kind == POINT:
            of_gamma[k] += turned[row[3]]
        else:
            n = axis_of(of_points, b, row[4])
            of_gamma[k] += _plane_change(of_bodies, of_points, a, b, j, n, turned, v_i, v_j, o_i, o_j)
    return 0
