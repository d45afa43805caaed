"""What a single correction may leave of the interface residual, and what follows when it leaves more.

One Newton step takes away nearly all of the residual of a step, all of it in linear systems. Where a part stays, the
subsystems are tried out (`python/self_check.py`), a few times in a run; so they are where the first of several
corrections leaves much, or, made without a Jacobian, makes it worse. Where a correction leaves too much (at a kink,
say) it is repeated (`repeated_correction.py`). Residuals are measured against the largest size of their variables so
far.
"""

from __future__ import annotations

from math import inf

from cosolve.basics.arrays import Vector
from cosolve.errors import StabilityWarning, warn
from cosolve.interface.plan import Plan

#: Shares of the residual that a correction may leave before the subsystems are tried out, and before that is too much.
LITTLE, MUCH = 1e-3, 0.1

#: The sizes below which no residual is looked at, and below which none is too much.
LEAST, SMALL = 1e-6, 1e-3

#: A residual of this size is too much, whatever the step began with.
LARGE = 0.02

#: So many times in a run the subsystems are tried out.
EXAMINATIONS = 4


def is_too_much(began: float, left: float) -> bool:
    """Whether a correction has left too much of a residual; both are relative to the sizes of the variables.

    >>> is_too_much(0.5, 0.01), is_too_much(0.01, 0.002), is_too_much(1.0, 0.05)
    (False, True, True)
    """
    return left > LARGE or left > max(MUCH * began, SMALL)


class Corrections:
    """What a run notes about its corrections; `note` is the sentence about wrong Jacobians, if there is one.

    `remark` is one about Jacobians that leave little: formulas that are inexact on purpose do that. Corrections that
    are relaxed leave some of the residual on purpose and are not `wanted` to do better.
    """

    def __init__(self, plan: Plan, relaxed: bool = False) -> None:
        #: no residual up to this needs to be looked at row by row; relaxed corrections leave some on purpose
        self.wanted = not relaxed
        self.quiet = inf if relaxed else 0.0 if plan.z_open.any() else LEAST * float(plan.z_nominal.min(initial=1.0))
        self.examinations = 0 if relaxed else EXAMINATIONS
        self.note = self.remark = ""
        #: the largest residual that repeated corrections have left in an accepted step, where and when
        self.left, self.left_of, self.left_at, self.left_steps = 0.0, "", 0.0, 0
        #: start, length and first residual of a step that machine code has taken back: it comes once more
        self.expected: tuple[float, float, Vector] | None = None
        #: macro steps that ended on another branch of solutions, and where the first of them began
        self.changes, self.changed_at = 0, 0.0
        self._labels = plan.z_labels

    def change_branch(self, t: float) -> None:
        """The step from `t` has found values on another branch of solutions than the one before."""
        if not self.changes:
            self.changed_at = t
        self.changes += 1

    @property
    def branches(self) -> str:
        """That the run has changed its branch, as a sentence; empty where it has not."""
        if not self.changes:
            return ""
        count = "1 macro step" if self.changes == 1 else f"{self.changes} macro steps"
        return (
            "the interface equations have several solutions, and the run has gone over to another one in "
            f"{count}, first in that from t = {self.changed_at:.6g}"
        )

    def leave(self, left: float, row: int, t: float) -> None:
        """A step is accepted although corrections that were repeated have left so much of a variable's size."""
        self.left_steps += 1
        if left > self.left:
            self.left, self.left_of, self.left_at = left, self._labels[row], t

    @property
    def found(self) -> str:
        """What repeated corrections have left in accepted steps, as a sentence; empty where they left nothing."""
        if not self.left_steps:
            return ""
        return (
            f"repeated corrections have left residuals in {self.left_steps} macro steps, the largest at "
            f"t = {self.left_at:.6g}: '{self.left_of}' misses its equation by {self.left:.1%} of its size"
        )

    def say(self, sentence: str) -> None:
        """Warn, once in a run."""
        self.note = sentence
        warn(sentence, StabilityWarning)
