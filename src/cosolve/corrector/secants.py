"""Differences of past iterates as tall, skinny matrices: what Anderson, IQN-ILS and IQN-IMVJ have in common.

Columns are `dr` and `dz` of pairs of iterates. `Secants.fit(r)` finds the `c` that makes `dR c` closest to `r` by
seminormal equations with one refinement: the small Gram matrix is kept up to date column by column, so a correction
reads the columns a few times and never factorises them. The newest columns come first; a column that lies within `tol`
of the span of newer ones is dropped for good (the QR2 filter of Haelterman et al. 2016). Nothing here is `n x n`.
"""

from __future__ import annotations

import numpy as np

from cosolve.subsystem.port import Matrix, Vector

#: The Gram matrix cannot tell columns apart that are closer to each other than about the root of the rounding unit.
SMALLEST_FILTER = 1e-7


class Secants:
    """At most `capacity` difference columns over `n` coupling variables, grouped by macro step.

    >>> import numpy as np
    >>> s = Secants(3, capacity=2, tol=1e-6)
    >>> s.add(np.array([1.0, 0.0, 0.0]), np.array([2.0, 0.0, 0.0]))
    >>> s.add(np.array([1.0, 1.0, 0.0]), np.array([0.0, 3.0, 0.0]))
    >>> c = s.fit(np.array([0.0, 1.0, 5.0]))
    >>> s.dr(c)                                         # closest to (0, 1, 5) in the span of both columns
    array([0., 1., 0.])
    >>> s.dz(c)
    array([-2.,  3.,  0.])
    """

    def __init__(self, n: int, capacity: int, tol: float) -> None:
        self.n, self.capacity, self.tol = n, min(capacity, n), tol
        # one column of the theory per row; the memory of rows that are never used is never claimed
        self._room_R, self._room_Z = np.zeros((self.capacity, n)), np.zeros((self.capacity, n))
        self._used = 0
        self._gram: Matrix = np.zeros((self.capacity, self.capacity))
        self._weight: Vector | None = None  # squares of row weights
        self._newest_first: list[int] = []
        self._step: dict[int, int] = {}
        self._now = 0

    def __len__(self) -> int:
        return len(self._newest_first)

    @property
    def _R(self) -> Matrix:
        return self._room_R[: self._used]

    @property
    def _Z(self) -> Matrix:
        return self._room_Z[: self._used]

    def weigh(self, weight: Vector | None) -> None:
        """Measure residuals in units of `1 / weight` from now on."""
        self._weight = None if weight is None else weight * weight
        weighed = self._R if self._weight is None else self._R * self._weight
        self._gram[: self._used, : self._used] = self._R @ weighed.T

    def next_step(self, keep: int) -> None:
        """A new macro step begins; columns of more than `keep` steps ago are forgotten."""
        self._now += 1
        self._keep([k for k in self._newest_first if self._now - self._step[k] <= keep])

    def add(self, dr: Vector, dz: Vector) -> None:
        """Learn the pair of differences; one that holds no information is ignored."""
        if not (dr.any() and np.isfinite(dr).all() and np.isfinite(dz).all()):
            return
        if len(self) >= self.capacity:
            self._keep(self._newest_first[: self.capacity - 1])
        k = self._free_row()
        self._R[k], self._Z[k] = dr, dz
        products = self._R @ (dr if self._weight is None else dr * self._weight)
        self._gram[k, : self._used] = self._gram[: self._used, k] = products
        self._newest_first.insert(0, k)
        self._step[k] = self._now

    def fit(self, r: Vector) -> Vector:
        """Coefficients `c`, one per stored row, that bring `dr(c)` closest to `r`."""
        c = np.zeros(len(self._R))
        if not self._newest_first:
            return c
        L, size = self._filtered()
        kept = self._newest_first
        rest = r
        for _ in range(2):
            b = (self._R @ (rest if self._weight is None else rest * self._weight))[kept] / size
            half = _triangular(L, b, lower=True)
            c[kept] += _triangular(L.T, half) / size
            rest = r - self.dr(c)
        return c

    def dr(self, c: Vector) -> Vector:
        """`dR c`."""
        return c @ self._R

    def dz(self, c: Vector) -> Vector:
        """`dZ c`."""
        return c @ self._Z

    def pairs(self) -> tuple[Matrix, Matrix, Matrix]:
        """The kept columns as rows: `dR`, `dZ`, and `P` with `fit(r)[kept] = P r`."""
        if not self._newest_first:
            return np.zeros((0, self.n)), np.zeros((0, self.n)), np.zeros((0, self.n))
        L, size = self._filtered()
        R, Z = self._R[self._newest_first], self._Z[self._newest_first]
        weighed = (R if self._weight is None else R * self._weight) / size[:, np.newaxis]
        P = _triangular(L.T, _triangular(L, weighed, lower=True)) / size[:, np.newaxis]
        return R, Z, P

    def _filtered(self) -> tuple[Matrix, Vector]:
        """Cholesky factor of the normalised Gram matrix, newest column first, after dropping dependent columns."""
        order = self._newest_first
        size = np.sqrt(np.diag(self._gram)[order])
        G = self._gram[np.ix_(order, order)] / np.outer(size, size)
        L = np.zeros_like(G)
        kept: list[int] = []
        for i in range(len(order)):
            m = len(kept)
            row = _triangular(L[:m, :m], G[kept, i], lower=True) if m else np.zeros(0)
            height = G[i, i] - row @ row
            if height > self.tol**2:
                L[m, :m], L[m, m] = row, np.sqrt(height)
                kept.append(i)
        if len(kept) < len(order):
            self._keep([order[i] for i in kept])
        return L[: len(kept), : len(kept)], size[kept]

    def _keep(self, chosen: list[int]) -> None:
        for k in set(self._newest_first) - set(chosen):
            self._R[k] = 0.0
            self._Z[k] = 0.0
            self._gram[k] = self._gram[:, k] = 0.0
            del self._step[k]
        self._newest_first = chosen

    def _free_row(self) -> int:
        for k in range(self._used):
            if k not in self._step:
                return k
        self._used += 1
        return self._used - 1


def _triangular(T: Matrix, b: Matrix, *, lower: bool = False) -> Matrix:
    """`T^-1 b` for a triangular `T`."""
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(T, b, lower=lower))
