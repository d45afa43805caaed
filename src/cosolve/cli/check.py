"""`cosolve check`: whether the method and the macro step will work, said before the run."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from cosolve.cli.options import DegreeOption, MethodOption, StepOption, SystemFile, read_file
from cosolve.cli.screen import JsonOption, print_json
from cosolve.errors import SetupError

if TYPE_CHECKING:
    from cosolve.stepsize import Adaptive


def check(
    file: SystemFile,
    method: MethodOption = None,
    degree: DegreeOption = None,
    step: StepOption = None,
    json: JsonOption = False,
) -> None:
    """Say before the run whether the method and the macro step will work."""
    from cosolve.analysis import check as advise

    described = read_file(file, method, degree, step, None)
    if described.method is None:
        raise SetupError(f"'{file}' leaves the method open, and a check is about one; write --method jacobi:2, say")
    advice = advise(described.system, described.method, _first_step(described.step))
    if json:
        content = {
            "file": file,
            "method": described.method.label,
            "step": _first_step(described.step),
            "radius": advice.radius,
            "findings": [asdict(finding) for finding in advice.findings],
        }
        print_json("check", content, ok=advice.ok)
    else:
        typer.echo(str(advice))
    if not advice.ok:
        raise typer.Exit(1)


def _first_step(step: float | Adaptive | None) -> float | None:
    return step if step is None or isinstance(step, (int, float)) else step.first_step
