"""A finished run advanced once more, with what is known only now: the shadow, whose distance to the run is its error.

The run itself drew its inputs from what it knew at the start of each macro step, as polynomials of degree `p`. Its
shadow takes the same steps with polynomials of degree `p + 1` through the points around each step, and adds the
deviation so far, drawn as the method draws its signals: extrapolated, serial, or ending in a corrected value. So it
says how far the exchange at macro points has led the run astray. What subsystems do wrong inside a step, both do alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cosolve.accuracy.between_points import between_points
from cosolve.accuracy.recorded_run import Path, Track
from cosolve.accuracy.rollback import loss
from cosolve.basics.arrays import Matrix, Vector
from cosolve.corrector.algebra.linear_solve import Factorised
from cosolve.engine.chunk import Chunk
from cosolve.engine.native import Chunks
from cosolve.engine.python.executor import StepExecutor
from cosolve.engine.python.replay_check import replayed
from cosolve.engine.python.serial import Serial
from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.errors import CosolveError, SetupError
from cosolve.interface import Plan
from cosolve.method import Method, Outcome, Window
from cosolve.method.base import Declaration
from cosolve.method.constraint import treatment_for, variants
from cosolve.method.explicit import in_order
from cosolve.method.semi_implicit import SemiImplicit
from cosolve.run.core import Core
from cosolve.run.startup import Startup
from cosolve.signal import History, MeanHistory, end_values
from cosolve.stepsize.sequence import GivenSteps, Uniform, Windows

#: Subsystem steps of each subsystem, and Jacobians asked of it.
Counts: TypeAlias = npt.NDArray[np.int64]

#: A Jacobian that leaves more than this share of a correction to be done is taken anew.
_STALE = 0.05

_AHEAD = 256  # steps whose signals are made at once


class Deviation(History):
    """How far the shadow is from the run at its newest points; who asks for the newest values gets the shadow's."""

    def __init__(self, path: Path, known: History) -> None:
        super().__init__(np.zeros_like(path.z[0]), known.depth)
        self.path, self.n = path, 0
        for step in known.steps:  # before the start both are the same
            self.append_past(self.values[0], step)

    def push(self, value: Vector, H: float) -> None:
        """The shadow has come to `value` at the next point."""
        self.n += 1
        super().push(value - self.path.z[self.n], H)

    def of_shadow(self) -> History:
        """The history of the shadow itself."""
        made = History(self.newest, self.depth)
        made.values = [value + self.path.z[self.n - j] for j, value in enumerate(self.values)]
        made.steps = list(self.steps)
        return made

    def go_on(self, history: History, count: int) -> None:
        """The shadow has come so many steps further, to this history."""
        self.n += count
        self.values = [value - self.path.z[self.n - j] for j, value in enumerate(history.values)]
        self.steps = list(history.steps)

    @property
    def newest(self) -> Vector:
        """Values of the shadow at the newest point."""
        value: Vector = self.path.z[self.n] + self.values[0]
        return value


class MeanDeviation(MeanHistory):
    """The same for signals by backward differences: means of what the shadow added to the signals of the run."""

    def __init__(self, path: Path, known: History) -> None:
        super().__init__(np.zeros_like(path.z[0]), known.depth)
        self.path, self.n = path, 0

    def push(self, value: Vector, H: float) -> None:
        """One step further, with this mean."""
        self.n += 1
        super().push(value, H)


