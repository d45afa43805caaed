"""Python's entries to functions that mostly compiled functions call; each is compiled only where it is used.

`residuals` gives the constraint rows of a model: values, rates and Jacobian.
"""

from __future__ import annotations

import numpy as np

from cosolve.jit import compiled
from cosolve.multibody.equations import dynamics, kinematics, stepping
from cosolve.multibody.equations.dynamics import violate
from cosolve.multibody.equations.table import BODIES, DRIVEN, FIELDS, make_workspace, workspace_of
from cosolve.multibody.model.arrays import Arrays, Matrix, Vector

_derivative, _watch = dynamics.derivative, stepping.watch
_motion_of, _move_bodies, _move_markers = kinematics.motion_of, kinematics.move_bodies, kinematics.move_markers


@compiled
def derivative(model: Arrays, x: Vector, u: Vector, driven: Matrix, extra: Matrix, dx: Vector) -> float:
    """Write `x'` of the index-1 form into `dx`; gives the margin to a singular position."""
    return _derivative(model, x, u, driven, extra, make_workspace(model), dx)


@compiled
def watch(model: Arrays, x: Vector, x_old: Vector, margin: float, margin_old: float) -> int:
    """Status of the state after a step from `x_old`."""
    return _watch(model.counts[0], x, x_old, margin, margin_old)


@compiled
def motion_of(model: Arrays, x: Vector, driven: Matrix, i: int, z: Vector) -> None:
    """Write `(r, q, v, omega)` of body `i` into `z` (13)."""
    _motion_of(model.counts, x, driven, i, z)


@compiled
def tables(model: Arrays, x: Vector, driven: Matrix, table: Matrix, points: Matrix) -> None:
    """Fill the tables of bodies and of markers."""
    _move_bodies(model.counts, x, driven, table)
    _move_markers(model.marker_body, model.markers, table, points)


def residuals(model: Arrays, x: Vector, driven: Matrix) -> tuple[Matrix, Vector, Vector]:
    """Jacobian rows, values and rates of the constraints at the state `x`.

    >>> import cosolve as cs
    >>> model = cs.multibody.MultibodyModel()
    >>> model.body("bob", mass=1.0, inertia=[0.1, 0.1, 0.1], position=[0, 0, -1])
    >>> model.marker("top", "bob", [0, 0, 1])
    >>> model.joint("hook", "spherical", "top", "ground")
    >>> built = cs.multibody.MultibodySubsystem(model).built
    >>> shifted = built.x0 + [0.1, 0.2, 0.3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    >>> residuals(built.arrays, shifted, built.driven0)[1]      # the distance between the points
    array([0.1, 0.2, 0.3])
    """
    work = workspace_of(model)
    fields = {**dict(enumerate(model)), DRIVEN: driven, **dict(enumerate(work, BODIES)), FIELDS: x}
    kept = {k: np.ascontiguousarray(field) for k, field in fields.items()}
    table = np.zeros((FIELDS + 1, 2), dtype=np.int64)
    for k, field in kept.items():
        table[k] = field.ctypes.data, len(field)
    violate(table.ctypes.data, int(table[FIELDS, 0]))
    return work.J, work.c, work.rate
