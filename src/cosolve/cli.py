"""The command line: `cosolve run`, `check`, `compare`, `report`, `export`, `inspect`, `crosscheck` and `demo`.

Imports happen inside the commands, so that help is quick. Everything cosolve refuses on purpose ends in one sentence on
stderr: exit code 1 when `check` advises against a run or `crosscheck` finds a difference, 2 when a run cannot start, 3
when it stopped early (what there is of the result is kept).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from cosolve.errors import CosolveError, SetupError, SimulationError, StabilityWarning

if TYPE_CHECKING:
    from rich.console import Console

    from cosolve.analysis.compare import Comparison
    from cosolve.interface import System
    from cosolve.io import Description
    from cosolve.method import Method
    from cosolve.result import Result
    from cosolve.stepsize import Adaptive

_DEFAULT_RESULT = Path("result.h5")
_WIDE = 1000


class _Group(TyperGroup):
    """Turns cosolve's errors into one sentence and an exit code; takes --debug at any place."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--debug" in args:
            args = ["--debug", *(arg for arg in args if arg != "--debug")]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except CosolveError as error:
            if ctx.params.get("debug"):
                raise
            typer.echo("\n".join([f"cosolve: {error}", *getattr(error, "__notes__", [])]), err=True)
            raise typer.Exit(3 if isinstance(error, SimulationError) else 2) from None


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

SystemFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="System file (TOML), an SSP (.ssp, .ssd), or an FMU.", show_default=False),
]
MethodOption = Annotated[
    str | None, typer.Option("--method", help="Use this method instead: name or name:degree, e.g. semi-implicit:2.")
]
DegreeOption = Annotated[int | None, typer.Option("--degree", help="Use this degree instead.")]
StepOption = Annotated[float | None, typer.Option("--step", help="Use this macro step instead.")]
EndOption = Annotated[float | None, typer.Option("--t-end", help="Use this end time instead.")]


@app.callback(invoke_without_command=True)
def _cosolve(
    version: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of errors.")] = False,
) -> None:
    """Couple simulation solvers and run them together in time."""
    if version:
        from cosolve import __version__

        typer.echo(f"cosolve {__version__}")
        raise typer.Exit


@app.command()
def run(
    file: SystemFile,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Result file (.h5).", show_default="result.h5")
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Also write a CSV file next to the result.")] = False,
    report: Annotated[Path | None, typer.Option("--report", help="Also write a report (.html).")] = None,
    plot: Annotated[
        list[str] | None, typer.Option("--plot", metavar="NAME", help="Also draw this; repeat it for several.")
    ] = None,
    method: MethodOption = None,
    degree: DegreeOption = None,
    step: StepOption = None,
    t_end: EndOption = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="Drive an input: a.u=2.5, or a.u=drive.csv:column; may be given several times."),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="FMU: a parameter, start value or input; may be repeated."),
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="FMU: co-simulation (cs) or model-exchange (me).")] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option("--output", metavar="NAME", help="FMU: record these variables instead of its outputs."),
    ] = None,
    tolerance: Annotated[float | None, typer.Option("--tolerance", help="FMU: use this tolerance instead.")] = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="Continue from this saved state.")] = None,
    save_state: Annotated[Path | None, typer.Option("--save-state", help="Save the state at the end here.")] = None,
    pace: Annotated[
        float | None, typer.Option("--pace", help="Run in real time: so many model seconds per second.")
    ] = None,
    stop_at_events: Annotated[
        bool, typer.Option("--stop-at-events", help="End macro steps at events, for the others to see.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless something is wrong.")] = False,
) -> None:
    """Run a system file, an SSP or one FMU, and keep the result.

    An FMU runs by itself, with its DefaultExperiment for times, step and tolerance, and its inputs held.
    """
    from cosolve.result.store import refuse_unwritable

    only_fmu = {"--set": values, "--kind": kind, "--output": outputs, "--tolerance": tolerance}
    if not _is_fmu(file) and (misplaced := [option for option, value in only_fmu.items() if value is not None]):
        raise SetupError(f"{misplaced[0]} is for running one FMU; '{file}' is none: change the file instead")
    described = _described(file, method, degree, step, t_end, values, kind, outputs, tolerance)
    for words in inputs or []:
        _set_input(described.system, words)
    given = described.output
    output = replace(given, file=out or given.file or _DEFAULT_RESULT, csv=csv or given.csv)
    if plot:
        output = replace(output, plot=tuple(_shown(described, name) for name in plot))
    described = replace(described, output=output)
    if report is None and output.report:
        report = described.beside(".html")
    if report is not None:
        refuse_unwritable(report)
    failure: SimulationError | None = None
    try:
        with _progress(hidden=quiet) as show, _told_plainly():
            result = described.run(show, resume=resume, save_state=save_state, pace=pace, stop_at_events=stop_at_events)
    except SimulationError as error:
        if error.result is None:
            raise
        failure, result = error, error.result
    except KeyboardInterrupt:
        typer.echo(f"cosolve: interrupted; what was computed so far is in {output.file}", err=True)
        raise typer.Exit(130) from None
    if report is not None:
        _write_report(result, report)
    if failure is not None:
        failure.add_note(f"kept    {output.file}: {_span(result)}")
        raise failure
    if not quiet:
        what_ran = file.name if _is_fmu(file) and method is None else described.method.label
        how = "ended early" if result.ended else "finished"
        typer.echo(f"{what_ran} {how}: {_span(result)}\n{result.stats}\nresult  {output.file}")
        for what, suffix, wanted in (("csv", ".csv", output.csv), ("plot", ".png", bool(output.plot))):
            if wanted:
                typer.echo(f"{what:<7} {described.beside(suffix)}")
        if report is not None:
            typer.echo(f"report  {report}")


