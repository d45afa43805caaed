"""Multibody models built in Exudyn (extra `cosolve[exudyn]`), coupled through the same joints as native ones.

Exudyn integrates, cosolve couples: the loads of the joint ends are user functions of Exudyn loads, every macro step is
one call of its dynamic solver, and a step is repeated by putting Exudyn's system state back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_number
from cosolve.basics.packages import optional
from cosolve.errors import SetupError, SubsystemError
from cosolve.multibody.equations.coupling_loads import STABILISED, Attachment, End, coupling_loads
from cosolve.multibody.equations.kinematics import parameters_of
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import Port

_INTEGRATORS = ("auto", "RK44", "RK67", "DOPRI5", "GeneralizedAlpha", "TrapezoidalIndex2")

#: Accelerations at an instant are read after one internal step this long (in units of the internal step).
_INSTANT = 1e-3


class ExudynModel:
    """A multibody model built in Exudyn, for `assemble`.

    Parameters
    ----------
    mbs : exudyn main system
        What `SystemContainer().AddSystem()` returned, with bodies and joints.
    markers : mapping of str to (body number, point)
        Points on rigid bodies by name, in the frame of the body, from its reference point.
    internal_step : float, default 1e-3
        Step of Exudyn in seconds.
    integrator : {"auto", "RK44", "RK67", "DOPRI5", "GeneralizedAlpha", "TrapezoidalIndex2"}, default "auto"
        Dynamic solver of Exudyn. "auto": "RK44" if there are no algebraic equations, else the trapezoidal rule.
    tolerance : float, default 1e-10
        Tolerance of Exudyn's Newton iterations.

    Notes
    -----
    `StabilisedIndex2` needs a correction of positions, which Exudyn does not offer: use `assemble(...,
    correction=False)` with `Baumgarte` or `WeightedMultipliers`.

    Examples
    --------
    >>> import cosolve as cs
    >>> def joined(mbs, body, crane):
    ...     load = cs.multibody.ExudynModel(mbs, {"hook": (body, [0, 0, 0.5])})
    ...     joint = cs.multibody.Joint("spherical", "crane.tip", "load.hook")
    ...     return cs.multibody.assemble({"load": load, "crane": crane}, [joint])
    """

    way_to_subsystem = "instead: join models with assemble(...), which makes subsystems of them"

    def __init__(
        self,
        mbs: Any,
        markers: Mapping[str, tuple[Any, npt.ArrayLike]],
        *,
        internal_step: float = 1e-3,
        integrator: str = "auto",
        tolerance: float = 1e-10,
    ) -> None:
        if not (hasattr(mbs, "SolveDynamic") and hasattr(mbs, "systemData")):
            raise SetupError(
                f"ExudynModel: mbs must be an Exudyn main system (SystemContainer().AddSystem()), not {mbs!r}"
            )
        for name, number in (("internal_step", internal_step), ("tolerance", tolerance)):
            if not (is_number(number) and number > 0):
                raise SetupError(f"ExudynModel: {name} must be a positive number, not {number!r}")
        if integrator not in _INTEGRATORS:
            raise SetupError(f"ExudynModel: unknown integrator {integrator!r}; choose one of {', '.join(_INTEGRATORS)}")
        self.mbs, self.tolerance = mbs, float(tolerance)
        self.internal_step, self.integrator = float(internal_step), integrator
        self._markers: dict[str, tuple[Any, Vector]] = {}
        for name, (body, point) in markers.items():
            try:
                kind = str(mbs.GetObject(body)["objectType"])
                where = np.asarray(point, dtype=np.float64).reshape(3)
            except Exception as error:
                raise SetupError(f"ExudynModel: marker '{name}' = {(body, point)!r} does not fit: {error}") from None
            if not kind.startswith("RigidBody"):
                raise SetupError(f"ExudynModel: marker '{name}' sits on a {kind}; joints need a rigid body")
            self._markers[name] = (body, where)
        mbs.Assemble()

    def attachments(self) -> list[str]:
        """List the markers.

        Returns
        -------
        list of str
            Their names.
        """
        return list(self._markers)

    def attach(self, marker: str) -> Attachment:
        """Return what is behind a marker.

        Parameters
        ----------
        marker : str
            Its name.

        Returns
        -------
        Attachment
            Body, point, axes and initial motion.
        """
        body, point = self._markers[marker]
        centre = centre_of_mass(self.mbs, body)
        motion = motion_of(self.mbs, body, centre, exudyn().ConfigurationType.Initial)
        return Attachment(self._name(body), point - centre, np.eye(3), motion[:13])

    def as_subsystem(self, ends: Sequence[End], **options: Any) -> Subsystem:
        """Make the subsystem; `assemble` calls it.

        Parameters
        ----------
        ends : sequence of End
            Ends of joints on its bodies.
        **options : object
            None are known; a given one is refused.

        Returns
        -------
        Subsystem
            The subsystem.
        """
        if options:
            unknown = next(iter(options))
            raise SetupError(
                f"ExudynModel: unknown option '{unknown}'; give internal_step and integrator to ExudynModel itself"
            )
        bodies = {self._name(body): body for body, _ in self._markers.values()}
        return ExudynSubsystem(self, [(end, bodies[end.body]) for end in ends])

    @staticmethod
    def _name(body: Any) -> str:
        return f"body {int(body)}"


class ExudynSubsystem(Subsystem):
    """An Exudyn model at work; made by `assemble`. Ports are those of joint ends, see `cosolve.multibody.Joint`."""

    def __init__(self, model: ExudynModel, ends: Sequence[tuple[End, Any]]) -> None:
        self.mbs, self._exudyn = model.mbs, exudyn()
        self._ends = [(end, body, centre_of_mass(self.mbs, body)) for end, body in ends]
        for end, _, _ in self._ends:
            if end.kind == STABILISED:
                raise SetupError(
                    f"joint '{end.name}': Exudyn models take no correction of positions; call "
                    "assemble(..., correction=False) and use Baumgarte or WeightedMultipliers"
                )
        self.inputs = [Port(f"{end.name}_{suffix}", size) for end, _, _ in self._ends for suffix, size in end.inputs]
        sizes = (("r", 3), ("q", 4), ("v", 3), ("w", 3), ("a", 3), ("alpha", 3))
        self.outputs = [Port(f"{end.name}_{suffix}", size) for end, _, _ in self._ends for suffix, size in sizes]
        self.internal_step, self._u = model.internal_step, np.zeros(sum(end.size for end, _, _ in self._ends))
        self._signal: InputSignal | None = None
        self._add_loads()
        self.mbs.Assemble()
        self._initial = self.mbs.systemData.GetSystemState(self._exudyn.ConfigurationType.Initial)
        self._settings = self._make_settings(model.tolerance)
        algebraic = self.mbs.systemData.AEsize() > 0
        name = ("TrapezoidalIndex2" if algebraic else "RK44") if model.integrator == "auto" else model.integrator
        self._solver = getattr(self._exudyn.DynamicSolverType, name)
        self.noise = model.tolerance if name in ("GeneralizedAlpha", "TrapezoidalIndex2") else 0.0
        self._q = [np.zeros(4) for _ in self._ends]
        self._t = 0.0

    # -- the contract ----------------------------------------------------------------------------------

    def start(self, t0: float) -> Any:
        self._t = t0
        self._put(self._initial)
        self._q = [np.zeros(4) for _ in self._ends]
        self._outputs()  # fixes the signs of the Euler parameters

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        self._signal = u
        self._solve(t0, t1, max(1, round((t1 - t0) / self.internal_step + 0.499)))
        self._t = t1
        self._u = u.end
        y = self._outputs()
        state = self.mbs.systemData.GetSystemState()
        self.mbs.systemData.SetSystemState(state, self._exudyn.ConfigurationType.Initial)
        return y

    def save(self) -> Any:
        state = [np.array(part) for part in self.mbs.systemData.GetSystemState()]
        return state, [q.copy() for q in self._q], self._t

    def restore(self, state: Any) -> None:
        coordinates, signs, self._t = state
        self._put(coordinates)
        self._q = [q.copy() for q in signs]

    def output(self, t: float, u: Vector) -> Any:
        """Outputs of the present state; accelerations by one very short internal step with constant inputs."""
        state = self.save()
        self._signal, self._u = None, np.asarray(u, dtype=np.float64)
        y = self._outputs()
        self._solve(t, t + _INSTANT * self.internal_step, 1)
        later = self._outputs()
        self.restore(state)
        width = 19
        for k in range(len(self._ends)):
            y[width * k + 13 : width * (k + 1)] = later[width * k + 13 : width * (k + 1)]
        return y

    # -- Exudyn ----------------------------------------------------------------------------------------

    def _put(self, state: Any) -> None:
        for configuration in (self._exudyn.ConfigurationType.Current, self._exudyn.ConfigurationType.Initial):
            self.mbs.systemData.SetSystemState(state, configuration)

    def _add_loads(self) -> None:
        """A force and a torque per end, both functions of time, inputs and the body's motion."""
        items = import_module("exudyn.itemInterface")
        kinds = ((items.LoadForceVector, slice(0, 3), False), (items.LoadTorqueVector, slice(3, 6), True))
        start = 0
        for end, body, centre in self._ends:
            marker = self.mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=body, localPosition=centre.tolist()))
            part = slice(start, start + end.size)
            start = part.stop
            for make, rows, fixed in kinds:
                load = make(markerNumber=marker, loadVector=[0.0, 0.0, 0.0], bodyFixed=fixed)
                load.loadVectorUserFunction = self._load_function(end, body, centre, part, rows)
                self.mbs.AddLoad(load)

    def _load_function(self, end: End, body: Any, centre: Vector, part: slice, rows: slice) -> Any:
        out = np.empty(12)

        def load(mbs: Any, t: float, _vector: Any) -> list[float]:
            u = self._u if self._signal is None else self._signal(t)
            z = motion_of(mbs, body, centre, self._exudyn.ConfigurationType.Current, rates=False)[:13]
            if end.law is not None:
                out[:] = end.law(u[part], z)
            else:
                coupling_loads(end.kind, end.constants, np.ascontiguousarray(u[part]), z, out)
            return [float(value) for value in out[rows]]

        return load

    def _make_settings(self, tolerance: float) -> Any:
        settings = self._exudyn.SimulationSettings()
        settings.solution.file.write = False
        settings.timeIntegration.verboseMode = 0
        settings.timeIntegration.explicit.computeEndOfStepAccelerations = True
        settings.timeIntegration.newton.relativeTolerance = tolerance
        settings.timeIntegration.newton.absoluteTolerance = tolerance
        settings.timeIntegration.automaticStepSize = False
        settings.timeIntegration.adaptiveStep = False
        return settings

    def _solve(self, t0: float, t1: float, steps: int) -> None:
        integration = self._settings.timeIntegration
        integration.startTime, integration.endTime, integration.numberOfSteps = t0, t1, steps
        try:
            done = self.mbs.SolveDynamic(
                self._settings, solverType=self._solver, updateInitialValues=False, storeSolver=False
            )
        except Exception as error:
            raise SubsystemError(f"Exudyn gave up between t = {t0:.9g} and {t1:.9g}: {error}") from error
        if done is False:
            raise SubsystemError(
                f"Exudyn's solver did not reach t = {t1:.9g} from {t0:.9g}; take a smaller internal step"
            )

    def _outputs(self) -> Vector:
        """Motion of all coupling bodies now (19 numbers each); Euler parameters keep their sign from call to call."""
        found = []
        for k, (_, body, centre) in enumerate(self._ends):
            motion = motion_of(self.mbs, body, centre, self._exudyn.ConfigurationType.Current)
            if motion[3:7] @ self._q[k] < 0.0:
                motion[3:7] *= -1.0
            self._q[k] = motion[3:7].copy()
            found.append(motion)
        return np.concatenate([np.zeros(0), *found])


