"""What a run finds out about itself while it goes on: growth, ringing, frozen outputs, a missed tolerance."""

from __future__ import annotations

from math import inf
from typing import Any, Protocol

import numpy as np

from cosolve.accuracy.frozen_outputs import FrozenOutputs
from cosolve.accuracy.growth import Growth, GrowthMonitor
from cosolve.accuracy.ringing import Ringing
from cosolve.basics.arrays import Matrix, Vector
from cosolve.engine.chunk import Chunk
from cosolve.engine.observer import Observer
from cosolve.errors import SimulationError, StabilityWarning, warn
from cosolve.result import Note
from cosolve.run.view import RunView


class GrowthDiagnosis(Observer):
    """Warns once of values that grow without bound."""

    def start(self, run: RunView) -> None:
        self._monitor = GrowthMonitor(run.core)

    def resume(self, run: RunView, memory: Any) -> None:
        self.start(run)
        self._monitor.memory = memory

    def memory(self, run: RunView) -> Any:
        return self._monitor.memory

    def limit(self, run: RunView) -> float:
        return inf if run.compiled else self._monitor.due

    def accepted(self, run: RunView, steps: Chunk) -> None:
        monitor = self._monitor
        look = monitor.note(steps.z, steps.compiled, last=run.done or steps.failure is not None)
        if look and steps.failure is None:
            self._warn_of(run, monitor.look())

    def finished(self, run: RunView, failure: BaseException | None) -> None:
        """Beside a failure say that values grew before it; no warning besides."""
        monitor = self._monitor
        if failure is None:
            self._warn_of(run, monitor.look() or monitor.look_at_short())
        elif isinstance(failure, SimulationError):
            if monitor.found is None:
                monitor.look(failed=True)
            if monitor.found is not None and not run.stats.note("growth"):
                run.note(Note("growth", monitor.found.text, "error"))
                failure.add_note(monitor.found.text)

    def _warn_of(self, run: RunView, growth: Growth | None) -> None:
        if growth is not None:
            run.note(Note("growth", growth.text, "error"))
            warn(growth.text, StabilityWarning)


class RingingDiagnosis(Observer):
    """Notes coupling variables that alternate from step to step at the end."""

    def start(self, run: RunView) -> None:
        self._ringing = Ringing(run.core.plan)

    def resume(self, run: RunView, memory: Any) -> None:
        self.start(run)
        self._ringing.memory = memory

    def memory(self, run: RunView) -> Any:
        return self._ringing.memory

    def accepted(self, run: RunView, steps: Chunk) -> None:
        self._ringing.note(steps.z)

    def finished(self, run: RunView, failure: BaseException | None) -> None:
        text = "" if failure is not None else self._ringing.sentence()
        if text:
            instead = "take SemiImplicit(signal='bdf'), degree 0 or a shorter step; cs.check names what rings"
            run.note(Note("ringing", text, "warning", run.t, remedy=instead))


class FrozenDiagnosis(Observer):
    """Notes outputs that never changed although inputs did."""

    def start(self, run: RunView) -> None:
        self._still = FrozenOutputs(run.core)

    def resume(self, run: RunView, memory: Any) -> None:
        self.start(run)
        self._still.memory = memory

    def memory(self, run: RunView) -> Any:
        return self._still.memory

    def accepted(self, run: RunView, steps: Chunk) -> None:
        if self._still.waiting:
            self._still.look(steps.y, steps.z)

    def finished(self, run: RunView, failure: BaseException | None) -> None:
        text = "" if failure is not None else self._still.sentence(run.steps)
        if text:
            run.note(Note("frozen-outputs", text, "info"))


#: The diagnoses of every run.
DIAGNOSES: tuple[type[Observer], ...] = (GrowthDiagnosis, RingingDiagnosis, FrozenDiagnosis)


class ToleranceCheck(Protocol):
    """Sees all macro points of a run, recorded or not, and has something to say at its end."""

    def see(self, t: Vector, y: Matrix) -> None:
        """Times and outputs of the next macro points, the start included."""

    def doubt(self) -> str:
        """Why the result may not be what was asked for; empty where nothing speaks against it."""

    @property
    def memory(self) -> dict[str, Any]:
        """What another tolerance check needs to go on in its place."""


class FixedWarning:
    """A tolerance check whose result is known before the run."""

    def __init__(self, doubt: str) -> None:
        self._doubt = doubt

    def see(self, t: Vector, y: Matrix) -> None:
        """Values do not change the warning."""

    def doubt(self) -> str:
        return self._doubt

    @property
    def memory(self) -> dict[str, Any]:
        return {"fixed_warning": self._doubt}


class ToleranceDiagnosis(Observer):
    """Notes why a run with an automatic choice may miss its tolerance."""

    def __init__(self, tolerance_check: ToleranceCheck) -> None:
        self._tolerance_check = tolerance_check

    def start(self, run: RunView) -> None:
        self._tolerance_check.see(np.array([run.t]), run.core.y[np.newaxis])

    def resume(self, run: RunView, memory: Any) -> None:
        """The tolerance check was made from the memory."""

    def memory(self, run: RunView) -> Any:
        return self._tolerance_check.memory

    def accepted(self, run: RunView, steps: Chunk) -> None:
        self._tolerance_check.see(steps.t, steps.y)

    def finished(self, run: RunView, failure: BaseException | None) -> None:
        text = "" if failure is not None else self._tolerance_check.doubt()
        if text:
            run.note(Note("tolerance", text, "warning"))
