"""A coupled system stepped by hand: look, change an input, save, go back, continue in another process."""

from __future__ import annotations

from math import inf
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from cosolve.accuracy.growth import GrowthMonitor
from cosolve.basics.arrays import Vector, doubles
from cosolve.basics.checks import is_number, whole
from cosolve.basics.wording import did_you_mean, listed
from cosolve.errors import EndOfSimulation, SetupError, SimulationError, StabilityWarning, warn
from cosolve.interface import Plan, System
from cosolve.interface.channels import Selection, channels
from cosolve.method import Method, Outcome
from cosolve.method.named import as_method
from cosolve.options import StepperOptions, documented, takes
from cosolve.result import Channel, Note, Result, Stats, find_channel
from cosolve.run.core import Core
from cosolve.run.naming import as_observers
from cosolve.run.pace import make_pace
from cosolve.run.recording import Recording, about_run
from cosolve.run.rows import Rows
from cosolve.run.step_limit import steps_left
from cosolve.run.view import RunView
from cosolve.state.snapshot import Snapshot
from cosolve.stepsize import refuse_bad_step
from cosolve.stepsize.sequence import make_windows


class Stepper:
    """Run a system macro step by macro step.

    `stepper["left.x"]` is the present value of an input, an output or a named coupling variable. With the same `t_end`
    the steps are those of `simulate`, bit for bit. Use it in a `with` block, or call `close`.

    Parameters
    ----------
    system : System
        The coupled system. It is in one run at a time: when another one starts, this one continues from a saved state
        only.
    {options}

    Attributes
    ----------
    steps : int
        Number of macro steps so far.

    Examples
    --------
    >>> import cosolve as cs
    >>> tank = cs.Ode(lambda t, x, u: u - x, lambda t, x, u: x, x0=[1.0], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"tank": tank})
    >>> system.set("tank.q", 0.0)
    >>> with cs.Stepper(system, method=cs.Jacobi(degree=0), step=0.1) as stepper:
    ...     here = stepper.save()
    ...     stepper.run_until(1.0)
    ...     print(round(stepper["tank.h"], 6))
    ...     stepper.restore(here)
    ...     stepper.set("tank.q", 1.0)
    ...     stepper.run_until(1.0)
    ...     print(round(stepper["tank.h"], 6), stepper.t)
    1.0
    0.367879
    1.0
    1.0 1.0
    """

    @takes(StepperOptions, "cs.Stepper(system, method=cs.Jacobi(degree=1), step=1e-3)")
    def __init__(self, system: System, options: StepperOptions) -> None:
        method, step, t_start, record = as_method(options.method), options.step, options.t_start, options.record
        plan = checked_plan("Stepper", system, method, options.workers)
        windows = make_windows(method, step, t_start, options.t_end, plan)
        self._core = core = Core(plan, method, options.startup, windows, options.workers, options.stop_at_events)
        self._channels = channels(plan)
        self._pace = make_pace(options.pace)
        self._observers = as_observers(options.observers) + ([] if self._pace is None else [self._pace])
        self._recording: Recording | None = None
        names = None if isinstance(record, bool) else record
        records = record is not False or options.save is not None
        if records or self._observers:
            about = about_run(system, method, step, t_start, options.t_end, options.startup)
        if records:
            self._recording = Recording(core, names, options.save, about)
        self._view: RunView | None = None  # of observers that have begun
        if self._observers:
            selection = Selection(plan)
            self._rows = Rows(selection.layout, core.caller.calls, core.caller.seconds)
            self._seen = RunView(core, selection, None, Stats(), about, self._observers, may_go_back=True)
        self._stopped = ""
        self._failure: BaseException | None = None
        self._changed = False  # constants were set since the last step
        self._now: tuple[Vector, Vector] | None = None  # outputs and coupling variables that have followed them
        self.steps, self._max_steps = 0, options.max_steps
        try:
            self._core.begin(t_start)
        except BaseException:
            self._core.close()
            raise
        self._monitor = GrowthMonitor(self._core)

    @property
    def t(self) -> float:
        """Present time in seconds."""
        return self._core.t

    @property
    def done(self) -> bool:
        """True at `t_end`, and after a subsystem has ended the run (see `ended`)."""
        return self._core.done

    @property
    def ended(self) -> str:
        """Which subsystem ended the run, when, and why; empty if none did."""
        return "" if self._core.ended is None else self._core.ended.sentence(self.t)

    @property
    def names(self) -> list[str]:
        """Names of all quantities."""
        return list(self._channels)

    def __getitem__(self, name: str) -> float | Vector:
        channel = find_channel(self._channels, name)
        if channel is None:
            raise KeyError(f"the system has no '{name}'; {did_you_mean(name, self.names, near=3)}")
        values = self._values(name, channel)
        return float(values[0]) if channel.scalar else values

    def _values(self, name: str, channel: Channel) -> Vector:
        if self._changed:  # a constant: some outputs may react at once
            self._now, self._changed = self._core.settled(), False
        y, z = self._now or (self._core.y, self._core.z)
        if channel.column == "y":
            return y[list(channel.part)]
        if channel.factor:  # an input
            return self._core.plan.inputs(z)[self._entries(name)]
        return z[list(channel.part)]

    def _entries(self, address: str) -> slice:
        """Where an input is found among all inputs."""
        name, port = address.split(".", 1)
        i = self._core.plan.names.index(name)
        inside, base = self._core.plan.input_ports[i].slice(port), self._core.plan.u_slices[i].start
        return slice(base + inside.start, base + inside.stop)

    # -- going on --------------------------------------------------------------------------------------

    def step(self, step: float | None = None) -> float:
        """Take one macro step.

        Parameters
        ----------
        step : float or None, default None
            Length of this step in seconds. None is the length that was given to the `Stepper`.

        Returns
        -------
        float
            The new time in seconds. It is the old one if a subsystem ended the run inside the step and not all
            subsystems could go back; `done` is True then.

        Raises
        ------
        SimulationError
            If the step fails. The run then continues from a saved state only.
        """
        if step is not None:
            refuse_bad_step(step, "the macro step")
        self._refuse_ended()
        if self._core.done:
            raise SetupError(f"the run has reached its t_end = {self.t:.9g}; give the Stepper a later one, or none")
        return self._advance(step, inf)

    def run_until(self, t: float) -> float:
        """Take macro steps until a time; the last one is cut to end there.

        Parameters
        ----------
        t : float
            The time in seconds.

        Returns
        -------
        float
            The time reached: `t`, or less if a subsystem ended the run.

        Raises
        ------
        SimulationError
            If a step fails.
        """
        if not is_number(t) or t < self.t:
            raise SetupError(f"run_until: t must be a number from {self.t:.9g} on (the time now), not {t!r}")
        if t > self._core.windows.t_end:
            raise SetupError(f"run_until: t = {t:.9g} is after t_end = {self._core.windows.t_end:.9g}")
        self._refuse_ended()
        while self.t < t and not self._core.done:
            self._advance(None, t)
        return self.t

    def _refuse_ended(self) -> None:
        if self.ended:
            raise SetupError(f"the run has {self.ended}; restore a saved state to go on from there")

    def _advance(self, H: float | None, limit: float) -> float:
        with self._core.ownership.advancing():
            return self._advance_alone(H, limit)

    def _advance_alone(self, H: float | None, limit: float) -> float:
        if self._stopped:
            raise SetupError(f"the run has stopped ({self._stopped}); restore a saved state to go on from there")
        self._core.ownership.refuse_lost()
        steps_left(self._max_steps, self.steps, self.t, self._core.windows.t_end)
        if self._recording is not None:
            self._recording.begin()
        if self._observers:
            self._begin_observers()
        try:
            step = self._core.take_step(H, limit)
        except EndOfSimulation:
            return self.t
        except SimulationError as error:
            if error.time is None:
                error.time = self.t
                error.args = (f"{error} (in the macro step from t = {self.t:.9g})",)
            self._stop(str(error), error)
            raise
        except BaseException as error:
            self._stop(f"{type(error).__name__} in the macro step from t = {self.t:.9g}", error)
            raise
        if self._recording is not None:
            self._recording.add(step)
        self.steps += 1
        if self._observers:
            self._show(step)
        self._changed, self._now = False, None
        if self._monitor.note(step.z[np.newaxis]) or self._core.done:
            self._warn_of_growth()
        return self.t

    def _begin_observers(self) -> None:
        """Before the first step, so that a state restored before it is where they begin; then ask what they allow."""
        if self._view is None:
            self._view = self._seen
            self._rows.count_from(self._core.rejected)
            for one in self._observers:
                one.start(self._view)
        if min(one.limit(self._seen) for one in self._observers) < 1:
            raise SimulationError("the run was stopped by hand", time=self.t)

    def _show(self, step: Outcome) -> None:
        """A macro step for the observers."""
        view, core = self._seen, self._core
        chunk = self._rows.single(step, core.recorded(step.z), core.rejected)
        view.count(chunk)
        attempts = int(chunk.total("rejected"))
        for one in self._observers:
            if attempts:
                one.rejected(view, attempts)
            one.accepted(view, chunk)

    def _warn_of_growth(self) -> None:
        """Values grow: say so once, and go on."""
        growth = self._monitor.look()
        if growth is not None:
            warn(growth.text, StabilityWarning)

    def _stop(self, why: str, failure: BaseException) -> None:
        self._stopped, self._failure = why, failure
        if self._recording is not None:
            self._recording.error = why

    def result(self) -> Result:
        """Return what was recorded up to now, with the statistics of the run so far.

        Returns
        -------
        Result
            Like that of `simulate`.

        Raises
        ------
        SetupError
            If the stepper does not record.

        Examples
        --------
        >>> import cosolve as cs
        >>> clock = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
        >>> with cs.Stepper(clock, method=cs.Jacobi(), step=0.5, record=True) as stepper:
        ...     stepper.run_until(1.0)
        ...     stepper.result()["clock.t"]
        1.0
        array([0. , 0.5, 1. ])
        """
        if self._recording is None:
            raise SetupError(
                "this Stepper records nothing; build it with record=True, names of quantities, or save=..."
            )
        found = self._recording.result()
        if self._monitor.found is not None:
            found.stats.add(Note("growth", self._monitor.found.text, "error"))
        if self._pace is not None:
            self._pace.note(found.stats)
        return found

    def set(self, target: str, value: npt.ArrayLike) -> None:
        """Hold a constant input at another value from now on; the system itself is not changed.

        Parameters
        ----------
        target : str
            Address of an input that `System.set` holds.
        value : array_like
            The value, one number or one per entry.

        Raises
        ------
        SetupError
            If it is not such an input.
        """
        channel = find_channel(self._channels, target) if isinstance(target, str) else None
        plan = self._core.plan
        constant = [a for a in self._channels if "." in a and is_constant(plan, self._channels[a])]
        if channel is not None and any(f and k >= plan.n_z for f, k in zip(channel.factor, channel.part, strict=False)):
            raise SetupError(
                f"set: '{target}' follows a function of time or a table; hold it with System.set to change it by hand"
            )
        if channel is None or "." not in target or not is_constant(plan, channel):
            can = f"those that can be set are {listed(constant, quote=False)}" if constant else "there are none to set"
            raise SetupError(f"set: '{target}' is not an input that System.set holds; {can}")
        into = self._entries(target)
        values = doubles(value, into.stop - into.start)
        if not np.isfinite(values).all():
            count = into.stop - into.start
            many = "one finite number" if count == 1 else f"{count} finite numbers"
            raise SetupError(f"set: '{target}' takes {many}, not {value!r}")
        plan.u_offset[into] = values
        self._core.caller.note_constants()
        self._changed = True

    # -- saved states ----------------------------------------------------------------------------------

    def save(self, *, portable: bool = False) -> Snapshot:
        """Save the present state of the run.

        Parameters
        ----------
        portable : bool, default False
            Serialise the states of the subsystems, so that the snapshot can be written to a file.

        Returns
        -------
        Snapshot
            The state, for any number of `restore` calls.
        """
        self._refuse_stopped()
        return self._core.save(portable=portable)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a saved state; the run continues from there bit for bit.

        Parameters
        ----------
        snapshot : Snapshot
            What `save` returned.
        """
        if not isinstance(snapshot, Snapshot):
            raise SetupError(f"restore takes what save returned, not a {type(snapshot).__name__}")
        if self._recording is not None:
            self._recording.refuse_back()
        self._core.restore(snapshot)
        if self._recording is not None:
            self._recording.go_back()
            self._recording.error = None
        if self._view is not None:
            self._rows.count_from(self._core.rejected)
            for one in self._observers:
                one.restored(self._view)
        self._monitor = GrowthMonitor(self._core)
        self._stopped, self._failure, self._changed, self._now = "", None, False, None

    def save_file(self, path: str | Path) -> Path:
        """Write the present state of the run to a file, for another process.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Path
            The file.
        """
        self.save(portable=True).write(Path(path))
        return Path(path)

    def restore_file(self, path: str | Path) -> None:
        """Go to the state in a file, of the same system under the same method.

        Parameters
        ----------
        path : str or Path
            What `save_file` wrote.
        """
        self.restore(Snapshot.read(Path(path)))

    def _refuse_stopped(self) -> None:
        self._core.ownership.refuse_lost()
        if self._core.inside_step:
            raise SetupError(f"a run that has {self.ended} in the middle of a step cannot be saved")
        if self._stopped:
            raise SetupError(f"a run that has stopped in the middle of a step cannot be saved ({self._stopped})")

    def close(self) -> None:
        """End the worker threads, and complete the file that is recorded to."""
        self._core.close()
        view, self._view = self._view, None
        if view is not None:
            for one in self._observers:
                one.finished(view, self._failure)
        if self._recording is not None:
            self._recording.close()
            if view is not None:
                result = self._recording.result()
                for one in self._observers:
                    one.closed(view, result)

    def __enter__(self) -> Stepper:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


Stepper.__doc__ = documented(Stepper.__doc__, StepperOptions, "    ")


def is_constant(plan: Plan, channel: Channel) -> bool:
    """True for an input that no coupling variable drives."""
    return bool(channel.factor) and not any(channel.factor)


def checked_plan(who: str, system: System, method: Method, workers: int) -> Plan:
    """The compiled system, once it is clear that `method` can run it."""
    if not isinstance(system, System):
        raise SetupError(f"{who} runs a cosolve.System, not a {type(system).__name__}")
    whole(who, "workers", workers)
    plan = system.plan()
    method.refuse_unfit(plan)
    return plan
