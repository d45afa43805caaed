"""The time loop: macro step after macro step until `t_end`, recording everything, losing nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from cosolve.engine.native import Chunk, Chunks
from cosolve.engine.readable.loops import first_loop
from cosolve.errors import EndOfSimulation, SetupError, SimulationError, StabilityWarning, StepSizeError, warn
from cosolve.interface import System
from cosolve.interface.channels import channels
from cosolve.method import Method, Outcome
from cosolve.result import Memory, Recorder, Result, Row, Stats
from cosolve.run import (
    Core,
    Growth,
    GrowthMonitor,
    Pace,
    Rows,
    Selection,
    Snapshot,
    Stillness,
    about_run,
    checked_plan,
    make_pace,
    make_recorder,
    make_windows,
)
from cosolve.run.startup import Startup
from cosolve.stepsize import Adaptive
from cosolve.subsystem.signatures import keywords_only

__all__ = ["channels", "simulate"]

_PROGRESS_EVERY = 0.1  # seconds
_WRITE_EVERY = 0.01  # seconds: no later than that, and when a run ends, rows are with the recorder


@keywords_only("cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=1), step=1e-3)")
def simulate(
    system: System,
    *,
    t_end: float,
    method: Method,
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
) -> Result:
    """Run a coupled system from `t_start` to `t_end` and return its result at the macro points.

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
    if not isinstance(every, (int, np.integer)) or isinstance(every, bool) or every < 1:
        raise SetupError(f"every must be a whole number of at least 1, not {every!r}")
    if max_steps is not None and (not isinstance(max_steps, (int, np.integer)) or max_steps < 1 or max_steps is True):
        raise SetupError(f"max_steps must be a whole number of at least 1, or None, not {max_steps!r}")
    plan = checked_plan("simulate", system, method, workers)
    saved = resume if isinstance(resume, Snapshot) or resume is None else Snapshot.read(Path(resume))
    t_first = t_start
    if saved is not None:
        t_first, t_start = saved.t_start, saved.t
    if save_state is not None:
        from cosolve.result.store import refuse_unwritable

        refuse_unwritable(Path(save_state))
    core = Core(plan, method, startup, make_windows(method, step, t_first, t_end, plan), workers, stop_at_events)
    meta = about_run(system, method, step, t_start, t_end)
    timing = make_pace(pace)
    if timing is not None and compiled:
        raise SetupError("compiled=True: a paced run waits after every macro step, in the readable engine")
    selection = Selection(plan, record)
    recorder = make_recorder(selection, plan.names, save, meta)
    run = _Run(core, recorder, selection, every, progress, compiled if timing is None else False, timing)
    run.max_steps = max_steps
    return run.result(t_first, saved, meta, None if save_state is None else Path(save_state))


