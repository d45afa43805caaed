"""`cosolve check`: whether the method and the macro step will work, said before the run."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from cosolve.cli.options import DegreeOption, MethodOption, StepOption, SystemFile, read_file
from cosolve.cli.screen import JsonOption, print_json, progress, say
from cosolve.errors import SetupError

if TYPE_CHECKING:
    from cosolve.stepsize import Adaptive


def check(
    file: SystemFile,
    method: MethodOption = None,
    degree: DegreeOption = None,
    step: StepOption = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="Time that trials may take (30); what is found by then is said.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Say before the run whether the method and the macro step will work."""
    from cosolve.analysis.advice import Advice, examine
    from cosolve.method.named import as_method

    described = read_file(file, method=method, degree=degree, step=step)
    options = described.options
    if options.method is None:
        raise SetupError(f"'{file}' leaves the method open, and a check is about one; write --method jacobi:2, say")
    taken, advice = as_method(options.method), Advice()
    try:
        with progress(json, "trying macro steps") as show:
            tell = show.say if show else None
            examine(advice, described.system, taken, _first_step(options.step), tell, seconds)
    except KeyboardInterrupt:
        if advice.findings and not json:
            say(f"{advice}\nfound before it was ended; there may be more", 7)
        raise
    if json:
        content = {
            "file": file,
            "method": taken.label,
            "step": _first_step(options.step),
            "radius": advice.radius,
            "findings": [asdict(finding) for finding in advice.findings],
        }
        print_json("check", content, ok=advice.ok)
    else:
        say(str(advice), 7)
    if not advice.ok:
        raise typer.Exit(1)


def _first_step(step: float | Adaptive | None) -> float | None:
    return step if step is None or isinstance(step, (int, float)) else step.first_step
