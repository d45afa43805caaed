"""Implicit coupling: the correction is repeated until the interface residual meets its tolerance."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from cosolve.corrector import Corrector, Newton
from cosolve.errors import ConvergenceError, SetupError
from cosolve.interface.plan import Plan
from cosolve.method.base import MacroStep, Method, Outcome
from cosolve.method.crew import Crew, Window
from cosolve.method.semi_implicit import refuse_bad_differencing
from cosolve.method.trial import JacobianSource, Trial
from cosolve.signal import History
from cosolve.subsystem.port import Vector, is_number

#: Corrections below this fraction of a variable's size are rounding: more iterations cannot help.
_ROUNDING = 1e-14


@dataclass(frozen=True)
class Implicit(Method):
    """Iterate each macro step until every residual is below `tol` times the size of its coupling variable.

    The size of a variable is the largest magnitude seen in the run, at least the nominal value of its port; user
    equations are measured against 1. A step that does not converge in `max_iterations` stops the run.

    >>> import cosolve as cs
    >>> cs.Implicit(degree=1, tol=1e-10).corrector.refresh
    'step'
    """

    tol: float = 1e-10
    max_iterations: int = 50
    corrector: Corrector = field(default_factory=lambda: Newton(refresh="step"))
    jacobian: JacobianSource = "auto"
    increment: float = 1e-5

    needs: ClassVar[tuple[str, ...]] = ("rollback",)
    instead: ClassVar[str] = "Jacobi or GaussSeidel"

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_bad_differencing(self.name, self.jacobian, self.increment)
        if not isinstance(self.corrector, Corrector):
            raise SetupError(f"Implicit: corrector must be a Corrector such as Newton(), not {self.corrector!r}")
        if not (is_number(self.tol) and self.tol > 0):
            raise SetupError(f"Implicit: tol must be a positive number, not {self.tol!r}")
        if not (is_number(self.max_iterations) and self.max_iterations >= 1):
            raise SetupError(f"Implicit: max_iterations must be at least 1, not {self.max_iterations!r}")

    def bind(self, crew: Crew) -> MacroStep:
        plan = crew.plan
        corrector = deepcopy(self.corrector)
        corrector.start_run(plan.z_labels)
        measure = _Measure(plan)

        def step(history: History, window: Window) -> Outcome:
            trial = Trial(crew, history, window, self.degree, self.jacobian, self.increment, measure.size)
            corrector.start_step()
            z_p = z = history.extrapolate(self.degree, window.H).sum(axis=0)
            y = trial.run(z)
            r = plan.residual(z, y)
            iterations = 0
            norms = [measure(r, z)]
            while norms[-1] > self.tol:
                if iterations >= self.max_iterations or norms[-1] > 1e6 * max(norms[0], 1.0):
                    raise self._not_converged(plan, window, r, z, norms, measure)
                z_new = corrector.correct(z, r, partial(trial.jacobian, z, y))
                moved = float((np.abs(z_new - z) / measure.size).max())
                z = z_new
                y = trial.run(z)
                r = plan.residual(z, y)
                iterations += 1
                norms.append(measure(r, z))
                if moved < _ROUNDING:
                    break
            corrector.accept(z, r)
            measure.remember(z)
            z = plan.evaluate(y, z)
            residual = float(np.abs(r).max(initial=0.0))
            return Outcome(y, z, z_p, history.extrapolation_degree(self.degree), iterations, residual)

        return step

    def _not_converged(
        self, plan: Plan, window: Window, r: Vector, z: Vector, norms: list[float], measure: _Measure
    ) -> ConvergenceError:
        worst = int(np.argmax(np.abs(r) / measure.row_size))
        trend = ", ".join(f"{n:.1e}" for n in norms[-4:])
        return ConvergenceError(
            f"the interface iteration did not converge in the step from t = {window.t0:.9g} (H = {window.H:.3g}): "
            f"after {len(norms) - 1} corrections the residual of '{plan.z_labels[worst]}' is {r[worst]:.3g} "
            f"(tol {self.tol:g}, last norms {trend}); try a smaller step, Newton(refresh='iteration'), "
            "or looser tol if the norms stand still",
            time=window.t0,
        )


class _Measure:
    """The residual norm: the largest row, each in units of its coupling variable."""

    def __init__(self, plan: Plan) -> None:
        self.size = plan.z_nominal.copy()
        self.row_size = self.size.copy()
        self._implicit = np.zeros(plan.n_z, dtype=bool)
        for block in plan.blocks:
            if block.implicit:
                self._implicit[block.rows] = True
        self.row_size[self._implicit] = 1.0

    def __call__(self, r: Vector, z: Vector) -> float:
        rows = np.where(self._implicit, 1.0, np.maximum(self.row_size, np.abs(z)))
        return float((np.abs(r) / rows).max(initial=0.0))

    def remember(self, z: Vector) -> None:
        self.size = np.maximum(self.size, np.abs(z))
        self.row_size = np.where(self._implicit, 1.0, self.size)
