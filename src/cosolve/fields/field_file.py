"""Snapshots of field solvers during a run, each to a file of its own: what is asked for, and who writes it.

A snapshot is taken at macro points only, where all subsystems agree on the time. Whoever takes the steps, readable or
compiled code, takes no more of them than there are to the next point that is wanted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import ceil, inf
from pathlib import Path
from typing import Any

import numpy as np

from cosolve.basics.checks import as_path, is_number, whole
from cosolve.basics.wording import did_you_mean
from cosolve.errors import CosolveError, SetupError, SimulationError
from cosolve.fields import vtkhdf
from cosolve.fields.field_subsystem import FieldSnapshot

_SUFFIXES = (".vtkhdf", ".hdf")
_SLIVER = 1e-6  # of a macro step: a point this close before a wanted time counts


class FieldFile:
    """What to write of which subsystem in a run: `cs.simulate(..., fields=cs.FieldFile("flow.vtkhdf", of="fluid"))`.

    The file is VTKHDF: ParaView opens it, with time, with second-order cells and with moving points, and
    `cs.read_fields` reads it, also while the run goes on or after it was killed. A snapshot is written at the start, at
    every so-many-th macro point, and at the last; with `times` at the first macro points from these times on.

    >>> import tempfile
    >>> import cosolve as cs
    >>> class Plate(cs.FieldSubsystem):
    ...     inputs, outputs = [], [("T", 3)]
    ...     def start(self, t0):
    ...         return self.advance(t0, t0, None)
    ...     def advance(self, t0, t1, u):
    ...         self.T = np.exp(-t1) * np.array([1.0, 2.0, 3.0])
    ...         return self.T
    ...     def snapshot(self):
    ...         corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    ...         return cs.FieldSnapshot(corners, {"triangle": np.array([[0, 1, 2]])}, {"temperature": self.T})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = cs.FieldFile(folder + "/plate.vtkhdf", of="plate", every=5)
    ...     result = cs.simulate(cs.System({"plate": Plate()}), t_end=1.0, method=cs.Jacobi(), step=0.1, fields=file)
    ...     series = cs.read_fields(folder + "/plate.vtkhdf")
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

    def __repr__(self) -> str:
        when = f"every={self.every}" if self.times is None else f"times={list(self.times)}"
        return f"FieldFile('{self.path}', of='{self.of}', {when})"


class FieldRecording:
    """All field files of one run. `see` is told where the run stands, and `left` says how far it may go unseen."""

    def __init__(self, files: Any, names: Sequence[str], subsystems: Sequence[Any]) -> None:
        listed = [files] if isinstance(files, FieldFile) else list(files or ())
        self._writers = [_Writer(file, names, subsystems) for file in listed]
        self._times: list[float] = []  # macro points of a run that is stepped by hand
        paths = [writer.path for writer in self._writers]
        for path in paths:
            if paths.count(path) > 1:
                raise SetupError(f"fields: '{path}' is given twice; every subsystem has a file of its own")

    def settings(self, beside: Path) -> list[dict[str, Any]]:
        """What was asked for, with paths as seen from the folder of the result: for a run that is to be resumed."""
        folder = beside.absolute().parent
        return [
            {
                "path": os.path.relpath(one.path, folder),
                "of": one.file.of,
                "every": one.file.every,
                "times": None if one.file.times is None else list(one.file.times),
            }
            for one in self._writers
        ]

    @staticmethod
    def of_settings(settings: Any, beside: Path) -> list[FieldFile]:
        """The other way round."""
        folder = beside.absolute().parent
        return [
            FieldFile(folder / one["path"], of=one["of"], every=one["every"], times=one["times"])
            for one in settings or ()
        ]

    @property
    def memory(self) -> list[dict[str, int]]:
        """What another process needs to go on with the files, which are on the disk then."""
        for one in self._writers:
            if one.written:
                vtkhdf.secure(one.path)
        return [{"written": one.written, "next": one.next, "last": one.last} for one in self._writers]

    def go_on_from(self, memory: Any) -> None:
        """The files of a run that is resumed, with the steps up to where its state was kept."""
        for one, held in zip(self._writers, memory or (), strict=False):
            one.written, one.next, one.last = int(held["written"]), int(held["next"]), int(held["last"])
            vtkhdf.keep_first(one.path, one.written)

    def step_to(self, t: float, H: float, last: bool = False) -> None:
        """A run that is stepped by hand stands at its next macro point."""
        self.see(len(self._times), t, H, last)
        self._times.append(t)

    def go_back(self, t: float) -> None:
        """Such a run stands at an earlier point: forget what came after it, and all where it has not been there."""
        kept = int(np.searchsorted(self._times, t, side="right"))
        if not kept or self._times[kept - 1] != t:
            kept = 0
        for one in self._writers:
            one.go_back(kept - 1, t)
        self._times = self._times[:kept]

    @property
    def begun(self) -> bool:
        """True after the first macro point."""
        return bool(self._times)

    def left(self, steps: int, t: float, H: float) -> float:
        """How many macro steps may be taken until a snapshot is due, after so many."""
        return min((one.left(steps, t, H) for one in self._writers), default=inf)

    def see(self, steps: int, t: float, H: float, last: bool = False) -> None:
        """The run stands at a macro point, after so many steps of about the length `H`."""
        for one in self._writers:
            one.see(steps, t, H, last)


