"""Runge-Kutta steps as JAX functions: fixed explicit, adaptive Dormand-Prince, Radau IIA of order 5.

Each takes `rhs(t, x)`, the interval, the state and its `plan` (the number of equal steps, or the first step size to
try), and returns (state, next step size, status, time). They mirror `integrator/kernels.py` operation by operation;
loops are `while_loop`s, through which forward derivatives pass. Step sizes carry no derivative.

diffrax's Euler and Dopri5 take 1.1 to 1.8 times as long for a macro step and 2.5 to 6 times as long to compile, its
Kvaerno5 twice as long for two equations and a tenth for a hundred (`benchmarks/jax_integrators.py`, docs/jacobians.md):
that one is taken for stiff equations with error control.

Stiff equations: Kvaerno's ESDIRK method of order 5(4).

diffrax is used where it was measured to be faster than what stands here, or does what that does not:
implicit steps of chosen length, one system of `n` equations per stage (`benchmarks/jax_integrators.py`). It is loaded
when a model asks for it. `diffeqsolve` takes a first step size and does not say the last one, so the mean of the
accepted ones is handed on to the next macro step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cosolve.basics.packages import optional
from cosolve.integrator.kernels import DOPRI5, NOT_FINITE, OK, RADAU, STUCK, TOO_MANY_STEPS, Tableau
from cosolve.integrator.step_control import is_last

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


__all__ = ["NOT_FINITE", "OK", "STUCK", "TOO_MANY_STEPS", "adaptive", "explicit", "radau"]

#: Newton's iteration of the implicit method.
_NEWTON_STEPS = 20
_NEWTON_TOL = 1e-13


def explicit(jax: Any, jnp: Any, tableau: Tableau, rhs: Any, t0: Any, t1: Any, x: Any, count: Any) -> Any:
    """`count` equal steps of an explicit method."""
    h = (t1 - t0) / count

    def step(_: Any, now: Any) -> Any:
        t, x = now
        K = _stages(jax, jnp, rhs, tableau, t, h, x, jnp.zeros((len(tableau.b), x.size)), 0)
        return t + h, x + h * (tableau.b @ K)

    _, x = jax.lax.fori_loop(0, count, step, (jnp.asarray(t0, dtype=np.float64), x))
    return x, 0.0, OK, t1


def adaptive(
    jax: Any, jnp: Any, rtol: float, atol: float, max_steps: int, rhs: Any, t0: Any, t1: Any, x: Any, first: Any
) -> Any:
    """Dormand-Prince 5(4) with the error control of the native kernel."""
    held, span = jax.lax.stop_gradient, t1 - t0
    K0 = rhs(jnp.asarray(t0, dtype=np.float64), x)
    h = jnp.where(first > 0.0, first, _first_guess(jnp, rtol, atol, held(x), held(K0), span))

    def goes_on(now: Any) -> Any:
        return (now["t"] < t1) & (now["status"] == OK)

    def attempt(now: Any) -> Any:
        t, x, h = now["t"], now["x"], now["h"]
        last = is_last(t, h, t1)
        step = jnp.where(last, t1 - t, h)
        work = jnp.zeros((len(DOPRI5.b), x.size)).at[0].set(now["K0"])
        K = _stages(jax, jnp, rhs, DOPRI5, t, step, x, work, 1)
        x_new, error = x + step * (DOPRI5.b @ K), step * (DOPRI5.e @ held(K))
        scale = atol + rtol * jnp.maximum(jnp.abs(held(x)), jnp.abs(held(x_new)))
        size = _norm(jnp, error / scale)
        finite = jnp.isfinite(size)
        good = finite & (size <= 1.0)
        factor = jnp.where(size > 0.0, 0.9 * jnp.where(size > 0.0, size, 1.0) ** -0.2, 10.0)
        grown = jnp.minimum(10.0, jnp.maximum(0.2, factor))
        grown = jnp.where(now["shrunk"], jnp.minimum(1.0, grown), grown)
        h_new = jnp.where(good, step * grown, jnp.where(finite, step * jnp.maximum(0.2, factor), 0.1 * step))
        kept = jnp.where(good & last, jnp.maximum(h_new, jnp.minimum(now["proposed"], step * 10.0)), h_new)
        tried = now["tried"] + 1
        t_new = jnp.where(good, jnp.where(last, t1, t + step), t)
        tiny = h_new < 1e-14 * jnp.maximum(jnp.abs(t_new), jnp.abs(span))
        status = jnp.where(tried >= max_steps, TOO_MANY_STEPS, OK)
        status = jnp.where(tiny, jnp.where(finite, STUCK, NOT_FINITE), status)
        return {
            "t": t_new,
            "x": jnp.where(good, x_new, x),
            "K0": jnp.where(good, K[-1], now["K0"]),  # first same as last
            "h": h_new,
            "proposed": jnp.where(finite, kept, now["proposed"]),
            "shrunk": ~good,
            "tried": tried,
            "status": jnp.where(t_new < t1, status, OK),
        }

    begin = {
        "t": jnp.asarray(t0, dtype=np.float64),
        "x": x,
        "K0": K0,
        "h": h,
        "proposed": h,
        "shrunk": jnp.asarray(False),
        "tried": jnp.asarray(0),
        "status": jnp.asarray(OK),
    }
    end = jax.lax.while_loop(goes_on, attempt, begin)
    return end["x"], end["proposed"], end["status"], end["t"]


def radau(jax: Any, jnp: Any, rhs: Any, t0: Any, t1: Any, x: Any, count: Any) -> Any:
    """`count` equal steps of Radau IIA with three stages, each solved by Newton for its slopes.

    One Newton step more than convergence asks for is taken with the derivatives on: differentiating
    `K - M^-1 r(K)` at the solution gives `dK = -M^-1 dr`, the derivative of the implicit equation.
    """
    A, _ = RADAU[3]
    c, n, held = A.sum(axis=1), x.size, jax.lax.stop_gradient
    h = (t1 - t0) / count

    def step(_: Any, now: Any) -> Any:
        t, x, status = now

        def newton(K: Any) -> Any:
            """One correction of the slopes `K` (3, n): the matrix is `1 - h A x rhs'`, held."""
            at = t + c * h, x + h * (A @ K)
            by_x = held(jax.vmap(jax.jacfwd(rhs, argnums=1))(held(at[0]), held(at[1])))
            M = jnp.eye(3 * n) - h * jnp.einsum("ij,ipq->ipjq", A, by_x).reshape(3 * n, 3 * n)
            return K - jnp.linalg.solve(M, (K - jax.vmap(rhs)(*at)).reshape(-1)).reshape(3, n)

        def goes_on(search: Any) -> Any:
            _, change, k = search
            return (change > _NEWTON_TOL) & (k < _NEWTON_STEPS)

        def improve(search: Any) -> Any:
            K, _, k = search
            better = held(newton(held(K)))
            change = jnp.max(jnp.abs(better - K) / (1.0 + jnp.abs(better)), initial=0.0)
            return better, change, k + 1

        K, change, _ = jax.lax.while_loop(goes_on, improve, (jnp.zeros((3, n)), jnp.asarray(np.inf), 0))
        K = newton(K)
        # near the rounding of a stiff equation the change stands still above the tolerance
        status = jnp.where(change <= 1e-9, status, jnp.where(jnp.isfinite(change), STUCK, NOT_FINITE))
        return t + h, x + h * (A[2] @ K), status

    t, x, status = jax.lax.fori_loop(0, count, step, (jnp.asarray(t0, dtype=np.float64), x, jnp.asarray(OK)))
    return x, 0.0, status, t


def _stages(jax: Any, jnp: Any, rhs: Any, tableau: Tableau, t: Any, h: Any, x: Any, K: Any, first: int) -> Any:
    """Slopes of all stages from `first` on: a loop, so that `rhs` is compiled once and not once per stage."""
    a, c = jnp.asarray(tableau.a), jnp.asarray(tableau.c)

    def stage(i: Any, K: Any) -> Any:
        return K.at[i].set(rhs(t + c[i] * h, x + h * (a[i] @ K)))

    return jax.lax.fori_loop(first, len(tableau.b), stage, K)


def _norm(jnp: Any, value: Any) -> Any:
    return jnp.sqrt(jnp.mean(value**2)) if value.size else jnp.asarray(0.0)


def _first_guess(jnp: Any, rtol: float, atol: float, x: Any, slope: Any, span: Any) -> Any:
    """From the size of the state and its slope (Hairer, Nørsett and Wanner (1993), II.4)."""
    scale = atol + rtol * jnp.abs(x)
    d0, d1 = _norm(jnp, x / scale), _norm(jnp, slope / scale)
    sensible = (d0 > 1e-5) & (d1 > 1e-5)
    return jnp.minimum(jnp.where(sensible, 0.01 * d0 / jnp.where(sensible, d1, 1.0), 1e-3 * span), span)
