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
from cosolve.participants.hub import Hub
from cosolve.participants.subsystem import SMOOTH, ParticipantSubsystem
from cosolve.precice.common_result import end_of_scheme, port_name
from cosolve.precice.config import Configuration, read_configuration
from cosolve.precice.convergence import Key
from cosolve.precice.coupling import Coupling, Member
from cosolve.precice.fields import Field
from cosolve.precice.running import Session, refuse_unknown_programs


class Participants:
    """Programs adapted to preCICE 3 as the subsystems of a system.

    Use it in a `with` block. Each program runs once, so an object is good for one run. It can go back to the start of
    the present macro step, not further.

    Parameters
    ----------
    file : str or Path
        preCICE configuration file.
    commands : mapping of str to str
        Command line of each participant. Participants without one are started by the user.
    rollback : bool, default True
        The programs can save and restore their state. False: they are never asked to, and only explicit methods can be
        used.
    patience : float, default 60.0
        Longest time in seconds that the programs may take to connect.
    logs : str, Path or None, default None
        Folder for what the programs print, one file each.
    log : str, Path or None, default None
        One file for what all programs print.
    tcp : bool, default False
        Connect by TCP instead of local sockets.
    listen : str or None, default None
        "host:port" for programs on other machines.
    key : str or None, default None
        Key that those programs must have.

    Attributes
    ----------
    system : System
        The coupled system; ports have the names of the data.
    subsystems : dict of str to Subsystem
        The programs by name.
    configuration : Configuration
        What the file says.

    Notes
    -----
    Give `simulate` as many `workers` as there are programs to let them run at the same time.

    References
    ----------
    .. [1] G. Chourdakis et al., preCICE v2: A sustainable and user-friendly coupling library, Open Research Europe
       2:51, 2022.

    Examples
    --------
    >>> import cosolve as cs
    >>> def coupled():
    ...     commands = {"Fluid": "python3 fluid.py", "Solid": "./solid"}
    ...     with cs.remote.Participants("precice-config.xml", commands) as participants:
    ...         system, method = participants.system, cs.Implicit(degree=1)
    ...         return cs.simulate(system, t_end=1.0, method=method, step=participants.window)
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
        refuse_unknown_programs(commands, self.configuration)
        self._session, self._closed = Session(tcp), False
        self._hub: Hub | None = None
        self.subsystems: dict[str, ParticipantSubsystem] = {}
        try:
            names, note = self.configuration.participants, Path(f"{os.path.abspath(file)}.hub")
            self._session.start(names, commands, note, logs=logs, log=log, listen=listen, key=key)
            self._gather(rollback, patience)
        except BaseException as error:
            self.close(str(error) or type(error).__name__)
            raise

    def _gather(self, rollback: bool, patience: float) -> None:
        """Wait until all have connected and told their meshes; then join them."""
        first_records, watch = FirstRecords(self.configuration), self._session.failure
        self._hub = Hub(first_records, self._session.listener, patience=patience, watch=watch)
        self._hub.listen(lambda: first_records.done)
        self.subsystems = subsystems_of(first_records, self._hub, watch, rollback)
        self.system = joined(first_records.coupling, self.subsystems)

    @property
    def window(self) -> float:
        """Time window of the first coupling scheme in seconds, a natural macro step."""
        return self.configuration.schemes[0].window

    @property
    def end(self) -> float:
        """End of the run in seconds according to the first coupling scheme; infinite if it has none."""
        return end_of_scheme(self.configuration.schemes[0])

    def __enter__(self) -> Participants:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close("" if error is None else str(error) or type(error).__name__)

    def close(self, why: str = "") -> None:
        """End all programs.

        Parameters
        ----------
        why : str, default ""
            Why the run ends early, for the programs. Empty lets them finish by themselves, for up to a minute.
        """
        if self._closed:
            return
        self._closed = True
        for subsystem in self.subsystems.values():
            subsystem.finish(why)
        try:
            self._session.end_programs(0.0 if why else 60.0)
        finally:
            if self._hub is not None:
                self._hub.close()
            self._session.close(why)


class FirstRecords:
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
    first_records: FirstRecords, hub: Hub, failure: Callable[[str | None], str], rollback: bool = True
) -> dict[str, ParticipantSubsystem]:
    """The participants that have gathered at a hub, each as a subsystem."""
    members = first_records.coupling.members
    for name, member in members.items():
        member.see(first_records.regions[name])
    found = {}
    for name, member in members.items():
        speech = MemberRecordCodec(member, first_records.first[name])
        ports = (speech.inputs, speech.outputs_)
        found[name] = ParticipantSubsystem(name, hub.lines[name], speech, *ports, speech.start, failure, rollback)
    return found


class MemberRecordCodec:
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
        self, flags: int, t: float, longest: float, times: Sequence[float], rows: Sequence[Vector], first: bool
    ) -> bytes:
        """Where it stands and what it can read."""
        found = {}
        for k, (mesh, name, _) in enumerate(self._read):
            part = slice(self._ends[k], self._ends[k + 1])
            found[mesh, name] = [(time, row[part]) for time, row in zip(times, rows, strict=True)]
        return self.member.state(flags, t, longest, found, first)

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
