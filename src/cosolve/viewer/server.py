"""The small web application behind the page: a token in every address, foreign pages turned away, no code executed.

Below `/TOKEN/` there are the page with its script and style, `about` (JSON), `series` (numbers, see `frames.py`), for
a sweep `map` and `cell` (JSON), for fields `mesh` and `field` (numbers) and `limits` (JSON) and, for a run that goes
on, the web socket `live`: the state of the run a few times a second, and orders to it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from importlib import resources
from secrets import compare_digest
from time import thread_time
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from cosolve.errors import CosolveError
from cosolve.viewer.sweep_map import places
from cosolve.viewer.viewer_session import ViewerSession

if TYPE_CHECKING:
    from cosolve.viewer.field_view import FieldView
    from cosolve.viewer.live import Live

_EVERY = 0.25  # seconds between two states of a run at least: more often is not seen, and costs the run
_LONGEST = 4.0  # at most
_SOON = 0.1  # seconds from an order to the next state
_SHARE = 0.015  # of a run's time that is spent on showing it
_MOST_SIGNALS = 12_000  # in one picture: fields have many places
_LONGEST_ORDER = 2000  # characters
_FILES = {"viewer.js": "text/javascript", "viewer.css": "text/css", "scene.js": "text/javascript"}
_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
     b"connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
)  # fmt: skip
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>cosolve</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="viewer.css">
<script type="module" src="viewer.js"></script>
</head>
<body><div id="cosolve"></div><noscript>This page needs JavaScript, which comes from this computer.</noscript></body>
</html>
"""


def application(session: ViewerSession, token: str, hosts: frozenset[str] | None) -> ASGIApp:
    """The web application; `hosts` are the names it answers to (None: any, for a host that was asked for)."""
    app = Starlette(
        routes=[
            Route("/", _page),
            Route("/about", _about),
            Route("/series", _series),
            Route("/map", _map),
            Route("/cell", _cell),
            Route("/mesh", _mesh),
            Route("/field", _field),
            Route("/limits", _limits),
            Route("/{name}", _file),
            WebSocketRoute("/live", _live),
        ],
        exception_handlers={CosolveError: _problem, OSError: _problem},
    )
    app.state.session = session
    return RequestFilter(app, token, hosts)


class RequestFilter:
    """Accepts requests with the token that come from the page itself."""

    def __init__(self, app: ASGIApp, token: str, hosts: frozenset[str] | None) -> None:
        self._app, self._token, self._hosts = app, token, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, cut the token off the path, and add headers to what comes back."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        path = self._inner_path(scope)
        if path is None:
            if scope["type"] == "websocket":
                await receive()
                await send({"type": "websocket.close", "code": 1008})
                return
            refused = PlainTextResponse("Not allowed: open the whole address that cosolve has printed.", 403)
            await refused(scope, receive, _with_headers(send))
            return
        await self._app({**scope, "path": path, "raw_path": path.encode()}, receive, _with_headers(send))

    def _inner_path(self, scope: Scope) -> str | None:
        headers = {key.lower(): value.decode("latin-1") for key, value in scope["headers"]}
        host, origin = headers.get(b"host", ""), headers.get(b"origin")
        if self._hosts is not None and host not in self._hosts:
            return None  # another name for this computer: a foreign page may be behind it
        if origin is not None and origin != f"http://{host}":
            return None
        if scope["type"] == "websocket" and origin is None:
            return None  # no browser
        parts = str(scope["path"]).split("/", 2)  # nothing, the token, the rest
        if len(parts) < 3 or not compare_digest(parts[1].encode(), self._token.encode()):
            return None
        return f"/{parts[2]}"


def _with_headers(send: Send) -> Send:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *_HEADERS]}
        await send(message)

    return sending


def _page(request: Request) -> Response:
    return HTMLResponse(_PAGE)


def _file(request: Request) -> Response:
    kind = _FILES.get(request.path_params["name"])
    found = resources.files("cosolve.viewer").joinpath("bundle", request.path_params["name"]) if kind else None
    if found is None or not found.is_file():
        return PlainTextResponse("There is no such page.", 404)
    return Response(found.read_bytes(), media_type=kind)


def _about(request: Request) -> Response:
    return JSONResponse(request.app.state.session.about())


async def _series(request: Request) -> Response:
    """Signals `ids` of result `r` from `t0` to `t1`, or with `minus` the difference to another result.

    Those of a run that goes on are at hand, and read in this thread (see `RateLimiter`).
    """
    live = request.app.state.session.live
    return _window(request) if live is not None and live.goes_on else await run_in_threadpool(_window, request)


