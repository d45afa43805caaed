"""Advancing over a macro step with a multibody model: compiled, or driven from Python where users gave functions."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import CosolveError, NonFiniteError, SubsystemError
from cosolve.integrator import kernels
from cosolve.integrator.kernels import DOPRI5, FIXED, RADAU
from cosolve.multibody.equations import stepping
from cosolve.multibody.equations.dynamics import settle, slope, step_parts
from cosolve.multibody.equations.entries import watch
from cosolve.multibody.equations.observe import SEEN
from cosolve.multibody.equations.python_callbacks import Outside
from cosolve.multibody.equations.radau import FRESH, MOST, first_guess, newton_matrix, newton_update, settled
from cosolve.multibody.equations.sensitivity import response
from cosolve.multibody.equations.stepping import adaptive, fixed
from cosolve.multibody.model.arrays import STATE, Arrays, Index
from cosolve.multibody.model.build import Built, involved
from cosolve.multibody.subsystem.kernels import outputs, radau
from cosolve.multibody.subsystem.memory import MOST_STEPS, Memory
from cosolve.multibody.subsystem.options import Options
from cosolve.signal.polynomial import InputSignal


class Stepping:
    """Integrates a built model in its memory."""

    def __init__(self, built: Built, arrays: Arrays, options: Options, outside: Outside, memory: Memory) -> None:
        self.built, self.arrays, self.options, self.outside, self.memory = built, arrays, options, outside, memory
        self._margin = 0.0

    @property
    def carried(self) -> tuple[float, float]:
        """What goes from one macro step to the next: internal step size, margin to a singular position."""
        return float(self.memory.tail[1]), float(self.memory.tail[2])

    @carried.setter
    def carried(self, values: tuple[float, float]) -> None:
        self.memory.tail[1], self.memory.tail[2] = values

    def integrate(self, t0: float, t1: float, x: Vector, u: InputSignal) -> Vector:
        """State at `t1`."""
        if self.options.integrator == "radau":
            return self._run(radau, t0, t1, x, u)
        return self._run(adaptive if self.options.internal_step is None else fixed, t0, t1, x, u)

    def replay(self, t0: float, t1: float, x: Vector, u: InputSignal) -> Vector:
        """State at `t1` on the internal grid of the last `integrate`."""
        return self._run(fixed, t0, t1, x, u) if self.options.internal_step is None else self.integrate(t0, t1, x, u)

    def _run(self, kernel: Callable[..., int], t0: float, t1: float, x: Vector, u: InputSignal) -> Vector:
        if self.outside.needed:
            if kernel is adaptive:
                return self._adaptive_python(t0, t1, x, u)
            return self._fixed_python(t0, self._grid(t0, t1), x, u)
        memory, coefficients = self.memory, u.coefficients
        memory.x[:] = x
        signal = (float(u.t0), float(u.H), len(coefficients), memory.signal(coefficients))
        status = kernel(memory.address, float(t0), float(t1), *signal)
        if status != stepping.OK:
            raise self.failed(status)
        return memory.x.copy()

    def outputs(self, t: float, x: Vector, u: Vector) -> Vector:
        """What the observed markers do; the multipliers stay in the memory."""
        memory = self._at(t, x, u)
        outputs(memory.address, memory.u_address, memory.y_address)
        return memory.y.copy()

    def project(self, x: Vector, driven: Matrix, level: int) -> int:
        """Project `x` in place on positions (level 1) and velocities (2); -1 without convergence."""
        memory = self.memory
        memory.x[:], memory.driven[:] = x, driven
        count = settle(memory.address, memory.x_address, level)
        x[:] = memory.x
        return count

    def _at(self, t: float, x: Vector, u: Vector) -> Memory:
        """The memory, holding this state and what comes from outside."""
        memory, outside = self.memory, self.outside
        if outside.needed:
            memory.driven[:] = outside.driven(t)
            memory.extra[:] = outside.extra(t, x, u, memory.driven)
        memory.x[:], memory.u[:] = x, u
        return memory

    def response(self, t0: float, t1: float, x: Vector, u: InputSignal, weight: Vector, seen: Index) -> Matrix:
        """Derivatives of the outputs at `t1` by the inputs, on the internal grid of the last subsystem step."""
        options = self.options
        steps = self._grid(t0, t1)
        a, b, c, _ = FIXED["ode4"] if options.integrator == "rk4" else DOPRI5
        coefficients = np.ascontiguousarray(u.coefficients)
        Y = np.empty((coefficients.shape[1], SEEN * len(seen)))
        response(
            *(self.arrays, options.level, t0, steps, x, u.t0, u.H, coefficients, np.ascontiguousarray(weight)),
            *(self.outside.still, self.memory.extra, a, b, c, seen, self.memory.address, step_parts()[1], Y),
        )
        return Y.T

    def _grid(self, t0: float, t1: float) -> Vector:
        """Equal steps, none longer than asked, or those of the last subsystem step where the integrator is adaptive."""
        if self.options.internal_step is None:
            return self.memory.grid
        count = max(1, ceil((t1 - t0) / self.options.internal_step - 1e-9))
        return np.full(count, (t1 - t0) / count)

    # -- driven from Python ----------------------------------------------------------------------------

    def _rhs(self, t: float, x: Vector, u: Vector) -> Vector:
        memory = self._at(t, x, u)
        self._margin = slope(memory.address, memory.x_address, memory.u_address, memory.rates_address)
        return memory.rates.copy()

    def _after_step(self, t: float, x: Vector, x_old: Vector) -> Vector:
        """Watch and project the new state at `t`; `self._margin` belongs to it within a stage."""
        h, margin = self.carried
        status = watch(self.arrays, x, x_old, self._margin, margin)
        self.carried = (h, self._margin)
        if status == stepping.OK and self.project(x, self.outside.driven(t), self.options.level) < 0:
            status = stepping.NOT_PROJECTED
        return self._arrived(status, t, x_old if status == stepping.SINGULAR else x)

    def _fixed_python(self, t0: float, steps: Vector, x: Vector, u: InputSignal) -> Vector:
        a, b, c, _ = FIXED["ode4"] if self.options.integrator == "rk4" else DOPRI5
        t = t0
        for h in steps:
            if self.options.integrator == "radau":
                new = self._radau_python(t, float(h), x, u)
            else:
                new = kernels.PYTHON.fixed(
                    *(self._rhs, t, np.array([h]), x.copy(), u.t0, u.H, u.coefficients, a, b, c),
                )
            t += float(h)
            x = self._after_step(t, new, x)
        return x

    def _adaptive_python(self, t0: float, t1: float, x: Vector, u: InputSignal) -> Vector:
        t, h, grid = t0, self.carried[0], []
        while t < t1:
            new, t, h, step, status = kernels.PYTHON.adaptive(
                *(self._rhs, t, t1, x.copy(), u.t0, u.H, u.coefficients, *DOPRI5),
                *(self.options.rtol, self.options.atol, h, MOST_STEPS, 1),
            )
            if status != kernels.OK:
                raise self._failed(status, t, x)
            grid.extend(abs(step))  # negative where next to nothing moved
            x = self._after_step(t, new, x)
            if len(grid) > MOST_STEPS:
                raise self._failed(stepping.TOO_MANY_STEPS, t, x)
        self.carried, self.memory.grid = (h, self.carried[1]), np.array(grid)
        return x

    def _radau_python(self, t: float, h: float, x: Vector, u: InputSignal) -> Vector:
        """One step; loads of laws follow the stages, but their derivative is left out of the Newton matrix."""
        A, c = RADAU[self.options.stages]
        ggl, arrays, outside = self.options.ggl, self.arrays, self.outside
        Y = np.empty((len(c), len(x) + (2 * len(arrays.rows) if ggl else 0)))
        driven, u0 = outside.driven(t), u(t)
        extra = outside.extra(t, x, u0, driven)
        self._margin = first_guess(arrays, ggl, x, h, u0, driven, extra, c, Y)
        inverse = newton_matrix(arrays, ggl, Y[-1].copy(), h, u0, outside.driven(t + h), extra, A)
        inputs = np.array([u(t + ci * h) for ci in c]).reshape(len(c), -1)
        drives = np.array([outside.driven(t + ci * h) for ci in c])
        before = np.inf
        for _ in range(MOST + FRESH):
            extras = np.array(
                [outside.extra(t + c[i] * h, Y[i, : len(x)], inputs[i], drives[i]) for i in range(len(c))]
            )
            change = newton_update(arrays, ggl, x, Y, h, inputs, drives, extras, A, inverse)
            if settled(change, before):
                return Y[-1, : len(x)].copy()
            before = change
        near = self._margin < stepping.SMALL_MARGIN
        raise self._failed(stepping.SINGULAR if near else stepping.NOT_CONVERGED, t, x)

    # -- what went wrong -------------------------------------------------------------------------------

    def _arrived(self, status: int, t: float, x: Vector) -> Vector:
        if status != stepping.OK:
            raise self._failed(status, t, x)
        return x

    def failed(self, status: int) -> CosolveError:
        """The words for a status of compiled code, which left time and state in the memory."""
        return self._failed(status, float(self.memory.tail[0]), self.memory.x)

    def _failed(self, status: int, t: float, x: Vector) -> CosolveError:
        at = f"t = {t:.6g}"
        driven = self.outside.driven(t)
        if status == stepping.NOT_FINITE or not np.isfinite(x).all():
            bad = np.flatnonzero(~np.isfinite(x))
            body = self.built.free[int(bad[0]) // STATE] if bad.size else self.built.free[0]
            return NonFiniteError(f"the motion of body '{body}' became infinite or not a number before {at}")
        if status == stepping.SINGULAR:
            return SubsystemError(
                f"the mechanism passes a singular position near {at}, where the constraints of "
                f"{involved(self.built, x, driven)} depend on each other and the motion can branch; stop before it, or "
                "remove the singularity (a small offset, fewer constraints)"
            )
        if status == stepping.ANGLES:
            sines = np.abs(np.sin(x.reshape(-1, STATE)[:, 4]))
            body = self.built.free[int(np.argmin(sines))]
            return SubsystemError(
                f"the Euler angles of body '{body}' are singular near {at} (sin theta = {sines.min():.2g}); use "
                "coordinates='euler_parameters'"
            )
        if status == stepping.NOT_PROJECTED:
            return SubsystemError(
                f"the projection on the constraints does not converge at {at}; the internal step is too large or the "
                "mechanism cannot reach the position"
            )
        if status == stepping.NOT_CONVERGED:
            return SubsystemError(f"Newton's method of Radau IIA does not converge at {at}; try a smaller step")
        reason = f"more than {MOST_STEPS} steps" if status == stepping.TOO_MANY_STEPS else "a vanishing step"
        return SubsystemError(
            f"'dopri5' needs {reason} at {at}; if joints or springs are stiff use integrator='radau' with a step"
        )