class ShadowExecutor(StepExecutor):
    """Executes a step function on signals of one degree more, with the deviation in place of the history."""

    history: Deviation | MeanDeviation

    def __init__(self, method: Method, declaration: Declaration, caller: SubsystemCaller) -> None:
        super().__init__(method, declaration, caller)
        self._from, self._better = 0, np.zeros((0, 0, 0))

    @property
    def better(self) -> Matrix:
        """The signal of the run in this step as it is known now."""
        n, path = self.history.n, self.history.path
        if not self._from <= n < self._from + len(self._better):
            steps = np.arange(n, min(n + _AHEAD, len(path.steps)))
            self._from, self._better = n, path.around(steps, self.method.degree + 1)
        better: Matrix = self._better[n - self._from]
        return better

    @property
    def _ahead(self) -> Vector:
        """The coupling variables of the run at the end of this step."""
        value: Vector = self.history.path.z[self.history.n + 1]
        return value

    def _on_top(self, base: Matrix, weight: Vector) -> tuple[Matrix, Vector]:
        """Signals `base + outer(weight, end)` for the end value of the shadow, from those for that of the deviation."""
        rows = max(len(self.better), len(base))
        longer, shape = np.zeros((rows, self.plan.n_z)), np.zeros(rows)
        shape[: len(weight)] = weight
        longer[: len(self.better)] = self.better
        longer[: len(base)] += base
        return longer - np.outer(shape, self._ahead), shape

    def extrapolated(self, degree: int) -> Matrix:
        deviation, signal = self.history.extrapolate(degree, self.window.H), self.better.copy()
        signal[: len(deviation)] += deviation
        self._predicted = degree, end_values(signal)
        return signal

    def predicted(self, degree: int) -> Vector:
        end = self._ahead + end_values(self.history.extrapolate(degree, self.window.H))
        self._predicted = degree, end
        return end

    def applied(self) -> Matrix:
        """What the last subsystem step added to the signal of the run."""
        added = super().applied().copy()
        added[: len(self.better)] -= self.better
        return added

    def editable_signal(self, signal: Matrix) -> Matrix:
        opened = super().editable_signal(signal)
        self._nodes = self._on_top(*self._nodes)
        return opened

    def begin(self, history: History, window: Window) -> None:
        super().begin(history, window)
        if self._repeats:
            self.trial.use_signals(*self._on_top(self.trial.base, self.trial.weight))


class OneCorrection(ShadowExecutor):
    """The shadow of a method that corrects its inputs by an interface Jacobian: two subsystem steps in each step.

    The run has met its interface equations, so that a shadow beside it has little to correct, and the Jacobian of
    another step will do: one is taken at the beginning and kept. What the second subsystem step leaves over shows at no
    cost whether it still fits. Where it does not, a new one is taken, for one more correction and for the steps to
    come.
    """

    def __init__(self, method: Method, declaration: Declaration, caller: SubsystemCaller) -> None:
        super().__init__(method, declaration, caller)
        self._step_function = self._corrected_once
        self._kept: Factorised | None = None
        self._least = 4.0 * max(float(subsystem.noise) for subsystem in self.plan.subsystems) + 1e-13

    @staticmethod
    def suits(plan: Plan, declaration: Declaration) -> bool:
        """Whether the method meets one set of interface equations, by their Jacobian and in full subsystem steps."""
        corrector, treatment = declaration.corrector, treatment_for(plan, declaration.constraints)
        if corrector is None or not corrector.uses_jacobian or declaration.local != "converged":
            return False
        return treatment is None or (treatment.relaxation == 1.0 and len(variants(plan, treatment, 1.0)) == 1)

    def _corrected_once(self, executor: StepExecutor, method: Method) -> Vector:
        """The macro step, in place of that of the method."""
        self._problem, self.trial.plan = 0, self._problems[0][1]
        z = self.predicted(self.declaration.guess)
        self.sweep(self.ending_in(z))
        stale = self._kept is not None
        if self._kept is None:
            self._kept = Factorised(self.jacobian(), self.plan.z_labels)
        correction = self._kept.solve(self.residual(z))
        z = self._advance_again(z - correction)
        left = self._kept.solve(self.residual(z))
        if stale and self._size(left) > max(_STALE * self._size(correction), self._least):
            self._kept = Factorised(self.jacobian(), self.plan.z_labels)
            z = self._advance_again(z - self._kept.solve(self.residual(z)))
        self.record_scales(z)
        return self.coupling_from_outputs() if method.final_update else z

    def _advance_again(self, z: Vector) -> Vector:
        self.rollback()
        self.sweep(self.ending_in(z))
        return z

    def _size(self, correction: Vector) -> float:
        """The largest part of a correction, relative to its variable."""
        return float((np.abs(correction) / self.measure.size).max(initial=0.0))


