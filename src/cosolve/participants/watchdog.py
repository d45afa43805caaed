"""What ends the programs of a hub that was killed: a shell that waits for the end of a pipe.

A hub that ends, however badly, ends its programs and removes its socket. One that gets SIGKILL can do neither, and a
program that computes for hours would not notice that the run has ended. Windows has no such shell; there programs end
at their next call.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from cosolve.basics.processes import start

#: Lines are process groups, until `done`, which means that all is well; the pipe ends when the hub does.
_SCRIPT = """
groups=
while read -r line; do
  if [ "$line" = done ]; then exit 0; fi
  groups="$groups $line"
done
sleep 2
for group in $groups; do kill -9 -- "-$group" 2> /dev/null; done
if [ $# -gt 0 ]; then rm -rf -- "$@"; fi
"""


class Watchdog:
    """Watches over this process; `paths` go, and groups of processes end, some seconds after it was killed."""

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        if os.name == "nt":
            return
        with suppress(OSError):  # without a shell there is no guard
            shell = ["/bin/sh", "-c", _SCRIPT, "guard", *paths]
            environment = {"PATH": os.environ.get("PATH", os.defpath)}
            self._shell = start(shell, subprocess.DEVNULL, stdin=subprocess.PIPE, cwd="/", env=environment)

    def add(self, group: int) -> None:
        """A program was started, in a group of its own."""
        self._tell(f"{group}\n")

    def done(self) -> None:
        """All is cleaned up."""
        if self._shell is not None:
            self._tell("done\n")
            shell, self._shell = self._shell, None
            assert shell.stdin is not None
            shell.stdin.close()
            shell.wait()

    def _tell(self, line: str) -> None:
        if self._shell is not None and self._shell.stdin is not None:
            with suppress(OSError):
                self._shell.stdin.write(line.encode())
