"""The caller: the subsystems of a plan at work. Every call into a subsystem passes here.

It hands out input signals, counts and times the calls, checks what comes back, saves and restores states, and
wraps failures into one sentence that names the subsystem and the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from math import inf
from time import perf_counter
from typing import Any, cast

import numpy as np

from cosolve.basics.arrays import FEW, Index, Matrix, Vector, all_finite, finite_doubles
from cosolve.basics.checks import is_number
from cosolve.basics.wording import failed_while, raised
from cosolve.engine.python.consistent_outputs import ConsistentOutputs
from cosolve.engine.python.driven_inputs import driven_inputs
from cosolve.engine.python.events import EndedEarly, Watch
from cosolve.engine.python.initial_values import Starting
from cosolve.engine.python.instant import Booleans
from cosolve.engine.python.kept_states import FirstStates
from cosolve.engine.python.replay_check import Past
from cosolve.errors import EndOfSimulation, NonFiniteError, SubsystemError
from cosolve.interface.plan import Plan
from cosolve.method.base import Local
from cosolve.method.step import CLOSE, Window
from cosolve.result.notes import Note
from cosolve.signal import Polynomial
from cosolve.subsystem.base import has_capability

#: Entries up to which a sparse Jacobian is unfolded (240 MB).
_LARGEST_JACOBIAN = 30_000_000


def _shown(subsystem: Any, times: tuple[float, float] | None) -> bool:
    """Whether an earlier run has shown that the subsystem comes back to its saved states at these times."""
    trusts = getattr(subsystem, "trusts_rollback", None)
    return times is not None and trusts is not None and bool(trusts(*times))


def _awaited(jobs: dict[int, Future[Any]], advance: Callable[..., Any], i: int, *arguments: Any) -> Any:
    """The outputs of one that has set out, or that advances now."""
    return jobs[i].result() if i in jobs else advance(i, *arguments)


class SubsystemCaller:
    """Runs the subsystems of `plan`, with `workers` threads where that is more than one."""

    def __init__(self, plan: Plan, workers: int = 1) -> None:
        self.plan = plan
        self.calls = np.zeros(plan.n_subsystems, dtype=np.int64)
        self.jacobians = np.zeros(plan.n_subsystems, dtype=np.int64)
        self.seconds = np.zeros(plan.n_subsystems)
        # the same memory: entry by entry this is twice as fast as through NumPy
        self._calls: Any = self.calls.data
        self._seconds: Any = self.seconds.data
        self._members = list(zip(plan.subsystems, plan.output_ports, strict=True))
        self._few = plan.n_y <= FEW
        # which of them can repeat a step on the same internal grid
        self._can_replay = [has_capability(s, "replay") for s in plan.subsystems]
        #: which of them have a Jacobian over a step
        self.gives_jacobian = [has_capability(s, "jacobian") for s in plan.subsystems]
        self._driven = driven_inputs(plan)
        # per subsystem: where its inputs come from, and factors and constants where there are any
        self._feeds: list[tuple[Index, Vector | None, Vector | None]]
        self.note_constants()
        self._consistent_outputs = ConsistentOutputs(plan, self.guarded)
        self._starting = Starting(plan, self.guarded, self._consistent_outputs)
        self._first_states = FirstStates(plan.n_subsystems)
        #: what those advanced whose rollback is to be proven (`keep_past`); when the run ends
        self.past: list[Past | None] = [None] * plan.n_subsystems
        self.t_end = inf
        #: those that did not repeat a step with the same bits
        self.suspects: set[int] = set()
        #: what was found while the run went on
        self.notes: list[Note] = []
        #: the states that were saved last; who wants the run to end after the step that is under way
        self.saved: list[Any] | None = None
        self.endings: dict[int, EndOfSimulation] = {}
        #: discarded steps of a run that this one continues
        self.retried_before: dict[str, int] = {}
        #: who looks after events, where macro steps end at them
        self.watch: Watch | None = None
        apart = [i for i, s in enumerate(plan.subsystems) if has_capability(s, "parallel steps")]
        #: which of them may work while others do: all, with threads, or those that do so elsewhere
        self.beside = tuple(range(plan.n_subsystems)) if workers > 1 else tuple(apart)
        # those that can be sent off without a thread that waits for them, and the others
        self._posted = [i for i in apart if self._driven[i] is None]
        self._threaded = [i for i in self.beside if i not in self._posted]
        #: threads for calls that may run at the same time, or None
        self.pool = ThreadPoolExecutor(max(workers, len(apart))) if self.beside else None

    def note_constants(self) -> None:
        """Read the constant inputs from the plan (again: when they have changed between two steps)."""
        plan = self.plan
        self._feeds = []
        constants = plan.u_offset
        if plan.driven:  # which are no constants
            constants = constants.copy()
            constants[plan.u_driven] = 0.0
        for part in plan.u_slices:
            factor, offset = plan.u_factor[part], constants[part]
            self._feeds.append(
                (plan.u_source[part], None if (factor == 1).all() else factor, offset if offset.any() else None)
            )

    def retried(self) -> dict[str, int]:
        """How many discarded steps passed in smaller pieces, by those that had any."""
        found = {name: self.retried_before.get(name, 0) for name in self.plan.names}
        for name, subsystem in zip(self.plan.names, self.plan.subsystems, strict=True):
            ask = getattr(subsystem, "retried_steps", None)
            with suppress(Exception):  # of a process that is gone, say
                found[name] += int(ask()) if callable(ask) else 0
        return {name: count for name, count in found.items() if count}

    def share_counters(self, other: SubsystemCaller) -> None:
        """Count and time the calls in the counters of another caller of the same subsystems."""
        self.calls, self.jacobians, self.seconds = other.calls, other.jacobians, other.seconds
        self._calls, self._seconds, self.endings = self.calls.data, self.seconds.data, other.endings

    @property
    def memory(self) -> dict[str, Any]:
        """What was counted so far."""
        counted = {"calls": self.calls.copy(), "jacobians": self.jacobians.copy(), "seconds": self.seconds.copy()}
        return counted | {"retried": self.retried(), "events": None if self.watch is None else self.watch.memory}

    @memory.setter
    def memory(self, saved: dict[str, Any]) -> None:
        self.calls[:], self.jacobians[:], self.seconds[:] = saved["calls"], saved["jacobians"], saved["seconds"]
        self.retried_before = {}
        now = self.retried()  # of subsystems that count on in their own states
        self.retried_before = {name: count - now.get(name, 0) for name, count in saved["retried"].items()}
        if self.watch is not None:
            self.watch.memory = saved["events"]

    def to_time(self, t: float, right: bool = False) -> None:
        """Let the plan's inputs that are driven have their values at `t`: before a jump there, or after it."""
        for one in self.plan.driven:
            self.plan.u_offset[one.entries] = one.drive.value(t, right)

    def close(self) -> None:
        """End the worker threads."""
        if self.pool is not None:
            self.pool.shutdown()

    @property
    def may_loop(self) -> bool:
        """False when no chain of outputs that may react to inputs at once comes back to where it began."""
        return self._consistent_outputs.may_loop

    # -- start and instantaneous outputs ---------------------------------------------------------------

    def start(self, t0: float, t_end: float = inf) -> tuple[Vector, Vector]:
        """Put every subsystem into its initial state; consistent outputs and coupling variables at `t0`.

        `t_end` is when the run ends, for those that want to know.
        """
        for one in self.plan.driven:
            one.drive.begin()
        self.to_time(t0, right=True)
        for i, subsystem in enumerate(self.plan.subsystems):
            tell = getattr(subsystem, "will_end", None)
            if tell is not None:
                self.guarded(i, t0, "starting", partial(tell, t_end), packed=False)
        y, z = self._starting.start(t0)
        self.t_end, self.suspects, self.notes = t_end, set(), [*self._starting.notes]
        for i, past in enumerate(self.past):
            if past is not None:
                past.reset(t0, self._starting.began.get(i, self.plan.inputs(z, i)))
        return y, z

    def keep_past(self, degree: int, *, of_all: bool = False, trusted: tuple[float, float] | None = None) -> None:
        """Keep what those subsystems advance over that are of others' making, or all, with inputs of this degree.

        Those that have shown rollback before need not show it again in a run over the times `trusted`.
        """
        plan = self.plan
        self.past = [
            Past(takes.length, gives, degree)
            if of_all or (subsystem.foreign and not _shown(subsystem, trusted))
            else None
            for subsystem, takes, gives in zip(plan.subsystems, plan.input_ports, plan.output_ports, strict=True)
        ]

    def settle(self, t: float, y: Vector, z: Vector, *, complete: bool = False) -> tuple[Vector, Vector]:
        """Outputs and coupling variables at `t` that agree with each other for the present states."""
        self.to_time(t)
        return self._consistent_outputs.settle(t, y, z, complete=complete)

    def undetermined(self, t: float, y: Vector, z: Vector, *, looped: bool = False) -> Booleans:
        """Which coupling variables keep whatever value they have at `t`; `looped`: also those in algebraic loops."""
        return self._consistent_outputs.undetermined(t, y, z, looped=looped)

    # -- advancing over a macro step -------------------------------------------------------------------------

    def signal(self, i: int, window: Window, coefficients: Matrix) -> Polynomial:
        """The input signal of subsystem `i` for coupling variables with these coefficients."""
        fed, driven = self._fed(i, window, coefficients), self._driven[i]
        return fed if driven is None else driven.whole(window.t0, window.t1, window.H, fed.coefficients)

    def _fed(self, i: int, window: Window, coefficients: Matrix) -> Polynomial:
        """The same, with zero for those inputs that are driven."""
        source, factor, offset = self._feeds[i]
        values = coefficients.take(source, 1) if coefficients.size else np.zeros((1, len(source)))
        if factor is not None:
            values *= factor
        if offset is not None:
            values[0] += offset
        return Polynomial(window.t0, window.H, values)

    def replays(self, i: int) -> bool:
        """True when subsystem `i` repeats a step on the same internal grid.

        Not where it stops at events: a grid leads across the event at its end, up to which the step goes only.
        """
        return self._can_replay[i] and (self.watch is None or i not in self.watch.able)

    def is_cut(self, i: int, window: Window) -> bool:
        """True if subsystem `i` takes the step in parts, because a driven input has a kink or a jump inside."""
        driven = self._driven[i]
        return driven is not None and driven.cuts(window.t0, window.t1)

    def advance(
        self, i: int, window: Window, coefficients: Matrix, *, replay: bool = False, whole: bool = False
    ) -> Vector:
        """Subsystem `i` advances over the step; its outputs at the end (evaluated with the inputs it used).

        `whole` leaves the step in one piece whatever its driven inputs do inside, as a `replay` does.
        """
        outputs = self._advance(i, window, coefficients, replay, whole)
        y = finite_doubles(outputs)
        return self._packed(i, window, outputs) if y is None else y

    def _advance(
        self, i: int, window: Window, coefficients: Matrix, replay: bool = False, whole: bool = False
    ) -> Sequence[float] | Vector:
        """The same as `Ports.listed` leaves it: lists are still to be looked at."""
        (subsystem, ports), driven = self._members[i], self._driven[i]
        fed = u = self._fed(i, window, coefficients)
        if driven is not None:
            u = driven.whole(window.t0, window.t1, window.H, fed.coefficients)
        again = replay and self.replays(i)
        advance = subsystem.replay if again else subsystem.advance
        self._calls[i] += 1
        if self.endings:
            self.endings.pop(i, None)
        if self.watch is not None and not again:
            advance = partial(self._watched, i, window.t1, advance)
        if driven is not None and not replay and not whole:
            advance = partial(self._in_parts, i, window, coefficients, advance)
        past = None if again else self.past[i]
        began = perf_counter()
        try:
            outputs = ports.listed(advance(window.t0, window.t1, u))
            if past is not None:
                past.note_step(window.t0, window.t1, window.H, fed.coefficients, outputs)
            return outputs
        except EndedEarly:
            raise
        except EndOfSimulation as end:
            return ports.listed(self._last_outputs(i, window, end))
        except Exception as error:
            raise self._failed(i, window.t0, "advancing", error) from error
        finally:
            self._seconds[i] += perf_counter() - began

    def advance_again(self, i: int, t0: float, t1: float, H: float, values: Matrix) -> Any:
        """Subsystem `i` advances with these coefficients of its inputs, which are not counted."""
        advance, driven = self.plan.subsystems[i].advance, self._driven[i]
        if driven is None:
            return advance(t0, t1, Polynomial(t0, H, values.copy()))
        outputs = None
        for part in driven.parts(t0, t1, H, values.copy()):
            outputs = advance(part.t0, part.t1, part.u)
        return outputs

    def _watched(self, i: int, end: float, advance: Callable[..., Any], t0: float, t1: float, u: Polynomial) -> Any:
        assert self.watch is not None
        return self.watch.advance(i, t0, t1, u, advance, end)

    def _last_outputs(self, i: int, window: Window, end: EndOfSimulation) -> Any:
        """Subsystem `i` wants the run to end: its outputs at the end of the step, where it has come there."""
        end.subsystem = self.plan.names[i]
        if end.time is None:
            end.time = window.t0 if end.outputs is None else window.t1
        if end.outputs is None or end.time < window.t1 - CLOSE * window.H:
            raise end
        self.endings[i] = end
        return end.outputs

    def _in_parts(
        self, i: int, window: Window, coefficients: Matrix, advance: Callable[..., Any], t0: float, t1: float, u: Any
    ) -> Any:
        """The step of a subsystem with driven inputs, cut where they are not smooth."""
        driven, outputs = self._driven[i], None
        assert driven is not None
        parts = driven.parts(t0, t1, window.H, self._fed(i, window, coefficients).coefficients)
        for part in parts:
            outputs = advance(part.t0, part.t1, part.u)
        return outputs

    def _packed(self, i: int, window: Window, outputs: Sequence[float] | Vector) -> Vector:
        """The outputs of subsystem `i`, or a sentence that says what is wrong with them."""
        y: Vector = self.guarded(i, window.t0, "advancing", lambda: outputs)
        return y

    def own_step(self, i: int, window: Window, coefficients: Matrix) -> tuple[float, Vector]:
        """Subsystem `i` takes one step of its own size, at most to the end of the window."""
        driven = self._driven[i]
        if driven is not None:
            window = Window(window.t0, driven.smooth_until(window.t0, window.t1, window.H), window.H)
        subsystem, u = self.plan.subsystems[i], self.signal(i, window, coefficients)
        self.calls[i] += 1
        self._note_gap(i, "it took steps of its own")
        reached = self.guarded(
            i,
            window.t0,
            "taking its own step",
            partial(subsystem.step, window.t0, window.t1, u),
            packed=False,
        )
        pair = isinstance(reached, (tuple, list)) and len(reached) == 2
        t1, outputs = reached if pair else (np.nan, None)
        if not is_number(t1) or not window.t0 < t1 <= window.t1:
            what = f"stepped from t = {window.t0:.6g} to t = {t1:.6g}" if is_number(t1) else f"returned {reached!r}"
            raise SubsystemError(
                f"'{self.plan.names[i]}' {what} from its step method; expected (t1, outputs) with "
                f"{window.t0:.6g} < t1 <= {window.t1:.6g}",
                time=window.t0,
                subsystem=self.plan.names[i],
            )
        return t1, self.guarded(i, window.t0, "taking its own step", lambda: outputs)

    def _note_gap(self, i: int, why: str) -> None:
        past = self.past[i]
        if past is not None:
            past.gap = why

    def approximate(self, i: int, window: Window, coefficients: Matrix, *, output_equation: bool) -> Vector:
        """Subsystem `i` advances over the step with one correction of its own equations, where it can do so."""
        subsystem = self.plan.subsystems[i]
        if not has_capability(subsystem, "approximate step") or self.is_cut(i, window):
            return self.advance(i, window, coefficients)
        u = self.signal(i, window, coefficients)
        self.calls[i] += 1
        self._note_gap(i, "it was advanced approximately")
        advance = partial(subsystem.resolve, window.t0, window.t1, u, output_equation=output_equation)
        y: Vector = self.guarded(i, window.t0, "advancing approximately", advance)
        return y

    def internal_residual(self) -> float:
        """What the last approximate step left of the subsystems' own equations."""
        able = [s for s in self.plan.subsystems if has_capability(s, "approximate step")]
        return max((float(s.internal_residual) for s in able), default=0.0)

    def sweep(self, window: Window, coefficients: Matrix, local: Local = "converged") -> Vector:
        """All subsystems advance over the step independently of each other (Jacobi); all outputs at its end."""
        advance: Callable[..., Any] = self._advance if self._few else self.advance
        if local != "converged":
            advance = partial(self.approximate, output_equation=local == "output_equation")
        if self.watch is not None:
            return self._sweep_watched(self.watch, advance, window, coefficients)
        if self.pool is not None:
            advance = self._set_out(advance, local == "converged", window, coefficients)
        if not self._few:
            y = np.empty(self.plan.n_y)
            for i, part in enumerate(self.plan.y_slices):
                y[part] = advance(i, window, coefficients)
            return y
        numbers: list[float] = []  # few of them are cheapest in one list, made into an array and checked all at once
        try:
            for i in range(len(self._members)):
                outputs = advance(i, window, coefficients)
                numbers += outputs.tolist() if isinstance(outputs, np.ndarray) else outputs
        except SubsystemError:
            self._packed_one_by_one(window, numbers)  # one that advanced before comes first
            raise
        whole = finite_doubles(numbers)
        return self._packed_one_by_one(window, numbers) if whole is None else whole

    def _set_out(
        self, advance: Callable[..., Any], post: bool, window: Window, coefficients: Matrix
    ) -> Callable[..., Any]:
        """Let those begin that need not wait for each other; what to call for the outputs of one."""
        assert self.pool is not None
        for i in self._posted if post else []:
            began = perf_counter()
            try:
                self.plan.subsystems[i].post_advance(window.t0, window.t1, self.signal(i, window, coefficients))
            except Exception as error:
                raise self._failed(i, window.t0, "advancing", error) from error
            finally:
                self._seconds[i] += perf_counter() - began
        others = self._threaded if post else self.beside
        if not others:
            return advance
        jobs = {i: self.pool.submit(advance, i, window, coefficients) for i in others}
        return partial(_awaited, jobs, advance)

    def _sweep_watched(self, watch: Watch, advance: Callable[..., Any], window: Window, coefficients: Matrix) -> Vector:
        """The same where steps end at events: those that have them go first, so that few have to go back."""
        advance = self.advance if advance == self._advance else advance
        y = np.empty(self.plan.n_y)
        for i in watch.able:
            y[self.plan.y_slices[i]] = advance(i, window, coefficients)
        if self.pool is not None:
            jobs = {i: self.pool.submit(advance, i, window, coefficients) for i in watch.others if i in self.beside}
            wait(jobs.values())
            advance = partial(_awaited, jobs, advance)
        for i in watch.others:
            y[self.plan.y_slices[i]] = advance(i, window, coefficients)
        return y

    def _packed_one_by_one(self, window: Window, numbers: list[float]) -> Vector:
        """An array of a list that is incomplete or holds something unusual; raises for the first that is wrong."""
        parts = [numbers[part] for part in self.plan.y_slices if part.stop <= len(numbers)]
        return np.concatenate([np.zeros(0), *(self._packed(i, window, values) for i, values in enumerate(parts))])

    def jacobian(self, i: int, window: Window, coefficients: Matrix, weight: Vector) -> Matrix:
        """The subsystem's own `dy/du` for input perturbations of the shape `weight`."""
        subsystem, u = self.plan.subsystems[i], self.signal(i, window, coefficients)
        self.jacobians[i] += 1
        ports_in, ports_out = self.plan.input_ports[i], self.plan.output_ports[i]
        ask = partial(subsystem.jacobian, window.t0, window.t1, u, weight)
        given = self.guarded(i, window.t0, "giving its Jacobian", ask, packed=False)
        try:
            return checked_jacobian(given, ports_out.labels, ports_in.labels, (ports_out.length, ports_in.length))
        except ValueError as error:
            name = self.plan.names[i]
            raise SubsystemError(f"'{name}' gave {error}", time=window.t0, subsystem=name) from None

    def look_at_steps(self, t: float, H: float, z: Vector) -> dict[str, str]:
        """By name, what those that may not do what a step assumes have to say, before a method relies on it."""
        said = {}
        for i, (name, subsystem) in enumerate(zip(self.plan.names, self.plan.subsystems, strict=True)):
            look = getattr(subsystem, "look_at_steps", None)
            if look is not None:
                ask = partial(look, t, H, self.plan.inputs(z, i))
                said[name] = str(self.guarded(i, t, "looking at its steps", ask, packed=False))
        return said

    # -- rollback --------------------------------------------------------------------------------------

    def prove_rollback(self, t: float, H: float, z: Vector) -> None:
        """Let those that may be wrong about their rollback show that it works, before a method relies on it."""
        for i, subsystem in enumerate(self.plan.subsystems):
            prove = getattr(subsystem, "prove_rollback", None)
            if prove is not None and H > 0.0:
                self.guarded(i, t, "saving its state", partial(prove, t, H, self.plan.inputs(z, i)), packed=False)

    def save(self) -> list[Any]:
        """The states of all subsystems."""
        self.saved = [self.save_one(i) for i in range(self.plan.n_subsystems)]
        return self.saved

    def save_one(self, i: int) -> Any:
        """The state of subsystem `i`."""
        try:
            state = self.plan.subsystems[i].save()
        except Exception as error:
            raise self._rollback_failed(i, "save", error) from error
        if i in self._first_states.waiting:
            self._first_states.note(i, state)
        return state

    def restore(self, states: list[Any]) -> None:
        """Back to saved states."""
        for i in range(self.plan.n_subsystems):
            self.restore_one(i, states)

    def restore_one(self, i: int, states: list[Any] | dict[int, Any]) -> None:
        """Subsystem `i` back to its saved state."""
        if i in self._first_states.waiting and self._first_states.changed(i, states[i]):
            name = self.plan.names[i]
            raise SubsystemError(
                f"'{name}': the state that save returned has changed since, so there is no way back to it; return a "
                "copy from save (array.copy()), and let restore take a copy of it too",
                subsystem=name,
            )
        past = self.past[i]
        if past is not None:
            past.restored = True
        try:
            self.plan.subsystems[i].restore(states[i])
        except Exception as error:
            raise self._rollback_failed(i, "restore", error) from error

    def let_go(self) -> None:
        """Hold no states any more."""
        self.saved, self._first_states = None, FirstStates(0)
        if self.watch is not None:
            self.watch.states = {}

    def _rollback_failed(self, i: int, call: str, error: Exception) -> SubsystemError:
        name = self.plan.names[i]
        return SubsystemError(f"'{name}' failed in {call}{self._at(i)}: {raised(error)}", subsystem=name)

    # -- guarding --------------------------------------------------------------------------------------

    def guarded(self, i: int, t: float, doing: str, call: Callable[[], Any], *, packed: bool = True) -> Any:
        """Run a call into subsystem `i`; time it; turn what goes wrong into one sentence."""
        began = perf_counter()
        try:
            value = call()
            if packed:
                value = self.plan.output_ports[i].pack(value)
        except EndOfSimulation as end:
            end.subsystem, end.time = self.plan.names[i], t if end.time is None else end.time
            raise
        except Exception as error:
            raise self._failed(i, t, doing, error) from error
        finally:
            self._seconds[i] += perf_counter() - began
        if packed:
            self._refuse_non_finite(i, t, doing, value)
        return value

    def _failed(self, i: int, t: float, doing: str, error: Exception) -> SubsystemError:
        """The sentence about a call that raised `error`."""
        name, kind = self.plan.names[i], NonFiniteError if isinstance(error, NonFiniteError) else SubsystemError
        return kind(failed_while(name, doing + self._at(i), t, error), time=t, subsystem=name)

    def _at(self, i: int) -> str:
        """Where subsystem `i` runs, for a sentence, when that is not here."""
        place = self.plan.subsystems[i].runs_on
        return f" on {place}" if place else ""

    def _refuse_non_finite(self, i: int, t: float, doing: str, y: Vector) -> None:
        """Raise when an output of subsystem `i` is NaN or infinite."""
        if all_finite(y):
            return
        name, bad = self.plan.names[i], int(np.flatnonzero(~np.isfinite(y))[0])
        raise NonFiniteError(
            f"'{name}' returned {y[bad]} for output '{self.plan.output_ports[i].labels()[bad]}' while {doing} "
            f"at t = {t:.9g}; a smaller step or a more stable method may help if values grew before",
            time=t,
            subsystem=name,
        )


