"""`cosolve run`: a system file, an SSP or one FMU, with its result, report and pictures."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cosolve.basics import registry
from cosolve.cli.flags import run_flags
from cosolve.cli.options import DegreeOption, SystemFile, assignments, is_fmu, observer, read_file
from cosolve.cli.screen import INDENT, JsonOption, print_json, progress, say, stopped, tell, told_plainly
from cosolve.cli.short_run import tried_further
from cosolve.errors import SetupError, SimulationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from cosolve.io import Description
    from cosolve.result import Result
    from cosolve.viewer import Live

_DEFAULT_RESULT = Path("result.h5")
#: The exit code of a run that finished, but reports an error: growth, a rollback that loses something.
WRONG = 4


@run_flags(after="plot")
def run(
    file: SystemFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Result file (.h5); with .csv a CSV file as well.", show_default="result.h5"),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Also write a CSV file next to the result.")] = False,
    report: Annotated[Path | None, typer.Option("--report", help="Also write a report (.html).")] = None,
    plot: Annotated[
        list[str] | None, typer.Option("--plot", metavar="NAME", help="Also draw this; repeat it for several.")
    ] = None,
    degree: DegreeOption = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="Drive an input: a.u=2.5, or a.u=drive.csv:column; may be given several times."),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a value: mass=50 of one FMU, wheel.mass=50 or simulation.step=1e-3 of a system file; may be "
            "repeated.",
        ),
    ] = None,
    isolated: Annotated[bool, typer.Option("--isolated", help="Run every FMU in a process of its own.")] = False,
    logs: Annotated[
        list[str] | None,
        typer.Option(
            "--log",
            metavar="FMU=LEVEL",
            help="Write the messages of an FMU to RESULT.FMU.log: debug (all), warning, discard, error, fatal; may be "
            "repeated.",
        ),
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="FMU: co-simulation (cs) or model-exchange (me).")] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option("--record", metavar="NAME", help="FMU: record these variables instead of its outputs."),
    ] = None,
    tolerance: Annotated[float | None, typer.Option("--tolerance", help="FMU: use this tolerance instead.")] = None,
    observers: Annotated[
        list[str] | None,
        typer.Option("--observer", metavar="NAME", help="Add an observer: 'NAME key=value ...'; may be repeated."),
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Show the run in the browser while it goes on.")] = False,
    host: Annotated[
        str, typer.Option("--host", help="--live: serve to others as well, at this address.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="--live: serve at this port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="--live: open the browser, or not.")] = True,
    json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless something is wrong.")] = False,
    **options: Any,
) -> None:
    """Run a system file, an SSP or one FMU, and keep the result.

    An FMU runs by itself, with its DefaultExperiment for times, step and tolerance, and its inputs held.
    """
    only_fmu = {"--kind": kind, "--record": outputs, "--tolerance": tolerance}
    if not is_fmu(file) and (misplaced := [option for option, value in only_fmu.items() if value is not None]):
        raise SetupError(f"{misplaced[0]} is for running one FMU, which '{file}' is not; --set changes a system file")
    if out is not None and out.suffix.lower() == ".csv":
        out, csv = out.with_suffix(".h5"), True
    elif out is not None and out.suffix.lower() not in (".h5", ".hdf5"):
        raise SetupError(f"--out {out}: results are written as HDF5 (.h5), and with .csv as CSV besides")
    of_fmu: dict[str, Any] = {"kind": kind, "outputs": outputs, "tolerance": tolerance}
    changes: dict[str, Any] = options | {"inputs": inputs, "report": None if report is None else str(report)}
    changes |= {"degree": degree, "observers": [observer(words) for words in observers or []]}
    changes |= {"values": assignments(values or [], "--set"), "isolated": isolated}
    log_files = {
        name: ((out or _DEFAULT_RESULT).absolute().with_suffix(f".{name}.log"), level)
        for name, level in assignments(logs or [], "--log").items()
    }
    changes["logs"] = {name: (str(path), level) for name, (path, level) in log_files.items()}
    from cosolve.basics.launcher import is_launched

    read = partial(read_file, file, **changes, **of_fmu)
    described, placed = _on_ranks(read) if is_launched() else (read(), "")
    output = replace(described.output, csv=csv or described.output.csv)
    described = replace(described, options=replace(described.options, save=out or described.file or _DEFAULT_RESULT))
    if plot:
        output = replace(output, plot=tuple(_shown(described, name) for name in plot))
    described = replace(described, output=output)
    if report is None and output.report:
        report = described.beside(".html")
    if placed and not quiet and not json:
        say(placed)

    def simulate(show: Callable[[float], None] | None) -> Result:
        run = described.options
        seen = run.observers if watched is None else [*run.observers, watched]
        result = described.run(show, observers=seen, resume=options.get("resume"))
        return tried_further(described, result) if run.pace is None and "resume" not in options else result

    watched = None
    if live:
        watched = registry.lookup("observers", "live")(
            host=host, port=port, open_browser=browser, title=file.name, told=partial(typer.echo, err=json)
        ).serve()
    ended = False
    try:
        carry_out(
            described,
            simulate,
            file.name if is_fmu(file) and not options.keys() & {"method", "rtol"} else "",
            report,
            quiet,
            json,
        )
    except typer.Exit as leaving:
        ended = leaving.exit_code in (130, 143)
        raise
    finally:
        if watched is not None:
            _until_closed(watched, quiet or json, ended)


def _until_closed(watched: Live, quiet: bool, ended: bool) -> None:
    """The page stays as long as it is open in a browser, unless the run was `ended` by a signal."""
    try:
        if watched.watchers and not (quiet or ended):
            say("the page stays until it is closed, or Ctrl-C")
        if not ended:
            watched.wait()
    except KeyboardInterrupt:
        pass
    finally:
        watched.close()


def _on_ranks(read: Callable[..., Description]) -> tuple[Description, str]:
    """On rank 0 the run and who lies where; other ranks stay here until it is over."""
    from cosolve.io import load_system

    read_on_ranks = registry.lookup("builders", "ranks")
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
    from cosolve.result.notes import worst_level
    from cosolve.result.store import refuse_unwritable

    if report is not None:
        from cosolve.report.page import as_page

        refuse_unwritable(as_page(report))
    failure: SimulationError | None = None
    try:
        waiting = "choosing method and step" if described.options.method is None else "starting"
        with progress(quiet or json, waiting) as show, told_plainly() as warned:
            result = simulate(show)
    except SimulationError as error:
        if error.result is None:
            raise
        failure, result = error, error.result
    except KeyboardInterrupt as stop:
        words, code = stopped(stop)
        say(f"cosolve: {words}; {_left(described.file, getattr(stop, 'result', None))}", INDENT, err=True)
        raise typer.Exit(code) from None
    from cosolve.result.store import is_in

    kept = described.file is None or is_in(result, described.file)
    if report is not None and (failure is None or len(result) > 1):
        from cosolve.report import write_report

        try:
            write_report(result, report)
        except Exception as error:
            if failure is None:
                raise
            failure.add_note(f"besides: {error}")
    if failure is not None:
        left = f"{span(result)}{_go_on(described.file)}" if kept else "the result of an earlier run"
        there = described.file is None or described.file.exists()
        failure.add_note(f"kept    {described.file}: {left}" if there else "result  none")
    wrong = worst_level(result.notes) == "error"
    if json:
        content = {**_content(described, result, warned, report), "error": failure}
        print_json(command, content, ok=failure is None and not wrong)
    if failure is not None:
        tell(failure)
        raise typer.Exit(3)
    if not (quiet or json):
        _say(described, result, what_ran, report, warned)
    if wrong:
        raise typer.Exit(WRONG)


def _say(described: Description, result: Result, what_ran: str, report: Path | None, warned: list[str]) -> None:
    """How a run went, what it has left, and what to do next; what it has `warned` of was said, but for errors."""
    said = [str(note) for note in result.notes if note.level == "warning" and note.sentence in warned]
    stats = "\n".join(line for line in str(result.stats).splitlines() if line not in said)
    how = "ended early" if result.ended else "finished"
    lines = [f"{what_ran or result.method.label} {how}: {span(result)}", *stats.splitlines()]
    if result.error_bar is not None:
        lines.append(result.error_bar.sentence)
    if changed := _changed(described.changes, ("--set", "--input", "--isolated")):
        lines.append(f"changed {changed}")
    if "choice" in result.meta:
        lines.append(f"chosen  {result.meta['choice']}")
    lines += [f"{what:<7} {path}" for what, path in _written(described, report).items() if path is not None]
    lines += [f"log     {path}" for path, _ in described.changes.get("logs", {}).values()]
    lines += [f"next    {line}" for line in next_steps(described, result, report)]
    say("\n".join(lines), INDENT)


def _left(file: Path | None, result: Result | None) -> str:
    """What a run leaves that was ended."""
    from cosolve.result.store import is_in

    if result is None or not len(result) or (file is not None and not is_in(result, file)):
        return "nothing was computed yet"
    return f"what was computed so far is in {file}{_go_on(file)}"


def _written(described: Description, report: Path | None) -> dict[str, Path | None]:
    """The files that a run leaves, by what they are."""
    output = described.output
    return {
        "result": described.file,
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
        words = f"{file} {_changed(described.changes, ('--method', '--degree', '--step'))}".rstrip()
        found.append(f"cosolve check {words}: is the step stable, and which method would be?")
    elif worst_level(result.notes) != "info":
        found.append(f"cosolve compare {file}: which method reaches the tolerance with this step?")
    if report is None:
        found.append(f"cosolve report {_typed(described.file)}: a page with curves, steps and residuals")
    if coupled and result.error_bar is None and worst_level(result.notes) == "info":
        words = f"{file} {_changed(described.changes)}".rstrip()
        found.append(f"cosolve run {words} --error-bar: how accurate is it?")
    return found


def _changed(changes: Mapping[str, Any], only: Collection[str] = ()) -> str:
    """What the command line has changed of a model and its run, as one types it; `only` these options."""
    from shlex import quote

    found = [("--set", f"{key}={_plain(value)}") for key, value in changes.get("values", {}).items()]
    found += [("--input", words) for words in changes.get("inputs", [])]
    found += [("--isolated", "")] if changes.get("isolated") else []
    names = {"--method": "method", "--degree": "degree", "--step": "step", "--rtol": "rtol", "--t-end": "t_end"}
    found += [(option, str(changes[name])) for option, name in names.items() if name in changes]
    given = [(option, value) for option, value in found if not only or option in only]
    return " ".join(f"{option} {quote(value)}" if value else option for option, value in given)


def _plain(value: Any) -> str:
    """A value as it is given after `--set`."""
    from json import dumps

    return value if isinstance(value, str) else dumps(value)


def _typed(path: Path | None) -> str:
    """A path as one would type it here."""
    from shlex import quote

    absolute = Path(path or _DEFAULT_RESULT).absolute()
    return quote(str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else absolute))


def _go_on(file: Path | None) -> str:
    """How a run can be continued that has left a state."""
    from cosolve.state.state_writer import state_path

    return f"; go on with: cosolve resume {file}" if file is not None and state_path(file).exists() else ""


def _shown(described: Description, name: str) -> str:
    """A quantity to draw; of a single subsystem its name is enough."""
    from cosolve.basics.wording import suggest
    from cosolve.run import Selection

    known = list(Selection(described.system.plan(), described.options.record).channels)
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
