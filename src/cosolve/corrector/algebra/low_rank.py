"""A matrix of low rank, `sum_k a_k b_k^T`, that grows by columns and is compressed when it has too many."""

from __future__ import annotations

import numpy as np

from cosolve.basics.arrays import Matrix, Vector

#: The Gram matrix does not know directions that are shorter than this fraction of the longest.
_SHORT = 1e-7


class LowRank:
    """`A^T B` with the rows of `A`, `B` as the vectors `a_k`, `b_k`; never more than `rank` of them.

    When there would be more, the smallest singular values go. A matrix that is no larger than `rank` is held as it is.
    It is square, `n x n`, unless `rows` says otherwise.

    >>> import numpy as np
    >>> m = LowRank(3, rank=2)
    >>> m.add(np.array([1.0, 0.0, 0.0]), np.array([0.0, 2.0, 0.0]))
    >>> m @ np.array([0.0, 1.0, 5.0])
    array([2., 0., 0.])
    """

    def __init__(self, n: int, rank: int, rows: int | None = None) -> None:
        self.n, self.rank = n, rank
        rows = n if rows is None else rows
        self._dense = np.zeros((rows, n)) if n <= rank else None
        self._used = 0
        # the memory of rows that are never used is never claimed
        size = 0 if n <= rank else rank
        self._A, self._B = np.zeros((size, rows)), np.zeros((size, n))

    def __len__(self) -> int:
        return self._used

    def __matmul__(self, x: Vector) -> Vector:
        """The matrix times a vector, or times each row of `x`."""
        if self._dense is not None:
            return x @ self._dense.T
        return (x @ self._B[: self._used].T) @ self._A[: self._used]

    def transposed(self, x: Vector) -> Vector:
        """The transposed matrix times a vector."""
        if self._dense is not None:
            return x @ self._dense
        return (x @ self._A[: self._used].T) @ self._B[: self._used]

    def add(self, a: Matrix, b: Matrix) -> None:
        """Add `a b^T`; two-dimensional arguments hold one vector per row."""
        a, b = np.atleast_2d(a), np.atleast_2d(b)
        if self._dense is not None:
            self._dense += a.T @ b
            self._used = self.n
        elif self._used + len(a) > self.rank:
            self._compress(a, b)
        else:
            self._A[self._used : self._used + len(a)] = a
            self._B[self._used : self._used + len(a)] = b
            self._used += len(a)

    def _compress(self, a: Matrix, b: Matrix) -> None:
        """Keep the largest singular values, and a quarter of the columns free so that this is rare."""
        A, B = np.concatenate([self._A[: self._used], a]), np.concatenate([self._B[: self._used], b])
        size_a, size_b = np.linalg.norm(A, axis=1), np.linalg.norm(B, axis=1)
        share = np.sqrt(np.divide(size_b, size_a, out=np.ones_like(size_a), where=(size_a > 0) & (size_b > 0)))
        A *= share[:, np.newaxis]
        B /= share[:, np.newaxis]
        TA, RA = _orthonormalised(A)
        TB, RB = _orthonormalised(B)
        U, s, VT = np.linalg.svd(RA @ RB.T, full_matrices=False)
        keep = min(len(s), max(1, self.rank - max(1, self.rank // 4)))
        np.matmul((TA @ (U * s)[:, :keep]).T, A, out=self._A[:keep])
        np.matmul((TB @ VT[:keep].T).T, B, out=self._B[:keep])
        self._used = keep


def _orthonormalised(A: Matrix) -> tuple[Matrix, Matrix]:
    """`T` and `R` with orthonormal `Q = A^T T` and `A^T = Q R`; what is shorter than `_SHORT` counts as zero."""
    values, vectors = np.linalg.eigh(A @ A.T)
    long = values > _SHORT**2 * values[-1]
    lengths = np.sqrt(values[long])
    return vectors[:, long] / lengths, (vectors[:, long] * lengths).T
