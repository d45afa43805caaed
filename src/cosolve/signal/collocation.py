"""Signals by collocation: two unknown values inside the step, and no past (docs/theory.md, "Stiff couplings").

The signal is the line through the unknown values `z_c` at `s = c` and `z_1` at `s = 1`, and the coupling equations hold
at both points:

    p(s) = z_c + (z_1 - z_c) (s - c) / (1 - c),      z_c = f(y(c)),   z_1 = f(y(1))

An integrator `y' = z` with `z = lambda y`, `x = lambda H`, has the factor

    R(x) = ((1 - c) x + 2) / (c x^2 - (1 + c) x + 2)

which is A- and L-stable for every c between 0 and 1. `c = 1/3` is Radau IIA of order 3; `c = 0.8` has order 2 and also
damps stiff spring laws of positions, where `v_{N+1} / v_N = (1 - c) / c`: 0.25, and 2 for Radau IIA.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.signal.history import History
from cosolve.signal.polynomial import end_values

#: The inner point by name; the other one is the end of the step.
POINTS = {"collocation": 0.8, "radau": 1.0 / 3.0}


def shapes(c: float) -> tuple[Vector, Vector]:
    """Coefficients, in powers of `s`, of what a unit of `z_1` and of `z_c` adds to the signal.

    >>> shapes(0.5)
    (array([-1.,  2.]), array([ 2., -2.]))
    """
    width = 1.0 - c
    return np.array([-c / width, 1.0 / width]), np.array([1.0 / width, -1.0 / width])


def parts(c: float, end: Vector, inner: Vector) -> tuple[Matrix, Matrix]:
    """The signal in the local times of the parts of the step before and after `c`.

    >>> parts(0.5, np.array([2.0]), np.array([1.0]))
    (array([[0.],
           [1.]]), array([[1.],
           [1.]]))
    """
    begin = inner - (end - inner) * (c / (1.0 - c))
    return np.array([begin, inner - begin]), np.array([inner, end - inner])


class StageHistory(History):
    """The past of stacked values `(z_1, z_c)`, from one of values at macro points: both are guessed at the end."""

    def __init__(self, outer: History) -> None:
        super().__init__(np.concatenate([outer.newest, outer.newest]), outer.depth)
        self.outer = outer

    def extrapolation_degree(self, degree: int) -> int:
        """As the past allows."""
        return self.outer.extrapolation_degree(degree)

    def extrapolate(self, degree: int, H: float) -> Matrix:
        """The guess of both values."""
        end = end_values(self.outer.extrapolate(degree, H))
        return np.concatenate([end, end])[np.newaxis]

    @staticmethod
    def kept(z: Vector, signal: Callable[[], Matrix]) -> Vector:
        """The value at the end that was used, not what the law gives afterwards."""
        used: Vector = signal()[0]
        return used[: len(used) // 2]
