"""`cosolve new`: a folder with a coupled system that runs, from a template or around FMUs that are there."""

from __future__ import annotations

import shutil
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from cosolve.cli.completing import templates
from cosolve.cli.screen import INDENT, JsonOption, print_json, say
from cosolve.errors import SetupError


def new(
    folder: Annotated[Path, typer.Argument(metavar="NAME", help="Folder to make.", show_default=False)],
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            "-t",
            help="fmu-pair, python-pair, toml or ssp.",
            show_default="fmu-pair",
            autocompletion=templates,
        ),
    ] = None,
    fmus: Annotated[
        list[Path] | None,
        typer.Option("--fmu", metavar="FILE", help="Instead: couple this FMU of yours; repeat it for several."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make a project that runs, to change into your own: two coupled models from a template, or FMUs of yours."""
    from cosolve.basics.wording import suggest
    from cosolve.cli.templates import TEMPLATES

    if fmus and template is not None:
        raise SetupError("--template and --fmu exclude each other: a template brings its own models")
    name = template or "fmu-pair"
    if name not in TEMPLATES:
        raise SetupError(f"there is no template '{name}'; {suggest(name, list(TEMPLATES))}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SetupError(f"'{folder}' is there already and not empty; give another name, or empty it first")
    there_before = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if fmus:
            commands = _around(fmus, folder)
        else:
            TEMPLATES[name].write(folder)
            commands = TEMPLATES[name].commands
    except BaseException as error:  # Ctrl-C too
        _undo(folder, there_before)
        if isinstance(error, OSError):
            raise SetupError(f"cannot make '{folder}': {error.strerror or error}") from None
        raise
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)  # of models that were imported for their FMUs
    made = sorted(path.name for path in folder.iterdir())
    following = [f"cd {quote(str(folder))}", *commands]
    if json:
        print_json("new", {"folder": folder, "made": made, "next": following}, ok=True)
        return
    say(f"made    {folder}: {', '.join(made)}", INDENT)
    for command in following:
        say(f"next    {command}", INDENT)


def _around(fmus: list[Path], folder: Path) -> list[str]:
    from cosolve.cli.fmu_system import FmuSystem

    system = FmuSystem(fmus, folder)
    for file in system.files:
        shutil.copy(file, folder / file.name)
    (folder / "system.toml").write_text(system.text(), encoding="utf-8")
    open_inputs = [f"(look at system.toml: {system.remark})"] if system.remark else []
    return [*open_inputs, "cosolve check system.toml", "cosolve run system.toml --report report.html"]


def _undo(folder: Path, there_before: bool) -> None:
    """Leave nothing half made behind."""
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not there_before:
        folder.rmdir()
