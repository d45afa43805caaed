"""Time as an index: macro points are computed from integers, never summed up, so a run ends exactly at `t_end`."""

from __future__ import annotations

from math import ceil

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_number, is_positive
from cosolve.errors import SetupError

#: Resolution of the clock of variable steps: the run's span in equal ticks.
TICKS = 2**52


def refuse_bad_span(t_start: float, t_end: float) -> None:
    """A run needs a finite start and a later, finite end."""
    for name, value in (("t_start", t_start), ("t_end", t_end)):
        if not is_number(value):
            raise SetupError(f"{name} must be a finite number, not {value!r}")
    if not t_end > t_start:
        raise SetupError(f"t_end = {t_end:g} is not after t_start = {t_start:g}; give a later t_end")


def refuse_bad_step(H: float, name: str = "step") -> None:
    """A macro step is a positive, finite number."""
    if not isinstance(H, (int, float, np.floating, np.integer)) or isinstance(H, bool):
        other = " or a step control such as Adaptive(rtol=1e-6)" if name == "step" else ""
        raise SetupError(f"{name} must be a number{other}, not {H!r}")
    if not is_positive(H):
        raise SetupError(f"{name} must be a positive, finite number, not {H}")


class UniformClock:
    """Equal macro steps `H`; the last one is shorter when `H` does not divide the span.

    >>> clock = UniformClock(0.0, 1.0, 0.1)
    >>> clock.count, clock.time(10)
    (10, 1.0)
    """

    def __init__(self, t_start: float, t_end: float, H: float) -> None:
        refuse_bad_span(t_start, t_end)
        refuse_bad_step(H)
        self.t_start, self.t_end = t_start, t_end
        ratio = (t_end - t_start) / H
        if ratio > 1e15:
            raise SetupError(f"step = {H:g} would need {ratio:.1e} macro steps to reach t_end = {t_end:g}")
        if not t_start + H > t_start or not t_end > t_end - H:
            raise SetupError(f"step = {H:g} is below the resolution of time between {t_start:g} and {t_end:g}")
        nearest = max(1, round(ratio))
        self.divides = abs(ratio - nearest) <= 1e-9 * nearest
        self.count = nearest if self.divides else ceil(ratio)
        self.H = (t_end - t_start) / nearest if self.divides else H

    def time(self, n: int) -> float:
        """Macro point `n`."""
        if n >= self.count:
            return self.t_end
        if self.divides:
            return self.t_start + (self.t_end - self.t_start) * (n / self.count)
        return self.t_start + n * self.H

    def times(self, first: int, last: int) -> Vector:
        """Macro points `first` to `last`, the same numbers as `time` gives one by one."""
        points = np.arange(first, last + 1, dtype=np.float64)
        if self.divides:
            points /= self.count
            points *= self.t_end - self.t_start
        else:
            points *= self.H
        points += self.t_start
        points[max(0, self.count - first) :] = self.t_end
        return points

    def step(self, n: int) -> float:
        """Nominal length of the step from point `n`."""
        if self.divides or n < self.count - 1:
            return self.H
        return self.t_end - self.time(n)


def fit_ticks(H: float, span: float, tick: int) -> int:
    """Ticks of a step of about `H` from `tick`, clipped to the end of `span` (which swallows a negligible rest).

    >>> fit_ticks(0.5, 1.0, 0) == TICKS // 2, fit_ticks(2.0, 1.0, 0) == TICKS
    (True, True)
    """
    left = TICKS - tick
    ticks = max(1, round(min(1.0, H / span) * TICKS))
    return left if left - ticks < 1e-6 * ticks else min(ticks, left)


def time_of_tick(tick: int, t_start: float, t_end: float, span: float) -> float:
    """The time of a tick; the last one is `t_end` to the bit.

    >>> time_of_tick(TICKS // 2, 0.0, 0.3, 0.3), time_of_tick(TICKS, 0.0, 0.3, 0.3)
    (0.15, 0.3)
    """
    return t_end if tick >= TICKS else min(t_end, t_start + span * (tick / TICKS))


class TickClock:
    """Variable steps on a grid of integer ticks, fine enough to be invisible and exact at both ends.

    >>> clock = TickClock(0.0, 0.3)
    >>> clock.advance(clock.fit(0.1)); clock.advance(clock.fit(1.0)); clock.time
    0.3
    """

    def __init__(self, t_start: float, t_end: float) -> None:
        refuse_bad_span(t_start, t_end)
        self.t_start, self.t_end, self.span, self.tick = t_start, t_end, t_end - t_start, 0

    def fit(self, H: float) -> int:
        """Ticks of a step of about `H` from here, clipped to the end (which swallows a negligible rest)."""
        return fit_ticks(H, self.span, self.tick)

    def length(self, ticks: int) -> float:
        """Length of a step of so many ticks."""
        return self.span * (ticks / TICKS)

    def at(self, tick: int) -> float:
        """Time of a tick."""
        return time_of_tick(tick, self.t_start, self.t_end, self.span)

    def advance(self, ticks: int) -> None:
        """Move on."""
        self.tick += ticks

    @property
    def time(self) -> float:
        """Time now."""
        return self.at(self.tick)

    @property
    def done(self) -> bool:
        """True at the end."""
        return self.tick >= TICKS
