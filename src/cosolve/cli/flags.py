"""Flags of the command line for run options, made from the list of these (`cosolve/options.py`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from cosolve.cli.completing import methods
from cosolve.errors import SetupError
from cosolve.options import KnownOption, RunOptions, known_options

#: What `--error-bar` may be followed by, and what it is without that.
SURE: Final = "sure"
PLAIN: Final = "plain"

_KINDS = (("Path", Path), ("str", str), ("MethodLike", str), ("Startup", str), ("Literal", str))
_NUMBERS = (("float", float), ("int", int), ("bool", bool))


def run_flags(*only: str, after: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the flags of run options, all of them or `only` some, behind its parameter `after`.

    The command gets those that were given as `**options`.
    """

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        plain = inspect.signature(command, eval_str=True)
        wanted = {n: known for n, known in known_options(RunOptions).items() if known.about.flag and n in (only or [n])}
        own = [one for one in plain.parameters.values() if one.kind is not one.VAR_KEYWORD]
        place = [one.name for one in own].index(after) + 1
        made = [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=_hint(known))
            for name, known in wanted.items()
        ]

        @wraps(command)
        def called(**values: Any) -> None:
            given = {name: values.pop(name) for name in wanted}
            command(**values, **{name: _value(name, each) for name, each in given.items() if each is not None})

        called.__signature__ = plain.replace(parameters=own[:place] + made + own[place:])  # type: ignore[attr-defined]
        return called

    return decorated


def _hint(known: KnownOption) -> Any:
    """The type of a flag, and how help shows it."""
    kind = next(kind for name, kind in _KINDS + _NUMBERS if name in known.type)
    flag = known.flag
    if kind is bool and known.default is None:
        flag += "/--no-" + flag.removeprefix("--")
    about = known.about
    said = about.help.replace("`", "").partition(". ")[0].removesuffix(".") + "."
    shown: dict[str, Any] = {"min": about.least} if about.least is not None else {}
    if "Literal" in known.type:
        shown["metavar"] = f"[{SURE}]"
    flags = [flag]
    if known.name == "method":
        shown["autocompletion"] = methods
        flags.append("-m")
    return Annotated[kind | None, typer.Option(*flags, help=said, **shown)]


def _value(name: str, given: Any) -> Any:
    if name != "error_bar":
        return str(given) if isinstance(given, Path) else given
    if given not in (SURE, PLAIN):
        raise SetupError(f"--error-bar {given}: write --error-bar, or --error-bar sure")
    return SURE if given == SURE else True


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
