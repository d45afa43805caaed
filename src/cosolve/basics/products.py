"""Small matrix products that add up strictly from left to right.

A library product of the same numbers may add in another order from one machine, thread count or code path to the next.
Small products are therefore summed in the order in which they are written, so that the Python engine and the compiled
loop agree in every bit; large ones go to the library, and such systems are not compiled.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosolve.basics.arrays import FEW, Matrix, Vector

#: Inner dimensions up to this are summed in order.
IN_ORDER = 64


def product(A: Matrix, B: Matrix | Vector) -> Matrix | Vector:
    """`A @ B`; in order when the inner dimension is small.

    >>> import numpy as np
    >>> product(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([21., 43.])
    """
    inner = A.shape[1]
    if inner == 0 or inner > IN_ORDER or A.size * B[0].size > 1 << 16:
        return np.asarray(A @ B)
    if B.ndim == 1:
        if A.size <= FEW:  # the same sums without NumPy's cost; not `sum`, which rounds otherwise from Python 3.12 on
            sums, b = [], B.tolist()
            for row in A.tolist():
                total = row[0] * b[0]
                for k in range(1, inner):
                    total += row[k] * b[k]
                sums.append(total)
            return np.array(sums)
        return (A * B).cumsum(axis=1)[:, -1]
    return (A[:, :, np.newaxis] * B).cumsum(axis=1)[:, -1]


def combine(weights: Matrix, values: Sequence[Vector] | Matrix) -> Matrix:
    """`weights @ values` for a few long rows, added row after row.

    >>> import numpy as np
    >>> combine(np.array([[2.0, -1.0]]), np.array([[3.0, 4.0], [1.0, 1.0]]))
    array([[5., 7.]])
    """
    total = weights[:, :1] * values[0]
    for j in range(1, len(values)):
        total += weights[:, j : j + 1] * values[j]
    return total
