"""A single correction that has left too much of the residual is repeated.

First with a Jacobian at each new guess, as `Implicit` would; where that does not help (a law that rounds has no
derivative, one that a subsystem gives may be wrong), by secants from the best guess so far, which need none. Every
subsystem stands at the end of the step then, with the best values that were found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.corrector import IqnIls
from cosolve.engine.corrections import LARGE, SMALL, is_too_much
from cosolve.errors import ConvergenceError, SimulationError

if TYPE_CHECKING:
    from cosolve.corrector.base import Corrector
    from cosolve.engine.python.executor import StepExecutor

#: Repetitions with a Jacobian; with secants so many more, and one for each coupling variable up to `_WIDE` of them.
_WITH_JACOBIAN, _WITH_SECANTS, _WIDE = 6, 12, 20


class Repeats:
    """The repeated corrections of one macro step that began with a residual of the size `began`."""

    def __init__(self, executor: StepExecutor, began: float) -> None:
        self._executor, self._began = executor, began
        self._count, self._newton_over, self._given_up = 0, False, False
        self._best: tuple[float, Vector, Vector] = np.inf, np.zeros(0), np.zeros(0)
        self._secants: Corrector | None = None
        self._most = _WITH_JACOBIAN + _WITH_SECANTS + min(executor.plan.n_z, _WIDE)

    def go_on(self, left: float, z: Vector, r: Vector) -> bool:
        """Note what these values leave; True where other ones are to be tried."""
        self._count += 1
        better = left < self._best[0]
        self._newton_over |= self._count > _WITH_JACOBIAN or left > 10.0 * self._best[0]
        if better:
            self._best = left, z.copy(), r.copy()
        if left <= SMALL or self._given_up:
            return False
        if self._count > self._most or not np.isfinite(left):
            self._given_up = True
            return not better
        return True

    def next(self, z: Vector, r: Vector, newton: Any) -> Vector:
        """The values to try next."""
        executor = self._executor
        if self._given_up:
            return self._best[1]
        equations = executor.equations
        if not self._newton_over:
            newton.start_step()
            found: Vector = z - newton.solve(r, equations)
            return found
        if self._secants is None:
            _, z, r = self._best
            self._secants = IqnIls()
            self._secants.start_run(executor.plan.z_labels)
            self._secants.start_step()
        return self._secants.correct(z, r, equations)

    def refusal(self) -> SimulationError | None:
        """Why the best values are not good enough, where they are not."""
        executor, (left, z, r) = self._executor, self._best
        if not is_too_much(self._began, left):
            return None
        row = int(np.argmax(np.abs(r) / executor.measure.unit(z, r)))
        executor.corrections.leave(left, row, executor.window.t1)
        if left <= LARGE:
            return None
        window, name = executor.window, executor.plan.z_labels[row]
        return ConvergenceError(
            f"{executor.label} finds no values that agree in the step from t = {window.t0:.9g} "
            f"(H = {window.H:.3g}): after {self._count} corrections '{name}' misses its equation by {abs(r[row]):.3g} "
            f"({left:.0%} of its size); its law may jump or round there; take a smaller step or Adaptive, or smooth it",
            time=window.t0,
        )
