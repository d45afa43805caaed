"""The static subsystems of a system as one expensive function from the dynamic outputs to the dynamic inputs.

`u_d(y_d)` of Schmoll (2015), 4.1 for any number of static subsystems, in parallel or in a chain, with laws in between.
Only the static subsystems themselves are linearised (Eq. 4.13); laws are cheap and always evaluated as they are.

One *call* of a static subsystem is one set of `1 + N` solves, `N` its number of inputs: unperturbed, and with each
input perturbed by `Delta_i = increment * max(nominal_i, |u_i|)`. All solves of a set begin from the same saved state
(warm start), so they may run at the same time and give the same bits as one after the other.
"""

from __future__ import annotations

from concurrent.futures import wait
from copy import deepcopy
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.arrays import Index, Matrix, Vector
from cosolve.basics.dependencies import levels
from cosolve.basics.wording import listed, raised
from cosolve.errors import CosolveError, EndOfSimulation, NonFiniteError, SubsystemError
from cosolve.interface.plan import Block, Plan
from cosolve.subsystem.base import Subsystem, has_capability

if TYPE_CHECKING:
    from cosolve.engine.python.subsystem_caller import SubsystemCaller


#: Of a change of the outputs, what given derivatives may miss; how often in a run they are compared with differences.
_FORETOLD, _TESTS = 0.3, 5


@dataclass(frozen=True)
class Tangent:
    """A static subsystem linearised: `y + D (u - u_AP)` (Eq. 4.13)."""

    u: Vector
    y: Vector
    D: Matrix

    def at(self, u: Vector) -> Vector:
        """Outputs for inputs near the operating point; exact there."""
        value: Vector = self.y + self.D @ (u - self.u)
        return value


Tangents = dict[int, Tangent]


def dynamic_subsystems(plan: Plan) -> list[int]:
    """Those that give their equations."""
    return [i for i, s in enumerate(plan.subsystems) if has_capability(s, "equations") and has_capability(s, "state")]


def is_static(subsystem: Subsystem) -> bool:
    """True when outputs follow from time and inputs at once: an `output` method and an empty state."""
    if not (has_capability(subsystem, "output") and has_capability(subsystem, "state")):
        return False
    try:
        return np.size(subsystem.get_state()) == 0
    except Exception:  # a solver that has no state before its start has one
        return False


def sources_of(plan: Plan, i: int) -> set[int]:
    """The subsystems whose outputs the inputs of subsystem `i` are made of."""
    read = set(plan.reads(i).tolist())
    found = {
        int(plan.y_owner[source])
        for row, source in zip(plan.copy_rows, plan.copy_from, strict=True)
        if int(row) in read
    }
    for block in plan.blocks:
        if read & set(block.rows.tolist()):
            found |= plan.owners(block)
    return found


def static_levels(plan: Plan, dynamic: int) -> tuple[list[list[int]], list[int]]:
    """Static subsystems in groups that can run at the same time, one after the other; and those caught in a loop."""
    static = [i for i in range(plan.n_subsystems) if i != dynamic]
    groups, looped = levels({i: sources_of(plan, i) - {dynamic} for i in static})
    return [sorted(group) for group in groups], looped


