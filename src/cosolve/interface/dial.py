"""An input that somebody turns while the run goes on."""

from __future__ import annotations

import itertools
from bisect import bisect_right

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_number
from cosolve.errors import SetupError
from cosolve.interface.driving import Drive, Piece


class Dial(Drive):
    """A value for an input that may be changed during a run, between `low` and `high`: see `cs.Live`.

    Until somebody changes it, it is a constant. It remembers when it was turned, so that the times before that stay as
    they were; the next run begins with the first value.

    >>> import cosolve as cs
    >>> dial = cs.Dial(1.0, low=0.0, high=5.0)
    >>> dial.turn(0.5, 3.0)
    >>> float(dial.value(0.4)[0]), float(dial.value(0.6)[0])
    (1.0, 3.0)
    """

    smooth = False

    def __init__(self, value: float, *, low: float = -np.inf, high: float = np.inf) -> None:
        if not (is_number(value) and low <= value <= high):
            raise SetupError(f"Dial: the value must be a number between {low:g} and {high:g}, not {value!r}")
        self.low, self.high, self._first = float(low), float(high), float(value)
        self.label = f"dial at {value:g}"
        self.reset()

    def reset(self) -> None:
        """As it was before anybody turned it."""
        self._times: list[float] = []
        self._values = [self._first]

    def turn(self, t: float, value: float) -> None:
        """Another value from `t` on; that is no earlier than where it was turned last."""
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
