"""The exponential of a small matrix, without the stall of threaded linear algebra on a busy machine.

SciPy's `expm` of a 4 x 4 matrix takes 10 us on an idle machine and 8 to 16 ms whenever the other cores are busy: its
solver hands the tiny matrix to several threads. A run with variable steps needs one exponential per step size.
"""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any

from cosolve.basics.arrays import Matrix

_one_at_a_time = Lock()  # the number of threads is a property of the process


@cache
def _libraries() -> list[Any]:
    """The libraries of linear algebra; asked one by one, since a limit for all of them takes as long as `expm`."""
    from threadpoolctl import ThreadpoolController

    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]


def matrix_exponential(A: Matrix) -> Matrix:
    """`exp(A)`.

    >>> import numpy as np
    >>> matrix_exponential(np.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[1., 1.],
           [0., 1.]])
    """
    from scipy.linalg import expm

    with _one_at_a_time:
        threaded = [(library, n) for library in _libraries() if (n := library.get_num_threads()) > 1]
        for library, _ in threaded:
            library.set_num_threads(1)
        try:
            result: Matrix = expm(A)
        finally:
            for library, n in threaded:
                library.set_num_threads(n)
    return result
