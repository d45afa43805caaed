"""Explicit co-simulation: Jacobi, Gauss-Seidel and Gauss-Seidel master/slave (spec: cosimulation 2.5-2.7).

No macro step is repeated, so any subsystem can take part. Outputs are by default those a subsystem computed with the
inputs it actually used ("as used", mode a of spec 2.4); `outputs="exchanged"` re-evaluates them after the exchange
(mode b), which gains one local order where outputs have direct feed-through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from cosolve.basics.arrays import Vector
from cosolve.engine.readable.crew import Crew, Window
from cosolve.engine.readable.serial import Serial, checked_order, in_order, listed, unknown_in_order
from cosolve.errors import SetupError
from cosolve.interface.plan import Plan
from cosolve.method.base import MacroStep, Method, Outcome
from cosolve.signal import History
from cosolve.subsystem.base import has_capability

OutputMode = Literal["as used", "exchanged"]


@dataclass(frozen=True)
class _Explicit(Method):
    outputs: OutputMode = "as used"

    explicit: ClassVar[bool] = True
    lags: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.outputs not in ("as used", "exchanged"):
            raise SetupError(f"{self.name}: outputs must be 'as used' or 'exchanged', not {self.outputs!r}")

    def complaints(self, plan: Plan) -> list[str]:
        found = super().complaints(plan)
        if self.outputs == "exchanged":
            stuck = [name for name, s in zip(plan.names, plan.subsystems, strict=True) if s.overshoots]
            if stuck:
                found.append(
                    f"{self.name} with outputs='exchanged' re-evaluates outputs at the macro point, which '{stuck[0]}' "
                    "has overshot; use outputs='as used'"
                )
        return found

    def _finish(self, crew: Crew, window: Window, y: Vector, z: Vector) -> tuple[Vector, Vector]:
        z = crew.plan.evaluate(y, z)
        return crew.settle(window.t1, y, z) if self.outputs == "exchanged" else (y, z)


@dataclass(frozen=True)
class Jacobi(_Explicit):
    """All subsystems cross the step at the same time with extrapolated inputs.

    >>> import cosolve as cs
    >>> cs.Jacobi(degree=2).label
    'Jacobi(2)'
    """

    stops_at_events: ClassVar[bool] = True

    def bind(self, crew: Crew) -> MacroStep:
        def step(history: History, window: Window) -> Outcome:
            coefficients, predicted = history.predict(self.degree, window.H)
            y = crew.sweep(window, coefficients)
            y, z = self._finish(crew, window, y, predicted)
            return Outcome(y, z, predicted, len(coefficients) - 1)

        return step


@dataclass(frozen=True)
class GaussSeidel(_Explicit):
    """One subsystem after the other; those that come later get interpolated inputs from those that ran.

    `order` names the subsystems in the order of running (those not named follow in the system's order).

    >>> import cosolve as cs
    >>> cs.GaussSeidel(degree=1, order=["two", "one"]).order
    ('two', 'one')
    """

    stops_at_events: ClassVar[bool] = True

    order: Sequence[str] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "order", checked_order(self.name, self.order))

    def complaints(self, plan: Plan) -> list[str]:
        return unknown_in_order(self.name, self.order, plan) or super().complaints(plan)

    def bind(self, crew: Crew) -> MacroStep:
        serial = Serial(crew, in_order(crew.plan, self.order))

        def step(history: History, window: Window) -> Outcome:
            coefficients, predicted = history.predict(self.degree, window.H)
            y, z = serial.run(window, coefficients, *history.interpolation(self.degree, window.H))
            y, z = self._finish(crew, window, y, z)
            return Outcome(y, z, predicted, len(coefficients) - 1)

        return step


@dataclass(frozen=True)
class MasterSlave(_Explicit):
    """Gauss-Seidel in which the macro step is one internal step of the `master` (spec 2.7).

    The master goes first with extrapolated inputs and publishes only accepted steps; the others follow with inputs
    interpolated from it. The smallest error and the most exchanges of all explicit methods.

    >>> import cosolve as cs
    >>> cs.MasterSlave(degree=2, master="pump").label
    'MasterSlave(2)'
    """

    master: str = ""
    order: Sequence[str] = ()

    chooses_step: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "order", checked_order(self.name, self.order))

    def complaints(self, plan: Plan) -> list[str]:
        if self.master not in plan.names:
            return [
                f"MasterSlave: master={self.master!r} is not among the subsystems {listed(plan.names)}; "
                "name the one whose steps the others follow"
            ]
        if unknown := unknown_in_order(self.name, self.order, plan):
            return unknown
        master = plan.subsystems[plan.names.index(self.master)]
        if not has_capability(master, "own steps"):
            return [
                f"MasterSlave follows the internal steps of its master, but '{self.master}' "
                f"({type(master).__name__}) has none to offer; use an Ode with a fixed-step solver or 'dopri5' "
                "as master, or GaussSeidel"
            ]
        return super().complaints(plan)

    def bind(self, crew: Crew) -> MacroStep:
        plan = crew.plan
        sequence = in_order(plan, (self.master, *self.order))
        first = sequence[0]
        serial = Serial(crew, sequence)

        def step(history: History, limit: Window) -> Outcome:
            degree = history.extrapolation_degree(self.degree)
            usual = history.steps[0] if history.steps else limit.H  # a length to measure time in
            ahead = Window(limit.t0, limit.t1, usual)
            t1, y_master = crew.own_step(first, ahead, history.extrapolate(degree, usual))
            H = t1 - limit.t0
            H = usual if abs(H - usual) < 1e-9 * usual else H  # equal steps stay equal, whatever the rounding of times
            window = Window(limit.t0, t1, H)
            coefficients, predicted = history.predict(degree, window.H)
            nodes = history.interpolation(self.degree, window.H)
            y, z = serial.run(window, coefficients, *nodes, {first: y_master})
            y, z = self._finish(crew, window, y, z)
            return Outcome(y, z, predicted, degree, t1=t1, H=H)

        return step
