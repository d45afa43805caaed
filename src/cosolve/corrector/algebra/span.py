"""Long vectors held as combinations of orthonormal ones, so that questions about them become small matrices.

Orthogonalisation is by classical Gram-Schmidt done twice, which is orthogonal to rounding and reads the basis with fast
matrix-vector products. Nothing here is `n x n`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector

#: A vector is in the span when less than this fraction of it is outside.
_WITHIN = 1e-14

#: Entries turned at a time when the basis changes: small next to a field, large next to the cost of a call.
_CHUNK = 8192


class Span:
    """At most `columns` vectors of length `n`; vector `k` is `basis^T coefficients[:, k]`.

    >>> import numpy as np
    >>> span = Span(4, columns=3)
    >>> span.put(0, np.array([3.0, 4.0, 0.0, 0.0]))
    >>> span.put(1, np.array([3.0, 4.0, 2.0, 0.0]))
    >>> span.rank, span.combined(np.array([1.0, -1.0, 0.0]))
    (2, array([ 0.,  0., -2.,  0.]))
    """

    def __init__(self, n: int, columns: int) -> None:
        self.n, self.columns = n, columns
        # a basis vector per row; more than columns, so that turning the basis is rare, and rows that are never used
        # never claim their memory
        self._size = min(n, columns + max(8, columns // 4))
        self._rows = np.zeros((self._size, n))
        self._coefficients = np.zeros((self._size, columns))
        self.rank = 0

    @property
    def basis(self) -> Matrix:
        """The orthonormal vectors, one per row."""
        return self._rows[: self.rank]

    @property
    def coefficients(self) -> Matrix:
        """One column per vector."""
        return self._coefficients[: self.rank]

    def put(self, k: int, v: Vector) -> None:
        """Make `v` the vector `k`."""
        basis, whole = self.basis, float(np.linalg.norm(v))
        inside = basis @ v
        rest = v - inside @ basis
        again = basis @ rest
        rest -= again @ basis
        self._coefficients[:, k] = 0.0
        self._coefficients[: self.rank, k] = inside + again
        outside = float(np.linalg.norm(rest))
        if outside > _WITHIN * whole and self.rank < self._size:
            np.divide(rest, outside, out=self._rows[self.rank])
            self._coefficients[self.rank, k] = outside
            self.rank += 1

    def free_columns(self, kept: list[int]) -> None:
        """When there is no free row, turn the basis into one of the vectors `kept` only."""
        if self.rank < self._size or self._size == self.n:
            return
        turn, small = np.linalg.qr(self.coefficients[:, kept])
        m = turn.shape[1]
        for begin in range(0, self.n, _CHUNK):
            part = self._rows[: self.rank, begin : begin + _CHUNK]
            part[:m] = turn.T @ part
        self._coefficients[:] = 0.0
        self._coefficients[:m, kept] = small
        self.rank = m

    def scale(self, factor: Vector, kept: list[int]) -> None:
        """Multiply the vectors `kept` entry by entry, and forget the others."""
        if kept:
            scaled = self.coefficients[:, kept].T @ self.basis
            scaled *= factor
            turned, small = np.linalg.qr(scaled.T)
            self.rank = turned.shape[1]
            self._rows[: self.rank] = turned.T
            self._coefficients[:] = 0.0
            self._coefficients[: self.rank, kept] = small
        else:
            self._coefficients[:] = 0.0
            self.rank = 0

    def combined(self, c: Vector) -> Vector:
        """The sum of the vectors with the factors `c`; of each row of `c` if there are several."""
        return (c @ self.coefficients.T) @ self.basis

    def state(self) -> dict[str, Any]:
        """All there is to know, as plain arrays and numbers."""
        return {
            "n": self.n, "columns": self.columns,
            "basis": self.basis.copy(), "coefficients": self.coefficients.copy(),
        }  # fmt: skip

    @classmethod
    def of(cls, state: dict[str, Any]) -> Span:
        """The span with this `state`."""
        span = cls(state["n"], state["columns"])
        span.rank = len(state["basis"])
        span._rows[: span.rank] = state["basis"]
        span._coefficients[: span.rank] = state["coefficients"]
        return span
