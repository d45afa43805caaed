"""How commands show things: warnings as sentences, a progress bar, tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from cosolve.errors import AccuracyWarning, StabilityWarning

if TYPE_CHECKING:
    from rich.console import Console

_WIDE = 1000


@contextmanager
def told_plainly() -> Iterator[None]:
    """Warnings about stability and accuracy as sentences on stderr, when they come up."""
    import warnings

    told = (StabilityWarning, AccuracyWarning)
    with warnings.catch_warnings():
        for kind in told:
            warnings.simplefilter("always", kind)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **rest: Any) -> None:
            if issubclass(category, told):
                typer.echo(f"cosolve: warning: {message}", err=True)
            else:
                usual(message, category, *where, **rest)

        warnings.showwarning = show  # put back by catch_warnings
        yield


@contextmanager
def progress(hidden: bool) -> Iterator[Callable[[float], None] | None]:
    """A progress bar on a terminal, nothing elsewhere."""
    if hidden or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

    with Progress(
        BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task("run", total=1.0)
        yield lambda fraction: bar.update(task, completed=fraction)


def console() -> Console:
    """For tables: as wide as the terminal; elsewhere as wide as they are, so that no name is broken."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=_WIDE)
