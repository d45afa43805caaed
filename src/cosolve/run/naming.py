"""Observers from their names, as in system files and on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cosolve.basics.wording import shortened
from cosolve.engine.observer import Observer, ObserverLike
from cosolve.errors import SetupError
from cosolve.method.named import build


def as_observers(given: Sequence[ObserverLike], folder: Path | None = None) -> list[Observer]:
    """The observers that are given, named or described; modules are looked for in `folder` first.

    >>> as_observers(["no-such"])
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: there is no observer 'no-such'; ...
    """
    if isinstance(given, (str, Observer)) or not isinstance(given, Sequence):
        raise SetupError(f"observers is a list of Observer objects or their names, not {shortened(given)}")
    made = [one if isinstance(one, Observer) else build("observers", one, Observer, folder) for one in given]
    if len(set(map(id, made))) < len(made):
        raise SetupError("observers: one object is given twice; each follows a run once")
    return made
