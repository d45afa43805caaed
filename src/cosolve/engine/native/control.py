"""Error-controlled runs through compiled code: what `Chunks` does for equal steps, on the step control's own clock."""

from __future__ import annotations

import numpy as np

from cosolve.engine.chunk import Chunk
from cosolve.engine.native.chunks import Chunks
from cosolve.engine.native.reasons import by_changing_steps
from cosolve.engine.native.wiring import NORMS_PER_STEP
from cosolve.stepsize import TickClock
from cosolve.stepsize.sequence import Controlled
from cosolve.subsystem.native import entered


def with_changing_steps(chunks: Chunks) -> bool:
    """Prepare for steps of changing length; False, with the reason, where a subsystem cannot take them."""
    declaration = chunks.method.declaration
    assert declaration is not None
    chunks.reason = by_changing_steps(chunks.plan, chunks.natives, chunks.method)
    chunks.wiring.exact[:] = 0
    chunks.wiring.put(keep=0)
    if declaration.corrector is not None:
        chunks.wiring.put(every=int(declaration.corrector.refresh == "iteration"))
    return chunks.reason is None


class ControlledChunks:
    """The compiled side of one error-controlled run."""

    def __init__(self, chunks: Chunks, windows: Controlled) -> None:
        self.chunks, self.windows = chunks, windows
        control = windows.control
        atol = control.rtol if control.atol is None else control.atol
        self._tolerances = np.array([control.rtol, atol, float(control.weights == "largest")])
        self._numbers = control.numbers

    def ready(self) -> bool:
        """False, with the reason, when a subsystem cannot change its step or gives Jacobians of its own."""
        return with_changing_steps(self.chunks)

    def take(self, count: int) -> Chunk | None:
        """Advance at most `count` steps."""
        from cosolve.engine.native.loops import loop

        chunks, windows = self.chunks, self.windows
        core = chunks.core
        plan, method, history = core.plan, core.method, core.history
        clock = windows.clock
        assert isinstance(clock, TickClock)  # only a Stepper, which takes single steps, has no end
        previous = np.nan if windows.previous is None else windows.previous
        stuck = 0.0 if method.lags else -1.0
        state = np.array([clock.t_start, clock.t_end, clock.tick, windows.proposed, previous, stuck])
        values = chunks.past()
        steps = np.array(history.steps[: method.depth])
        rows, Y, Z = np.zeros((count, 4)), np.empty((count, chunks.plan.n_y)), np.empty((count, plan.n_z))
        R, counts = np.empty(count), np.empty(count, np.int64)
        norms = np.zeros(max(NORMS_PER_STEP, min(count * NORMS_PER_STEP, 1 << 16)))
        kept = chunks.put_statistics(values, norms)
        rejected_before, largest = core.rejected, windows.largest.copy()
        nominal = windows.nominal.copy()
        assert method.declaration is not None
        with entered(chunks.natives):
            done = int(
                loop("controlled_steps", chunks.bound)(
                    *(chunks.wiring.address, chunks.bound.options, method.declaration.guess, values, steps, state),
                    *(self._tolerances, self._numbers, nominal, windows.open, largest),
                    windows.may_reject,
                    *(rows, Y, Z, R, counts),
                )
            )
        del kept
        chunks.take_past()
        if not done:
            chunks.note_end(count > 0 and state[5] <= 0.0)
            return None
        chunks.note_end(False)
        chunks.compare(Y[done - 1])
        rows = rows[:done]
        chunk = chunks.chunk(rows[:, 0].copy(), chunks.at_ends(Y[:done]), Z[:done], rows[:, 1].copy(), R, counts, norms)
        chunk.rejected, chunk.error = rows[:, 3].astype(np.int64), rows[:, 2].copy()
        core.rejected = rejected_before + int(chunk.total("rejected"))
        windows.largest, windows.nominal = largest, nominal
        windows.resume_at(float(chunk.t[-1]), int(state[2]), float(state[3]), float(state[4]))
        core.stand(chunk.y[-1].copy(), chunk.z[-1].copy(), list(values[:, : plan.n_z]), list(steps))
        return chunk
