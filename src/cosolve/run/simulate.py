"""The time loop: macro step after macro step until `t_end`, recording everything, losing nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from cosolve.basics.checks import as_path, refuse_no_function, whole
from cosolve.basics.wording import shortened
from cosolve.engine.native import uncompiled_note
from cosolve.engine.readable.loops import first_loop
from cosolve.errors import AccuracyWarning, EndOfSimulation, SetupError, SimulationError, StabilityWarning, warn
from cosolve.interface import Plan, System
from cosolve.interface.channels import channels
from cosolve.method import Method
from cosolve.method.named import MethodLike, as_method, is_open
from cosolve.result import ErrorBar, Note, Recorder, Result, Stats
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
from cosolve.run.books import Books, Foregone, Judge, Onlooker, note_totals
from cosolve.run.engines import Engines
from cosolve.run.keeping import Keep, Keeper, KeptRun, state_path
from cosolve.run.rollback import prove_past
from cosolve.run.snapshot import description
from cosolve.run.startup import Startup
from cosolve.run.step_limit import steps_left
from cosolve.run.watching import WatchedRun, Watcher
from cosolve.stepsize import Adaptive
from cosolve.subsystem.signatures import keywords_only

if TYPE_CHECKING:
    from cosolve.fields.field_file import FieldFile, FieldRecording

__all__ = ["channels", "simulate"]

#: Macro steps from which on a run says why it was not compiled.
_WORTH_TELLING = 1000

_PROGRESS_EVERY = 0.1  # seconds


@keywords_only("cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=1), step=1e-3)")
def simulate(
    system: System,
    *,
    t_end: float,
    method: MethodLike | None = None,
    step: float | Adaptive | None = None,
    rtol: float | None = None,
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
    costs: Mapping[str, float] | None = None,
    state_every: int | str | Keep | None = None,
    live: Watcher | None = None,
    fields: FieldFile | Sequence[FieldFile] | None = None,
) -> Result:
    """Run a coupled system from `t_start` to `t_end` and return its result at the macro points.

    With `rtol` alone, method and step are chosen: the coupling error then stays below that part of each output's
    largest value, and `result.meta["choice"]` says what was chosen and why. A `method` or a `step` that is given is
    kept and the other one chosen; `method="auto"` is a method to be chosen (with `rtol=1e-4` unless given). Pilot runs
    come first, so subsystems start several times (see `cs.choose`, also for `costs`).

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

    `state_every` lets a long run, with `save="run.h5"`, survive whatever ends it: after so many macro steps, or so much
    time on the wall clock (`"30 s"`, `"5 min"`, `"1 h"`), its state is written beside the result, to `run.h5.state`.
    `cs.resume("run.h5", system)` goes on from there, and the result is in the end what it would have been. What cannot
    be saved is refused before the first step.

    `stop_at_events` ends a macro step at an event of a subsystem (a bounce, a switch, a sample; capability "events"),
    so that all others see it at once; the run then goes on to the next point of the grid. Who has crossed the step
    already must be able to go back.

    `max_steps` ends a run that would take more macro steps than that, with a `StepSizeError`: for error-controlled
    steps, whose number nobody knows before.

    `error_bar` estimates the coupling error after the run, by crossing its steps once more (see `cs.error_bar`): it is
    in `result.error_bar`, in the result file, and shaded in plots. `"sure"` takes a second grid of steps to see that
    the run can be believed.

    `live` shows the run in the browser while it goes on: `live=cs.Live()`.

    `fields` writes snapshots of field solvers to files for ParaView while the run goes on: a `cs.FieldFile`, or a list.

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
    if not isinstance(error_bar, bool) and not (isinstance(error_bar, str) and error_bar == "sure"):
        raise SetupError(f"simulate: error_bar must be True, False or 'sure', not {shortened(error_bar)}")
    options: dict[str, Any] = {
        "t_start": t_start,
        "t_end": t_end,
        "startup": startup,
        "workers": workers,
        "save": save,
        "every": every,
        "record": record,
        "progress": progress,
        "compiled": compiled,
        "resume": resume,
        "save_state": save_state,
        "pace": pace,
        "stop_at_events": stop_at_events,
        "max_steps": max_steps,
        "error_bar": error_bar,
        "state_every": state_every,
        "live": live,
        "fields": fields,
    }
    if rtol is None and costs is None and method is not None and not is_open(method):
        return run_given(system, as_method(method), step, **options)
    from cosolve.run.automatic import run_chosen

    return run_chosen(system, method, step, rtol, costs, options)


