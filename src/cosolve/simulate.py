"""The time loop: macro step after macro step until `t_end`, recording everything, losing nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from cosolve.errors import SetupError, SimulationError, StepSizeError
from cosolve.interface import Plan, System
from cosolve.interface.graph import graph
from cosolve.method import Crew, Method, Outcome, Window
from cosolve.method.startup import RisingDegree
from cosolve.result import Channel, Layout, Memory, Recorder, Result, Row, Stats
from cosolve.signal import History
from cosolve.stepsize import Adaptive, TickClock, UniformClock, refuse_bad_span, refuse_bad_step
from cosolve.subsystem.base import has_capability

_PROGRESS_EVERY = 0.1  # seconds


def simulate(
    system: System,
    *,
    t_end: float,
    method: Method,
    step: float | Adaptive | None = None,
    t_start: float = 0.0,
    startup: RisingDegree | None = None,
    workers: int = 1,
    save: str | Path | None = None,
    every: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Run a coupled system from `t_start` to `t_end` and return its result at the macro points.

    `step` is the macro step, or an `Adaptive` step control (`MasterSlave` chooses its own steps; `step` then limits
    them). `workers` > 1 runs subsystems of a parallel sweep in threads: same bits, less time where they release the
    interpreter lock. `save` streams the result to an HDF5 file instead of holding it in memory; `every` records only
    each so-many-th macro point (and the last). `progress(fraction)` is called about ten times a second.

    A run that stops early raises `SimulationError`, whose `result` holds everything up to the last good step.

    >>> import cosolve as cs
    >>> tank = lambda level: cs.Ode(lambda t, x, u: u - x, lambda t, x, u: x, x0=[level], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(1.0), "two": tank(0.0)})
    >>> system.connect("one.h", "two.q")
    >>> system.connect("two.h", "one.q")
    >>> result = cs.simulate(system, t_end=5.0, method=cs.SemiImplicit(degree=2), step=0.05)
    >>> bool(abs(result["one.h"][-1] - 0.5) < 1e-4), len(result.t)
    (True, 101)
    """
    if not isinstance(system, System):
        raise SetupError(f"simulate runs a cosolve.System, not a {type(system).__name__}")
    if not isinstance(method, Method):
        raise SetupError(f"method must be a coupling method such as Jacobi(degree=1), not {method!r}")
    for name, count in (("every", every), ("workers", workers)):
        if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or count < 1:
            raise SetupError(f"{name} must be a whole number of at least 1, not {count!r}")
    plan = system.plan()
    method.refuse_unfit(plan)
    windows = _windows(method, step, t_start, t_end, plan)
    meta = {
        "method": repr(method),
        "step": repr(step),
        "t_start": t_start,
        "t_end": t_end,
        "system": str(system),
        "graph": graph(system),
    }
    recorder = _recorder(plan, save, meta)
    run = _Run(plan, method, startup or RisingDegree(), windows, recorder, workers, every, progress)
    return run.result(t_start, meta)


def _recorder(plan: Plan, save: str | Path | None, meta: dict[str, Any]) -> Recorder:
    layout = Layout(plan.n_y, plan.n_z, plan.n_subsystems)
    if save is None:
        return Memory(layout)
    from cosolve.result.store import Stream

    return Stream(Path(save), layout, channels(plan), plan.names, meta)


