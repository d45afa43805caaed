"""Polynomials in time inside one macro step, and the node weights that build them.

All coupling variables of a step share the local time `s = (t - t0) / H`, so a signal is one small matrix of
coefficients. `lagrange_weights` turns node values into coefficients for any degree and any node spacing
(spec: cosimulation 2.3; semi-implicit ch. 2).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cosolve.subsystem.input_polynomial import InputPolynomial, end_values
from cosolve.subsystem.port import Matrix

__all__ = ["Polynomial", "end_values", "lagrange_weights"]

#: The class lives below, where solvers by themselves need it too.
Polynomial = InputPolynomial


@lru_cache(maxsize=4096)
def lagrange_weights(nodes: tuple[float, ...]) -> Matrix:
    """Matrix `W` with `coefficients = W @ values` for the polynomial through `(nodes[j], values[j])`.

    Column `j` holds the coefficients of the j-th Lagrange basis polynomial.

    >>> lagrange_weights((1.0, 0.0))          # through the values at s = 1 and s = 0
    array([[ 0.,  1.],
           [ 1., -1.]])
    """
    n = len(nodes)
    weights = np.zeros((n, n))
    for j, node in enumerate(nodes):
        basis = np.array([1.0])
        for other in (*nodes[:j], *nodes[j + 1 :]):
            grown = np.zeros(len(basis) + 1)
            grown[1:] = basis
            grown[:-1] -= other * basis
            basis = grown / (node - other)
        weights[:, j] = basis
    weights += 0.0  # no negative zeros
    weights.flags.writeable = False  # shared through the cache
    return weights
