"""One result of all participants of a configuration file: what each has written and read at the ends of its windows.

Participants come to the ends of their windows one after the other, and may have windows of different lengths. A row is
written when all have come to its time, or have ended; where one has no window end at that time, its last values stand.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.participants import client as c
from cosolve.result.recorder import Layout, Row
from cosolve.result.result import Channel, Stats
from cosolve.version import VERSION

if TYPE_CHECKING:
    from cosolve.precice.config import Configuration, SchemeTag
    from cosolve.precice.coupling import Coupling, Member, Side
    from cosolve.result.store import Stream

_NEARLY = 1e-9  # fraction of a window by which two times may differ and still be the same
_TELL = 0.1  # seconds between two words about the progress

Entry = tuple[str, str, int]  # mesh, data, components


@dataclass
class _Point:
    """A participant at the end of a window; how many iterations and seconds led there."""

    t: float
    written: Vector
    read: Vector
    iterations: int
    subsystem_steps: int
    seconds: float


class CommonResult:
    """Follows a coupling; `path` is where the result goes (.h5), `told(fraction, words)` hears how far all are."""

    def __init__(self, path: Path | None, told: Callable[[float, str], None] | None = None) -> None:
        self._path, self._told = path, told
        self._stream: Stream | None = None
        self._points: dict[str, deque[_Point]] = {}
        self._last: dict[str, _Point] = {}
        self._done: set[str] = set()  # whose last point is known
        self._stats = Stats()
        self._began = self._spoke = time.perf_counter()
        self._previous = 0.0
        self._coupling: Coupling | None = None
        if path is not None:
            from cosolve.result.store import refuse_unwritable

            refuse_unwritable(path)

    # -- what a coupling tells

    def began(self, member: Member, first: dict[tuple[str, str], Any]) -> None:
        """A participant stands at the start; `first` is what it wrote before."""
        self._coupling = member.coupling
        self._points.setdefault(member.name, deque()).append(self._point(member, first, 0))
        if len(self._points) == len(member.coupling.members):
            self._write()

    def window(self, member: Member, raw: dict[tuple[str, str], Any], ended: Sequence[Side]) -> None:
        """A participant has come to the end of windows for good."""
        iterations = member.recorder.counts[-1] if any(side.scheme.implicit for side in ended) else 1
        self._points[member.name].append(self._point(member, raw, iterations))
        if not member.ongoing:
            self._done.add(member.name)
        self._write()
        now = time.perf_counter()
        if self._told is not None and now - self._spoke > _TELL:
            self._spoke = now
            members = member.coupling.members.values()
            end = end_of(member.coupling.configuration)
            self._told(min(one.time for one in members) / end if np.isfinite(end) else 0.0, words(member.coupling))

    def finish(self, error: str | None) -> None:
        """The run is over; what was not yet written is, as far as all have come."""
        if self._coupling is not None:
            self._write()
        if self._stream is not None:
            self._stats.wall_seconds = time.perf_counter() - self._began
            unwritten = self._stream.finish(self._stats, error)
            self._stream.close()
            self._stream = None
            if unwritten is not None and error is None:
                raise unwritten

    # -- rows

    def _point(self, member: Member, raw: dict[tuple[str, str], Any], iterations: int) -> _Point:
        sizes = member.coupling.geometries
        written = [
            raw[mesh, name][0] if (mesh, name) in raw else np.zeros(len(sizes[mesh].points) * n)
            for mesh, name, n in _entries(member, c.WRITTEN)
        ]
        read = [member.current(mesh, name, n)[0][1] for mesh, name, n in _entries(member, c.READ)]
        point = _Point(member.time, _flat(written), _flat(read), iterations, member.subsystem_steps, member.computing)
        member.subsystem_steps, member.computing = 0, 0.0
        return point

    def _write(self) -> None:
        """All rows whose time all participants have come to."""
        assert self._coupling is not None
        members = self._coupling.members
        if self._path is None or len(self._points) < len(members):
            return
        while True:
            waiting = [name for name, points in self._points.items() if points]
            if not waiting or any(not self._points[name] and name not in self._done for name in members):
                return
            t = min(self._points[name][0].t for name in waiting)
            scale = max(abs(t - self._previous), abs(t) * 1e-3)
            now = [name for name in waiting if self._points[name][0].t <= t + _NEARLY * scale]
            for name in now:
                self._last[name] = self._points[name].popleft()
            self._row(t, list(members), now)

    def _row(self, t: float, names: list[str], now: list[str]) -> None:
        first = self._stream is None
        if first:
            self._stream = self._open(names)
        assert self._stream is not None
        came = [self._last[name] if name in now else None for name in names]
        calls = np.array([0 if point is None else point.subsystem_steps for point in came])
        seconds = np.array([0.0 if point is None else point.seconds for point in came])
        corrections = max((point.iterations - 1 for point in came if point is not None), default=0)
        row = Row(
            t,
            _flat([self._last[name].written for name in names]),
            _flat([self._last[name].read for name in names]),
            H=np.nan if first else t - self._previous,
            iterations=max(0, corrections),
            calls=calls,
            seconds=seconds,
        )
        self._stream.append(row)
        stats = self._stats
        stats.steps += not first
        stats.iterations += row.iterations
        for k, name in enumerate(names):
            stats.calls[name] = stats.calls.get(name, 0) + int(calls[k])
            stats.seconds[name] = stats.seconds.get(name, 0.0) + float(seconds[k])
        self._previous = t

    def _open(self, names: list[str]) -> Stream:
        from cosolve.result.store import Stream

        assert self._coupling is not None
        assert self._path is not None
        coupling, channels, ends = self._coupling, {}, {"y": 0, "z": 0}
        for column, flag in (("y", c.WRITTEN), ("z", c.READ)):
            for name in names:
                for channel, size in _sized(coupling.members[name], flag):
                    part = tuple(range(ends[column], ends[column] + size))
                    channels[channel] = Channel(column, part, scalar=size == 1)
                    ends[column] += size
        layout = Layout(ends["y"], ends["z"], len(names))
        return Stream(self._path, layout, channels, tuple(names), about(coupling))


def _flat(parts: Sequence[Any]) -> Vector:
    return np.concatenate(parts) if parts else np.zeros(0)


def _entries(member: Member, flag: int) -> list[Entry]:
    """What a participant writes, or reads."""
    return [(mesh, name, n) for mesh, name, n, flags in member.data if flags & flag]


def port_name(entries: Sequence[Entry], mesh: str, name: str) -> str:
    """The name of data; with that of the mesh where they are on several.

    >>> port_name([("M", "T", 1), ("N", "F", 2)], "M", "T"), port_name([("M", "T", 1), ("N", "T", 1)], "M", "T")
    ('T', 'M.T')
    """
    return name if sum(other == name for _, other, _ in entries) == 1 else f"{mesh}.{name}"


def _named(member: Member, flag: int) -> list[tuple[str, Entry]]:
    """The names in a result; what is both written and read has the name of its mesh in the second case."""
    entries = _entries(member, flag)
    both = {name for _, name, _ in _entries(member, c.WRITTEN)} if flag == c.READ else set()
    return [
        (
            f"{member.name}." + (f"{mesh}.{name} read" if name in both else port_name(entries, mesh, name)),
            (mesh, name, n),
        )
        for mesh, name, n in entries
    ]


def _sized(member: Member, flag: int) -> list[tuple[str, int]]:
    points = member.coupling.geometries
    return [(label, len(points[mesh].points) * n) for label, (mesh, _, n) in _named(member, flag)]


def about(coupling: Coupling) -> dict[str, Any]:
    """What the result says about its run."""
    configuration = coupling.configuration
    edges = []
    for name, member in coupling.members.items():
        for label, (mesh, data, _) in _named(member, c.READ):
            found = member.reading.get((mesh, data))
            if found is None:
                continue
            side, key, _ = found
            exchange = next(e for e in side.scheme.exchanges if (e.mesh, e.data) == key and e.receiver == name)
            sender = coupling.members[exchange.sender]
            source = next(
                (other for other, (m, d, _) in _named(sender, c.WRITTEN) if (m, d) == (sender.origin(exchange), data)),
                "",
            )
            edges.append({"kind": "law", "label": data, "sources": [source], "targets": [label], "factors": [1.0]})
    subsystems = [
        {
            "name": name,
            "kind": "participant",
            "inputs": [label.partition(".")[2] for label, _ in _named(member, c.READ)],
            "outputs": [label.partition(".")[2] for label, _ in _named(member, c.WRITTEN)],
        }
        for name, member in coupling.members.items()
    ]
    schemes = ", ".join(scheme.tag.kind for scheme in coupling.schemes)
    return {
        "cosolve": VERSION,
        "method": f"as configured: {schemes}",
        "step": repr(configuration.schemes[0].window),
        "t_start": min(member.time for member in coupling.members.values()),
        "t_end": end_of(configuration) if np.isfinite(end_of(configuration)) else None,
        "system": f"participants of {configuration.file}: {', '.join(coupling.members)}",
        "graph": {"subsystems": subsystems, "edges": edges},
    }


def end_of(configuration: Configuration) -> float:
    """The time at which all schemes of a file have ended; infinite where it does not say."""
    return max(map(end_of_scheme, configuration.schemes))


def end_of_scheme(scheme: SchemeTag) -> float:
    """When a coupling scheme ends; infinite where the file does not say it."""
    by_windows = np.inf if scheme.max_windows is None or not scheme.window else scheme.max_windows * scheme.window
    return float(min(by_windows, np.inf if scheme.max_time is None else scheme.max_time))


def words(coupling: Coupling) -> str:
    """Where all participants stand, in a line."""
    return ", ".join(
        f"{name} t = {member.time:.6g}"
        + (f" ({member.recorder.counts[-1]} iterations)" if member.recorder.counts else "")
        for name, member in coupling.members.items()
    )
