"""Macro steps by collocation: the macro step of degree 0 on the plan that has every quantity at two points."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cosolve.engine.corrections import Corrections
from cosolve.engine.measure import Measure
from cosolve.engine.readable.crew import Crew
from cosolve.engine.readable.machine import Machine
from cosolve.interface.stages import outputs_at, staged
from cosolve.method.base import Method
from cosolve.method.step import Outcome, Window
from cosolve.signal import History
from cosolve.signal.collocation import StageHistory


class StagedMachine:
    """Crosses macro steps with the coupling equations at an inner point and at the end.

    `crew` is that of the run: its books are kept, and its constants are those of the inputs.
    """

    def __init__(self, method: Method, crew: Crew, watched: bool = False) -> None:
        self.method, self.crew, self.plan = method, crew, crew.plan
        assert method.inner_point is not None
        inner = Crew(staged(crew.plan, method.inner_point))
        inner.share_books(crew)
        plain = method.at_stages()
        script = plain.script
        assert script is not None
        self._machine = Machine(plain, script, inner, watched)
        self._machine.label = method.label
        self._ends = outputs_at(crew.plan)[0]

    def __repr__(self) -> str:
        return f"<the macro step of {self.method.label}>"

    def __call__(self, history: History, window: Window) -> Outcome:
        self._take_constants()
        n_z, found = self.plan.n_z, self._machine(StageHistory(history), window)
        left = None if found.left is None else found.left[:n_z]
        return replace(found, y=found.y[self._ends], z=found.z[:n_z], predicted=found.predicted[:n_z], left=left)

    def _take_constants(self) -> None:
        """Inputs that were changed between two steps hold at both points."""
        inner = self._machine.crew
        for mine, theirs in zip(self.plan.u_slices, inner.plan.u_slices, strict=True):
            part, width = self.plan.u_offset[mine], mine.stop - mine.start
            both = inner.plan.u_offset[theirs]
            if not ((both[:width] == part).all() and (both[width:] == part).all()):
                both[:width] = both[width:] = part
                inner.note_constants()

    @property
    def measure(self) -> Measure:
        """The sizes of the coupling variables."""
        return self._machine.measure

    @property
    def corrections(self) -> Corrections:
        """What single corrections have left."""
        return self._machine.corrections

    def renew(self) -> None:
        """Forget what correctors have learnt."""
        self._machine.renew()

    @property
    def memory(self) -> dict[str, Any]:
        """What is carried from step to step, as copies."""
        return self._machine.memory

    @memory.setter
    def memory(self, saved: dict[str, Any]) -> None:
        self._machine.memory = saved
