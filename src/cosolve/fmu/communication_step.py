"""A macro step with an FMU: hand it the input signal, call `doStep`, deal with early returns and events."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from math import comb, factorial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.errors import EndOfSimulation, FmuWarning, SubsystemError, warn
from cosolve.fmu.description import Variable
from cosolve.fmu.instance import Instance
from cosolve.signal.polynomial import InputSignal, horner

_MANY_RETURNS = 10_000
_ROUNDING = 1e-12


class Discarded(SubsystemError):
    """The FMU did not accept a step; it came to `reached`."""

    reached = 0.0


class CommunicationStep:
    """The steps of one instance. Places inside a macro step are fractions `s` of it, from 0 to 1."""

    def __init__(
        self, instance: Instance, inputs: list[Variable], substeps: int, interpolate: bool, sampled: bool | None = None
    ) -> None:
        self._instance, self.substeps = instance, substeps
        self.inputs = instance.values(inputs)
        flags, self._fmi = instance.flags, instance.fmi
        self._floats = [v for v in inputs if v.is_continuous]
        self._discrete = _places(inputs, [v for v in inputs if not v.is_continuous])
        between = [v for v in self._floats if v.can_set_between]
        listens = interpolate and self._fmi == 3 and flags.has("providesIntermediateUpdate") and bool(between)
        derives = interpolate and self._fmi == 2 and flags.has("canInterpolateInputs") and bool(self._floats)
        derives = derives and not any(v.negated for v in inputs)
        #: True when inputs stay constant over each substep
        self.holds = not (listens or derives)
        self.variable = flags.has("canHandleVariableCommunicationStepSize")
        #: True when every input counts at the start of a step and outputs follow at its end: a sampled controller
        self.sampled = self.holds and (
            not (self.variable or instance.description.derivatives or instance.description.unnamed_states)
            if sampled is None
            else sampled
        )
        #: inputs that never change during a step, and have no value between those of macro points
        self.at_start = np.arange(self.inputs.length) if self.sampled else self._discrete
        self._derives = derives
        #: how driven inputs reach it: derivatives of high order are for few FMUs
        self.input_form = "mean" if self.holds else "cubic" if derives else "any"
        self._between = instance.values(between) if listens else None
        self._between_places = _whole(_places(inputs, between), self.inputs.length)
        self._float_places = _whole(_places(inputs, self._floats), self.inputs.length)
        self._continuous = instance.values(self._floats) if instance.event_mode and len(self._discrete) else None
        self._degree = 0  # the highest that derivatives were ever set for
        self._orders = np.zeros(0, dtype=np.int32)
        self._scaled_for = (0.0, 0)  # step and degree of the factors below
        self._scale = np.zeros((0, 1))
        self._signal: InputSignal | None = None
        self._t0 = 0.0
        self._step: float | None = None
        self._written: Vector | None = None
        self._flags = np.zeros(3, dtype=np.bool_)
        self._reached = ctypes.c_double()
        self._failure: SubsystemError | None = None
        self._returns = 0
        self._do_step: Callable[..., int] | None = None
        #: `noSetFMUStatePriorToCurrentPoint` of all steps. A repeated macro step goes back to its start, which is the
        #: current point. Substeps of such a step and a state that is kept would ask for false; but there are FMUs in
        #: use that then stand still, other importers always say true, and an FMU that cannot go back after it is found
        #: out before a run relies on it.
        self.no_return = True
        self.count = 0
        self.hold = False  # stop before events instead of letting them happen
        self.pending = False  # an event is due where the FMU stands

    def reset(self) -> None:
        """A new run begins."""
        self._step, self._written, self._degree = None, None, 0
        self.pending = False

    def went_back(self) -> None:
        """A saved state was restored: discrete inputs may be others than those written last."""
        self._written, self.pending = None, False

    # -- inputs --------------------------------------------------------------------------------------------------

    @property
    def float_places(self) -> npt.NDArray[np.intp] | slice:
        """Where the continuous inputs live in the flat vector of all."""
        return self._float_places

    def hold_inputs(self) -> None:
        """Keep inputs constant over each substep from now on, whatever the FMU says that it can."""
        self.holds, self.input_form = True, "mean"
        self._derives, self._between = False, None

    def at(self, u: InputSignal, s: float) -> Vector:
        """The signal at a fraction of the step."""
        coefficients = u.coefficients
        if s == 0.0:
            first: Vector = coefficients[0]
            return first
        return horner(coefficients, s)

    def write(self, values: Vector) -> None:
        """Set all inputs."""
        instance = self._instance
        if self._continuous is not None and instance.stepping:
            self._write_with_events(values)
        elif self.inputs.length:
            self.inputs.write(instance.pointer, values)

    def write_end(self, u: InputSignal) -> None:
        """Set the inputs to what they are at the end of the step, but for those that change at its start only."""
        if self.sampled:
            return
        values = u.end
        if len(self._discrete):
            values = values.copy()
            values[self._discrete] = u.coefficients[0][self._discrete]
        self.write(values)

    def _write_with_events(self, values: Vector) -> None:
        """FMI 3.0 with event mode: discrete inputs change there only."""
        instance, discrete = self._instance, values[self._discrete]
        assert self._continuous is not None
        if self._written is None or not np.array_equal(discrete, self._written):
            instance.call("EnterEventMode")
            self.inputs.write(instance.pointer, values)
            instance.iterate_events()
            instance.call("EnterStepMode")
            self._written = discrete.copy()
        elif self._continuous.length:
            self._continuous.write(instance.pointer, values[self._float_places])

    def write_at(self, t: float) -> None:
        """FMI 3.0: the FMU asks for its inputs at `t` inside the step."""
        if self._signal is not None and self._between is not None:
            s = (t - self._t0) / self._signal.H
            try:
                self._between.write(self._instance.pointer, self.at(self._signal, s)[self._between_places])
            except SubsystemError as error:  # nothing can be raised through C
                self._failure = error

    def _hand_over(self, u: InputSignal, a: float, s: float) -> None:
        """Inputs for a piece that starts at `a`; held ones are taken at `s`, discrete ones at the macro point."""
        s = s if self.holds and not self.sampled else a
        values = u.coefficients[0] if s == 0.0 else self.at(u, s)
        if len(self._discrete):
            values = values.copy()
            values[self._discrete] = u.coefficients[0][self._discrete]
        self.write(values)
        if self._derives:
            degree = len(u.coefficients) - 1
            if degree > self._degree:
                self._degree = degree
            if self._degree:
                self._write_derivatives(u, a)

    def _write_derivatives(self, u: InputSignal, a: float) -> None:
        """FMI 2.0: derivatives of the real inputs at `a`, up to the highest order ever set (FMUs remember them)."""
        degree = self._degree
        if len(self._orders) != degree * len(self._floats):
            self._references = np.repeat(np.array([v.reference for v in self._floats], dtype=np.uint32), degree)
            self._orders = np.tile(np.arange(1, degree + 1, dtype=np.int32), len(self._floats))
            self._slopes = np.empty((len(self._floats), degree))
            self._arguments = (
                *(self._references.ctypes.data, len(self._orders)),
                *(self._orders.ctypes.data, self._slopes.ctypes.data),
            )
        c, slopes = u.coefficients[1:, self._float_places], self._slopes
        n = len(c)
        if u.H != self._scaled_for[0] or n != self._scaled_for[1]:
            self._scale = np.array([factorial(j) / u.H**j for j in range(1, n + 1)]).reshape(n, 1)
            self._scaled_for = u.H, n
        if a == 0.0:  # only the j-th power has a j-th derivative there
            slopes[:, :n] = (c * self._scale).T
        else:
            for j in range(n):
                powers = np.array([comb(k + 1, j + 1) * a ** (k - j) if k >= j else 0.0 for k in range(n)])
                slopes[:, j] = self._scale[j] * (powers @ c)
        slopes[:, n:] = 0.0
        self._instance.call("SetRealInputDerivatives", *self._arguments)

    # -- steps ---------------------------------------------------------------------------------------------------

    def advance(self, t0: float, u: InputSignal, a: float, b: float) -> float:
        """Go from fraction `a` to `b` of the macro step that starts at `t0`; how far it came (see `hold`)."""
        self._signal, self._t0 = u, t0
        n = self.substeps
        while a < b:
            k, end = 0, b
            if n > 1:
                k = min(int(a * n + 1e-9), n - 1)  # the substep that a lies in
                end = min(b, (k + 1) / n)
            self._hand_over(u, a, (k + 0.5) / n)
            length = u.H if end - a == 1.0 else (end - a) * u.H
            if not self.variable:
                self._refuse_change(length, t0)
            t = t0 + a * u.H
            self._instance.log.time = t
            if self._fmi == 2:
                self._do_step_2(t, length)
                a = end
            else:
                reached = self._do_step_3(t, length)
                a = end if reached >= length * (1.0 - _ROUNDING) else a + reached / u.H
                if self.pending:
                    break
        return a

    def handle_event(self, values: Vector) -> None:
        """FMI 3.0 with event mode: the event that is due, with these inputs."""
        instance = self._instance
        if not self.pending:
            self.write(values)
            return
        self.pending = False
        instance.call("EnterEventMode")
        if self.inputs.length:
            self.inputs.write(instance.pointer, values)
        ends = instance.iterate_events()
        instance.call("EnterStepMode")
        self._written = values[self._discrete].copy()
        if ends:
            raise self._end(instance.log.time)

    def look_at_step(self, length: float) -> None:
        """Say so where a sampled controller is run with another step than the one that it was made for."""
        own = self._instance.description.experiment.get("stepSize", 0.0) if self.sampled else 0.0
        if self._step is None and own > 0.0 and abs(length - own) > 1e-9 * own:
            warn(
                f"'{Path(self._instance.file).name}' is a sampled controller with samples every {own:.9g}, and its "
                f"macro step is {length:.9g}; take that step, or cs.Sampled(cs.load_fmu(...), period={own:.9g}), which "
                "leaves the macro step free",
                FmuWarning,
            )

    def _refuse_change(self, length: float, t: float) -> None:
        self.look_at_step(length)
        if self._step is not None and abs(length - self._step) > 1e-9 * self._step:
            raise SubsystemError(
                f"the FMU '{Path(self._instance.file).name}' takes steps of one size only, {self._step:.9g} so far, "
                f"but {length:.9g} is asked for at t = {t:.9g}; use a constant macro step"
            )
        self._step = length

    def _found_step(self) -> Callable[..., int]:
        self._do_step = self._instance.binary.function("DoStep")
        return self._do_step

    def _do_step_2(self, t: float, h: float) -> None:
        instance = self._instance
        self.count += 1
        do_step = self._do_step or self._found_step()
        status = do_step(instance.pointer, t, h, self.no_return)
        if status == 2:
            raise self.discarded_2(t, h)
        if status:
            instance.check(status, f"doStep at t = {t:.9g}")

    def _do_step_3(self, t: float, h: float) -> float:
        """One call of doStep; how far it came."""
        instance = self._instance
        self.count += 1
        base, self._reached.value = self._flags.ctypes.data, t + h
        do_step = self._do_step or self._found_step()
        status = do_step(
            instance.pointer, t, h, self.no_return, base, base + 1, base + 2, ctypes.addressof(self._reached)
        )
        event, ends, early = (bool(flag) for flag in self._flags)
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if status == 2:
            raise self.discarded(t, h, self._reached.value, ends)
        if status:
            instance.check(status, f"doStep at t = {t:.9g}")
        if event and instance.event_mode and self.hold and not ends:
            self.pending = True
        elif event and instance.event_mode:
            instance.call("EnterEventMode")
            ends = instance.iterate_events() or ends
            instance.call("EnterStepMode")
        if ends:
            raise self._end(self._reached.value)
        self._returns = self._returns + 1 if early else 0
        if self._returns > _MANY_RETURNS:
            raise SubsystemError(
                f"the FMU '{Path(instance.file).name}' returns early from doStep without end at t = "
                f"{self._reached.value:.9g} (many events in a short time)"
            )
        return self._reached.value - t if early else h

    def discarded_2(self, t: float, h: float) -> SubsystemError | EndOfSimulation:
        """FMI 2.0: what a discarded step means."""
        instance = self._instance
        time, ended = ctypes.c_double(t), ctypes.c_int()
        instance.binary.function("GetRealStatus")(instance.pointer, 2, ctypes.addressof(time))
        instance.binary.function("GetBooleanStatus")(instance.pointer, 3, ctypes.addressof(ended))
        return self.discarded(t, h, time.value, bool(ended.value))

    def discarded(self, t: float, h: float, reached: float, ended: bool) -> SubsystemError | EndOfSimulation:
        """What to say about a step that was not accepted."""
        instance = self._instance
        if ended:
            return self._end(reached)
        error = Discarded(
            f"the FMU '{Path(instance.file).name}' discarded its step from t = {t:.9g} to {t + h:.9g} and came to "
            f"t = {reached:.9g}{instance.log.remark}; a smaller macro step may help"
        )
        error.reached = reached
        return error

    def _end(self, t: float) -> EndOfSimulation:
        instance = self._instance
        return EndOfSimulation(f"the FMU '{Path(instance.file).name}' ends it{instance.log.remark}", time=t)


def _places(inputs: list[Variable], wanted: list[Variable]) -> npt.NDArray[np.intp]:
    """Where these inputs live in the flat vector of all."""
    places: list[int] = []
    start = 0
    for variable in inputs:
        if variable in wanted:
            places += range(start, start + variable.length)
        start += variable.length
    return np.array(places, dtype=np.intp)


def _whole(places: npt.NDArray[np.intp], length: int) -> npt.NDArray[np.intp] | slice:
    """All places as a slice, which costs nothing to take."""
    return slice(None) if len(places) == length else places
