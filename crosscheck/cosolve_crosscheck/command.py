"""`cosolve crosscheck`: every FMU and SSP of a folder, here and with FMPy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cosolve.cli.screen import JsonOption, print_json, progress


def crosscheck(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with FMUs and SSPs.", show_default=False)],
    json: JsonOption = False,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Also write the table as Markdown.")] = None,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds for each run.")] = 60.0,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Cases at a time.", show_default="processors, at most 4")
    ] = None,
    max_steps: Annotated[int, typer.Option("--max-steps", help="Communication steps at most.")] = 500,
) -> None:
    """Run every FMU and SSP of a folder here and with FMPy, and compare the numbers."""
    from rich.console import Console

    from cosolve.basics.atomic_files import replacing
    from cosolve.result.store import refuse_unwritable
    from cosolve_crosscheck import crosscheck as compare_all

    if markdown is not None:
        refuse_unwritable(markdown)
    with progress(hidden=False) as show:
        found = compare_all(folder, timeout=timeout, jobs=jobs, max_steps=max_steps, progress=show)
    if markdown is not None:
        with replacing(markdown) as draft:
            draft.write_text(found.markdown(), encoding="utf-8")
    if json:
        print_json("crosscheck", found.to_dict(), ok=found.good)
    else:
        found.show(Console())
    if not found.good:
        raise typer.Exit(1)
