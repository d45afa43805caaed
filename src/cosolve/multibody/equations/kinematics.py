"""Motion of bodies and markers from the state, and the rates of the orientation parameters, compiled.

Lu (2015), 2.2.1 (motion of points, Euler angles z-x-z) and App. C (Euler parameters).
"""

from __future__ import annotations

from math import cos, sin, sqrt
from typing import Any

import numpy as np

from cosolve.jit import formula, internal, row_of
from cosolve.multibody.equations.joint_math import (
    Four,
    Nine,
    Triple,
    cross,
    parameter_rate,
    plus,
    rotation,
    to_space,
    triple,
)
from cosolve.multibody.model.arrays import EULER_PARAMETERS, STATE, Index, Matrix, Vector

#: Columns of the table of bodies: `T_0q` (9), r (3), v (3), omega in the body frame (3) and in K0 (3).
BODY_T, BODY_R, BODY_V, BODY_W, BODY_OMEGA, BODY_WIDTH = 0, 9, 12, 15, 18, 21

#: Columns of the table of markers: point (3), lever from the centre of mass (3), velocity (3), centripetal
#: acceleration (3), the three axes (9), all in K0.
POINT_P, POINT_C, POINT_V, POINT_A, POINT_E, POINT_WIDTH = 0, 3, 6, 9, 12, 21


@formula
def nine(table: Matrix, i: int) -> Nine:
    """The rotation matrix of body `i` from the table of bodies.

    >>> np.array(nine(np.arange(9.0)[None, :], 0))
    array([0., 1., 2., 3., 4., 5., 6., 7., 8.])
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


@internal
def angles_rotation(angles: Vector, start: int) -> Nine:
    """`T = R_z(psi) R_x(theta) R_z(phi)` of the Euler angles at `angles[start]`."""
    cp, sp = cos(angles[start]), sin(angles[start])
    ct, st = cos(angles[start + 1]), sin(angles[start + 1])
    cf, sf = cos(angles[start + 2]), sin(angles[start + 2])
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


@internal
def orientation_rate(kind: int, x: Vector, at: int, w: Triple) -> Four:
    """Rates of the orientation parameters of the body at `x[at]` for the body-frame angular velocity `w`.

    Euler parameters: `q' = P^T w / 4`; Euler angles: `gamma' = B w`, singular at `sin theta = 0`.
    """
    if kind == EULER_PARAMETERS:
        return parameter_rate(x, at + 3, w)
    theta, phi = x[at + 4], x[at + 5]
    st, ct = sin(theta), cos(theta)
    sf, cf = sin(phi), cos(phi)
    turn = (sf * w[0] + cf * w[1]) / st
    return (turn, cf * w[0] - sf * w[1], w[2] - ct * turn, 0.0)


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


@formula
def triple_of(table: Matrix, i: int, start: int) -> Triple:
    """Three consecutive entries of a row.

    >>> np.array(triple_of(np.arange(10.0).reshape(2, 5), 1, 2))
    array([7., 8., 9.])
    """
    return (table[i, start], table[i, start + 1], table[i, start + 2])


@formula
def _put_body(table: Matrix, i: int, x: Vector, at: int, T: Nine) -> None:
    """Row `i` of the table of bodies from the numbers of its motion at `x[at]`."""
    w = triple(x, at + 10)
    omega = to_space(T, w)
    for k in range(9):
        table[i, k] = T[k]
    for k in range(3):
        table[i, BODY_R + k] = x[at + k]
        table[i, BODY_V + k] = x[at + 7 + k]
        table[i, BODY_W + k] = w[k]
        table[i, BODY_OMEGA + k] = omega[k]


@internal
def move_bodies(counts: Index, x: Vector, driven: Matrix, table: Matrix) -> None:
    """Fill the table of bodies from the state `x` of the free ones and the motion `driven` of the others."""
    kind, n_free, n_all = counts[0], counts[1], counts[2]
    for i in range(n_free):
        at = STATE * i
        _put_body(table, i, x, at, rotation(x, at + 3) if kind == EULER_PARAMETERS else angles_rotation(x, at + 3))
    for i in range(n_free, n_all):
        row = row_of(driven, i - n_free)
        _put_body(table, i, row, 0, rotation(row, 3))


@formula
def _put_marker(points: Matrix, m: int, markers: Matrix, table: Matrix, i: int) -> None:
    """Row `m` of the table of markers, on body `i`."""
    T = nine(table, i)
    c = to_space(T, triple_of(markers, m, 0))
    omega = triple_of(table, i, BODY_OMEGA)
    turning = cross(omega, c)
    inward = cross(omega, turning)
    for k in range(3):
        points[m, POINT_P + k] = table[i, BODY_R + k] + c[k]
        points[m, POINT_C + k] = c[k]
        points[m, POINT_V + k] = table[i, BODY_V + k] + turning[k]
        points[m, POINT_A + k] = inward[k]
    for axis in range(3):
        e = to_space(T, triple_of(markers, m, 3 + 3 * axis))
        for k in range(3):
            points[m, POINT_E + 3 * axis + k] = e[k]


@internal
def move_markers(marker_body: Index, markers: Matrix, table: Matrix, points: Matrix) -> None:
    """Fill the table of markers from the table of bodies."""
    for m in range(len(marker_body)):
        _put_marker(points, m, markers, table, marker_body[m])


@formula
def axis_of(points: Matrix, m: int, axis: int) -> Triple:
    """Axis 0, 1 or 2 (x, y, z) of marker `m` in K0."""
    return triple_of(points, m, POINT_E + 3 * axis)


@internal
def free_motion(kind: int, x: Vector, at: int, z: Vector) -> None:
    """Write a free body's numbers at `x[at]` into `z` (13), in Euler parameters whatever the coordinates are."""
    for k in range(STATE):
        z[k] = x[at + k]
    if kind != EULER_PARAMETERS:  # half angles, which do not jump where a matrix's would
        psi, theta, phi = triple(x, at + 3)
        both, apart = 0.5 * (psi + phi), 0.5 * (psi - phi)
        z[3], z[6] = cos(0.5 * theta) * cos(both), cos(0.5 * theta) * sin(both)
        z[4], z[5] = sin(0.5 * theta) * cos(apart), sin(0.5 * theta) * sin(apart)