def run_given(
    system: System,
    method: Method,
    step: float | Adaptive | None,
    *,
    t_start: float,
    t_end: float,
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
    state_every: int | str | Keep | None = None,
    live: Watcher | None = None,
    fields: FieldFile | Sequence[FieldFile] | None = None,
    choice: str | None = None,
    judge: Judge | None = None,
    bar_later: bool | Literal["sure"] = False,
    proves: bool = True,
) -> Result:
    """A run whose method and step are known; the other arguments are those of `simulate`.

    `choice` says how they were found, `judge` sees all macro points. `bar_later` is an error bar that the caller makes,
    and a run that is resumed by itself. With `proves` subsystems that were set back show that this cost nothing.
    """
    whole("simulate", "every", every)
    if max_steps is not None:
        whole("simulate", "max_steps", max_steps)
    refuse_no_function("simulate", "(fraction)", progress=progress)
    if t_end is None:
        raise SetupError("simulate: t_end must be a finite number, not None; a Stepper runs without an end")
    plan = checked_plan("simulate", system, method, workers)
    saved = resume if isinstance(resume, Snapshot) or resume is None else Snapshot.read(as_path("simulate", resume))
    t_first = t_start
    if saved is not None:
        t_first, t_start = saved.t_start, saved.t
    if save_state is not None:
        from cosolve.result.store import refuse_unwritable

        refuse_unwritable(Path(save_state))
    keep = state_every if state_every is None or isinstance(state_every, Keep) else Keep(state_every)
    if keep is not None and save is None:
        raise SetupError("state_every: states lie beside the result file, so give its name as well, save='run.h5'")
    core = Core(plan, method, startup, make_windows(method, step, t_first, t_end, plan), workers, stop_at_events)
    meta = about_run(system, method, step, t_start, t_end, startup)
    if choice is not None:
        meta["choice"] = choice
    timing = _timing(pace, compiled)
    selection, keeper = Selection(plan, record), None
    snapshots = _field_recording(fields, plan)
    if keep is not None and save is not None:
        settings = {"t_start": t_first, "t_end": t_end, "step": repr(step), "startup": repr(startup), "every": every}
        settings |= {"record": None if record is None else list(record), "max_steps": max_steps, "workers": workers}
        settings |= {"compiled": compiled, "stop_at_events": stop_at_events, "method": repr(method)}
        settings |= {"error_bar": error_bar or bar_later}
        settings |= {"fields": None if snapshots is None else snapshots.settings(Path(save))}
        keeper = Keeper(Path(save), keep, settings)
    try:
        recorder = make_recorder(selection, plan.names, save, meta)
    except BaseException:
        if keeper is not None:
            keeper.release()
        raise
    if save is not None:
        state_path(Path(save)).unlink(missing_ok=True)  # of a run whose result is gone now
    run = _Run(core, recorder, selection, every, max_steps, progress, compiled, timing, keeper)
    run.judge, run.watcher, run.fields = judge, live, snapshots
    run.proves, run.verdict = proves, bool(error_bar or bar_later or choice is not None)
    result = run.result(t_first, saved, meta, None if save_state is None else Path(save_state))
    return _with_error_bar(result, system, error_bar, save)


def _field_recording(fields: FieldFile | Sequence[FieldFile] | None, plan: Plan) -> FieldRecording | None:
    if not fields:
        return None
    from cosolve.fields.field_file import FieldRecording

    return FieldRecording(fields, plan.names, plan.subsystems)


