"""The coupling as a configuration file describes it: windows, iterations and who waits for whom.

Each participant is followed by one coroutine (`Member.life`) that reads its records, exchanges with the others through
boxes and answers. What a participant does inside `advance` is thus one text from top to bottom, and the whole needs no
threads: a coroutine stops where a box is empty and goes on when something is in it. Schemes and their order of events
are those of docs/howto-participants.md.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Generator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.wording import listed
from cosolve.errors import NonFiniteError, SetupError, SubsystemError
from cosolve.participants import client as c
from cosolve.participants.client import Packer, Unpacker, Waveform, all_finite, little_endian
from cosolve.precice.acceleration import Accelerator, Samples
from cosolve.precice.config import Configuration, Exchange, MappingTag, ParticipantTag, SchemeTag
from cosolve.precice.convergence import Key, Measures
from cosolve.precice.fields import Field, Geometry, JustInTime, geometry, mapped_field, needs_cells
from cosolve.precice.records import Recorder
from cosolve.precice.restart import CheckpointWriter, put_back, restored_state

if TYPE_CHECKING:
    from cosolve.precice.common_result import CommonResult

_NEARLY = 1e-9  # fraction of a window by which two times may differ and still be the same
_INFINITE = float("inf")
_STANDING, _ONE_SAMPLE = struct.Struct("<Idd"), struct.Struct("<Id")

Wait = Generator[Any, None, Any]
Payload = dict[str, Any]


class Coupling:
    """Everything between the participants of a configuration; knows records, not sockets.

    `deliver` takes a record of a participant; `answers` holds what is to be sent, as (participant, kind, content).
    `state` is a file that holds the state after every so many windows, `resume` one to go on from; `common` takes what
    all have written and read.
    """

    def __init__(
        self,
        configuration: Configuration,
        record: bool = True,
        *,
        state: Path | None = None,
        every: int = 1,
        resume: Path | None = None,
        common: CommonResult | None = None,
    ) -> None:
        self.configuration = configuration
        self.answers: deque[tuple[str, int, bytes]] = deque()
        self.schemes = [Scheme(tag, configuration) for tag in configuration.schemes]
        self.members = {name: Member(self, tag) for name, tag in configuration.participants.items()}
        self.geometries: dict[str, Geometry] = {}
        self.record, self.common = record, common
        self._waiting: list[tuple[Wait, Any]] = []
        self._inboxes = {id(member.inbox) for member in self.members.values()}
        self.keeper = None if state is None else CheckpointWriter(self, state, every)
        self.restored = None if resume is None else restored_state(resume, self)

    def contract(self, name: str, cwd: str) -> bytes:
        """What a participant has to know before it begins."""
        member = self.members[name]
        member.recorder = Recorder(cwd if self.record else None, member.tag, self.configuration)
        member.task = member.life()
        self._waiting.append((member.task, next(member.task)))
        return member.contract()

    def deliver(self, name: str, kind: int, content: bytes) -> None:
        """A record of a participant has come; let all participants go on that can."""
        self.members[name].inbox.append((kind, content))
        waiting = self._waiting
        k = 0
        while k < len(waiting):
            task, box = waiting[k]
            if box:
                del waiting[k]
                waiting.append((task, next(task)))
                k = 0
            else:
                k += 1
        if not self.answers:
            self._refuse_circle()

    def _refuse_circle(self) -> None:
        """Raise when all participants wait for each other, and none of them computes."""
        if len(self._waiting) < len(self.members):
            return
        if self._inboxes.isdisjoint([id(box) for _, box in self._waiting]):
            raise SetupError(
                f"{self.configuration.file}: all participants ({listed(self.members)}) wait for each other at "
                f"t = {min(member.time for member in self.members.values()):g}, because serial schemes form a circle; "
                "make one of them parallel"
            )

    @property
    def names(self) -> list[str]:
        """Who takes part."""
        return list(self.members)

    @property
    def done(self) -> bool:
        """True when all participants have come to the end."""
        return all(member.ended for member in self.members.values())

    def ended(self, name: str) -> bool:
        """True when a participant has come to the end."""
        return self.members[name].ended

    def close(self) -> None:
        """End all that is open."""
        for member in self.members.values():
            if member.task is not None:
                member.task.close()
            member.recorder.close()


class Side:
    """Where one participant stands in one scheme."""

    def __init__(self, scheme: Scheme, name: str) -> None:
        self.scheme, self.name = scheme, name
        self.window, self.iteration, self.total = 1, 1, 0
        self.t0, self.progress = 0.0, 0.0
        self.leads = scheme.first_chooses and name == scheme.participants[0]
        self.length = scheme.length_at(1, 0.0)
        self.longest = _INFINITE  # of a window that its first participant repeats
        self.ongoing = True
        self.fresh: dict[Key, Samples] = {key: [] for key in scheme.sent_by(name)}
        self.start: dict[Key, Vector] = {}
        self.read: dict[Key, Samples] = {}
        self.incoming: dict[Key, Any] = {}  # what the first of a serial scheme has sent last
        self.verdict: Payload = {}

    @property
    def at_end(self) -> bool:
        """True at the end of the window."""
        return self.progress >= self.length * (1.0 - _NEARLY)

    @property
    def t_end(self) -> float:
        """The end of the window."""
        return self.scheme.end_of(self.window, self.t0, self.length)

    def complete(self) -> None:
        """The window is over; only the last samples stay."""
        self.t0 = self.t_end
        self.window += 1
        self.total += self.iteration
        self.iteration, self.progress = 1, 0.0
        self.ongoing = not self.scheme.over(self.window, self.t0)
        self.length = self.scheme.length_at(self.window, self.t0) if self.ongoing else 0.0
        self.longest = _INFINITE
        for key, samples in self.fresh.items():
            self.start[key] = samples[-1][1]
            samples.clear()
        for key, samples in self.read.items():
            self.read[key] = [(self.t0, samples[-1][1])]

    def repeat(self) -> None:
        """The window begins again."""
        self.iteration += 1
        self.longest = self.length if self.leads else _INFINITE
        self.progress = 0.0
        if self.leads:
            self.length = self.scheme.length_at(self.window, self.t0)
        for samples in self.fresh.values():
            samples.clear()

    def payload(self) -> Payload:
        """What this side sends: the values at the start of the window, and samples after it."""
        start, all_of = self.start, self.scheme.substeps
        data = {key: (start[key], samples[:] if all_of[key] else samples[-1:]) for key, samples in self.fresh.items()}
        return {"data": data, "length": self.length}

    def store(self, data: dict[Key, Any], *, past: bool = False) -> None:
        """Take what was sent to this side; of a window that is over only its end counts."""
        for key in self.read:
            if key in data:
                start, samples = data[key]
                if past:
                    self.read[key] = [(self.t0, samples[-1][1])]
                else:
                    self.read[key] = [(self.t0, start), *samples]


class Scheme:
    """One coupling scheme and what it holds between its participants."""

    def __init__(self, tag: SchemeTag, configuration: Configuration) -> None:
        self.tag, self.participants = tag, tag.participants
        self.implicit, self.serial = tag.implicit, tag.serial
        self.first_chooses = tag.window == 0.0
        self.exchanges = tag.exchanges
        self.decider = tag.participants[-1]
        self.substeps = {(e.mesh, e.data): False for e in tag.exchanges}
        for e in tag.exchanges:
            self.substeps[e.mesh, e.data] |= e.substeps
        self.boxes: dict[tuple[str, str], deque[Payload]] = {
            (a, b): deque() for a in self.participants for b in self.participants if a != b
        }
        keys = list(dict.fromkeys((e.mesh, e.data) for e in tag.exchanges))
        own = set(self.sent_by(self.decider))
        self.accelerated = [key for key in keys if not self.serial or key in own]
        self.measured_only = [key for key in keys if key not in self.accelerated]
        bounds = {key: configuration.data[key[1]].bounds for key in keys}
        self.accelerator = Accelerator(tag.acceleration, self.accelerated, bounds)
        self.measures = Measures(tag.measures)
        self.degree = {key: configuration.data[key[1]].degree for key in keys}
        self.used: dict[Key, Samples] = {}
        self.previous: dict[Key, Vector] = {}
        self.converged = False
        self.columns: int | None = None

    def sent_by(self, name: str) -> list[Key]:
        """The data that a participant sends, each once."""
        return list(dict.fromkeys((e.mesh, e.data) for e in self.exchanges if e.sender == name))

    def received_by(self, name: str) -> list[Key]:
        """The data that a participant receives."""
        return list(dict.fromkeys((e.mesh, e.data) for e in self.exchanges if e.receiver == name))

    def length_at(self, window: int, t0: float) -> float:
        """The length of a window; the last one ends at the end of the time."""
        tag = self.tag
        longest = _INFINITE if tag.max_time is None else tag.max_time - t0
        if self.first_chooses:
            return longest
        return tag.window if longest >= tag.window * (1.0 - _NEARLY) else longest

    def end_of(self, window: int, t0: float, length: float) -> float:
        """The time at which a window ends, without the rounding of a long sum."""
        if self.first_chooses:
            return t0 + length
        return window * self.tag.window if length == self.tag.window else t0 + length

    def over(self, window: int, t0: float) -> bool:
        """True when the window of this number is not computed any more."""
        tag = self.tag
        if tag.max_windows is not None and tag.max_windows >= 0 and window > tag.max_windows:
            return True
        scale = tag.window or t0 / max(window - 1, 1)
        return tag.max_time is not None and t0 >= tag.max_time - _NEARLY * scale

    # -- who decides

    def decide(self, side: Side, gathered: dict[Key, Any]) -> tuple[bool, dict[Key, Any]]:
        """Measure, and accelerate unless the window is complete; what goes out then."""
        pairs, new, waves = {}, {}, {}
        t_end = side.t_end
        for key in self.accelerated:
            samples = gathered[key][1]
            start = gathered[key][0]
            used = self.used.get(key)
            times = [side.t0, *(t for t, _ in used)] if used else [side.t0]
            waves[key] = Waveform(times, [start, *(v for _, v in used)] if used else [start], self.degree[key])
            new[key] = samples
            pairs[key] = (samples[-1][1], waves[key].at(t_end))
        for key in self.measured_only:
            value = gathered[key][1][-1][1]
            old = self.previous.get(key)
            pairs[key] = (value, gathered[key][0] if old is None else old)
            self.previous[key] = value
        if side.iteration == 1:
            self.measures.start_window()
        converged = self.measures.met(pairs) and side.iteration >= self.tag.min_iterations
        last = self.tag.max_iterations is not None and side.iteration >= self.tag.max_iterations
        if last and not converged and self.measures.failed_strict:
            raise SubsystemError(
                f"data '{self.measures.failed_strict[0]}' have not converged in {side.iteration} iterations of the "
                f"window from t = {side.t0:g} on, and their measure is strict; allow more iterations"
            )
        self.converged = converged
        if converged or last:
            self.accelerator.accept(side.t0, waves, new)
            self.columns = self.accelerator.columns
            self.accelerator.start_window()
            self.used, self.previous = {}, {}
            return True, gathered
        starts = {key: waves[key].values[0] for key in self.accelerated}
        found = self.accelerator.next(side.t0, waves, new)
        self.used = found
        out = {key: (starts[key], samples) for key, samples in found.items()}
        return False, {**gathered, **out}


class Member:
    """One participant as the hub follows it."""

    def __init__(self, coupling: Coupling, tag: ParticipantTag) -> None:
        self.coupling, self.tag, self.name = coupling, tag, tag.name
        configuration = coupling.configuration
        self.inbox: deque[tuple[int, bytes]] = deque()
        self.task: Wait | None = None
        self.recorder = Recorder(None, tag, configuration)
        self.sides = [Side(scheme, self.name) for scheme in coupling.schemes if self.name in scheme.participants]
        self.started = self.ended = self.complete = False
        self.repeating = False
        self.time = 0.0
        self.meshes = list(tag.meshes.values())
        dims = configuration.meshes
        self.data: list[tuple[str, str, int, int]] = []  # mesh, data, components, flags, in the order of the contract
        in_time = {
            m.target if m.direction == "write" else m.source for m in tag.mappings if not (m.source and m.target)
        }
        initial = {
            (self.origin(e), e.data) for side in self.sides for e in side.scheme.exchanges
            if e.sender == self.name and e.initial
        }  # fmt: skip
        steep = {m.source for m in tag.mappings if m.kind == "nearest-neighbor-gradient"}
        for other in configuration.participants.values():
            steep |= {m.source for m in other.mappings if m.kind == "nearest-neighbor-gradient"}
        for mesh in tag.meshes:
            for name in dims[mesh][1]:
                pair = (mesh, name)
                flags = c.WRITTEN * (pair in tag.written) | c.READ * (pair in tag.read)
                if flags:
                    if flags & c.WRITTEN:
                        flags |= c.INITIAL * (pair in initial) | c.GRADIENT * (mesh in steep)
                    flags |= c.JUST_IN_TIME * (mesh in in_time)
                    self.data.append((mesh, name, configuration.components(name, mesh), flags))
        self._outgoing: list[tuple[Side, Key, Key, bool, Field | None]] = []  # side, key, written as, substeps, mapping
        self._written = [entry for entry in self.data if entry[3] & c.WRITTEN]
        self._read = [entry for entry in self.data if entry[3] & c.READ]
        self.fields: dict[Key, Field] = {}  # from the mesh where data are written to the one where they are exchanged
        self.reading: dict[Key, tuple[Side, Key, Field | None]] = {}
        self.visible: dict[str, Any] = {}  # numbers of the points of a received mesh that lie in the region
        self.in_time: dict[tuple[str, str], JustInTime] = {}
        self.subsystem_steps, self.computing, self._answered = 0, 0.0, 0.0  # since the last row of a common result

    def origin(self, exchange: Exchange) -> str:
        """The mesh on which this participant writes what it sends."""
        if (exchange.mesh, exchange.data) in self.tag.written:
            return exchange.mesh
        for mapping in self.tag.mappings:
            if (
                mapping.direction == "write"
                and mapping.target == exchange.mesh
                and (mapping.source, exchange.data) in self.tag.written
            ):
                return mapping.source
        raise SetupError(
            f"participant '{self.name}' writes data '{exchange.data}' on no mesh from which '{exchange.mesh}' is mapped"
        )

    def contract(self, degree: int | None = None) -> bytes:
        """What the participant has to know; `degree` of all waveforms instead of those of the data."""
        configuration = self.coupling.configuration
        wants = c.WANTS_SUBSTEPS * any(s for side in self.sides for s in side.scheme.substeps.values())
        packer = Packer().whole(wants, len(self.meshes))
        for mesh in self.meshes:
            flags = c.PROVIDED if mesh.provided else c.RECEIVED
            flags |= c.DIRECT * mesh.direct | c.CELLS * (mesh.provided and needs_cells(configuration, mesh.name))
            own = [entry for entry in self.data if entry[0] == mesh.name]
            packer.text(mesh.name).whole(configuration.meshes[mesh.name][0], flags, len(own))
            for _, name, components, of_data in own:
                packer.text(name).whole(
                    components, of_data, configuration.data[name].degree if degree is None else degree
                )
        return packer.bytes()

    # -- from the first record to the last

    def life(self) -> Wait:
        """Start, advance windows, end."""
        _, content = yield from self._next(c.START)
        yield from self._start(Unpacker(content))
        self._answer(first=True)
        while self.ongoing:
            kind, content = yield from self._next(c.ADVANCE, c.MAP)
            if kind == c.MAP:
                self._map(Unpacker(content))
                continue
            yield from self._advance(Unpacker(content))
            self._answer()
        self.ended = True
        self.recorder.close()
        while True:
            kind, content = yield from self._next(c.MAP)
            self._map(Unpacker(content))

    def _next(self, *kinds: int) -> Wait:
        if not self.inbox:
            yield self.inbox
        kind, content = self.inbox.popleft()
        if kind not in kinds:
            raise SubsystemError(f"participant '{self.name}' has sent a record of kind {kind} that is not due now")
        return kind, content

    @staticmethod
    def _take(box: deque[Payload]) -> Wait:
        if not box:
            yield box
        return box.popleft()

    @property
    def ongoing(self) -> bool:
        """True until all schemes have ended."""
        return any([side.ongoing for side in self.sides])  # noqa: C419 - a list of one or two is faster

    # -- the start

    def begin(self, content: Unpacker) -> tuple[dict[str, Vector], dict[Key, Any]]:
        """Take the meshes of a participant; its regions of received meshes, and what it wrote before the start."""
        coupling, configuration = self.coupling, self.coupling.configuration
        regions: dict[str, Vector] = {}
        for mesh in self.meshes:
            if mesh.provided:
                points = content.array().reshape(-1, configuration.meshes[mesh.name][0])
                cells = {kind: content.numbers().reshape(-1, c.CORNERS[kind]) for kind in c.KINDS}
                coupling.geometries[mesh.name] = geometry(mesh.name, points, cells)
            else:
                regions[mesh.name] = content.array()
        first: dict[Key, Any] = {}
        for mesh_name, name, components, flags in self.data:
            if flags & c.WRITTEN and self.tag.meshes[mesh_name].provided:
                first[mesh_name, name] = self._sample(content, mesh_name, components, flags)
        self.started = True
        return regions, first

    def see(self, regions: dict[str, Vector]) -> None:
        """All meshes are there: what this participant can touch of received ones, and its mappings."""
        for mesh in self.meshes:
            if not mesh.provided:
                whole = self.coupling.geometries[mesh.name]
                self.visible[mesh.name] = self._in_region(whole, regions[mesh.name], mesh.direct)
        self._make_fields()

    def _start(self, content: Unpacker) -> Wait:
        regions, first = self.begin(content)
        members = self.coupling.members
        others = {name for side in self.sides for name in side.scheme.participants}
        others |= {mesh.sender for mesh in self.meshes if not mesh.provided}
        if not all(members[other].started for other in others):
            yield _Condition(lambda: all(members[other].started for other in others))
        self.see(regions)
        self.recorder.begin(self.coupling.geometries)
        yield from self._initial_data(first)

    def _in_region(self, whole: Geometry, region: Vector, direct: bool) -> Any:
        if not direct:
            return np.zeros(0, dtype=np.intp)
        if not len(region):
            return np.arange(len(whole.points))
        inside = np.ones(len(whole.points), dtype=bool)
        for axis in range(whole.points.shape[1]):
            low, high = region[2 * axis : 2 * axis + 2]
            inside &= (whole.points[:, axis] >= low) & (whole.points[:, axis] <= high)
        return np.flatnonzero(inside)

    def _make_fields(self) -> None:
        geometries = self.coupling.geometries
        made: dict[int, Field] = {}

        def field(mapping: MappingTag) -> Field:
            if id(mapping) not in made:
                made[id(mapping)] = mapped_field(
                    mapping, geometries[mapping.source], geometries[mapping.target], self.coupling.configuration.file
                )
            return made[id(mapping)]

        for mapping in self.tag.mappings:
            if not (mapping.source and mapping.target):
                mesh = mapping.target or mapping.source
                points = self.visible[mesh] if mesh in self.visible else np.arange(len(geometries[mesh].points))
                self.in_time[mesh, mapping.direction] = JustInTime(mapping, geometries[mesh].part(points))
        for side in self.sides:
            for exchange in side.scheme.exchanges:
                key = (exchange.mesh, exchange.data)
                if exchange.sender == self.name:
                    origin = self.origin(exchange)
                    if origin != exchange.mesh:
                        self.fields[key] = field(
                            next(
                                m
                                for m in self.tag.mappings
                                if m.direction == "write" and m.source == origin and m.target == exchange.mesh
                            )
                        )
                    entry = (side, key, (origin, exchange.data), side.scheme.substeps[key], self.fields.get(key))
                    if entry not in self._outgoing:  # data may go to several receivers
                        self._outgoing.append(entry)
                else:
                    for mesh, name in self.tag.read:
                        if name != exchange.data or exchange.receiver != self.name:
                            continue
                        if mesh == exchange.mesh:
                            self.reading[mesh, name] = (side, key, None)
                        for mapping in self.tag.mappings:
                            if mapping.direction == "read" and (mapping.source, mapping.target) == (
                                exchange.mesh,
                                mesh,
                            ):
                                self.reading[mesh, name] = (side, key, field(mapping))

    def _initial_data(self, first: dict[Key, Any]) -> Wait:
        configuration = self.coupling.configuration
        zeros = {}
        for side in self.sides:
            for exchange in side.scheme.exchanges:
                key = (exchange.mesh, exchange.data)
                n = len(self.coupling.geometries[exchange.mesh].points)
                zeros[key] = np.zeros(n * configuration.components(exchange.data, exchange.mesh))
        for side in self.sides:
            scheme = side.scheme
            for key in scheme.received_by(self.name):
                side.read[key] = [(0.0, zeros[key])]
            sent = {}
            for exchange in scheme.exchanges:
                key = (exchange.mesh, exchange.data)
                if exchange.sender == self.name:
                    side.start[key] = zeros[key]
                    if exchange.initial:
                        raw = first.get((self.origin(exchange), exchange.data))
                        side.start[key] = zeros[key] if raw is None else self._exchanged(key, raw)
                        sent[key] = (None, [(0.0, side.start[key])])
            self._put(scheme, {"data": sent})
        for side in self.sides:
            for sender in self._senders(side.scheme):
                payload = yield from self._take(side.scheme.boxes[sender, self.name])
                side.store(payload["data"], past=True)
        if self.coupling.restored is not None:
            put_back(self, self.coupling.restored)
        if self.coupling.common is not None:
            self.coupling.common.began(self, first)
        for side in self.sides:
            if side.scheme.serial and self.name == side.scheme.decider and side.ongoing:
                yield from self._receive_window(side)

    def _senders(self, scheme: Scheme) -> list[str]:
        """From whom something comes in this scheme, in a fixed order; in an iterated one all participants report."""
        return [name for name in scheme.participants if name != self.name]

    def _put(self, scheme: Scheme, payload: Payload) -> None:
        for other in scheme.participants:
            if other != self.name:
                scheme.boxes[self.name, other].append(payload)

    # -- a step

    def _sample(self, content: Unpacker, mesh: str, components: int, flags: int) -> Any:
        visible = self.visible.get(mesh)
        points = len(self.coupling.geometries[mesh].points if visible is None else visible)
        values = content.doubles(points * components)
        if not all_finite(values):
            raise NonFiniteError(f"participant '{self.name}' has written a NaN or an infinity on mesh '{mesh}'")
        if visible is not None:  # written directly on a received mesh: what is outside the region counts as zero
            whole = np.zeros((len(self.coupling.geometries[mesh].points), components))
            whole[visible] = values.reshape(-1, components)
            values = whole.ravel()
        if not flags & c.GRADIENT:
            return values, None
        dims = self.coupling.configuration.meshes[mesh][0]
        return values, content.doubles(points * components * dims).reshape(points, dims, components)

    def _exchanged(self, key: Key, raw: Any) -> Vector:
        """What a participant wrote, on the mesh where it is exchanged."""
        values, gradient = raw
        field = self.fields.get(key)
        if field is not None:
            values = field(values, gradient)
        found: Vector = values
        return found

    def sample(self, content: Unpacker) -> tuple[float, dict[Key, Any]]:
        """The next sample of a record: how far into the step, and what was written there."""
        t = content.real()
        return t, {(mesh, name): self._sample(content, mesh, n, flags) for mesh, name, n, flags in self._written}

    def _advance(self, content: Unpacker) -> Wait:
        self.subsystem_steps += 1
        self.computing += perf_counter() - self._answered
        leg = self.time
        last = 0.0
        count = content.whole()
        raw: dict[Key, Any] = {}
        for k in range(count):
            last, raw = self.sample(content)
            raw = self.recorder.acted(raw, reading=False)
            keep = k == count - 1
            for side, key, origin, substeps, field in self._outgoing:
                if side.ongoing and (keep or substeps):
                    values, gradient = raw[origin]
                    side.fresh[key].append((leg + last, values if field is None else field(values, gradient)))
        ended: list[Side] = []
        implicit: Side | None = None
        reached = leg + last
        for side in self.sides:
            if side.ongoing:
                if side.leads:
                    if last > side.longest * (1 + _NEARLY):
                        raise SubsystemError(
                            f"participant '{self.name}' repeats the window from t = {side.t0:g} on with a step of "
                            f"{last:g}, longer than before ({side.longest:g}); only shorter steps are possible there"
                        )
                    side.length = last
                side.progress += last
                if side.at_end:
                    end = side.t_end
                    reached = max(reached, end) if ended else end
                    ended.append(side)
                    if implicit is None and side.scheme.implicit:
                        implicit = side
                    for samples in side.fresh.values():
                        samples[-1] = (end, samples[-1][1])
        self.repeating = False
        self.complete = bool(ended)
        if implicit is not None:
            converged = yield from self._iterate(implicit)
            if not converged:
                self.repeating, self.complete = True, False
                self.recorder.iterated(self)
                self._back(implicit, leg, last)
                if implicit.scheme.serial and self.name == implicit.scheme.decider:
                    yield from self._receive_window(implicit)
                return
        for side in ended:
            if not side.scheme.implicit:
                self._put(side.scheme, side.payload())
        self.time = reached
        if implicit is not None:
            self.recorder.iterations(implicit, implicit.verdict["converged"], implicit.verdict["columns"])
        for side in ended:
            side.complete()
        for side in ended:
            if not side.scheme.implicit:
                yield from self._receive_past(side)
        keeper = self.coupling.keeper
        if keeper is not None:
            keeper.note(self)
        if ended and self.coupling.common is not None:
            self.coupling.common.window(self, raw, ended)
        for side in ended:
            if side.scheme.serial and self.name == side.scheme.decider and side.ongoing:
                yield from self._receive_window(side)
        self.recorder.window(self, ended)
        if implicit is not None:
            self.recorder.iterated(self)

    def _back(self, implicit: Side, leg: float, last: float) -> None:
        """Explicit schemes stand still while the implicit one iterates."""
        implicit.repeat()
        self.time = implicit.t0
        for side in self.sides:
            if side is not implicit and side.ongoing:
                side.progress -= last
                for key, samples in side.fresh.items():
                    side.fresh[key] = [sample for sample in samples if sample[0] <= leg]

    def _receive_past(self, side: Side) -> Wait:
        """The others' data at the end of an explicit window."""
        if side.scheme.serial and self.name == side.scheme.decider:
            return
        for sender in self._senders(side.scheme):
            payload = yield from self._take(side.scheme.boxes[sender, self.name])
            side.store(payload["data"], past=True)

    def _receive_window(self, side: Side) -> Wait:
        """The second of a serial scheme waits for what the first has computed."""
        payload = yield from self._take(side.scheme.boxes[side.scheme.participants[0], self.name])
        if side.scheme.first_chooses:
            side.length = payload["length"]
        side.store(payload["data"])
        side.incoming = payload["data"]

    def _iterate(self, side: Side) -> Wait:
        """One iteration of an implicit scheme has ended here; True when its window is complete."""
        scheme = side.scheme
        if self.name != scheme.decider:
            scheme.boxes[self.name, scheme.decider].append(side.payload())
            verdict = yield from self._take(scheme.boxes[scheme.decider, self.name])
        else:
            gathered: dict[Key, Any] = dict(side.payload()["data"])
            if scheme.serial:
                gathered.update(side.incoming)
            else:
                for sender in self._senders(scheme):
                    payload = yield from self._take(scheme.boxes[sender, self.name])
                    gathered.update(payload["data"])
            complete, data = scheme.decide(side, gathered)
            columns = scheme.columns if complete else None
            verdict = {"data": data, "complete": complete, "converged": scheme.converged, "columns": columns}
            self._put(scheme, verdict)
            if complete and self.coupling.keeper is not None:
                self.coupling.keeper.remember(scheme)
            self.recorder.iteration(side)
        side.verdict = verdict
        if not (scheme.serial and self.name == scheme.decider):
            side.store(verdict["data"])
        return verdict["complete"]

    # -- answers

    def _answer(self, first: bool = False) -> None:
        flags, longest, implicit = 0, _INFINITE, False
        for side in self.sides:
            if side.ongoing:
                flags |= c.ONGOING | c.LEADS * side.leads
                implicit |= side.scheme.implicit
                longest = min(longest, side.length - side.progress)
        if not flags:
            longest = 0.0
        if self.complete and not first:
            flags |= c.COMPLETE
        if self.repeating:
            flags |= c.MUST_RESTORE
        elif implicit and (first or (self.complete and self._whole())):
            flags |= c.MUST_SAVE
        found = {(mesh, name): self.current(mesh, name, components) for mesh, name, components, _ in self._read}
        self.coupling.answers.append((self.name, c.STATE, self.state(flags, self.time, longest, found, first)))
        self._answered = perf_counter()

    def state(self, flags: int, t: float, longest: float, found: dict[Key, Samples], first: bool) -> bytes:
        """The record that tells a participant where it stands and what it can read there."""
        parts = []
        if first:
            head = Packer()
            for mesh in self.meshes:
                if not mesh.provided:
                    head.array(self.coupling.geometries[mesh.name].points[self.visible[mesh.name]])
            parts.append(head.bytes())
        parts.append(_STANDING.pack(flags, t, min(longest, 1.7e308)))
        parts += [self._readable(mesh, components, found[mesh, name]) for mesh, name, components, _ in self._read]
        return b"".join(parts)

    def _whole(self) -> bool:
        """True when the implicit scheme stands at the start of a window."""
        return all(side.progress == 0.0 for side in self.sides if side.scheme.implicit)

    def current(self, mesh: str, name: str, components: int) -> Samples:
        """What a participant can read of some data: samples on its own mesh."""
        found = self.reading.get((mesh, name))
        if found is None:
            if components < 0:
                components = self.coupling.configuration.components(name, mesh)
            samples: Samples = [(self.time, np.zeros(len(self.coupling.geometries[mesh].points) * components))]
        else:
            side, key, field = found
            samples = side.read[key]
            if field is not None:
                samples = [(t, field(v, None)) for t, v in samples]
        return self.recorder.acted_on_reading(self, mesh, name, samples)

    def _readable(self, mesh: str, components: int, samples: Samples) -> bytes:
        if mesh in self.visible:
            rows = self.visible[mesh]
            samples = [(t, v.reshape(-1, components)[rows].ravel()) for t, v in samples]
        if len(samples) == 1:
            t, values = samples[0]
            return _ONE_SAMPLE.pack(1, t) + little_endian(values)
        times = struct.pack(f"<I{len(samples)}d", len(samples), *[t for t, _ in samples])
        return times + b"".join([little_endian(values) for _, values in samples])

    def _map(self, content: Unpacker) -> None:
        self.coupling.answers.append((self.name, c.MAPPED, self.mapped(content)))

    def mapped(self, content: Unpacker) -> bytes:
        """The answer to a mapping on the spot."""
        mesh, name, loads = content.text(), content.text(), content.whole()
        dims = self.coupling.configuration.meshes[mesh][0]
        components = self.coupling.configuration.components(name, mesh)
        points = content.array().reshape(-1, dims)
        values = content.array().reshape(-1, components)
        operator = self.in_time.get((mesh, "write" if loads else "read"))
        if operator is None:
            raise SubsystemError(
                f"participant '{self.name}' has no {'write' if loads else 'read'} mapping on the spot for mesh '{mesh}'"
            )
        found = operator.loads(points, values) if loads else operator.values(points, values)
        return Packer().array(found).bytes()


class _Condition:
    """Something to wait for that is no box."""

    def __init__(self, condition: Any) -> None:
        self.condition = condition

    def __bool__(self) -> bool:
        return bool(self.condition())
