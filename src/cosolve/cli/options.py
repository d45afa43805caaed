"""What several commands take, and the file that they are about with what the command line changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cosolve.errors import SetupError

if TYPE_CHECKING:
    from cosolve.io import Description

SystemFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="System file (TOML), an SSP (.ssp, .ssd), or an FMU.", show_default=False),
]
MethodOption = Annotated[
    str | None, typer.Option("--method", help="Use this method instead: name or name:degree, e.g. semi-implicit:2.")
]
DegreeOption = Annotated[int | None, typer.Option("--degree", help="Use this degree instead.")]
StepOption = Annotated[float | None, typer.Option("--step", help="Use this macro step instead.")]
MaxStepsOption = Annotated[int | None, typer.Option("--max-steps", help="End the run after so many macro steps.")]
StateEveryOption = Annotated[
    str | None,
    typer.Option(
        "--state-every",
        metavar="STEPS|TIME",
        help="Write a state every 1000 macro steps, or '30 s', '5 min', '1 h', for cosolve resume.",
    ),
]
EndOption = Annotated[float | None, typer.Option("--t-end", help="Use this end time instead.")]


def is_fmu(file: Path) -> bool:
    """True for an FMU, packed or unpacked."""
    return file.suffix.lower() == ".fmu" or (file / "modelDescription.xml").is_file()


def read_file(
    file: Path, method: str | None, degree: int | None, step: float | None, t_end: float | None, **others: Any
) -> Description:
    """The system file with what the command line changes."""
    from cosolve.io.source import read_any

    return read_any(file, {"method": method, "degree": degree, "step": step, "t_end": t_end, **others})


def assignments(words: list[str], option: str) -> dict[str, Any]:
    """`name=value` as a dict; values are numbers, several numbers (an array), true or false, or texts."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not (name.strip() and equals and text.strip()):
            raise SetupError(f"{option} {word}: write it as {option} name=value")
        found[name.strip()] = _value(text.strip())
    return found


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    parts = text.replace(",", " ").split()
    for kind in (int, float):
        try:
            numbers = [kind(part) for part in parts]
        except ValueError:
            continue
        return numbers[0] if len(numbers) == 1 else numbers
    return text
