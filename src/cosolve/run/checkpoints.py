"""States that a run writes beside its result file, and what it shows of its progress: observers of `simulate`."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Protocol, runtime_checkable

from cosolve.engine.chunk import Chunk
from cosolve.engine.observer import Observer
from cosolve.run.view import RunView
from cosolve.state.state_writer import StateWriter

_PROGRESS_EVERY = 0.1  # seconds


class Checkpoints(Observer):
    """Lets `write` write a state whenever the keeper says that one is due, and before the first step."""

    def __init__(self, keeper: StateWriter, write: Callable[[], None]) -> None:
        self._keeper, self._write = keeper, write

    def start(self, run: RunView) -> None:
        if not run.resumed:
            self._write()

    def limit(self, run: RunView) -> float:
        return self._keeper.left(run.steps)

    def accepted(self, run: RunView, steps: Chunk) -> None:
        if steps.failure is None and self._keeper.is_due(run.steps) and not run.done:
            self._write()


@runtime_checkable
class RunAwareProgress(Protocol):
    """A progress function that also looks at the run."""

    def watch(self, run: RunView) -> None:
        """The run begins."""

    def __call__(self, fraction: float) -> None:
        """So much of the run is done."""


class Progress(Observer):
    """Tells a function about ten times a second how much of the run is done."""

    def __init__(self, tell: Callable[[float], None]) -> None:
        self._tell = tell

    def start(self, run: RunView) -> None:
        if isinstance(self._tell, RunAwareProgress):
            self._tell.watch(run)
        self._begun = run.core.t_start if run.resumed else run.t
        self._shown = perf_counter()

    def accepted(self, run: RunView, steps: Chunk) -> None:
        if run.done or perf_counter() - self._shown > _PROGRESS_EVERY:
            self._tell((run.t - self._begun) / (run.t_end - self._begun))
            self._shown = perf_counter()