def _window(request: Request) -> Response:
    query, session = request.query_params, request.app.state.session
    try:
        addresses = [int(word) for word in query.get("ids", "").split(",") if word][:_MOST_SIGNALS]
        t0, t1, most = float(query["t0"]), float(query["t1"]), int(query.get("n", 1000))
        if not t0 <= t1:
            raise ValueError
        result = int(query.get("r", 0))
        minus = int(query["minus"]) if "minus" in query else None
    except (KeyError, ValueError):
        return JSONResponse({"problem": "series takes r, ids, t0, t1 and n, all of them numbers"}, 400)
    if "sample" in query:
        window = session.sample(result, addresses, most)
    elif minus is None:
        window = session.window(result, addresses, t0, t1, most)
    else:
        window = session.difference(result, minus, addresses[0] if addresses else 0, t0, t1, most)
    return Response(window.frame(), media_type="application/octet-stream")


def _map(request: Request) -> Response:
    """A quantity of a sweep over `x` and `y`, at places `at` (JSON) of the other dimensions."""
    query = request.query_params
    words = (query.get(name, "") for name in ("quantity", "x", "y"))
    return JSONResponse(request.app.state.session.the_sweep.map(*words, places(query.get("at", "{}"))))


def _cell(request: Request) -> Response:
    """One run of a sweep."""
    return JSONResponse(request.app.state.session.the_sweep.cell(places(request.query_params.get("at", "{}"))))


def _mesh(request: Request) -> Response:
    """The mesh of series `f`, and its times."""
    return _of_fields(request, lambda shown, _: shown.mesh())


def _field(request: Request) -> Response:
    """Field `field` of series `f` at step `step`, and the points there, unless they are those at `have`."""
    return _of_fields(request, lambda shown, q: shown.frame(int(q["step"]), int(q["field"]), int(q.get("have", -1))))


def _limits(request: Request) -> Response:
    """Between which values field `field` of series `f` is."""
    return _of_fields(request, lambda shown, q: shown.limits(int(q["field"])))


def _of_fields(request: Request, asked: Callable[[FieldView, Any], bytes | dict[str, Any]]) -> Response:
    query = request.query_params
    try:
        found = asked(request.app.state.session.fields(int(query.get("f", 0))), query)
    except CosolveError:  # some are ValueErrors
        raise
    except (KeyError, ValueError):
        return JSONResponse({"problem": "fields are asked for by f, field, step and have, all of them numbers"}, 400)
    return JSONResponse(found) if isinstance(found, dict) else Response(found, media_type="application/octet-stream")


def _problem(request: Request, error: Exception) -> Response:
    return JSONResponse({"problem": str(error)}, 422)


async def _live(socket: WebSocket) -> None:
    """States of the run out, orders in; an order is a JSON object with the key `do`."""
    live = socket.app.state.session.live
    if live is None:
        await socket.close(1008)
        return
    await socket.accept()
    live.arrived()
    hurry = asyncio.Event()
    telling = asyncio.create_task(_tell(socket, live, hurry))
    try:
        while True:
            text = await socket.receive_text()
            order = None
            with suppress(ValueError, RecursionError):
                order = json.loads(text) if len(text) <= _LONGEST_ORDER else None
            if isinstance(order, dict):
                await asyncio.to_thread(live.order, order)
                hurry.set()
    except (WebSocketDisconnect, RuntimeError, KeyError):
        pass
    finally:
        live.left()
        telling.cancel()
        with suppress(asyncio.CancelledError):
            await telling


async def _tell(socket: WebSocket, live: Live, hurry: asyncio.Event) -> None:
    """States, when there is something new; soon after an order, otherwise at a pace that leaves the run its time."""
    last, rate_limiter = "", RateLimiter()
    with suppress(WebSocketDisconnect, RuntimeError, OSError):
        while True:
            text = json.dumps(live.state())
            if text != last:
                await socket.send_text(text)
                last = text
            with suppress(TimeoutError):
                await asyncio.wait_for(hurry.wait(), rate_limiter.pause() if live.goes_on else _EVERY)
                hurry.clear()
                await asyncio.sleep(_SOON)


class RateLimiter:
    """How long to wait for the next look at a run, so that all looks together take at most a small share of its time.

    The run and this thread share one interpreter: what one of them computes, the other waits for. A page asks for
    numbers when it is told of a new state, so states set the pace of everything; with more pages, wider systems or a
    slower machine they come less often.

    >>> rate_limiter = RateLimiter()
    >>> rate_limiter.pause(used=rate_limiter.used + 0.003)
    0.25
    >>> rate_limiter.pause(used=rate_limiter.used + 0.030)
    2.0
    """

    def __init__(self) -> None:
        self.used = thread_time()

    def pause(self, used: float | None = None) -> float:
        """Seconds; `used` is the processor time of this thread, in which all pages are served."""
        used = thread_time() if used is None else used
        found, self.used = (used - self.used) / _SHARE, used
        return round(min(max(found, _EVERY), _LONGEST), 3)
