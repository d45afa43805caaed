"""States that a long run leaves behind every so often, from which it can be resumed after whatever ended it.

A state lies beside the result file, under its name and `.state`. It is a saved state (`snapshot.py`) with the counters
of the run: settings, totals, how many rows of the result belong to it. A new one takes the place of the old one as a
whole, after all rows up to it are on the disk; so there is a good pair of files at any moment. The first is written
before the first step: what cannot be saved is refused there and not after hours. What is promised about these files
stands in docs/result-files.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from cosolve.basics.checks import is_whole
from cosolve.errors import SetupError
from cosolve.result import Stats
from cosolve.state.codec import read_tree, write_tree
from cosolve.state.snapshot import THE_RUN, Snapshot, from_tree
from cosolve.version import VERSION

if TYPE_CHECKING:
    from cosolve.run.core import Core

_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Cadence:
    """How often a state is written: after so many macro steps, or so many seconds on the wall clock.

    >>> Cadence.of(1000), Cadence.of("5 min").seconds, Cadence.of("1000").steps
    (Cadence(steps=1000, seconds=inf), 300.0, 1000)
    >>> Cadence.of("often")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: state_every is a number of macro steps (1000) or a time ... ('30 s', '5 min', '1 h'), ...
    """

    steps: int | None = None
    seconds: float = inf

    @classmethod
    def of(cls, given: int | str) -> Cadence:
        """From a whole number of steps, or a text with a unit of time."""
        if is_whole(given, 1):
            return cls(int(given))
        found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(s|min|h)?\s*", str(given), re.ASCII)
        if isinstance(given, str) and found is not None:
            number, unit = found.groups()
            if unit is not None and float(number) > 0:
                return cls(seconds=float(number) * _UNITS[unit])
            if unit is None and number.isdigit() and int(number):
                return cls(int(number))
        raise SetupError(
            "state_every is a number of macro steps (1000) or a time on the wall clock ('30 s', '5 min', '1 h'), "
            f"not {given!r}"
        )


@dataclass(frozen=True)
class Keep:
    """What `state_every` stands for: how often, as it was given, and where the system comes from (`io/source.py`)."""

    every: int | str
    source: dict[str, Any] | None = None


def state_path(result: Path) -> Path:
    """Where the state of a run lies."""
    return result.with_name(result.name + ".state")


class StateWriter:
    """Writes the states of one run; `settings` are what it is resumed with."""

    def __init__(self, result: Path, keep: Keep, settings: dict[str, Any]) -> None:
        self._cadence, self._settings = Cadence.of(keep.every), settings | {"state_every": keep.every}
        self._source = keep.source
        self.path = state_path(result.absolute())
        self._steps, self._written = 0, monotonic()

    def left(self, steps: int) -> float:
        """How many macro steps may be taken until a state is due, when so many have been."""
        every = self._cadence.steps
        return inf if every is None else self._steps + every - steps

    def is_due(self, steps: int) -> bool:
        """True when it is time to write."""
        return self.left(steps) <= 0 or monotonic() - self._written >= self._cadence.seconds

    def write(self, core: Core, run: dict[str, Any], stats: Stats) -> None:
        """The state now, with what is to go on from there."""
        held = run | {"stats": asdict(stats), "settings": self._settings, "source": self._source, "cosolve": VERSION}
        held |= {"caller": core.caller.memory, "rejected": core.rejected, "opening": core.startup_steps.memory}
        write_tree(self.path, core.save(portable=True).tree() | {THE_RUN: held})
        self._steps, self._written = stats.steps, monotonic()

    def go_on_from(self, steps: int) -> None:
        """A run is resumed that had taken so many steps."""
        self._steps = steps

    def remove(self) -> None:
        """The run has finished: nothing is left to be resumed."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class InterruptedRun:
    """A run that was left behind: its state, and its counters."""

    snapshot: Snapshot
    run: dict[str, Any]

    @staticmethod
    def read(result: Path, run: str) -> InterruptedRun:
        """The state beside the result file of that run; a sentence where there is none, or another one."""
        path = state_path(result)
        if not path.exists():
            raise SetupError(
                f"there is no state '{path.name}' beside '{result}' to resume from: states are kept by runs with "
                "state_every (the command line: --state-every); run anew"
            )
        tree = read_tree(path)
        held = tree.pop(THE_RUN, None)
        snapshot = from_tree(tree, f"'{path}'")
        if not isinstance(held, dict):
            raise SetupError(f"'{path}' is a saved state, but none that a run with state_every has left")
        for key, kind in _KINDS.items():
            if not isinstance(held.get(key), kind):
                raise SetupError(f"'{path}' is not the state of a run that can be resumed (its {key} is missing)")
        if held["run"] != run:
            raise SetupError(f"'{path}' belongs to another run than '{result}'; keep the two files of a run together")
        return InterruptedRun(snapshot, held)

    def restored(self, what: Callable[[], None]) -> None:
        """Take over counters that were saved; a sentence where they do not fit."""
        try:
            what()
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise SetupError(f"the kept state does not fit this run: {error} ({type(error).__name__})") from error


_KINDS: dict[str, type] = {
    "run": str,
    "rows": int,
    "settings": dict,
    "stats": dict,
    "observers": dict,
    "caller": dict,
    "opening": dict,
    "rejected": int,
    "fast": bool,
    "wall": float,
}
