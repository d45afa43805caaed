"""A run as its observers see it: where it stands, its values, and what may be done to it between macro steps.

What an observer wants done to the run (save its state, change a parameter) is done here, in the thread of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import is_number
from cosolve.basics.wording import did_you_mean
from cosolve.engine.chunk import Chunk
from cosolve.engine.observer import Observer
from cosolve.errors import SetupError
from cosolve.interface.changes import TunableInput
from cosolve.interface.channels import Selection, channels
from cosolve.result import Channel, Memory, Note, Recorder, Stats, find_channel
from cosolve.run.core import Core


class RunView:
    """What an observer sees of a run, and may do to it.

    Parameters
    ----------
    core : Core
        The run itself.
    selection : Selection
        The quantities that are recorded.
    recorder : Recorder or None
        Where they are written.
    stats : Stats
        The statistics of the run, to which `note` adds.
    meta : mapping
        What the result says about the run.
    observers : sequence of Observer
        All that follow the run.
    resumed : bool, default False
        True for a run that another process has begun.
    may_go_back : bool, default False
        True for a `Stepper`.

    Attributes
    ----------
    stats : Stats
        Statistics so far.
    names : tuple of str
        The subsystems.
    file : Path or None
        The file that the result is streamed to.
    observers : sequence of Observer
        All that follow the run, in their order.
    """

    def __init__(
        self,
        core: Core,
        selection: Selection,
        recorder: Recorder | None,
        stats: Stats,
        meta: Mapping[str, Any],
        observers: Sequence[Observer] = (),
        *,
        resumed: bool = False,
        may_go_back: bool = False,
    ) -> None:
        self.core, self.selection, self.stats, self.meta = core, selection, stats, meta
        self.observers, self.resumed, self.may_go_back = observers, resumed, may_go_back
        self.compiled = False  #: True while a fast engine takes the steps
        self.residual = np.nan  #: the largest of the newest steps
        self._in_place = recorder is not None and not isinstance(recorder, Memory)
        self.file: Path | None = getattr(recorder, "path", None)
        self.names = core.plan.names

    @cached_property
    def _inputs(self) -> dict[str, TunableInput]:
        return {one.target: one.drive for one in self.core.plan.driven if isinstance(one.drive, TunableInput)}

    @cached_property
    def _parameters(self) -> dict[str, tuple[Any, str]]:
        return _tunable(self.core)

    @cached_property
    def _channels(self) -> Mapping[str, Channel]:
        return channels(self.core.plan)

    def __getitem__(self, name: str) -> float | Vector:
        y, z = self.core.y[np.newaxis], self.core.recorded(self.core.z)[np.newaxis]
        value = self._picked(name, y, z)[0]
        return value if np.ndim(value) else float(value)

    def values(self, steps: Chunk, name: str) -> Vector:
        """Return a quantity at the ends of macro steps.

        Parameters
        ----------
        steps : Chunk
            What `accepted` was given.
        name : str
            Its name, as in a result.

        Returns
        -------
        ndarray
            One row per macro step.
        """
        return self._picked(name, steps.y, steps.z)

    def _picked(self, name: str, y: Matrix, z: Matrix) -> Vector:
        channel = find_channel(self._channels, name)
        if channel is None:
            raise SetupError(f"the run has no '{name}'; {did_you_mean(name, self._channels, near=3)}")
        return channel.picked(y if channel.column == "y" else z)

    def subsystem(self, name: str) -> Any:
        """Return a subsystem, for questions that change nothing.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        Subsystem
            The subsystem, in the state after the newest macro step.
        """
        if name not in self.names:
            raise SetupError(f"there is no subsystem '{name}'; {did_you_mean(name, list(self.names))}")
        return self.core.plan.subsystems[self.names.index(name)]

    def note(self, note: Note) -> None:
        """Add a note to the result.

        Parameters
        ----------
        note : Note
            What was found.
        """
        self.stats.add(note)

    @property
    def steps(self) -> int:
        """Number of macro steps so far."""
        return self.stats.steps

    @property
    def step(self) -> float:
        """About the length of a macro step in seconds."""
        return self.core.windows.usual

    @property
    def done(self) -> bool:
        """True when no macro step follows."""
        return self.core.done

    def count(self, chunk: Chunk) -> None:
        """Add macro steps to the statistics.

        Parameters
        ----------
        chunk : Chunk
            The steps.
        """
        stats = self.stats
        stats.steps += len(chunk)
        stats.compiled_steps += len(chunk) if chunk.compiled else 0
        stats.iterations += int(chunk.total("iterations"))
        stats.unconverged += chunk.unconverged
        stats.renewed += chunk.renewed
        stats.over_tolerance += int(np.count_nonzero(chunk.error > 1.0))
        self.residual = float(np.fmax.reduce(np.atleast_1d(chunk.residual)))
        stats.max_residual = float(np.fmax(stats.max_residual, self.residual))  # NaN: a method without residuals

    @property
    def t(self) -> float:
        """Present time in seconds."""
        return self.core.t

    @property
    def t_end(self) -> float:
        """End of the run in seconds."""
        return self.core.windows.t_end

    def point(self) -> tuple[Vector, Vector]:
        """Return outputs and coupling variables now, as they are recorded.

        Returns
        -------
        tuple of ndarray
            Both.
        """
        core, chosen = self.core, self.selection
        return chosen.y(core.y), chosen.z(core.recorded(core.z))

    def kept(self, chunk: Chunk) -> Chunk:
        """Return macro steps whose arrays stay as they are; those of a run that is streamed to a file are used again.

        Parameters
        ----------
        chunk : Chunk
            What `accepted` was given.

        Returns
        -------
        Chunk
            The same.
        """
        if self._in_place and chunk.compiled:
            chunk.y, chunk.z = np.array(chunk.y), np.array(chunk.z)
            chunk.residual = np.array(chunk.residual)
        return chunk

    def save(self, path: Path) -> None:
        """Write the present state to a file, for `simulate(resume=path)`.

        Parameters
        ----------
        path : Path
            The file.
        """
        self.core.save(portable=True).write(path)

    def tunable(self) -> list[dict[str, Any]]:
        """Return what may be changed: inputs held by a `TunableInput`, and tunable parameters of FMUs.

        Returns
        -------
        list of dict
            Name, value and limits of each.
        """
        found = [{"name": n, "value": d.now, "low": d.low, "high": d.high} for n, d in self._inputs.items()]
        for name, (subsystem, key) in self._parameters.items():
            found.append({"name": name, "value": float(subsystem.get(key)), "low": -np.inf, "high": np.inf})
        return found

    def reset(self) -> None:
        """Set inputs held by a `TunableInput` to the values that they had at the start."""
        for one in self._inputs.values():
            one.reset()

    def change(self, name: str, value: float) -> None:
        """Set a new value from here on; the statistics of the result list it.

        Parameters
        ----------
        name : str
            One of `tunable`.
        value : float
            The value.
        """
        if name in self._inputs:
            try:
                self._inputs[name].set(self.t, value)
            except SetupError as error:
                raise SetupError(f"'{name}': {error}") from None
        elif name in self._parameters:
            if not is_number(value):
                raise SetupError(f"'{name}': a finite number is expected, not {value!r}")
            subsystem, key = self._parameters[name]
            part = name.removesuffix(f".{key}")
            originals = self.core.plan.changes.originals  # with which the next run begins, as after `System.at`
            originals.setdefault((part, key), subsystem.get(key))
            subsystem.set_parameters({key: value})
            past = self.core.caller.past[self.core.plan.names.index(part)]
            if past is not None:
                past.changed(self.t, {key: value})
        else:
            raise SetupError(f"'{name}' is no input held by a TunableInput and no tunable parameter of an FMU")
        self.stats.changed.append([self.t, name, value])


def _tunable(core: Core) -> dict[str, tuple[Any, str]]:
    """Numbers that FMUs let change while they run, by address; none where the run goes through compiled code."""
    found = {}
    for name, subsystem in zip(core.plan.names, core.plan.subsystems, strict=True):
        variables = subsystem.known_variables or {}
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
