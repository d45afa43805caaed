"""The command line: `cosolve run`, `check`, `compare`, `report`, `export`, `inspect` and `demo`.

Imports happen inside the commands, so that help is quick. Everything cosolve refuses on purpose ends in one sentence on
stderr: exit code 1 when `check` advises against a run, 2 when a run cannot start, 3 when it stopped early (what there
is of the result is kept).
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
    from cosolve.analysis.compare import Comparison
    from cosolve.io import Description
    from cosolve.method import Method
    from cosolve.result import Result
    from cosolve.stepsize import Adaptive

_DEFAULT_RESULT = Path("result.h5")


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
    Path, typer.Argument(metavar="FILE", help="System file (TOML), or an SSP (.ssp, .ssd).", show_default=False)
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
    method: MethodOption = None,
    degree: DegreeOption = None,
    step: StepOption = None,
    t_end: EndOption = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="Continue from this saved state.")] = None,
    save_state: Annotated[Path | None, typer.Option("--save-state", help="Save the state at the end here.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless something is wrong.")] = False,
) -> None:
    """Run a system file or an SSP and keep the result."""
    from cosolve.result.store import refuse_unwritable

    described = _described(file, method, degree, step, t_end)
    given = described.output
    output = replace(given, file=out or given.file or _DEFAULT_RESULT, csv=csv or given.csv)
    described = replace(described, output=output)
    if report is None and output.report:
        report = described.beside(".html")
    if report is not None:
        refuse_unwritable(report)
    failure: SimulationError | None = None
    try:
        with _progress(hidden=quiet) as show, _told_plainly():
            result = described.run(show, resume=resume, save_state=save_state)
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
        typer.echo(f"{described.method.label} finished: {_span(result)}\n{result.stats}\nresult  {output.file}")
        for what, suffix, wanted in (("csv", ".csv", output.csv), ("plot", ".png", bool(output.plot))):
            if wanted:
                typer.echo(f"{what:<7} {described.beside(suffix)}")
        if report is not None:
            typer.echo(f"report  {report}")


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
    method: MethodOption = None,
    step: StepOption = None,
) -> None:
    """Write a system or a Python subsystem as a co-simulation FMU."""
    from cosolve.io.fmu_export import export_fmu
    from cosolve.io.named import method_from_words

    chosen = None if method is None else method_from_words(method)
    version: Any = fmi
    made = export_fmu(source, out, version=version, method=chosen, step=step, inputs=inputs, outputs=outputs)
    typer.echo(f"fmu     {made}")


@app.command()
def inspect(
    file: Annotated[Path, typer.Argument(metavar="FMU", help="FMU (none of its code is run).", show_default=False)],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show what an FMU is and which coupling methods it can take part in."""
    from cosolve.io.inspect_fmu import inspect_fmu

    found = inspect_fmu(file)
    if json:
        from json import dumps

        typer.echo(dumps(found.to_dict(), indent=2))
    else:
        from rich.console import Console

        found.show(Console())


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
    """Offer a subsystem to runs on other machines (cosolve.Remote), until Ctrl-C."""
    from cosolve.subsystem.process.remote import serve as offer

    def ready(address: str, secret: str) -> None:
        typer.echo(f"serving {factory}\ncosolve.Remote({address!r}, key={secret!r})")
        sys.stdout.flush()

    offer(factory, host=host, port=port, key=key, ready=ready)


@app.command()
def demo(
    name: Annotated[str | None, typer.Argument(help="Example to run (a folder below examples).")] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the examples below the current folder.")] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for what the demo writes.")] = Path("cosolve-demo"),
) -> None:
    """Run the built-in demo, or one of the examples."""
    examples = {path.parent.name: path for path in sorted(Path("examples").glob("*/run.py"))}
    if show_list:
        for example, path in examples.items():
            typer.echo(f"{example:<28} {_first_line(path)}")
        if not examples:
            typer.echo("no examples here; go to the folder that contains examples/ (the source tree of cosolve)")
    elif name is None:
        from cosolve.demo import run_demo

        run_demo(out, typer.echo)
    else:
        _run_example(name, examples)


def main() -> None:
    """The entry point of the `cosolve` command."""
    app()


# -- pieces ------------------------------------------------------------------------------------------------


def _described(
    file: Path, method: str | None, degree: int | None, step: float | None, t_end: float | None
) -> Description:
    """The system file with what the command line changes."""
    from cosolve.io import load_system
    from cosolve.io.named import method_from_words

    if file.suffix in (".ssp", ".ssd"):
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


def _print_comparison(found: Comparison, described: Description) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
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
    Console().print(table)
    typer.echo(f"error: largest over time, relative to the largest value of the output, against {found.reference}")
    for entry in found.entries:
        if entry.failure:
            typer.echo(f"{entry.label}: {entry.failure}")


def _run_example(name: str, examples: dict[str, Path]) -> None:
    import subprocess

    from cosolve.io.toml_text import suggest

    if name not in examples:
        hint = (
            suggest(name, list(examples)) if examples else "there is no examples folder here; see cosolve demo --list"
        )
        raise SetupError(f"there is no example '{name}'; {hint}")
    code = subprocess.run([sys.executable, "-m", f"examples.{name}.run"], check=False).returncode
    if code:
        raise typer.Exit(code)


def _first_line(path: Path) -> str:
    """What an example says about itself."""
    import ast

    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


if __name__ == "__main__":
    main()
