"""System files: a coupled system and its run in TOML, read and run.

    [subsystems.one]
    factory = "model:mass"                    # module:function that returns a Subsystem
    parameters = {m = 1.0, c = 1e4}

    [subsystems.two]
    kind = "linear"                           # matrices right here
    ...

    [subsystems.three]
    fmu = "wheel.fmu"                         # relative to this file
    parameters = {mass = 40.0}

    [subsystems.four]
    kind = "system"                           # a system inside, with a method and steps of its own
    file = "axle.toml"
    ...

    [[connections]]
    from = "one.x"
    to = "two.x1"
    filters = [{scale = 2.0}]                 # or fields on [meshes.NAME]: {map = "mortar"}

    [[laws]]
    inputs = {"one.f" = 1, "two.f" = -1}      # force and reaction
    linear = {"two.x" = 1e6, "one.x" = -1e6}  # or function = "model:spring" and of = [...]

    [inputs]
    "one.torque" = {table = "drive.csv", column = "torque"}   # or function = "model:torque", or times and values

    [[changes]]
    t = 0.5
    set = {"three.mass" = 45.0}               # from then on

    [simulation]
    t_end = 1.0
    method = {name = "semi-implicit", degree = 1}
    step = 1e-3                               # or {rtol = 1e-6}; or no method and no step, but rtol = 1e-4

    [output]
    file = "result.h5"                        # relative to the current folder

Python modules, and FMUs that a factory names (`factory = "cosolve:load_fmu"`, `parameters = {file = "wheel.fmu"}`), are
looked for in the folder of the file first, then in the current folder. docs/system-files.md has every key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cosolve.basics.wording import suggest
from cosolve.errors import SetupError, SimulationError
from cosolve.fmu.places import looking_in, watching
from cosolve.interface import System
from cosolve.io import named
from cosolve.io.assembly import Builder, built_here, files_used, whole_system
from cosolve.io.imports import modules_used
from cosolve.io.schema import OutputTable, SystemTable
from cosolve.io.toml_text import TomlFile
from cosolve.method import Method
from cosolve.result import Result
from cosolve.result.store import refuse_unwritable
from cosolve.run import Selection
from cosolve.run.choose import tolerance
from cosolve.run.keeping import Cadence, Keep
from cosolve.run.simulate import simulate
from cosolve.run.startup import Startup
from cosolve.run.watching import Watcher
from cosolve.stepsize import Adaptive, refuse_bad_span, refuse_bad_step


@dataclass(frozen=True)
class Output:
    """What a run leaves behind: the result file, and next to it a CSV, a picture, a report.

    Without a `file` the result stays in memory.
    """

    file: Path | None = None
    csv: bool = False
    plot: tuple[str, ...] = ()
    report: bool = False
    every: int = 1
    record: tuple[str, ...] | None = None
    state_every: int | str | None = None


@dataclass(frozen=True)
class Description:
    """A coupled system and how to run it, read from a file; what is None of method and step follows from `rtol`.

    `files` are others that it was made from (FMUs, tables, Python modules), `options` what was said otherwise than in
    the file (`source.py`).
    """

    path: Path
    system: System
    method: Method | None
    step: float | Adaptive | None
    t_end: float
    t_start: float = 0.0
    startup: Startup | None = None
    workers: int = 1
    output: Output = Output()
    error_bar: bool | Literal["sure"] = False
    rtol: float | None = None
    max_steps: int | None = None
    files: tuple[Path, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    stop_at_events: bool = False

    def beside(self, suffix: str) -> Path:
        """The path of a file that goes with the result."""
        return (self.output.file or Path(self.path.name)).with_suffix(suffix)

    def run(
        self,
        progress: Callable[[float], None] | None = None,
        *,
        resume: str | Path | None = None,
        save_state: str | Path | None = None,
        pace: float | None = None,
        stop_at_events: bool = False,
        max_steps: int | None = None,
        state_every: int | str | None = None,
        live: Watcher | None = None,
    ) -> Result:
        """Simulate and write the result file, the CSV and the picture that the file asks for.

        A run that stops early writes what it has, then raises its `SimulationError`.
        """
        every = self.output.state_every if state_every is None else state_every
        keep = None
        if every is not None:
            from cosolve.io.source import source_of

            keep = Keep(every, source_of(self, pace))
        return self.left_by(
            lambda: simulate(
                self.system,
                t_end=self.t_end,
                method=self.method,
                step=self.step,
                rtol=self.rtol,
                t_start=self.t_start,
                startup=self.startup,
                workers=self.workers,
                save=self.output.file,
                every=self.output.every,
                record=self.output.record,
                progress=progress,
                resume=resume,
                save_state=save_state,
                pace=pace,
                stop_at_events=stop_at_events or self.stop_at_events,
                error_bar=self.error_bar,
                max_steps=self.max_steps if max_steps is None else max_steps,
                state_every=keep,
                live=live,
            )
        )

    def left_by(self, run: Callable[[], Result]) -> Result:
        """The result of a run, with the CSV and the picture beside it, also where it stops early."""
        csv = [self.beside(".csv")] if self.output.csv else []
        picture = [self.beside(".png")] if self.output.plot else []
        for path in csv + picture:
            refuse_unwritable(path)
        failure: SimulationError | None = None
        try:
            result = run()
        except SimulationError as error:
            if error.result is None:
                raise
            failure, result = error, error.result
        for path in csv:
            result.save(path)
        for path in picture:
            result.plot(*self.output.plot, path=path)
        if failure is not None:
            raise failure
        return result


def load_system(path: str | Path, build: Builder = built_here) -> Description:
    """Read a system file; everything that can be wrong with it is refused here, with file, line and table.

    `build` makes the subsystems where they are not simply built here (`load_on_ranks`).

    >>> import tempfile
    >>> text = '''
    ... [subsystems.tank]
    ... kind = "linear"
    ... A = [[-1.0]]
    ... B = [[1.0]]
    ... C = [[1.0]]
    ... x0 = [1.0]
    ... inputs = ["inflow"]
    ... outputs = ["level"]
    ... [constants]
    ... tank.inflow = 0.5
    ... [simulation]
    ... t_end = 10
    ... method = "jacobi"
    ... step = 0.1
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "tank.toml")
    ...     _ = file.write_text(text)
    ...     description = load_system(file)
    >>> round(float(description.run()["tank.level"][-1]), 4)            # 0.5 + 0.5 exp(-10)
    0.5
    """
    file = TomlFile(path)
    described = file.validate(SystemTable, file.data)
    simulation = described.simulation
    # FMUs that factories name are looked for beside the file, too
    with watching(tell_outside=True) as fmus, modules_used() as modules, looking_in(file.folder):
        system = whole_system(file, described, build)
    with file.at(("simulation",), "rtol"):
        rtol = tolerance(simulation.method, simulation.step, simulation.rtol)
    with file.at(("simulation",), "method"):
        method = named.open_method(simulation.method, file.folder)
        named.refuse_unknown_variables(method, system.plan())
    with file.at(("simulation",), "step"):
        step = simulation.step
        control = named.step_control(step, file.folder) if isinstance(step, Mapping) else step
        if isinstance(step, float):
            refuse_bad_step(step)
    with file.at(("simulation",), "t_end"):
        refuse_bad_span(simulation.t_start, simulation.t_end)
    with file.at(("simulation",), "startup"):
        startup = None if simulation.startup is None else named.startup(simulation.startup, file.folder)
    with file.at(("output",), "record"):
        recorded = list(Selection(system.plan(), described.output.record).channels)
    with file.at(("output",), "file"):
        if described.output.file is not None and not Path(described.output.file).name:
            raise SetupError(f"file is '{described.output.file}', which is not the name of a file")
    with file.at(("output",), "state_every"):
        if described.output.state_every is not None:
            Cadence.of(described.output.state_every)
    with file.at(("output",), "plot"):
        _refuse_unknown(described.output.plot, recorded)
    return Description(
        file.path,
        system,
        method,
        control,
        simulation.t_end,
        simulation.t_start,
        startup,
        simulation.workers,
        _output(described.output),
        simulation.error_bar,
        rtol,
        simulation.max_steps,
        (*fmus.values(), *modules, *files_used(file, described)),
        stop_at_events=simulation.stop_at_events,
    )


def _refuse_unknown(names: list[str], known: list[str]) -> None:
    for name in names:
        if name not in known:
            raise SetupError(f"there is nothing called '{name}' to plot; {suggest(name, known)}")


def _output(table: OutputTable) -> Output:
    file = None if table.file is None else Path(table.file)
    record = None if table.record is None else tuple(table.record)
    return Output(file, table.csv, tuple(table.plot), table.report, table.every, record, table.state_every)
