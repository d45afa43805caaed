"""Polynomials in time inside one macro step, and the node weights that build them.

All coupling variables of a step share the local time `s = (t - t0) / H`, so a signal is one small matrix of
coefficients. `lagrange_weights` turns node values into coefficients for any degree and any node spacing
(spec: cosimulation 2.3; semi-implicit ch. 2).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cosolve.subsystem.port import Matrix, Vector


class Polynomial:
    """Values over one macro step: `sum_j coefficients[j] * s**j` with `s = (t - t0) / H`.

    >>> import numpy as np
    >>> ramp = Polynomial(t0=1.0, H=0.5, coefficients=np.array([[2.0], [3.0]]))
    >>> ramp(1.25)
    array([3.5])
    """

    __slots__ = ("H", "coefficients", "t0")

    def __init__(self, t0: float, H: float, coefficients: Matrix) -> None:
        self.t0 = t0
        self.H = H
        self.coefficients = coefficients

    @property
    def degree(self) -> int:
        """Highest power of `s`."""
        return len(self.coefficients) - 1

    @property
    def end(self) -> Vector:
        """Values at the end of the step (`s = 1`)."""
        end: Vector = self.coefficients.sum(axis=0)
        return end

    def __call__(self, t: float) -> Vector:
        """Values at time `t` (outside the step too: the same polynomial)."""
        coefficients = self.coefficients
        value: Vector = coefficients[-1]
        if len(coefficients) == 1:
            return value.copy()
        s = (t - self.t0) / self.H
        for row in coefficients[-2::-1]:
            value = value * s + row
        return value


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
