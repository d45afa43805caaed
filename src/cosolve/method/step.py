"""One macro step as data: its window, its outcome, and what is remembered from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.errors import SimulationError
from cosolve.signal import History

#: A point closer than this fraction of a macro step is reached.
CLOSE = 1e-9


@dataclass(slots=True)
class Window:
    """One macro step `[t0, t1]`; `H` is its exact nominal length (`t1 - t0` up to rounding)."""

    t0: float
    t1: float
    H: float


@dataclass(slots=True)
class Outcome:
    """What a macro step leaves behind.

    `y`, `z`: outputs and coupling variables at the end of the step; `predicted`: the extrapolated coupling variables
    there, whose distance to `z` is the free error estimate; `degree`: the degree that estimate has; `t1`, `H`: end
    and length of the step, which a method sets where it chose them itself; `norms`: the residual norm of every iterate;
    `error`: the estimate in units of the tolerance, for the step control to set; `renewed`: whether the iteration began
    again with a Jacobian of every iterate; `kept`: what the history keeps of the step, where that is not `z`;
    `left`: the residual of the values that were used, where the method notes it;
    `unsolved`: why a step is not good enough, unless the step control accepts its error.
    """

    y: Vector
    z: Vector
    predicted: Vector
    degree: int
    iterations: int = 0
    residual: float = np.nan
    converged: bool = True
    rejected: int = 0
    t1: float | None = None
    H: float | None = None
    norms: Sequence[float] = ()
    error: float = np.nan
    renewed: bool = False
    kept: Vector | None = None
    left: Vector | None = None
    unsolved: SimulationError | None = None

    @property
    def remembered(self) -> Vector:
        """What the history keeps of the step."""
        return self.z if self.kept is None else self.kept


MacroStep = Callable[[History, Window], Outcome]


class StatefulStep:
    """A macro step with what it remembers from one step to the next, so that a run can be saved and continued.

    `parts` hold the memory: objects whose attributes are all of it, or with a `memory` of their own (to read and set).
    A macro step that remembers nothing is a plain function.

    >>> from types import SimpleNamespace
    >>> held = SimpleNamespace(count=0)
    >>> def step(history, window):
    ...     held.count += 1
    >>> counting = StatefulStep(step, held)
    >>> saved = counting.memory
    >>> counting(None, None)
    >>> counting.memory = saved
    >>> held.count
    0
    """

    def __init__(self, step: MacroStep, *parts: object) -> None:
        self._step, self.parts = step, parts

    def __call__(self, history: History, window: Window) -> Outcome:
        return self._step(history, window)

    @property
    def memory(self) -> list[Any]:
        """Independent copies of what the parts hold."""
        return [memory_of(part) for part in self.parts]

    @memory.setter
    def memory(self, saved: list[Any]) -> None:
        for part, held in zip(self.parts, saved, strict=True):
            set_memory(part, held)


def memory_of(part: Any) -> Any:
    """What `part` remembers, as a copy; None for a plain function."""
    if hasattr(type(part), "memory"):
        return part.memory
    return None if isinstance(part, FunctionType) else deepcopy(vars(part))


def set_memory(part: Any, saved: Any) -> None:
    """Let `part` remember what it did when `saved` was taken."""
    if hasattr(type(part), "memory"):
        part.memory = saved
    elif saved is not None:
        vars(part).clear()
        vars(part).update(deepcopy(saved))
