"""Forces and torques on the free bodies: gravity, force elements, ports, joint ends, compiled.

Every wrench is collected as a force in K0 at the centre of mass and a moment about it in the body frame
(Lu (2015), Eqs. 52-53); shifts and turns are the kinematic corrections `V_c` (K0) and `Omega_c` (body frame) of his
Method 3 (Eqs. 126-127, with the signs of docs/validation/lu.md).
"""

from __future__ import annotations

import numpy as np

from cosolve.multibody.equations.compile import compiled, internal
from cosolve.multibody.equations.coupling_loads import coupling_loads
from cosolve.multibody.equations.joint_math import Triple, cross, dot, minus, plus, times, to_body, to_space, triple
from cosolve.multibody.equations.kinematics import (
    BODY_OMEGA,
    BODY_R,
    BODY_W,
    POINT_C,
    POINT_P,
    POINT_V,
    axis_of,
    motion_of,
    nine,
)
from cosolve.multibody.model.arrays import BUSHING, CONSTANT_LOAD, GRAVITY, SPRING, STATE, Arrays, Matrix, Vector


@internal
def add_wrench(n_free: int, table: Matrix, i: int, force: Triple, moment: Triple, load: Matrix) -> None:
    """Add a force and a moment about the centre of mass, both in K0, to body `i` unless it is driven."""
    if i < n_free:
        own = to_body(nine(table, i), moment)
        for k in range(3):
            load[i, k] += force[k]
            load[i, 3 + k] += own[k]


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
    d = minus(triple(points[a], POINT_P), triple(points[b], POINT_P))
    rate = minus(triple(points[a], POINT_V), triple(points[b], POINT_V))
    length = np.sqrt(dot(d, d))
    if length < 1e-12:  # no direction: a spring of free length zero pulls with -k d - c d'
        return minus(times(-data[0], d), times(data[1], rate))
    size = -data[0] * (length - data[2]) - data[1] * dot(d, rate) / length
    return times(size / length, d)


@internal
def _bushing(table: Matrix, points: Matrix, i: int, j: int, a: int, b: int, data: Vector) -> tuple[Triple, Triple]:
    """Force and moment in K0 at the first point; stiffness (6) and damping (6) in the axes of the second marker."""
    d = minus(triple(points[a], POINT_P), triple(points[b], POINT_P))
    omega_j = triple(table[j], BODY_OMEGA)
    rate = minus(minus(triple(points[a], POINT_V), triple(points[b], POINT_V)), cross(omega_j, d))
    turn_rate = minus(triple(table[i], BODY_OMEGA), omega_j)
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
    rate = dot(minus(triple(table[i], BODY_OMEGA), triple(table[j], BODY_OMEGA)), z_b)
    return times(-data[0] * angle - data[1] * rate, z_b)


@internal
def apply_loads(
    model: Arrays, x: Vector, u: Vector, driven: Matrix, extra: Matrix, table: Matrix, points: Matrix, load: Matrix
) -> bool:
    """Fill `load` (free bodies x 12): `F`, `M` with gyroscopic torque, `V_c`, `Omega_c`; True if these are there."""
    n_free = model.counts[1]
    corrected = False
    for i in range(n_free):
        body = model.bodies[i]
        w = triple(table[i], BODY_W)
        momentum = (
            body[1] * w[0] + body[2] * w[1] + body[3] * w[2],
            body[4] * w[0] + body[5] * w[1] + body[6] * w[2],
            body[7] * w[0] + body[8] * w[1] + body[9] * w[2],
        )
        gyro = cross(w, momentum)
        for k in range(3):
            load[i, k] = body[0] * model.numbers[GRAVITY + k] + extra[i, k]
            load[i, 3 + k] = extra[i, 3 + k] - gyro[k]
            load[i, 6 + k] = extra[i, 6 + k]
            load[i, 9 + k] = extra[i, 9 + k]
            corrected = corrected or extra[i, 6 + k] != 0.0 or extra[i, 9 + k] != 0.0
    for e in range(len(model.elements)):
        kind, a, b = model.elements[e, 0], model.elements[e, 1], model.elements[e, 2]
        i, j = model.marker_body[a], model.marker_body[b]
        data = model.element_data[e]
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
        p = triple(points[a], POINT_P)
        add_wrench(n_free, table, i, force, plus(moment, cross(triple(points[a], POINT_C), force)), load)
        if kind != CONSTANT_LOAD:  # the reaction acts at the same point, so that momentum is conserved
            arm = minus(p, triple(table[j], BODY_R))
            add_wrench(n_free, table, j, times(-1.0, force), times(-1.0, plus(moment, cross(arm, force))), load)
    for n in range(len(model.ports)):
        m = model.ports[n, 0]
        i = model.marker_body[m]
        if i >= n_free:
            continue
        if model.ports[n, 1] >= 0:
            force = triple(u, model.ports[n, 1])
            add_wrench(n_free, table, i, force, cross(triple(points[m], POINT_C), force), load)
        if model.ports[n, 2] >= 0:
            add_wrench(n_free, table, i, (0.0, 0.0, 0.0), triple(u, model.ports[n, 2]), load)
        for term in range(2):  # shift and turn: corrections of r' and q'
            start = model.ports[n, 3 + term]
            if start >= 0:
                corrected = True
                for k in range(3):
                    load[i, 6 + 3 * term + k] += u[start + k]
    if len(model.ends) > 0:
        z, out = np.empty(STATE), np.empty(12)
        for n in range(len(model.ends)):
            end = model.ends[n]
            if end[1] < 0 or end[0] >= n_free:
                continue
            motion_of(model, x, driven, end[0], z)
            coupling_loads(end[1], model.end_constants[end[4] : end[5]], u[end[2] : end[3]], z, out)
            for k in range(12):
                load[end[0], k] += out[k]
                corrected = corrected or (k >= 6 and out[k] != 0.0)
    return corrected
