"""Implicit coupling: the correction is repeated until the interface residual meets its tolerance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from cosolve.basics.checks import choice, is_number, positive, whole
from cosolve.corrector import Corrector, Newton
from cosolve.errors import SetupError
from cosolve.interface.plan import Plan
from cosolve.method.base import Declaration, JacobianSource, Local, Method, Norm, Proposal, SignalName
from cosolve.method.constraint import ConstraintTreatment, refuse_no_treatment
from cosolve.method.explicit import checked_order, serial_sweep, unknown_in_order
from cosolve.method.semi_implicit import refuse_bad_differencing
from cosolve.operations import (
    accept,
    accepted,
    already_evaluated,
    another_problem,
    converged,
    corrected,
    coupling_from_outputs,
    end_values,
    ending_in,
    predicted,
    record_residual,
    record_scales,
    residual,
    rollback,
    sweep,
)
from cosolve.subsystem.base import has_capability


def implicit(m: Any, o: Implicit) -> Any:
    """The macro step: from the first guess on, correct and advance again until the residual meets its tolerance."""
    guess = predicted(m, o.guess)
    while another_problem(m):
        z = attempt(m, o, guess)
        r = residual(m, z)
        while not converged(m, z, r, o.tol, o.max_iterations, o.accept_unconverged):
            z = attempt(m, o, corrected(m, z, r))
            r = residual(m, z)
        accept(m, z)
    z = attempt(m, o, accepted(m))
    record_scales(m, z)
    record_residual(m, residual(m, z))
    return coupling_from_outputs(m)


def attempt(m: Any, o: Implicit, z: Any) -> Any:
    """All subsystems advance over the step with signals that end in `z`; the values in which they really ended."""
    if not already_evaluated(m, z):
        rollback(m)
        if o.serial:
            serial_sweep(m, ending_in(m, z))
            return end_values(m, z)
        sweep(m, ending_in(m, z))
    return z


@dataclass(frozen=True)
class Implicit(Method):
    """Implicit coupling: each macro step is repeated until the interface residual meets its tolerance.

    Every subsystem needs rollback.

    Parameters
    ----------
    degree : int, default 1
        Degree of the polynomials through the coupling variables: 0 holds the end value over the step, 1 is a straight
        line.
    signal : {"lagrange", "bdf", "collocation", "radau"}, default "lagrange"
        How coupling variables vary inside a step, see `SemiImplicit`.
    tol : float, default 1e-10
        Relative tolerance: each residual must be below `tol` times the size of its coupling variable.
    max_iterations : int, default 50
        Largest number of corrections per macro step. A corrector that keeps its Jacobian then starts again with one
        Jacobian per correction (counted in `stats.renewed`); if that fails too, the run stops.
    corrector : Corrector, default Newton(refresh="step")
        Solver of the interface equations.
    sweep : {"jacobi", "gauss-seidel"}, default "jacobi"
        Whether the subsystems advance in parallel or one after the other with the newest values. "gauss-seidel" needs a
        corrector without a Jacobian.
    order : sequence of str, optional
        Names of the subsystems in the order of serial sweeps. Those that are not named follow in the order of the
        system.
    jacobian : {"auto", "difference"}, default "auto"
        Source of interface Jacobians, see `SemiImplicit`.
    increment : float, default 1e-5
        Increment of difference quotients, relative to the size of a coupling variable.
    absolute : bool, default False
        Measure all residuals against 1 instead of the size of the coupling variables.
    accept_unconverged : bool, default False
        Continue with steps that did not converge, without a second attempt (counted in `stats.unconverged`), instead of
        stopping the run.
    constraints : ConstraintTreatment or None, default None
        Treatment of algebraic constraints, see `SemiImplicit`.
    local : {"converged", "one_step", "output_equation"}, default "converged"
        How far subsystems with the capability "approximate step" (`resolve`) solve their own equations per
        interface iteration. "one_step" takes one step of their Newton iteration, so that both iterations converge
        together; what is left of their equations then counts in the tolerance. "output_equation" is Algorithm 4.4 of
        [1]_ as printed: cheaper, and on nonlinear subsystems it does *not* converge to the coupled solution.
    predictor : int or None, default None
        Degree of the first guess; None is `degree`.
    atol : float or mapping, default 0.0
        Absolute tolerances in the units of the coupling variables: one for all, or by name as in `{"left.force":
        1e-3}`. The looser one of `tol` and `atol` counts.
    norm : {"entries", "fields"}, default "entries"
        "fields" measures a vector port as a whole: the Euclidean norm of its residual against `tol` times that of its
        *present* values, and `atol` as a root mean square, as is usual for field solvers. With `absolute` the root mean
        square of its residual is measured against `tol` in its own unit (Eq. 2.83 of [1]_).

    Raises
    ------
    ConvergenceError
        During a run, if a step does not converge and `accept_unconverged` is False.

    Notes
    -----
    The size of a coupling variable is the largest magnitude seen in the run, at least the nominal value of its port.
    Residuals of user equations are measured by what is added up in them. A residual that no longer decreases within the
    rounding of its own evaluation counts as converged.

    References
    ----------
    .. [1] S. A. Sicklinger, Stabilized co-simulation of coupled problems including fields and signals, dissertation,
       Technical University of Munich, 2014.

    Examples
    --------
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
    norm: Norm = "entries"
    signal: SignalName = "lagrange"  # type: ignore[misc]  # an option here, a constant of other methods

    needs: ClassVar[tuple[str, ...]] = ("rollback",)
    stops_at_events: ClassVar[bool] = True
    instead: ClassVar[str] = "Jacobi or GaussSeidel"
    proposals: ClassVar[tuple[Proposal, ...]] = (
        Proposal("map", 40, {"degree": 1}),
        Proposal("other", 40, {"degree": 1}),
        Proposal("other", 41, {"degree": 0}),
        Proposal("reference", 10, {"degree": 2}),
        Proposal("iterated", 10, {"degree": 2}),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_bad_differencing(self.name, self.jacobian, self.increment)
        object.__setattr__(self, "order", checked_order(self.name, self.order))
        if not isinstance(self.corrector, Corrector):
            raise SetupError(f"Implicit: corrector must be a Corrector such as Newton(), not {self.corrector!r}")
        positive("Implicit", "tol", self.tol)
        if self.predictor is not None:
            self.refuse_bad_degree(self.predictor, "predictor")
        for allowed in self.atol.values() if isinstance(self.atol, Mapping) else [self.atol]:
            if not (is_number(allowed) and allowed >= 0):
                raise SetupError(f"Implicit: atol must be numbers of at least 0, not {self.atol!r}")
        whole("Implicit", "max_iterations", self.max_iterations)
        refuse_no_treatment(self.name, self.constraints)
        choice("Implicit", "sweep", self.sweep, ("jacobi", "gauss-seidel"))
        choice("Implicit", "norm", self.norm, ("entries", "fields"))
        choice("Implicit", "local", self.local, ("converged", "one_step", "output_equation"))
        if self.sweep == "gauss-seidel" and self.local != "converged":
            raise SetupError("Implicit: serial sweeps solve every subsystem fully; use sweep='jacobi' with this local")
        if self.sweep == "gauss-seidel" and self.corrector.uses_jacobian:
            raise SetupError(
                f"Implicit: {self.corrector!r} needs the interface Jacobian, which belongs to parallel sweeps; use "
                "sweep='jacobi', or a corrector that works without one"
            )

    def complaints(self, plan: Plan) -> list[str]:
        able = [has_capability(s, "approximate step") for s in plan.subsystems]
        if self.local != "converged" and not any(able):
            return [
                f"Implicit(local={self.local!r}) needs a subsystem with an approximate step (resolve), such as "
                "SecondOrder, and none has one; use local='converged'"
            ]
        return unknown_in_order(self.name, self.order, plan) or super().complaints(plan)

    @property
    def guess(self) -> int:
        """Degree of the first guess."""
        return self.degree if self.predictor is None else self.predictor

    @property
    def noise(self) -> float:  # type: ignore[override]  # of an instance
        """Relative accuracy to which a macro step is solved."""
        return self.tol

    @property
    def serial(self) -> bool:  # type: ignore[override]  # of an instance
        """True if the subsystems advance one after the other."""
        return self.sweep == "gauss-seidel"

    @property
    def declaration(self) -> Declaration:
        return Declaration(
            implicit,
            self.guess,
            order=self.order,
            serial=self.serial,
            corrector=self.corrector,
            jacobian=self.jacobian,
            increment=self.increment,
            constraints=self.constraints,
            local=self.local,
            tol=self.tol,
            atol=self.atol,
            absolute=self.absolute,
            norm=self.norm,
        )
