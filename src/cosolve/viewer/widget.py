"""The viewer in notebooks (Jupyter, JupyterLab, marimo): the same page as a widget that asks the kernel for numbers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from cosolve.basics.packages import optional
from cosolve.errors import CosolveError, SetupError
from cosolve.method.named import MethodLike
from cosolve.viewer.embedded import bundle
from cosolve.viewer.live import Live
from cosolve.viewer.sweep_map import places
from cosolve.viewer.viewer_session import ViewerSession
from cosolve.viewer.viewing import Shown, session_of

if TYPE_CHECKING:
    from cosolve.viewer.field_view import FieldView


def widget(*shown: Shown, method: MethodLike | None = None, step: float | None = None) -> Any:
    """Show results, fields, a system or a sweep as a widget in a notebook.

    Parameters
    ----------
    *shown : Result, FieldSeries, System, xarray.Dataset, Live or path
        As for `view`. A `Live` shows a run that goes on in another thread.
    method : Method, str, dict or None, default None
        Method to be judged, for a system.
    step : float or None, default None
        Macro step in seconds to be judged, for a system.

    Returns
    -------
    anywidget.AnyWidget
        The widget; make it the last line of a cell. Needs `pip install "cosolve[notebook]"`.

    Examples
    --------
    >>> import cosolve as cs
    >>> clock = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    >>> shown = cs.plot.widget(cs.simulate(clock, t_end=1.0, method=cs.Jacobi(), step=0.1))
    >>> type(shown).__name__
    'Viewer'
    """
    kind = _kind()
    if len(shown) == 1 and isinstance(shown[0], Live):
        shown[0].in_notebook()
        return kind(ViewerSession(live=shown[0], title=shown[0].title))
    return kind(session_of(shown, method, step))


def answer(session: ViewerSession, question: Any) -> tuple[dict[str, Any], list[bytes]]:
    """What the widget is told: a message, and numbers beside it; a sentence where that makes no sense."""
    reply: dict[str, Any] = {"id": question.get("id") if isinstance(question, dict) else None}
    try:
        if question["ask"] == "about":
            return reply | {"found": session.about()}, []
        if question["ask"] == "scene":
            return reply | {"found": bundle("scene.js")}, []
        if question["ask"] in ("state", "order"):
            return reply | {"found": _of_the_run(session.live, question)}, []
        if question["ask"] == "map":
            quantity, x, y = (str(question[key]) for key in ("quantity", "x", "y"))
            return reply | {"found": session.the_sweep.map(quantity, x, y, places(question["at"]))}, []
        if question["ask"] == "cell":
            return reply | {"found": session.the_sweep.cell(places(question["at"]))}, []
        if question["ask"] in ("mesh", "field", "limits"):
            return _of_fields(session.fields(int(question["f"])), reply, question)
        ids, n, result = [int(k) for k in question["ids"]], int(question["n"]), int(question["result"])
        if question["ask"] == "sample":
            return reply, [session.sample(result, ids, n).frame()]
        t0, t1 = float(question["t0"]), float(question["t1"])
        if question["ask"] == "difference":
            window = session.difference(result, int(question["minus"]), ids[0], t0, t1, n)
        else:
            window = session.window(result, ids, t0, t1, n)
    except (CosolveError, OSError) as error:
        return reply | {"problem": str(error)}, []
    except (KeyError, TypeError, ValueError, IndexError):
        return reply | {"problem": "that is no question about a result"}, []
    return reply, [window.frame()]


def _of_fields(shown: FieldView, reply: dict[str, Any], question: Any) -> tuple[dict[str, Any], list[bytes]]:
    if question["ask"] == "mesh":
        return reply, [shown.mesh()]
    field = int(question["field"])
    if question["ask"] == "limits":
        return reply | {"found": shown.limits(field)}, []
    return reply, [shown.frame(int(question["step"]), field, int(question["have"]))]


def _of_the_run(live: Live | None, question: Any) -> dict[str, Any] | None:
    """The state of a run that goes on in another thread, or None after an order to it."""
    if live is None:
        raise SetupError("no run is watched here")
    if question["ask"] == "state":
        live.seen()
        return live.state()
    if not isinstance(question["order"], dict):
        raise TypeError
    live.order(question["order"])
    return None


@cache
def _kind() -> Any:
    anywidget = optional("anywidget", "notebook", "the widget for notebooks")

    class Viewer(anywidget.AnyWidget):  # type: ignore[misc, name-defined, unused-ignore]
        """Results or a system in a notebook."""

        _esm = bundle("viewer.js")
        _css = bundle("viewer.css")

        def __init__(self, session: ViewerSession) -> None:
            super().__init__()
            self.session = session
            self.on_msg(self._asked)

        def _asked(self, _: Any, question: Any, __: Any) -> None:
            message, buffers = answer(self.session, question)
            self.send(message, buffers)

    return Viewer
