"""How a run went, in a line: what the report and the viewer show first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cosolve.result.notes import worst_level

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
