"""The command line: `cosolve new`, `run`, `view`, `check`, `compare`, `report`, `export`, `doctor` and so on.

`group.py` has them all. Here is what the `cosolve` command begins with: Ctrl-C and SIGTERM end it with one sentence
and exit code 130 or 143 from the first moment on, also while modules are imported, and while Python ends.
"""

from __future__ import annotations

import atexit
import signal
import sys
from typing import TYPE_CHECKING, Any

from cosolve.basics.signals import ENDS, leave_at_once

if TYPE_CHECKING:
    from cosolve.cli.group import app

__all__ = ["app", "main"]


def __getattr__(name: str) -> Any:
    """`app`, imported when it is asked for."""
    if name != "app":
        raise AttributeError(f"module 'cosolve.cli' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    from cosolve.cli.group import app

    return app


def main() -> None:
    """The entry point of the `cosolve` command."""
    for number in ENDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, leave_at_once)
            atexit.register(signal.signal, number, signal.SIG_IGN)  # called last: from there on nothing hears it
    from cosolve.cli.group import app

    app()
