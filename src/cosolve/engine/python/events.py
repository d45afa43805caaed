"""Macro steps that end at an event of one subsystem, so that all others see it (`stop_at_events=True`).

A subsystem with the capability "events" advances over a step up to its first event. Where it ends early the whole step
ends there: who has not run yet advances up to there only, who has is set back and advances again. Then the event
happens, with all subsystems at the same point in time, and what jumps is handed on until nothing jumps any more.

Explicit methods keep the subsystem step of the one that ended the step: its inputs were extrapolated from the past and
stay what they were. Methods that correct their inputs let it advance again, and look for the end of the step that
agrees with the event: each repetition moves the event by a higher power of the step, so that a few of them do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_number
from cosolve.errors import SetupError, SimulationError, SubsystemError
from cosolve.interface.plan import Plan
from cosolve.method.base import Method
from cosolve.method.explicit import in_order
from cosolve.subsystem.base import has_capability
from cosolve.subsystem.sampled import Sampled

#: An event closer than this fraction of a macro step to its end happens there.
CLOSE_EVENT = 1e-9

#: Repetitions that look for the end of one step; events between two points of the grid; rounds at one instant.
_REPETITIONS, _EVENTS, _ROUNDS = 50, 1000, 100


def late_samples(method: Method, plan: Plan) -> str:
    """One sentence where others see a sample one macro step late, since macro steps do not end at events.

    A serial sweep of degree 0 that begins with the sampled subsystems hands their outputs on at once.
    """
    used = {int(plan.y_owner[k]) for rows in (plan.copy_from, *(b.y_index for b in plan.blocks)) for k in rows}
    late = [i for i in sorted(used) if isinstance(plan.subsystems[i], Sampled)]
    declaration = method.declaration
    if declaration is not None and method.serial and method.explicit and method.degree == 0:
        first = in_order(plan, declaration.order)[: len(late)]
        late = [] if set(first) == set(late) else late
    if not late:
        return ""
    names = ", ".join(f"'{plan.names[i]}'" for i in late)
    return f"the others see each sample of {names} one macro step after it"


class EndedEarly(Exception):
    """Subsystem `i` came to an event at `t`, before the end of the step."""

    def __init__(self, i: int, t: float, outputs: Any) -> None:
        super().__init__(i, t)
        self.i, self.t, self.outputs = i, t, outputs


class Watch:
    """Who has events, who has advanced over the step so far, who stands at an event."""

    def __init__(self, plan: Plan, keeps: bool) -> None:
        self.plan, self.keeps = plan, keeps
        self.able = [i for i, s in enumerate(plan.subsystems) if has_capability(s, "events")]
        if not self.able:
            raise SetupError(
                "stop_at_events: none of the subsystems can end a step at an event; HybridOde, model-exchange FMUs, "
                "FMUs of FMI 3.0 with event mode, and subsystems that define advance_to_event and handle_event can"
            )
        self.others = [i for i in range(plan.n_subsystems) if i not in self.able]
        self.stops = 0  # macro steps that ended at events
        self._crowd, self._grid = 0, -np.inf
        self.begin(0.0, 1.0)

    @property
    def memory(self) -> dict[str, Any]:
        """What is counted from step to step."""
        return {"stops": self.stops, "crowd": self._crowd, "grid": self._grid}

    @memory.setter
    def memory(self, saved: dict[str, Any]) -> None:
        self.stops, self._crowd, self._grid = saved["stops"], saved["crowd"], saved["grid"]

    # -- one macro step ----------------------------------------------------------------------------------

    def begin(self, t0: float, H: float) -> None:
        """A macro step is about to be advanced."""
        self.t0, self.tolerance = t0, max(CLOSE_EVENT * H, 8.0 * float(np.spacing(abs(t0) + H)))
        self.states: dict[int, Any] = {}
        self.moved: set[int] = set()
        self.pending: set[int] = set()
        self.ready: dict[int, Any] = {}  # what those gave that need not advance again
        self._repeated = 0

    def advance(self, i: int, t0: float, t1: float, u: Any, advance: Callable[..., Any], end: float) -> Any:
        """Subsystem `i` advances over the step, or a part of one that ends at `end`; its outputs, or `EndedEarly`."""
        if i in self.ready:
            return self.ready[i]
        self.moved.add(i)
        if i not in self.able:
            return advance(t0, t1, u)
        t, outputs, event = self.to_event(i, t0, t1, u)
        if event and t < end - self.tolerance:
            raise EndedEarly(i, t, outputs)
        (self.pending.add if event else self.pending.discard)(i)
        return outputs

    def to_event(self, i: int, t0: float, t1: float, u: Any) -> tuple[float, Any, bool]:
        """Subsystem `i` goes to its first event."""
        reached = self.plan.subsystems[i].advance_to_event(t0, t1, u)
        given = isinstance(reached, (tuple, list)) and len(reached) == 3
        t, outputs, event = reached if given else (np.nan, None, False)
        if not is_number(t) or not t0 < t <= t1 or (t < t1 and not event):
            raise SubsystemError(
                f"advance_to_event returned {reached!r}; expected (t, outputs, event) with {t0:.9g} < t <= {t1:.9g}, "
                "and an event where t is earlier than that"
            )
        return float(t), outputs, bool(event)

    def cut(self, early: EndedEarly, t1: float, restore: Callable[[int], None] | None) -> float:
        """The end of the step that agrees with the event; all others are rolled back.

        `restore` sets one subsystem back where all can go back; otherwise `states` hold those that can.
        """
        self._repeated += 1
        if self._repeated > _REPETITIONS:
            name = self.plan.names[early.i]
            raise SimulationError(
                f"the macro step from t = {self.t0:.9g} finds no end: '{name}' has its event at another time whenever "
                f"the step is repeated, now at t = {early.t:.9g}; take a smaller step, or an explicit method",
                time=self.t0,
                subsystem=name,
            )
        for i in sorted(self.moved - ({early.i} if self.keeps else set())):
            self._set_back(i, early, restore)
        self.moved, self.pending, self.ready = set(), set(), {}
        if not self.keeps:
            return min(early.t + 0.5 * self.tolerance, t1)
        self.moved.add(early.i)
        self.pending.add(early.i)
        self.ready[early.i] = early.outputs
        return early.t

    def _set_back(self, i: int, early: EndedEarly, restore: Callable[[int], None] | None) -> None:
        plan = self.plan
        if restore is not None:
            restore(i)
        elif i in self.states:
            plan.subsystems[i].restore(self.states[i])
        else:
            name, other = plan.names[i], plan.names[early.i]
            raise SubsystemError(
                f"'{other}' has an event at t = {early.t:.9g}, but '{name}' has already taken the macro step from "
                f"t = {self.t0:.9g} and cannot go back to end it there; define save and restore for '{name}', let "
                f"'{other}' run first (GaussSeidel(order=['{other}'])), or run without stop_at_events",
                time=self.t0,
                subsystem=name,
            )

    # -- the event ---------------------------------------------------------------------------------------

    def handle(self, t: float, y: Vector, z: Vector, caller: Any) -> tuple[Vector, Vector]:
        """Let the events at `t` happen; outputs and coupling variables after them, at rest with each other."""
        plan = self.plan
        self.stops += 1
        self._crowd = self._crowd + 1 if t - self._grid < 1e9 * self.tolerance else 1
        self._grid = t if self._crowd == 1 else self._grid
        if self._crowd > _EVENTS:
            raise SimulationError(
                f"more than {_EVENTS} events since t = {self._grid:.9g}, less than a macro step ago: they accumulate "
                "(chattering, or a ball that comes to rest); run without stop_at_events, or let the model rest",
                time=t,
            )
        caller.to_time(t)
        y, seen = y.copy(), {i: plan.inputs(z, i) for i in self.able}
        due = set(self.pending)
        for _ in range(_ROUNDS):
            for i in sorted(due):
                seen[i] = plan.inputs(z, i)
                call = partial(plan.subsystems[i].handle_event, t, seen[i].copy())
                y[plan.y_slices[i]] = caller.guarded(i, t, "handling an event", call)
            y, z = caller.settle(t, y, plan.evaluate(y, z))
            due = {i for i in self.able if not np.array_equal(plan.inputs(z, i), seen[i])}
            if not due:
                return y, z
        names = ", ".join(f"'{plan.names[i]}'" for i in sorted(due))
        raise SimulationError(f"the events of {names} at t = {t:.9g} cause each other without end", time=t)