class StaticNetwork:
    """Evaluates and linearises the static subsystems for given outputs of the dynamic one."""

    def __init__(self, caller: SubsystemCaller, dynamic: int, increment: float) -> None:
        self.caller, self.plan, self.dynamic, self.increment = caller, caller.plan, dynamic, increment
        plan = self.plan
        groups, _ = static_levels(plan, dynamic)
        sources = {i: sources_of(plan, i) for i in range(plan.n_subsystems)}
        feeding = _upstream(sources, dynamic)
        self._timed = {i for i in feeding - {dynamic} if dynamic not in _upstream(sources, i)}
        self._levels = [[i for i in level if i in feeding] for level in groups]
        self._observers = [i for level in groups for i in level if i not in feeding]
        self._stages = _stages(plan, dynamic, [*self._levels, *([i] for i in self._observers)])
        self._can_roll_back = [has_capability(s, "rollback") for s in plan.subsystems]
        self._copies: dict[int, list[Subsystem]] = {}
        # of subsystems that give derivatives: the last ones, how often in a row they foretold badly, tests left
        self._last: Tangents = {}
        self._streak: dict[int, int] = {}
        self._tests: dict[int, int] = {}

    # -- evaluating ------------------------------------------------------------------------------------

    def call(self, t: float, y_d: Vector, known: Tangents | None = None) -> Tangents:
        """Call every static subsystem once; with derivatives, or with those of `known`."""
        y, z = self._begin(y_d)
        tangents: Tangents = {}
        for stage, level in enumerate(self._levels):
            self._spread(stage, y, z)
            for i in level:
                u = self.plan.inputs(z, i)
                tangents[i] = self._tangent(i, t, u) if known is None else Tangent(u, self._value(i, t, u), known[i].D)
                y[self.plan.y_slices[i]] = tangents[i].y
        return tangents

    def timed(self, t: float, tangents: Tangents) -> Tangents:
        """`tangents` with those subsystems called anew that depend on time alone (sources)."""
        if not self._timed:
            return tangents
        y, z = self._begin(np.zeros(0))
        renewed = dict(tangents)
        for stage, level in enumerate(self._levels):
            self._spread(stage, y, z, only_known=True)
            for i in (i for i in level if i in self._timed):
                u = self.plan.inputs(z, i)
                renewed[i] = Tangent(u, self._value(i, t, u), tangents[i].D)
                y[self.plan.y_slices[i]] = renewed[i].y
        return renewed

    def follow(self, y_d: Vector, tangents: Tangents) -> tuple[Vector, Vector]:
        """All outputs and coupling variables for dynamic outputs `y_d`, static subsystems linearised."""
        y, z = self._begin(y_d)
        for stage, level in enumerate(self._levels):
            self._spread(stage, y, z)
            for i in level:
                y[self.plan.y_slices[i]] = tangents[i].at(self.plan.inputs(z, i))
        self._spread(len(self._levels), y, z)
        return y, z

    def complete(self, t: float, y: Vector, z: Vector) -> None:
        """At an accepted point: the static subsystems that feed nothing back, called once."""
        for k, i in enumerate(self._observers):
            y[self.plan.y_slices[i]] = self._value(i, t, self.plan.inputs(z, i))
            self._spread(len(self._levels) + 1 + k, y, z)

    def _begin(self, y_d: Vector) -> tuple[Vector, Vector]:
        y = np.full(self.plan.n_y, np.nan)
        if len(y_d):
            y[self.plan.y_slices[self.dynamic]] = y_d
        return y, self.plan.z_initial.copy()

    def _spread(self, stage: int, y: Vector, z: Vector, only_known: bool = False) -> None:
        """Coupling variables whose sources have all been evaluated by this stage."""
        rows, entries, blocks = self._stages[stage]
        z[rows] = y[entries]
        for block in blocks:
            if not only_known or np.isfinite(y[block.y_index]).all():
                z[block.rows] = block.call(z[block.rows], y[block.y_index])

    # -- one set of solves -----------------------------------------------------------------------------

    def save(self) -> list[Any]:
        """Warm starts of the static subsystems."""
        parts = enumerate(zip(self.plan.subsystems, self._can_roll_back, strict=True))
        return [s.save() if can and i != self.dynamic else None for i, (s, can) in parts]

    def restore(self, states: list[Any]) -> None:
        """Back to saved warm starts."""
        for i, subsystem in enumerate(self.plan.subsystems):
            if self._can_roll_back[i] and i != self.dynamic:
                subsystem.restore(states[i])

    def _value(self, i: int, t: float, u: Vector) -> Vector:
        """Outputs at `u`: one call without perturbed solves."""
        self.caller.calls[i] += 1
        began = perf_counter()
        try:
            return self._solve(i, self.plan.subsystems[i], t, u)
        finally:
            self.caller.seconds[i] += perf_counter() - began

    def _tangent(self, i: int, t: float, u: Vector) -> Tangent:
        """Outputs at `u` and their derivatives: one call."""
        caller, subsystem = self.caller, self.plan.subsystems[i]
        if not len(u):
            y = self._value(i, t, u)
            return Tangent(u, y, np.zeros((len(y), 0)))
        caller.calls[i] += 1
        caller.jacobians[i] += 1
        began = perf_counter()
        try:
            if has_capability(subsystem, "output jacobian"):
                tangent = Tangent(u, self._solve(i, subsystem, t, u), self._own_derivatives(i, subsystem, t, u))
                if self._is_doubtful(i, tangent):
                    self._refuse_wrong(i, subsystem, t, tangent)
                return tangent
            size = max(self.increment, subsystem.noise**0.5) * np.maximum(self._nominal(i), np.abs(u))
            points = np.vstack([u, u + np.diag(size)])
            values = self._set(i, subsystem, t, points)
            return Tangent(u, values[0], (np.array(values[1:]) - values[0]).T / (np.diag(points[1:]) - u))
        finally:
            caller.seconds[i] += perf_counter() - began

    def _set(self, i: int, subsystem: Subsystem, t: float, points: Matrix) -> list[Vector]:
        """The solves of one set, each from the present state; leaves the state that the unperturbed one reached."""
        if not self._can_roll_back[i]:
            return [self._solve(i, subsystem, t, u) for u in points]
        state, pool = subsystem.save(), self.caller.pool
        if pool is not None and subsystem.concurrent:
            copies = self._copies.setdefault(i, [deepcopy(subsystem) for _ in points[1:]])
            jobs = [pool.submit(self._solve_from, i, c, state, t, u) for c, u in zip(copies, points[1:], strict=True)]
            try:
                first = self._solve(i, subsystem, t, points[0])
            finally:
                wait(jobs)  # before anything else uses the copies
            return [first, *(job.result() for job in jobs)]
        values = [self._solve(i, subsystem, t, points[0])]
        reached = subsystem.save()
        try:
            values += [self._solve_from(i, subsystem, state, t, u) for u in points[1:]]
        finally:
            subsystem.restore(reached)
        return values

    def _solve_from(self, i: int, instance: Subsystem, state: Any, t: float, u: Vector) -> Vector:
        instance.restore(state)
        return self._solve(i, instance, t, u)

    def _solve(self, i: int, instance: Subsystem, t: float, u: Vector) -> Vector:
        ports = self.plan.output_ports[i]
        try:
            y = np.array(ports.pack(instance.output(t, u.copy())))
        except EndOfSimulation as end:
            end.subsystem, end.time = self.plan.names[i], t if end.time is None else end.time
            raise
        except Exception as error:
            kind = NonFiniteError if isinstance(error, NonFiniteError) else SubsystemError
            what = str(error) if isinstance(error, CosolveError) else raised(error)
            raise kind(f"{self._where(i, t, u)}: {what}", subsystem=self.plan.names[i]) from error
        if not np.isfinite(y).all():
            k = int(np.flatnonzero(~np.isfinite(y))[0])
            raise NonFiniteError(
                f"{self._where(i, t, u)}: it returned {y[k]} for '{ports.labels()[k]}'", subsystem=self.plan.names[i]
            )
        return y

    def _own_derivatives(self, i: int, subsystem: Subsystem, t: float, u: Vector) -> Matrix:
        shape = (self.plan.output_ports[i].length, len(u))
        try:
            D = np.array(subsystem.output_jacobian(t, u.copy()), dtype=np.float64)
        except Exception as error:
            raise SubsystemError(f"{self._where(i, t, u)}: {raised(error)}") from error
        if D.shape != shape or not np.isfinite(D).all():
            raise SubsystemError(
                f"{self._where(i, t, u)}: output_jacobian returned shape {D.shape}, expected finite numbers of shape "
                f"{shape} = (outputs, inputs)"
            )
        return D

    def _is_doubtful(self, i: int, tangent: Tangent) -> bool:
        """True when the derivatives of a subsystem foretold three times in a row what did not happen.

        Right ones foretell a change up to a part that shrinks with it.
        """
        last = self._last.get(i)
        self._last[i] = tangent
        if last is None or not self._tests.get(i, _TESTS):
            return False
        change, foretold = tangent.y - last.y, last.D @ (tangent.u - last.u)
        size = max(float(np.abs(change).max(initial=0.0)), float(np.abs(foretold).max(initial=0.0)))
        missed = float(np.abs(change - foretold).max(initial=0.0))
        self._streak[i] = self._streak.get(i, 0) + 1 if missed > _FORETOLD * size else 0
        return self._streak[i] >= 3

    def _refuse_wrong(self, i: int, subsystem: Subsystem, t: float, tangent: Tangent) -> None:
        """Compare derivatives with differences of two sizes; raise where an entry is another."""
        self._streak[i], self._tests[i] = 0, self._tests.get(i, _TESTS) - 1
        u, size = tangent.u, max(1e-4, subsystem.noise ** (1.0 / 3.0)) * np.maximum(self._nominal(i), np.abs(tangent.u))
        shifts = [factor * np.diag(size) for factor in (1.0, -1.0, 2.0, -2.0)]
        values = np.array(self._set(i, subsystem, t, np.vstack([u, *(u + shift for shift in shifts)]))[1:])
        up, down, far_up, far_down = values.reshape(4, len(u), -1)
        near, far = ((up - down) / (2.0 * size[:, None])).T, ((far_up - far_down) / (4.0 * size[:, None])).T
        scale = np.maximum(np.abs(near), np.abs(tangent.D)) * size
        largest = scale.max(axis=1, keepdims=True)
        wrong = np.abs(near - tangent.D) * size - 3.0 * np.abs(near - far) * size > 0.02 * np.maximum(
            scale, 0.05 * largest
        )
        if wrong.any():
            row, column = (int(k) for k in np.argwhere(wrong)[0])
            outputs, inputs = self.plan.output_ports[i].labels(), self.plan.input_ports[i].labels()
            raise SubsystemError(
                f"'{self.plan.names[i]}': output_jacobian gives {tangent.D[row, column]:.6g} for d {outputs[row]} / d "
                f"{inputs[column]} at t = {t:.9g}, differences give {near[row, column]:.6g}; correct it",
                time=t,
                subsystem=self.plan.names[i],
            )

    def _where(self, i: int, t: float, u: Vector) -> str:
        named = zip(self.plan.input_ports[i].labels(), u, strict=True)
        given = listed([f"{label} = {value:.9g}" for label, value in named], quote=False) if len(u) else "no inputs"
        return f"'{self.plan.names[i]}' failed in call {self.caller.calls[i]} at t = {t:.9g} with {given}"

    def _nominal(self, i: int) -> Vector:
        ports = self.plan.input_ports[i]
        return np.concatenate([np.full(port.length, port.nominal) for port in ports])


def _upstream(sources: dict[int, set[int]], i: int) -> set[int]:
    """Everything that `i` depends on, directly or not."""
    found: set[int] = set()
    todo = set(sources[i])
    while todo:
        k = todo.pop()
        found.add(k)
        todo |= sources[k] - found
    return found


def _stages(plan: Plan, dynamic: int, levels: list[list[int]]) -> list[tuple[Index, Index, list[Block]]]:
    """Per stage the connections and laws that become known: before the first level, and after each."""
    place = {dynamic: 0} | {i: k + 1 for k, level in enumerate(levels) for i in level}
    known_at = np.array([place[int(i)] for i in plan.y_owner[plan.copy_from]], dtype=np.intp)
    laws = [(max((place[i] for i in plan.owners(block)), default=0), block) for block in plan.blocks]
    stages = []
    for stage in range(len(levels) + 1):
        here = np.flatnonzero(known_at == stage)
        blocks = [block for at, block in laws if at == stage]
        stages.append((plan.copy_rows[here], plan.copy_from[here], blocks))
    return stages
