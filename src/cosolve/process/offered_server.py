"""The process of one connection to `cosolve serve`: builds the subsystem that the server offers and answers for it.

Requests come from another machine, through `connection_server.py`: they are numbers and plain data or are refused.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

from cosolve.basics.processes import end_with, print_to_log
from cosolve.process.channel import Disconnected, Pipe
from cosolve.process.content import Content
from cosolve.process.factory import built
from cosolve.process.server import Server
from cosolve.subsystem.base import Subsystem


class OfferedServer(Server):
    """Builds what the server offers, whatever is asked for."""

    def __init__(self, source: str) -> None:
        super().__init__(Content())
        self._source = source

    def load(self, content: Any) -> Subsystem:
        return built(self._source)


def main(parent: int) -> None:
    """Answer through the pipes; what is printed goes where the errors of the server go."""
    pipe = Pipe(os.dup(0), os.dup(1))
    print_to_log()
    end_with(parent)
    with suppress(Disconnected):
        contents = Content()
        source, sys.argv = contents.unpack(pipe.receive())
        server = OfferedServer(source)
        while True:
            pipe.send(server.answer(pipe.receive()))
