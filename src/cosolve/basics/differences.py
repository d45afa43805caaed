"""Derivatives by differences: how far to go, and matrices column by column."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cosolve.basics.arrays import Matrix, Vector

#: Increments relative to the size of a variable: the square and the cube root of the rounding unit. They balance
#: rounding (2e-16 over the increment) against curvature (the increment, or its square with differences to both sides).
ONE_SIDED, TWO_SIDED = 1.49e-8, 6e-6


def forward_differences(
    function: Callable[[Vector], Vector], x: Vector, f: Vector, scale: Vector | float, increment: float = ONE_SIDED
) -> Matrix:
    """`df/dx` column by column with `Delta_l = increment * max(scale_l, |x_l|)`; `f` is the value at `x`.

    >>> x = np.array([1.0, 2.0])
    >>> forward_differences(lambda x: np.array([x[0] * x[1]]), x, np.array([2.0]), 1.0).round(6)
    array([[2., 1.]])
    """
    columns = np.empty((len(f), len(x)))
    size = increment * np.maximum(scale, np.abs(x))
    for j in range(len(x)):
        shifted = x.copy()
        shifted[j] += size[j]
        columns[:, j] = (function(shifted) - f) / (shifted[j] - x[j])
    return columns


def central_differences(function: Callable[[Vector], Vector], x: Vector, nominal: Vector) -> Matrix:
    """The same with differences to both sides, of order two.

    >>> central_differences(lambda x: np.array([x[0] ** 2]), np.array([3.0]), np.array([1.0])).round(8)
    array([[6.]])
    """
    columns = []
    for j, (here, size) in enumerate(zip(x.tolist(), nominal.tolist(), strict=True)):
        step = TWO_SIDED * max(size, abs(here))
        plus, minus = x.copy(), x.copy()
        plus[j], minus[j] = above, below = here + step, here - step
        columns.append((function(plus) - function(minus)) / (above - below))
    return np.array(columns).T if columns else np.zeros((len(function(x)), 0))
