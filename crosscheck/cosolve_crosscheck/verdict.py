"""Two traces compared, and the word for what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosolve_crosscheck.tools import plain
from cosolve_crosscheck.worker import Outcome

EQUAL, CLOSE = 1e-12, 1e-6
_SAME_TIME = 1e-6  # of a step


@dataclass(frozen=True)
class Difference:
    """The largest difference over all columns and points, relative to max(1, largest value of the column)."""

    size: float
    name: str = ""
    t: float = 0.0
    ours: float = 0.0
    theirs: float = 0.0
    points: int = 0
    where: str = ""

    @property
    def word(self) -> str:
        """How near the two are."""
        return "equal" if self.size <= EQUAL else "close" if self.size <= CLOSE else "differs"


def difference(ours: Mapping[str, Any], theirs: Mapping[str, Any], step: float) -> Difference | str:
    """Compare at the points and in the columns that both have; a sentence where there are none."""
    mine, other = _common(ours["t"], theirs["t"], step)
    names = {plain(name): name for name in theirs if name != "t"}
    pairs = [(name, names[plain(name)]) for name in ours if name != "t" and plain(name) in names]
    if not len(mine):
        return "no common points in time"
    if not pairs:
        return "no numeric variables in common"
    t = ours["t"][mine]
    worst, apart = Difference(0.0, points=len(mine)), np.zeros(len(mine), dtype=bool)
    for name, there in pairs:
        a, b = ours[name][mine], theirs[there][other]
        scale = max(1.0, float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0)))
        with np.errstate(invalid="ignore"):
            gap = np.abs(a - b) / scale
        gap[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
        gap[np.isnan(gap)] = np.inf
        apart |= gap > EQUAL
        k = int(np.argmax(gap))
        if gap[k] > worst.size:
            worst = Difference(float(gap[k]), name, float(t[k]), float(a[k]), float(b[k]), len(mine))
    if worst.size > EQUAL:
        return Difference(**{**worst.__dict__, "where": _where(apart, t)})
    return worst


def _common(t: Any, other: Any, step: float) -> tuple[Any, Any]:
    """Places of the points that both have; of several at one instant the last, which is after the event."""
    places = np.searchsorted(other, t + _SAME_TIME * step, side="right") - 1
    same = (places >= 0) & (np.abs(other[np.maximum(places, 0)] - t) <= _SAME_TIME * step)
    return np.flatnonzero(same), places[same]


def _where(apart: Any, t: Any) -> str:
    first, last = np.flatnonzero(apart)[[0, -1]]
    if first == last == 0:
        return "at the start only"
    return f"from t = {t[first]:.6g} on" if last == len(t) - 1 else f"t = {t[first]:.6g} ... {t[last]:.6g}"


def judged(
    ours: Outcome, theirs: Outcome, step: float, t_end: float, other: str = "FMPy"
) -> tuple[str, str, Difference | None]:
    """Verdict and reason, and the difference where both ran."""
    if ours.late:
        return "timeout", f"cosolve {ours.crash}; {_other(theirs, other)}", None
    if ours.crash:
        return "crash", f"cosolve {ours.crash}; {_other(theirs, other)}", None
    if not ours.ran and not theirs.ran:
        return "both refuse", f"cosolve: {ours.error}; {_other(theirs, other)}", None
    if not ours.ran:
        return f"only {other}", f"cosolve: {ours.error}", None
    if not theirs.ran:
        return "only cosolve", _other(theirs, other), None
    mine, other_end = ours.traces[0]["t"][-1], theirs.traces[0]["t"][-1]
    if ours.error and other_end > t_end - 0.5 * step:
        return f"only {other}", f"cosolve stops at t = {mine:.6g}: {ours.error}", None
    if len(ours.traces[0]) == 1:  # time only
        return "equal", "it has no numeric outputs: both make the run, and there is nothing to compare", Difference(0.0)
    found = difference(ours.traces[0], theirs.traces[0], step)
    if isinstance(found, str):
        return "differs", found, None
    said = _reason(found, theirs, len(ours.traces[0]["t"]), other)
    if ours.error:
        said = "; ".join(
            filter(None, [said, f"both stop early, {other} at t = {other_end:.6g}, cosolve: {ours.error}"])
        )
    return found.word, said, found


def _other(theirs: Outcome, other: str) -> str:
    how = theirs.crash or (theirs.error and f"refuses: {theirs.error}") or "runs"
    return f"{other}: {how}" if theirs.error and not theirs.crash else f"{other} {how}"


def _reason(found: Difference, theirs: Outcome, points: int, other: str) -> str:
    said = []
    if found.size > EQUAL:
        said.append(
            f"{found.name} at t = {found.t:.6g}: {found.ours:.9g} here, {found.theirs:.9g} in {other} ({found.where})"
        )
    if theirs.crash:
        said.append(f"{other} {theirs.crash}")
    if found.points < points - 1:
        said.append(f"{other} has {found.points} of {points} points")
    return "; ".join(said)


def repeated(ours: Outcome) -> str:
    """What the second run gave, against the first."""
    if not ours.ran:
        return ""
    if len(ours.traces) < 2:
        return "refused: " + ours.error if ours.error else ours.crash or "missing"
    first, second = ours.traces
    if all(np.array_equal(first[name], second[name], equal_nan=True) for name in first):
        return "same bits"
    found = difference(second, first, 1.0 if len(first["t"]) < 2 else float(first["t"][1] - first["t"][0]))
    return found if isinstance(found, str) else f"differs by {found.size:.2g} ({found.name}, {found.where})"