def _with_error_bar(result: Result, system: System, wanted: bool | Literal["sure"], save: str | Path | None) -> Result:
    if wanted:
        from cosolve.run.error_bar import error_bar as estimated

        keep_error_bar(result, estimated(system, result, sure=wanted == "sure"), save)
    return result


def keep_error_bar(result: Result, bar: ErrorBar, save: str | Path | None) -> None:
    """In the result, and in its file where it has one."""
    result.error_bar = bar
    if save is not None:
        from cosolve.result.store import add_error_bar

        add_error_bar(Path(save), bar)


def continue_run(
    system: System,
    path: Path,
    kept: KeptRun,
    keep: Keep,
    *,
    method: MethodLike,
    step: float | Adaptive | None,
    startup: Startup | None,
    workers: int,
    max_steps: int | None,
    progress: Callable[[float], None] | None = None,
    compiled: bool | None = None,
    pace: float | Pace | None = None,
) -> Result:
    """Go on with a run from the state that it left beside its result file."""
    from cosolve.result.store import Stream, load

    given = kept.run["settings"]
    method = as_method(method)
    plan = checked_plan("resume", system, method, workers)
    windows = make_windows(method, step, given["t_start"], given["t_end"], plan)
    if windows.settings != kept.snapshot.grid:
        raise SetupError(f"the run was made with step {given['step']}, here: {step!r}; use the same")
    core = Core(plan, method, startup, windows, workers, given["stop_at_events"])
    kept.snapshot.refuse_other(description(plan, method, core.startup))
    timing = _timing(pace, compiled)
    selection = Selection(plan, given["record"])
    keeper = Keeper(path, keep, given | {"max_steps": max_steps, "workers": workers, "compiled": compiled})
    keeper.go_on_from(kept.run["stats"]["steps"])
    try:
        recorder = Stream.continued(path, kept.run["rows"])
    except BaseException:
        keeper.release()
        raise
    meta = load(path).meta
    run = _Run(core, recorder, selection, given["every"], max_steps, progress, compiled, timing, keeper, kept)
    if given.get("fields"):
        from cosolve.fields.field_file import FieldRecording

        run.fields = _field_recording(FieldRecording.of_settings(given["fields"], path), plan)
    if "choice" in meta:
        run.judge = _same_judge(kept)
    run.verdict = bool(given["error_bar"]) or "choice" in meta
    result = run.result(given["t_start"], kept.snapshot, meta, None)
    doubt = result.stats.note("tolerance")
    if doubt and "choice" in meta:
        warn(doubt, AccuracyWarning)
        if given["error_bar"]:
            keep_error_bar(result, ErrorBar(result.t, reason=doubt), path)
        return result
    return _with_error_bar(result, system, given["error_bar"], path)


def _same_judge(kept: KeptRun) -> Judge:
    """The judge of an automatic run; states from before these were kept have none."""
    from cosolve.run.compared import Compared

    held = kept.run["books"].get("judge")
    if held is None:
        return Foregone("a resumed run is not compared with its pilot: whether it meets its tolerance is not known")
    if "foregone" in held:
        return Foregone(held["foregone"])
    found: list[Judge] = []
    kept.restored(lambda: found.append(Compared.going_on(held)))
    return found[0]


def _timing(pace: float | Pace | None, compiled: bool | None) -> Pace | None:
    timing = make_pace(pace)
    if timing is not None and compiled:
        raise SetupError("compiled=True: a paced run waits after every macro step, in the readable engine")
    return timing


