"""What a run reports about itself: one list, which print, report, viewer, sweeps, files and the command line read.

A diagnosis is added where it is made, `stats.add(Note(...))`, and appears everywhere. The status of a run is the worst
level of its notes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from cosolve.result.result import Result


@dataclass(frozen=True)
class Verdict:
    """How a run went: `good`, `doubtful` or `bad`, a headline and the notes of the run as sentences."""

    level: Literal["good", "doubtful", "bad"]
    headline: str
    details: list[str]


def verdict(result: Result, end: float | None = None) -> Verdict:
    """How a run went; `end` is the time of its last point, where that is known already.

    >>> import cosolve as cs
    >>> clock = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    >>> verdict(cs.simulate(clock, t_end=1.0, method=cs.Jacobi(), step=0.1)).headline
    'Finished: reached t = 1.'
    """
    if end is None and len(result.t):
        end = float(result.t[-1])
    notes = result.notes
    reached = "no macro point" if end is None else f"t = {end:.6g}"
    details = [note.sentence for note in notes]
    if not result.finished:
        planned = result.meta.get("t_end")
        goal = f" of {planned:g}" if isinstance(planned, (int, float)) else ""
        return Verdict("bad", f"Stopped early: the last good point is {reached}{goal}.", details)
    level = worst_level(notes)
    reached = f"Ended early: reached {reached}" if result.ended else f"Reached {reached}"
    if level == "error":
        return Verdict("bad", f"{reached}, but the result cannot be trusted.", details)
    if level == "warning":
        count = sum(note.level == "warning" for note in notes)
        return Verdict("doubtful", f"{reached}, with {count} warning{'s' if count > 1 else ''}.", details)
    return Verdict("good", f"{reached}." if result.ended else f"Finished: r{reached[1:]}.", details)


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
