"""Macro steps by collocation: the macro step of degree 0 on the plan that has every quantity at two points."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cosolve.engine.corrections import Corrections
from cosolve.engine.measure import Measure
from cosolve.engine.python.executor import StepExecutor
from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.interface.stages import outputs_at, staged
from cosolve.method.base import Method
from cosolve.method.step import Outcome, Window
from cosolve.signal import History
from cosolve.signal.history import StageHistory


class StagedExecutor:
    """Advances over macro steps with the coupling equations at an inner point and at the end.

    `caller` is that of the run: its counters go on, and its constants are those of the inputs.
    """

    def __init__(self, method: Method, caller: SubsystemCaller, watched: bool = False) -> None:
        self.method, self.caller, self.plan = method, caller, caller.plan
        assert method.inner_point is not None
        inner = SubsystemCaller(staged(caller.plan, method.inner_point))
        inner.share_counters(caller)
        plain = method.at_stages()
        declaration = plain.declaration
        assert declaration is not None
        self._executor = StepExecutor(plain, declaration, inner, watched)
        self._executor.label = method.label
        self._ends = outputs_at(caller.plan)[0]

    def __repr__(self) -> str:
        return f"<the macro step of {self.method.label}>"

    def __call__(self, history: History, window: Window) -> Outcome:
        self._take_constants()
        n_z, found = self.plan.n_z, self._executor(StageHistory(history), window)
        left = None if found.left is None else found.left[:n_z]
        return replace(found, y=found.y[self._ends], z=found.z[:n_z], predicted=found.predicted[:n_z], left=left)

    def _take_constants(self) -> None:
        """Inputs that were changed between two steps hold at both points."""
        inner = self._executor.caller
        for mine, theirs in zip(self.plan.u_slices, inner.plan.u_slices, strict=True):
            part, width = self.plan.u_offset[mine], mine.stop - mine.start
            both = inner.plan.u_offset[theirs]
            if not ((both[:width] == part).all() and (both[width:] == part).all()):
                both[:width] = both[width:] = part
                inner.note_constants()

    @property
    def measure(self) -> Measure:
        """The sizes of the coupling variables."""
        return self._executor.measure

    @property
    def corrections(self) -> Corrections:
        """What single corrections have left."""
        return self._executor.corrections

    def renew(self) -> None:
        """Forget what correctors have learnt."""
        self._executor.renew()

    @property
    def memory(self) -> dict[str, Any]:
        """What is carried from step to step, as copies."""
        return self._executor.memory

    @memory.setter
    def memory(self, saved: dict[str, Any]) -> None:
        self._executor.memory = saved
