"""Runs over given steps through compiled code: what `Chunks` does for equal steps, with the lengths of another run.

The shadow of a run (`accuracy/shadow.py`) is such a run: what distinguishes it is added to the inputs in each step.
"""

from __future__ import annotations

import numpy as np

from cosolve.engine.chunk import Chunk
from cosolve.engine.native.chunks import Chunks
from cosolve.engine.native.control import with_changing_steps
from cosolve.engine.native.wiring import NORMS_PER_STEP
from cosolve.stepsize.sequence import GivenSteps
from cosolve.subsystem.native import entered


class GivenChunks:
    """The compiled side of one run over given steps."""

    def __init__(self, chunks: Chunks, windows: GivenSteps) -> None:
        self.chunks, self.windows = chunks, windows
        self._usual = windows.usual
        #: whether all steps have one length, but perhaps the last
        self._equal = bool((windows.ahead(windows.left)[1][:-1] == self._usual).all())

    def ready(self) -> bool:
        """False, with the reason, when a subsystem cannot change its step or gives Jacobians of its own."""
        return self._equal or with_changing_steps(self.chunks)

    def take(self, count: int) -> Chunk | None:
        """Advance at most `count` steps."""
        from cosolve.engine.native.loops import loop

        chunks, core = self.chunks, self.chunks.core
        plan, method, history = core.plan, core.method, core.history
        times, lengths = self.windows.ahead(count)
        if self._equal:
            lengths = lengths[: len(lengths) - (len(lengths) > 0 and lengths[-1] != self._usual)]
            if count and (not len(lengths) or any(step != self._usual for step in history.steps)):
                return None
        count = len(lengths)
        values, steps = chunks.past(), np.array(history.steps[: method.depth])
        Y, Z = np.empty((count, chunks.plan.n_y)), np.empty((count, plan.n_z))
        R, counts = np.empty(count), np.empty(count, np.int64)
        norms = np.zeros(max(NORMS_PER_STEP, min(count * NORMS_PER_STEP, 1 << 16)))
        kept = chunks.put_statistics(values, norms), core.added(count)
        with entered(chunks.natives):
            done = int(
                loop("given_steps", chunks.bound)(
                    *(chunks.wiring.address, chunks.bound.options, values, steps, times, lengths, chunks.may_retry),
                    *(*kept[1], Y, Z, R, counts),
                )
            )
        del kept
        chunks.take_past()
        chunks.note_end(not done and count > 0)
        failure = None if chunks.may_retry or done == count else chunks.failed(float(times[done]))
        if not done:
            if failure is not None:
                raise failure
            return None
        chunks.compare(Y[done - 1])
        chunk = chunks.chunk(
            times[1 : done + 1], chunks.at_ends(Y[:done]), Z[:done], lengths[:done].copy(), R, counts, norms
        )
        chunk.failure = failure
        self.windows.skip(done)
        core.stand(chunk.y[-1].copy(), chunk.z[-1].copy(), list(values[:, : plan.n_z]), list(steps))
        return chunk
