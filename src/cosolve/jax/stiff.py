"""Stiff equations with error control, by diffrax: Kvaerno's ESDIRK method of order 5(4).

diffrax is used where it was measured to be faster than what stands in `integrators.py`, or does what that does not:
implicit steps of chosen length, one system of `n` equations per stage (`benchmarks/jax_integrators.py`). It is loaded
when a model asks for it. `diffeqsolve` takes a first step size and does not say the last one, so the mean of the
accepted ones is handed on to the next macro step.
"""

from __future__ import annotations

from typing import Any

from cosolve.basics.packages import optional
from cosolve.integrator.kernels import NOT_FINITE, OK, STUCK, TOO_MANY_STEPS

_SHORTEST = 1e-13  # of the macro step: what is shorter does not get anywhere


def load_diffrax() -> Any:
    """The module `diffrax`."""
    return optional("diffrax", "jax", "JaxOde: integrator 'kvaerno5'")


def kvaerno(
    diffrax: Any, jnp: Any, rtol: float, atol: float, max_steps: int, rhs: Any, t0: Any, t1: Any, x: Any, first: Any
) -> Any:
    """As the functions of `integrators.py`: (state, next step size, status, time)."""
    span = t1 - t0
    found = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, x, _: rhs(t, x)),
        diffrax.Kvaerno5(),
        t0,
        t1,
        jnp.where(first > 0.0, jnp.minimum(first, span), 1e-3 * span),
        x,
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol, dtmin=_SHORTEST * span, force_dtmin=False),
        adjoint=diffrax.ForwardMode(),
        max_steps=max_steps,
        throw=False,
    )
    end = found.ys[-1]
    finite = jnp.isfinite(rhs(t0, x)).all() & jnp.isfinite(rhs(t1, x)).all()
    failure = jnp.where(finite, STUCK, NOT_FINITE)
    failure = jnp.where(found.result == diffrax.RESULTS.max_steps_reached, TOO_MANY_STEPS, failure)
    status = jnp.where(found.result == diffrax.RESULTS.successful, OK, failure)
    return end, span / jnp.maximum(found.stats["num_accepted_steps"], 1), status, jnp.where(status == OK, t1, t0)
