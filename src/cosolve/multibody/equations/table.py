"""A multibody model as a table of words, for functions that are called by address.

The table holds, for each field below, the address of an array and its number of rows. Functions that take and give
plain numbers can be called by address: what several of them need is then compiled once, and a call from Python does not
unpack two dozen arrays.

The workspace of the equations of motion, arrays that one evaluation fills, is made once or taken from a table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosolve.jit import SQUARE, allocating, fields_of, types
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


#: Fields of the table. The first twelve are those of `Arrays`, those from `BODIES` to `MOVE` those of `Workspace`.
COUNTS, MARKER_BODY = 0, 3
DRIVEN, EXTRA, OPTIONS, A, B, C, E = range(12, 19)
BODIES, POINTS, ACCELERATIONS, LOADS, MULTIPLIERS = range(19, 24)
JACOBIAN, WEIGHTED, FACTOR, VALUES, CHANGES, GAMMA, SCALE, MOVE = range(24, 32)
STATE, RATES, STAGES, GRID, TAKEN, SEEN, END, NOW, ENTRIES = range(32, 41)
FIELDS = 41

#: Numbers behind the bodies in `STATE`: time, next step size, margin to a singular position.
TAIL = 3

#: Columns of `OPTIONS`: projection, step (0: adaptive), tolerances, 1 for the stabilised index-2 form.
LEVEL, STEP, RTOL, ATOL, GGL = range(5)

#: Addresses in `ENTRIES`: the first two in the order of the modes of a subsystem step.
ADVANCE, REPLAY, OBSERVE, DERIVE, SETTLE, VIOLATE = range(6)


_NUMBERS, _PLACES = types.float64, types.int64

#: The model in a table, and the workspace.
model_at = fields_of(
    Arrays, 0,
    (_PLACES, None), (_NUMBERS, None), (_NUMBERS, 19), (_PLACES, None), (_NUMBERS, 12), (_PLACES, 7), (_PLACES, 3),
    (_NUMBERS, 16), (_PLACES, 5), (_PLACES, 6), (_NUMBERS, None), (_PLACES, None),
)  # fmt: skip
workspace_at = fields_of(
    Workspace, BODIES,
    (_NUMBERS, BODY_WIDTH), (_NUMBERS, POINT_WIDTH), (_NUMBERS, 6), (_NUMBERS, 12), (_NUMBERS, None), (_NUMBERS, 12),
    (_NUMBERS, 12), (_NUMBERS, SQUARE), (_NUMBERS, None), (_NUMBERS, None), (_NUMBERS, None), (_NUMBERS, None),
    (_NUMBERS, 6),
)  # fmt: skip


def workspace_of(arrays: Arrays) -> Workspace:
    """New room for a model."""
    n, m = int(arrays.counts[1]), len(arrays.rows)
    table, points = np.zeros((int(arrays.counts[2]), BODY_WIDTH)), np.zeros((len(arrays.markers), POINT_WIDTH))
    acc, load, lam, move = np.zeros((n, 6)), np.zeros((n, 12)), np.zeros(m), np.zeros((n, 6))
    c, rate, gamma, scale = np.zeros((4, m))
    J, weighted, L = np.zeros((m, 12)), np.zeros((m, 12)), np.zeros((m, m))
    return Workspace(table, points, acc, load, lam, J, weighted, L, c, rate, gamma, scale, move)
