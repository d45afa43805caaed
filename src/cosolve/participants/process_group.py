"""A participant that runs as several processes: their records become those of one participant, and back.

Each rank sets its own points of a mesh and writes and reads there; the mesh of the participant is that of rank 0, then
that of rank 1, and so on. A record goes to the coupling when all ranks have sent theirs, and an answer is cut into one
for each rank, so that a coupling never learns how many processes there are, and computes the same bits for any number.
"""

from __future__ import annotations

import struct
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cosolve.errors import SubsystemError
from cosolve.participants import client as c
from cosolve.participants.client import Connection, Packer, Unpacker

_MOST = 1 << 16  # processes of one participant
_CLOSE = 1e-12  # fraction by which the steps of ranks may differ


@dataclass
class _Data:
    """Data of a contract."""

    components: int
    flags: int


@dataclass
class _Mesh:
    """A mesh of a contract, and which of its points belong to which rank."""

    name: str
    dimensions: int
    flags: int
    data: list[_Data] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)  # points of each rank, of a mesh that is provided
    regions: list[Any] = field(default_factory=list)  # box of each rank, of a mesh that is received
    seen: list[Any] = field(default_factory=list)  # which points of a received mesh each rank can touch
    size: int = 0  # points that the whole participant can touch

    @property
    def provided(self) -> bool:
        """True where the participant sets the points."""
        return bool(self.flags & c.PROVIDED)

    def width(self, data: _Data) -> list[int]:
        """How many numbers a point has in a sample: values, and gradients where these are wanted."""
        return [data.components] + [data.components * self.dimensions] * bool(data.flags & c.GRADIENT)


def rank_of_hello(hello: Unpacker) -> tuple[int, int, int]:
    """The process, rank and size at the end of a greeting; clients that know no ranks are the only one."""
    process = hello.whole()
    rest = hello.rest()
    if not rest:
        return process, 0, 1
    more = Unpacker(rest)
    return process, more.whole(), more.whole()


def why_not(there: Connection | ProcessGroup | None, name: str, rank: int, size: int) -> str:
    """Why a process of a participant, of which others may be `there`, cannot come in; '' where it can.

    >>> why_not(None, "Fluid", 0, 2), why_not(None, "Fluid", 2, 2)
    ('', "'Fluid' has the ranks 0 to 1, not 2")
    """
    if not 1 <= size <= _MOST:
        return f"'{name}' cannot run with {size} processes, but with 1 to {_MOST}"
    if rank >= size:
        return f"'{name}' has the ranks 0 to {size - 1}, not {rank}"
    if there is None:
        return ""
    others = there.size if isinstance(there, ProcessGroup) else 1
    if others != size:
        return f"another process of '{name}' says that there are {others}, and this one that there are {size}"
    if not isinstance(there, ProcessGroup):
        return f"participant '{name}' is connected already"
    return "" if there.ranks[rank] is None else f"rank {rank} of participant '{name}' is connected already"


