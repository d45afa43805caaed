"""The coupling variables at past macro points, on a grid of any spacing, and the polynomials drawn from them.

Signals by collocation: two unknown values inside the step, and no past (docs/theory.md, "Stiff couplings").

The signal is the line through the unknown values `z_c` at `s = c` and `z_1` at `s = 1`, and the coupling equations hold
at both points:

    p(s) = z_c + (z_1 - z_c) (s - c) / (1 - c),      z_c = f(y(c)),   z_1 = f(y(1))

An integrator `y' = z` with `z = lambda y`, `x = lambda H`, has the factor

    R(x) = ((1 - c) x + 2) / (c x^2 - (1 + c) x + 2)

which is A- and L-stable for every c between 0 and 1. `c = 1/3` is Radau IIA of order 3; `c = 0.8` has order 2 and also
damps stiff spring laws of positions, where `v_{N+1} / v_N = (1 - c) / c`: 0.25, and 2 for Radau IIA.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.products import combine
from cosolve.signal.polynomial import end_values, lagrange_weights


class History:
    """Values at the newest macro point `T_n` and at those before it.

    `values[0]` belongs to `T_n`, `values[j]` to `T_{n-j}`; `steps[j]` is the step from `T_{n-j-1}` to `T_{n-j}`.
    Steps, not times, are stored: on a uniform grid the node positions are exact integers however long the run.

    >>> import numpy as np
    >>> h = History(np.array([0.0]), depth=2)
    >>> h.push(np.array([1.0]), 0.1)
    >>> float(h.extrapolate(1, 0.1).sum())           # the line through 0 and 1 reaches 2
    2.0
    """

    #: how many points more than values a polynomial needs
    reach = 0
    #: weights of the past values in the polynomial through them
    past_weights: Callable[[tuple[float, ...]], Matrix] = staticmethod(lagrange_weights)
    #: weights of the end value and the past values in the signal; the end of the step comes first
    end_weights: Callable[[tuple[float, ...]], Matrix] = staticmethod(lagrange_weights)

    def __init__(self, value: Vector, depth: int) -> None:
        self.depth = depth
        self.values: list[Vector] = [value]
        self.steps: list[float] = []

    @staticmethod
    def kept(z: Vector, signal: Callable[[], Matrix]) -> Vector:
        """What is remembered of a step that came to `z`; `signal` gives the signal that was applied in it."""
        return z

    def begun(self, value: Vector) -> History:
        """A history of this kind that begins with `value`."""
        return type(self)(value, self.depth)

    def copy(self) -> History:
        """An independent history with the same content (the arrays are never changed in place)."""
        twin = self.begun(self.values[0])
        twin.values, twin.steps = list(self.values), list(self.steps)
        return twin

    def push(self, value: Vector, H: float) -> None:
        """Append the value at the new macro point, `H` after the newest one."""
        self.values.insert(0, value)
        self.steps.insert(0, H)
        del self.values[self.depth + 1 :]
        del self.steps[self.depth :]

    def end_in(self, value: Vector) -> None:
        """The newest point has moved to `value`, by a step too short to be a support point."""
        self.values[0] = value

    def append_past(self, value: Vector, H: float) -> None:
        """Append an older value, `H` before the oldest one (known history at the start)."""
        self.values.append(value)
        self.steps.append(H)

    @staticmethod
    def whole(parts: Sequence[Vector], lengths: Sequence[float]) -> Vector:
        """What is remembered of a step that was advanced in parts, of each of which this is remembered."""
        return parts[-1]

    def past(self, values: Sequence[Vector], H: float) -> History:
        """A history of this kind with these values at equal distances, the newest first."""
        made = self.begun(values[0])
        made.values, made.steps = list(values), [H] * (len(values) - 1 + self.reach)
        return made

    @property
    def newest(self) -> Vector:
        """Values at the newest macro point."""
        return self.values[0]

    def _past_nodes(self, count: int, H: float) -> tuple[float, ...]:
        """Positions `(T_{n-j} - T_n) / H` of the `count` newest points."""
        nodes, back = [0.0], 0.0
        for step in self.steps[: count - 1]:
            back += step
            nodes.append(-back / H)
        return tuple(nodes)

    def extrapolation_degree(self, degree: int) -> int:
        """The degree that the stored points allow: `min(degree, points - 1)`."""
        return min(degree, len(self.values) - 1)

    def interpolation_degree(self, degree: int) -> int:
        """As above when the end value of the step is a further node."""
        return min(degree, len(self.values))

    def extrapolate(self, degree: int, H: float) -> Matrix:
        """Coefficients (degree + 1, n) of the polynomial through `T_n, ..., T_{n-degree}`, in `s = (t - T_n)/H`."""
        degree = self.extrapolation_degree(degree)
        if degree == 0:
            return self.values[0][np.newaxis]
        W = self.past_weights(self._past_nodes(degree + 1 + self.reach, H))
        return combine(W, self.values[: degree + 1])

    def predict(self, degree: int, H: float) -> tuple[Matrix, Vector]:
        """Those coefficients, and the values that the polynomial reaches at the end of the step."""
        if degree == 0 or len(self.values) == 1:
            return self.values[0][np.newaxis], self.values[0]
        coefficients = self.extrapolate(degree, H)
        return coefficients, end_values(coefficients)

    def interpolation(self, degree: int, H: float) -> tuple[Matrix, Vector]:
        """The polynomials through `(T_n + H, end), T_n, ..., T_{n-degree+1}` as `base + outer(weight, end)`.

        `weight` is the basis polynomial of the end value: the shape of an input perturbation. For degree 0 the
        signal is the constant `end` (not the value at `T_n`).
        """
        degree = self.interpolation_degree(degree)
        if degree == 0:
            return np.zeros((1, len(self.values[0]))), np.ones(1)
        W = self.end_weights((1.0, *self._past_nodes(degree + self.reach, H)))
        return combine(W[:, 1:], self.values[:degree]), W[:, 0]


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
