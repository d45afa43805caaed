"""A sampled PID controller: trapezoidal integral, backward-Euler derivative (Sicklinger (2014), 5.2.3).

One sample per macro step of length `h`. With the error `e = setpoint - u` the output is

    psi = K_P e + K_I X_I + K_D X_D,   X_I += h/2 (e_new + e_old),   X_D = (e_new - e_old) / h

so that `d psi / du = -(K_P + K_I h/2 + K_D / h)` for the value of `u` at the end of the step. Solved together with the
plant (`Implicit`, `SemiImplicit`), the controller reacts without the delay of one step that a sampled loop has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector, doubles
from cosolve.basics.checks import is_number
from cosolve.errors import SetupError
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import PortLike, Ports

#: A step that begins this fraction of its length before the switching time counts as beginning there.
_SAME_TIME = 1e-9


class _Sample(NamedTuple):
    """The controller after a sample: error, integral, and what output and derivative were made of."""

    error: Vector
    integral: Vector
    error_before: Vector
    integral_before: Vector
    h: float  # 0: no sample yet
    on: bool


class Pid(Subsystem):
    """PID controller, sampled once per macro step.

    Parameters
    ----------
    K_P : array_like
        Proportional gain, one number or one per input. Negative gains reverse the sign of the error.
    K_I : array_like, default 0.0
        Integral gain in 1/s.
    K_D : array_like, default 0.0
        Derivative gain in s.
    inputs : sequence of str, (str, int) or Port
        Measured values.
    outputs : sequence of str, (str, int) or Port
        Controller outputs, as many values as inputs.
    setpoint : array_like, default 0.0
        Set point, one number or one per input.
    u0 : array_like or None, default None
        Input before the first sample, from which the first derivative is taken. None is `setpoint`.
    on_at : float or None, default None
        Time in seconds at which the controller is switched on. Output and integral are zero before, but the error is
        followed, so that switching on causes no derivative kick. None: on from the start.

    Notes
    -----
    With the error `e = setpoint - u` and the macro step `h`::

        psi = K_P e + K_I X_I + K_D X_D,   X_I += h/2 (e_new + e_old),   X_D = (e_new - e_old) / h.

    Trapezoidal integral, backward-Euler derivative. Solved together with the plant (`Implicit`, `SemiImplicit`) it
    reacts without the delay of one step that a sampled loop has; see `Sampled` for a fixed sample period.

    References
    ----------
    .. [1] S. A. Sicklinger, Stabilized co-simulation of coupled problems including fields and signals, dissertation,
       Technical University of Munich, 2014, 5.2.3.

    Examples
    --------
    >>> import cosolve as cs
    >>> tank = cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[0.0], inputs=["inflow"], outputs=["level"])
    >>> control = cs.Pid(4.0, 2.0, inputs=["level"], outputs=["inflow"], setpoint=1.0, u0=0.0)
    >>> system = cs.System({"tank": tank, "control": control})
    >>> system.connect("tank.level", "control.level")
    >>> system.connect("control.inflow", "tank.inflow")
    >>> result = cs.simulate(system, t_end=20.0, method=cs.Implicit(degree=1), step=0.05)
    >>> print(f"{result['tank.level'][-1]:.4f}")
    1.0000
    """

    variable_step = False  # samples at macro points

    def __init__(
        self,
        K_P: npt.ArrayLike,
        K_I: npt.ArrayLike = 0.0,
        K_D: npt.ArrayLike = 0.0,
        *,
        inputs: Sequence[PortLike],
        outputs: Sequence[PortLike],
        setpoint: npt.ArrayLike = 0.0,
        u0: npt.ArrayLike | None = None,
        on_at: float | None = None,
    ) -> None:
        self.inputs, self.outputs = inputs, outputs
        n, m = Ports(inputs).length, Ports(outputs).length
        if n != m:
            raise SetupError(f"Pid: {n} inputs but {m} outputs; every input has an output of its own")
        self.K_P, self.K_I, self.K_D = (_each(k, v, n) for k, v in (("K_P", K_P), ("K_I", K_I), ("K_D", K_D)))
        self.setpoint = _each("setpoint", setpoint, n)
        self.u0 = self.setpoint if u0 is None else _each("u0", u0, n)
        if on_at is not None and not is_number(on_at):
            raise SetupError(f"Pid: on_at must be a time or None, not {on_at!r}")
        self.on_at = on_at
        self._now = self._first(False)

    # -- the contract ----------------------------------------------------------------------------------------

    def start(self, t0: float) -> None:
        self._now = self._first(self._is_on(t0, 0.0))

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        now, h = self._now, u.H
        error, on = self.setpoint - u.end, self._is_on(t0, h)
        integral = now.integral + 0.5 * h * (error + now.error) if on else now.integral
        self._now = _Sample(error, integral, now.error, now.integral, h, on)
        return self._law(self._now, error)

    def output(self, t: float, u: Vector) -> Vector:
        return self._law(self._now, self.setpoint - u)

    def feedthrough(self) -> npt.NDArray[np.bool_]:
        return np.eye(len(self.setpoint), dtype=bool)

    def jacobian(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        h = u.H
        if not self._is_on(t0, h):
            return np.zeros((len(self.setpoint),) * 2)
        return np.diag(-(self.K_P + 0.5 * h * self.K_I + self.K_D / h) * weight.sum())

    def save(self) -> tuple[Any, ...]:
        return tuple(self._now)

    def restore(self, state: Sequence[Any]) -> None:
        self._now = _Sample(*state)

    def get_state(self) -> Vector:
        return np.concatenate([self._now.error, self._now.integral])

    def set_state(self, x: Vector) -> None:
        error, integral = np.split(np.array(x, dtype=np.float64), 2)
        self._now = _Sample(error, integral, error, integral, 0.0, self._now.on)

    # -- inside ----------------------------------------------------------------------------------------------

    def _first(self, on: bool) -> _Sample:
        error, zero = self.setpoint - self.u0, np.zeros(len(self.setpoint))
        return _Sample(error, zero, error, zero, 0.0, on)

    def _is_on(self, t0: float, h: float) -> bool:
        """Whether the sample of the step that begins at `t0` counts."""
        return self.on_at is None or t0 >= self.on_at - _SAME_TIME * h

    def _law(self, now: _Sample, error: Vector) -> Vector:
        """The output of a sample for the error `error` at its end."""
        if not now.on:
            return np.zeros(len(error))
        psi: Vector = self.K_P * error + self.K_I * (now.integral_before + 0.5 * now.h * (error + now.error_before))
        if now.h > 0.0:
            psi = psi + self.K_D * (error - now.error_before) / now.h
        return psi


def _each(name: str, value: Any, n: int) -> Vector:
    """One finite number per input."""
    numbers = doubles(value, n)
    if not np.isfinite(numbers).all():
        raise SetupError(f"Pid: {name} must be a finite number, or {n} of them (one per input), not {value!r}")
    return numbers
