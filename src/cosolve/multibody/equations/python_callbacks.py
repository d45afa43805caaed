"""What compiled equations cannot call: user functions for drives and loads, and Python laws of joint ends.

They are evaluated here and handed to the compiled equations as the motion of driven bodies and as extra loads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cosolve.errors import SubsystemError
from cosolve.multibody.equations.entries import motion_of
from cosolve.multibody.equations.joint_math import parameter_rates, rotation_matrix
from cosolve.multibody.model.arrays import STATE, Arrays, Matrix, Vector, empty_extra
from cosolve.multibody.model.build import Built
from cosolve.multibody.model.checks import unit_parameters
from cosolve.multibody.model.parts import Drive, OfTime, TimeLoad

#: A joint end with a Python law: body number, where its inputs are, the law.
Law = tuple[int, slice, Callable[[Vector, Vector], Any]]

_STEP = 1e-3  # of difference quotients in time


def _called(where: str, function: OfTime, t: float, size: int) -> Vector:
    value = np.asarray(function(t), dtype=np.float64)
    if value.shape != (size,) or not np.isfinite(value).all():
        raise SubsystemError(f"{where} gave {value!r} at t = {t:.6g}; expected {size} finite numbers")
    return value


def _first(f: OfTime, t: float) -> Vector:
    """Derivative by central differences of fourth order."""
    h = _STEP
    slope: Vector = (8 * (f(t + h) - f(t - h)) - (f(t + 2 * h) - f(t - 2 * h))) / (12 * h)
    return slope


def _second(f: OfTime, t: float) -> Vector:
    h = _STEP
    bend: Vector = (16 * (f(t + h) + f(t - h)) - (f(t + 2 * h) + f(t - 2 * h)) - 30 * f(t)) / (12 * h * h)
    return bend


class Outside:
    """Driven motion and extra loads at `(t, x, u)`; `needed` is False when everything is compiled."""

    def __init__(
        self,
        built: Built,
        drives: Sequence[Drive],
        loads: Sequence[TimeLoad],
        points: dict[str, Vector],
        laws: Sequence[Law],
    ) -> None:
        self.arrays: Arrays = built.arrays
        self.still = built.driven0
        self.drives = [(built.others.index(d.body), d) for d in drives if d.moves]
        self.loads = [(int(built.arrays.marker_body[built.marker_index[f.marker]]), points[f.marker], f) for f in loads]
        self.loads = [item for item in self.loads if item[0] < len(built.free)]
        self.laws = list(laws)
        self.needed = bool(self.drives or self.loads or self.laws)
        self._extra = empty_extra(built.arrays)

    def driven(self, t: float) -> Matrix:
        """Motion of the driven bodies at `t`: state (13) and accelerations (6) each, the ground last."""
        if not self.drives:
            return self.still
        rows = self.still.copy()
        for i, drive in self.drives:
            rows[i] = _motion(drive, t, rows[i])
        return rows

    def extra(self, t: float, x: Vector, u: Vector, driven: Matrix) -> Matrix:
        """Loads from Python functions on the free bodies (12 numbers each)."""
        if not (self.loads or self.laws):
            return self._extra
        loads = empty_extra(self.arrays)
        z = np.empty(STATE)
        for i, point, load in self.loads:
            motion_of(self.arrays, x, driven, i, z)
            T = rotation_matrix(z[3:7])
            where = f"the load on '{load.marker}'"
            if load.force is not None:
                force = _called(where, load.force, t, 3)
                in_body = force if load.in_body else T.T @ force
                loads[i, :3] += T @ in_body
                loads[i, 3:6] += np.cross(point, in_body)
            if load.torque is not None:
                torque = _called(where, load.torque, t, 3)
                loads[i, 3:6] += torque if load.in_body else T.T @ torque
        for i, part, law in self.laws:
            motion_of(self.arrays, x, driven, i, z)
            loads[i] += np.asarray(law(u[part], z.copy()), dtype=np.float64)
        return loads


def _motion(drive: Drive, t: float, row: Vector) -> Vector:
    """The 19 numbers of a driven body; what the drive leaves open stays as in `row`."""
    where = f"the drive of '{drive.body}'"
    out = row.copy()
    if drive.position is not None:
        given = drive.position

        def position(s: float) -> Vector:
            return _called(where, given, s, 3)

        v, a = drive.velocity, drive.acceleration
        out[:3] = position(t)
        out[7:10] = _first(position, t) if v is None else _called(where, v, t, 3)
        if a is not None:
            out[13:16] = _called(where, a, t, 3)
        else:
            out[13:16] = _second(position, t) if v is None else _first(lambda s: _called(where, v, s, 3), t)
    if drive.orientation is not None:
        turned = drive.orientation
        q = unit_parameters(where, turned(t))

        def near(s: float) -> Vector:  # of the two signs of Euler parameters the one next to q
            value = unit_parameters(where, turned(s))
            return value if value @ q >= 0 else -value

        w, alpha = drive.angular_velocity, drive.angular_acceleration
        P = parameter_rates(q)
        out[3:7] = q
        out[10:13] = P @ _first(near, t) if w is None else _called(where, w, t, 3)
        if alpha is not None:
            out[16:19] = _called(where, alpha, t, 3)
        else:  # omega' = P q'', since P' q' = 0
            out[16:19] = P @ _second(near, t) if w is None else _first(lambda s: _called(where, w, s, 3), t)
    return out