class _Writer:
    """One file: `written` steps are in it, the newest after `last` macro steps; `next` is the next of its times."""

    def __init__(self, file: FieldFile, names: Sequence[str], subsystems: Sequence[Any]) -> None:
        from cosolve.result.store import refuse_unwritable

        if not isinstance(file, FieldFile):
            raise SetupError(f"fields takes FieldFile objects, one or a list of them, not a {type(file).__name__}")
        if file.of not in names:
            raise SetupError(f"fields: there is no subsystem '{file.of}'; {did_you_mean(file.of, list(names))}")
        self.file, self.path = file, file.path.absolute()
        self._subsystem = subsystems[list(names).index(file.of)]
        if not callable(getattr(self._subsystem, "snapshot", None)):
            raise SetupError(
                f"fields: '{file.of}' ({type(self._subsystem).__name__}) shows no fields; a subsystem with a method "
                "snapshot(), which returns a cs.FieldSnapshot, does"
            )
        refuse_unwritable(self.path)
        self.written, self.next, self.last = 0, 0, -1

    def left(self, steps: int, t: float, H: float) -> float:
        times = self.file.times
        if times is None:
            return self.file.every - steps % self.file.every
        return max(1, ceil((times[self.next] - t) / H - _SLIVER)) if self.next < len(times) else inf

    def see(self, steps: int, t: float, H: float, last: bool) -> None:
        times = self.file.times
        if times is None:
            wanted = steps % self.file.every == 0 or last
        else:
            reached = int(np.searchsorted(times, t + _SLIVER * H, side="right"))
            wanted, self.next = reached > self.next, max(reached, self.next)
        if wanted and steps > self.last:
            self._write(t)
            self.last = steps

    def _write(self, t: float) -> None:
        try:
            snapshot = self._subsystem.snapshot()
            if not isinstance(snapshot, FieldSnapshot):
                raise SetupError(f"snapshot() returned a {type(snapshot).__name__}, not a FieldSnapshot")
            if not self.written:
                vtkhdf.create(self.path, snapshot, self.file.of)
            vtkhdf.append(self.path, t, snapshot)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            said = str(error) if isinstance(error, CosolveError) else f"{type(error).__name__}: {error}"
            raise SimulationError(
                f"the fields of '{self.file.of}' could not be written at t = {t:.9g}: {said}",
                time=t,
                subsystem=self.file.of,
            ) from error
        self.written += 1

    def go_back(self, steps: int, t: float) -> None:
        from cosolve.fields.field_series import FieldSeries

        if self.last > steps:
            there = FieldSeries(self.path).t
            self.written = int(np.searchsorted(there, t, side="right")) if steps >= 0 else 0
            self.last = min(self.last, steps)
            self.next = int(np.searchsorted(self.file.times or (), t, side="right")) if steps >= 0 else 0
            vtkhdf.keep_first(self.path, self.written)
