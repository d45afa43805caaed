"""A square matrix of low rank, `sum_k a_k b_k^T`, that grows by columns and is compressed when it has too many."""

from __future__ import annotations

import numpy as np

from cosolve.subsystem.port import Matrix, Vector

#: Singular values below this fraction of the largest are rounding.
_ROUNDING = 1e-15


class LowRank:
    """`A^T B` with the rows of `A`, `B` as the vectors `a_k`, `b_k`; never more than `rank` of them.

    When that many are reached, the smallest singular values go (lossless as long as `rank` is at least `n`).

    >>> import numpy as np
    >>> m = LowRank(2, rank=2)
    >>> m.add(np.array([1.0, 0.0]), np.array([0.0, 2.0]))
    >>> m @ np.array([0.0, 1.0])
    array([2., 0.])
    """

    def __init__(self, n: int, rank: int) -> None:
        self.n, self.rank = n, rank
        self._used = 0
        self._A, self._B = np.zeros((0, n)), np.zeros((0, n))

    def __len__(self) -> int:
        return self._used

    def __matmul__(self, x: Vector) -> Vector:
        """The matrix times a vector, or times the rows of a matrix of vectors."""
        return (x @ self._B[: self._used].T) @ self._A[: self._used]

    def transposed(self, x: Vector) -> Vector:
        """The transposed matrix times a vector."""
        return (x @ self._A[: self._used].T) @ self._B[: self._used]

    def add(self, a: Matrix, b: Matrix) -> None:
        """Add `a b^T`; two-dimensional arguments hold one vector per row."""
        a, b = np.atleast_2d(a), np.atleast_2d(b)
        if self._used + len(a) > self.rank:
            self._compress(a, b)
            return
        while self._used + len(a) > len(self._A):
            more = np.zeros((min(max(4, len(self._A)), self.rank - len(self._A)), self.n))
            self._A, self._B = np.concatenate([self._A, more]), np.concatenate([self._B, more])
        self._A[self._used : self._used + len(a)] = a
        self._B[self._used : self._used + len(a)] = b
        self._used += len(a)

    def _compress(self, a: Matrix, b: Matrix) -> None:
        """Keep the largest singular values, and a quarter of the room free so that this is rare."""
        QA, RA = np.linalg.qr(np.concatenate([self._A[: self._used], a]).T)
        QB, RB = np.linalg.qr(np.concatenate([self._B[: self._used], b]).T)
        U, s, VT = np.linalg.svd(RA @ RB.T)
        room = self.rank if self.rank >= self.n else max(1, self.rank - max(1, self.rank // 4))
        keep = min(room, int(np.count_nonzero(s > _ROUNDING * s[0])))
        self._A, self._B = np.zeros((self.rank, self.n)), np.zeros((self.rank, self.n))
        self._A[:keep] = (QA @ (U[:, :keep] * s[:keep])).T
        self._B[:keep] = (QB @ VT[:keep].T).T
        self._used = keep
