"""What joints contribute to a `System`: conditions of rigid joints and force laws of flexible ones, with derivatives.

The functions take the outputs of both ends as a `System` hands them over (`r, q, v, w[, a, alpha]` of the first body,
then of the second) and return numbers in the order forces, torques.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.multibody.coupling.ends import Fitted, law_value
from cosolve.multibody.equations.coupling_conditions import MOTION
from cosolve.multibody.equations.joint_math import rotation_matrix

#: Outputs of a joint end, with and without accelerations.
WITH_RATES = ("r", "q", "v", "w")
WITH_ACCELERATIONS = (*WITH_RATES, "a", "alpha")

#: Columns of the derivatives by both motions that belong to outputs without accelerations.
_RATE_COLUMNS = np.r_[0:13, MOTION : MOTION + 13]

#: Relative increment when a user's law is differenced.
_INCREMENT = 6e-6


def rigid_levels(fitted: Fitted) -> Callable[..., Matrix]:
    """`(g, g', g'')` as a 3 x n array."""

    def levels(*outputs: Any) -> Matrix:
        return fitted.conditions(*_motions(outputs))[0]

    return levels


def rigid_jacobian(fitted: Fitted) -> Callable[..., Matrix]:
    """Derivatives of all levels by all outputs, 3 x n x 38."""

    def jacobian(*outputs: Any) -> Matrix:
        return fitted.conditions(*_motions(outputs))[1]

    return jacobian


def force_law(fitted: Fitted, rows: slice) -> Callable[..., Vector]:
    """Forces (or torques: `rows` picks them) of a flexible joint."""

    def law(*outputs: Any) -> Vector:
        g, _ = fitted.conditions(*_motions(outputs))
        return multipliers(fitted, g[0], g[1])[rows]

    return law


def force_law_jacobian(fitted: Fitted, rows: slice) -> Callable[..., Matrix]:
    """Derivatives of `force_law` by the outputs (26 columns)."""

    def jacobian(*outputs: Any) -> Matrix:
        g, J = fitted.conditions(*_motions(outputs))
        by_g, by_rate = _law_partials(fitted, g[0], g[1])
        by_outputs: Matrix = (by_g @ J[0] + by_rate @ J[1])[rows][:, _RATE_COLUMNS]
        return by_outputs

    return jacobian


def torque_vector_law(fitted: Fitted) -> Callable[..., Vector]:
    """All perpendicular parts as one torque on the first body, components in K0 (App. C: `sum (a x n) Y`)."""

    def law(*outputs: Any) -> Vector:
        motion_i, motion_j = _motions(outputs)
        g, _ = fitted.conditions(motion_i, motion_j)
        torques = multipliers(fitted, g[0], g[1])[fitted.n_force :]
        T_i, T_j = rotation_matrix(motion_i[3:7]), rotation_matrix(motion_j[3:7])
        total, k = np.zeros(3), 0
        for row in fitted.constants[6:].reshape(-1, 20):
            if row[0] != 2.0:
                continue
            normal = np.cross(T_i @ row[7:10], T_j @ row[10:13])
            total += torques[k] * normal / (np.linalg.norm(normal) if row[19] else 1.0)
            k += 1
        return total

    return law


def multipliers(fitted: Fitted, deflection: Vector, rate: Vector) -> Vector:
    """All forces and torques of a flexible joint, `-C g - D g'` or the user's law."""
    joint = fitted.joint
    if joint.law is None:
        C, D = _coefficients(fitted)
        return -C * deflection - D * rate
    return law_value(joint, fitted.count, deflection, rate)


def _coefficients(fitted: Fitted) -> tuple[Vector, Vector]:
    C, D = np.empty(fitted.count), np.empty(fitted.count)
    force, torque = 0, fitted.n_force
    for row in fitted.constants[6:].reshape(-1, 20):
        if row[0] == 2.0:
            C[torque], D[torque] = row[13], row[16]
            torque += 1
        else:
            size = 3 if row[0] == 0.0 else 1
            C[force : force + size], D[force : force + size] = row[13 : 13 + size], row[16 : 16 + size]
            force += size
    return C, D


def _law_partials(fitted: Fitted, deflection: Vector, rate: Vector) -> tuple[Matrix, Matrix]:
    if fitted.joint.law is None:
        C, D = _coefficients(fitted)
        return -np.diag(C), -np.diag(D)
    both = np.concatenate([deflection, rate])
    columns = []
    for k in range(len(both)):
        shift = np.zeros_like(both)
        shift[k] = _INCREMENT * max(1.0, abs(both[k]))
        ahead, behind = (multipliers(fitted, *np.split(both + sign * shift, 2)) for sign in (1.0, -1.0))
        columns.append((ahead - behind) / (2.0 * shift[k]))
    partials = np.array(columns).T
    return partials[:, : fitted.count], partials[:, fitted.count :]


def _motions(outputs: tuple[Any, ...]) -> tuple[Vector, Vector]:
    half = len(outputs) // 2
    motions = []
    for part in (outputs[:half], outputs[half:]):
        motion = np.zeros(MOTION)
        flat = np.concatenate(part)
        motion[: len(flat)] = flat
        motions.append(motion)
    return motions[0], motions[1]
