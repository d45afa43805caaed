"""What several commands take, and the file that they are about with what the command line changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
        "-m",
        help="Use this method instead: name, name:degree (semi-implicit:2), module:Class, or auto.",
        autocompletion=methods,
    ),
]
DegreeOption = Annotated[int | None, typer.Option("--degree", help="Use this degree instead.")]
StepOption = Annotated[float | None, typer.Option("--step", help="Use this macro step instead.")]
EndOption = Annotated[float | None, typer.Option("--t-end", help="Use this end time instead.")]


def is_fmu(file: Path) -> bool:
    """True for an FMU, packed or unpacked."""
    return file.suffix.lower() == ".fmu" or (file / "modelDescription.xml").is_file()


def read_file(file: Path, *, load: Callable[[Path], Description] | None = None, **changes: Any) -> Description:
    """The system file (which `load` reads) with what the command line changes."""
    from cosolve.io import load_system
    from cosolve.io.source import read_any

    return read_any(file, changes, load or load_system)


def observer(words: str) -> dict[str, Any]:
    """An observer from `name key=value ...`.

    >>> observer("fields path=plate.vtkhdf of=plate every=5")
    {'name': 'fields', 'path': 'plate.vtkhdf', 'of': 'plate', 'every': 5}
    """
    name, *options = words.split()
    return {"name": name, **assignments(options, "--observer")}


def assignments(words: list[str], option: str) -> dict[str, Any]:
    """`name=value` as a dict; values are numbers, several numbers (an array), true or false, lists or tables, or texts.

    >>> assignments(["a=1", "b=1e-3, 2", "c=[true]", "d=jacobi:1"], "--set")
    {'a': 1, 'b': [0.001, 2.0], 'c': [True], 'd': 'jacobi:1'}
    """
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not (name.strip() and equals and text.strip()):
            raise SetupError(f"{option} {word}: write it as {option} name=value")
        found[name.strip()] = _value(text.strip())
    return found


def _value(text: str) -> Any:
    if text[0] in "[{\"'":  # as in a system file
        from tomllib import TOMLDecodeError, loads

        try:
            return loads(f"value = {text}")["value"]
        except TOMLDecodeError:
            return text
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
