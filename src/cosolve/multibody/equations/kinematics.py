"""Motion of bodies and markers from the state, and the rates of the orientation parameters, compiled.

Lu (2015), 2.2.1 (motion of points, Euler angles z-x-z) and App. C (Euler parameters).
"""

from __future__ import annotations

import numpy as np

from cosolve.multibody.equations.compile import compiled, internal
from cosolve.multibody.equations.joint_math import Nine, Triple, cross, plus, rotation, to_space, triple
from cosolve.multibody.model.arrays import EULER_PARAMETERS, STATE, Arrays, Matrix, Vector

#: Columns of the table of bodies: `T_0q` (9), r (3), v (3), omega in the body frame (3) and in K0 (3).
BODY_T, BODY_R, BODY_V, BODY_W, BODY_OMEGA, BODY_WIDTH = 0, 9, 12, 15, 18, 21

#: Columns of the table of markers: point (3), lever from the centre of mass (3), velocity (3), centripetal
#: acceleration (3), the three axes (9), all in K0.
POINT_P, POINT_C, POINT_V, POINT_A, POINT_E, POINT_WIDTH = 0, 3, 6, 9, 12, 21


@compiled
def nine(table: Matrix, i: int) -> Nine:
    """The rotation matrix of body `i` from the table of bodies.

    >>> nine(np.arange(9.0)[None, :], 0)
    (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
    """
    return (
        table[i, 0],
        table[i, 1],
        table[i, 2],
        table[i, 3],
        table[i, 4],
        table[i, 5],
        table[i, 6],
        table[i, 7],
        table[i, 8],
    )


@compiled
def angles_rotation(angles: Vector, start: int) -> Nine:
    """`T = R_z(psi) R_x(theta) R_z(phi)` of the Euler angles at `angles[start]`.

    >>> np.array(angles_rotation(np.array([0.0, np.pi / 2, 0.0]), 0)).round(12)[6:]
    array([0., 1., 0.])
    """
    cp, sp = np.cos(angles[start]), np.sin(angles[start])
    ct, st = np.cos(angles[start + 1]), np.sin(angles[start + 1])
    cf, sf = np.cos(angles[start + 2]), np.sin(angles[start + 2])
    return (
        cp * cf - sp * ct * sf,
        -cp * sf - sp * ct * cf,
        sp * st,
        sp * cf + cp * ct * sf,
        -sp * sf + cp * ct * cf,
        -cp * st,
        st * sf,
        st * cf,
        ct,
    )


@compiled
def orientation_rate(kind: int, row: Vector, w: Triple, out: Vector) -> None:
    """Write the rates of the orientation parameters into `out[3:7]` for the body-frame angular velocity `w`.

    Euler parameters: `q' = P^T w / 4`; Euler angles: `gamma' = B w`, singular at `sin theta = 0`.

    >>> out = np.zeros(13)
    >>> orientation_rate(0, np.array([0.0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]), (2.0, 4.0, 6.0), out)
    >>> out[4:7]
    array([1., 2., 3.])
    """
    if kind == EULER_PARAMETERS:
        a, b, c, d = row[3], row[4], row[5], row[6]
        out[3] = 0.5 * (-b * w[0] - c * w[1] - d * w[2])
        out[4] = 0.5 * (a * w[0] - d * w[1] + c * w[2])
        out[5] = 0.5 * (d * w[0] + a * w[1] - b * w[2])
        out[6] = 0.5 * (-c * w[0] + b * w[1] + a * w[2])
    else:
        st, ct = np.sin(row[4]), np.cos(row[4])
        sf, cf = np.sin(row[5]), np.cos(row[5])
        turn = (sf * w[0] + cf * w[1]) / st
        out[3] = turn
        out[4] = cf * w[0] - sf * w[1]
        out[5] = w[2] - ct * turn
        out[6] = 0.0


@compiled
def parameters_of(T: Nine, out: Vector, start: int) -> None:
    """Write the Euler parameters of the rotation `T` into `out[start:start + 4]`, the largest one positive.

    >>> out = np.zeros(4)
    >>> parameters_of((0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0), out, 0)
    >>> out.round(6)
    array([0.707107, 0.      , 0.      , 0.707107])
    """
    squares = (
        1.0 + T[0] + T[4] + T[8],
        1.0 + T[0] - T[4] - T[8],
        1.0 - T[0] + T[4] - T[8],
        1.0 - T[0] - T[4] + T[8],
    )
    k = 0
    for i in range(1, 4):
        if squares[i] > squares[k]:
            k = i
    big = np.sqrt(squares[k])
    f = 0.5 / big
    if k == 0:
        a, b, c, d = 0.5 * big, f * (T[7] - T[5]), f * (T[2] - T[6]), f * (T[3] - T[1])
    elif k == 1:
        a, b, c, d = f * (T[7] - T[5]), 0.5 * big, f * (T[1] + T[3]), f * (T[2] + T[6])
    elif k == 2:
        a, b, c, d = f * (T[2] - T[6]), f * (T[1] + T[3]), 0.5 * big, f * (T[5] + T[7])
    else:
        a, b, c, d = f * (T[3] - T[1]), f * (T[2] + T[6]), f * (T[5] + T[7]), 0.5 * big
    out[start], out[start + 1], out[start + 2], out[start + 3] = a, b, c, d


