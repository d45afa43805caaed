"""`cosolve export`: a system or a Python subsystem as an FMU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cosolve.cli.options import MethodOption, StepOption, assignments
from cosolve.cli.screen import INDENT, JsonOption, print_json, say
from cosolve.errors import SetupError


def export(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="System file (TOML), SSP, or model.py:function.", show_default=False)
    ],
    out: Annotated[Path, typer.Argument(metavar="FMU|SSP", help="The FMU to write, or an SSP.", show_default=False)],
    fmi: Annotated[str, typer.Option("--fmi", help="Version of FMI: 2.0 or 3.0.")] = "2.0",
    inputs: Annotated[
        list[str] | None, typer.Option("--only-input", metavar="NAME", help="Offer only this input; repeat it.")
    ] = None,
    outputs: Annotated[
        list[str] | None, typer.Option("--only-output", metavar="NAME", help="Offer only this output; repeat it.")
    ] = None,
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
    json: JsonOption = False,
) -> None:
    """Write a system or a Python subsystem as a co-simulation FMU, with the files that it needs; or FMUs as an SSP."""
    if out.suffix.lower() == ".ssp":
        only_fmu = {"--only-input": inputs, "--only-output": outputs, "--parameter": parameters, "--file": files}
        if misplaced := [option for option, value in only_fmu.items() if value]:
            raise SetupError(f"{misplaced[0]} is for FMUs; an SSP holds the system with all of it")
        _write_ssp(Path(source), out, method, step)
        if json:
            print_json("export", {"source": source, "ssp": out}, ok=True)
        else:
            say(f"ssp     {out}", INDENT)
        return
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
    if json:
        print_json("export", {"source": source, "fmu": made, "packed": list(packed_files(made))}, ok=True)
    else:
        say(f"fmu     {made}\npacked  {', '.join(packed_files(made))}", INDENT)


def _write_ssp(source: Path, out: Path, method: str | None, step: float | None) -> None:
    """A system file of FMUs as an SSP, with its run."""
    from cosolve.cli.options import read_file
    from cosolve.io.ssp import write_ssp

    if source.suffix != ".toml":
        raise SetupError(f"an SSP is written from a system file (.toml), and '{source}' is none")
    described = read_file(source, method=method, step=step)
    run = described.options
    write_ssp(
        *(described.system, out),
        method=run.method,
        step=run.step,
        rtol=run.rtol,
        t_start=run.t_start,
        t_end=run.t_end,
    )
