"""A program that owns its time loop, as one subsystem among others: it is started with the run and talks by ports.

The program is written with `client.py` (in Python, or in any language by docs/architecture/participants.md):

    p = Participant("tank")                   # finds the hub that started it
    p.put("level", level)                     # the first outputs
    p.start()
    while p.ongoing:
        if p.must_save:
            saved = level
        dt = p.step_limit
        level += dt * (p.get("inflow") - 0.5 * level)
        p.put("level", level)
        p.advance(dt)
        if p.must_restore:
            level = saved
"""

from __future__ import annotations

import struct
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.errors import SetupError, SubsystemError
from cosolve.participants import client as c
from cosolve.participants.client import Packer, Unpacker
from cosolve.participants.hub import Door, Hub
from cosolve.participants.launching import Programs
from cosolve.participants.subsystem import SMOOTH, ParticipantSubsystem
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import PortLike, Ports

_FAREWELL = 10.0  # seconds to end by itself


class OwnLoop(Subsystem):
    """Runs `command` with every start of a run; its process connects as the participant `name`.

    It may take any steps inside a macro step. With `rollback=False` it is never asked to save its state, and explicit
    methods take it. `patience` is how many seconds it may take to connect, `log` a file for what it prints,
    `environment` what it finds in its environment besides. The program comes to its end when this object is closed or
    goes, or when a new run starts.

    >>> import cosolve as cs
    >>> tank = cs.OwnLoop("python3 tank.py", name="tank", inputs=["inflow"], outputs=["level"])
    >>> sorted(cs.capabilities(tank)), tank.running
    (['rollback'], False)
    """

    def __init__(
        self,
        command: str,
        *,
        inputs: Sequence[PortLike],
        outputs: Sequence[PortLike],
        name: str = "participant",
        rollback: bool = True,
        patience: float = 60.0,
        log: str | Path | None = None,
        environment: Mapping[str, str] | None = None,
        tcp: bool = False,
    ) -> None:
        if not isinstance(command, str) or not command.strip():
            raise SetupError(f"OwnLoop: command is a command line such as 'python3 tank.py', not {command!r}")
        self.command, self.name, self.inputs, self.outputs = command, name, inputs, outputs
        self.patience, self.tcp = patience, tcp
        self._log = None if log is None else Path(log)
        self._environment = dict(environment or {})
        self._rollback = rollback
        self._session: _Session | None = None
        if rollback:
            self.save = lambda: self._inner.save()
            self.restore = lambda state: self._inner.restore(state)

    @property
    def running(self) -> bool:
        """True between the start of a run and `close`."""
        return self._session is not None

    @property
    def _inner(self) -> ParticipantSubsystem:
        if self._session is None:
            raise SubsystemError("its program was not started, or has come to its end")
        return self._session.subsystem

    def start(self, t0: float) -> Vector:
        self.close()
        self._session = _Session(self)
        return self._session.subsystem.start(t0)

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        return self._inner.advance(t0, t1, u)

    @property
    def crossings(self) -> int:
        """How often the program has crossed a macro step."""
        return 0 if self._session is None else self._session.subsystem.crossings

    def close(self) -> None:
        """Let the program come to its end."""
        if self._session is not None:
            session, self._session = self._session, None
            session.end()

    def __enter__(self) -> OwnLoop:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Session:
    """One process from its start to its end."""

    def __init__(self, of: OwnLoop) -> None:
        meeting = _Meeting(of.name, Ports(of.inputs), Ports(of.outputs))
        door = Door(of.tcp)
        programs: Programs | None = None
        try:
            logs = None if of._log is None else {of.name: of._log}
            environment = {**of._environment, "COSOLVE_HUB": door.address}
            programs = Programs({of.name: of.command}, environment, files=logs, left=door.left)
            hub = Hub(meeting, door, patience=of.patience, watch=programs.trouble)
            hub.listen(lambda: meeting.done)
        except BaseException:
            door.close()
            if programs is not None:
                programs.end(0.0)
            raise
        self.subsystem = ParticipantSubsystem(
            of.name, hub.lines[of.name], meeting, of.inputs, of.outputs, meeting.first, programs.trouble, of._rollback
        )
        self.end = weakref.finalize(self, _end, self.subsystem, hub, programs)


def _end(subsystem: ParticipantSubsystem, hub: Hub, programs: Programs) -> None:
    subsystem.finish()
    programs.end(_FAREWELL)
    hub.close()


class _Meeting:
    """The coupling of one participant as the hub sees it until it has started, and its records afterwards."""

    def __init__(self, name: str, inputs: Ports, outputs: Ports) -> None:
        self.answers: deque[tuple[str, int, bytes]] = deque()
        self.names, self._inputs, self._outputs = [name], inputs, outputs
        self.first: Vector = np.zeros(0)
        self.done = False

    def contract(self, name: str, cwd: str) -> bytes:
        """One mesh without a place, with all ports as its data."""
        both = [(port, c.READ) for port in self._inputs] + [(port, c.WRITTEN | c.INITIAL) for port in self._outputs]
        packer = Packer().whole(0, 1).text("ports").whole(1, c.PROVIDED | c.PORTS, len(both))
        for port, flags in both:
            packer.text(port.name).whole(port.length, flags, SMOOTH)
        return packer.bytes()

    def deliver(self, name: str, kind: int, content: bytes) -> None:
        """The start: what it has written before."""
        if kind != c.START:
            raise SubsystemError(f"participant '{name}' must start before anything else")
        unpacker = Unpacker(content)
        unpacker.array()
        for _ in c.KINDS:
            unpacker.numbers()
        self.first = unpacker.doubles(self._outputs.length)
        self.done = True

    def ended(self, name: str) -> bool:
        """It has only begun."""
        return False

    def close(self) -> None:
        """Nothing is open."""

    def state(
        self, flags: int, t: float, room: float, times: Sequence[float], rows: Sequence[Vector], first: bool
    ) -> bytes:
        """Where it stands and what it can read."""
        parts = [struct.pack("<Idd", flags, t, room)]
        head = struct.pack(f"<I{len(times)}d", len(times), *times)
        for port in self._inputs:
            part = self._inputs.slice(port.name)
            parts.append(head)
            parts += [np.ascontiguousarray(row[part], dtype="<f8").tobytes() for row in rows]
        return b"".join(parts)

    def outputs(self, content: bytes) -> Vector:
        """What it has written at the end of the window."""
        unpacker = Unpacker(content)
        values: Any = self.first
        for _ in range(unpacker.whole()):
            unpacker.real()
            values = unpacker.doubles(self._outputs.length)
        found: Vector = values
        return found

    def mapped(self, content: bytes) -> bytes:
        """There is no mesh."""
        raise SubsystemError("it asks for a mapping, but its ports have no mesh")
