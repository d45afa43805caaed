"""The gate for participants on other machines: encrypted connections from their relays, local ones to the hub.

A relay (`relay.py`) carries the bytes of its participants over one connection, each in a channel of its own. Here a
thread passes them on to the listener of the hub, which therefore needs to know nothing of networks. Both sides prove
that they have the key (`cosolve.process.network`). What a participant writes is believed as little as that of a local
one, and the folder for its files is not its own to choose.
"""

from __future__ import annotations

import os
import secrets
import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from cosolve.errors import SetupError
from cosolve.participants import client as c
from cosolve.participants.client import Packer, ParticipantError, Unpacker
from cosolve.participants.hub import ListeningSocket
from cosolve.process.channel import Outbox
from cosolve.process.network import Listener, host_and_port
from cosolve.process.remote import KEY

#: What travels in a channel: it begins, goes on, ends; and in all at once: the token of the hub, the end of the run;
#: a question how a participant ended, and words for that.
OPEN, BYTES, CLOSE, TOKEN, OVER, ASK, WORDS = range(1, 8)
HEAD = struct.Struct("<IB")  # channel, kind
AT_ONCE = 1 << 18  # bytes; less than what the network cuts into pieces
_LOOK, _SOON = 1.0, 0.005  # seconds between two looks who is there, and until what could not be sent is tried again
_ANSWER = 6.0  # seconds for a relay to find out how a program ended
_CHANNELS = 1 << 16  # of one relay


def record(kind: int, content: bytes) -> bytes:
    """A record of a participant as it travels."""
    return c._HEAD.pack(c._MAGIC, kind, len(content)) + content


def gateway(
    listener: ListeningSocket, listen: str | None, key: str | None, folder: str, names: Sequence[str]
) -> Gateway | None:
    """The gate of a hub at `listen` ("host:port"), or none; tells on stderr how `names` find it."""
    if listen is None:
        if key is not None:
            raise SetupError("a key is for participants on other machines; say with --listen where these connect")
        return None
    host, port = host_and_port(listen, "--listen")
    secret = key or os.environ.get(KEY) or secrets.token_hex(16)
    made = Gateway(listener.place, listener.token, host, port, secret, folder)
    shown = f"[{host}]:{made.port}" if ":" in host else f"{host}:{made.port}"
    option = "" if secret in (key, os.environ.get(KEY)) else f" --key {secret}"
    sys.stderr.write(
        f"cosolve: participants on other machines ({', '.join(names) or 'none is left'}) connect to {shown}: "
        f"cosolve precice connect {shown}{option} -p NAME=COMMAND\n"
    )
    sys.stderr.flush()
    return made


class _Channel:
    """One participant of a relay, or one of its ranks, and the local connection for it."""

    def __init__(self, peer: bytes, number: int, name: str, stream: socket.socket) -> None:
        self.peer, self.number, self.name, self.stream = peer, number, name, stream
        self.out = Outbox(stream.send)
        self.closing = False  # nothing more comes from the relay


