"""Model-exchange FMUs (FMI 1.0, 2.0 and 3.0): their equations, integrated by our solvers with event location.

Between events the states follow `x' = f(t, x, u)`; a state event (an event indicator changes sign), a time event (a
time that the FMU announced) or a step event (the FMU asks for it after an internal step) puts the FMU into event mode,
where its states may jump. Values at the time of an event are those after it, also at a macro point.

Rollback: where the FMU can save its state, that and the continuous states. Where it cannot, the continuous states are
all there is to save as long as nothing discrete happens: rollback is offered for FMUs without event indicators and
without discrete variables, and going back across an event (a time event, say) is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import whole
from cosolve.errors import CapabilityError, EndOfSimulation, SubsystemError
from cosolve.fmu.continuous import Continuous
from cosolve.fmu.description import MODEL_EXCHANGE, Variable
from cosolve.fmu.fmu_subsystem import FmuSubsystem
from cosolve.fmu.instance import Instance
from cosolve.fmu.options import remedy
from cosolve.fmu.sensitivity import Sensitivity
from cosolve.fmu.values import Rounding
from cosolve.integrator.inner_steps import Inside, NativeSteps, SciPySteps, make_steps
from cosolve.integrator.trajectory import Observer, Trajectory
from cosolve.signal.polynomial import InputSignal, Polynomial, perturbed


class ModelExchangeFmu(FmuSubsystem):
    """An FMU whose equations cosolve integrates, as a subsystem; made by `load_fmu`.

    Parameters
    ----------
    file : str or Path
        The FMU.
    parameters : mapping of str to value or None, default None
        Parameters by name, set before the run.
    start : mapping of str to value or None, default None
        Start values of inputs and states by name.
    inputs : sequence of str or None, default None
        Variables that become input ports. None: all inputs.
    outputs : sequence of str or None, default None
        Variables that become output ports; any variable may. None: all outputs.
    name : str or None, default None
        Name for messages. None: that of the FMU.
    log : str, Path or None, default None
        File for the messages of the FMU.
    log_level : {"debug", "warning", "discard", "error", "fatal"}, default "debug"
        Lowest status of a message that is written to `log`.
    tolerance : float or None, default None
        Relative tolerance that is passed to the FMU. None passes none.
    read_back : bool, default True
        Refuse an FMU that did not accept a parameter, by reading parameters after initialisation.
    trial : str, Path or None, default None
        File written by `cosolve inspect --try`. Capabilities that it found wrong are not used.
    integrator : str, default "auto"
        "auto" (Dormand-Prince, changes to Radau if the problem is stiff), "dopri5", "ode1" to "ode5" with fixed steps,
        or SciPy's "RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA".
    rtol : float, default 1e-8
        Relative tolerance of the integrator.
    atol : float, default 1e-10
        Absolute tolerance of the integrator in the units of the states.
    internal_step : float or None, default None
        Step of the integrators with fixed steps in seconds.
    max_events : int, default 1000
        Largest number of state events in one macro step; more end the run (chattering).

    Attributes
    ----------
    description : Description
        What the model description says; `variables` by name.

    Notes
    -----
    Events are located by the event indicators. Events that accumulate at a time (Zeno) end the run.

    References
    ----------
    .. [1] Modelica Association, Functional Mock-up Interface for Model Exchange and Co-Simulation, versions 2.0 and
       3.0.

    Examples
    --------
    >>> import cosolve as cs
    >>> cs.fmi.ModelExchangeFmu("missing.fmu")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: there is no file 'missing.fmu'; give the path of an FMU
    """

    def __init__(
        self,
        file: str | Path,
        *,
        parameters: Mapping[str, Any] | None = None,
        start: Mapping[str, Any] | None = None,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        name: str | None = None,
        log: str | Path | None = None,
        log_level: Literal["debug", "warning", "discard", "error", "fatal"] = "debug",
        tolerance: float | None = None,
        read_back: bool = True,
        trial: str | Path | None = None,
        integrator: str = "auto",
        rtol: float = 1e-8,
        atol: float = 1e-10,
        internal_step: float | None = None,
        max_events: int = 1000,
    ) -> None:
        arguments = dict(locals())
        max_events = whole("FMU", "max_events", max_events)
        steps = make_steps("FMU", integrator, rtol, atol, internal_step)
        stiff = SciPySteps("Radau", rtol, atol) if integrator == "auto" else None
        folder, listed_inputs, listed_outputs = self._read(MODEL_EXCHANGE, arguments)
        self._instance = Instance(
            *(self.file, folder, self.description, MODEL_EXCHANGE),
            name=self.name,
            log=log,
            log_level=log_level,
            read_back=read_back,
        )
        smooth = [v.is_float and v.variability == "continuous" for v in listed_inputs]
        self._smooth = _places(listed_inputs, smooth)
        self._discrete = _places(listed_inputs, [not flag for flag in smooth])
        continuous = [v for v, flag in zip(listed_inputs, smooth, strict=True) if flag]
        self._fmu = Continuous(self._instance, continuous, listed_outputs)
        self._all_inputs = self._instance.values(listed_inputs)
        self._discrete_inputs = self._instance.values(
            [v for v, flag in zip(listed_inputs, smooth, strict=True) if not flag]
        )
        if not self._fmu.n_states:  # nothing to integrate: one step from event to event
            steps, stiff = make_steps("FMU", "ode1", rtol, atol, 1e300), None
        self._path = Trajectory(self._fmu, steps, stiff, int(max_events))
        self._u: Vector | None = None
        self._switched: Vector | None = None  # discrete inputs as last set
        self._H = 1.0  # length of the last macro step
        self._stops = False  # macro steps end at events
        self._declare(continuous, listed_outputs)

    def portable_state(self) -> Any:
        if self._saves_state:  # what is serialised never comes here
            raise CapabilityError(f"the FMU keeps it to itself; {remedy('serialised state')}")
        return self.save()

    def _declare(self, inputs: list[Variable], outputs: list[Variable]) -> None:
        """Give this object the methods of the capabilities that the FMU has, and no others."""
        flags = self.description.kinds[MODEL_EXCHANGE]
        self._saves_state = flags.has("canGetAndSetFMUState")
        discrete = [v for v in self.description.variables.values() if v.variability == "discrete"]
        self._smooth_always = not self._fmu.n_indicators and not discrete
        if self._saves_state or self._smooth_always:
            self.save, self.restore = self._save, self._restore
        if self._saves_state and flags.has("canSerializeFMUState"):
            self.serialise, self.deserialise = self._serialise, self._deserialise
        if self._pattern is not None:
            pattern = self._pattern
            self.feedthrough = lambda: pattern
        self._derivatives = self._derivatives_of(MODEL_EXCHANGE, inputs, outputs)
        if self._derivatives is not None and (self._saves_state or self._smooth_always):
            self.jacobian = self._jacobian
        if isinstance(self._path.steps, NativeSteps):
            self.replay, self.step = self._replay, self._step
        if self._smooth_always and not len(self._discrete):
            self.equations = self._equations

    @property
    def noise(self) -> float:  # type: ignore[override]
        """Relative accuracy of the outputs of a step."""
        return float(self._path.steps.noise)

    @property
    def events(self) -> int:
        """How many events there were since the start of the run."""
        return self._path.events

    # -- the contract ----------------------------------------------------------------------------------------

    def start(self, t0: float) -> None:
        self._rounding = Rounding()
        self._instance.initialise(t0, self.tolerance, self.given_values)
        self._path.reset(t0)
        self._stops = False
        self._u = self._all_inputs.read(self._instance.pointer)

    def begin(self, t0: float, u: Vector) -> Vector:
        """End the initialisation with these inputs (initial states may depend on them); the outputs after it."""
        if not self._instance.stepping:
            self._u = u
            self._all_inputs.write(self._instance.pointer, u)
            self._rounding.end(t0, self._all_inputs, counts=True)
            self._leave_initialisation()
        return self._fmu.outputs()

    def _leave_initialisation(self) -> None:
        """Into event mode, and from there to continuous time, with the inputs that are set."""
        if not self._instance.stepping:
            assert self._u is not None
            self._switched = self._u[self._discrete]
            self._instance.leave_initialisation()
            self._path.start(self._u[self._smooth])

    def initial_output(self, t: float, u: Vector) -> Vector:
        """Outputs for these inputs before the initialisation ends."""
        return self._reacting(t, u, self._at_start[1])

    def output(self, t: float, u: Vector) -> Vector:
        reacts = np.ones(self._at_start[0].shape, dtype=bool) if self._pattern is None else self._pattern
        return self._reacting(t, u, reacts)

    def _reacting(self, t: float, u: Vector, reacts: npt.NDArray[np.bool_]) -> Vector:
        """The outputs for these inputs; NaN is one that is not known, and so are outputs that react to it."""
        assert self._u is not None
        unknown = np.isnan(u)
        if unknown.any():
            u = np.where(unknown, self._u, u)
        self._u = u
        if self._instance.stepping:
            self._fmu.set_point(t, self._path.x, u[self._smooth])
        else:
            self._all_inputs.write(self._instance.pointer, u)
        y = self._fmu.outputs()
        if unknown.any():
            y[(reacts & unknown).any(axis=1)] = np.nan
        return y

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        end = self._advance(t0, t1, u)
        if end is not None:
            end.outputs = self._fmu.outputs()
            raise end
        return self._fmu.outputs()

    def _advance(
        self, t0: float, t1: float, u: InputSignal, observer: Observer | None = None, *, to_event: bool = False
    ) -> EndOfSimulation | None:
        """To `t1`, or to the first event; leaves the FMU at the point there, and says whether it wants the end there.

        Raises where it wants the end before.
        """
        ending: EndOfSimulation | None = None
        try:
            signal = self._begin(t0, u)
            (self._path.advance_to_event if to_event else self._path.advance)(t1, signal, observer)
        except EndOfSimulation as end:
            end.time, ending = self._path.t, end
            if end.time < t1:
                raise
        self._u = u.end if self._path.t == t1 else u(self._path.t)
        return ending

    def advance_to_event(self, t0: float, t1: float, u: InputSignal) -> tuple[float, Vector, bool]:
        """To the first event, or to `t1`."""
        self._stops = True
        end = self._advance(t0, t1, u, to_event=True)
        if end is not None:
            end.outputs = self._fmu.outputs()
            raise end
        return self._path.t, self._fmu.outputs(), self._path.pending

    def handle_event(self, t: float, u: Vector) -> Vector:
        """The event at `t`, where one is pending or the new inputs cause one."""
        path, smooth, discrete = self._path, u[self._smooth], u[self._discrete]
        if path.t < t:  # found a little before the point where the others stand
            path.x = path.x + (t - path.t) * self._fmu.slope(path.t, path.x, smooth)
        path.t, self._u = t, u
        held = Polynomial(t, self._H, smooth[np.newaxis])
        switched = not np.array_equal(discrete, self._switched)  # type: ignore[arg-type]

        def change() -> None:
            if switched:
                self._discrete_inputs.write(self._instance.pointer, discrete)
                self._switched = discrete

        if path.pending or switched or path.left_domain(smooth):
            path.event(held, change)
        self._fmu.set_point(t, path.x, smooth)
        return self._fmu.outputs()

    def _begin(self, t0: float, u: InputSignal) -> InputSignal:
        """The signal of the continuous inputs; events that the new inputs cause at the start of the step."""
        if not self._instance.stepping:
            self.begin(t0, u.coefficients[0])
        self._rounding.begin(t0)
        self._path.t = self._instance.log.time = t0
        self._H = u.H
        signal = self._smooth_part(u)
        discrete = u(t0)[self._discrete] if len(self._discrete) else self._switched

        def change() -> None:
            if discrete is not None and len(discrete):
                self._discrete_inputs.write(self._instance.pointer, discrete)
                self._rounding.end(t0, self._discrete_inputs, counts=len(u.coefficients) > 1)
                self._switched = discrete

        if not np.array_equal(discrete, self._switched) or self._path.left_domain(signal(t0)):  # type: ignore[arg-type]
            self._path.event(signal, change)
        return signal

    def _smooth_part(self, u: InputSignal) -> InputSignal:
        if not len(self._discrete):
            return u
        return Polynomial(u.t0, u.H, np.ascontiguousarray(u.coefficients[:, self._smooth]))

    # -- capabilities ----------------------------------------------------------------------------------------

    def _save(self) -> Any:
        self._leave_initialisation()
        kept = self._instance.states.save(self._path.t) if self._saves_state else None
        return kept, self._path.snapshot(), self._path.events, self._u, self._switched

    def _restore(self, state: Any) -> None:
        kept, snapshot, events, self._u, self._switched = state
        if kept is not None:
            self._instance.states.restore(kept)
        elif events != self._path.events:
            raise SubsystemError(
                f"had an event after t = {snapshot[0]:.9g} and cannot go back across it: its FMU cannot save its "
                "state; use a method that does not repeat steps (Jacobi, GaussSeidel)"
            )
        self._path.back_to(snapshot)

    def get_state(self) -> Vector:
        self._leave_initialisation()
        return self._path.x

    def set_state(self, x: Vector) -> None:
        self._leave_initialisation()
        assert self._u is not None
        self._path.move_to(np.array(x, dtype=np.float64), self._u[self._smooth])

    def _serialise(self) -> bytes:
        self._leave_initialisation()
        path = self._path
        own = (path.t, path.next_event, float(path.steps.memory or 0.0), float(path.stiff))
        arrays = b"".join(np.asarray(a, np.float64).tobytes() for a in (path.x, path.signs, self._u, self._switched))
        return struct.pack("<4d", *own) + arrays + self._instance.states.to_bytes(path.t)

    def _deserialise(self, data: bytes) -> None:
        path, head = self._path, struct.calcsize("<4d")
        sizes = [self._fmu.n_states, self._fmu.n_indicators, self._all_inputs.length, len(self._discrete)]
        numbers = 8 * sum(sizes)
        if len(data) <= head + numbers:
            raise SubsystemError(f"{len(data)} bytes are not a saved state of '{self.file.name}'")
        path.t, path.next_event, memory, stiff = struct.unpack("<4d", data[:head])
        values = np.frombuffer(data, np.float64, sum(sizes), head).copy()
        path.x, path.signs, self._u, self._switched = np.split(values, np.cumsum(sizes)[:-1])
        path.choose(bool(stiff), memory if isinstance(path.steps, NativeSteps) else None)
        self._instance.states.restore(self._instance.states.from_bytes(data[head + numbers :]))

    def _replay(self, t0: float, t1: float, u: InputSignal) -> Vector:
        """On the internal steps of the last subsystem step; where events cut it, with step control."""
        path = self._path
        if path.grid is None or not isinstance(path.steps, NativeSteps):
            return self.advance_to_event(t0, t1, u)[1] if self._stops else self.advance(t0, t1, u)
        signal = self._begin(t0, u)
        x = path.steps.repeat(self._fmu.slope, t0, path.grid, path.x, signal)
        if np.isfinite(x).all():
            path.t, path.x = t1, x
        else:  # at rest, with a motion far faster than the step
            path.advance(t1, signal)
        self._u = u.end
        self._fmu.set_point(t1, path.x, signal.end)
        return self._fmu.outputs()

    def _step(self, t0: float, t_max: float, u: InputSignal) -> tuple[float, Vector]:
        path, signal = self._path, self._begin(t0, u)
        while path.t == t0:
            path.one_step(t_max, signal, None)
        self._u = u(path.t)
        self._fmu.set_point(path.t, path.x, signal(path.t))
        return path.t, self._fmu.outputs()

    def _equations(self) -> tuple[Callable[..., Vector], Callable[..., Vector], None]:
        self._leave_initialisation()

        def output(t: float, x: Vector, u: Vector) -> Vector:
            self._fmu.set_point(t, x, u)
            return self._fmu.outputs()

        return self._fmu.slope, output, None

    def _jacobian(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        """By the variational equation; over a step with events by central differences."""
        assert self._derivatives is not None
        state, before = self._save(), self._path.events
        carried = Sensitivity(self._fmu, self._derivatives, self._smooth_part(u), weight)

        def observer(t: float, t_new: float, x: Vector, inside: Inside) -> None:
            tableau = self._path.steps.tableau
            if tableau is None:
                carried.implicit_step(t, t_new, inside)
            else:
                carried.explicit_step(t, t_new, x, tableau)

        self._advance(t0, t1, u, observer, to_event=self._stops)
        J = np.zeros((self._derivatives.q, u.coefficients.shape[1]))
        if self._path.events == before:
            J[:, self._smooth] = carried.outputs()
        else:
            for k in self._smooth:
                J[:, k] = self._differenced(state, t0, t1, u, weight, int(k))
        return J

    def _differenced(self, state: Any, t0: float, t1: float, u: InputSignal, weight: Vector, k: int) -> Vector:
        increment = max(self.noise, 1e-12) ** (1 / 3) * max(1.0, float(np.abs(u.end[k])))
        ends = []
        for sign in (1.0, -1.0):
            self._restore(state)
            ends.append(self.advance(t0, t1, perturbed(u, k, sign * increment * weight)))
        slope: Vector = (ends[0] - ends[1]) / (2.0 * increment)
        return slope

    def _tune(self, given: Mapping[str, Any]) -> None:
        assert self._u is not None
        signal = Polynomial(self._path.t, 1.0, self._u[self._smooth][np.newaxis, :])

        def change() -> None:
            for key, value in given.items():
                self._instance.set(self.description.variables[key], value)

        self._path.event(signal, change)


def _places(variables: list[Variable], chosen: list[bool]) -> Any:
    """Places of the chosen variables in the flat vector of all."""
    flags = [flag for v, flag in zip(variables, chosen, strict=True) for _ in range(v.length)]
    return np.flatnonzero(np.array(flags, dtype=bool))
