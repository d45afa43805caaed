"""Whose fault is a correction that corrects nothing? Rollback and Jacobians of the subsystems, tried out in one step.

A subsystem that comes back to its saved state gives the same outputs when it crosses a step once more with the inputs
of before. What it is compared with is the first crossing of the step, which nobody had to go back for. Methods that
repeat steps have this tried out in the first step of a run. Where a correction leaves a part of the residual (a kink
does that too, `engine/corrections.py`), it is tried out again, and Jacobians that subsystems and laws give are compared
with differences. These crossings are not counted, and afterwards everybody stands where they were.

Machine code that finds so much left takes the step back first. Somebody who does not come back begins at a wrong state
then, again and again the same; but the residual that the step begins with is another one.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.engine.readable.events import EndedEarly
from cosolve.errors import SubsystemError
from cosolve.subsystem.base import has_capability

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cosolve.engine.readable.crew import Crew
    from cosolve.engine.readable.trial import Trial
    from cosolve.interface.plan import Block, Plan
    from cosolve.method.step import Window

#: Outputs of repeated crossings differ by this, relatively, and Jacobians by that, before anything is said.
_SAME, _CLOSE = 1e-6, 0.02
#: Of the largest output of a subsystem: others that pass through zero have rounding errors of this size.
_ROUNDING = 1e-12
#: Differences are taken with a second increment, so many times larger: what they disagree by is their uncertainty.
_LARGER = 3.0
#: Increments of the differences of laws, and columns that are differenced of one, evenly spread.
_LAW_INCREMENT, _COLUMNS = 1e-6, 64

_MUST = "save() must return a copy of everything that advance() changes, and restore() must take all of it back"


class Crossing(NamedTuple):
    """The values in which the signals of a crossing ended, and the outputs that it gave.

    In a serial sweep one variable may have a guess for those who run before its source, and its value for those who run
    after it: `seen` tells what each subsystem had.
    """

    z: Vector
    y: Vector
    seen: Callable[[int], Vector] | None = None

    def of(self, i: int) -> Vector:
        """The values that subsystem `i` crossed with."""
        return self.z if self.seen is None else self.seen(i)


class NoWayBack(SubsystemError):
    """A subsystem crossed the same step twice and gave different outputs."""


@contextmanager
def uncounted(crew: Crew) -> Iterator[None]:
    """Whatever happens inside is not in the books, and everybody stands where they were afterwards."""
    calls, jacobians, watch = crew.calls.copy(), crew.jacobians.copy(), crew.watch
    kept = None if watch is None else (set(watch.moved), set(watch.pending))
    ends = [crew.save_one(i) for i in range(crew.plan.n_subsystems)]
    try:
        yield
    finally:
        crew.calls[:], crew.jacobians[:] = calls, jacobians
        if watch is not None and kept is not None:
            watch.moved, watch.pending = kept
    crew.restore(ends)


def prove_rollback(trial: Trial, first: Crossing) -> None:
    """Raise when a subsystem does not come back to its saved state after the `first` crossing of a step.

    Those that show it by themselves at the start of a run (FMUs) need not do so again.
    """
    subsystems = trial.crew.plan.subsystems
    unproven = [i for i, subsystem in enumerate(subsystems) if not hasattr(subsystem, "prove_rollback")]
    if unproven:
        with uncounted(trial.crew):
            _refuse_no_way_back(trial, first, unproven)


def examine(trial: Trial, first: Crossing, jacobians: bool = True) -> str:
    """The same, and a sentence about Jacobians that are wrong there, or nothing."""
    crew, plan, wrong = trial.crew, trial.crew.plan, []
    with uncounted(crew):
        for _ in range(2):  # a counter may happen to stand where it stood
            _refuse_no_way_back(trial, first, range(plan.n_subsystems))
        if jacobians:
            wrong = [f"'{plan.names[i]}'" for i in range(plan.n_subsystems) if _jacobian_is_wrong(trial, i, first)]
            wrong += [block.label for block in trial.plan.blocks if _law_jacobian_is_wrong(block, first)]
    if not wrong:
        return ""
    without = "; check_jacobians names the entries, and jacobian='difference' does without those of subsystems"
    return (
        f"corrections in the step from t = {trial.window.t0:.9g} left more of the residual than they should, and the "
        f"jacobian of {', '.join(wrong)} does not agree with differences{without}"
    )


def refuse_other_outputs(crew: Crew, i: int, window: Window, first: Vector, again: Vector) -> None:
    """Raise when the outputs of subsystem `i` are others than those of the first crossing."""
    one, two = first[crew.plan.y_slices[i]], again[crew.plan.y_slices[i]]
    size = np.maximum(np.abs(one), np.abs(two))
    noise, largest = 10.0 * crew.plan.subsystems[i].noise, size.max(initial=0.0)
    off = np.abs(two - one) - np.maximum(_SAME * size, max(_ROUNDING, noise) * largest)
    if (off > 0.0).any():
        k = int(np.argmax(off))
        label = crew.plan.output_ports[i].labels()[k]
        raise _no_way_back(crew, i, window, f"{one[k]:.9g} for '{label}'", f"{two[k]:.9g}")


def refuse_another_beginning(plan: Plan, first: Crossing, window: Window, expected: Vector) -> None:
    """Raise when the first crossing of a step leaves another residual than it did before the step was taken back."""
    r = plan.residual(first.z, first.y)
    size = np.maximum(np.abs(r), np.abs(expected))
    noise = max(_ROUNDING, *(10.0 * subsystem.noise for subsystem in plan.subsystems))
    terms = plan.rounding(first.z, first.y) / np.finfo(np.float64).eps  # a small difference of large ones is as noisy
    off = np.abs(r - expected) - np.maximum(_SAME * np.maximum(size, np.abs(first.z)), noise * terms)
    if not (off > 0.0).any():
        return
    k = int(np.argmax(off))
    asked = np.concatenate([columns[rows == k] for rows, columns, _ in plan.partials(first.z, first.y)[1]])
    givers = [i for i in range(plan.n_subsystems) if np.isin(np.arange(plan.n_y)[plan.y_slices[i]], asked).any()]
    foreign = [i for i in givers if not type(plan.subsystems[i]).__module__.startswith("cosolve.")]
    names = [plan.names[i] for i in foreign or givers or range(plan.n_subsystems)]
    raise NoWayBack(
        f"{' or '.join(map(repr, names))} does not come back to its saved state: the step from t = {window.t0:.9g} "
        f"left a residual of {expected[k]:.9g} for '{plan.z_labels[k]}', then {r[k]:.9g} with the same inputs; {_MUST}",
        time=window.t0,
        subsystem=names[0],
    )


def _no_way_back(crew: Crew, i: int, window: Window, one: str, two: str) -> NoWayBack:
    name = crew.plan.names[i]
    return NoWayBack(
        f"'{name}' does not come back to its saved state: the step from t = {window.t0:.9g} gave {one}, then {two} "
        f"with the same inputs; {_MUST}",
        time=window.t0,
        subsystem=name,
    )


def _refuse_no_way_back(trial: Trial, first: Crossing, members: Iterable[int]) -> None:
    crew, window = trial.crew, trial.window
    coefficients, again = trial.coefficients(first.z), np.empty(crew.plan.n_y)
    for i in members:
        if first.seen is not None:
            coefficients = trial.coefficients(first.of(i))
        trial.rewind_one(i)
        try:
            again[crew.plan.y_slices[i]] = crew.advance(i, window, coefficients)
        except EndedEarly as early:
            raise _no_way_back(crew, i, window, "no event", f"one at t = {early.t:.9g}") from None
        refuse_other_outputs(crew, i, window, first.y, again)


def _jacobian_is_wrong(trial: Trial, i: int, first: Crossing) -> bool:
    if trial.source != "auto" or not has_capability(trial.crew.plan.subsystems[i], "jacobian"):
        return False
    z, y = first.of(i), first.y
    given = trial.response(i, z, y, "auto")
    try:
        near = trial.response(i, z, y, "difference")
        far = trial.response(i, z, y, "difference", _LARGER * trial.increment)
    except EndedEarly:  # events on both sides
        return False
    return _disagree(given, near, far)


def _law_jacobian_is_wrong(block: Block, first: Crossing) -> bool:
    if block.jacobian is None and (block.levels is None or block.levels.jacobian is None):
        return False
    z, y = first.z[block.rows], first.y[block.y_index]
    given: Any = block.partials(z, y)[1]
    columns = np.unique(np.linspace(0, len(y) - 1, min(len(y), _COLUMNS)).astype(int))
    given = given.tocsc()[:, columns].toarray() if hasattr(given, "tocsc") else np.asarray(given)[:, columns]
    near, far = (np.empty(given.shape) for _ in range(2))
    for differenced, increment in ((near, _LAW_INCREMENT), (far, _LARGER * _LAW_INCREMENT)):
        for k, j in enumerate(columns):
            shift = np.zeros(len(y))
            shift[j] = increment * max(float(block.y_nominal[j]), abs(float(y[j])))
            differenced[:, k] = (block.call(z, y + shift) - block.call(z, y - shift)) / (2.0 * shift[j])
    return _disagree(given, near, far)


def _disagree(given: Any, near: Any, far: Any) -> bool:
    """Whether a given matrix is another one than the differences, taken with two increments."""
    if not near.size:
        return False
    allowed = 10.0 * np.abs(far - near) + _CLOSE * np.abs(near).max()
    return bool((np.abs(given - near) > allowed).any())
