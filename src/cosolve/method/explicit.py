"""Explicit co-simulation: Jacobi, Gauss-Seidel and leader/follower (Schmoll (2015), 2.4.1-2.4.2).

No macro step is repeated, so any subsystem can take part. Outputs are by default those a subsystem computed with the
inputs it actually used ("as_used"; docs/theory.md, "Explicit methods"); `outputs="exchanged"` re-evaluates them after
the exchange, which gains one local order where outputs have direct feed-through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from cosolve.basics.checks import choice
from cosolve.basics.wording import listed
from cosolve.interface.plan import Plan
from cosolve.method.base import Method, Script, Text
from cosolve.method.order import checked_order, unknown_in_order
from cosolve.subsystem.base import has_capability
from cosolve.verbs import asked, cross, end_known, extrapolated, lead, open_signal, places, settled, sweep

# -- the macro steps -------------------------------------------------------------------------------------------------


def jacobi(m: Any, o: Jacobi) -> Any:
    """All subsystems at the same time, with extrapolated inputs."""
    sweep(m, extrapolated(m, o.degree))
    return asked(m)


def gauss_seidel(m: Any, o: GaussSeidel | LeaderFollower) -> Any:
    """One subsystem after the other, with extrapolated inputs where nothing better is known."""
    serial_sweep(m, extrapolated(m, o.degree))
    return asked(m)


def serial_sweep(m: Any, given: Any) -> None:
    """Whoever comes later gets interpolated inputs from those that have crossed the step."""
    signal = open_signal(m, given)
    for place in places(m):
        cross(m, place, signal)
        end_known(m, place, signal)


def leader_follower(m: Any, o: LeaderFollower) -> Any:
    """The leader goes first, as far as its own step takes it; the others follow with inputs interpolated from it."""
    lead(m, o.degree)
    return gauss_seidel(m, o)


def exchanged(text: Text) -> Text:
    """The same macro step with outputs evaluated again after the exchange."""

    def step(m: Any, o: Any) -> Any:
        return settled(m, text(m, o))

    return step


# -- the methods -----------------------------------------------------------------------------------------------------

OutputMode = Literal["as_used", "exchanged"]


@dataclass(frozen=True)
class _Explicit(Method):
    outputs: OutputMode = "as_used"

    explicit: ClassVar[bool] = True
    lags: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        choice(self.name, "outputs", self.outputs, ("as_used", "exchanged"))

    def complaints(self, plan: Plan) -> list[str]:
        found = super().complaints(plan)
        if self.outputs == "exchanged":
            stuck = [name for name, s in zip(plan.names, plan.subsystems, strict=True) if s.overshoots]
            if stuck:
                found.append(
                    f"{self.name} with outputs='exchanged' re-evaluates outputs at the macro point, which '{stuck[0]}' "
                    "has overshot; use outputs='as_used'"
                )
        return found

    def _script(self, text: Text, order: Sequence[str] = ()) -> Script:
        return Script(exchanged(text) if self.outputs == "exchanged" else text, self.degree, order)


@dataclass(frozen=True)
class Jacobi(_Explicit):
    """All subsystems cross the step at the same time with extrapolated inputs.

    >>> import cosolve as cs
    >>> cs.Jacobi(degree=2).label
    'Jacobi(2)'
    """

    stops_at_events: ClassVar[bool] = True
    holds_ends: ClassVar[bool] = False

    @property
    def script(self) -> Script:
        return self._script(jacobi)


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

    @property
    def script(self) -> Script:
        return self._script(gauss_seidel, self.order)


@dataclass(frozen=True)
class LeaderFollower(_Explicit):
    """Gauss-Seidel in which the macro step is one internal step of the `leader` (Schmoll (2015), 2.4.2.2).

    The leader goes first with extrapolated inputs and publishes only accepted steps; the others follow with inputs
    interpolated from it. The smallest error and the most exchanges of all explicit methods.

    >>> import cosolve as cs
    >>> cs.LeaderFollower(degree=2, leader="pump").label
    'LeaderFollower(2)'
    """

    leader: str = ""
    order: Sequence[str] = ()

    chooses_step: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "order", checked_order(self.name, self.order))

    def complaints(self, plan: Plan) -> list[str]:
        if self.leader not in plan.names:
            return [
                f"LeaderFollower: leader={self.leader!r} is not among the subsystems {listed(plan.names)}; "
                "name the one whose steps the others follow"
            ]
        if unknown := unknown_in_order(self.name, self.order, plan):
            return unknown
        leader = plan.subsystems[plan.names.index(self.leader)]
        if not has_capability(leader, "own steps"):
            return [
                f"LeaderFollower follows the internal steps of its leader, but '{self.leader}' "
                f"({type(leader).__name__}) has none to offer; use an Ode with a fixed-step solver or 'dopri5' "
                "as leader, or GaussSeidel"
            ]
        return super().complaints(plan)

    @property
    def script(self) -> Script:
        return self._script(leader_follower, (self.leader, *self.order))


def MasterSlave(degree: int = 1, outputs: OutputMode = "as_used", master: str = "", **options: Any) -> LeaderFollower:
    """The name of `LeaderFollower` in the literature; files and results say the new one.

    >>> import cosolve as cs
    >>> cs.MasterSlave(degree=1, master="pump").leader
    'pump'
    """
    return LeaderFollower(degree, outputs, master, **options)
