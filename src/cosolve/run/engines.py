"""Who takes the next macro steps of a run: a fast engine as long as it can, the readable one otherwise."""

from __future__ import annotations

import sys
from time import perf_counter

from cosolve.engine.chunk import Chunk, FastEngine, RowBuffers
from cosolve.engine.native import Chunks
from cosolve.errors import SetupError
from cosolve.result import Layout
from cosolve.run.core import Core
from cosolve.run.rows import Rows

_WRITE_EVERY = 0.03  # seconds: no later than that, and when a run ends, steps are recorded
_WIDE = 4096  # numbers in a row from which on steps are handed over one by one, without being packed


class Engines:
    """All engines of one run, in the state that the run is in.

    With `compiled` None a fast engine is taken where that is possible and repays its loading, True insists on it. A run
    that is `resumed` goes on in the fast engine that it was in, however few steps are left.
    `loaded` is what loading took so far, `spent` the time inside fast engines, in seconds.
    """

    def __init__(self, core: Core, compiled: bool | None, resumed: bool = False) -> None:
        self._insists, self._begun, self.loaded, self.spent = compiled is True, False, 0.0, 0.0
        self._core, self._readable = core, StepByStep(core)
        fast: FastEngine | None = None if compiled is False else Chunks(core)
        wanted = fast is not None and (self._is_needed(fast) or fast.worth_it or (resumed and fast.reason is None))
        self.fast = fast if wanted else None
        self._reason = "compiled=False" if fast is None else fast.reason

    def _is_needed(self, fast: FastEngine) -> bool:
        """Whether the run insists on it; raises where that is in vain."""
        if self._insists and fast.reason is not None:
            raise SetupError(f"compiled=True: {fast.reason}")
        return self._insists

    @property
    def python_reason(self) -> str:
        """Why steps are taken by the Python engine."""
        return self._reason or "so few steps do not repay loading machine code"

    def take(self, left: int = sys.maxsize, buffers: RowBuffers | None = None) -> Chunk:
        """The next steps, no more than are `left`."""
        fast = self.fast
        if fast is None:
            return self._readable.take(left)
        fast.left = left
        began = perf_counter()
        try:
            chunk = fast.take(buffers)
        except Exception as error:
            self._core.blame_state(error)
            raise
        if not self._begun:  # later on the Python engine takes what is left
            self._is_needed(fast)
        if chunk is None:
            if fast.reason is not None:
                self.fast, self._reason = None, fast.reason
            return self._readable.take(1)
        self._begun = True
        self.loaded += fast.loading
        self.spent += perf_counter() - began - fast.loading
        return chunk


class StepByStep:
    """The Python engine: one macro step after the other."""

    def __init__(self, core: Core) -> None:
        self._core, caller, plan = core, core.caller, core.plan
        layout = Layout(plan.n_y, plan.n_z + len(plan.u_driven), plan.n_subsystems)
        self._rows, self._wide = Rows(layout, caller.calls, caller.seconds), layout.n_y + layout.n_z > _WIDE

    def take(self, most: int) -> Chunk:
        """At least one step, at most so many, and no more than fit into a moment.

        What is raised in a later step than the first comes with those before it, as `failure`.
        """
        core, rows, driven = self._core, self._rows, self._core.plan.driven
        rows.count_from(core.rejected)
        if most == 1 or self._wide:
            step = core.take_step()
            return rows.single(step, core.recorded(step.z), core.rejected)
        until, failure = perf_counter() + _WRITE_EVERY, None
        try:
            for _ in range(most):
                step = core.take_step()
                rows.add(step, step.y, core.recorded(step.z) if driven else step.z, core.rejected)
                if core.windows.done or core.ended is not None or perf_counter() > until:
                    break
        except BaseException as error:
            if not len(rows):
                raise
            failure = error
        chunk = rows.take()
        chunk.failure = failure
        return chunk
