"""Going on with a run that was ended from outside, from the state that it has left beside its result file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cosolve.engine.observer import ObserverLike
from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.io.source import read_source
from cosolve.io.system_file import Description
from cosolve.method.named import MethodLike
from cosolve.options import RunOptions
from cosolve.result import Result
from cosolve.result.store import load
from cosolve.result.stored import StoredColumns
from cosolve.run import Pace
from cosolve.run.recipes import from_text
from cosolve.run.simulate import continue_run
from cosolve.run.startup import Startup
from cosolve.state.state_writer import InterruptedRun, Keep, state_path
from cosolve.stepsize import Adaptive


def resume(
    file: str | Path,
    system: System | None = None,
    *,
    method: MethodLike | None = None,
    step: float | Adaptive | None = None,
    startup: Startup | None = None,
    workers: int | None = None,
    progress: Callable[[float], None] | None = None,
    compiled: bool | None = None,
    pace: float | Pace | None = None,
    max_steps: int | None = None,
    state_every: int | str | None = None,
    observers: Sequence[ObserverLike] | None = None,
    trust: bool = False,
) -> Result:
    """Continue a run that was ended from outside, from the last state it kept.

    The result is completed in its file. Its values are those of an uninterrupted run, bit for bit. A run that has
    finished is returned as it is.

    Parameters
    ----------
    file : str or Path
        Result file of a run with `simulate(save=..., state_every=...)`.
    system : System or None, default None
        The same system, built as before. None for runs that were made from a system file, an SSP or an FMU.
    method : Method, str, dict or None, default None
        Only for a method that holds functions or classes of your own; None takes that of the run.
    step : float, Adaptive or None, default None
        None takes that of the run.
    startup : Startup or None, default None
        None takes that of the run.
    workers : int or None, default None
        None takes that of the run.
    progress : callable or None, default None
        As for `simulate`.
    compiled : bool or None, default None
        None takes that of the run.
    pace : float, Pace or None, default None
        As for `simulate`.
    max_steps : int or None, default None
        None takes that of the run.
    state_every : int, str or None, default None
        None takes that of the run.
    observers : sequence of Observer or None, default None
        None takes those of the run that a state keeps, such as `FieldFile`; give observers of your own again, in the
        same order.
    trust : bool, default False
        Run the file that the state names although you have not written the state on this computer.

    Returns
    -------
    Result
        The completed result.

    Raises
    ------
    SetupError
        If the file or the system does not fit.

    Examples
    --------
    >>> import tempfile
    >>> import cosolve as cs
    >>> def build():
    ...     tank = lambda h: cs.Linear([[-1]], [[1]], [[1]], x0=[h], inputs=["q"], outputs=["h"])
    ...     system = cs.System({"one": tank(1.0), "two": tank(0.0)})
    ...     system.connect("one.h", "two.q"); system.connect("two.h", "one.q")
    ...     return system
    >>> run = {"t_end": 2.0, "method": cs.SemiImplicit(degree=1), "step": 0.1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = folder + "/run.h5"
    ...     try:                                                       # something ends the run
    ...         cs.simulate(build(), **run, save=file, state_every=5, max_steps=12)
    ...     except cs.errors.SimulationError as error:
    ...         print(str(error)[:52])
    ...     whole = cs.resume(file, build(), max_steps=1000)
    ...     bool((whole["one.h"] == cs.simulate(build(), **run)["one.h"]).all())
    the run has taken its max_steps = 12 macro steps and
    True
    """
    path = Path(file)
    finished, kept = left_behind(path)
    if kept is None:
        return finished
    described: Description | None = None
    given = kept.run["settings"]
    changes: dict[str, Any] = {"method": method, "step": step, "startup": startup, "workers": workers}
    changes |= {"compiled": compiled, "pace": pace, "max_steps": max_steps, "observers": observers}
    if system is None:
        described = description_behind(path, kept, trust)
        system, options = described.system, described.options
    elif not isinstance(system, System):
        raise SetupError(f"resume takes the file and a cosolve.System, not a {type(system).__name__}")
    else:
        seen = [_same("observers", text) for text in given["observers"]] if observers is None else []
        options = RunOptions(t_end=given["t_end"], observers=seen)
    for name in ("method", "step", "startup"):
        if getattr(options, name) is None and changes[name] is None:
            changes[name] = _same(name, given[name])
    plain = {name: given[name] for name in given.keys() - {"method", "step", "startup", "observers", "state_every"}}
    options = replace(options, **plain, resume=None, progress=progress)
    options = replace(options, **{name: value for name, value in changes.items() if value is not None})
    keep = Keep(given["state_every"] if state_every is None else state_every, kept.run.get("source"))

    def go_on() -> Result:
        return continue_run(system, path, kept, keep, options)

    return go_on() if described is None else described.left_by(go_on)


def left_behind(path: Path) -> tuple[Result, InterruptedRun | None]:
    """The result in a file as it is now, and the state to go on from; None when its run has finished.

    A run that was stopped by hand has come to an end, too, but has left a state.
    """
    found = load(path)
    if found.error is None and not (found.ended and state_path(path.absolute()).exists()):
        return found, None
    columns = found._columns()
    assert isinstance(columns, StoredColumns)
    return found, InterruptedRun.read(path.absolute(), columns.run)


def description_behind(path: Path, kept: InterruptedRun, trust: bool) -> Description:
    """The run that a state belongs to, read again from the file that it was made from."""
    source = kept.run.get("source")
    if not isinstance(source, dict):
        raise SetupError(
            f"the run of '{path}' was made by a Python program, so only that can build its system again: "
            f"cosolve.resume('{path.name}', system)"
        )
    try:
        return read_source(source, path, trust)
    except (KeyError, TypeError, AttributeError) as error:
        raise SetupError(f"the state of '{path.name}' does not say where its run comes from: {error}") from error


def _same(what: str, text: str) -> Any:
    """What the run was made with."""
    try:
        return from_text(text)
    except ValueError:
        raise SetupError(
            f"resume: the {what} of the run holds something of your own ({text}); give it again, {what}=..."
        ) from None
