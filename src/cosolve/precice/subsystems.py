"""The participants of a configuration file as subsystems, for any coupling method; their mappings become laws.

The file says who takes part, which meshes and data there are and how they are mapped. Its coupling schemes say who
sends what to whom; how often and how accurately that happens is the method's business.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import AccuracyWarning, SetupError, warn
from cosolve.interface.system import System
from cosolve.participants import client as c
from cosolve.participants.client import Unpacker
from cosolve.participants.gateway import Gateway, gateway
from cosolve.participants.hub import Door, Hub
from cosolve.participants.launching import Programs
from cosolve.participants.one_log import OneLog
from cosolve.participants.subsystem import SMOOTH, ParticipantSubsystem
from cosolve.precice.common_result import port_name
from cosolve.precice.config import Configuration, read_configuration
from cosolve.precice.convergence import Key
from cosolve.precice.coupling import Coupling, Member
from cosolve.precice.fields import Field
from cosolve.precice.running import environment, refuse_strangers, watching


class Participants:
    """Programs adapted to preCICE 3 as the subsystems of `system`.

        with cs.Participants("config.xml", {"Fluid": "python3 fluid.py", "Solid": "./solid"}) as participants:
            result = cs.simulate(participants.system, t_end=1.0, method=cs.Implicit(degree=1), step=0.01)

    Ports are named after the data. `rollback=False` is for programs that cannot save their state: they are never asked
    to, and explicit methods take them. Give `simulate` as many `workers` as there are programs to let them run at once.
    A program runs once, so that one `Participants` is good for one run. It can go back to the start of one macro step,
    not further. `listen` ("host:port") is where those on other machines come in, if they have the `key`.
    `logs` is a folder for what the programs print, one file each, `log` one file for all.
    """

    def __init__(
        self,
        file: str | Path,
        commands: Mapping[str, str],
        *,
        rollback: bool = True,
        patience: float = 60.0,
        logs: str | Path | None = None,
        log: str | Path | None = None,
        tcp: bool = False,
        listen: str | None = None,
        key: str | None = None,
    ) -> None:
        self.configuration = read_configuration(file)
        refuse_strangers(commands, self.configuration)
        self._door = Door(tcp)
        self._gate: Gateway | None = None
        self._programs: Programs | None = None
        self._closed = False
        self.subsystems: dict[str, ParticipantSubsystem] = {}
        try:
            absent = [name for name in self.configuration.participants if name not in commands]
            self._gate = gateway(self._door, listen, key, os.getcwd(), absent)
            if set(commands) < set(self.configuration.participants):
                self._door.leave_note(Path(f"{os.path.abspath(file)}.hub"))
            one = None if log is None else OneLog(Path(log))
            folder = None if logs is None else Path(logs)
            self._programs = Programs(commands, environment(self._door), folder, log=one, left=self._door.left)
            self._gather(rollback, patience)
        except BaseException as error:
            self.close(str(error) or type(error).__name__)
            raise

    def _gather(self, rollback: bool, patience: float) -> None:
        """Wait until all have connected and told their meshes; then join them."""
        assert self._programs is not None
        gathering = Gathering(self.configuration)
        watch = watching(self._programs, self._gate)
        self._hub = Hub(gathering, self._door, patience=patience, watch=watch)
        self._hub.listen(lambda: gathering.done)
        self.subsystems = subsystems_of(gathering, self._hub, watch, rollback)
        self.system = joined(gathering.coupling, self.subsystems)

    @property
    def window(self) -> float:
        """The window of the file's first scheme, a natural macro step."""
        return self.configuration.schemes[0].window

    @property
    def end(self) -> float:
        """The end of the run as the file's first scheme has it."""
        scheme = self.configuration.schemes[0]
        by_windows = np.inf if scheme.max_windows is None else scheme.max_windows * scheme.window
        return float(min(by_windows, np.inf if scheme.max_time is None else scheme.max_time))

    def __enter__(self) -> Participants:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close("" if error is None else str(error) or type(error).__name__)

    def close(self, why: str = "") -> None:
        """Let all programs come to their end, or tell them why it has come."""
        if self._closed:
            return
        self._closed = True
        for subsystem in self.subsystems.values():
            subsystem.finish(why)
        hub = getattr(self, "_hub", None)
        try:
            if self._programs is not None:
                if not why:
                    self._programs.wait(60.0)
                self._programs.end()
        finally:
            if hub is not None:
                hub.close()
            self._door.close()
            if self._gate is not None:
                self._gate.close(why)


class Gathering:
    """Takes the first records of all participants and answers none of them."""

    def __init__(self, configuration: Configuration) -> None:
        self.coupling = Coupling(configuration, record=False)
        self.answers: deque[tuple[str, int, bytes]] = deque()
        self.regions: dict[str, Any] = {}
        self.first: dict[str, dict[Key, Any]] = {}

    @property
    def names(self) -> list[str]:
        """Who takes part."""
        return self.coupling.names

    @property
    def done(self) -> bool:
        """True when all have told their meshes."""
        return len(self.first) == len(self.names)

    def contract(self, name: str, cwd: str) -> bytes:
        """As the file says, with waveforms that follow the signals of a method."""
        return self.coupling.members[name].contract(degree=SMOOTH)

    def deliver(self, name: str, kind: int, content: bytes) -> None:
        """The start of a participant."""
        if kind == c.START and name not in self.first:
            self.regions[name], self.first[name] = self.coupling.members[name].begin(Unpacker(content))

    def ended(self, name: str) -> bool:
        """None has ended before it began."""
        return False

    def close(self) -> None:
        """Nothing is open."""


