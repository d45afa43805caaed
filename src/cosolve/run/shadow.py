"""A finished run crossed once more, with what is known only now: the shadow, whose distance to the run is its error.

The run itself drew its inputs from what it knew at the start of each macro step, as polynomials of degree `p`. Its
shadow takes the same steps with polynomials of degree `p + 1` through the points around each step, and adds the
deviation so far, drawn as the method draws its signals: extrapolated, serial, or ending in a corrected value. So it
says how far the exchange at macro points has led the run astray. What subsystems do wrong inside a step, both do alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.corrector.algebra.linear_solve import Factorised
from cosolve.engine.readable.crew import Crew
from cosolve.engine.readable.machine import Machine
from cosolve.errors import SetupError
from cosolve.interface import Plan
from cosolve.method import GaussSeidel, LeaderFollower, Method, Outcome
from cosolve.method.base import Script
from cosolve.method.constraint import treatment_for, variants
from cosolve.run.core import Core
from cosolve.run.startup import Startup
from cosolve.signal import History, MeanHistory, end_values
from cosolve.signal.polynomial import lagrange_weights
from cosolve.stepsize.sequence import Given, Uniform, Windows

#: Crossings of each subsystem, and Jacobians asked of it.
Counts: TypeAlias = npt.NDArray[np.int64]

#: A Jacobian that leaves more than this share of a correction to be done is taken anew.
_STALE = 0.05


@dataclass(frozen=True)
class Track:
    """A run as it is recorded: macro points, lengths of the steps between them, coupling variables and outputs there.

    `uniform` says that the steps were not chosen one by one, so that the first ones may have been crossed in pieces.
    """

    t: Vector
    steps: Vector
    z: Matrix
    y: Matrix
    uniform: bool


@dataclass(frozen=True)
class Path:
    """The coupling variables of a run at all points that its history went through: macro points, and pieces of steps.

    `macro` holds the places of the macro points among them.
    """

    times: Sequence[float]
    steps: Sequence[float]
    z: Matrix
    macro: Sequence[int]

    def around(self, n: int, degree: int) -> Matrix:
        """Coefficients of the polynomial through the `degree + 1` points nearest to step `n`, in its local time."""
        t, first, last = self.times, n, n + 1
        middle = 0.5 * (t[n] + t[n + 1])
        while last - first < min(degree, len(t) - 1):
            forward = first == 0 or (last + 1 < len(t) and t[last + 1] - middle <= (middle - t[first - 1]) * (1 + 1e-9))
            first, last = (first, last + 1) if forward else (first - 1, last)
        H, nodes = self.steps[n], [0.0]
        for step in reversed(self.steps[first:n]):
            nodes.insert(0, nodes[0] - step / H)
        for step in self.steps[n:last]:
            nodes.append(nodes[-1] + step / H)
        found: Matrix = lagrange_weights(tuple(nodes)) @ self.z[first : last + 1]
        return found


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


class ShadowMachine(Machine):
    """Carries out the text of a method on signals of one degree more, with the deviation in place of the history."""

    history: Deviation | MeanDeviation

    def __init__(self, method: Method, script: Script, crew: Crew) -> None:
        super().__init__(method, script, crew)
        self._at, self._better = -1, np.zeros((0, 0))

    @property
    def better(self) -> Matrix:
        """The signal of the run in this step as it is known now."""
        if self._at != self.history.n:
            self._at = self.history.n
            self._better = self.history.path.around(self._at, self.method.degree + 1)
        return self._better

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
        """What the last crossing added to the signal of the run."""
        added = super().applied().copy()
        added[: len(self.better)] -= self.better
        return added

    def open_signal(self, signal: Matrix) -> Matrix:
        opened = super().open_signal(signal)
        self._nodes = self._on_top(*self._nodes)
        return opened

    def _begin_trial(self) -> None:
        super()._begin_trial()
        trial = self.trial
        trial.base, trial.weight = self._on_top(trial.base, trial.weight)


class OneCorrection(ShadowMachine):
    """The shadow of a method that corrects its inputs by an interface Jacobian: two crossings of each step.

    The run has met its interface equations, so that a shadow beside it has little to correct, and the Jacobian of
    another step will do: one is taken at the beginning and kept. What the second crossing leaves over shows at no cost
    whether it still fits. Where it does not, a new one is taken, for one more correction and for the steps to come.
    """

    def __init__(self, method: Method, script: Script, crew: Crew) -> None:
        super().__init__(method, script, crew)
        self._text = self._corrected_once
        self._kept: Factorised | None = None
        self._least = 4.0 * max(float(subsystem.noise) for subsystem in self.plan.subsystems) + 1e-13

    @staticmethod
    def suits(plan: Plan, script: Script) -> bool:
        """Whether the method meets one set of interface equations, by their Jacobian and in full crossings."""
        corrector, treatment = script.corrector, treatment_for(plan, script.constraints)
        if corrector is None or not corrector.uses_jacobian or script.local != "converged":
            return False
        return treatment is None or (treatment.relaxation == 1.0 and len(variants(plan, treatment, 1.0)) == 1)

    def _corrected_once(self, machine: Machine, method: Method) -> Vector:
        """The macro step, in place of that of the method."""
        self._problem, self.trial.plan = 0, self._problems[0][1]
        z = self.predicted(self.script.guess)
        self.sweep(self.ending_in(z))
        stale = self._kept is not None
        if self._kept is None:
            self._kept = Factorised(self.jacobian(), self.plan.z_labels)
        correction = self._kept.solve(self.residual(z))
        z = self._cross_again(z - correction)
        left = self._kept.solve(self.residual(z))
        if stale and self._size(left) > max(_STALE * self._size(correction), self._least):
            self._kept = Factorised(self.jacobian(), self.plan.z_labels)
            z = self._cross_again(z - self._kept.solve(self.residual(z)))
        self.remember(z)
        return self.asked() if getattr(method, "final_update", True) else z

    def _cross_again(self, z: Vector) -> Vector:
        self.rewind()
        self.sweep(self.ending_in(z))
        return z

    def _size(self, correction: Vector) -> float:
        """The largest part of a correction, relative to its variable."""
        return float((np.abs(correction) / self.measure.size).max(initial=0.0))


class Shadow(Core):
    """The shadow of a run along its path; `crossed` takes it to the next point."""

    def __init__(self, plan: Plan, method: Method, startup: Startup | None, path: Path) -> None:
        if isinstance(method, LeaderFollower):  # the leader's own steps are those of the path
            method = GaussSeidel(method.degree, method.outputs, (method.leader, *method.order))
        super().__init__(plan, method, startup, Given(path.times, path.steps))
        self._path = path

    def start(self, t_start: float) -> None:
        super().start(t_start)
        script = self.method.script
        assert script is not None, "a method that is not written in verbs has no shadow"
        means = isinstance(self.history, MeanHistory)
        self.history = (MeanDeviation if means else Deviation)(self._path, self.history)
        kind = OneCorrection if OneCorrection.suits(self.plan, script) else ShadowMachine
        self._step = kind(self.method, script, self.crew)

    def outputs(self) -> Matrix:
        """Cross the whole path; the outputs at its macro points."""
        rows, wanted = [self.y], set(self._path.macro)
        for n in range(1, len(self._path.times)):
            outcome = self.cross()
            if n in wanted:
                rows.append(outcome.y)
        return np.array(rows)


class Rehearsal(Core):
    """The first macro steps of a run once more, to see the pieces in which they were crossed.

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

    def cross_pieces(self, t_start: float) -> None:
        """Cross all macro steps that are divided; `taken` has the pieces, `macro` how many of them end each step."""
        self.start(t_start)
        while self.opening.graded and not (self.history.steps and self.history.steps[0] > 0.3 * self.windows.usual):
            begun = len(self.taken)
            self.cross()
            if not self.opening.graded or len(self.history.steps) < min(len(self.taken), self.method.depth):
                self.taken, self.macro = [], []  # crossed whole after all, or taken for one by those that follow
                return
            if len(self.taken) == begun + 1:
                break
            self.macro.append(len(self.taken))


