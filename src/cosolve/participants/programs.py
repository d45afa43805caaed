"""Starting the programs of participants, finding out how they ended, and ending those that are left.

Each program runs in a process group of its own. Its output goes to a log, of which the last lines are quoted when it
fails.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from cosolve.basics.processes import kill_group, start
from cosolve.basics.signals import signals_later
from cosolve.errors import SetupError
from cosolve.participants.common_log import CommonLog
from cosolve.participants.watchdog import Watchdog
from cosolve.process.launch import ended, log_tail

_GRACE = 2.0  # seconds to end by itself once the coupling is over or has failed
_SHELL = frozenset(";&|<>$`(){}*?~\n")


class Programs:
    """The programs of participants, by name; `commands` are command lines.

    `folder` is where their output is kept, one `NAME.log` each, or `files` says where; without them only the last lines
    are told, where one fails. `log` takes the lines of all. If this process is killed, the programs end, and the
    files `left` go.
    """

    def __init__(
        self,
        commands: Mapping[str, str],
        environment: Mapping[str, str],
        folder: Path | None = None,
        files: Mapping[str, Path] | None = None,
        log: CommonLog | None = None,
        left: Sequence[str] = (),
    ) -> None:
        self._common_log = log
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._logs: dict[str, IO[bytes]] = {}
        self._told: set[str] = set()
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            files = {name: folder / f"{name}.log" for name in commands}
        with signals_later(strict=True):
            self._guard = Watchdog(left)
        try:
            for name, command in commands.items():
                with signals_later(strict=True):  # or a program might be started without being recorded
                    self._start(name, command, environment, None if files is None else files[name])
            if log is not None:
                log.follow(self._logs)
        except BaseException:
            self.end(0.0)
            raise

    def _start(self, name: str, command: str, environment: Mapping[str, str], file: Path | None) -> None:
        try:
            words = ["/bin/sh", "-c", command] if _SHELL & set(command) and os.name != "nt" else shlex.split(command)
        except ValueError as error:
            raise SetupError(f"the command of '{name}' cannot be read ({error}): {command}") from None
        if not words:
            raise SetupError(f"the command of '{name}' is empty")
        log = tempfile.TemporaryFile() if file is None else file.open("w+b")  # noqa: SIM115
        self._logs[name] = log
        try:
            self.processes[name] = start(words, log, env={**os.environ, **environment})
            self._guard.add(self.processes[name].pid)
        except OSError as error:
            raise SetupError(f"'{name}' cannot be started ({error.strerror}): {command}") from None

    def failure(self, name: str | None = None) -> str:
        """A sentence when a program has ended badly: the one called `name`, which is gone, or any."""
        if name is None:
            if self._common_log is not None:
                self._common_log.collect()
            for other, process in self.processes.items():
                code = process.poll()
                if code is not None and other not in self._told:
                    self._told.add(other)
                    if code != 0:
                        return self._sentence(other)
            return ""
        if name not in self.processes:
            return ""
        for other, process in self.processes.items():  # one that was killed is the reason, not one that followed it
            if other != name and (process.poll() or 0) < 0:
                return self._sentence(other)
        return self._sentence(name)

    def _sentence(self, name: str) -> str:
        how = ended(self.processes[name], patience=3.0)
        return f"participant '{name}' {how}{log_tail(self._logs[name])}"

    def wait(self, grace: float = _GRACE) -> dict[str, int]:
        """Let all programs come to their end, for `grace` seconds after the first; their exit codes."""
        end = time.monotonic() + grace
        for process in self.processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, end - time.monotonic()))
        return {name: process.returncode for name, process in self.processes.items() if process.poll() is not None}

    def words(self, name: str) -> str:
        """The last output of a program."""
        return log_tail(self._logs[name])

    def end(self, grace: float = _GRACE) -> None:
        """End what is left, and whatever it started."""
        self.wait(grace)
        for process in self.processes.values():
            kill_group(process)
            with suppress(OSError):
                os.killpg(process.pid, 9)  # what it started and left
        self._guard.done()
        if self._common_log is not None:
            self._common_log.close()
        for log in self._logs.values():
            log.close()
