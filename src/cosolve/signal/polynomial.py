"""Polynomials in time inside one macro step: what subsystems get as their inputs, and the node weights that build them.

All coupling variables of a step share the local time `s = (t - t0) / H`, so a signal is one small matrix of
coefficients. `lagrange_weights` turns node values into coefficients for any degree and any node spacing
(Schmoll (2015), 2.4.3; docs/theory.md, "Signals").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from cosolve.basics.arrays import Index, Matrix, Vector

_ZERO = np.zeros(())  # faster to add than a Python number


class InputSignal(Protocol):
    """The inputs of one subsystem as functions of time inside a macro step.

    A polynomial in `s = (t - t0) / H`. `u(t)` returns the values of all inputs at time `t` as a flat array, in port
    order.

    Examples
    --------
    >>> import cosolve as cs
    >>> import numpy as np
    >>> u: cs.InputSignal = cs.Polynomial(1.0, 0.5, np.array([[2.0], [3.0]]))
    >>> u(1.25), u.end
    (array([3.5]), array([5.]))
    """

    @property
    def t0(self) -> float:
        """Start of the step in seconds."""

    @property
    def H(self) -> float:
        """Exact nominal length of the step in seconds; `t1 - t0` may differ from it by rounding."""

    @property
    def coefficients(self) -> Matrix:
        """Coefficients of the powers of `s`, shape (degree + 1, number of inputs)."""

    @property
    def degree(self) -> int:
        """Highest power of `s`."""

    @property
    def end(self) -> Vector:
        """Values at the end of the step, free of rounding in the time."""

    def __call__(self, t: float) -> Vector:
        """Values of all inputs at time `t`, flat, in port order."""


@lru_cache(maxsize=4096)
def lagrange_weights(nodes: tuple[float, ...]) -> Matrix:
    """Matrix `W` with `coefficients = W @ values` for the polynomial through `(nodes[j], values[j])`.

    Column `j` holds the coefficients of the j-th Lagrange basis polynomial.

    >>> lagrange_weights((1.0, 0.0))          # through the values at s = 1 and s = 0
    array([[ 0.,  1.],
           [ 1., -1.]])
    """
    n = len(nodes)
    flat = [0.0] * (n * n)
    fill_weights(nodes, n, flat, [0.0] * (n + 1), [0.0] * (n + 1))
    weights = np.array(flat).reshape(n, n)
    weights.flags.writeable = False  # shared through the cache
    return weights


def fill_weights(nodes: Any, count: int, out: Any, basis: Any, grown: Any) -> None:
    """The matrix of `lagrange_weights`, row by row into `out`; with `count + 1` places to work in, twice.

    Plain numbers in, plain numbers out: compiled engines run it too.
    """
    for j in range(count):
        basis[0] = 1.0
        length = 1
        for other in range(count):
            if other == j:
                continue
            grown[0] = 0.0
            for k in range(length):
                grown[k + 1] = basis[k]
            for k in range(length):
                grown[k] -= nodes[other] * basis[k]
            length += 1
            for k in range(length):
                basis[k] = grown[k] / (nodes[j] - nodes[other])
        for k in range(count):
            out[k * count + j] = basis[k] + 0.0  # no negative zeros


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


def horner(coefficients: Matrix, s: float | Matrix) -> Vector:
    """`sum_j coefficients[j] s^j`, one row (or number) per power; plain enough to be compiled too.

    >>> import numpy as np
    >>> horner(np.array([[2.0], [3.0]]), 0.5)
    array([3.5])
    """
    value: Vector = coefficients[-1].copy()
    for j in range(len(coefficients) - 2, -1, -1):
        value = value * s + coefficients[j]
    return value


def within(coefficients: Matrix, begin: float | Matrix, length: float | Matrix) -> Matrix:
    """The same polynomials on a piece of the step: in a local time that is 0 at `begin` and 1 a `length` later.

    >>> import numpy as np
    >>> within(np.array([[1.0], [2.0], [4.0]]), 0.5, 0.25)[:, 0]
    array([3.  , 1.5 , 0.25])
    """
    piece = coefficients.copy()
    for k in range(len(piece) - 1):
        for j in range(len(piece) - 2, k - 1, -1):
            piece[j] += begin * piece[j + 1]
    for j in range(1, len(piece)):
        piece[j] *= length**j
    return piece


class Polynomial:
    """Values over one macro step: `sum_j coefficients[j] * s**j` with `s = (t - t0) / H`.

    Parameters
    ----------
    t0 : float
        Start of the step in seconds.
    H : float
        Length of the step in seconds.
    coefficients : ndarray
        Shape (degree + 1, values).

    Examples
    --------
    >>> import numpy as np
    >>> Polynomial(1.0, 0.5, np.array([[2.0], [3.0]]))(1.25)
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
        if len(self.coefficients) == 1:  # held, which is frequent: there is nothing to compute
            held: Vector = self.coefficients[0].copy()
            return held
        return horner(self.coefficients, (t - self.t0) / self.H)


