"""`cosolve report`: a page to look at from a result file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    file: Annotated[Path, typer.Argument(metavar="RESULT", help="Result file (.h5).", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write it.", show_default="RESULT with .html")
    ] = None,
) -> None:
    """Make a report to look at from a result."""
    from cosolve.report import write_report
    from cosolve.result.store import load

    typer.echo(f"report  {write_report(load(file), out or file.with_suffix('.html'))}")
