"""Internal steps of a model with events, one at a time: each can be repeated to any time inside it.

The native Runge-Kutta methods repeat the step with a shorter length, which is as accurate as the step itself; SciPy's
solvers give their continuous extension.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_positive, positive
from cosolve.errors import NonFiniteError, SetupError
from cosolve.integrator import kernels
from cosolve.integrator.kernels import DOPRI5, FIXED, Tableau
from cosolve.integrator.libraries import SCIPY_METHODS
from cosolve.integrator.runge_kutta import DormandPrince, FixedStep, Rhs
from cosolve.integrator.step_control import equal_steps
from cosolve.signal.polynomial import InputSignal

MAX_STEPS = 10_000  # internal steps between events, before a solver gives up

INTEGRATORS = ("auto", "dopri5", *FIXED, *SCIPY_METHODS)

Inside = Callable[[float], Vector]


class NativeSteps:
    """Fixed-step and adaptive Runge-Kutta; the step sizes are those of an `Ode` with the same integrator."""

    def __init__(self, solver: DormandPrince | FixedStep) -> None:
        self._solver = solver
        self.noise = solver.noise
        self.tableau: Tableau = solver.tableau if isinstance(solver, FixedStep) else DOPRI5

    @property
    def memory(self) -> Any:
        """What the next step depends on besides the state."""
        return self._solver.memory

    @memory.setter
    def memory(self, memory: Any) -> None:
        self._solver.memory = memory

    def forget(self) -> None:
        """Begin anew after a jump."""
        if isinstance(self._solver, DormandPrince):
            self._solver.memory = 0.0

    def step(self, rhs: Rhs, t: float, t_stop: float, x: Vector, u: InputSignal) -> tuple[float, Vector, Inside]:
        """One accepted step, at most to `t_stop`: where it ends, the state there, and the states inside it."""
        if isinstance(self._solver, FixedStep):
            count = equal_steps(t_stop - t, self._solver.h)
            t_stop = t_stop if count == 1 else t + (t_stop - t) / count
        t1, x1 = self._solver.one_step(rhs, t, t_stop, x, u)

        def inside(when: float) -> Vector:
            return x1 if when == t1 else self._fixed(rhs, t, [when - t], x, u)

        return t1, x1, inside

    @property
    def moved(self) -> bool:
        """False when next to nothing moved in the last step, so that its length says nothing about stability."""
        return isinstance(self._solver, FixedStep) or not (self._solver.grid < 0.0).any()

    def repeat(self, rhs: Rhs, t: float, sizes: list[float], x: Vector, u: InputSignal) -> Vector:
        """The state after steps of given sizes, negative ones being divided where that is needed."""
        if isinstance(self._solver, FixedStep):
            return self._fixed(rhs, t, sizes, x, u)
        return self._solver.repeat(rhs, t, np.asarray(sizes), x, u)

    def _fixed(self, rhs: Rhs, t: float, sizes: list[float], x: Vector, u: InputSignal) -> Vector:
        a, b, c, _ = self.tableau
        kernel = kernels.compiled() if kernels.is_compiled(rhs) else kernels.PYTHON
        found: Vector = kernel.fixed(rhs, t, np.asarray(sizes), x, u.t0, u.H, u.coefficients, a, b, c)
        return found


class SciPySteps:
    """One of SciPy's solvers, restarted wherever the run does (macro points, events)."""

    tableau: Tableau | None = None
    moved = True

    def __init__(self, method: str, rtol: float, atol: float) -> None:
        self._method, self._rtol, self._atol = method, rtol, atol
        self.noise = rtol
        self.memory: Any = None
        self._running: tuple[Any, float, InputSignal] | None = None

    def forget(self) -> None:
        """Begin anew after a jump."""
        self._running = None

    def step(self, rhs: Rhs, t: float, t_stop: float, x: Vector, u: InputSignal) -> tuple[float, Vector, Inside]:
        """As above."""
        solver, stop, signal = self._running or (None, 0.0, None)
        if solver is None or stop != t_stop or signal is not u or solver.t != t or not (solver.y == x).all():
            import scipy.integrate

            make = getattr(scipy.integrate, self._method)
            solver = make(lambda t, x: rhs(t, x, u(t)), t, x, t_stop, rtol=self._rtol, atol=self._atol)
            self._running = solver, t_stop, u
        try:
            message = solver.step()
        except ValueError:  # SciPy's complaint about a NaN in a Jacobian
            raise NonFiniteError(f"the derivatives became infinite or NaN near t = {solver.t:.9g}") from None
        if solver.status == "failed":
            raise RuntimeError(f"SciPy's {self._method} gave up at t = {solver.t:.9g}: {message}")
        return float(solver.t), solver.y.copy(), solver.dense_output()


Steps = NativeSteps | SciPySteps


def make_steps(
    who: str, name: str, rtol: float, atol: float, internal_step: float | None, max_steps: int = MAX_STEPS
) -> Steps:
    """The internal steps of an integrator by its name; `who` wants them."""
    if name in FIXED:
        if internal_step is None or not is_positive(internal_step):
            raise SetupError(
                f"{who}: integrator '{name}' takes fixed steps and needs internal_step, a positive number; "
                f"got {internal_step!r}"
            )
        return NativeSteps(FixedStep(name, internal_step))
    if internal_step is not None:
        raise SetupError(
            f"{who}: internal_step belongs to the integrators with fixed steps {list(FIXED)}; '{name}' chooses its own"
        )
    for what, value in (("rtol", rtol), ("atol", atol)):
        positive(who, what, value)
    if name in ("auto", "dopri5"):
        return NativeSteps(DormandPrince(rtol, atol, max_steps))
    if name in SCIPY_METHODS:
        return SciPySteps(name, rtol, atol)
    raise SetupError(f"{who}: unknown integrator {name!r}; it takes one of {', '.join(INTEGRATORS)}")