class ProcessGroup:
    """The processes of one participant; to a hub it is like one `Connection`.

    `contract` is what all of them are told.
    """

    def __init__(self, name: str, size: int, contract: bytes) -> None:
        self.name, self.size, self.contract = name, size, contract
        self.ranks: list[Connection | None] = [None] * size
        self.processes = [0] * size
        self._numbers: dict[int, int] = {}  # rank of a connection
        self._boxes: list[deque[tuple[int, bytes]]] = [deque() for _ in range(size)]
        self._finished: set[int] = set()
        self._asked: deque[int] = deque()  # who waits for a mapping
        self._answered = False
        self.meshes = _meshes(contract)

    def join(self, rank: int, line: Connection, process: int) -> None:
        """A rank has come."""
        self.ranks[rank], self.processes[rank] = line, process
        self._numbers[id(line)] = rank

    @property
    def missing(self) -> list[str]:
        """Ranks that have not connected."""
        return [f"{self.name} (rank {k} of {self.size})" for k, line in enumerate(self.ranks) if line is None]

    @property
    def lines(self) -> list[Connection]:
        """The connections of all ranks that are there."""
        return [line for line in self.ranks if line is not None]

    def who(self, line: Connection) -> str:
        """Words for the process at the other end of a line."""
        rank = self._numbers[id(line)]
        return f"rank {rank} of participant '{self.name}' (process {self.processes[rank]})"

    def left(self, line: Connection) -> bool:
        """True where a rank has said goodbye."""
        return self._numbers[id(line)] in self._finished

    # -- as one connection

    def heard(self, line: Connection, kind: int, content: bytes) -> tuple[int, bytes] | None:
        """A record of one rank; the record of the participant where this was the last one, or None."""
        try:
            return self._heard(self._numbers[id(line)], kind, content)
        except (c.ParticipantError, ValueError, KeyError, IndexError, MemoryError) as error:
            raise SubsystemError(
                f"{self.who(line)} has sent a record that cannot be understood ({type(error).__name__}: {error}), or "
                "another of its ranks; their client and this hub may be of different versions"
            ) from error

    def _heard(self, rank: int, kind: int, content: bytes) -> tuple[int, bytes] | None:
        if kind == c.MAP:
            self._refuse_part_of_region(rank, Unpacker(content).text())
            self._asked.append(rank)
            return kind, content
        if kind == c.FINISH:
            self._finished.add(rank)
        self._boxes[rank].append((kind, content))
        if not all(self._boxes):
            return None
        records = [box.popleft() for box in self._boxes]
        kinds = {kind for kind, _ in records}
        if len(kinds) > 1:
            raise SubsystemError(
                f"the ranks of participant '{self.name}' do different things: "
                + ", ".join(f"rank {k} {_DOES.get(kind, 'something else')}" for k, (kind, _) in enumerate(records))
            )
        if kind == c.START:
            return kind, self._joined_start([Unpacker(content) for _, content in records])
        if kind == c.ADVANCE:
            return kind, self._joined_samples([Unpacker(content) for _, content in records])
        return kind, content

    def complete(self) -> tuple[int, bytes] | None:
        """A record of the whole participant that has arrived, or None."""
        for line in self.lines:
            while (record := line.complete()) is not None:
                joined = self.heard(line, *record)
                if joined is not None:
                    return joined
        return None

    def send(self, kind: int, content: bytes = b"") -> None:
        """An answer, cut for each rank; raises the first `OSError` after all were tried."""
        if kind == c.MAPPED:
            to = self.ranks[self._asked.popleft()]
            assert to is not None
            to.send(kind, content)
            return
        each = self._cut(content) if kind == c.STATE else [content] * self.size
        failure: OSError | None = None
        for line, part in zip(self.ranks, each, strict=True):
            try:
                if line is not None:
                    line.send(kind, part)
            except OSError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Let go of all."""
        for line in self.lines:
            with suppress(OSError):
                line.close()

    # -- from all ranks to one

    def _joined_start(self, parts: list[Unpacker]) -> bytes:
        packer = Packer()
        for mesh in self.meshes:
            arrays = [part.array() for part in parts]
            if not mesh.provided:
                mesh.regions = arrays
                packer.array(_around(arrays))
                continue
            cells = [[part.numbers() for _ in c.KINDS] for part in parts]
            if mesh.flags & c.PORTS:  # one point without a place, which all have
                mesh.size, arrays, cells = 1, arrays[:1], cells[:1]
            else:
                mesh.counts = [len(points) // mesh.dimensions for points in arrays]
                mesh.size = sum(mesh.counts)
            offsets = np.cumsum([0, *mesh.counts])
            packer.array(np.concatenate(arrays))
            for k in range(len(c.KINDS)):
                packer.numbers(np.concatenate([own[k] + offset for own, offset in zip(cells, offsets, strict=False)]))
        packer.parts += [piece for mesh in self.meshes if mesh.provided for piece in self._joined_data(mesh, parts)]
        return packer.bytes()

    def _joined_samples(self, parts: list[Unpacker]) -> bytes:
        counts = [part.whole() for part in parts]
        pieces = [struct.pack("<I", counts[0])]
        if len(set(counts)) > 1:
            self._refuse_different("numbers of steps", counts)
        for _ in range(counts[0]):
            steps = [part.real() for part in parts]
            if max(steps) - min(steps) > _CLOSE * max(steps):
                self._refuse_different("steps", steps)
            pieces.append(struct.pack("<d", steps[0]))
            for mesh in self.meshes:
                pieces += self._joined_data(mesh, parts)
        return b"".join(pieces)

    def _refuse_different(self, what: str, values: list[Any]) -> None:
        shown = ", ".join(f"rank {k} {value:.9g}" for k, value in enumerate(values))
        raise SubsystemError(
            f"the ranks of participant '{self.name}' have taken different {what} in a window ({shown}); all of them "
            "have to take the same"
        )

    def _joined_data(self, mesh: _Mesh, parts: list[Unpacker]) -> list[bytes]:
        """All written data of a mesh in one sample."""
        pieces = []
        for data in mesh.data:
            if not data.flags & c.WRITTEN:
                continue
            for width in mesh.width(data):
                if mesh.flags & c.PORTS:  # rank 0 speaks for all
                    each = [part.doubles(width) for part in parts]
                    pieces.append(_bytes(each[0]))
                elif mesh.provided:
                    pieces += [_bytes(part.doubles(n * width)) for part, n in zip(parts, mesh.counts, strict=True)]
                else:
                    pieces.append(_bytes(_scattered(mesh, width, parts)))
        return pieces

    # -- from one to all ranks

    def _cut(self, content: bytes) -> list[bytes]:
        """Where the participant stands and what it can read, for each rank."""
        whole = Unpacker(content)
        parts: list[list[bytes]] = [[] for _ in range(self.size)]
        if not self._answered:
            self._answered = True
            for mesh in self.meshes:
                if not mesh.provided:
                    points = whole.array().reshape(-1, mesh.dimensions)
                    mesh.size = len(points)
                    mesh.seen = [np.flatnonzero(_inside(points, region)) for region in mesh.regions]
                    for rank, seen in enumerate(mesh.seen):
                        parts[rank].append(Packer().array(points[seen]).bytes())
        head = struct.pack("<Idd", whole.whole(), whole.real(), whole.real())
        for part in parts:
            part.append(head)
        for mesh in self.meshes:
            for data in mesh.data:
                if data.flags & c.READ:
                    self._cut_data(whole, mesh, data, parts)
        return [b"".join(part) for part in parts]

    def _cut_data(self, whole: Unpacker, mesh: _Mesh, data: _Data, parts: list[list[bytes]]) -> None:
        n = whole.whole()
        times = struct.pack("<I", n) + _bytes(whole.doubles(n))
        values = whole.doubles(n * mesh.size * data.components).reshape(n, mesh.size, data.components)
        ends = np.cumsum([0, *mesh.counts])
        for rank, part in enumerate(parts):
            if mesh.flags & c.PORTS:
                own = values
            elif mesh.provided:
                own = values[:, ends[rank] : ends[rank + 1]]
            else:
                own = values[:, mesh.seen[rank]]
            part += [times, _bytes(own)]

    def _refuse_part_of_region(self, rank: int, name: str) -> None:
        """A mapping on the spot takes the field of the whole region, of which a rank may hold a part only."""
        for mesh in self.meshes:
            if mesh.name == name and mesh.seen and len(mesh.seen[rank]) < mesh.size:
                raise SubsystemError(
                    f"participant '{self.name}' maps on the spot from a part of mesh '{name}', which rank {rank} has "
                    "set as its region; give all ranks the same region"
                )


_DOES = {c.START: "starts", c.ADVANCE: "advances", c.FINISH: "finishes"}


def lines_of(line: Connection | ProcessGroup) -> list[Connection]:
    """The connections of a participant."""
    return line.lines if isinstance(line, ProcessGroup) else [line]


def _bytes(values: Any) -> bytes:
    return np.ascontiguousarray(values, dtype="<f8").tobytes()


def _meshes(contract: bytes) -> list[_Mesh]:
    """The meshes and data of a contract."""
    told = Unpacker(contract)
    told.whole()
    meshes = []
    for _ in range(told.whole()):
        mesh = _Mesh(told.text(), told.whole(), told.whole())
        for _ in range(told.whole()):
            told.text()
            mesh.data.append(_Data(told.whole(), told.whole()))
            told.whole()
        meshes.append(mesh)
    return meshes


def _around(boxes: list[Any]) -> Any:
    """The box around boxes; all space where one of them is.

    >>> _around([np.array([0.0, 1.0]), np.array([3.0, 4.0])]).tolist(), len(_around([np.zeros(2), np.zeros(0)]))
    ([0.0, 4.0], 0)
    """
    if any(not len(box) for box in boxes):
        return np.zeros(0)
    both = np.stack(boxes)
    return np.where(np.arange(both.shape[1]) % 2 == 0, both.min(axis=0), both.max(axis=0))


def _inside(points: Any, region: Any) -> Any:
    """Which points lie in a box; all where there is none."""
    inside = np.ones(len(points), dtype=bool)
    if len(region):
        for axis in range(points.shape[1]):
            low, high = region[2 * axis : 2 * axis + 2]
            inside &= (points[:, axis] >= low) & (points[:, axis] <= high)
    return inside


def _scattered(mesh: _Mesh, width: int, parts: list[Unpacker]) -> Any:
    """What ranks write on a received mesh; where several write at one point, the sum."""
    whole = np.zeros((mesh.size, width))
    written = np.zeros(mesh.size, dtype=bool)
    for part, seen in zip(parts, mesh.seen, strict=True):
        values = part.doubles(len(seen) * width).reshape(-1, width)
        new = ~written[seen]
        whole[seen[new]] = values[new]
        whole[seen[~new]] += values[~new]
        written[seen] = True
    return whole
