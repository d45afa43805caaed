"""Error-controlled runs through compiled code: what `Chunks` does for equal steps, on the step control's own clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.corrector import Newton
from cosolve.method import GaussSeidel, Implicit, Jacobi, SemiImplicit
from cosolve.stepsize import TickClock
from cosolve.stepsize.sequence import Controlled
from cosolve.subsystem.base import has_capability

if TYPE_CHECKING:
    from cosolve.engine.native.chunks import Chunk, Chunks

_KINDS = (Jacobi, GaussSeidel, SemiImplicit, Implicit)


class ControlledChunks:
    """The compiled side of one error-controlled run."""

    def __init__(self, chunks: Chunks, windows: Controlled) -> None:
        self.chunks, self.windows = chunks, windows
        control, method = windows.control, chunks.core.method
        atol = control.rtol if control.atol is None else control.atol
        pi = control.controller == "PI"
        self._control = np.array(
            [
                *(control.rtol, atol, control.H_min, control.H_max, control.q, control.q_min, control.q_max),
                *(control.alpha if pi else 1.0, control.alpha, control.beta, float(pi)),
            ]
        )
        self._kind = next(k for k, kind in enumerate(_KINDS) if isinstance(method, kind))
        self._guess = method.degree
        self._settings = np.zeros(5)
        if isinstance(method, (SemiImplicit, Implicit)):
            self._guess = method.degree if method.predictor is None else method.predictor
            self._settings[0] = method.increment
        if isinstance(method, SemiImplicit):
            self._settings[1] = method.final_update
        if isinstance(method, Implicit):
            assert isinstance(method.corrector, Newton)
            self._settings[2:] = method.tol, method.max_iterations, method.corrector.refresh == "iteration"
        if not isinstance(windows.clock, TickClock):
            chunks.reason = "a run without an end takes its controlled steps in the readable engine"

    def ready(self) -> bool:
        """False, with the reason, when a subsystem cannot change its step or gives Jacobians of its own."""
        from cosolve.engine.native.chunks import step_obstacle

        chunks = self.chunks
        plan, method = chunks.core.plan, chunks.core.method
        chunks.reason = step_obstacle(plan, chunks.natives)
        if isinstance(method, (SemiImplicit, Implicit)) and method.jacobian == "auto":
            own = [n for n, s in zip(plan.names, plan.subsystems, strict=True) if has_capability(s, "jacobian")]
            if own and chunks.reason is None:
                changes = f"'{own[0]}' gives a Jacobian of its own that changes with the step"
                chunks.reason = f"{changes}; runs with jacobian='difference' are compiled"
        chunks.wiring.exact[:] = 0
        if not all(native.save or len(native.state) for native in chunks.natives) and chunks.reason is None:
            chunks.reason = "steps of changing length are compiled only where they can be undone"
        return chunks.reason is None

    def take(self, count: int) -> Chunk | None:
        """Cross at most `count` steps."""
        from cosolve.engine.native import controlled
        from cosolve.engine.native.chunks import Chunk, lapack_addresses

        chunks, windows = self.chunks, self.windows
        core = chunks.core
        plan, method, history = core.plan, core.method, core.history
        clock = windows.clock
        assert isinstance(clock, TickClock)
        previous = np.nan if windows.previous is None else windows.previous
        state = np.array([clock.t_start, clock.t_end, clock.tick, windows.proposed, previous])
        values = np.array(history.values[: method.depth + 1])
        steps = np.array(history.steps[: method.depth])
        implicit = isinstance(method, Implicit)
        books: Any = core.measure
        size = books.size if isinstance(method, (SemiImplicit, Implicit)) else np.zeros(plan.n_z)
        plain, least = (books.plain, books.least) if implicit else (np.zeros(plan.n_z, bool), np.zeros(plan.n_z))
        most = int(self._settings[3]) + 2 if implicit else 0
        rows, Y, Z = np.zeros((count, 6)), np.empty((count, plan.n_y)), np.empty((count, plan.n_z))
        R, N, norms = np.empty(count), np.zeros(count, np.int64), np.zeros(max(most, min(count * most, 1 << 16)))
        rejected_before = core.rejected
        for native in chunks.natives:
            native.enter()
        try:
            done, filled = controlled.run(
                *(
                    self._kind,
                    chunks.wiring.address,
                    method.degree,
                    self._guess,
                    values,
                    steps,
                    state,
                    self._control,
                ),
                *(plan.z_nominal, windows.may_reject, lapack_addresses(), size, self._settings),
                *(plain, least, rows, Y, Z, R, N, norms),
            )
        finally:
            for native in chunks.natives:
                native.leave()
        if not done:
            chunks.note_failure(count > 0)
            return None
        chunks.note_failure(False)
        rows, sweeps, renewed = rows[:done], rows[:done, 4].astype(np.int64), rows[:done, 5].astype(np.int64)
        calls, rejected = chunks.count(done, sweeps, renewed), rows[:, 3].astype(np.int64)
        corrected = isinstance(method, (SemiImplicit, Implicit))
        iterations: Any = (N[:done] - 1).astype(np.int32) if implicit else int(corrected)
        residual = R[:done] if corrected else np.nan
        chunk = Chunk(
            *(rows[:, 0].copy(), Y[:done], Z[:done], rows[:, 1].copy(), iterations, residual, calls, rejected),
            rows[:, 2].copy(),
        )
        if implicit:
            chunk.norms, chunk.counts = norms[:filled], N[:done]
        core.rejected = rejected_before + int(rejected.sum())
        windows.resume_at(float(chunk.t[-1]), int(state[2]), float(state[3]), float(state[4]))
        core.stand(chunk.y[-1].copy(), list(values), list(steps))
        return chunk
