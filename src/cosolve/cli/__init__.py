"""The command line: `cosolve run`, `resume`, `view`, `check`, `compare`, `report`, `export`, `inspect` and so on.

One module per command; `options.py` holds what several of them take, `screen.py` how they show things. Imports happen
inside the commands, so that help is quick. Everything cosolve refuses on purpose ends in one sentence on stderr: exit
code 1 when `check` advises against a run or `crosscheck` finds a difference, 2 when a run cannot start, 3 when it
stopped early (what there is of the result is kept).
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cosolve.cli.check import check
from cosolve.cli.compare import compare
from cosolve.cli.crosscheck import crosscheck
from cosolve.cli.demo import demo
from cosolve.cli.export import export
from cosolve.cli.inspect import inspect
from cosolve.cli.options import with_word
from cosolve.cli.precice import app as precice
from cosolve.cli.report import report
from cosolve.cli.resume import resume
from cosolve.cli.run import run
from cosolve.cli.schema import schema
from cosolve.cli.serve import serve
from cosolve.cli.view import view
from cosolve.errors import CosolveError, SimulationError

__all__ = ["app", "main"]


class Group(TyperGroup):
    """Turns cosolve's errors into one sentence and an exit code; takes --debug at any place."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        args = with_word(args)
        if "--debug" in args:
            args = ["--debug", *(arg for arg in args if arg != "--debug")]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except CosolveError as error:
            if ctx.params.get("debug"):
                raise
            from cosolve.process.mpi import told_rank

            if told_rank() == 0:  # the other ranks of a job have nothing else to say
                typer.echo("\n".join([f"cosolve: {error}", *getattr(error, "__notes__", [])]), err=True)
            raise typer.Exit(3 if isinstance(error, SimulationError) else 2) from None


def start(
    version: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of errors.")] = False,
) -> None:
    """Couple simulation solvers and run them together in time."""
    if version:
        from cosolve import __version__

        typer.echo(f"cosolve {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback(invoke_without_command=True)(start)
for _command in (run, resume, view, check, compare, report, export, inspect, schema, crosscheck, serve):
    app.command()(_command)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(demo)
app.add_typer(precice, name="precice")


def main() -> None:
    """The entry point of the `cosolve` command."""
    app()
