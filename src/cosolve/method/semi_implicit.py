"""Semi-implicit predictor/corrector coupling (Schweizer and Lu; spec: applied-force ch. 2, semi-implicit ch. 2).

Predictor run with extrapolated coupling variables, perturbed runs (or exact Jacobians) for the interface Jacobian, one
Newton step, one corrected run. For linear systems that equals the fully implicit method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import ClassVar, Literal

import numpy as np

from cosolve.basics.checks import is_number
from cosolve.corrector import Newton
from cosolve.engine.readable.crew import Crew, Window
from cosolve.engine.readable.trial import JacobianSource, Trial
from cosolve.errors import SetupError
from cosolve.interface.plan import Plan
from cosolve.method.base import MacroStep, Method, Outcome, Remembering
from cosolve.method.constraint import (
    ConstraintTreatment,
    refuse_no_treatment,
    treatment_for,
    variants,
    weighted_mean,
)
from cosolve.signal import History, end_values


@dataclass(frozen=True)
class SemiImplicit(Method):
    """One correction per macro step.

    `jacobian`: `"auto"` takes exact Jacobians where subsystems have them and differences elsewhere, `"difference"`
    perturbs always; `increment` is the relative increment of the differences. `final_update` recomputes the coupling
    variables of laws and connections from the corrected outputs (Eqs. 14, 88). `predictor` is the degree of the first
    guess (default: `degree`); on linear systems the result does not depend on it. `refresh="run"` keeps the Jacobian as
    long as step and degree stay the same: exact for linear systems, cheaper and less accurate for others.
    `constraints` says how multipliers of rigid joints are found: `Baumgarte()` (default), `WeightedMultipliers()` or
    `StabilisedIndex2()`.

    >>> import cosolve as cs
    >>> cs.SemiImplicit(degree=2).needs
    ('rollback',)
    """

    jacobian: JacobianSource = "auto"
    increment: float = 1e-5
    final_update: bool = True
    predictor: int | None = None
    refresh: Literal["step", "run"] = "step"
    constraints: ConstraintTreatment | None = None

    needs: ClassVar[tuple[str, ...]] = ("rollback",)
    stops_at_events: ClassVar[bool] = True
    instead: ClassVar[str] = "Jacobi or GaussSeidel"

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_bad_differencing(self.name, self.jacobian, self.increment)
        if self.predictor is not None:
            self.refuse_bad_degree(self.predictor, "predictor")
        if self.refresh not in ("step", "run"):
            raise SetupError(f"{self.name}: refresh must be 'step' or 'run', not {self.refresh!r}")
        refuse_no_treatment(self.name, self.constraints)

    def for_linearisation(self) -> SemiImplicit:
        return replace(self, refresh="run")

    @property
    def depth(self) -> int:
        return max(self.degree, self.predictor or 0, 1)

    def bind(self, crew: Crew) -> MacroStep:
        plan = crew.plan
        treatment = treatment_for(plan, self.constraints)
        newtons = [Newton(self.refresh) for _ in variants(plan, treatment, 1.0)]
        # largest magnitudes so far; step and degree for which the Jacobian was made
        held = SimpleNamespace(size=plan.z_nominal.copy(), shape=None)
        guess_degree = self.degree if self.predictor is None else self.predictor
        parts: Sequence[tuple[float, Plan]] = ()  # the interface problems for the present step size

        def step(history: History, window: Window) -> Outcome:
            nonlocal parts
            # 1 predictor: extrapolated end values, on the corrector's nodes so that perturbed runs share them
            trial = Trial(crew, history, window, self.degree, self.jacobian, self.increment, held.size)
            z_p = end_values(history.extrapolate(guess_degree, window.H))
            shape = (window.H, len(trial.weight))
            if held.shape != shape or not parts:
                parts = variants(plan, treatment, window.H)
                if treatment is not None and held.shape is None:
                    treatment.refuse_unstable(self.degree, window.H)
            # 2 corrected coupling variables: one Newton step (the mean of several for weighted multipliers)
            y_p = trial.run(z_p)
            corrected = []
            for newton, (_, combined) in zip(newtons, parts, strict=True):
                if held.shape != shape:
                    newton.start_run(plan.z_labels)
                newton.start_step()
                trial.plan = combined
                corrected.append(newton.correct(z_p, combined.residual(z_p, y_p), trial) if plan.n_z else z_p)
            held.shape = shape
            z = corrected[0] if len(parts) == 1 else weighted_mean(parts, corrected)
            if treatment is not None:
                z = treatment.relax(plan, z, history.newest)
            # 3 corrector: the same step again
            y = trial.run(z)
            np.maximum(held.size, np.abs(z), out=held.size)
            residual = parts[0][1].residual(z, y)
            if self.final_update:
                z = plan.evaluate(y, z)
            return Outcome(
                y,
                z,
                z_p,
                history.extrapolation_degree(guess_degree),
                iterations=1,
                residual=float(np.abs(residual).max(initial=0.0)),
            )

        return Remembering(step, *newtons, held)


def refuse_bad_differencing(name: str, jacobian: str, increment: float) -> None:
    """Check the arguments that semi-implicit and implicit methods share."""
    if jacobian not in ("auto", "difference"):
        raise SetupError(f"{name}: jacobian must be 'auto' or 'difference', not {jacobian!r}")
    if not (is_number(increment) and increment > 0):
        raise SetupError(f"{name}: increment must be a positive number, not {increment!r}")
