"""How commands show things: warnings as sentences, a progress bar, tables, JSON for scripts."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cosolve.errors import AccuracyWarning, StabilityWarning

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from cosolve.run.books import Books

_WIDE = 1000


def tell(error: Exception) -> None:
    """An error as a sentence on stderr, with the notes that it carries."""
    typer.echo("\n".join([f"cosolve: {error}", *getattr(error, "__notes__", [])]), err=True)


@contextmanager
def told_plainly() -> Iterator[list[str]]:
    """Warnings about stability and accuracy as sentences on stderr, when they come up; all that came up."""
    import warnings

    said: list[str] = []

    told = (StabilityWarning, AccuracyWarning)
    with warnings.catch_warnings():
        for kind in told:
            warnings.simplefilter("always", kind)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **rest: Any) -> None:
            if issubclass(category, told):
                said.append(str(message))
                typer.echo(f"cosolve: warning: {message}", err=True)
            else:
                usual(message, category, *where, **rest)

        warnings.showwarning = show  # put back by catch_warnings
        yield said


class Meter:
    """How far a run is, shown as it goes on: rate, corrections per macro step and residual besides the time left.

    Pilot runs of an automatic choice and single runs look alike to it: whatever run keeps books comes into view.
    """

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar, self._task = bar, task
        self._books: Books | None = None
        self._before = perf_counter(), 0, 0  # seconds, macro steps and corrections when it was last shown

    def watch(self, books: Books) -> None:
        """The run begins, and these are its books."""
        self._books = books
        self._before = perf_counter(), books.stats.steps, books.stats.iterations

    def __call__(self, fraction: float) -> None:
        """So much of the run is done."""
        self._bar.update(self._task, completed=fraction, about=self._about())

    def say(self, fraction: float, about: str) -> None:
        """So much of the run is done, and this is to be said beside it."""
        self._bar.update(self._task, completed=fraction, about=about)

    def _about(self) -> str:
        if self._books is None:
            return ""
        stats, (then, steps, iterations) = self._books.stats, self._before
        now = perf_counter()
        self._before = now, stats.steps, stats.iterations
        return live_line(
            stats.steps, stats.steps - steps, now - then, stats.iterations - iterations, self._books.residual
        )


def live_line(steps: int, new: int, seconds: float, corrections: int, residual: float) -> str:
    """What is said beside the bar: steps so far, and of the `new` ones rate, corrections and residual.

    >>> live_line(1200, 100, 0.1, 250, 3e-11), live_line(7, 2, 4.0, 0, float("nan"))
    ('1200 steps, 1,000/s, 2.5 corrections, residual 3e-11', '7 steps, 0.5/s')
    """
    parts = [f"{steps} steps"]
    if new > 0 and seconds > 0:
        parts.append(f"{new / seconds:,.0f}/s" if new > 10 * seconds else f"{new / seconds:.2g}/s")
        if corrections:
            parts.append(f"{corrections / new:.1f} corrections")
    if residual == residual:
        parts.append(f"residual {residual:.0e}")
    return ", ".join(parts)


@contextmanager
def progress(hidden: bool, what: str = "starting") -> Iterator[Meter | None]:
    """A progress bar on a terminal, nothing elsewhere; `what` stands there until something can be counted."""
    if hidden or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    with Progress(
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[about]}", markup=False),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        yield Meter(bar, bar.add_task("run", total=1.0, about=what))


def console() -> Console:
    """For tables: as wide as the terminal; elsewhere as wide as they are, so that no name is broken."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=_WIDE)


JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead, for scripts.")]


def print_json(command: str, content: Mapping[str, Any], *, ok: bool) -> None:
    """One object on stdout, with `cosolve` (the version), `command` and `ok` before what the command has to say.

    Numbers that JSON does not know (NaN, infinity) are null, so that every reader takes it.
    """
    from json import dumps

    from cosolve import __version__

    said = {"cosolve": __version__, "command": command, "ok": ok, **content}
    typer.echo(dumps(plain(said), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """Values that JSON knows: paths as texts, tuples as lists, arrays as lists, what is not finite as None.

    >>> plain({"a": (1, float("nan")), "b": None})
    {'a': [1, None], 'b': None}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
