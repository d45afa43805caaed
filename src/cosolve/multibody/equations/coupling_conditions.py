"""What a joint between two subsystems demands: its conditions at position, velocity and acceleration level.

Evaluated with the true motion of both bodies (Lu (2015), 3.2.2), with exact derivatives by that motion. The
`motion` of a body is a row of 19 numbers: `r` (3, K0), `q` (4), `v` (3, K0), `omega` (3, body frame), `v'` (3, K0),
`omega'` (3, body frame). A rotation of the body turns all vectors fixed to it, and their rates, alike, which makes the
derivatives short: `d(T c)/dq = -[T c]_x T P(q)`.
"""

from __future__ import annotations

import numpy as np

from cosolve.jit import compiled
from cosolve.multibody.equations.coupling_loads import ATPOINT, HEAD, INPLANE, PART
from cosolve.multibody.equations.joint_math import Matrix, Vector, cross, rotation, to_space, triple

#: Numbers in the motion of one body.
MOTION = 19


@compiled
def _carried(motion: Vector, fixed: tuple[float, float, float], point: bool, x: Matrix, D: Matrix) -> None:
    """A body-fixed vector (or point) in K0, its first two rates `x` (3 x 3) and their derivatives `D` (3 x 3 x 19)."""
    T = rotation(motion, 3)
    omega, omega_dot = to_space(T, triple(motion, 10)), to_space(T, triple(motion, 16))
    c0 = to_space(T, fixed)
    c1 = cross(omega, c0)
    part, whole = cross(omega_dot, c0), cross(omega, c1)
    c2 = (part[0] + whole[0], part[1] + whole[1], part[2] + whole[2])
    D[:] = 0.0
    a, b, c, d = motion[3], motion[4], motion[5], motion[6]
    factor = 2.0 / (a * a + b * b + c * c + d * d)
    P = ((-b, a, d, -c), (-c, -d, a, b), (-d, c, -b, a))
    for level in range(3):
        turned = c0 if level == 0 else c1 if level == 1 else c2
        for k in range(3):
            x[level, k] = turned[k]
        for m in range(4):  # by q: the whole vector turns
            axis = to_space(T, (factor * P[0][m], factor * P[1][m], factor * P[2][m]))
            moved = cross(axis, turned)
            for k in range(3):
                D[level, k, 3 + m] = moved[k]
        if point:
            for k in range(3):
                x[level, k] += motion[(0, 7, 13)[level] + k]
                D[level, k, (0, 7, 13)[level] + k] = 1.0
    for m in range(3):  # by omega and omega'
        axis = (T[m], T[3 + m], T[6 + m])
        first, twice = cross(axis, c0), cross(axis, c1)
        nested = cross(omega, first)
        for k in range(3):
            D[1, k, 10 + m] = first[k]
            D[2, k, 16 + m] = first[k]
            D[2, k, 10 + m] = twice[k] + nested[k]


@compiled
def _product(x: Matrix, Dx: Matrix, n: Matrix, Dn: Matrix, g: Vector, J: Matrix) -> None:
    """Levels `g` (3) of the scalar product of two vectors given with rates, and their derivatives `J` (3 x 38)."""
    binomial = ((1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (1.0, 2.0, 1.0))
    for level in range(3):
        g[level] = 0.0
        J[level] = 0.0
        for m in range(level + 1):
            weight = binomial[level][m]
            for k in range(3):
                g[level] += weight * x[level - m, k] * n[m, k]
                for column in range(2 * MOTION):
                    J[level, column] += weight * (
                        Dx[level - m, k, column] * n[m, k] + x[level - m, k] * Dn[m, k, column]
                    )


@compiled
def coupling_conditions(constants: Vector, motion_i: Vector, motion_j: Vector, g: Matrix, J: Matrix) -> None:
    """All conditions of a joint: `g` (3 x n) by level and `J` (3 x n x 38) by both motions; both are overwritten.

    Rows are ordered like the multipliers: forces (atpoint: three, inplane: one), then torques (perpendicular).

    >>> from cosolve.multibody.equations.coupling_loads import part_constants
    >>> at = np.concatenate([[1, 1, 0, 0, 0, 0], part_constants(ATPOINT, [1, 0, 0], [0, 0, 0])])
    >>> i, j, g, J = np.zeros(19), np.zeros(19), np.zeros((3, 3)), np.zeros((3, 3, 38))
    >>> i[3] = j[3] = 1.0                       # both bodies upright
    >>> i[12] = 2.0                             # the first one turns about z
    >>> coupling_conditions(at, i, j, g, J)
    >>> g                                       # distance, its rate, its second rate
    array([[ 1.,  0.,  0.],
           [ 0.,  2.,  0.],
           [-4.,  0.,  0.]])
    """
    n_parts = int(constants[0])
    x, n = np.empty((3, 3)), np.empty((3, 3))
    D_i, D_j = np.empty((3, 3, MOTION)), np.empty((3, 3, MOTION))
    Dx, Dn = np.empty((3, 3, 2 * MOTION)), np.empty((3, 3, 2 * MOTION))
    level_g, level_J = np.empty(3), np.empty((3, 2 * MOTION))
    at_force, at_torque = 0, 0
    for p in range(n_parts):
        code = int(constants[HEAD + p * PART])
        at_torque += 3 if code == ATPOINT else 1 if code == INPLANE else 0
    for p in range(n_parts):
        base = HEAD + p * PART
        code = int(constants[base])
        if code in (ATPOINT, INPLANE):
            _carried(motion_i, triple(constants, base + 1), True, x, D_i)
            _carried(motion_j, triple(constants, base + 4), True, n, D_j)
            x -= n
            Dx[:, :, :MOTION] = D_i
            Dx[:, :, MOTION:] = -D_j
        else:
            _carried(motion_i, triple(constants, base + 7), False, x, D_i)
            Dx[:, :, :MOTION] = D_i
            Dx[:, :, MOTION:] = 0.0
        if code == ATPOINT:
            g[:, at_force : at_force + 3] = x
            J[:, at_force : at_force + 3] = Dx
            at_force += 3
            continue
        _carried(motion_j, triple(constants, base + 10), False, n, D_j)
        Dn[:, :, :MOTION] = 0.0
        Dn[:, :, MOTION:] = D_j
        _product(x, Dx, n, Dn, level_g, level_J)
        if code == INPLANE:
            row = at_force
            at_force += 1
        else:
            row = at_torque
            at_torque += 1
        g[:, row] = level_g
        J[:, row] = level_J
