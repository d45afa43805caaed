"""LU factors, and the one verdict whether a matrix is singular.

Units are mixed in nearly every matrix of this package, so the verdict is about the matrix with rows and columns of one
size (`equilibration`): it is singular when the reciprocal of its condition number is below `RCOND`. `lu_factor` and
`lu_solve` are LAPACK's; `eliminate` and `substitute` are the same method for compiled code, which takes its pivots for
the condition number; `factorised` is the convenient way for those who want to solve and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import isfinite
from typing import Any, TypeAlias

import numpy as np

from cosolve.basics.arrays import FEW, Index, Matrix, Vector

#: Below this the rounding of the entries alone (2e-16 each, some 50 of them) may change every digit of a solution.
RCOND = 1e-14

Solve: TypeAlias = Callable[[Any], Any]


@cache
def _lapack() -> tuple[Any, Any, Any]:
    from scipy.linalg.lapack import dgecon, dgetrf, dgetrs

    return dgetrf, dgecon, dgetrs


def lu_factor(A: Matrix) -> tuple[Matrix, Index, float]:
    """Factors and pivots for `lu_solve`, and the reciprocal condition number (0 where a pivot or the norm is none).

    >>> lu_factor(np.array([[2.0, 0.0], [0.0, 4.0]]))[2], lu_factor(np.array([[1.0, 2.0], [2.0, 4.0]]))[2]
    (0.5, 0.0)
    """
    dgetrf, dgecon, _ = _lapack()
    if not len(A):
        return np.zeros((0, 0)), np.zeros(0, dtype=np.intp), 1.0
    norm = np.abs(A).sum(axis=0).max()
    lu, pivots, info = dgetrf(A)
    rcond = dgecon(lu, norm)[0] if info == 0 and isfinite(norm) else 0.0
    return lu, pivots, float(rcond)


def lu_solve(lu: Matrix, pivots: Index, b: Any) -> Any:
    """`A^-1 b` for a vector or columns `b`.

    >>> lu, pivots, _ = lu_factor(np.array([[0.0, 2.0], [4.0, 0.0]]))
    >>> lu_solve(lu, pivots, np.array([2.0, 4.0]))
    array([1., 1.])
    """
    return _lapack()[2](lu, pivots, b)[0] if len(lu) else b


def equilibration(G: Matrix) -> tuple[Vector, Vector]:
    """Divisors of rows and columns: columns by their largest entries first, then what is left of the rows.

    Rows come last, so that partial pivoting compares rows of equal size. No row or column of `G` may vanish.

    >>> equilibration(np.array([[1e9, 2.0], [1e9, 4.0]]))
    (array([1., 1.]), array([1.e+09, 4.e+00]))
    """
    size = np.abs(G)
    columns = largest(size, 0)
    return largest(size / columns, 1), columns


def factorised(A: Any) -> Solve | None:
    """A function that solves with `A` (an array, or a SciPy sparse one); None if `A` is singular.

    It takes vectors and columns. A matrix that is good as it stands is not scaled.

    >>> solve = factorised(np.array([[1e200, 0.0], [0.0, 1e-200]]))
    >>> solve(np.array([1e200, 1e-200])), factorised(np.ones((2, 2)))
    (array([1., 1.]), None)
    """
    sparse = not isinstance(A, np.ndarray)
    if not np.isfinite(A.data if sparse else A).all():
        return None
    if not A.shape[0]:
        return np.array
    attempt = _sparse if sparse else _dense
    return attempt(A) or _equilibrated(A, attempt)


def _equilibrated(A: Any, attempt: Callable[[Any], Solve | None]) -> Solve | None:
    from scipy.sparse import diags_array

    sparse = not isinstance(A, np.ndarray)
    columns = largest(abs(A), 0)
    if not columns.all():
        return None
    by_columns = A @ diags_array(1.0 / columns) if sparse else A / columns
    rows = largest(abs(by_columns), 1)
    if not rows.all():
        return None
    solve = attempt(diags_array(1.0 / rows) @ by_columns if sparse else by_columns / rows[:, np.newaxis])

    def scaled(b: Any) -> Any:
        assert solve is not None
        return ((solve((b.T / rows).T)).T / columns).T

    return None if solve is None else scaled


def largest(size: Any, axis: int) -> Vector:
    """The largest entry of each column (0) or row (1) of a matrix without a NaN.

    >>> largest(np.array([[1.0, 2.0], [4.0, 3.0]]), 1)
    array([2., 4.])
    """
    if not isinstance(size, np.ndarray):
        return np.asarray(size.max(axis=axis).todense()).ravel()
    if size.size > FEW:
        found: Vector = np.maximum.reduce(size, axis)
        return found
    entries = size.tolist()
    return np.array(list(map(max, entries if axis else zip(*entries, strict=True))))


def _dense(A: Matrix) -> Solve | None:
    lu, pivots, rcond = lu_factor(A)
    return (lambda b: lu_solve(lu, pivots, b)) if rcond > RCOND else None


def _sparse(A: Any) -> Solve | None:
    factors = splu(A)
    return None if factors is None else factors.solve


def splu(A: Any) -> Any:
    """SuperLU's factors; None where the pivots, which stand for the condition number, say that `A` is singular.

    >>> from scipy.sparse import eye_array
    >>> splu(eye_array(2, format="csc")).solve(np.ones(2)), splu(0 * eye_array(2, format="csc"))
    (array([1., 1.]), None)
    """
    from scipy.sparse.linalg import splu as factor

    try:
        factors = factor(A.tocsc())
    except RuntimeError:  # a pivot of zero
        return None
    pivots = np.abs(factors.U.diagonal())
    return factors if pivots.min() > RCOND * pivots.max() else None


def eliminate(matrix: Matrix, order: Index, n: int, least: float) -> bool:
    """LU factors of the first `n` rows and columns with partial pivoting, in place, for compiled code.

    `order` is filled with the rows in their new order. False, and no factors, where a pivot is not above `least` times
    the largest one so far: `RCOND` for the verdict of this module, 0 where the caller judges the solution.

    >>> matrix, order = np.array([[0.0, 2.0], [4.0, 0.0]]), np.zeros(2, dtype=int)
    >>> eliminate(matrix, order, 2, RCOND), order
    (True, array([1, 0]))
    """
    largest = 0.0
    for k in range(n):
        order[k] = k
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        largest = max(largest, abs(matrix[pivot, k]))
        if not abs(matrix[pivot, k]) > least * largest:
            return False
        if pivot != k:
            for j in range(n):
                matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
            order[k], order[pivot] = order[pivot], order[k]
        for i in range(k + 1, n):
            matrix[i, k] /= matrix[k, k]
            if matrix[i, k] != 0.0:
                for j in range(k + 1, n):
                    matrix[i, j] -= matrix[i, k] * matrix[k, j]
    return True


def substitute(matrix: Matrix, order: Index, n: int, b: Vector, x: Vector) -> None:
    """Solve with the factors of `eliminate`: `x` for the right-hand side `b`, which stays.

    >>> matrix, order, x = np.array([[0.0, 2.0], [4.0, 0.0]]), np.zeros(2, dtype=int), np.zeros(2)
    >>> eliminate(matrix, order, 2, RCOND)
    True
    >>> substitute(matrix, order, 2, np.array([2.0, 4.0]), x)
    >>> x
    array([1., 1.])
    """
    for i in range(n):
        total = b[order[i]]
        for j in range(i):
            total -= matrix[i, j] * x[j]
        x[i] = total
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= matrix[i, j] * x[j]
        x[i] /= matrix[i, i]