def perturbed(u: InputSignal, k: int, by: Vector) -> Polynomial:
    """The signal with input `k` moved by the polynomial with the coefficients `by`.

    >>> import numpy as np
    >>> perturbed(Polynomial(0.0, 1.0, np.zeros((1, 2))), 1, np.array([0.0, 2.0])).coefficients
    array([[0., 0.],
           [0., 2.]])
    """
    moved = np.zeros((max(len(u.coefficients), len(by)), u.coefficients.shape[1]))
    moved[: len(u.coefficients)] = u.coefficients
    moved[: len(by), k] += by
    return Polynomial(u.t0, u.H, moved)


#: Columns of a signal, a time, and coefficients of powers of the time since then.
Local = tuple[Index, float, Matrix]
#: Columns of a signal and their values at a time, before or after a jump there.
Exact = tuple[Index, Callable[[float, bool], Vector]]
#: Columns of a signal, the function of time that drives them, and the input it drives.
Follows = tuple[Index, Callable[[float], Any], str]


def from_local(
    t0: float, H: float, coefficients: Matrix, local: Sequence[Local], also: Sequence[Exact] = ()
) -> DrivenPolynomial:
    """The signal of a process elsewhere: what is driven is computed as it is where it comes from, to the last bit.

    `also` are columns whose values are known here without numbers from there.

    >>> import numpy as np
    >>> from_local(0.0, 1.0, np.zeros((1, 2)), [(np.array([1]), 0.25, np.array([[3.0], [2.0]]))])(0.5)
    array([0. , 3.5])
    """

    def value(since: float, powers: Matrix) -> Callable[[float, bool], Vector]:
        return lambda t, right: horner(powers, t - since)

    exact = [(columns, value(since, powers)) for columns, since, powers in local]
    return DrivenPolynomial(t0, H, coefficients, t0 + H, [*exact, *also], lambda: list(local))


class DrivenPolynomial(Polynomial):
    """The same, with columns that follow functions of time: exact where they are asked for at a time.

    `exact` holds those columns and, for each group, `value(t, right)`; at the end of the step, `t1`, a jump has not
    happened yet. `local` gives the same in numbers alone, for processes elsewhere, as far as it can: columns, a time,
    and coefficients of powers of the time since then. `functions` are the functions of time among them.

    >>> import numpy as np
    >>> driven = [(np.array([1]), lambda t, right: np.array([t**2]))]
    >>> DrivenPolynomial(0.0, 1.0, np.zeros((1, 2)), 1.0, driven)(0.5)
    array([0.  , 0.25])
    """

    __slots__ = ("_exact", "_t1", "functions", "local")

    def __init__(
        self,
        t0: float,
        H: float,
        coefficients: Matrix,
        t1: float,
        exact: Sequence[Exact],
        local: Callable[[], list[Local]] = list,
        functions: Sequence[Follows] = (),
    ) -> None:
        super().__init__(t0, H, coefficients)
        self._t1, self._exact, self.local, self.functions = t1, exact, local, functions

    def __call__(self, t: float) -> Vector:
        """Values at time `t`."""
        value = super().__call__(t)
        for columns, exact in self._exact:
            value[columns] = exact(t, t < self._t1)
        return value
