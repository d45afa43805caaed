"""What a sweep runs and where its numbers go: descriptions that travel to other processes and machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, overload

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.engine.blocks.program import Integers
from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.method import Method
from cosolve.result import Result
from cosolve.stepsize import UniformClock

REDUCTIONS = ("end", "max", "min", "peak", "trajectory")

Case = tuple[int, int, int]  # variant, method, step
Item = tuple[int, dict[str, Any], tuple[tuple[int, int], ...]]  # variant, its values, (method, step) to run


@dataclass(frozen=True)
class Items(Sequence[Item]):
    """Variants to run, each made when it is asked for: thousands of dicts would take longer than running them.

    >>> items = Items(np.array([7, 8]), {"c": np.array([0.5, 1.5])}, ((0, 0),))
    >>> items[1], len(items[:1])
    ((8, {'c': 1.5}, ((0, 0),)), 1)
    """

    numbers: Integers  # of the variants
    columns: Mapping[str, Any]  # their values, parameter by parameter
    pairs: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, k: int) -> Item: ...
    @overload
    def __getitem__(self, k: slice) -> Items: ...
    def __getitem__(self, k: int | slice) -> Item | Items:
        if isinstance(k, slice):
            return Items(self.numbers[k], {name: column[k] for name, column in self.columns.items()}, self.pairs)
        # Python numbers for `build`
        return int(self.numbers[k]), {name: column.item(k) for name, column in self.columns.items()}, self.pairs


@dataclass(frozen=True)
class Job:
    """Everything that all variants have in common."""

    build: Callable[..., Any]
    methods: tuple[Method, ...]
    steps: tuple[Any, ...]
    t_start: float
    t_end: float
    record: tuple[str, ...]
    every: int
    reduce: str | Callable[[Result], Any]
    compiled: bool | None = None
    matrices: Callable[..., Any] | None = None
    flags: Mapping[tuple[int, int], bool | None] = field(default_factory=dict)  # compiled loops per (method, step)

    def system(self, values: dict[str, Any]) -> System:
        """One variant."""
        made = self.build(**values)
        if not isinstance(made, System):
            raise SetupError(f"build returned a {type(made).__name__}, not a System; end it with 'return system'")
        return made

    def rows(self, step: Any) -> int:
        """Recorded macro points of a run in equal steps."""
        count = UniformClock(self.t_start, self.t_end, step).count
        return 1 + count // self.every + (count % self.every > 0)


class Sink(Protocol):
    """Where results go."""

    def put(self, case: Case, cell: Any, labels: tuple[str, ...] | None = None) -> None:
        """What is kept of one run."""

    def put_many(self, variants: Any, method: int, step: int, cells: Any) -> None:
        """What is kept of many runs."""

    def fail(self, case: Case, message: str) -> None:
        """A run that did not work."""

    def note(self, case: Case, message: str) -> None:
        """A run that worked, with something to say about it."""


@dataclass
class Collected:
    """Results on their way back from another process."""

    cells: list[tuple[Case, Any, tuple[str, ...] | None]] = field(default_factory=list)
    many: list[tuple[Any, int, int, Any]] = field(default_factory=list)
    failures: list[tuple[Case, str]] = field(default_factory=list)
    notes: list[tuple[Case, str]] = field(default_factory=list)
    how: list[str] = field(default_factory=list)

    def put(self, case: Case, cell: Any, labels: tuple[str, ...] | None = None) -> None:
        """What is kept of one run."""
        self.cells.append((case, cell, labels))

    def put_many(self, variants: Any, method: int, step: int, cells: Any) -> None:
        """What is kept of many runs."""
        self.many.append((variants, method, step, cells))

    def fail(self, case: Case, message: str) -> None:
        """A run that did not work."""
        self.failures.append((case, message))

    def note(self, case: Case, message: str) -> None:
        """A run that worked, with something to say about it."""
        self.notes.append((case, message))

    def hand_on(self, sink: Sink) -> None:
        """Give everything to the next one."""
        for case, cell, labels in self.cells:
            sink.put(case, cell, labels)
        for part in self.many:
            sink.put_many(*part)
        for case, message in self.failures:
            sink.fail(case, message)
        for case, message in self.notes:
            sink.note(case, message)


class Store:
    """The whole array, filled as results come in, in whatever order."""

    def __init__(self, shape: tuple[int, int, int], cell: tuple[int, ...] | None) -> None:
        self.shape = shape
        self.values: Any = None if cell is None else np.full((*shape, *cell), np.nan)
        self.labels: tuple[str, ...] | None = None
        self.errors: dict[Case, str] = {}
        self.notes: dict[Case, str] = {}

    def put(self, case: Case, cell: Any, labels: tuple[str, ...] | None = None) -> None:
        """What is kept of one run; the first one of a user's function decides the shape."""
        if self.values is None:
            self.values, self.labels = np.full((*self.shape, *np.shape(cell)), np.nan), labels
        wanted = self.values.shape[3:]
        if labels != self.labels or (np.shape(cell) != wanted and np.ndim(cell) != 2):
            what = f"names {labels}" if labels != self.labels else f"shape {np.shape(cell)}"
            instead = self.labels if labels != self.labels else wanted
            self.fail(case, f"reduce returned values of {what}, but {instead} for other variants")
            return
        if np.ndim(cell) == 2:  # trajectories of different length
            self.values[case][:, : cell.shape[1]] = cell
        else:
            self.values[case] = cell

    def put_many(self, variants: Any, method: int, step: int, cells: Any) -> None:
        """What is kept of many runs."""
        if cells.ndim == 3:
            self.values[variants, method, step, :, : cells.shape[2]] = cells
        else:
            self.values[variants, method, step] = cells

    def fail(self, case: Case, message: str) -> None:
        """A run that did not work."""
        self.errors[case] = message

    def note(self, case: Case, message: str) -> None:
        """A run that worked, with something to say about it."""
        self.notes[case] = message


def reduce_result(result: Result, job: Job) -> tuple[Any, tuple[str, ...] | None]:
    """What is kept of a run, and the names of its numbers where a function of the user gives them."""
    if callable(job.reduce):
        given = job.reduce(result)
        if isinstance(given, Mapping):
            return np.array([float(value) for value in given.values()]), tuple(str(name) for name in given)
        cell = np.asarray(given, dtype=np.float64)
        if cell.ndim > 1:
            raise SetupError(f"reduce returned an array of shape {cell.shape}; return a number, a row or a dict")
        return cell, None
    rows: Vector = recorded_rows(result, job.record)
    if job.reduce == "trajectory":
        return rows, None
    if job.reduce == "end":
        return rows[:, -1], None
    if job.reduce == "peak":
        return np.abs(rows).max(axis=1), None
    return (rows.max(axis=1) if job.reduce == "max" else rows.min(axis=1)), None


def recorded_rows(result: Result, record: tuple[str, ...]) -> Any:
    """Quantities as rows over the macro points; entries of vectors one by one."""
    columns = [result[name].reshape(len(result.t), -1).T for name in record]
    return np.concatenate(columns)
