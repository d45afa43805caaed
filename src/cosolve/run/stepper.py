"""A coupled system stepped by hand: look, change an input, save, go back, continue in another process."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_number, whole
from cosolve.basics.wording import did_you_mean, listed
from cosolve.errors import EndOfSimulation, SetupError, SimulationError, StabilityWarning, warn
from cosolve.interface import Plan, System
from cosolve.interface.channels import channels
from cosolve.method import Method
from cosolve.method.named import MethodLike, as_method
from cosolve.result import Channel, Note, Result, find_channel
from cosolve.run.core import Core
from cosolve.run.growth import GrowthMonitor
from cosolve.run.pace import Pace, make_pace
from cosolve.run.recording import Recording, about_run
from cosolve.run.snapshot import Snapshot
from cosolve.run.startup import Startup
from cosolve.run.step_limit import steps_left
from cosolve.stepsize import Adaptive, refuse_bad_step
from cosolve.stepsize.sequence import make_windows

if TYPE_CHECKING:
    from cosolve.fields.field_file import FieldFile, FieldRecording


class Stepper:
    """Run `system` macro step by macro step; the arguments are those of `simulate`, without an end unless `t_end` says.

    With the same `t_end` the steps are those of `simulate`, bit for bit. `stepper["left.x"]` is the value now, of an
    input, an output or a named coupling variable. `set` changes an input that `System.set` holds. A system is in one
    run at a time: when another one begins, this one goes on from a saved state only.

    `record=True` (or the names of some quantities) keeps the macro points for `result()`, which is then like that of
    `simulate`; `save` streams them to an HDF5 file, which is complete after `close`. `pace` lets macro points be
    reached in real time, as in `simulate`. `max_steps` is how many macro steps may be crossed in all (`steps` counts
    them); one more raises a `StepSizeError`, and the run stays where it is. `fields` writes snapshots of field solvers
    to files, as in `simulate`; when the run goes back, so do they.

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

    def __init__(
        self,
        system: System,
        *,
        method: MethodLike,
        step: float | Adaptive | None = None,
        t_start: float = 0.0,
        t_end: float | None = None,
        startup: Startup | None = None,
        workers: int = 1,
        record: bool | Sequence[str] = False,
        save: str | Path | None = None,
        pace: float | Pace | None = None,
        stop_at_events: bool = False,
        max_steps: int | None = None,
        fields: FieldFile | Sequence[FieldFile] | None = None,
    ) -> None:
        if max_steps is not None:
            whole("Stepper", "max_steps", max_steps)
        method = as_method(method)
        plan = checked_plan("Stepper", system, method, workers)
        windows = make_windows(method, step, t_start, t_end, plan)
        self._core = Core(plan, method, startup, windows, workers, stop_at_events)
        self._channels = channels(plan)
        self._pace = make_pace(pace)
        self._fields: FieldRecording | None = None
        if fields is not None:
            from cosolve.fields.field_file import FieldRecording

            self._fields = FieldRecording(fields, plan.names, plan.subsystems)
        self._recording: Recording | None = None
        if record is not False or save is not None:
            names = None if isinstance(record, bool) else record
            about = about_run(system, method, step, t_start, t_end, startup)
            self._recording = Recording(self._core, names, save, about)
        self._stopped = ""
        self._changed = False  # constants were set since the last step
        self._now: tuple[Vector, Vector] | None = None  # outputs and coupling variables that have followed them
        self.steps, self._max_steps = 0, max_steps
        try:
            self._core.start(t_start)
        except BaseException:
            self._core.close()
            raise
        self._monitor = GrowthMonitor(self._core)
        if self._pace is not None:
            self._pace.begin(t_start)

    @property
    def t(self) -> float:
        """Time now."""
        return self._core.t

    @property
    def done(self) -> bool:
        """True at `t_end`, and where a subsystem has asked for the end (see `ended`)."""
        return self._core.done

    @property
    def ended(self) -> str:
        """Which subsystem ended the run, when, and why; empty while nobody has."""
        return "" if self._core.ended is None else self._core.ended.sentence(self.t)

    @property
    def names(self) -> list[str]:
        """Names of everything that can be asked for."""
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
        """Cross one macro step (of the length `step`, this time) and return the new time.

        Where a subsystem asks for the end of the run, `done` is True after it and `ended` says why; the time is the old
        one when that happened inside a step that not everybody could go back from.
        """
        if step is not None:
            refuse_bad_step(step, "the macro step")
        self._refuse_ended()
        if self._core.done:
            raise SetupError(f"the run has reached its t_end = {self.t:.9g}; give the Stepper a later one, or none")
        return self._cross(step, inf)

    def run_until(self, t: float) -> float:
        """Cross macro steps until `t`, where the last one is cut to end, and return the time reached.

        That is earlier than `t` only where a subsystem asked for the end of the run.
        """
        if not is_number(t) or t < self.t:
            raise SetupError(f"run_until: t must be a number from {self.t:.9g} on (the time now), not {t!r}")
        if t > self._core.windows.t_end:
            raise SetupError(f"run_until: t = {t:.9g} is after t_end = {self._core.windows.t_end:.9g}")
        self._refuse_ended()
        while self.t < t and not self._core.done:
            self._cross(None, t)
        return self.t

    def _refuse_ended(self) -> None:
        if self.ended:
            raise SetupError(f"the run has {self.ended}; restore a saved state to go on from there")

    def _cross(self, H: float | None, limit: float) -> float:
        with self._core.ownership.advancing():
            return self._cross_alone(H, limit)

    def _cross_alone(self, H: float | None, limit: float) -> float:
        if self._stopped:
            raise SetupError(f"the run has stopped ({self._stopped}); restore a saved state to go on from there")
        self._core.ownership.refuse_lost()
        steps_left(self._max_steps, self.steps, self.t, self._core.windows.t_end)
        if self._recording is not None:
            self._recording.begin()
        if self._fields is not None and not self._fields.begun:
            self._fields.step_to(self.t, self._core.windows.usual)
        try:
            step = self._core.cross(H, limit)
        except EndOfSimulation:
            return self.t
        except SimulationError as error:
            if error.time is None:
                error.time = self.t
                error.args = (f"{error} (in the macro step from t = {self.t:.9g})",)
            self._stop(str(error))
            raise
        except BaseException as error:
            self._stop(f"{type(error).__name__} in the macro step from t = {self.t:.9g}")
            raise
        if self._recording is not None:
            self._recording.add(step)
        if self._pace is not None:
            self._pace.reach(self.t)
        self.steps += 1
        if self._fields is not None:
            self._fields.step_to(self.t, self._core.windows.usual, self._core.done)
        self._changed, self._now = False, None
        if self._monitor.note(step.z[np.newaxis]) or self._core.done:
            self._warn_of_growth()
        return self.t

    def _warn_of_growth(self) -> None:
        """Values grow: say so once, and go on."""
        growth = self._monitor.look()
        if growth is not None:
            warn(growth.text, StabilityWarning)

    def _stop(self, why: str) -> None:
        self._stopped = why
        if self._recording is not None:
            self._recording.error = why

    def result(self) -> Result:
        """What was recorded up to now, with the statistics of the run so far.

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
        """Hold a constant input at another value from now on; the system itself stays as it is."""
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
        try:
            values = np.broadcast_to(np.asarray(value, dtype=np.float64).reshape(-1), (into.stop - into.start,))
        except (TypeError, ValueError):
            values = np.array([np.nan])
        if not np.isfinite(values).all():
            count = into.stop - into.start
            many = "one finite number" if count == 1 else f"{count} finite numbers"
            raise SetupError(f"set: '{target}' takes {many}, not {value!r}")
        plan.u_offset[into] = values
        self._core.crew.note_constants()
        self._changed = True

    # -- saved states ----------------------------------------------------------------------------------

    def save(self, *, portable: bool = False) -> Snapshot:
        """The run as it is now, to go back to any number of times.

        A `portable` one can be written to a file or as bytes; it asks subsystems to serialise themselves.
        """
        self._refuse_stopped()
        return self._core.save(portable=portable)

    def restore(self, snapshot: Snapshot) -> None:
        """Go to a saved state; the run continues from there bit for bit."""
        if not isinstance(snapshot, Snapshot):
            raise SetupError(f"restore takes what save returned, not a {type(snapshot).__name__}")
        if self._recording is not None:
            self._recording.refuse_back()
        self._core.restore(snapshot)
        if self._fields is not None:
            self._fields.go_back(self.t)
        if self._recording is not None:
            self._recording.go_back()
            self._recording.error = None
        if self._pace is not None:
            self._pace.begin(self.t)
        self._monitor = GrowthMonitor(self._core)
        self._stopped, self._changed, self._now = "", False, None

    def save_file(self, path: str | Path) -> Path:
        """Write the run as it is now to a file, from which another process can continue it."""
        self.save(portable=True).write(Path(path))
        return Path(path)

    def restore_file(self, path: str | Path) -> None:
        """Go to the state in a file written by `save_file`, by the same system under the same method."""
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
        if self._recording is not None:
            self._recording.close()

    def __enter__(self) -> Stepper:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


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
