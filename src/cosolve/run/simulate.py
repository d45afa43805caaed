"""The time loop: macro step after macro step until `t_end`, recording everything, losing nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from cosolve.accuracy.rollback import prove_past
from cosolve.basics.checks import as_path
from cosolve.basics.wording import raised
from cosolve.engine.native import uncompiled_note
from cosolve.engine.observer import Observer, overrides
from cosolve.engine.python.events import late_samples
from cosolve.engine.python.loops import first_loop
from cosolve.errors import (
    AccuracyWarning,
    CosolveError,
    EndOfSimulation,
    SetupError,
    SimulationError,
    StabilityWarning,
    warn,
)
from cosolve.interface import System
from cosolve.interface.channels import channels
from cosolve.method.named import as_method, is_open
from cosolve.options import RunOptions, known_options, takes
from cosolve.result import ErrorBar, Note, Recorder, Result, Stats
from cosolve.run import Core, Pace, Selection, Snapshot, about_run, checked_plan, make_pace, make_recorder, make_windows
from cosolve.run.checkpoints import Checkpoints, Progress
from cosolve.run.diagnoses import DIAGNOSES, FixedWarning, ToleranceCheck, ToleranceDiagnosis
from cosolve.run.engines import Engines
from cosolve.run.naming import as_observers
from cosolve.run.recording import RowWriter
from cosolve.run.step_limit import steps_left
from cosolve.run.totals import note_totals
from cosolve.run.view import RunView
from cosolve.state.snapshot import description, differ
from cosolve.state.state_writer import InterruptedRun, Keep, StateWriter

__all__ = ["channels", "simulate"]

#: Macro steps from which on a run says why it was not compiled.
_WORTH_TELLING = 1000


@takes(RunOptions, "cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=1), step=1e-3)")
def simulate(system: System, options: RunOptions) -> Result:
    """Run a coupled system and return its result at the macro points.

    Give a `method` and a `step`, or `rtol` alone: method and step are then chosen by pilot runs.

    Parameters
    ----------
    system : System
        The coupled system.
    {options}

    Returns
    -------
    Result
        Values at the macro points, and statistics. If a subsystem ends the run (`EndOfSimulation`), the result ends
        there and `result.ended` says why.

    Raises
    ------
    SetupError
        If system, method and step do not fit; nothing has run then.
    SimulationError
        If the run stops early. Its `result` holds everything up to the last good step.
    KeyboardInterrupt
        At Ctrl-C; its `result` holds everything up to the last good step.

    Examples
    --------
    >>> import cosolve as cs
    >>> tank = lambda level: cs.Ode(lambda t, x, u: u - x, lambda t, x, u: x, x0=[level], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(1.0), "two": tank(0.0)})
    >>> system.connect("one.h", "two.q")
    >>> system.connect("two.h", "one.q")
    >>> result = cs.simulate(system, t_end=5.0, method=cs.SemiImplicit(degree=2), step=0.05)
    >>> bool(abs(result["one.h"][-1] - 0.5) < 1e-4), len(result.t)
    (True, 101)
    """
    method = options.method
    if options.rtol is None and options.costs is None and method is not None and not is_open(method):
        return run_given(system, replace(options, method=as_method(method)))
    from cosolve.accuracy.auto.automatic import run_chosen

    return run_chosen(system, options)


def run_given(
    system: System,
    options: RunOptions,
    *,
    choice: str | None = None,
    tolerance_check: ToleranceCheck | None = None,
    bar_later: bool | Literal["sure"] = False,
    proves: bool = True,
) -> Result:
    """A run whose method and step are known.

    `choice` says how they were found, `tolerance_check` sees all macro points. `bar_later` is an error bar that the
    caller makes, and a run that is resumed by itself. With `proves` subsystems that were set back show that this cost
    nothing.
    """
    assert options.method is not None
    method, step, save, resume = as_method(options.method), options.step, options.save, options.resume
    observers = as_observers(options.observers)
    plan = checked_plan("simulate", system, method, options.workers)
    saved = resume if isinstance(resume, Snapshot) or resume is None else Snapshot.read(as_path("simulate", resume))
    t_first = t_start = options.t_start
    if saved is not None:
        t_first, t_start = saved.t_start, saved.t
    if options.save_state is not None:
        from cosolve.result.store import refuse_unwritable

        refuse_unwritable(Path(options.save_state))
    every = options.state_every
    keep = every if every is None or isinstance(every, Keep) else Keep(every)
    if keep is not None and save is None:
        raise SetupError("state_every: states lie beside the result file, so give its name as well, save='run.h5'")
    windows = make_windows(method, step, t_first, options.t_end, plan)
    core = Core(plan, method, options.startup, windows, options.workers, options.stop_at_events)
    meta = about_run(system, method, step, t_start, options.t_end, options.startup)
    meta |= options.meta or {}
    if choice is not None:
        meta["choice"] = choice
    pace = _pace(options)
    selection, keeper = Selection(plan, options.record), None
    if keep is not None and save is not None:
        settings = _settings(replace(options, t_start=t_first, error_bar=options.error_bar or bar_later), observers)
        keeper = StateWriter(Path(save), keep, settings)
    recorder = make_recorder(selection, plan.names, save, meta)
    run = _Run(core, recorder, selection, meta, options, observers, pace, tolerance_check, keeper)
    run.proves, run.verdict = proves, bool(options.error_bar or bar_later or choice is not None)
    result = run.result(t_first, saved)
    return _with_error_bar(result, system, options.error_bar, save)


def _settings(options: RunOptions, observers: Sequence[Observer]) -> dict[str, Any]:
    """What a run is resumed with: plain values, and the texts of objects."""
    kept = {name: getattr(options, name) for name, known in known_options(RunOptions).items() if known.about.kept}
    kept |= {name: repr(kept[name]) for name in ("method", "step", "startup")}
    kept["record"] = None if options.record is None else list(options.record)
    kept["observers"] = [repr(one) for one in observers if overrides(one, "memory")]
    return kept


def _with_error_bar(result: Result, system: System, wanted: bool | Literal["sure"], save: str | Path | None) -> Result:
    if wanted:
        from cosolve.accuracy.error_bar import estimated

        keep_error_bar(result, estimated(system, result, sure=wanted == "sure", proven=True), save)
    return result


def keep_error_bar(result: Result, bar: ErrorBar, save: str | Path | None) -> None:
    """In the result, and in its file where it has one."""
    result.error_bar = bar
    if save is not None:
        from cosolve.result.store import add_error_bar

        add_error_bar(Path(save), bar)


def continue_run(system: System, path: Path, kept: InterruptedRun, keep: Keep, options: RunOptions) -> Result:
    """Go on with a run from the state that it left beside its result file."""
    from cosolve.result.store import Stream, load

    assert options.method is not None
    method, observers = as_method(options.method), as_observers(options.observers)
    plan = checked_plan("resume", system, method, options.workers)
    windows = make_windows(method, options.step, options.t_start, options.t_end, plan)
    if differ(windows.settings, kept.snapshot.grid):
        before = kept.run["settings"]["step"]
        raise SetupError(f"the run was made with step {before}, here: {options.step!r}; use the same")
    core = Core(plan, method, options.startup, windows, options.workers, options.stop_at_events)
    kept.snapshot.refuse_other(description(plan, method, core.startup))
    pace = _pace(options)
    selection = Selection(plan, options.record)
    keeper = StateWriter(path, keep, _settings(options, observers))
    keeper.go_on_from(kept.run["stats"]["steps"])
    recorder = Stream.continued(path, kept.run["rows"])
    meta = load(path).meta
    tolerance_check = _same_judge(kept) if "choice" in meta else None
    run = _Run(core, recorder, selection, meta, options, observers, pace, tolerance_check, keeper, kept)
    run.verdict = bool(options.error_bar) or "choice" in meta
    result = run.result(options.t_start, kept.snapshot)
    doubt = result.stats.note("tolerance")
    if doubt and "choice" in meta:
        warn(doubt, AccuracyWarning)
        if options.error_bar:
            keep_error_bar(result, ErrorBar(result.t, reason=doubt), path)
        return result
    return _with_error_bar(result, system, options.error_bar, path)


def _same_judge(kept: InterruptedRun) -> ToleranceCheck:
    """The tolerance check of an automatic run; states from before these were kept have none."""
    from cosolve.accuracy.auto.compared import Compared

    held = kept.run["observers"].get(ToleranceDiagnosis.__name__)
    if held is None:
        return FixedWarning("a resumed run is not compared with its pilot: whether it meets its tolerance is not known")
    if "fixed_warning" in held:
        return FixedWarning(held["fixed_warning"])
    found: list[ToleranceCheck] = []
    kept.restored(lambda: found.append(Compared.going_on(held)))
    return found[0]


def _pace(options: RunOptions) -> Pace | None:
    pace = make_pace(options.pace)
    if pace is not None and options.compiled:
        raise SetupError("compiled=True: a paced run waits after every macro step, in the Python engine")
    return pace


class _Run:
    """One run of one system; `kept` is what it goes on from when it is resumed."""

    def __init__(
        self,
        core: Core,
        recorder: Recorder,
        selection: Selection,
        meta: dict[str, Any],
        options: RunOptions,
        given: Sequence[Observer],
        pace: Pace | None,
        tolerance_check: ToleranceCheck | None,
        keeper: StateWriter | None = None,
        kept: InterruptedRun | None = None,
    ) -> None:
        self.core, self.recorder, self.selection, self.meta, self.options = core, recorder, selection, meta, options
        self.compiled = options.compiled if pace is None else False
        self.keeper, self.kept, self._pace = keeper, kept, pace
        self._given, self.rows = given, RowWriter(recorder, options.every)
        self.observers: list[Observer] = [self.rows, *(diagnosis() for diagnosis in DIAGNOSES)]
        if tolerance_check is not None:
            self.observers.append(ToleranceDiagnosis(tolerance_check))
        self.observers += given
        if keeper is not None:
            self.observers.append(Checkpoints(keeper, self._write_state))
        if pace is not None:
            self.observers.append(pace)
        if options.progress is not None:
            self.observers.append(Progress(options.progress))
        self.view = RunView(core, selection, recorder, Stats(), meta, self.observers, resumed=kept is not None)
        self._started: list[Observer] = []  # those that follow the run by now
        self._following: list[Observer] = []  # of these the ones that do not know yet that it has ended
        self._stopped = False  # by an observer
        self.proves = True  # whether rollback is proven
        self.verdict = False  # whether something is said about how good the run is
        self.engines: Engines | None = None
        self._began = perf_counter()
        self._before = 0.0, 0.0, 0.0  # seconds, those of compiled code, and those of loading it, before it was resumed

    def result(self, t_first: float, saved: Snapshot | None) -> Result:
        """Run to the end; on failure attach what there is to the error."""
        core, stats = self.core, self.view.stats
        failure: SimulationError | None = None
        stopped: BaseException | None = None
        ending: str | None = None
        counted = False
        try:
            with core.ownership.advancing():
                self._start(t_first, saved)
                self._advance_all()
                self._finish(None)
                self._save_state()
                self._note_totals()
                counted = True  # proofs start subsystems anew
                driven = filter(None, (one.drive.note(one.target) for one in core.plan.driven))
                for note in (*core.caller.notes, *driven, *(prove_past(core, self.verdict) if self.proves else ())):
                    stats.add(note)
        except SimulationError as error:
            failure = error
            if failure.time is None:  # from below the level that knows the time
                failure.time = core.t
                failure.args = (f"{failure} (in the macro step from t = {core.t:.9g})",)
            ending = str(failure)
            self._finish(failure)
        except BaseException as error:  # Ctrl-C, say: the file must not claim that the run finished
            ending = f"the run was ended by {type(error).__name__} in the macro step from t = {core.t:.9g}"
            stopped = error
            self._finish(error)
            raise
        finally:
            core.close()
            if not counted:
                self._note_totals()
            unwritten = self.recorder.finish(stats, ending)
            if failure is None and stopped is None and unwritten is not None:
                failure, ending = unwritten, str(unwritten)
            self.recorder.close()
            if self.keeper is not None and ending is None and not self._stopped:
                self.keeper.remove()
            result = Result(
                *(self.recorder.columns, self.selection.channels, core.plan.names),
                stats=stats,
                meta=self.meta,
                error=ending,
            )
            result.method, result.startup = core.method, core.startup
            if stopped is not None:
                stopped.result = result  # type: ignore[attr-defined]
            if failure is not None:
                failure.result = result
            for one in self._started:
                self._called_at_end(one, one.closed, result, failure or stopped)
        if failure is not None:
            raise failure
        return result

    def _finish(self, failure: BaseException | None) -> None:
        """Tell observers that no more macro steps come, each once."""
        while self._following:
            one = self._following.pop(0)
            self._called_at_end(one, one.finished, failure, failure)

    def _called(self, one: Observer, method: Callable[..., Any], *arguments: Any) -> Any:
        """What an observer answers; an error of one that was given names it."""
        try:
            return method(self.view, *arguments)
        except Exception as error:
            own = any(one is each for each in self._given)
            if not own and not isinstance(one, Progress):  # which calls a function of the user
                self.core.blame_state(error)
            if not own or isinstance(error, (CosolveError, Warning, EndOfSimulation)):
                raise
            t, said = self.core.t, raised(error)
            raise SimulationError(f"the observer {type(one).__name__} failed at t = {t:.9g}: {said}", time=t) from error

    def _called_at_end(
        self, one: Observer, method: Callable[..., Any], argument: Any, failure: BaseException | None
    ) -> None:
        """Call an observer; what goes wrong there is said besides where the run has failed already."""
        try:
            self._called(one, method, argument)
        except Exception as error:
            if failure is None:
                raise
            failure.add_note(f"besides: {error}")

    def _start(self, t: float, saved: Snapshot | None) -> None:
        """Everything where the run begins, in its initial state or in a saved one; then those who follow it."""
        core, kept = self.core, self.kept
        core.proves, core.verdict = self.proves, self.verdict
        try:
            core.begin(t) if saved is None else core.start(t)
        except EndOfSimulation as end:  # nothing has run
            name = end.subsystem
            raise SimulationError(f"{end.sentence(t)}, before anything has run", time=t, subsystem=name) from end
        if saved is not None:
            core.restore(saved)
        if kept is None:
            self._warn_of_loop()
            self._warn_of_samples()
        else:
            kept.restored(self._take_over)
        self.engines = Engines(core, self.compiled, kept is not None and kept.run["fast"])
        self.view.compiled = self.engines.fast is not None
        if self.view.compiled:
            self.rows.reserve(core)
        for one in self.observers:
            self._begin(one)
            self._started.append(one)
            self._following.append(one)

    def _begin(self, one: Observer) -> None:
        kept, key = self.kept, self._key(one)
        known = kept is not None and (key in kept.run["observers"] or one not in self._given)
        if kept is None or not known or not overrides(one, "memory"):
            self._called(one, one.start)
        else:
            kept.restored(lambda: self._called(one, one.resume, kept.run["observers"][key]))

    def _key(self, one: Observer) -> str:
        """The name of an observer among what a state keeps."""
        alike = [each for each in self.observers if type(each) is type(one)]
        n = next(k for k, each in enumerate(alike) if each is one)
        return type(one).__name__ + (f" {n + 1}" if n else "")

    def _take_over(self) -> None:
        """The totals of the run that is resumed."""
        assert self.kept is not None
        core, held, stats = self.core, self.kept.run, Stats(**self.kept.run["stats"])
        vars(self.view.stats).update(vars(stats))
        core.caller.memory, core.rejected, core.startup_steps.memory = held["caller"], held["rejected"], held["opening"]
        self._before = held["wall"], stats.compiled_seconds, stats.loading_seconds

    def _warn_of_loop(self) -> None:
        """Explicit methods do not solve algebraic loops, unless outputs are evaluated again after the exchange."""
        core = self.core
        if not core.method.lags or core.method.reevaluates:
            return
        loop = first_loop(core.caller, core.t, core.z)
        if loop:
            text = (
                f"{core.method.label} lags one macro step in an algebraic loop ({' -> '.join((*loop, loop[0]))}) and "
                "may grow in it however small the step; SemiImplicit and Implicit solve it, and giving out a state "
                "instead cuts it (an acceleration input is a typical cause)"
            )
            self.view.note(Note("algebraic-loop", text))
            warn(text, StabilityWarning)

    def _warn_of_samples(self) -> None:
        """Others see a sample at the end of the macro step that begins with it, unless macro steps end at events."""
        text = "" if self.core.caller.watch is not None else late_samples(self.core.method, self.core.plan)
        if text:
            remedy = "take stop_at_events=True, with which the sampled loop is exact"
            self.view.note(Note("late-samples", text, remedy=remedy))
            warn(f"{text}; {remedy}", AccuracyWarning)

    def _advance_all(self) -> None:
        """Macro steps to the end."""
        core, view, engines, observers, options = self.core, self.view, self.engines, self.observers, self.options
        assert engines is not None
        limiting = [one for one in observers if overrides(one, "limit")]
        try:
            while not core.done:
                left: float = steps_left(options.max_steps, view.stats.steps, core.t, core.windows.t_end)
                view.compiled = engines.fast is not None
                for one in limiting:
                    left = min(left, self._called(one, one.limit))
                if left < 1:
                    self._stopped = True
                    if self.keeper is not None:
                        self._write_state()
                    break
                chunk = engines.take(int(left), self.rows.buffers)
                view.count(chunk)
                attempts = int(chunk.total("rejected"))
                for one in observers:
                    if attempts:
                        self._called(one, one.rejected, attempts)
                    self._called(one, one.accepted, chunk)
                if chunk.failure is not None:
                    raise chunk.failure
        except EndOfSimulation as end:  # in the middle of a step: the last point is that before it
            core.ended, core.inside_step = end, True
        finally:
            self._note_seconds()
            if self.compiled is None and not view.stats.compiled_steps and view.stats.steps >= _WORTH_TELLING:
                self._note_uncompiled()

    def _write_state(self) -> None:
        """Write the state now, after the rows up to it are on the disk."""
        from cosolve.result.store import Stream

        stream, keeper, engines = self.recorder, self.keeper, self.engines
        assert isinstance(stream, Stream)
        assert keeper is not None
        assert engines is not None
        rows = stream.secure()
        self._note_totals()
        self._note_seconds()
        memories = {self._key(one): one.memory(self.view) for one in self.observers if overrides(one, "memory")}
        held = {"run": stream.run, "rows": rows, "observers": memories, "fast": engines.fast is not None}
        keeper.write(self.core, held | {"wall": self.view.stats.wall_seconds}, self.view.stats)

    def _save_state(self) -> None:
        core, stats, path = self.core, self.view.stats, self.options.save_state
        if core.ended is not None:
            stats.ended = core.ended.sentence(core.t)
        elif self._stopped:
            stats.ended = f"ended at t = {core.t:.9g} because it was stopped by hand"
        if path is not None and core.inside_step:
            stats.ended += "; no state was saved, since the last macro step was left half advanced"
        elif path is not None:
            core.save(portable=True).write(Path(path))

    def _note_uncompiled(self) -> None:
        """Say what keeps a long run in Python."""
        reason = uncompiled_note(self.core)
        if reason:
            gain = "steps of small models take a fifteenth to a fiftieth of the time when they are compiled"
            self.view.note(Note("not-compiled", f"this run went through Python: {reason}", "info", remedy=gain))

    def _note_seconds(self) -> None:
        stats, engines = self.view.stats, self.engines
        if engines is not None:
            stats.compiled_seconds = self._before[1] + engines.spent
            stats.loading_seconds = self._before[2] + engines.loaded
            stats.python_reason = "" if stats.compiled_steps else engines.python_reason

    def _note_totals(self) -> None:
        stats = self.view.stats
        stats.wall_seconds = self._before[0] + perf_counter() - self._began
        stats.rejected = self.core.rejected
        note_totals(stats, self.core)