@internal
def motion_of(counts: Index, x: Vector, driven: Matrix, i: int, z: Vector) -> None:
    """Write `(r, q, v, omega)` of body `i` into `z` (13), in Euler parameters whatever the coordinates are."""
    n_free = counts[1]
    if i < n_free:
        free_motion(counts[0], x, STATE * i, z)
    else:
        for k in range(STATE):
            z[k] = driven[i - n_free, k]


@formula
def _turn(x: Vector, at: int, rate: Four) -> None:
    for k in range(4):
        x[at + 3 + k] = x[at + 3 + k] + rate[k]


@internal
def rotate(kind: int, x: Vector, at: int, step: Triple) -> None:
    """Turn a body (its numbers at `x[at]`) by the small body-frame rotation vector `step`, `q` staying normalised."""
    _turn(x, at, orientation_rate(kind, x, at, step))
    normalise(kind, x, at)


@formula
def _square(x: Vector, at: int) -> Any:
    return x[at] * x[at] + x[at + 1] * x[at + 1] + x[at + 2] * x[at + 2] + x[at + 3] * x[at + 3]


@formula
def _divide(x: Vector, at: int, by: float) -> None:
    for k in range(4):
        x[at + k] = x[at + k] / by


@internal
def normalise(kind: int, x: Vector, at: int) -> None:
    """Bring the Euler parameters in a body's numbers at `x[at]` back to length one."""
    if kind == EULER_PARAMETERS:
        _divide(x, at + 3, sqrt(_square(x, at + 3)))


@formula
def point_acceleration(table: Matrix, points: Matrix, i: int, m: int, linear: Triple, angular: Triple) -> Triple:
    """Acceleration in K0 of marker `m` on body `i` with the accelerations v' (K0) and omega' (body frame)."""
    alpha = to_space(nine(table, i), angular)
    return plus(plus(linear, cross(alpha, triple_of(points, m, POINT_C))), triple_of(points, m, POINT_A))
