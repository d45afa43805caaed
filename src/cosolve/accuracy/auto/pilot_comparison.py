"""A run compared with its pilot run: an answer that differs by more than the error of the pilot explains is in doubt.

A shadow sees what the exchange does between the points of its run, and not a contact that begins and ends between two
of them. Another grid does. So the run is compared with its pilot, at the pilot's macro points.
"""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np

from cosolve.accuracy.auto.trial import Trial
from cosolve.basics.arrays import Matrix, Vector

EXPLAINED = 1.6  # times the pilot's error: so far a run may move its pilot
HALF = 0.5  # of the values that another run of the search has reached: who stays below has missed something
RUNS = 4  # that are made until two agree
LEAST, MOST = 4.0, 64.0  # factors by which tolerances are tightened from run to run
_NOISE = 1e-15  # of the largest output: what is smaller is zero but for rounding
_SIDE = 4  # points on each side that are looked at


class ReferenceComparison:
    """Sees a run and compares it with outputs `y` at the times `t`, where each entry has a `size` to be relative to.

    >>> t = np.linspace(0, 1, 11)
    >>> witness = ReferenceComparison(t, np.sin(t)[:, np.newaxis] + 1e-3, np.ones(1))
    >>> fine = np.linspace(0, 1, 40)
    >>> for part in (fine[:7], fine[7:]):
    ...     witness.see(part, np.sin(part)[:, np.newaxis])
    >>> round(witness.moved, 5)
    0.001
    """

    def __init__(self, t: Vector, y: Matrix, size: Vector) -> None:
        size = np.maximum(size, np.abs(y).max(axis=0, initial=0.0))
        self._t, self._y, self.size = t, y, size
        self.values, self._unsure = np.full(y.shape, nan), np.zeros(y.shape)
        self._done = 0
        self._rows_t, self._rows_y = np.zeros(0), np.zeros((0, y.shape[1]))

    def see(self, t: Vector, y: Matrix) -> None:
        """More macro points of the run."""
        self._rows_t, self._rows_y = np.concatenate([self._rows_t, t]), np.concatenate([self._rows_y, y])
        if len(self._rows_t) > 2 * _SIDE:
            self._interpolate(float(self._rows_t[-_SIDE]))
            self._rows_t, self._rows_y = self._rows_t[-2 * _SIDE :].copy(), self._rows_y[-2 * _SIDE :].copy()

    @property
    def seen(self) -> dict[str, Any]:
        """All that it holds, as arrays and numbers."""
        held = {"t": self._t, "y": self._y, "size": self.size, "values": self.values, "unsure": self._unsure}
        return held | {"done": self._done, "rows_t": self._rows_t, "rows_y": self._rows_y}

    @seen.setter
    def seen(self, held: dict[str, Any]) -> None:
        width = self._y.shape[1]
        self.values, self._unsure = (np.array(held[name]).reshape(self._y.shape) for name in ("values", "unsure"))
        self._done = int(held["done"])
        self._rows_t, self._rows_y = np.array(held["rows_t"]), np.array(held["rows_y"]).reshape(-1, width)

    def _interpolate(self, until: float) -> None:
        """The run at the times asked for, and how far what is left of a time and what is right of it disagree."""
        times, rows = self._rows_t, self._rows_y
        while self._done < len(self._t) and self._t[self._done] <= until:
            n, t = self._done, float(self._t[self._done])
            k = int(np.searchsorted(times, t))
            self._done += 1
            if times[k] == t:
                self.values[n] = rows[k]
                continue
            first = max(0, min(k - _SIDE // 2, len(times) - _SIDE))
            self.values[n] = _through(times[first : first + _SIDE], rows[first : first + _SIDE], t)
            left = _through(times[max(0, k - _SIDE) : k], rows[max(0, k - _SIDE) : k], t)
            right = _through(times[k : k + _SIDE], rows[k : k + _SIDE], t)
            self._unsure[n] = np.abs(left - right)

    @property
    def reached(self) -> Vector:
        """The largest magnitudes of the run, at the times asked for."""
        values: Vector = np.abs(self.values[: self._done]).max(axis=0, initial=0.0)
        return values

    @property
    def missed(self) -> float:
        """How far it stays below a run that reached more than twice as much; 0 where there is none.

        Runs that agree because they step over the same pulse are given away by one that has met it.
        """
        below = np.where(self.reached < HALF * self.size, self.size - self.reached, 0.0)
        return worst(below[np.newaxis], self.size) if self._done == len(self._t) else 0.0

    @property
    def moved(self) -> float:
        """How far the run is from what it is compared with, as long as both went on.

        What interpolation cannot know, between two points with a kink, does not count.
        """
        if len(self._rows_t):
            self._interpolate(float(self._rows_t[-1]))
        seen = slice(0, self._done)
        gap = np.abs(self.values[seen] - self._y[seen])
        # a pulse that only one of the two has met: its size is that of the run that met it
        size = np.maximum(self.size, self.reached)
        return worst(np.where(gap > self._unsure[seen], gap - self._unsure[seen], 0.0 * gap), size)


def _through(nodes: Vector, values: Matrix, t: float) -> Vector:
    """The polynomial through these points, at `t`."""
    weights = [np.prod([(t - b) / (a - b) for b in nodes if b != a]) for a in nodes]
    found: Vector = np.array(weights) @ values
    return found


def difference(run: Trial, other: Trial) -> float:
    """How far a run is from another one, at the points of that."""
    witness = ReferenceComparison(other.t, other.y, other.size)
    witness.see(run.t, run.y)
    return witness.moved


def worst(differences: Matrix, size: Vector) -> float:
    """The largest difference relative to what it is compared with; entries that are zero throughout do not count.

    >>> worst(np.array([[0.1, 1.0, 0.0]]), np.array([1.0, 100.0, 0.0]))
    0.1
    """
    if not np.isfinite(differences).all():
        return nan
    seen = size > _NOISE * size.max(initial=0.0)
    return float((np.abs(differences[:, seen]) / size[seen]).max(initial=0.0))
