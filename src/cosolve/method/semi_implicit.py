"""Semi-implicit predictor/corrector coupling (Schweizer and Lu (2014), 3.6; Lu (2015), 2.2.6).

Predictor run with extrapolated coupling variables, perturbed runs (or exact Jacobians) for the interface Jacobian, one
Newton step, one corrected run. For linear systems that equals the fully implicit method. A correction that leaves too
much of the residual (a kink, a step that is too long) is repeated; where that does not help, the step is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from cosolve.basics.checks import choice, flag, positive
from cosolve.corrector import Newton
from cosolve.method.base import JacobianSource, Method, Script, SignalName
from cosolve.method.constraint import ConstraintTreatment, refuse_no_treatment
from cosolve.verbs import (
    accept,
    agreed,
    another_problem,
    asked,
    ending_in,
    left_too_much,
    minus,
    note_residual,
    predicted,
    remember,
    repeated,
    residual,
    rewind,
    solved,
    sweep,
)


def semi_implicit(m: Any, o: SemiImplicit) -> Any:
    """The macro step: predictor, one Newton step, corrector."""
    z_p = predicted(m, o.guess)
    sweep(m, ending_in(m, z_p))  # on the corrector's nodes, so that perturbed runs share them
    while another_problem(m):
        accept(m, minus(m, z_p, solved(m, residual(m, z_p))))
    z = agreed(m)
    rewind(m)
    sweep(m, ending_in(m, z))
    r = residual(m, z)
    while o.repeat and left_too_much(m, z, r):
        z = repeated(m, z, r)
        rewind(m)
        sweep(m, ending_in(m, z))
        r = residual(m, z)
    note_residual(m, r)
    remember(m, z)
    return asked(m) if o.final_update else z


@dataclass(frozen=True)
class SemiImplicit(Method):
    """One correction per macro step.

    `jacobian`: `"auto"` takes exact Jacobians where subsystems have them and differences elsewhere, `"difference"`
    perturbs always; `increment` is the relative increment of the differences. `final_update` recomputes the coupling
    variables of laws and connections from the corrected outputs (Eqs. 14, 88). `predictor` is the degree of the first
    guess (default: `degree`); on linear systems the result does not depend on it. `refresh="run"` keeps the Jacobian as
    long as step and degree stay the same: exact for linear systems, cheaper and less accurate for others.
    `signal="bdf"` draws signals by backward differences (order `degree + 1`, degree 0 to 2; `signal/bdf.py`): stiff
    couplings of first-order subsystems (heat, circuits, tanks) are damped then, where `"lagrange"` rings or grows.
    `"collocation"` (order 2, also for stiff spring laws) and `"radau"` (order 3) solve the coupling equations at two
    points of the step, with twice the unknowns and subsystem steps (`signal/collocation.py`).
    `constraints` says how multipliers of rigid joints are found: `Baumgarte()` (default), `WeightedMultipliers()` or
    `StabilisedIndex2()`. A correction that leaves more than 2 % of a variable's size, or more than a tenth of what the
    step began with, is repeated: with a new Jacobian, then by secants. What is left after that counts in the estimate
    of `Adaptive`, which repeats the step with a shorter one; with a fixed step the run stops with a `ConvergenceError`.
    `repeat=False` makes exactly one correction per step, whatever it leaves (`result.residual`).

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
    repeat: bool = True
    signal: SignalName = "lagrange"  # type: ignore[misc]  # an option here, a constant of other methods

    needs: ClassVar[tuple[str, ...]] = ("rollback",)
    stops_at_events: ClassVar[bool] = True
    instead: ClassVar[str] = "Jacobi or GaussSeidel"

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_bad_differencing(self.name, self.jacobian, self.increment)
        if self.predictor is not None:
            self.refuse_bad_degree(self.predictor, "predictor")
        choice(self.name, "refresh", self.refresh, ("step", "run"))
        flag(f"{self.name}: repeat", self.repeat)
        refuse_no_treatment(self.name, self.constraints)

    def for_linearisation(self) -> SemiImplicit:
        return replace(self, refresh="run")

    @property
    def guess(self) -> int:
        """The degree of the first guess."""
        return self.degree if self.predictor is None else self.predictor

    @property
    def script(self) -> Script:
        return Script(
            semi_implicit,
            self.guess,
            corrector=Newton(self.refresh),
            jacobian=self.jacobian,
            increment=self.increment,
            constraints=self.constraints,
        )


def refuse_bad_differencing(name: str, jacobian: str, increment: float) -> None:
    """Check the arguments that semi-implicit and implicit methods share."""
    choice(name, "jacobian", jacobian, ("auto", "difference"))
    positive(name, "increment", increment)
