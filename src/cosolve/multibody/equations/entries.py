"""Python's entries to functions that mostly compiled functions call; each is compiled only where it is used."""

from __future__ import annotations

from cosolve.jit import compiled
from cosolve.multibody.equations import dynamics, kinematics, stepping
from cosolve.multibody.equations.workspace import make_workspace
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
