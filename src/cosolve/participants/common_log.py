"""One log of several programs: every line with the name of who printed it, in the order in which they are seen.

What programs print goes to files of their own, which are looked at now and then: lines of one program stand in their
order, those of several to within a look.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from cosolve.errors import SetupError

_PIECE = 1 << 20  # bytes


class CommonLog:
    r"""Lines of all, as `name | line`, in the file `path`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, open(f"{folder}/a", "w+b", buffering=0) as printed:
    ...     log = CommonLog(Path(folder, "all.log"))
    ...     log.follow({"fluid": printed})
    ...     _ = printed.write(b"first\nsec")
    ...     log.collect()
    ...     log.say("t = 0.1")
    ...     _ = printed.write(b"ond\nlast output")
    ...     log.close()
    ...     print(Path(folder, "all.log").read_text(), end="")
    fluid | first
    cosolve | t = 0.1
    fluid | second
    fluid | last output
    """

    def __init__(self, path: Path) -> None:
        if not hasattr(os, "pread"):
            raise SetupError("one log of all programs needs Linux or macOS; give a folder for one log each")
        try:
            self._file: IO[str] = path.open("w", encoding="utf-8")
        except OSError as error:
            raise SetupError(f"the log '{path}' cannot be written: {error.strerror}") from None
        self._logs: dict[str, IO[bytes]] = {}
        self._seen: dict[str, int] = {}
        self._rest: dict[str, bytes] = {}

    def follow(self, logs: Mapping[str, IO[bytes]]) -> None:
        """What these programs print is wanted."""
        self._logs.update(logs)

    def say(self, line: str) -> None:
        """A line of the hub itself, after what was printed before."""
        self.collect()
        self._file.write(f"cosolve | {line}\n")

    def collect(self) -> None:
        """Take what was printed since the last time."""
        for name, log in self._logs.items():
            while not log.closed:
                data = os.pread(log.fileno(), _PIECE, self._seen.get(name, 0))  # the program shares the position
                if not data:
                    break
                self._seen[name] = self._seen.get(name, 0) + len(data)
                *lines, self._rest[name] = (self._rest.get(name, b"") + data).split(b"\n")
                self._write(name, lines)
        self._file.flush()

    def _write(self, name: str, lines: list[bytes]) -> None:
        self._file.writelines(f"{name} | {line.decode(errors='replace').rstrip()}\n" for line in lines)

    def close(self) -> None:
        """Take the rest, also lines without an end."""
        if self._file.closed:
            return
        self.collect()
        for name, rest in self._rest.items():
            if rest:
                self._write(name, [rest])
        self._file.close()
