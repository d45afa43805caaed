"""Implicit coupling: the correction is repeated until the interface residual meets its tolerance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from cosolve.basics.checks import choice, is_number, positive
from cosolve.corrector import Corrector, Newton
from cosolve.errors import SetupError
from cosolve.interface.plan import Plan
from cosolve.method.base import JacobianSource, Local, Method, Norm, Script, SignalName
from cosolve.method.constraint import ConstraintTreatment, refuse_no_treatment
from cosolve.method.explicit import serial_sweep
from cosolve.method.order import checked_order, unknown_in_order
from cosolve.method.semi_implicit import refuse_bad_differencing
from cosolve.subsystem.base import has_capability
from cosolve.verbs import (
    accept,
    agreed,
    another_problem,
    asked,
    corrected,
    ending_in,
    met,
    note_residual,
    predicted,
    remember,
    residual,
    rewind,
    sweep,
    tried,
    used,
)


def implicit(m: Any, o: Implicit) -> Any:
    """The macro step: from the first guess on, correct and cross again until the residual meets its tolerance."""
    guess = predicted(m, o.guess)
    while another_problem(m):
        z = attempt(m, o, guess)
        r = residual(m, z)
        while not met(m, z, r, o.tol, o.max_iterations, o.accept_unconverged):
            z = attempt(m, o, corrected(m, z, r))
            r = residual(m, z)
        accept(m, z)
    z = attempt(m, o, agreed(m))
    remember(m, z)
    note_residual(m, residual(m, z))
    return asked(m)


def attempt(m: Any, o: Implicit, z: Any) -> Any:
    """All subsystems cross the step with signals that end in `z`; the values in which they really ended."""
    if not tried(m, z):
        rewind(m)
        if o.serial:
            serial_sweep(m, ending_in(m, z))
            return used(m, z)
        sweep(m, ending_in(m, z))
    return z


@dataclass(frozen=True)
class Implicit(Method):
    """Iterate each macro step until every residual is below `tol` times the size of its coupling variable.

    The size of a variable is the largest magnitude seen in the run, at least the nominal value of its port; user
    equations are measured against 1, and with `absolute=True` everything is. `atol` adds absolute tolerances for single
    coupling variables (`{"left.force": 1e-3}`) or for all of them, whichever of the two is looser. A residual that
    stands still within the rounding of its own evaluation counts as converged. An iteration that keeps its Jacobian and
    does not converge in `max_iterations` begins again with one Jacobian per correction (such steps are counted in
    `result.stats.renewed`); what does not converge then either stops the run. `accept_unconverged` says to go on
    instead, without a second attempt (such steps are counted in `result.stats.unconverged`).

    `sweep="gauss-seidel"` runs the subsystems one after the other (in `order`) with the newest values; it works with
    correctors that need no Jacobian. `degree` is the polynomial between macro points (0 holds the end value, 1 is a
    ramp), `predictor` the degree of the first guess (default: the same).

    `norm="fields"` measures vector ports as a whole: the Euclidean norm of their residual must be below `tol` times
    that of their *present* values (and `atol` is a root mean square), as field solvers are usually coupled. Entries
    that are nearly zero, at a clamped end, or values that were large once, then count for what they are.

    `local="one_step"` lets subsystems that can (field solvers) take one step of their own Newton iteration per
    interface iteration, so that both converge together; what is left of their equations then counts in the tolerance
    (docs/theory.md, "Implicit"). `local="output_equation"` is the enhanced method as Sicklinger (2014) prints
    it (Algorithm 4.4): cheaper still, and on nonlinear subsystems *not* convergent to the coupled solution.
    `constraints` says how multipliers of rigid joints are found and `signal` how signals are drawn, see `SemiImplicit`.

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
        if not (is_number(self.max_iterations) and self.max_iterations >= 1):
            raise SetupError(f"Implicit: max_iterations must be at least 1, not {self.max_iterations!r}")
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
        able = [has_capability(s, "approximate crossing") for s in plan.subsystems]
        if self.local != "converged" and not any(able):
            return [
                f"Implicit(local={self.local!r}) needs a subsystem with an approximate crossing (resolve), such as "
                "SecondOrder, and none has one; use local='converged'"
            ]
        return unknown_in_order(self.name, self.order, plan) or super().complaints(plan)

    @property
    def guess(self) -> int:
        """The degree of the first guess."""
        return self.degree if self.predictor is None else self.predictor

    @property
    def serial(self) -> bool:
        """Whether the subsystems cross the step one after the other."""
        return self.sweep == "gauss-seidel"

    @property
    def script(self) -> Script:
        return Script(
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
