"""What a model must offer to be joined to others, and how the native multibody models offer it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from cosolve.basics.arrays import Matrix
from cosolve.errors import SetupError
from cosolve.multibody.equations.coupling_loads import Attachment, End
from cosolve.multibody.model.model import GROUND, MultibodyModel
from cosolve.subsystem.base import Subsystem


class Inertia(NamedTuple):
    """Mass of a body and its inertia about the centre of mass, in the body frame; `free` without internal joints."""

    mass: float
    J: Matrix
    free: bool


@runtime_checkable
class JointHost(Protocol):
    """A model with markers that can become a subsystem with joint ends: `ExudynModel` is one."""

    def attachments(self) -> Sequence[str]:
        """Names of all markers."""

    def attach(self, marker: str) -> Attachment:
        """Body, point, axes and initial motion behind a marker."""

    def as_subsystem(self, ends: Sequence[End], **options: Any) -> Subsystem:
        """The subsystem with inputs and outputs for these joint ends."""


class NativeHost:
    """A `MultibodyModel` as a host of joints."""

    def __init__(self, model: MultibodyModel) -> None:
        self.model = model

    def attachments(self) -> list[str]:
        """Names of all markers that belong to a body."""
        return [name for name, marker in self.model.markers.items() if marker.body != GROUND]

    def attach(self, marker: str) -> Attachment:
        """Body, point, axes and initial motion behind a marker."""
        found = self.model.markers[marker]
        return Attachment(found.body, found.point, found.axes, self.model.bodies[found.body].start)

    def as_subsystem(self, ends: Sequence[End], **options: Any) -> Subsystem:
        """A `MultibodySubsystem` subsystem."""
        from cosolve.multibody.subsystem import MultibodySubsystem

        return MultibodySubsystem(self.model, ends=list(ends), **options)

    def inertia(self, body: str) -> Inertia:
        """Mass and inertia of a body, for the analytic approximate Jacobian."""
        found = self.model.bodies[body]
        touched = [self.model.markers[m].body for j in self.model.joints.values() for m in (j.first, j.second)]
        free = body not in touched and body not in self.model.drives and not found.planar
        return Inertia(found.mass, found.inertia, free)


def host_of(name: str, model: Any) -> JointHost:
    """The host behind what the user gave."""
    if isinstance(model, MultibodyModel):
        return NativeHost(model)
    if isinstance(model, JointHost):
        return model
    raise SetupError(
        f"assemble: '{name}' is a {type(model).__name__}; give a MultibodyModel, an ExudynModel or a Subsystem"
    )
