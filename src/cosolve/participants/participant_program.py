"""A program that owns its time loop as one subsystem among others, started with the run, with ports for its values.

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
from cosolve.participants.hub import Hub, ListeningSocket
from cosolve.participants.programs import Programs
from cosolve.participants.subsystem import SMOOTH, ParticipantSubsystem
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import PortLike, Ports

_SHUTDOWN_TIMEOUT = 10.0  # seconds to end by itself


class ParticipantProgram(Subsystem):
    """A program that owns its time loop, started with the run as a subsystem.

    The program connects as a participant (`cosolve.participants.client`, or the C, C++ or Fortran library). It may take
    any steps inside a macro step. It is ended when this object is closed or a new run starts.

    Parameters
    ----------
    command : str
        Command line.
    inputs : sequence of str, (str, int) or Port
        Input ports.
    outputs : sequence of str, (str, int) or Port
        Output ports.
    name : str, default "participant"
        Name under which the program connects.
    rollback : bool, default True
        The program can save and restore its state. False: it is never asked to, and only explicit methods can be used.
    patience : float, default 60.0
        Longest time in seconds that the program may take to connect.
    log : str, Path or None, default None
        File for what it prints.
    environment : mapping of str to str or None, default None
        Additional environment variables.
    tcp : bool, default False
        Connect by TCP instead of a local socket.

    Examples
    --------
    >>> import cosolve as cs
    >>> tank = cs.remote.ParticipantProgram("python3 tank.py", name="tank", inputs=["inflow"], outputs=["level"])
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
            raise SetupError(
                f"ParticipantProgram: command is a command line such as 'python3 tank.py', not {command!r}"
            )
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
    def subsystem_steps(self) -> int:
        """Number of macro steps that the program has taken in this run, repeated ones included."""
        return 0 if self._session is None else self._session.subsystem.subsystem_steps

    def close(self) -> None:
        """Let the program come to its end."""
        if self._session is not None:
            session, self._session = self._session, None
            session.end()

    def __enter__(self) -> ParticipantProgram:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Session:
    """One process from its start to its end."""

    def __init__(self, of: ParticipantProgram) -> None:
        coupling = _ParticipantCoupling(of.name, Ports(of.inputs), Ports(of.outputs))
        listener = ListeningSocket(of.tcp)
        programs: Programs | None = None
        try:
            logs = None if of._log is None else {of.name: of._log}
            environment = {**of._environment, "COSOLVE_HUB": listener.address}
            programs = Programs({of.name: of.command}, environment, files=logs, left=listener.left)
            hub = Hub(coupling, listener, patience=of.patience, watch=programs.failure)
            hub.listen(lambda: coupling.done)
        except BaseException:
            listener.close()
            if programs is not None:
                programs.end(0.0)
            raise
        self.subsystem = ParticipantSubsystem(
            of.name, hub.lines[of.name], coupling, of.inputs, of.outputs, coupling.first, programs.failure, of._rollback
        )
        self.end = weakref.finalize(self, _end, self.subsystem, hub, programs)


def _end(subsystem: ParticipantSubsystem, hub: Hub, programs: Programs) -> None:
    subsystem.finish()
    programs.end(_SHUTDOWN_TIMEOUT)
    hub.close()


class _ParticipantCoupling:
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
        self, flags: int, t: float, longest: float, times: Sequence[float], rows: Sequence[Vector], first: bool
    ) -> bytes:
        """Where it stands and what it can read."""
        parts = [struct.pack("<Idd", flags, t, longest)]
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
