"""diffrax: Dopri5 and Kvaerno5, one jitted call per macro step or the whole loop in `lax.scan`."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
from problems import pendulum as p
from serve import serve

jax.config.update("jax_enable_x64", True)
_MADE: dict[Any, Any] = {}


def _advance(solver: str, rtol: float, D: float) -> Any:
    def slope(t: Any, x: Any, args: Any) -> Any:
        a1, a2 = p.accelerations(jnp, x[0], x[1], x[2], x[3], 0.0, D)
        return jnp.array([x[2], x[3], a1, a2])

    term, method = diffrax.ODETerm(slope), getattr(diffrax, solver)()
    control = diffrax.PIDController(rtol=rtol, atol=rtol * 1e-2)

    def advance(t0: Any, x: Any) -> Any:
        found = diffrax.diffeqsolve(
            term, method, t0, t0 + p.H, None, x, stepsize_controller=control, adjoint=diffrax.ForwardMode()
        )
        return found.ys[-1]

    return advance


def restarted(solver: str, rtol: float, D: float = 0.0, scan: bool = False) -> dict[str, Any]:
    """Macro step after macro step, each advanced twice from the same state (once in a scan, which would share them)."""
    key = solver, rtol, D, scan
    steps, x = round(p.T_END / p.H), jnp.array(p.START)
    times = jnp.arange(steps) * p.H
    if key not in _MADE:
        advance = _advance(solver, rtol, D)
        whole = jax.jit(lambda x: jax.lax.scan(lambda x, t: (advance(t, x), None), x, times)[0])
        _MADE[key] = whole if scan else jax.jit(advance)
    run = _MADE[key]
    jax.block_until_ready(run(x) if scan else run(0.0, x))
    began = perf_counter()
    if scan:
        x = jax.block_until_ready(run(x))
    else:
        for k in range(steps):
            for _ in range(2):
                new = jax.block_until_ready(run(k * p.H, x))
            x = new
    seconds = (perf_counter() - began) / steps / (1 if scan else 2)
    return {"seconds": seconds, "answer": [float(v) for v in x]}


if __name__ == "__main__":
    serve({"restarted": restarted}, "diffrax", "jax")
