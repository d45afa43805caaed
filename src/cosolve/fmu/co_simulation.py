"""Co-simulation FMUs (FMI 1.0, 2.0 and 3.0) as subsystems.

What an FMU can do decides what it offers here: rollback where it can save its state, Jacobians where it gives
derivatives and shows its states, serialised states where it can write them. Methods that need more refuse it by name.

How the input signal reaches the FMU over a macro step:

- FMI 2.0 with `canInterpolateInputs`: value and derivatives at the start of the step, so it sees the same polynomial
  as every other subsystem;
- FMI 3.0 with intermediate updates: it asks for values while it steps and gets those of the polynomial;
- otherwise an input is held. It is held at its value in the *middle* of the (sub)step, which is right to second order
  where the value at the start would be right to first; `substeps=n` cuts the step into n pieces.

What is sampled has no value in the middle. A discrete input (Booleans, whole numbers, and real ones with
`variability="discrete"`) has the value that it has at the macro point, until the next one. An FMU without continuous
states that takes steps of one length only is a sampled controller: all its inputs count at the start of a step, and
its outputs follow at the end (`sampled=` says so of others, or that one is none).
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import not_negative, positive, whole
from cosolve.errors import CapabilityError, EndOfSimulation, SetupError
from cosolve.fmu.communication_step import CommunicationStep, Discarded
from cosolve.fmu.description import CO_SIMULATION
from cosolve.fmu.fmu_subsystem import FmuSubsystem
from cosolve.fmu.instance import Instance
from cosolve.fmu.options import remedy
from cosolve.fmu.partials import StepJacobian
from cosolve.fmu.proof import differenced, distrusted, prove_rollback
from cosolve.fmu.state import SavedState
from cosolve.fmu.step_trial import look_at_steps
from cosolve.fmu.values import Rounding
from cosolve.signal.polynomial import InputSignal, Polynomial

if TYPE_CHECKING:
    from cosolve.subsystem.native import Native

#: Halvings of a discarded step before giving up, and the least part of a step that is worth ending it at.
_HALVINGS, _LEAST = 6, 1e-6

_STEP_DERIVATIVES = "org.cosolve.step-derivatives"


class CoSimulationFmu(FmuSubsystem):
    """An FMU with its own solver as a subsystem; made by `load_fmu`.

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
    substeps : int, default 1
        Number of communication steps per macro step.
    interpolate : bool, default True
        Pass input derivatives or intermediate values if the FMU supports that. False holds inputs.
    sampled : bool or None, default None
        True: the FMU is a sampled controller, whose inputs count at the start of a step. None: it is one if it has no
        continuous states and fixed steps.
    noise : float, default 0.0
        Relative accuracy of the outputs, if the FMU integrates with a tolerance of its own.
    derivatives : {"instant", "step"} or None, default None
        What the directional derivatives of the FMU are: those of the equations at one time, or those over its last
        step. None: as the FMU declares it, else "instant".
    retry : bool, default False
        Save the state before every step, so that a discarded step can be repeated in smaller pieces also under methods
        without rollback.

    Attributes
    ----------
    description : Description
        What the model description says; `variables` by name.

    Notes
    -----
    Input signals reach the FMU as value and derivatives at the start of the step (FMI 2.0 with `canInterpolateInputs`),
    by intermediate updates (FMI 3.0), or are held at their value in the middle of the (sub)step. Discrete inputs are
    held at their value at the macro point.

    References
    ----------
    .. [1] Modelica Association, Functional Mock-up Interface for Model Exchange and Co-Simulation, versions 2.0 and
       3.0.

    Examples
    --------
    >>> import cosolve as cs
    >>> cs.fmi.CoSimulationFmu("missing.fmu")
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
        substeps: int = 1,
        interpolate: bool = True,
        sampled: bool | None = None,
        noise: float = 0.0,
        derivatives: Literal["instant", "step"] | None = None,
        retry: bool = False,
    ) -> None:
        arguments = dict(locals())
        substeps = whole("FMU", "substeps", substeps)
        if tolerance is not None:
            positive("FMU", "tolerance", tolerance)
        not_negative("FMU", "noise", noise)
        if derivatives not in (None, "instant", "step"):
            raise SetupError(f"FMU: derivatives is 'instant' or 'step', not {derivatives!r}")
        folder, listed_inputs, listed_outputs = self._read(CO_SIMULATION, arguments)
        self.noise = noise
        interpolate = interpolate and not sampled
        description, flags = self.description, self.description.kinds[CO_SIMULATION]
        me = weakref.ref(self)

        def on_update(_: int, t: float, wants: bool, *rest: Any) -> None:
            here = me()
            if rest[-2]:  # no early return wanted
                ctypes.c_bool.from_address(rest[-2]).value = False
            if wants and here is not None:
                here._communication.write_at(t)

        between = [v for v in listed_inputs if v.is_continuous and v.can_set_between]
        # without inputs to set inside a step the FMU is not asked to call back, which it may do a million times
        self.listens = listens = interpolate and flags.has("providesIntermediateUpdate") and bool(between)
        self._instance = Instance(
            *(self.file, folder, description, CO_SIMULATION),
            name=self.name,
            log=log,
            log_level=log_level,
            on_update=on_update if listens else None,
            between=between if listens else (),
            read_back=read_back,
        )
        self._communication = CommunicationStep(self._instance, listed_inputs, substeps, interpolate, sampled)
        self._rounds = self._communication.inputs.may_round
        self.variable_step, self.input_form = self._communication.variable, self._communication.input_form
        if not self._communication.variable:
            self.fixed_step = float(description.experiment.get("stepSize", np.nan))
        self._outputs = self._instance.values(listed_outputs)
        if self._communication.sampled:  # outputs follow at the end of a step
            self._pattern = np.zeros((self._outputs.length, self._communication.inputs.length), dtype=bool)
        #: whether outputs may react at once to inputs: where the description says so, or does not say
        self.reacts = bool(self._communication.inputs.length) and (self._pattern is None or bool(self._pattern.any()))
        self._time, self._started = 0.0, False
        self._u: Vector | None = None
        self._retry, self._retried = bool(retry), 0
        self._stops = False  # macro steps end at events
        self._halt: tuple[float, float] | None = None  # where a discarded step came to, and how close that is known
        self._here: weakref.ref[SavedState] | None = None  # the state saved or restored last
        self._declare(flags, listed_inputs, listed_outputs, derivatives)

    def portable_state(self) -> Any:
        raise CapabilityError(f"the FMU keeps it to itself; {remedy('serialised state')}")

    def _declare(self, flags: Any, inputs: list[Any], outputs: list[Any], derivatives: str | None) -> None:
        """Give this object the methods of the capabilities that the FMU has, and no others."""
        if flags.has("canGetAndSetFMUState"):
            self.save, self.restore = self._save, self._restore
            if flags.has("canSerializeFMUState"):
                self.serialise, self.deserialise = self._serialise, self._deserialise
        if self._instance.event_mode:
            self.advance_to_event, self.handle_event = self._to_event_3, self._handle_event
        elif flags.has("canGetAndSetFMUState") and self._communication.variable:
            self.advance_to_event, self.handle_event = self._to_discard, self._handle_event
        if self._at_start[0].any():
            self.initial_output = self._initial_output
        if inputs and outputs and (self._pattern is None or self._pattern.any()):
            self.output = self._output
            if self._pattern is not None:
                pattern = self._pattern
                self.feedthrough = lambda: pattern
        if flags.number("maxOutputDerivativeOrder") > 0:
            self.output_derivatives = self._output_derivatives
        of_last_step = derivatives == "step" or (
            derivatives is None and _STEP_DERIVATIVES in self.description.annotations
        )
        unknowns = (*self.description.derivatives, *self.description.outputs)
        constant = all(
            u.dependencies is not None and u.kinds is not None and set(u.kinds) <= {"constant", "fixed", "tunable"}
            for u in unknowns
        )
        self._derivatives = shown = self._derivatives_of(CO_SIMULATION, inputs, outputs)
        self._step_jacobian = None if shown is None else StepJacobian(self, shown, of_last_step, constant)
        stateful = bool(self.description.states) and len(self.description.states) == len(self.description.derivatives)
        repeatable = flags.has("canGetAndSetFMUState")
        floats_at_start = self._communication.sampled or any(v.is_float and not v.is_continuous for v in inputs)
        if (
            shown is not None
            and repeatable
            and not floats_at_start
            and (stateful or (of_last_step and self._communication.holds))
        ):
            self.jacobian = self._jacobian
        if stateful and all(v.is_float and v.initial == "exact" for v in self.description.states):
            self._states = self._instance.values(self.description.states)
            self.get_state, self.set_state = self._get_state, self._set_state

    @property
    def functions(self) -> dict[str, int]:
        """Addresses of the C functions by their names (`fmi2DoStep` ...), for this run."""
        return self._instance.binary.addresses

    @property
    def component(self) -> int:
        """Handle of the instance that these functions take, for this run."""
        return self._instance.pointer

    @property
    def steps(self) -> int:
        """How often `doStep` has been called so far."""
        return self._communication.count

    def native(self, H: float, degree: int) -> Native | str:
        from cosolve.fmu.native_fmu import fmu_native

        return fmu_native(self, H, degree)

    # -- the contract ----------------------------------------------------------------------------------------

    def _initialise(self, t0: float, given: Mapping[str, Any]) -> None:
        self._instance.initialise(t0, self.tolerance, given)
        self._communication.reset()
        self._here, self._retried, self._stops, self._halt = None, 0, False, None
        self._rounding = Rounding()
        self._time, self._u, self._started = t0, None, True
        if self._step_jacobian is not None:
            self._step_jacobian.left()

    def start(self, t0: float) -> Any:
        self._initialise(t0, self.given_values)
        if self._step_jacobian is not None:
            self._step_jacobian.forget()
        return None if self._at_start[0].any() else self._outputs.read(self.component)

    def begin(self, t0: float, u: Vector) -> Vector:
        """End the initialisation with these inputs; the outputs after it, which may be others than those during it."""
        if not self._instance.stepping:
            self._communication.write(u)
            self._rounding.end(t0, self._communication.inputs, counts=True)
            self._instance.leave_initialisation()
        return self._outputs.read(self.component)

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        state = self._prepare(t0, u)
        try:
            self._communication.advance(t0, u, 0.0, 1.0)
        except Discarded as failure:
            self._in_pieces(t0, u, state, failure)
        except EndOfSimulation as end:
            self._note_end(end, t1, u.H)
            raise
        if self._rounds:
            self._rounding.end(t0, self._communication.inputs, counts=state is None or len(u.coefficients) > 1)
        return self._reached(t1, u)

    def _prepare(self, t0: float, u: InputSignal) -> SavedState | None:
        """Ready for a step; the state at its start, where it is known."""
        if not self._instance.stepping:
            self.begin(t0, u.coefficients[0])
        if self._rounds:
            self._rounding.begin(t0)
        state = None if self._here is None else self._here()
        if state is None and self._retry and hasattr(self, "save"):
            state = self._save()
        self._here = None  # the FMU is about to leave it
        return state if state is not None and state.time == t0 else None

    def _in_pieces(self, t0: float, u: InputSignal, state: SavedState | None, failure: Discarded) -> float:
        """A discarded step once more, in 2, 4, 8, ... pieces; how far it came."""
        communication, whole = self._communication, self._communication.substeps
        if state is None or not communication.variable:
            if hasattr(self, "save") and communication.variable:
                failure.args = (f"{failure}, or load_fmu(..., retry=True), which goes back and takes smaller ones",)
            raise failure
        try:
            for halvings in range(1, _HALVINGS + 1):
                self._restore(state)
                communication.substeps = whole << halvings
                with suppress(Discarded):
                    reached = communication.advance(t0, u, 0.0, 1.0)
                    self._retried += 1
                    return reached
        finally:
            communication.substeps = whole
        failure.args = (f"{failure}; pieces of 1/{1 << _HALVINGS} of it were discarded as well",)
        raise failure

    def retried_steps(self) -> int:
        """How many steps of this run were discarded and then passed in smaller pieces."""
        return self._retried

    def _note_end(self, end: EndOfSimulation, t1: float, H: float) -> None:
        """The last outputs of an FMU that asks for the end, where it has come to the end of the step."""
        if end.time is not None and end.time >= t1 - 1e-9 * H:
            end.outputs = self._outputs.read(self.component)

    def _reached(self, t1: float, u: InputSignal) -> Vector:
        """The outputs at the end of a step."""
        self._time = t1
        if len(u.coefficients) > 1 and self.reacts:
            self._communication.write_end(u)  # outputs react to the inputs at the end, not to those during the step
        if self._step_jacobian is not None:
            self._step_jacobian.arrived()
        return self._outputs.read(self._instance.pointer)

    # -- events ----------------------------------------------------------------------------------------------

    def _to_event_3(self, t0: float, t1: float, u: InputSignal) -> tuple[float, Vector, bool]:
        """FMI 3.0: to the first event, or to `t1`."""
        state, communication = self._prepare(t0, u), self._communication
        self._stops = communication.hold = True
        try:
            s = communication.advance(t0, u, 0.0, 1.0)
        except Discarded as failure:
            s = self._in_pieces(t0, u, state, failure)
        except EndOfSimulation as end:
            self._note_end(end, t1, u.H)
            raise
        finally:
            communication.hold = False
        return self._stopped(t0, t1, u, s, communication.pending)

    def _to_discard(self, t0: float, t1: float, u: InputSignal) -> tuple[float, Vector, bool]:
        """Without event mode: an FMU that discards a step ends it where it came to."""
        state = self._prepare(t0, u)
        try:
            self._communication.advance(t0, u, 0.0, 1.0)
            return t1, self._reached(t1, u), self._halt is not None and abs(t1 - self._halt[0]) <= self._halt[1]
        except Discarded as failure:
            s = (failure.reached - t0) / u.H
            if state is not None and _LEAST < s < 1.0 - _LEAST:
                self._halt = failure.reached, max(2e-9 * u.H, 0.0 if self._halt is None else self._halt[1])
                self._restore(state)
                with suppress(Discarded):
                    self._communication.advance(t0, u, 0.0, s)
                    return self._stopped(t0, t1, u, s, event=True)
            self._in_pieces(t0, u, state, failure)
        except EndOfSimulation as end:
            self._note_end(end, t1, u.H)
            raise
        return t1, self._reached(t1, u), False

    def _stopped(self, t0: float, t1: float, u: InputSignal, s: float, event: bool) -> tuple[float, Vector, bool]:
        """Where a step has ended, with the outputs there."""
        if s == 1.0:
            return t1, self._reached(t1, u), event
        t = t0 + s * u.H
        return t, self._reached(t, Polynomial(t0, u.H, self._communication.at(u, s)[np.newaxis])), event

    def _handle_event(self, t: float, u: Vector) -> Vector:
        self._instance.log.time = self._time = t
        self._halt = None
        self._communication.handle_event(u)
        return self._outputs.read(self.component)

    def _initial_output(self, t: float, u: Vector) -> Vector:
        return self._reacting(u, self._at_start[1])

    def _output(self, t: float, u: Vector) -> Vector:
        return self._reacting(u, self._pattern)

    def _reacting(self, u: Vector, pattern: npt.NDArray[np.bool_] | None) -> Vector:
        """The outputs for these inputs; NaN is one that is not known, and so are outputs that react to it."""
        unknown = np.isnan(u)
        if unknown.any():
            last = self._u if self._u is not None else self._communication.inputs.read(self.component)
            u = np.where(unknown, last, u)
        self._communication.write(u)
        self._u = u
        y = self._outputs.read(self.component)
        if unknown.any() and pattern is not None:
            y[(pattern & unknown).any(axis=1)] = np.nan
        return y

    # -- states ----------------------------------------------------------------------------------------------

    def _save(self) -> SavedState:
        self._instance.leave_initialisation()
        state = self._instance.states.save(self._time)
        self._here = weakref.ref(state)
        return state

    def _restore(self, state: SavedState) -> None:
        self._instance.states.restore(state)
        self._communication.went_back()
        self._time, self._here = state.time, weakref.ref(state)

    def _get_state(self) -> Vector:
        """The continuous states, for the stability analysis before a run."""
        if not self._started:
            self.start(self._time)
        return self._states.read(self.component)

    def _set_state(self, x: Vector) -> None:
        """Initialise anew from these start values; whatever else the FMU remembers is lost."""
        begin = 0
        given = dict(self.given_values)
        for variable in self.description.states:
            value = np.asarray(x, dtype=np.float64)[begin : begin + variable.length]
            given[variable.name] = value if variable.shape else value[0]
            begin += variable.length
        instance, asked = self._instance, self._instance.read_back
        instance.read_back = False  # its parameters were looked at when the run began
        try:
            self._initialise(self._time, given)
            instance.leave_initialisation()
        finally:
            instance.read_back = asked

    def _serialise(self) -> bytes:
        self._instance.leave_initialisation()
        return self._instance.states.to_bytes(self._time)

    def _deserialise(self, data: bytes) -> None:
        self._restore(self._instance.states.from_bytes(data))

    # -- variables -------------------------------------------------------------------------------------------

    def _tune(self, given: Mapping[str, Any]) -> None:
        for key, value in given.items():
            self._instance.set(self.description.variables[key], value)
        if self._step_jacobian is not None:
            self._step_jacobian.forget()

    def _output_derivatives(self, order: int = 1) -> Vector:
        """Time derivatives of the real outputs at the end of the last step."""
        floats = [v for v in self._outputs.variables if v.is_float]
        references = np.array([v.reference for v in floats], dtype=np.uint32)
        orders = np.full(len(floats), order, dtype=np.int32)
        values = np.empty(sum(v.length for v in floats))
        head = (references.ctypes.data, len(floats), orders.ctypes.data, values.ctypes.data)
        if self.description.fmi == 2:
            self._instance.call("GetRealOutputDerivatives", *head)
        else:
            self._instance.call("GetOutputDerivatives", *head, len(values))
        return values

    # -- Jacobian over the macro step ------------------------------------------------------------------------

    def prove_rollback(self, t0: float, H: float, u: Vector) -> None:
        """Before steps are repeated: raises when the FMU does not come back from a saved state (see proof.py)."""
        if hasattr(self, "save"):
            made = self._communication.count
            try:
                prove_rollback(self, t0, H, u)
            finally:
                self._communication.count = made  # they are no steps of the run
            self._retried = 0  # of steps that belong to the run
            if distrusted(self) and self._step_jacobian is not None:
                self._step_jacobian.constant = False

    def look_at_steps(self, t0: float, H: float, u: Vector) -> str:
        """At the start of a run: one sentence where what it comes to depends on the length of its steps."""
        found = look_at_steps(self, t0, H, u)
        self.input_form = self._communication.input_form
        return found

    def forget_derivatives(self) -> None:
        """As if none had been asked for yet."""
        if self._step_jacobian is not None:
            self._step_jacobian.start()

    @property
    def nominal_inputs(self) -> list[float]:
        """How large each input is, by the description."""
        return [v.nominal for v in self._communication.inputs.variables for _ in range(v.length)]

    def _jacobian(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        """Called at the state at `t0`, which the caller restores."""
        assert self._step_jacobian is not None
        self._communication.hold = self._stops
        try:
            if distrusted(self):
                return differenced(self, t0, t1, u, weight)
            self._instance.leave_initialisation()
            return self._step_jacobian(t0, t1, u, weight)
        finally:
            self._communication.hold = False
