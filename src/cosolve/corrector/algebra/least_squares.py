"""The base of the correctors that fit differences of past iterates: one way to learn, to balance units, to forget."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_number, nonzero, whole
from cosolve.basics.scale import to_unit
from cosolve.corrector.algebra.labels import variables_of
from cosolve.corrector.algebra.secants import SMALLEST_FILTER, Secants
from cosolve.corrector.base import Corrector
from cosolve.errors import SetupError


class LeastSquares(Corrector):
    """Learns a pair of differences `dr`, `dz` per iteration, the one to the converged iterate included.

    A subclass defines `correct` in terms of `self._secants`, after calling `self._learn(z, r)`. Differences of the last
    `reuse` macro steps stay; there are never more than `columns` of them.

    The last `followers` rows of `z` and `r` build no fit: they are corrected by the combination of past iterates that
    the other rows ask for (further samples of a waveform, data that are exchanged but not fitted).
    """

    #: how many rows follow, see `start_run`
    followers = 0

    def __init__(self, reuse: int, initial: float, filter_tol: float, columns: int) -> None:
        name = type(self).__name__
        self.reuse, self.initial = whole(name, "reuse", reuse, 0), nonzero(name, "initial", initial)
        if not (is_number(filter_tol) and SMALLEST_FILTER <= filter_tol < 1):
            raise SetupError(f"{name}: filter_tol must be from {SMALLEST_FILTER:g} to below 1, not {filter_tol!r}")
        self.filter_tol, self.columns = filter_tol, int(columns)
        self._begin(())

    def start_run(self, labels: Sequence[str], followers: int = 0) -> None:
        """Forget everything at the start of a run.

        Parameters
        ----------
        labels : sequence of str
            Names of the coupling variables, one per entry of `z` that takes part in the fit.
        followers : int, default 0
            Number of further entries of `z` at its end that follow the combination found for the others.
        """
        self.followers = followers
        self._begin(labels)

    def _begin(self, labels: Sequence[str]) -> None:
        self._secants = Secants(len(labels), self.columns, self.filter_tol, self.followers)
        self._balance, self._balance_z = Balance(labels), Balance(labels)
        self._last: tuple[Vector, Vector] | None = None

    def start_step(self) -> None:
        self._last = None
        self._secants.next_step(self.reuse)

    def accept(self, z: Vector, r: Vector) -> None:
        self._learn(z, r)

    def _learn(self, z: Vector, r: Vector) -> None:
        n = len(z) - self.followers
        self._balance.learn(r[:n])
        weight = self._balance.new_weight()
        if weight is not None:
            self._secants.weigh(weight)
        if self._last is not None:
            dz = z - self._last[0]
            self._balance_z.learn(dz[:n])
            weight = self._balance_z.new_weight()
            if weight is not None:
                self._secants.weigh_z(weight)
            self._secants.add(r - self._last[1], dz)
        self._last = z.copy(), r.copy()


class Balance:
    """Row weights that let every coupling variable (a scalar, or a whole field) count alike in a least-squares fit.

    A displacement field in metres would vanish next to a force in newtons. Each variable is measured in units of the
    sum of its residual norms so far (the residual-sum scaling of preCICE); weights change only by more than a factor of
    ten, because all columns have to follow.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        names = variables_of(labels)
        self._starts = np.array([i for i, name in enumerate(names) if i == 0 or name != names[i - 1]], dtype=np.intp)
        self._counts = np.diff(np.append(self._starts, len(names)))
        self._sums = np.zeros(len(self._starts))
        self._units = np.ones(len(self._starts))

    def learn(self, r: Vector) -> None:
        """Take note of a residual."""
        r = r * to_unit(r)
        squares = np.add.reduceat(r * r, self._starts)
        total = squares.sum()
        if np.isfinite(total) and total > 0:
            self._sums += np.sqrt(squares / self._counts / total)

    def new_weight(self) -> Vector | None:
        """Weights per row when they should change, otherwise None."""
        if len(self._starts) == 1:
            return None
        units = np.where(self._sums > 0, self._sums, self._sums.max())
        if not units.any():
            return None
        ratio = units / units.max() / self._units
        if (ratio > 0.1).all() and (ratio < 10.0).all():
            return None
        self._units = units / units.max()
        return np.repeat(1.0 / self._units, self._counts)
