"""`cosolve serve`: a subsystem for runs on other machines."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def serve(
    factory: Annotated[
        str, typer.Argument(metavar="FACTORY", help="What builds the subsystem: model.py:function.", show_default=False)
    ],
    port: Annotated[int, typer.Option("--port", "-p", help="Port to listen at; 0 takes a free one.")] = 0,
    host: Annotated[str, typer.Option("--host", help="Address to listen at; 0.0.0.0 for all networks.")] = "127.0.0.1",
    key: Annotated[
        str | None, typer.Option("--key", help="What clients must know.", show_default="COSOLVE_KEY, or a random one")
    ] = None,
) -> None:
    """Offer a subsystem to runs on other machines (cosolve.remote.Remote), until Ctrl-C or SIGTERM."""
    from cosolve.process.connection_server import serve as offer

    def ready(address: str, secret: str) -> None:
        typer.echo(f"serving {factory}\ncosolve.Remote({address!r}, key={secret!r})")
        sys.stdout.flush()

    offer(factory, host=host, port=port, key=key, ready=ready)
