"""A multibody model as arrays, the form in which the compiled equations read it.

Free bodies come first, then driven bodies, the ground last. Everything touches bodies through markers (a point and
three axes on a body). The state is one row of 13 numbers per free body: `r` (K0), Euler parameters `q` (or three Euler
angles and a zero), `v` (K0), `omega` (body frame).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

#: Numbers per body: its state, and the state with the accelerations of a driven body.
STATE, DRIVEN = 13, 19

#: How the orientation is kept.
EULER_PARAMETERS, EULER_ANGLES = 0, 1

#: Kinds of scalar constraint rows: one component of atpoint, inplane, perpendicular.
POINT, PLANE, PERPENDICULAR = 0, 1, 2

#: Kinds of force elements.
SPRING, BUSHING, TORSION, CONSTANT_LOAD = 0, 1, 2, 3

#: What `Arrays.parts` holds.
ELEMENT_LOADS, END_LOADS, CORRECTION_RATES = 0, 1, 2

#: Columns of `Arrays.numbers`.
GRAVITY, TWO_ALPHA, BETA_SQUARED = 0, 3, 4


class Arrays(NamedTuple):
    """All numbers of a model.

    `counts`: orientation kind, free bodies, all bodies. `numbers`: gravity (3), Baumgarte's `2 alpha` and `beta^2`.
    `bodies`: mass, inertia (9), its inverse (9). `marker_body`, `markers`: body; point (3) and axes (9, one axis per
    three). `rows`: kind, both markers, axis (or component) of the first, axis of the second, both bodies.
    `elements`, `element_data`: kind, first marker, second marker; 16 numbers. `ports`: marker, then where force,
    torque, shift and turn start in the inputs (-1: not there). `ends`: body, kind, inputs from, to, constants from, to.
    `parts`: addresses of the machine code for elements, ends and corrections in this process, 0 where a model has none;
    copies find their own (`equations/links.py`).
    """

    counts: Index
    numbers: Vector
    bodies: Matrix
    marker_body: Index
    markers: Matrix
    rows: Index
    elements: Index
    element_data: Matrix
    ports: Index
    ends: Index
    end_constants: Vector
    parts: Index

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, tuple(self)


def _again(*fields: Any) -> Arrays:
    from cosolve.multibody.equations.links import linked

    return linked(Arrays(*fields))


def empty_extra(arrays: Arrays) -> Matrix:
    """Loads from outside, one row per free body: `F` (K0), `M` (body frame), `V_c` (K0), `Omega_c` (body frame)."""
    return np.zeros((int(arrays.counts[1]), 12))
