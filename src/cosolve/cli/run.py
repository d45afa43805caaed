"""`cosolve run`: a system file, an SSP or one FMU, with its result, report and pictures."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cosolve.cli.options import (
    PLAIN,
    SURE,
    DegreeOption,
    EndOption,
    MaxStepsOption,
    MethodOption,
    RtolOption,
    StateEveryOption,
    StepOption,
    SystemFile,
    assignments,
    is_fmu,
    read_file,
)
from cosolve.cli.screen import JsonOption, print_json, progress, tell, told_plainly
from cosolve.errors import SetupError, SimulationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cosolve.io import Description
    from cosolve.result import Result
    from cosolve.viewer import Live

_DEFAULT_RESULT = Path("result.h5")


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
    rtol: RtolOption = None,
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
    state_every: StateEveryOption = None,
    max_steps: MaxStepsOption = None,
    pace: Annotated[
        float | None, typer.Option("--pace", help="Run in real time: so many model seconds per second.")
    ] = None,
    stop_at_events: Annotated[
        bool, typer.Option("--stop-at-events", help="End macro steps at events, for the others to see.")
    ] = False,
    error_bar: Annotated[
        str | None,
        typer.Option("--error-bar", metavar="[sure]", help="Estimate the coupling error; sure: on a second grid too."),
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Show the run in the browser while it goes on.")] = False,
    host: Annotated[
        str, typer.Option("--host", help="--live: serve to others as well, at this address.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="--live: serve at this port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="--live: open the browser, or not.")] = True,
    json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless something is wrong.")] = False,
) -> None:
    """Run a system file, an SSP or one FMU, and keep the result.

    An FMU runs by itself, with its DefaultExperiment for times, step and tolerance, and its inputs held.
    """
    only_fmu = {"--set": values, "--kind": kind, "--output": outputs, "--tolerance": tolerance}
    if not is_fmu(file) and (misplaced := [option for option, value in only_fmu.items() if value is not None]):
        raise SetupError(f"{misplaced[0]} is for running one FMU; '{file}' is none: change the file instead")
    of_fmu: dict[str, Any] = {
        "kind": kind,
        "values": assignments(values or [], "--set"),
        "outputs": outputs,
        "tolerance": tolerance,
    }
    of_run: dict[str, Any] = {"inputs": inputs, "report": None if report is None else str(report), "rtol": rtol}
    from cosolve.process.mpi import is_launched

    read = partial(read_file, file, method, degree, step, t_end, **of_run, **of_fmu)
    described, placed = _on_ranks(read) if is_launched() else (read(), "")
    given = described.output
    output = replace(given, file=out or given.file or _DEFAULT_RESULT, csv=csv or given.csv)
    if plot:
        output = replace(output, plot=tuple(_shown(described, name) for name in plot))
    described = replace(described, output=output)
    if error_bar is not None:
        if error_bar not in (SURE, PLAIN):
            raise SetupError(f"--error-bar {error_bar}: write --error-bar, or --error-bar sure")
        described = replace(described, error_bar=SURE if error_bar == SURE else True)
    if report is None and output.report:
        report = described.beside(".html")
    if placed and not quiet and not json:
        typer.echo(placed)
    watched = None
    if live:
        from cosolve.viewer import Live

        watched = Live(
            host=host, port=port, open_browser=browser, title=file.name, told=partial(typer.echo, err=json)
        ).serve()
    try:
        carry_out(
            described,
            lambda show: described.run(
                show,
                resume=resume,
                save_state=save_state,
                pace=pace,
                stop_at_events=stop_at_events,
                max_steps=max_steps,
                state_every=state_every,
                live=watched,
            ),
            file.name if is_fmu(file) and method is None and rtol is None else "",
            report,
            quiet,
            json,
        )
    finally:
        if watched is not None:
            _until_closed(watched, quiet or json)


def _until_closed(watched: Live, quiet: bool) -> None:
    """The page stays as long as somebody looks at it."""
    try:
        if watched.watchers and not quiet:
            typer.echo("the page stays until it is closed, or Ctrl-C")
        watched.wait()
    except KeyboardInterrupt:
        pass
    finally:
        watched.close()


def _on_ranks(read: Callable[..., Description]) -> tuple[Description, str]:
    """On rank 0 the run and who lies where; other ranks stay here until it is over."""
    from cosolve.io import load_system
    from cosolve.io.ranks import read_on_ranks

    described, ranks = read_on_ranks(lambda build: read(load=partial(load_system, build=build)))
    return described, "" if ranks is None else str(ranks)


def carry_out(
    described: Description,
    simulate: Callable[[Callable[[float], None] | None], Result],
    what_ran: str,
    report: Path | None,
    quiet: bool,
    json: bool = False,
    command: str = "run",
) -> None:
    """Run, write what is asked for besides, and say how it went: `what_ran`, or else the method."""
    from cosolve.result.store import refuse_unwritable

    output = described.output
    if report is not None:
        refuse_unwritable(report)
    failure: SimulationError | None = None
    try:
        waiting = "choosing method and step" if described.method is None else "starting"
        with progress(quiet or json, waiting) as show, told_plainly() as warned:
            result = simulate(show)
    except SimulationError as error:
        if error.result is None:
            raise
        failure, result = error, error.result
    except KeyboardInterrupt:
        typer.echo(f"cosolve: interrupted; what was computed so far is in {output.file}{_go_on(output.file)}", err=True)
        raise typer.Exit(130) from None
    if report is not None:
        from cosolve.report import write_report

        write_report(result, report)
    if failure is not None:
        failure.add_note(f"kept    {output.file}: {span(result)}{_go_on(output.file)}")
    if json:
        print_json(command, {**_content(described, result, warned, report), "error": failure}, ok=failure is None)
    if failure is not None:
        tell(failure)
        raise typer.Exit(3)
    if quiet or json:
        return
    how = "ended early" if result.ended else "finished"
    typer.echo(f"{what_ran or result.method.label} {how}: {span(result)}\n{result.stats}")
    if result.error_bar is not None:
        typer.echo(result.error_bar.sentence)
    if "choice" in result.meta:
        typer.echo(f"chosen  {result.meta['choice']}")
    for what, path in _written(described, report).items():
        if path is not None:
            typer.echo(f"{what:<7} {path}")
    for line in next_steps(described, result, report):
        typer.echo(f"next    {line}")


def _written(described: Description, report: Path | None) -> dict[str, Path | None]:
    """The files that a run leaves, by what they are."""
    output = described.output
    return {
        "result": output.file,
        "csv": described.beside(".csv") if output.csv else None,
        "plot": described.beside(".png") if output.plot else None,
        "report": report,
    }


def _content(described: Description, result: Result, warned: list[str], report: Path | None) -> dict[str, Any]:
    """The run for scripts."""
    bar = result.error_bar
    return {
        "file": described.path,
        "method": result.method.label,
        "t_start": result.t[0] if len(result) else None,
        "t_end": result.t[-1] if len(result) else None,
        "points": len(result),
        "ended": result.ended or None,
        "choice": result.meta.get("choice"),
        "error_bar": None if bar is None else {"worst": bar.worst, "sure": bar.sure, "reason": bar.reason},
        "warnings": warned,
        "files": _written(described, report),
        "notes": [asdict(note) for note in result.notes],
        "stats": asdict(result.stats),
    }


def next_steps(described: Description, result: Result, report: Path | None) -> list[str]:
    """What is worth doing after a run, most urgent first, each as a command and what it is for."""
    file = _typed(described.path)
    found = []
    coupled = len(described.system.subsystems) > 1
    from cosolve.result.notes import worst_level

    kinds = {note.kind for note in result.notes}
    if kinds & {"growth", "algebraic-loop"}:
        found.append(f"cosolve check {file}: is the step stable, and which method would be?")
    elif worst_level(result.notes) != "info":
        found.append(f"cosolve compare {file}: which method reaches the tolerance with this step?")
    if report is None:
        found.append(f"cosolve report {_typed(described.output.file)}: a page with curves, steps and residuals")
    if coupled and result.error_bar is None and not found[:-1]:
        found.append(f"cosolve run {file} --error-bar: how accurate is it?")
    return found


def _typed(path: Path | None) -> str:
    """A path as one would type it here."""
    from shlex import quote

    absolute = Path(path or _DEFAULT_RESULT).absolute()
    return quote(str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else absolute))


def _go_on(file: Path | None) -> str:
    """How a run can be continued that has left a state."""
    from cosolve.run.keeping import state_path

    return f"; go on with: cosolve resume {file}" if file is not None and state_path(file).exists() else ""


def _shown(described: Description, name: str) -> str:
    """A quantity to draw; of a single subsystem its name is enough."""
    from cosolve.basics.wording import suggest
    from cosolve.run import Selection

    known = list(Selection(described.system.plan(), described.output.record).channels)
    subsystems = list(described.system.subsystems)
    port = name.replace(".", "_")
    for candidate in (name, *([f"{subsystems[0]}.{name}", f"{subsystems[0]}.{port}"] if len(subsystems) == 1 else [])):
        if candidate in known:
            return candidate
    raise SetupError(f"there is nothing called '{name}' to plot; {suggest(name, known)}")


def span(result: Result) -> str:
    """Which macro points there are."""
    t = result.t
    return f"{len(t)} macro points, t = {t[0]:.9g} ... {t[-1]:.9g}" if len(t) else "no macro points"
