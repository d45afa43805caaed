"""Instants: outputs and coupling variables that agree with each other at one point in time, states held.

At the start of a run, and after an exchange in mode b, outputs with direct feed-through depend on inputs that depend on
other outputs. News travels from sources to readers until nothing changes; an algebraic loop is closed by Newton, and
the unknowns of equations are solved for where the instant determines them (`instant.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.basics.dependencies import levels
from cosolve.engine.readable.instant import (
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
from cosolve.engine.readable.kept_states import refuse_no_reset, started_anew
from cosolve.errors import ConvergenceError, SetupError, SubsystemError
from cosolve.interface.constraint import LEVELS
from cosolve.interface.plan import LAW_INCREMENT, Block, Plan
from cosolve.subsystem.base import has_capability
from cosolve.subsystem.feedthrough import try_outputs

#: Constraints may be violated at the start by so much, in units of 1 and of the outputs they read.
_VIOLATION = 1e-6


class Settlement:
    """Starts the subsystems of a plan and settles their outputs; `guarded` is the crew's way of calling them."""

    def __init__(self, plan: Plan, guarded: Callable[..., Any]) -> None:
        self.plan, self._guarded = plan, guarded
        self._can_output = [
            has_capability(s, "output") and takes.length > 0 and gives.length > 0
            for s, takes, gives in zip(plan.subsystems, plan.input_ports, plan.output_ports, strict=True)
        ]
        self._u_owner = np.repeat(np.arange(plan.n_subsystems), [ports.length for ports in plan.input_ports])
        self._laws = [block for block in plan.blocks if not block.implicit]
        self._laws_of: list[list[Block]] = [[] for _ in plan.subsystems]  # the laws that read each subsystem
        for block in self._laws:
            for i in plan.owners(block):
                self._laws_of[i].append(block)
        self._news = _News(plan, self._laws_of, self._can_output)
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

    def start(self, t0: float) -> tuple[Vector, Vector]:
        """Put every subsystem into its initial state; consistent outputs and coupling variables at `t0`.

        Values that are not known yet are NaN and travel through laws and feed-through, so whatever depends on them
        stays unknown until they are found; what remains unknown at the end sits in an algebraic loop. Unknowns of
        equations begin at their initial value, from which the last settling solves for them.
        """
        plan = self.plan
        y = np.full(plan.n_y, np.nan)
        for i, subsystem in enumerate(plan.subsystems):
            start = partial(started_anew, subsystem, partial(subsystem.start, t0))
            first = self._guarded(i, t0, "starting", start, packed=False)
            if first is not None:
                given = y[plan.y_slices[i]] = self._guarded(i, t0, "starting", partial(_same, first))
                self._guarded(i, t0, "starting", partial(refuse_no_reset, subsystem, given), packed=False)
            elif plan.output_ports[i].length and not has_capability(subsystem, "output"):
                raise SubsystemError(
                    f"'{plan.names[i]}': start returned None; return the values of {plan.output_ports[i].names} at t0",
                    time=t0,
                    subsystem=plan.names[i],
                )
            elif plan.output_ports[i].length and not self._can_output[i]:
                y[plan.y_slices[i]] = self._guarded(i, t0, "starting", partial(subsystem.output, t0, np.zeros(0)))
        z = self._spread(t0, y)
        unknown = np.isnan(z)
        z[unknown] = plan.z_initial[unknown]
        for i, part in enumerate(plan.y_slices):
            if np.isnan(y[part]).any():  # in an algebraic loop: a first guess, from the initial values of its inputs
                y[part] = self._output(i, t0, plan.inputs(z, i))
        y, z = self.settle(t0, y, z)
        y, z = self._begin(t0, y, z)
        for block in (each for each in plan.blocks if each.levels is None):
            one, two = (block.call(z[block.rows], y[block.y_index]) for _ in range(2))
            if not np.array_equal(one, two, equal_nan=True):
                raise SubsystemError(
                    f"{block.label} gave two values for the same arguments; let it depend on its arguments alone, not "
                    "on how often it is called, on random numbers or on the clock"
                )
        return self._multipliers(t0, y, z) if plan.constraints else (y, z)

    def _begin(self, t0: float, y: Vector, z: Vector) -> tuple[Vector, Vector]:
        """End the initialisation of those that want to know its end, with the inputs found for it.

        Their outputs after it count; where they differ from those before, the others hear of it.
        """
        plan, after = self.plan, y.copy()
        for i, subsystem in enumerate(plan.subsystems):
            if has_capability(subsystem, "initialisation"):
                begin = partial(subsystem.begin, t0, plan.inputs(z, i))
                after[plan.y_slices[i]] = self._guarded(i, t0, "ending its initialisation", begin)
        if np.array_equal(after, y):
            return y, z
        z = z.copy()
        z[plan.copy_rows] = after[plan.copy_from]
        for block in self._laws:
            z[block.rows] = block.call(z[block.rows], after[block.y_index])
        return self.settle(t0, after, z)

    def _multipliers(self, t: float, y: Vector, z: Vector) -> tuple[Vector, Vector]:
        """Multipliers with which the constraints hold at the acceleration level, for consistent states.

        Multipliers with an initial value of the user keep it. Accelerations depend on multipliers affinely in
        mechanics, so that one Newton step would do; a second one cleans up after the differences.
        """
        plan = self.plan
        for block in plan.constraints:
            levels = block.constraint_levels(y)
            worst = [float(np.abs(level).max()) for level in levels[:2]]
            for level, violation in zip(LEVELS, worst, strict=False):
                scale = 1.0 + float(np.abs(y[block.y_index]).max(initial=0.0))
                if violation > _VIOLATION * scale:
                    raise SetupError(
                        f"the initial values violate {block.label} at the {level} level: "
                        f"{np.array2string(levels[LEVELS.index(level)], precision=6)} instead of 0; start from "
                        "positions and velocities that satisfy it"
                    )
        chosen = [b for b in plan.constraints if len(b.constraint_levels(y)) == 3]
        rows = np.concatenate([[], *(b.rows[: b.levels.count] for b in chosen if b.levels)]).astype(np.intp)
        rows = rows[~plan.z_given[rows]]
        if not len(rows):
            return y, z

        def accelerations(values: Vector) -> tuple[Vector, Vector, Vector]:
            trial = z.copy()
            trial[rows] = values
            outputs, settled = self.settle(t, y, trial)
            found = [b.constraint_levels(outputs)[2] for b in chosen]
            return np.concatenate(found), outputs, settled

        values = z[rows]
        for _ in range(2):
            r = accelerations(values)[0]
            step = 1e-4 * np.maximum(plan.z_nominal[rows], np.abs(values))
            G = np.array([(accelerations(values + e)[0] - r) / e.max() for e in np.diag(step)]).T
            if not np.any(G):
                return y, z  # accelerations that do not follow the multipliers at once
            values = values - np.linalg.lstsq(G, r, rcond=None)[0]
        _, y, z = accelerations(values)
        return y, z

    def _spread(self, t: float, y: Vector) -> Vector:
        """Follow known values through laws and feed-through as far as they reach; fills `y`, returns `z`."""
        plan = self.plan
        z = np.full(plan.n_z, np.nan)
        for block in plan.blocks:
            if block.implicit:
                z[block.rows] = plan.z_initial[block.rows]
        laws, known = self._laws, np.zeros(0, dtype=bool)
        while True:
            z[plan.copy_rows] = y[plan.copy_from]
            for block in laws:
                arguments = y[block.y_index]
                if np.isfinite(arguments).all():
                    z[block.rows] = block.call(z[block.rows], arguments)
            u = plan.inputs(z)
            found = np.isfinite(u)
            todo = self._reached(found & ~known if len(known) else np.ones(plan.n_u, dtype=bool))
            todo = [i for i in todo if not np.isfinite(y[plan.y_slices[i]]).all()]
            if not todo:
                return z
            for i in todo:
                y[plan.y_slices[i]] = try_outputs(plan.subsystems[i], plan.output_ports[i], t, u[plan.u_slices[i]])
            laws, known = self._laws_reading(todo), found

    def _reached(self, changed: npt.NDArray[np.bool_]) -> list[int]:
        """The subsystems with direct feed-through (perhaps) that have a changed input."""
        return [int(i) for i in np.unique(self._u_owner[changed]) if self._can_output[i]]

    def _laws_reading(self, subsystems: list[int]) -> list[Block]:
        return list({id(block): block for i in subsystems for block in self._laws_of[i]}.values())

    def settle(self, t: float, y: Vector, z: Vector) -> tuple[Vector, Vector]:
        """Outputs and coupling variables at `t` that agree with each other for the present states.

        Direct feed-through is followed until nothing changes; where it runs in a loop, Newton closes the loop. Unknowns
        of equations that the instant determines are solved for from their values in `z`; the others keep these.
        """
        if not len(self._unknowns):
            return self._settle_known(t, y, z)
        rows, problem = self._instant(t, y, z, looped=self._follow(t, y, z)[2])
        solved = solve(problem, z[rows])
        if solved.failed.any():
            raise self._no_solution(t, rows, solved)
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
        return rows, Instant(evaluate, rounding, plan.z_nominal[rows], plan.z_given[rows], relative)

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
            y[plan.y_slices[i]] = self._output(i, t, plan.inputs(z, i))
            if rounds[i] > 1 and np.array_equal(y[plan.y_slices[i]], before):
                continue
            rows, origin = news.copies[i]
            z[rows] = y[origin]
            for block in self._laws_of[i]:
                z[block.rows] = block.call(z[block.rows], y[block.y_index])
            for reader in news.readers[i]:
                heappush(queue, reader)
        return y, z, False

    def _output(self, i: int, t: float, u: Vector) -> Vector:
        """Outputs of subsystem `i` for the values `u` of its inputs."""
        y: Vector = self._guarded(i, t, "evaluating its outputs", partial(self.plan.subsystems[i].output, t, u))
        return y

    def _close_loop(self, t: float, y: Vector, z: Vector) -> tuple[Vector, Vector]:
        """Newton on `z = f(y(z))` at one instant (an algebraic loop)."""
        plan = self.plan

        def mismatch(z: Vector) -> Vector:
            for i, can in enumerate(self._can_output):
                if can:
                    y[plan.y_slices[i]] = self._output(i, t, plan.inputs(z, i))
            return z - plan.evaluate(y, z)

        rows = self._follows  # unknowns of equations and multipliers are given here
        scale = plan.z_nominal + np.abs(z)
        r = mismatch(z)
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
        worst = plan.z_labels[int(np.argmax(np.abs(r) / scale))]
        raise ConvergenceError(
            f"the algebraic loop through '{worst}' has no solution that Newton finds at t = {t:.6g} "
            f"(mismatch {np.abs(r).max():.3g}); check the signs in the loop or give better start values",
            time=t,
        )


def _same(value: Any) -> Any:
    return value


class _News:
    """Who hears of a subsystem's new outputs, and the order in which news travels: sources before readers."""

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


def _sources_first(reached: list[list[int]]) -> list[int]:
    """Subsystems in an order in which each comes before those it reaches; members of loops last, as they are listed."""
    sources: dict[int, list[int]] = {i: [] for i in range(len(reached))}
    for i, found in enumerate(reached):
        for k in found:
            sources[k].append(i)
    groups, looped = levels(sources)
    return [i for group in groups for i in group] + looped
