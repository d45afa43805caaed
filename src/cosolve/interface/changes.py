"""What changes during a run: parameters at given macro points, and inputs that are tuned (`TunableInput`)."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_number
from cosolve.errors import SetupError
from cosolve.interface.driven_inputs import Drive, Piece


class TunableInput(Drive):
    """A constant input that can be changed during a run, see `Live`.

    Parameters
    ----------
    value : float
        Value at the start of every run.
    low : float, default -inf
        Smallest value.
    high : float, default inf
        Largest value.

    Notes
    -----
    Times before a change keep their value. It is set while a run goes on: every run starts with the first value. For
    values that are known before it, see `Table`.

    Examples
    --------
    >>> import cosolve as cs
    >>> gain = cs.TunableInput(1.0, low=0.0, high=5.0)
    >>> gain.set(0.5, 3.0)
    >>> float(gain.value(0.4)[0]), float(gain.value(0.6)[0])
    (1.0, 3.0)
    """

    smooth = False

    def __init__(self, value: float, *, low: float = -np.inf, high: float = np.inf) -> None:
        if not (is_number(value) and low <= value <= high):
            raise SetupError(f"TunableInput: the value must be a number between {low:g} and {high:g}, not {value!r}")
        self.low, self.high, self._first = float(low), float(high), float(value)
        self.label = f"tunable, at start {value:g}"
        self.reset()

    def reset(self) -> None:
        """Forget all changes."""
        self._times: list[float] = []
        self._values = [self._first]

    def set(self, t: float, value: float) -> None:
        """Set a new value.

        Parameters
        ----------
        t : float
            Time in seconds from which it holds. A time before the last change moves to that change.
        value : float
            The value, between `low` and `high`.

        Raises
        ------
        SetupError
            If the value is outside.
        """
        if not (is_number(value) and self.low <= value <= self.high):
            raise SetupError(f"a number between {self.low:g} and {self.high:g} is expected, not {value!r}")
        if self._times and t <= self._times[-1]:
            self._values[-1] = float(value)
            return
        self._times.append(float(t))
        self._values.append(float(value))

    @property
    def now(self) -> float:
        """The value that was set last."""
        return self._values[-1]

    def value(self, t: float, right: bool = False) -> Vector:
        k = bisect_right(self._times, t) if right else sum(at < t for at in self._times)
        return np.array([self._values[k]])

    def pieces(self, a: float, b: float) -> list[Piece]:
        cuts = [a, *(t for t in self._times if a < t < b), b]
        return [Piece(c, d, self.value(0.5 * (c + d))[np.newaxis]) for c, d in itertools.pairwise(cuts)]

    def next_knot(self, t: float) -> float:
        return next((at for at in self._times if at > t), np.inf)


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
