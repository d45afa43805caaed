"""What can be seen of a model: motion of markers with accelerations, multipliers, energy."""

from __future__ import annotations

import numpy as np

from cosolve.jit import address_of, formula, internal, vector_at
from cosolve.multibody.equations.dynamics import balance, violations
from cosolve.multibody.equations.elements import rotation_vector
from cosolve.multibody.equations.entries import tables
from cosolve.multibody.equations.kinematics import (
    BODY_OMEGA,
    BODY_R,
    BODY_V,
    BODY_W,
    BODY_WIDTH,
    POINT_E,
    POINT_P,
    POINT_V,
    POINT_WIDTH,
    motion_of,
    point_acceleration,
    triple_of,
)
from cosolve.multibody.equations.table import Workspace
from cosolve.multibody.model.arrays import BUSHING, SPRING, STATE, TORSION, Arrays, Index, Matrix, Vector

#: Numbers per observed marker: position, orientation, velocity, angular velocity, acceleration, angular acceleration.
SEEN = 19


@formula
def _put_motion(
    table: Matrix, points: Matrix, i: int, m: int, rates: Matrix, row: int, start: int, out: Vector
) -> None:
    """What marker `m` adds to the motion of its body `i` in `out`; accelerations of the body: `rates[row, start]`."""
    angular = triple_of(rates, row, start + 3)
    a = point_acceleration(table, points, i, m, triple_of(rates, row, start), angular)
    for n in range(3):
        out[n] = points[m, POINT_P + n]
        out[7 + n] = points[m, POINT_V + n]
        out[13 + n] = a[n]
        out[16 + n] = angular[n]


@internal
def report(
    counts: Index, marker_body: Index, x: Vector, driven: Matrix, table: Matrix, points: Matrix, acc: Matrix,
    which: Index, y: Vector,
) -> None:  # fmt: skip
    """Write the motion of the markers `which` into `y` (19 numbers each); the tables and accelerations are known."""
    n_free = counts[1]
    for k in range(len(which)):
        m = which[k]
        i = marker_body[m]
        out = vector_at(address_of(y) + 8 * SEEN * k, SEEN)
        motion_of(counts, x, driven, i, out)
        if i < n_free:
            _put_motion(table, points, i, m, acc, i, 0, out)
        else:
            _put_motion(table, points, i, m, driven, i - n_free, STATE, out)


@internal
def observe(
    model: Arrays, x: Vector, u: Vector, driven: Matrix, extra: Matrix, which: Index, work: Workspace, y: Vector
) -> None:
    """Write the motion of the markers `which` into `y`."""
    violations(model, x, driven, work)
    balance(model, x, u, extra, work)
    report(model.counts, model.marker_body, x, driven, work.table, work.points, work.acc, which, y)


def energy(model: Arrays, x: Vector, driven: Matrix) -> float:
    """Kinetic energy of the free bodies, potential energy of gravity and of the springs."""
    n_free = int(model.counts[1])
    table, points = np.empty((int(model.counts[2]), BODY_WIDTH)), np.empty((len(model.marker_body), POINT_WIDTH))
    tables(model, x, driven, table, points)
    total = 0.0
    for i in range(n_free):
        m, J = model.bodies[i, 0], model.bodies[i, 1:10].reshape(3, 3)
        v, w = table[i, BODY_V : BODY_V + 3], table[i, BODY_W : BODY_W + 3]
        total += 0.5 * m * (v @ v) + 0.5 * w @ J @ w - m * (model.numbers[:3] @ table[i, BODY_R : BODY_R + 3])
    for (kind, a, b), data in zip(model.elements, model.element_data, strict=True):
        d = points[a, POINT_P : POINT_P + 3] - points[b, POINT_P : POINT_P + 3]
        A, B = (points[k, POINT_E : POINT_E + 9].reshape(3, 3) for k in (a, b))  # axes as rows
        if kind == SPRING:
            total += 0.5 * data[0] * (np.linalg.norm(d) - data[2]) ** 2
        elif kind == BUSHING:
            turn = np.array(rotation_vector(tuple((B @ A.T).ravel())))
            total += 0.5 * (data[:3] @ (B @ d) ** 2 + data[3:6] @ turn**2)
        elif kind == TORSION:
            angle = np.arctan2(A[0] @ B[1], A[0] @ B[0]) - data[2]
            total += 0.5 * data[0] * (angle - 2 * np.pi * np.round(angle / (2 * np.pi))) ** 2
    return float(total)


def momentum(model: Arrays, x: Vector, driven: Matrix) -> tuple[Vector, Vector]:
    """Linear momentum, and angular momentum about the origin of K0, of the free bodies."""
    table, points = np.empty((int(model.counts[2]), BODY_WIDTH)), np.empty((len(model.marker_body), POINT_WIDTH))
    tables(model, x, driven, table, points)
    p, L = np.zeros(3), np.zeros(3)
    for i in range(int(model.counts[1])):
        m, J, T = model.bodies[i, 0], model.bodies[i, 1:10].reshape(3, 3), table[i, :9].reshape(3, 3)
        v = table[i, BODY_V : BODY_V + 3]
        p += m * v
        L += m * np.cross(table[i, BODY_R : BODY_R + 3], v) + T @ J @ T.T @ table[i, BODY_OMEGA : BODY_OMEGA + 3]
    return p, L
