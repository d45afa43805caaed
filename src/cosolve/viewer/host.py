"""Serving a page from a thread of this process, and opening the browser.

The process may be that of a run. A program without the token, that of another user, say, must not slow it or use up
its file descriptors: connections are accepted slowly, few at a time, and closed where no request comes.
"""

from __future__ import annotations

import asyncio
import atexit
import errno
import shutil
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from secrets import token_urlsafe
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from cosolve.errors import SetupError
from cosolve.viewer.viewer_session import ViewerSession

if TYPE_CHECKING:
    import uvicorn

_OWN = ("127.0.0.1", "localhost", "::1")
_MOST = 64  # connections at a time; a browser opens six
_BURST, _SECONDS = 32, 0.5  # connections accepted in that time; then none for a second
_PATIENCE = 5.0  # seconds for a request to come


class Host:
    """A server of the viewer in its own thread, from `view`.

    Parameters
    ----------
    server : uvicorn.Server
        The server.
    end : callable
        `end()` is called when it is closed.
    listening : socket
        Its socket.
    address : str
        Address of the page.
    """

    def __init__(self, server: uvicorn.Server, end: Callable[[], None], listening: socket.socket, address: str) -> None:
        self._server, self._end, self.address = server, end, address
        #: whether a browser was opened, so that a page will connect
        self.opened = False
        #: a private file that leads the browser to the page
        self.redirect: Path | None = None
        self._thread = threading.Thread(
            target=server.run, kwargs={"sockets": [listening]}, name="cosolve viewer", daemon=True
        )
        self._thread.start()
        atexit.register(self.close)  # before threads are frozen, perhaps in the middle of a file

    def wait(self) -> None:
        """Wait until the server ends, or for Ctrl-C."""
        while self._thread.is_alive():
            self._thread.join(0.2)

    def close(self) -> None:
        """End the server."""
        atexit.unregister(self.close)
        self._server.should_exit = True
        self._end()
        self._thread.join(5.0)
        if self.redirect is not None:
            shutil.rmtree(self.redirect.parent, ignore_errors=True)


def serve(
    session: ViewerSession,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = True,
    told: Callable[[str], None] | None = print,
) -> Host:
    """Serve what is shown; `told` gets the address, which is also opened where there is a browser."""
    import uvicorn

    from cosolve.viewer.server import application

    listening = _listening(host, port)
    port = listening.getsockname()[1]
    token = token_urlsafe(16)
    names = None if host not in _OWN else frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))
    app = application(session, token, names)
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=_impatient(),
        log_level="error",
        access_log=False,
        lifespan="off",
        ws="websockets-sansio",
        ws_per_message_deflate=False,  # it would take time from the run, and the way is short
        timeout_graceful_shutdown=1,
        date_header=False,
        server_header=False,
    )
    shown = f"[{host}]" if ":" in host else host
    if host in ("0.0.0.0", "::"):  # noqa: S104  asked for with host=
        shown = socket.gethostname()
    running = Host(*_quiet_server(config), listening, f"http://{shown}:{port}/{token}/")
    # no daemon: a thread that is frozen while it reads HDF5 would hold the end of the program up without end
    threading.Thread(target=session.prepare, name="cosolve viewer reads ahead").start()
    if told is not None:
        told(f"view    {running.address}")
    if open_browser:
        running.redirect = _redirect(running.address)
        running.opened = _open(running.redirect.as_uri(), told)
    return running


class _Listener(socket.socket):
    """A listening socket that lets in few, and slowly: a refusal makes asyncio look away for a second."""

    def __init__(self, family: int, kind: int) -> None:
        super().__init__(family, kind)
        self._inside: WeakSet[socket.socket] = WeakSet()
        self._burst, self._since = 0, 0.0

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection."""
        now = monotonic()
        if now - self._since > _SECONDS:
            self._burst, self._since = 0, now
        if self._burst >= _BURST or sum(one.fileno() >= 0 for one in self._inside) >= _MOST:
            raise OSError(errno.EMFILE, "as many connections as a page needs")
        stream, address = super().accept()
        self._burst += 1
        self._inside.add(stream)
        return stream, address


def _impatient() -> type[asyncio.Protocol]:
    """Uvicorn's protocol, which closes connections on which no request comes."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class _Http(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.loop.call_later(_PATIENCE, self._look)

        def _look(self) -> None:
            if self.cycle is None and self.transport.get_protocol() is self:
                self.transport.abort()

    return _Http


def _quiet_server(config: uvicorn.Config) -> tuple[uvicorn.Server, Callable[[], None]]:
    """A server that is told its end; one that looks for it ten times a second would hold the run up each time."""
    import uvicorn

    ends: list[Callable[[], object]] = []

    class Quiet(uvicorn.Server):
        async def main_loop(self) -> None:
            loop, over = asyncio.get_running_loop(), asyncio.Event()
            loop.set_exception_handler(lambda loop, about: None)  # of connections that are not let in
            ends.append(lambda: loop.call_soon_threadsafe(over.set))
            if not await self.on_tick(0):  # either this sees `should_exit`, or the code that sets it sees `ends`
                await over.wait()

    def end() -> None:
        for tell in ends:
            with suppress(RuntimeError):  # it has ended
                tell()

    return Quiet(config), end


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = _Listener(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":  # a port that was used a moment ago
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(100)
    except (OSError, OverflowError) as error:
        found.close()
        why = (getattr(error, "strerror", None) or str(error)).rstrip(".")
        raise SetupError(
            f"the page cannot be served at {host}, port {port}: {why}; choose another port, or none to get a free one"
        ) from None
    return found


def _redirect(address: str) -> Path:
    """A file of this user that leads to the page: the command of a browser, which all users see, names this only."""
    page = Path(tempfile.mkdtemp(prefix="cosolve-"), "view.html")
    text = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={address}">'
    page.write_text(text, encoding="utf-8")
    return page


def _open(address: str, told: Callable[[str], None] | None) -> bool:
    """Open the page; where there is no browser the address has been said."""
    try:
        opened = webbrowser.open(address)
    except (webbrowser.Error, OSError):
        opened = False
    if not opened and told is not None:
        told("no browser was found here: open the address above yourself")
    return opened
