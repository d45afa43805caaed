"""Whose fault is a correction that corrects nothing? Rollback and Jacobians of the subsystems, tried out in one step.

A subsystem that comes back to its saved state gives the same outputs when it advances over a step once more with the
inputs of before. What it is compared with is the first subsystem step, which needed no rollback. Methods that
repeat steps have this tried out in the first step of a run. A solver that iterates and stands at rest gives outputs of
the size of its own tolerance, which differ as a whole; they are told from a forgotten state by larger inputs, and the
check is repeated in later steps until the outputs are large enough. Where a correction leaves a part of the residual
(a kink does that too, `engine/corrections.py`), it is tried out again, and Jacobians that subsystems and laws give are
compared with differences. These subsystem steps are not counted, and afterwards all subsystems are where they were.

Machine code that finds so much left takes the step back first. A subsystem without exact rollback begins at a wrong
state then, again and again the same; but the residual that the step begins with is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.scale import sizes_at
from cosolve.engine.python.events import EndedEarly
from cosolve.engine.python.replay_check import advanced_again
from cosolve.errors import SubsystemError
from cosolve.subsystem.base import has_capability

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cosolve.engine.python.subsystem_caller import SubsystemCaller
    from cosolve.engine.python.trial import Trial
    from cosolve.interface.plan import Block, Plan
    from cosolve.method.step import Window

#: Outputs of repeated subsystem steps differ by this, relatively, and Jacobians by that, before anything is said.
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

#: Of a step: so much shorter it is where answers kept by time are looked for.
_EARLIER = 1e-9

#: Steps after which rollback that is known to work is tried out once more; each time twice as many.
_LATER = 16

_MUST = "save() must return a copy of everything that advance() changes, and restore() must take all of it back"
_MAY = (
    "save() must keep all that advance() changes; if that is its tolerance, state noise and nominal values of its ports"
)


class StepEnd(NamedTuple):
    """The values in which the signals of a subsystem step ended, and the outputs that it gave.

    In a serial sweep one variable may have a guess for those who run before its source, and its value for those who run
    after it: `seen` tells what each subsystem had.
    """

    z: Vector
    y: Vector
    seen: Callable[[int], Vector] | None = None

    def of(self, i: int) -> Vector:
        """The values that subsystem `i` advanced with."""
        return self.z if self.seen is None else self.seen(i)


class RollbackMismatch(SubsystemError):
    """A subsystem advanced over the same step twice and gave different outputs."""


@contextmanager
def uncounted(caller: SubsystemCaller) -> Iterator[None]:
    """Whatever happens inside is not counted, and afterwards all subsystems are where they were."""
    calls, jacobians, watch = caller.calls.copy(), caller.jacobians.copy(), caller.watch
    kept = None if watch is None else (set(watch.moved), set(watch.pending))
    marks = [None if past is None else past.mark() for past in caller.past]
    ends = [caller.save_one(i) for i in range(caller.plan.n_subsystems)]
    try:
        yield
    finally:
        caller.calls[:], caller.jacobians[:] = calls, jacobians
        for past, mark in zip(caller.past, marks, strict=True):
            if past is not None and mark is not None:
                past.go_back(mark)
        if watch is not None and kept is not None:
            watch.moved, watch.pending = kept
    caller.restore(ends)


class Proof:
    """Whether the subsystems of a run come back to their saved states; tried out until that is known.

    Where some are of others' making (`lasting`) it is tried out now and then later on: what is not saved may matter
    from some time on only.
    """

    def __init__(self, wanted: bool = True, lasting: bool = False) -> None:
        self.open, self._wait, self._pause, self._lasting = wanted, 0, 1, lasting

    def due(self) -> bool:
        """True in a step in which it is to be tried out; after a step at rest, in steps further and further apart."""
        if self.open and self._wait:
            self._wait -= 1
            return False
        return self.open

    def note(self, known: bool) -> None:
        """It was tried out, and is known now or is to be tried out again."""
        if known and self._lasting:
            self._pause = max(self._pause, _LATER)
        self.open, self._wait, self._pause = not known or self._lasting, self._pause, 2 * self._pause


def lasting(plan: Plan) -> bool:
    """Whether rollback is to be tried out now and then: for subsystems of others that do not show it by themselves."""
    return any(part.foreign and not hasattr(part, "prove_rollback") for part in plan.subsystems)


def prove_rollback(trial: Trial, first: StepEnd) -> bool:
    """Raise when a subsystem does not come back to its saved state after the `first` subsystem step of a step.

    False when one is at rest, so that it cannot be told yet. Those that show it by themselves at the start of a run
    (FMUs) need not do so again.
    """
    subsystems = trial.caller.plan.subsystems
    unproven = [i for i, subsystem in enumerate(subsystems) if not hasattr(subsystem, "prove_rollback")]
    if not unproven:
        return True
    with uncounted(trial.caller):
        return _comes_back(trial, first, unproven)


def examine(trial: Trial, first: StepEnd, jacobians: bool = True) -> str:
    """The same, and a sentence about Jacobians that are wrong there, or nothing."""
    caller, plan, wrong = trial.caller, trial.caller.plan, []
    with uncounted(caller):
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
    """A step that a subsystem can advance again from its start, with inputs that have these coefficients."""

    caller: SubsystemCaller
    window: Window
    coefficients: Matrix
    rewind: Callable[[int], None]

    def outputs(self, i: int, shift: float = 0.0) -> Vector:
        """The outputs of subsystem `i` with all its coupled inputs shifted by so much."""
        given = self.coefficients
        if shift:
            given = given.copy()
            given[0, self.caller.plan.reads(i)] += shift
        self.rewind(i)
        return self.caller.advance(i, self.window, given).copy()


def same_outputs(step: Repeated, i: int, one: Vector, two: Vector) -> bool:
    """Whether two subsystem steps of subsystem `i` gave the same outputs; raises when they did not.

    False when it is at rest: its outputs differ, by less than counts, and larger ones do not.
    """
    caller = step.caller
    size, between = np.maximum(np.abs(one), np.abs(two)), np.abs(two - one)
    noise, largest = 10.0 * caller.plan.subsystems[i].noise, size.max(initial=0.0)
    off = between - np.maximum(_SAME * size, max(_ROUNDING, noise) * largest)
    if not (off > 0.0).any():
        if between.any():
            caller.suspects.add(i)
        return True
    ports = caller.plan.output_ports[i]
    nominal = np.array([port.nominal for port in ports for _ in range(port.length)])
    left_over = _is_left_over(step, i, one, float(between.max()))
    if left_over and (between <= max(_AT_REST, noise) * nominal).all():
        return False
    k, must = int(np.argmax(off)), _MAY if left_over else _MUST
    raise _no_way_back(caller, i, step.window, f"{one[k]:.9g} for '{ports.labels()[k]}'", f"{two[k]:.9g}", must)


def _is_left_over(step: Repeated, i: int, one: Vector, between: float) -> bool:
    """Whether a difference between two subsystem steps stays as small when larger inputs make the outputs large."""
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


def refuse_another_beginning(plan: Plan, first: StepEnd, window: Window, expected: Vector) -> None:
    """Raise if the first residual of a repeated step differs from that before the step was taken back."""
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
    raise RollbackMismatch(
        f"{' or '.join(map(repr, names))} does not come back to its saved state: the step from t = {window.t0:.9g} "
        f"left a residual of {expected[k]:.9g} for '{plan.z_labels[k]}', then {r[k]:.9g} with the same inputs; {_MUST}",
        time=window.t0,
        subsystem=names[0],
    )


def refuse_answers_by_time(trial: Trial, first: StepEnd, z: Vector, y: Vector) -> None:
    """Raise when a subsystem keeps what it answered for a step and gives that for other inputs too.

    `z` and `y` are of the last subsystem step. Only a subsystem whose outputs are the same to the bit although
    its inputs have changed is tried out: over steps that end a little earlier, which it cannot have kept.
    """
    caller, plan = trial.caller, trial.caller.plan
    if first.seen is not None:
        return
    suspects = [
        i
        for i, part in enumerate(plan.y_slices)
        if part.stop > part.start
        and not hasattr(plan.subsystems[i], "prove_rollback")
        and (z[plan.reads(i)] != first.z[plan.reads(i)]).any()
        and np.array_equal(first.y[part], y[part])
    ]
    if not suspects:
        return
    with uncounted(caller):
        for i in suspects:
            if _reacts_elsewhere(trial, i, first.z, z):
                name, window = plan.names[i], trial.window
                raise RollbackMismatch(
                    f"'{name}' gave the same outputs for other inputs in the step from t = {window.t0:.9g}, but not "
                    "where the step ends a little earlier: it keeps answers by time; advance() must follow its inputs, "
                    "or restore() must forget what is kept",
                    time=window.t0,
                    subsystem=name,
                )


def _reacts_elsewhere(trial: Trial, i: int, one: Vector, two: Vector) -> bool:
    """Whether other inputs change the outputs of subsystem `i` over steps a little shorter than this one."""
    caller, window = trial.caller, trial.window
    ends = []
    trial.rollback()
    try:
        for k, z in enumerate((one, two, one), start=1):
            trial.rewind_one(i)
            shorter = replace(window, t1=window.t1 - k * _EARLIER * window.H)
            ends.append(caller.advance(i, shorter, trial.coefficients(z), whole=True).copy())
    except (SubsystemError, EndedEarly):
        return False
    size = max(float(np.abs(y).max(initial=0.0)) for y in ends)
    moved, by_time = (float(np.abs(y - ends[0]).max(initial=0.0)) for y in ends[1:])
    return moved > 10.0 * by_time + max(_SAME, 10.0 * caller.plan.subsystems[i].noise) * size


def _no_way_back(
    caller: SubsystemCaller, i: int, window: Window, one: str, two: str, must: str = _MUST
) -> RollbackMismatch:
    name = caller.plan.names[i]
    return RollbackMismatch(
        f"'{name}' does not come back to its saved state: the step from t = {window.t0:.9g} gave {one}, then {two} "
        f"with the same inputs; {must}",
        time=window.t0,
        subsystem=name,
    )


def _comes_back(trial: Trial, first: StepEnd, members: Iterable[int]) -> bool:
    """Whether these subsystems give the outputs of the first subsystem step once more; raises where one does not."""
    caller, window, known = trial.caller, trial.window, True
    coefficients = trial.coefficients(first.z)
    trial.rollback()  # all of them: some look at where others stand
    for i in members:
        if first.seen is not None:
            coefficients = trial.coefficients(first.of(i))
        step = Repeated(caller, window, coefficients, trial.rewind_one)
        try:
            again = step.outputs(i)
        except EndedEarly as early:
            raise _no_way_back(caller, i, window, "no event", f"one at t = {early.t:.9g}") from None
        known &= same_outputs(step, i, first.y[caller.plan.y_slices[i]], again)
    return known


def repeats_last_step(caller: SubsystemCaller, states: Mapping[int, Any] | Sequence[Any], window: Window) -> bool:
    """Repeat the last step from these states; raises where outputs differ. False without a past."""
    members = states.keys() if isinstance(states, Mapping) else range(len(states))
    for i in members:
        found = advanced_again(caller, i, states)
        if found is None:
            continue
        one, two = found
        between = np.abs(two - one)
        if between.any():
            caller.suspects.add(i)
        size, allowed = np.maximum(np.abs(one), np.abs(two)), 10.0 * caller.plan.subsystems[i].noise
        off = between - np.maximum(_SAME * size, max(_ROUNDING, allowed) * size.max(initial=0.0))
        if (off > 0.0).any():
            k, ports = int(np.argmax(off)), caller.plan.output_ports[i]
            raise _no_way_back(caller, i, window, f"{one[k]:.9g} for '{ports.labels()[k]}'", f"{two[k]:.9g}")
    return any(past is not None for past in caller.past)


def _jacobian_is_wrong(trial: Trial, i: int, first: StepEnd) -> bool:
    if trial.source != "auto" or not has_capability(trial.caller.plan.subsystems[i], "jacobian"):
        return False
    z, y = first.of(i), first.y
    given = trial.response(i, z, y, "auto")
    try:
        near = trial.response(i, z, y, "difference")
        far = trial.response(i, z, y, "difference", _LARGER * trial.increment)
    except EndedEarly:  # events on both sides
        return False
    return _disagree(given, near, far)


def _law_jacobian_is_wrong(block: Block, first: StepEnd) -> bool:
    if block.jacobian is None and (block.levels is None or block.levels.jacobian is None):
        return False
    z, y = first.z[block.rows], first.y[block.y_index]
    given: Any = block.partials(z, y)[1]
    columns = np.unique(np.linspace(0, len(y) - 1, min(len(y), _COLUMNS)).astype(int))
    given = given.tocsc()[:, columns].toarray() if hasattr(given, "tocsc") else np.asarray(given)[:, columns]
    near, far = (np.empty(given.shape) for _ in range(2))
    for differenced, increment in ((near, _LAW_INCREMENT), (far, _LARGER * _LAW_INCREMENT)):
        size = np.maximum(sizes_at(y, block.y_size), np.abs(y))
        for k, j in enumerate(columns):
            shift = np.zeros(len(y))
            shift[j] = increment * size[j]
            differenced[:, k] = (block.call(z, y + shift) - block.call(z, y - shift)) / (2.0 * shift[j])
    return _disagree(given, near, far)


def _disagree(given: Any, near: Any, far: Any) -> bool:
    """Whether a given matrix is another one than the differences, taken with two increments."""
    if not near.size:
        return False
    allowed = 10.0 * np.abs(far - near) + _CLOSE * np.abs(near).max()
    return bool((np.abs(given - near) > allowed).any())
