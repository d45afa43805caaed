"""Did going back cost a run anything? Asked of it at its end (`engine/python/replay_check.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cosolve.engine.python.replay_check import Mismatch, replayed
from cosolve.errors import AccuracyWarning, warn
from cosolve.result.notes import Note

if TYPE_CHECKING:
    from cosolve.run.core import Core

#: Kind of the notes about rollback, and what they say where it was not proven.
ROLLBACK, UNPROVEN = "rollback", "all through the run was not looked at"


def prove_past(core: Core, all_of_them: bool) -> list[Note]:
    """What advancing over their recorded inputs once more tells about the subsystems that were set back.

    FMUs are asked unless they have shown it before, others where they did not repeat a step with the same bits; all
    of them where a verdict about the run is asked for (`all_of_them`).
    """
    caller, notes = core.caller, list[Note]()
    core.let_go()
    calls = caller.calls.copy(), caller.jacobians.copy(), caller.seconds.copy()
    for i, (past, subsystem) in enumerate(zip(caller.past, core.plan.subsystems, strict=True)):
        if past is None or not past.restored:
            continue
        shows = callable(getattr(subsystem, "prove_rollback", None))
        if not (shows or all_of_them or i in caller.suspects):
            continue
        stopped = caller.watch is not None and caller.watch.stops and i in caller.watch.able
        found = "it was stopped at events" if stopped else replayed(caller, i)
        note = loss(core.plan.names[i], found)
        if isinstance(found, Mismatch) and note is not None and note.level == "error":
            warn(note.sentence, AccuracyWarning)
            tell = getattr(subsystem, "rollback_failed", None)
            if tell is not None:
                tell(found.text)
        elif not isinstance(found, str) and shows:
            held = getattr(subsystem, "rollback_held", None)
            if held is not None:
                held(past.t0, core.t)
        notes += [] if note is None else [note]
    caller.calls[:], caller.jacobians[:], caller.seconds[:] = calls
    return notes


def loss(name: str, found: Mismatch | str | None) -> Note | None:
    """What to say of a subsystem of this name; None where nothing was found."""
    if found is None:
        return None
    if isinstance(found, str):
        text = f"whether '{name}' came back to its saved states {UNPROVEN}: {found}"
        return Note(ROLLBACK, text, "info", subsystem=name)
    if found.size <= found.allowed:
        text = f"'{name}' comes back to its saved states up to {100.0 * found.size:.2g} % ({found.text})"
        return Note(ROLLBACK, text, "info", found.since, name)
    remedy = "use Jacobi or GaussSeidel with fixed steps"
    return Note(
        ROLLBACK, f"'{name}' loses something when it is set back: {found.text}", "error", found.since, name, remedy
    )
