"""A joint between bodies of two subsystems, as the user describes it, and the basic parts it is made of.

As in Lu (2015), 2.2.2.4, every joint is a list of the three basic parts atpoint, inplane and perpendicular. What a kind
consists of stands in the table of joints (`multibody/model/joints.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector, doubles
from cosolve.basics.wording import did_you_mean
from cosolve.errors import SetupError
from cosolve.multibody.equations.coupling_loads import ATPOINT, INPLANE, Attachment
from cosolve.multibody.model.arrays import PERPENDICULAR, PLANE, POINT
from cosolve.multibody.model.joints import KINDS, X, Y, Z

SIDES = ("force", "displacement")
FORMULATIONS = ("standard", "alternative", "simplified")


class Part(NamedTuple):
    """One basic part: its code, and directions (body frames; zero where unused) on both bodies."""

    code: int
    e_i: Vector
    e_j: Vector


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint between markers of two subsystems; rigid unless it has a stiffness or a law.

    Parameters
    ----------
    kind : str
        "spherical" ("atpoint"), "inplane", "inline", "perpendicular", "universal", "revolute", "cylindrical",
        "translational", "planar", "orientation" or "fixed".
    first : str
        "subsystem.marker" on the first body.
    second : str
        "subsystem.marker" on the second body. Planes and lines are fixed to it.
    axis : sequence of float or None, default None
        Direction in the inertial frame at the start: axis of a revolute, cylindrical or translational joint, normal of
        the plane ("inplane", "planar"), line of motion ("inline"), or the direction on the first body of "universal"
        and "perpendicular". None: the z axes of the markers, or x of the first and y of the second for a pair.
    second_axis : sequence of float or None, default None
        Direction on the second body, for "universal" and "perpendicular".
    name : str, default ""
        Name of the joint. Empty: made of kind and markers.
    stiffness : array_like or None, default None
        Translational stiffness in N/m: one number, or three along the inertial axes. It makes the joint flexible.
    damping : array_like, default 0.0
        Translational damping in N s/m, likewise.
    rotational_stiffness : float or None, default None
        Rotational stiffness in N m per unit cosine.
    rotational_damping : float, default 0.0
        Rotational damping in N m s per unit cosine.
    law : callable or None, default None
        In place of stiffness and damping: `law(deflection, rate)` returns all forces and torques on the first body,
        forces first.
    approach : str, default "force/force"
        What enters the two subsystems of a flexible joint: "force", or "displacement", the motion of the other body, so
        that the subsystem evaluates the law itself.
    formulation : {"standard", "alternative", "simplified"}, default "standard"
        "alternative" exchanges the torque as a vector instead of orientations; "simplified" holds the pose of the other
        body over the macro step (order 1).
    scaled : bool, default False
        Make the value of a perpendicular part the size of its torque.

    References
    ----------
    .. [1] D. Lu, Semi-implizite Co-Simulationsverfahren, dissertation, Technical University of Darmstadt, 2015.

    Examples
    --------
    >>> import cosolve as cs
    >>> cs.multibody.Joint("spherical", "left.tip", "right.base", stiffness=1e5, damping=1e2, name="ball").flexible
    True
    >>> cs.multibody.Joint("revolute", "left.tip", "right.base", axis=(0, 0, 1)).flexible
    False
    """

    kind: str
    first: str
    second: str
    axis: Sequence[float] | None = None
    second_axis: Sequence[float] | None = None
    name: str = ""
    stiffness: npt.ArrayLike | None = None
    damping: npt.ArrayLike = 0.0
    rotational_stiffness: float | None = None
    rotational_damping: float = 0.0
    law: Callable[[Vector, Vector], npt.ArrayLike] | None = None
    approach: str = "force/force"
    formulation: Literal["standard", "alternative", "simplified"] = "standard"
    scaled: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SetupError(f"joint: unknown kind {self.kind!r}; {did_you_mean(self.kind, KINDS, most=len(KINDS))}")
        for address in (self.first, self.second):
            if not isinstance(address, str) or address.count(".") != 1:
                raise SetupError(f"joint: {address!r} is not an address of the form 'subsystem.marker'")
        if not isinstance(self.name, str) or "." in self.name:
            raise SetupError(f"joint: name must be a name without a dot, not {self.name!r}")
        if not self.name:
            object.__setattr__(
                self, "name", "_".join([self.kind, *(a.split(".")[1] for a in (self.first, self.second))])
            )
        if self.subsystems[0] == self.subsystems[1]:
            raise SetupError(
                f"joint '{self.name}': '{self.first}' and '{self.second}' belong to the same subsystem "
                f"'{self.subsystems[0]}'; put this joint into its model, or cut the model in two"
            )
        for what in ("axis", "second_axis"):
            if getattr(self, what) is not None:
                object.__setattr__(self, what, self._direction(what, getattr(self, what)))
        if (self.axis is None) != (self.second_axis is None) and self.needs_second_axis:
            raise SetupError(
                f"joint '{self.name}': a {self.kind} joint joins two directions; give axis=... for the first body and "
                "second_axis=... for the second, or none of them"
            )
        if self.second_axis is not None and not self.needs_second_axis:
            raise SetupError(f"joint '{self.name}': a {self.kind} joint has no second axis; leave second_axis out")
        self._check_law()
        sides = self.approach.split("/") if isinstance(self.approach, str) else []
        if len(sides) != 2 or any(side not in SIDES for side in sides):
            raise SetupError(
                f"joint '{self.name}': approach must be 'force/force', 'force/displacement', 'displacement/force' or "
                f"'displacement/displacement', not {self.approach!r}"
            )
        if not self.flexible and self.approach != "force/force":
            raise SetupError(
                f"joint '{self.name}' is rigid, so both sides get its force; approach='{self.approach}' belongs to "
                "flexible joints (give a stiffness or a law)"
            )
        self._check_formulation()

    def _direction(self, what: str, given: Any) -> Vector:
        direction = doubles(given).reshape(-1)
        length = float(np.linalg.norm(direction))
        if len(direction) != 3 or not np.isfinite(length) or length == 0.0:
            raise SetupError(f"joint '{self.name}': {what} must be three numbers, not all zero, not {given!r}")
        return direction / length

    def _check_law(self) -> None:
        if self.law is not None and not callable(self.law):
            raise SetupError(f"joint '{self.name}': law must be a function of (deflection, rate), not {self.law!r}")
        linear = self.stiffness is not None or self.rotational_stiffness is not None
        if self.law is not None and linear:
            raise SetupError(f"joint '{self.name}': give either a stiffness or a law, not both")
        for what, size in (("stiffness", 3), ("damping", 3), ("rotational_stiffness", 1), ("rotational_damping", 1)):
            value = getattr(self, what)
            if value is None:
                continue
            numbers = doubles(value)
            if numbers.size not in (1, size) or not (np.isfinite(numbers).all() and (numbers >= 0).all()):
                many = "a number" if size == 1 else "one number or three, each"
                raise SetupError(f"joint '{self.name}': {what} must be {many} of at least 0, not {value!r}")
        if linear:
            codes = {part.kind for part in KINDS[self.kind]}
            if codes & {POINT, PLANE} and self.stiffness is None:
                raise SetupError(f"joint '{self.name}': a flexible {self.kind} joint needs stiffness=... (N/m)")
            if PERPENDICULAR in codes and self.rotational_stiffness is None:
                raise SetupError(
                    f"joint '{self.name}': a flexible {self.kind} joint needs rotational_stiffness=... (N m)"
                )
        elif self.law is None and (np.any(np.asarray(self.damping) != 0) or self.rotational_damping):
            raise SetupError(
                f"joint '{self.name}': damping belongs to a flexible joint; add stiffness=..., or 0 for a mere damper"
            )

    def _check_formulation(self) -> None:
        if self.formulation not in FORMULATIONS:
            raise SetupError(
                f"joint '{self.name}': formulation must be one of {', '.join(FORMULATIONS)}, not {self.formulation!r}"
            )
        if self.formulation == "standard":
            return
        if not self.flexible or self.approach != "force/force":
            raise SetupError(
                f"joint '{self.name}': the {self.formulation} formulation belongs to flexible joints with "
                "approach='force/force'"
            )
        if self.formulation == "alternative" and any(part.kind == PLANE for part in KINDS[self.kind]):
            raise SetupError(
                f"joint '{self.name}': the alternative formulation replaces torques of perpendicular parts; a "
                f"{self.kind} joint has inplane parts, use formulation='standard'"
            )

    @property
    def flexible(self) -> bool:
        """True when the joint follows a force law instead of holding exactly."""
        return self.stiffness is not None or self.rotational_stiffness is not None or self.law is not None

    @property
    def needs_second_axis(self) -> bool:
        """True for joints between two independent directions."""
        return any(part.pair for part in KINDS[self.kind])

    @property
    def subsystems(self) -> tuple[str, str]:
        """Names of the two subsystems."""
        return self.first.split(".")[0], self.second.split(".")[0]

    @property
    def sides(self) -> tuple[str, str]:
        """What enters the first and the second subsystem: "force" or "displacement"."""
        first, second = self.approach.split("/")
        return first, second

    def parts(self, at_i: Attachment, at_j: Attachment) -> list[Part]:
        """Return the basic parts of the joint.

        Parameters
        ----------
        at_i : Attachment
            Marker on the first body.
        at_j : Attachment
            Marker on the second body.

        Returns
        -------
        list of Part
            The parts, with directions in the frames of the bodies.
        """
        if self.axis is None:  # the markers' own axes
            on_i, on_j = ({axis: at.frame[:, axis] for axis in (X, Y, Z)} for at in (at_i, at_j))
            pair = on_i[X], on_j[Y]
        else:
            e, f, g = triad(np.asarray(self.axis))
            on_i, on_j = ({Z: at.T.T @ e, X: at.T.T @ f, Y: at.T.T @ g} for at in (at_i, at_j))
            second = e if self.second_axis is None else np.asarray(self.second_axis)
            pair = on_i[Z], at_j.T.T @ second
        nothing = np.zeros(3)
        found = []
        for part in KINDS[self.kind]:
            if part.kind == POINT:
                found.append(Part(ATPOINT, nothing, nothing))
            elif part.kind == PLANE:
                found.append(Part(INPLANE, nothing, on_j[part.second]))
            else:
                directions = pair if part.pair else (on_i[part.first], on_j[part.second])
                found.append(Part(PERPENDICULAR, *directions))
        return found

    def labels(self) -> list[str]:
        """Name the conditions of the joint.

        Returns
        -------
        list of str
            One per multiplier: x, y, z; plane; angle.
        """
        kinds = [part.kind for part in KINDS[self.kind]]
        found = ["x", "y", "z"] * kinds.count(POINT)
        for kind, text in ((PLANE, "plane"), (PERPENDICULAR, "angle")):
            count = kinds.count(kind)
            found += [text] if count == 1 else [f"{text} {k + 1}" for k in range(count)]
        return found


def triad(axis: Vector) -> tuple[Vector, Vector, Vector]:
    """`axis` and two unit vectors that complete it to a right-handed orthogonal triad.

    >>> triad(np.array([0.0, 0.0, 1.0]))
    (array([0., 0., 1.]), array([1., 0., 0.]), array([0., 1., 0.]))
    """
    e = axis / np.linalg.norm(axis)
    k = int(np.argmin(np.abs(e)))
    helper = np.zeros(3)
    helper[k] = 1.0
    f = helper - e * e[k]
    f /= np.linalg.norm(f)
    return e, f, np.cross(e, f)