def exudyn() -> Any:
    """The Exudyn package."""
    return optional("exudyn", "exudyn", "ExudynModel")


def centre_of_mass(mbs: Any, body: Any) -> Vector:
    """The centre of mass of an Exudyn rigid body from its reference point, in its frame."""
    return np.asarray(mbs.GetObject(body).get("physicsCenterOfMass", np.zeros(3)), dtype=np.float64).reshape(3)


def motion_of(mbs: Any, body: Any, centre: Vector, configuration: Any, *, rates: bool = True) -> Vector:
    """`r, q, v, omega (body frame), v', omega'` of the centre of mass of an Exudyn rigid body (19 numbers)."""
    kind = exudyn().OutputVariableType

    def read(what: Any, point: Sequence[float]) -> Vector:
        return np.asarray(mbs.GetObjectOutputBody(body, what, point, configuration), dtype=np.float64)

    at, origin = centre.tolist(), [0.0, 0.0, 0.0]
    motion = np.zeros(19)
    motion[:3] = read(kind.Position, at)
    parameters_of(tuple(read(kind.RotationMatrix, origin)), motion, 3)
    motion[7:10] = read(kind.Velocity, at)
    motion[10:13] = read(kind.AngularVelocityLocal, origin)
    if rates and configuration == exudyn().ConfigurationType.Current:
        motion[13:16] = read(kind.Acceleration, at)
        motion[16:19] = read(kind.AngularAccelerationLocal, origin)
    return motion
