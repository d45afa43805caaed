"""The books of a run: rows for the recorder, totals, and what is watched while it goes on.

All engines hand over their macro steps as chunks, and every chunk is booked in the same way.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.engine.chunk import Chunk, Room
from cosolve.engine.readable.serial import serial_note
from cosolve.errors import SimulationError, StabilityWarning, warn
from cosolve.interface.channels import Selection
from cosolve.result import Memory, Note, Recorder, Row, Stats
from cosolve.result.notes import Level
from cosolve.run.core import Core
from cosolve.run.growth import Growth, GrowthMonitor
from cosolve.run.stillness import Stillness
from cosolve.run.thinning import Thinning


class Judge(Protocol):
    """Sees all macro points of a run, recorded or not, and has something to say at its end."""

    def see(self, t: Vector, y: Matrix) -> None:
        """Times and outputs of the next macro points, the start included."""

    def doubt(self) -> str:
        """Why the result may not be what was asked for; empty where nothing speaks against it."""

    @property
    def memory(self) -> dict[str, Any]:
        """What another judge needs to go on in its place."""


class Foregone:
    """A judge who knows before the run what there is to say."""

    def __init__(self, doubt: str) -> None:
        self._doubt = doubt

    def see(self, t: Vector, y: Matrix) -> None:
        """Nothing of it changes that."""

    def doubt(self) -> str:
        return self._doubt

    @property
    def memory(self) -> dict[str, Any]:
        return {"foregone": self._doubt}


@runtime_checkable
class Onlooker(Protocol):
    """A progress function that also looks into the books while they are kept."""

    def watch(self, books: Books) -> None:
        """The run begins, and these are its books."""

    def __call__(self, fraction: float) -> None:
        """So much of the run is done."""


class Books:
    """What one run writes down, from where `core` stands now; `saved` are the books of the run that it continues."""

    def __init__(
        self,
        core: Core,
        recorder: Recorder,
        selection: Selection,
        every: int,
        stats: Stats,
        judge: Judge | None = None,
        saved: dict[str, Any] | None = None,
    ) -> None:
        self._core, self._recorder, self._selection, self.stats = core, recorder, selection, stats
        self._monitor, self._still = GrowthMonitor(core), Stillness(core)
        self._thinning = Thinning(recorder, every) if every > 1 else None
        self._every, self._residual = every, 0.0
        self.residual = np.nan  #: the largest of the steps that were booked last
        self._judge = judge
        if judge is not None and saved is None:
            judge.see(np.array([core.t]), core.y[np.newaxis])
        if saved is None:
            recorder.append(Row(core.t, selection.y(core.y), selection.z(core.recorded(core.z))))
        else:
            self.memory = saved

    @property
    def memory(self) -> dict[str, Any]:
        """What is carried from chunk to chunk, for a run that is to go on in another process."""
        return {
            "growth": self._monitor.memory,
            "still": self._still.memory,
            "thinning": None if self._thinning is None else self._thinning.memory,
            "residual": self._residual,
            "judge": None if self._judge is None else self._judge.memory,
        }

    @memory.setter
    def memory(self, saved: dict[str, Any]) -> None:
        self._monitor.memory, self._still.memory = saved["growth"], saved["still"]
        if self._thinning is not None:
            self._thinning.memory = saved["thinning"]
        self._residual = saved["residual"]

    @property
    def due(self) -> int:
        """After so many steps of the readable engine somebody wants to look at them."""
        return self._monitor.due

    @property
    def room(self) -> Room | None:
        """Where rows may be written in place, if all of them are wanted as they are."""
        return self._recorder.room if self._every == 1 and self._selection.everything else None

    def reserve(self) -> None:
        """Many rows will come in a short time."""
        if isinstance(self._recorder, Memory):
            self._recorder.reserve(self._core.windows.left / self._every + 2)

    def add(self, chunk: Chunk) -> None:
        """Book some macro steps, and raise what came after them."""
        stats, monitor = self.stats, self._monitor
        stats.steps += len(chunk)
        stats.compiled_steps += len(chunk) if chunk.compiled else 0
        stats.iterations += int(chunk.total("iterations"))
        stats.unconverged += chunk.unconverged
        stats.renewed += chunk.renewed
        stats.over_tolerance += int(np.count_nonzero(chunk.error > 1.0))
        residual = float(np.fmax.reduce(np.atleast_1d(chunk.residual)))
        if residual >= self._residual:  # not for NaN: a method without residuals
            self._residual = stats.max_residual = residual
        self.residual = residual
        self._write(chunk)
        if self._judge is not None:
            self._judge.see(chunk.t, chunk.y)
        if self._still.waiting:
            self._still.look(chunk.y, chunk.z)
        look = monitor.note(chunk.z, chunk.compiled, last=self._core.done or chunk.failure is not None)
        if chunk.failure is not None:
            raise chunk.failure
        if look:
            self._warn_of(monitor.look())

    def _write(self, chunk: Chunk) -> None:
        columns, chosen = chunk.columns(), self._selection
        if not chosen.everything:
            columns |= {"y": chosen.y(chunk.y.T).T, "z": chosen.z(chunk.z.T).T}
        (self._thinning or self._recorder).extend(columns, chunk.counts)

    def end(self) -> None:
        """The run has come to its end."""
        if self._thinning is not None:
            self._thinning.finish()
        self._warn_of(self._monitor.look())
        self._add("frozen-outputs", self._still.sentence(self.stats.steps))
        if self._judge is not None:
            self._add("tolerance", self._judge.doubt(), "warning")

    def explain(self, failure: SimulationError) -> None:
        """Say beside a failure that values grew before it; no warning besides."""
        monitor = self._monitor
        if monitor.found is None:
            monitor.look(failed=True)
        if monitor.found is not None and not self.stats.note("growth"):
            self.stats.add(Note("growth", monitor.found.text, "error"))
            failure.add_note(monitor.found.text)

    def _add(self, kind: str, text: str, level: Level = "info") -> None:
        if text:
            self.stats.add(Note(kind, text, level))

    def _warn_of(self, growth: Growth | None) -> None:
        """Values grow: say so once, and go on; whoever wants to stop there turns the warning into an error."""
        if growth is not None:
            self.stats.add(Note("growth", growth.text, "error"))
            warn(growth.text, StabilityWarning)


def note_totals(stats: Stats, core: Core) -> None:
    """What the subsystems of a run were called for, and what they say of themselves."""
    crew, names = core.crew, core.plan.names
    stats.events = 0 if crew.watch is None else crew.watch.stops
    stats.retried = crew.retried()
    asked = {name: getattr(part, "inner_work", None) for name, part in zip(names, core.plan.subsystems, strict=True)}
    found = [
        Note("residual-left", core.corrections.note, "error"),
        Note("residual-not-small", core.corrections.found, "warning"),
        Note("startup-order", core.opening.note, "info"),
        Note("serial-order", serial_note(core.method, core.plan), "info"),
        Note("inexact-jacobian", core.corrections.remark, "info"),
        *(
            Note("nested", f"'{name}' took {tell()}", "info", None, name)
            for name, tell in asked.items()
            if callable(tell)
        ),
    ]
    for note in found:
        if note.text:
            stats.add(note)
    stats.calls = {n: int(c) for n, c in zip(names, crew.calls, strict=True)}
    stats.jacobians = {n: int(c) for n, c in zip(names, crew.jacobians, strict=True)}
    stats.seconds = {n: float(s) for n, s in zip(names, crew.seconds, strict=True)}