class Shadow(Core):
    """The shadow of a run along its path; as machine code where the run was `compiled`.

    As machine code it is a run of its own, with its own history, to whose input signals is added what the signals of
    the run are short of those that are known now.
    """

    added_degrees = 1

    def __init__(self, plan: Plan, method: Method, startup: Startup | None, path: Path, compiled: bool = False) -> None:
        super().__init__(
            plan, _once_corrected(plan, method.with_given_steps()), startup, GivenSteps(path.times, path.steps)
        )
        self._path, self._compiled = path, compiled

    def start(self, t_start: float) -> None:
        super().start(t_start)
        declaration = self.method.declaration
        assert declaration is not None, "a method that is not written in operations has no shadow"
        means = isinstance(self.history, MeanHistory)
        self.history = (MeanDeviation if means else Deviation)(self._path, self.history)
        kind = OneCorrection if OneCorrection.suits(self.plan, declaration) else ShadowExecutor
        self._step = kind(self.method, declaration, self.caller)

    def outputs(self) -> Matrix:
        """Advance over the whole path; the outputs at its macro points."""
        rows = [self.y[np.newaxis]]
        fast = Chunks(self) if self._compiled and isinstance(self.history, Deviation) else None
        while not self.done:
            chunk = None if fast is None else self._chunk(fast)
            rows.append(self.take_step().y[np.newaxis] if chunk is None else chunk.y)
        outputs: Matrix = np.concatenate(rows)[list(self._path.macro)]
        return outputs

    def _chunk(self, fast: Chunks) -> Chunk | None:
        """The next steps in machine code, or None."""
        deviation = self.history
        assert isinstance(deviation, Deviation)
        if deviation.n < self.method.depth:
            return None
        self.history = deviation.of_shadow()
        try:
            chunk = fast.take()
            if chunk is not None:
                deviation.go_on(self.history, len(chunk))
                if chunk.failure is not None:
                    raise chunk.failure
        finally:
            self.history = deviation
        return chunk

    def added(self, count: int) -> tuple[Matrix, Matrix]:
        """What the signals of the run are short of those that are known now, input by input, and at predicted ends."""
        plan, method, path = self.plan, self.method, self._path
        declaration, n = method.declaration, np.arange(count) + len(path.steps) - int(self.windows.left)
        assert declaration is not None
        drawn, ending = path.around(n, method.degree + 1), path.ending(n, method.degree)
        extrapolated, guessed = (path.extrapolated(n, degree) for degree in (method.degree, declaration.guess))
        known = np.full(plan.n_u, declaration.corrector is not None)
        source, factor = np.maximum(plan.u_source, 0), np.where(plan.u_source >= 0, plan.u_factor, 0.0)
        if method.serial:
            serial = Serial(plan, in_order(plan, declaration.order))
            for i, part in enumerate(plan.u_slices):
                known[part] = serial.seen(i, np.zeros(plan.n_z), np.ones(plan.n_z))[source[part]] > 0.0
        short = drawn[:, :, source]
        short[:, : ending.shape[1]] -= np.where(known, ending[:, :, source], extrapolated[:, :, source])
        return np.ascontiguousarray(short * factor), path.z[n + 1] - guessed.sum(axis=1)


def _once_corrected(plan: Plan, method: Method) -> Method:
    """The method of a shadow: one correction in each step where the run met its equations, however it did so."""
    declaration = method.declaration
    if declaration is None or not OneCorrection.suits(plan, declaration):
        return method
    return SemiImplicit(
        degree=method.degree,
        jacobian=declaration.jacobian,
        increment=declaration.increment,
        final_update=method.final_update,
        predictor=declaration.guess,
        constraints=declaration.constraints,
        repeat=False,
        signal=method.signal,
    )


