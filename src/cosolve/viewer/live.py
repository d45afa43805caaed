"""A run that is watched in the browser while it goes on: what it shows, and what one may do to it."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import copysign, inf
from pathlib import Path
from threading import Condition
from time import perf_counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.wording import shown
from cosolve.engine.observer import Observer
from cosolve.errors import CosolveError, SetupError
from cosolve.viewer.drawing import coupling
from cosolve.viewer.frames import Window, plain_dict
from cosolve.viewer.growing_series import GrowingSeries
from cosolve.viewer.result_view import ResultView
from cosolve.viewer.signals import STEPS, Signals

if TYPE_CHECKING:
    from cosolve.engine.chunk import Chunk
    from cosolve.interface.channels import Selection
    from cosolve.result import Result
    from cosolve.run.view import RunView
    from cosolve.viewer.host import Host

_UNUSED = 5.0  # seconds after which a paused run goes on when the last watcher has left (a page may be loading anew)
_COMING = 20.0  # seconds that a browser may take to open the page of a run that was quick
_LOOK = 0.1  # seconds between looks while a run is paused
_CHUNK = ("t", "y", "z", *STEPS, "seconds", "calls")


class Live(Observer):
    """Show a run in the browser while it goes on, `simulate(..., observers=[cs.Live()])`.

    Pages can pause the run, take single steps, stop it, save its state for `simulate(resume=...)`, and change inputs
    held by a `TunableInput` and tunable parameters of FMUs. A paused run goes on when the last page is closed.

    Parameters
    ----------
    open_browser : bool, default True
        Open the page.
    host : str, default "127.0.0.1"
        Address to serve at. Any other than this computer's own admits every user who has the address.
    port : int, default 0
        Port; 0 takes a free one.
    paused : bool, default False
        Pause before the first step.
    states : str or Path, default "."
        Folder for saved states, if the run has no result file.
    title : str, default "run"
        Title of the page.
    told : callable or None, default print
        `told(text)` gets the address of the page, which holds a random token.

    Examples
    --------
    >>> import cosolve as cs
    >>> clock = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    >>> with cs.Live(open_browser=False, told=None) as live:
    ...     result = cs.simulate(clock, t_end=1.0, method=cs.Jacobi(), step=0.1, observers=[live])
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
        self.result_view: ResultView | None = None  # when the run is over
        self._clear()

    def _clear(self) -> None:
        self.growing: GrowingSeries | None = None
        self._run: RunView | None = None
        self._paused, self._steps_allowed, self._stopping = self._begins_paused, 0, False
        self._news: deque[str] = deque(maxlen=20)
        self._t, self._steps = 0.0, 0
        self._last: Chunk | None = None
        self._tunable: list[dict[str, Any]] = []
        self._began, self._ended = perf_counter(), ""

    # -- the thread of the run -----------------------------------------------------------------------------

    def start(self, run: RunView) -> None:
        """Take note of a run that stands at its first point.

        Parameters
        ----------
        run : RunView
            The run.
        """
        self._clear()
        self.result_view = None
        run.reset()
        self._run, self._tunable = run, run.tunable()
        y, z = run.point()
        signals = Signals(run.selection.channels, run.names)
        parts = len(run.names)
        chosen = partial(_recorded, run.selection)
        growing = GrowingSeries(signals, (len(y), len(z), parts), chosen=None if run.selection.everything else chosen)
        growing.bounded = run.file is not None
        first: dict[str, Any] = dict.fromkeys(_CHUNK, np.nan)
        first |= {"t": np.array([run.t]), "y": y[np.newaxis], "z": z[np.newaxis]}
        growing.put(SimpleNamespace(**first))
        self.growing = growing
        self._t, self._steps, self._last = run.t, 0, None
        self.serve()

    def limit(self, run: RunView) -> int:
        """Say how many macro steps may be taken now; wait while the run is paused.

        Parameters
        ----------
        run : RunView
            The run.

        Returns
        -------
        int
            The number; 0 ends the run.
        """
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
                if not self._watchers and self.ever_watched and perf_counter() - self._left_at > _UNUSED:
                    self._paused = False
                    self._news.append("the last page was closed, so the run goes on")
                    return sys.maxsize
                self._turn.wait(_LOOK)

    def accepted(self, run: RunView, steps: Chunk) -> None:
        """Take note of macro steps.

        Parameters
        ----------
        run : RunView
            The run.
        steps : Chunk
            The steps.
        """
        assert self.growing is not None
        kept = run.kept(steps)
        self.growing.put(kept)
        self._steps += len(kept.t)
        self._last = kept

    def closed(self, run: RunView, result: Result) -> None:
        """Take note of the end of the run.

        Parameters
        ----------
        run : RunView
            The run.
        result : Result
            Its result.
        """
        self._ended = result.error or result.ended or "finished"
        with suppress(CosolveError, OSError):  # a file that cannot be read any more is no failure of the run
            self.result_view = ResultView(result, self.title)
        self._run = None  # last: pages ask for the result as soon as they see that

    def _carry_out(self, order: dict[str, Any], run: RunView) -> None:
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
                self._news.append("unknown command")
        except Exception as error:  # whatever a page asks for, the run goes on
            self._news.append(str(error))

    def _state_path(self, run: RunView) -> Path:
        stem = run.file.stem if run.file is not None else "run"
        folder = run.file.parent if run.file is not None else self._states
        return folder / f"{stem}-{self._steps}.state"

    # -- the thread of the server --------------------------------------------------------------------------

    def order(self, order: dict[str, Any]) -> None:
        """Pass a command of a page to the run, for its next macro point.

        Parameters
        ----------
        order : dict
            `{"do": "pause"}`, "go", "step", "stop", "save", or "set" with "name" and "value".
        """
        if self._run is None:
            return
        if len(self._orders) < 1000:
            self._orders.append(order)
        if self._turn.acquire(timeout=0.05):  # a paused run looks by itself, a little later
            self._turn.notify_all()
            self._turn.release()

    def arrived(self) -> None:
        """Count one more open page."""
        self._watchers, self.ever_watched = self._watchers + 1, True

    def left(self) -> None:
        """Count one open page less."""
        self._watchers, self._left_at = self._watchers - 1, perf_counter()

    def seen(self) -> None:
        """Note that a widget, which cannot say when it is closed, has asked for data."""
        self.ever_watched, self._left_at = True, perf_counter()

    def in_notebook(self) -> None:
        """Do not serve a page, since a widget shows the run."""
        self._has_page = False

    @property
    def goes_on(self) -> bool:
        """True while macro steps are taken."""
        return self._run is not None and not self._paused

    @property
    def watchers(self) -> int:
        """Number of open pages."""
        return self._watchers

    def state(self) -> dict[str, Any]:
        """Return where the run stands, for the pages.

        Returns
        -------
        dict
            Plain values.
        """
        run, last = self._run, self._last
        found: dict[str, Any] = {"t": self._t, "steps": self._steps, "iterations": 0, "residual": np.nan}
        if last is not None:
            found |= {"t": last.t[-1], "iterations": _end(last.iterations), "residual": _end(last.residual)}
        found |= {"running": run is not None, "paused": self._paused and run is not None, "watchers": self._watchers}
        found |= {"ended": self._ended, "news": list(self._news), "tunable": self._tunable}
        if run is not None:
            found |= {"t_end": run.t_end, "changed": list(run.stats.changed)}
        elif self.result_view is not None:
            found |= {"changed": self.result_view.result.stats.changed}
        if self.growing is not None:
            self.growing.take_in()
            found["rows"], found["span"] = self.growing.rows, self.growing.span
        return plain_dict(found)

    def about(self) -> dict[str, Any]:
        """Return what the run is, for the pages.

        Returns
        -------
        dict
            Plain values.
        """
        if self.result_view is not None:
            return self.result_view.about()
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
        """Return signals over a stretch of time, for the pages.

        Parameters
        ----------
        addresses : list of int
            Numbers of the signals.
        t0, t1 : float
            Start and end of the stretch in seconds.
        most : int
            Largest number of points.

        Returns
        -------
        Window
            The signals, thinned out.
        """
        if self.result_view is not None:
            return self.result_view.window(addresses, t0, t1, most)
        if self.growing is None:
            raise SetupError("the run has not begun yet")
        return self.growing.window(addresses, t0, t1, most)

    # -- serving -------------------------------------------------------------------------------------------

    def serve(self) -> Live:
        """Start to serve the page, unless it is served already.

        Returns
        -------
        Live
            This object.
        """
        if self._host is None and self._has_page:
            from cosolve.viewer.host import serve
            from cosolve.viewer.viewer_session import ViewerSession

            self._host = serve(ViewerSession(live=self, title=self.title), **self._settings)
        return self

    @property
    def address(self) -> str:
        """Address of the page, with its token."""
        return "" if self._host is None else self._host.address

    def wait(self) -> None:
        """Wait until the last page is closed."""
        began, coming = perf_counter(), _COMING if self._host is not None and self._host.opened else 0.0
        while self._is_watched() or (not self.ever_watched and perf_counter() - began < coming):
            with self._turn:
                self._turn.wait(_LOOK)

    def _is_watched(self) -> bool:
        return self.ever_watched and (self._watchers > 0 or perf_counter() - self._left_at < _UNUSED)

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
        return float(value) if abs(value) <= sys.float_info.max else copysign(inf, value)
    raise SetupError(f"a number is expected, not {shown(repr(value))}")
