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
from cosolve.method.base import Declaration, JacobianSource, Method, Proposal, SignalName
from cosolve.method.constraint import ConstraintTreatment, refuse_no_treatment
from cosolve.operations import (
    accept,
    accepted,
    another_problem,
    corrected_again,
    coupling_from_outputs,
    ending_in,
    minus,
    newton_step,
    predicted,
    record_residual,
    record_scales,
    residual,
    residual_too_large,
    rollback,
    sweep,
)


def semi_implicit(m: Any, o: SemiImplicit) -> Any:
    """The macro step: predictor, one Newton step, corrector."""
    z_p = predicted(m, o.guess)
    sweep(m, ending_in(m, z_p))  # on the corrector's nodes, so that perturbed runs share them
    while another_problem(m):
        accept(m, minus(m, z_p, newton_step(m, residual(m, z_p))))
    z = accepted(m)
    rollback(m)
    sweep(m, ending_in(m, z))
    r = residual(m, z)
    while o.repeat and residual_too_large(m, z, r):
        z = corrected_again(m, z, r)
        rollback(m)
        sweep(m, ending_in(m, z))
        r = residual(m, z)
    record_residual(m, r)
    record_scales(m, z)
    return coupling_from_outputs(m) if o.final_update else z


@dataclass(frozen=True)
class SemiImplicit(Method):
    """Semi-implicit predictor/corrector coupling: one correction per macro step.

    A predictor run with extrapolated coupling variables, the interface Jacobian, one Newton step, and a run with the
    corrected values. Every subsystem needs rollback.

    Parameters
    ----------
    degree : int, default 1
        Degree of the polynomials through the coupling variables, 0 to 2 with `signal="bdf"`. For stiff couplings of
        first order degree 1 rings and degree 2 is unstable; use `signal="bdf"` there.
    final_update : bool, default True
        Evaluate laws and connections once more with the corrected outputs at the end of the step.
    signal : {"lagrange", "bdf", "collocation", "radau"}, default "lagrange"
        How coupling variables vary inside a step. "lagrange": polynomial through their values at macro points. "bdf":
        backward differences of order `degree + 1`, which damp stiff couplings of first order. "collocation" (order 2)
        and "radau" (order 3): the coupling equations hold at two points of the step, with twice the unknowns and
        subsystem steps; they need `degree=1`.
    jacobian : {"auto", "difference"}, default "auto"
        "auto" uses the `jacobian` method of subsystems that have one and difference quotients for the others;
        "difference" perturbs always.
    increment : float, default 1e-5
        Increment of the difference quotients, relative to the size of a coupling variable.
    predictor : int or None, default None
        Degree of the first guess; None is `degree`. On linear systems the result does not depend on it.
    refresh : {"step", "run"}, default "step"
        "run" keeps the interface Jacobian as long as step and degree stay the same. Exact for linear systems, less
        accurate for others.
    constraints : ConstraintTreatment or None, default None
        Treatment of algebraic constraints (rigid joints): `Baumgarte()`, which is the default, `WeightedMultipliers()`
        or `StabilisedIndex2()`.
    repeat : bool, default True
        Repeat a correction that leaves more than 2 % of a variable's size, or more than a tenth of the residual at the
        start of the step: first with a new Jacobian, then by secants. What is left after that counts in the error
        estimate of `Adaptive`; with a fixed step the run stops. False makes exactly one correction.

    Raises
    ------
    ConvergenceError
        During a run with a fixed step, if repeated corrections leave a large residual.

    Notes
    -----
    With the interface residual `r(z)` of the predicted coupling variables `z_p` and its Jacobian `G = dr/dz`, the
    corrected ones are::

        z = z_p - G(z_p)^-1 r(z_p).

    For linear systems this is the fully implicit method.

    References
    ----------
    .. [1] B. Schweizer, D. Lu, Semi-implicit co-simulation approach for solver coupling, Archive of Applied Mechanics
       84, 2014, 3.6.
    .. [2] D. Lu, Semi-implizite Co-Simulationsverfahren, dissertation, Technical University of Darmstadt, 2015, 2.2.6.

    Examples
    --------
    >>> import cosolve as cs
    >>> cs.SemiImplicit(degree=2).needs
    ('rollback',)
    """

    jacobian: JacobianSource = "auto"
    increment: float = 1e-5
    final_update: bool = True  # type: ignore[misc]  # an option here, a constant of other methods
    predictor: int | None = None
    refresh: Literal["step", "run"] = "step"
    constraints: ConstraintTreatment | None = None
    repeat: bool = True
    signal: SignalName = "lagrange"  # type: ignore[misc]  # an option here, a constant of other methods

    needs: ClassVar[tuple[str, ...]] = ("rollback",)
    stops_at_events: ClassVar[bool] = True
    instead: ClassVar[str] = "Jacobi or GaussSeidel"
    proposals: ClassVar[tuple[Proposal, ...]] = (
        Proposal("map", 30, {"degree": 1}),
        Proposal("check", 10, {"degree": 1}),
        Proposal("check", 11, {"degree": 2}),
        Proposal("check", 12, {"degree": 0}),
        Proposal("check", 13, {"degree": 1, "signal": "bdf"}),
        Proposal("check", 14, {"degree": 2, "signal": "bdf"}),
        Proposal("check", 15, {"degree": 1, "signal": "collocation"}),
        Proposal("corrected", 10, {"degree": 2}),
        Proposal("damped", 10, {"degree": 2, "signal": "bdf"}),  # stiff first-order couplings ask for signals that damp
        Proposal("damped", 11, {"degree": 0}),
    )

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
        """Degree of the first guess."""
        return self.degree if self.predictor is None else self.predictor

    @property
    def declaration(self) -> Declaration:
        return Declaration(
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