class RepeatedStart(Core):
    """The first macro steps of a run once more, to see the pieces in which they were advanced.

    Only results at macro points are kept, and the pieces are few.
    """

    def __init__(self, plan: Plan, method: Method, startup: Startup | None, windows: Uniform) -> None:
        super().__init__(plan, method, startup, windows)
        self.taken: list[Outcome] = []
        self.macro: list[int] = []

    def advance(self, windows: Windows, H: float | None, limit: float) -> Outcome:
        outcome = super().advance(windows, H, limit)
        self.taken.append(outcome)
        return outcome

    def advance_pieces(self, t_start: float) -> None:
        """Advance all macro steps that are divided; `taken` has the pieces, `macro` how many of them end each step."""
        self.start(t_start)
        while self.startup_steps.graded and not (
            self.history.steps and self.history.steps[0] > 0.3 * self.windows.usual
        ):
            begun = len(self.taken)
            self.take_step()
            if not self.startup_steps.graded or len(self.history.steps) < min(len(self.taken), self.method.depth):
                self.taken, self.macro = [], []  # advanced over whole after all, or taken for one by those that follow
                return
            if len(self.taken) == begun + 1:
                break
            self.macro.append(len(self.taken))


@dataclass(frozen=True)
class Distance:
    """What leads from a run to its shadow, output by output at the macro points, and what it took to find out.

    `between` tells whether signals are between the points as the shadow takes them to be, `inside` how far outputs are
    from smooth curves there (`accuracy/between_points.py`).
    """

    gap: Matrix
    between: float
    inside: Vector
    spent: Counts


class LostState(CosolveError):
    """A subsystem of the shadow loses something when it is set back."""


def distance(plan: Plan, method: Method, startup: Startup, track: Track, proves: bool = False) -> Distance:
    """The shadow of a run; it `proves` that setting subsystems back has cost it nothing, or raises `LostState`."""
    path, spent = _path(plan, method, startup, track)
    shadow = Shadow(plan, method, startup, path, track.compiled)
    shadow.caller.keep_past(method.degree + 1, of_all=True)
    try:
        shadow.start(path.times[0])
        size = np.abs(track.y[0]).max(initial=0.0)
        if not np.allclose(shadow.y, track.y[0], rtol=1e-9, atol=1e-9 * size):
            raise SetupError("the system does not start where the run did")
        gap = shadow.outputs() - track.y
        if proves:
            _refuse_losses(shadow.caller)
        between, inside = between_points(shadow.caller, method, path, track.y[0])
    finally:
        shadow.caller.close()
    return Distance(gap, between, inside, spent + np.array([shadow.caller.calls, shadow.caller.jacobians]))


def _refuse_losses(caller: SubsystemCaller) -> None:
    for i, past in enumerate(caller.past):
        if past is None or not (past.restored and caller.plan.subsystems[i].foreign):
            continue
        note = loss(caller.plan.names[i], replayed(caller, i))
        if note is not None and (note.level == "error" or past.gap):
            raise LostState(note.text)


def _path(plan: Plan, method: Method, startup: Startup, track: Track) -> tuple[Path, Counts]:
    """All points that the history of the run went through; subsystem steps and Jacobians that it took to learn them."""
    t, steps, z = track.t.tolist(), track.steps.tolist(), track.z
    whole = Path(t, steps, z, range(len(t)))
    if not startup.grading(method).halvings or not track.uniform:
        return whole, np.zeros((2, plan.n_subsystems), dtype=np.int64)
    trial = RepeatedStart(plan, method, startup, Uniform(t[0], t[-1], steps[0]))
    try:
        trial.advance_pieces(t[0])
    finally:
        trial.caller.close()
    taken, ends = trial.taken, trial.macro
    spent = np.array([trial.caller.calls, trial.caller.jacobians])
    if not ends:
        return whole, spent
    repeated = np.array([taken[end - 1].z for end in ends])
    if not np.allclose(repeated, z[1 : len(ends) + 1], rtol=1e-9, atol=1e-12 * np.abs(z).max()):
        raise SetupError("its first macro steps do not repeat themselves")
    n = len(ends)
    times = [t[0], *(float(one.t1) for one in taken if one.t1 is not None), *t[n + 1 :]]
    lengths = [*(float(one.H) for one in taken if one.H is not None), *steps[n:]]
    values = np.vstack([z[:1], [one.z for one in taken], z[n + 1 :]])
    later = range(len(taken) + 1, len(times))
    return Path(times, lengths, values, [0, *ends, *later]), spent
