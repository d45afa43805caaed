"""What a run reports about itself: one list, which print, report, viewer, sweeps, files and the command line read.

A diagnosis is added where it is made, `stats.add(Note(...))`, and appears everywhere. The status of a run is the worst
level of its notes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Level = Literal["info", "warning", "error"]

_SEVERITY = {"info": 0, "warning": 1, "error": 2}


@dataclass(frozen=True)
class Note:
    """One thing that a run reports about itself.

    Parameters
    ----------
    kind : str
        What it is about, the same word in every run: "growth", "not-converged", "algebraic-loop" ...
    text : str
        One sentence: what was found, and where.
    level : {"info", "warning", "error"}, default "warning"
        "info": nothing is wrong with the values. "warning": they may be worse than was asked for. "error": they cannot
        be trusted, or the run stopped.
    time : float or None, default None
        The model time in seconds at which it was found, if it belongs to one.
    subsystem : str, default ""
        The subsystem that it concerns, if there is one.
    remedy : str, default ""
        What would help, if that is known and not part of the text.

    Examples
    --------
    >>> print(Note("over-tolerance", "3 macro steps exceed the tolerance", "warning", remedy="allow shorter steps"))
    WARNING: 3 macro steps exceed the tolerance; allow shorter steps
    """

    kind: str
    text: str
    level: Level = "warning"
    time: float | None = None
    subsystem: str = ""
    remedy: str = ""

    @property
    def sentence(self) -> str:
        """The text and the remedy."""
        return f"{self.text}; {self.remedy}" if self.remedy else self.text

    def __str__(self) -> str:
        return f"{'NOTE' if self.level == 'info' else self.level.upper()}: {self.sentence}"


def worst_level(notes: Iterable[Note]) -> Level:
    """The status of a run with these notes.

    >>> worst_level([Note("startup", "the first step costs an order", "info")])
    'info'
    """
    return max((note.level for note in notes), key=_SEVERITY.__getitem__, default="info")


def worst_first(notes: Iterable[Note]) -> list[Note]:
    """The notes by level; those of one level stay in their order."""
    return sorted(notes, key=lambda note: -_SEVERITY[note.level])
