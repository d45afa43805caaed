"""SciPy's integrators started anew in every macro step; the right-hand side is jitted by numba."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from problems import pendulum as p
from problems.jitted import rhs
from scipy.integrate import ode, solve_ivp
from serve import serve


def reference(D: float = 0.0) -> list[float]:
    """The state at the end, to 1e-11."""
    method = "Radau" if D else "DOP853"
    found = solve_ivp(rhs(D), (0.0, p.T_END), p.START, method=method, rtol=1e-12 if D else 1e-13, atol=1e-13)
    return [float(v) for v in found.y[:, -1]]


def restarted(method: str, rtol: float, D: float = 0.0, twice: bool = True) -> dict[str, Any]:
    """Macro step after macro step, each advanced twice from the same state."""
    function, x = rhs(D), np.array(p.START)
    function(0.0, x)
    steps, times = round(p.T_END / p.H), 2 if twice else 1
    began = perf_counter()
    for k in range(steps):
        t0, t1 = k * p.H, (k + 1) * p.H
        for _ in range(times):
            if method == "dopri5":
                solver = ode(function).set_integrator("dopri5", rtol=rtol, atol=rtol * 1e-2, nsteps=10000)
                new = solver.set_initial_value(x, t0).integrate(t1)
            else:
                new = solve_ivp(function, (t0, t1), x, method=method, rtol=rtol, atol=rtol * 1e-2).y[:, -1]
        x = new
    return {"seconds": (perf_counter() - began) / steps / times, "answer": [float(v) for v in x]}


if __name__ == "__main__":
    cases = {"restarted": restarted, "reference": lambda D=0.0: {"seconds": 0.0, "answer": reference(D)}}
    serve(cases, "scipy", "numba")
