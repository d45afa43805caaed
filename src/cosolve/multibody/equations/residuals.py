"""Constraint rows of a model for Python: values, rates and Jacobian."""

from __future__ import annotations

import numpy as np

from cosolve.multibody.equations.dynamics import violate
from cosolve.multibody.equations.table import BODIES, DRIVEN, FIELDS, workspace_of
from cosolve.multibody.model.arrays import Arrays, Matrix, Vector


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
