"""Did going back cost a run anything? Asked of it at its end (`engine/readable/past.py`)."""

from __future__ import annotations

from cosolve.engine.readable.past import Mismatch, replayed
from cosolve.errors import AccuracyWarning, warn
from cosolve.result.notes import Note
from cosolve.run.core import Core

#: Kind of the notes about rollback.
ROLLBACK = "rollback"


def prove_past(core: Core, all_of_them: bool) -> list[Note]:
    """What crossing their recorded inputs once more tells about the subsystems that were set back.

    FMUs are asked after every run, others where they did not repeat a step with the same bits, or where a verdict about
    the run is asked for (`all_of_them`).
    """
    crew, notes = core.crew, list[Note]()
    core.let_go()
    calls = crew.calls.copy(), crew.jacobians.copy(), crew.seconds.copy()
    for i, (past, subsystem) in enumerate(zip(crew.past, core.plan.subsystems, strict=True)):
        if past is None or not past.restored:
            continue
        shows = callable(getattr(subsystem, "prove_rollback", None))
        if not (shows or all_of_them or i in crew.suspects):
            continue
        stops = 0 if crew.watch is None else crew.watch.stops
        found = "macro steps ended at events" if stops else replayed(crew, i)
        note = None if found is None else _note(core.plan.names[i], found)
        if isinstance(found, Mismatch) and note is not None and note.level == "error":
            warn(note.sentence, AccuracyWarning)
            tell = getattr(subsystem, "rollback_failed", None)
            if tell is not None:
                tell(found.text)
        notes += [] if note is None else [note]
    crew.calls[:], crew.jacobians[:], crew.seconds[:] = calls
    return notes


def _note(name: str, found: Mismatch | str) -> Note:
    if isinstance(found, str):
        text = f"whether '{name}' came back to its saved states all through the run was not looked at: {found}"
        return Note(ROLLBACK, text, "info", subsystem=name)
    if found.size <= found.allowed:
        text = f"'{name}' comes back to its saved states up to {100.0 * found.size:.2g} % ({found.text})"
        return Note(ROLLBACK, text, "info", found.since, name)
    remedy = "use Jacobi or GaussSeidel with fixed steps"
    return Note(
        ROLLBACK, f"'{name}' loses something when it is set back: {found.text}", "error", found.since, name, remedy
    )