class Gateway:
    """Listens at `host`:`port` for relays with the `key` and connects their participants to the hub at `place`.

    `folder` is where files of these participants go. `failure` is for `watch` of the hub: how one of them ended.
    """

    def __init__(self, place: str, token: str, host: str, port: int, key: str, folder: str = ".") -> None:
        if os.name == "nt":
            raise SetupError("participants on other machines need Linux or macOS on the side of the hub")
        self._place, self._token, self._folder = place, token, os.path.abspath(folder)
        self._listener = Listener(host, port, key, who="run")
        self.port = self._listener.port
        self._hosts: dict[bytes, str] = {}  # relays that are there
        self._channels: dict[tuple[bytes, int], _Channel] = {}
        self._files: dict[int, _Channel] = {}
        self._where: dict[str, bytes] = {}  # the relay of a participant
        self._words: dict[str, str] = {}
        self._urgent = ""
        self._asking: list[str] = []
        self._answers = threading.Condition()
        self._over: str | None = None
        self._wake, self._woken = os.pipe()
        self._thread = threading.Thread(target=self._run, name="gateway of the hub", daemon=True)
        self._thread.start()

    def failure(self, name: str | None = None) -> str:
        """A sentence when a program elsewhere has ended badly: the one called `name`, which is gone, or any."""
        with self._answers:
            if name is None:
                return self._urgent
            if name not in self._words and name in self._where:
                self._asking.append(name)
                os.write(self._woken, b"x")
                self._answers.wait_for(lambda: name in self._words, _ANSWER)
            return self._words.get(name, "")

    def close(self, why: str = "") -> None:
        """All relays learn that it is over, and why; after the hub has let go of its participants."""
        if self._over is None:
            self._over = why
            os.write(self._woken, b"x")
            self._thread.join(10.0)
            os.close(self._woken)
            os.close(self._wake)

    # -- in the thread

    def _run(self) -> None:
        listener = self._listener
        due = time.monotonic() + _LOOK
        patience_at_end = 0.0
        try:
            while True:
                if self._over is not None:  # what the hub has said last still travels
                    patience_at_end = patience_at_end or time.monotonic() + 2.0
                    if not (self._channels or listener.busy) or time.monotonic() > patience_at_end:
                        break
                self._wait(_SOON if listener.busy or self._over is not None else max(0.0, due - time.monotonic()))
                listener.flush()
                if time.monotonic() >= due:
                    due = time.monotonic() + _LOOK
                    self._look()
                for peer, data in listener.events():
                    if data is None:
                        self._hosts[peer] = ""
                        self._tell(peer, 0, TOKEN, self._token.encode())
                    else:
                        self._heard(peer, bytes(data))
                self._ask()
        finally:
            for peer in list(self._hosts):
                self._tell(peer, 0, OVER, (self._over or "").encode())
            for channel in list(self._channels.values()):
                self._forget(channel)
            listener.close("the coupling is over")

    def _wait(self, patience: float) -> None:
        poller = select.poll()
        for file in (self._listener.file, self._listener.watch_file, self._wake):
            poller.register(file, select.POLLIN)
        for file, channel in self._files.items():
            poller.register(file, select.POLLIN | (select.POLLOUT if channel.out else 0))
        for file, event in poller.poll(1e3 * patience):
            channel_of = self._files.get(file)
            if channel_of is not None:
                if event & select.POLLOUT:
                    self._push(channel_of)
                if event & ~select.POLLOUT:
                    self._from_hub(channel_of)
            elif file == self._wake:
                os.read(self._wake, 4096)
            elif file == self._listener.watch_file:
                self._listener.watch()

    def _tell(self, peer: bytes, number: int, kind: int, content: bytes = b"") -> None:
        self._listener.send(peer, [HEAD.pack(number, kind), content])

    def _from_hub(self, channel: _Channel) -> None:
        try:
            data = channel.stream.recv(AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._tell(channel.peer, channel.number, BYTES, data)
        else:
            self._tell(channel.peer, channel.number, CLOSE)
            self._forget(channel)

    def _forget(self, channel: _Channel) -> None:
        self._channels.pop((channel.peer, channel.number), None)
        self._files.pop(channel.stream.fileno(), None)
        channel.stream.close()

    def _push(self, channel: _Channel) -> None:
        """As much as the hub takes; the rest when it reads again."""
        try:
            if not channel.out.push():
                return
        except OSError:  # the hub has let go, which reading tells
            channel.out.clear()
        if channel.closing:
            with suppress(OSError):
                channel.stream.shutdown(socket.SHUT_WR)

    def _heard(self, peer: bytes, data: bytes) -> None:
        """A message of a relay; one that makes no sense ends the connection."""
        if peer not in self._hosts:
            return
        try:
            number, kind = HEAD.unpack_from(data)
            content = data[HEAD.size :]
            channel = self._channels.get((peer, number))
            if kind == OPEN and channel is None and len(self._channels) < _CHANNELS:
                self._open(peer, number, Unpacker(content))
            elif kind == BYTES and channel is not None:
                channel.out += content
                self._push(channel)
            elif kind == CLOSE and channel is not None:
                channel.closing = True
                self._push(channel)
            elif kind == WORDS:
                words = Unpacker(content)
                self._note(words.text(), words.text(), asked=bool(words.whole()))
            elif kind not in (BYTES, CLOSE):  # these may come after the hub has let go
                raise ValueError(kind)
        except (struct.error, ValueError, ParticipantError):
            self._listener.drop(peer, "this is no message of a relay of participants")

    def _open(self, peer: bytes, number: int, opening: Unpacker) -> None:
        """A participant has connected to its relay: the same here, but for the folder of its files."""
        host = opening.text()
        protocol, token, name = opening.whole(), opening.text(), opening.text()
        opening.text()
        hello = Packer().whole(protocol).text(token).text(name).text(self._folder).bytes() + opening.rest()
        stream = c.connected(self._place).socket
        stream.setblocking(False)
        channel = self._channels[peer, number] = self._files[stream.fileno()] = _Channel(peer, number, name, stream)
        self._hosts[peer] = host
        with self._answers:
            self._where[name] = peer
        channel.out += record(c.HELLO, hello)
        self._push(channel)

    def _note(self, name: str, words: str, asked: bool) -> None:
        with self._answers:
            self._words[name] = words[:2000]
            if not asked:
                self._urgent = self._urgent or words[:2000]
            self._answers.notify_all()

    def _ask(self) -> None:
        """What the hub wants to know of participants that are gone."""
        with self._answers:
            names, self._asking = self._asking, []
            for name in names:
                peer = self._where[name]
                if peer in self._hosts:
                    self._tell(peer, 0, ASK, Packer().text(name).bytes())

    def _look(self) -> None:
        """Who is gone."""
        for peer in self._listener.lost():
            host = self._hosts.pop(peer, "")
            mine = [channel for channel in self._channels.values() if channel.peer == peer]
            names = list(dict.fromkeys(channel.name for channel in mine))
            for name in names:
                sentence = f"the connection to {host or 'the machine'}, where participant '{name}' runs, broke"
                self._note(name, f"{sentence}: its relay was ended, or the network is gone", asked=True)
            for channel in mine:
                self._forget(channel)
        self._listener.complaints.clear()
