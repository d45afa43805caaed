"""The time loop: macro step after macro step until `t_end`, recording everything, losing nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from cosolve.basics.checks import whole
from cosolve.engine.readable.loops import first_loop
from cosolve.errors import EndOfSimulation, SetupError, SimulationError, StabilityWarning, StepSizeError, warn
from cosolve.interface import System
from cosolve.interface.channels import channels
from cosolve.method.named import MethodLike, as_method
from cosolve.result import Recorder, Result, Stats
from cosolve.run import (
    Core,
    Pace,
    Selection,
    Snapshot,
    about_run,
    checked_plan,
    make_pace,
    make_recorder,
    make_windows,
)
from cosolve.run.books import Books, note_totals
from cosolve.run.engines import Engines
from cosolve.run.startup import Startup
from cosolve.stepsize import Adaptive
from cosolve.subsystem.signatures import keywords_only

__all__ = ["channels", "simulate"]

_PROGRESS_EVERY = 0.1  # seconds


@keywords_only("cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=1), step=1e-3)")
def simulate(
    system: System,
    *,
    t_end: float,
    method: MethodLike,
    step: float | Adaptive | None = None,
    t_start: float = 0.0,
    startup: Startup | None = None,
    workers: int = 1,
    save: str | Path | None = None,
    every: int = 1,
    record: Sequence[str] | None = None,
    progress: Callable[[float], None] | None = None,
    compiled: bool | None = None,
    resume: str | Path | Snapshot | None = None,
    save_state: str | Path | None = None,
    pace: float | Pace | None = None,
    stop_at_events: bool = False,
    max_steps: int | None = None,
    error_bar: bool | Literal["sure"] = False,
) -> Result:
    """Run a coupled system from `t_start` to `t_end` and return its result at the macro points.

    `method` is a coupling method, its name (`"semi-implicit"`, `"semi-implicit:2"` for degree 2), or a dict with its
    name and options, as in a system file.

    `step` is the macro step, or an `Adaptive` step control (`LeaderFollower` chooses its own steps; `step` then limits
    them). `workers` > 1 runs subsystems of a parallel sweep in threads: same bits, less time where they release the
    interpreter lock. `save` streams the result to an HDF5 file instead of holding it in memory; `every` records only
    each so-many-th macro point (and the last), `record` only the named quantities. `progress(fraction)` is called about
    ten times a second.

    `compiled` lets the loop over macro steps run as machine code, with the same bits: by default where that is possible
    and repays its loading; True insists and says why where it is not possible, False prevents it.

    `resume` continues from a state that a `Stepper` or a run with `save_state` (a file written at the end) has left:
    `t_start` is then where that state stands. On the same grid of steps (same `t_end` and `step`) the bits are those of
    an uninterrupted run.

    `stop_at_events` ends a macro step at an event of a subsystem (a bounce, a switch, a sample; capability "events"),
    so that all others see it at once; the run then goes on to the next point of the grid. Who has crossed the step
    already must be able to go back.

    `max_steps` ends a run that would take more macro steps than that, with a `StepSizeError`: for error-controlled
    steps, whose number nobody knows before.

    `error_bar` estimates the coupling error after the run, by crossing its steps once more (see `cs.error_bar`): it is
    in `result.error_bar`, in the result file, and shaded in plots. `"sure"` takes a second grid of steps to see that
    the run can be believed.

    `pace` lets macro points be reached in real time: so many seconds of the model per second of the wall clock (`Pace`
    takes other clocks); `result.stats` counts those that came late. Ctrl-C keeps what there is: the `KeyboardInterrupt`
    has it as `result`.

    A run that stops early raises `SimulationError`, whose `result` holds everything up to the last good step. A
    subsystem that asks for the end (`EndOfSimulation`) is no failure: the result ends there, `result.ended` says why.

    >>> import cosolve as cs
    >>> tank = lambda level: cs.Ode(lambda t, x, u: u - x, lambda t, x, u: x, x0=[level], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(1.0), "two": tank(0.0)})
    >>> system.connect("one.h", "two.q")
    >>> system.connect("two.h", "one.q")
    >>> result = cs.simulate(system, t_end=5.0, method=cs.SemiImplicit(degree=2), step=0.05)
    >>> bool(abs(result["one.h"][-1] - 0.5) < 1e-4), len(result.t)
    (True, 101)
    """
    whole("simulate", "every", every)
    if max_steps is not None:
        whole("simulate", "max_steps", max_steps)
    if error_bar not in (False, True, "sure"):
        raise SetupError(f"simulate: error_bar must be True, False or 'sure', not {error_bar!r}")
    method = as_method(method)
    plan = checked_plan("simulate", system, method, workers)
    saved = resume if isinstance(resume, Snapshot) or resume is None else Snapshot.read(Path(resume))
    t_first = t_start
    if saved is not None:
        t_first, t_start = saved.t_start, saved.t
    if save_state is not None:
        from cosolve.result.store import refuse_unwritable

        refuse_unwritable(Path(save_state))
    core = Core(plan, method, startup, make_windows(method, step, t_first, t_end, plan), workers, stop_at_events)
    meta = about_run(system, method, step, t_start, t_end, startup)
    timing = make_pace(pace)
    if timing is not None and compiled:
        raise SetupError("compiled=True: a paced run waits after every macro step, in the readable engine")
    selection = Selection(plan, record)
    recorder = make_recorder(selection, plan.names, save, meta)
    run = _Run(core, recorder, selection, every, max_steps, progress, compiled if timing is None else False, timing)
    result = run.result(t_first, saved, meta, None if save_state is None else Path(save_state))
    if error_bar:
        from cosolve.run.error_bar import error_bar as estimated

        result.error_bar = estimated(system, result, sure=error_bar == "sure")
        if save is not None:
            from cosolve.result.store import add_error_bar

            add_error_bar(Path(save), result.error_bar)
    return result


class _Run:
    """One run of one system."""

    def __init__(
        self,
        core: Core,
        recorder: Recorder,
        selection: Selection,
        every: int,
        max_steps: int | None,
        progress: Callable[[float], None] | None,
        compiled: bool | None,
        pace: Pace | None,
    ) -> None:
        self.core, self.recorder, self.selection, self.every = core, recorder, selection, every
        self.max_steps, self.progress, self.compiled, self.pace = max_steps, progress, compiled, pace
        self.stats = Stats()
        self.books: Books | None = None  # as soon as there is something to write down

    def result(self, t_first: float, saved: Snapshot | None, meta: dict[str, Any], save_state: Path | None) -> Result:
        """Run to the end; on failure attach what there is to the error."""
        began = perf_counter()
        core = self.core
        failure: SimulationError | None = None
        stopped: BaseException | None = None
        ending: str | None = None
        try:
            self._start(t_first, saved)
            self.books = books = Books(core, self.recorder, self.selection, self.every, self.stats)
            self._cross_all(books)
            books.end()
            self._save_state(save_state)
        except SimulationError as error:
            failure = error
            if failure.time is None:  # from below the level that knows the time
                failure.time = core.t
                failure.args = (f"{failure} (in the macro step from t = {core.t:.9g})",)
            ending = str(failure)
            if self.books is not None:
                self.books.explain(failure)
        except BaseException as error:  # Ctrl-C, say: the file must not claim that the run finished
            ending = f"the run was ended by {type(error).__name__} in the macro step from t = {core.t:.9g}"
            stopped = error
            raise
        finally:
            core.crew.close()
            self._note_totals(perf_counter() - began)
            self.recorder.finish(self.stats, ending)
            self.recorder.close()
            result = Result(
                *(self.recorder.columns, self.selection.channels, core.plan.names),
                stats=self.stats,
                meta=meta,
                error=ending,
            )
            result.method, result.startup = core.method, core.startup
            if stopped is not None:
                stopped.result = result  # type: ignore[attr-defined]
        if failure is not None:
            failure.result = result
            raise failure
        return result

    def _start(self, t: float, saved: Snapshot | None) -> None:
        """Everything where the run begins: in its initial state, or in a saved one."""
        core = self.core
        try:
            core.start(t)
        except EndOfSimulation as end:  # nothing has run
            name = end.subsystem
            raise SimulationError(f"{end.sentence(t)}, before anything has run", time=t, subsystem=name) from end
        if saved is not None:
            core.restore(saved)
        self._warn_of_loop()

    def _warn_of_loop(self) -> None:
        """Explicit methods do not solve algebraic loops, unless outputs are evaluated again after the exchange."""
        core = self.core
        if not core.method.lags or getattr(core.method, "outputs", "") == "exchanged":
            return
        loop = first_loop(core.crew, core.t, core.z)
        if loop:
            self.stats.loop = (
                f"{core.method.label} lags one macro step in an algebraic loop ({' -> '.join((*loop, loop[0]))}) and "
                "may grow in it however small the step; SemiImplicit and Implicit solve it, and giving out a state "
                "instead cuts it (an acceleration input is a typical cause)"
            )
            warn(self.stats.loop, StabilityWarning)

    def _cross_all(self, books: Books) -> None:
        """Macro steps to the end, whoever takes them."""
        core, pace, progress, engines = self.core, self.pace, self.progress, Engines(self.core, self.compiled)
        if engines.fast is not None:
            books.reserve()
        if pace is not None:
            pace.begin(core.t)
        t_start, span, shown = core.t, core.windows.t_end - core.t, perf_counter()
        try:
            while not core.done:
                books.add(engines.take(books.due if pace is None else 1, books.room, self._left()))
                if pace is not None:
                    pace.reach(core.t)
                if progress is not None and (core.done or perf_counter() - shown > _PROGRESS_EVERY):
                    progress((core.t - t_start) / span)
                    shown = perf_counter()
        except EndOfSimulation as end:  # in the middle of a step: the last point is that before it
            core.ended, core.inside_step = end, True
        finally:
            self.stats.compiled_seconds, self.stats.loading_seconds = engines.spent, engines.loaded

    def _left(self) -> int:
        """How many steps the run may still take; raises when there are none."""
        core, most = self.core, self.max_steps
        if most is None:
            return sys.maxsize
        if self.stats.steps >= most:
            raise StepSizeError(
                f"the run has taken its max_steps = {most} macro steps and stands at t = {core.t:.9g} of "
                f"{core.windows.t_end:.9g}; allow more, take longer steps or a looser rtol, or another method",
                time=core.t,
            )
        return most - self.stats.steps

    def _save_state(self, path: Path | None) -> None:
        core = self.core
        if core.ended is not None:
            self.stats.ended = core.ended.sentence(core.t)
        if path is not None and core.inside_step:
            self.stats.ended += "; no state was saved, since the last macro step was left half crossed"
        elif path is not None:
            core.save(portable=True).write(path)

    def _note_totals(self, wall: float) -> None:
        self.stats.wall_seconds, self.stats.rejected = wall, self.core.rejected
        if self.pace is not None:
            self.pace.note(self.stats)
        note_totals(self.stats, self.core)
