"""How commands show things: warnings as sentences, a progress bar, tables, JSON for scripts."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from os import environ
from signal import SIGINT, SIGTERM
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from cosolve.basics.error_location import raised_at
from cosolve.basics.signals import ENDS, Terminated
from cosolve.errors import AccuracyWarning, StabilityWarning

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from cosolve.run.view import RunView

_WIDE = 1000
INDENT = 8  # columns of the words that lines begin with: "cosolve:", "result", "next"
NARROW = 72  # columns of a terminal that tables and long bars do not fit into

#: Seconds between two lines of progress in a log, where the environment variable does not say otherwise.
_SECONDS = 30.0
SECONDS = "COSOLVE_PROGRESS_SECONDS"


def tell(error: Exception) -> None:
    """An error as a sentence on stderr, with the line of the user's own file that raised it, and its notes."""
    where = [f"raised  {place}"] if (place := raised_at(error)) else []
    say("\n".join([f"cosolve: {error}", *where, *getattr(error, "__notes__", [])]), INDENT, err=True)


def stopped(stop: KeyboardInterrupt) -> tuple[str, int]:
    """What is said of a command that Ctrl-C or SIGTERM has ended, and its exit code.

    >>> stopped(KeyboardInterrupt())
    ('ended by Ctrl-C', 130)
    """
    return ENDS[SIGTERM if isinstance(stop, Terminated) else SIGINT]


@contextmanager
def told_plainly() -> Iterator[list[str]]:
    """Warnings about stability and accuracy as sentences on stderr, when they come up; all that came up, each once."""
    import warnings

    said: list[str] = []

    told = (StabilityWarning, AccuracyWarning)
    with warnings.catch_warnings():
        for kind in told:
            warnings.simplefilter("always", kind)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **rest: Any) -> None:
            if issubclass(category, told):
                if str(message) not in said:
                    said.append(str(message))
                    line = _folded(f"cosolve: warning: {message}", INDENT, sys.stderr)
                    print(line, file=sys.stderr, flush=True)  # above a bar, not into it
            else:
                usual(message, category, *where, **rest)

        warnings.showwarning = show  # put back by catch_warnings
        yield said


class Log:
    """What stands for a progress bar without a terminal: a line on stderr after every so many seconds.

    >>> Log(60.0).update(None, completed=0.5, about="100 steps")
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = self._said = monotonic()

    def update(self, task: TaskID | None, *, completed: float, about: str) -> None:
        """So much is done; said where the last line is old enough."""
        now = monotonic()
        if now - self._said < self._seconds:
            return
        self._said = now
        typer.echo(f"cosolve: {100 * completed:3.0f} % after {now - self._began:.0f} s, {about}", err=True)


class Meter:
    """How far a run is, shown as it goes on: rate, corrections per macro step and residual besides the time left.

    Pilot runs of an automatic choice and single runs look alike to it.
    """

    def __init__(self, bar: Progress | Log, task: TaskID | None) -> None:
        self._bar: Any = bar
        self._task = task
        self._run: RunView | None = None
        self._before = perf_counter(), 0, 0  # seconds, macro steps and corrections when it was last shown

    def watch(self, run: RunView) -> None:
        """The run begins."""
        self._run = run
        self._before = perf_counter(), run.stats.steps, run.stats.iterations

    def __call__(self, fraction: float) -> None:
        """So much of the run is done."""
        self._bar.update(self._task, completed=fraction, about=self._about())

    def say(self, fraction: float, about: str) -> None:
        """So much of the run is done, and this is to be said beside it."""
        self._bar.update(self._task, completed=fraction, about=about)

    def _about(self) -> str:
        if self._run is None:
            return ""
        stats, (then, steps, iterations) = self._run.stats, self._before
        now = perf_counter()
        self._before = now, stats.steps, stats.iterations
        return live_line(
            stats.steps, stats.steps - steps, now - then, stats.iterations - iterations, self._run.residual
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
    """A progress bar on a terminal, a line now and then elsewhere; `what` is said until something can be counted."""
    if hidden:
        yield None
        return
    if not sys.stderr.isatty():
        yield Meter(Log(float(environ.get(SECONDS, _SECONDS))), None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.table import Column

    console, cut = Console(stderr=True), Column(no_wrap=True, overflow="ellipsis", ratio=1)
    bar = Progress(
        BarColumn(bar_width=24 if console.width >= NARROW else 8),
        TaskProgressColumn(table_column=Column(no_wrap=True, min_width=4)),
        TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[about]}", markup=False, table_column=cut),
        TextColumn("", table_column=Column(min_width=1)),  # for the ^C of terminals, else it goes into a new line
        console=console,
        transient=True,
        expand=True,
    )
    try:
        with bar:
            yield Meter(bar, bar.add_task("run", total=1.0, about=what))
    finally:
        console.show_cursor(True)  # a signal may come between hiding it and the inside of `with`


def console() -> Console:
    """For tables: as wide as the terminal; elsewhere as wide as they are, so that no name is broken."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=_WIDE)


def say(text: str, indent: int = 0, err: bool = False) -> None:
    """Lines that break between words where the terminal ends, and go on `indent` columns further in."""
    typer.echo(_folded(text, indent, sys.stderr if err else sys.stdout), err=err)


def _folded(text: str, indent: int, stream: TextIO) -> str:
    """The lines as `say` breaks them on this stream."""
    if not stream.isatty():
        return text
    from shutil import get_terminal_size
    from textwrap import TextWrapper

    wrapper = TextWrapper(
        get_terminal_size().columns,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(line for each in text.splitlines() for line in wrapper.wrap(each) or [""])


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
