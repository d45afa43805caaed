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
    """The description of rigid bodies and of what acts between them.

    `MultibodySubsystem` or `assemble` makes subsystems of it. Frames: K0 is the inertial frame; a body frame has its
    origin at the centre of mass. SI units, or any consistent set. Every body name, and "ground", is also a marker at
    the centre of mass (the origin), with the axes of the body.

    Parameters
    ----------
    gravity : array_like, default (0, 0, -9.81)
        Gravity in K0, in m/s^2.

    Examples
    --------
    >>> import cosolve as cs
    >>> model = cs.multibody.MultibodyModel()
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
        """Add a rigid body.

        Parameters
        ----------
        name : str
            Its name.
        mass : float
            Mass in kg.
        inertia : array_like
            Inertia about the centre of mass in the body frame, in kg m^2: three principal moments or a 3 x 3 matrix.
        position : array_like, default (0, 0, 0)
            Initial position of the centre of mass in K0.
        orientation : array_like, default (1, 0, 0, 0)
            Initial orientation: Euler parameters, or the rotation matrix from body to K0.
        velocity : array_like, default (0, 0, 0)
            Initial velocity of the centre of mass in K0.
        angular_velocity : array_like, default (0, 0, 0)
            Initial angular velocity in the body frame, in rad/s.

        Examples
        --------
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
        """Add a body that moves in the x-y plane of K0 only.

        It is held in the plane by a planar joint; rows of other joints that repeat that are left out.

        Parameters
        ----------
        name : str
            Its name.
        mass : float
            Mass in kg.
        inertia : float
            Inertia about z at the centre of mass in kg m^2.
        position : array_like, default (0, 0)
            Initial position of the centre of mass.
        angle : float, default 0.0
            Initial angle from the x axis in rad.
        velocity : array_like, default (0, 0)
            Initial velocity of the centre of mass.
        angular_velocity : float, default 0.0
            Initial angular velocity in rad/s.

        Examples
        --------
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
        """Add a point with axes that is fixed to a body or to the ground.

        Parameters
        ----------
        name : str
            Its name.
        body : str
            Name of the body, or "ground".
        point : array_like, default (0, 0, 0)
            Position in the body frame.
        axes : array_like or None, default None
            Axes in the body frame, columns of a rotation matrix. None: those of the body.

        Examples
        --------
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
        """Add a rigid joint between two markers of this model.

        Parameters
        ----------
        name : str
            Its name.
        kind : str
            As for `Joint`; axes are those of the markers, see `cosolve.multibody.model.joints`.
        first : str
            First marker.
        second : str
            Second marker.

        Examples
        --------
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
        """Prescribe the motion of a body by functions of time.

        Parameters
        ----------
        body : str
            Its name.
        position : callable or None, default None
            Position of the centre of mass in K0. None: as at the start.
        velocity : callable or None, default None
            Its derivative. None: difference quotients of order 4.
        acceleration : callable or None, default None
            Its second derivative, likewise.
        orientation : callable or None, default None
            Euler parameters or rotation matrix. None: as at the start.
        angular_velocity : callable or None, default None
            Angular velocity in the body frame. None: difference quotients.
        angular_acceleration : callable or None, default None
            Its derivative, likewise.

        Examples
        --------
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
        """Add a spring and a damper along the line between two markers.

        Parameters
        ----------
        name : str
            Its name.
        first : str
            First marker.
        second : str
            Second marker.
        stiffness : float
            Stiffness in N/m.
        damping : float, default 0.0
            Damping in N s/m.
        length : float or None, default None
            Unstressed length in m. None: the length at the start.

        Examples
        --------
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
        """Add stiffness and damping along and about the axes of the second marker.

        Parameters
        ----------
        name : str
            Its name.
        first : str
            First marker.
        second : str
            Second marker.
        stiffness : array_like
            One number for the three translations, three for x, y and z (N/m), or six with the rotations (N m/rad),
            whose torques follow the rotation vector of the first marker relative to the second.
        damping : array_like, default 0.0
            Likewise, in N s/m and N m s/rad.

        Examples
        --------
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
        """Add a torsion spring about the z axis of the second marker.

        Parameters
        ----------
        name : str
            Its name.
        first : str
            First marker. The angle is from the x axis of the second to that of the first, between -pi and pi.
        second : str
            Second marker.
        stiffness : float
            Stiffness in N m/rad.
        damping : float, default 0.0
            Damping in N m s/rad.
        angle : float or None, default None
            Unstressed angle in rad. None: the angle at the start.

        Examples
        --------
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
        """Add a force at a marker and a torque on its body.

        Parameters
        ----------
        target : str
            The marker.
        force : array_like, callable or None, default None
            Force in N, constant or a function of time. Constants are much faster.
        torque : array_like, callable or None, default None
            Torque in N m, likewise.
        frame : {"ground", "body"}, default "ground"
            Frame of both: K0 or the body.

        Examples
        --------
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
