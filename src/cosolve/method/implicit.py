"""Implicit coupling: the correction is repeated until the interface residual meets its tolerance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_number
from cosolve.corrector import Corrector, Newton
from cosolve.corrector.algebra.linear_solve import Factorised
from cosolve.engine.readable.crew import Crew, Local, Window
from cosolve.engine.readable.reduced import Reduced
from cosolve.engine.readable.serial import Serial, checked_order, in_order, unknown_in_order
from cosolve.engine.readable.trial import JacobianSource, Trial
from cosolve.errors import ConvergenceError, SetupError
from cosolve.interface.plan import Plan
from cosolve.method.base import MacroStep, Method, Outcome, Remembering
from cosolve.method.constraint import (
    ConstraintTreatment,
    refuse_no_treatment,
    treatment_for,
    variants,
    weighted_mean,
)
from cosolve.method.semi_implicit import refuse_bad_differencing
from cosolve.signal import History, end_values
from cosolve.subsystem.base import has_capability

#: Residuals within so many rounding errors of their own evaluation are as good as zero.
_ROUNDINGS = 16.0

#: See `_Measure`.
_GROWTH, _LOST = 1e6, 1e12


@dataclass(frozen=True)
class Implicit(Method):
    """Iterate each macro step until every residual is below `tol` times the size of its coupling variable.

    The size of a variable is the largest magnitude seen in the run, at least the nominal value of its port; user
    equations are measured against 1, and with `absolute=True` everything is. `atol` adds absolute tolerances for single
    coupling variables (`{"left.force": 1e-3}`) or for all of them, whichever of the two is looser. A residual that
    stands still within the rounding of its own evaluation counts as converged; anything else that does not converge in
    `max_iterations` stops the run, unless `accept_unconverged` says to go on (such steps are counted in
    `result.stats.unconverged`).

    `sweep="gauss-seidel"` runs the subsystems one after the other (in `order`) with the newest values; it works with
    correctors that need no Jacobian. `degree` is the polynomial between macro points (0 holds the end value, 1 is a
    ramp), `predictor` the degree of the first guess (default: the same).

    `local="one step"` lets subsystems that can (field solvers) take one step of their own Newton iteration per
    interface iteration, so that both converge together; what is left of their equations then counts in the tolerance
    (spec: interface-Jacobian 2.8, "enhanced+"). `local="output equation"` is the enhanced method as Sicklinger prints
    it (Algorithm 4.4): cheaper still, and on nonlinear subsystems *not* convergent to the coupled solution.
    `constraints` says how multipliers of rigid joints are found, see `SemiImplicit`.

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
    constraints: ConstraintTreatment | None = None
    local: Local = "converged"
    predictor: int | None = None
    atol: float | Mapping[str, float] = 0.0

    needs: ClassVar[tuple[str, ...]] = ("rollback",)
    stops_at_events: ClassVar[bool] = True
    instead: ClassVar[str] = "Jacobi or GaussSeidel"

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_bad_differencing(self.name, self.jacobian, self.increment)
        object.__setattr__(self, "order", checked_order(self.name, self.order))
        if not isinstance(self.corrector, Corrector):
            raise SetupError(f"Implicit: corrector must be a Corrector such as Newton(), not {self.corrector!r}")
        if not (is_number(self.tol) and self.tol > 0):
            raise SetupError(f"Implicit: tol must be a positive number, not {self.tol!r}")
        if self.predictor is not None:
            self.refuse_bad_degree(self.predictor, "predictor")
        for allowed in self.atol.values() if isinstance(self.atol, Mapping) else [self.atol]:
            if not (is_number(allowed) and allowed >= 0):
                raise SetupError(f"Implicit: atol must be numbers of at least 0, not {self.atol!r}")
        if not (is_number(self.max_iterations) and self.max_iterations >= 1):
            raise SetupError(f"Implicit: max_iterations must be at least 1, not {self.max_iterations!r}")
        refuse_no_treatment(self.name, self.constraints)
        if self.sweep not in ("jacobi", "gauss-seidel"):
            raise SetupError(f"Implicit: sweep must be 'jacobi' or 'gauss-seidel', not {self.sweep!r}")
        if self.local not in ("converged", "one step", "output equation"):
            raise SetupError(
                f"Implicit: local must be 'converged', 'one step' or 'output equation', not {self.local!r}"
            )
        if self.sweep == "gauss-seidel" and self.local != "converged":
            raise SetupError("Implicit: serial sweeps solve every subsystem fully; use sweep='jacobi' with this local")
        if self.sweep == "gauss-seidel" and self.corrector.uses_jacobian:
            raise SetupError(
                f"Implicit: {self.corrector!r} needs the interface Jacobian, which belongs to parallel sweeps; use "
                "sweep='jacobi', or a corrector that works without one"
            )

    def complaints(self, plan: Plan) -> list[str]:
        able = [has_capability(s, "approximate crossing") for s in plan.subsystems]
        if self.local != "converged" and not any(able):
            return [
                f"Implicit(local={self.local!r}) needs a subsystem with an approximate crossing (resolve), such as "
                "SecondOrder, and none has one; use local='converged'"
            ]
        return unknown_in_order(self.name, self.order, plan) or super().complaints(plan)

    @property
    def depth(self) -> int:
        return max(self.degree, self.predictor or 0, 1)

    def bind(self, crew: Crew) -> MacroStep:
        plan = crew.plan
        treatment = treatment_for(plan, self.constraints)
        serial = Serial(crew, in_order(plan, self.order)) if self.sweep == "gauss-seidel" else None
        active = None if serial is None else np.flatnonzero(serial.lagging)
        measure = _Measure(plan, self.absolute, _absolute_tolerances(plan, self.atol) / self.tol)
        guess_degree = self.degree if self.predictor is None else self.predictor
        correctors = [deepcopy(self.corrector) for _ in variants(plan, treatment, 1.0)]
        for corrector in correctors:
            corrector.start_run(plan.z_labels if active is None else [plan.z_labels[m] for m in active])
        parts: Sequence[tuple[float, Plan]] = ()  # the interface problems, made for steps of size H
        H = np.nan

        def step(history: History, window: Window) -> Outcome:
            nonlocal parts, H
            if window.H != H:
                if treatment is not None and not parts:
                    treatment.refuse_unstable(self.degree, window.H)
                parts, H = variants(plan, treatment, window.H), window.H
            trial = Trial(
                *(crew, history, window, self.degree, self.jacobian, self.increment, measure.size, serial, self.local)
            )
            z_p = end_values(history.extrapolate(guess_degree, window.H))
            solutions, norms, converged = [], [], True
            for corrector, (_, combined) in zip(correctors, parts, strict=True):
                trial.plan = combined
                r, found, good = self._iterate(trial, Reduced(trial, active), corrector, measure, z_p)
                solutions.append(trial.z)
                norms += found
                converged &= good
            z = solutions[0] if len(parts) == 1 else weighted_mean(parts, solutions)
            if treatment is not None:
                z = treatment.relax(plan, z, history.newest)
            if len(norms) > len(parts):
                measure.judged = plan.explicit
            elif not measure.judged and self.corrector.uses_jacobian and self.local == "converged":
                self._refuse_undetermined(trial, [combined for _, combined in parts])
                measure.judged = True
            if z is not trial.z:  # an average or a relaxed value: nothing has crossed the step with it yet
                r = parts[0][1].residual(z, trial.run(z))
            measure.remember(trial.z)
            return Outcome(
                trial.y,
                plan.evaluate(trial.y, trial.z),
                z_p,
                history.extrapolation_degree(guess_degree),
                iterations=len(norms) - len(parts),
                residual=float(np.abs(r).max(initial=0.0)),
                converged=converged,
                norms=norms,
            )

        return Remembering(step, *correctors, measure)

    def _iterate(
        self, trial: Trial, problem: Reduced, corrector: Corrector, measure: _Measure, z: Vector
    ) -> tuple[Vector, list[float], bool]:
        """Correct from `z` on until the tolerance is met; the last residual, all norms, and whether it was met."""
        plan = trial.plan
        corrector.start_step()
        r = trial.residual(z)
        measure.begin(trial.z, r)
        norms, lost = [max(measure(r, trial.z), trial.inside)], False
        while not norms[-1] <= self.tol or lost:
            stuck = len(norms) > 1 and norms[-1] > 0.5 * norms[-2]
            if stuck and not lost and self._is_rounding(plan, trial, r, measure):
                break
            if lost or len(norms) > self.max_iterations or not norms[-1] < 1e6 * max(norms[0], 1.0):
                if self.accept_unconverged and np.isfinite(norms[-1]):
                    break
                raise self._not_converged(plan, trial.window, r, norms, measure)
            r = problem.full_residual(corrector.correct(problem.of(trial.z), problem.of(r), problem))
            norms.append(max(measure(r, trial.z), trial.inside))
            lost = measure.lost(trial.z)
        corrector.accept(problem.of(trial.z), problem.of(r))
        good = not lost and (norms[-1] <= self.tol or self._is_rounding(plan, trial, r, measure))
        return r, norms, good

    def _refuse_undetermined(self, trial: Trial, problems: Sequence[Plan]) -> None:
        """Raise when residuals that vanish at the first guess would vanish at others as well (0 = 0, gain 1).

        Corrections would find out; steps that need none are looked at once, and once more after each time that there
        were corrections where equations are involved, since these may change their mind in mid-run.
        """
        z = trial.z
        for trial.plan in problems:
            if trial.plan.n_z:
                Factorised(trial.jacobian(), trial.plan.z_labels)
        trial.run(z)

    def _is_rounding(self, plan: Plan, trial: Trial, r: Vector, measure: _Measure) -> bool:
        """True when every residual that misses the tolerance is rounding of its own evaluation."""
        if trial.inside > self.tol:
            return False
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


