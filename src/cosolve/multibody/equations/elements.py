"""Force elements: springs, bushings, torsion springs, constant loads; compiled and called by address (`links.py`)."""

from __future__ import annotations

import numpy as np

from cosolve.jit import compiled, entry, formula, index_at, index_rows_at, inlined, internal, matrix_at, types
from cosolve.multibody.equations.joint_math import Triple, cross, dot, minus, plus, times, to_body, to_space, triple
from cosolve.multibody.equations.kinematics import (
    BODY_OMEGA,
    BODY_R,
    BODY_WIDTH,
    POINT_C,
    POINT_P,
    POINT_V,
    POINT_WIDTH,
    axis_of,
    nine,
    triple_of,
)
from cosolve.multibody.model.arrays import BUSHING, CONSTANT_LOAD, SPRING, Index, Matrix, Vector

#: Signature of `element_loads`.
ELEMENTS = types.int64(*[types.int64] * 8)


@formula
def wrench(table: Matrix, i: int, force: Triple, moment: Triple, load: Matrix) -> None:
    """Add a force and a moment about the centre of mass, both in K0, to the loads of the free body `i`."""
    own = to_body(nine(table, i), moment)
    for k in range(3):
        load[i, k] = load[i, k] + force[k]
        load[i, 3 + k] = load[i, 3 + k] + own[k]


@compiled
def rotation_vector(R: tuple[float, ...]) -> Triple:
    """Rotation vector (axis times angle) of the rotation `R`, given row by row.

    >>> np.round(rotation_vector((0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0)), 6)
    array([0.      , 0.      , 1.570796])
    """
    axial = (0.5 * (R[7] - R[5]), 0.5 * (R[2] - R[6]), 0.5 * (R[3] - R[1]))
    sine = np.sqrt(dot(axial, axial))
    cosine = 0.5 * (R[0] + R[4] + R[8] - 1.0)
    angle = np.arctan2(sine, cosine)
    return times(angle / sine if sine > 1e-12 else 1.0, axial)


@internal
def _spring(points: Matrix, a: int, b: int, data: Vector) -> Triple:
    """Force on the first point: along the line, stiffness, damping and free length in `data`."""
    d = minus(triple_of(points, a, POINT_P), triple_of(points, b, POINT_P))
    rate = minus(triple_of(points, a, POINT_V), triple_of(points, b, POINT_V))
    length = np.sqrt(dot(d, d))
    if length < 1e-12:  # no direction: a spring of free length zero pulls with -k d - c d'
        return minus(times(-data[0], d), times(data[1], rate))
    size = -data[0] * (length - data[2]) - data[1] * dot(d, rate) / length
    return times(size / length, d)


@internal
def _bushing(table: Matrix, points: Matrix, i: int, j: int, a: int, b: int, data: Vector) -> tuple[Triple, Triple]:
    """Force and moment in K0 at the first point; stiffness (6) and damping (6) in the axes of the second marker."""
    d = minus(triple_of(points, a, POINT_P), triple_of(points, b, POINT_P))
    omega_j = triple_of(table, j, BODY_OMEGA)
    rate = minus(minus(triple_of(points, a, POINT_V), triple_of(points, b, POINT_V)), cross(omega_j, d))
    turn_rate = minus(triple_of(table, i, BODY_OMEGA), omega_j)
    e0, e1, e2 = axis_of(points, b, 0), axis_of(points, b, 1), axis_of(points, b, 2)
    f0, f1, f2 = axis_of(points, a, 0), axis_of(points, a, 1), axis_of(points, a, 2)
    turn = rotation_vector(
        (
            dot(e0, f0),
            dot(e0, f1),
            dot(e0, f2),
            dot(e1, f0),
            dot(e1, f1),
            dot(e1, f2),
            dot(e2, f0),
            dot(e2, f1),
            dot(e2, f2),
        )
    )
    force: Triple = (0.0, 0.0, 0.0)
    moment: Triple = (0.0, 0.0, 0.0)
    for k in range(3):
        e = e0 if k == 0 else (e1 if k == 1 else e2)
        force = minus(force, times(data[k] * dot(d, e) + data[6 + k] * dot(rate, e), e))
        moment = minus(moment, times(data[3 + k] * turn[k] + data[9 + k] * dot(turn_rate, e), e))
    return force, moment


@internal
def _torsion(table: Matrix, points: Matrix, i: int, j: int, a: int, b: int, data: Vector) -> Triple:
    """Moment on the first body about the z axis of the second marker; the deflection is taken between -pi and pi."""
    x_a, x_b, y_b = axis_of(points, a, 0), axis_of(points, b, 0), axis_of(points, b, 1)
    z_b = axis_of(points, b, 2)
    angle = np.arctan2(dot(x_a, y_b), dot(x_a, x_b)) - data[2]
    angle -= 2.0 * np.pi * np.round(angle / (2.0 * np.pi))
    rate = dot(minus(triple_of(table, i, BODY_OMEGA), triple_of(table, j, BODY_OMEGA)), z_b)
    return times(-data[0] * angle - data[1] * rate, z_b)


@inlined
def _element_loads(
    n_free: int, elements: Index, element_data: Matrix, marker_body: Index, table: Matrix, points: Matrix, load: Matrix
) -> int:
    for e in range(len(elements)):
        kind, a, b = elements[e, 0], elements[e, 1], elements[e, 2]
        i, j = marker_body[a], marker_body[b]
        data = element_data[e]
        force: Triple = (0.0, 0.0, 0.0)
        moment: Triple = (0.0, 0.0, 0.0)
        if kind == SPRING:
            force = _spring(points, a, b, data)
        elif kind == BUSHING:
            force, moment = _bushing(table, points, i, j, a, b, data)
        elif kind == CONSTANT_LOAD:  # the second marker's axes give the directions
            force = to_space(nine(table, j), triple(data, 0))
            moment = to_space(nine(table, j), triple(data, 3))
        else:
            moment = _torsion(table, points, i, j, a, b, data)
        p = triple_of(points, a, POINT_P)
        if i < n_free:
            wrench(table, i, force, plus(moment, cross(triple_of(points, a, POINT_C), force)), load)
        if kind != CONSTANT_LOAD and j < n_free:  # the reaction acts at the same point: momentum is conserved
            arm = minus(p, triple_of(table, j, BODY_R))
            wrench(table, j, times(-1.0, force), times(-1.0, plus(moment, cross(arm, force))), load)
    return 0


@entry
def element_loads(
    n_free: int, count: int, elements: int, element_data: int, marker_body: int, table: int, points: int, load: int
) -> int:
    """Add the loads of all elements to `load`; all but the first two arguments are addresses (see `Arrays`)."""
    return _element_loads(
        n_free, index_rows_at(elements, count, 3), matrix_at(element_data, count, 16), index_at(marker_body, 0),
        matrix_at(table, 0, BODY_WIDTH), matrix_at(points, 0, POINT_WIDTH), matrix_at(load, n_free, 12),
    )  # fmt: skip
