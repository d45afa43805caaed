"""Does a small disturbance grow? Found by running macro steps, without looking into any subsystem.

A run is repeated from the same point with a tiny push on all coupled inputs during its first macro step, once to either
side. The difference to the run without a push evolves by the linearised macro step alone, hidden states included;
whatever drives the system cancels. Its dominant factors per step are fitted from delayed copies of the difference (the
eigensystem realisation of Juang and Pappa (1985), or dynamic mode decomposition with delays). All it takes is a point
to begin at again: saved states, or simply a fresh start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cosolve.accuracy.budget import Budget, OverBudget
from cosolve.basics.arrays import Matrix, Vector
from cosolve.engine.python.executor import bind
from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.errors import CosolveError
from cosolve.interface import Plan
from cosolve.method import Method, Window
from cosolve.state.ownership import Ownership
from cosolve.subsystem.base import has_capability

Verdict = Literal["stable", "unstable", "cannot tell"]

#: Macro steps of a run: tried first, and when that does not decide.
_LENGTHS = (96, 384)
#: Pushes relative to the size of the inputs; the first is as good as any on linear systems without noise. The larger
#: ones stand out of the tolerance of solvers inside subsystems, the last is for systems that bend soon.
_PUSHES = (1e-4, 1e-2, 1.0, 1e-6)
#: The part of the difference not proportional to the push (bending, noise), relative: from where on another push
#: is tried, and from where on nothing can be said.
_CLEAN, _HOPELESS = 1e-5, 0.1
#: The same for pushes as large as the inputs themselves, which may lead to limits and stops: not tried below.
_LARGE, _ROUGH = 1.0, 1e-2
#: A difference that grew by so much is not followed further: nonlinear systems would bend it, numbers overflow.
_ENOUGH = 1e6
_FEWEST = 8  # rows that a fit needs
_SHORT = 2 * _FEWEST  # macro steps by which pushes are compared
#: Macro steps of one verdict: a run, the beginning of it before, pushes in short, and one of them to either side.
LEAST = 3 * _LENGTHS[0] + _SHORT * (1 + 2 * (len(_PUSHES) - 1))
_LARGEST_ORDER = 48
#: Entries of a column of delayed copies; wider sequences are mixed into fewer. The largest fit takes 0.03 s.
_TALLEST = 1024
_DECIDED = 1e-4
#: Beyond 1 by so much, a factor is never taken for 1, however noisy the difference is.
_AT_ONE = 0.01
_LOST = "a push is lost in noise, switching or bending within a few macro steps"


@dataclass(frozen=True)
class Estimate:
    """How a disturbance of a coupled run develops, from `estimate_stability`.

    Parameters
    ----------
    verdict : {"stable", "unstable", "cannot tell"}
        The answer.
    radius : float
        Largest factor by which a part of the disturbance is multiplied per macro step. Factors at 1 (integrators, rigid
        bodies) count as stable.
    accuracy : float
        Accuracy of `radius`.
    macro_steps : int
        Macro steps that it took.
    reason : str, default ""
        Why there is no answer.
    """

    verdict: Verdict
    radius: float
    accuracy: float
    macro_steps: int
    reason: str = ""

    def __str__(self) -> str:
        if self.verdict == "cannot tell" and not np.isfinite(self.radius):
            return f"cannot tell: {self.reason}"
        digits = max(2, min(6, 1 + int(-np.log10(max(self.accuracy, 1e-7)))))
        text = f"{self.verdict}: spectral radius about {self.radius:.{digits}f} (to {self.accuracy:.0e})"
        return f"{text}, {self.reason}" if self.reason else text


@dataclass(frozen=True)
class Point:
    """Where trials begin: time, outputs, coupling variables and saved states; without states they start anew."""

    t: float
    y: Vector
    z: Vector
    states: list[Any] | None = None


class Trials:
    """Runs of some macro steps from the same point, with and without a push on the inputs in the first of them."""

    def __init__(
        self, plan: Plan, method: Method, t: float = 0.0, point: Point | None = None, budget: Budget | None = None
    ) -> None:
        self.plan = replace(plan, u_offset=plan.u_offset.copy())
        self.budget = Budget() if budget is None else budget
        self.method, self.t = method.for_linearisation(), t if point is None else point.t
        self.caller, self._ownership = SubsystemCaller(self.plan), Ownership(self.plan)
        self.macro_steps = 0
        self._point = point
        self._offset = plan.u_offset.copy()
        self._able = all(has_capability(s, "rollback") for s in plan.subsystems)

    def run(self, H: float, steps: int, push: Vector | None = None, bound: Matrix | None = None) -> Matrix:
        """Outputs and coupling variables after each macro step.

        Fewer of them when a step fails, or when values leave `bound` (lowest and highest by step).
        """
        _, z = self._begin()
        step = bind(self.method, self.caller)
        history = self.method.history(z)
        rows: list[Vector] = []
        try:
            for n in range(steps):
                if push is not None and n < 2:
                    self._set_inputs(push if n == 0 else 0.0)
                self.budget.take()
                outcome = step(history, Window(self.t + n * H, self.t + (n + 1) * H, H))
                self.macro_steps += 1
                history.push(outcome.remembered, H)
                rows.append(np.concatenate([outcome.y, outcome.z]))
                if bound is not None and not ((bound[0][n] <= rows[-1]) & (rows[-1] <= bound[1][n])).all():
                    break
        except CosolveError:
            if len(rows) < _FEWEST:
                raise
        finally:
            self._set_inputs(0.0)
        return np.array(rows)

    def _begin(self) -> tuple[Vector, Vector]:
        if self._point is None or self._point.states is None:
            self._ownership.take()
        if self._point is None:
            y, z = self.caller.start(self.t)
            if self._able:
                self._point = Point(self.t, y, z, self.caller.save())
            return y, z
        if self._point.states is None:
            return self.caller.start(self.t)
        self.caller.restore(self._point.states)
        return self._point.y, self._point.z

    def _set_inputs(self, push: Vector | float) -> None:
        self.plan.u_offset[:] = self._offset + push
        self.caller.note_constants()


def estimate(trials: Trials, H: float) -> Estimate:
    """Whether a disturbance grows under macro steps of length `H`.

    >>> import cosolve as cs
    >>> tank = lambda: cs.Linear([[-1]], [[0.5]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(), "two": tank()})
    >>> system.connect("one.h", "two.q")
    >>> system.connect("two.h", "one.q")
    >>> print(estimate(Trials(system.plan(), cs.Jacobi(degree=0)), 0.1))
    stable: spectral radius about 0.952...
    """
    before = trials.macro_steps
    found = Estimate("cannot tell", np.nan, np.inf, 0, "nothing is coupled")
    if not trials.plan.n_z:
        return replace(found, verdict="stable", radius=0.0, accuracy=0.0)
    for length in _LENGTHS:
        if not trials.budget.allows(3 * length + _SHORT):
            reason = f"the run is too short for {3 * length} macro steps of trials"
            found = found if np.isfinite(found.radius) else replace(found, reason=reason)
            break
        try:
            with np.errstate(all="ignore"):  # a trial may go beyond all numbers
                found = _attempt(trials, H, length)
        except OverBudget as ended:
            found = found if np.isfinite(found.radius) else replace(found, reason=str(ended))
            break
        except CosolveError as error:
            found = Estimate("cannot tell", np.nan, np.inf, 0, f"its first macro steps failed: {error}")
            break
        if found.verdict != "cannot tell" and found.accuracy < max(_DECIDED, 0.1 * abs(1.0 - found.radius)):
            break
        if found.reason == _LOST:  # in more steps, too
            break
    return replace(found, macro_steps=trials.macro_steps - before)


def _attempt(trials: Trials, H: float, length: int) -> Estimate:
    """The estimate from runs of one length, with the push that leaves the cleanest difference."""
    short = trials.run(H, min(length, _SHORT))
    plain = trials.run(H, length)
    repeats = np.abs(short - plain[: len(short)]).max(axis=0) if len(short) <= len(plain) else np.inf
    pushed = _Pushed(trials, H, plain, repeats)
    expected, ratios = _noise_of_pushes(pushed, length), dict[float, float]()
    best: tuple[float, Matrix, Matrix] | None = None
    for relative in sorted(_PUSHES, key=lambda relative: expected.get(relative, np.inf)):
        least = min(ratios.values(), default=np.inf)
        if ratios and not (expected.get(relative, 0.0) < least and trials.budget.allows(2 * length)):
            continue
        if _may_be_cleaner(relative, ratios):
            found = pushed(relative, len(plain))
            ratios[relative] = found[0]
            best = found if best is None or found[0] < best[0] else best
    assert best is not None
    ratio, linear, noise = best
    if ratio > _HOPELESS:
        if not np.any(linear):
            return Estimate("stable", 0.0, 0.0, 0, "a push on the inputs leaves no trace")
        reason = f"a push on the inputs cannot be told from noise, switching or bending ({100 * ratio:.0f} % of it)"
        return Estimate("cannot tell", np.nan, np.inf, 0, reason)
    return judge(linear, noise, length - pushed.skipped)


class _Pushed:
    """What a push changes in the macro steps of a run, and the part of it that is not proportional to the push."""

    def __init__(self, trials: Trials, H: float, plain: Matrix, repeats: Vector | float) -> None:
        plan = trials.plan
        self.trials, self.H, self.plain, self._repeats = trials, H, plain, repeats
        self.skipped = trials.method.depth + 1  # the first steps are those of a start
        self._unit, size = _push(plan, plain), np.abs(plain).max(axis=0)
        nominal = np.where(plan.z_open, float(size.max(initial=0.0)) or 1.0, plan.z_nominal)
        self._reach = np.maximum(size, np.concatenate([np.full(plan.n_y, nominal.max()), nominal]))

    def __call__(self, relative: float, steps: int) -> tuple[float, Matrix, Matrix]:
        """The share of noise, the difference and its noise, with a push relative to the size of the inputs."""
        push, far, plain = relative * self._unit, _ENOUGH * relative * self._reach, self.plain[:steps]
        whole = self.trials.run(self.H, len(plain), push, np.array([plain - far, plain + far]))
        half = self.trials.run(self.H, len(whole), -0.5 * push)
        count = min(len(whole), len(half))
        whole, half, base = whole[:count] - plain[:count], half[:count] - plain[:count], plain[:count]
        linear = (whole - 4.0 * half) / 3.0  # free of squares of the push
        noise = np.abs(whole + 2.0 * half) + self._repeats + 4e-16 * np.maximum(np.abs(base), np.abs(linear))
        linear, noise = _heard(linear[self.skipped :], noise[self.skipped :])
        ratio = float(np.linalg.norm(noise)) / max(float(np.linalg.norm(linear)), 1e-300)
        return ratio, linear, noise


def _noise_of_pushes(pushed: _Pushed, length: int) -> dict[float, float]:
    """The share of noise that pushes leave in some macro steps, of those that are worth a look."""
    found: dict[float, float] = {}
    for relative in _PUSHES:
        if _may_be_cleaner(relative, found) and pushed.trials.budget.allows(2 * (length + _SHORT)):
            try:
                found[relative] = pushed(relative, _SHORT)[0]
            except OverBudget:
                raise
            except CosolveError:  # it may lead out of what a model is made for
                found[relative] = np.inf
    return found


def _may_be_cleaner(relative: float, ratios: dict[float, float]) -> bool:
    """Whether a push may leave a cleaner difference than others did, whose shares of noise are known."""
    least, best = min(((ratio, push) for push, ratio in ratios.items()), default=(np.inf, 0.0))
    if relative >= _LARGE:  # only where noise asks for it
        return best > _PUSHES[0] and least >= _ROUGH
    return least >= _CLEAN and not relative < _PUSHES[0] < best  # a smaller one would be lost in noise


def _heard(rows: Matrix, noise: Matrix) -> tuple[Matrix, Matrix]:
    """The rows from the first on that stand out from noise, each column in units of its largest value there."""
    for _ in range(2):  # what is large may not belong to what is heard
        weight = np.maximum(np.abs(rows).max(axis=0, initial=0.0), 1e3 * noise.max(axis=0, initial=0.0))
        weight[weight == 0.0] = 1.0
        heard = np.linalg.norm(rows / weight, axis=1) > 30.0 * np.linalg.norm(noise / weight, axis=1)
        if not heard.any():
            break
        first = int(np.argmax(heard))
        last = first + int(np.argmin(heard[first:])) if not heard[first:].all() else len(rows)
        rows, noise = rows[first:last], noise[first:last]
    return rows / weight, noise / weight


def _push(plan: Plan, rows: Matrix) -> Vector:
    """A push of about the size of the inputs, on those that are coupled, with signs and sizes at random."""
    coupled = plan.u_source >= 0
    largest = np.abs(np.array([plan.inputs(row[plan.n_y :]) for row in rows[:: max(1, len(rows) // 16)]])).max(axis=0)
    nominal, seen = np.ones(plan.n_u), float(np.abs(rows).max(initial=0.0)) or 1.0
    sizes = np.where(plan.z_open, seen, plan.z_nominal)
    nominal[coupled] = sizes[plan.u_source[coupled]] * np.abs(plan.u_factor[coupled])
    random = np.random.default_rng(0)
    shape = random.uniform(0.5, 1.0, plan.n_u) * random.choice([-1.0, 1.0], plan.n_u)
    return np.where(coupled, shape * np.where(largest > 0.0, largest, nominal), 0.0)


# -- the fit -----------------------------------------------------------------------------------------------


def judge(rows: Matrix, noise: Matrix, planned: int) -> Estimate:
    """The verdict on a difference (a row per macro step) known up to `noise`, of a run of so many steps.

    >>> n = np.arange(60)
    >>> rows = (1.02**n * np.cos(0.7 * n) + 0.3**n)[:, np.newaxis]
    >>> print(judge(rows, 1e-12 + 0 * rows, 60))
    unstable: spectral radius about 1.020000 (to 1e-...)
    """
    level, floor = np.linalg.norm(rows, axis=1), np.linalg.norm(noise, axis=1)
    last = len(rows)
    if last < _FEWEST:
        if 0 < last < planned and floor[-1] < 1e-6 * level.max():
            return Estimate("stable", 0.0, 0.1, 0, "the disturbance is gone within a few steps")
        return Estimate("cannot tell", np.nan, np.inf, 0, _LOST)
    relative = float(np.linalg.norm(floor) / np.linalg.norm(rows))
    rows = _mixed(rows)
    part = rows[: max(_FEWEST, 3 * last // 4)]
    fits = [_fit(rows, floor, relative), _fit(rows, floor, 30.0 * relative), _fit(part, floor, relative)]
    mu, misfit = fits[0]
    radius = float(np.abs(mu).max(initial=0.0))
    accuracy = max(1e-9, relative, *(abs(float(np.abs(other).max(initial=0.0)) - radius) for other, _ in fits[1:]))
    if misfit > 0.05 or not len(mu):  # no fixed factors: switching parts, say; the envelope is all there is
        radius, accuracy = _envelope(level)
    # integrators and rigid bodies sit at 1, in pairs split by the root of the noise
    near = max(1e-6, 3.0 * accuracy, 3.0 * relative**0.5)
    rest = mu[np.abs(mu - 1.0) > near] if misfit <= 0.05 else np.array([radius])
    outer = float(np.abs(rest).max(initial=0.0))
    if outer > 1.0 + accuracy:
        return Estimate("unstable", radius, accuracy, 0)
    if radius > 1.0 + _AT_ONE:
        reason = "which is taken for 1 or for growth, as noise has it"
        return Estimate("cannot tell", radius, near, 0, reason)
    if outer < 1.0 - accuracy or not len(rest):
        return Estimate("stable", radius, accuracy, 0)
    return Estimate("cannot tell", radius, accuracy, 0, "which is too close to 1 to decide")


def _mixed(rows: Matrix) -> Matrix:
    """As many columns as a fit needs, each a random mixture of all columns: every factor is in each of them."""
    count, width = rows.shape
    few = _TALLEST // max(1, count // 3)
    if width <= few:
        return rows
    mixed: Matrix = rows @ np.random.default_rng(0).standard_normal((width, few)) / few**0.5
    return mixed


def _fit(rows: Matrix, floor: Vector, relative: float) -> tuple[npt.NDArray[np.complex128], float]:
    """Factors per step that matter in a sequence, and the part of it that they do not explain."""
    count, width = rows.shape
    deep = max(2, count // 2 if width < 4 else count // 3)
    columns = count - deep
    first = np.array([rows[k : k + deep].ravel() for k in range(columns)]).T
    second = np.array([rows[k + 1 : k + 1 + deep].ravel() for k in range(columns)]).T
    U, s, Vt = np.linalg.svd(first, full_matrices=False)
    order = int(np.count_nonzero(s > s[0] * max(1e-12, 5.0 * relative)))
    order = max(1, min(order, columns // 2 + 1, _LARGEST_ORDER))
    U, s, Vt = U[:, :order], s[:order], Vt[:order]
    mu = np.linalg.eigvals((U.T @ second @ Vt.T) / s).astype(np.complex128)
    mu = mu[np.abs(mu) > 1e-8]
    if not len(mu):
        return mu, 1.0
    growth = np.maximum(1.0, np.abs(mu)) ** (count - 1)
    powers = mu[np.newaxis, :] ** np.arange(count)[:, np.newaxis] / growth
    amplitudes = np.linalg.lstsq(powers, rows.astype(np.complex128), rcond=None)[0]
    misfit = float(np.linalg.norm(rows - (powers @ amplitudes).real) / np.linalg.norm(rows))
    # what a factor contributes at its largest: at the end when it grows, at the beginning when it decays
    share = np.linalg.norm(amplitudes, axis=1) * np.abs(powers).max(axis=0)
    heard = np.where(np.abs(mu) >= 1.0, floor[-1], floor[0])
    return mu[share > np.maximum(20.0 * heard, 1e-9 * np.linalg.norm(rows, axis=1).max())], misfit


def _envelope(level: Vector) -> tuple[float, float]:
    """Growth per step of the largest values, to a factor of 3 over half the length."""
    half = len(level) // 2
    early, late = level[:half].max(), level[half:].max()
    return float((late / early) ** (1.0 / half)), float(3.0 ** (1.0 / half) - 1.0)
