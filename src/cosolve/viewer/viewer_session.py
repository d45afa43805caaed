"""Everything that one page shows: results, fields, a run that goes on, a sweep, or a system that has not run yet."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from cosolve.errors import SetupError
from cosolve.viewer.frames import Window
from cosolve.viewer.result_view import Difference, ResultView

if TYPE_CHECKING:
    from cosolve.viewer.field_view import FieldView
    from cosolve.viewer.live import Live
    from cosolve.viewer.sweep_map import SweepMap

_LONG, _TOO_LONG = 1_000_000, 50_000_000  # rows of results that are read ahead, in a second or two
_AHEAD = 2


class ViewerSession:
    """What is shown; `problem` is a sentence for a page that has nothing else.

    >>> ViewerSession(problem="line 3: no such subsystem").about()["problem"]
    'line 3: no such subsystem'
    """

    def __init__(
        self,
        result_views: Sequence[ResultView] = (),
        *,
        fields: Sequence[FieldView] = (),
        live: Live | None = None,
        system: dict[str, Any] | None = None,
        sweep: SweepMap | None = None,
        problem: str = "",
        title: str = "cosolve",
    ) -> None:
        self.result_views, self._fields, self.live = list(result_views), list(fields), live
        self._system, self._sweep, self._problem, self._title = system, sweep, problem, title
        self._differences: dict[tuple[int, int, int], Difference] = {}
        self._lock = Lock()

    def prepare(self) -> None:
        """Read ahead what takes time, while the browser loads the page."""
        for result_view in self.result_views[:_AHEAD]:
            if _LONG < len(result_view.t) < _TOO_LONG:
                result_view.prepare()

    def about(self) -> dict[str, Any]:
        """Everything but the numbers over time."""
        shown = [self.live] if self.live is not None else self.result_views
        return {
            "title": self._title,
            "problem": self._problem,
            "results": [one.about() for one in shown],
            "fields": [one.about() for one in self._fields],
            "system": self._system,
            "sweep": None if self._sweep is None else self._sweep.about(),
            "live": self.live is not None,
        }

    @property
    def the_sweep(self) -> SweepMap:
        """The sweep that is shown."""
        if self._sweep is None:
            raise SetupError("no sweep is shown here")
        return self._sweep

    def fields(self, number: int) -> FieldView:
        """One of the series of fields."""
        if not 0 <= number < len(self._fields):
            raise SetupError(f"there are no fields {number}; {len(self._fields)} files of fields are shown")
        return self._fields[number]

    def window(self, result: int, addresses: list[int], t0: float, t1: float, most: int) -> Window:
        """Signals of one of the results."""
        if self.live is not None:
            return self.live.window(addresses, t0, t1, most)
        return self._view(result).window(addresses, t0, t1, most)

    def sample(self, result: int, addresses: list[int], most: int) -> Window:
        """Rows of one of the results, as they are."""
        over = None if self.live is None else self.live.result_view
        return (over or self._view(result)).sample(addresses, most)

    def difference(self, result: int, minus: int, address: int, t0: float, t1: float, most: int) -> Window:
        """One signal of a result minus that of another."""
        one, other = self._view(result), self._view(minus)
        with self._lock:
            key = result, minus, address
            if key not in self._differences:
                self._differences[key] = Difference(one, other, address)
        return self._differences[key].window(t0, t1, most)

    def _view(self, number: int) -> ResultView:
        if not 0 <= number < len(self.result_views):
            raise SetupError(f"there is no result {number}; {len(self.result_views)} are shown")
        return self.result_views[number]
