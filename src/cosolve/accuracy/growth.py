"""Growth without bound, noticed while a run goes on, and whether the coupling or the model does it.

Watched are the sizes of the coupling variables at macro points. Three findings make an alarm:

1. *Exponential growth.* In the last four equal stretches of steps, of whatever length, the largest value rises at least
   tenfold from one to the next (threefold over 256 steps and more). Powers of time up to the eighth do not (their
   stretches rise by 2^p, 1.5^p, 1.33^p), nor do resonance, ramps, limit cycles or a jump; exponentials do, whether they
   belong to the model or not. Less is enough where the cause can be found for little: half as much again from stretch
   to stretch.
2. *Size.* The value exceeds its nominal size, or the one that it has begun with.
3. *The coupling does it.* The values change direction every third step or more often, which no motion does that the
   macro step resolves; twofold growth over 16 to 64 steps is enough then. Growth that looks smooth on the macro grid is
   tried out (`growth_origin.py`). Where nothing can be tried, values a million times beyond the scale of the run are
   reported as what they are: growth of unknown cause.

A run of fewer steps than these findings need is looked at as a whole at its end: where values have at least doubled,
and macro steps are quick, the map of the macro step says whether the coupling did it.

A look costs some microseconds and is taken every few hundred steps, every some thousand in compiled runs. It goes into
detail only when a value has tripled since the last time it did.
"""

from __future__ import annotations

from functools import cached_property
from math import floor, log10
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cosolve.accuracy.budget import Budget
from cosolve.accuracy.growth_origin import blame, can_be_tried, columns
from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.scale import floor_of
from cosolve.stepsize.sequence import Uniform
from cosolve.subsystem.base import has_capability

if TYPE_CHECKING:
    from cosolve.run.core import Core

#: Steps between looks: of the Python engine, of which a long run takes four times as many, and of compiled code.
LOOK, LOOK_COMPILED = 256, 1 << 16

_TENFOLD, _THREEFOLD, _TWOFOLD, _SLIGHT = 10.0, 3.0, 2.0, 1.5  # from quarter to quarter of a stretch
_LONG = 256  # steps of a stretch from which on threefold growth is tried out, and of a run that pays for such trials
_AFTER_TRIAL, _AFTER_MAP = 1e3, 30.0  # times a value that the model made grow: from there on it is looked at again
_SAMPLES = 64  # rows of a block that are looked at
_MOST_MARKS = 64
_WIDEST, _NUMBERS = 4096, 1 << 18  # entries that are watched, and numbers held between looks, at most
_KEPT = 256  # rows of a chunk that is let pass, as many as a look takes by itself
_SCALES = ((16, 1), (32, 1), (64, 1), (64, 3), (64, 9), (64, 27), (64, 81), (64, 243), (64, 729))  # samples, stride
_SHORTEST = 16  # steps over which growth is believed
_FEWEST = 4  # of a run that is shorter: the last of them rise tenfold each, to a million times the scale of the run
#: A short run: its most steps, the macro steps that trials may take then, and the longest a step may have taken (s).
_SHORT, _SHORT_TRIALS, _QUICK = 2 * _SHORTEST, 300, 0.05
_NOISE = 1e-9  # below this part of what came of it, a value is not the beginning of anything
_AGAIN = 3.0  # a value that passed is looked at again when it is so many times larger
_SHARE = 0.5  # of the macro steps of the run that trials may take besides
_LOADED, _FASTER = 640, 512  # macro steps that loading compiled code costs, and compiled ones that cost as much as one
_STEADY = 0.8  # mean over newest step, above which steps have hardly become longer
_ABSURD = 1e6  # times the scale of the run
_REMEMBERED = (
    "_passed",
    "_unseen",
    "_steps",
    "due",
    "_alert",
    "_scale",
    "_lowest",
    "_spacing",
    "_level",
    "_spent",
    "_compiled",
    "_own",
)


class Growth(NamedTuple):
    """What grew: time, the coupling variable, its size, the factor per macro step, and the sentence about it."""

    t: float
    name: str
    size: float
    per_step: float
    text: str


