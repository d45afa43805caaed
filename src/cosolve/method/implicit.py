"""Implicit coupling: the correction is repeated until the interface residual meets its tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from cosolve.corrector import Corrector, Newton
from cosolve.errors import ConvergenceError, SetupError
from cosolve.interface.plan import Plan
from cosolve.method.base import MacroStep, Method, Outcome
from cosolve.method.crew import Crew, Window
from cosolve.method.reduced import Reduced
from cosolve.method.semi_implicit import refuse_bad_differencing
from cosolve.method.serial import Serial, checked_order, in_order, unknown_in_order
from cosolve.method.trial import JacobianSource, Trial
from cosolve.signal import History
from cosolve.subsystem.port import Vector, is_number

#: Residuals within so many rounding errors of their own evaluation are as good as zero.
_ROUNDINGS = 16.0

#: See `_Measure`.
_GROWTH, _LOST = 1e6, 1e12


@dataclass(frozen=True)
class Implicit(Method):
    """Iterate each macro step until every residual is below `tol` times the size of its coupling variable.

    The size of a variable is the largest magnitude seen in the run, at least the nominal value of its port; user
    equations are measured against 1, and with `absolute=True` everything is. A residual that stands still within the
    rounding of its own evaluation counts as converged; anything else that does not converge in `max_iterations` stops
    the run, unless `accept_unconverged` says to go on (such steps are counted in `result.stats.unconverged`).

    `sweep="gauss-seidel"` runs the subsystems one after the other (in `order`) with the newest values; it works with
    correctors that need no Jacobian.

    >>> import cosolve as cs
    >>> cs.Implicit(degree=1, tol=1e-10).corrector
    Newton(refresh='step')
    """

    tol: float = 1e-10
    max_iterations: int = 50
    corrector: Corrector = field(default_factory=lambda: Newton(refresh="step"))
    sweep: Literal["jacobi", "gauss-seidel"] = "jacobi"
    order: Sequence[str] = ()
    jacobian: JacobianSource = "auto"
    increment: float = 1e-5
    absolute: bool = False
    accept_unconverged: bool = False

    needs: ClassVar[tuple[str, ...]] = ("rollback",)
    instead: ClassVar[str] = "Jacobi or GaussSeidel"

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_bad_differencing(self.name, self.jacobian, self.increment)
        object.__setattr__(self, "order", checked_order(self.name, self.order))
        if not isinstance(self.corrector, Corrector):
            raise SetupError(f"Implicit: corrector must be a Corrector such as Newton(), not {self.corrector!r}")
        if not (is_number(self.tol) and self.tol > 0):
            raise SetupError(f"Implicit: tol must be a positive number, not {self.tol!r}")
        if not (is_number(self.max_iterations) and self.max_iterations >= 1):
            raise SetupError(f"Implicit: max_iterations must be at least 1, not {self.max_iterations!r}")
        if self.sweep not in ("jacobi", "gauss-seidel"):
            raise SetupError(f"Implicit: sweep must be 'jacobi' or 'gauss-seidel', not {self.sweep!r}")
        if self.sweep == "gauss-seidel" and self.corrector.uses_jacobian:
            raise SetupError(
                f"Implicit: {self.corrector!r} needs the interface Jacobian, which belongs to parallel sweeps; use "
                "sweep='jacobi', or a corrector that works without one"
            )

    def complaints(self, plan: Plan) -> list[str]:
        return unknown_in_order(self.name, self.order, plan) or super().complaints(plan)

    def bind(self, crew: Crew) -> MacroStep:
        plan = crew.plan
        corrector = deepcopy(self.corrector)
        serial = Serial(crew, in_order(plan, self.order)) if self.sweep == "gauss-seidel" else None
        active = None if serial is None else np.flatnonzero(serial.lagging)
        corrector.start_run(plan.z_labels if active is None else [plan.z_labels[m] for m in active])
        measure = _Measure(plan, self.absolute)

        def step(history: History, window: Window) -> Outcome:
            trial = Trial(crew, history, window, self.degree, self.jacobian, self.increment, measure.size, serial)
            problem = Reduced(trial, active)
            corrector.start_step()
            z_p = history.extrapolate(self.degree, window.H).sum(axis=0)
            r = trial.residual(z_p)
            measure.begin(trial.z, r)
            norms, lost = [measure(r, trial.z)], False
            while not norms[-1] <= self.tol or lost:
                stuck = len(norms) > 1 and norms[-1] > 0.5 * norms[-2]
                if stuck and not lost and self._is_rounding(plan, trial, r, measure):
                    break
                if lost or len(norms) > self.max_iterations or not norms[-1] < 1e6 * max(norms[0], 1.0):
                    if self.accept_unconverged and np.isfinite(norms[-1]):
                        break
                    raise self._not_converged(plan, window, r, norms, measure)
                r = problem.full_residual(corrector.correct(problem.of(trial.z), problem.of(r), problem))
                norms.append(measure(r, trial.z))
                lost = measure.lost(trial.z)
            corrector.accept(problem.of(trial.z), problem.of(r))
            measure.remember(trial.z)
            return Outcome(
                trial.y,
                plan.evaluate(trial.y, trial.z),
                z_p,
                history.extrapolation_degree(self.degree),
                iterations=len(norms) - 1,
                residual=float(np.abs(r).max(initial=0.0)),
                converged=not lost and (norms[-1] <= self.tol or self._is_rounding(plan, trial, r, measure)),
            )

        return step

    def _is_rounding(self, plan: Plan, trial: Trial, r: Vector, measure: _Measure) -> bool:
        """True when every residual that misses the tolerance is rounding of its own evaluation."""
        floor = _ROUNDINGS * plan.rounding(trial.z, trial.y)
        return bool((np.abs(r) <= np.maximum(self.tol * measure.rows(trial.z), floor)).all())

    def _not_converged(
        self, plan: Plan, window: Window, r: Vector, norms: list[float], measure: _Measure
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
    """The residual norm: the largest row, each in units of its coupling variable.

    A variable that runs away must not excuse its residual by its own size: beyond `_GROWTH` times what the step began
    with, size no longer counts, and beyond `_LOST` times there is no use in going on.
    """

    def __init__(self, plan: Plan, absolute: bool) -> None:
        self.size = plan.z_nominal.copy()
        self._plain = np.full(plan.n_z, absolute)  # rows measured against 1
        for block in plan.blocks:
            if block.implicit:
                self._plain[block.rows] = True
        self.row_size = np.where(self._plain, 1.0, self.size)
        self._start = 1.0

    def begin(self, z: Vector, r: Vector) -> None:
        """Take note of what the step begins with."""
        self._start = float(sum(np.abs(v).max(initial=0.0) for v in (self.size, z, r)))

    def lost(self, z: Vector) -> bool:
        return bool(np.abs(z).max(initial=0.0) > _LOST * self._start)

    def rows(self, z: Vector) -> Vector:
        size = np.maximum(self.row_size, np.minimum(np.abs(z), _GROWTH * self._start))
        return np.where(self._plain, 1.0, size)

    def __call__(self, r: Vector, z: Vector) -> float:
        return float((np.abs(r) / self.rows(z)).max(initial=0.0))

    def remember(self, z: Vector) -> None:
        np.maximum(self.size, np.abs(z), out=self.size)
        self.row_size = np.where(self._plain, 1.0, self.size)
