"""The native one-step integrators: fixed-step ODE1..ODE5 and the adaptive Dormand-Prince pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.errors import NonFiniteError
from cosolve.integrator import kernels
from cosolve.integrator.kernels import DOPRI5, FIXED
from cosolve.integrator.step_control import equal_steps
from cosolve.signal.polynomial import InputSignal

Rhs = Callable[[float, Vector, Vector], Any]


class StiffError(RuntimeError):
    """An explicit integrator cannot advance over the step in a reasonable number of steps."""


class FixedStep:
    """Explicit Runge-Kutta of order 1..5 with steps of at most `h` that end exactly at the macro point."""

    noise = 0.0

    def __init__(self, name: str, h: float) -> None:
        self.tableau = FIXED[name]
        self.h = h
        self.memory: Any = None

    def integrate(self, rhs: Rhs, t0: float, t1: float, x: Vector, u: InputSignal) -> Vector:
        """State at `t1` (grid: equal steps, none longer than `h`)."""
        H = t1 - t0
        count = equal_steps(H, self.h)
        return self._advance(rhs, t0, np.full(count, H / count), x, u)

    replay = integrate

    def one_step(self, rhs: Rhs, t0: float, t1: float, x: Vector, u: InputSignal) -> tuple[float, Vector]:
        """One step of size `t1 - t0`."""
        return t1, self._advance(rhs, t0, np.array([t1 - t0]), x, u)

    def _advance(self, rhs: Rhs, t0: float, steps: Vector, x: Vector, u: InputSignal) -> Vector:
        a, b, c, _ = self.tableau
        kernel = kernels.compiled() if kernels.is_compiled(rhs) else kernels.PYTHON
        result: Vector = kernel.fixed(rhs, t0, steps, x, u.t0, u.H, u.coefficients, a, b, c)
        return result


class DormandPrince:
    """Adaptive order 5(4) whose only memory is the next step size, so restarts at macro points are free.

    `replay` repeats the accepted step sequence of the last `integrate`: difference quotients of its result
    are free of step-control noise. Steps in which nothing moved are divided where the other inputs need that.
    """

    def __init__(self, rtol: float, atol: float, max_steps: int = 10_000) -> None:
        self.rtol, self.atol, self.max_steps = rtol, atol, max_steps
        self.noise = rtol
        self.memory: Any = 0.0  # next step size; 0 = not yet known
        self.grid: Vector = np.zeros(0)

    def integrate(self, rhs: Rhs, t0: float, t1: float, x: Vector, u: InputSignal) -> Vector:
        """State at `t1`; raises StiffError when that takes too many steps."""
        return self._run(rhs, t0, t1, x, u, self.max_steps)[1]

    def one_step(self, rhs: Rhs, t0: float, t1: float, x: Vector, u: InputSignal) -> tuple[float, Vector]:
        """One accepted step, at most to `t1`."""
        return self._run(rhs, t0, t1, x, u, 1)

    def replay(self, rhs: Rhs, t0: float, t1: float, x: Vector, u: InputSignal) -> Vector:
        """State at `t1` on the grid of the last `integrate`; NaN where that takes too many steps."""
        return self.repeat(rhs, t0, self.grid, x, u)

    def repeat(self, rhs: Rhs, t0: float, grid: Vector, x: Vector, u: InputSignal) -> Vector:
        """The same on the steps of any subsystem step."""
        a, b, c, _ = DOPRI5
        kernel = kernels.compiled() if kernels.is_compiled(rhs) else kernels.PYTHON
        result: Vector = kernel.again(rhs, t0, grid, x, u.t0, u.H, u.coefficients, a, b, c, self.max_steps)
        return result

    def _run(self, rhs: Rhs, t0: float, t1: float, x: Vector, u: InputSignal, accepted: int) -> tuple[float, Vector]:
        kernel = kernels.compiled() if kernels.is_compiled(rhs) else kernels.PYTHON
        x, t, self.memory, self.grid, status = kernel.adaptive(
            *(rhs, t0, t1, x, u.t0, u.H, u.coefficients, *DOPRI5),
            *(self.rtol, self.atol, self.memory, self.max_steps, accepted),
        )
        if status == kernels.NOT_FINITE:
            raise NonFiniteError(f"rhs returns a NaN or an infinity near t = {t:.9g}")
        if status != kernels.OK:
            reason = f"more than {self.max_steps} steps" if status == kernels.TOO_MANY_STEPS else "a vanishing step"
            raise StiffError(
                f"the explicit solver needs {reason} at t = {t:.6g}; if the equations are stiff use integrator='Radau' "
                "or 'cvode', otherwise check rhs for a jump"
            )
        return t, x
