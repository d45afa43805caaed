"""`cosolve export`: a system or a Python subsystem as an FMU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cosolve.cli.options import MethodOption, StepOption, assignments


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
    from cosolve.method.named import as_method

    version: Any = fmi
    made = export_fmu(
        source,
        out,
        version=version,
        method=None if method is None else as_method(method),
        step=step,
        inputs=inputs,
        outputs=outputs,
        parameters=assignments(parameters, "--parameter") if parameters else None,
        files=files or (),
    )
    typer.echo(f"fmu     {made}\npacked  {', '.join(packed_files(made))}")
