"""Error-controlled runs through compiled code: what `Chunks` does for equal steps, on the step control's own clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cosolve.engine.native.wiring import NORMS_PER_STEP
from cosolve.stepsize import TickClock
from cosolve.stepsize.sequence import Controlled

if TYPE_CHECKING:
    from cosolve.engine.chunk import Chunk
    from cosolve.engine.native.chunks import Chunks


class ControlledChunks:
    """The compiled side of one error-controlled run."""

    def __init__(self, chunks: Chunks, windows: Controlled) -> None:
        self.chunks, self.windows = chunks, windows
        control = windows.control
        atol = control.rtol if control.atol is None else control.atol
        self._tolerances = np.array([control.rtol, atol, float(control.weights == "largest")])
        self._numbers = control.numbers
        if not isinstance(windows.clock, TickClock):
            chunks.reason = "a run without an end takes its controlled steps in the readable engine"

    def ready(self) -> bool:
        """False, with the reason, when a subsystem cannot change its step or gives Jacobians of its own."""
        from cosolve.engine.native.chunks import step_obstacle

        chunks = self.chunks
        script = chunks.method.script
        assert script is not None
        chunks.reason = step_obstacle(chunks.plan, chunks.natives, chunks.method)
        chunks.wiring.exact[:] = 0
        chunks.wiring.put(KEEP=0)
        if script.corrector is not None:
            chunks.wiring.put(EVERY=int(script.corrector.refresh == "iteration"))
        return chunks.reason is None

    def take(self, count: int) -> Chunk | None:
        """Cross at most `count` steps."""
        from cosolve.engine.native.loops import loop

        chunks, windows = self.chunks, self.windows
        core = chunks.core
        plan, method, history = core.plan, core.method, core.history
        clock = windows.clock
        assert isinstance(clock, TickClock)
        previous = np.nan if windows.previous is None else windows.previous
        stuck = 0.0 if method.lags else -1.0
        state = np.array([clock.t_start, clock.t_end, clock.tick, windows.proposed, previous, stuck])
        values = chunks.past()
        steps = np.array(history.steps[: method.depth])
        rows, Y, Z = np.zeros((count, 4)), np.empty((count, chunks.plan.n_y)), np.empty((count, plan.n_z))
        R, counts = np.empty(count), np.empty(count, np.int64)
        norms = np.zeros(max(NORMS_PER_STEP, min(count * NORMS_PER_STEP, 1 << 16)))
        kept = chunks.put_books(values, norms)
        rejected_before, largest = core.rejected, windows.largest.copy()
        nominal = windows.nominal.copy()
        for native in chunks.natives:
            native.enter()
        assert method.script is not None
        try:
            done = int(
                loop("controlled_steps", chunks.bound)(
                    *(chunks.wiring.address, chunks.bound.options, method.script.guess, values, steps, state),
                    *(self._tolerances, self._numbers, nominal, plan.z_nominal, windows.open, largest),
                    windows.may_reject,
                    *(rows, Y, Z, R, counts),
                )
            )
        finally:
            for native in chunks.natives:
                native.leave()
        del kept
        chunks.take_past()
        if not done:
            chunks.note_end(count > 0 and state[5] <= 0.0)
            return None
        chunks.note_end(False)
        rows = rows[:done]
        chunk = chunks.chunk(rows[:, 0].copy(), chunks.at_ends(Y[:done]), Z[:done], rows[:, 1].copy(), R, counts, norms)
        chunk.rejected, chunk.error = rows[:, 3].astype(np.int64), rows[:, 2].copy()
        core.rejected = rejected_before + int(chunk.total("rejected"))
        windows.largest, windows.nominal = largest, nominal
        windows.resume_at(float(chunk.t[-1]), int(state[2]), float(state[3]), float(state[4]))
        core.stand(chunk.y[-1].copy(), chunk.z[-1].copy(), list(values[:, : plan.n_z]), list(steps))
        return chunk
