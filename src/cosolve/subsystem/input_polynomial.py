"""Input signals: polynomials in time inside one macro step, and inputs that are known exactly beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

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


class DrivenPolynomial(InputPolynomial):
    """The same, with columns that follow functions of time: exact where they are asked for at a time.

    `exact` holds those columns and, for each group, `value(t, right)`; at the end of the step, `t1`, a jump has not
    happened yet.

    >>> import numpy as np
    >>> driven = [(np.array([1]), lambda t, right: np.array([t**2]))]
    >>> DrivenPolynomial(0.0, 1.0, np.zeros((1, 2)), 1.0, driven)(0.5)
    array([0.  , 0.25])
    """

    __slots__ = ("_exact", "_t1")

    def __init__(
        self,
        t0: float,
        H: float,
        coefficients: Matrix,
        t1: float,
        exact: Sequence[tuple[npt.NDArray[np.intp], Callable[[float, bool], Vector]]],
    ) -> None:
        super().__init__(t0, H, coefficients)
        self._t1, self._exact = t1, exact

    def __call__(self, t: float) -> Vector:
        """Values at time `t`."""
        value = super().__call__(t)
        for columns, exact in self._exact:
            value[columns] = exact(t, t < self._t1)
        return value
