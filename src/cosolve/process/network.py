"""Connections between machines: ZeroMQ carries them, and its CURVE encrypts them and proves who is who.

Both sides know one key, a text. A slow hash of it gives two pairs of curve25519 keys: the server has to hold one of
them, and lets in only who holds the other. A client without the key gets no byte to be read here. Messages have a
head of eight bytes that says what they are; long ones travel in pieces, so that heartbeats pass in between. A side
that is not heard for `SILENCE` seconds is gone. What the messages hold is not known here.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from time import monotonic
from typing import Any, NamedTuple

from cosolve.basics.wording import shown
from cosolve.errors import SetupError, SubsystemError
from cosolve.process.channel import Disconnected, TimedOut
from cosolve.process.data import Malformed, library, pack, unpack
from cosolve.version import VERSION

PROTOCOL = 2  # rises when messages change; the greeting itself never does
HEARTBEAT, SILENCE = 1.0, 8.0  # seconds between signs of life, and until a side without them is gone
CONNECTING = 8.0  # seconds until an answer
LARGEST = 2**30  # bytes of a message
_PIECE = 2**20  # bytes of what travels at once
_LOOK = 0.2  # seconds between two looks whether the other side is still there
_SEAL = 64  # bytes that encryption adds, and some
_DOUBTS, _CARE = 3, 60.0  # how often to ask who may be gone, and seconds until one is asked without any doubt
_QUEUE = 32  # messages that wait on each side
#: Milliseconds until ZeroMQ connects again: not within a run, since another connection would be another subsystem. Its
#: own "never", -1, would throw away what has arrived and was not read yet as soon as the connection ends.
_NEVER = 2**29

_MARK = b"cosolve"
HELLO, WELCOME, MORE, DATA, PROBE, BYE = (_MARK + bytes([kind]) for kind in range(1, 7))
_HEAD = len(DATA)
_WORDS = 1000  # characters of the last message
_DOMAIN = "cosolve"


def host_and_port(address: str, what: str, least: int = 0) -> tuple[str, int]:
    """The parts of "host:port", with a port of at least `least`.

    >>> host_and_port("0.0.0.0:5555", "--listen"), host_and_port("[::1]:0", "--listen")
    (('0.0.0.0', 5555), ('::1', 0))
    """
    host, _, port = str(address).rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host  # as IPv6 is written
    known = port.isascii() and port.isdecimal() and least <= int(port[:6]) < 65536
    if not bare or (bare is host and ":" in host) or not known:
        raise SetupError(f"{what}: an address is 'host:port', not {address!r}")
    return bare, int(port)


class Keys(NamedTuple):
    """Two pairs, as ZeroMQ writes them."""

    server: bytes
    server_secret: bytes
    client: bytes
    client_secret: bytes


@lru_cache(maxsize=16)
def keys(key: str) -> Keys:
    """What CURVE needs, from the key that both sides know.

    The hash is slow on purpose: a key that people make up can be found by trying, also from a recorded greeting, and
    every trial costs as much. `cosolve serve` makes random ones.

    >>> keys("a text") == keys("a text"), keys("a text").server == keys("another").server
    (True, False)
    """
    zmq = _zmq()
    made = hashlib.scrypt(
        key.encode(errors="surrogatepass"), salt=b"cosolve network keys", n=2**14, r=8, p=2, maxmem=2**26, dklen=64
    )
    secrets = [zmq.utils.z85.encode(made[k : k + 32]) for k in (0, 32)]
    server, client = (zmq.curve_public(secret) for secret in secrets)
    return Keys(server, secrets[0], client, secrets[1])


def _zmq() -> Any:
    """The library, with encryption."""
    zmq = library("zmq")
    for name in ("zmq.utils.z85", "zmq.utils.monitor", "msgpack"):  # the last one for greetings
        library(name)
    if not zmq.has("curve"):
        raise SetupError("this libzmq was built without encryption (CURVE); run: pip install --force-reinstall pyzmq")
    return zmq


@lru_cache
def _context(process: int) -> Any:
    """One for all connections of a process; a fork cannot use that of its parent."""
    return _zmq().Context()


def _settle(link: Any) -> None:
    """What both ends have in common."""
    link.linger = 0
    link.sndhwm = link.rcvhwm = _QUEUE
    link.maxmsgsize = _PIECE + _HEAD + _SEAL
    link.handshake_ivl = int(1e3 * CONNECTING)
    link.heartbeat_ivl, link.heartbeat_timeout = int(1e3 * HEARTBEAT), int(1e3 * SILENCE)
    link.heartbeat_ttl = int(1e3 * SILENCE)


def _pieces(parts: Sequence[bytes | memoryview]) -> Iterator[bytes]:
    """One message as what travels at once, each with its head."""
    whole = b"".join([DATA, *parts])
    if len(whole) <= _PIECE + _HEAD:
        yield whole
        return
    if len(whole) - _HEAD > LARGEST:
        raise SubsystemError(f"a message of {len(whole)} bytes is too long to be sent; at most {LARGEST} are")
    body = memoryview(whole)[_HEAD:]
    for at in range(0, len(body), _PIECE):
        head = MORE if at + _PIECE < len(body) else DATA
        yield b"".join([head, body[at : at + _PIECE]])


def _greeting() -> bytes:
    return pack({"protocol": PROTOCOL, "cosolve": VERSION})


def _greeted(data: bytes) -> tuple[int, str]:
    """Protocol and version of the other side."""
    about = unpack(data)
    if type(about) is not dict or type(about.get("protocol")) is not int:
        raise Malformed("a greeting that is none")
    return about["protocol"], shown(about.get("cosolve"), 40)


# -- the side that connects -------------------------------------------------------------------------------------------


class Connection:
    """One connection to a `Listener`; a `Channel`.

    Connecting raises a `SetupError` that begins with `who`: no answer, another key, another version. `service` is
    the command that listens there.
    """

    def __init__(
        self, host: str, port: int, key: str, who: str = "Remote", service: str = "cosolve serve FACTORY --port PORT"
    ) -> None:
        self._zmq = _zmq()
        self._where, self._who, self._command = f"{host}:{port}", who, service.split(" FACTORY")[0].split(" CONFIG")[0]
        self._pair = keys(key)
        found = _addresses(host, port, f"{who}: no server answers at {self._where}")
        for k, address in enumerate(found):
            self._open()
            try:
                self._reach(address, monotonic() + CONNECTING)
                self._greet(monotonic() + CONNECTING)
                return
            except _Absent:
                self.close()
                if k == len(found) - 1:
                    raise Unanswered(
                        f"{who}: no server answers at {self._where}; start '{service.replace('PORT', str(port))}' there"
                    ) from None
            except BaseException:
                self.close()
                raise

    def _open(self) -> None:
        zmq = self._zmq
        self._link = link = _context(os.getpid()).socket(zmq.DEALER)
        _settle(link)
        link.reconnect_ivl = _NEVER
        link.connect_timeout = int(1e3 * CONNECTING)
        link.curve_serverkey = self._pair.server
        link.curve_publickey, link.curve_secretkey = self._pair.client, self._pair.client_secret
        self._monitor = link.get_monitor_socket(
            zmq.EVENT_CLOSED | zmq.EVENT_CONNECTED | zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED
        )
        self._patience = 0.0
        self._broken = False
        self._end = weakref.finalize(self, _close, link, self._monitor)

    def _reach(self, address: str, deadline: float) -> None:
        """Until both sides have proved that they have the key."""
        zmq = self._zmq
        self._link.ipv6 = "[" in address
        self._link.connect(address)
        reached = False
        while (left := deadline - monotonic()) > 0:
            event = _event(zmq, self._monitor, left)
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                return
            if event == zmq.EVENT_CONNECTED:
                reached = True
            elif event == zmq.EVENT_CLOSED and not reached:
                raise _Absent
            elif event is not None:
                break
        if not reached:
            raise _Absent
        raise SetupError(
            f"{self._who}: the server at {self._where} does not accept this key (or is no '{self._command}', or one "
            "of another version)"
        )

    def _greet(self, deadline: float) -> None:
        try:
            self._post(HELLO + _greeting())
            answer = self._next(deadline)
            if answer[:_HEAD] != WELCOME:
                raise Malformed("no greeting")
            protocol, version = _greeted(answer[_HEAD:])
        except (Disconnected, TimedOut, Malformed) as error:
            why = str(error) or "it does not greet back"
            raise SetupError(f"{self._who}: the server at {self._where} is no '{self._command}': {why}") from None
        if protocol != PROTOCOL:
            raise SetupError(
                f"{self._who}: the server at {self._where} has cosolve {version}, which speaks protocol {protocol}; "
                f"this is cosolve {VERSION} with protocol {PROTOCOL}: install the same version on both sides"
            )

    def send(self, parts: Sequence[bytes | memoryview]) -> None:
        """Send one message; raises `Disconnected`."""
        for piece in _pieces(parts):
            self._post(piece)

    def _post(self, piece: bytes) -> None:
        zmq = self._zmq
        while True:
            try:
                self._link.send(piece, zmq.NOBLOCK)
                return
            except zmq.Again:  # more waits than may, or the other side is gone
                self._refuse_broken()
                self._link.poll(1e3 * _LOOK, zmq.POLLOUT)
            except zmq.ZMQError as error:
                raise Disconnected(str(error)) from None

    def receive(self, timeout: float | None = None) -> memoryview:
        """The next message; raises `Disconnected` or `TimedOut`."""
        deadline = None if timeout is None else monotonic() + timeout
        piece = self._next(deadline)
        if piece[:_HEAD] == DATA:
            return memoryview(piece)[_HEAD:]
        return self._rest(piece, deadline)

    def _rest(self, piece: bytes, deadline: float | None) -> memoryview:
        """A long message, of which this piece is the first."""
        whole = bytearray()
        while piece[:_HEAD] == MORE and len(whole) <= LARGEST:
            whole += memoryview(piece)[_HEAD:]
            piece = self._next(deadline)
        if piece[:_HEAD] != DATA or len(whole) > LARGEST:
            raise Disconnected("it sent what is no message of cosolve")
        whole += memoryview(piece)[_HEAD:]
        return memoryview(whole)

    def _next(self, deadline: float | None) -> bytes:
        """What came, but for probes and end messages."""
        zmq, link = self._zmq, self._link
        while True:
            patience = _LOOK if deadline is None else min(_LOOK, max(0.0, deadline - monotonic()))
            if patience != self._patience:
                self._patience = patience
                link.rcvtimeo = int(1e3 * patience) + 1
            try:
                piece: bytes = link.recv()
            except zmq.Again:
                if deadline is not None and monotonic() >= deadline:
                    raise TimedOut from None
                self._refuse_broken()
                continue
            except zmq.ZMQError as error:
                raise Disconnected(str(error)) from None
            if piece[:_HEAD] == BYE:
                raise Disconnected(shown(piece[_HEAD:].decode(errors="replace"), _WORDS))
            if piece != PROBE:
                return piece

    def wait(self, reading: Sequence[int], writing: Sequence[int], patience: float) -> tuple[bool, list[int]]:
        """Until a message comes (True), or one of these files can be read or written (which); raises `Disconnected`."""
        zmq = self._zmq
        poller = zmq.Poller()
        poller.register(self._link, zmq.POLLIN)
        for file in {*reading, *writing}:
            poller.register(file, zmq.POLLIN * (file in reading) | zmq.POLLOUT * (file in writing))
        found = dict(poller.poll(1e3 * patience))
        came = bool(found.pop(self._link, 0))
        if not (found or came):
            self._refuse_broken()
        return came, list(found)

    def _refuse_broken(self) -> None:
        """Raise when the connection was lost and nothing that came before is left to be read."""
        if self._broken:
            raise Disconnected
        while (event := _event(self._zmq, self._monitor, 0.0)) is not None:
            if event in (self._zmq.EVENT_DISCONNECTED, self._zmq.EVENT_CLOSED):
                self._broken = True  # once more around: the last message may have come before

    def close(self) -> None:
        """Let go; the other side notices."""
        self._end()


class Unanswered(SetupError):
    """No server listens there yet."""


class _Absent(Exception):
    """No server listens there."""


def _addresses(host: str, port: int, failure: str) -> list[str]:
    """Where a name leads, in the order to be tried."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:  # ValueError: characters that no name has
        raise SetupError(f"{failure}: there is no such host ({error})") from None
    numeric = [f"[{to[0]}]" if family == socket.AF_INET6 else str(to[0]) for family, _, _, _, to in found]
    return [f"tcp://{name}:{port}" for name in dict.fromkeys(numeric)]


