"""Whose fault is a correction that corrects nothing? Rollback and Jacobians of the subsystems, tried out in one step.

A subsystem that comes back to its saved state gives the same outputs when it crosses a step once more with the inputs
of before. What it is compared with is the first crossing of the step, which nobody had to go back for. Methods that
repeat steps have this tried out in the first step of a run. A solver that iterates and stands at rest gives outputs of
the size of its own tolerance, which differ as a whole; they are told from a forgotten state by larger inputs, and the
check is repeated in later steps until the outputs are large enough. Where a correction leaves a part of the residual
(a kink does that too, `engine/corrections.py`), it is tried out again, and Jacobians that subsystems and laws give are
compared with differences. These crossings are not counted, and afterwards everybody stands where they were.

Machine code that finds so much left takes the step back first. Somebody who does not come back begins at a wrong state
then, again and again the same; but the residual that the step begins with is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.engine.readable.events import EndedEarly
from cosolve.engine.readable.past import crossed_again
from cosolve.errors import SubsystemError
from cosolve.subsystem.base import has_capability

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cosolve.engine.readable.crew import Crew
    from cosolve.engine.readable.trial import Trial
    from cosolve.interface.plan import Block, Plan
    from cosolve.method.step import Window

#: Outputs of repeated crossings differ by this, relatively, and Jacobians by that, before anything is said.
_SAME, _CLOSE = 1e-6, 0.02
#: Of the largest output of a subsystem: others that pass through zero have rounding errors of this size.
_ROUNDING = 1e-12
#: Of a nominal value: what outputs at rest may differ by until they are compared again in a later step.
_AT_REST = 1e-9
#: Larger inputs let the outputs change by so many times the difference; the input grows at most by this per attempt.
_FAR, _FASTER, _ATTEMPTS = 1e9, 1e4, 20
#: Differences are taken with a second increment, so many times larger: what they disagree by is their uncertainty.
_LARGER = 3.0
#: Increments of the differences of laws, and columns that are differenced of one, evenly spread.
_LAW_INCREMENT, _COLUMNS = 1e-6, 64

#: Steps after which rollback that is known to work is tried out once more; each time twice as many.
_LATER = 16

_MUST = "save() must return a copy of everything that advance() changes, and restore() must take all of it back"
_MAY = (
    "save() must keep all that advance() changes; if that is its tolerance, state noise and nominal values of its ports"
)


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
    marks = [None if past is None else past.mark() for past in crew.past]
    ends = [crew.save_one(i) for i in range(crew.plan.n_subsystems)]
    try:
        yield
    finally:
        crew.calls[:], crew.jacobians[:] = calls, jacobians
        for past, mark in zip(crew.past, marks, strict=True):
            if past is not None and mark is not None:
                past.go_back(mark)
        if watch is not None and kept is not None:
            watch.moved, watch.pending = kept
    crew.restore(ends)


class Proof:
    """Whether the subsystems of a run come back to their saved states; tried out until that is known.

    Where some are of others' making (`lasting`) it is tried out now and then later on: what is not saved may matter
    from some time on only.
    """

    def __init__(self, wanted: bool = True, lasting: bool = False) -> None:
        self._open, self._wait, self._pause, self._lasting = wanted, 0, 1, lasting

    def due(self) -> bool:
        """True in a step in which it is to be tried out; after a step at rest, in steps further and further apart."""
        if self._open and self._wait:
            self._wait -= 1
            return False
        return self._open

    def note(self, known: bool) -> None:
        """It was tried out, and is known now or is to be tried out again."""
        if known and self._lasting:
            self._pause = max(self._pause, _LATER)
        self._open, self._wait, self._pause = not known or self._lasting, self._pause, 2 * self._pause


def lasting(plan: Plan) -> bool:
    """Whether rollback is to be tried out now and then: for subsystems of others that do not show it by themselves."""
    return any(part.foreign and not hasattr(part, "prove_rollback") for part in plan.subsystems)


def prove_rollback(trial: Trial, first: Crossing) -> bool:
    """Raise when a subsystem does not come back to its saved state after the `first` crossing of a step.

    False when one is at rest, so that it cannot be told yet. Those that show it by themselves at the start of a run
    (FMUs) need not do so again.
    """
    subsystems = trial.crew.plan.subsystems
    unproven = [i for i, subsystem in enumerate(subsystems) if not hasattr(subsystem, "prove_rollback")]
    if not unproven:
        return True
    with uncounted(trial.crew):
        return _comes_back(trial, first, unproven)


def examine(trial: Trial, first: Crossing, jacobians: bool = True) -> str:
    """The same, and a sentence about Jacobians that are wrong there, or nothing."""
    crew, plan, wrong = trial.crew, trial.crew.plan, []
    with uncounted(crew):
        for _ in range(2):  # a counter may happen to stand where it stood
            _comes_back(trial, first, range(plan.n_subsystems))
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


class Repeated(NamedTuple):
    """A step that a subsystem can cross again from its start, with inputs that have these coefficients."""

    crew: Crew
    window: Window
    coefficients: Matrix
    rewind: Callable[[int], None]

    def outputs(self, i: int, shift: float = 0.0) -> Vector:
        """The outputs of subsystem `i` with all its coupled inputs shifted by so much."""
        given = self.coefficients
        if shift:
            given = given.copy()
            given[0, self.crew.plan.reads(i)] += shift
        self.rewind(i)
        return self.crew.advance(i, self.window, given).copy()


def same_outputs(step: Repeated, i: int, one: Vector, two: Vector) -> bool:
    """Whether two crossings of subsystem `i` gave the same outputs; raises when they did not.

    False when it is at rest: its outputs differ, by less than counts, and larger ones do not.
    """
    crew = step.crew
    size, between = np.maximum(np.abs(one), np.abs(two)), np.abs(two - one)
    noise, largest = 10.0 * crew.plan.subsystems[i].noise, size.max(initial=0.0)
    off = between - np.maximum(_SAME * size, max(_ROUNDING, noise) * largest)
    if not (off > 0.0).any():
        if between.any():
            crew.suspects.add(i)
        return True
    ports = crew.plan.output_ports[i]
    nominal = np.array([port.nominal for port in ports for _ in range(port.length)])
    left_over = _is_left_over(step, i, one, float(between.max()))
    if left_over and (between <= max(_AT_REST, noise) * nominal).all():
        return False
    k, must = int(np.argmax(off)), _MAY if left_over else _MUST
    raise _no_way_back(crew, i, step.window, f"{one[k]:.9g} for '{ports.labels()[k]}'", f"{two[k]:.9g}", must)


def _is_left_over(step: Repeated, i: int, one: Vector, between: float) -> bool:
    """Whether a difference between two crossings stays as small when larger inputs make the outputs large."""
    shift = between
    try:
        for _ in range(_ATTEMPTS):
            far = step.outputs(i, shift)
            change = float(np.abs(far - one).max())
            if change >= _FAR * between:
                break
            shift *= _FASTER if change <= 0.0 else min(_FASTER, 2.0 * _FAR * between / change)
        else:
            return False
        step.outputs(i)  # something else in between
        return bool(np.abs(step.outputs(i, shift) - far).max() <= _SAME * change)
    except (SubsystemError, EndedEarly):
        return False


def refuse_another_beginning(plan: Plan, first: Crossing, window: Window, expected: Vector) -> None:
    """Raise when the first crossing of a step leaves another residual than it did before the step was taken back."""
    r = plan.residual(first.z, first.y)
    size = np.maximum(np.abs(r), np.abs(expected))
    noise = max(_ROUNDING, *(10.0 * subsystem.noise for subsystem in plan.subsystems))
    terms = plan.rounding(first.z, first.y) / np.finfo(np.float64).eps  # a small difference of large ones is as noisy
    off = np.abs(r - expected) - np.maximum(_SAME * np.maximum(size, np.abs(first.z)), noise * terms)
    if not (off > 0.0).any() or (np.abs(r - expected) <= _AT_REST * plan.z_nominal).all():
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


def _no_way_back(crew: Crew, i: int, window: Window, one: str, two: str, must: str = _MUST) -> NoWayBack:
    name = crew.plan.names[i]
    return NoWayBack(
        f"'{name}' does not come back to its saved state: the step from t = {window.t0:.9g} gave {one}, then {two} "
        f"with the same inputs; {must}",
        time=window.t0,
        subsystem=name,
    )


def _comes_back(trial: Trial, first: Crossing, members: Iterable[int]) -> bool:
    """Whether these subsystems give the outputs of the first crossing once more; raises where one does not."""
    crew, window, known = trial.crew, trial.window, True
    coefficients = trial.coefficients(first.z)
    trial.rewind()  # all of them: some look at where others stand
    for i in members:
        if first.seen is not None:
            coefficients = trial.coefficients(first.of(i))
        step = Repeated(crew, window, coefficients, trial.rewind_one)
        try:
            again = step.outputs(i)
        except EndedEarly as early:
            raise _no_way_back(crew, i, window, "no event", f"one at t = {early.t:.9g}") from None
        known &= same_outputs(step, i, first.y[crew.plan.y_slices[i]], again)
    return known


def repeats_last_step(crew: Crew, states: Mapping[int, Any] | Sequence[Any], window: Window) -> bool:
    """Cross the last step once more from these states; raises where one gives other outputs. False without a past."""
    members = states.keys() if isinstance(states, Mapping) else range(len(states))
    for i in members:
        found = crossed_again(crew, i, states)
        if found is None:
            continue
        one, two = found
        between = np.abs(two - one)
        if between.any():
            crew.suspects.add(i)
        size, allowed = np.maximum(np.abs(one), np.abs(two)), 10.0 * crew.plan.subsystems[i].noise
        off = between - np.maximum(_SAME * size, max(_ROUNDING, allowed) * size.max(initial=0.0))
        if (off > 0.0).any():
            k, ports = int(np.argmax(off)), crew.plan.output_ports[i]
            raise _no_way_back(crew, i, window, f"{one[k]:.9g} for '{ports.labels()[k]}'", f"{two[k]:.9g}")
    return any(past is not None for past in crew.past)


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
