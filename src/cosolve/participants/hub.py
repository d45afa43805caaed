"""The hub: one process, one thread, an event loop over the local sockets of all participants.

It listens at a Unix domain socket inside a folder that only its owner can enter (where there are none, at a TCP port of
this machine) and lets in who knows its token. What records mean is the business of a coupling (`HubCoupling`); the hub
carries them, notices who is gone, and tells the others why.
"""

from __future__ import annotations

import os
import secrets
import selectors
import shutil
import socket
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from cosolve.basics.wording import listed
from cosolve.errors import CosolveError, SetupError, SubsystemError
from cosolve.participants import client as c
from cosolve.participants.client import Connection, Packer, ParticipantError, SpinThenBlock, Unpacker
from cosolve.participants.process_group import ProcessGroup, rank_of_hello, why_not

_LOOK = 0.2  # seconds between two looks at the processes
_UNKNOWN, _HELLO_PATIENCE = 32, 10.0  # connections that have not said who they are, and seconds until they have to


class HubCoupling(Protocol):
    """What a hub needs to know of a coupling."""

    answers: deque[tuple[str, int, bytes]]

    @property
    def names(self) -> list[str]:
        """Who takes part."""

    @property
    def done(self) -> bool:
        """True when all have come to the end."""

    def contract(self, name: str, cwd: str) -> bytes:
        """What a participant has to know before it begins."""

    def deliver(self, name: str, kind: int, content: bytes) -> None:
        """A record has come."""

    def ended(self, name: str) -> bool:
        """True when a participant has come to the end."""

    def close(self) -> None:
        """End what is open."""


class ListeningSocket:
    """Where participants come in: an address with a token, and nothing left behind when it is closed."""

    def __init__(self, tcp: bool = False, token: str = "") -> None:
        self.token = token or secrets.token_hex(16)
        self._folder: str | None = None
        if tcp or not hasattr(socket, "AF_UNIX"):
            self.socket = socket.create_server(("127.0.0.1", 0))
            self.place = f"tcp:127.0.0.1:{self.socket.getsockname()[1]}"
        else:
            self._folder = tempfile.mkdtemp(prefix="cosolve-hub-")  # 0700
            path = os.path.join(self._folder, "hub")
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.bind(path)
            self.socket.listen(64)
            self.place = f"unix:{path}"

    @property
    def address(self) -> str:
        """Where to connect, and the token; what `COSOLVE_HUB` holds."""
        return f"{self.place} {self.token}"

    def leave_note(self, path: Path) -> None:
        """Write the address into a file that only its owner can read, for participants started by hand."""
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(self.address)
        self._note = path

    _note: Path | None = None

    @property
    def left(self) -> list[str]:
        """What is there until the listener is closed."""
        return [str(path) for path in (self._folder, self._note) if path is not None]

    def close(self) -> None:
        """Close the listening socket."""
        self.socket.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._note is not None:
            with suppress(OSError):
                self._note.unlink()


