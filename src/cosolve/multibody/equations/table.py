"""A multibody model as a table of words, for functions that are called by address.

The table holds, for each field below, the address of an array and its number of rows. Functions that take and give
plain numbers can be called by address: what several of them need is then compiled once, and a call from Python does not
unpack two dozen arrays.
"""

from __future__ import annotations

import numpy as np

from cosolve.jit import (
    allocating,
    field_size,
    index_field,
    index_rows_field,
    matrix_field,
    vector_field,
)
from cosolve.multibody.equations.kinematics import BODY_WIDTH, POINT_WIDTH
from cosolve.multibody.equations.room import Room
from cosolve.multibody.model.arrays import Arrays

#: Fields of the table. The first twelve are those of `Arrays`, those from `BODIES` to `MOVE` those of `Room`.
DRIVEN, EXTRA, OPTIONS, A, B, C, E = range(12, 19)
BODIES, POINTS, ACCELERATIONS, LOADS, MULTIPLIERS = range(19, 24)
JACOBIAN, WEIGHTED, FACTOR, VALUES, CHANGES, GAMMA, SCALE, MOVE = range(24, 32)
STATE, RATES, STAGES, GRID, TAKEN, SEEN, END, NOW, ENTRIES = range(32, 41)
FIELDS = 41

#: Numbers behind the bodies in `STATE`: time, next step size, margin to a singular position.
TAIL = 3

#: Columns of `OPTIONS`: projection, step (0: adaptive), tolerances, 1 for the stabilised index-2 form.
LEVEL, STEP, RTOL, ATOL, GGL = range(5)

#: Addresses in `ENTRIES`: the first two in the order of the modes of a crossing.
ADVANCE, REPLAY, OBSERVE, DERIVE, SETTLE, VIOLATE = range(6)


@allocating
def model_at(w: int) -> Arrays:
    """The model in the table."""
    return Arrays(
        index_field(w, 0),
        vector_field(w, 1),
        matrix_field(w, 2, 19),
        index_field(w, 3),
        matrix_field(w, 4, 12),
        index_rows_field(w, 5, 7),
        index_rows_field(w, 6, 3),
        matrix_field(w, 7, 16),
        index_rows_field(w, 8, 5),
        index_rows_field(w, 9, 6),
        vector_field(w, 10),
        index_field(w, 11),
    )


@allocating
def room_at(w: int) -> Room:
    """The room in the table."""
    return Room(
        matrix_field(w, BODIES, BODY_WIDTH),
        matrix_field(w, POINTS, POINT_WIDTH),
        matrix_field(w, ACCELERATIONS, 6),
        matrix_field(w, LOADS, 12),
        vector_field(w, MULTIPLIERS),
        matrix_field(w, JACOBIAN, 12),
        matrix_field(w, WEIGHTED, 12),
        matrix_field(w, FACTOR, field_size(w, FACTOR)),
        vector_field(w, VALUES),
        vector_field(w, CHANGES),
        vector_field(w, GAMMA),
        vector_field(w, SCALE),
        matrix_field(w, MOVE, 6),
    )


def room_of(arrays: Arrays) -> Room:
    """New room for a model."""
    n, m = int(arrays.counts[1]), len(arrays.rows)
    table, points = np.zeros((int(arrays.counts[2]), BODY_WIDTH)), np.zeros((len(arrays.markers), POINT_WIDTH))
    acc, load, lam, move = np.zeros((n, 6)), np.zeros((n, 12)), np.zeros(m), np.zeros((n, 6))
    c, rate, gamma, scale = np.zeros((4, m))
    J, weighted, L = np.zeros((m, 12)), np.zeros((m, 12)), np.zeros((m, m))
    return Room(table, points, acc, load, lam, J, weighted, L, c, rate, gamma, scale, move)