class GrowthMonitor:
    """Watches one run and answers at most once: `note` collects steps and says when it is time to `look`."""

    def __init__(self, core: Core) -> None:
        # of a wide field some entries are watched: what grows without bound in it does not stay in one of them
        self._every = -(-core.plan.n_z // _WIDEST) if core.plan.n_z > _WIDEST else 1
        self._core = core
        #: sizes that count: nominal values that were given, and the largest value seen first
        self._given = np.where(core.plan.z_open, 0.0, core.plan.z_nominal)[:: self._every]
        self._look_every = min(LOOK, max(_SAMPLES, _NUMBERS // max(1, len(self._given))))
        self.found: Growth | None = None
        self._noted: list[Matrix] = []  # steps that are to become one block
        self._passed: list[Matrix] = []  # blocks that are not yet checked, and the number of their steps
        self._unseen = 0
        self._steps = 0
        #: steps of the Python engine until the next look; the first looks come sooner
        self.due = min(self._look_every, LOOK // 4)
        self._scale = 0.0
        self._begin(np.abs(core.z[:: self._every]))
        self._lowest = np.full(len(self._given), np.inf)
        self._marks: list[tuple[int, Vector]] = []  # steps so far, largest values since the last
        self._times: list[tuple[int, float]] = [(0, core.t)]  # steps so far, time
        self._spacing = 1  # steps between marks, at least
        self._level: Vector = self._alert  # largest values of the newest steps
        self._spent = 0.0  # macro steps of trials
        self._compiled = 0  # of the steps so far
        self._own = False  # the model made the values grow, when that was tried last
        self._off = not core.plan.n_z
        self._first: list[Matrix] = [core.z[np.newaxis, :: self._every].copy()]  # all rows of a short run

    def _begin(self, start: Vector) -> None:
        """What values have begun with; nothing is known as long as all were zero and none has a nominal value."""
        seen = float(start.max(initial=0.0))
        nominal = np.where(self._given > 0.0, self._given, floor_of(seen))
        self._alert = np.where(start > 0.0, np.minimum(nominal, start), nominal)
        self._scale = float(max(nominal.max(initial=0.0), seen))

    @cached_property
    def _able(self) -> bool:
        return can_be_tried(self._core)

    @cached_property
    def _columns(self) -> int:
        return columns(self._core) if self._able else 0

    @property
    def _mapped(self) -> bool:
        """Whether the map of the macro step can be had for little: it tells slight growth of the coupling."""
        return 0 < self._columns and 8 * self._columns <= max(self._steps, 2 * _SAMPLES)

    @property
    def _budget(self) -> Budget:
        """Macro steps that trials may take: they never cost more than a part of the run, its steps to come included."""
        left = self._core.windows.left
        left = left if np.isfinite(left) else 0.0
        whole = self._steps + left
        if self._compiled:
            whole = self._steps - self._compiled + _LOADED + (self._compiled + left) / _FASTER
        return Budget(_SHARE * whole - self._spent)

    @property
    def memory(self) -> dict[str, Any]:
        """What was seen so far, in plain values and few arrays."""
        held = {name: getattr(self, name) for name in _REMEMBERED}
        held["noted"] = np.concatenate(self._noted) if self._noted else None
        held["marks"] = [mark[0] for mark in self._marks], np.array([mark[1] for mark in self._marks])
        held["times"] = list(self._times)
        return held | {"found": None if self.found is None else tuple(self.found)}

    @memory.setter
    def memory(self, saved: dict[str, Any]) -> None:
        for name in _REMEMBERED:
            setattr(self, name, saved[name])
        self._noted = [] if saved["noted"] is None else [saved["noted"]]
        self._marks = list(zip(*saved["marks"], strict=True))
        self._times = [(int(steps), float(t)) for steps, t in saved["times"]]
        self.found = None if saved["found"] is None else Growth(*saved["found"])

    def note(self, z: Matrix, compiled: bool = False, last: bool = False) -> bool:
        """Coupling variables after some more steps; True when it is time to look.

        Chunks of compiled steps that follow each other closely are let pass, but for the last one.
        """
        z = z[:, : self._core.plan.n_z : self._every]
        if not compiled:
            self._noted.append(z if self._every == 1 else z.copy())
            self.due -= len(z)
            return self.due <= 0
        self._pass_noted()
        self._mark(z)
        self._compiled += len(z)
        due = last or self._unseen + len(z) >= LOOK_COMPILED
        self._passed.append(z if due else z[-_KEPT:].copy())  # its memory may be used again
        self._unseen += len(z)
        return due

    def look(self, failed: bool = False) -> Growth | None:
        """Look at all steps that were noted or let pass so far; after a step that `failed` nothing is tried out."""
        self._pass_noted()
        blocks, self._passed, self._unseen = self._passed, [], 0
        if not blocks:
            return None
        if len(blocks) == 1 or (len(blocks[-1]) >= 4 * _SAMPLES and not failed):
            return self._look(blocks[-1], failed)
        return self._look(np.concatenate(blocks), failed)

    def _pass_noted(self) -> None:
        """The steps of the Python engine, as a block."""
        if self._noted:
            block = np.concatenate(self._noted)
            self._mark(block)
            self._passed.append(block)
            self._unseen += len(block)
            self.due += len(block)
            self._noted = []

    def _look(self, z: Matrix, failed: bool) -> Growth | None:
        """Look at the newest macro points, row by row."""
        later = max(self._look_every, min(self._steps // 4, 4 * self._look_every))
        self.due = later if self._steps >= LOOK else min(self._look_every, LOOK // 4)
        if self._off or self.found is not None:
            return None
        level = self._level
        if not self._scale:
            self._begin(np.abs(z[np.argmax(z.any(axis=1))]))
        if not (level > self._alert).any():
            return None
        with np.errstate(all="ignore"):  # sizes may be anything
            least = _SLIGHT**3 if self._mapped else _THREEFOLD**3
            risen = (level > self._alert) & ((level > least * self._lowest) | failed | (len(z) < 4 * _SAMPLES))
            self._alert = np.where(level > self._alert, _AGAIN * level, self._alert)
            length, growing = self._stretch(z) if risen.any() else (0, risen)
            columns = np.flatnonzero(growing & risen)
            if length and len(columns):
                m = int(columns[np.argmax(level[columns])])
                self.found = self._judged(z, m, length, failed)
        return self.found

    def look_at_short(self) -> Growth | None:
        """Look at a run that has ended after few steps."""
        core, rows = self._core, np.concatenate(self._first)
        n = len(rows) - 1
        if self._off or self.found is not None or not 3 <= n == self._steps < _SHORT:
            return None
        sizes, third = np.abs(rows), max(1, n // 3)
        begun, ended = sizes[: third + 1].max(axis=0), sizes[-third:].max(axis=0)
        grown = np.flatnonzero((ended > _TWOFOLD * begun) & (ended > self._given) & (begun > 0.0))
        if not len(grown) or not isinstance(core.windows, Uniform) or not self._able or not self._columns:
            return None
        if core.caller.seconds.sum() > _QUICK * n or not np.isfinite(ended).all():
            return None
        m = int(grown[np.argmax(ended[grown])])
        per_step = float(ended[m] / begun[m]) ** (1.0 / (n - third))
        H = core.windows.usual
        cause, stable = blame(core, H, sure=False, mapped=True, per_step=per_step, budget=Budget(_SHORT_TRIALS))
        if cause == "coupling":
            self.found = self._growth(m, float(ended[m]), per_step, H, cause, stable)
        return self.found

    # -- is it exponential? ----------------------------------------------------------------------------

    def _mark(self, z: Matrix) -> None:
        """Write down the largest values of the newest steps; every block passes here once."""
        began, self._steps = self._steps, self._steps + len(z)
        if self._steps < _SHORT:
            self._first.append(z.copy())
        self._times.append((self._steps, self._core.t))
        if len(self._times) > _MOST_MARKS:
            del self._times[1:-1:2]
        # counted from the end, so that the newest row is among them
        sizes = np.abs(z[:: -max(1, len(z) // _SAMPLES)][:_SAMPLES])
        if len(sizes) == _SAMPLES:
            quarters = sizes.reshape(4, _SAMPLES // 4, -1).max(axis=1)[::-1]
        else:
            quarters = sizes.max(axis=0)[np.newaxis]
        self._lowest = np.minimum(self._lowest, quarters.min(axis=0))
        for k, level in enumerate(quarters, start=1):
            self._mark_one(began + len(z) * k // len(quarters), level)
        self._level = quarters[-1]

    def _mark_one(self, step: int, level: Vector) -> None:
        """One more mark, or the last one extended where that is still short."""
        marks = self._marks
        if marks and step - (marks[-2][0] if len(marks) > 1 else 0) <= self._spacing:
            marks[-1] = step, np.maximum(marks[-1][1], level)
            return
        marks.append((step, level))
        if len(marks) > _MOST_MARKS:  # half as many from here on, old and new ones alike
            pairs = zip(marks[0::2], marks[1::2], strict=False)
            tail = marks[-1:] if len(marks) % 2 else []
            self._marks = [(b[0], np.maximum(a[1], b[1])) for a, b in pairs] + tail
            self._spacing *= 2

    def _stretch(self, z: Matrix) -> tuple[int, npt.NDArray[np.bool_]]:
        """The shortest stretch of steps over which some values rose from quarter to quarter; which ones.

        Tenfold, or threefold where the stretch is long: what comes of that is tried out. Twofold does where values turn
        round in every third step or more often.
        """
        for samples, stride in _SCALES:
            if samples * stride > len(z):
                break
            tail = z[::-stride][:samples]  # newest first; strides are odd, so that no alternation is missed
            quarters = np.abs(tail).reshape(4, samples // 4, -1).max(axis=1)[::-1]
            growing = _rising(quarters, self._factor(samples * stride))
            if stride == 1 and not growing.any():
                growing = _rising(quarters, _TWOFOLD) & (quarters[0] > _NOISE * quarters[-1])
                for m in np.flatnonzero(growing):
                    growing[m] = _turns_round(tail[:, m])
            if growing.any():
                return samples * stride, growing
        steps, sizes = np.array([mark[0] for mark in self._marks]), np.array([mark[1] for mark in self._marks])
        length = max(4 * _SHORTEST, len(z))
        while length <= self._steps:
            back = (self._steps - steps) * 4 // length
            rows = [sizes[back == k] for k in (3, 2, 1, 0)]
            if all(len(row) for row in rows):
                growing = _rising(np.array([row.max(axis=0) for row in rows]), self._factor(length))
                if growing.any():
                    return length, growing
            length += length // 2
        if _FEWEST <= len(z) == self._steps < _SHORTEST:
            growing = _rising(np.abs(z[-4:]), _TENFOLD) & (np.abs(z[-1]) > _ABSURD * self._scale)
            return _FEWEST, growing
        return 0, np.zeros(z.shape[1], dtype=bool)

    def _factor(self, length: int) -> float:
        """The rise from quarter to quarter that makes a stretch of so many steps worth a look at its cause."""
        if self._mapped and length >= _SAMPLES:
            return _SLIGHT
        return _THREEFOLD if length >= _LONG else _TENFOLD

    # -- whose growth is it? ---------------------------------------------------------------------------

    def _judged(self, z: Matrix, m: int, length: int, failed: bool) -> Growth | None:
        core = self._core
        size, before = float(np.abs(z[-min(length, len(z)) :, m]).max()), self._size_before(z, m, length)
        per_step = (size / before) ** (1.0 / (0.75 * length)) if before > 0.0 else np.inf
        H = self._step(length)
        sure = _turns_round(z[-max(_SHORTEST, min(length, _SAMPLES)) :, m])
        able = self._able and not failed and np.isfinite(H)
        cause, stable = "coupling" if sure else "unknown", np.nan
        if able and not (sure and self._steps + core.windows.left < _LONG):  # who is sure asks for a stable step only
            budget = self._budget
            before = budget.left
            cause, stable = blame(core, H, sure, self._mapped, per_step, budget)
            self._spent += before - budget.left
            cause = "model" if cause == "unknown" and self._own else cause  # as it was when that could be tried
        self._own = cause == "model"
        if cause == "model":
            self._alert = np.maximum(self._alert, (_AFTER_MAP if self._mapped else _AFTER_TRIAL) * np.abs(z[-1]))
            return None
        if cause == "unknown" and size < _ABSURD * self._scale:
            return None
        return self._growth(m, size, per_step, H, cause, stable)

    def _step(self, length: int) -> float:
        """The macro step that these steps grew with: their mean where steps have become longer meanwhile."""
        core = self._core
        H = core.history.steps[0] if core.history.steps else core.windows.first_step
        steps, times = np.array(self._times).T
        mean = (core.t - float(np.interp(self._steps - length, steps, times))) / length
        return mean if mean < _STEADY * H else H

    def _size_before(self, z: Matrix, m: int, length: int) -> float:
        """The largest value in the first quarter of that many steps."""
        quarter = length // 4
        if length <= len(z):
            return float(np.abs(z[len(z) - length : len(z) - length + quarter, m]).max())
        sizes = [mark[1][m] for mark in self._marks if 3 * quarter <= self._steps - mark[0] <= length]
        return float(max(sizes, default=0.0))

    def _growth(self, m: int, size: float, per_step: float, H: float, cause: str, stable: float = np.nan) -> Growth:
        core, method = self._core, self._core.method
        name = core.plan.z_labels[m * self._every]
        what = (
            f"values grow without bound: '{name}' has reached {size:.2g} at t = {core.t:.6g}, about "
            f"times {_shown(per_step)} in every macro step"
        )
        tried = f"take a step of about {stable:.3g} (tried), or try"
        step = tried if stable == stable else f"try a much smaller step than {H:.3g}, or"
        stuck = [
            n for n, s in zip(core.plan.names, core.plan.subsystems, strict=True) if not has_capability(s, "rollback")
        ]
        if not method.explicit:
            other = "another degree"
        elif stuck:
            other = f"GaussSeidel in another order (SemiImplicit and Implicit need rollback, which '{stuck[0]}' lacks)"
        else:
            other = "SemiImplicit or Implicit"
        if cause == "coupling":
            text = f"{what}; {method.label} is unstable here: {step} {other}"
        else:
            text = (
                f"{what}; this is an unstable coupling by {method.label} or the model's own growth: run it again with "
                f"half the step (growth of the model stays), or try {other}"
            )
        return Growth(core.t, name, size, per_step, text)


def _shown(factor: float) -> str:
    """A factor per step with two digits of what it differs from 1.

    >>> _shown(1.1263), _shown(1.00042), _shown(3.0)
    ('1.13', '1.00042', '3')
    """
    if not 1e-9 < factor - 1.0 < 1.0:
        return f"{factor:.2g}"
    return f"{factor:.{1 - floor(log10(factor - 1.0))}f}"


def _rising(sizes: Matrix, factor: float) -> npt.NDArray[np.bool_]:
    """In which columns each of four rows is at least so many times the one before, the first not being nothing."""
    rises: npt.NDArray[np.bool_] = (sizes[1:] >= factor * sizes[:-1]).all(axis=0) & (sizes[0] > 0.0)
    return rises


def _turns_round(values: npt.NDArray[np.float64]) -> bool:
    """True when a sequence turns round in every third step or more often: nothing that the steps resolve does."""
    change = np.diff(values / np.abs(values).max())
    turns = np.sign(change[1:]) * np.sign(change[:-1]) < 0.0
    bend, travel = np.abs(np.diff(change)).sum(), (np.abs(change[1:]) + np.abs(change[:-1])).sum()
    return bool(turns.mean() >= 0.25 and bend >= 0.5 * travel)
