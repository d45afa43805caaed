"""Signals by backward differences (BDF): stiffly damped couplings of order 1 to 3 (docs/theory.md, "Stiff couplings").

Let `m_j` be the mean of the signal applied in macro step `N-j`, of length `r_j H`. The polynomial `p(s)` of degree
`k - 1`, `s = (t - T_N) / H`, is fixed by `k` linear equations:

    p(1) = z_{N+1},      (1 / r_j) * integral of p over step N-j = m_j,      j = 1 .. k-1

It is the derivative `P'` of the polynomial `P` of degree `k` with `P(0) = 0`, `P(-r_1) = -r_1 m_1`,
`P(-r_1 - r_2) = -r_1 m_1 - r_2 m_2`, ... and `P'(1) = z_{N+1}`. An integrator `y' = z` therefore takes the step of the
BDF method of order `k` (Curtiss and Hirschfelder (1952)): its increments `H m` are those of `y`. With equal steps:

    k = 1    p = z                                              mean z
    k = 2    p = z/3 + 2 m_1/3 + (2/3) (z - m_1) s              mean 2/3 z + 1/3 m_1
    k = 3    mean 6/11 z + 7/11 m_1 - 2/11 m_2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.products import combine
from cosolve.signal.history import History
from cosolve.signal.polynomial import fill_weights

#: Growth of the step that keeps the past damped, by degree: for BDF2 the limit is 1 + sqrt(2), for BDF3 about 1.6.
GROWTH = (np.inf, 2.0, 1.5)

#: The highest degree: BDF of order 4 and more is not stable enough for stiff couplings.
HIGHEST = len(GROWTH) - 1


class MeanHistory(History):
    """The means of the signals that were applied: `values[j]` belongs to the step `steps[j]`.

    Before the first step there is no mean; what the history begins with is the first guess and nothing else.

    >>> h = MeanHistory(np.array([5.0]), depth=2)
    >>> base, weight = h.interpolation(1, 0.1)        # no mean yet: held at the end value
    >>> base + np.outer(weight, [2.0])
    array([[2.]])
    >>> h.push(np.array([2.0]), 0.1)
    >>> base, weight = h.interpolation(1, 0.1)
    >>> coefficients = base + np.outer(weight, [5.0])
    >>> round(float(mean(coefficients)[0]), 12)       # 2/3 * 5 + 1/3 * 2
    4.0
    """

    reach = 1

    @staticmethod
    def past_weights(nodes: tuple[float, ...]) -> Matrix:
        """Weights of the means over the steps between these points, in the polynomial that has them."""
        return mean_weights(nodes)

    @staticmethod
    def end_weights(nodes: tuple[float, ...]) -> Matrix:
        """Weights of the end value and of the means, in the signal."""
        return bdf_weights(nodes)

    def extrapolation_degree(self, degree: int) -> int:
        """The degree that the stored means allow."""
        return max(0, min(degree, len(self.steps) - 1))

    def interpolation_degree(self, degree: int) -> int:
        """As above when the end value of the step is given too."""
        return min(degree, len(self.steps))

    def end_in(self, value: Vector) -> None:
        """A step too short to count has no mean either."""

    @staticmethod
    def whole(parts: Sequence[Vector], lengths: Sequence[float]) -> Vector:
        """The mean over a step that was advanced in parts."""
        found: Vector = combine(np.array([lengths]) / sum(lengths), parts)[0]
        return found

    @staticmethod
    def kept(z: Vector, signal: Callable[[], Matrix]) -> Vector:
        """What is remembered of a step: the mean of the signal that was applied."""
        return mean(signal())


def mean(coefficients: Matrix) -> Vector:
    """The mean of a signal over its step: `sum_j c_j / (j + 1)`.

    >>> mean(np.array([[1.0], [3.0]]))
    array([2.5])
    """
    total: Vector = coefficients[0].copy()
    for j in range(1, len(coefficients)):
        total += coefficients[j] / (j + 1.0)
    return total


@lru_cache(maxsize=4096)
def bdf_weights(nodes: tuple[float, ...]) -> Matrix:
    """Matrix `W` with `coefficients = W @ (z_{N+1}, m_1, ...)`, for the points `(1, 0, -r_1, -r_1 - r_2, ...)`.

    >>> bdf_weights((1.0, 0.0, -1.0)).round(4)            # equal steps, k = 2
    array([[ 0.3333,  0.6667],
           [ 0.6667, -0.6667]])
    """
    return _filled(fill_bdf_weights, nodes)


@lru_cache(maxsize=4096)
def mean_weights(nodes: tuple[float, ...]) -> Matrix:
    """Matrix `W` with `coefficients = W @ (m_1, m_2, ...)`, for the points `(0, -r_1, -r_1 - r_2, ...)`.

    >>> mean_weights((0.0, -1.0, -2.0))                   # the line with two means
    array([[ 1.5, -0.5],
           [ 1. , -1. ]])
    """
    return _filled(fill_mean_weights, nodes)


def _filled(fill: Any, nodes: tuple[float, ...]) -> Matrix:
    n = len(nodes) - 1
    flat = [0.0] * (n * n)
    fill(nodes, n, flat, [0.0] * (n + 1) ** 2, [0.0] * (n + 2), [0.0] * (n + 2))
    weights = np.array(flat).reshape(n, n)
    weights.flags.writeable = False  # shared through the cache
    return weights


def fill_mean_weights(nodes: Any, count: int, out: Any, work: Any, basis: Any, grown: Any) -> None:
    """The matrix of `mean_weights`, row by row into `out`; the others are places to work in.

    Plain numbers in, plain numbers out: compiled engines run it too.
    """
    n = count + 1
    fill_weights(nodes, n, work, basis, grown)
    for i in range(1, n):  # the mean over the step between points i - 1 and i enters P there and before
        for q in range(count):
            total = 0.0
            for j in range(i, n):
                total += (q + 1.0) * work[(q + 1) * n + j]
            out[q * count + i - 1] = total * (nodes[i] - nodes[i - 1]) + 0.0


def fill_bdf_weights(nodes: Any, count: int, out: Any, work: Any, basis: Any, grown: Any) -> None:
    """The matrix of `bdf_weights`, row by row into `out`; the others are places to work in."""
    n = count + 1
    fill_weights(nodes, n, work, basis, grown)
    slope = 0.0  # of the basis polynomial of P(1), at s = 1
    for q in range(1, n):
        slope += q * work[q * n]
    for q in range(count):
        out[q * count] = (q + 1.0) * work[(q + 1) * n] / slope + 0.0
    for i in range(2, n):  # the mean over the step between points i - 1 and i
        end = 0.0  # what it adds to P'(1)
        for q in range(count):
            total = 0.0
            for j in range(i, n):
                total += (q + 1.0) * work[(q + 1) * n + j]
            out[q * count + i - 1] = total * (nodes[i] - nodes[i - 1])
            end += total * (nodes[i] - nodes[i - 1])
        for q in range(count):
            out[q * count + i - 1] = out[q * count + i - 1] - end * out[q * count] + 0.0
