"""Many macro steps at once: where a run can go through compiled code, and taking it there and back.

A run in uniform steps enters compiled code when its history is full (start-up belongs to the readable engine), crosses
some hundred steps, and comes back with their rows. Before and after, the readable engine could go on from
the same state with the same bits; so it takes every step that is out of the ordinary.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from ctypes import c_double
from pathlib import Path
from time import perf_counter
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.wording import failed_while
from cosolve.engine.chunk import Chunk, Room
from cosolve.engine.native.laws import law_addresses
from cosolve.engine.native.wiring import (
    COUNTERS,
    HANDED_OVER,
    JACOBIANS,
    LENGTH,
    NORM_COUNT,
    NORMS_PER_STEP,
    NOTED,
    OWN_SWEEPS,
    T0,
    TROUBLED,
    UNCORRECTED,
    Wiring,
    obstacle,
    wire,
)
from cosolve.engine.native.wiring import VERBS as _VERBS
from cosolve.engine.texts import option_obstacle, text_obstacle
from cosolve.errors import CosolveError, EndOfSimulation, NonFiniteError, SimulationError, SubsystemError
from cosolve.interface import Plan, System
from cosolve.interface.stages import outputs_at, staged
from cosolve.method import Method, Script
from cosolve.method.named import MethodLike, as_method
from cosolve.method.order import in_order
from cosolve.stepsize.sequence import Controlled, Uniform
from cosolve.subsystem.base import has_capability
from cosolve.subsystem.native import Native

if TYPE_CHECKING:
    from cosolve.run import Core

#: Steps left from which a run goes through compiled code by itself: some loop loaded already, or none yet. A loop or a
#: right-hand side that is new to this machine takes seconds to compile, which short runs would not earn back.
_WORTH_RUNNING, _WORTH_LOADING = 20_000, 100_000

#: Chunks in a row without a step after which a run stays with the readable engine.
_FAILURES = 3

#: Rows of the first chunk, and of any at most; numbers in them at most. Later chunks take about so many seconds: Ctrl-C
#: and the progress bar must not wait for long.
_FIRST, _ROWS, _NUMBERS, _SECONDS = 64, 1 << 16, 1 << 20, 2e-2


def why_not_compiled(system: System, method: MethodLike, step: object = None) -> str | None:
    """Why a run does not go through compiled code, in one sentence; None when it does.

    >>> import cosolve as cs
    >>> tank = lambda: cs.Linear([[-1]], [[1]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(), "two": tank()})
    >>> system.connect("one.h", "two.q")
    >>> system.law("one.q", lambda h: -h, of="two.h")
    >>> cs.why_not_compiled(system, cs.Jacobi(1), 0.1)
    'the law for one.q is a plain Python function; decorate it with numba.njit'
    """
    plan = system.plan()
    method = as_method(method)
    found = _method_obstacle(method) or obstacle(plan)
    if found is not None or step is None:
        return found
    length = float(step) if isinstance(step, (int, float)) else 1.0
    plan, method = carried_out(plan, method)
    made = _natives(plan, length, method.degree)
    if isinstance(made, str):
        return made
    return None if isinstance(step, (int, float)) else step_obstacle(plan, made, method)


def carried_out(plan: Plan, method: Method) -> tuple[Plan, Method]:
    """What the loops are made for: with coupling equations inside the step that of degree 0 at both points."""
    if method.inner_point is None:
        return plan, method
    return staged(plan, method.inner_point), method.at_stages()


def step_obstacle(plan: Plan, natives: list[Native], method: Method) -> str | None:
    """Why steps of changing length cannot be compiled."""
    script = method.script
    corrected = script is not None and script.corrector is not None and script.jacobian == "auto"
    for name, subsystem, native in zip(plan.names, plan.subsystems, natives, strict=True):
        if not native.any_step:
            return f"'{name}' is compiled for one step length only; give a fixed step"
        if corrected and has_capability(subsystem, "jacobian") and not native.response:
            changes = f"'{name}' gives a Jacobian of its own that changes with the step"
            return f"{changes}; runs with jacobian='difference' are compiled"
        if not (native.save or len(native.state)):
            return f"'{name}' has no rollback: steps of changing length are compiled only where they can be undone"
    return None


def _method_obstacle(method: Method) -> str | None:
    """Why the macro step of this method is not compiled."""
    script = method.script
    if script is None:
        return f"{method.name} is not written in verbs"
    corrector = script.corrector
    known = _VERBS if corrector is None or corrector.text is None else _VERBS | {"corrected"}
    found = text_obstacle(script, known)
    if found is not None and corrector is not None and corrector.text is None:
        return f"{corrector!r} runs in the readable engine; Newton per step or iteration is compiled"
    if found is not None:
        return f"{method.name} is not compiled: {found}, which only the readable engine knows"
    if (reads := option_obstacle(method, script)) is not None:
        return f"{method.name} is not compiled: {reads}"
    if corrector is not None and corrector.refresh == "run":
        return "Jacobians that are kept for a run belong to the readable engine"
    if script.norm != "entries":
        return "norms of whole fields belong to the readable engine"
    return None if script.local == "converged" else "approximate crossings belong to the readable engine"


def _natives(plan: Plan, H: float, degree: int) -> list[Native] | str:
    found = []
    for name, subsystem in zip(plan.names, plan.subsystems, strict=True):
        native = subsystem.native(H, degree)
        if isinstance(native, str):
            return f"'{name}' cannot be crossed from compiled code: {native}"
        found.append(native)
    return found


def uncompiled_note(core: Core) -> str:
    """What keeps a run in Python that could be compiled, found without compiling anything; empty where nothing does.

    Plain Python functions in subsystems or laws: the remedy is a decorator.
    """
    plan, windows = core.plan, core.windows
    plain = [
        (name, subsystem)
        for name, subsystem in zip(plan.names, plan.subsystems, strict=True)
        if has_capability(subsystem, "compiled crossing")
        and any(isinstance(value, FunctionType) for value in vars(subsystem).values())
    ]
    found = [(f"'{name}'", subsystem.native(windows.usual, core.method.degree)) for name, subsystem in plain]
    said = [f"{name}: {reason}" for name, reason in found if isinstance(reason, str) and "plain Python" in reason]
    reason = _method_obstacle(core.method) or obstacle(plan)
    if reason is not None and "plain Python" not in reason:
        return ""
    return "; ".join([*said, *([reason] if reason else [])])


class Chunks:
    """The compiled side of one run. `take` crosses as many steps as it may, or none."""

    def __init__(self, core: Core) -> None:
        self.core = core
        plan, method, windows = core.plan, core.method, core.windows
        self.reason = _method_obstacle(method) or obstacle(plan)
        if core.crew.watch is not None:
            self.reason = "macro steps that end at events are crossed by the readable engine"
        if self.reason is None and type(windows) not in (Uniform, Controlled):
            self.reason = "the method chooses its own steps"
        if self.reason is None and core.startup.own_steps:
            self.reason = "the run has a start of its own"
        if self.reason is None and core.crew.pool is not None:
            self.reason = "workers were asked for"
        self._loop: Callable[..., int] | None = None
        self._steps: Any = None  # of controlled runs
        self._failures = 0  # chunks in a row that took no step
        self.left = sys.maxsize  # steps that may be taken
        self.loading = 0.0  # seconds of the last `take` that went into compiling
        self._most = max(1, min(_ROWS, _NUMBERS // (plan.n_y + plan.n_z + 1)))
        self._rows = min(_FIRST, self._most)

    def take(self, room: Room | None = None) -> Chunk | None:
        """Cross many steps from where the run stands; None when the readable engine must take the next one.

        `room(rows)` gives arrays `y`, `z` and `residual` to write the rows to.
        """
        core, windows = self.core, self.core.windows
        history = core.history
        if self.reason is not None or len(history.values) <= core.method.depth or windows.done:
            return None
        if core.corrections.expected is not None:  # a step that was taken back
            return None
        script = core.method.script
        if script is not None and script.corrector is not None and core.measure.unknown:
            return None  # at rest, so that nothing has a size yet
        if core.t == core.t_start:  # with a known past too the readable engine goes first: it tries out rollback
            return None
        if isinstance(windows, Controlled):
            return self._timed(self._controlled, windows)
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
            if not self.compiles(lambda: self._cross(times[:1], None)):
                return None
        self.loading = perf_counter() - began
        return self._timed(self._cross, times, room)

    def _timed(self, cross: Callable[..., Chunk | None], *arguments: Any) -> Chunk | None:
        """A chunk; the next is larger where this one took no time, and smaller where it took long."""
        began = perf_counter()
        chunk = cross(*arguments)
        spent = perf_counter() - began
        if spent < _SECONDS / 4:
            self._rows = min(4 * self._rows, self._most)
        elif spent > 4 * _SECONDS:
            self._rows = max(1, self._rows // 4)
        return chunk

    def _controlled(self, windows: Controlled) -> Chunk | None:
        """Error-controlled steps."""
        from cosolve.engine.native.control import ControlledChunks

        began = perf_counter()
        if self._steps is None:
            self._steps = ControlledChunks(self, windows)
            if self.reason is not None or not self._prepare(windows.first_step) or not self._steps.ready():
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
        except NumbaError as error:  # of a text that is not ours
            self.reason = f"numba cannot compile the macro step of {self.core.method.name}: {_first_line(error)}"
        return self.reason is None

    @property
    def worth_it(self) -> bool:
        """True when the steps that are left repay loading the compiled loops."""
        windows = self.core.windows
        if self.reason is not None:
            return False
        loaded = "cosolve.engine.native.parts" in sys.modules
        return windows.left >= (_WORTH_RUNNING if loaded else _WORTH_LOADING)

    def _prepare(self, H: float) -> bool:
        """Compile, and lay out memory; False (with the reason) when a subsystem cannot be crossed."""
        plan, method = carried_out(self.core.plan, self.core.method)
        self.plan, self.method = plan, method
        if method is not self.core.method:
            self._ends = outputs_at(self.core.plan)[0]
        natives = _natives(plan, H, method.degree)
        if isinstance(natives, str):
            self.reason = natives
            return False
        script = method.script
        assert script is not None
        solves = script.corrector is not None
        try:
            laws = [law_addresses(block, partials=solves) for block in plan.blocks]
        except Exception as error:  # numba's own kinds, many
            self.reason = f"numba cannot compile a law: {_first_line(error)}"
            return False
        order = in_order(plan, script.order)
        self.natives = natives
        self.wiring = wire(plan, natives, laws, order, method.degree, self.core.history)
        # a step is undone where the method does so anyway, where that is cheap, or where the readable engine may have
        # to take it again
        repeats, back = "rollback" in method.needs, [n.hands_back for n in natives]
        self.may_retry = repeats or any(back) or all(len(n.state) for n in natives)
        stuck = [name for name, n in zip(plan.names, natives, strict=True) if not (n.save or len(n.state))]
        if not repeats and any(back) and stuck:
            self.reason = f"'{plan.names[back.index(True)]}' may hand a step back, and '{stuck[0]}' cannot be set back"
            return False
        self._H = H
        self._pasts: dict[int, Matrix] = {}
        for i, past in enumerate(self.core.crew.past):
            if past is not None:
                self._pasts[i] = np.empty((self._most + 2, past.length))
                self.wiring.keep_past(i, self._pasts[i])
        return self._bind(script)

    def take_past(self) -> None:
        """What was crossed in machine code belongs to the past of the run."""
        for i, rows in self._pasts.items():
            past = self.core.crew.past[i]
            assert past is not None
            past.extend(rows[: self.wiring.take_past(i)])
            past.restored, past.compiled = past.restored or self.may_retry, True

    def _bind(self, script: Script) -> bool:
        """The loop around the text of the method; False (with the reason) where Jacobians may change by themselves."""
        from cosolve.engine.native import verbs
        from cosolve.engine.native.loops import compiled_text
        from cosolve.engine.texts import bind_text

        wiring, core = self.wiring, self.core
        if script.corrector is not None:
            if not self._set_responses(wiring, script, self._end_weight()):
                return False
            self._lapack = lapack_addresses()
            steady = bool(wiring.exact.all()) and not len(wiring.laws)
            wiring.put(EVERY=int(script.corrector.refresh == "iteration"), LAPACK=self._lapack)
            wiring.put(KEEP=int(steady), INCREMENT=float(script.increment))
        wiring.put(**verbs.node_weights(self.method.signal))
        if self.method is not core.method:
            wiring.put(MEANS=2)
        self.bound = bind_text(self.method, script, verbs.VERBS, compiled_text, Path(verbs.__file__))
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

    def put_books(self, values: Matrix, norms: Vector) -> Any:
        """Let compiled code see the history, the sizes and room for norms; the result keeps them in memory."""
        measure, corrections = self.core.measure, self.core.corrections
        plain = measure.plain.astype(np.int64)
        self.wiring.put(HISTORY=values, SIZES=measure.size, PLAIN=plain, LEAST=measure.least)
        self.wiring.put(NOMINAL=self.plan.z_nominal, OPEN=measure.open)
        self.wiring.put(NORMS=norms, CAPACITY=len(norms), FILLED=0, PROBLEM=0, RESIDUAL=np.nan)
        self.wiring.put(NOTED=0, TROUBLED=0, KEPT=0, HANDED_OVER=0)
        self.wiring.put(QUIET=corrections.quiet, EXAMINATIONS=corrections.examinations)
        return plain

    def _set_responses(self, w: Wiring, script: Script, weight: Vector) -> bool:
        """Constant Jacobians, where subsystems have them and the method wants them; False where they may change."""
        plan = self.plan
        for i, native in enumerate(self.natives):
            if script.jacobian != "auto" or not has_capability(plan.subsystems[i], "jacobian"):
                continue
            if native.response:
                w.respond[i] = native.response
                continue
            if native.jacobian is None:
                own = f"'{plan.names[i]}' gives a Jacobian of its own that may change from step to step"
                self.reason = f"{own}; runs with jacobian='difference' are compiled"
                return False
            w.responses[i][:] = plan.by_variables(i, np.asarray(native.jacobian(weight))).ravel()
            w.exact[i] = 1
        return True

    def _cross(self, times: Vector, room: Room | None) -> Chunk | None:
        core, method = self.core, self.core.method
        count = len(times) - 1
        rows = self._scratch(count) if room is None or not count else room(count)
        Y, Z, R, counts = rows["y"], rows["z"], rows["residual"], np.empty(count, np.int64)
        written = Y if self.method is method else np.empty((count, self.plan.n_y))
        norms = np.zeros(max(NORMS_PER_STEP, min(count * NORMS_PER_STEP, 1 << 16)))
        values = self.past()
        kept = self.put_books(values, norms)
        for native in self.natives:
            native.enter()
        assert self._loop is not None
        try:
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
        finally:
            for native in self.natives:
                native.leave()
        del kept
        self.take_past()
        self.note_end(not done and count > 0)
        failure = None if self.may_retry or done == count else self._failed(float(times[done]))
        if not done:
            if failure is not None:
                raise failure
            return None
        if written is not Y:
            Y[:done] = self.at_ends(written[:done])
        chunk = self.chunk(times[1 : done + 1], Y[:done], Z[:done], self._H, R, counts, norms)
        chunk.failure = failure
        core.skip(chunk.t, chunk.y[-1].copy(), chunk.z[-1].copy(), list(values[:, : core.plan.n_z]))
        return chunk

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
        noted = bool(self.wiring.plan[NOTED])
        chunk = Chunk(
            *(t, Y, Z, H, iterations.astype(np.int32) if np.ndim(iterations) else int(iterations)),
            *(R[: len(t)] if noted else np.nan, self.count(len(t), sweeps, renewed), 0, np.nan),
        )
        if iterated:
            chunk.norms, chunk.counts = norms[: int(norm_counts.sum())], norm_counts.copy()
        return chunk

    def note_end(self, failed: bool) -> None:
        """A chunk is over; give up when chunk after chunk takes no step, unless somebody only has to look at them."""
        words = self.wiring.plan
        if words[TROUBLED] and words[COUNTERS] >= JACOBIANS:
            began = np.array((c_double * self.plan.n_z).from_address(int(words[UNCORRECTED])))
            t0, H = words.view(np.float64)[[T0, LENGTH]]
            self.core.corrections.expected = float(t0), float(H), began
        failed = failed and not words[HANDED_OVER]
        self._failures = self._failures + 1 if failed else 0
        if self._failures >= _FAILURES:
            self.reason = "its first steps keep failing in compiled code (an integrator that turned stiff, say)"

    def _failed(self, t: float) -> SimulationError | EndOfSimulation:
        """What went wrong in a step that cannot be undone."""
        i, status = (int(k) for k in self.wiring.trouble)
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
                failure = kind(failed_while(name, "crossing the step", t, error), time=t, subsystem=name)
                failure.__cause__ = error  # with the traceback of a subsystem in Python
                return failure
        what = "returned a NaN or an infinity" if not status else f"failed with status {status}"
        return NonFiniteError(f"'{name}' {what} while crossing the step at t = {t:.9g}", time=t, subsystem=name)

    def _scratch(self, count: int) -> Mapping[str, Any]:
        """Room for rows that are only passing through."""
        plan = self.core.plan
        return {"y": np.empty((count, plan.n_y)), "z": np.empty((count, plan.n_z)), "residual": np.empty(count)}

    def count(self, steps: int, sweeps: Any, renewed: Any) -> npt.NDArray[np.int64]:
        """Calls per subsystem (and step) for so many sweeps and interface Jacobians; the crew's books are kept."""
        crew, w = self.core.crew, self.wiring
        calls: npt.NDArray[np.int64] = sweeps[..., np.newaxis] + renewed[..., np.newaxis] * w.differenced
        same = calls.ndim == 1
        crew.calls += calls * steps if same else calls.sum(axis=0)
        crew.jacobians += np.where(w.exact | (w.respond != 0), renewed * steps if same else renewed.sum(), 0)
        return calls


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def lapack_addresses() -> npt.NDArray[np.int64]:
    """Addresses of the routines that SciPy itself uses."""
    from numba.extending import get_cython_function_address

    names = ("dgetrf", "dgecon", "dgetrs")
    return np.array([get_cython_function_address("scipy.linalg.cython_lapack", name) for name in names], np.int64)
