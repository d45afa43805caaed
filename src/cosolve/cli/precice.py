"""`cosolve precice`: couples solvers adapted to preCICE 3."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cosolve.errors import SetupError

app = typer.Typer(no_args_is_help=True, help="Couple solvers adapted to preCICE 3.")


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="CONFIG", help="Configuration file (XML).", show_default=False)],
    participants: Annotated[
        list[str] | None,
        typer.Option("--participant", "-p", metavar="NAME=COMMAND", help="A participant and its command; repeat it."),
    ] = None,
    patience: Annotated[float, typer.Option("--patience", help="Seconds that participants may take to connect.")] = 60.0,
    logs: Annotated[Path | None, typer.Option("--logs", help="Folder for what the programs print.")] = None,
    tcp: Annotated[bool, typer.Option("--tcp", help="Use a TCP port of this machine instead of a local socket.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless something is wrong.")] = False,
) -> None:
    """Couple participants as their configuration file says.

    Those without a command are started elsewhere; they find the hub beside the file.
    """
    from cosolve.precice.running import run_configuration

    commands = named_commands(participants or [])
    coupling = run_configuration(file, commands, patience=patience, logs=logs, tcp=tcp)
    if not quiet:
        for name, member in coupling.members.items():
            counts = member.recorder.counts
            taken = f", {sum(counts)} iterations" if counts else ""
            typer.echo(f"{name}: t = {member.time:.9g}, {max(side.window for side in member.sides) - 1} windows{taken}")


@app.command()
def path() -> None:
    """Print the folder that makes `import precice` find cosolve: PYTHONPATH=$(cosolve precice path)."""
    from cosolve.precice.running import OPT_IN

    typer.echo(str(OPT_IN))


def named_commands(words: list[str]) -> dict[str, str]:
    """`NAME=COMMAND` by name."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, command = word.partition("=")
        if not (name.strip() and equals and command.strip()):
            raise SetupError(f"-p {word}: write it as -p NAME='COMMAND'")
        if name.strip() in found:
            raise SetupError(f"-p {word}: '{name.strip()}' has two commands")
        found[name.strip()] = command.strip()
    return found