def _absolute_tolerances(plan: Plan, atol: float | Mapping[str, float]) -> Vector:
    """The absolute tolerance of every row."""
    if not isinstance(atol, Mapping):
        return np.full(plan.n_z, float(atol))
    allowed = np.zeros(plan.n_z)
    for name, value in atol.items():
        if name not in plan.z_ports:
            known = ", ".join(f"'{n}'" for n in list(plan.z_ports)[:8])
            raise SetupError(f"Implicit: atol names '{name}', which is no coupling variable; there are {known}")
        allowed[plan.z_ports[name][0]] = value
    return allowed


class _Measure:
    """The residual norm: the largest row, each in units of its coupling variable.

    A variable that runs away must not excuse its residual by its own size: beyond `_GROWTH` times what the step began
    with, size no longer counts, and beyond `_LOST` times there is no use in going on.
    """

    judged = False  # whether steps without corrections are known to have one solution

    def __init__(self, plan: Plan, absolute: bool, least: Vector) -> None:
        self.size = plan.z_nominal.copy()
        self.least = least  # sizes at which the absolute tolerance takes over
        self.plain = np.full(plan.n_z, absolute)  # rows measured against 1
        for block in plan.blocks:
            if block.implicit:
                self.plain[block.rows] = True
        self._start = 1.0

    @property
    def row_size(self) -> Vector:
        """What a residual of each row is measured against, at least."""
        return np.where(self.plain, 1.0, self.size)

    def begin(self, z: Vector, r: Vector) -> None:
        """Take note of what the step begins with."""
        self._start = float(sum(np.abs(v).max(initial=0.0) for v in (self.size, z, r)))

    def lost(self, z: Vector) -> bool:
        return bool(np.abs(z).max(initial=0.0) > _LOST * self._start)

    def rows(self, z: Vector) -> Vector:
        size = np.maximum(self.size, np.minimum(np.abs(z), _GROWTH * self._start))
        return np.maximum(np.where(self.plain, 1.0, size), self.least)

    def __call__(self, r: Vector, z: Vector) -> float:
        return float((np.abs(r) / self.rows(z)).max(initial=0.0))

    def remember(self, z: Vector) -> None:
        np.maximum(self.size, np.abs(z), out=self.size)