def _event(zmq: Any, monitor: Any, patience: float) -> int | None:
    """What happened to a socket; None when nothing did in time."""
    if not monitor.poll(1e3 * patience):
        return None
    return int(zmq.utils.monitor.recv_monitor_message(monitor)["event"])


def _close(link: Any, monitor: Any) -> None:
    with suppress(Exception):
        link.disable_monitor()
    monitor.close(linger=0)
    link.close(linger=0)


# -- the side that is connected to ------------------------------------------------------------------------------------


class _Peer:
    """A client after its first message: over which file, and when to ask whether they are still there."""

    def __init__(self, file: int) -> None:
        self.file = file
        self.long = bytearray()  # what has come of a long message
        self.doubts = 0  # how often to ask, once a second, since the connection over that file was lost
        self.pause = _CARE
        self.due = monotonic() + _CARE

    def asked(self) -> bool:
        """Whether to ask now."""
        if self.doubts:
            self.doubts -= 1
            return True
        if monotonic() < self.due:
            return False
        self.pause *= 2.0  # rarer and rarer: who computes for days finds few of them
        self.due = monotonic() + self.pause
        return True


class ReceivedMessage(NamedTuple):
    """Something that came: from whom, and a message, or None for a new connection."""

    peer: bytes
    data: bytes | bytearray | None


