"""Solvers that advance over every macro step with one step of their own, given as a function.

Implicit steps of a structure, a flow or a drive train, sampled controllers, difference equations: what they do in a
step of length `H` is one map

    (x_{n+1}, y_{n+1}) = step(t_n, H, x_n, u_{n+1})

of the state and the inputs at the end of the step. Multistep rules (BDF2) keep their past in the state. Jitted
functions are called from compiled loops too, with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector, doubles
from cosolve.basics.checks import initial_state, refuse_no_function
from cosolve.errors import NonFiniteError, SetupError, SubsystemError
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import PortLike, Ports
from cosolve.subsystem.signatures import refuse_wrong_arguments

if TYPE_CHECKING:
    from cosolve.subsystem.native import Native


class OneStep(Subsystem):
    """A solver whose macro step is one step of its own, given as a function.

    Parameters
    ----------
    step : callable
        `step(t, H, x, u, new, y)`: time at the start of the step, its length, state there, inputs at its *end*; writes
        the next state into `new` and the outputs into `y`. All arrays are flat. It may return a whole number: 0 or None
        is success, any other fails the step. If it is jitted by numba, it runs in the compiled loop.
    x0 : array_like
        Initial state.
    y0 : array_like
        Outputs at the start.
    inputs : sequence of str, (str, int) or Port
        Input ports.
    outputs : sequence of str, (str, int) or Port
        Output ports.
    begin : callable or None, default None
        `begin(t, u)` returns `(x, y)` at the start, if they depend on the inputs. `y0` is then what others see before.
    jacobian : callable or None, default None
        `jacobian(t, H, x, u, D)` writes `dy/du` of the step into `D`, shape (outputs, inputs). None takes difference
        quotients.
    failure : callable or None, default None
        `failure(status, t, H, x, u)` returns the error message for a status other than 0.
    noise : float, default 0.0
        Relative accuracy of the outputs, if `step` iterates.

    Notes
    -----
    Equations::

        (x_{n+1}, y_{n+1}) = step(t_n, H, x_n, u_{n+1})

    Multistep formulas keep their past in the state.

    Examples
    --------
    >>> import cosolve as cs
    >>> def fly_wheel(t, H, x, u, new, y):          # J w' = u by implicit Euler
    ...     new[0] = x[0] + H * u[0] / 2.0
    ...     y[0] = new[0]
    >>> wheel = cs.OneStep(fly_wheel, x0=[0.0], y0=[0.0], inputs=["torque"], outputs=["speed"])
    >>> system = cs.System({"wheel": wheel})
    >>> system.law("wheel.torque", lambda w: 1.0 - w, of=["wheel.speed"])
    >>> result = cs.simulate(system, t_end=1.0, method=cs.Implicit(degree=0), step=0.01)
    >>> print(f"{result['wheel.speed'][-1]:.6f} {1 - 1.005 ** -100:.6f}")
    0.392713 0.392713
    """

    variable_step = False  # its step is the macro step

    def __init__(
        self,
        step: Callable[..., Any],
        *,
        x0: npt.ArrayLike,
        y0: npt.ArrayLike,
        inputs: Sequence[PortLike],
        outputs: Sequence[PortLike],
        begin: Callable[[float, Vector], tuple[Any, Any]] | None = None,
        jacobian: Callable[..., Any] | None = None,
        failure: Callable[[int, float, float, Vector, Vector], str] | None = None,
        noise: float = 0.0,
    ) -> None:
        refuse_no_function("OneStep", "(t, H, x, u, new, y)", step=step)
        refuse_wrong_arguments(step, ["t", "H", "x", "u", "new", "y"], "OneStep: step")
        self.step_function, self.jacobian_function = step, jacobian
        self.inputs, self.outputs, self.noise = inputs, outputs, float(noise)
        self.x0 = initial_state("OneStep", x0)
        self._n_inputs, self._n_outputs = Ports(inputs).length, Ports(outputs).length
        self.y0 = _numbers("y0", y0, self._n_outputs)
        self._begin_function, self._failure = begin, failure
        self.x = self.x0
        if begin is not None:
            refuse_no_function("OneStep", "(t, u)", begin=begin)
            refuse_wrong_arguments(begin, ["t", "u"], "OneStep: begin")
            self.begin = self._begun
        if failure is not None:
            refuse_no_function("OneStep", "(status, t, H, x, u)", failure=failure)
        if jacobian is not None:
            refuse_no_function("OneStep", "(t, H, x, u, D)", jacobian=jacobian)
            refuse_wrong_arguments(jacobian, ["t", "H", "x", "u", "D"], "OneStep: jacobian")
            self.jacobian = self._own_jacobian

    # -- the contract ----------------------------------------------------------------------------------------

    def start(self, t0: float) -> Vector:
        self.x = self.x0
        return self.y0.copy()

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        new, y = np.full(len(self.x), np.nan), np.full(self._n_outputs, np.nan)
        end = u.end
        status = self.step_function(t0, u.H, self.x.copy(), end, new, y)
        if status is not None and status != 0:
            raise SubsystemError(self._sentence(int(status), t0, u.H, end))
        if not np.isfinite(new).all():
            k = int(np.flatnonzero(~np.isfinite(new))[0])
            raise NonFiniteError(f"its step left state {k} at {new[k]} (every entry of `new` must be written)")
        self.x = new
        return y

    def save(self) -> Vector:
        return self.x

    def restore(self, state: Vector) -> None:
        self.x = state

    def get_state(self) -> Vector:
        return self.x

    def set_state(self, x: Vector) -> None:
        self.x = np.array(x, dtype=np.float64)

    def native(self, H: float, degree: int) -> Native | str:
        from cosolve.subsystem.native_one_step import one_step_native

        return one_step_native(self)

    # -- inside ----------------------------------------------------------------------------------------------

    def _begun(self, t0: float, u: Vector) -> Vector:
        assert self._begin_function is not None
        found = self._begin_function(t0, u)
        if not isinstance(found, tuple) or len(found) != 2:
            raise SetupError(f"OneStep: begin must return the pair (x, y), not {found!r}")
        self.x = _numbers("the x of begin", found[0], len(self.x0))
        return _numbers("the y of begin", found[1], self._n_outputs)

    def _own_jacobian(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        assert self.jacobian_function is not None
        D = np.zeros((self._n_outputs, self._n_inputs))
        self.jacobian_function(t0, u.H, self.x.copy(), u.end, D)
        return D * _at_the_end(weight)

    def _sentence(self, status: int, t: float, H: float, u: Vector) -> str:
        if self._failure is None:
            return f"its step failed with status {status}"
        return str(self._failure(status, t, H, self.x.copy(), u))


def _at_the_end(weight: Vector) -> float:
    """The value at the end of the step of a polynomial, added up from left to right as compiled loops do."""
    total = 0.0
    for value in weight.tolist():
        total += value
    return total


def _numbers(name: str, values: Any, n: int) -> Vector:
    """`n` finite numbers."""
    found = doubles(values).reshape(-1)
    if len(found) != n or not np.isfinite(found).all():
        raise SetupError(f"OneStep: {name} must be {n} finite number{'s' * (n != 1)}, not {values!r}")
    return found
