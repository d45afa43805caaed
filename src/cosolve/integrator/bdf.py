"""Variable-step, variable-order BDF in predictor/corrector form for `E x' = f(t, x)` (Schmoll (2015), 4.2.1).

`E` may be singular (index-1 DAE). The formula of order `k` differentiates the polynomial through the new point and the
`k` points before it, whatever their spacing (variable coefficients in Lagrange form); the predictor is the polynomial
of degree `k` through the `k + 1` points before. Their distance is the error estimate.

SciPy's and SUNDIALS' BDF solvers hide the predictor and the corrector iterates, choose themselves when to rebuild the
Jacobian, and repeat steps unseen. A coupling to an expensive static model needs all of that, so it is written out here:
a `Problem` is told every predictor, sees every iterate, and hears which attempts were given up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.differences import forward_differences
from cosolve.basics.lu import RCOND, lu_factor, lu_solve
from cosolve.errors import ConvergenceError, NonFiniteError, StepSizeError, SubsystemError
from cosolve.integrator.bdf_control import BdfControl, Counts
from cosolve.integrator.step_control import step_factor

_SHRINK, _REPEAT, _GROW = 0.25, 0.75, 2.0  # least and, for a repetition, largest factor; largest after a success
_FEWER, _MORE = 0.9, 0.8  # a new order must promise this much more: the present one is known to work
_RESTART_AFTER, _GIVE_UP = 8, 40  # failed attempts at one step


class Problem(Protocol):
    """What the corrector solves. Call order per attempt: `predicted`, then `evaluate` per iteration, then the verdict.

    A `SubsystemError` raised inside an attempt counts as a failed attempt: the step is repeated with a shorter one.
    """

    def predicted(self, t: float, x: Vector) -> None:
        """An attempt at a step to `t` begins; `x` is its predictor."""

    def evaluate(self, t: float, x: Vector, rebuild: bool) -> tuple[Vector, Matrix | None]:
        """`f(t, x)` at a corrector iterate, and `df/dx` where it is to be rebuilt."""

    def rejected(self) -> None:
        """The attempt is given up."""


class RightHandSide:
    """The plain `Problem`: a function `f(t, x)`, its Jacobian by forward differences (Eq. 4.7) where none is given.

    `scale` holds the magnitudes that count as one: `Delta_l = sqrt(eps) max(scale_l, |x_l|)`.
    """

    def __init__(
        self,
        function: Callable[[float, Vector], Any],
        jacobian: Callable[[float, Vector], Any] | None = None,
        scale: Vector | float = 1.0,
    ) -> None:
        self.function, self.given, self.scale = function, jacobian, scale

    def predicted(self, t: float, x: Vector) -> None: ...

    def rejected(self) -> None: ...

    def evaluate(self, t: float, x: Vector, rebuild: bool) -> tuple[Vector, Matrix | None]:
        f = _finite(self.function(t, x.copy()), t)
        if not rebuild:
            return f, None
        if self.given is not None:
            return f, np.asarray(self.given(t, x.copy()), dtype=np.float64)
        return f, forward_differences(lambda shifted: _finite(self.function(t, shifted), t), x, f, self.scale)


class _Failed(Exception):
    """The corrector did not get there: `str` says why."""


class Bdf:
    """The integrator. `start` gives it a state, each `step` makes one accepted step and returns the new time.

    `test_algebraic=False` leaves states whose column of `E` is zero out of the error test.

    >>> solver = Bdf(RightHandSide(lambda t, x: -x), BdfControl(rtol=1e-8))
    >>> solver.start(0.0, np.array([1.0]), np.array([-1.0]))
    >>> while solver.t < 1.0:
    ...     t = solver.step(t_max=1.0)
    >>> bool(abs(solver.x[0] - np.exp(-1.0)) < 1e-7)
    True
    """

    def __init__(
        self, problem: Problem, control: BdfControl, E: Matrix | None = None, *, test_algebraic: bool = True
    ) -> None:
        self.problem, self.control, self.E = problem, control, E
        self._tested: Vector | float = 1.0  # 0 where a state is left out of the error test
        if E is not None and not test_algebraic:
            self._tested = np.any(E, axis=0).astype(np.float64)
        self.counts = Counts()
        self.t, self.order, self.h = np.nan, 1, np.nan

    @property
    def x(self) -> Vector:
        """The state now."""
        return self._past[0]

    def start(self, t0: float, x0: Vector, slope: Vector, past: Callable[[float], npt.ArrayLike] | None = None) -> None:
        """Begin at `x0` with order 1; `slope` is `x'(t0)`. With states `past(t)` before `t0` begin at full order."""
        control = self.control
        relative_rate = np.abs(slope / control.weights(x0)).max(initial=0.0) * control.rtol
        guess = 0.1 * control.rtol**0.5 / relative_rate if relative_rate > 0 else np.inf
        self.h = control.step or control.first_step or max(control.min_step, guess)
        self.t, self.order = t0, 1
        self._past, self._steps = [x0.copy()], list[float]()
        self._slope: Vector | None = slope.copy()  # while there is no point before the newest one
        self._velocity = self._new_velocity = slope  # x' at the newest point, and at the end of the attempt
        self._origin, self._index, self._since = t0, 0, 0
        self._J: Matrix | None = None
        if past is not None:
            self._slope = None
            for j in range(1, control.order + 1):
                self._past.append(np.array(past(t0 - j * self.h), dtype=np.float64).reshape(x0.shape))
                self._steps.append(self.h)
            self.order = control.order

    def step(self, t_max: float) -> float:
        """One accepted step, at most to `t_max`; repeats it with shorter steps while it fails."""
        control, counts = self.control, self.counts
        fixed = control.step is not None
        failures = 0
        while True:
            t, h = self._aim(t_max)
            points, nodes = self._support(h)
            k = min(self.order, len(points) - 1) if control.fixed_order or fixed else self.order
            reason: Exception
            try:
                x, error = self._attempt(t, h, k, points, nodes)
            except (_Failed, SubsystemError) as cause:
                counts.failed_corrections += 1
                x, error, reason, shorter = self.x, np.inf, cause, _SHRINK
            else:
                if fixed or error <= 1.0:
                    break
                counts.failed_tests += 1
                reason = _Failed(f"the error estimate is {error:.3g} times the tolerance")
                shorter = min(_REPEAT, max(_SHRINK, self._factor(error, k)))
            self.problem.rejected()
            self._J = None
            failures += 1
            if failures == _RESTART_AFTER and self._slope is None and not (fixed or control.fixed_order):
                # the past is no guide here: begin anew with order 1
                self._past, self._steps, self._slope = self._past[:1], [], self._velocity
                self.order, self._since = 1, 0
            self.h = h * shorter
            self._refuse_to_go_on(fixed, failures, h, reason)
        self._accept(t, h, k, x, error, points, nodes, clipped=t == t_max)
        return self.t

    # -- one attempt -----------------------------------------------------------------------------------

    def _aim(self, t_max: float) -> tuple[float, float]:
        """End and length of the next attempt; fixed steps are counted, not summed."""
        if self.control.step is not None:
            t, h = self._origin + (self._index + 1) * self.control.step, self.control.step
        else:
            first = self._slope is not None and self.control.first_step is None
            h = min(self.h, self.control.max_step, (1e-2 if first else 1.0) * (t_max - self.t))
            t = self.t + h
        if t > t_max - 1e-6 * h:  # no sliver of a step before the end
            rest = t_max - self.t
            return t_max, h if abs(rest - h) <= 1e-9 * h else rest
        return t, h

    def _support(self, h: float) -> tuple[list[Vector], Vector]:
        """Past values and their places `(t_{n-i} - t_n) / h`; at the very start one behind it from the slope."""
        points, steps = self._past, self._steps
        if len(points) == 1 and self._slope is not None:
            points, steps = [points[0], points[0] - h * self._slope], [h]
        return points, -(1.0 + np.concatenate([[0.0], np.cumsum(steps)]) / h)

    def _attempt(self, t: float, h: float, k: int, points: list[Vector], nodes: Vector) -> tuple[Vector, float]:
        """Predict and correct with order `k`; the new state and its error estimate in units of the tolerance."""
        predictor = _extrapolated(points, nodes, k)
        self.problem.predicted(t, predictor)
        leading, weights = _derivative_weights(nodes[:k])
        rest = np.tensordot(weights, np.array(points[:k]), axes=1) / h
        x = self._correct(t, predictor, leading / h, rest)
        self._new_velocity = leading / h * x + rest
        return x, self._error(x, predictor, k)

    def _error(self, x: Vector, predictor: Vector, k: int) -> float:
        scaled = self._tested * (x - predictor) / self.control.weights(x)
        return float(np.abs(scaled).max(initial=0.0)) / (k + 1)

    def _correct(self, t: float, x: Vector, alpha: float, rest: Vector) -> Vector:
        """Simplified Newton on `E (alpha x + rest) - f(t, x) = 0` (Eqs. 4.4-4.6), rebuilt by the pattern."""
        weights, before = self.control.weights(x), np.inf
        solve: Callable[[Vector], Vector] | None = None
        for mark in self.control.pattern:
            rebuild = mark == "T" or self._J is None
            self.counts.iterations += 1
            f, J = self.problem.evaluate(t, x, rebuild)
            if J is not None:
                self._J = J
                self.counts.jacobians += 1
            if J is not None or solve is None:
                assert self._J is not None
                solve = _factorised((np.eye(len(x)) if self.E is None else self.E) * alpha - self._J, weights)
            slope = alpha * x + rest
            change = solve(f - (slope if self.E is None else self.E @ slope))
            x = x + change
            size = float(np.abs(change / weights).max(initial=0.0))
            if size <= self.control.newton:
                return x
            if not size < 2.0 * before:  # also for a NaN
                raise _Failed("the corrector diverges")
            before = size
        raise _Failed(f"the corrector did not converge in {len(self.control.pattern)} iterations")

    # -- what comes next -------------------------------------------------------------------------------

    def _accept(
        self, t: float, h: float, k: int, x: Vector, error: float, points: list[Vector], nodes: Vector,
        clipped: bool,
    ) -> None:  # fmt: skip
        control = self.control
        if control.step is None:
            best, factor = self._choose(k, x, error, points, nodes)
            factor = min(_GROW, max(_SHRINK, factor))
            self.h = max(self.h if clipped and factor >= 1.0 else h * factor, control.min_step)
        else:
            best = control.order
        self._since = 0 if best != self.order else self._since + 1
        self.order = best
        self._past = [x, *self._past[: control.order + 1]]
        self._steps = [h, *self._steps[: control.order]]
        self._slope, self._velocity = None, self._new_velocity
        self.t = t
        self._index += 1
        self.counts.steps += 1

    def _choose(self, k: int, x: Vector, error: float, points: list[Vector], nodes: Vector) -> tuple[int, float]:
        """The order of the next step and the factor its error estimate allows for the step size."""
        control = self.control
        here = self._factor(error, k)
        if control.fixed_order:
            return control.order, here
        if self._slope is not None:
            return 1, here
        choices = {k: here}
        if self._since >= k:
            for other, hurdle in ((k - 1, _FEWER), (k + 1, _MORE)):
                if 1 <= other <= min(control.order, len(points) - 1):
                    promised = self._error(x, _extrapolated(points, nodes, other), other)
                    choices[other] = hurdle * self._factor(promised, other)
        best = max(choices, key=lambda order: choices[order])
        return best, choices[best]

    def _factor(self, error: float, k: int) -> float:
        return float(step_factor(max(error, 1e-10), k + 1, self.control.safety, 0.0, np.inf))

    def _refuse_to_go_on(self, fixed: bool, failures: int, h: float, reason: Exception) -> None:
        """After a failed attempt: raise when no shorter step is left to try."""
        stuck = self.t + self.h == self.t or failures >= _GIVE_UP
        if not fixed and not stuck and self.h >= self.control.min_step:
            return
        if isinstance(reason, SubsystemError):
            raise reason
        if fixed:
            raise ConvergenceError(
                f"{reason} at t = {self.t:.9g} with the fixed step {h:.3g}; use a smaller h", time=self.t
            )
        raise StepSizeError(
            f"no step from t = {self.t:.9g} succeeds, the last try had length {h:.2g}: {reason}; check the model "
            "there, loosen rtol, or lower min_step",
            time=self.t,
        )


# -- polynomials and linear algebra ------------------------------------------------------------------------


def _extrapolated(points: list[Vector], nodes: Vector, degree: int) -> Vector:
    """The polynomial through `degree + 1` past points, at the new one (place 0)."""
    s = nodes[: degree + 1]
    ratios = -s[np.newaxis, :] / (s[:, np.newaxis] - s[np.newaxis, :] + np.eye(len(s)))
    np.fill_diagonal(ratios, 1.0)
    value: Vector = np.tensordot(ratios.prod(axis=1), np.array(points[: degree + 1]), axes=1)
    return value


def _derivative_weights(s: Vector) -> tuple[float, Vector]:
    """Derivative at place 0 of the polynomial through 0 and the places `s`: weights of the new and the past values.

    >>> leading, weights = _derivative_weights(np.array([-1.0, -2.0]))
    >>> float(leading), weights.tolist()                                   # BDF2
    (1.5, [-2.0, 0.5])
    """
    ratios = -s[np.newaxis, :] / (s[:, np.newaxis] - s[np.newaxis, :] + np.eye(len(s)))
    np.fill_diagonal(ratios, 1.0)
    return float(-(1.0 / s).sum()), ratios.prod(axis=1) / s


def _factorised(G: Matrix, weights: Vector) -> Callable[[Vector], Vector]:
    """A solver for `G`, its columns scaled by the weights and its rows to one; refuses a singular matrix."""
    scaled = G * weights
    rows = np.abs(scaled).max(axis=1, initial=0.0)
    with np.errstate(all="ignore"):
        lu, pivots, rcond = lu_factor(scaled / rows[:, np.newaxis])
    if not rcond > RCOND:
        raise _Failed(
            "the corrector's matrix alpha E - df/dx is singular (algebraic equations that do not determine all "
            "algebraic states, or index above 1)"
        )
    return lambda r: weights * lu_solve(lu, pivots, r / rows)


def _finite(value: Any, t: float) -> Vector:
    f = np.array(value, dtype=np.float64)
    if not np.isfinite(f).all():
        k = int(np.flatnonzero(~np.isfinite(f))[0])
        raise NonFiniteError(f"the right-hand side returned {f[k]} for state {k} at t = {t:.9g}", time=t)
    return f


def consistent_slope(f: Vector, E: Matrix | None) -> Vector:
    """`x'` with `E x' = f` as far as `E` determines it (0 for algebraic states)."""
    return f.copy() if E is None else np.asarray(np.linalg.lstsq(E, f, rcond=None)[0])


@dataclass(frozen=True)
class Trajectory:
    """States at the accepted steps, and what it took: `x[n]` belongs to `t[n]`."""

    t: Vector
    x: Matrix
    counts: Counts


def integrate_bdf(
    function: Callable[[float, Vector], Any],
    span: tuple[float, float],
    x0: npt.ArrayLike,
    control: BdfControl | None = None,
    *,
    E: npt.ArrayLike | None = None,
    jacobian: Callable[[float, Vector], Any] | None = None,
    past: Callable[[float], npt.ArrayLike] | None = None,
) -> Trajectory:
    """Integrate `E x' = function(t, x)` over `span`.

    >>> found = integrate_bdf(lambda t, x: [-x[0] + x[1], x[1] - 2.0], (0.0, 1.0), [0.0, 2.0], E=np.diag([1.0, 0.0]))
    >>> bool(abs(found.x[-1, 0] - 2 * (1 - np.exp(-1.0))) < 1e-4)
    True
    """
    control = BdfControl() if control is None else control
    mass = None if E is None else np.asarray(E, dtype=np.float64)
    x = np.array(x0, dtype=np.float64).reshape(-1)
    solver = Bdf(RightHandSide(function, jacobian, control.scale()), control, mass)
    solver.start(span[0], x, consistent_slope(_finite(function(span[0], x.copy()), span[0]), mass), past)
    times, states = [span[0]], [x]
    while solver.t < span[1]:
        times.append(solver.step(span[1]))
        states.append(solver.x)
    return Trajectory(np.array(times), np.array(states), solver.counts)
