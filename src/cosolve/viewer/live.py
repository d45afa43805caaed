"""A run that is watched in the browser while it goes on: what it shows, and what one may do to it."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Condition
from time import perf_counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.errors import CosolveError, SetupError
from cosolve.viewer.drawing import coupling
from cosolve.viewer.exhibit import Exhibit
from cosolve.viewer.frames import Window, plain_dict
from cosolve.viewer.growing import Growing
from cosolve.viewer.signals import STEPS, Signals

if TYPE_CHECKING:
    from cosolve.engine.chunk import Chunk
    from cosolve.interface.channels import Selection
    from cosolve.result import Result
    from cosolve.run.watching import WatchedRun
    from cosolve.viewer.hosting import Host

_NOBODY = 5.0  # seconds after which a paused run goes on when the last watcher has left (a page may be loading anew)
_COMING = 20.0  # seconds that a browser may take to open the page of a run that was quick
_LOOK = 0.1  # seconds between looks while a run is paused
_CHUNK = ("t", "y", "z", *STEPS, "seconds", "calls")


class Live:
    """Shows a run in the browser: `cs.simulate(system, ..., live=cs.Live())`.

    The page is served from this computer only, under an address with a random token, which is printed; `open_browser`
    opens it. There one can pause the run, let it take single steps, stop it (the result up to there is kept), save its
    state for `simulate(resume=...)`, and change inputs held by a `Dial` and tunable parameters of FMUs; changes are
    listed in `result.stats.changed`. Any number of pages may watch. A run that was paused goes on when the last of them
    is closed.

    `paused` begins with a pause. `states` is the folder for saved states. `host` and `port` are where the page is
    served; any other host than this computer's own address lets everybody in who has the address.

    >>> import cosolve as cs
    >>> clock = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    >>> with cs.Live(open_browser=False, told=None) as live:
    ...     result = cs.simulate(clock, t_end=1.0, method=cs.Jacobi(), step=0.1, live=live)
    >>> len(result.t), live.state()["running"]
    (11, False)
    """

    def __init__(
        self,
        *,
        open_browser: bool = True,
        host: str = "127.0.0.1",
        port: int = 0,
        paused: bool = False,
        states: str | Path = ".",
        title: str = "run",
        told: Callable[[str], None] | None = print,
    ) -> None:
        self._settings: dict[str, Any] = {"host": host, "port": port, "open_browser": open_browser, "told": told}
        self._begins_paused, self._states, self.title = paused, Path(states), title
        self._host: Host | None = None
        self._has_page = True
        self._turn = Condition()
        self._orders: deque[dict[str, Any]] = deque()
        self._watchers, self._left_at, self.ever_watched = 0, perf_counter(), False
        self.exhibit: Exhibit | None = None  # when the run is over
        self._clear()

    def _clear(self) -> None:
        self.growing: Growing | None = None
        self._run: WatchedRun | None = None
        self._paused, self._steps_allowed, self._stopping = self._begins_paused, 0, False
        self._news: deque[str] = deque(maxlen=20)
        self._t, self._steps = 0.0, 0
        self._last: Chunk | None = None
        self._tunable: list[dict[str, Any]] = []
        self._began, self._ended = perf_counter(), ""

    # -- the thread of the run -----------------------------------------------------------------------------

    def begin(self, run: WatchedRun) -> None:
        """The run stands at its first point."""
        self._clear()
        self.exhibit = None
        run.reset()
        self._run, self._tunable = run, run.tunable()
        y, z = run.point()
        signals = Signals(run.selection.channels, run.names)
        parts = len(run.names)
        chosen = partial(_recorded, run.selection)
        growing = Growing(signals, (len(y), len(z), parts), chosen=None if run.selection.everything else chosen)
        growing.bounded = run.file is not None
        first: dict[str, Any] = dict.fromkeys(_CHUNK, np.nan)
        first |= {"t": np.array([run.t]), "y": y[np.newaxis], "z": z[np.newaxis]}
        growing.put(SimpleNamespace(**first))
        self.growing = growing
        self._t, self._steps, self._last = run.t, 0, None
        self.serve()

    def allow(self, run: WatchedRun) -> int:
        """How many steps may be taken; waits while the run is paused."""
        if not (self._orders or self._paused or self._stopping):
            return sys.maxsize
        with self._turn:
            while True:
                while self._orders:
                    self._carry_out(self._orders.popleft(), run)
                if self._stopping:
                    return 0
                if not self._paused:
                    return sys.maxsize
                if self._steps_allowed:
                    self._steps_allowed -= 1
                    return 1
                if not self._watchers and self.ever_watched and perf_counter() - self._left_at > _NOBODY:
                    self._paused = False
                    self._news.append("nobody is watching any more, so the run goes on")
                    return sys.maxsize
                self._turn.wait(_LOOK)

    def see(self, chunk: Chunk) -> None:
        """Steps that were taken."""
        assert self.growing is not None
        self.growing.put(chunk)
        self._steps += len(chunk.t)
        self._last = chunk

    def end(self, result: Result) -> None:
        """The run is over."""
        self._ended = result.error or result.ended or "finished"
        with suppress(CosolveError, OSError):  # a file that cannot be read any more is no failure of the run
            self.exhibit = Exhibit(result, self.title)
        self._run = None  # last: pages ask for the result as soon as they see that

    def _carry_out(self, order: dict[str, Any], run: WatchedRun) -> None:
        """What a page has asked for; whatever is wrong with it is said there and does nothing to the run."""
        what = order.get("do")
        try:
            if what == "pause":
                self._paused = True
            elif what == "go":
                self._paused = False
            elif what == "step":
                self._paused = True
                self._steps_allowed += 1
            elif what == "stop":
                self._stopping = True
            elif what == "save":
                path = self._state_path(run)
                run.save(path)
                self._news.append(f"state at t = {run.t:.9g} saved to {path}")
            elif what == "set":
                run.change(str(order.get("name")), _number(order.get("value")))
                self._tunable = run.tunable()
                self._news.append(f"{order['name']} = {order['value']:g} from t = {run.t:.9g} on")
            else:
                self._news.append("that is nothing a run can do")
        except (CosolveError, OSError) as error:
            self._news.append(str(error))

    def _state_path(self, run: WatchedRun) -> Path:
        stem = run.file.stem if run.file is not None else "run"
        folder = run.file.parent if run.file is not None else self._states
        return folder / f"{stem}-{self._steps}.state"

    # -- the thread of the server --------------------------------------------------------------------------

    def order(self, order: dict[str, Any]) -> None:
        """Something to be done to the run at its next macro point."""
        if self._run is None:
            return
        if len(self._orders) < 1000:
            self._orders.append(order)
        if self._turn.acquire(timeout=0.05):  # a paused run looks by itself, a little later
            self._turn.notify_all()
            self._turn.release()

    def arrived(self) -> None:
        """One more watches."""
        self._watchers, self.ever_watched = self._watchers + 1, True

    def left(self) -> None:
        """One less does."""
        self._watchers, self._left_at = self._watchers - 1, perf_counter()

    def seen(self) -> None:
        """Somebody has looked who cannot say when he leaves: a widget, which asks every now and then."""
        self.ever_watched, self._left_at = True, perf_counter()

    def in_notebook(self) -> None:
        """Shown by a widget: then no page is served, unless that has been done already."""
        self._has_page = False

    @property
    def goes_on(self) -> bool:
        """True while steps are taken."""
        return self._run is not None and not self._paused

    @property
    def watchers(self) -> int:
        """How many pages are open."""
        return self._watchers

    def state(self) -> dict[str, Any]:
        """Where the run stands, for the pages."""
        run, last = self._run, self._last
        found: dict[str, Any] = {"t": self._t, "steps": self._steps, "iterations": 0, "residual": np.nan}
        if last is not None:
            found |= {"t": last.t[-1], "iterations": _end(last.iterations), "residual": _end(last.residual)}
        found |= {"running": run is not None, "paused": self._paused and run is not None, "watchers": self._watchers}
        found |= {"ended": self._ended, "news": list(self._news), "tunable": self._tunable}
        if run is not None:
            found |= {"t_end": run.t_end, "changed": list(run.stats.changed)}
        elif self.exhibit is not None:
            found |= {"changed": self.exhibit.result.stats.changed}
        if self.growing is not None:
            self.growing.take_in()
            found["rows"], found["span"] = self.growing.rows, self.growing.span
        return plain_dict(found)

    def about(self) -> dict[str, Any]:
        """As of a result; its numbers come later."""
        if self.exhibit is not None:
            return self.exhibit.about()
        run, growing = self._run, self.growing
        if run is None or growing is None:
            return {"label": self.title, "live": True, "waiting": True, "signals": [], "rows": 0, "span": [0.0, 1.0]}
        growing.take_in()
        known = {k: v for k, v in run.meta.items() if k not in ("graph", "system", "body_shapes")}
        return plain_dict(
            {
                "label": self.title,
                "live": True,
                "rows": growing.rows,
                "span": growing.span,
                "signals": growing.signals.listed(),
                "subsystems": run.names,
                "verdict": None,
                "stats": None,
                "changed": run.stats.changed,
                "meta": known,
                "system": run.meta.get("system", ""),
                "error_bar": None,
                "coupling": coupling(run.meta.get("graph"), growing.signals),
            }
        )

    def window(self, addresses: list[int], t0: float, t1: float, most: int) -> Window:
        """Signals over a stretch of time: of the result where there is one, else of what has come so far."""
        if self.exhibit is not None:
            return self.exhibit.window(addresses, t0, t1, most)
        if self.growing is None:
            raise SetupError("the run has not begun yet")
        return self.growing.window(addresses, t0, t1, most)

    # -- serving -------------------------------------------------------------------------------------------

    def serve(self) -> Live:
        """Begin to serve the page, unless that has been done; `address` is where."""
        if self._host is None and self._has_page:
            from cosolve.viewer.exhibition import Exhibition
            from cosolve.viewer.hosting import serve

            self._host = serve(Exhibition(live=self, title=self.title), **self._settings)
        return self

    @property
    def address(self) -> str:
        """Where the page is, with its token."""
        return "" if self._host is None else self._host.address

    def wait(self) -> None:
        """Come back when the last page is closed; at once where there was none and no browser was opened."""
        began, coming = perf_counter(), _COMING if self._host is not None and self._host.opened else 0.0
        while self._is_watched() or (not self.ever_watched and perf_counter() - began < coming):
            with self._turn:
                self._turn.wait(_LOOK)

    def _is_watched(self) -> bool:
        return self.ever_watched and (self._watchers > 0 or perf_counter() - self._left_at < _NOBODY)

    def close(self) -> None:
        """End the server."""
        if self._host is not None:
            self._host.close()
            self._host = None

    def __enter__(self) -> Live:
        return self.serve()

    def __exit__(self, *_: object) -> None:
        self.close()


def _recorded(selection: Selection, chunk: Any) -> Any:
    """What is recorded of a chunk; the first point comes chosen."""
    if isinstance(chunk, SimpleNamespace):
        return chunk
    found = {name: getattr(chunk, name) for name in _CHUNK}
    found |= {"y": selection.y(chunk.y.T).T, "z": selection.z(chunk.z.T).T}
    return SimpleNamespace(**found)


def _end(values: Any) -> Any:
    """The last of some numbers, or the one that all of them are."""
    return np.asarray(values).reshape(-1)[-1]


def _number(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise SetupError(f"a number is expected, not {value!r}")
