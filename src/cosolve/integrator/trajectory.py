"""The path of a model with events through time: internal steps, and the events between them.

A macro step is advanced by internal steps; after each one the event indicators are looked at, the model is told, and an
event that is due is handled. Models are FMUs for model exchange (`fmu/model_exchange.py`) and `HybridOde`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.errors import NonFiniteError, SubsystemError
from cosolve.integrator.event_search import first_event, known, left
from cosolve.integrator.inner_steps import MAX_STEPS, Inside, SciPySteps, Steps
from cosolve.integrator.runge_kutta import StiffError
from cosolve.signal.polynomial import InputSignal

_AUTO_MAX_STEPS = 1000  # internal steps between events, before "auto" turns stiff
_SAME_TIME = 1e-10  # of a macro step: a time event this close to its end happens there
_SLIVER = 1e-13  # a rest of a macro step that is not worth an internal step
_CROWD = 20  # so many events within _CROWDED (of the macro step, or of the time) accumulate
_CROWDED, _CROWDED_TIME = 1e-7, 1e-12
_PROBES = tuple(10.0**k for k in range(-13, -2))  # of a macro step: looks ahead at an indicator that is zero

_NONE = np.zeros(0)

#: told of every piece of an internal step: start, end, state at the start, states inside
Observer = Callable[[float, float, Vector, Inside], None]


class EventOutcome(NamedTuple):
    """What an event did: whether the states jumped, when the model wants the next one (infinity: not planned)."""

    states_changed: bool
    next_event: float


class Model(Protocol):
    """What a trajectory needs to know of the model that follows it.

    Indicators belong to points of time; everything that happens at an event does so between `enter_event_mode` and the
    end of `leave_event_mode`, at the point that is set. `rests_at_zero`: an indicator that has caused an event is zero
    then, whatever rounding says, and its domain is the one that it goes to next.
    """

    n_states: int
    n_indicators: int
    tell_steps: bool
    rests_at_zero: bool

    def set_point(self, t: float, x: Vector, u: Vector) -> None: ...
    def slope(self, t: float, x: Vector, u: Vector) -> Vector: ...
    def indicators(self, t: float, x: Vector, u: Vector) -> Vector: ...
    def states(self) -> Vector: ...
    def step_done(self) -> bool: ...
    def enter_event_mode(self, changed: Vector, domains: Vector) -> None: ...
    def leave_event_mode(self) -> EventOutcome: ...


class Trajectory:
    """Time `t`, continuous states `x`, domains of the indicators and the next time event of one model."""

    def __init__(self, model: Model, steps: Steps, stiff: SciPySteps | None, max_events: int) -> None:
        self._model, self._first_steps, self._stiff, self._max_events = model, steps, stiff, max_events
        self.reset(0.0)

    def reset(self, t: float) -> None:
        """A new run begins; the model is in event mode (or has not begun)."""
        self.t, self.x = t, np.zeros(self._model.n_states)
        self.signs, self.next_event = np.zeros(self._model.n_indicators), np.inf
        self._gone = np.zeros(self._model.n_indicators, dtype=bool)  # indicators whose event is due
        self._zero = np.zeros(self._model.n_indicators)  # what counts as zero after the last event
        self.events = 0  # of all kinds, since the start
        self._recent: deque[float] = deque(maxlen=_CROWD)
        self.steps = self._first_steps
        self.steps.forget()
        self.grid: list[float] | None = None  # steps of the last subsystem step; None when events cut it
        self.hold = False  # stop before events instead of letting them happen
        self.pending = False  # an event is due where the path stands

    def start(self, u: Vector, H: float = 0.0) -> None:
        """Leave the initial event mode; with the length of a macro step indicators at zero are asked where they go."""
        self.next_event = self._model.leave_event_mode().next_event
        self.x = self._model.states()
        self._find_domains(self.t, u, H)

    def move_to(self, x: Vector, u: Vector) -> None:
        """Go on from other continuous states."""
        self.x = x
        self._find_domains(self.t, u, 0.0)

    @property
    def stiff(self) -> bool:
        """True where "auto" has turned to the stiff solver."""
        return self.steps is self._stiff

    def choose(self, stiff: bool, memory: Any) -> None:
        """The solver and its memory, as they were saved."""
        self.steps = self._stiff if stiff and self._stiff is not None else self._first_steps
        self.steps.forget()
        self.steps.memory = memory

    def snapshot(self) -> Any:
        """All of it, for `back_to`."""
        switches = self.signs, self.next_event, self.events, tuple(self._recent), self._gone, self._zero
        return self.t, self.x, switches, self.stiff, self.steps.memory

    def back_to(self, snapshot: Any) -> None:
        """Go back to a snapshot."""
        self.t, self.x, switches, stiff, memory = snapshot
        self.signs, self.next_event, self.events, recent, self._gone, self._zero = switches
        self._recent = deque(recent, maxlen=_CROWD)
        self.pending = False
        self.choose(stiff, memory)

    # -- internal steps ----------------------------------------------------------------------------------------

    def advance(self, t1: float, u: InputSignal, observer: Observer | None = None) -> None:
        """To `t1`; leaves the model at the point there."""
        t0, count, state_events = self.t, 0, 0
        self.grid = []
        while self.t < t1:
            before = self.events
            state_events += self.one_step(t1, u, observer)
            count += 1
            if self.events != before:
                self.grid = None
                count = 0
            if state_events > self._max_events:
                raise SubsystemError(
                    f"more than {self._max_events} state events since t = {t0:.9g}, the last at t = {self.t:.9g}: it "
                    "switches back and forth (chattering); give the switch a hysteresis, or raise max_events"
                )
            self._turn_stiff(count)
        self._model.set_point(t1, self.x, u.end)

    def advance_to_event(self, t1: float, u: InputSignal, observer: Observer | None = None) -> None:
        """To `t1`, or to the first event before it, which is `pending` then; leaves the model at the point there."""
        count = 0
        self.grid, self.hold, self.pending = [], True, False
        try:
            while self.t < t1 and not self.pending:
                self.one_step(t1, u, observer)
                count += 1
                self._turn_stiff(count)
        finally:
            self.hold = False
        self._model.set_point(self.t, self.x, u.end if self.t == t1 else u(self.t))

    def _turn_stiff(self, count: int) -> None:
        """Give up, or change the solver, where one macro step takes too many internal ones."""
        if self.steps is self._first_steps and self._stiff is not None and count >= _AUTO_MAX_STEPS:
            self.steps = self._stiff
        elif count >= MAX_STEPS:
            raise StiffError(
                f"the solver needs more than {MAX_STEPS} steps at t = {self.t:.6g}; if the equations are stiff use "
                "integrator='Radau' or 'BDF'"
            )

    def one_step(self, t1: float, u: InputSignal, observer: Observer | None) -> int:
        """One internal step, to at most `t1`, and the event at its end; 1 where that was a state event."""
        t, x, due = self.t, self.x, self.next_event
        slack = _SAME_TIME * u.H
        if t1 - t <= _SLIVER * max(abs(t1), u.H):  # after an event at (almost) the end
            self.t = t1
            return 0
        if due <= t + slack:
            self.event(u)
            return 0
        t_stop = t1 if due >= t1 - slack else due
        try:
            t_new, x_new, inside = self.steps.step(self._model.slope, t, t_stop, x, u)
        except StiffError:
            if self._stiff is None or self.steps is self._stiff:
                raise
            self.steps = self._stiff  # stays there: stiffness seldom goes away
            return 0
        if not np.isfinite(x_new).all():
            k = int(np.flatnonzero(~np.isfinite(x_new))[0])
            raise NonFiniteError(f"state {k} became {x_new[k]} before t = {t_new:.9g}")
        event_time = self._find_event(t, t_new, x, x_new, inside, u) if self._model.n_indicators else None
        if event_time is not None:
            t_new, x_new = event_time, x_new if event_time == t_new else inside(event_time)
        if observer is not None:
            observer(t, t_new, x, inside)
        if self.grid is not None:
            self.grid.append(t_new - t if self.steps.moved else t - t_new)
        self.t, self.x = t_new, x_new
        if event_time is not None:
            self._due(u)
            return 1
        wanted = False
        if self._model.tell_steps:
            self._model.set_point(t_new, x_new, u(t_new))
            wanted = self._model.step_done()
        if wanted or due <= t_new + slack:
            self._due(u)
        return 0

    def _due(self, u: InputSignal) -> None:
        """An event: now, or when the others have come here too."""
        if self.hold:
            self.pending = True
        else:
            self.event(u)

    # -- events ----------------------------------------------------------------------------------------------

    def left_domain(self, u: Vector) -> bool:
        """True when new inputs put an indicator into its other domain."""
        if not self._model.n_indicators:
            return False
        z = self._model.indicators(self.t, self.x, u)
        return bool((left(self.signs, z) & (np.abs(z) > self._zero)).any())  # just after an event, or about to have one

    def _find_event(self, t: float, t1: float, x: Vector, x1: Vector, inside: Inside, u: InputSignal) -> float | None:
        """Where an indicator first changes its domain in this step."""
        f, f1, h = self._model.slope(t, x, u(t)), self._model.slope(t1, x1, u(t1)), t1 - t

        def guess(when: float) -> Vector:
            """By the cubic through values and slopes at both ends."""
            s = (when - t) / h
            r = 1.0 - s
            state = r * r * (1 + 2 * s) * x + s * s * (1 + 2 * r) * x1 + h * s * r * (r * f - s * f1)
            return self._model.indicators(when, state, u(when))

        def exact(when: float) -> Vector:
            state = x if when == t else x1 if when == t1 else inside(when)
            return self._model.indicators(when, state, u(when))

        found, self.signs = first_event(self.signs, t, t1, guess, exact)
        if found is not None and self._model.rests_at_zero:
            self._gone = left(self.signs, exact(found))
        return found

    def event(self, u: InputSignal, change: Callable[[], None] | None = None) -> None:
        """Event mode at the present time; `change` sets discrete inputs there."""
        t, due, self.pending = self.t, self.next_event, False
        here = due if t < due <= t + _SAME_TIME * u.H else t  # a time event finds its own time
        self._model.set_point(here, self.x, u(t))
        changed = self._changed(here, u(t))
        self._model.enter_event_mode(changed, self.signs)
        if change is not None:
            change()
        outcome = self._model.leave_event_mode()
        self.next_event = outcome.next_event
        if outcome.states_changed:
            self.x = self._model.states()
        self.steps.forget()
        self._find_domains(t, u(t), u.H, changed != 0.0)
        self.events += 1
        self._recent.append(t)
        if len(self._recent) == _CROWD and t - self._recent[0] < max(_CROWDED * u.H, _CROWDED_TIME * abs(t)):
            raise SubsystemError(
                f"{_CROWD} events between t = {self._recent[0]:.15g} and t = {t:.15g}: they accumulate there (Zeno "
                "behaviour, such as a ball coming to rest by ever smaller bounces); let the model rest instead, or end "
                "the run before"
            )

    def _changed(self, t: float, u: Vector) -> Vector:
        """+1 for indicators that have become positive, -1 for those that no longer are, 0 for all others."""
        if not self._model.rests_at_zero:
            return _NONE
        z = self._model.indicators(t, self.x, u)
        gone = self._gone | (left(self.signs, z) & (np.abs(z) > self._zero))
        self._gone = np.zeros_like(self._gone)
        changed: Vector = np.where(gone, -self.signs, 0.0)
        return changed

    def _find_domains(self, t: float, u: Vector, H: float, caused: npt.NDArray[np.bool_] | None = None) -> None:
        """The domains of the indicators after an event; those at zero by where they go next."""
        if not self._model.n_indicators:
            return
        z = self._model.indicators(t, self.x, u)
        if caused is not None and len(caused):
            self._zero = np.where(caused, np.abs(z), 0.0)
            z = np.where(caused, 0.0, z)
        self.signs = np.sign(z)
        if not H or self.signs.all():
            return
        slope = self._model.slope(t, self.x, u)
        for fraction in _PROBES:
            ahead = fraction * H
            self.signs = known(self.signs, self._model.indicators(t + ahead, self.x + ahead * slope, u))
            if self.signs.all():
                return
