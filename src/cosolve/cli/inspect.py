"""`cosolve inspect`: what an FMU is, and with --try what it is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cosolve.cli.screen import JsonOption, console, print_json
from cosolve.errors import SetupError


def inspect(
    file: Annotated[
        Path, typer.Argument(metavar="FMU", help="FMU (none of its code is run but with --try).", show_default=False)
    ],
    json: JsonOption = False,
    tried: Annotated[
        bool, typer.Option("--try", help="Run it in a process of its own and say which of its claims hold.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="With --try: keep what was found (.json) for later runs.")
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", help="With --try: seconds that one claim may take.")] = 60.0,
) -> None:
    """Show what an FMU is and which coupling methods it can take part in.

    Leaves with exit code 1 where --try finds that a claim does not hold.
    """
    from cosolve.fmu.inspection import Inspection, inspect_fmu
    from cosolve.fmu.trial import Trial, try_fmu

    found: Inspection | Trial = try_fmu(file, timeout=timeout) if tried else inspect_fmu(file)
    if out is not None:
        if not isinstance(found, Trial):
            raise SetupError("--out keeps what --try found; give both")
        found.write(out)
    good = not isinstance(found, Trial) or found.good
    if json:
        print_json("inspect", found.to_dict(), ok=good)
    else:
        found.show(console())
    if not good:
        raise typer.Exit(1)
