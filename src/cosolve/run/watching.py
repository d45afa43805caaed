"""Runs that somebody follows, and may hold up, from another thread.

The run asks its watcher before every few steps whether it may go on, and shows it the steps afterwards. Whatever the
watcher wants done to the run (save its state, turn a dial) is done here, between two macro steps and in the thread of
the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_number
from cosolve.engine.chunk import Chunk
from cosolve.errors import SetupError
from cosolve.interface.channels import Selection
from cosolve.interface.dial import Dial
from cosolve.result import Memory, Recorder, Result, Stats
from cosolve.run.core import Core


class Watcher(Protocol):
    """Who follows a run: `simulate(live=...)`."""

    def begin(self, run: WatchedRun) -> None:
        """The run stands at its first point."""

    def allow(self, run: WatchedRun) -> int:
        """How many macro steps may be taken now; 0 ends the run. May wait."""

    def see(self, chunk: Chunk) -> None:
        """Steps that were taken; their arrays stay as they are. Must come back at once."""

    def end(self, result: Result) -> None:
        """The run is over."""


class WatchedRun:
    """What a watcher may look at and do, in the thread of the run."""

    def __init__(
        self, core: Core, selection: Selection, recorder: Recorder, stats: Stats, meta: Mapping[str, Any]
    ) -> None:
        self._core, self.selection, self.stats, self.meta = core, selection, stats, meta
        self._in_place = not isinstance(recorder, Memory)
        self.file: Path | None = getattr(recorder, "path", None)
        self.names = core.plan.names
        self._dials = {one.target: one.drive for one in core.plan.driven if isinstance(one.drive, Dial)}
        self._parameters = _tunable(core)

    @property
    def t(self) -> float:
        """Time now."""
        return self._core.t

    @property
    def t_end(self) -> float:
        """Where the run is to end."""
        return self._core.windows.t_end

    def point(self) -> tuple[Vector, Vector]:
        """Outputs and coupling variables now, as they are recorded."""
        core, chosen = self._core, self.selection
        return chosen.y(core.y), chosen.z(core.recorded(core.z))

    def kept(self, chunk: Chunk) -> Chunk:
        """The chunk with arrays that nobody overwrites: a stream writes the next block to the same place."""
        if self._in_place and chunk.compiled:
            chunk.y, chunk.z = np.array(chunk.y), np.array(chunk.z)
            chunk.residual = np.array(chunk.residual)
        return chunk

    def save(self, path: Path) -> None:
        """The state now, for `simulate(resume=path)`."""
        self._core.save(portable=True).write(path)

    def tunable(self) -> list[dict[str, Any]]:
        """What may be changed: dials, and the tunable parameters of FMUs; with values and limits."""
        found = [{"name": n, "value": d.now, "low": d.low, "high": d.high} for n, d in self._dials.items()]
        for name, (subsystem, key) in self._parameters.items():
            found.append({"name": name, "value": float(subsystem.get(key)), "low": -np.inf, "high": np.inf})
        return found

    def reset(self) -> None:
        """Dials as they were before anybody turned them."""
        for dial in self._dials.values():
            dial.reset()

    def change(self, name: str, value: float) -> None:
        """A new value from here on, which is written down in the statistics of the result."""
        if name in self._dials:
            try:
                self._dials[name].turn(self.t, value)
            except SetupError as error:
                raise SetupError(f"'{name}': {error}") from None
        elif name in self._parameters:
            if not is_number(value):
                raise SetupError(f"'{name}': a finite number is expected, not {value!r}")
            subsystem, key = self._parameters[name]
            part = name.removesuffix(f".{key}")
            originals = self._core.plan.changes.originals  # with which the next run begins, as after `System.at`
            originals.setdefault((part, key), subsystem.get(key))
            subsystem.set_parameters({key: value})
            past = self._core.crew.past[self._core.plan.names.index(part)]
            if past is not None:
                past.changed(self.t, {key: value})
        else:
            raise SetupError(f"'{name}' is no input held by a Dial and no tunable parameter of an FMU")
        self.stats.changed.append([self.t, name, value])


def _tunable(core: Core) -> dict[str, tuple[Any, str]]:
    """Numbers that FMUs let change while they run, by address; none where the run goes through compiled code."""
    found = {}
    for name, subsystem in zip(core.plan.names, core.plan.subsystems, strict=True):
        variables = getattr(getattr(subsystem, "description", None), "variables", {})
        if not (callable(getattr(subsystem, "set_parameters", None)) and callable(getattr(subsystem, "get", None))):
            continue
        for key, variable in variables.items():
            if getattr(variable, "variability", "") == "tunable" and _is_real(subsystem, key):
                found[f"{name}.{key}"] = subsystem, key
    return found


def _is_real(subsystem: Any, key: str) -> bool:
    try:
        return is_number(subsystem.get(key))
    except Exception:  # a text, an array, or nothing that can be read
        return False
