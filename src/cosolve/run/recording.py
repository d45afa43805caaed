"""What a run writes down: where its rows go, and the record of one that is stepped by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from cosolve.engine.chunk import Chunk, RowBuffers
from cosolve.engine.observer import Observer
from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.interface.channels import Selection
from cosolve.interface.representation import graph
from cosolve.method import Method, Outcome
from cosolve.result import Memory, Recorder, Result, Row, Stats
from cosolve.run.core import Core
from cosolve.run.rows import Rows
from cosolve.run.thinning import Thinning
from cosolve.run.totals import note_totals
from cosolve.run.view import RunView
from cosolve.version import VERSION

_WRITE_EVERY = 0.01  # seconds: no later than that rows are with the recorder


def about_run(
    system: System, method: Method, step: object, t_start: float, t_end: float | None, startup: object = None
) -> dict[str, Any]:
    """What a result says about its run; `startup` where one was asked for, `body_shapes` where bodies have a shape."""
    about: dict[str, Any] = {
        "cosolve": VERSION,
        "method": repr(method),
        "step": repr(step),
        "t_start": t_start,
        "t_end": t_end,
        "system": str(system),
        "graph": graph(system),
    }
    if startup is not None:
        about["startup"] = repr(startup)
    shapes = {
        f"{name}.{frame}": shape
        for name, subsystem in system.subsystems.items()
        if hasattr(subsystem, "body_shapes")
        for frame, shape in subsystem.body_shapes().items()
    }
    return about | ({"body_shapes": shapes} if shapes else {})


def make_recorder(
    selection: Selection, names: tuple[str, ...], save: str | Path | None, meta: dict[str, Any]
) -> Recorder:
    """Memory, or a stream to a file."""
    if save is None:
        return Memory(selection.layout)
    from cosolve.result.store import Stream
    from cosolve.state.state_writer import state_path

    path = Path(save)  # with the result of an earlier run its state goes
    settled = partial(state_path(path).unlink, missing_ok=True)
    return Stream(path, selection.layout, selection.channels, names, meta, settled)


class RowWriter(Observer):
    """Writes macro points to a recorder, every n-th of them."""

    def __init__(self, recorder: Recorder, every: int) -> None:
        self._recorder, self._every = recorder, every
        self._thinning = Thinning(recorder, every) if every > 1 else None
        self.buffers: RowBuffers | None = (
            None  #: where rows may be written in place, if all of them are wanted as they are
        )

    def start(self, run: RunView) -> None:
        self._set_buffers(run)
        self._recorder.append(Row(run.t, *run.point()))

    def resume(self, run: RunView, memory: Any) -> None:
        self._set_buffers(run)
        if self._thinning is not None:
            self._thinning.memory = memory["thinning"]

    def _set_buffers(self, run: RunView) -> None:
        self.buffers = self._recorder.buffers if self._every == 1 and run.selection.everything else None

    def memory(self, run: RunView) -> Any:
        return {"thinning": None if self._thinning is None else self._thinning.memory}

    def reserve(self, core: Core) -> None:
        """Many rows will come in a short time."""
        if isinstance(self._recorder, Memory):
            self._recorder.reserve(core.windows.left / self._every + 2)

    def accepted(self, run: RunView, steps: Chunk) -> None:
        columns, chosen = steps.columns(), run.selection
        if not chosen.everything:
            columns |= {"y": chosen.y(steps.y.T).T, "z": chosen.z(steps.z.T).T}
        (self._thinning or self._recorder).extend(columns, steps.counts)

    def finished(self, run: RunView, failure: BaseException | None) -> None:
        if self._thinning is not None and failure is None:
            self._thinning.finish()


class Recording:
    """The record of a run that is stepped by hand, point after point.

    The first point is written down when the first step comes, so that a state restored before it is where the record
    begins. When the run goes back, the record does: what came after that point is forgotten.
    """

    def __init__(self, core: Core, names: Sequence[str] | None, save: str | Path | None, meta: dict[str, Any]) -> None:
        self._core, self._meta = core, meta
        self._selection = Selection(core.plan, names)
        self._recorder = make_recorder(self._selection, core.plan.names, save, meta)
        self._rows = Rows(self._selection.layout, core.caller.calls, core.caller.seconds)
        self._begun, self._closed, self._unconverged, self._renewed = False, False, 0, 0
        self._written = self._began = perf_counter()
        self.error: str | None = None

    def begin(self) -> None:
        """A step is about to be advanced."""
        if not self._begun:
            self._begun = True
            self._point()

    def _point(self) -> None:
        """Write down where the run stands, without a step that led there."""
        core, chosen = self._core, self._selection
        self._recorder.append(Row(core.t, chosen.y(core.y), chosen.z(core.recorded(core.z))))
        self._rows.count_from(core.rejected)

    def add(self, step: Outcome) -> None:
        """Write down a step that was advanced."""
        chosen = self._selection
        self._rows.add(step, chosen.y(step.y), chosen.z(self._core.recorded(step.z)), self._core.rejected)
        if perf_counter() - self._written > _WRITE_EVERY:
            self._write()

    def _write(self) -> None:
        self._written = perf_counter()
        if len(self._rows):
            chunk = self._rows.take()
            self._recorder.extend(chunk.columns(), chunk.counts)
            self._unconverged += chunk.unconverged
            self._renewed += chunk.renewed

    def refuse_back(self) -> None:
        """Rows in a file stay there."""
        if self._begun and not isinstance(self._recorder, Memory):
            raise SetupError(
                "a run that is streamed to a file cannot go back to a saved state; record in memory (record=True), or "
                "restore before the first step"
            )

    def go_back(self) -> None:
        """The run stands at a restored state: forget what came after it, and begin anew where nothing leads to it."""
        if not self._begun:
            return
        assert isinstance(self._recorder, Memory)
        self._write()
        times = self._recorder.columns()["t"]
        kept = int(np.searchsorted(times, self._core.t, side="right"))
        kept = kept if kept and times[kept - 1] == self._core.t else 0
        self._recorder.truncate(kept)
        self._rows.count_from(self._core.rejected)
        if not kept:
            self._point()

    def result(self) -> Result:
        """Everything up to now; it stays as it is when the run goes on."""
        self.begin()
        columns = self._columns()
        return self._made(lambda: columns, self._stats(columns))

    def _columns(self) -> Mapping[str, Any]:
        """What was written down so far."""
        if not self._closed:
            self._write()
            self._recorder.flush()
        if isinstance(self._recorder, Memory):
            return {name: np.array(column) for name, column in self._recorder.columns().items()}
        from cosolve.result.store import Stream, load

        assert isinstance(self._recorder, Stream)
        return load(self._recorder.path)._columns()

    def _made(self, columns: Any, stats: Stats) -> Result:
        names = self._core.plan.names
        return Result(columns, self._selection.channels, names, stats=stats, meta=self._meta, error=self.error)

    def _stats(self, columns: Any) -> Stats:
        core, residual, error = self._core, columns["residual"], columns["error"]
        stats = Stats(
            steps=len(columns["t"]) - 1,
            rejected=int(columns["rejected"].sum()),
            iterations=int(columns["iterations"].sum()),
            unconverged=self._unconverged,
            renewed=self._renewed,
            over_tolerance=int((error > 1.0).sum()),
            max_residual=float(np.fmax.reduce(residual)),
            wall_seconds=perf_counter() - self._began,
        )
        stats.ended = "" if core.ended is None else core.ended.sentence(core.t)
        note_totals(stats, core)
        return stats

    def close(self) -> None:
        """The run has ended: a file is complete after that."""
        if not self._closed:
            self.begin()
            unwritten = self._recorder.finish(self._stats(self._columns()), self.error)
            self._recorder.close()
            self._closed = True
            if unwritten is not None:
                raise unwritten
