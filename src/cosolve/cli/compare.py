"""`cosolve compare`: one system, several methods, a table of accuracy and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cosolve.basics.error_location import raised_at
from cosolve.cli.options import EndOption, StepOption, SystemFile, read_file
from cosolve.cli.screen import INDENT, NARROW, JsonOption, console, print_json, progress, say
from cosolve.errors import SetupError

if TYPE_CHECKING:
    from rich.table import Table

    from cosolve.analysis.compare import Comparison, Entry
    from cosolve.io import Description
    from cosolve.method import Method


def compare(
    file: SystemFile,
    methods: Annotated[
        str, typer.Option("--methods", "--method", "-m", help="Methods to run, as name:degree with commas between.")
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
    json: JsonOption = False,
) -> None:
    """Run a system with several methods and compare accuracy and cost.

    Leaves with exit code 3 where none of them could run to the end.
    """
    from cosolve.analysis.compare import compare as run_all
    from cosolve.method.named import as_method

    described = read_file(file, step=step, t_end=t_end)
    chosen = [as_method(words.strip()) for words in methods.split(",") if words.strip()]
    if not chosen:
        raise SetupError("--methods names no method; write it as jacobi:1,semi-implicit:1")
    against = None if reference is None else _reference(reference)
    with progress(json, f"{len(chosen)} methods and the run to compare them with") as show:
        found = run_all(
            described.system,
            chosen,
            t_end=described.options.t_end,
            step=described.options.step,
            reference=against,
            progress=show,
            t_start=described.options.t_start,
            startup=described.options.startup,
            workers=described.options.workers,
        )
    good = not all(entry.failure for entry in found.entries)
    if json:
        print_json("compare", _content(found, described), ok=good)
    else:
        _print_comparison(found, described)
    if not good:
        raise typer.Exit(3)


def _content(found: Comparison, described: Description) -> dict[str, Any]:
    step = described.options.step
    return {
        "file": described.path,
        "step": step if step is None or isinstance(step, (int, float)) else repr(step),
        "t_start": described.options.t_start,
        "t_end": described.options.t_end,
        "reference": found.reference,
        "methods": [
            {
                "method": entry.label,
                "finished": _state(entry),
                "error": entry.error,
                "worst": entry.worst or None,
                "calls": entry.stats.total_calls,
                "corrections": entry.stats.iterations,
                "steps": entry.stats.steps,
                "seconds": entry.stats.wall_seconds,
                "failure": entry.failure,
            }
            for entry in found.entries
        ],
    }


def _state(entry: Entry) -> str:
    """How a run went, in one word."""
    if entry.refused or entry.failure:
        return "refused" if entry.refused else "stopped"
    return "grew" if entry.stats.note("growth") else "yes"


def _reference(words: str) -> tuple[Method, float]:
    from cosolve.method.named import as_method

    name, _, step = words.partition("@")
    try:
        return as_method(name), float(step)
    except ValueError as error:
        if isinstance(error, SetupError):
            raise
        raise SetupError(f"'{words}': write the reference as method:degree@step, e.g. implicit:2@1e-5") from None


def _print_comparison(found: Comparison, described: Description) -> None:
    run = described.options
    title = f"{described.path.name}, step {run.step}, t = {run.t_start:g} ... {run.t_end:g}"
    if console().width < NARROW:
        say("\n".join([title, *map(_in_words, found.entries)]), INDENT)
    else:
        console().print(_table(title, found))
    if found.error is None:
        say(f"error: largest over time, relative to the largest value of the output, against {found.reference}")
    else:
        say(f"no errors: the run to compare with, {found.reference}, has stopped")
    stopped: dict[str, list[str]] = {}
    for entry in found.entries:
        if entry.failure:
            stopped.setdefault(entry.failure, []).append(entry.label)
    for failure, labels in stopped.items():
        say(f"{', '.join(labels)}: {failure}")
    if found.error is not None and (place := raised_at(found.error)):
        say(f"raised  {place}")


_HEADINGS = ("method", "finished", "error", "in", "calls", "iter.", "seconds")


def _cells(entry: Entry) -> tuple[str, ...]:
    error = f"{entry.error:.2e}" if entry.error == entry.error else "-"
    stats = entry.stats
    counts = ("-",) * 3 if entry.refused else (stats.total_calls, stats.iterations, f"{stats.wall_seconds:.3g}")
    return (entry.label, _state(entry), error, entry.worst or "-", *map(str, counts))


def _in_words(entry: Entry) -> str:
    """One row, for a terminal too narrow for a table."""
    cells = dict(zip(_HEADINGS, _cells(entry), strict=True))
    about = ", ".join(f"{heading} {cells[heading]}" for heading in _HEADINGS[1:] if cells[heading] != "-")
    return f"{entry.label}: {about}"


def _table(title: str, found: Comparison) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for heading in _HEADINGS:
        left = heading in ("method", "finished", "in")
        table.add_column(heading, justify="left" if left else "right", no_wrap=heading == "method", overflow="fold")
    for entry in found.entries:
        table.add_row(*_cells(entry))
    return table
