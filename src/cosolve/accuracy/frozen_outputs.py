"""Subsystems that stand still: outputs that never change although the inputs do.

That may be right (a controller in saturation), and it is what a solver does that hangs at its start, an FMU after a
reset that it did not survive, say. So it is said at the end of a run, and no more. A subsystem is looked at only until
its outputs have moved for the first time, so that a healthy run pays nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cosolve.basics.arrays import Matrix

if TYPE_CHECKING:
    from cosolve.run.core import Core

_LEAST = 20  # macro steps after which standing still is worth a word


class FrozenOutputs:
    """Who has not moved since the start."""

    def __init__(self, core: Core) -> None:
        self.plan, self._y, self._z = core.plan, core.y.copy(), core.z.copy()
        self.waiting = [
            i for i in range(self.plan.n_subsystems) if self.plan.output_ports[i].length and len(self.plan.reads(i))
        ]
        self._pushed: set[int] = set()  # those whose inputs have moved

    @property
    def memory(self) -> dict[str, Any]:
        """Values at the start, and which subsystems have changed since."""
        return {"y": self._y, "z": self._z, "waiting": list(self.waiting), "pushed": sorted(self._pushed)}

    @memory.setter
    def memory(self, saved: dict[str, Any]) -> None:
        self._y, self._z = saved["y"], saved["z"]
        self.waiting, self._pushed = saved["waiting"], set(saved["pushed"])

    def look(self, y: Matrix, z: Matrix) -> None:
        """Outputs and coupling variables at the next macro points, row by row."""
        plan = self.plan
        self.waiting = [i for i in self.waiting if (y[:, plan.y_slices[i]] == self._y[plan.y_slices[i]]).all()]
        for i in self.waiting:
            reads = plan.reads(i)
            if i not in self._pushed and (z[:, reads] != self._z[reads]).any():
                self._pushed.add(i)

    def sentence(self, steps: int) -> str:
        """What to say of a run of so many steps; empty if all have changed or none had changing inputs."""
        names = [f"'{self.plan.names[i]}'" for i in self.waiting if i in self._pushed]
        if not names or steps < _LEAST:
            return ""
        many = len(names) > 1
        return (
            f"the outputs of {', '.join(names)} did not change in {steps} macro steps, although "
            f"{'their' if many else 'its'} inputs did: saturated, or stuck? 'cosolve inspect --try' tries an FMU"
        )