class Listener:
    """Where `Connection`s come in, one port for all; only those with the key are seen at all.

    `events` is what came, and has to be asked before every wait: `file` becomes readable when something comes after
    that, and `watch_file` when there is something for `watch`. `send` answers, and `lost` tells, when called about once
    a second, who is no longer there.

    That a connection is lost ZeroMQ tells by the number of its file only, which may be another's by then; so the client
    that came over that file is sent a probe, and who cannot be reached any more is gone.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> hub = Listener("127.0.0.1", 0, "a key")
    >>> def first():
    ...     while not (came := list(hub.events())):
    ...         pass
    ...     return came[0]
    >>> with ThreadPoolExecutor() as pool:
    ...     connecting = pool.submit(Connection, "127.0.0.1", hub.port, "a key")
    ...     peer, _ = first()
    ...     one = connecting.result()
    >>> one.send([b"how ", b"late is it"])
    >>> first().data
    b'how late is it'
    >>> hub.send(peer, [b"noon"])
    >>> bytes(one.receive(60.0))
    b'noon'
    >>> one.close(), hub.close()
    (None, None)
    """

    def __init__(self, host: str, port: int, key: str, who: str = "serve") -> None:
        self._zmq = zmq = _zmq()
        pair = keys(key)
        self._context = zmq.Context()
        self._guard = library("zmq.auth.thread").ThreadAuthenticator(self._context)
        self._guard.start()
        self._guard.configure_curve_callback(_DOMAIN, _SingleKey(pair.client))
        self._link = link = self._context.socket(zmq.ROUTER)
        _settle(link)
        link.router_mandatory = True
        link.zap_domain = _DOMAIN.encode()
        link.curve_server, link.curve_secretkey = True, pair.server_secret
        self._monitor = link.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_DISCONNECTED
        )
        self._at_once, self._at_once_more = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE)
        self._refused = 0
        self._peers: dict[bytes, _Peer] = {}
        self._waiting: dict[bytes, deque[bytes]] = {}  # what could not be sent yet
        self._dropped: list[bytes] = []
        self.complaints: list[str] = []
        try:
            (address, *_) = _addresses(host, port, f"{who}: cannot listen at {host}:{port}")
            link.ipv6 = "[" in address
            link.bind(address)
        except SetupError:
            self.close()
            raise
        except zmq.ZMQError as error:
            self.close()
            raise SetupError(f"{who}: cannot listen at {host}:{port}: {error}") from None
        bound: bytes = link.last_endpoint
        self.port = int(bound.decode().rstrip("\0").rpartition(":")[2])
        self.file: int = link.fd
        self.watch_file: int = self._monitor.fd

    @property
    def busy(self) -> bool:
        """Whether something waits to be sent; `flush` tries again."""
        return bool(self._waiting)

    def owes(self, peer: bytes) -> bool:
        """Whether something for this peer waits to be sent."""
        return peer in self._waiting

    def events(self) -> Iterator[ReceivedMessage]:
        """New connections and whole messages; violations end the connection."""
        link, zmq, at_once = self._link, self._zmq, self._at_once
        events, more, come = zmq.EVENTS, zmq.RCVMORE, zmq.POLLIN
        while link.getsockopt(events) & come:
            peer = link.recv(at_once)
            known = self._peers.get(peer)
            if known is None:
                self._refuse(peer)
                if peer in self._peers:
                    yield ReceivedMessage(peer, None)
                continue
            piece = link.recv(at_once)
            alone = not link.getsockopt(more)
            while link.getsockopt(more):
                link.recv(at_once)
            head = piece[:_HEAD] if alone else b""
            if head == DATA and not known.long:
                yield ReceivedMessage(peer, piece[_HEAD:])
            elif head in (MORE, DATA) and len(known.long) + len(piece) <= LARGEST + _HEAD:
                known.long += memoryview(piece)[_HEAD:]
                if head == DATA:
                    whole, known.long = known.long, bytearray()
                    yield ReceivedMessage(peer, whole)
            else:
                self.drop(peer, "this is no message of cosolve")

    def _refuse(self, peer: bytes) -> None:
        """The first message of a client, and over which file they came, which only a whole frame tells."""
        frame = self._link.recv(self._at_once, copy=False)
        piece, alone = frame.bytes, not frame.more
        while frame.more:
            frame = self._link.recv(self._at_once, copy=False)
        if alone:
            self._welcomed(peer, piece, frame.get(self._zmq.SRCFD))

    def _welcomed(self, peer: bytes, hello: bytes, file: int) -> bool:
        if hello[:_HEAD] != HELLO or peer in self._dropped:
            return False
        try:
            protocol, version = _greeted(hello[_HEAD:])
        except Malformed:
            return False
        self._post(peer, WELCOME + _greeting())
        if protocol != PROTOCOL:
            self.complaints.append(
                f"a client with cosolve {version} speaks protocol {protocol}, this is cosolve {VERSION} with protocol "
                f"{PROTOCOL}"
            )
            return False
        self._peers[peer] = _Peer(file)
        return True

    def send(self, peer: bytes, parts: Sequence[bytes | memoryview]) -> None:
        """Send one message, as soon as there is room for it; nothing happens when the peer is gone."""
        for piece in _pieces(parts):
            self._post(peer, piece)

    def _post(self, peer: bytes, piece: bytes) -> None:
        waiting = self._waiting.get(peer)
        if waiting is not None:
            waiting.append(piece)
        elif not self._sent(peer, piece):
            self._waiting[peer] = deque([piece])

    def _sent(self, peer: bytes, piece: bytes) -> bool:
        """False where there is no room; who is gone is noticed by `lost`."""
        try:
            self._link.send(peer, self._at_once_more)
            self._link.send(piece, self._at_once)
        except self._zmq.Again:
            return False
        except self._zmq.ZMQError:
            self._dropped.append(peer)
        return True

    def flush(self) -> None:
        """Send what waits, as far as there is room."""
        for peer, waiting in list(self._waiting.items()):
            while waiting and self._sent(peer, waiting[0]):
                waiting.popleft()
            if not waiting:
                del self._waiting[peer]

    def drop(self, peer: bytes, why: str) -> None:
        """Let go of a peer, with words for it."""
        if self._peers.pop(peer, None) is not None:
            self._waiting.pop(peer, None)
            self._sent(peer, BYE + why[:_WORDS].encode(errors="replace"))
            self._dropped.append(peer)

    def lost(self) -> list[bytes]:
        """Who is gone, or was dropped, since the last call."""
        self.watch()
        for peer, known in self._peers.items():
            if known.asked():
                self._sent(peer, PROBE)
        lost, self._dropped = list(dict.fromkeys(self._dropped)), []
        for peer in lost:
            self._peers.pop(peer, None)
            self._waiting.pop(peer, None)
        if self._refused:
            count, self._refused = self._refused, 0
            self.complaints.append(f"refused {'a connection' if count == 1 else f'{count} connections'}: a wrong key")
        return lost

    def watch(self) -> None:
        """Take note of connections that were lost or refused."""
        zmq, monitor = self._zmq, self._monitor
        while monitor.getsockopt(zmq.EVENTS) & zmq.POLLIN:
            event = zmq.utils.monitor.recv_monitor_message(monitor)
            if event["event"] != zmq.EVENT_DISCONNECTED:
                self._refused += 1
                continue
            for known in self._peers.values():
                if known.file == event["value"]:
                    known.doubts = _DOUBTS

    def close(self, why: str = "") -> None:
        """Close all connections."""
        for peer in list(self._peers):
            self.drop(peer, why)
        with suppress(Exception):
            self._link.disable_monitor()
        self._monitor.close(linger=0)
        self._link.close(linger=500)  # for the end messages
        self._guard.stop()
        self._context.term()


class _SingleKey:
    """Lets in who has the secret that belongs to one public key."""

    def __init__(self, client: bytes) -> None:
        self._client = client

    def callback(self, domain: str, key: bytes) -> bool:
        """Asked by the authenticator of pyzmq."""
        return hmac.compare_digest(key, self._client)
