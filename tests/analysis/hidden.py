"""Subsystems as black boxes: what a co-simulation FMU without visible states looks like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cosolve as cs


class Hidden(cs.Subsystem):
    """`inner` without its state; `rollback` says whether it can be saved and restored."""

    def __init__(self, inner: cs.Subsystem, rollback: bool = True) -> None:
        self.inner = inner
        self.inputs, self.outputs = inner.inputs, inner.outputs
        if rollback:
            self.save, self.restore = inner.save, inner.restore
        if hasattr(inner, "output"):
            self.output = inner.output

    def start(self, t0):
        return self.inner.start(t0)

    def advance(self, t0, t1, u):
        return self.inner.advance(t0, t1, u)


def hide(system: cs.System, rollback: bool = True, only: tuple[str, ...] = ()) -> cs.System:
    """The system with all its subsystems (or `only` some) hidden; it is changed in place."""
    for name, subsystem in system.subsystems.items():
        if not only or name in only:
            system.subsystems[name] = Hidden(subsystem, rollback)
    return system


def counted(use: Callable[[type[cs.Linear]], Any]) -> tuple[Any, int]:
    """What `use` gives with a linear subsystem, and how often subsystems of that kind were advanced."""
    calls = 0

    class Counted(cs.Linear):
        native = None

        def advance(self, t0, t1, u):
            nonlocal calls
            calls += 1
            return super().advance(t0, t1, u)

    return use(Counted), calls
