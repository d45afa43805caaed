"""Workspace for the equations of motion: the arrays that one evaluation fills, made once or taken from a table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosolve.jit import allocating
from cosolve.multibody.equations.kinematics import BODY_WIDTH, POINT_WIDTH
from cosolve.multibody.model.arrays import Arrays, Matrix, Vector


class Workspace(NamedTuple):
    """Tables of bodies and markers; accelerations (6 per free body), loads (12) and multipliers; rows of constraints.

    `J`, `weighted`, `L`: Jacobian rows, `J M^-1` and the factor of `C M^-1 C^T`; `c`, `rate`, `gamma`, `scale`: one
    number per row; `move`: 6 per free body.
    """

    table: Matrix
    points: Matrix
    acc: Matrix
    load: Matrix
    lam: Vector
    J: Matrix
    weighted: Matrix
    L: Matrix
    c: Vector
    rate: Vector
    gamma: Vector
    scale: Vector
    move: Matrix


@allocating
def make_workspace(model: Arrays) -> Workspace:
    """Workspace for one evaluation."""
    n, m = model.counts[1], len(model.rows)
    table, points = np.empty((model.counts[2], BODY_WIDTH)), np.empty((len(model.marker_body), POINT_WIDTH))
    acc, load, move, lam = np.empty((n, 6)), np.empty((n, 12)), np.empty((n, 6)), np.empty(m)
    J, weighted, L = np.empty((m, 12)), np.empty((m, 12)), np.empty((m, m))
    c, rate, gamma, scale = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    return Workspace(table, points, acc, load, lam, J, weighted, L, c, rate, gamma, scale, move)