class Hub:
    """Serves a coupling until all participants are done.

    `watch` is asked now and then, and at once when a participant is gone; it returns a sentence when a process has
    ended badly. `patience` is how many seconds participants may take to connect.
    """

    def __init__(
        self,
        coupling: HubCoupling,
        listener: ListeningSocket | None = None,
        *,
        patience: float = 60.0,
        watch: Callable[[str | None], str] | None = None,
    ) -> None:
        self.coupling, self.listener, self.patience = coupling, listener, patience
        self.watch = watch or (lambda name: "")
        self.lines: dict[str, Connection | ProcessGroup] = {}
        self._selector = selectors.DefaultSelector()
        self._finished: set[str] = set()
        self._unknown: dict[Connection, float] = {}  # who has not said who it is, and when it came

    def take(self, stream: socket.socket) -> None:
        """A connection; until it has said who it is it gets little memory and time."""
        line = Connection(stream)
        line.longest = c.HELLO_BYTES
        self._unknown[line] = time.monotonic()
        self._selector.register(stream, selectors.EVENT_READ, (line, None))

    def serve(self) -> None:
        """Until the end, or a sentence of what went wrong."""
        try:
            self.listen(self._over)
        finally:
            self.close()

    def _over(self) -> bool:
        """True when all have come to the end and said goodbye; asked after every record, so the cheap half first."""
        return len(self._finished) >= len(self.lines) and self.coupling.done

    def listen(self, until: Callable[[], bool]) -> None:
        """Carry records until something has happened; all participants learn why it failed."""
        if self.listener is not None and self.listener.socket not in self._selector.get_map():
            self._selector.register(self.listener.socket, selectors.EVENT_READ, None)
        began = time.monotonic()
        looked = began
        spin, select = SpinThenBlock(), self._selector.select
        try:
            while not until():
                events = spin.wait(lambda: select(0), lambda: select(_LOOK))
                self._attend(events)
                now = time.monotonic()
                if not events or now - looked > _LOOK:
                    looked = now
                    self._look_around(now - began)
        except CosolveError as error:
            self.tell(str(error))
            raise
        except BaseException as error:
            self.tell(f"the hub was ended ({type(error).__name__})")
            raise

    def _attend(self, events: Iterable[tuple[selectors.SelectorKey, int]]) -> None:
        """Let in who knocks and hear who has said something, or is gone."""
        for key, _ in events:
            if key.data is None:
                self._accept(self.listener.socket)  # type: ignore[union-attr]
            elif key.fileobj.fileno() >= 0:  # type: ignore[union-attr]
                self._hear(*key.data)

    def _accept(self, listener: socket.socket) -> None:
        """Let in who knocks, who may be a program of another user: few at a time, and not for long."""
        if len(self._unknown) >= _UNKNOWN:
            self._dismiss(next(iter(self._unknown)), None, "too many connections without a hello")
        try:
            stream, _ = listener.accept()
        except OSError as error:  # the process has no file descriptor left, or the other side is gone
            for line in list(self._unknown):
                self._dismiss(line, None, f"the hub cannot take connections: {error.strerror or error}")
            time.sleep(_LOOK)
            return
        self.take(stream)

    def _look_around(self, waited: float) -> None:
        for line in [one for one, since in self._unknown.items() if time.monotonic() - since > _HELLO_PATIENCE]:
            self._dismiss(line, None, f"no hello within {_HELLO_PATIENCE:g} s")
        if self.coupling.done:
            return
        failure = self.watch(None)
        if failure:
            self._attend(self._selector.select(0))  # of a rank that is gone its line says more than the program's end
            raise SubsystemError(failure)
        missing = [name for name in self.coupling.names if name not in self.lines]
        missing += [rank for team in self.lines.values() if isinstance(team, ProcessGroup) for rank in team.missing]
        if missing and waited > self.patience:
            raise SetupError(
                f"{'participant' if len(missing) == 1 else 'participants'} {listed(missing)} did not connect within "
                f"{self.patience:g} s; start {'it' if len(missing) == 1 else 'them'}, or look at the names in the file"
            )

    def _hear(self, line: Connection, name: str | None) -> None:
        try:
            alive = line.read()
        except OSError:
            alive = False
        while True:
            try:
                record = line.complete()
            except ParticipantError as error:
                self._dismiss(line, name, str(error))
                return
            if record is None:
                break
            name = self._record(line, name, *record)
            if name is None:
                return
        if not alive:
            self._unknown.pop(line, None)
            self._selector.unregister(line.socket)
            line.close()
            if name is not None and name not in self._finished:
                self._gone(name, line)

    def _gone(self, name: str, line: Connection) -> None:
        team = self.lines[name]
        if isinstance(team, ProcessGroup):
            if team.left(line):
                return
            if self.coupling.ended(name):
                self._record(line, name, c.FINISH, b"")
                return
            who, why = team.who(line), self.watch(name)
            raise SubsystemError(f"{who} is gone before the coupling has ended" + (f": {why}" if why else ""))
        self._finished.add(name)
        if not self.coupling.ended(name):
            raise SubsystemError(self.watch(name) or f"participant '{name}' is gone before the coupling has ended")

    def _record(self, line: Connection, name: str | None, kind: int, content: bytes) -> str | None:
        """Act on a record; the name of its participant, or None where the line was closed."""
        if name is None:
            return self._welcome(line, kind, content)
        team = self.lines.get(name)
        if isinstance(team, ProcessGroup):
            if kind == c.FINISH and not self.coupling.ended(name):
                raise SubsystemError(f"{team.who(line)} has finished before the coupling has ended")
            record = team.heard(line, kind, content)
            if record is None:
                return name
            kind, content = record
        if kind == c.FINISH:
            self._finished.add(name)
            if not self.coupling.ended(name):
                raise SubsystemError(
                    self.watch(name) or f"participant '{name}' has finished before the coupling has ended"
                )
            return name
        try:
            self.coupling.deliver(name, kind, content)
        except CosolveError:
            raise
        except (ParticipantError, ValueError, KeyError, IndexError, MemoryError) as error:  # fields that make no sense
            raise SubsystemError(
                f"participant '{name}' has sent a record that cannot be understood ({type(error).__name__}: {error}); "
                "its client and this hub may be of different versions"
            ) from error
        self._send()
        return name

    def _send(self) -> None:
        answers = self.coupling.answers
        while answers:
            name, kind, content = answers.popleft()
            with suppress(OSError):  # noticed when it is read from
                self.lines[name].send(kind, content)

    def _welcome(self, line: Connection, kind: int, content: bytes) -> str | None:
        """An unknown connection gives its name and token."""
        failure = "say hello first"
        with suppress(ParticipantError, UnicodeDecodeError):
            hello = Unpacker(content)
            if kind == c.HELLO and hello.whole() == c.PROTOCOL:
                token, name, cwd = hello.text(), hello.text(), hello.text()
                if self.listener is not None and not secrets.compare_digest(
                    token.encode(), self.listener.token.encode()
                ):
                    failure = "the token is not that of this hub"
                elif name not in self.coupling.names:
                    failure = (
                        f"there is no participant '{name}' in this coupling; there are {listed(self.coupling.names)}"
                    )
                else:
                    failure = self._let_in(line, name, cwd, *rank_of_hello(hello))
                    if not failure:
                        return name
        self._dismiss(line, None, failure)
        return None

    def _let_in(self, line: Connection, name: str, cwd: str, process: int, rank: int, size: int) -> str:
        """One process of a participant has come; why it cannot stay, or ''."""
        there = self.lines.get(name)
        failure = why_not(there, name, rank, size)
        if failure:
            return failure
        if there is None:
            contract = self.coupling.contract(name, cwd)
            self.lines[name] = there = line if size == 1 else ProcessGroup(name, size, contract)
        if isinstance(there, ProcessGroup):
            there.join(rank, line, process)
            contract = there.contract
        self._unknown.pop(line, None)
        line.longest = c.LARGEST
        self._selector.modify(line.socket, selectors.EVENT_READ, (line, name))
        with suppress(OSError):  # it said hello and is gone, which reading from it tells with its name
            line.send(c.CONTRACT, contract)
        return ""

    def _dismiss(self, line: Connection, name: str | None, why: str) -> None:
        with suppress(OSError):
            line.send(c.FAILED, Packer().text(why).bytes())
        self._unknown.pop(line, None)
        self._selector.unregister(line.socket)
        line.close()
        if name is not None:
            raise SubsystemError(f"participant '{name}': {why}")

    def tell(self, why: str) -> None:
        """Send the reason of the end to all participants."""
        for line in self._all_lines():
            with suppress(OSError):
                line.socket.settimeout(1.0)
                line.send(c.FAILED, Packer().text(why).bytes())

    def _all_lines(self) -> Iterable[Connection]:
        return [key.data[0] for key in self._selector.get_map().values() if key.data is not None]

    def close(self) -> None:
        """Close all connections."""
        for line in self._all_lines():
            line.close()
        self._selector.close()
        self.coupling.close()
        if self.listener is not None:
            self.listener.close()