def distance(plan: Plan, method: Method, startup: Startup, track: Track) -> tuple[Matrix, Counts]:
    """What leads from a run to its shadow, output by output at the macro points; what it took to find out."""
    path, spent = _path(plan, method, startup, track)
    shadow = Shadow(plan, method, startup, path)
    try:
        shadow.start(path.times[0])
        size = np.abs(track.y[0]).max(initial=0.0)
        if not np.allclose(shadow.y, track.y[0], rtol=1e-9, atol=1e-9 * size):
            raise SetupError("the system does not start where the run did")
        gap = shadow.outputs() - track.y
    finally:
        shadow.crew.close()
    return gap, spent + np.array([shadow.crew.calls, shadow.crew.jacobians])


def _path(plan: Plan, method: Method, startup: Startup, track: Track) -> tuple[Path, Counts]:
    """All points that the history of the run went through; crossings and Jacobians that it took to learn them."""
    t, steps, z = track.t.tolist(), track.steps.tolist(), track.z
    whole = Path(t, steps, z, range(len(t)))
    if not startup.grading(method).halvings or not track.uniform:
        return whole, np.zeros((2, plan.n_subsystems), dtype=np.int64)
    rehearsal = Rehearsal(plan, method, startup, Uniform(t[0], t[-1], steps[0]))
    try:
        rehearsal.cross_pieces(t[0])
    finally:
        rehearsal.crew.close()
    taken, ends = rehearsal.taken, rehearsal.macro
    spent = np.array([rehearsal.crew.calls, rehearsal.crew.jacobians])
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