class _Run:
    """One run of one system: the loop and its books."""

    def __init__(
        self,
        plan: Plan,
        method: Method,
        startup: RisingDegree,
        windows: _Windows,
        recorder: Recorder,
        workers: int,
        every: int,
        progress: Callable[[float], None] | None,
    ) -> None:
        self.plan, self.method, self.startup = plan, method, startup
        self.windows, self.recorder, self.every, self.progress = windows, recorder, every, progress
        self.crew = Crew(plan, workers)
        self.stats = Stats()
        self._residuals = 0.0
        self._t = np.nan  # start of the macro step now under way

    def result(self, t_start: float, meta: dict[str, Any]) -> Result:
        """Run to the end; on failure attach what there is to the error."""
        began = perf_counter()
        failure: SimulationError | None = None
        ending: str | None = None
        try:
            self._loop(t_start)
        except SimulationError as error:
            failure = error
            if failure.time is None:  # from below the level that knows the time
                failure.time = self._t
                failure.args = (f"{failure} (in the macro step from t = {self._t:.9g})",)
            ending = str(failure)
        except BaseException as error:  # Ctrl-C, say: the file must not claim that the run finished
            ending = f"the run was ended by {type(error).__name__} in the macro step from t = {self._t:.9g}"
            raise
        finally:
            self.crew.close()
            self._close_books(perf_counter() - began)
            self.recorder.finish(self.stats, ending)
            self.recorder.close()
        result = Result(
            self.recorder.columns,
            channels(self.plan),
            self.plan.names,
            stats=self.stats,
            meta=meta,
            error=ending,
        )
        if failure is not None:
            failure.result = result
            raise failure
        return result

    def _loop(self, t_start: float) -> None:
        plan, crew = self.plan, self.crew
        self._t = t_start
        y, z = crew.start(t_start)
        history = History(z, depth=max(self.method.degree, 1))
        self.startup.prepare(plan, self.method, history, t_start, self.windows.first_step)
        step = self.startup.wrap(crew, self.method, self.method.bind(crew))
        self.recorder.append(Row(t_start, y, z))
        calls, seconds = crew.calls.copy(), crew.seconds.copy()
        rejected, shown = 0, perf_counter()
        for window, last in self.windows:
            self._t = window.t0
            states = crew.save() if self.windows.may_reject else None
            outcome = step(history, window)
            error = self.windows.judge(window, outcome)
            if error is None:  # rejected: the windows offer a shorter one next
                crew.restore(states or [])
                rejected += 1
                self.stats.rejected += 1
                continue
            t1, H = window.t1, window.H
            if outcome.t1 is not None and outcome.H is not None:
                t1, H = outcome.t1, outcome.H
            history.push(outcome.z, H)
            self.stats.steps += 1
            self.stats.iterations += outcome.iterations
            self.stats.rejected += outcome.rejected
            rejected += outcome.rejected
            self.stats.unconverged += not outcome.converged
            self.stats.over_tolerance += error > 1.0
            if outcome.residual == outcome.residual:
                self._residuals = max(self._residuals, outcome.residual)
                self.stats.max_residual = self._residuals
            final = last if outcome.t1 is None else t1 >= self.windows.t_end
            if final or self.stats.steps % self.every == 0:
                self.recorder.append(
                    Row(
                        *(t1, outcome.y, outcome.z, H, outcome.iterations, outcome.residual, error, rejected),
                        calls=crew.calls - calls,
                        seconds=crew.seconds - seconds,
                    )
                )
                calls, seconds, rejected = crew.calls.copy(), crew.seconds.copy(), 0
            if self.progress is not None and (final or perf_counter() - shown > _PROGRESS_EVERY):
                self.progress((t1 - t_start) / (self.windows.t_end - t_start))
                shown = perf_counter()

    def _close_books(self, wall: float) -> None:
        names = self.plan.names
        self.stats.wall_seconds = wall
        self.stats.calls = {n: int(c) for n, c in zip(names, self.crew.calls, strict=True)}
        self.stats.jacobians = {n: int(c) for n, c in zip(names, self.crew.jacobians, strict=True)}
        self.stats.seconds = {n: float(s) for n, s in zip(names, self.crew.seconds, strict=True)}


# -- the sequence of macro steps ---------------------------------------------------------------------------


class _Windows:
    """The macro steps of a run, one after the other; `judge` accepts a finished one or asks for a shorter one."""

    may_reject = False
    first_step: float
    t_end: float

    def __iter__(self) -> Iterator[tuple[Window, bool]]:
        raise NotImplementedError

    def judge(self, window: Window, outcome: Outcome) -> float | None:
        """Error estimate of an accepted step (NaN where there is none); None rejects it."""
        return np.nan


class _Uniform(_Windows):
    def __init__(self, t_start: float, t_end: float, H: float) -> None:
        self.clock = UniformClock(t_start, t_end, H)
        self.first_step, self.t_end = self.clock.H, t_end

    def __iter__(self) -> Iterator[tuple[Window, bool]]:
        clock = self.clock
        t0 = clock.time(0)
        for n in range(clock.count):
            t1 = clock.time(n + 1)
            yield Window(t0, t1, clock.step(n)), n + 1 == clock.count
            t0 = t1