def _set_input(system: System, words: str) -> None:
    """`a.u=2.5` or `a.u=drive.csv:column`."""
    from cosolve.interface.driving import Table

    target, equals, given = words.partition("=")
    if not equals or not given:
        raise SetupError(f"--input {words}: write it as a.u=2.5 or a.u=drive.csv:column")
    try:
        system.set(target, float(given))
        return
    except ValueError:
        pass  # no number
    path, _, column = given.rpartition(":")
    if not path or Path(given).exists():
        path, column = given, ""
    system.set(target, Table.read(path, column or None))


@app.command()
def check(
    file: SystemFile,
    method: MethodOption = None,
    degree: DegreeOption = None,
    step: StepOption = None,
) -> None:
    """Say before the run whether the method and the macro step will work."""
    from cosolve.analysis import check as advise

    described = _described(file, method, degree, step, None)
    advice = advise(described.system, described.method, _first_step(described.step))
    typer.echo(str(advice))
    if not advice.ok:
        raise typer.Exit(1)


@app.command()
def compare(
    file: SystemFile,
    methods: Annotated[
        str, typer.Option("--methods", "-m", help="Methods to run, as name:degree with commas between.")
    ] = "jacobi:1,gauss-seidel:1,semi-implicit:1,implicit:1",
    step: StepOption = None,
    t_end: EndOption = None,
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference",
            help="Run to measure errors against, as method:degree@step.",
            show_default="implicit:2 with step/8, gauss-seidel:2 without rollback",
        ),
    ] = None,
) -> None:
    """Run a system with several methods and compare accuracy and cost."""
    from cosolve.analysis.compare import compare as run_all
    from cosolve.io.named import method_from_words

    described = _described(file, None, None, step, t_end)
    chosen = [method_from_words(words.strip()) for words in methods.split(",") if words.strip()]
    if not chosen:
        raise SetupError("--methods names no method; write it as jacobi:1,semi-implicit:1")
    found = run_all(
        described.system,
        chosen,
        t_end=described.t_end,
        step=described.step,
        reference=None if reference is None else _reference(reference),
        t_start=described.t_start,
        startup=described.startup,
        workers=described.workers,
    )
    _print_comparison(found, described)


@app.command()
def report(
    file: Annotated[Path, typer.Argument(metavar="RESULT", help="Result file (.h5).", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write it.", show_default="RESULT with .html")
    ] = None,
) -> None:
    """Make a report to look at from a result."""
    from cosolve.result.store import load

    typer.echo(f"report  {_write_report(load(file), out or file.with_suffix('.html'))}")


@app.command()
def export(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="System file (TOML), SSP, or model.py:function.", show_default=False)
    ],
    out: Annotated[Path, typer.Argument(metavar="FMU", help="The FMU to write.", show_default=False)],
    fmi: Annotated[str, typer.Option("--fmi", help="Version of FMI: 2.0 or 3.0.")] = "2.0",
    inputs: Annotated[list[str] | None, typer.Option("--input", help="Offer only these inputs.")] = None,
    outputs: Annotated[list[str] | None, typer.Option("--output", help="Offer only these outputs.")] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter",
            metavar="NAME=VALUE",
            help="Offer this argument of the function as a parameter; repeat it for several.",
            show_default="all arguments whose default is a float",
        ),
    ] = None,
    files: Annotated[
        list[Path] | None, typer.Option("--file", help="Put this file or folder into the FMU as well.")
    ] = None,
    method: MethodOption = None,
    step: StepOption = None,
) -> None:
    """Write a system or a Python subsystem as a co-simulation FMU, with the files that it needs."""
    from cosolve.io.fmu_export import export_fmu, packed_files
    from cosolve.io.named import method_from_words

    version: Any = fmi
    made = export_fmu(
        source,
        out,
        version=version,
        method=None if method is None else method_from_words(method),
        step=step,
        inputs=inputs,
        outputs=outputs,
        parameters=_assignments(parameters, "--parameter") if parameters else None,
        files=files or (),
    )
    typer.echo(f"fmu     {made}\npacked  {', '.join(packed_files(made))}")


