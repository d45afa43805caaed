"""Differential-algebraic equations of index 1, integrated by the BDF solver of `integrator/bdf.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import finite_matrix, initial_state, refuse_no_function
from cosolve.basics.scale import state_tolerance
from cosolve.basics.wording import counted
from cosolve.integrator.bdf import integrate_bdf
from cosolve.integrator.bdf_control import BdfControl
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import PortLike


class Dae(Subsystem):
    """Differential-algebraic equations of index 1.

    Parameters
    ----------
    rhs : callable
        `rhs(t, x, u)` returns one number per state.
    output : callable
        `output(t, x, u)` returns the outputs.
    E : array_like
        Constant mass matrix, shape (n, n); may be singular.
    x0 : array_like
        Initial state, length n. It must satisfy the algebraic equations.
    inputs : sequence of str, (str, int) or Port
        Input ports.
    outputs : sequence of str, (str, int) or Port
        Output ports.
    rtol : float, default 1e-8
        Relative tolerance of the integrator.
    atol : float or None, default None
        Absolute tolerance in the units of the states. None is 1e-10 of the smallest start value other than 0 (which
        counts as at least 1/8192 of the largest), or 1e-10 where all are 0.

    Notes
    -----
    Equations::

        E x' = rhs(t, x, u),      y = output(t, x, u)

    Integrated by BDF. Every macro step starts the integrator anew with order 1; inside `DynamicStatic` it keeps its
    order.

    Examples
    --------
    >>> import cosolve as cs
    >>> divider = Dae(lambda t, x, u: [x[1] - x[0], u[0] - 2 * x[1]], lambda t, x, u: x, E=[[1, 0], [0, 0]],
    ...               x0=[0.0, 0.5], inputs=["u"], outputs=["state", "algebraic"])
    >>> sorted(cs.capabilities(divider))
    ['equations', 'output', 'rollback', 'state']
    """

    def __init__(
        self,
        rhs: Callable[[float, Vector, Vector], Any],
        output: Callable[[float, Vector, Vector], Any],
        *,
        E: npt.ArrayLike,
        x0: npt.ArrayLike,
        inputs: Sequence[PortLike],
        outputs: Sequence[PortLike],
        rtol: float = 1e-8,
        atol: float | None = None,
    ) -> None:
        refuse_no_function("Dae", "(t, x, u)", rhs=rhs, output=output)
        self.rhs, self.output_function = rhs, output
        self.inputs, self.outputs = inputs, outputs
        self.x0 = self.x = initial_state("Dae", x0)
        n = len(self.x0)
        self.E = finite_matrix("Dae", "E", E, (n, n), f" for {counted(n, 'state')}")
        self.control = BdfControl(rtol=rtol, atol=state_tolerance(atol, self.x0))
        self.noise = rtol

    def start(self, t0: float) -> Any:
        self.x = self.x0
        return None

    def output(self, t: float, u: Vector) -> Any:
        return self.output_function(t, self.x.copy(), u)

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        found = integrate_bdf(lambda t, x: self.rhs(t, x, u(t)), (t0, t1), self.x, self.control, E=self.E)
        self.x = found.x[-1]
        return self.output_function(t1, self.x.copy(), u.end)

    def equations(self) -> tuple[Callable[..., Any], Callable[..., Any], Matrix]:
        return self.rhs, self.output_function, self.E

    def save(self) -> Vector:
        return self.x

    def restore(self, state: Vector) -> None:
        self.x = state

    def get_state(self) -> Vector:
        return self.x

    def set_state(self, x: Vector) -> None:
        self.x = np.array(x, dtype=np.float64)
