"""A run as it is recorded, and the points that its history went through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosolve.basics.arrays import Index, Matrix, Vector
from cosolve.signal.polynomial import fill_weights


@dataclass(frozen=True)
class Track:
    """A run as it is recorded: macro points, lengths of the steps between them, coupling variables and outputs there.

    `uniform` says that the steps were not chosen one by one, so that the first ones may have been advanced in pieces,
    `compiled` that they were taken by machine code.
    """

    t: Vector
    steps: Vector
    z: Matrix
    y: Matrix
    uniform: bool
    compiled: bool = False


@dataclass(frozen=True)
class Path:
    """The coupling variables of a run at all points that its history went through: macro points, and pieces of steps.

    `macro` holds the places of the macro points among them.
    """

    times: Sequence[float]
    steps: Sequence[float]
    z: Matrix
    macro: Sequence[int]

    @cached_property
    def _lengths(self) -> Vector:
        return np.asarray(self.steps)

    def around(self, n: Index, degree: int) -> Matrix:
        """Polynomials through the `degree + 1` points nearest to each of the steps `n`, in its local time.

        Coefficients of shape (steps, degree + 1, variables), as all of these.
        """
        t, last_point = np.asarray(self.times), len(self.times) - 1
        first, last, middle = n.copy(), n + 1, 0.5 * (t[n] + t[n + 1])
        for _ in range(min(degree, last_point) - 1):
            after, before = np.minimum(last + 1, last_point), np.maximum(first - 1, 0)
            nearer = t[after] - middle <= (middle - t[before]) * (1 + 1e-9)
            forward = (first == 0) | ((last < last_point) & nearer)
            first, last = np.where(forward, first, first - 1), np.where(forward, last + 1, last)
        return self._through(n, first, min(max(degree, 1), last_point) + 1)

    def extrapolated(self, n: Index, degree: int) -> Matrix:
        """Those through the points up to the start of each step, as a run draws its signals."""
        return self._through(n, n - degree, degree + 1)

    def ending(self, n: Index, degree: int) -> Matrix:
        """Those through the points up to the end of each step."""
        return self._through(n, n + 1 - degree, degree + 1)

    def _through(self, n: Index, first: Index, count: int) -> Matrix:
        """Those through `count` points from each of `first` on."""
        steps, reach, H = self._lengths, count + 1, self._lengths[n]
        position = np.zeros((2 * reach + 1, len(n)))  # of the points around the start of a step, in its local time
        for k in range(reach):
            ahead, back = np.minimum(n + k, len(steps) - 1), np.maximum(n - k - 1, 0)
            position[reach + k + 1] = position[reach + k] + steps[ahead] / H
            position[reach - k - 1] = position[reach - k] - steps[back] / H
        every = np.arange(len(n))
        nodes = [position[first - n + reach + j, every] for j in range(count)]
        weights: list[Vector | float] = [0.0] * count**2
        fill_weights(nodes, count, weights, [0.0] * (count + 1), [0.0] * (count + 1))
        found = np.zeros((len(n), count, self.z.shape[1]))
        for j in range(count):
            values = self.z[first + j]
            for k in range(count):
                found[:, k] += np.reshape(weights[k * count + j], (-1, 1)) * values
        return found