class _Followed(_Windows):
    """The method ends each step itself, at most `H_max` on (where there is a limit)."""

    def __init__(self, t_start: float, t_end: float, H_max: float | None) -> None:
        refuse_bad_span(t_start, t_end)
        self.t, self.t_end = t_start, t_end
        self.H_max = t_end - t_start if H_max is None else H_max
        self.first_step = np.nan if H_max is None else H_max  # NaN: known only to the method

    def __iter__(self) -> Iterator[tuple[Window, bool]]:
        while self.t < self.t_end:
            t1 = self.t + self.H_max
            if t1 > self.t_end - 1e-9 * self.H_max:  # no sliver of a step before the end
                t1 = self.t_end
            yield Window(self.t, t1, t1 - self.t), t1 == self.t_end

    def judge(self, window: Window, outcome: Outcome) -> float | None:
        assert outcome.t1 is not None
        self.t = outcome.t1
        return np.nan


class _Controlled(_Windows):
    """Error-controlled steps on a tick clock."""

    def __init__(self, t_start: float, t_end: float, control: Adaptive, plan: Plan, may_reject: bool) -> None:
        self.clock = TickClock(t_start, t_end)
        self.control, self.nominal, self.may_reject, self.t_end = control, plan.z_nominal, may_reject, t_end
        guess = 1e-4 * (t_end - t_start) if control.H_init is None else control.H_init
        self.H = self.first_step = min(control.H_max, max(control.H_min, guess))
        self.previous: float | None = None

    def __iter__(self) -> Iterator[tuple[Window, bool]]:
        clock = self.clock
        while not clock.done:
            ticks = clock.fit(self.H)
            last = clock.at(clock.tick + ticks) >= self.t_end
            self._ticks = ticks
            yield Window(clock.time, clock.at(clock.tick + ticks), clock.length(ticks)), last

    def judge(self, window: Window, outcome: Outcome) -> float | None:
        control = self.control
        error = control.estimate(outcome.z, outcome.predicted, self.nominal)
        if self.may_reject and error > 1.0 and control.H_min * (1 + 1e-9) < window.H:
            self.H = control.shorter_step(window.H, error, outcome.degree)
            self.previous = None
            if self.clock.fit(self.H) <= 4 or window.t0 + self.H == window.t0:
                raise StepSizeError(
                    f"the step control wants steps below {self.H:.1e} at t = {window.t0:.9g}: a jump or a tolerance "
                    f"(rtol {control.rtol:g}) beyond reach; set H_min, or loosen rtol",
                    time=window.t0,
                )
            return None
        self.clock.advance(self._ticks)
        self.H = control.next_step(window.H, error, self.previous, outcome.degree)
        self.previous = error
        return error


def _windows(method: Method, step: float | Adaptive | None, t_start: float, t_end: float, plan: Plan) -> _Windows:
    if method.chooses_step:
        if isinstance(step, Adaptive):
            raise SetupError(f"{method.name} chooses its steps itself; give no step, or a number that limits them")
        if step is not None:
            refuse_bad_step(step)
        return _Followed(t_start, t_end, step)
    if step is None:
        raise SetupError(f"{method.name} needs a macro step: step=1e-3, or step=Adaptive(rtol=1e-6)")
    if not isinstance(step, Adaptive):
        return _Uniform(t_start, t_end, step)
    fixed = [n for n, s in zip(plan.names, plan.subsystems, strict=True) if not has_capability(s, "rollback")]
    if step.reject and fixed:
        raise SetupError(f"Adaptive(reject=True) repeats steps, but '{fixed[0]}' cannot roll back; use reject=False")
    return _Controlled(t_start, t_end, step, plan, may_reject=not fixed if step.reject is None else step.reject)


def channels(plan: Plan) -> dict[str, Channel]:
    """Where each port and each named coupling variable is found in the recorded columns."""
    found: dict[str, Channel] = {}
    for i, name in enumerate(plan.names):
        for port in plan.output_ports[i]:
            inside, base = plan.output_ports[i].slice(port.name), plan.y_slices[i].start
            part = tuple(range(base + inside.start, base + inside.stop))
            found[f"{name}.{port.name}"] = Channel("y", part, port.size is None, unit=port.unit)
        for port in plan.input_ports[i]:
            inside, base = plan.input_ports[i].slice(port.name), plan.u_slices[i].start
            into = slice(base + inside.start, base + inside.stop)
            part = tuple(max(0, int(k)) for k in plan.u_source[into])
            found[f"{name}.{port.name}"] = Channel(
                "z",
                part,
                port.size is None,
                tuple(plan.u_factor[into]),
                tuple(plan.u_offset[into]),
                port.unit,
            )
    for name, (entries, scalar) in plan.z_ports.items():
        found.setdefault(name, Channel("z", tuple(range(entries.start, entries.stop)), scalar))
    return found
