"""Ordinary differential equations written in JAX: compiled steps, exact derivatives over the macro step.

The derivative of the outputs by an input perturbation shaped as a polynomial is the forward derivative of the whole
step: every stage of every internal step is differentiated (`jax.jacfwd`), so it is exact to rounding for the *discrete*
step and needs no further calls. Tableaus and step control are those of `integrator/`, but for diffrax's `kvaerno5`.
Step sizes chosen by the error control are held in the derivative, as `Ode` holds them in a replay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import initial_state, is_number
from cosolve.basics.scale import state_tolerance
from cosolve.errors import NonFiniteError, SetupError, SubsystemError
from cosolve.integrator.kernels import FIXED
from cosolve.jax.integrators import NOT_FINITE, OK, STUCK, adaptive, explicit, kvaerno, load_diffrax, radau
from cosolve.jax.tools import double, flat, flat_outputs, load, traced
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import PortLike, Ports

#: Integrators that choose their steps, and all of them.
ADAPTIVE = ("dopri5", "kvaerno5")
INTEGRATORS = (*ADAPTIVE, *FIXED, "radau5")

#: Signals are padded to so many coefficients: one compilation serves every degree up to 3.
_ROWS = 4


class JaxOde(Subsystem):
    """Ordinary differential equations written with `jax.numpy`, with exact Jacobians.

    Parameters
    ----------
    rhs : callable
        `rhs(t, x, u)`, or `rhs(t, x, u, parameters)` if there are parameters, returns `x'`. `x` and `u` are flat
        arrays.
    output : callable
        `output(t, x, u)` or `output(t, x, u, parameters)` returns the outputs.
    x0 : array_like
        Initial state.
    inputs : sequence of str, (str, int) or Port
        Input ports.
    outputs : sequence of str, (str, int) or Port
        Output ports.
    parameters : object, default None
        Numbers, arrays, dicts or lists of them. New values in the attribute `parameters` need no new compilation.
    integrator : str, default "dopri5"
        With error control: "dopri5", and "kvaerno5" (diffrax) for stiff equations. With fixed steps: "ode1" to "ode5",
        and "radau5" for few stiff equations.
    rtol : float, default 1e-8
        Relative tolerance of the integrators with error control.
    atol : float or None, default None
        Absolute tolerance of the integrators with error control; None as in `Ode`.
    internal_step : float or None, default None
        Largest step of the integrators with fixed steps in seconds; required there.
    max_steps : int, default 10000
        Largest number of internal steps per macro step.

    Notes
    -----
    Equations::

        x' = rhs(t, x, u),      y = output(t, x, u)

    Examples
    --------
    >>> import cosolve as cs, jax.numpy as jnp, numpy as np
    >>> pendulum = cs.JaxOde(lambda t, x, u, p: [x[1], u[0] - p["g"] * jnp.sin(x[0])], lambda t, x, u, p: x[0],
    ...                      x0=[1.0, 0.0], inputs=["torque"], outputs=["angle"], parameters={"g": 9.81})
    >>> sorted(cs.capabilities(pendulum))
    ['equations', 'jacobian', 'output', 'output jacobian', 'rollback', 'state']
    """

    def __init__(
        self,
        rhs: Callable[..., Any],
        output: Callable[..., Any],
        *,
        x0: npt.ArrayLike,
        inputs: Sequence[PortLike],
        outputs: Sequence[PortLike],
        parameters: Any = None,
        integrator: str = "dopri5",
        rtol: float = 1e-8,
        atol: float | None = None,
        internal_step: float | None = None,
        max_steps: int = 10_000,
    ) -> None:
        for what, function in (("rhs", rhs), ("output", output)):
            if not callable(function):
                raise SetupError(f"JaxOde: {what} must be a function of (t, x, u), not {function!r}")
        self.x0 = initial_state("JaxOde", x0)
        atol = state_tolerance(atol, self.x0)
        for what, value in (("rtol", rtol), ("atol", atol), ("max_steps", max_steps)):
            if not (is_number(value) and value > 0):
                raise SetupError(f"JaxOde: {what} must be a positive number, not {value!r}")
        _refuse_bad_integrator(integrator, internal_step)
        jax, jnp = load("JaxOde")
        self._jax = jax
        self.inputs, self.outputs = inputs, outputs
        self.integrator, self.internal_step, self.max_steps = integrator, internal_step, int(max_steps)
        self.noise = rtol if integrator in ADAPTIVE else 0.0
        self._given = parameters is not None
        self.parameters = parameters
        self.x, self._next_step = self.x0, 0.0
        takes, gives = Ports(inputs), Ports(outputs)

        def slope(p: Any, t: Any, x: Any, u: Any) -> Any:
            return flat(jnp, rhs(t, x, u, p) if self._given else rhs(t, x, u))

        def measured(p: Any, t: Any, x: Any, u: Any) -> Any:
            return flat_outputs(jnp, gives, output(t, x, u, p) if self._given else output(t, x, u))

        self._refuse_bad_shapes(slope, measured, takes.length, gives.length)
        if integrator == "dopri5":
            integrate = partial(adaptive, jax, jnp, rtol, atol, int(max_steps))
        elif integrator == "kvaerno5":
            integrate = partial(kvaerno, load_diffrax(), jnp, rtol, atol, int(max_steps))
        elif integrator == "radau5":
            integrate = partial(radau, jax, jnp)
        else:
            integrate = partial(explicit, jax, jnp, FIXED[integrator])

        def advance(p: Any, t0: Any, t1: Any, x: Any, u_t0: Any, u_H: Any, coefficients: Any, plan: Any) -> Any:
            """End state, outputs there, next step size, status and the time reached."""

            def moving(t: Any, x: Any) -> Any:
                return slope(p, t, x, _polynomial(coefficients, (t - u_t0) / u_H))

            x1, next_step, status, t = integrate(moving, t0, t1, x, plan)
            return x1, measured(p, t1, x1, coefficients.sum(axis=0)), next_step, status, t

        def perturbed(eps: Any, weight: Any, p: Any, t0: Any, t1: Any, x: Any, u: Any, plan: Any) -> Any:
            u_t0, u_H, coefficients = u
            _, y, _, status, t = advance(p, t0, t1, x, u_t0, u_H, coefficients + weight[:, None] * eps, plan)
            return y, (status, t)

        self._advance = jax.jit(advance)
        self._sensitivity = jax.jit(jax.jacfwd(perturbed, has_aux=True))
        self._slope, self._measured = jax.jit(slope), jax.jit(measured)
        self._by_input = jax.jit(jax.jacfwd(measured, argnums=3))

    # -- the contract ----------------------------------------------------------------------------------------

    def start(self, t0: float) -> None:
        self.x, self._next_step = self.x0, 0.0

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        with double(self._jax):
            plan = self._plan(t0, t1)
            coefficients = _padded(u.coefficients, _ROWS)
            x, y, following, status, t = self._advance(self.parameters, t0, t1, self.x, u.t0, u.H, coefficients, plan)
            x, status = np.array(x), int(status)
        if status != OK or not np.isfinite(x).all():
            raise self._failure(status, float(t), x)
        self.x, self._next_step = x, float(following)
        return np.array(y)

    def output(self, t: float, u: Vector) -> Vector:
        with double(self._jax):
            return np.array(self._measured(self.parameters, t, self.x, u))

    def save(self) -> tuple[Vector, float]:
        return self.x, self._next_step

    def restore(self, state: tuple[Vector, float]) -> None:
        self.x, self._next_step = state

    def get_state(self) -> Vector:
        return self.x.copy()

    def set_state(self, x: Vector) -> None:
        self.x = np.array(x, dtype=np.float64)

    def jacobian(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        with double(self._jax):
            rows = max(_ROWS, len(weight), len(u.coefficients))
            coefficients, shape, plan = _padded(u.coefficients, rows), _padded(weight, rows), self._plan(t0, t1)
            eps, signal = np.zeros(coefficients.shape[1]), (u.t0, u.H, coefficients)
            J, (status, t) = self._sensitivity(eps, shape, self.parameters, t0, t1, self.x, signal, plan)
            slopes, status = np.array(J), int(status)
        if status != OK:
            raise self._failure(status, float(t), self.x)
        return slopes

    def output_jacobian(self, t: float, u: Vector) -> Matrix:
        with double(self._jax):
            return np.array(self._by_input(self.parameters, t, self.x, u))

    def equations(self) -> tuple[Callable[..., Vector], Callable[..., Vector], None]:
        def evaluated(function: Any) -> Callable[..., Vector]:
            def call(t: float, x: Vector, u: Vector) -> Vector:
                with double(self._jax):
                    return np.array(function(self.parameters, t, x, u))

            return call

        return evaluated(self._slope), evaluated(self._measured), None

    # -- inside ----------------------------------------------------------------------------------------------

    def _plan(self, t0: float, t1: float) -> Any:
        """How to advance: the number of equal steps, or the first step size to try."""
        if self.internal_step is None:
            return self._next_step
        return max(1, ceil((t1 - t0) / self.internal_step - 1e-9))

    def _refuse_bad_shapes(self, slope: Any, measured: Any, n_u: int, n_y: int) -> None:
        """Trace both functions once, before anything runs."""
        jax, p = self._jax, self.parameters
        with double(jax):
            for what, function, expected, whose in (
                ("rhs", slope, self.x0.size, "one per state"),
                ("output", measured, n_y, "as the output ports"),
            ):
                probe = partial(jax.eval_shape, function, p, 0.0, self.x0, np.zeros(n_u))
                found = traced(f"JaxOde: {what}", probe)
                if found.size != expected:
                    raise SetupError(f"JaxOde: {what} returns {found.size} numbers, expected {expected}, {whose}")

    def _failure(self, status: int, t: float, x: Vector) -> SubsystemError:
        if status == NOT_FINITE:
            return NonFiniteError(f"rhs returns a NaN or an infinity near t = {t:.9g}")
        if status == OK:
            k = int(np.flatnonzero(~np.isfinite(x))[0])
            return NonFiniteError(f"state {k} became {x[k]} before t = {t:.9g}")
        if self.integrator == "radau5":
            return SubsystemError(f"Newton's iteration of radau5 does not converge at t = {t:.6g}; take a smaller h")
        reason = "a vanishing step" if status == STUCK else f"more than {self.max_steps} steps"
        if self.integrator == "kvaerno5":
            return SubsystemError(
                f"kvaerno5 needs {reason} after t = {t:.6g}; check rhs for a jump, or raise rtol, atol or max_steps"
            )
        return SubsystemError(
            f"the explicit solver needs {reason} at t = {t:.6g}; if the equations are stiff use integrator='kvaerno5', "
            "or 'radau5' with a step h, otherwise check rhs for a jump"
        )


def _polynomial(coefficients: Any, s: Any) -> Any:
    """`sum_j coefficients[j] s^j` by Horner's rule, as the signals compute it."""
    value = coefficients[-1]
    for j in range(len(coefficients) - 2, -1, -1):
        value = value * s + coefficients[j]
    return value


def _padded(coefficients: Any, rows: int) -> Any:
    """Coefficients with zeros for the powers they lack."""
    given = np.asarray(coefficients, dtype=np.float64)
    return np.concatenate([given, np.zeros((max(rows - len(given), 0), *given.shape[1:]))])


def _refuse_bad_integrator(name: str, internal_step: float | None) -> None:
    if name not in INTEGRATORS:
        raise SetupError(f"JaxOde: unknown integrator {name!r}; choose one of {', '.join(INTEGRATORS)}")
    if name in ADAPTIVE and internal_step is not None:
        fixed = [each for each in INTEGRATORS if each not in ADAPTIVE]
        raise SetupError(
            f"JaxOde: internal_step belongs to the integrators with fixed steps {fixed}; '{name}' chooses its own"
        )
    if name not in ADAPTIVE and not (is_number(internal_step) and internal_step is not None and internal_step > 0):
        raise SetupError(
            f"JaxOde: integrator '{name}' takes fixed steps and needs internal_step, a positive number; "
            f"got {internal_step!r}"
        )
