"""`cosolve compare`: one system, several methods, a table of accuracy and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cosolve.cli.options import EndOption, StepOption, SystemFile, read_file
from cosolve.cli.screen import JsonOption, console, print_json, progress
from cosolve.errors import SetupError

if TYPE_CHECKING:
    from cosolve.analysis.compare import Comparison, Entry
    from cosolve.io import Description
    from cosolve.method import Method


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
    json: JsonOption = False,
) -> None:
    """Run a system with several methods and compare accuracy and cost."""
    from cosolve.analysis.compare import compare as run_all
    from cosolve.method.named import as_method

    described = read_file(file, None, None, step, t_end)
    chosen = [as_method(words.strip()) for words in methods.split(",") if words.strip()]
    if not chosen:
        raise SetupError("--methods names no method; write it as jacobi:1,semi-implicit:1")
    against = None if reference is None else _reference(reference)
    with progress(json, f"{len(chosen)} methods and the run to compare them with") as show:
        found = run_all(
            described.system,
            chosen,
            t_end=described.t_end,
            step=described.step,
            reference=against,
            progress=show,
            t_start=described.t_start,
            startup=described.startup,
            workers=described.workers,
        )
    if json:
        print_json("compare", _content(found, described), ok=True)
    else:
        _print_comparison(found, described)


def _content(found: Comparison, described: Description) -> dict[str, Any]:
    step = described.step
    return {
        "file": described.path,
        "step": step if step is None or isinstance(step, (int, float)) else repr(step),
        "t_start": described.t_start,
        "t_end": described.t_end,
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
        error = f"{entry.error:.2e}" if entry.error == entry.error else "-"
        stats = entry.stats
        counts = ("-",) * 3 if entry.refused else (stats.total_calls, stats.iterations, f"{stats.wall_seconds:.3g}")
        table.add_row(entry.label, _state(entry), error, entry.worst or "-", *map(str, counts))
    console().print(table)
    typer.echo(f"error: largest over time, relative to the largest value of the output, against {found.reference}")
    for entry in found.entries:
        if entry.failure:
            typer.echo(f"{entry.label}: {entry.failure}")
