"""Semi-implicit predictor/corrector coupling (Schweizer and Lu; spec: applied-force ch. 2, semi-implicit ch. 2).

Predictor run with extrapolated coupling variables, perturbed runs (or exact Jacobians) for the interface Jacobian, one
Newton step, one corrected run. For linear systems that equals the fully implicit method.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from cosolve.corrector import Newton
from cosolve.errors import SetupError
from cosolve.method.base import MacroStep, Method, Outcome
from cosolve.method.crew import Crew, Window
from cosolve.method.trial import JacobianSource, Trial
from cosolve.signal import History
from cosolve.subsystem.port import is_number


@dataclass(frozen=True)
class SemiImplicit(Method):
    """One correction per macro step.

    `jacobian`: `"auto"` takes exact Jacobians where subsystems have them and differences elsewhere, `"difference"`
    perturbs always; `increment` is the relative increment of the differences. `final_update` recomputes the coupling
    variables of laws and connections from the corrected outputs (Eqs. 14, 88). `predictor` is the degree of the first
    guess (default: `degree`); on linear systems the result does not depend on it. `refresh="run"` keeps the Jacobian as
    long as step and degree stay the same: exact for linear systems, cheaper and less accurate for others.

    >>> import cosolve as cs
    >>> cs.SemiImplicit(degree=2).needs
    ('rollback',)
    """

    jacobian: JacobianSource = "auto"
    increment: float = 1e-5
    final_update: bool = True
    predictor: int | None = None
    refresh: Literal["step", "run"] = "step"

    needs: ClassVar[tuple[str, ...]] = ("rollback",)
    instead: ClassVar[str] = "Jacobi or GaussSeidel"

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_bad_differencing(self.name, self.jacobian, self.increment)
        if self.predictor is not None:
            self.refuse_bad_degree(self.predictor, "predictor")
        if self.refresh not in ("step", "run"):
            raise SetupError(f"{self.name}: refresh must be 'step' or 'run', not {self.refresh!r}")

    def for_linearisation(self) -> SemiImplicit:
        return replace(self, refresh="run")

    def bind(self, crew: Crew) -> MacroStep:
        plan = crew.plan
        newton = Newton(self.refresh)
        size = plan.z_nominal.copy()  # largest magnitudes so far
        shape: tuple[float, int] | None = None  # step and degree for which the Jacobian was made
        guess_degree = self.degree if self.predictor is None else self.predictor

        def step(history: History, window: Window) -> Outcome:
            # 1 predictor: extrapolated end values, on the corrector's nodes so that perturbed runs share them
            nonlocal shape
            trial = Trial(crew, history, window, self.degree, self.jacobian, self.increment, size)
            z_p = history.extrapolate(guess_degree, window.H).sum(axis=0)
            # 2 corrected coupling variables: one Newton step
            if shape != (shape := (window.H, len(trial.weight))):
                newton.start_run(plan.z_labels)
            newton.start_step()
            r_p = trial.residual(z_p)
            z = newton.correct(z_p, r_p, trial) if plan.n_z else z_p
            # 3 corrector: the same step again
            y = trial.run(z)
            np.maximum(size, np.abs(z), out=size)
            residual = plan.residual(z, y)
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

        return step


def refuse_bad_differencing(name: str, jacobian: str, increment: float) -> None:
    """Check the arguments that semi-implicit and implicit methods share."""
    if jacobian not in ("auto", "difference"):
        raise SetupError(f"{name}: jacobian must be 'auto' or 'difference', not {jacobian!r}")
    if not (is_number(increment) and increment > 0):
        raise SetupError(f"{name}: increment must be a positive number, not {increment!r}")
