"""Static subsystems written in JAX: their derivatives come from the function itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import SetupError
from cosolve.jax.tools import double, flat_outputs, load, traced
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.port import PortLike, Ports
from cosolve.subsystem.static import Static


class JaxStatic(Static):
    """Algebraic subsystem `y = function(t, u)` written with `jax.numpy`, compiled and with exact derivatives.

    Parameters
    ----------
    function : callable
        `function(t, u)` returns the outputs; `u` is the flat array of inputs.
    inputs : sequence of str, (str, int) or Port
        Input ports.
    outputs : sequence of str, (str, int) or Port
        Output ports.

    Examples
    --------
    >>> import cosolve as cs, jax.numpy as jnp, numpy as np
    >>> law = cs.JaxStatic(lambda t, u: jnp.sin(u[0]) * u[1], inputs=["a", "b"], outputs=["y"])
    >>> law.output_jacobian(0.0, np.array([0.0, 2.0]))
    array([[2., 0.]])
    """

    def __init__(
        self, function: Callable[[Any, Any], Any], *, inputs: Sequence[PortLike], outputs: Sequence[PortLike]
    ) -> None:
        if not callable(function):
            raise SetupError(f"JaxStatic: needs a function of (t, u), not {function!r}")
        jax, jnp = load("JaxStatic")
        self._jax = jax
        gives, takes = Ports(outputs), Ports(inputs)

        def value(t: Any, u: Any) -> Any:
            return flat_outputs(jnp, gives, function(t, u))

        with double(jax):
            found = traced("JaxStatic: the function", lambda: jax.eval_shape(value, 0.0, np.zeros(takes.length)))
        if found.shape != (gives.length,):
            raise SetupError(f"JaxStatic: the function returns {found.size} numbers, expected {gives.length}")
        self._value = jax.jit(value)
        self._slope = jax.jit(jax.jacfwd(value, argnums=1))
        super().__init__(self._evaluate, inputs=inputs, outputs=outputs)

    def _evaluate(self, t: float, u: Vector) -> Vector:
        with double(self._jax):
            return np.array(self._value(t, u))

    def output_jacobian(self, t: float, u: Vector) -> Matrix:
        with double(self._jax):
            return np.array(self._slope(t, u))

    def jacobian(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        J: Matrix = self.output_jacobian(t1, u.end) * weight.sum()
        return J
