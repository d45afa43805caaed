"""Real time: macro points are reached when the clock on the wall says so.

Every point has its own due time, counted from the beginning of the run, so that nothing adds up: after a step that came
late the next ones catch up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from cosolve.basics.checks import is_number
from cosolve.engine.observer import Observer
from cosolve.errors import SetupError
from cosolve.result import Stats

if TYPE_CHECKING:
    from cosolve.engine.chunk import Chunk
    from cosolve.run.view import RunView

_LONGEST = 86400.0  # seconds of one sleep; systems have limits


class Pace(Observer):
    """Real time: macro points are reached when the wall clock says so.

    Parameters
    ----------
    rate : float, default 1.0
        Model seconds per second of the clock.
    clock : callable, default time.monotonic
        Returns the time of the clock in seconds.
    sleep : callable, default time.sleep
        `sleep(seconds)` waits.

    Attributes
    ----------
    overruns : int
        Number of macro points that were reached late.
    max_lateness : float
        Longest delay in seconds.

    Notes
    -----
    Due times are counted from the start of the run: after a late step the next ones catch up.

    Examples
    --------
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
        """Start counting.

        Parameters
        ----------
        t : float
            Time of the run in seconds.
        """
        self._t, self._began = t, self._clock()
        self.overruns, self.max_lateness = 0, 0.0

    def reach(self, t: float) -> None:
        """Wait until a macro point is due, or count it as late.

        Parameters
        ----------
        t : float
            The macro point in seconds.
        """
        due = self._began + (t - self._t) / self.rate
        late = self._clock() - due
        if late > 0.0:
            self.overruns += 1
            self.max_lateness = max(self.max_lateness, late)
        while late < 0.0:  # a sleep may end early
            self._sleep(min(-late, _LONGEST))
            late = self._clock() - due

    def start(self, run: RunView) -> None:
        """Start counting at the first point."""
        self.begin(run.t)

    restored = start

    def limit(self, run: RunView) -> float:
        """Return 1: it waits after each macro step."""
        return 1

    def accepted(self, run: RunView, steps: Chunk) -> None:
        """Wait until the macro point is due."""
        self.reach(run.t)

    def finished(self, run: RunView, failure: BaseException | None) -> None:
        """Write rate and delays into the statistics."""
        self.note(run.stats)

    def note(self, stats: Stats) -> None:
        """Write rate and delays into the statistics of a run.

        Parameters
        ----------
        stats : Stats
            They are changed.
        """
        stats.paced, stats.overruns, stats.max_lateness = self.rate, self.overruns, self.max_lateness


def make_pace(pace: float | Pace | None) -> Pace | None:
    """What the argument `pace` asks for."""
    return pace if pace is None or isinstance(pace, Pace) else Pace(pace)
