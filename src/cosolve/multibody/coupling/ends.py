"""The two ends of a joint: which inputs each subsystem gets, and the numbers its loads are computed from.

Rule of Lu (2015), 2.2.3-2.2.5: every quantity of the other body that occurs in a load is an input, and
one coupling variable with the condition "copy - state = 0". Orientations are copied as four Euler parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.wording import raised
from cosolve.errors import SetupError
from cosolve.multibody.coupling.joint import Joint, Part
from cosolve.multibody.equations.coupling_conditions import MOTION, coupling_conditions
from cosolve.multibody.equations.coupling_loads import (
    ATPOINT,
    FORCE,
    INPLANE,
    LAW,
    PERPENDICULAR,
    STABILISED,
    VECTOR,
    Attachment,
    End,
    coupling_loads,
    part_constants,
)

#: Copies of the other body's motion, their sizes, and where they lie in a row of 13 numbers.
COPIES = (("other_r", 3, 0), ("other_q", 4, 3), ("other_v", 3, 7), ("other_w", 3, 10))


@dataclass(frozen=True)
class Fitted:
    """A joint with the geometry of its two bodies: everything that conditions and loads need."""

    joint: Joint
    ends: tuple[End, End]
    constants: Vector
    n_force: int
    n_torque: int
    start: tuple[Vector, Vector]  # motion (13) of both bodies at the start

    @property
    def count(self) -> int:
        """Number of conditions (of multipliers)."""
        return self.n_force + self.n_torque

    def conditions(self, motion_i: Vector, motion_j: Vector) -> tuple[Matrix, Matrix]:
        """All levels of the conditions (3 x n) and their derivatives (3 x n x 38)."""
        g, J = np.empty((3, self.count)), np.empty((3, self.count, 2 * MOTION))
        coupling_conditions(self.constants, motion_i, motion_j, g, J)
        return g, J


def fit(joint: Joint, at_i: Attachment, at_j: Attachment, *, correction: bool) -> Fitted:
    """Turn a joint into its two ends; `correction` gives rigid joints the second multiplier of stabilised index 2."""
    parts = joint.parts(at_i, at_j)
    rows = [_part_row(joint, part, at_i, at_j) for part in parts]
    codes = [part.code for part in parts]
    n_force = 3 * codes.count(ATPOINT) + codes.count(INPLANE)
    n_torque = codes.count(PERPENDICULAR)
    ends = []
    for side, at in ((1.0, at_i), (-1.0, at_j)):
        kind = _kind(joint, side, correction)
        copies = _copies(joint, codes, side, kind)
        head = [float(len(parts)), side, *(1.0 if name in copies else 0.0 for name, _, _ in COPIES)]
        constants = np.concatenate([head, *rows])
        inputs: list[tuple[str, int]] = []
        if kind != LAW:
            shapes = [("force", n_force), ("torque", 3 if kind == VECTOR and n_torque else n_torque)]
            shapes = [(name, size) for name, size in shapes if size]
            inputs += shapes
            if kind == STABILISED:
                inputs += [(f"mu_{name}", size) for name, size in shapes]
        inputs += [(name, size) for name, size, _ in COPIES if name in copies]
        end = End(joint.name, at.body, tuple(inputs), kind, constants)
        if kind == LAW and joint.law is not None:
            end = End(joint.name, at.body, tuple(inputs), kind, constants, _user_law(joint, end, n_force + n_torque))
        ends.append(end)
    return Fitted(joint, (ends[0], ends[1]), ends[0].constants, n_force, n_torque, (at_i.motion, at_j.motion))


def _part_row(joint: Joint, part: Part, at_i: Attachment, at_j: Attachment) -> Vector:
    turning = part.code == PERPENDICULAR
    stiffness = joint.rotational_stiffness if turning else joint.stiffness
    damping = joint.rotational_damping if turning else joint.damping
    return part_constants(
        part.code,
        at_i.point.tolist(),
        at_j.point.tolist(),
        part.e_i.tolist(),
        part.e_j.tolist(),
        0.0 if stiffness is None else stiffness,
        damping,
        scaled=joint.scaled and turning,
    )


def _kind(joint: Joint, side: float, correction: bool) -> int:
    if not joint.flexible:
        return STABILISED if correction else FORCE
    if joint.sides[0 if side > 0 else 1] == "displacement":
        return LAW
    return VECTOR if joint.formulation == "alternative" else FORCE


def _copies(joint: Joint, codes: list[int], side: float, kind: int) -> set[str]:
    """What an end must know about the other body (tables in 4.3 and 6.2)."""
    if kind == VECTOR:
        return set()
    if kind == LAW:
        damped = joint.law is not None or np.any(np.asarray(joint.damping) != 0) or joint.rotational_damping != 0
        pose, rates = ({"other_r", "other_q"}, {"other_v", "other_w"})
        if all(code == PERPENDICULAR for code in codes):
            pose, rates = {"other_q"}, {"other_w"}
        return pose | rates if damped else pose
    needed = {"other_q"} if INPLANE in codes or PERPENDICULAR in codes else set()
    return needed | {"other_r"} if INPLANE in codes and side < 0 else needed


def law_value(joint: Joint, count: int, deflection: Vector, rate: Vector) -> Vector:
    """What the user's law says, one number per condition."""
    assert joint.law is not None
    try:
        value = np.asarray(joint.law(deflection.copy(), rate.copy()), dtype=np.float64).reshape(-1)
    except (TypeError, ValueError) as error:
        raise SetupError(f"joint '{joint.name}': its law failed: {raised(error)}") from error
    if value.size != count:
        raise SetupError(
            f"joint '{joint.name}': its law returned {value.size} numbers for {count} deflections "
            f"({', '.join(joint.labels())}); one force or torque is needed for each"
        )
    return value


def _user_law(joint: Joint, end: End, count: int) -> Callable[[Vector, Vector], Vector]:
    """Loads of a displacement side with a user's law: deflections from both motions, then loads as on a force side."""
    given = [(size, start) for name, size, start in COPIES if name in dict(end.inputs)]
    constants = end.constants
    first = constants[1] > 0

    def loads(u: Vector, z: Vector) -> Vector:
        own, other = np.zeros(MOTION), np.zeros(MOTION)
        own[:13] = z
        other[3] = 1.0
        at = 0
        for size, start in given:
            other[start : start + size] = u[at : at + size]
            at += size
        g, J, out = np.empty((3, count)), np.empty((3, count, 2 * MOTION)), np.empty(12)
        coupling_conditions(constants, own if first else other, other if first else own, g, J)
        forces = law_value(joint, count, g[0], g[1])
        coupling_loads(FORCE, constants, np.concatenate([forces, u]), np.ascontiguousarray(z), out)
        return out

    return loads
