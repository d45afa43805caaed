"""Many macro steps at once: where a run can go through compiled code, and taking it there and back.

A run in uniform steps enters compiled code when its history is full (start-up belongs to the Python engine), advances
some hundred steps, and comes back with their rows. Before and after, the Python engine could go on from
the same state with the same bits; so it takes every step that is out of the ordinary.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from ctypes import c_double
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.wording import failed_while
from cosolve.engine.chunk import Chunk, RowBuffers
from cosolve.engine.corrections import LEAST
from cosolve.engine.native.effort import repays
from cosolve.engine.native.laws import Law, law_code
from cosolve.engine.native.reasons import by_captured, by_run, by_steps_handed_back, carried_out, natives_of, reason
from cosolve.engine.native.wiring import JACOBIANS, NORM_COUNT, NORMS_PER_STEP, OWN_SWEEPS, Wiring, wire
from cosolve.errors import CosolveError, EndOfSimulation, NonFiniteError, SimulationError, SubsystemError
from cosolve.interface.stages import outputs_at
from cosolve.method import Declaration
from cosolve.method.explicit import in_order
from cosolve.stepsize.sequence import Controlled, GivenSteps, Uniform
from cosolve.subsystem.base import has_capability
from cosolve.subsystem.native import entered

if TYPE_CHECKING:
    from cosolve.run import Core

#: Chunks in a row without a step after which a run stays with the Python engine.
_FAILURES = 3

#: Rows of the first chunk, and of any at most; numbers in them at most. Later chunks take about so many seconds: Ctrl-C
#: and the progress bar must not wait for long.
_FIRST, _ROWS, _NUMBERS, _SECONDS = 64, 1 << 16, 1 << 20, 2e-2


class Chunks:
    """The compiled side of one run. `take` advances over as many steps as it may, or none."""

    def __init__(self, core: Core) -> None:
        self.core = core
        plan = core.plan
        self.reason = by_run(core)
        self._loop: Callable[..., int] | None = None
        self._steps: Any = None  # of runs whose steps change
        self.laws: list[Law] = []
        self._failures = 0  # chunks in a row that took no step
        self.left = sys.maxsize  # steps that may be taken
        self.loading = 0.0  # seconds of the last `take` that went into compiling
        self._most = max(1, min(_ROWS, _NUMBERS // (plan.n_y + plan.n_z + 1)))
        self._rows = min(_FIRST, self._most)

    def take(self, buffers: RowBuffers | None = None) -> Chunk | None:
        """Advance over many steps from where the run stands; None when the Python engine must take the next one.

        `buffers(rows)` gives arrays `y`, `z` and `residual` to write the rows to.
        """
        core, windows = self.core, self.core.windows
        history = core.history
        if self.reason is not None or len(history.values) <= core.method.depth or windows.done:
            return None
        if core.corrections.expected is not None:  # a step that was taken back
            return None
        declaration = core.method.declaration
        if declaration is not None and declaration.corrector is not None and core.measure.unknown:
            return None  # at rest, so that nothing has a size yet
        if core.t == core.t_start:  # with a known past too the Python engine goes first: it tries out rollback
            return None
        if isinstance(windows, (Controlled, GivenSteps)):
            return self._timed(self._step_by_step, windows)
        assert isinstance(windows, Uniform)
        if any(step != windows.H for step in history.steps):
            return None
        times = windows.points(min(self._rows, self.left))
        if len(times) < 2:
            return None
        began = perf_counter()
        if self._loop is None:
            if not self._prepare(windows.H) or self.reason is not None:
                return None
            from cosolve.engine.native.loops import loop

            self._loop = loop("equal_steps", self.bound)
            if not self.compiles(lambda: self._advance(times[:1], None)):
                return None
        self.loading = perf_counter() - began
        return self._timed(self._advance, times, buffers)

    def _timed(self, advance: Callable[..., Chunk | None], *arguments: Any) -> Chunk | None:
        """A chunk; the next is larger where this one took no time, and smaller where it took long."""
        changed = [law.block.label for law in self.laws if not law.begin()]
        if changed:
            self.reason = reason("changed", law=changed[0])
            return None
        began = perf_counter()
        chunk = advance(*arguments)
        spent = perf_counter() - began
        if spent < _SECONDS / 4:
            self._rows = min(4 * self._rows, self._most)
        elif spent > 4 * _SECONDS:
            self._rows = max(1, self._rows // 4)
        return chunk

    def _step_by_step(self, windows: Controlled | GivenSteps) -> Chunk | None:
        """Steps of changing length: error-controlled ones, or given ones."""
        from cosolve.engine.native.control import ControlledChunks
        from cosolve.engine.native.given import GivenChunks

        began = perf_counter()
        if self._steps is None:
            if isinstance(windows, GivenSteps):
                self._steps, H = GivenChunks(self, windows), windows.usual
            else:
                self._steps, H = ControlledChunks(self, windows), windows.first_step
            if self.reason is not None or not self._prepare(H) or not self._steps.ready():
                return None
            if not self.compiles(lambda: self._steps.take(0)):
                return None
        self.loading = perf_counter() - began
        taken: Chunk | None = self._steps.take(min(self._rows, self.left))
        return taken

    def compiles(self, first: Callable[[], object]) -> bool:
        """Compile, or read from the cache, by a first call without steps; False (with the reason) where that fails."""
        from cosolve.jit import NumbaError

        try:
            first()
        except NumbaError as error:  # of a step function that is not ours
            self.reason = reason("step function", method=self.core.method.name, error=_first_line(error))
        return self.reason is None

    @property
    def worth_it(self) -> bool:
        """True when the steps that are left repay loading the compiled loops."""
        return self.reason is None and repays(self.core, self.core.windows.left)

    def _prepare(self, H: float) -> bool:
        """Compile, and lay out memory; False (with the reason) when a subsystem cannot be advanced."""
        plan, method = carried_out(self.core.plan, self.core.method)
        self.plan, self.method = plan, method
        if method is not self.core.method:
            self._ends = outputs_at(self.core.plan)[0]
        natives = natives_of(plan, H, method.degree + self.core.added_degrees)
        if isinstance(natives, str):
            self.reason = natives
            return False
        declaration = method.declaration
        assert declaration is not None
        solves = declaration.corrector is not None
        self.laws = []
        for block in plan.blocks:
            try:
                law = law_code(block, solves, self.core.y if plan is self.core.plan else None)
            except Exception as error:  # numba's own kinds, many
                self.reason = reason("law", error=_first_line(error))
                return False
            if isinstance(law, str):
                self.reason = reason("plain law", law=block.label, why=law)
                return False
            self.laws.append(law)
        self.reason = by_captured(plan, natives, self.laws)
        if self.reason is not None:
            return False
        order = in_order(plan, declaration.order)
        self.natives = natives
        addresses = [(law.values, law.partials) for law in self.laws]
        self.wiring = wire(plan, natives, addresses, order, method.degree, self.core.history)
        # a step is undone where the method does so anyway, where that is cheap, or where the Python engine may have
        # to take it again
        repeats = "rollback" in method.needs
        self.may_retry = repeats or any(n.hands_back for n in natives) or all(len(n.state) for n in natives)
        if not repeats and (found := by_steps_handed_back(plan, natives)) is not None:
            self.reason = found
            return False
        self._H = H
        self._pasts: dict[int, Matrix] = {}
        for i, past in enumerate(self.core.caller.past):
            if past is not None:
                self._pasts[i] = np.empty((self._most + 2, past.length))
                self.wiring.keep_past(i, self._pasts[i])
        return self._bind(declaration)

    def take_past(self) -> None:
        """What was advanced in machine code belongs to the past of the run."""
        for i, rows in self._pasts.items():
            past = self.core.caller.past[i]
            assert past is not None
            past.extend(rows[: self.wiring.take_past(i)])
            past.restored, past.compiled = past.restored or self.may_retry, True

    def _bind(self, declaration: Declaration) -> bool:
        """The loop around the step function; False (with the reason) where Jacobians may change by themselves."""
        from cosolve.engine.native import operations
        from cosolve.engine.native.loops import compiled_step_function
        from cosolve.engine.step_functions import bind_step_function

        wiring, core = self.wiring, self.core
        if declaration.corrector is not None:
            if not self._set_responses(wiring, declaration, self._end_weight()):
                return False
            self._lapack = lapack_addresses()
            steady = bool(wiring.exact.all()) and not len(wiring.laws)
            wiring.put(every=int(declaration.corrector.refresh == "iteration"), lapack=self._lapack)
            wiring.put(keep=int(steady), increment=float(declaration.increment))
        wiring.put(**operations.node_weights(self.method.signal))
        if self.method is not core.method:
            wiring.put(means=2)
        self.bound = bind_step_function(
            self.method, declaration, operations.OPERATIONS, compiled_step_function, Path(operations.__file__)
        )
        return True

    def _end_weight(self) -> Vector:
        """The shape of the end value in signals of equal steps."""
        core = self.core
        past = core.history.past([core.z] * (core.method.depth + 1), self._H)
        return past.interpolation(self.method.degree, self._H)[1]

    def past(self) -> Matrix:
        """What the history holds, for compiled loops to go on from; twice where they work at two points."""
        values = np.array(self.core.history.values[: self.core.method.depth + 1])
        return values if self.method is self.core.method else np.tile(values, 2)

    def at_ends(self, Y: Matrix) -> Matrix:
        """Outputs at macro points, of what compiled loops wrote down."""
        return Y if self.method is self.core.method else Y[:, self._ends]

    def put_statistics(self, values: Matrix, norms: Vector) -> Any:
        """Let compiled code see the history, the sizes and room for norms; the result keeps them in memory."""
        measure, corrections = self.core.measure, self.core.corrections
        plain = measure.plain.astype(np.int64)
        self.wiring.put(history=values, sizes=measure.size, plain=plain, least=measure.least)
        self.wiring.put(open=measure.open, y_sizes=measure.y_size, y_open=measure.y_open)
        self.wiring.put(norms=norms, capacity=len(norms), filled=0, problem=0, residual=np.nan)
        self.wiring.put(noted=0, failed=0, kept=0, handed_over=0)
        # sizes only grow, so that this holds for the whole chunk
        self.wiring.put(quiet=max(corrections.quiet, LEAST * measure.least_size), examinations=corrections.examinations)
        return plain

    def _set_responses(self, w: Wiring, declaration: Declaration, weight: Vector) -> bool:
        """Constant Jacobians, where subsystems have them and the method wants them; False where they may change."""
        plan = self.plan
        for i, native in enumerate(self.natives):
            if declaration.jacobian != "auto" or not has_capability(plan.subsystems[i], "jacobian"):
                continue
            if native.response:
                w.respond[i] = native.response
                continue
            if native.jacobian is None:
                self.reason = reason("own jacobian", name=plan.names[i])
                return False
            w.responses[i][:] = plan.by_variables(i, np.asarray(native.jacobian(weight))).ravel()
            w.exact[i] = 1
        return True

    def _advance(self, times: Vector, buffers: RowBuffers | None) -> Chunk | None:
        core, method = self.core, self.core.method
        count = len(times) - 1
        rows = self._scratch(count) if buffers is None or not count else buffers(count)
        Y, Z, R, counts = rows["y"], rows["z"], rows["residual"], np.empty(count, np.int64)
        written = Y if self.method is method else np.empty((count, self.plan.n_y))
        norms = np.zeros(max(NORMS_PER_STEP, min(count * NORMS_PER_STEP, 1 << 16)))
        values = self.past()
        kept = self.put_statistics(values, norms)
        assert self._loop is not None
        with entered(self.natives):
            done = int(
                self._loop(
                    *(
                        self.wiring.address,
                        self.bound.options,
                        values,
                        times,
                        self._H,
                        self.may_retry,
                        written,
                        Z,
                        R,
                        counts,
                    )
                )
            )
        del kept
        self.take_past()
        self.note_end(not done and count > 0)
        failure = None if self.may_retry or done == count else self.failed(float(times[done]))
        if not done:
            if failure is not None:
                raise failure
            return None
        self.compare(written[done - 1])
        if written is not Y:
            Y[:done] = self.at_ends(written[:done])
        chunk = self.chunk(times[1 : done + 1], Y[:done], Z[:done], self._H, R, counts, norms)
        chunk.failure = failure
        core.skip(chunk.t, chunk.y[-1].copy(), chunk.z[-1].copy(), list(values[:, : core.plan.n_z]))
        return chunk

    def compare(self, y: Vector) -> None:
        """Raise where the machine code of a law differs from Python at these outputs."""
        for law in self.laws:
            law.end(y)

    def chunk(self, t: Vector, Y: Matrix, Z: Matrix, H: Any, R: Vector, counts: Any, norms: Vector) -> Chunk:
        """The rows of these steps; what is the same in all of them is said once."""
        packed = counts[: len(t)]
        same = bool((packed == packed[0]).all())
        packed = packed[0] if same else packed
        sweeps, renewed, own = packed % JACOBIANS, packed // JACOBIANS % JACOBIANS, packed // OWN_SWEEPS
        norm_counts = packed // NORM_COUNT % JACOBIANS
        iterated = bool(np.any(norm_counts))
        if iterated:
            norm_counts = np.broadcast_to(norm_counts, len(t))
        iterations: Any = (norm_counts if iterated else own) - 1
        noted = bool(self.wiring.executor["noted"])
        chunk = Chunk(
            *(t, Y, Z, H, iterations.astype(np.int32) if np.ndim(iterations) else int(iterations)),
            *(R[: len(t)] if noted else np.nan, self.count(len(t), sweeps, renewed), 0, np.nan),
        )
        if iterated:
            chunk.norms, chunk.counts = norms[: int(norm_counts.sum())], norm_counts.copy()
        return chunk

    def note_end(self, failed: bool) -> None:
        """A chunk is over; give up when chunk after chunk takes no step, unless they only wait to be checked."""
        executor = self.wiring.executor
        if executor["failed"] and executor["counters"] >= JACOBIANS:
            began = np.array((c_double * self.plan.n_z).from_address(int(executor["uncorrected"])))
            self.core.corrections.expected = float(executor["t0"]), float(executor["length"]), began
        failed = failed and not executor["handed_over"]
        self._failures = self._failures + 1 if failed else 0
        if self._failures >= _FAILURES:
            self.reason = reason("failing")

    def failed(self, t: float) -> SimulationError | EndOfSimulation:
        """What went wrong in a step that cannot be undone."""
        i, status = (int(k) for k in self.wiring.failure)
        if i < 0:
            return NonFiniteError(f"a law returned a NaN or an infinity at t = {t:.9g}", time=t)
        name, native = self.core.plan.names[i], self.natives[i]
        if status and native.explain is not None:
            try:
                native.explain(status)
            except EndOfSimulation as end:
                end.subsystem, end.time = name, t if end.time is None else end.time
                return end
            except CosolveError as error:
                kind = NonFiniteError if isinstance(error, NonFiniteError) else SubsystemError
                failure = kind(failed_while(name, "advancing", t, error), time=t, subsystem=name)
                failure.__cause__ = error  # with the traceback of a subsystem in Python
                return failure
        what = "returned a NaN or an infinity" if not status else f"failed with status {status}"
        return NonFiniteError(f"'{name}' {what} while advancing at t = {t:.9g}", time=t, subsystem=name)

    def _scratch(self, count: int) -> Mapping[str, Any]:
        """Room for rows that are only passing through."""
        plan = self.core.plan
        return {"y": np.empty((count, plan.n_y)), "z": np.empty((count, plan.n_z)), "residual": np.empty(count)}

    def count(self, steps: int, sweeps: Any, renewed: Any) -> npt.NDArray[np.int64]:
        """Calls per subsystem (and step) for so many sweeps and interface Jacobians; the caller's counters are kept."""
        caller, w = self.core.caller, self.wiring
        calls: npt.NDArray[np.int64] = sweeps[..., np.newaxis] + renewed[..., np.newaxis] * w.differenced
        same = calls.ndim == 1
        caller.calls += calls * steps if same else calls.sum(axis=0)
        caller.jacobians += np.where(w.exact | (w.respond != 0), renewed * steps if same else renewed.sum(), 0)
        return calls


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def lapack_addresses() -> npt.NDArray[np.int64]:
    """Addresses of the routines that SciPy itself uses."""
    from numba.extending import get_cython_function_address

    names = ("dgetrf", "dgecon", "dgetrs")
    return np.array([get_cython_function_address("scipy.linalg.cython_lapack", name) for name in names], np.int64)
