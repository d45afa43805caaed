"""The commands of `cosolve`: those that are registered, each imported when it is used or listed (`basics/registry.py`).

A command is a function with typer's annotations, or a `typer.Typer`; `cosolve package.module:function` needs no name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import Any

import typer
from typer.main import get_command

from cosolve.basics import registry
from cosolve.errors import SetupError


class Commands(Mapping[str, Any]):
    """All commands by name, made when they are looked up; one that cannot be imported says so when it is called."""

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(registry.names("commands")))

    def __len__(self) -> int:
        return len(registry.names("commands"))

    def __getitem__(self, name: str) -> Any:
        if ":" in name:
            return built(name, registry.lookup("commands", name))
        entry = registry.entry_of("commands", name)
        if entry is None:
            raise KeyError(name)
        owner = registry.package(entry)
        panel = None if owner == "cosolve" else f"Commands of the package {owner}"
        try:
            return built(entry.name, registry.load("commands", entry), panel)
        except SetupError as error:
            return built(entry.name, _refusing(error), panel, context_settings=_ANYTHING)


_ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}


def _refusing(error: SetupError) -> Callable[[], None]:
    def refuse() -> None:
        raise error

    refuse.__doc__ = f"Cannot be used: {error}"
    return refuse


def built(name: str, found: Any, panel: str | None = None, **options: Any) -> Any:
    """The command that a function or a `typer.Typer` stands for; `panel` is where help lists it."""
    holder = typer.Typer(add_completion=False)
    holder.callback()(lambda: None)
    if not isinstance(found, typer.Typer):
        holder.command(name, rich_help_panel=panel, **options)(found)
    elif len(found.registered_commands) == 1 and not found.registered_groups and found.registered_callback is None:
        only = copy(found.registered_commands[0])
        only.name, only.rich_help_panel = name, panel
        holder.registered_commands.append(only)
    else:
        holder.add_typer(found, name=name, rich_help_panel=panel)
    return get_command(holder).commands[name]  # type: ignore[attr-defined]
