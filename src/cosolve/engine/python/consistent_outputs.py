"""Instants: outputs and coupling variables that agree with each other at one point in time, states held.

At the start of a run (`initial_values.py`), and after an exchange in mode b, outputs with direct feed-through depend
on inputs that depend on other outputs. New outputs travel from sources to readers until nothing changes; an algebraic
loop is closed by Newton, and the unknowns of equations are solved for where the instant determines them (`instant.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.dependencies import levels
from cosolve.basics.scale import grow_floor
from cosolve.basics.wording import listed
from cosolve.engine.python.instant import (
    MOST,
    Booleans,
    Instant,
    Solved,
    equations_of,
    left_open,
    roundings,
    rows_of,
    solve,
)
from cosolve.errors import ConvergenceError, NonFiniteError, SetupError, SimulationError, SubsystemError
from cosolve.interface.plan import LAW_INCREMENT, Block, Plan
from cosolve.stepsize.control import TINY
from cosolve.subsystem.base import has_capability


class ConsistentOutputs:
    """Settles the outputs of the subsystems of a plan; `guarded` is the caller's way of calling them."""

    #: methods that give outputs for inputs at one instant; the first that a subsystem has counts
    asked: tuple[str, ...] = ("output",)

    def __init__(self, plan: Plan, guarded: Callable[..., Any]) -> None:
        self.plan, self._guarded = plan, guarded
        self._ask = [next((n for n in self.asked if callable(getattr(s, n, None))), "") for s in plan.subsystems]
        self._can_output = [
            bool(name) and takes.length > 0 and gives.length > 0
            for name, takes, gives in zip(self._ask, plan.input_ports, plan.output_ports, strict=True)
        ]
        self._u_owner = np.repeat(np.arange(plan.n_subsystems), [ports.length for ports in plan.input_ports])
        self._laws = [block for block in plan.blocks if not block.implicit]
        self._laws_of: list[list[Block]] = [[] for _ in plan.subsystems]  # the laws that read each subsystem
        for block in self._laws:
            for i in plan.owners(block):
                self._laws_of[i].append(block)
        self._news = _OutputUpdates(plan, self._laws_of, self._can_output)
        equations = equations_of(plan.blocks)
        #: equations with too many unknowns, which keep their value
        self.too_large = sum(len(block.rows) for block in equations) > MOST
        self._equations = () if self.too_large else equations
        self._unknowns = rows_of(self._equations)
        held = [b for b in plan.blocks if b.implicit and not any(b is other for other in self._equations)]
        self._free = np.setdiff1d(np.arange(plan.n_z), rows_of(held))  # all that an instant may determine
        self._follows = np.setdiff1d(self._free, self._unknowns)  # connections and laws

    @property
    def may_loop(self) -> bool:
        """True when news of a subsystem's outputs may come back to it."""
        return self._news.longest > 1

    def settle(self, t: float, y: Vector, z: Vector, *, complete: bool = False) -> tuple[Vector, Vector]:
        """Outputs and coupling variables at `t` that agree with each other for the present states.

        Direct feed-through is followed until nothing changes; where it runs in a loop, Newton closes the loop. Unknowns
        of equations that the instant determines are solved for from their values in `z`; the others keep these, or are
        an error where the result has to be `complete`.
        """
        if complete and self.too_large:
            raise SetupError(f"at most {MOST} unknowns of equations are solved for at a macro point; use Implicit")
        if not len(self._unknowns):
            return self._settle_known(t, y, z)
        rows, problem = self._instant(t, y, z, looped=self._follow(t, y, z)[2])
        solved = solve(problem, z[rows])
        if solved.failed.any():
            raise self._no_solution(t, rows, solved)
        if complete and solved.kept.any():
            names = listed(self.plan.z_labels[k] for k in rows[solved.kept])
            raise SimulationError(
                f"at t = {t:.6g} the equations do not determine {names} with the states held, as an explicit method "
                "needs it: they must contain outputs with direct feedthrough of the unknowns, such as accelerations; "
                "use SemiImplicit or Implicit",
                time=t,
            )
        return solved.y, solved.z

    def undetermined(self, t: float, y: Vector, z: Vector, *, looped: bool = False) -> Booleans:
        """The coupling variables that keep whatever value they have at this instant, for settled `y` and `z`.

        Unknowns of equations, and with `looped` also connections and laws in an algebraic loop. Multipliers of
        constraints are not looked at, nor more variables than are solved for.
        """
        found = np.zeros(self.plan.n_z, dtype=bool)
        looped = looped and len(self._free) <= MOST
        if not (len(self._unknowns) or looped):
            return found
        rows, problem = self._instant(t, y, z, looped=looped or self._follow(t, y, z)[2])
        found[rows] = left_open(problem, z[rows])
        return found

    def _instant(self, t: float, y: Vector, z: Vector, *, looped: bool) -> tuple[Any, Instant]:
        """What is solved for at this instant: entries of `z`, and the equations as functions of them.

        Connections and laws follow from the unknowns of equations; where they run in a loop, they are unknowns as well:
        loop and equations may need each other to have one solution.
        """
        plan, rows = self.plan, self._free if looped else self._unknowns

        def evaluate(values: Vector) -> tuple[Vector, Vector, Vector]:
            trial = z.copy()
            trial[rows] = values
            if looped:
                outputs = y.copy()
                for i, can in enumerate(self._can_output):
                    if can:
                        outputs[plan.y_slices[i]] = self._output(i, t, plan.inputs(trial, i))
                r = trial - plan.evaluate(outputs, trial)
            else:
                outputs, trial = self._settle_known(t, y, trial)
                r = np.zeros(plan.n_z)
            for block in self._equations:
                r[block.rows] = block.call(trial[block.rows], outputs[block.y_index])
            return r[rows], outputs, trial

        noise = np.array([self._noise(i) for i in range(plan.n_subsystems)])[plan.y_owner]

        def rounding(r: Vector, y: Vector, z: Vector) -> Vector:
            size = np.finfo(np.float64).eps * (np.abs(z) + np.abs(plan.evaluate(y, z)))
            size[plan.copy_rows] += noise[plan.copy_from] * np.abs(y[plan.copy_from])
            for block in self._laws:
                size[block.rows] += (noise[block.y_index] * np.abs(y[block.y_index])).max(initial=0.0)
            whole = np.zeros(plan.n_z)
            whole[rows] = r
            for block in self._equations:
                index = block.y_index
                size[block.rows] = roundings(block, whole[block.rows], z[block.rows], y[index], noise[index])
            return size[rows]

        relative = max(LAW_INCREMENT, float(noise.max(initial=0.0)) ** (1 / 3))
        largest = max(float(np.abs(v).max(initial=0.0)) for v in (y, z)) or 1.0
        size = np.where(plan.z_open, largest, plan.z_nominal)[rows]
        return rows, Instant(evaluate, rounding, size, plan.z_given[rows], relative)

    def _noise(self, i: int) -> float:
        """Relative accuracy of outputs at an instant: of solvers without a state; others have noise in their state."""
        subsystem = self.plan.subsystems[i]
        if not (self._can_output[i] and subsystem.noise and has_capability(subsystem, "state")):
            return 0.0
        return 0.0 if np.size(subsystem.get_state()) else subsystem.noise

    def _no_solution(self, t: float, rows: Any, solved: Solved) -> ConvergenceError:
        plan = self.plan
        own = np.isin(rows, self._unknowns)
        named = own & solved.failed
        worst = int(np.argmax(np.where(named if named.any() else own, np.abs(solved.residual), -1.0)))
        label = next(block.label for block in self._equations if rows[worst] in block.rows)
        names = [name for name, (part, _) in plan.z_ports.items() if part.start <= rows[worst] < part.stop]
        return ConvergenceError(
            f"{label} have no solution that Newton finds at t = {t:.6g} from {plan.z_labels[rows[worst]]} = "
            f"{solved.values[worst]:.6g} (residual {solved.residual[worst]:.3g}); check them for the outputs at that "
            f"time, or give initial={{{names[0]!r}: ...}} nearer to a solution",
            time=t,
        )

    def _settle_known(self, t: float, y: Vector, z: Vector) -> tuple[Vector, Vector]:
        """Outputs, connections and laws for given unknowns of equations."""
        y, z, looped = self._follow(t, y, z)
        return self._close_loop(t, y, z) if looped else (y, z)

    def _follow(self, t: float, y: Vector, z: Vector) -> tuple[Vector, Vector, bool]:
        """The same as far as news travels, and whether it runs in a loop."""
        plan, news = self.plan, self._news
        y, z = y.copy(), z.copy()
        # Only what has news is evaluated, sources before readers: a long chain costs each of its links once.
        queue = [news.place[i] for i, can in enumerate(self._can_output) if can]
        heapify(queue)
        rounds = np.zeros(plan.n_subsystems, dtype=np.intp)
        while queue:
            i = news.order[heappop(queue)]
            if queue and news.order[queue[0]] == i:
                continue  # listed twice
            if rounds[i] > news.longest:
                return y, z, True
            rounds[i] += 1
            before = y[plan.y_slices[i]].copy()
            y[plan.y_slices[i]] = self._output(i, t, plan.inputs(z, i), again=rounds[i] > 1)
            if rounds[i] > 1 and np.array_equal(y[plan.y_slices[i]], before):
                continue
            rows, origin = news.copies[i]
            z[rows] = y[origin]
            for block in self._laws_of[i]:
                z[block.rows] = block.call(z[block.rows], y[block.y_index])
            for reader in news.readers[i]:
                heappush(queue, reader)
        return y, z, False

    def _output(self, i: int, t: float, u: Vector, *, again: bool = False) -> Vector:
        """Outputs of subsystem `i` for the values `u` of its inputs; `again` where values went round a loop."""
        call = partial(getattr(self.plan.subsystems[i], self._ask[i]), t, u)
        try:
            y: Vector = self._guarded(i, t, "evaluating its outputs", call)
        except SubsystemError as error:
            loop = self._news.loop_through(i)
            overflown = again and isinstance(error.__cause__, ArithmeticError)
            if not loop or not (overflown or isinstance(error, NonFiniteError)):
                raise
            reason = str(error.__cause__ or error).partition(" while evaluating")[0]
            kind = ConvergenceError if again else NonFiniteError
            raise kind(
                f"the algebraic loop {self._ring(loop)} has no values that agree at t = {t:.6g}, or none near those it "
                f"starts from: '{self.plan.names[i]}' went beyond all numbers ({reason}); check the signs in the loop "
                "or give better start values",
                time=t,
                subsystem=self.plan.names[i],
            ) from error
        return y

    def _ring(self, loop: list[int]) -> str:
        """Names of subsystems on their way round."""
        return " -> ".join(self.plan.names[k] for k in loop)

    def _close_loop(self, t: float, y: Vector, z: Vector) -> tuple[Vector, Vector]:
        """Newton on `z = f(y(z))` at one instant (an algebraic loop)."""
        plan = self.plan

        def mismatch(z: Vector) -> Vector:
            for i, can in enumerate(self._can_output):
                if can:
                    y[plan.y_slices[i]] = self._output(i, t, plan.inputs(z, i), again=True)
            return z - plan.evaluate(y, z)

        rows = self._follows  # unknowns of equations and multipliers are given here
        r = mismatch(z)
        floor = np.where(plan.z_open, 0.0, plan.z_nominal)
        grow_floor(floor, plan.z_open, max(float(np.abs(v).max(initial=0.0)) for v in (z, z - r)))
        scale = np.maximum(floor + np.abs(z), TINY)
        for _ in range(50):
            if np.all(np.abs(r) <= 1e-12 * scale):
                return y, z
            G = np.empty((plan.n_z, len(rows)))
            for column, m in enumerate(rows):
                shifted = z.copy()
                shifted[m] += 1e-6 * scale[m]
                G[:, column] = (mismatch(shifted) - r) / (shifted[m] - z[m])
            z = z.copy()
            z[rows] -= np.linalg.lstsq(G[rows], r[rows], rcond=None)[0]
            scale = np.maximum(scale, np.abs(z))
            r = mismatch(z)
        worst = int(np.argmax(np.abs(r) / scale))
        owner = next((plan.y_owner[o] for k, o in zip(plan.copy_rows, plan.copy_from, strict=True) if k == worst), None)
        loop = self._news.loop_through(int(owner)) if owner is not None else []
        path = f" ({self._ring(loop)})" if loop else ""
        raise ConvergenceError(
            f"the algebraic loop through '{plan.z_labels[worst]}'{path} has no solution that Newton finds at "
            f"t = {t:.6g} (mismatch {np.abs(r).max():.3g}); check the signs in the loop or give better start values",
            time=t,
        )


