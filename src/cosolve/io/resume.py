"""Going on with a run that was ended from outside, from the state that it has left beside its result file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.io.source import read_source
from cosolve.io.system_file import Description
from cosolve.method.named import MethodLike
from cosolve.result import Result
from cosolve.result.file_columns import open_result
from cosolve.result.store import load
from cosolve.run import Pace
from cosolve.run.keeping import Keep, KeptRun, state_path
from cosolve.run.recipes import from_text
from cosolve.run.simulate import continue_run
from cosolve.run.startup import Startup
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
) -> Result:
    """Go on with the run whose result is in `file`, from the last state that it kept (`simulate(state_every=...)`).

    The result is completed in its file: rows and totals are those of a run that nothing has ended, bit for bit (but for
    what was measured in seconds). A run that has finished is given back as it is.

    `system` is built by the same program as before; a run made from a system file, an SSP or an FMU needs none, because
    its state says where it comes from. Method, step and start-up are known from the state; those that hold functions or
    classes of your own are given again. Everything else is as it was, unless it is given here.

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
    ...     except cs.SimulationError as error:
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
    if system is None:
        described = description_behind(path, kept)
        system, method, step, startup = described.system, described.method, described.step, described.startup
        pace = kept.run["source"]["pace"] if pace is None else pace
    elif not isinstance(system, System):
        raise SetupError(f"resume takes the file and a cosolve.System, not a {type(system).__name__}")
    given = kept.run["settings"]
    keep = Keep(given["state_every"] if state_every is None else state_every, kept.run.get("source"))

    def go_on() -> Result:
        return continue_run(
            system,
            path,
            kept,
            keep,
            method=_same("method", given["method"]) if method is None else method,
            step=_same("step", given["step"]) if step is None else step,
            startup=_same("startup", given["startup"]) if startup is None else startup,
            workers=given["workers"] if workers is None else workers,
            max_steps=given["max_steps"] if max_steps is None else max_steps,
            progress=progress,
            compiled=given["compiled"] if compiled is None else compiled,
            pace=pace,
        )

    return go_on() if described is None else described.left_by(go_on)


def left_behind(path: Path) -> tuple[Result, KeptRun | None]:
    """The result in a file as it is now, and the state to go on from; None when its run has finished.

    A run that was stopped by hand has come to an end, too, but has left a state.
    """
    found = load(path)
    if found.error is None and not (found.ended and state_path(path.absolute()).exists()):
        return found, None
    with open_result(path.absolute()) as file:
        run = str(file.attrs["run"])
    return found, KeptRun.read(path.absolute(), run)


def description_behind(path: Path, kept: KeptRun) -> Description:
    """The run that a state belongs to, read again from the file that it was made from."""
    source = kept.run.get("source")
    if not isinstance(source, dict):
        raise SetupError(
            f"the run of '{path}' was made by a Python program, so only that can build its system again: "
            f"cosolve.resume('{path.name}', system)"
        )
    return read_source(source, path)


def _same(what: str, text: str) -> Any:
    """What the run was made with."""
    try:
        return from_text(text)
    except ValueError:
        raise SetupError(
            f"resume: the {what} of the run holds something of your own ({text}); give it again, {what}=..."
        ) from None
