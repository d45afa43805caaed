"""Does what an FMU comes to depend on the length of its steps? Looked at once, at the start of the first run.

Methods assume that one step and its pieces come to the same. An FMU that uses its inputs a step too late, or shows its
outputs a step too late, is off by a part of every macro step. So is one whose outputs react at once to inputs although
its description denies it, and one that claims to follow its inputs inside a step (`canInterpolateInputs`,
`providesIntermediateUpdate`) and does not. Such errors are of first order in the macro step, whatever the method.
So the second macro step is made in copies of this process, in one step and in eight, with the inputs of the start and
with a small change: both must move the outputs alike. The FMU of the run takes no part in it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import FmuWarning, warn
from cosolve.fmu.crash_trial import answer_of
from cosolve.fmu.findings import Finding, facts
from cosolve.signal.polynomial import Polynomial

if TYPE_CHECKING:
    from cosolve.fmu.co_simulation import CoSimulationFmu

_PIECES = 8
_APART = 0.2  # of what moves an output: so much a step and its pieces may differ, as solvers with steps of their own do
_ALIKE = 0.2  # of each other: answers to opposite changes of the inputs that are linear
_INCREMENT = 1e-3  # of the size of an input
_FLOOR = 1e-9  # of the output that moves most: what moves by less is rounding
_ROWS = 4  # different rows of the pattern of direct dependence that are looked at

FOLLOWS = "follows its inputs inside a step"

_looked: dict[Path, str] = {}  # unpacked FMUs, and what was found


def look_at_steps(fmu: CoSimulationFmu, t0: float, H: float, u: Vector) -> str:
    """What to say of an FMU at the start of a run; empty where nothing was found, or where it cannot be tried.

    Inputs that are not followed inside a step are held from then on, with a warning.
    """
    communication, instance = fmu._communication, fmu._instance
    folder = instance.folder
    tool = instance.flags.has("needsExecutionTool")  # copies of this process would call the same program
    if folder in _looked or communication.sampled or tool or not hasattr(fmu, "save") or not H > 0.0:
        return _looked.get(folder, "")
    trial = StepTrial(fmu, t0, H, u)
    found = _looked[folder] = (trial.lag() if communication.variable else "") or trial.undeclared()
    if not found and not communication.holds:
        ignored = trial.ignored()
        if ignored:
            facts.add(folder, Finding(FOLLOWS, "fails", ignored, "in a run"))
            communication.hold_inputs()
            warn(f"the FMU '{fmu.file.name}' does not do what it says: {ignored}; its inputs are held", FmuWarning)
    return found


class StepTrial:
    """The second macro step of an FMU, in copies of this process: in the first one outputs may still settle."""

    def __init__(self, fmu: CoSimulationFmu, t0: float, H: float, u: Vector) -> None:
        self._fmu, self._t0, self._H, self._u, self._n = fmu, t0, H, u, fmu._outputs.length
        sizes = np.maximum(np.array(fmu.nominal_inputs, dtype=float), np.abs(u))
        floats = fmu._communication.float_places
        self._change = np.zeros(len(u))
        self._change[floats] = (max(fmu.noise ** (1 / 3), _INCREMENT) * sizes)[floats]
        self._still = self._both()

    # -- in copies -------------------------------------------------------------------------------------------

    def _advanced(self, rows: Matrix, pieces: int) -> Vector:
        """By how much the outputs move in the step."""
        fmu, communication, t1 = self._fmu, self._fmu._communication, self._t0 + self._H
        before = fmu.advance(self._t0, t1, Polynomial(self._t0, self._H, self._u[np.newaxis]))
        if pieces > 1:
            communication.hold_inputs()
            communication.substeps *= pieces
        moved: Vector = fmu.advance(t1, t1 + self._H, Polynomial(t1, self._H, rows)) - before
        return moved

    def _at_once(self, change: Vector) -> Vector:
        """By how much the outputs move when inputs change at the start of the step."""
        fmu = self._fmu
        before = fmu.advance(self._t0, self._t0 + self._H, Polynomial(self._t0, self._H, self._u[np.newaxis]))
        fmu._communication.write(self._u + change)
        moved: Vector = fmu._outputs.read(fmu.component) - before
        return moved

    # -- what they tell --------------------------------------------------------------------------------------

    def _both(self, *changes: Vector) -> tuple[Vector, Vector] | None:
        """How these changes of the inputs' coefficients move the outputs, in one step and in eight."""
        rows = np.zeros((max(len(changes), 1), len(self._u)))
        rows[0] = self._u
        for k, change in enumerate(changes):
            rows[k] += change
        one, many = (answer_of(partial(self._advanced, rows, pieces), self._n) for pieces in (1, _PIECES))
        return None if one is None or many is None else (one, many)

    def _answers(self, *changes: Vector) -> tuple[Vector, Vector] | None:
        """The same, less what they do without these changes."""
        moved = self._both(*changes)
        if moved is None or self._still is None:
            return None
        return moved[0] - self._still[0], moved[1] - self._still[1]

    def _differing(self, *changes: Vector, at_once: Vector | float = 0.0) -> tuple[int, float, float] | None:
        """The output whose answers to these changes differ most, and both; where opposite ones answer in kind."""
        ahead = self._answers(*changes)
        if ahead is None:
            return None
        one, many = ahead[0] - at_once, ahead[1] - at_once
        k = _apart(one, many)
        back = self._answers(*(-change for change in changes)) if k >= 0 else None
        if back is None or not all(_mirrored(a[k], b[k]) for a, b in zip(ahead, back, strict=True)):
            return None
        return k, float(one[k]), float(many[k])

    def lag(self) -> str:
        """Whether what the outputs do in a step depends on its length."""
        still, moved = self._still, self._both(self._change)
        if still is None or moved is None:
            return ""
        k = _apart(*still)
        if k >= 0 and _apart(*moved) == k:
            return self._sentence("moves", k, float(still[0][k]), float(still[1][k]))
        reacts = hasattr(self._fmu, "output")
        at_once = answer_of(partial(self._at_once, self._change), self._n) if reacts else 0.0
        found = None if at_once is None else self._differing(self._change, at_once=at_once)
        return "" if found is None else self._sentence("answers a change of its inputs", *found)

    def undeclared(self) -> str:
        """Whether an output reacts at once to inputs although the description denies it."""
        pattern = self._fmu._pattern
        if pattern is None:
            return ""
        for row in np.unique(pattern, axis=0)[:_ROWS]:
            change = np.where(row, 0.0, self._change)
            moved = answer_of(partial(self._at_once, change), self._n) if change.any() else None
            denied = (pattern == row).all(axis=1)
            if moved is not None and moved[denied].any():
                k = int(np.argmax(np.where(denied, np.abs(moved), 0.0)))
                return (
                    f"'{self._fmu._outputs.labels[k]}' of the FMU '{self._fmu.file.name}' reacts at once to inputs on "
                    "which it does not depend by its description (ModelStructure), so it is a step behind them; have "
                    "the dependency declared, or take shorter steps"
                )
        return ""

    def ignored(self) -> str:
        """Whether inputs that change inside a step count as if they did not."""
        none = 0.0 * self._change
        if self._fmu._communication.variable:
            found = self._differing(none, self._change)
            return "" if found is None else self._ignoring(*found)
        held, ramp = self._answers(self._change), self._answers(none, self._change)
        if held is None or ramp is None or not self._n:  # pieces are not for it, but no answer at all can be told
            return ""
        k = int(np.argmax(np.abs(held[0])))
        return self._ignoring(k, 0.0, float(held[0][k])) if held[0][k] != 0.0 and ramp[0][k] == 0.0 else ""

    def _ignoring(self, k: int, one: float, many: float) -> str:
        t1 = self._t0 + self._H
        return (
            f"inputs that change during the step from t = {t1:.9g} to {t1 + self._H:.9g} move "
            f"'{self._fmu._outputs.labels[k]}' by {one:.3g} where those of shorter steps move it by {many:.3g}"
        )

    def _sentence(self, what: str, k: int, one: float, many: float) -> str:
        t1 = self._t0 + self._H
        return (
            f"what the FMU '{self._fmu.file.name}' comes to depends on the length of its steps: from t = {t1:.9g} to "
            f"{t1 + self._H:.9g} its '{self._fmu._outputs.labels[k]}' {what} by {one:.3g} in one step and by "
            f"{many:.3g} in {_PIECES}, as if values came a step late or its solver took one step for each; take "
            "shorter steps, or cs.load_fmu(..., substeps=8)"
        )


def _apart(one: Vector, many: Vector) -> int:
    """The output that a step and its pieces move most differently; -1 where they agree."""
    size = np.maximum(np.abs(one), np.abs(many))
    counts = size > _FLOOR * size.max(initial=0.0)
    off = np.where(counts, np.abs(one - many) / np.where(counts, size, 1.0), 0.0)
    return int(np.argmax(off)) if off.max(initial=0.0) > _APART else -1


def _mirrored(ahead: float, behind: float) -> bool:
    """Whether opposite changes have opposite answers, or none; noise and kinks do not."""
    return abs(ahead + behind) <= _ALIKE * max(abs(ahead), abs(behind))
