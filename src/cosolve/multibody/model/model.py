"""The description of a multibody system: bodies, markers, joints, force elements, loads and drives.

Frames: K0 is the inertial frame; a body frame sits at the centre of mass. SI units, or any consistent set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.checks import choice
from cosolve.basics.wording import did_you_mean
from cosolve.errors import SetupError
from cosolve.multibody.model import checks
from cosolve.multibody.model.arrays import BUSHING, CONSTANT_LOAD, SPRING, TORSION
from cosolve.multibody.model.joints import JOINTS
from cosolve.multibody.model.parts import Body, Drive, Element, Joint, Marker, OfTime, TimeLoad

GROUND = "ground"


class MultibodyModel:
    """The description of rigid bodies and of what acts between them; `MultibodySubsystem` makes a subsystem of it.

    Every body name, and "ground", is also a marker: at the centre of mass (the origin), with the axes of the body.

    >>> import cosolve as cs
    >>> model = cs.MultibodyModel()
    >>> model.body("rod", mass=1.0, inertia=[1e-3, 0.084, 0.084], position=[0.5, 0, 0])
    >>> model.marker("end", "rod", [-0.5, 0, 0], axes=[[1, 0, 0], [0, 0, 1], [0, -1, 0]])
    >>> model.marker("hinge", "ground", axes=[[1, 0, 0], [0, 0, 1], [0, -1, 0]])
    >>> model.joint("pivot", "revolute", "end", "hinge")
    >>> print(model)
    MultibodyModel with 1 body, 1 joint, 0 force elements
    """

    way_to_subsystem = "instead: MultibodySubsystem(model, ...), or join models with assemble(...)"

    def __init__(self, gravity: npt.ArrayLike = (0.0, 0.0, -9.81)) -> None:
        self.gravity = checks.numbers("MultibodyModel", "gravity", gravity, (3,))
        self.bodies: dict[str, Body] = {}
        self.markers: dict[str, Marker] = {GROUND: Marker(GROUND, GROUND, np.zeros(3), np.eye(3))}
        self.joints: dict[str, Joint] = {}
        self.elements: dict[str, Element] = {}
        self.time_loads: list[TimeLoad] = []
        self.drives: dict[str, Drive] = {}

    def __str__(self) -> str:
        counts = ((self.bodies, "body", "bodies"), (self.joints, "joint", "joints"))
        text = ", ".join(f"{len(parts)} {one if len(parts) == 1 else many}" for parts, one, many in counts)
        n = len(self.elements) + len(self.time_loads)
        return f"MultibodyModel with {text}, {n} force element{'' if n == 1 else 's'}"

    # -- bodies and markers ----------------------------------------------------------------------------

    def body(
        self,
        name: str,
        mass: float,
        inertia: npt.ArrayLike,
        *,
        position: npt.ArrayLike = (0.0, 0.0, 0.0),
        orientation: npt.ArrayLike = (1.0, 0.0, 0.0, 0.0),
        velocity: npt.ArrayLike = (0.0, 0.0, 0.0),
        angular_velocity: npt.ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        """A rigid body: mass, inertia about the centre of mass in the body frame (principal moments or 3 x 3), start.

        `position` and `velocity` of the centre of mass in K0; `orientation` as Euler parameters `q0..q3` or as the
        rotation matrix from body to K0; `angular_velocity` in the body frame.

        >>> MultibodyModel().body("ball", 1.0, [0.1, 0.1, 0.1])
        """
        self._new_body(name)
        m, J = checks.inertia_matrix(name, mass, inertia)
        where = f"body '{name}'"
        start = np.concatenate(
            [
                checks.numbers(where, "position", position, (3,)),
                checks.unit_parameters(where, orientation),
                checks.numbers(where, "velocity", velocity, (3,)),
                checks.numbers(where, "angular_velocity", angular_velocity, (3,)),
            ]
        )
        self._add_body(Body(name, m, J, start))

    def planar_body(
        self,
        name: str,
        mass: float,
        inertia: float,
        *,
        position: npt.ArrayLike = (0.0, 0.0),
        angle: float = 0.0,
        velocity: npt.ArrayLike = (0.0, 0.0),
        angular_velocity: float = 0.0,
    ) -> None:
        """A body that moves in the x-y plane of K0 only; `inertia` about z, `angle` from the x axis.

        It is held in the plane by a planar joint; rows of other joints that only repeat that are left out.

        >>> MultibodyModel(gravity=(0, -9.81, 0)).planar_body("rod", 1.0, 1 / 12, position=(0.5, 0))
        """
        self._new_body(name)
        where = f"body '{name}'"
        J = float(checks.numbers(where, "inertia", inertia, ()))
        m, _ = checks.inertia_matrix(name, mass, [J, J, J])
        x, y = checks.numbers(where, "position", position, (2,))
        vx, vy = checks.numbers(where, "velocity", velocity, (2,))
        half = 0.5 * float(checks.numbers(where, "angle", angle, ()))
        w = float(checks.numbers(where, "angular_velocity", angular_velocity, ()))
        start = np.array([x, y, 0.0, np.cos(half), 0.0, 0.0, np.sin(half), vx, vy, 0.0, 0.0, 0.0, w])
        self._add_body(Body(name, m, J * np.eye(3), start, planar=True))

    def marker(
        self, name: str, body: str, point: npt.ArrayLike = (0.0, 0.0, 0.0), axes: npt.ArrayLike | None = None
    ) -> None:
        """A point fixed to a body (or to the ground), with axes (columns of a rotation matrix), in the body frame.

        >>> MultibodyModel().marker("origin", "ground")
        """
        where = f"marker '{name}'"
        _refuse_bad_name("marker", name)
        if name in self.markers:
            raise SetupError(f"{where} exists already (every body's name is a marker too); choose another name")
        self._known_body(where, body)
        at = checks.numbers(where, "point", point, (3,))
        turned = np.eye(3) if axes is None else checks.rotation_axes(where, "axes", axes)
        self.markers[name] = Marker(name, body, at, turned)

    # -- joints and drives -----------------------------------------------------------------------------

    def joint(self, name: str, kind: str, first: str, second: str) -> None:
        """A rigid joint between two markers; kinds and their axes are listed in `cosolve.multibody.model.joints`.

        >>> model = MultibodyModel()
        >>> model.body("ball", 1.0, [0.1, 0.1, 0.1])
        >>> model.joint("hold", "spherical", "ball", "ground")
        """
        where = f"joint '{name}'"
        _refuse_bad_name("joint", name)
        if name in self.joints:
            raise SetupError(f"{where} exists already; choose another name")
        if not isinstance(kind, str) or kind not in JOINTS:
            raise SetupError(f"{where}: unknown kind {kind!r}; choose one of {', '.join(JOINTS)}")
        self._two_markers(where, first, second)
        self.joints[name] = Joint(name, kind, first, second)

    def drive(
        self,
        body: str,
        *,
        position: OfTime | None = None,
        velocity: OfTime | None = None,
        acceleration: OfTime | None = None,
        orientation: OfTime | None = None,
        angular_velocity: OfTime | None = None,
        angular_acceleration: OfTime | None = None,
    ) -> None:
        """Prescribe the motion of a body as functions of time; what is not given stays as at the start.

        `position`, `velocity`, `acceleration` of the centre of mass in K0; `orientation` as Euler parameters or matrix;
        the angular rates in the body frame. Derivatives that are not given are differenced (fourth order, about 1e-10).

        >>> model = MultibodyModel()
        >>> model.body("cam", 1.0, [0.1, 0.1, 0.1])
        >>> model.drive("cam", orientation=lambda t: [np.cos(t), 0, 0, np.sin(t)])     # 2 rad/s about z
        """
        where = f"drive of '{body}'"
        self._known_body(where, body)
        if body == GROUND:
            raise SetupError("drive: the ground does not move; give the motion to a body and join others to it")
        if body in self.drives:
            raise SetupError(f"{where}: the body is driven already")
        given = (position, velocity, acceleration, orientation, angular_velocity, angular_acceleration)
        for function in given:
            if function is not None and not callable(function):
                raise SetupError(f"{where}: a motion is given by functions of time, not by {function!r}")
        for what, derivatives in ((position, given[1:3]), (orientation, given[4:])):
            if what is None and any(f is not None for f in derivatives):
                raise SetupError(f"{where}: a velocity or acceleration without its position is not enough; give both")
        self.drives[body] = Drive(body, *given)

    # -- forces ----------------------------------------------------------------------------------------

    def spring_damper(
        self,
        name: str,
        first: str,
        second: str,
        stiffness: float,
        damping: float = 0.0,
        length: float | None = None,
    ) -> None:
        """A spring and a damper along the line between two markers; `length=None`: unstressed at the start.

        >>> model = MultibodyModel()
        >>> model.body("ball", 1.0, [0.1, 0.1, 0.1], position=[0, 0, -1])
        >>> model.spring_damper("cord", "ball", "ground", stiffness=100.0)
        """
        where = self._new_element(name, first, second)
        data = np.zeros(16)
        data[0] = checks.positive(where, "stiffness", stiffness, zero=True)
        data[1] = checks.positive(where, "damping", damping, zero=True)
        if length is not None:
            data[2] = checks.positive(where, "length", length, zero=True)
        self.elements[name] = Element(name, SPRING, first, second, data, length is None)

    def bushing(
        self, name: str, first: str, second: str, stiffness: npt.ArrayLike, damping: npt.ArrayLike = 0.0
    ) -> None:
        """Stiffness and damping along and about the axes of the second marker: 1, 3 or 6 numbers each.

        One number holds for the three translations; three are those of x, y, z; six add the rotations, whose torques
        follow the rotation vector of the first marker relative to the second. Unstressed where the markers coincide.

        >>> model = MultibodyModel()
        >>> model.body("ball", 1.0, [0.1, 0.1, 0.1])
        >>> model.bushing("rubber", "ball", "ground", stiffness=[1e3, 1e3, 1e4, 10, 10, 10], damping=5.0)
        """
        where = self._new_element(name, first, second)
        data = np.zeros(16)
        for start, what, value in ((0, "stiffness", stiffness), (6, "damping", damping)):
            given = checks.numbers(where, what, value, (), (3,), (6,))
            if (given < 0).any():
                raise SetupError(f"{where}: {what} must not be negative")
            data[start : start + (6 if given.size == 6 else 3)] = given
        self.elements[name] = Element(name, BUSHING, first, second, data)

    def torsion_spring(
        self,
        name: str,
        first: str,
        second: str,
        stiffness: float,
        damping: float = 0.0,
        angle: float | None = None,
    ) -> None:
        """A torsion spring about the z axis of the second marker; the angle runs from its x axis to that of the first.

        The deflection is taken between -pi and pi; `angle=None`: unstressed at the start.

        >>> model = MultibodyModel()
        >>> model.body("ball", 1.0, [0.1, 0.1, 0.1])
        >>> model.torsion_spring("wire", "ball", "ground", stiffness=2.0, angle=0.1)
        """
        where = self._new_element(name, first, second)
        data = np.zeros(16)
        data[0] = checks.positive(where, "stiffness", stiffness, zero=True)
        data[1] = checks.positive(where, "damping", damping, zero=True)
        if angle is not None:
            data[2] = float(checks.numbers(where, "angle", angle, ()))
        self.elements[name] = Element(name, TORSION, first, second, data, angle is None)

    def load(
        self,
        target: str,
        *,
        force: npt.ArrayLike | Callable[[float], Any] | None = None,
        torque: npt.ArrayLike | Callable[[float], Any] | None = None,
        frame: str = "ground",
    ) -> None:
        """A force at a marker and a torque on its body, constant or functions of time, in K0 or in the body frame.

        Functions are called from Python at every evaluation, so constants are much faster.

        >>> model = MultibodyModel()
        >>> model.body("ball", 1.0, [0.1, 0.1, 0.1])
        >>> model.load("ball", torque=lambda t: [0.3 * np.sin(5 * t), 0, 0], frame="body")
        """
        where = f"load on '{target}'"
        marker = self._known_marker(where, target)
        if marker.body == GROUND:
            raise SetupError(f"{where}: the marker belongs to the ground, where a load does nothing")
        choice(where, "frame", frame, ("ground", "body"))
        if force is None and torque is None:
            raise SetupError(f"{where}: give a force, a torque or both")
        functions = {"force": force, "torque": torque}
        moving = {key: value for key, value in functions.items() if callable(value)}
        if moving:
            self.time_loads.append(TimeLoad(target, moving.get("force"), moving.get("torque"), frame == "body"))
        data = np.zeros(16)
        for start, key in ((0, "force"), (3, "torque")):
            value = functions[key]
            if value is not None and not callable(value):
                data[start : start + 3] = checks.numbers(where, key, value, (3,))
        if data.any():
            name = f"load {len(self.elements) + 1} on {target}"
            second = marker.body if frame == "body" else GROUND
            self.elements[name] = Element(name, CONSTANT_LOAD, target, second, data)

    # -- checks ----------------------------------------------------------------------------------------

    def _new_body(self, name: str) -> None:
        _refuse_bad_name("body", name)
        if name in self.markers:
            raise SetupError(f"body '{name}': the name is taken by a body, a marker or the ground; choose another one")

    def _add_body(self, body: Body) -> None:
        self.bodies[body.name] = body
        self.markers[body.name] = Marker(body.name, body.name, np.zeros(3), np.eye(3))

    def _known_body(self, where: str, body: str) -> None:
        if not isinstance(body, str) or (body != GROUND and body not in self.bodies):
            raise SetupError(f"{where}: there is no body {body!r}; {did_you_mean(body, [GROUND, *self.bodies])}")

    def _known_marker(self, where: str, marker: str) -> Marker:
        if not isinstance(marker, str) or marker not in self.markers:
            raise SetupError(f"{where}: there is no marker {marker!r}; {did_you_mean(marker, self.markers)}")
        return self.markers[marker]

    def _two_markers(self, where: str, first: str, second: str) -> None:
        a, b = self._known_marker(where, first), self._known_marker(where, second)
        if a.body == b.body:
            raise SetupError(f"{where}: both markers belong to '{a.body}'; it must join two different bodies")

    def _new_element(self, name: str, first: str, second: str) -> str:
        _refuse_bad_name("force element", name)
        where = f"force element '{name}'"
        if name in self.elements:
            raise SetupError(f"{where} exists already; choose another name")
        self._two_markers(where, first, second)
        return where


def _refuse_bad_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name or "." in name:
        raise SetupError(f"a {what} needs a non-empty name without a dot, not {name!r}")
