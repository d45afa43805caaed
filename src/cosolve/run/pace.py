"""Real time: macro points are reached when the clock on the wall says so.

Every point has its own due time, counted from the beginning of the run, so that nothing adds up: after a step that came
late the next ones catch up.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from cosolve.basics.checks import is_number
from cosolve.errors import SetupError
from cosolve.result import Stats

_LONGEST = 86400.0  # seconds of one sleep; systems have limits


class Pace:
    """`rate` seconds of the model per second of the wall clock; `clock` and `sleep` are those of the machine.

    `overruns` counts the macro points that were reached too late, `max_lateness` is the longest delay in seconds.

    >>> now = [100.0]
    >>> pace = Pace(2.0, clock=lambda: now[0], sleep=lambda seconds: now.append(now.pop() + seconds))
    >>> pace.begin(0.0)
    >>> pace.reach(0.5); now[0]                    # half a second of the model takes a quarter
    100.25
    >>> now[0] += 1.0                              # a step that takes too long
    >>> pace.reach(1.0); pace.overruns, pace.max_lateness
    (1, 0.75)
    """

    def __init__(
        self,
        rate: float = 1.0,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        if not (is_number(rate) and rate > 0):
            raise SetupError(f"pace must be a positive number of model seconds per second, not {rate!r}")
        self.rate, self._clock, self._sleep = float(rate), clock, sleep
        self.begin(0.0)

    def begin(self, t: float) -> None:
        """The run stands at `t` now, and time begins to count."""
        self._t, self._began = t, self._clock()
        self.overruns, self.max_lateness = 0, 0.0

    def reach(self, t: float) -> None:
        """The run has come to `t`: wait until that is due, or note that it is late."""
        due = self._began + (t - self._t) / self.rate
        late = self._clock() - due
        if late > 0.0:
            self.overruns += 1
            self.max_lateness = max(self.max_lateness, late)
        while late < 0.0:  # a sleep may end early
            self._sleep(min(-late, _LONGEST))
            late = self._clock() - due

    def note(self, stats: Stats) -> None:
        """Write down how well the pace was kept."""
        stats.paced, stats.overruns, stats.max_lateness = self.rate, self.overruns, self.max_lateness


def make_pace(pace: float | Pace | None) -> Pace | None:
    """What the argument `pace` asks for."""
    return pace if pace is None or isinstance(pace, Pace) else Pace(pace)