def subsystems_of(
    gathering: Gathering, hub: Hub, trouble: Callable[[str | None], str], rollback: bool = True
) -> dict[str, ParticipantSubsystem]:
    """The participants that have gathered at a hub, each as a subsystem."""
    members = gathering.coupling.members
    for name, member in members.items():
        member.see(gathering.regions[name])
    found = {}
    for name, member in members.items():
        speech = MemberSpeech(member, gathering.first[name])
        ports = (speech.inputs, speech.outputs_)
        found[name] = ParticipantSubsystem(name, hub.lines[name], speech, *ports, speech.start, trouble, rollback)
    return found


class MemberSpeech:
    """Records of one participant from and to flat vectors of all its inputs and outputs."""

    def __init__(self, member: Member, first: dict[Key, Any]) -> None:
        self.member, self._told = member, False
        geometries = member.coupling.geometries
        self._read = [(mesh, name, n) for mesh, name, n, flags in member.data if flags & c.READ]
        self._written = [(mesh, name, n) for mesh, name, n, flags in member.data if flags & c.WRITTEN]
        if any(flags & c.GRADIENT for *_, flags in member.data):
            raise SetupError(
                f"participant '{member.name}' writes gradients for a mapping, which no coupling method carries; use "
                "another mapping in the file"
            )
        size = {(mesh, name): len(geometries[mesh].points) * n for mesh, name, n, _ in member.data}
        self.inputs = [(port_name(self._read, mesh, name), size[mesh, name]) for mesh, name, _ in self._read]
        self.outputs_ = [(port_name(self._written, mesh, name), size[mesh, name]) for mesh, name, _ in self._written]
        self._ends = np.cumsum([0, *(size[mesh, name] for mesh, name, _ in self._read)])
        initial = {
            (member.origin(e), e.data) for side in member.sides for e in side.scheme.exchanges
            if e.sender == member.name and e.initial
        }  # fmt: skip
        parts = [
            first[mesh, name][0] if (mesh, name) in initial and (mesh, name) in first else np.zeros(size[mesh, name])
            for mesh, name, _ in self._written
        ]
        self.start: Vector = np.concatenate(parts) if parts else np.zeros(0)

    def state(
        self, flags: int, t: float, room: float, times: Sequence[float], rows: Sequence[Vector], first: bool
    ) -> bytes:
        """Where it stands and what it can read."""
        found = {}
        for k, (mesh, name, _) in enumerate(self._read):
            part = slice(self._ends[k], self._ends[k + 1])
            found[mesh, name] = [(time, row[part]) for time, row in zip(times, rows, strict=True)]
        return self.member.state(flags, t, room, found, first)

    def outputs(self, content: bytes) -> Vector:
        """What was written at the end of the window."""
        unpacker = Unpacker(content)
        raw: dict[Key, Any] = {}
        count = unpacker.whole()
        if count > 1 and not self._told:
            self._told = True
            warn(
                f"participant '{self.member.name}' writes {count} samples in a macro step; a coupling method takes the "
                "last one only, while the schemes of the file carry all of them: take a smaller step, or no method "
                "(what it reads inside the step is the method's polynomial itself)",
                AccuracyWarning,
            )
        if count:
            unpacker.at += (count - 1) * ((len(content) - unpacker.at) // count)  # all are of one length
            _, raw = self.member.sample(unpacker)
        return np.concatenate([raw[mesh, name][0] for mesh, name, _ in self._written]) if raw else np.zeros(0)

    def mapped(self, content: bytes) -> bytes:
        """A mapping on the spot."""
        return self.member.mapped(Unpacker(content))


def joined(coupling: Coupling, subsystems: Mapping[str, ParticipantSubsystem]) -> System:
    """The system: every exchange with its mappings is one law."""
    system = System(subsystems)
    for name, member in coupling.members.items():
        reads = [(mesh, data, n) for mesh, data, n, flags in member.data if flags & c.READ]
        for mesh, data, n in reads:
            target = f"{name}.{port_name(reads, mesh, data)}"
            found = member.reading.get((mesh, data))
            if found is None:
                system.set(target, np.zeros(len(coupling.geometries[mesh].points) * n))
                continue
            side, key, last = found
            exchange = next(e for e in side.scheme.exchanges if (e.mesh, e.data) == key and e.receiver == name)
            sender = coupling.members[exchange.sender]
            origin = sender.origin(exchange)
            writes = [(m, d, k) for m, d, k, flags in sender.data if flags & c.WRITTEN]
            source = f"{exchange.sender}.{port_name(writes, origin, data)}"
            chain = [field for field in (sender.fields.get(key), last) if field is not None]
            system.law(target, of=source, **_law(chain, len(coupling.geometries[origin].points) * n))
    return system


def _law(chain: Sequence[Field], size: int) -> dict[str, Any]:
    """Mappings one after the other as a law; they are linear, so that its Jacobian is found once by unit vectors."""

    def function(values: Any) -> Vector:
        flat = np.atleast_1d(np.asarray(values, dtype=np.float64))
        for field in chain:
            flat = field(flat, None)
        return flat

    made: list[Matrix] = []

    def jacobian(values: Any) -> Matrix:
        if not made:
            made.append(np.column_stack([function(unit) for unit in np.eye(size)]))
        return made[0]

    return {"function": function, "jacobian": jacobian}
