"""How many macro steps trials beside a run may take: a count, not a time, so that runs stay deterministic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from cosolve.errors import CosolveError


class OverBudget(CosolveError):
    """A trial would take more macro steps than are allowed."""


@dataclass
class Budget:
    """Macro steps that trials may still take; `told` is called before each of them.

    >>> budget = Budget(100)
    >>> budget.take(60)
    >>> budget.allows(60), budget.left
    (False, 40)
    """

    left: float = inf
    told: Callable[[], object] | None = None

    def allows(self, steps: float) -> bool:
        """Whether so many steps are left."""
        return steps <= self.left

    def take(self, steps: int = 1) -> None:
        """Take some steps, or raise where they are not left."""
        if steps > self.left:
            raise OverBudget("trials have taken as many macro steps as they may")
        self.left -= steps
        if self.told is not None:
            self.told()
