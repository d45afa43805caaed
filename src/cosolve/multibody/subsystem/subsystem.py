"""A multibody model as a subsystem: forces in, motion out, exact rollback, drift remedies in every internal step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import SetupError
from cosolve.multibody.equations import observe
from cosolve.multibody.equations.entries import motion_of
from cosolve.multibody.equations.links import linked
from cosolve.multibody.equations.python_callbacks import Outside
from cosolve.multibody.model.arrays import BETA_SQUARED, STATE, TWO_ALPHA
from cosolve.multibody.model.build import build, consistent_start, violations
from cosolve.multibody.model.model import MultibodyModel
from cosolve.multibody.model.parts import Marker
from cosolve.multibody.subsystem.advance import Stepping
from cosolve.multibody.subsystem.memory import Memory
from cosolve.multibody.subsystem.options import checked
from cosolve.multibody.subsystem.ports import lay_out
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.native import Native
from cosolve.subsystem.port import Port

#: Extra outputs on request: name -> unit. `multipliers` has one entry per constraint row.
MONITORS = {"energy": "J", "position_residual": "", "velocity_residual": "", "multipliers": ""}

_MOST_DRAWN = 40  # markers of a body


class MultibodySubsystem(Subsystem):
    """Rigid bodies in absolute coordinates as a subsystem, coupled at markers or through joint ends.

    Parameters
    ----------
    model : MultibodyModel
        The bodies.
    form : {"projection", "position_projection", "baumgarte", "ggl", "index_1"}, default "projection"
        Treatment of drift: projection of positions and velocities after each internal step; of positions only;
        Baumgarte stabilisation; stabilised index 2 (Gear-Gupta-Leimkuhler); none (drifts).
    integrator : {"auto", "dopri5", "rk4", "radau"}, default "auto"
        "dopri5" with error control, "rk4" or "radau" with fixed steps. "auto": "dopri5", or "radau" for "ggl".
    internal_step : float or None, default None
        Largest step of the integrators with fixed steps in seconds.
    rtol : float, default 1e-8
        Relative tolerance of "dopri5".
    atol : float, default 1e-10
        Absolute tolerance of "dopri5".
    ports : sequence of str or (str, sequence of str), optional
        Markers that get ports, see the Notes; with a list, the inputs to have.
    ends : sequence of End, optional
        Ends of joints, from `assemble`.
    coordinates : {"euler_parameters", "euler_angles"}, default "euler_parameters"
        Coordinates of the orientations.
    alpha : float or None, default None
        Baumgarte parameter of velocities, `g'' + 2 alpha g' + beta^2 g = 0`. None: `beta` (critical damping).
    beta : float or None, default None
        Baumgarte parameter of positions. None: `alpha`, or a default.
    stages : {2, 3}, default 3
        Stages of "radau".
    initial : {"refuse", "find"}, default "refuse"
        Refuse inconsistent initial values, or find consistent ones near them (`initial_change` says how far).
    redundant : {"refuse", "drop"}, default "refuse"
        Refuse or drop repeated constraints.
    monitors : sequence of str, optional
        Further outputs: "energy", "position_residual", "velocity_residual" (largest entries), "multipliers".
    sensitivities : bool, default False
        Provide the `jacobian` from integrated sensitivities, at about the cost of difference quotients and without
        their rounding. For explicit integrators and Euler parameters, without Python functions and monitors.

    Notes
    -----
    Ports at a marker `tip`, from the entry "tip", or ("tip", ["force", "torque", "shift", "turn"]) to choose inputs:

    | port | size | unit | frame, point |
    |---|---|---|---|
    | `tip_force` in | 3 | N | K0, at the marker |
    | `tip_torque` in | 3 | N m | K0 |
    | `tip_shift` in | 3 | m/s | K0; `V_c` in `r' = v + V_c` of the centre of mass |
    | `tip_turn` in | 3 | rad/s | body; `Omega_c` in `q' = P^T (omega + Omega_c) / 4` |
    | `tip_position` out | 3 | m | K0 |
    | `tip_orientation` out | 4 | | Euler parameters of the body frame in K0 |
    | `tip_velocity`, `tip_acceleration` out | 3 | m/s, m/s^2 | K0, of the marker |
    | `tip_angular_velocity`, `tip_angular_acceleration` out | 3 | rad/s, rad/s^2 | body |

    Joint ends have inputs of their own; their outputs `<end>_r`, `_q`, `_v`, `_w`, `_a`, `_alpha` are those of the
    centre of mass of the body, in the same frames.

    References
    ----------
    .. [1] C. W. Gear, G. K. Gupta, B. Leimkuhler, Automatic integration of Euler-Lagrange equations with constraints,
       Journal of Computational and Applied Mathematics 12-13, 1985.
    .. [2] C. Woernle, Mehrkörpersysteme, Springer, 2011.

    Examples
    --------
    >>> import cosolve as cs
    >>> model = cs.multibody.MultibodyModel()
    >>> model.body("bob", mass=1.0, inertia=[0.1, 0.1, 0.1], position=[0, 0, -1])
    >>> model.marker("top", "bob", [0, 0, 1])
    >>> model.joint("hook", "spherical", "top", "ground")
    >>> pendulum = cs.multibody.MultibodySubsystem(model, ports=["bob"])
    >>> sorted(cs.capabilities(pendulum))
    ['compiled step', 'output', 'replay', 'rollback', 'state']
    >>> pendulum.start(0.0)[13:16]                               # at rest: no acceleration
    array([0., 0., 0.])
    """

    settings = ("_made_of",)

    def __init__(
        self,
        model: MultibodyModel,
        *,
        form: str = "projection",
        integrator: str = "auto",
        internal_step: float | None = None,
        rtol: float = 1e-8,
        atol: float = 1e-10,
        ports: Sequence[Any] = (),
        ends: Sequence[Any] = (),
        coordinates: str = "euler_parameters",
        alpha: float | None = None,
        beta: float | None = None,
        stages: int = 3,
        initial: str = "refuse",
        redundant: str = "refuse",
        monitors: Sequence[str] = (),
        sensitivities: bool = False,
    ) -> None:
        if not isinstance(model, MultibodyModel):
            raise SetupError(f"MultibodySubsystem takes a MultibodyModel, not a {type(model).__name__}")
        self.options = checked(form, integrator, internal_step, rtol, atol, alpha, beta, stages, coordinates)
        for what, value, known in (
            ("initial", initial, ("refuse", "find")),
            ("redundant", redundant, ("refuse", "drop")),
        ):
            if value not in known:
                raise SetupError(f"MultibodySubsystem: {what} must be '{known[0]}' or '{known[1]}', not {value!r}")
        for monitor in monitors:
            if monitor not in MONITORS:
                raise SetupError(f"MultibodySubsystem: unknown monitor {monitor!r}; choose from {', '.join(MONITORS)}")
        self.model, self._initial, self._monitors = model, initial, tuple(monitors)
        self.built = build(model, coordinates=coordinates, redundant=redundant)
        layout = lay_out(self.built, ports, ends)
        numbers = self.built.arrays.numbers.copy()
        numbers[TWO_ALPHA], numbers[BETA_SQUARED] = 2.0 * self.options.alpha, self.options.beta**2
        self.arrays = linked(
            self.built.arrays._replace(
                numbers=numbers, ports=layout.ports, ends=layout.ends, end_constants=layout.end_constants
            )
        )
        self.inputs = layout.inputs
        sizes = {"multipliers": len(self.built.row_names)}
        self.outputs = [*layout.outputs, *(Port(m, sizes.get(m), MONITORS[m]) for m in self._monitors)]
        self._seen = layout.seen
        marked = [port.name.removesuffix("_position") for port in layout.outputs if port.name.endswith("_position")]
        self._frames = dict(zip(marked, marked, strict=True)) | {end.name: end.body for end in ends}
        points = {name: marker.point for name, marker in model.markers.items()}
        self._outside = Outside(self.built, list(model.drives.values()), model.time_loads, points, layout.laws)
        self._n_inputs = sum(port.length for port in layout.inputs)
        memory = Memory(self.arrays, self.options, self._outside.still, self._seen, self._n_inputs)
        self._stepping = Stepping(self.built, self.arrays, self.options, self._outside, memory)
        self._t = 0.0
        self.x = self._consistent(0.0)
        if sensitivities:
            reasons = {
                "integrator='radau'": self.options.integrator == "radau",
                "Euler angles": coordinates != "euler_parameters",
                "Python functions as loads, drives or laws": self._outside.needed,
                "monitors": bool(monitors),
            }
            against = [reason for reason, there in reasons.items() if there]
            if against:
                raise SetupError(
                    f"MultibodySubsystem: sensitivities do not go with {', '.join(against)}; leave one of them out"
                )
            self.jacobian = self._jacobian

    @property
    def noise(self) -> float:  # type: ignore[override]
        """Relative accuracy of the outputs of a step."""
        return self.options.rtol if self.options.integrator == "dopri5" else 1e-13

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """Names of the constraint rows, in the order of the multipliers."""
        return self.built.row_names

    @property
    def degrees_of_freedom(self) -> int:
        """Number of velocities of the free bodies, less the constraints."""
        return 6 * len(self.built.free) - len(self.built.row_names)

    def _consistent(self, t: float) -> Vector:
        x, self.initial_change = consistent_start(
            self.built, self.built.x0, self._outside.driven(t), self._initial, self._stepping.project
        )
        return x

    def start(self, t0: float) -> Vector:
        self.x, self._t = self._consistent(t0), t0
        self._stepping.carried = (0.0, 0.0)
        return self.output(t0, np.zeros(self._n_inputs))

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        self.x, self._t = self._stepping.integrate(t0, t1, self.x, u), t1
        return self.output(t1, u.end)

    def replay(self, t0: float, t1: float, u: InputSignal) -> Vector:
        self.x, self._t = self._stepping.replay(t0, t1, self.x, u), t1
        return self.output(t1, u.end)

    def output(self, t: float, u: Vector) -> Vector:
        y = self._stepping.outputs(t, self.x, u)
        if not self._monitors:
            return y
        driven, lam = self._outside.driven(t), self._stepping.memory.multipliers.copy()
        return np.concatenate([y, *(np.atleast_1d(self._monitor(m, driven, lam)) for m in self._monitors)])

    def _jacobian(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        if self.options.internal_step is None:  # on the grid that `advance` takes from here
            carried = self._stepping.carried
            self._stepping.integrate(t0, t1, self.x, u)
            self._stepping.carried = carried
        return self._stepping.response(t0, t1, self.x, u, weight, self._seen)

    @property
    def _made_of(self) -> dict[str, Any]:
        return vars(self.model)

    def native(self, H: float, degree: int) -> Native | str:
        from cosolve.multibody.subsystem.memory import multibody_native

        return multibody_native(self)

    def save(self) -> Any:
        return self.x, self._t, self._stepping.carried

    def restore(self, state: Any) -> None:
        self.x, self._t, self._stepping.carried = state

    def get_state(self) -> Vector:
        return self.x

    def set_state(self, x: Vector) -> None:
        self.x = np.array(x, dtype=np.float64)

    # -- looking inside --------------------------------------------------------------------------------

    def state_of(self, body: str) -> Vector:
        """Return the present motion of a body.

        Parameters
        ----------
        body : str
            Its name.

        Returns
        -------
        ndarray
            `(r, q, v, omega)`, 13 numbers: position and velocity in K0, Euler parameters, angular velocity in the body
            frame.
        """
        if body not in (*self.built.free, *self.built.others):
            raise SetupError(f"MultibodySubsystem: there is no body {body!r}; there are {', '.join(self.built.free)}")
        z = np.empty(STATE)
        motion_of(self.arrays, self.x, self._outside.driven(self._t), self.built.body_index(body), z)
        return z

    def body_shapes(self) -> dict[str, dict[str, Any]]:
        """Return the centre and the markers of the body of every port, for pictures.

        Returns
        -------
        dict
            By port: name of the body, centre and points, in the frame of the body, seen from the port. Results keep it
            in `result.meta["body_shapes"]`.

        Examples
        --------
        >>> import cosolve as cs
        >>> model = cs.multibody.MultibodyModel()
        >>> model.body("rod", mass=1.0, inertia=[1e-3, 0.1, 0.1])
        >>> model.marker("tip", "rod", [0.5, 0, 0])
        >>> cs.multibody.MultibodySubsystem(model, ports=["tip"]).body_shapes()
        {'tip': {'body': 'rod', 'centre': [-0.5, 0.0, 0.0], 'points': [[0.0, 0.0, 0.0]]}}
        """
        return {name: self._shape(self.model.markers[marker]) for name, marker in self._frames.items()}

    def _shape(self, at: Marker) -> dict[str, Any]:
        inside = [one.point for one in self.model.markers.values() if one.body == at.body and one.name != at.body]
        return {
            "body": at.body,
            "centre": (0.0 - at.point).tolist(),
            "points": [(point - at.point).tolist() for point in inside[:_MOST_DRAWN]],
        }

    def energy(self) -> float:
        """Compute kinetic energy of the free bodies and potential energy of gravity and springs.

        Returns
        -------
        float
            The energy in J.
        """
        return observe.energy(self.arrays, self.x, self._outside.driven(self._t))

    def momentum(self) -> tuple[Vector, Vector]:
        """Compute the momentum of the free bodies in K0.

        Returns
        -------
        tuple of (ndarray, ndarray)
            Linear momentum, and angular momentum about the origin.
        """
        return observe.momentum(self.arrays, self.x, self._outside.driven(self._t))

    def constraint_residuals(self) -> dict[str, tuple[float, float]]:
        """Compute the present constraint errors.

        Returns
        -------
        dict of str to (float, float)
            Value and rate of every constraint row.
        """
        c, rate = violations(self.built, self.x, self._outside.driven(self._t))
        return {name: (float(a), float(b)) for name, a, b in zip(self.built.row_names, c, rate, strict=True)}

    def _monitor(self, name: str, driven: Any, lam: Vector) -> Any:
        if name == "energy":
            return observe.energy(self.arrays, self.x, driven)
        if name == "multipliers":
            return lam
        values = violations(self.built, self.x, driven)[0 if name == "position_residual" else 1]
        return np.abs(values).max(initial=0.0)
