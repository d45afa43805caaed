"""Serving a page from a thread of this process, and opening the browser."""

from __future__ import annotations

import atexit
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from secrets import token_urlsafe
from typing import TYPE_CHECKING

from cosolve.errors import SetupError
from cosolve.viewer.exhibition import Exhibition

if TYPE_CHECKING:
    import uvicorn

_OWN = ("127.0.0.1", "localhost", "::1")


class Host:
    """A server in its own thread; `address` is what to open in the browser."""

    def __init__(self, server: uvicorn.Server, end: Callable[[], None], listening: socket.socket, address: str) -> None:
        self._server, self._end, self.address = server, end, address
        #: whether a browser was opened, so that somebody will come
        self.opened = False
        self._thread = threading.Thread(
            target=server.run, kwargs={"sockets": [listening]}, name="cosolve viewer", daemon=True
        )
        self._thread.start()
        atexit.register(self.close)  # before threads are frozen, perhaps in the middle of a file

    def wait(self) -> None:
        """Until the server ends, or Ctrl-C."""
        while self._thread.is_alive():
            self._thread.join(0.2)

    def close(self) -> None:
        """End the server."""
        atexit.unregister(self.close)
        self._server.should_exit = True
        self._end()
        self._thread.join(5.0)


def serve(
    exhibition: Exhibition,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = True,
    told: Callable[[str], None] | None = print,
) -> Host:
    """Serve what is on show; `told` gets the address, which is also opened where there is a browser."""
    for name in ("starlette", "uvicorn", "websockets"):
        if _is_missing(name):
            raise SetupError(
                f"the page in the browser needs '{name}', which is not installed; "
                'pip install "cosolve[view]" brings it'
            )
    import uvicorn

    from cosolve.viewer.server import application

    listening = _listening(host, port)
    port = listening.getsockname()[1]
    token = token_urlsafe(16)
    names = None if host not in _OWN else frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))
    app = application(exhibition, token, names)
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        lifespan="off",
        ws="websockets-sansio",
        ws_per_message_deflate=False,  # it would take time from the run, and the way is short
        timeout_graceful_shutdown=1,
        date_header=False,
    )
    shown = f"[{host}]" if ":" in host else host
    if host in ("0.0.0.0", "::"):
        shown = socket.gethostname()
    running = Host(*_quiet_server(config), listening, f"http://{shown}:{port}/{token}/")
    # no daemon: a thread that is frozen while it reads HDF5 would hold the end of the program up without end
    threading.Thread(target=exhibition.prepare, name="cosolve viewer reads ahead").start()
    if told is not None:
        told(f"view    {running.address}")
    if open_browser:
        running.opened = _open(running.address, told)
    return running


def _quiet_server(config: uvicorn.Config) -> tuple[uvicorn.Server, Callable[[], None]]:
    """A server that is told its end; one that looks for it ten times a second would hold the run up each time."""
    import asyncio

    import uvicorn

    ends: list[Callable[[], object]] = []

    class Quiet(uvicorn.Server):
        async def main_loop(self) -> None:
            loop, over = asyncio.get_running_loop(), asyncio.Event()
            ends.append(lambda: loop.call_soon_threadsafe(over.set))
            if not await self.on_tick(0):  # either this sees `should_exit`, or whoever sets it sees `ends`
                await over.wait()

    def end() -> None:
        for tell in ends:
            with suppress(RuntimeError):  # it has ended
                tell()

    return Quiet(config), end


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
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


def _open(address: str, told: Callable[[str], None] | None) -> bool:
    """Open the page; where there is no browser the address has been said."""
    try:
        opened = webbrowser.open(address)
    except (webbrowser.Error, OSError):
        opened = False
    if not opened and told is not None:
        told("no browser was found here: open the address above yourself")
    return opened


def _is_missing(name: str) -> bool:
    try:
        import_module(name)
    except ImportError:
        return True
    return False
