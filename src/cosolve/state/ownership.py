"""One run at a time: the subsystems of a system are in the state of the run that started or restored them last.

A run that advances them after another one did would go on from the state of that one, silently. So each run
owns its subsystems from `start` or `restore` on, and loses them to the next that starts or restores; while it is
`running` they cannot be taken from it, by another thread or by a callback.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from weakref import WeakValueDictionary

from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.errors import SetupError
from cosolve.interface import Plan


class Ownership:
    """Whether the subsystems of `plan` are in the state of this run."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan  # which keeps the subsystems, so that no other object gets their ids
        self.lost = False
        self.running = False

    def take(self) -> None:
        """The subsystems are about to be started or restored; raises where another run is advancing them."""
        subsystems = self._plan.subsystems
        with _lock:
            others = {other for s in subsystems if (other := _owners.get(id(s))) not in (None, self)}
            for other in others:
                if other.running:
                    names = [
                        n for n, s in zip(self._plan.names, subsystems, strict=True) if _owners.get(id(s)) is other
                    ]
                    raise SetupError(
                        f"'{names[0]}' is being advanced by another run at this moment (in another thread, or in a "
                        "callback of it); build a system for each run"
                    )
            for other in others:
                other.lost = True
            for subsystem in subsystems:
                _owners[id(subsystem)] = self
            self.lost = False

    @contextmanager
    def advancing(self) -> Iterator[None]:
        """While this lasts the subsystems cannot be taken; one thread at a time."""
        with _lock:
            if self.running:
                raise SetupError("this run is being advanced by another thread, or by a callback of its own")
            self.running = True
        try:
            yield
        finally:
            self.running = False

    def refuse_lost(self) -> None:
        """Raise where another run has started or restored the subsystems since."""
        if self.lost:
            raise SetupError(
                "another run (or a check) of the same system has begun since, with the same subsystems; restore a "
                "saved state, or build a system for each run"
            )


_owners: WeakValueDictionary[int, Ownership] = WeakValueDictionary()
_lock = Lock()


def trial_caller(plan: Plan) -> SubsystemCaller:
    """The subsystems for an examination that starts them anew; a run that they belonged to has lost them."""
    Ownership(plan).take()
    return SubsystemCaller(plan)
