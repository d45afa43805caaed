"""Macro steps on their way from an engine into the statistics of a run: one or many thousand of them, as columns.

Whatever engine has advanced them, they look like this afterwards, so that a run keeps one record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector

_COLUMNS = ("t", "y", "z", "H", "iterations", "residual", "error", "rejected", "calls", "seconds", "norms")

#: Gives arrays (`y`, `z`, `residual`) for so many rows, which need not be copied when they are written down.
RowBuffers = Callable[[int], Mapping[str, Any]]


@dataclass
class Chunk:
    """Rows of macro steps; what is the same in all of them is one row.

    `z` has the driven inputs beside the coupling variables, where there are any.
    """

    t: Vector
    y: Matrix
    z: Matrix
    H: Vector | float
    iterations: npt.NDArray[np.integer[Any]] | int
    residual: Vector | float
    calls: npt.NDArray[np.int64]  # per step and subsystem
    rejected: npt.NDArray[np.int64] | int
    error: Vector | float
    norms: Any = field(default_factory=lambda: np.zeros(0))
    counts: npt.NDArray[np.int64] | None = None  # norms per row
    seconds: Matrix | float = np.nan  # per step and subsystem, where an engine tells them apart
    unconverged: int = 0
    renewed: int = 0
    compiled: bool = True
    failure: BaseException | None = None  # what ended the run in the step after these

    def __len__(self) -> int:
        return len(self.t)

    def total(self, name: str) -> Any:
        """The sum over all rows of `calls`, `iterations` or `rejected`."""
        value = np.asarray(getattr(self, name))
        same = value.ndim < (2 if name == "calls" else 1)
        return value * len(self) if same else value.sum(axis=0)

    def columns(self) -> dict[str, Any]:
        """What a recorder writes down of them."""
        return {name: getattr(self, name) for name in _COLUMNS}


class FastEngine(Protocol):
    """An engine that advances over many steps at once, for runs that it can take.

    `reason` says why it takes no step of this run, `left` how many steps it may take, `loading` how many seconds
    of the last `take` were compilation.
    """

    reason: str | None
    left: int
    loading: float

    @property
    def worth_it(self) -> bool:
        """True when the steps that are left repay loading it."""

    def take(self, buffers: RowBuffers | None = None) -> Chunk | None:
        """Advance over many steps from where the run stands; None when the Python engine must take the next one."""
