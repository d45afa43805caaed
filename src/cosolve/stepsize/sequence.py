"""The sequence of macro steps: which window comes next, and whether a finished step is accepted.

Each sequence knows its time `t` and proposes a `Window` from there; `judge` accepts a finished step, which moves the
time, or asks for a shorter one. A sequence without end (`t_end = inf`) serves a run that is stepped by hand. All of
its state is in `memory`, so that a saved run continues on the same grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import floor, inf, log2, nan
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_number
from cosolve.basics.scale import grow_floor, is_unseen
from cosolve.errors import SetupError, StepSizeError
from cosolve.interface import Plan
from cosolve.method import Method, Outcome, Window
from cosolve.method.step import CLOSE
from cosolve.stepsize import Adaptive, TickClock, UniformClock, refuse_bad_span, refuse_bad_step
from cosolve.stepsize.control import is_no_gain
from cosolve.subsystem.base import has_capability

#: Steps of fewer ticks (about 1e-13 of the run) are not worth taking: the step control is stuck at a jump.
LEAST_TICKS = 512

#: Multipliers of joints get worse where steps get shorter, once these no longer tell a drift from rounding. No step is
#: shorter than one for which that was seen, as long as its error is below this, and the next one is longer.
NOISY, LONGER = 100.0, 1.5

_ROUNDING = 1e-8  # of what the first attempt leads to: below it, values at the start are no sizes


class Windows:
    """Base of the sequences. `settings` say what makes two of them the same, `memory` where one stands."""

    may_reject = False
    #: True after a rejection where shorter steps do not help: the error was there before the step
    stuck = False
    first_step: float
    t: float
    t_end: float
    settings: tuple[Any, ...]

    @property
    def done(self) -> bool:
        """True at the end."""
        return self.t >= self.t_end

    @property
    def left(self) -> float:
        """About how many steps are left; 0 when unknown."""
        return 0.0

    @property
    def usual(self) -> float:
        """The length of a step that nothing cuts."""
        return 0.0

    def begin(self, z: Vector) -> None:
        """A run begins with these coupling variables."""

    def propose(self, H: float | None = None, limit: float = inf) -> Window:
        """The next macro step, of length `H` where that is given, at most to `limit`."""
        raise NotImplementedError

    def judge(self, window: Window, outcome: Outcome) -> float | None:
        """Error estimate of an accepted step (NaN where there is none); None rejects it."""
        raise NotImplementedError

    def judge_cut(self, window: Window, outcome: Outcome) -> float | None:
        """The same for a step that ended early where a subsystem wanted it; the grid of steps stays as it was."""
        return self.judge(window, outcome)

    def shorten(self, window: Window) -> bool:
        """Propose a shorter step than one that could not be computed; False where there is none."""
        return False

    def continue_from(self, t: float, grid: tuple[Any, ...], saved: dict[str, Any]) -> None:
        """Go on from a saved sequence: on its grid where the settings are the same, otherwise on a new one from `t`."""
        if grid == self.settings:
            self.memory = saved
            return
        if not t < self.t_end:
            raise SetupError(f"the saved state is at t = {t:.9g}, which is not before t_end = {self.t_end:.9g}")
        self._restart(t, saved if grid[0] == self.settings[0] else {})

    def _restart(self, t: float, saved: dict[str, Any]) -> None:
        raise NotImplementedError

    @property
    def memory(self) -> dict[str, Any]:
        """Where the sequence stands."""
        raise NotImplementedError

    @memory.setter
    def memory(self, saved: dict[str, Any]) -> None:
        raise NotImplementedError


class Uniform(Windows):
    """Equal macro steps; a step of another length begins a new grid at its end."""

    def __init__(self, t_start: float, t_end: float, H: float) -> None:
        self._H, self.t_end = H, t_end
        self._begin(t_start)
        self.first_step = self._clock.H
        self.settings = ("uniform", t_end, H)

    def _begin(self, t: float) -> None:
        self._clock: OpenClock | UniformClock = (
            OpenClock(t, self._H) if self.t_end == inf else UniformClock(t, self.t_end, self._H)
        )
        self._origin, self._n, self.t = t, 0, t
        self._inside = False  # between two points of the grid, after a step that was cut
        self._whole = nan  # the length of the step of the grid that was proposed last

    def _restart(self, t: float, saved: dict[str, Any]) -> None:
        self._begin(t)

    def propose(self, H: float | None = None, limit: float = inf) -> Window:
        clock, t = self._clock, self.t
        t1, length = clock.time(self._n + 1), clock.step(self._n)
        self._whole = length
        if self._inside:
            length = t1 - t
        if H is not None:
            t1, length = t + H, H
        limit = limit if limit < self.t_end else self.t_end
        if t1 + length < limit:  # nowhere near it
            return Window(t, t1, length)
        if abs(t1 - limit) <= CLOSE * length:
            return Window(t, limit, length)
        return Window(t, t1, length) if t1 < limit else Window(t, limit, limit - t)

    def refuse_off_grid(self, t: float, what: str) -> None:
        """Raise when something has to happen at `t`, inside the run, but no macro point is there."""
        clock = self._clock
        n = round((t - self._origin) / clock.H)
        if n <= 0 or t >= self.t_end or abs(clock.time(n) - t) <= CLOSE * clock.H:
            return
        before = n if clock.time(n) < t else n - 1
        near = " and ".join(f"{clock.time(k):g}" for k in (before, before + 1))
        raise SetupError(
            f"{what} at t = {t:g} falls between the macro points {near}; "
            "move it to one of them, take a step that has a point there, or an Adaptive one"
        )

    @property
    def H(self) -> float:
        """The length that all steps have, but perhaps the last."""
        return self._clock.H

    @property
    def usual(self) -> float:
        return self._clock.H

    @property
    def left(self) -> float:
        """Steps that are left."""
        return inf if isinstance(self._clock, OpenClock) else self._clock.count - self._n

    def points(self, most: int) -> Vector:
        """Where the next steps of that length begin and end, at most so many of them."""
        clock = self._clock
        if isinstance(clock, OpenClock):
            return np.array([clock.time(n) for n in range(self._n, self._n + most + 1)])
        whole = clock.count if clock.divides else clock.count - 1
        return clock.times(self._n, max(self._n, min(whole, self._n + most)))

    def skip(self, times: Vector) -> None:
        """So many steps were advanced elsewhere."""
        self._n += len(times)
        self.t = float(times[-1])

    def judge(self, window: Window, outcome: Outcome) -> float | None:
        if window.H == self._whole or (self._inside and window.t1 == self._clock.time(self._n + 1)):
            self._n += 1
            self.t, self._inside = window.t1, False
        elif window.t1 < self.t_end:
            self._begin(window.t1)
        else:
            self.t = window.t1
        return nan

    def judge_cut(self, window: Window, outcome: Outcome) -> float | None:
        end = self._clock.time(self._n + 1)
        if window.t1 >= end or window.H == self._whole:
            return self.judge(window, outcome)
        self.t, self._inside = window.t1, True
        return nan

    @property
    def memory(self) -> dict[str, Any]:
        return {"origin": self._origin, "n": self._n, "t": self.t}

    @memory.setter
    def memory(self, saved: dict[str, Any]) -> None:
        if saved["origin"] < self.t_end:
            self._begin(saved["origin"])
        n, t = saved["n"], saved["t"]
        self._inside = self._clock.time(n) + CLOSE * self._H < t < self.t_end
        self._n, self.t = n, t


class Piece(Windows):
    """One step, a piece of a macro step; `usual` is the length of that."""

    def __init__(self, window: Window, usual: float) -> None:
        self._window, self._usual, self.t, self.t_end = window, usual, window.t0, window.t1
        self.first_step = window.H

    @property
    def usual(self) -> float:
        return self._usual

    def propose(self, H: float | None = None, limit: float = inf) -> Window:
        whole = self._window
        return whole if limit >= whole.t1 else Window(whole.t0, limit, limit - whole.t0)

    def judge(self, window: Window, outcome: Outcome) -> float | None:
        self.t = window.t1
        return nan


class GivenSteps(Windows):
    """The steps of another run once more: from `times[n]` to `times[n + 1]`, of length `steps[n]`.

    >>> from cosolve.stepsize.sequence import GivenSteps
    >>> again = GivenSteps([0.0, 0.5, 0.75], [0.5, 0.25])
    >>> again.propose()
    Window(t0=0.0, t1=0.5, H=0.5)
    """

    def __init__(self, times: Sequence[float], steps: Sequence[float]) -> None:
        self._times, self._steps, self._n = times, steps, 0
        self.t, self.t_end, self.first_step = times[0], times[-1], steps[0]
        self.settings = ("given", len(steps), self.t_end)

    @property
    def usual(self) -> float:
        return self._steps[self._n]

    @property
    def left(self) -> int:
        """Steps that are left."""
        return len(self._steps) - self._n

    def ahead(self, most: int) -> tuple[Vector, Vector]:
        """Where the next steps begin and end, at most so many of them, and their lengths."""
        n, end = self._n, min(self._n + most, len(self._steps))
        return np.array(self._times[n : end + 1]), np.array(self._steps[n:end])

    def skip(self, count: int) -> None:
        """So many steps were advanced elsewhere."""
        self._n += count
        self.t = self._times[self._n]

    def propose(self, H: float | None = None, limit: float = inf) -> Window:
        n = self._n
        return Window(self._times[n], self._times[n + 1], self._steps[n])

    def judge(self, window: Window, outcome: Outcome) -> float | None:
        self._n += 1
        self.t = window.t1
        return nan


class MethodSteps(Windows):
    """The method ends each step itself, at most `H_max` on (where there is a limit)."""

    def __init__(self, t_start: float, t_end: float, H_max: float | None) -> None:
        self.t, self.t_end = t_start, t_end
        self._H_max = t_end - t_start if H_max is None else H_max
        self.first_step = nan if H_max is None else H_max  # NaN: known only to the method
        self.settings = ("followed", t_end, H_max)

    def _restart(self, t: float, saved: dict[str, Any]) -> None:
        self.t = t

    def propose(self, H: float | None = None, limit: float = inf) -> Window:
        length = self._H_max if H is None else H
        limit, t1 = min(limit, self.t_end), self.t + length
        if t1 > limit - CLOSE * length:  # no sliver of a step before the end
            t1 = limit
        return Window(self.t, t1, t1 - self.t)

    def judge(self, window: Window, outcome: Outcome) -> float | None:
        self.t = window.t1 if outcome.t1 is None else outcome.t1
        return nan

    @property
    def memory(self) -> dict[str, Any]:
        return {"t": self.t, "H_max": self._H_max}

    @memory.setter
    def memory(self, saved: dict[str, Any]) -> None:
        self.t, self._H_max = saved["t"], saved["H_max"]


class Controlled(Windows):
    """Error-controlled steps on a tick clock."""

    def __init__(self, t_start: float, t_end: float, control: Adaptive, plan: Plan, may_reject: bool) -> None:
        self.control, self.may_reject, self.t_end = control, may_reject, t_end
        #: what counts as one: of open variables it follows the magnitudes seen so far
        self._given, self.open = plan.z_nominal, (plan.z_open & (control.atol is None)).astype(np.int64)
        self.nominal = np.where(self.open, 0.0, plan.z_nominal)
        if control.first_step is None and t_end < inf:
            # too long a first step is repeated; where it cannot be, its error, about H^2, must fit the tolerance
            share = 1e-4 if may_reject else min(1e-4, 3e-3 * control.rtol**0.5)
            guess = share * (t_end - t_start)
        elif control.first_step is None:
            raise SetupError("steps without a t_end need a first length: step=Adaptive(first_step=...)")
        else:
            guess = control.first_step
        self.proposed = self.first_step = min(control.max_step, max(control.min_step, guess))
        self._begin(t_start)
        self.previous: float | None = None
        #: magnitudes that count as one: the largest so far, or zeros where only the newest count
        self.largest = np.zeros(plan.n_z)
        self._ticks, self._cut = 0, False
        self._attempt: tuple[float, float] | None = None  # length and error of a rejected attempt at this step
        self._joints = any(block.levels is not None for block in plan.blocks)
        self._shortest = 0.0  # length below which attempts got worse
        self.settings = ("controlled", t_end, repr(control))

    def _begin(self, t: float) -> None:
        self.clock = OpenTicks(t, self.first_step) if self.t_end == inf else TickClock(t, self.t_end)
        self.t = t

    def _restart(self, t: float, saved: dict[str, Any]) -> None:
        self._begin(t)
        self.proposed, self.previous = saved.get("H", self.proposed), saved.get("previous")
        self.largest = self._sizes(saved)
        self.nominal = np.array(saved.get("nominal", self._given))

    def _sizes(self, saved: dict[str, Any]) -> Vector:
        """The sizes in a saved state, which may be from before there were any."""
        sizes = np.array(saved.get("largest", self.largest), dtype=np.float64)
        if sizes.shape != self._given.shape:
            raise ValueError(f"it holds the sizes of {sizes.size} coupling variables")
        return sizes

    def begin(self, z: Vector) -> None:
        self.largest = np.abs(z) if self.control.weights == "largest" else np.zeros(len(z))
        self.nominal = np.where(self.open, 0.0, self._given)
        self.see(z)

    @property
    def unseen(self) -> bool:
        """True as long as all coupling variables have been zero."""
        return is_unseen(self.nominal)

    def _unseen_beside(self, z: Vector) -> bool:
        """True where a run began at rest, or with the rounding of differences that should be zero."""
        if self.unseen or self.clock.tick > 0 or not self.open.any():
            return self.unseen
        return float(self.nominal[self.open > 0].max()) < _ROUNDING * float(np.abs(z).max(initial=0.0))

    def see(self, z: Vector) -> None:
        """Take note of magnitudes."""
        grow_floor(self.nominal, self.open, float(np.abs(z).max(initial=0.0)))

    def propose(self, H: float | None = None, limit: float = inf) -> Window:
        clock = self.clock
        if H is not None:
            self.proposed = H
        self._ticks = clock.fit(self.proposed)
        t1 = clock.at(clock.tick + self._ticks)
        self._cut = limit < t1 or abs(t1 - limit) <= CLOSE * self.proposed
        if self._cut:
            self._ticks = max(1, clock.fit(limit - self.t))
            t1 = limit
        return Window(self.t, t1, clock.length(self._ticks))

    def judge(self, window: Window, outcome: Outcome) -> float | None:
        control, degree = self.control, outcome.degree
        error = control.estimate(outcome.z, outcome.predicted, self.nominal, self.largest, outcome.left)
        if self._joints and degree == 0 and self.clock.tick == 0:
            # a line to a corrected end is off by the square; multipliers drown in rounding where steps get very short
            error, degree = min(error, control.rtol * error**2), 1
        noisy = 1.0 < error < NOISY and window.H <= self._shortest * (1 + 1e-9)
        if self.may_reject and error > 1.0 and not noisy and control.min_step * (1 + 1e-9) < window.H:
            self.previous = None
            if self._unseen_beside(outcome.z):  # whatever the first attempt leads to is the size that counts
                self.see(outcome.z)
            self._shortest = 0.0 if error >= NOISY else self._shortest
            if self._joints and self._attempt is not None and error >= self._attempt[1] and self._attempt[1] < NOISY:
                self._shortest = self.proposed = self._attempt[0]
                return None
            self.proposed = max(self._shortest, control.shorter_step(window.H, error, degree))
            self._compare(window.H, error)
            if self.clock.fit(self.proposed) <= LEAST_TICKS or window.t0 + self.proposed == window.t0:
                raise StepSizeError(
                    f"the step control wants steps below {self.proposed:.1e} at t = {window.t0:.9g}: a jump or a "
                    f"tolerance (rtol {control.rtol:g}) beyond reach; set min_step, or loosen rtol",
                    time=window.t0,
                )
            return None
        self._attempt, self.stuck = None, False
        self.see(outcome.z)
        if control.weights == "largest":
            self.largest = np.maximum(self.largest, np.abs(outcome.z))
        self.clock.advance(self._ticks)
        self.t = window.t1
        # a step cut by hand says nothing against longer ones
        wanted = self.proposed if self._cut and error <= 1.0 else 0.0
        if noisy:
            wanted = min(control.max_step, LONGER * window.H)
        self.proposed = max(wanted, control.next_step(window.H, error, self.previous, degree))
        self.previous = error
        return error

    def shorten(self, window: Window) -> bool:
        shorter = max(self.control.min_step, self.control.q_min * window.H)
        if not self.may_reject or shorter > 0.5 * window.H or self.clock.fit(shorter) <= LEAST_TICKS:
            return False
        self.proposed, self.previous, self._attempt = shorter, None, None
        return window.t0 + shorter > window.t0

    def _compare(self, H: float, error: float) -> None:
        """Find out whether shorter attempts at this step help."""
        before, self.stuck = self._attempt, False
        if before is None or (self._joints and error < before[1]):
            self._attempt = H, error
        elif H <= 0.5 * before[0]:
            self.stuck, self._attempt = is_no_gain(H, error, *before), (H, error)

    @property
    def usual(self) -> float:
        return self.proposed

    @property
    def left(self) -> float:
        """About how many steps are left, from the length proposed now."""
        return (self.t_end - self.t) / self.proposed

    def resume_at(self, t: float, tick: int, proposed: float, previous: float) -> None:
        """Steps up to `t` were advanced elsewhere; go on with a step of the proposed length."""
        self.t, self.clock.tick, self.proposed = t, tick, proposed
        self.previous = None if previous != previous else previous

    @property
    def memory(self) -> dict[str, Any]:
        held = {"t": self.t, "tick": self.clock.tick, "H": self.proposed, "previous": self.previous}
        held |= {"origin": self.clock.t_start, "first": self.first_step, "largest": self.largest.copy()}
        return held | {"shortest": self._shortest, "nominal": self.nominal.copy()}

    @memory.setter
    def memory(self, saved: dict[str, Any]) -> None:
        self.first_step = saved["first"]
        self._begin(saved["origin"])
        self.clock.tick, self.proposed, self.previous, self.t = saved["tick"], saved["H"], saved["previous"], saved["t"]
        self.largest, self._shortest = self._sizes(saved), float(saved.get("shortest", 0.0))
        self.nominal = np.array(saved.get("nominal", self._given))


class OpenClock:
    """Macro points `t_start + n H` without end; `H` is taken as the decimal number it is written as.

    >>> OpenClock(0.0, 0.1).time(3)
    0.3
    """

    def __init__(self, t_start: float, H: float) -> None:
        refuse_bad_step(H)
        if not t_start + H > t_start:
            raise SetupError(f"step = {H:g} is below the resolution of time at {t_start:g}")
        self.t_start, self.H = t_start, float(H)
        self._exact = Fraction(repr(self.H))

    def time(self, n: int) -> float:
        """Macro point `n`."""
        return self.t_start + float(self._exact * n)

    def step(self, n: int) -> float:
        """Length of the step from point `n`."""
        return self.H


class OpenTicks:
    """Variable steps as whole numbers of ticks, a tick being a tiny binary fraction of the first step.

    >>> clock = OpenTicks(0.0, 0.1)
    >>> clock.advance(clock.fit(0.25)); clock.time
    0.25
    """

    def __init__(self, t_start: float, first: float) -> None:
        self.t_start, self.tick = t_start, 0
        self._quantum = 2.0 ** (floor(log2(first)) - 44)

    def fit(self, H: float) -> int:
        """Ticks of a step of about `H`."""
        return max(1, round(H / self._quantum))

    def length(self, ticks: int) -> float:
        """Length of a step of so many ticks."""
        return self._quantum * ticks

    def at(self, tick: int) -> float:
        """Time of a tick."""
        return self.t_start + self._quantum * tick

    def advance(self, ticks: int) -> None:
        """Move on."""
        self.tick += ticks

    @property
    def time(self) -> float:
        """Time now."""
        return self.at(self.tick)


def make_windows(
    method: Method, step: float | Adaptive | None, t_start: float, t_end: float | None, plan: Plan
) -> Windows:
    """The sequence of macro steps that `method` and `step` ask for; without `t_end` it has no end."""
    if t_end is not None:
        refuse_bad_span(t_start, t_end)
    elif not is_number(t_start):
        raise SetupError(f"t_start must be a finite number, not {t_start!r}")
    end = inf if t_end is None else t_end
    if method.chooses_step:
        if isinstance(step, Adaptive):
            raise SetupError(f"{method.name} chooses its steps itself; give no step, or a number that limits them")
        if step is not None:
            refuse_bad_step(step)
        elif t_end is None:
            raise SetupError(f"{method.name} chooses its steps itself; without t_end give a step that limits them")
        return MethodSteps(t_start, end, step)
    if step is None:
        raise SetupError(f"{method.name} needs a macro step: step=1e-3, or step=Adaptive(rtol=1e-6)")
    if not isinstance(step, Adaptive):
        return Uniform(t_start, end, step)
    fixed = [n for n, s in zip(plan.names, plan.subsystems, strict=True) if not has_capability(s, "rollback")]
    if step.reject and fixed:
        raise SetupError(f"Adaptive(reject=True) repeats steps, but '{fixed[0]}' cannot roll back; use reject=False")
    if method.growth < step.q_max:  # the past would be amplified
        step = replace(step, q_max=method.growth)
    return Controlled(t_start, end, step, plan, may_reject=not fixed if step.reject is None else step.reject)
