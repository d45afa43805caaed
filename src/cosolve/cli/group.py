"""`cosolve` with all its commands: one module per command, found by its entry point (`commands.py`).

`options.py` holds what several of them take, `screen.py` how they show things. Imports happen inside the commands, so
that help is quick. Everything cosolve refuses on purpose ends in one sentence on stderr: exit code 1 when `check`
advises against a run, `crosscheck` finds a difference or `doctor` something that is broken, 2 when nothing can start, 3
when a run stopped early (what there is of the result is kept), 4 when one finished but says that its values cannot be
trusted, 130 after Ctrl-C, 143 after SIGTERM. Commands with `--json` print one object, also for an error
(docs/command-line.md).
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cosolve.basics.signals import ENDS, signals_raise
from cosolve.cli.commands import Commands
from cosolve.cli.flags import with_word
from cosolve.cli.screen import print_json, stopped, tell
from cosolve.errors import CosolveError, SetupError, SimulationError

__all__ = ["app"]

#: What the command line raises for words that it does not understand.
_Usage: type[Any] = typer.BadParameter.__mro__[1]

#: Options in seconds.
_TIMES = ("--t-end", "--step", "--seconds")


def _without_types(parameters: list[Any]) -> list[Any]:
    """Flags take no value, and an option that may be repeated takes one at a time: so help shows them."""
    for parameter in parameters:
        if parameter.metavar is None and getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        elif parameter.metavar is None and getattr(parameter, "multiple", False):
            parameter.metavar = "TEXT"
        elif parameter.nargs == -1:
            parameter.display_type_rich = lambda ctx: None
    return parameters


def _plainer(text: str, words: list[str]) -> str:
    """What the command line says of a value that is no number, in fewer words.

    >>> said = "Invalid value for '--t-end': Input should be a valid number, unable to parse string as a number"
    >>> _plainer(said, ["run", "car.toml", "--t-end", "1s"])
    '--t-end 1s: write a number of seconds, as in --t-end 0.5'
    """
    found = re.match(r"Invalid value for '([^' ]+)[^']*'.*\b(number|float|integer)\b", text)
    if not found:
        return text
    option, kind = found.groups()
    words = [part for word in words for part in word.split("=", 1)]
    given = next((after for word, after in pairwise(words) if word == option), "")
    if kind == "integer":
        return f"{option} {given}: write an integer, as in {option} 1"
    return f"{option} {given}: write a number{' of seconds' if option in _TIMES else ''}, as in {option} 0.5"


class Group(TyperGroup):
    """Turns errors into one sentence and an exit code, with --json into an object too; takes --debug at any place."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = Commands()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        args = with_word(args)
        ctx.meta["cosolve.json"], ctx.meta["cosolve.words"] = "--json" in args, args
        if "--debug" in args:
            args = ["--debug", *(arg for arg in args if arg != "--debug")]
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            for each in (command, *getattr(command, "commands", {}).values()):
                _without_types(each.get_params(ctx))
        return command

    def invoke(self, ctx: Any) -> Any:
        with signals_raise() as came:
            try:
                return self._invoked(ctx)
            except KeyboardInterrupt as stop:
                words, code = stopped(stop)
            except Exception as error:  # C code that was being imported may turn an interrupt into another exception
                if not came or (
                    isinstance(error, typer.Exit) and error.exit_code in (0, *(c for _, c in ENDS.values()))
                ):
                    raise
                words, code = ENDS[came[0]]
            typer.echo(f"cosolve: {words}", err=True)
            raise typer.Exit(code)

    def _invoked(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except CosolveError as error:
            if ctx.params.get("debug"):
                raise
            code = 3 if isinstance(error, SimulationError) else 2
            sentence = error
        except _Usage as misunderstood:  # one sentence instead of a frame
            where = misunderstood.ctx.command_path if misunderstood.ctx else "cosolve"
            text = _plainer(misunderstood.format_message().rstrip(".").replace("\n", " "), ctx.meta["cosolve.words"])
            fmus = [f"--fmu {word}" for word in ctx.meta["cosolve.words"] if word.lower().endswith(".fmu")]
            several = f"FMUs are coupled in a project: cosolve new NAME {' '.join(fmus)}"
            code, sentence = 2, SetupError(f"{text}; {several if len(fmus) > 1 else f'see {where} --help'}")
        from cosolve.basics.launcher import told_rank

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
