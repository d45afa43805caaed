"""The first macro steps of a run, advanced in pieces where that keeps the order of the method (`stepsize/graded.py`).

All that a piece leaves behind is in the coupling history, so that a run can be saved at any macro point, and a history
that begins anew after an event begins like that of a run.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, pairwise
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.errors import SimulationError
from cosolve.interface import Plan
from cosolve.method.step import Outcome, Window
from cosolve.stepsize.graded import Grading, own_order
from cosolve.stepsize.sequence import Piece, Uniform
from cosolve.subsystem.base import has_capability

if TYPE_CHECKING:
    from cosolve.run.core import Core

#: A variable that changed by more than this (relative) in a macro step has moved.
_MOVED = 1e-6


class StartupSteps:
    """How a run takes macro steps with little or no past; `note` says where that costs order, and why."""

    def __init__(self, core: Core) -> None:
        self._core, self.note = core, ""
        self._divide(Grading())

    def _divide(self, grading: Grading) -> None:
        self._grading = grading
        self.graded = grading.halvings > 0 or bool(grading.settling)  #: True when there are pieces at all

    @property
    def memory(self) -> dict[str, Any]:
        """Into which pieces macro steps without a past are divided now, and the note."""
        grading = self._grading
        settling = list(grading.settling)
        return {"halvings": grading.halvings, "twice": grading.twice, "settling": settling, "note": self.note}

    @memory.setter
    def memory(self, saved: dict[str, Any]) -> None:
        settling = tuple(saved.get("settling", ()))
        self._divide(Grading(saved["halvings"], saved["twice"], settling))
        self.note = saved["note"]

    def plan(self) -> None:
        """A run begins: into which pieces its first macro steps are divided."""
        core, self.note = self._core, ""
        uniform = isinstance(core.windows, Uniform)  # error-controlled steps grade themselves
        self._divide(core.startup.grading(core.method) if uniform else Grading())
        if not self.graded:
            return
        why = whole_only(core.plan)
        if not why and not core.plan.explicit and core.caller.undetermined(core.t, core.y, core.z).any():
            why = "unknowns of the equations have no value of their own at the start"
        if why:
            self._leave_whole(why)

    def _leave_whole(self, why: str) -> None:
        self._divide(Grading())
        most = own_order(self._core.method)
        self.note = f"the first macro step was advanced in one piece, which limits the order to {most}: {why}"

    def take_step(self, H: float | None, limit: float) -> Outcome | None:
        """The next macro step, where it is advanced in pieces; None for an ordinary one."""
        core, steps = self._core, self._core.history.steps
        if steps and steps[0] > 0.3 * core.windows.usual:
            return None
        window = core.windows.propose(H, limit)
        pieces = self._grading.pieces(window.t0, window.H, steps)
        if len(pieces) == 1:
            return None
        try:
            return self._in_pieces(window, pieces)
        except SimulationError as error:
            if core.t != core.t_start:
                raise
            core.start(core.t_start)
            self._leave_whole(f"in pieces it failed ({error})")
            return None

    def _in_pieces(self, whole: Window, pieces: list[float]) -> Outcome:
        """A macro step in pieces, all of which the history goes on from; only its end is a macro point.

        Everything that happens in a macro step may happen in a piece of one, such as an event that ends it.
        """
        core, taken = self._core, []
        begun, fresh = core.z, not core.history.steps
        t, ends = whole.t0, [*(whole.t0 + part for part in accumulate(pieces[:-1])), whole.t1]
        for t1, length in zip(ends, pieces, strict=True):
            piece = Piece(Window(t, t1, length), whole.H)
            taken.append(core.advance(piece, None, inf))
            t = piece.t
            if t < t1 or not core.history.steps or core.ended is not None:  # an event, or the end of the run
                break
            if len(taken) <= len(self._grading.settling):  # what happened in there is over
                core.history = core.history.begun(taken[-1].remembered)
        last, stopped = taken[-1], t < whole.t1
        window = Window(whole.t0, t, t - whole.t0) if stopped else whole
        if fresh and core.history.steps and self._is_staircase(begun, taken):
            mean = core.history.whole([one.remembered for one in taken], [one.H or 0.0 for one in taken])
            core.history = core.history.begun(begun)
            core.history.push(mean, window.H)
        (core.windows.judge_cut if stopped else core.windows.judge)(window, last)
        core.renew()  # Jacobians and the like of short pieces are of no use
        return replace(
            last,
            t1=window.t1,
            H=window.H,
            norms=[norm for one in taken for norm in one.norms],
            iterations=sum(one.iterations for one in taken),
            rejected=sum(one.rejected for one in taken),
            converged=all(one.converged for one in taken),
            renewed=any(one.renewed for one in taken),
            residual=max(one.residual for one in taken),
        )

    def _is_staircase(self, begun: Vector, taken: list[Outcome]) -> bool:
        """True when some variable stood still in a piece and moved in others: not a smooth signal to be extrapolated.

        That is how a solver shows itself that has steps of its own inside, longer than the pieces. In the first tenth
        of the macro step a smooth variable may have too little to do to be seen.
        """
        core, last = self._core, taken[-1]
        assert last.t1 is not None
        early = core.t + 0.1 * (last.t1 - core.t)
        values = [one.z for one in taken if one.t1 is not None and one.t1 >= early]
        moved = np.abs(last.z - begun) > _MOVED * np.maximum(np.abs(last.z), np.abs(begun))
        still = np.zeros(len(begun), dtype=bool)
        for older, newer in pairwise(values):
            still |= newer == older
        found = np.flatnonzero(moved & still)
        if len(found) and not self.note:
            self.note = (
                f"'{core.plan.z_labels[found[0]]}' does not follow the short pieces of the first macro step (a solver "
                f"with longer steps of its own, or an event), which may limit the order to {own_order(core.method)}"
            )
        return bool(len(found))


def whole_only(plan: Plan) -> str:
    """Why first macro steps must stay in one piece; empty where they need not.

    >>> import cosolve as cs
    >>> clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])  # nothing happens inside
    >>> whole_only(cs.System({"clock": clock}).plan())
    ''
    """
    for name, subsystem in zip(plan.names, plan.subsystems, strict=True):
        memoryless = has_capability(subsystem, "state") and not len(subsystem.get_state())
        if not subsystem.variable_step and not memoryless:
            return f"'{name}' ({type(subsystem).__name__}) cannot be stopped inside a macro step"
    return "there are constraints" if plan.constraints else ""
