"""Input signals: polynomials in time inside one macro step."""

from __future__ import annotations

import numpy as np

from cosolve.subsystem.port import Matrix, Vector

_ZERO = np.zeros(())  # faster to add than a Python number


def end_values(coefficients: Matrix) -> Vector:
    """Values of the polynomials at the end of the step (`s = 1`): the sum of their coefficients.

    >>> import numpy as np
    >>> end_values(np.array([[2.0, 1.0], [3.0, -1.0]]))
    array([5., 0.])
    """
    if len(coefficients) == 1:  # held inputs; like a sum this makes 0.0 of -0.0
        held: Vector = coefficients[0] + _ZERO
        return held
    end: Vector = coefficients.sum(axis=0)
    return end


class InputPolynomial:
    """Values over one macro step: `sum_j coefficients[j] * s**j` with `s = (t - t0) / H`.

    >>> import numpy as np
    >>> InputPolynomial(1.0, 0.5, np.array([[2.0], [3.0]]))(1.25)
    array([3.5])
    """

    __slots__ = ("H", "coefficients", "t0")

    def __init__(self, t0: float, H: float, coefficients: Matrix) -> None:
        self.t0, self.H, self.coefficients = t0, H, coefficients

    @property
    def degree(self) -> int:
        """Highest power of `s`."""
        return len(self.coefficients) - 1

    @property
    def end(self) -> Vector:
        """Values at the end of the step (`s = 1`)."""
        return end_values(self.coefficients)

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
