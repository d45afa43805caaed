"""Loads of one end of a joint between two subsystems, from the end's inputs and its own body's motion, compiled.

A joint is a list of basic parts (atpoint, inplane, perpendicular) between body `i` (first) and body `j` (second);
Lu (2015), 2.2.2-2.2.5, 3.2.2, with the signs of docs/validation/lu.md. `coupling_loads` serves every end of every
joint: `kind` says how the multipliers come about, `constants` holds the side and the parts. Data of the other body are
inputs ("tilde" copies).

Layout of `constants`: number of parts, side (+1 body i, -1 body j), 1.0 if the inputs hold `other_r`, `other_q`,
`other_v`, `other_w` (four flags), then `PART` numbers per part, see `part_constants`.

Layout of the inputs `u`, entries in this order, each only where it is needed:

- `force`: 3 numbers for an atpoint part (N, components in K0), 1 for each inplane part (N, along its normal);
- `torque`: 1 number for each perpendicular part (N m); with `VECTOR` the sum of all of them as 3 numbers in K0;
- `mu_force`, `mu_torque`: the multipliers of the stabilised index-2 method, same shapes (m/s and rad/s per lever arm);
- `other_r` (m, K0), `other_q` (Euler parameters), `other_v` (m/s, K0), `other_w` (rad/s, frame of the other body).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cosolve.jit import entry
from cosolve.multibody.equations.joint_math import (
    Matrix,
    Triple,
    Vector,
    cross,
    dot,
    minus,
    plus,
    rotation,
    rotation_matrix,
    times,
    to_body,
    to_space,
    triple,
)

#: How an end gets its multipliers: given as inputs, given together with those of the stabilised index-2 method,
#: computed here from the motion of both bodies by the linear law, or given as one torque vector (App. C of SL).
FORCE, STABILISED, LAW, VECTOR = 0, 1, 2, 3

#: The basic parts.
ATPOINT, INPLANE, PERPENDICULAR = 0, 1, 2

#: Numbers before the parts, and numbers per part, in `constants`.
HEAD, PART = 6, 20


@dataclass(frozen=True)
class End:
    """One end of a joint, as a multibody subsystem sees it: inputs, and the loads that follow from them.

    `law(u, z)`, where given, replaces `coupling_loads`: a Python function that returns the same 12 numbers (for
    user-given nonlinear laws on a displacement side).
    """

    name: str
    body: str
    inputs: tuple[tuple[str, int], ...]
    kind: int
    constants: Vector
    law: Callable[[Vector, Vector], npt.ArrayLike] | None = None

    @property
    def size(self) -> int:
        """Number of inputs."""
        return sum(size for _, size in self.inputs)


@dataclass(frozen=True)
class Attachment:
    """Where a joint is fastened: a body, a point and axes in its frame, and the body's motion at the start (13).

    >>> here = Attachment("rod", np.zeros(3), np.eye(3), np.array([0, 0, 0, 1.0, 0, 0, 0, 0, 0, 0, 0, 0, 0]))
    >>> here.T @ here.frame[:, 2]
    array([0., 0., 1.])
    """

    body: str
    point: Vector
    frame: Matrix
    motion: Vector

    @property
    def T(self) -> Matrix:
        """Body coordinates to the inertial frame, at the start."""
        return rotation_matrix(self.motion[3:7])


def part_constants(
    code: int,
    r_i: Sequence[float],
    r_j: Sequence[float],
    e_i: Sequence[float] = (0.0, 0.0, 0.0),
    e_j: Sequence[float] = (0.0, 0.0, 0.0),
    stiffness: npt.ArrayLike = 0.0,
    damping: npt.ArrayLike = 0.0,
    scaled: bool = False,
) -> Vector:
    """The numbers of one basic part: code, points and directions in body frames, law, whether torques are scaled.

    `scaled` divides a perpendicular part's torque by `|e_i x e_j|`, so that it is the torque's size (soft joints).

    >>> part_constants(INPLANE, [1, 0, 0], [0, 0, 0], e_j=[0, 0, 1], stiffness=5.0).shape
    (20,)
    """
    c, d = (np.broadcast_to(np.asarray(value, dtype=np.float64), (3,)) for value in (stiffness, damping))
    return np.concatenate([[float(code)], r_i, r_j, e_i, e_j, c, d, [1.0 if scaled else 0.0]]).astype(np.float64)


@entry
def coupling_loads(kind: int, constants: Vector, u: Vector, z: Vector, out: Vector) -> None:
    """Loads of a joint end on its own body; `out` (12) is overwritten.

    `z` (13): `r` (K0), `q`, `v` (K0), `omega` (body frame) of the own body's centre of mass. `out`: force `F` (K0),
    moment `M` about the centre of mass (body frame), and the projection terms of the stabilised index-2 method `V_c`
    (K0) and `Omega_c` (body frame) with `r' = v + V_c`, `P q' = omega + Omega_c` (docs/validation/lu.md).

    >>> spring = part_constants(ATPOINT, [0, 0, 0], [0, 0, 0], stiffness=2.0)
    >>> here, there, out = np.zeros(13), np.zeros(13), np.zeros(12)
    >>> here[3] = there[3] = 1.0
    >>> there[0] = 0.5                                              # the other body is 0.5 m away
    >>> coupling_loads(LAW, np.concatenate([[1, 1, 1, 1, 1, 1], spring]), there, here, out)
    >>> out[:3]
    array([1., 0., 0.])
    """
    for k in range(12):
        out[k] = 0.0
    n_parts, side = int(constants[0]), constants[1]
    n_force, n_torque = 0, 0
    for p in range(n_parts):
        code = int(constants[HEAD + p * PART])
        if code == ATPOINT:
            n_force += 3
        elif code == INPLANE:
            n_force += 1
        else:
            n_torque += 1
    if kind == VECTOR:
        n_torque = 3
    multipliers = 0 if kind == LAW else n_force + n_torque
    T = rotation(z, 3)
    r, v, omega = triple(z, 0), triple(z, 7), to_space(T, triple(z, 10))
    # the other body, as far as its motion is an input
    start = 2 * multipliers if kind == STABILISED else multipliers
    other_r: Triple = (0.0, 0.0, 0.0)
    other_v: Triple = (0.0, 0.0, 0.0)
    other_omega: Triple = (0.0, 0.0, 0.0)
    S = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    if constants[2] != 0.0:
        other_r = triple(u, start)
        start += 3
    if constants[3] != 0.0:
        S = rotation(u, start)
        start += 4
    if constants[4] != 0.0:
        other_v = triple(u, start)
        start += 3
    if constants[5] != 0.0:
        other_omega = to_space(S, triple(u, start))
    at_force, at_torque = 0, n_force
    for p in range(n_parts):
        base = HEAD + p * PART
        code = int(constants[base])
        if side > 0.0:
            T_i, r_i, v_i, w_i, T_j, r_j, v_j, w_j = T, r, v, omega, S, other_r, other_v, other_omega
        else:
            T_i, r_i, v_i, w_i, T_j, r_j, v_j, w_j = S, other_r, other_v, other_omega, T, r, v, omega
        c_i, c_j = to_space(T_i, triple(constants, base + 1)), to_space(T_j, triple(constants, base + 4))
        a, n = to_space(T_i, triple(constants, base + 7)), to_space(T_j, triple(constants, base + 10))
        stiffness, damping = triple(constants, base + 13), triple(constants, base + 16)
        scale = 1.0
        if constants[base + 19] != 0.0:
            normal = cross(a, n)
            scale = 1.0 / np.sqrt(dot(normal, normal))
        lam: Triple = (0.0, 0.0, 0.0)
        mu: Triple = (0.0, 0.0, 0.0)
        if kind == LAW:
            d = minus(plus(r_i, c_i), plus(r_j, c_j))
            d_dot = minus(plus(v_i, cross(w_i, c_i)), plus(v_j, cross(w_j, c_j)))
            if code == ATPOINT:
                lam = (
                    -stiffness[0] * d[0] - damping[0] * d_dot[0],
                    -stiffness[1] * d[1] - damping[1] * d_dot[1],
                    -stiffness[2] * d[2] - damping[2] * d_dot[2],
                )
            elif code == INPLANE:
                rate = dot(d_dot, n) + dot(d, cross(w_j, n))
                lam = (-stiffness[0] * dot(d, n) - damping[0] * rate, 0.0, 0.0)
            else:
                rate = dot(cross(w_i, a), n) + dot(a, cross(w_j, n))
                lam = (-stiffness[0] * dot(a, n) - damping[0] * rate, 0.0, 0.0)
        elif code == ATPOINT:
            lam = triple(u, at_force)
            if kind == STABILISED:
                mu = triple(u, multipliers + at_force)
            at_force += 3
        elif code == INPLANE:
            lam = (u[at_force], 0.0, 0.0)
            if kind == STABILISED:
                mu = (u[multipliers + at_force], 0.0, 0.0)
            at_force += 1
        elif kind != VECTOR:
            lam = (u[at_torque], 0.0, 0.0)
            if kind == STABILISED:
                mu = (u[multipliers + at_torque], 0.0, 0.0)
            at_torque += 1
        for term in range(2 if kind == STABILISED else 1):
            x = lam if term == 0 else mu
            if code == ATPOINT:
                force = times(side, x)
                lever = triple(constants, base + 1) if side > 0.0 else triple(constants, base + 4)
                moment = cross(lever, to_body(T, force))
            elif code == INPLANE:
                force = times(side * x[0], n)
                arm = c_i if side > 0.0 else minus(plus(r_i, c_i), r_j)  # from the own centre of mass to C_i
                moment = to_body(T, cross(arm, force))
            else:
                force = (0.0, 0.0, 0.0)
                moment = to_body(T, times(side * x[0] * scale, cross(a, n)))
            for k in range(3):
                out[6 * term + k] += force[k]
                out[6 * term + 3 + k] += moment[k]
    if kind == VECTOR:
        moment = to_body(T, times(side, triple(u, n_force)))
        for k in range(3):
            out[3 + k] += moment[k]