class _Run:
    """One run of one system: the loop and its books."""

    def __init__(
        self,
        core: Core,
        recorder: Recorder,
        selection: Selection,
        every: int,
        progress: Callable[[float], None] | None,
        compiled: bool | None,
        pace: Pace | None,
    ) -> None:
        self.compiled, self.pace = compiled, pace
        self.core, self.recorder, self.every, self.progress = core, recorder, every, progress
        self.selection = selection
        self.stats = Stats()
        self.max_steps: int | None = None
        self.monitor: GrowthMonitor | None = None
        self.still: Stillness
        self._residuals = 0.0
        self._last: Outcome | None = None  # the newest step of the readable engine
        self.rows = Rows(selection.layout, core.crew.calls, core.crew.seconds)

    def result(self, t_first: float, saved: Snapshot | None, meta: dict[str, Any], save_state: Path | None) -> Result:
        """Run to the end; on failure attach what there is to the error."""
        began = perf_counter()
        core = self.core
        failure: SimulationError | None = None
        stopped: BaseException | None = None
        ending: str | None = None
        try:
            self._start(t_first)
            if saved is not None:
                core.restore(saved)
            self._warn_of_loop()
            self.monitor = monitor = GrowthMonitor(core)
            self.still = Stillness(core)
            try:
                self._loop(monitor)
            finally:
                self._write()  # also what came before a failure or Ctrl-C
            self._warn_of(monitor.look_at_noted())
            self.stats.still = self.still.sentence(self.stats.steps)
            if core.ended is not None:
                self.stats.ended = core.ended.sentence(core.t)
            if save_state is not None and core.inside_step:
                self.stats.ended += "; no state was saved, since the last macro step was left half crossed"
            elif save_state is not None:
                core.save(portable=True).write(save_state)
        except SimulationError as error:
            failure = error
            if failure.time is None:  # from below the level that knows the time
                failure.time = core.t
                failure.args = (f"{failure} (in the macro step from t = {core.t:.9g})",)
            ending = str(failure)
            if self.monitor is not None and self.monitor.found is None:
                self.monitor.look_at_noted(failed=True)
            if self.monitor is not None and self.monitor.found is not None and not self.stats.growth:
                self.stats.growth = self.monitor.found.text  # the error speaks for it: no warning besides
                failure.add_note(self.stats.growth)
        except BaseException as error:  # Ctrl-C, say: the file must not claim that the run finished
            ending = f"the run was ended by {type(error).__name__} in the macro step from t = {core.t:.9g}"
            stopped = error
            raise
        finally:
            core.crew.close()
            self._close_books(perf_counter() - began)
            self.recorder.finish(self.stats, ending)
            self.recorder.close()
            result = Result(
                *(self.recorder.columns, self.selection.channels, core.plan.names),
                stats=self.stats,
                meta=meta,
                error=ending,
            )
            if stopped is not None:
                stopped.result = result  # type: ignore[attr-defined]
        if failure is not None:
            failure.result = result
            raise failure
        return result

    def _start(self, t: float) -> None:
        try:
            self.core.start(t)
        except EndOfSimulation as end:  # nothing has run
            name = end.subsystem
            raise SimulationError(f"{end.sentence(t)}, before anything has run", time=t, subsystem=name) from end

    def _warn_of(self, growth: Growth | None) -> None:
        """Values grow: say so once, and go on; whoever wants to stop there turns the warning into an error."""
        if growth is not None:
            self.stats.growth = growth.text
            warn(growth.text, StabilityWarning)

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

    def _loop(self, monitor: GrowthMonitor) -> None:
        core, crew, stats, rows, chosen = self.core, self.core.crew, self.stats, self.rows, self.selection
        self.recorder.append(Row(core.t, chosen.y(core.y), chosen.z(core.recorded(core.z))))
        rows.totals = crew.calls.copy(), crew.seconds.copy(), core.rejected
        chunks = self._chunks()
        if chunks is not None and isinstance(self.recorder, Memory):
            self.recorder.reserve(core.windows.left / self.every + 2)
        try:
            self._steps(chunks, monitor)
        except EndOfSimulation as end:  # in the middle of a step: the last point is that before it
            core.ended, core.inside_step = end, True
            if stats.steps % self.every:
                here = self._last or Outcome(core.y, core.z, core.z, 0, t1=core.t, H=core.history.steps[0])
                rows.add(here, chosen.y(here.y), chosen.z(core.recorded(here.z)), core.rejected)

    def _steps(self, chunks: Chunks | None, monitor: GrowthMonitor) -> None:
        core, crew, stats, rows, chosen = self.core, self.core.crew, self.stats, self.rows, self.selection
        t_start, span, pace, still = core.t, core.windows.t_end - core.t, self.pace, self.still
        if pace is not None:
            pace.begin(core.t)
        shown = written = perf_counter()
        while not core.done:
            self._refuse_more()
            chunk = None if chunks is None else self._compiled(chunks)
            if chunk is not None:
                calls, _, rejected = rows.totals
                pending = np.append(crew.calls - calls, core.rejected - rejected)
                unwritten = self._record(chunk, pending - np.append(chunk.total("calls"), chunk.total("rejected")))
                rows.totals = crew.calls - unwritten[:-1], crew.seconds.copy(), core.rejected - int(unwritten[-1])
                self._last = None
                if still.waiting:
                    still.look(core.y, core.z)
                growth = monitor.look_at_chunk(chunk.z, core.done, chunk.failure is not None)
                if chunk.failure is not None:
                    raise chunk.failure
                self._warn_of(growth)
                if self.progress is not None and (core.done or perf_counter() - shown > _PROGRESS_EVERY):
                    self.progress((core.t - t_start) / span)
                    shown = perf_counter()
                continue
            self._last = step = core.cross()
            stats.steps += 1
            stats.iterations += step.iterations
            if not step.converged:
                stats.unconverged += 1
            if step.error > 1.0:
                stats.over_tolerance += 1
            if still.waiting:
                still.look(step.y, step.z)
            if monitor.note(step.z):
                self._warn_of(monitor.look_at_noted())
            if step.residual >= self._residuals:  # not for NaN: a method without residuals
                self._residuals = stats.max_residual = step.residual
            if stats.steps % self.every == 0 or core.done:
                rows.add(step, chosen.y(step.y), chosen.z(core.recorded(step.z)), core.rejected)
                if perf_counter() - written > _WRITE_EVERY:
                    self._write()
                    written = perf_counter()
            if pace is not None:
                pace.reach(core.t)
            if self.progress is not None and (core.done or perf_counter() - shown > _PROGRESS_EVERY):
                self.progress((core.t - t_start) / span)
                shown = perf_counter()

    def _refuse_more(self) -> None:
        """Raise when the run has taken all the steps that it may."""
        core, most = self.core, self.max_steps
        if most is not None and self.stats.steps >= most:
            raise StepSizeError(
                f"the run has taken its max_steps = {most} macro steps and stands at t = {core.t:.9g} of "
                f"{core.windows.t_end:.9g}; allow more, take longer steps or a looser rtol, or another method",
                time=core.t,
            )

    def _write(self) -> None:
        """Hand the rows gathered so far to the recorder."""
        if len(self.rows):
            self.recorder.extend(*self.rows.take())

    def _chunks(self) -> Chunks | None:
        """The way through compiled code, where there is one and it is wanted."""
        if self.compiled is False:
            return None
        chunks = Chunks(self.core)
        if self.compiled and chunks.reason is not None:
            raise SetupError(f"compiled=True: {chunks.reason}")
        return chunks if self.compiled or chunks.worth_it else None

    def _compiled(self, chunks: Chunks) -> Chunk | None:
        """As many steps as compiled code takes at once."""
        if chunks.reason is None:
            self._write()  # the rows of the chunk come after those gathered so far
        if self.max_steps is not None:
            chunks.left = self.max_steps - self.stats.steps
        began = perf_counter()
        chunk = chunks.take(self.recorder.room if self.every == 1 and self.selection.everything else None)
        if self.compiled and chunks.reason is not None:
            raise SetupError(f"compiled=True: {chunks.reason}")
        if chunk is not None:
            self.stats.compiled_steps += len(chunk)
            self.stats.compiled_seconds += perf_counter() - began - chunks.loading
            self.stats.loading_seconds += chunks.loading
        return chunk

    def _record(self, chunk: Chunk, unwritten: Any) -> Any:
        """Rows of compiled steps, thinned out where not every one is wanted; calls of steps not recorded yet."""
        before = self.stats.steps
        self.stats.steps += len(chunk)
        self.stats.iterations += int(chunk.total("iterations"))
        if np.ndim(chunk.residual):
            self._residuals = max(self._residuals, float(np.max(chunk.residual)))
            self.stats.max_residual = self._residuals
        self.stats.over_tolerance += int(np.sum(chunk.error > 1.0))
        block = {
            "t": chunk.t,
            "y": self.selection.y(chunk.y.T).T,
            "z": self.selection.z(chunk.z.T).T,
            "H": chunk.H,
            "iterations": chunk.iterations,
            "residual": chunk.residual,
            "error": chunk.error,
            "rejected": chunk.rejected,
            "calls": chunk.calls,
            "seconds": np.nan,
            "norms": chunk.norms,
        }
        if self.every == 1 and not unwritten.any():
            self.recorder.extend(block, chunk.counts)
            return unwritten
        return self._thinned(block, chunk.counts, before, unwritten)

    def _thinned(self, block: dict[str, Any], counts: Any, before: int, unwritten: Any) -> Any:
        """Record some of the rows of a block; calls and rejections of those left out go to the next that is not."""
        length = len(block["t"])
        rows = np.flatnonzero((np.arange(length) + before + 1) % self.every == 0)
        if self.core.done and (not len(rows) or rows[-1] != length - 1):
            rows = np.append(rows, length - 1)
        calls = np.broadcast_to(block["calls"], (length, len(unwritten) - 1))
        rejected = np.broadcast_to(block["rejected"], length)
        totals = unwritten + np.column_stack([calls, rejected]).cumsum(axis=0)
        if not len(rows):
            return totals[-1]
        norms = block["norms"]
        if counts is not None:
            ends = np.cumsum(counts)
            norms = np.concatenate([norms[ends[k] - counts[k] : ends[k]] for k in rows])
            counts = counts[rows]
        block = {
            name: value[rows] if len(np.shape(value)) and name not in ("norms", "calls") else value
            for name, value in block.items()
        }
        counted = np.diff(totals[rows], axis=0, prepend=np.zeros((1, totals.shape[1]), np.int64))
        block |= {"calls": counted[:, :-1], "rejected": counted[:, -1], "norms": norms}
        self.recorder.extend(block, counts)
        return totals[-1] - totals[rows[-1]]

    def _close_books(self, wall: float) -> None:
        crew, names = self.core.crew, self.core.plan.names
        self.stats.wall_seconds = wall
        if self.pace is not None:
            self.pace.note(self.stats)
        self.stats.retried = crew.retried()
        self.stats.startup = self.core.opening.note
        if crew.watch is not None:
            self.stats.events = crew.watch.stops
        self.stats.rejected = self.core.rejected
        self.stats.calls = {n: int(c) for n, c in zip(names, crew.calls, strict=True)}
        self.stats.jacobians = {n: int(c) for n, c in zip(names, crew.jacobians, strict=True)}
        self.stats.seconds = {n: float(s) for n, s in zip(names, crew.seconds, strict=True)}
