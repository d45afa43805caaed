"""What the subsystems written in JAX share: loading it in double precision, tracing, and derivatives of functions.

JAX is an extra (`pip install cosolve[jax]`) and is loaded when first used. Everything runs inside `double()`: the
precision is switched on for our calls only, not for the rest of a user's program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix
from cosolve.basics.packages import optional
from cosolve.errors import CosolveError, SetupError
from cosolve.subsystem.port import Ports


def load(what: str) -> tuple[Any, Any]:
    """The modules `jax` and `jax.numpy`, for `what`."""
    return optional("jax", "jax", what), optional("jax.numpy", "jax", what)


def double(jax: Any) -> Any:
    """A context in which JAX computes in double precision."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return import_module("jax.experimental").enable_x64(True)


def traced(label: str, trace: Callable[[], Any]) -> Any:
    """Run `trace`, which makes JAX look at a user's function for the first time; one sentence when it cannot."""
    try:
        return trace()
    except CosolveError:
        raise
    except Exception as error:
        reason = str(error).partition("\n")[0]
        # what numpy, math and `if` meet inside a traced function is a tracer instead of a number
        hint = "; use jax.numpy instead of numpy and math, and jnp.where instead of if" if "Trac" in repr(error) else ""
        raise SetupError(f"{label} cannot be traced by JAX{hint} ({type(error).__name__}: {reason})") from error


def flat(jnp: Any, value: Any) -> Any:
    """A user's value as a flat array: an array, a number, a list of either, or a dict in its order."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        parts = [jnp.ravel(jnp.asarray(part, dtype=np.float64)) for part in value]
        return jnp.concatenate(parts) if parts else jnp.zeros(0)
    return jnp.ravel(jnp.asarray(value, dtype=np.float64))


def flat_outputs(jnp: Any, ports: Ports, value: Any) -> Any:
    """Outputs as a flat array in port order; a dict is taken by port name."""
    if isinstance(value, Mapping):
        if set(value) != set(ports.slices):
            raise SetupError(f"it returns values for {sorted(map(str, value))}, expected the ports {ports.names}")
        value = [value[name] for name in ports.names]
    return flat(jnp, value)


def jax_derivative(function: Callable[..., Any]) -> Callable[..., Matrix]:
    """Derive a function by automatic differentiation, for the `jacobian` of `System.law`.

    Parameters
    ----------
    function : callable
        `function(*arguments)`, plain arithmetic or written with `jax.numpy`.

    Returns
    -------
    callable
        `jacobian(*arguments)`: rows are the values, columns the numbers in all arguments one after the other.

    Examples
    --------
    >>> import cosolve as cs
    >>> spring = lambda x, y: 3.0 * (y - x) ** 3
    >>> cs.jax_derivative(spring)(1.0, 2.0)
    array([[-9.,  9.]])
    """
    if not callable(function):
        raise SetupError(f"jax_derivative takes a function, not {function!r}")
    jax, jnp = load("jax_derivative")
    label = f"'{getattr(function, '__name__', 'the function')}'"

    def matrix(*arguments: Any) -> Any:
        by_each = jax.jacfwd(lambda given: flat(jnp, function(*given)))(arguments)
        return jnp.concatenate([block.reshape(block.shape[0], -1) for block in by_each], axis=1)

    compiled = jax.jit(matrix)

    def jacobian(*arguments: Any) -> Matrix:
        with double(jax):
            numbers = tuple(np.asarray(argument, dtype=np.float64) for argument in arguments)
            return np.array(traced(label, lambda: compiled(*numbers)))

    return jacobian
