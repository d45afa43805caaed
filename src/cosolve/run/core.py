"""The macro-step loop, one turn at a time: what `simulate` does in a row and a `Stepper` by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from math import inf
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import flag
from cosolve.basics.wording import raised, shortened
from cosolve.engine.corrections import Corrections
from cosolve.engine.measure import Measure
from cosolve.engine.python.events import EndedEarly, Watch
from cosolve.engine.python.executor import StepExecutor, bind
from cosolve.engine.python.kept_states import alike, note_end, shares_state, suspicious
from cosolve.engine.python.self_check import Proof, Repeated, lasting, repeats_last_step, same_outputs, uncounted
from cosolve.engine.python.staged import StagedExecutor
from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.errors import (
    CapabilityError,
    ConvergenceError,
    CosolveError,
    EndOfSimulation,
    SetupError,
    SimulationError,
    SubsystemError,
)
from cosolve.interface import Plan
from cosolve.interface.changes import Change
from cosolve.method import Method, Outcome
from cosolve.method.step import CLOSE, MacroStep, Window, memory_of, set_memory
from cosolve.run.startup import Startup, default_start
from cosolve.run.startup_steps import StartupSteps
from cosolve.signal import History
from cosolve.state.ownership import Ownership
from cosolve.state.snapshot import Snapshot, description
from cosolve.stepsize.sequence import Uniform, Windows
from cosolve.subsystem.base import has_capability

#: A step this much shorter than usual is no support point of an extrapolation.
_SLIVER = 1e-6


class Core:
    """A system under way: its subsystems, the coupling history, the method with its memory, the step sequence.

    `t`, `y`, `z` are time, outputs and coupling variables now; `rejected` counts the attempts that were repeated.
    The plan's constants may be changed between steps without touching the system.
    """

    #: degrees that something adds to the input signals, for compiled code
    added_degrees = 0

    def __init__(
        self,
        plan: Plan,
        method: Method,
        startup: Startup | None,
        windows: Windows,
        workers: int = 1,
        stop_at_events: bool = False,
    ) -> None:
        self.plan = replace(plan, u_offset=plan.u_offset.copy())
        if startup is not None and not isinstance(startup, Startup):
            raise SetupError(f"startup must be a Startup such as GradedStart(), not {shortened(startup)}")
        self.method, self.startup, self.windows = method, startup or default_start(method), windows
        if self.startup.gives_values and method.signal != "lagrange":
            raise SetupError(
                f"{type(self.startup).__name__} gives values at past macro points, and {method.label} draws its "
                "signals from none; leave startup out"
            )
        self.caller, self.ownership = SubsystemCaller(self.plan, workers), Ownership(self.plan)
        if flag("stop_at_events", stop_at_events):
            self._refuse_no_stops()
            self.caller.watch = Watch(self.plan, keeps="rollback" not in method.needs)
        self.rejected = 0
        self.y = self.z = self._first = np.zeros(0)
        #: places of subsystems that are of one class of the user, until the first step has been looked at
        self._alike: list[list[int]] = []
        self.history: History
        #: who asked for the end of the run, and whether that left a macro step half advanced
        self.ended: EndOfSimulation | None = None
        self._restored = False  # whether it goes on from a saved state
        self.inside_step = False
        self.t_start = np.nan
        self._step: MacroStep
        #: what single corrections have left of the residual
        self.corrections = Corrections(self.plan)
        self._proof = Proof(wanted=False)
        #: whether what subsystems advance is kept, to prove at the end that going back cost nothing
        self.proves = False
        #: whether something is said about how good the run is
        self.verdict = False
        self._next_change = 0
        self.startup_steps = StartupSteps(self)
        #: by name, what subsystems say of the length of their steps
        self.steps_said: dict[str, str] = {}

    def _refuse_no_stops(self) -> None:
        """Raise where macro steps cannot end at events."""
        method = self.method
        if not method.stops_at_events or method.inner_point is not None:
            who = method.label if method.stops_at_events else method.name
            raise CapabilityError(
                f"stop_at_events: {who} does not end its macro steps at events; Jacobi, GaussSeidel, "
                "SemiImplicit and Implicit do"
            )
        if self.startup.own_steps:
            raise SetupError(f"stop_at_events: {type(self.startup).__name__} steps across events; take another startup")

    @cached_property
    def _description(self) -> dict[str, Any]:
        """What the runs that go on from a state of this one must have in common with it."""
        return description(self.plan, self.method, self.startup)

    @property
    def t(self) -> float:
        """Time now: the start of the macro step that is under way or comes next."""
        return self.windows.t

    @property
    def done(self) -> bool:
        """True when the step sequence has come to its end, or a subsystem has asked for it."""
        return self.ended is not None or self.windows.done

    def begin(self, t_start: float) -> None:
        """Start a run: what was changed by hand in an earlier one is forgotten."""
        for one in self.plan.driven:
            one.drive.reset()
        self.start(t_start)

    def start(self, t_start: float) -> None:
        """Put everything into its initial state."""
        self.t_start, self.ended, self.inside_step = t_start, None, False
        for one in self.plan.driven:
            one.drive.refuse_outside(t_start, self.windows.t_end, one.target)
        self._begin_changes(t_start)
        goes_back = "rollback" in self.method.needs or self.windows.may_reject or self.caller.watch is not None
        if self.proves and goes_back:
            self.caller.keep_past(self.method.degree, trusted=None if self.verdict else (t_start, self.windows.t_end))
        self.ownership.take()
        self.y, self.z = self.caller.start(t_start, self.windows.t_end)
        self.steps_said = self.caller.look_at_steps(t_start, self.windows.first_step, self.z)
        if "rollback" in self.method.needs or self.windows.may_reject:
            self.caller.prove_rollback(t_start, self.windows.first_step, self.z)
        self.windows.begin(self.z)
        self.history = self.method.history(self.z)
        self.startup.prepare(self.plan, self.method, self.history, t_start, self.windows.first_step, self.y)
        step = bind(self.method, self.caller, watched=True)
        self._step = self.startup.wrap(self.caller, self.method, step)
        self.corrections = (
            step.corrections if isinstance(step, (StepExecutor, StagedExecutor)) else Corrections(self.plan)
        )
        #: whether attempts may be repeated that the method itself does not repeat, and rollback was not yet checked
        repeats = self.windows.may_reject or (self.caller.watch is not None and self.caller.watch.keeps)
        self._proof = Proof(
            repeats and self.method.explicit and isinstance(self._step, StepExecutor), lasting(self.plan)
        )
        self.startup_steps.plan()
        self._first = self.y
        self._alike = alike(self.plan.subsystems)

    def close(self) -> None:
        """End the worker threads, and remember how the subsystems ended: the next run must not begin there."""
        for subsystem, part in zip(self.plan.subsystems, self.plan.y_slices, strict=True):
            if len(self.y):
                note_end(subsystem, self._first[part], self.y[part])
        self.caller.close()

    def take_step(self, H: float | None = None, limit: float = inf) -> Outcome:
        """One accepted macro step, of length `H` where that is given, at most to `limit`.

        Raises `EndOfSimulation` when a subsystem wants the run to end before the step is advanced, and not all
        subsystems can go back to advance it up to there only.
        """
        try:
            if self.plan.changes.listed:
                limit = self._changed(limit)
            if self.startup_steps.graded:
                outcome = self.startup_steps.take_step(H, limit)
                if outcome is not None:
                    return outcome
                limit = self._changed(limit)  # the run may have started anew
            return self.advance(self.windows, H, limit)
        except Exception as error:
            self.blame_state(error)
            raise

    def blame_state(self, error: Exception) -> None:
        """Raise a sentence where a step fails after a saved state was restored, whose memory could be anything."""
        if self._restored and not isinstance(error, CosolveError):
            raise SimulationError(f"the run cannot go on from the saved state: {raised(error)}", time=self.t) from error

    def advance(self, windows: Windows, H: float | None, limit: float) -> Outcome:
        """The next step of a sequence, repeated until it is accepted."""
        caller, watch = self.caller, self.caller.watch
        judge, anew = windows.judge, True
        while True:
            window = windows.propose(H, limit)
            if anew:
                caller.saved = None
                if watch is not None or self.windows.may_reject:
                    self._begin_step(window)
            try:
                outcome = self._step(self.history, window)
                if self._proof.open and self._proof.due():
                    self._prove_rollback(window, outcome)
            except EndOfSimulation as end:
                limit, judge, anew = self._shorter(window, end), windows.judge_cut, True
            except EndedEarly as early:
                assert watch is not None
                back = None if caller.saved is None else partial(caller.restore_one, states=caller.saved)
                limit, judge, anew = watch.cut(early, window.t1, back), windows.judge_cut, False
                continue
            except ConvergenceError:
                if windows is not self.windows or not windows.shorten(window):
                    raise
                H, anew = None, True
            else:
                error = judge(window, outcome)
                if error is not None:
                    if outcome.unsolved is not None and not error <= 1.0:
                        raise outcome.unsolved
                    break
                H, anew = None, True
            self._go_back()  # the windows offer a shorter one next
            self.rejected += 1
            if windows.stuck and self.method.lags:
                self._exchange_again()
        caller.saved = None
        if watch is not None:
            watch.states = {}  # an FMU must not assume a rollback so far
        if caller.endings:
            self.ended = next(iter(caller.endings.values()))
        self.rejected += outcome.rejected
        if outcome.t1 is None or outcome.H is None:
            outcome.t1, outcome.H = window.t1, window.H
        outcome.error = error
        if watch is None:
            self.history.push(outcome.z if outcome.kept is None else outcome.kept, outcome.H)
        else:
            self._past_events(watch, outcome)
        self.y, self.z = outcome.y, outcome.z
        if self._alike:
            self._refuse_shared_state(window)
        if self.plan.driven:
            caller.to_time(outcome.t1)
        return outcome

    def _refuse_shared_state(self, window: Window) -> None:
        """After the first step: instances of one class that say they are in one state, and give other outputs."""
        caller, plan, groups = self.caller, self.plan, self._alike
        self._alike = []
        held = self.history.values[0][np.newaxis, :]
        for group in groups:
            same = suspicious([plan.subsystems[i] for i in group], [self.y[plan.y_slices[i]] for i in group])
            if not same:
                continue
            asked = [group[0], *(group[k] for k in same)]
            ahead = Window(window.t1, window.t1 + window.H, window.H)
            with uncounted(caller):
                other = shares_state(
                    [plan.subsystems[i] for i in asked], partial(caller.advance, asked[0], ahead, held)
                )
            if other is not None:
                names = plan.names[asked[0]], plan.names[asked[other]]
                raise SubsystemError(
                    f"'{names[0]}' and '{names[1]}' share their state: one moves when the other advances; keep it in "
                    "the instance (self), not in the class or in a default argument",
                    subsystem=names[0],
                )

    def _exchange_again(self) -> None:
        """Let outputs that react to inputs at once agree with the inputs at the start of the step.

        Explicit methods take them as they were computed, with extrapolated inputs. That error belongs to the step
        before; left in the history it would be met by every attempt at this step, however short.
        """
        if not any(subsystem.overshoots for subsystem in self.plan.subsystems):
            _, self.history.values[0] = self.caller.settle(self.t, self.y, self.z)

    def _begin_step(self, window: Window) -> None:
        """Save what may be needed to advance over the step again."""
        caller, watch = self.caller, self.caller.watch
        if self.windows.may_reject:
            caller.save()
        if watch is not None:
            watch.begin(window.t0, max(window.H, self.windows.usual))
            if watch.keeps and caller.saved is None:
                able = [i for i, s in enumerate(self.plan.subsystems) if has_capability(s, "rollback")]
                watch.states = {i: caller.save_one(i) for i in able}

    def _prove_rollback(self, window: Window, first: Outcome) -> None:
        """Advance over a step once more, uncounted; raise when a subsystem gives other outputs then."""
        caller, states, known = self.caller, self.caller.saved, True
        if caller.watch is not None:
            self._proof.note(
                not caller.watch.pending and repeats_last_step(caller, states or caller.watch.states, window)
            )
            return
        if states is None or caller.endings:
            self._proof.note(True)
            return
        held = self.history.values[0][np.newaxis, :]
        repeated = Repeated(caller, window, held, partial(caller.restore_one, states=states))
        with uncounted(caller):
            caller.restore(states)
            again = self._step(self.history, window)
            for i, part in enumerate(self.plan.y_slices):
                known &= same_outputs(repeated, i, first.y[part], again.y[part])
        caller.saved = states
        self._proof.note(known)

    def _go_back(self) -> None:
        """All subsystems that have moved, back to the start of the step."""
        caller, watch = self.caller, self.caller.watch
        if caller.saved is not None:
            caller.restore(caller.saved)
        elif watch is not None:
            for i in sorted(watch.moved):
                caller.restore_one(i, watch.states)

    def _shorter(self, window: Window, end: EndOfSimulation) -> float:
        """Where a step is cut because a subsystem ends the run there; raises without rollback."""
        t, watch = window.t0 if end.time is None else end.time, self.caller.watch
        back = self.caller.saved is not None or (watch is not None and watch.moved <= watch.states.keys())
        if not back or not window.t0 + CLOSE * window.H < t < window.t1:
            self.ended, self.inside_step = end, True
            raise end
        return t

    def _past_events(self, watch: Watch, outcome: Outcome) -> None:
        """Let the events at the end of the step happen; values jump there, so that the history begins anew."""
        assert outcome.t1 is not None
        assert outcome.H is not None
        if watch.pending:
            try:
                outcome.y, outcome.z = watch.handle(outcome.t1, outcome.y, outcome.z, self.caller)
            except EndOfSimulation as end:
                self.ended = end
            self.history = self.history.begun(outcome.z)
        elif outcome.H < _SLIVER * self.windows.usual:  # differences over such a step would be noise
            self.history.end_in(outcome.z)
        else:
            self.history.push(outcome.remembered, outcome.H)

    def recorded(self, z: Vector) -> Vector:
        """Coupling variables, and beside them the driven inputs now."""
        return np.concatenate([z, self.plan.u_offset[self.plan.u_driven]]) if self.plan.driven else z

    # -- parameters that change ------------------------------------------------------------------------

    def _begin_changes(self, t: float) -> None:
        """A new run begins with the parameters of before; macro points of a fixed step have to be there for all."""
        changes, self._next_change = self.plan.changes, 0
        for name, values in changes.values_at(-np.inf, 0.0).items():
            self._subsystem(name).set_parameters(values)
        if isinstance(self.windows, Uniform):
            for one in changes.listed:
                self.windows.refuse_off_grid(one.t, f"the change of '{one.subsystem}.{next(iter(one.values))}'")

    def _changed(self, limit: float) -> float:
        """Make the changes whose time has come; the limit up to which the next step may go then."""
        changes = self.plan.changes
        if not changes.listed:
            return limit
        t, H = self.windows.t, self.windows.first_step
        for one in changes.due(self._next_change, t, H):
            self._change(one, t)
            self._next_change += 1
        return limit if isinstance(self.windows, Uniform) else min(limit, changes.next_after(t))

    def _change(self, one: Change, t: float) -> None:
        subsystem, originals = self._subsystem(one.subsystem), self.plan.changes.originals
        for key in one.values:
            if (one.subsystem, key) not in originals and callable(getattr(subsystem, "get", None)):
                originals[one.subsystem, key] = subsystem.get(key)
        i = self.plan.names.index(one.subsystem)
        past = self.caller.past[i]
        if past is not None:
            past.changed(t, one.values)
        call = partial(subsystem.set_parameters, one.values)
        self.caller.guarded(i, t, "changing its parameters", call, packed=False)

    def _subsystem(self, name: str) -> Any:
        return self.plan.subsystems[self.plan.names.index(name)]

    def renew(self) -> None:
        """Let correctors forget what they have learnt: the steps that follow are of another kind."""
        if isinstance(self._step, (StepExecutor, StagedExecutor)):
            self._step.renew()

    @property
    def measure(self) -> Measure:
        """The sizes of the coupling variables so far, as the Python engine keeps them."""
        assert isinstance(self._step, (StepExecutor, StagedExecutor))
        return self._step.measure

    def skip(self, times: Vector, y: Vector, z: Vector, values: list[Vector]) -> None:
        """Macro steps up to `times[-1]` were advanced elsewhere: stand there, with this newest past first."""
        assert isinstance(self.windows, Uniform)
        self.windows.skip(times)
        self.stand(y, z, values, self.history.steps)

    def added(self, count: int) -> tuple[Matrix, Matrix]:
        """What is added to input signals and to predicted ends in the next steps: nothing in a run."""
        return np.zeros((0, 0, 0)), np.zeros((0, 0))

    def stand(self, y: Vector, z: Vector, values: list[Vector], steps: list[float]) -> None:
        """Outputs, coupling variables and coupling history where the run stands now."""
        self.y, self.z = y, z
        self.history.values, self.history.steps = values, steps

    def settled(self) -> tuple[Vector, Vector]:
        """Outputs and coupling variables now, with what reacts at once to changed constants; nothing moves."""
        plan, caller = self.plan, self.caller
        if any(subsystem.overshoots for subsystem in plan.subsystems):
            return self.y, self.z  # they stand elsewhere
        able = [i for i, subsystem in enumerate(plan.subsystems) if has_capability(subsystem, "rollback")]
        states = {i: caller.save_one(i) for i in able}  # evaluating outputs may leave traces, such as a warm start
        try:
            return caller.settle(self.t, self.y, self.z)
        finally:
            for i in able:
                caller.restore_one(i, states)

    # -- saved states ----------------------------------------------------------------------------------

    def save(self, *, portable: bool = False) -> Snapshot:
        """Everything that continues the run from here; `portable` for a file that another process reads."""
        return Snapshot(
            description=self._description,
            t=self.t,
            t_start=self.t_start,
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
                raise SetupError(f"'{name}' failed in serialise: {raised(error)}") from error
        if not has_capability(subsystem, "rollback"):
            raise CapabilityError(
                f"the run cannot be saved: '{name}' ({type(subsystem).__name__}) has no save and restore; define them "
                "there, or start the run anew"
            )
        if not portable:
            return "saved", self.caller.save_one(i)
        try:
            return "plain", subsystem.portable_state()
        except Exception as error:
            raise SetupError(f"the state of '{name}' cannot be written to a file: {error}") from error

    def let_go(self) -> None:
        """The run is over: hold no states, which keep what they belong to in memory."""
        self.caller.let_go()
        if isinstance(self._step, StepExecutor):
            self._step.let_go()

    def restore(self, snapshot: Snapshot) -> None:
        """Back (or on) to a saved state; on the same grid of steps where the step sequence is the same."""
        snapshot.refuse_other(self._description)
        snapshot.refuse_misfit(self.y, self.z, self.plan.u_offset, self.history)
        for past in self.caller.past:
            if past is not None:
                past.gap = "the run goes on from a saved state"
        self.ownership.take()
        for i, name in enumerate(self.plan.names):
            kind, state = snapshot.states[name]
            if kind == "saved":
                self.caller.restore_one(i, {i: state})
                continue
            subsystem = self.plan.subsystems[i]
            try:
                (subsystem.set_portable_state if kind == "plain" else subsystem.deserialise)(state)
            except Exception as error:
                call = "restore" if kind == "plain" else "deserialise"
                raise SetupError(f"'{name}' failed in {call}: {raised(error)}") from error
        changes, H = self.plan.changes, self.windows.first_step
        for name, values in changes.values_at(snapshot.t, H).items():
            self._subsystem(name).set_parameters(values)
        self._next_change = sum(one.t < snapshot.t - 1e-9 * H for one in changes.listed)
        self.t_start, self.ended, self.inside_step, self._restored = snapshot.t_start, None, False, True
        self.y, self.z = snapshot.y.copy(), snapshot.z.copy()
        self.plan.u_offset[:] = snapshot.constants
        self.caller.note_constants()
        try:
            self.history = snapshot.history.copy()
            set_memory(self._step, snapshot.memory)
            self.windows.continue_from(snapshot.t, snapshot.grid, snapshot.windows)
        except CosolveError:
            raise
        except Exception as error:  # from a file, the memory could be anything
            raise SetupError(f"the saved state does not fit this run: {raised(error)}") from error
