"""A run compared with another one while it goes on, and what is needed to do so in a run that is resumed."""

from __future__ import annotations

from typing import Any

import numpy as np

from cosolve.accuracy.auto import sentences
from cosolve.accuracy.auto.pilot_comparison import ReferenceComparison
from cosolve.basics.arrays import Matrix, Vector


class Compared(ReferenceComparison):
    """A run compared with another one, which it may move by so much; `last` says that nothing comes after it."""

    def __init__(self, t: Vector, y: Matrix, size: Vector, allowed: float = 0.0) -> None:
        super().__init__(t, y, size)
        self.allowed, self.last = allowed, False

    def doubt(self) -> str:
        """Why the run may not meet its tolerance; empty where it moved the other one by no more than it may."""
        if not self.moved <= self.allowed:
            return sentences.doubt(self.moved, self.allowed, self.last)
        return sentences.missed() if self.missed > 0.0 else ""

    @property
    def memory(self) -> dict[str, Any]:
        """What it is compared with, and what has been seen so far."""
        return self.seen | {"allowed": self.allowed}

    @classmethod
    def going_on(cls, memory: dict[str, Any]) -> Compared:
        """The tolerance check of a run that is resumed: nothing comes after that, whatever is found."""
        t, y, size = (np.array(memory[name], dtype=np.float64) for name in ("t", "y", "size"))
        tolerance_check = cls(t, y, size, float(memory["allowed"]))
        tolerance_check.seen, tolerance_check.last = memory, True
        return tolerance_check