@internal
def move_bodies(model: Arrays, x: Vector, driven: Matrix, table: Matrix) -> None:
    """Fill the table of bodies from the state `x` of the free ones and the motion `driven` of the others."""
    kind, n_free, n_all = model.counts[0], model.counts[1], model.counts[2]
    for i in range(n_all):
        if i < n_free:
            row = x[STATE * i : STATE * (i + 1)]
            T = rotation(row, 3) if kind == EULER_PARAMETERS else angles_rotation(row, 3)
        else:
            row = driven[i - n_free, :STATE]
            T = rotation(row, 3)
        w = triple(row, 10)
        omega = to_space(T, w)
        for k in range(9):
            table[i, k] = T[k]
        for k in range(3):
            table[i, BODY_R + k] = row[k]
            table[i, BODY_V + k] = row[7 + k]
            table[i, BODY_W + k] = w[k]
            table[i, BODY_OMEGA + k] = omega[k]


@internal
def move_markers(model: Arrays, table: Matrix, points: Matrix) -> None:
    """Fill the table of markers from the table of bodies."""
    for m in range(len(model.marker_body)):
        i = model.marker_body[m]
        c = to_space(nine(table, i), triple(model.markers[m], 0))
        omega = triple(table[i], BODY_OMEGA)
        turning = cross(omega, c)
        inward = cross(omega, turning)
        for k in range(3):
            points[m, POINT_P + k] = table[i, BODY_R + k] + c[k]
            points[m, POINT_C + k] = c[k]
            points[m, POINT_V + k] = table[i, BODY_V + k] + turning[k]
            points[m, POINT_A + k] = inward[k]
        T = nine(table, i)
        for axis in range(3):
            e = to_space(T, triple(model.markers[m], 3 + 3 * axis))
            for k in range(3):
                points[m, POINT_E + 3 * axis + k] = e[k]


@internal
def axis_of(points: Matrix, m: int, axis: int) -> Triple:
    """Axis 0, 1 or 2 (x, y, z) of marker `m` in K0."""
    return triple(points[m], POINT_E + 3 * axis)


@internal
def motion_of(model: Arrays, x: Vector, driven: Matrix, i: int, z: Vector) -> None:
    """Write `(r, q, v, omega)` of body `i` into `z` (13), in Euler parameters whatever the coordinates are."""
    n_free = model.counts[1]
    if i < n_free:
        row = x[STATE * i : STATE * (i + 1)]
    else:
        row = driven[i - n_free, :STATE]
    for k in range(STATE):
        z[k] = row[k]
    if i < n_free and model.counts[0] != EULER_PARAMETERS:  # half angles, which do not jump where a matrix's would
        both, apart = 0.5 * (row[3] + row[5]), 0.5 * (row[3] - row[5])
        z[3], z[6] = np.cos(0.5 * row[4]) * np.cos(both), np.cos(0.5 * row[4]) * np.sin(both)
        z[4], z[5] = np.sin(0.5 * row[4]) * np.cos(apart), np.sin(0.5 * row[4]) * np.sin(apart)


@internal
def rotate(kind: int, row: Vector, step: Triple) -> None:
    """Turn a body (its row of the state) by the small body-frame rotation vector `step`, `q` staying normalised."""
    rate = np.empty(STATE)
    orientation_rate(kind, row, step, rate)
    for k in range(3, 7):
        row[k] += rate[k]
    normalise(kind, row)


@internal
def normalise(kind: int, row: Vector) -> None:
    """Bring the Euler parameters in a body's row of the state back to length one."""
    if kind == EULER_PARAMETERS:
        q = row[3:7]
        length = np.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
        for k in range(4):
            q[k] /= length


@internal
def point_acceleration(table: Matrix, points: Matrix, i: int, m: int, a: Vector) -> Triple:
    """Acceleration in K0 of marker `m` on body `i` whose accelerations are `a` (v' in K0, omega' in the body frame)."""
    alpha = to_space(nine(table, i), triple(a, 3))
    return plus(plus(triple(a, 0), cross(alpha, triple(points[m], POINT_C))), triple(points[m], POINT_A))
