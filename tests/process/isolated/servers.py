"""Servers as users start them, and networks that fail, for the tests of `Remote`."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.processes import ROOT, environment, started

_PROGRAM = "from cosolve.process import network as n\n{before}\nfrom cosolve.cli import main; main()"


@contextmanager
def served(factory: str, *options: str, before: str = "", **more: Any) -> Iterator[tuple[str, str, Any]]:
    """`cosolve serve`; gives the address and the key that it prints, and the process. `before` is run first there."""
    command = [sys.executable, "-c", _PROGRAM.format(before=before), "serve", factory, *options]
    with started(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, **more) as server:
        assert server.stdout.readline() == f"serving {factory}\n"
        line = server.stdout.readline()
        yield line.split("'")[1], line.split("'")[3], server


def said(path: Path, words: str) -> bool:
    """Whether a server whose errors go to `path` has said so."""
    return words in path.read_text()


class Line:
    """A network between a client and the server at `target`, which can go silent or be cut inside of a message."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self._entry = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self.silent = False
        self.budget = -1  # bytes towards the server until the line is cut; -1 for no end
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._entry.getsockname()[1]}"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._entry.accept()
                far = socket.create_connection(self._target)
                self._ends += [near, far]
                for ends in ((near, far, True), (far, near, False)):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, source: socket.socket, to: socket.socket, counted: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if counted and self.budget >= 0:
                    data, self.budget = data[: self.budget], self.budget - len(data)
                    if self.budget < 0:
                        to.sendall(data)
                        break
                if not self.silent:
                    to.sendall(data)
        if not self.silent:
            for end in (source, to):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for end in (self._entry, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
