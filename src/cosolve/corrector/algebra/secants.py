"""Differences of past iterates as tall, skinny matrices: what Anderson, IQN-ILS and IQN-IMVJ have in common.

Columns are `dr` and `dz` of pairs of iterates. `Secants.fit(r)` finds the `c` that makes `dR c` closest to `r`, by
orthogonal bases of both (see `span.py`), so a correction reads the columns a few times and never factorises them.

The newest columns come first; an older one counts only with what it adds to them, and is dropped for good when that is

- shorter than `tol` times the column itself (the QR2 filter of Haelterman et al. 2016), or
- short (`DOUBTFUL`) and steep: it claims that `z` must change `STEEP` times more per change of `r` than any column does
  along a direction that is well determined. Of two columns nearly alike the difference is then no slope of the
  interface but the curvature or the noise between them. Columns of past steps are doubted earlier.

The second rule lets a linear problem keep what it has learnt for many steps, without handing worn-out columns to a
nonlinear one. Its constants are found by trial (`benchmarks/kratos.md`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.scale import to_unit
from cosolve.corrector.algebra.span import Span

#: Columns cannot be told apart that are closer to each other than rounding.
SMALLEST_FILTER = 1e-14

#: See above: in the current step, and in past ones; and how much slopes may differ.
DOUBTFUL = (1e-4, 1e-3)
STEEP = 10.0


class Secants:
    """At most `capacity` difference columns over `n` coupling variables, grouped by macro step.

    >>> import numpy as np
    >>> s = Secants(3, capacity=2, tol=1e-10)
    >>> s.add(np.array([1.0, 0.0, 0.0]), np.array([2.0, 0.0, 0.0]))
    >>> s.add(np.array([1.0, 1.0, 0.0]), np.array([0.0, 3.0, 0.0]))
    >>> c = s.fit(np.array([0.0, 1.0, 5.0]))
    >>> s.dr(c).round(12)                               # closest to (0, 1, 5) in the span of both columns
    array([0., 1., 0.])
    >>> s.dz(c).round(12)
    array([-2.,  3.,  0.])
    """

    _followers: Matrix = np.zeros((0, 0))  # of states in files that were written before there were any
    _unit = 1.0  # columns are held multiplied by it, so that their squares are numbers

    def __init__(self, n: int, capacity: int, tol: float, followers: int = 0) -> None:
        self.n, self.capacity, self.tol = n, min(capacity, n), tol
        self._r, self._z = Span(n, self.capacity), Span(n, self.capacity)  # each multiplied by its weight
        self._weight_r: Vector | None = None
        self._weight_z: Vector | None = None
        self._newest_first: list[int] = []
        self._step: dict[int, int] = {}
        self._now = 0
        self._followers = np.zeros((self.capacity, followers))  # dz - dr of rows that build no fit

    def __len__(self) -> int:
        return len(self._newest_first)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_r": self._r.state(), "_z": self._z.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({**state, "_r": Span.of(state["_r"]), "_z": Span.of(state["_z"])})

    def weigh(self, weight: Vector) -> None:
        """Measure residuals in units of `1 / weight` from now on."""
        self._r.scale(weight if self._weight_r is None else weight / self._weight_r, self._newest_first)
        self._weight_r = weight

    def weigh_z(self, weight: Vector) -> None:
        """Measure coupling variables in units of `1 / weight` from now on; matters where steepness is judged."""
        self._z.scale(weight if self._weight_z is None else weight / self._weight_z, self._newest_first)
        self._weight_z = weight

    def next_step(self, keep: int) -> None:
        """A new macro step begins; columns of more than `keep` steps ago are forgotten."""
        self._now += 1
        self._keep([k for k in self._newest_first if self._now - self._step[k] <= keep])

    def add(self, dr: Vector, dz: Vector) -> None:
        """Learn the pair of differences, those of followers last; one that holds no information is ignored."""
        if not (dr[: self.n].any() and np.isfinite(dr).all() and np.isfinite(dz).all()):
            return
        if len(self) >= self.capacity:
            self._keep(self._newest_first[: self.capacity - 1])
        k = next(k for k in range(self.capacity) if k not in self._step)
        if not self._newest_first:
            self._unit = to_unit(dr[: self.n])
        own_r, own_z = dr[: self.n] * self._unit, dz[: self.n] * self._unit
        for span, v in ((self._r, _times(own_r, self._weight_r)), (self._z, _times(own_z, self._weight_z))):
            span.free_columns(self._newest_first)
            span.put(k, v)
        self._newest_first.insert(0, k)
        self._step[k] = self._now
        if self._followers.shape[1]:
            self._followers[k] = (dz - dr)[self.n :]

    def fit(self, r: Vector) -> Vector:
        """Coefficients `c`, one for every place of a column, that bring `dr(c)` closest to `r`."""
        c = np.zeros(self.capacity)
        if self._newest_first:
            Q, T, size = self._filtered()
            weighed = _times(r * self._unit, self._weight_r)
            c[self._newest_first] = _triangular(T, Q.T @ (self._r.basis @ weighed)) / size
        return c

    def dr(self, c: Vector) -> Vector:
        """`dR c`."""
        return _divided(self._r.combined(c), self._weight_r) / self._unit

    def dz(self, c: Vector) -> Vector:
        """`dZ c`."""
        return _divided(self._z.combined(c), self._weight_z) / self._unit

    def followed(self, c: Vector) -> Vector:
        """`(dZ - dR) c` of the followers."""
        return c @ self._followers

    def following(self) -> Matrix:
        """The kept columns of the followers as rows, in the order of `pairs`."""
        return self._followers[self._newest_first]

    def pairs(self) -> tuple[Matrix, Matrix, Matrix]:
        """The kept columns as rows: `dR`, `dZ`, and `P` with `fit(r)[kept] = P r`."""
        if not self._newest_first:
            return np.zeros((0, self.n)), np.zeros((0, self.n)), np.zeros((0, self.n))
        Q, T, size = self._filtered()
        chosen = np.eye(self.capacity)[self._newest_first]
        P = (_triangular(T, Q.T) / size[:, np.newaxis]) @ self._r.basis
        return self.dr(chosen), self.dz(chosen), _times(P, self._weight_r) * self._unit

    def _filtered(self) -> tuple[Matrix, Matrix, Vector]:
        """Coordinates of the kept columns of `dR`, each divided by its `size`, as `Q T`; drops all other columns."""
        order = self._newest_first
        R, Z = self._r.coefficients[:, order], self._z.coefficients[:, order]
        size: Vector = np.linalg.norm(R, axis=0)
        R, Z = R / size, Z / size
        Q, Y, T = np.zeros_like(R), np.zeros_like(Z), np.zeros((len(order), len(order)))
        kept: list[int] = []
        steepest = 0.0
        for i in range(len(order)):
            m = len(kept)
            inside = R[:, i] @ Q[:, :m]
            rest = R[:, i] - Q[:, :m] @ inside
            again = rest @ Q[:, :m]
            rest -= Q[:, :m] @ again
            inside += again
            height = float(np.sqrt(rest @ rest))
            if not height > self.tol:
                continue
            slope = (Z[:, i] - Y[:, :m] @ inside) / height
            steepness = float(np.sqrt(slope @ slope))
            if height > DOUBTFUL[self._step[order[i]] < self._now]:
                steepest = max(steepest, steepness)
            elif steepness > STEEP * steepest:
                continue
            Q[:, m], Y[:, m] = rest / height, slope
            T[:m, m], T[m, m] = inside, height
            kept.append(i)
        m = len(kept)
        if m < len(order):
            self._keep([order[i] for i in kept])
        return Q[:, :m], T[:m, :m], size[kept]

    def _keep(self, chosen: list[int]) -> None:
        for k in set(self._newest_first) - set(chosen):
            del self._step[k]
        self._newest_first = chosen


def _times(v: Vector, weight: Vector | None) -> Vector:
    return v if weight is None else v * weight


def _divided(v: Vector, weight: Vector | None) -> Vector:
    return v if weight is None else v / weight


def _triangular(T: Matrix, b: Matrix) -> Matrix:
    """`T^-1 b` for an upper triangular `T`."""
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(T, b))
