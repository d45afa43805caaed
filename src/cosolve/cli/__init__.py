"""The command line: `cosolve new`, `run`, `view`, `check`, `compare`, `report`, `export`, `doctor` and so on.

One module per command; `options.py` holds what several of them take, `screen.py` how they show things. Imports happen
inside the commands, so that help is quick. Everything cosolve refuses on purpose ends in one sentence on stderr: exit
code 1 when `check` advises against a run, `crosscheck` finds a difference or `doctor` something that is broken, 2 when
nothing can start, 3 when a run stopped early (what there is of the result is kept), 130 after Ctrl-C. Commands with
`--json` print one object, also for an error (docs/command-line.md).
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cosolve.cli.check import check
from cosolve.cli.compare import compare
from cosolve.cli.completion import completion
from cosolve.cli.crosscheck import crosscheck
from cosolve.cli.demo import demo
from cosolve.cli.doctor import doctor
from cosolve.cli.export import export
from cosolve.cli.inspect import inspect
from cosolve.cli.new import new
from cosolve.cli.options import with_word
from cosolve.cli.precice import app as precice
from cosolve.cli.report import report
from cosolve.cli.resume import resume
from cosolve.cli.run import run
from cosolve.cli.schema import schema
from cosolve.cli.screen import print_json, tell
from cosolve.cli.serve import serve
from cosolve.cli.view import view
from cosolve.errors import CosolveError, SetupError, SimulationError

__all__ = ["app", "main"]


#: What the command line raises for words that it does not understand.
_Usage: type[Any] = typer.BadParameter.__mro__[1]


class Group(TyperGroup):
    """Turns errors into one sentence and an exit code, with --json into an object too; takes --debug at any place."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        args = with_word(args)
        ctx.meta["cosolve.json"] = "--json" in args
        if "--debug" in args:
            args = ["--debug", *(arg for arg in args if arg != "--debug")]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except CosolveError as error:
            if ctx.params.get("debug"):
                raise
            code = 3 if isinstance(error, SimulationError) else 2
            sentence = error
        except _Usage as misunderstood:  # one sentence instead of a frame
            where = misunderstood.ctx.command_path if misunderstood.ctx else "cosolve"
            text = misunderstood.format_message().rstrip(".").replace("\n", " ")
            code, sentence = 2, SetupError(f"{text}; see {where} --help")
        from cosolve.process.mpi import told_rank

        if told_rank() == 0:  # the other ranks of a job have nothing else to say
            if ctx.meta["cosolve.json"]:
                print_json(ctx.invoked_subcommand or "", {"error": sentence}, ok=False)
            tell(sentence)
        raise typer.Exit(code)


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
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback(invoke_without_command=True)(start)
for _command in (
    *(new, run, resume, view, check, compare, report, export, inspect, schema, crosscheck, serve, doctor),
    completion,
):
    app.command()(_command)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(demo)
app.add_typer(precice, name="precice")


def main() -> None:
    """The entry point of the `cosolve` command."""
    app()
