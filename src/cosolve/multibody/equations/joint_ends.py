"""Loads of all joint ends of a model, compiled and called by address (`links.py`)."""

from __future__ import annotations

import numpy as np

from cosolve.jit import compiled, index_rows_at, matrix_at, types, vector_at
from cosolve.multibody.equations.coupling_loads import coupling_loads
from cosolve.multibody.equations.kinematics import free_motion
from cosolve.multibody.model.arrays import STATE

#: Signature of `end_loads`.
ENDS = types.int64(*[types.int64] * 8)


@compiled
def end_loads(kind: int, n_free: int, count: int, ends: int, constants: int, u: int, x: int, load: int) -> int:
    """Add the loads of all ends to `load`; 1 if there are corrections among them.

    `kind` says how orientations are kept; the arguments after `count` are addresses (see `Arrays`).
    """
    rows, state, loads = index_rows_at(ends, count, 6), vector_at(x, STATE * n_free), matrix_at(load, n_free, 12)
    z, out = np.empty(STATE), np.empty(12)
    corrected = 0
    for n in range(count):
        body, law = rows[n, 0], rows[n, 1]
        if law < 0 or body >= n_free:
            continue
        free_motion(kind, state, STATE * body, z)
        own, inputs = vector_at(constants, rows[n, 5]), vector_at(u, rows[n, 3])
        coupling_loads(law, own[rows[n, 4] :], inputs[rows[n, 2] :], z, out)
        for k in range(12):
            loads[body, k] += out[k]
            if k >= 6 and out[k] != 0.0:
                corrected = 1
    return corrected