class _OutputUpdates:
    """Which subsystems read the new outputs of another, and the order in which news travels: sources before readers."""

    def __init__(self, plan: Plan, laws_of: list[list[Block]], can_output: list[bool]) -> None:
        count = plan.n_subsystems
        source = plan.y_owner[plan.copy_from]
        sorted_copies = np.argsort(source, kind="stable")
        ends = np.searchsorted(source[sorted_copies], np.arange(count + 1))
        parts = [sorted_copies[a:b] for a, b in pairwise(ends)]
        #: per subsystem: coupling variables that copy its outputs, and the outputs they copy
        self.copies = [(plan.copy_rows[part], plan.copy_from[part]) for part in parts]
        hearing: list[list[int]] = [[] for _ in range(plan.n_z)]
        for i, can in enumerate(can_output):
            for m in plan.reads(i) if can else ():
                hearing[m].append(i)
        reached = []
        for i in range(count):
            rows = np.concatenate([self.copies[i][0], *(block.rows for block in laws_of[i])])
            reached.append(sorted({k for m in rows for k in hearing[m]}))
        self.order = _sources_first(reached)
        self.place = {i: k for k, i in enumerate(self.order)}
        #: per subsystem: places in that order of those that read it
        self.readers = [[self.place[k] for k in found] for found in reached]
        #: how often news can reach one subsystem at most, unless it runs in a loop
        self.longest = 1 + sum(self.place[k] <= self.place[i] for i in range(count) for k in reached[i])

    def loop_through(self, i: int) -> list[int]:
        """The shortest way on which news of subsystem `i` comes back to it, as a ring; empty without one."""
        ways = [[i]]
        seen: set[int] = set()
        for way in ways:  # grows
            for k in (self.order[place] for place in self.readers[way[-1]]):
                if k == i:
                    first = way.index(min(way))
                    return [*way[first:], *way[: first + 1]]
                if k not in seen:
                    seen.add(k)
                    ways.append([*way, k])
        return []


def _sources_first(reached: list[list[int]]) -> list[int]:
    """Subsystems in an order in which each comes before those it reaches; members of loops last, as they are listed."""
    sources: dict[int, list[int]] = {i: [] for i in range(len(reached))}
    for i, found in enumerate(reached):
        for k in found:
            sources[k].append(i)
    groups, looped = levels(sources)
    return [i for group in groups for i in group] + looped
