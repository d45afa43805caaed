"""The macro-step loop, one turn at a time: what `simulate` does in a row and a `Stepper` by hand."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from cosolve.errors import CapabilityError, SetupError
from cosolve.interface import Plan
from cosolve.method import Crew, Method, Outcome
from cosolve.method.base import MacroStep, Remembering, memory_of, set_memory
from cosolve.method.startup import RisingDegree
from cosolve.signal import History
from cosolve.stepper.snapshot import Snapshot, description
from cosolve.stepper.windows import Uniform, Windows
from cosolve.subsystem.base import has_capability
from cosolve.subsystem.port import Vector


class Core:
    """A system under way: its subsystems, the coupling history, the method with its memory, the step sequence.

    `t`, `y`, `z` are time, outputs and coupling variables now; `rejected` counts the attempts that were repeated.
    The plan's constants may be changed between steps without touching the system.
    """

    def __init__(
        self, plan: Plan, method: Method, startup: RisingDegree | None, windows: Windows, workers: int = 1
    ) -> None:
        self.plan = replace(plan, u_offset=plan.u_offset.copy())
        self.method, self.startup, self.windows = method, startup or RisingDegree(), windows
        self.crew = Crew(self.plan, workers)
        self.rejected = 0
        self.y = self.z = np.zeros(0)
        self.history: History
        self._t_start = np.nan
        self._step: MacroStep

    @property
    def t(self) -> float:
        """Time now: the start of the macro step that is under way or comes next."""
        return self.windows.t

    @property
    def done(self) -> bool:
        """True when the step sequence has come to its end."""
        return self.windows.done

    def start(self, t_start: float) -> None:
        """Put everything into its initial state."""
        self._t_start = t_start
        self.y, self.z = self.crew.start(t_start)
        if "rollback" in self.method.needs or self.windows.may_reject:
            self.crew.prove_rollback(t_start, self.windows.first_step, self.z)
        self.history = History(self.z, depth=self.method.depth)
        self.startup.prepare(self.plan, self.method, self.history, t_start, self.windows.first_step)
        self._step = self.startup.wrap(self.crew, self.method, self.method.bind(self.crew))

    def cross(self, H: float | None = None, limit: float = inf) -> Outcome:
        """One accepted macro step, of length `H` where that is given, at most to `limit`."""
        windows, crew = self.windows, self.crew
        while True:
            window = windows.propose(H, limit)
            states = crew.save() if windows.may_reject else None
            outcome = self._step(self.history, window)
            error = windows.judge(window, outcome)
            if error is not None:
                break
            crew.restore(states or [])  # rejected: the windows offer a shorter one next
            self.rejected += 1
            H = None
        self.rejected += outcome.rejected
        if outcome.t1 is None or outcome.H is None:
            outcome.t1, outcome.H = window.t1, window.H
        outcome.error = error
        self.history.push(outcome.z, outcome.H)
        self.y, self.z = outcome.y, outcome.z
        return outcome

    @property
    def remembered(self) -> Any:
        """The books that the method itself keeps from step to step (see `Remembering`); None where it keeps none."""
        return self._step.parts[-1] if isinstance(self._step, Remembering) else None

    def skip(self, times: Vector, y: Vector, values: list[Vector]) -> None:
        """Macro steps up to `times[-1]` were crossed elsewhere: stand there, with these newest values first."""
        assert isinstance(self.windows, Uniform)
        self.windows.skip(times)
        self.stand(y, values, self.history.steps)

    def stand(self, y: Vector, values: list[Vector], steps: list[float]) -> None:
        """Outputs and coupling history where the run stands now."""
        self.y, self.z = y, values[0]
        self.history.values, self.history.steps = values, steps

    def settled(self) -> tuple[Vector, Vector]:
        """Outputs and coupling variables now, with what reacts at once to changed constants; nothing moves."""
        plan, crew = self.plan, self.crew
        if any(subsystem.overshoots for subsystem in plan.subsystems):
            return self.y, self.z  # they stand elsewhere
        able = [i for i, subsystem in enumerate(plan.subsystems) if has_capability(subsystem, "rollback")]
        states = {i: crew.save_one(i) for i in able}  # evaluating outputs may leave traces, such as a warm start
        try:
            return crew.settle(self.t, self.y, self.z)
        finally:
            for i in able:
                crew.restore_one(i, states)

    # -- saved states ----------------------------------------------------------------------------------

    def save(self, *, portable: bool = False) -> Snapshot:
        """Everything that continues the run from here; `portable` for a file that another process reads."""
        return Snapshot(
            description=description(self.plan, self.method, self.startup),
            t=self.t,
            t_start=self._t_start,
            y=self.y.copy(),
            z=self.z.copy(),
            history=self.history.copy(),
            constants=self.plan.u_offset.copy(),
            grid=self.windows.settings,
            windows=self.windows.memory,
            memory=memory_of(self._step),
            states={name: self._saved(name, i, portable) for i, name in enumerate(self.plan.names)},
        )

    def _saved(self, name: str, i: int, portable: bool) -> tuple[str, Any]:
        subsystem = self.plan.subsystems[i]
        if portable and has_capability(subsystem, "serialised state"):
            try:
                return "serialised", subsystem.serialise()
            except Exception as error:
                raise SetupError(f"'{name}' failed in serialise: {error} ({type(error).__name__})") from error
        if not has_capability(subsystem, "rollback"):
            raise CapabilityError(
                f"the run cannot be saved: '{name}' ({type(subsystem).__name__}) has no save and restore; define them "
                "there, or start the run anew"
            )
        return "saved", self.crew.save_one(i)

    def restore(self, snapshot: Snapshot) -> None:
        """Back (or on) to a saved state; on the same grid of steps where the step sequence is the same."""
        snapshot.refuse_other(description(self.plan, self.method, self.startup))
        for i, name in enumerate(self.plan.names):
            kind, state = snapshot.states[name]
            if kind == "saved":
                self.crew.restore_one(i, {i: state})
                continue
            try:
                self.plan.subsystems[i].deserialise(state)
            except Exception as error:
                raise SetupError(f"'{name}' failed in deserialise: {error} ({type(error).__name__})") from error
        self._t_start = snapshot.t_start
        self.y, self.z = snapshot.y.copy(), snapshot.z.copy()
        self.history = snapshot.history.copy()
        self.plan.u_offset[:] = snapshot.constants
        self.crew.note_constants()
        set_memory(self._step, snapshot.memory)
        self.windows.continue_from(snapshot.t, snapshot.grid, snapshot.windows)
