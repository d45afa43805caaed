"""The parts of a multibody model, as checked records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cosolve.multibody.model.arrays import Matrix, Vector

OfTime = Callable[[float], Any]


@dataclass(frozen=True)
class Body:
    """A rigid body and where it starts: `start` = (r, q, v, omega), 13 numbers."""

    name: str
    mass: float
    inertia: Matrix
    start: Vector
    planar: bool = False


@dataclass(frozen=True)
class Marker:
    """A point and three axes (columns) fixed to a body, in the body's frame."""

    name: str
    body: str
    point: Vector
    axes: Matrix


@dataclass(frozen=True)
class Joint:
    """A joint of one of the kinds of `joints.JOINTS` between two markers."""

    name: str
    kind: str
    first: str
    second: str


@dataclass(frozen=True)
class Element:
    """A force element between two markers; `data` as the compiled law of its kind reads it.

    `unstressed` names the entry of `data` to be set to the initial length or angle.
    """

    name: str
    kind: int
    first: str
    second: str
    data: Vector
    unstressed: bool = False


@dataclass(frozen=True)
class TimeLoad:
    """Force and torque on a marker as functions of time, in K0 or in the frame of the body."""

    marker: str
    force: OfTime | None
    torque: OfTime | None
    in_body: bool


@dataclass(frozen=True)
class Drive:
    """A prescribed motion: functions of time for position, orientation and their derivatives, None where not given."""

    body: str
    position: OfTime | None
    velocity: OfTime | None
    acceleration: OfTime | None
    orientation: OfTime | None
    angular_velocity: OfTime | None
    angular_acceleration: OfTime | None

    @property
    def moves(self) -> bool:
        """False for a body that is simply held where it starts."""
        return self.position is not None or self.orientation is not None