@app.command()
def inspect(
    file: Annotated[
        Path, typer.Argument(metavar="FMU", help="FMU (none of its code is run but with --try).", show_default=False)
    ],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    tried: Annotated[
        bool, typer.Option("--try", help="Run it in a process of its own and say which of its claims hold.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="With --try: keep what was found (.json) for later runs.")
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", help="With --try: seconds that one claim may take.")] = 60.0,
) -> None:
    """Show what an FMU is and which coupling methods it can take part in."""
    from cosolve.fmu.inspection import Inspection, inspect_fmu
    from cosolve.fmu.trial import Trial, try_fmu

    found: Inspection | Trial = try_fmu(file, timeout=timeout) if tried else inspect_fmu(file)
    if out is not None:
        if not isinstance(found, Trial):
            raise SetupError("--out keeps what --try found; give both")
        found.write(out)
    if json:
        from json import dumps

        typer.echo(dumps(found.to_dict(), indent=2))
    else:
        found.show(_console())


@app.command()
def crosscheck(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with FMUs and SSPs.", show_default=False)],
    json: Annotated[Path | None, typer.Option("--json", help="Also write the table as JSON.")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Also write the table as Markdown.")] = None,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds for each run.")] = 60.0,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Cases at a time.", show_default="processors, at most 4")
    ] = None,
    steps: Annotated[int, typer.Option("--steps", help="Communication steps at most.")] = 500,
) -> None:
    """Run every FMU and SSP of a folder here and with FMPy, and compare the numbers."""
    from json import dumps

    from rich.console import Console

    from cosolve.io.crosscheck import crosscheck as compare_all
    from cosolve.result.store import refuse_unwritable

    for file in (json, markdown):
        if file is not None:
            refuse_unwritable(file)
    with _progress(hidden=False) as show:
        found = compare_all(folder, timeout=timeout, jobs=jobs, steps=steps, progress=show)
    if json is not None:
        json.write_text(dumps(found.to_dict(), indent=2) + "\n", encoding="utf-8")
    if markdown is not None:
        markdown.write_text(found.markdown(), encoding="utf-8")
    found.show(Console())
    if not found.good:
        raise typer.Exit(1)


@app.command()
def serve(
    factory: Annotated[
        str, typer.Argument(metavar="FACTORY", help="What builds the subsystem: model.py:function.", show_default=False)
    ],
    port: Annotated[int, typer.Option("--port", "-p", help="Port to listen at; 0 takes a free one.")] = 0,
    host: Annotated[str, typer.Option("--host", help="Address to listen at; 0.0.0.0 for all networks.")] = "127.0.0.1",
    key: Annotated[
        str | None, typer.Option("--key", help="What clients must know.", show_default="COSOLVE_KEY, or a random one")
    ] = None,
) -> None:
    """Offer a subsystem to runs on other machines (cosolve.Remote), until Ctrl-C or SIGTERM."""
    from cosolve.process.remote import serve as offer

    def ready(address: str, secret: str) -> None:
        typer.echo(f"serving {factory}\ncosolve.Remote({address!r}, key={secret!r})")
        sys.stdout.flush()

    offer(factory, host=host, port=port, key=key, ready=ready)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def demo(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="Example to run; what follows it goes to the example (try --help there).")
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the examples.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for what is written.", show_default="cosolve-demo")
    ] = None,
) -> None:
    """Run the built-in demo, or one of the examples."""
    from cosolve.gallery import about, examples, run_example

    if show_list:
        for example, path in examples().items():
            typer.echo(f"{example:<28} {about(path)}")
    elif name is None:
        from cosolve.demo import run_demo

        run_demo(out or Path("cosolve-demo"), typer.echo)
    else:
        code = run_example(name, [*ctx.args, *([] if out is None else ["--out", str(out)])])
        if code:
            raise typer.Exit(code)


def main() -> None:
    """The entry point of the `cosolve` command."""
    app()


# -- pieces ------------------------------------------------------------------------------------------------


def _is_fmu(file: Path) -> bool:
    return file.suffix.lower() == ".fmu" or (file / "modelDescription.xml").is_file()


def _shown(described: Description, name: str) -> str:
    """A quantity to draw; of a single subsystem its name is enough."""
    from cosolve.io.toml_text import suggest
    from cosolve.run import Selection

    known = list(Selection(described.system.plan(), described.output.record).channels)
    subsystems = list(described.system.subsystems)
    port = name.replace(".", "_")
    for candidate in (name, *([f"{subsystems[0]}.{name}", f"{subsystems[0]}.{port}"] if len(subsystems) == 1 else [])):
        if candidate in known:
            return candidate
    raise SetupError(f"there is nothing called '{name}' to plot; {suggest(name, known)}")


