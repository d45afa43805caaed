"""Explicit co-simulation: Jacobi, Gauss-Seidel and Gauss-Seidel master/slave (spec: cosimulation 2.5-2.7).

No macro step is repeated, so any subsystem can take part. Outputs are by default those a subsystem computed with the
inputs it actually used ("as used", mode a of spec 2.4); `outputs="exchanged"` re-evaluates them after the exchange
(mode b), which gains one local order where outputs have direct feed-through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np

from cosolve.errors import CapabilityError, SetupError
from cosolve.interface.plan import Block, Plan
from cosolve.method.base import MacroStep, Method, Outcome
from cosolve.method.crew import Crew, Window
from cosolve.signal import History
from cosolve.subsystem.base import has_capability
from cosolve.subsystem.port import Matrix, Vector

OutputMode = Literal["as used", "exchanged"]


@dataclass(frozen=True)
class _Explicit(Method):
    outputs: OutputMode = "as used"

    explicit: ClassVar[bool] = True

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

    def bind(self, crew: Crew) -> MacroStep:
        def step(history: History, window: Window) -> Outcome:
            degree = history.extrapolation_degree(self.degree)
            coefficients = history.extrapolate(degree, window.H)
            y = crew.sweep(window, coefficients)
            predicted = coefficients.sum(axis=0)
            y, z = self._finish(crew, window, y, predicted)
            return Outcome(y, z, predicted, degree)

        return step


@dataclass(frozen=True)
class GaussSeidel(_Explicit):
    """One subsystem after the other; those that come later get interpolated inputs from those that ran.

    `order` names the subsystems in the order of running (those not named follow in the system's order).

    >>> import cosolve as cs
    >>> cs.GaussSeidel(degree=1, order=["two", "one"]).order
    ('two', 'one')
    """

    order: Sequence[str] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "order", _checked_order(self.name, self.order))

    def complaints(self, plan: Plan) -> list[str]:
        return _unknown_in_order(self.name, self.order, plan) or super().complaints(plan)

    def bind(self, crew: Crew) -> MacroStep:
        place = {name: i for i, name in enumerate(crew.plan.names)}
        serial = _Serial(crew, [place[name] for name in dict.fromkeys((*self.order, *place))])

        def step(history: History, window: Window) -> Outcome:
            degree = history.extrapolation_degree(self.degree)
            coefficients = history.extrapolate(degree, window.H)
            y, z = serial.run(self.degree, history, window, coefficients)
            y, z = self._finish(crew, window, y, z)
            return Outcome(y, z, coefficients.sum(axis=0), degree)

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
        object.__setattr__(self, "order", _checked_order(self.name, self.order))

    def complaints(self, plan: Plan) -> list[str]:
        if self.master not in plan.names:
            return [
                f"MasterSlave: master={self.master!r} is not among the subsystems {_listed(plan.names)}; "
                "name the one whose steps the others follow"
            ]
        if unknown := _unknown_in_order(self.name, self.order, plan):
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
        place = {name: i for i, name in enumerate(plan.names)}
        first = place[self.master]
        serial = _Serial(crew, [place[name] for name in dict.fromkeys((self.master, *self.order, *place))])

        def step(history: History, limit: Window) -> Outcome:
            degree = history.extrapolation_degree(self.degree)
            t1, y_master = crew.own_step(first, limit, history.extrapolate(degree, limit.H))
            window = Window(limit.t0, t1, limit.H if t1 == limit.t1 else t1 - limit.t0)
            coefficients = history.extrapolate(degree, window.H)
            y, z = serial.run(self.degree, history, window, coefficients, {first: y_master})
            y, z = self._finish(crew, window, y, z)
            return Outcome(y, z, coefficients.sum(axis=0), degree, t1=t1)

        return step

    def refuse_unfit(self, plan: Plan) -> None:
        complaints = self.complaints(plan)
        if complaints:
            raise CapabilityError(complaints[0])


def _checked_order(method: str, order: Sequence[str]) -> tuple[str, ...]:
    if isinstance(order, str):
        raise SetupError(f"{method}: order is a list of subsystem names; write order=[{order!r}]")
    if len(set(order)) != len(order):
        raise SetupError(f"{method}: order {list(order)} names a subsystem twice")
    return tuple(order)


def _unknown_in_order(method: str, order: Sequence[str], plan: Plan) -> list[str]:
    known = set(plan.names)
    unknown = [name for name in order if name not in known]
    return [f"{method}: order names {name!r}, but the subsystems are {_listed(plan.names)}" for name in unknown]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{n}'" for n in names[:8]) + (f", ... ({len(names)} in all)" if len(names) > 8 else "")


class _Serial:
    """Running subsystems one after the other, interpolating whatever is known at the end of the step."""

    def __init__(self, crew: Crew, sequence: Sequence[int]) -> None:
        self.crew, self.sequence = crew, tuple(sequence)
        plan = crew.plan
        place = {i: k for k, i in enumerate(sequence)}
        # after each subsystem: the connections and laws whose sources have then all run
        copies_at = np.array([place[int(i)] for i in plan.y_owner[plan.copy_from]], dtype=np.intp)
        by_place = np.argsort(copies_at, kind="stable")
        ends = np.searchsorted(copies_at[by_place], np.arange(len(sequence) + 1))
        self._copies = [by_place[a:b] for a, b in pairwise(ends)]
        self._laws: list[list[Block]] = [[] for _ in sequence]
        for block in plan.blocks:
            owners = plan.owners(block)
            self._laws[max((place[i] for i in owners), default=0)].append(block)

    def run(
        self,
        degree: int,
        history: History,
        window: Window,
        extrapolated: Matrix,
        ready: dict[int, Vector] | None = None,
    ) -> tuple[Vector, Vector]:
        """Outputs and coupling variables at the end of the step; `ready` holds outputs that are there already."""
        plan = self.crew.plan
        base, weight = history.interpolation(degree, window.H)
        coefficients = np.zeros((max(len(base), len(extrapolated)), plan.n_z))
        coefficients[: len(extrapolated)] = extrapolated
        y, z = np.empty(plan.n_y), extrapolated.sum(axis=0)
        for k, i in enumerate(self.sequence):
            known = None if ready is None else ready.get(i)
            y[plan.y_slices[i]] = self.crew.advance(i, window, coefficients) if known is None else known
            rows = plan.copy_rows[self._copies[k]]
            z[rows] = y[plan.copy_from[self._copies[k]]]
            for block in self._laws[k]:
                z[block.rows] = block.call(z[block.rows], y[block.y_index])
                rows = np.concatenate([rows, block.rows])
            if len(rows):
                coefficients[:, rows] = 0.0
                coefficients[: len(base), rows] = base[:, rows] + weight[:, np.newaxis] * z[rows]
        return y, z
