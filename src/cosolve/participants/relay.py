"""The other machine's side of a coupling: a local socket for participants there, and their bytes to the hub far away.

To a participant the relay looks like the hub. It holds one encrypted connection (`cosolve.process.network`) to the
gateway of the hub, starts programs where it is told to, and ends everything with a sentence when the connection breaks.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from cosolve.errors import CosolveError, SetupError, SubsystemError
from cosolve.participants import client as c
from cosolve.participants.client import Packer, ParticipantError, Unpacker
from cosolve.participants.gateway import ASK, AT_ONCE, BYTES, CLOSE, HEAD, OPEN, OVER, TOKEN, WORDS, record
from cosolve.participants.hub import ListeningSocket
from cosolve.participants.programs import Programs
from cosolve.process.channel import Disconnected, Outbox, TimedOut
from cosolve.process.network import Connection, Unanswered, host_and_port

_LOOK = 0.2  # seconds between two looks at the programs
_GREETING = 10.0  # seconds for the hub to say its token
_HELLO = 1 << 16  # bytes of a greeting


class _Local:
    """A participant, or one of its ranks, that has connected here."""

    def __init__(self, number: int, stream: socket.socket) -> None:
        self.number, self.stream = number, stream
        self.line: c.Connection | None = c.Connection(stream)  # until it has said who it is
        self.out = Outbox(stream.send)
        self.gone = False  # it has let go; the hub has not yet

    def __repr__(self) -> str:
        return f"channel {self.number}"


class Relay:
    """Connects participants on this machine to the hub at `address` ("host:port"), whose `key` it has.

    `commands` are programs to be started here, `logs` a folder for what they print, `note` a file that tells others
    where to connect. `environment` is added to what the programs find in theirs, and `patience` is how many seconds to
    wait for the hub.
    """

    def __init__(
        self,
        address: str,
        key: str,
        commands: Mapping[str, str],
        *,
        environment: Mapping[str, str] | None = None,
        logs: Path | None = None,
        note: Path | None = None,
        tcp: bool = False,
        patience: float = 0.0,
    ) -> None:
        host, port = host_and_port(address, "connect")
        self._where = str(address)
        self._far = _connected(host, port, key, patience)
        self._locals: dict[int, _Local] = {}
        self._count = 0
        self._over: str | None = None
        self._reported: set[str] = set()
        try:
            self.listener = ListeningSocket(tcp, token=self._token())
            self.listener.socket.setblocking(False)
            if note is not None:
                self.listener.leave_note(note)
            told = {"COSOLVE_HUB": self.listener.address, **(environment or {})}
            self._programs = Programs(commands, told, logs, left=self.listener.left)
        except BaseException:
            if hasattr(self, "listener"):
                self.listener.close()
            self._far.close()
            raise

    def _token(self) -> str:
        """What the hub says first."""
        try:
            first = bytes(self._far.receive(_GREETING))
        except (Disconnected, TimedOut):
            first = b""
        if len(first) < HEAD.size or HEAD.unpack_from(first) != (0, TOKEN):
            raise SetupError(f"connect: what answers at {self._where} is no hub of participants")
        return first[HEAD.size :].decode(errors="replace")

    def run(self) -> None:
        """Until all is over; a sentence where it went wrong."""
        why = ""
        try:
            while not self._done():
                self._once()
            if self._over:
                raise SubsystemError(f"the hub at {self._where} has ended the coupling: {self._over}")
            for name, code in self._programs.wait(3600.0).items():
                if code != 0:
                    how = f"participant '{name}' ended with exit code {code} after the coupling"
                    raise CosolveError(f"{how}{self._programs.words(name)}")
        except Disconnected as gone:
            self._read_end()
            if self._over:
                why = f"the hub at {self._where} has ended the coupling: {self._over}"
                raise SubsystemError(why) from None
            why = f"the connection to the hub at {self._where} broke: it was ended, or the network is gone"
            if str(gone) and self._over is None:
                why = f"the hub at {self._where} closed the connection: {gone}"
            raise SubsystemError(why) from None
        except BaseException as error:
            why = str(error) or f"the relay was ended ({type(error).__name__})"
            raise
        finally:
            self._end(why)

    def _read_end(self) -> None:
        """What the hub said before it let go, when that was noticed in sending."""
        with suppress(Disconnected, TimedOut):
            while self._over is None:
                self._heard(bytes(self._far.receive(0.1)))

    def _done(self) -> bool:
        if self._over is not None:
            return True
        ends = [process.poll() for process in self._programs.processes.values()]
        return bool(ends) and all(code == 0 for code in ends) and not self._locals  # else the hub says what it means

    def _once(self) -> None:
        """Wait for something, and pass it on."""
        reading = [self.listener.socket.fileno()]
        reading += [one.stream.fileno() for one in self._locals.values() if not one.gone]
        writing = [one.stream.fileno() for one in self._locals.values() if one.out]
        came, files = self._far.wait(reading, writing, _LOOK)
        by_file = {one.stream.fileno(): one for one in self._locals.values()}
        for file in files:
            one = by_file.get(file)
            if one is None:
                self._accept()
            else:
                if one.out:
                    self._push(one)
                if not one.gone and one.number in self._locals:
                    self._from_participant(one)
        while came and self._over is None:
            try:
                self._heard(bytes(self._far.receive(0.0)))
            except TimedOut:
                break
        if not files:
            self._look()

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            stream, _ = self.listener.socket.accept()
            stream.setblocking(False)
            self._count += 1
            self._locals[self._count] = _Local(self._count, stream)

    def _tell(self, number: int, kind: int, content: bytes = b"") -> None:
        self._far.send([HEAD.pack(number, kind), content])

    def _from_participant(self, one: _Local) -> None:
        if one.line is not None:
            self._greeted(one, one.line)
            return
        try:
            data = one.stream.recv(AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._tell(one.number, BYTES, data)
        else:
            one.gone = True
            self._tell(one.number, CLOSE)

    def _greeted(self, one: _Local, line: c.Connection) -> None:
        """The first record of a participant: who it is."""
        hello = None
        try:
            alive = line.read()
            hello = line.complete()
        except BlockingIOError:
            return
        except (OSError, ParticipantError):
            alive = False
        if hello is None and alive and len(line._buffer) < _HELLO:
            return
        if hello is None or hello[0] != c.HELLO:
            self._drop(one)
            return
        one.line = None
        self._tell(one.number, OPEN, Packer().text(socket.gethostname()).bytes() + hello[1])
        if line._buffer:
            self._tell(one.number, BYTES, bytes(line._buffer))

    def _heard(self, data: bytes) -> None:
        number, kind = HEAD.unpack_from(data)
        content = data[HEAD.size :]
        one = self._locals.get(number)
        if kind == OVER:
            self._over = content.decode(errors="replace")
        elif kind == ASK:
            name = Unpacker(content).text()
            self._say(name, self._programs.failure(name), asked=1)
        elif kind == BYTES and one is not None:
            one.out += content
            self._push(one)
        elif kind == CLOSE and one is not None:
            self._push(one)
            self._drop(one)

    def _say(self, name: str, words: str, asked: int) -> None:
        self._reported.add(name)
        self._tell(0, WORDS, Packer().text(name).text(words).whole(asked).bytes())

    def _push(self, one: _Local) -> None:
        """As much as the participant takes; the rest when it reads again."""
        try:
            one.out.push()
        except OSError:  # it is gone, which reading tells
            one.out.clear()

    def _drop(self, one: _Local) -> None:
        """The hub has let go of it, and it is told what was said last."""
        self._locals.pop(one.number, None)
        with suppress(OSError):
            one.stream.setblocking(True)
            one.stream.settimeout(1.0)
            one.stream.sendall(one.out)
        one.stream.close()

    def _look(self) -> None:
        """A program that has ended badly is told at once, also one that never connected."""
        for name, process in self._programs.processes.items():
            if (process.poll() or 0) != 0 and name not in self._reported:
                self._say(name, self._programs.failure(name), asked=0)

    def _end(self, why: str) -> None:
        for one in list(self._locals.values()):
            if why and not one.gone and one.line is None:
                one.out += record(c.FAILED, Packer().text(why).bytes())
            self._drop(one)
        self.listener.close()
        self._far.close()
        self._programs.end()


def _connected(host: str, port: int, key: str, patience: float) -> Connection:
    """A connection to the gate of the hub, which may come later."""
    end = time.monotonic() + patience
    while True:
        try:
            return Connection(host, port, key, who="connect", service="cosolve precice run CONFIG --listen HOST:PORT")
        except Unanswered:
            if time.monotonic() > end:
                raise
            time.sleep(_LOOK)
