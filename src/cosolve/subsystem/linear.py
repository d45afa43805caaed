"""Linear state space `x' = A x + B u`, `y = C x + D u`, propagated exactly for polynomial inputs.

One matrix exponential per step size and degree gives the flow and the response to every power of time
(docs/theory.md, "Stability"); after that a macro step is one matrix product.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from math import factorial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import finite_matrix, initial_state
from cosolve.basics.matrix_exponential import matrix_exponential
from cosolve.basics.products import product
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import PortLike, Ports

if TYPE_CHECKING:
    from cosolve.subsystem.native import Native

_KEPT_STEP_SIZES = 64


class Linear(Subsystem):
    """Linear time-invariant state space with exact propagation.

    Parameters
    ----------
    A : array_like
        System matrix, shape (n, n).
    B : array_like
        Input matrix, shape (n, p).
    C : array_like
        Output matrix, shape (q, n).
    D : array_like or None, default None
        Feedthrough matrix, shape (q, p). None is zero.
    x0 : array_like
        Initial state, length n.
    inputs : sequence of str, (str, int) or Port
        Input ports with p values in all.
    outputs : sequence of str, (str, int) or Port
        Output ports with q values in all.

    Raises
    ------
    SetupError
        If shapes do not fit or an entry is not finite.

    Notes
    -----
    Equations::

        x' = A x + B u,      y = C x + D u

    For polynomial inputs the step is exact: one matrix exponential per step size and degree, then one matrix product
    per step.

    Examples
    --------
    >>> import cosolve as cs
    >>> mass = cs.Linear([[0, 1], [-4, 0]], [[0], [1]], [[1, 0]], x0=[1, 0], inputs=["force"], outputs=["x"])
    >>> mass.start(0.0)
    array([1.])
    """

    settings = ("A", "B", "C", "D")

    def __init__(
        self,
        A: npt.ArrayLike,
        B: npt.ArrayLike,
        C: npt.ArrayLike,
        D: npt.ArrayLike | None = None,
        *,
        x0: npt.ArrayLike,
        inputs: Sequence[PortLike],
        outputs: Sequence[PortLike],
    ) -> None:
        self.inputs, self.outputs = inputs, outputs
        p, q = Ports(inputs).length, Ports(outputs).length
        self.x0 = initial_state("Linear", x0)
        n = self.x0.size
        given = partial(finite_matrix, "Linear", why=" (states from x0, inputs and outputs from the port lists)")
        self.A = given("A", A, (n, n))
        self.B = given("B", B, (n, p))
        self.C = given("C", C, (q, n))
        self.D = np.zeros((q, p)) if D is None else given("D", D, (q, p))
        self._has_feedthrough = bool(self.D.any())
        self.x = self.x0.copy()
        self._flows: OrderedDict[tuple[float, int], Matrix] = OrderedDict()
        self._moved: tuple[tuple[float, bytes], Matrix] = (0.0, b""), self.B  # states by inputs over the last step
        self._chains: dict[int, tuple[Matrix, Vector]] = {}

    def start(self, t0: float) -> Vector:
        self.x = self.x0.copy()
        return product(self.C, self.x)

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        c = u.coefficients
        self.x = product(self._propagator(u.H, len(c) - 1), np.concatenate([self.x, c.ravel()]))
        y = product(self.C, self.x)
        if self._has_feedthrough:
            y = y + product(self.D, c.sum(axis=0))
        return y

    def save(self) -> Vector:
        return self.x

    def restore(self, state: Vector) -> None:
        self.x = state

    get_state = save

    def set_state(self, x: Vector) -> None:
        self.x = np.array(x, dtype=np.float64)

    def output(self, t: float, u: Vector) -> Vector:
        y = product(self.C, self.x)
        if self._has_feedthrough:
            y += np.where(self.D != 0.0, self.D * u, 0.0).sum(axis=1)  # an unknown (NaN) input reaches only its outputs
        return y

    def equations(self) -> tuple[Callable[..., Vector], Callable[..., Vector], None]:
        A, B, C, D = self.A, self.B, self.C, self.D
        return lambda t, x, u: A @ x + B @ u, lambda t, x, u: C @ x + D @ u, None

    def feedthrough(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.D != 0.0)

    def jacobian(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        return self.step_jacobian(u.H, weight)

    def native(self, H: float, degree: int) -> Native | str:
        from cosolve.subsystem.native_linear import linear_native

        return linear_native(self, H, degree)

    def step_jacobian(self, H: float, weight: Vector) -> Matrix:
        """Compute the derivatives of the outputs with respect to the inputs over a step.

        Parameters
        ----------
        H : float
            Length of the step in seconds.
        weight : ndarray
            Coefficients of the change of an input, see `Subsystem.jacobian`.

        Returns
        -------
        ndarray
            Shape (outputs, inputs).
        """
        known = H, weight.tobytes()
        if known != self._moved[0]:
            response = self._propagator(H, len(weight) - 1)[:, len(self.x) :]
            self._moved = known, weight @ response.reshape(len(self.x), len(weight), -1)
        J: Matrix = self.C @ self._moved[1]
        if self._has_feedthrough:
            J += self.D * weight.sum()
        return J

    def _propagator(self, H: float, degree: int) -> Matrix:
        """`x1 = propagator @ (x0, coefficients)` over a step of length `H`."""
        key = (H, degree)
        found = self._flows.get(key)
        if found is not None:
            return found
        n, p = self.B.shape
        chain, scale = self._chain(degree)
        chain = chain.copy()
        chain[:n, : n + p] *= H
        grown = np.ascontiguousarray(matrix_exponential(chain)[:n])
        grown[:, n:] *= scale
        self._flows[key] = grown
        if len(self._flows) > _KEPT_STEP_SIZES:
            self._flows.popitem(last=False)
        return grown

    def _chain(self, degree: int) -> tuple[Matrix, Vector]:
        """States, then `u` and its derivatives with respect to `s`, over a step of length 1; and what scales them."""
        if degree not in self._chains:
            n, p = self.B.shape
            chain = np.zeros((n + p * (degree + 1),) * 2)
            chain[:n, :n] = self.A
            chain[:n, n : n + p] = self.B
            chain[n : n + p * degree, n + p :] = np.eye(p * degree)
            self._chains[degree] = chain, np.repeat([float(factorial(j)) for j in range(degree + 1)], p)
        return self._chains[degree]
