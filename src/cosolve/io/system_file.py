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
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from cosolve.accuracy.auto.choose import tolerance
from cosolve.basics.imports import modules_used
from cosolve.basics.wording import shown, suggest
from cosolve.errors import SetupError, SimulationError
from cosolve.fmu.places import looking_in, watching
from cosolve.interface import System
from cosolve.io import named
from cosolve.io.assembly import Builder, built_here, files_used, whole_system
from cosolve.io.changes import change, isolate
from cosolve.io.schema import SystemTable
from cosolve.io.toml_text import TomlFile
from cosolve.options import RunOptions, known_options
from cosolve.result import Result
from cosolve.result.store import refuse_unwritable
from cosolve.run import Selection
from cosolve.run.naming import as_observers
from cosolve.run.simulate import simulate
from cosolve.state.state_writer import Cadence, Keep
from cosolve.stepsize import refuse_bad_span, refuse_bad_step


@dataclass(frozen=True)
class Output:
    """What a run leaves behind.

    Parameters
    ----------
    csv : bool, default False
        Write a CSV file too.
    plot : tuple of str, default ()
        Quantities of a picture.
    report : bool, default False
        Write a report.
    """

    csv: bool = False
    plot: tuple[str, ...] = ()
    report: bool = False


@dataclass(frozen=True)
class Description:
    """A coupled system and how to run it, from `load_system` or `read_ssp`.

    Parameters
    ----------
    path : Path
        The file.
    system : System
        The coupled system.
    options : RunOptions
        The arguments of `simulate`. `options.save` is a Path or None.
    output : Output
        What the run leaves behind besides its result file.
    files : tuple of Path, default ()
        Other files that it was made from: FMUs, tables, Python modules.
    changes : mapping
        What was given differently from the file.
    """

    path: Path
    system: System
    options: RunOptions
    output: Output = Output()
    files: tuple[Path, ...] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> Path | None:
        """The result file; None keeps the result in memory."""
        return None if self.options.save is None else Path(self.options.save)

    def beside(self, suffix: str) -> Path:
        """Return the path of a file next to the result.

        Parameters
        ----------
        suffix : str
            Its suffix, as in ".csv".

        Returns
        -------
        Path
            The path.
        """
        return (self.file or Path(self.path.name)).with_suffix(suffix)

    def run(self, progress: Callable[[float], None] | None = None, **changes: Any) -> Result:
        """Simulate, and write the result file, the CSV file and the picture that the file asks for.

        Parameters
        ----------
        progress : callable or None, default None
            See `simulate`.
        **changes
            Arguments of `simulate` other than those of the file.

        Returns
        -------
        Result
            The result.

        Raises
        ------
        SimulationError
            If the run stops early; what there is has been written. One that stops before the end of its first macro
            step leaves the files of an earlier run as they are.
        """
        options = replace(self.options, progress=progress, **changes)
        if options.state_every is not None and not isinstance(options.state_every, Keep):
            from cosolve.io.source import source_of

            options = replace(options, state_every=Keep(options.state_every, source_of(self, options)))
        return self.left_by(lambda: simulate(self.system, **vars(options)))

    def left_by(self, run: Callable[[], Result]) -> Result:
        """Run, and write the CSV file and the picture next to the result, also if the run stops early.

        Parameters
        ----------
        run : callable
            `run()` returns the result.

        Returns
        -------
        Result
            The result.
        """
        csv = [self.beside(".csv")] if self.output.csv else []
        picture = [self.beside(".png")] if self.output.plot else []
        for path in [*filter(None, [self.file]), *csv, *picture]:
            refuse_unwritable(path)
        failure: SimulationError | None = None
        try:
            result = run()
        except SimulationError as error:
            if error.result is None:
                raise
            failure, result = error, error.result
        writes: list[Callable[[], object]] = [partial(result.save, path) for path in csv]
        writes += [partial(result.plot, *self.output.plot, path=path) for path in picture]
        if failure is None:
            for write in writes:
                write()
            return result
        if len(result) > 1:  # there is something to look at; files of an earlier run stay otherwise
            for write in writes:
                try:
                    write()
                except Exception as error:  # the failure of the run is what has to be said
                    failure.add_note(f"besides: {error}")
        raise failure


def load_system(
    path: str | Path,
    build: Builder = built_here,
    *,
    changes: Mapping[str, Any] | None = None,
    isolated: bool = False,
    complete: bool = True,
) -> Description:
    """Read a system file.

    Parameters
    ----------
    path : str or Path
        The TOML file.
    build : callable, optional
        Builds the subsystems from their factories; `load_on_ranks` uses it.
    changes : mapping of str to value or None, default None
        Values in place of those in the file, by key: `simulation.step`, `connections.0.to`, or `wheel.mass` for a
        parameter, start value or input of a subsystem.
    isolated : bool, default False
        Run every FMU in a process of its own.
    complete : bool, default True
        Refuse inputs that are not connected. False holds them at their start values.

    Returns
    -------
    Description
        `system`, `method`, `step`, `t_end` and so on; `run()` simulates it.

    Raises
    ------
    SetupError
        With file, line and table, if anything in it is wrong.

    Examples
    --------
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
    for key, value in (changes or {}).items():
        file.changed[change(file.data, key, value, file.folder)] = f"{key}={shown(value)}"
    if isolated:
        isolate(file.data)
    described = file.validate(SystemTable, file.data)
    simulation: Any = described.simulation
    output: Any = described.output
    # FMUs that factories name are looked for beside the file, too
    with watching(tell_outside=True) as fmus, modules_used() as modules, looking_in(file.folder):
        system = whole_system(file, described, build, complete)
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
    with file.at(("simulation",), "observers"):
        observers = as_observers(simulation.observers, file.folder)
    with file.at(("output",), "record"):
        recorded = list(Selection(system.plan(), output.record).channels)
    with file.at(("output",), "file"):
        if output.file is not None and not Path(output.file).name:
            raise SetupError(f"file is '{output.file}', which is not the name of a file")
    with file.at(("output",), "state_every"):
        if output.state_every is not None:
            Cadence.of(output.state_every)
    with file.at(("output",), "plot"):
        _refuse_unknown(output.plot, recorded)
    made = {"method": method, "step": control, "rtol": rtol, "startup": startup, "observers": observers}
    given = _given(described)
    with file.at(("simulation",)):
        options = RunOptions(**given | made)
    found = (*fmus.values(), *modules, *files_used(file, described))
    return Description(file.path, system, options, Output(output.csv, tuple(output.plot), output.report), found)


def _given(described: SystemTable) -> dict[str, Any]:
    """The run options as they stand in a file."""
    found = {}
    for name, known in known_options(RunOptions).items():
        if known.about.table is not None:
            found[name] = getattr(getattr(described, known.about.table), known.about.key or name)
    return found


def _refuse_unknown(names: list[str], known: list[str]) -> None:
    for name in names:
        if name not in known:
            raise SetupError(f"there is nothing called '{name}' to plot; {suggest(name, known)}")
