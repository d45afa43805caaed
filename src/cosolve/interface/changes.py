"""Parameters that change during a run, at given macro points."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

_CLOSE = 1e-9  # of a macro step: times so close are the same


@dataclass(frozen=True)
class Change:
    """Parameters of one subsystem that get new values at `t`."""

    t: float
    subsystem: str
    values: dict[str, Any]


@dataclass
class Changes:
    """All changes in the order of their times, and what the parameters were before the first of them in any run."""

    listed: list[Change] = field(default_factory=list)
    originals: dict[tuple[str, str], Any] = field(default_factory=dict)

    def add(self, change: Change) -> None:
        """Keep them in order; of two at the same time the later one counts."""
        self.listed = sorted([*self.listed, change], key=lambda one: one.t)

    def next_after(self, t: float) -> float:
        """The time of the first change after `t`."""
        return min((one.t for one in self.listed if one.t > t), default=np.inf)

    def due(self, first: int, t: float, H: float) -> list[Change]:
        """The changes from number `first` on whose time has come."""
        return [one for one in self.listed[first:] if one.t <= t + _CLOSE * H]

    def values_at(self, t: float, H: float) -> dict[str, dict[str, Any]]:
        """By subsystem, the values that the changed parameters have had before `t`."""
        found: dict[str, dict[str, Any]] = {}
        for (name, key), value in self.originals.items():
            found.setdefault(name, {})[key] = value
        for one in self.listed:
            if one.t < t - _CLOSE * H:
                found.setdefault(one.subsystem, {}).update(one.values)
        return found
