"""`cosolve report`: a page to look at from a result file, with fields in motion where their files are given."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cosolve.cli.screen import INDENT, JsonOption, print_json, progress, say


def report(
    file: Annotated[Path, typer.Argument(metavar="RESULT", help="Result file (.h5).", show_default=False)],
    fields: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FIELDS]...", help="Fields of the same run (.vtkhdf), shown in motion.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write it.", show_default="RESULT with .html")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make a report to look at from a result, and from fields of the same run."""
    from cosolve.report import write_report
    from cosolve.result.store import load

    with progress(json, "drawing"):
        written = write_report(load(file), out or file.with_suffix(".html"), fields=fields or ())
    if json:
        print_json("report", {"file": file, "report": written}, ok=True)
    else:
        say(f"report  {written}", INDENT)
