"""Forces and torques on the free bodies: gravity, ports, and what force elements and joint ends add, compiled.

Every wrench is collected as a force in K0 at the centre of mass and a moment about it in the body frame
(Lu (2015), Eqs. 52-53); shifts and turns are the kinematic corrections `V_c` (K0) and `Omega_c` (body frame) of his
Method 3 (Eqs. 126-127, with the signs of docs/validation/lu.md). Elements and joint ends are called by address
(`links.py`): they are compiled once for all equations, and only for models that have them.
"""

from __future__ import annotations

from cosolve.jit import address_of, c_call, chosen, formula, internal, row_of
from cosolve.multibody.equations.elements import ELEMENTS, wrench
from cosolve.multibody.equations.joint_ends import ENDS
from cosolve.multibody.equations.joint_math import cross, triple
from cosolve.multibody.equations.kinematics import BODY_W, POINT_C, triple_of
from cosolve.multibody.model.arrays import ELEMENT_LOADS, END_LOADS, GRAVITY, Arrays, Matrix, Vector

element_loads_by, end_loads_by = c_call(ELEMENTS), c_call(ENDS)


@formula
def _own_loads(bodies: Matrix, numbers: Vector, extra: Matrix, table: Matrix, i: int, load: Matrix) -> float:
    """Gravity, gyroscopic torque and what comes from outside on body `i`; 0 where no corrections are among it."""
    w = triple_of(table, i, BODY_W)
    momentum = (
        bodies[i, 1] * w[0] + bodies[i, 2] * w[1] + bodies[i, 3] * w[2],
        bodies[i, 4] * w[0] + bodies[i, 5] * w[1] + bodies[i, 6] * w[2],
        bodies[i, 7] * w[0] + bodies[i, 8] * w[1] + bodies[i, 9] * w[2],
    )
    gyro = cross(w, momentum)
    for k in range(3):
        load[i, k] = bodies[i, 0] * numbers[GRAVITY + k] + extra[i, k]
        load[i, 3 + k] = extra[i, 3 + k] - gyro[k]
    corrections = 0.0
    for k in range(6, 12):
        load[i, k] = extra[i, k]
        corrections = corrections + chosen(extra[i, k] == 0.0, 0.0, 1.0)
    return corrections


@formula
def _add_triple(u: Vector, start: int, load: Matrix, i: int, at: int) -> None:
    for k in range(3):
        load[i, at + k] = load[i, at + k] + u[start + k]


@internal
def apply_loads(
    model: Arrays, x: Vector, u: Vector, extra: Matrix, table: Matrix, points: Matrix, load: Matrix
) -> bool:
    """Fill `load` (free bodies x 12): `F`, `M` with gyroscopic torque, `V_c`, `Omega_c`; True if these are there."""
    n_free = model.counts[1]
    corrected = False
    for i in range(n_free):
        if _own_loads(model.bodies, model.numbers, extra, table, i, load) != 0.0:
            corrected = True
    if len(model.elements) > 0:
        element_loads_by(
            model.parts[ELEMENT_LOADS], n_free, len(model.elements), address_of(model.elements),
            address_of(model.element_data), address_of(model.marker_body), address_of(table), address_of(points),
            address_of(load),
        )  # fmt: skip
    for p in range(len(model.ports)):
        port = row_of(model.ports, p)
        m = port[0]
        i = model.marker_body[m]
        if i >= n_free:
            continue
        if port[1] >= 0:
            force = triple(u, port[1])
            wrench(table, i, force, cross(triple_of(points, m, POINT_C), force), load)
        if port[2] >= 0:
            wrench(table, i, (0.0, 0.0, 0.0), triple(u, port[2]), load)
        if port[3] >= 0:  # shift and turn: corrections of r' and q'
            corrected = True
            _add_triple(u, port[3], load, i, 6)
        if port[4] >= 0:
            corrected = True
            _add_triple(u, port[4], load, i, 9)
    if len(model.ends) > 0:
        changed = end_loads_by(
            model.parts[END_LOADS], model.counts[0], n_free, len(model.ends), address_of(model.ends),
            address_of(model.end_constants), address_of(u), address_of(x), address_of(load),
        )  # fmt: skip
        if changed != 0:
            corrected = True
    return corrected
