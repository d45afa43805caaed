"""Snapshots of a field solver during a run, to a file of its own: an observer of the run.

A snapshot is taken at macro points only, where all subsystems agree on the time. An engine, readable or compiled, takes
no more macro steps than there are to the next point that is wanted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import ceil, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.checks import as_path, is_number, whole
from cosolve.basics.wording import did_you_mean
from cosolve.engine.observer import Observer
from cosolve.errors import CosolveError, SetupError, SimulationError
from cosolve.fields import vtkhdf
from cosolve.fields.field_subsystem import FieldSnapshot

if TYPE_CHECKING:
    from cosolve.engine.chunk import Chunk
    from cosolve.run.view import RunView

_SUFFIXES = (".vtkhdf", ".hdf")
_SLIVER = 1e-6  # of a macro step: a point this close before a wanted time counts


class FieldFile(Observer):
    """Write snapshots of a field solver during a run, `simulate(..., observers=[FieldFile(...)])`.

    Parameters
    ----------
    path : str or Path
        File ending in `.vtkhdf`. ParaView opens it, `read_fields` reads it, also during the run.
    of : str
        Name of the subsystem.
    every : int, default 1
        Write every n-th macro point, and the first and the last.
    times : sequence of float or None, default None
        In place of `every`: write at the first macro points from these times on, in seconds.

    Examples
    --------
    >>> import tempfile
    >>> import cosolve as cs
    >>> class Plate(cs.fields.FieldSubsystem):
    ...     inputs, outputs = [], [("T", 3)]
    ...     def start(self, t0):
    ...         return self.advance(t0, t0, None)
    ...     def advance(self, t0, t1, u):
    ...         self.T = np.exp(-t1) * np.array([1.0, 2.0, 3.0])
    ...         return self.T
    ...     def snapshot(self):
    ...         corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    ...         return cs.fields.FieldSnapshot(corners, {"triangle": np.array([[0, 1, 2]])}, {"temperature": self.T})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = cs.fields.FieldFile(folder + "/plate.vtkhdf", of="plate", every=5)
    ...     result = cs.simulate(cs.System({"plate": Plate()}), t_end=1, method=cs.Jacobi(), step=0.1, observers=[file])
    ...     series = cs.fields.read_fields(folder + "/plate.vtkhdf")
    ...     series.t, series[-1].point_data["temperature"].round(3)
    (array([0. , 0.5, 1. ]), array([0.368, 0.736, 1.104]))
    """

    def __init__(self, path: str | Path, *, of: str, every: int = 1, times: Sequence[float] | None = None) -> None:
        self.path, self.of, self.every = as_path("FieldFile", path), of, whole("FieldFile", "every", every)
        if self.path.suffix.lower() not in _SUFFIXES:
            raise SetupError(f"FieldFile: fields are written as VTKHDF, so '{path}' must end in .vtkhdf")
        if not isinstance(of, str):
            raise SetupError(f"FieldFile: of is the name of a subsystem, not {of!r}")
        self.times: tuple[float, ...] | None = None
        if times is not None:
            given = np.asarray(times, dtype=np.float64).ravel()
            if every != 1 or not len(given) or not all(map(is_number, given.tolist())):
                raise SetupError("FieldFile: times are finite numbers, at least one, and come without every")
            self.times = tuple(sorted(given.tolist()))
        self._absolute = self.path.absolute()
        self._written, self._next, self._last = 0, 0, -1  # steps in the file, next of the times, macro steps so far
        self._points: list[float] = []  # macro points of a run that may go back

    def __repr__(self) -> str:
        when = f"every={self.every}" if self.times is None else f"times={list(self.times)}"
        return f"FieldFile('{self.path}', of='{self.of}', {when})"

    def start(self, run: RunView) -> None:
        """Find the subsystem, and write the first point."""
        from cosolve.result.store import refuse_unwritable

        self._find(run)
        refuse_unwritable(self._absolute)
        self._written, self._next, self._last = 0, 0, -1
        self._points = [run.t]
        self._see(run)

    def _find(self, run: RunView) -> None:
        if self.of not in run.names:
            raise SetupError(f"fields: there is no subsystem '{self.of}'; {did_you_mean(self.of, list(run.names))}")
        self._subsystem = run.subsystem(self.of)
        if not callable(getattr(self._subsystem, "snapshot", None)):
            raise SetupError(
                f"fields: '{self.of}' ({type(self._subsystem).__name__}) shows no fields; a subsystem with a method "
                "snapshot(), which returns a cs.fields.FieldSnapshot, does"
            )
        same = [one for one in run.observers if isinstance(one, FieldFile) and one.path.absolute() == self._absolute]
        if len(same) > 1:
            raise SetupError(f"fields: '{self.path}' is given twice; every subsystem has a file of its own")

    def memory(self, run: RunView) -> dict[str, Any]:
        """Return how far the file has come, with its path as seen from the result; it is on the disk then."""
        if self._written:
            vtkhdf.secure(self._absolute)
        assert run.file is not None
        path = os.path.relpath(self._absolute, run.file.absolute().parent)
        return {"path": path, "written": self._written, "next": self._next, "last": self._last}

    def resume(self, run: RunView, memory: Any) -> None:
        """Continue the file with the steps up to where the state was kept."""
        assert run.file is not None
        self._absolute = run.file.absolute().parent / memory["path"]
        self._find(run)
        self._written, self._next, self._last = int(memory["written"]), int(memory["next"]), int(memory["last"])
        vtkhdf.keep_first(self._absolute, self._written)

    def limit(self, run: RunView) -> float:
        """Return the macro steps up to the next snapshot."""
        if self.times is None:
            return self.every - self._count(run) % self.every
        left = self.times[self._next :]
        return max(1, ceil((left[0] - run.t) / run.step - _SLIVER)) if left else inf

    def accepted(self, run: RunView, steps: Chunk) -> None:
        """Write a snapshot where one is due."""
        if run.may_go_back:
            self._points.append(run.t)
        if steps.failure is None:
            self._see(run)

    def _count(self, run: RunView) -> int:
        """Macro steps so far; in a run that may go back, up to where it stands."""
        return len(self._points) - 1 if run.may_go_back else run.steps

    def _see(self, run: RunView) -> None:
        steps = self._count(run)
        if self.times is None:
            wanted = steps % self.every == 0 or run.done
        else:
            reached = int(np.searchsorted(self.times, run.t + _SLIVER * run.step, side="right"))
            wanted, self._next = reached > self._next, max(reached, self._next)
        if wanted and steps > self._last:
            self._write(run.t)
            self._last = steps

    def _write(self, t: float) -> None:
        try:
            snapshot = self._subsystem.snapshot()
            if not isinstance(snapshot, FieldSnapshot):
                raise SetupError(f"snapshot() returned a {type(snapshot).__name__}, not a FieldSnapshot")
            if not self._written:
                vtkhdf.create(self._absolute, snapshot, self.of)
            vtkhdf.append(self._absolute, t, snapshot)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            said = str(error) if isinstance(error, CosolveError) else f"{type(error).__name__}: {error}"
            raise SimulationError(
                f"the fields of '{self.of}' could not be written at t = {t:.9g}: {said}", time=t, subsystem=self.of
            ) from error
        self._written += 1

    def restored(self, run: RunView) -> None:
        """Forget what came after this point, and everything where the run has not been there."""
        from cosolve.fields.field_series import FieldSeries

        t, points = run.t, self._points
        kept = int(np.searchsorted(points, t, side="right"))
        if not kept or points[kept - 1] != t:
            kept = 0
        steps = kept - 1
        if self._last > steps:
            there = FieldSeries(self._absolute).t
            self._written = int(np.searchsorted(there, t, side="right")) if kept else 0
            self._last = min(self._last, steps)
            self._next = int(np.searchsorted(self.times or (), t, side="right")) if kept else 0
            vtkhdf.keep_first(self._absolute, self._written)
        self._points = points[:kept]
        if not kept:
            self._points = [t]
            self._see(run)
