"""A cylinder in a cross flow, as every solver for it is coupled: the transverse velocity in, the forces out.

The cylinder is rigid and moves across the flow only, so the solvers compute in a frame that moves with it. Nothing
of a lattice or a mesh has to move then, no nodes are covered or laid bare (which would be heard in the force), one
factorisation lasts for a run, and the interface is one number each way. Forces are those on the body, in the frame at
rest: the inertia of the fluid is in them, that of the body is not.

Solvers take steps of a fixed length of their own; a macro step is a whole number of them. A signal inside the macro
step is followed step by step; one that is held (degree 0) says only where the velocity ends, and is taken as a straight
line from where it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import cosolve as cs

#: How far a macro step may be from a whole number of steps of the solver, in steps: what rounding makes of it.
_WHOLE = 1e-6


def positive(owner: str, name: str, value: float) -> float:
    """`value` where it is a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value < np.inf:
        raise cs.errors.SetupError(f"{owner}: {name} must be a positive number, not {value!r}")
    return float(value)


@dataclass(frozen=True)
class CrossFlow:
    """A uniform flow across a cylinder, in SI units.

    Parameters
    ----------
    velocity : float
        Velocity of the flow in m/s.
    diameter : float
        Diameter of the cylinder in m.
    viscosity : float
        Kinematic viscosity in m^2/s.
    density : float, default 1000.0
        Density in kg/m^3.
    span : float, default 1.0
        Length of the cylinder in m that forces are for.

    Examples
    --------
    >>> water = CrossFlow(velocity=0.06802, diameter=1.6e-3, viscosity=1e-6, density=1000.0, span=0.12)
    >>> round(water.Re, 2)
    108.83
    """

    velocity: float
    diameter: float
    viscosity: float  # kinematic
    density: float = 1000.0
    span: float = 1.0

    def __post_init__(self) -> None:
        for name in ("velocity", "diameter", "viscosity", "density", "span"):
            positive("CrossFlow", name, getattr(self, name))

    @property
    def Re(self) -> float:
        """Reynolds number with the diameter."""
        return self.velocity * self.diameter / self.viscosity

    @property
    def unit_force(self) -> float:
        """`rho V^2 D L / 2`: the force of a coefficient of one, N.

        >>> CrossFlow(velocity=2.0, diameter=1.0, viscosity=1.0, density=3.0).unit_force
        6.0
        """
        return 0.5 * self.density * self.velocity**2 * self.diameter * self.span

    @property
    def unit_time(self) -> float:
        """`D / V`: the time the flow takes for a diameter, s.

        >>> CrossFlow(velocity=2.0, diameter=1.0, viscosity=1.0).unit_time
        0.5
        """
        return self.diameter / self.velocity


class CylinderFlow(cs.fields.FieldSubsystem):
    """What the solvers for a cylinder in a cross flow have in common; `h` is the length of a solver's own step, s.

    Input `v`, the transverse velocity of the cylinder (m/s); outputs `lift` (with `v`) and `drag` (with the flow), N.
    A solver says how to be put at its start, and how to advance over one macro step with velocities at the ends of its
    steps.
    """

    variable_step = False  # steps of its own begin and end at macro points

    def __init__(self, flow: CrossFlow, step: float) -> None:
        if not isinstance(flow, CrossFlow):
            raise cs.errors.SetupError(f"{type(self).__name__}: the flow is given as a CrossFlow, not as {flow!r}")
        self.flow, self.h = flow, positive(type(self).__name__, "step", step)
        self.inputs = (cs.Port("v", unit="m/s", nominal=flow.velocity),)
        self.outputs = tuple(cs.Port(name, unit="N", nominal=flow.unit_force) for name in ("lift", "drag"))
        self._v = self._y = 0.0
        self._force = np.zeros(2)

    # -- what a solver defines -------------------------------------------------------------------------------

    def at_start(self, v: float) -> None:
        """Go to the first state.

        Parameters
        ----------
        v : float
            Transverse velocity of the cylinder in m/s.
        """
        raise NotImplementedError

    def march(self, v: np.ndarray, t0: float) -> tuple[float, float]:
        """Take own steps over one macro step.

        Parameters
        ----------
        v : ndarray
            Transverse velocities of the cylinder at the ends of the steps in m/s.
        t0 : float
            Start of the macro step in seconds.

        Returns
        -------
        tuple of (float, float)
            Lift and drag at its end in N.
        """
        raise NotImplementedError

    def fields(self) -> Any:
        """Return a copy of the fields that the next step depends on.

        Returns
        -------
        object
            The state.
        """
        raise NotImplementedError

    def set_fields(self, fields: Any) -> None:
        """Go back to saved fields.

        Parameters
        ----------
        fields : object
            What `fields` returned.
        """
        raise NotImplementedError

    # -- the contract ----------------------------------------------------------------------------------------

    @property
    def displacement(self) -> float:
        """How far the cylinder has moved across the flow since the start, m."""
        return self._y

    def start(self, t0: float) -> np.ndarray:
        self._v, self._y, self._force = 0.0, 0.0, np.zeros(2)
        self.at_start(0.0)
        return self._force.copy()

    def begin(self, t0: float, u: np.ndarray) -> np.ndarray:
        self._v = float(u[0])
        self.at_start(self._v)
        return self._force.copy()

    def advance(self, t0: float, t1: float, u: cs.InputSignal) -> np.ndarray:
        v = self._velocities(u)
        if not np.isfinite(v).all():
            raise cs.errors.SubsystemError(
                f"the velocity of the cylinder is {v[~np.isfinite(v)][0]} after t = {t0:.9g}"
            )
        lift, drag = self.march(v, t0)
        if not (np.isfinite(lift) and np.isfinite(drag)):
            raise cs.errors.SubsystemError(
                f"the flow has no finite force on the cylinder at t = {t1:.9g}: its solver has become unstable; take a "
                f"smaller step than {self.h:g} s"
            )
        before = np.concatenate([[self._v], v[:-1]])
        self._y += 0.5 * self.h * float((before + v).sum())
        self._v = float(v[-1])
        self._force = np.array([lift, drag])
        return self._force.copy()

    def save(self) -> dict[str, Any]:
        return {"v": self._v, "y": self._y, "force": self._force.copy(), "fields": self.fields()}

    def restore(self, state: dict[str, Any]) -> None:
        self._v, self._y, self._force = float(state["v"]), float(state["y"]), np.array(state["force"])
        self.set_fields(state["fields"])

    def _velocities(self, u: cs.InputSignal) -> np.ndarray:
        """At the ends of the steps inside the macro step."""
        n = round(u.H / self.h)
        if n < 1 or abs(u.H / self.h - n) > _WHOLE:
            raise cs.errors.SetupError(
                f"{type(self).__name__}: a macro step of {u.H:.9g} s is no whole number of steps of {self.h:.9g} s; "
                f"{max(n, 1) * self.h:.9g} s would do"
            )
        s = np.arange(1, n + 1) / n
        if u.degree == 0:
            return np.asarray(self._v + s * (u.end[0] - self._v))
        inside = [float(c) for c in u.coefficients[:, 0]]
        v = np.zeros(n)
        for c in reversed(inside):
            v = v * s + c
        v[-1] = u.end[0]
        return v