class _Run:
    """One run of one system; `kept` is what it goes on from when it is resumed."""

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
        keeper: Keeper | None = None,
        kept: KeptRun | None = None,
    ) -> None:
        self.core, self.recorder, self.selection, self.every = core, recorder, selection, every
        self.max_steps, self.progress, self.pace = max_steps, progress, pace
        self.compiled = compiled if pace is None else False
        self.keeper, self.kept = keeper, kept
        self.stats = Stats()
        self.books: Books | None = None  # as soon as there is something to write down
        self.judge: Judge | None = None
        self.watcher: Watcher | None = None
        self.fields: FieldRecording | None = None
        self._stopped = False  # by the watcher
        self.proves = True  # whether rollback is proven
        self.verdict = False  # whether something is said about how good the run is
        self._began = perf_counter()
        self._before = 0.0, 0.0, 0.0  # seconds, those of compiled code, and those of loading it, before it was resumed

    def result(self, t_first: float, saved: Snapshot | None, meta: dict[str, Any], save_state: Path | None) -> Result:
        """Run to the end; on failure attach what there is to the error."""
        core = self.core
        failure: SimulationError | None = None
        stopped: BaseException | None = None
        ending: str | None = None
        counted = False
        try:
            with core.ownership.advancing():
                self._start(t_first, saved)
                books = self._opened_books()
                self._cross_all(books, self._watched(meta))
                books.end()
                self._save_state(save_state)
                self._note_totals()
                counted = True  # proofs start subsystems anew
                for note in (*core.crew.notes, *(prove_past(core, self.verdict) if self.proves else ())):
                    self.stats.add(note)
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
            core.close()
            if not counted:
                self._note_totals()
            self.recorder.finish(self.stats, ending)
            self.recorder.close()
            if self.keeper is not None:
                if ending is None and not self._stopped:
                    self.keeper.remove()
                self.keeper.release()
            result = Result(
                *(self.recorder.columns, self.selection.channels, core.plan.names),
                stats=self.stats,
                meta=meta,
                error=ending,
            )
            result.method, result.startup = core.method, core.startup
            if self.watcher is not None:
                self.watcher.end(result)
            if stopped is not None:
                stopped.result = result  # type: ignore[attr-defined]
        if failure is not None:
            failure.result = result
            raise failure
        return result

    def _opened_books(self) -> Books:
        """New ones, or those of the run that is resumed."""
        core, kept = self.core, self.kept
        if kept is None:
            self._warn_of_loop()
            self.books = Books(core, self.recorder, self.selection, self.every, self.stats, self.judge)
            return self.books
        held = kept.run

        def take_over() -> None:
            self.stats = Stats(**held["stats"])
            self.books = Books(core, self.recorder, self.selection, self.every, self.stats, self.judge, held["books"])
            core.crew.memory, core.rejected, core.opening.memory = held["crew"], held["rejected"], held["opening"]
            if self.fields is not None:
                self.fields.go_on_from(held["fields"])

        kept.restored(take_over)
        assert self.books is not None
        self._before = held["wall"], self.stats.compiled_seconds, self.stats.loading_seconds
        return self.books

    def _start(self, t: float, saved: Snapshot | None) -> None:
        """Everything where the run begins: in its initial state, or in a saved one."""
        core = self.core
        core.proves = self.proves
        try:
            core.start(t)
        except EndOfSimulation as end:  # nothing has run
            name = end.subsystem
            raise SimulationError(f"{end.sentence(t)}, before anything has run", time=t, subsystem=name) from end
        if saved is not None:
            core.restore(saved)

    def _warn_of_loop(self) -> None:
        """Explicit methods do not solve algebraic loops, unless outputs are evaluated again after the exchange."""
        core = self.core
        if not core.method.lags or getattr(core.method, "outputs", "") == "exchanged":
            return
        loop = first_loop(core.crew, core.t, core.z)
        if loop:
            text = (
                f"{core.method.label} lags one macro step in an algebraic loop ({' -> '.join((*loop, loop[0]))}) and "
                "may grow in it however small the step; SemiImplicit and Implicit solve it, and giving out a state "
                "instead cuts it (an acceleration input is a typical cause)"
            )
            self.stats.add(Note("algebraic-loop", text))
            warn(text, StabilityWarning)

    def _watched(self, meta: dict[str, Any]) -> WatchedRun | None:
        """The run as its watcher sees it, who has been told that it begins."""
        if self.watcher is None:
            return None
        watched = WatchedRun(self.core, self.selection, self.recorder, self.stats, meta)
        self.watcher.begin(watched)
        return watched

    def _cross_all(self, books: Books, watched: WatchedRun | None) -> None:
        """Macro steps to the end, whoever takes them."""
        core, pace, progress, keeper = self.core, self.pace, self.progress, self.keeper
        watcher, fields = self.watcher, self.fields
        engines = Engines(core, self.compiled, self.kept is not None and self.kept.run["fast"])
        if engines.fast is not None:
            books.reserve()
        if fields is not None:
            fields.see(self.stats.steps, core.t, core.windows.usual)
        if keeper is not None and self.kept is None:
            self._keep_state(keeper, books, engines)
        if pace is not None:
            pace.begin(core.t)
        if isinstance(progress, Onlooker):
            progress.watch(books)
        t_start, shown = core.t if self.kept is None else core.t_start, perf_counter()
        span = core.windows.t_end - t_start
        try:
            while not core.done:
                left: float = steps_left(self.max_steps, self.stats.steps, core.t, core.windows.t_end)
                if keeper is not None:
                    left = min(left, keeper.left(self.stats.steps))
                if fields is not None:
                    left = min(left, fields.left(self.stats.steps, core.t, core.windows.usual))
                if watcher is not None and watched is not None:
                    left = min(left, watcher.allow(watched))
                    if left < 1:
                        self._stopped = True
                        if keeper is not None:
                            self._keep_state(keeper, books, engines)
                        break
                chunk = engines.take(books.due if pace is None else 1, books.room, int(left))
                if watcher is not None and watched is not None:
                    watcher.see(watched.kept(chunk))
                books.add(chunk)
                if fields is not None:
                    fields.see(self.stats.steps, core.t, core.windows.usual, core.done)
                if keeper is not None and keeper.is_due(self.stats.steps) and not core.done:
                    self._keep_state(keeper, books, engines)
                if pace is not None:
                    pace.reach(core.t)
                if progress is not None and (core.done or perf_counter() - shown > _PROGRESS_EVERY):
                    progress((core.t - t_start) / span)
                    shown = perf_counter()
        except EndOfSimulation as end:  # in the middle of a step: the last point is that before it
            core.ended, core.inside_step = end, True
        finally:
            self._note_seconds(engines)
            if self.compiled is None and not self.stats.compiled_steps and self.stats.steps >= _WORTH_TELLING:
                self._note_uncompiled()

    def _keep_state(self, keeper: Keeper, books: Books, engines: Engines) -> None:
        """Write the state now, after the rows up to it are on the disk."""
        from cosolve.result.store import Stream

        stream = self.recorder
        assert isinstance(stream, Stream)
        rows = stream.secure()
        self._note_totals()
        self._note_seconds(engines)
        held = {"run": stream.run, "rows": rows, "books": books.memory, "fast": engines.fast is not None}
        held |= {"fields": [] if self.fields is None else self.fields.memory}
        keeper.write(self.core, held | {"wall": self.stats.wall_seconds}, self.stats)

    def _save_state(self, path: Path | None) -> None:
        core = self.core
        if core.ended is not None:
            self.stats.ended = core.ended.sentence(core.t)
        elif self._stopped:
            self.stats.ended = f"ended at t = {core.t:.9g} because it was stopped by hand"
        if path is not None and core.inside_step:
            self.stats.ended += "; no state was saved, since the last macro step was left half crossed"
        elif path is not None:
            core.save(portable=True).write(path)

    def _note_uncompiled(self) -> None:
        """Say what keeps a long run in Python."""
        reason = uncompiled_note(self.core)
        if reason:
            gain = "steps of small models take a fifteenth to a fiftieth of the time when they are compiled"
            self.stats.add(Note("not-compiled", f"this run went through Python: {reason}", "info", remedy=gain))

    def _note_seconds(self, engines: Engines) -> None:
        self.stats.compiled_seconds = self._before[1] + engines.spent
        self.stats.loading_seconds = self._before[2] + engines.loaded

    def _note_totals(self) -> None:
        self.stats.wall_seconds = self._before[0] + perf_counter() - self._began
        self.stats.rejected = self.core.rejected
        if self.pace is not None:
            self.pace.note(self.stats)
        note_totals(self.stats, self.core)
