"""A participant as a subsystem: blocked inside its own `advance` while a coupling method decides what comes next.

What a subsystem is asked and what a participant is told fit together call by call:

    save, advance from a new t0   its call returns: window complete, save your state; it advances over the window
    restore, advance              its call returns: restore your state; it advances over the same window again
    the end of the run            its call returns: window complete, no more windows

A participant can go back to the start of its last window only. That the end of that window is saved and asked for again
(as tests of the rollback do) costs one more subsystem step with the inputs that led there.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import cos, pi
from typing import Any, Protocol

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.errors import SubsystemError
from cosolve.participants import client as c
from cosolve.participants.client import Connection, Packer, ParticipantError, SpinThenBlock
from cosolve.participants.process_group import ProcessGroup, lines_of
from cosolve.signal.polynomial import InputSignal, Polynomial
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import PortLike

_LOOK = 0.2  # seconds between two looks at the processes
_EVEN = 3  # up to this degree samples are evenly spaced; above, the polynomial through them would lose digits
#: Degree of waveforms in contracts: as many samples come as the signal of the step has degrees, and one more.
SMOOTH = 12


@lru_cache(maxsize=64)
def places(degree: int) -> list[float]:
    """Where in a step (0 to 1) a polynomial is sampled so that the one through its samples is the same.

    >>> places(2), [round(s, 3) for s in places(4)]
    ([0.0, 0.5, 1.0], [0.0, 0.146, 0.5, 0.854, 1.0])
    """
    if degree <= _EVEN:
        return [k / degree for k in range(degree + 1)]
    return [0.5 - 0.5 * cos(pi * k / degree) for k in range(degree + 1)]


class RecordCodec(Protocol):
    """How values become records and back, which depends on who describes the meshes and data."""

    def state(
        self, flags: int, t: float, longest: float, times: Sequence[float], rows: Sequence[Vector], first: bool
    ) -> bytes:
        """The record that lets a participant go on; `rows` are all inputs at the `times`."""

    def outputs(self, content: bytes) -> Vector:
        """All outputs at the end of the window."""

    def mapped(self, content: bytes) -> bytes:
        """The answer to a mapping on the spot."""


class ParticipantSubsystem(Subsystem):
    """One connected participant that has sent its start; `first` are its outputs there.

    `failure(name)` gives a sentence when its program has ended badly. With `rollback=False` it is never asked to save
    its state, and only explicit methods take it.
    """

    def __init__(
        self,
        name: str,
        line: Connection | ProcessGroup,
        speech: RecordCodec,
        inputs: Sequence[PortLike],
        outputs: Sequence[PortLike],
        first: Vector,
        failure: Callable[[str | None], str],
        rollback: bool = True,
    ) -> None:
        self.name, self.inputs, self.outputs = name, inputs, outputs
        self._line, self._speech, self._first, self._failure = line, speech, first, failure
        self._spin = SpinThenBlock()
        self._answered = False  # whether the start was answered
        self._ended = False
        self._back = False  # restored to the start of the last window
        self._save = False
        self._t0 = self._t1 = 0.0
        self._used: tuple[float, float, Any] | None = None  # t0, H and coefficients of the last subsystem step
        self._y = first
        #: how often it has advanced over a window
        self.subsystem_steps = 0
        if rollback:
            self.save = self._save_state
            self.restore = self._restore_state

    def start(self, t0: float) -> Vector:
        if self._answered:
            raise SubsystemError(
                "its program stands in the middle of its own loop and cannot begin again; start it anew for a new run"
            )
        self._t0 = self._t1 = t0
        return self._first

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        if self._back:
            flags = c.ONGOING | c.MUST_RESTORE
            if self._t0 != t0:
                raise SubsystemError(f"it can go back to t = {self._t0:.9g} only, not to t = {t0:.9g}")
        else:
            flags = c.ONGOING | c.COMPLETE * self._answered | c.MUST_SAVE * self._save
            if abs(t0 - self._t1) > 1e-9 * max(abs(t1 - t0), abs(t0)):
                raise SubsystemError(f"it stands at t = {self._t1:.9g} and cannot go on from t = {t0:.9g}")
        self._y = self._advance(flags, t0, t1, u)
        self._used = (u.t0, u.H, u.coefficients.copy())
        self._t0, self._t1, self._back, self._save = t0, t1, False, False
        return self._y

    def _advance(self, flags: int, t0: float, t1: float, u: InputSignal) -> Vector:
        degree = min(u.degree, SMOOTH)
        if degree == 0:
            times, rows = [t0], [u.end]
        else:
            times = [t0 + (t1 - t0) * s for s in places(degree)[:-1]] + [t1]
            rows = [u(t) for t in times[:-1]] + [u.end]
        self._send(c.STATE, self._speech.state(flags, t0, t1 - t0, times, rows, not self._answered))
        self._answered = True
        self.subsystem_steps += 1
        return self._speech.outputs(self._window())

    def _window(self) -> bytes:
        """Wait until it has advanced over its window."""
        while True:
            kind, content = self._receive()
            if kind == c.ADVANCE:
                return content
            if kind == c.MAP:
                self._send(c.MAPPED, self._speech.mapped(content))
            elif kind == c.FINISH:
                raise SubsystemError(self._failure(self.name) or "it has finished before the end of the run")
            else:
                raise SubsystemError(f"it has sent a record of kind {kind} that is not due now")

    def _send(self, kind: int, content: bytes) -> None:
        try:
            self._line.send(kind, content)
        except OSError:
            self._name_the_rank()
            raise SubsystemError(self._failure(self.name) or "its program is gone") from None

    def _receive(self) -> tuple[int, bytes]:
        while True:
            try:
                record = self._line.complete()
            except ParticipantError as error:
                raise SubsystemError(str(error)) from None
            if record is not None:
                return record
            ready = self._spin.wait(lambda: self._ready(0.0), lambda: self._ready(_LOOK))
            for line in ready:
                self._read(line)
            if not ready:
                failure = self._failure(None)
                if failure:
                    self._name_the_rank()
                    raise SubsystemError(failure)

    def _name_the_rank(self) -> None:
        """Raise where a rank is gone: its line says which one, while the end of its program may be seen first."""
        if isinstance(self._line, ProcessGroup):
            for line in self._ready(0.0):
                self._read(line)

    def _ready(self, within: float) -> list[Connection]:
        """Lines on which something has arrived, or whose program is gone."""
        lines = lines_of(self._line)
        found = select.select([line.socket for line in lines], [], [], within)[0]
        return [line for line in lines if line.socket in found]

    def _read(self, line: Connection) -> None:
        try:
            alive = line.read()
        except OSError:
            alive = False
        if alive:
            return
        why = self._failure(self.name)
        if isinstance(self._line, ProcessGroup):
            raise SubsystemError(f"{self._line.who(line)} is gone" + (f": {why}" if why else ""))
        raise SubsystemError(why or "its program is gone")

    def _save_state(self) -> Any:
        """Where it stands: at the start of a window not advanced yet, or at the end of one and how it came there."""
        here = self._t0 if self._back else self._t1
        self._save = not self._back
        if self._back or self._used is None:
            return [here]
        t0, H, coefficients = self._used
        return [here, self._t0, t0, H, coefficients.copy()]

    def _restore_state(self, state: Any) -> None:
        here = state[0]
        if not self._back and here == self._t1 and self._same(state):
            return
        if here == self._t0 and (self._answered or self._back):
            self._back = True
            return
        if len(state) > 1 and state[1] == self._t0:  # the end of this window, with other inputs than the last
            self._back = True
            self.advance(self._t0, here, Polynomial(state[2], state[3], state[4]))
            return
        raise SubsystemError(
            f"it can go back to the start of its last window, t = {self._t0:.9g}, but not to t = {here:.9g}; use a "
            "method that repeats one macro step at a time"
        )

    def _same(self, state: Any) -> bool:
        """Whether the last subsystem step had the inputs of this state."""
        if len(state) == 1 or self._used is None:
            return len(state) == 1
        same = state[1] == self._t0 and state[2:4] == list(self._used[:2])
        return bool(same and np.array_equal(state[4], self._used[2]))

    def finish(self, why: str = "") -> None:
        """Let it come to its end; with a reason it learns that something went wrong."""
        if self._ended:
            return
        self._ended = True
        try:
            if why:
                self._line.send(c.FAILED, Packer().text(why).bytes())
            else:
                size = sum(port[1] if isinstance(port, tuple) else 1 for port in self.inputs)
                last = np.zeros(size) if self._used is None else self._used[2].sum(axis=0)
                state = self._speech.state(c.COMPLETE, self._t1, 0.0, [self._t1], [last], not self._answered)
                self._line.send(c.STATE, state)
        except OSError:
            pass
