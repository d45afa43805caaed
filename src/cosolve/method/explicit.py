"""Explicit co-simulation: Jacobi, Gauss-Seidel and leader/follower (Schmoll (2015), 2.4.1-2.4.2).

No macro step is repeated, so any subsystem can take part. Outputs are by default those a subsystem computed with the
inputs it actually used ("as_used"; docs/theory.md, "Explicit methods"); `outputs="exchanged"` re-evaluates them after
the exchange, which gains one local order where outputs have direct feed-through.

The order of serial sweeps is given as names of subsystems; methods take their indices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from cosolve.basics.checks import choice
from cosolve.basics.wording import listed
from cosolve.errors import SetupError
from cosolve.interface.plan import Plan
from cosolve.method.base import Declaration, Method, Proposal, StepFunction
from cosolve.operations import (
    advance,
    coupling_from_outputs,
    editable_signal,
    extrapolated,
    leader_step,
    reevaluated,
    serial_order,
    set_known_ends,
    sweep,
)
from cosolve.subsystem.base import has_capability


def in_order(plan: Plan, names: Sequence[str]) -> list[int]:
    """Indices of the named subsystems, then of all others in the order of the system."""
    place = {name: i for i, name in enumerate(plan.names)}
    return [place[name] for name in dict.fromkeys((*names, *place))]


def checked_order(method: str, order: Sequence[str]) -> tuple[str, ...]:
    """`order` as a tuple of distinct names."""
    if isinstance(order, str):
        raise SetupError(f"{method}: order is a list of subsystem names; write order=[{order!r}]")
    if len(set(order)) != len(order):
        raise SetupError(f"{method}: order {list(order)} names a subsystem twice")
    return tuple(order)


def unknown_in_order(method: str, order: Sequence[str], plan: Plan) -> list[str]:
    """A sentence for every name in `order` that is no subsystem."""
    known = set(plan.names)
    unknown = [name for name in order if name not in known]
    return [f"{method}: order names {name!r}, but the subsystems are {listed(plan.names)}" for name in unknown]


# -- the macro steps -------------------------------------------------------------------------------------------------


def jacobi(m: Any, o: Jacobi) -> Any:
    """All subsystems at the same time, with extrapolated inputs."""
    sweep(m, extrapolated(m, o.degree))
    return coupling_from_outputs(m)


def gauss_seidel(m: Any, o: GaussSeidel | LeaderFollower) -> Any:
    """One subsystem after the other, with extrapolated inputs where nothing better is known."""
    serial_sweep(m, extrapolated(m, o.degree))
    return coupling_from_outputs(m)


def serial_sweep(m: Any, given: Any) -> None:
    """Later subsystems get interpolated inputs from those that have advanced over the step."""
    signal = editable_signal(m, given)
    for place in serial_order(m):
        advance(m, place, signal)
        set_known_ends(m, place, signal)


def leader_follower(m: Any, o: LeaderFollower) -> Any:
    """The leader goes first, as far as its own step takes it; the others follow with inputs interpolated from it."""
    leader_step(m, o.degree)
    return gauss_seidel(m, o)


def exchanged(step_function: StepFunction) -> StepFunction:
    """The same macro step with outputs evaluated again after the exchange."""

    def step(m: Any, o: Any) -> Any:
        return reevaluated(m, step_function(m, o))

    return step


# -- the methods -----------------------------------------------------------------------------------------------------

OutputMode = Literal["as_used", "exchanged"]


@dataclass(frozen=True)
class _Explicit(Method):
    """Base class of the explicit methods.

    Parameters
    ----------
    degree : int, default 1
        See `Method`.
    outputs : {"as_used", "exchanged"}, default "as_used"
        See `Jacobi`.
    """

    outputs: OutputMode = "as_used"

    explicit: ClassVar[bool] = True
    lags: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        choice(self.name, "outputs", self.outputs, ("as_used", "exchanged"))

    @property
    def reevaluates(self) -> bool:  # type: ignore[override]  # of an instance
        """True if outputs are evaluated again after the exchange."""
        return self.outputs == "exchanged"

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

    def _declaration(self, step_function: StepFunction, order: Sequence[str] = ()) -> Declaration:
        return Declaration(
            exchanged(step_function) if self.outputs == "exchanged" else step_function, self.degree, order
        )


@dataclass(frozen=True)
class Jacobi(_Explicit):
    """Explicit parallel coupling: all subsystems advance at the same time with extrapolated inputs.

    Needs no capability. One `advance` per subsystem and macro step.

    Parameters
    ----------
    degree : int, default 1
        Degree of the extrapolation of the coupling variables. The global order is `degree + 1`.
    outputs : {"as_used", "exchanged"}, default "as_used"
        Which outputs count at a macro point: those computed with the extrapolated inputs, or those evaluated again with
        the exchanged inputs. "exchanged" gains one local order where outputs have direct feedthrough; it needs the
        capability "output" of such subsystems. It also solves `system.equations` that the outputs at a macro point
        determine, such as a stabilised constraint `g + 2 mu g' + mu**2 g'' = 0` of accelerations [2]_.

    Notes
    -----
    Conditionally stable: `cs.analysis.critical_step` gives the largest stable macro step of a linear system.

    References
    ----------
    .. [1] R. Schmoll, Co-Simulation und Solverkopplung, dissertation, University of Kassel, 2015, 2.4.1.
    .. [2] B. Gu, H. H. Asada, Co-simulation of algebraically coupled dynamic subsystems without disclosure of
       proprietary subsystem models, Journal of Dynamic Systems, Measurement and Control 126, 2004.

    Examples
    --------
    >>> import cosolve as cs
    >>> cs.Jacobi(degree=2).label
    'Jacobi(2)'
    """

    stops_at_events: ClassVar[bool] = True
    holds_ends: ClassVar[bool] = False
    proposals: ClassVar[tuple[Proposal, ...]] = (
        Proposal("map", 10, {"degree": 1}),
        Proposal("check", 30, {"degree": 1}),
        Proposal("check", 31, {"degree": 2}),
        Proposal("check", 32, {"degree": 0}),
        Proposal("parallel", 10, {"degree": 3}),  # above, explicit methods are not stable enough for steps worth taking
    )

    @property
    def declaration(self) -> Declaration:
        return self._declaration(jacobi)


@dataclass(frozen=True)
class GaussSeidel(_Explicit):
    """Explicit serial coupling: subsystems advance one after the other.

    The inputs of a subsystem are interpolated between old and new values of those that have advanced before it, and
    extrapolated for the others. Needs no capability.

    Parameters
    ----------
    degree : int, default 1
        Degree of the polynomials that represent the coupling variables. The global order is `degree + 1`.
    outputs : {"as_used", "exchanged"}, default "as_used"
        Which outputs count at a macro point, see `Jacobi`.
    order : sequence of str, optional
        Names of the subsystems in the order of execution. Those that are not named follow in the order of the system.

    References
    ----------
    .. [1] R. Schmoll, Co-Simulation und Solverkopplung, dissertation, University of Kassel, 2015, 2.4.2.

    Examples
    --------
    >>> import cosolve as cs
    >>> cs.GaussSeidel(degree=1, order=["two", "one"]).order
    ('two', 'one')
    """

    stops_at_events: ClassVar[bool] = True
    serial: ClassVar[bool] = True
    proposals: ClassVar[tuple[Proposal, ...]] = (
        Proposal("map", 20, {"degree": 1}),
        Proposal("check", 20, {"degree": 1}),
        Proposal("check", 21, {"degree": 2}),
        Proposal("reference", 20, {"degree": 2}),
        Proposal("serial", 10, {"degree": 3}),
    )

    order: Sequence[str] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "order", checked_order(self.name, self.order))

    def complaints(self, plan: Plan) -> list[str]:
        return unknown_in_order(self.name, self.order, plan) or super().complaints(plan)

    @property
    def declaration(self) -> Declaration:
        return self._declaration(gauss_seidel, self.order)


@dataclass(frozen=True)
class LeaderFollower(_Explicit):
    """Gauss-Seidel coupling in which a macro step is one internal step of a leading subsystem.

    The leader advances first, by one internal step of its own size, with extrapolated inputs. The others follow with
    inputs interpolated from it.

    Parameters
    ----------
    degree : int, default 1
        Degree of the polynomials that represent the coupling variables.
    outputs : {"as_used", "exchanged"}, default "as_used"
        Which outputs count at a macro point, see `Jacobi`.
    leader : str
        Name of the leading subsystem. Required in practice; it needs the capability "own steps" (`Ode` with a
        fixed-step integrator or "dopri5").
    order : sequence of str, optional
        Names of the other subsystems in the order of execution.

    Notes
    -----
    Known in the literature as master-slave coupling. Of the explicit methods it has the smallest error and the largest
    number of data exchanges. `simulate` needs no `step`; a number limits its steps.

    References
    ----------
    .. [1] R. Schmoll, Co-Simulation und Solverkopplung, dissertation, University of Kassel, 2015, 2.4.2.2.

    Examples
    --------
    >>> import cosolve as cs
    >>> cs.LeaderFollower(degree=2, leader="pump").label
    'LeaderFollower(2)'
    """

    leader: str = ""
    order: Sequence[str] = ()

    chooses_step: ClassVar[bool] = True
    roles: ClassVar[Mapping[str, tuple[str, ...]]] = {"following": (), "as leader": ("own steps",)}

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

    def with_given_steps(self) -> GaussSeidel:
        return GaussSeidel(self.degree, self.outputs, (self.leader, *self.order))

    @property
    def declaration(self) -> Declaration:
        return self._declaration(leader_follower, (self.leader, *self.order))
