"""The crew: the subsystems of a plan at work. Every call into a subsystem passes here.

It hands out input signals, counts and times the calls, checks what comes back, saves and restores states, and
wraps failures into one sentence that names the subsystem and the time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.errors import ConvergenceError, CosolveError, NonFiniteError, SubsystemError
from cosolve.interface.plan import Block, Index, Plan
from cosolve.signal import Polynomial
from cosolve.subsystem.base import has_capability
from cosolve.subsystem.feedthrough import try_outputs
from cosolve.subsystem.port import Matrix, Vector, is_number


@dataclass(frozen=True, slots=True)
class Window:
    """One macro step `[t0, t1]`; `H` is its exact nominal length (`t1 - t0` up to rounding)."""

    t0: float
    t1: float
    H: float


class Crew:
    """Runs the subsystems of `plan`, with `workers` threads where that is more than one."""

    def __init__(self, plan: Plan, workers: int = 1) -> None:
        self.plan = plan
        self.calls = np.zeros(plan.n_subsystems, dtype=np.int64)
        self.jacobians = np.zeros(plan.n_subsystems, dtype=np.int64)
        self.seconds = np.zeros(plan.n_subsystems)
        self._can_replay = [has_capability(s, "replay") for s in plan.subsystems]
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
        # per subsystem: where its inputs come from, and factors and constants where there are any
        self._feeds: list[tuple[Index, Vector | None, Vector | None]] = []
        for part in plan.u_slices:
            factor, offset = plan.u_factor[part], plan.u_offset[part]
            self._feeds.append(
                (plan.u_source[part], None if (factor == 1).all() else factor, offset if offset.any() else None)
            )
        #: threads for calls that may run at the same time, or None
        self.pool = ThreadPoolExecutor(workers) if workers > 1 else None

    def close(self) -> None:
        """End the worker threads."""
        if self.pool is not None:
            self.pool.shutdown()

    # -- start and instantaneous outputs ---------------------------------------------------------------

    def start(self, t0: float) -> tuple[Vector, Vector]:
        """Put every subsystem into its initial state; consistent outputs and coupling variables at `t0`.

        Values that are not known yet are NaN and travel through laws and feed-through, so whatever depends on them
        stays unknown until they are found; what remains unknown at the end sits in an algebraic loop.
        """
        plan = self.plan
        y = np.full(plan.n_y, np.nan)
        for i, subsystem in enumerate(plan.subsystems):
            first = self._guarded(i, t0, "starting", partial(subsystem.start, t0), packed=False)
            if first is not None:
                y[plan.y_slices[i]] = self._guarded(i, t0, "starting", partial(_same, first))
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
        return self.settle(t0, y, z)

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

        Direct feed-through is followed until nothing changes; where it runs in a loop, Newton closes the loop.
        """
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
                return self._close_loop(t, y, z)
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
        return y, z

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

        scale = plan.z_nominal + np.abs(z)
        r = mismatch(z)
        for _ in range(50):
            if np.all(np.abs(r) <= 1e-12 * scale):
                return y, z
            G = np.empty((plan.n_z, plan.n_z))
            for m in range(plan.n_z):
                shifted = z.copy()
                shifted[m] += 1e-6 * scale[m]
                G[:, m] = (mismatch(shifted) - r) / (shifted[m] - z[m])
            z = z - np.linalg.lstsq(G, r, rcond=None)[0]
            scale = np.maximum(scale, np.abs(z))
            r = mismatch(z)
        worst = plan.z_labels[int(np.argmax(np.abs(r) / scale))]
        raise ConvergenceError(
            f"the algebraic loop through '{worst}' has no solution that Newton finds at t = {t:.6g} "
            f"(mismatch {np.abs(r).max():.3g}); check the signs in the loop or give better start values",
            time=t,
        )

    # -- crossing a macro step -------------------------------------------------------------------------

    def signal(self, i: int, window: Window, coefficients: Matrix) -> Polynomial:
        """The input signal of subsystem `i` for coupling variables with these coefficients."""
        source, factor, offset = self._feeds[i]
        values = coefficients[:, source] if self.plan.n_z else np.zeros((1, len(source)))
        if factor is not None:
            values *= factor
        if offset is not None:
            values[0] += offset
        return Polynomial(window.t0, window.H, values)

    def advance(self, i: int, window: Window, coefficients: Matrix, *, replay: bool = False) -> Vector:
        """Subsystem `i` crosses the step; its outputs at the end (evaluated with the inputs it used)."""
        subsystem, u = self.plan.subsystems[i], self.signal(i, window, coefficients)
        cross = subsystem.replay if replay and self._can_replay[i] else subsystem.advance
        self.calls[i] += 1
        y: Vector = self._guarded(i, window.t0, "crossing the step", partial(cross, window.t0, window.t1, u))
        return y

    def own_step(self, i: int, window: Window, coefficients: Matrix) -> tuple[float, Vector]:
        """Subsystem `i` takes one step of its own size, at most to the end of the window."""
        subsystem, u = self.plan.subsystems[i], self.signal(i, window, coefficients)
        self.calls[i] += 1
        reached = self._guarded(
            i,
            window.t0,
            "taking its own step",
            partial(subsystem.step, window.t0, window.t1, u),
            packed=False,
        )
        pair = isinstance(reached, (tuple, list)) and len(reached) == 2
        t1, outputs = reached if pair else (np.nan, None)
        if not is_number(t1) or not window.t0 < t1 <= window.t1:
            what = f"stepped from t = {window.t0:.6g} to t = {t1:.6g}" if is_number(t1) else f"returned {reached!r}"
            raise SubsystemError(
                f"'{self.plan.names[i]}' {what} from its step method; expected (t1, outputs) with "
                f"{window.t0:.6g} < t1 <= {window.t1:.6g}",
                time=window.t0,
                subsystem=self.plan.names[i],
            )
        return t1, self._guarded(i, window.t0, "taking its own step", partial(_same, outputs))

    def sweep(self, window: Window, coefficients: Matrix) -> Vector:
        """All subsystems cross the step independently of each other (Jacobi); all outputs at its end."""
        plan = self.plan
        y = np.empty(plan.n_y)
        if self.pool is None:
            for i in range(plan.n_subsystems):
                y[plan.y_slices[i]] = self.advance(i, window, coefficients)
        else:
            jobs = [self.pool.submit(self.advance, i, window, coefficients) for i in range(plan.n_subsystems)]
            for i, job in enumerate(jobs):
                y[plan.y_slices[i]] = job.result()
        return y

    def jacobian(self, i: int, window: Window, coefficients: Matrix, weight: Vector) -> Matrix:
        """The subsystem's own `dy/du` for input perturbations of the shape `weight`."""
        subsystem, u = self.plan.subsystems[i], self.signal(i, window, coefficients)
        self.jacobians[i] += 1
        ports_in, ports_out = self.plan.input_ports[i], self.plan.output_ports[i]
        ask = partial(subsystem.jacobian, window.t0, window.t1, u, weight)
        given = self._guarded(i, window.t0, "giving its Jacobian", ask, packed=False)
        try:
            J = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            J = np.full((1, 1), np.nan)
        if J.shape != (ports_out.length, ports_in.length) or not np.isfinite(J).all():
            what = f"shape {J.shape}" if np.isfinite(J).all() else "a NaN or an infinity in it"
            raise SubsystemError(
                f"'{self.plan.names[i]}' gave a Jacobian with {what}; expected finite numbers of shape "
                f"({ports_out.length}, {ports_in.length}) = (outputs, inputs)",
                time=window.t0,
                subsystem=self.plan.names[i],
            )
        return np.asarray(J)

    # -- rollback --------------------------------------------------------------------------------------

    def save(self) -> list[Any]:
        """The states of all subsystems."""
        states = []
        try:
            for subsystem in self.plan.subsystems:
                states.append(subsystem.save())
        except Exception as error:
            raise self._rollback_failed(len(states), "save", error) from error
        return states

    def restore(self, states: list[Any]) -> None:
        """Back to saved states."""
        for i in range(self.plan.n_subsystems):
            self.restore_one(i, states)

    def restore_one(self, i: int, states: list[Any]) -> None:
        """Subsystem `i` back to its saved state."""
        try:
            self.plan.subsystems[i].restore(states[i])
        except Exception as error:
            raise self._rollback_failed(i, "restore", error) from error

    def _rollback_failed(self, i: int, call: str, error: Exception) -> SubsystemError:
        name = self.plan.names[i]
        return SubsystemError(f"'{name}' failed in {call}: {error} ({type(error).__name__})", subsystem=name)

    # -- guarding --------------------------------------------------------------------------------------

    def _guarded(self, i: int, t: float, doing: str, call: Callable[[], Any], *, packed: bool = True) -> Any:
        """Run a call into subsystem `i`; time it; turn what goes wrong into one sentence."""
        name = self.plan.names[i]
        began = perf_counter()
        try:
            value = call()
            if packed:
                value = self.plan.output_ports[i].pack(value)
        except Exception as error:
            kind = NonFiniteError if isinstance(error, NonFiniteError) else SubsystemError
            # our own complaints are sentences already; others are named by their type too
            what = str(error) if isinstance(error, CosolveError) else f"{error} ({type(error).__name__})"
            raise kind(f"'{name}' failed while {doing} at t = {t:.9g}: {what}", time=t, subsystem=name) from error
        finally:
            self.seconds[i] += perf_counter() - began
        if packed and not np.isfinite(value).all():
            bad = int(np.flatnonzero(~np.isfinite(value))[0])
            raise NonFiniteError(
                f"'{name}' returned {value[bad]} for output '{self.plan.output_ports[i].labels()[bad]}' while {doing} "
                f"at t = {t:.9g}; a smaller step or a more stable method may help if values grew before",
                time=t,
                subsystem=name,
            )
        return value


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
    waiting_for = np.zeros(len(reached), dtype=np.intp)
    for found in reached:
        for k in found:
            waiting_for[k] += 1
    order = [i for i, n in enumerate(waiting_for) if n == 0]
    for i in order:  # grows while it is read
        for k in reached[i]:
            waiting_for[k] -= 1
            if waiting_for[k] == 0:
                order.append(k)
    done = set(order)
    return order + [i for i in range(len(reached)) if i not in done]