def _described(
    file: Path,
    method: str | None,
    degree: int | None,
    step: float | None,
    t_end: float | None,
    values: list[str] | None = None,
    kind: str | None = None,
    outputs: list[str] | None = None,
    tolerance: float | None = None,
) -> Description:
    """The system file with what the command line changes."""
    from cosolve.io import load_system
    from cosolve.io.named import method_from_words

    if _is_fmu(file):
        from cosolve.io.fmu_run import read_fmu

        described = read_fmu(
            file,
            kind=kind,
            values=_assignments(values or [], "--set"),
            outputs=outputs,
            tolerance=tolerance,
            step=step,
            t_end=t_end,
        )
    elif file.suffix in (".ssp", ".ssd"):
        from cosolve.io.ssp import read_ssp

        described = read_ssp(file, t_end=t_end)
    else:
        described = load_system(file)
    if method is not None:
        described = replace(described, method=method_from_words(method))
    if degree is not None:
        described = replace(described, method=replace(described.method, degree=degree))
    if step is not None:
        described = replace(described, step=step)
    if t_end is not None:
        described = replace(described, t_end=t_end)
    return described


def _assignments(words: list[str], option: str) -> dict[str, Any]:
    """`name=value` as a dict; values are numbers, several numbers (an array), true or false, or texts."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not (name.strip() and equals and text.strip()):
            raise SetupError(f"{option} {word}: write it as {option} name=value")
        found[name.strip()] = _value(text.strip())
    return found


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    parts = text.replace(",", " ").split()
    for kind in (int, float):
        try:
            numbers = [kind(part) for part in parts]
        except ValueError:
            continue
        return numbers[0] if len(numbers) == 1 else numbers
    return text


def _first_step(step: float | Adaptive | None) -> float | None:
    return step if step is None or isinstance(step, (int, float)) else step.H_init


def _reference(words: str) -> tuple[Method, float]:
    from cosolve.io.named import method_from_words

    name, _, step = words.partition("@")
    try:
        return method_from_words(name), float(step)
    except ValueError as error:
        if isinstance(error, SetupError):
            raise
        raise SetupError(f"'{words}': write the reference as method:degree@step, e.g. implicit:2@1e-5") from None


def _span(result: Result) -> str:
    t = result.t
    return f"{len(t)} macro points, t = {t[0]:.9g} ... {t[-1]:.9g}" if len(t) else "no macro points"


def _write_report(result: Result, path: Path) -> Path:
    from cosolve.report import write_report

    return write_report(result, path)


@contextmanager
def _told_plainly() -> Iterator[None]:
    """Warnings about stability as sentences on stderr, when they come up."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("always", StabilityWarning)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **rest: Any) -> None:
            if issubclass(category, StabilityWarning):
                typer.echo(f"cosolve: warning: {message}", err=True)
            else:
                usual(message, category, *where, **rest)

        warnings.showwarning = show  # put back by catch_warnings
        yield


@contextmanager
def _progress(hidden: bool) -> Iterator[Callable[[float], None] | None]:
    """A progress bar on a terminal, nothing elsewhere."""
    if hidden or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

    with Progress(
        BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task("run", total=1.0)
        yield lambda fraction: bar.update(task, completed=fraction)


def _console() -> Console:
    """For tables: as wide as the terminal; elsewhere as wide as they are, so that no name is broken."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=_WIDE)


def _print_comparison(found: Comparison, described: Description) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=f"{described.path.name}, step {described.step}, t = {described.t_start:g} ... {described.t_end:g}",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
    )
    for heading in ("method", "finished", "error", "in", "calls", "iter.", "seconds"):
        left = heading in ("method", "finished", "in")
        table.add_column(heading, justify="left" if left else "right", no_wrap=heading == "method", overflow="fold")
    for entry in found.entries:
        state = "refused" if entry.refused else "stopped" if entry.failure else "grew" if entry.stats.growth else "yes"
        error = f"{entry.error:.2e}" if entry.error == entry.error else "-"
        stats = entry.stats
        counts = ("-",) * 3 if entry.refused else (stats.total_calls, stats.iterations, f"{stats.wall_seconds:.3g}")
        table.add_row(entry.label, state, error, entry.worst or "-", *map(str, counts))
    _console().print(table)
    typer.echo(f"error: largest over time, relative to the largest value of the output, against {found.reference}")
    for entry in found.entries:
        if entry.failure:
            typer.echo(f"{entry.label}: {entry.failure}")


if __name__ == "__main__":
    main()