def checked_jacobian(
    given: Any, outputs: Callable[[], list[str]], inputs: Callable[[], list[str]], shape: tuple[int, int]
) -> Matrix:
    """What a subsystem gave as its Jacobian, as a dense matrix; a ValueError says what it is instead of one.

    >>> checked_jacobian([[1.0, float("nan")]], lambda: ["y"], lambda: ["u[0]", "u[1]"], (1, 2))
    Traceback (most recent call last):
        ...
    ValueError: a Jacobian with a NaN or an infinity in it (nan for output 'y' by input 'u[1]'); expected finite ...
    """
    usual = isinstance(given, np.ndarray) and given.shape == shape and given.dtype == np.float64
    if usual and all_finite(given.reshape(-1)):
        return cast("Matrix", given.copy())
    expected = f"expected finite numbers of shape {shape} = (outputs, inputs)"
    if hasattr(given, "toarray") and getattr(given, "shape", None) == shape:  # sparse
        if shape[0] * shape[1] > _LARGEST_JACOBIAN:
            raise ValueError(
                f"a sparse Jacobian of shape {shape}, which is used as a dense one and too large for that; leave "
                "jacobian away and take a corrector that needs none, such as IqnIls"
            )
        given = given.toarray()
    found = getattr(given, "shape", None)
    try:
        J = np.asarray(given)
        J = J.astype(np.float64) if J.dtype.kind in "biuf" else np.zeros(0)
    except (TypeError, ValueError):  # rows of different lengths
        J = np.zeros(0)
    if J.ndim != 2 and found is None:
        raise ValueError(f"a {type(given).__name__} that is no real matrix as its Jacobian; {expected}")
    if J.size == 0 and found is not None and 0 not in found:
        raise ValueError(f"a Jacobian of {getattr(given, 'dtype', type(given).__name__)} of shape {found}; {expected}")
    if J.shape != shape:
        raise ValueError(f"a Jacobian with shape {J.shape}; {expected}")
    if not all_finite(J.reshape(-1)):
        row, column = (int(k) for k in np.argwhere(~np.isfinite(J))[0])
        raise ValueError(
            f"a Jacobian with a NaN or an infinity in it ({J[row, column]} for output '{outputs()[row]}' by input "
            f"'{inputs()[column]}'); {expected}"
        )
    return J
