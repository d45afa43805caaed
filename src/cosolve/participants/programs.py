"""Starting the programs of participants, finding out how they ended, and ending those that are left.

Each program runs in a process group of its own. Its output goes to a log, of which the last lines are quoted when it
fails.

The programs of a hub that was killed are ended by a shell that waits for the end of a pipe.

A hub that ends, however badly, ends its programs and removes its socket. One that gets SIGKILL can do neither, and a
program that computes for hours would not notice that the run has ended. Windows has no such shell; there programs end
at their next call.

`CommonLog` is one log of several programs: every line with the name of who printed it. What programs print goes to
files of their own, which are looked at now and then: lines of one program stand in their order, those of several to
within a look.
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
from cosolve.process.launch import ended, log_tail

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
