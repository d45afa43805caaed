"""The client of a solver that owns its time loop: one file, to be copied where it is needed.

It uses the standard library and numpy (1.21 or newer, Python 3.9 or newer) and nothing of cosolve, because solvers live
in environments of their own. A solver makes one `Participant`, sets the points of its meshes, starts, and then reads,
computes, writes and advances until the coupling ends; the hub holds everything else. A window costs one round trip.

Three things live here, since a client in another language needs exactly these: the records that travel (`Connection`,
`Packer`, `Unpacker`; written down in docs/architecture/participants.md), the waveform between samples (`Waveform`), and
the `Participant`.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import isfinite
from typing import Any

import numpy as np

PROTOCOL = 1

# kinds of records; the first four come from a participant, the others from the hub
HELLO, START, ADVANCE, FINISH, MAP, RESUME = 1, 2, 3, 4, 5, 6
CONTRACT, STATE, MAPPED, FAILED = 65, 66, 67, 68

# what a mesh is to a participant
PROVIDED, RECEIVED, DIRECT, CELLS, PORTS = 1, 2, 4, 8, 16  # PORTS: one point without a place, for data without a mesh
# what data on a mesh are to a participant
WRITTEN, READ, INITIAL, GRADIENT, JUST_IN_TIME = 1, 2, 4, 8, 16
# where a participant stands
ONGOING, COMPLETE, MUST_SAVE, MUST_RESTORE, LEADS = 1, 2, 4, 8, 16
# what the contract says of the whole
WANTS_SUBSTEPS, RESUMES = 1, 2

_HEAD = struct.Struct("<IIQ")  # magic and protocol, kind, length of the rest
_COUNT, _STANDING, _SAMPLE = struct.Struct("<I"), struct.Struct("<Idd"), struct.Struct("<d")
_DOUBLE, _WHOLE, _NUMBER = np.dtype("<f8"), np.dtype("<u4"), np.dtype(np.int32)
_LITTLE = sys.byteorder == "little"  # then doubles travel as they lie in memory
_FEW = 16  # so many numbers are looked at faster one by one than by numpy
_MAGIC = 0x4C4F5300 + PROTOCOL  # "SOL"
LARGEST, HELLO_BYTES = 1 << 34, 1 << 16  # of a record, and of one that says who speaks
_SHORT, _LONG = 1 << 15, 1 << 20  # bytes asked for at once; memory for short ones is at hand, that for long ones is not
_WATCH = 2e-4  # seconds of looking before sleeping: to be put to sleep and woken can take longer than an answer does
_LONG_WAIT = 1e-3  # after a wait as long as this the next one sleeps at once: the others are at real work
_TAKEN = 1e-4  # seconds after which a core that was given up comes back only where others compute on it
_DOUBTS = 64, 4096  # waits without looking after that; twice as many each time, one less for each look that helped
_yield: Callable[[], object] = getattr(os, "sched_yield", lambda: None)
_NEARLY = 1e-12  # times that differ by less than this fraction of the window are the same
CORNERS = {"line": 2, "triangle": 3, "quadrilateral": 4, "tetrahedron": 4}
KINDS = tuple(CORNERS)


class ParticipantError(RuntimeError):
    """Something the coupling does not allow, or the hub, or another participant, is gone."""


def all_finite(values: np.ndarray[Any, Any]) -> bool:
    """True when no number is a NaN or an infinity.

    >>> all_finite(np.array([1.0, 1e308, 1e308])), all_finite(np.array([1.0, np.inf]))
    (True, False)
    """
    if values.size <= _FEW and isfinite(sum(values.ravel().tolist())):  # a sum that overflows says nothing
        return True
    return bool(np.isfinite(values).all())


def little_endian(values: np.ndarray[Any, Any]) -> bytes:
    """Doubles as they travel."""
    return values.tobytes() if _LITTLE else values.astype(_DOUBLE).tobytes()


# -- records ---------------------------------------------------------------------------------------------------


class Packer:
    """Writes the fields of a record one after the other, little-endian, without gaps."""

    def __init__(self) -> None:
        self.parts: list[Any] = []

    def whole(self, *values: int) -> Packer:
        """Unsigned numbers of 32 bits."""
        self.parts.append(struct.pack(f"<{len(values)}I", *values))
        return self

    def real(self, *values: float) -> Packer:
        """Doubles."""
        self.parts.append(struct.pack(f"<{len(values)}d", *values))
        return self

    def text(self, value: str) -> Packer:
        """The number of bytes, then UTF-8."""
        data = value.encode("utf-8")
        self.parts.append(struct.pack("<I", len(data)))
        self.parts.append(data)
        return self

    def array(self, values: Any) -> Packer:
        """The number of doubles, then the doubles."""
        flat = np.ascontiguousarray(values, dtype=_DOUBLE).ravel()
        self.parts.append(struct.pack("<I", flat.size))
        self.parts.append(flat.tobytes())
        return self

    def numbers(self, values: Any) -> Packer:
        """How many, then unsigned numbers of 32 bits."""
        flat = np.ascontiguousarray(values, dtype=_WHOLE).ravel()
        self.parts.append(struct.pack("<I", flat.size))
        self.parts.append(flat.tobytes())
        return self

    def bytes(self) -> bytes:
        """What was written so far."""
        return b"".join(self.parts)


class Unpacker:
    """Reads what `Packer` has written; a record that is too short is an error, never a guess."""

    def __init__(self, data: Any) -> None:
        self.data, self.at = data, 0

    def whole(self) -> int:
        """One unsigned number of 32 bits."""
        return int(self._take(_COUNT, 4))

    def real(self) -> float:
        """One double."""
        return float(self._take(_SAMPLE, 8))

    def standing(self) -> tuple[int, float, float]:
        """What a STATE begins with: flags, time, longest step."""
        at = self.at
        if at + 20 > len(self.data):
            raise ParticipantError("a record ended too early")
        self.at += 20
        return _STANDING.unpack_from(self.data, at)

    def _take(self, form: struct.Struct, size: int) -> Any:
        if self.at + size > len(self.data):
            raise ParticipantError("a record ended too early")
        (value,) = form.unpack_from(self.data, self.at)
        self.at += size
        return value

    def text(self) -> str:
        """A text."""
        n = self.whole()
        return str(self._slice(n), "utf-8")

    def _slice(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise ParticipantError("a record ended too early")
        part = bytes(self.data[self.at : self.at + size])
        self.at += size
        return part

    def doubles(self, n: int) -> np.ndarray[Any, Any]:
        """So many doubles, as an array that is only read."""
        if self.at + 8 * n > len(self.data):
            raise ParticipantError("a record ended too early")
        values = np.frombuffer(self.data, dtype=_DOUBLE, count=n, offset=self.at)
        self.at += 8 * n
        return values if _LITTLE else values.astype(np.float64)

    def array(self) -> np.ndarray[Any, Any]:
        """As many doubles as the record says."""
        return self.doubles(self.whole())

    def numbers(self) -> np.ndarray[Any, Any]:
        """As many unsigned numbers as the record says."""
        return np.frombuffer(self._slice(4 * self.whole()), dtype=_WHOLE).astype(np.int64)

    def rest(self) -> bytes:
        """Everything that is left."""
        return self._slice(len(self.data) - self.at)


class SpinThenBlock:
    """Waits for something that may come soon: looks for a moment, giving way to other processes, before it sleeps.

    On a quiet machine a core that falls asleep takes longer to wake than a window takes to compute. Where answers take
    long, or others want the core, it sleeps at once.

    >>> SpinThenBlock().wait(lambda: "there", lambda: "slept")
    'there'
    """

    def __init__(self) -> None:
        self._patient = self._may = (os.cpu_count() or 1) > 1
        self._doubt, self._doubts = 0, _DOUBTS[0]  # waits that sleep at once: still, and the next time

    def wait(self, look: Callable[[], Any], sleep: Callable[[], Any]) -> Any:
        """What `look` finds, or what `sleep` returns when there was nothing to be found."""
        began = now = time.perf_counter()
        if self._doubt:
            self._doubt -= 1
        elif self._patient:
            while now - began < _WATCH:
                found = look()
                if found:
                    self._doubts = max(self._doubts - 1, _DOUBTS[0])
                    return found
                _yield()
                then, now = now, time.perf_counter()
                if now - then > _TAKEN:  # another process wants this core; a sleeping one is scheduled earlier
                    self._doubt, self._doubts = self._doubts, min(2 * self._doubts, _DOUBTS[1])
                    break
        self._patient = False  # also where sleeping ends with an exception
        found = sleep()
        self._patient = self._may and time.perf_counter() - began < _LONG_WAIT
        return found


class Connection:
    """Whole records over a stream socket."""

    def __init__(self, stream: socket.socket) -> None:
        self.socket = stream
        self._buffer: bytes | bytearray = b""  # of a record that came in one piece nothing is copied before its end
        self._missing = 0  # bytes of a long record
        self.longest = LARGEST  # bytes of a record
        self._spin: SpinThenBlock | None = None
        if hasattr(select, "poll"):
            self._poll = select.poll()
            self._poll.register(stream, select.POLLIN)
            self._spin = SpinThenBlock()
        if stream.family != getattr(socket, "AF_UNIX", None):
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, kind: int, content: bytes = b"") -> None:
        """Send one record."""
        self.socket.sendall(_HEAD.pack(_MAGIC, kind, len(content)) + content)

    def complete(self) -> tuple[int, bytes] | None:
        """A record that has arrived as a whole, or None."""
        if len(self._buffer) < _HEAD.size:
            return None
        magic, kind, length = _HEAD.unpack_from(self._buffer)
        if magic != _MAGIC or length > self.longest:
            raise ParticipantError(
                "what arrived is no record of this protocol; client and hub are of different versions"
            )
        end = _HEAD.size + length
        if len(self._buffer) < end:
            self._missing = end - len(self._buffer)
            return None
        self._missing = 0
        with memoryview(self._buffer) as view:
            content = bytes(view[_HEAD.size : end])
        if len(self._buffer) == end:
            self._buffer = b""
        else:  # the other side has sent two at once; a bytearray loses its front without a copy
            self._buffer = bytearray(self._buffer) if isinstance(self._buffer, bytes) else self._buffer
            del self._buffer[:end]
        return kind, content

    def read(self) -> bool:
        """Take what has arrived; False when the other side is gone."""
        data = self.socket.recv(min(max(self._missing, _SHORT), _LONG))
        if not self._buffer:
            self._buffer = data
        elif isinstance(self._buffer, bytearray):
            self._buffer += data
        else:
            self._buffer = bytearray(self._buffer) + data
        return bool(data)

    def receive(self) -> tuple[int, bytes]:
        """Wait for the next record."""
        while True:
            record = self.complete()
            if record is not None:
                return record
            if not self.await_more():
                raise ConnectionError("the other side is gone")

    def await_more(self) -> bool:
        """Wait for more, and take it; False when the other side is gone."""
        return self.read() if self._spin is None else self._spin.wait(self._glance, self._sleep)[0]

    def _glance(self) -> tuple[bool] | None:
        """What reading gives, where it would not wait."""
        return (self.read(),) if self._poll.poll(0) else None

    def _sleep(self) -> tuple[bool]:
        return (self.read(),)

    def close(self) -> None:
        """Let go."""
        self.socket.close()


def connected(address: str, patience: float = 5.0) -> Connection:
    """A connection to the hub at `unix:PATH` or `tcp:HOST:PORT`, which is there before its address is told."""
    kind, _, where = address.partition(":")
    end = time.monotonic() + patience
    while True:
        try:
            if kind == "unix":
                stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                try:
                    stream.connect(where)
                except OSError:
                    stream.close()
                    raise
            elif kind == "tcp":
                host, _, port = where.rpartition(":")
                stream = socket.create_connection((host, int(port)), timeout=patience)
                stream.settimeout(None)
            else:
                raise ParticipantError(f"the address of a hub is unix:PATH or tcp:HOST:PORT, not {address!r}")
            return Connection(stream)
        except OSError as error:
            if time.monotonic() > end:
                raise ParticipantError(f"no hub answers at {address} ({error}); start it first") from None
            time.sleep(0.05)


# -- waveforms -------------------------------------------------------------------------------------------------


def spline_weights(times: Sequence[float], degree: int, t: float) -> np.ndarray[Any, Any]:
    """The factors of the samples in the B-spline of `degree` through them, at `t`; interior knots are averaged times.

    >>> spline_weights([0.0, 1.0, 2.0], 1, 0.25).tolist()
    [0.75, 0.25, 0.0]
    """
    T = np.asarray(times, dtype=np.float64)
    n = len(T)
    nearest = int(np.argmin(np.abs(T - t)))
    weights = np.zeros(n)
    if abs(T[nearest] - t) <= _NEARLY * max(T[-1] - T[0], abs(T[-1]) * 1e-3) or n == 1:
        weights[nearest] = 1.0
        return weights
    p = min(degree, n - 1)
    if p == 0:  # the next sample
        weights[min(int(np.searchsorted(T, t)), n - 1)] = 1.0
        return weights
    if p == 1:
        k = min(max(int(np.searchsorted(T, t)), 1), n - 1)
        s = (t - T[k - 1]) / (T[k] - T[k - 1])
        weights[k - 1], weights[k] = 1.0 - s, s
        return weights
    s, at = (T - T[0]) / (T[-1] - T[0]), (t - T[0]) / (T[-1] - T[0])
    inner = [float(np.mean(s[j : j + p])) for j in range(1, n - p)]
    knots = np.array([0.0] * (p + 1) + inner + [1.0] * (p + 1))
    collocation = np.array([_basis(knots, p, n, x) for x in s])
    return np.linalg.solve(collocation.T, _basis(knots, p, n, at))


def _basis(knots: Any, p: int, n: int, x: float) -> np.ndarray[Any, Any]:
    """All B-splines of degree `p` at `x`, by the recursion of de Boor."""
    k = p
    while k < n - 1 and x >= knots[k + 1]:
        k += 1
    values = np.zeros(n)
    column = [1.0]
    for d in range(1, p + 1):
        longer = [0.0] * (d + 1)
        for r in range(d):
            left, right = knots[k - d + 1 + r], knots[k + 1 + r]
            share = column[r] / (right - left)
            longer[r] += (right - x) * share
            longer[r + 1] += (x - left) * share
        column = longer
    values[k - p : k + 1] = column
    return values


class Waveform:
    """Samples over time and the spline through them.

    >>> import numpy as np
    >>> Waveform([0.0, 1.0], np.array([[0.0, 2.0], [4.0, 2.0]])).at(0.25).tolist()
    [1.0, 2.0]
    """

    def __init__(self, times: Sequence[float], values: Any, degree: int = 1) -> None:
        self.times, self.values, self.degree = times, values, degree

    def at(self, t: float) -> np.ndarray[Any, Any]:
        """The values at a time."""
        times = self.times
        last, first = times[-1], times[0]
        if len(times) == 1:
            return np.array(self.values[0])
        off = abs(last - t)
        if off <= _NEARLY * max(last - first, abs(last) * 1e-3) and off < abs(times[-2] - t):  # where most are read
            return np.array(self.values[-1])
        weights = spline_weights(self.times, self.degree, t)
        if np.count_nonzero(weights) == 1:
            return np.array(self.values[int(np.argmax(weights != 0))])
        return np.asarray(weights @ np.asarray(self.values))


# -- the participant -------------------------------------------------------------------------------------------


class MeshOfParticipant:
    """What a participant knows of a mesh: its dimension, what it is to the participant, its points and cells."""

    def __init__(self, name: str, dimensions: int, flags: int) -> None:
        self.name, self.dimensions, self.flags = name, dimensions, flags
        self.points = np.zeros((1 if flags & PORTS else 0, dimensions))
        self.cells: dict[str, list[Any]] = {kind: [] for kind in KINDS}
        self.region: Any | None = None
        self.numbering = b""  # the numbers of all points in their order, as callers hold them
        self.data: dict[str, DataOfParticipant] = {}


class DataOfParticipant:
    """Data on a mesh: what the participant has written since the last step, what it may read."""

    def __init__(self, name: str, components: int, flags: int, degree: int, mesh: MeshOfParticipant) -> None:
        self.name, self.components, self.flags, self.degree, self.mesh = name, components, flags, degree, mesh
        self.buffer = np.zeros((len(mesh.points), components))
        self.gradient = np.zeros((len(mesh.points), components * mesh.dimensions))
        self.waveform: Waveform | None = None

    @property
    def size(self) -> int:
        """How many numbers one sample holds."""
        rows = len(self.mesh.points)
        return rows * self.components * (1 + (self.mesh.dimensions if self.flags & GRADIENT else 0))

    def clear(self) -> None:
        """Everything written so far is gone."""
        if len(self.buffer) == len(self.mesh.points):
            self.buffer.fill(0.0)
        else:  # a received mesh, which arrives with the start
            self.buffer = np.zeros((len(self.mesh.points), self.components))
        if self.flags & GRADIENT:
            self.gradient = np.zeros((len(self.mesh.points), self.components * self.mesh.dimensions))

    def content(self) -> bytes:
        """The sample as it travels."""
        values = little_endian(self.buffer)
        return values + little_endian(self.gradient) if self.flags & GRADIENT else values


class Participant:
    """A solver that owns its time loop, coupled by the hub at `address` (default: the one that started this process).

    A solver of several processes makes one in each, with its `rank` of `size`: points, values and readings are those of
    the rank, and `start` and `advance` wait for all ranks. `patience` is how many seconds to try to connect, `limit`
    how many to wait for answers (by default as long as it takes, since others may compute for hours; a hub or a
    participant that is gone is noticed at once). `connection` may be given instead of an address.
    """

    def __init__(
        self,
        name: str,
        address: str = "",
        *,
        rank: int = 0,
        size: int = 1,
        patience: float = 5.0,
        limit: float | None = None,
        connection: Connection | None = None,
    ) -> None:
        self.name = str(name)
        if not 0 <= int(rank) < int(size):
            raise ParticipantError(f"{name}: rank {rank} of {size} processes; ranks are 0 to the number minus one")
        token = ""
        if connection is None:
            address, token = _hub(address)
            connection = connected(address, patience)
        connection.socket.settimeout(limit)
        self._line = connection
        self._closed = False
        self._started = False
        self._saving_asked = self._restoring_asked = True
        self._samples: list[bytes] = []  # parts of the samples since the last answer
        self._kept = 0  # how many samples these are
        self._flags, self._time, self._progress, self._remaining, self._window = ONGOING, 0.0, 0.0, 0.0, 0.0
        hello = Packer().whole(PROTOCOL).text(token).text(self.name).text(os.getcwd())
        hello.whole(os.getpid(), int(rank), int(size))
        answer = self._ask(HELLO, hello.bytes(), CONTRACT)
        self._contract = answer.whole()
        self.meshes: dict[str, MeshOfParticipant] = {}
        for _ in range(answer.whole()):
            mesh = MeshOfParticipant(answer.text(), answer.whole(), answer.whole())
            self.meshes[mesh.name] = mesh
            for _ in range(answer.whole()):
                data = DataOfParticipant(answer.text(), answer.whole(), answer.whole(), answer.whole(), mesh)
                mesh.data[data.name] = data
        everything = [data for mesh in self.meshes.values() for data in mesh.data.values()]
        self._known = {(data.mesh.name, data.name): data for data in everything}
        self._written = [data for data in everything if data.flags & WRITTEN]
        self._read = [data for data in everything if data.flags & READ]

    # -- before the start

    def mesh(self, name: str) -> MeshOfParticipant:
        """A mesh of this participant."""
        try:
            return self.meshes[str(name)]
        except KeyError:
            known = ", ".join(sorted(self.meshes)) or "none"
            raise ParticipantError(f"{self.name}: has no mesh {name!r}; its meshes are {known}") from None

    def data(self, mesh: str, name: str) -> DataOfParticipant:
        """Data on a mesh of this participant."""
        try:
            return self._known[mesh, name]
        except (KeyError, TypeError):  # not there, or not quite a text
            found = self.mesh(mesh).data
        try:
            return found[str(name)]
        except KeyError:
            known = ", ".join(sorted(found)) or "none"
            raise ParticipantError(f"{self.name}: has no data {name!r} on mesh {mesh!r}; there are {known}") from None

    def set_points(self, mesh: str, points: Any) -> np.ndarray[Any, Any]:
        """Add points to a mesh that this participant provides; their numbers."""
        found = self.mesh(mesh)
        if not found.flags & PROVIDED:
            raise ParticipantError(
                f"{self.name}: mesh {mesh!r} is received from another participant, which sets its points"
            )
        self._refuse_after_start(f"the points of mesh {mesh!r} can be set only before the start")
        new = np.asarray(points, dtype=np.float64)
        if new.size == 0:
            return np.zeros(0, dtype=np.int32)
        if new.ndim != 2 or new.shape[1] != found.dimensions:
            raise ParticipantError(
                f"{self.name}: the points of mesh {mesh!r} must have the shape (n, {found.dimensions}), not {new.shape}"
            )
        if not np.isfinite(new).all():
            raise ParticipantError(f"{self.name}: a point of mesh {mesh!r} is not finite")
        first = len(found.points)
        found.points = np.concatenate([found.points, new])
        for data in found.data.values():
            longer = np.zeros((len(found.points), data.components))
            longer[:first] = data.buffer
            data.buffer = longer
            if data.flags & GRADIENT:
                steeper = np.zeros((len(found.points), data.components * found.dimensions))
                steeper[:first] = data.gradient
                data.gradient = steeper
        return np.arange(first, len(found.points), dtype=np.int32)

    def needs_cells(self, mesh: str) -> bool:
        """True where cells of this mesh are of use; elsewhere they are ignored."""
        return bool(self.mesh(mesh).flags & CELLS)

    def set_cells(self, mesh: str, kind: str, corners: Any) -> None:
        """Join points by cells: `kind` is "line", "triangle", "quadrilateral" or "tetrahedron"."""
        found = self.mesh(mesh)
        if not found.flags & PROVIDED:
            raise ParticipantError(f"{self.name}: mesh {mesh!r} is received, so its cells are not set here")
        self._refuse_after_start(f"the cells of mesh {mesh!r} can be set only before the start")
        rows = np.asarray(corners)
        if rows.size == 0:
            return
        rows = rows.reshape(-1, CORNERS[kind]).astype(np.int64)
        if rows.min() < 0 or rows.max() >= len(found.points):
            raise ParticipantError(
                f"{self.name}: a {kind} of mesh {mesh!r} has a corner that is no point; points are numbered from 0 to "
                f"{len(found.points) - 1}"
            )
        if any(len(set(row)) < len(row) for row in rows.tolist()):
            raise ParticipantError(f"{self.name}: a {kind} of mesh {mesh!r} has two equal corners")
        if not found.flags & CELLS:
            return
        if kind == "quadrilateral":
            for row in rows:
                found.cells["triangle"] += self._halves(found, row)
        else:
            found.cells[kind] += rows.tolist()

    def _halves(self, mesh: MeshOfParticipant, row: Any) -> list[list[int]]:
        """A quadrilateral, whose corners may come in any order, as two triangles along its shorter diagonal."""
        x = np.zeros((4, 3))
        x[:, : mesh.dimensions] = mesh.points[row]
        for a, b, c, d in ((0, 1, 2, 3), (0, 1, 3, 2), (0, 2, 1, 3)):
            around = [a, b, c, d]
            turns = [np.cross(x[around[i]] - x[around[i - 1]], x[around[(i + 1) % 4]] - x[around[i]]) for i in range(4)]
            largest = max(float(np.linalg.norm(turn)) for turn in turns)
            if largest > 0 and all(float(turns[0] @ turn) > 1e-10 * largest**2 for turn in turns):
                flat = abs(float(np.cross(x[b] - x[a], x[c] - x[a]) @ (x[d] - x[a])))
                if flat > 1e-6 * largest**1.5:
                    break
                a, b, c, d = (int(row[k]) for k in around)
                if np.linalg.norm(x[around[0]] - x[around[2]]) <= np.linalg.norm(x[around[1]] - x[around[3]]):
                    return [[a, b, c], [a, c, d]]
                return [[a, b, d], [b, c, d]]
        raise ParticipantError(
            f"{self.name}: a quadrilateral of mesh {mesh.name!r} is not plane and convex; give triangles"
        )

    def set_region(self, mesh: str, box: Any) -> None:
        """The box [xmin, xmax, ymin, ymax, ...] in which this participant touches a received mesh directly."""
        found = self.mesh(mesh)
        if not found.flags & DIRECT:
            raise ParticipantError(f"{self.name}: mesh {mesh!r} is not open to direct access")
        if found.region is not None:
            raise ParticipantError(f"{self.name}: the region of mesh {mesh!r} was set already; one box per mesh")
        self._refuse_after_start(f"the region of mesh {mesh!r} must be set before the start")
        region = np.asarray(box, dtype=np.float64).ravel()
        if region.size != 2 * found.dimensions or not (region[::2] <= region[1::2]).all():
            raise ParticipantError(
                f"{self.name}: the region of mesh {mesh!r} is [min, max] for each of {found.dimensions} axes, not "
                f"{region.tolist()}"
            )
        found.region = region

    def points_of(self, mesh: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Numbers and coordinates of the points of a mesh; of a received one those in the region, after the start."""
        found = self.mesh(mesh)
        if not found.flags & PROVIDED and not self._started:
            raise ParticipantError(f"{self.name}: the points of the received mesh {mesh!r} arrive with the start")
        return np.arange(len(found.points), dtype=np.int32), found.points.copy()

    @property
    def needs_initial_data(self) -> bool:
        """True when data must be written before the start."""
        return any(data.flags & INITIAL for data in self._written)

    def needs_gradient(self, mesh: str, data: str) -> bool:
        """True when a mapping uses the gradient of these data."""
        return bool(self.data(mesh, data).flags & GRADIENT)

    # -- running

    def start(self, resume: bool = False) -> None:
        """Connect with the others: meshes and initial data travel, mappings are made."""
        if self._started:
            raise ParticipantError(f"{self.name}: was started already")
        packer = Packer()
        for mesh in self.meshes.values():
            if mesh.flags & PROVIDED:
                packer.array(mesh.points)
                for kind in KINDS:
                    packer.numbers(np.array(mesh.cells[kind], dtype=np.int64))
            else:
                packer.array(np.zeros(0) if mesh.region is None else mesh.region)
        for data in self._written:
            packer.parts.append(data.content() if data.mesh.flags & PROVIDED else b"")
        answer = self._ask(RESUME if resume else START, packer.bytes(), STATE)
        for mesh in self.meshes.values():
            if not mesh.flags & PROVIDED:
                mesh.points = answer.array().reshape(-1, mesh.dimensions)
        self._started = True
        for mesh in self.meshes.values():
            mesh.numbering = np.arange(len(mesh.points), dtype=_NUMBER).tobytes()
        for data in self._written:
            data.clear()
        self._arrive(answer)

    def write(self, mesh: str, data: str, values: Any, points: Any = None) -> None:
        """Write values at points (default: all); what is not written before `advance` counts as zero."""
        found = self._writable(mesh, data)
        if points is None or self._all_points(found.mesh, points):
            found.buffer[:] = self._rows(found, values, len(found.buffer), found.components, "values")
        else:
            where = self._numbers(found.mesh, points)
            found.buffer[where] = self._rows(found, values, len(where), found.components, "values")

    def write_gradient(self, mesh: str, data: str, gradients: Any, points: Any = None) -> None:
        """Write gradients: per point the derivatives by x of all components, then by y, ..."""
        found = self._writable(mesh, data)
        if not found.flags & GRADIENT:
            return
        where = slice(None) if points is None else self._numbers(found.mesh, points)
        count = len(found.buffer) if points is None else len(where)  # type: ignore[arg-type]
        found.gradient[where] = self._rows(found, gradients, count, found.gradient.shape[1], "gradients")

    def read(self, mesh: str, data: str, after: float = 0.0, points: Any = None) -> np.ndarray[Any, Any]:
        """The values `after` seconds from now, at most until the end of the window: shape (points, components)."""
        found = self.data(mesh, data)
        values = self._sampled(found, after)
        if points is not None and not self._all_points(found.mesh, points):
            values = values[self._numbers(found.mesh, points)]
        return values

    def _sampled(self, found: DataOfParticipant, after: float) -> np.ndarray[Any, Any]:
        if not found.flags & READ:
            raise ParticipantError(f"{self.name}: does not read data {found.name!r} on mesh {found.mesh.name!r}")
        if not self._started:
            raise ParticipantError(f"{self.name}: nothing can be read before the start")
        after = float(after)
        longest = self._remaining - self._progress if self._flags & ONGOING else 0.0
        slack = _NEARLY * max(self._window, abs(after))
        if not -slack <= after <= longest + slack:
            raise ParticipantError(
                f"{self.name}: data {found.name!r} are known for the next {longest:g} s, not {after:g} s from now"
            )
        assert found.waveform is not None
        flat = found.waveform.at(self._time + self._progress + after)
        return flat.reshape(-1, found.components)

    def put(self, port: str, value: Any) -> None:
        """Write an output, a number or a vector, by its name alone."""
        found = self._port(port, WRITTEN, "output")
        found.buffer[:] = self._rows(found, value, 1, found.components, "the value")

    def get(self, port: str, after: float | None = None) -> Any:
        """An input by its name alone, `after` seconds from now (default: at the end of the window)."""
        found = self._port(port, READ, "input")
        values = self._sampled(found, self.step_limit if after is None else after)[0]
        return float(values[0]) if found.components == 1 else values

    def _port(self, name: str, flag: int, what: str) -> DataOfParticipant:
        for data in self._written if flag == WRITTEN else self._read:
            if data.name == name and data.mesh.flags & PORTS:
                return data
        ports = [data.name for data in (self._written if flag == WRITTEN else self._read) if data.mesh.flags & PORTS]
        raise ParticipantError(f"{self.name}: has no {what} {name!r}; there are {', '.join(ports) or 'none'}")

    def read_at(self, mesh: str, data: str, coordinates: Any, after: float = 0.0) -> np.ndarray[Any, Any]:
        """The values at any points inside the region of a received mesh, mapped on the spot."""
        found = self.data(mesh, data)
        self._refuse_unless_in_time(found)
        return self._mapped(found, 0, coordinates, self._sampled(found, after))

    def write_at(self, mesh: str, data: str, coordinates: Any, values: Any) -> None:
        """Add values at any points inside the region of a received mesh, mapped on the spot."""
        found = self._writable(mesh, data)
        self._refuse_unless_in_time(found)
        points = np.asarray(coordinates, dtype=np.float64).reshape(-1, found.mesh.dimensions)
        rows = self._rows(found, values, len(points), found.components, "values")
        found.buffer = found.buffer + self._mapped(found, 1, points, rows)

    def _refuse_unless_in_time(self, found: DataOfParticipant) -> None:
        if not found.flags & JUST_IN_TIME or not self._started:
            raise ParticipantError(
                f"{self.name}: there is no mapping on the spot for data {found.name!r} on mesh {found.mesh.name!r}"
            )

    def _mapped(self, found: DataOfParticipant, loads: int, coordinates: Any, values: Any) -> np.ndarray[Any, Any]:
        points = np.asarray(coordinates, dtype=np.float64).reshape(-1, found.mesh.dimensions)
        if not len(points):
            return np.zeros((len(found.mesh.points) if loads else 0, found.components))
        packer = Packer().text(found.mesh.name).text(found.name).whole(loads).array(points).array(values)
        return self._ask(MAP, packer.bytes(), MAPPED).array().reshape(-1, found.components)

    def advance(self, step: float) -> None:
        """The solver has computed `step`; at the end of the window this waits for the others."""
        step = float(step)
        if not self._started:
            raise ParticipantError(f"{self.name}: start it before it advances")
        if not self._flags & ONGOING:
            raise ParticipantError(f"{self.name}: the coupling has ended; ask whether it is ongoing")
        if self._flags & MUST_SAVE and not self._saving_asked:
            raise ParticipantError(f"{self.name}: its state must be saved here; ask must_save before it advances")
        if self._flags & MUST_RESTORE and not self._restoring_asked:
            raise ParticipantError(f"{self.name}: its state must be restored; ask must_restore before it advances")
        longest = self.step_limit
        if not (0.0 < step <= longest * (1.0 + 1e-12) + 1e-14 and isfinite(step)):
            raise ParticipantError(f"{self.name}: a step of {step!r} is not above 0 and at most {longest:g}")
        at_end = bool(self._flags & LEADS) or self._progress + step >= self._remaining - _NEARLY * self._window
        self._progress = self._progress + step if self._flags & LEADS or not at_end else self._remaining
        if at_end or self._contract & WANTS_SUBSTEPS:
            self._samples.append(_SAMPLE.pack(self._progress))
            self._samples += [data.content() for data in self._written]
            self._kept += 1
        for data in self._written:
            data.clear()
        if not at_end:
            self._flags &= ~(COMPLETE | MUST_SAVE | MUST_RESTORE)
            return
        content = _COUNT.pack(self._kept) + b"".join(self._samples)
        self._samples, self._kept = [], 0
        self._arrive(self._ask(ADVANCE, content, STATE))

    def _arrive(self, answer: Unpacker) -> None:
        """Take over where the hub says we stand, and what can be read there."""
        self._flags, self._time, self._remaining = answer.standing()
        self._window, self._progress = self._remaining, 0.0
        self._saving_asked = self._restoring_asked = False
        for data in self._read:
            n, size = answer.whole(), len(data.mesh.points) * data.components
            times = answer.doubles(n).tolist()
            data.waveform = Waveform(times, answer.doubles(n * size).reshape(n, size), data.degree)

    @property
    def time(self) -> float:
        """Where this participant stands."""
        return self._time + self._progress

    @property
    def step_limit(self) -> float:
        """The longest step that is possible now; 0 after the end."""
        if not self._flags & ONGOING:
            return 0.0
        return self._remaining - self._progress

    @property
    def ongoing(self) -> bool:
        """False once the coupling has come to its end."""
        return bool(self._flags & ONGOING)

    @property
    def window_complete(self) -> bool:
        """True when the last `advance` has ended a window for good."""
        return bool(self._flags & COMPLETE)

    @property
    def must_save(self) -> bool:
        """True when the solver has to save its state now; must be asked then."""
        self._saving_asked = True
        return bool(self._flags & MUST_SAVE)

    @property
    def must_restore(self) -> bool:
        """True when the solver has to go back to its saved state now; must be asked then."""
        self._restoring_asked = True
        return bool(self._flags & MUST_RESTORE)

    def finish(self) -> None:
        """Say goodbye to the hub; done by itself when this object goes."""
        if not self._closed:
            self._closed = True
            with suppress(OSError):
                self._line.send(FINISH)
            self._line.close()

    def abandon(self) -> None:
        """Let go silently, as a process that dies does."""
        self._closed = True
        self._line.close()

    def __del__(self) -> None:
        if getattr(self, "_line", None) is not None:
            self.finish()

    # -- inside

    def _ask(self, kind: int, content: bytes, expected: int) -> Unpacker:
        if self._closed:
            raise ParticipantError(f"{self.name}: has finished already")
        try:
            self._line.send(kind, content)
            got, answer = self._line.receive()
        except socket.timeout:  # noqa: UP041 - no TimeoutError before Python 3.10
            self.abandon()
            raise ParticipantError(f"{self.name}: the hub gave no answer in time") from None
        except OSError:
            got, answer = self._last_record()
        if got == FAILED:
            self.abandon()
            raise ParticipantError(f"{self.name}: {Unpacker(answer).text()}")
        if got != expected:
            self.abandon()
            raise ParticipantError(f"{self.name}: the hub sent a record of kind {got} where {expected} was due")
        return Unpacker(answer)

    def _last_record(self) -> tuple[int, bytes]:
        """What the hub has said before it went: a sending that fails does not mean that nothing has arrived."""
        try:
            return self._line.receive()
        except OSError:
            self.abandon()
            raise ParticipantError(f"{self.name}: the hub is gone") from None

    def _refuse_after_start(self, why: str) -> None:
        if self._started:
            raise ParticipantError(f"{self.name}: {why}")

    def _writable(self, mesh: str, data: str) -> DataOfParticipant:
        found = self.data(mesh, data)
        if not found.flags & WRITTEN:
            raise ParticipantError(f"{self.name}: does not write data {data!r} on mesh {mesh!r}")
        return found

    def _all_points(self, mesh: MeshOfParticipant, points: Any) -> bool:
        """True for the numbers of all points in their order, which is what most callers hold."""
        return (
            isinstance(points, np.ndarray)
            and points.size == len(mesh.points)
            and points.dtype == _NUMBER
            and points.tobytes() == mesh.numbering
        )

    def _numbers(self, mesh: MeshOfParticipant, points: Any) -> Any:
        numbers = np.asarray(points)
        if numbers.size == 0:
            return np.zeros(0, dtype=np.int64)
        numbers = numbers.astype(np.int64).ravel()
        if numbers.min() < 0 or numbers.max() >= len(mesh.points):
            raise ParticipantError(
                f"{self.name}: mesh {mesh.name!r} has the points 0 to {len(mesh.points) - 1}, not "
                f"{int(numbers.max() if numbers.min() >= 0 else numbers.min())}"
            )
        return numbers

    def _rows(self, found: DataOfParticipant, values: Any, points: int, width: int, what: str) -> Any:
        rows = np.asarray(values, dtype=np.float64)
        if rows.size != points * width:
            raise ParticipantError(
                f"{self.name}: {what} of data {found.name!r} on mesh {found.mesh.name!r} must be {points} x {width} "
                f"numbers, not {rows.shape}"
            )
        if not all_finite(rows):
            raise ParticipantError(
                f"{self.name}: data {found.name!r} on mesh {found.mesh.name!r} at t = {self.time:g} would hold a NaN "
                "or an infinity"
            )
        return rows.reshape(points, width)


def _hub(address: str) -> tuple[str, str]:
    """Address and token: as given or as the hub that started this process has left them; "ADDRESS TOKEN"."""
    whole = address or os.environ.get("COSOLVE_HUB", "")
    if not whole:
        raise ParticipantError("no hub: give its address, or let the hub start this process (COSOLVE_HUB)")
    place, _, token = whole.partition(" ")
    return place, token
