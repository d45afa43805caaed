"""Runs of so few macro steps that growth cannot be seen in them: they are carried on, and what grows then is said.

The growth of an unstable method needs 16 macro steps to be told from a motion (`accuracy/growth.py`). A run that is
shorter is repeated over 64 steps of the same length, and thrown away but for what it says of growth.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from cosolve.errors import CosolveError, SimulationError, StabilityWarning, warn
from cosolve.result.notes import Note

if TYPE_CHECKING:
    from cosolve.io import Description
    from cosolve.result import Result

SHORT, TRIED = 16, 64  # macro steps
LIMIT = 20.0  # seconds that a trial may take, estimated from the run


def tried_further(described: Description, result: Result) -> Result:
    """The result of a run that has finished; with a note and a warning where it was short, and is unstable."""
    steps, H = result.stats.steps, described.options.step
    few = 0 < steps < SHORT and len(described.system.subsystems) > 1 and not result.ended
    if not few or not isinstance(H, float) or TRIED * result.stats.wall_seconds > LIMIT * steps:
        return result
    text = _growth(described, H)
    if text:
        sentence = f"in {TRIED} macro steps instead of {steps}, {text}"
        result.stats.add(Note("growth", sentence, "error"))
        if described.file is not None:
            from cosolve.result.store import rewrite_notes

            rewrite_notes(described.file, result.stats)
        warn(sentence, StabilityWarning)
    return result


def _growth(described: Description, H: float) -> str:
    """What a longer run says of growth; empty where it says nothing, or cannot be made."""
    from cosolve.run.simulate import simulate

    options = described.options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = simulate(
                described.system,
                t_end=options.t_start + TRIED * H,
                t_start=options.t_start,
                method=options.method,
                step=H,
                startup=options.startup,
                stop_at_events=options.stop_at_events,
                max_steps=options.max_steps,
            )
        except SimulationError as error:
            if error.result is None:
                return ""
            found = error.result
        except CosolveError:
            return ""
    return found.stats.note("growth")
