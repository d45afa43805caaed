"""The model-exchange side of an FMU of any version: `x' = f(t, x, u)`, outputs, event indicators and event mode.

Guaranteed call order towards the FMU: initialisation mode, event mode until its discrete states rest, continuous-time
mode; there the point (time, states, inputs) is set before anything is read; event mode again at every event.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.errors import EndOfSimulation, SubsystemError
from cosolve.fmu.binary import EventInfo2
from cosolve.fmu.description import Variable
from cosolve.fmu.instance import Instance
from cosolve.integrator.trajectory import EventOutcome

_MANY = 1000  # event iterations at one instant


class Continuous:
    """An instance in continuous-time mode. `inputs` are those that vary with time, in the order of their values."""

    rests_at_zero = False  # an FMU says for itself what is zero

    def __init__(self, instance: Instance, inputs: list[Variable], outputs: list[Variable]) -> None:
        description = instance.description
        self.instance, self.fmi = instance, instance.fmi
        self._inputs, self._outputs = instance.values(inputs), instance.values(outputs)
        self.n_states = description.state_count
        self.n_indicators = description.event_indicators
        self._x, self._dx, self._z = np.zeros(self.n_states), np.zeros(self.n_states), np.zeros(self.n_indicators)
        function = instance.binary.function
        self._set_time, self._set_states = function("SetTime"), function("SetContinuousStates")
        self._get_slope = function("GetDerivatives" if self.fmi == 2 else "GetContinuousStateDerivatives")
        self._slope_name = instance.binary.prefix + (
            "GetDerivatives" if self.fmi == 2 else "GetContinuousStateDerivatives"
        )
        flag = "completedIntegratorStepNotNeeded" if self.fmi == 2 else "needsCompletedIntegratorStep"
        given = instance.flags.flags.get(flag)
        says = given is not None and given.strip() in ("true", "1")
        self.tell_steps = not says if self.fmi == 2 else given is None or says

    # -- the point ---------------------------------------------------------------------------------------

    def set_point(self, t: float, x: Vector, u: Vector) -> None:
        """Time, states and inputs for what is read next."""
        pointer, check = self.instance.pointer, self.instance.check
        status = self._set_time(pointer, t)
        if status:
            check(status, "setting the time")
        if self.n_states:
            self._x[:] = x
            status = self._set_states(pointer, self._x.ctypes.data, self.n_states)
            if status:
                check(status, "setting the continuous states")
        if self._inputs.length:
            self._inputs.write(pointer, u)

    def slope(self, t: float, x: Vector, u: Vector) -> Vector:
        """The derivatives of the states at a point: the right-hand side."""
        self.set_point(t, x, u)
        return self.slope_here()

    def slope_here(self) -> Vector:
        """The derivatives at the point that is set."""
        if self.n_states:
            status = self._get_slope(self.instance.pointer, self._dx.ctypes.data, self.n_states)
            if status:
                self.instance.check(status, self._slope_name)
        return self._dx.copy()

    def indicators(self, t: float, x: Vector, u: Vector) -> Vector:
        """The event indicators at a point."""
        self.set_point(t, x, u)
        self.instance.call("GetEventIndicators", self._z.ctypes.data, self.n_indicators)
        return self._z.copy()

    def outputs(self) -> Vector:
        """The outputs at the point that is set."""
        return self._outputs.read(self.instance.pointer)

    def states(self) -> Vector:
        """The states as the FMU has them."""
        if self.n_states:
            self.instance.call("GetContinuousStates", self._x.ctypes.data, self.n_states)
        return self._x.copy()

    # -- events --------------------------------------------------------------------------------------------

    def step_done(self) -> bool:
        """Tell the FMU that the integrator has accepted the point that is set; True when it wants an event."""
        kind = ctypes.c_int if self.fmi == 2 else ctypes.c_bool
        wants, ends = kind(), kind()
        self.instance.call("CompletedIntegratorStep", False, ctypes.addressof(wants), ctypes.addressof(ends))
        self._note_end(bool(ends.value))
        return bool(wants.value)

    def enter_event_mode(self, changed: Vector, domains: Vector) -> None:
        """Discrete variables may change from here on; the FMU knows by itself why."""
        self.instance.call("EnterEventMode")

    def leave_event_mode(self) -> EventOutcome:
        """Iterate until the discrete states rest, then go (back) to continuous-time mode."""
        changed = False
        for _ in range(_MANY):
            again, ends, values, when = self._update()
            changed = changed or values
            self._note_end(ends)
            if not again:
                self.instance.call("EnterContinuousTimeMode")
                return EventOutcome(changed, when)
        raise SubsystemError(
            f"the FMU changes its discrete states without end ({_MANY} event iterations at one instant)"
        )

    def _update(self) -> tuple[bool, bool, bool, float]:
        if self.fmi == 2:
            info = EventInfo2()
            self.instance.call("NewDiscreteStates", ctypes.addressof(info))
            when = info.next if info.next_defined else np.inf
            return bool(info.again), bool(info.terminate), bool(info.values), when
        flags = np.zeros(5, dtype=np.bool_)
        moment = ctypes.c_double()
        base = flags.ctypes.data
        self.instance.call("UpdateDiscreteStates", *(base + k for k in range(5)), ctypes.addressof(moment))
        return bool(flags[0]), bool(flags[1]), bool(flags[3]), moment.value if flags[4] else np.inf

    def _note_end(self, ends: bool) -> None:
        if ends:
            raise EndOfSimulation(f"the FMU '{Path(self.instance.file).name}' ends it{self.instance.log.remark}")
