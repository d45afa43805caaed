"""What a single correction may leave of the interface residual, and what follows when it leaves more.

One Newton step takes away nearly all of the residual of a step, all of it in linear systems. Where a part stays, the
subsystems are tried out (`readable/self_check.py`), a few times in a run; so they are where the first of several
corrections leaves much, or, made without a Jacobian, makes it worse. A kink leaves much in a step or two, and the
next steps are good again; where much stays step after step, the equations have no solution there, or one correction
is too little, and the run says so. Residuals are measured against the largest size of their variables so far.
"""

from __future__ import annotations

from math import inf

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.errors import StabilityWarning, warn
from cosolve.interface.plan import Plan

#: Shares of the residual that a correction may leave before the subsystems are tried out, and before that is much.
LITTLE, MUCH = 1e-3, 0.1

#: The size below which no residual is looked at.
LEAST = 1e-6

#: A residual of this size is large; so many steps in a row that leave a large one are too many.
LARGE, PATIENCE = 0.05, 4

#: So many times in a run the subsystems are tried out.
EXAMINATIONS = 4

_NEVER = 1 << 62


class Corrections:
    """The books of a run about its corrections; `note` is the sentence about them, if there is anything to say.

    `remark` is one about Jacobians that leave little: formulas that are inexact on purpose do that.
    """

    def __init__(self, plan: Plan, relaxed: bool = False) -> None:
        #: no residual up to this needs to be looked at row by row; relaxed corrections leave some on purpose
        self.quiet = inf if relaxed else LEAST * float(plan.z_nominal.min(initial=1.0))
        self.examinations = 0 if relaxed else EXAMINATIONS
        self.streak = 0  # steps in a row that have left a large residual
        self.note = self.remark = ""
        #: start, length and first residual of a step that machine code has taken back: it comes once more
        self.expected: tuple[float, float, Vector] | None = None
        self._labels = plan.z_labels

    @property
    def level(self) -> float:
        """The size from which on machine code has to look at a residual."""
        return LEAST if self.examinations else max(LARGE, self.quiet)

    @property
    def share(self) -> float:
        """The share of the residual from which on it has to."""
        return LITTLE if self.examinations else MUCH

    @property
    def patience(self) -> int:
        """After so many such steps in a row machine code hands the step over."""
        if self.examinations:
            return 1
        return _NEVER if self.note else PATIENCE

    def count(self, large: bool) -> bool:
        """One more step; True when there were too many in a row that left a large residual."""
        self.streak = self.streak + 1 if large else 0
        return self.streak >= PATIENCE and not self.note

    def say(self, sentence: str) -> None:
        """Warn, once in a run."""
        self.note = sentence
        warn(sentence, StabilityWarning)

    def say_unsolved(self, method: str, t: float, r: Vector, unit: Vector) -> None:
        """Warn of residuals that stay."""
        worst = int(np.argmax(np.abs(r) / unit))
        self.say(
            f"the single correction of {method} leaves much of the residual, step after step: at t = {t:.6g} "
            f"'{self._labels[worst]}' misses its equation by {abs(r[worst]):.3g} ({abs(r[worst]) / unit[worst]:.0%} of "
            "its size); Implicit iterates and stops where there is no solution, and a smaller step may do"
        )
