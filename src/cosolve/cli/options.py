"""What several commands take, and the file that they are about with what the command line changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cosolve.cli.completing import methods
from cosolve.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cosolve.io import Description

SystemFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="System file (TOML), an SSP (.ssp, .ssd), or an FMU.", show_default=False),
]
MethodOption = Annotated[
    str | None,
    typer.Option(
        "--method",
        help="Use this method instead: name, name:degree (semi-implicit:2), or auto.",
        autocompletion=methods,
    ),
]
DegreeOption = Annotated[int | None, typer.Option("--degree", help="Use this degree instead.")]
StepOption = Annotated[float | None, typer.Option("--step", help="Use this macro step instead.")]
RtolOption = Annotated[
    float | None,
    typer.Option("--rtol", help="Choose method and step so that the coupling error is below this part of an output."),
]
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


#: What `--error-bar` may be followed by, and what it is without that.
SURE: Final = "sure"
PLAIN: Final = "plain"


def with_word(args: list[str]) -> list[str]:
    """The arguments of `cosolve run` with a word after every `--error-bar`, which may stand alone.

    >>> with_word(["run", "--error-bar", "a.toml"]), with_word(["run", "a.toml", "--error-bar", "sure"])
    (['run', '--error-bar=plain', 'a.toml'], ['run', 'a.toml', '--error-bar=sure'])
    """
    if "run" not in args[:2]:
        return args
    found: list[str] = []
    for arg in args:
        if arg == "--error-bar":
            found.append(f"--error-bar={PLAIN}")
        elif arg == SURE and found and found[-1] == f"--error-bar={PLAIN}":
            found[-1] = f"--error-bar={SURE}"
        else:
            found.append(arg)
    return found


def is_fmu(file: Path) -> bool:
    """True for an FMU, packed or unpacked."""
    return file.suffix.lower() == ".fmu" or (file / "modelDescription.xml").is_file()


def read_file(
    file: Path,
    method: str | None,
    degree: int | None,
    step: float | None,
    t_end: float | None,
    *,
    load: Callable[[Path], Description] | None = None,
    **others: Any,
) -> Description:
    """The system file (which `load` reads) with what the command line changes."""
    from cosolve.io import load_system
    from cosolve.io.source import read_any

    changes = {"method": method, "degree": degree, "step": step, "t_end": t_end, **others}
    return read_any(file, changes, load or load_system)


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
