"""CasADi's SUNDIALS integrators, called anew for every macro step: cvodes on the angles, idas on the constrained rods.

The constrained form is of index 1: absolute coordinates of both rods, multipliers from the constraints differentiated
twice (written by CasADi's own derivatives), as one has to hand it to idas.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import casadi as ca
from problems import pendulum as p
from serve import serve

_MADE: dict[Any, Any] = {}


def _smooth(D: float) -> dict[str, Any]:
    x = ca.SX.sym("x", 4)
    a1, a2 = p.accelerations(ca, x[0], x[1], x[2], x[3], 0.0, D)
    return {"x": x, "ode": ca.vertcat(x[2], x[3], a1, a2)}


def _constrained() -> dict[str, Any]:
    q, v, lam = ca.SX.sym("q", 6), ca.SX.sym("v", 6), ca.SX.sym("lam", 4)
    half = 0.5
    top1 = ca.vertcat(q[0] - half * ca.sin(q[2]), q[1] + half * ca.cos(q[2]))
    end1 = ca.vertcat(q[0] + half * ca.sin(q[2]), q[1] - half * ca.cos(q[2]))
    top2 = ca.vertcat(q[3] - half * ca.sin(q[5]), q[4] + half * ca.cos(q[5]))
    g = ca.vertcat(top1, end1 - top2)
    J = ca.jacobian(g, q)
    mass = ca.diag(ca.DM([1.0, 1.0, 1.0 / 12.0] * 2))
    a = ca.solve(mass, ca.vertcat(0.0, -p.G, 0.0, 0.0, -p.G, 0.0) + J.T @ lam)
    rate = J @ v
    return {"x": ca.vertcat(q, v), "z": lam, "ode": ca.vertcat(v, a), "alg": ca.jacobian(rate, q) @ v + J @ a}


def restarted(plugin: str, rtol: float, D: float = 0.0) -> dict[str, Any]:
    """Macro step after macro step, each advanced twice from the same state."""
    key = plugin, rtol, D
    if key not in _MADE:
        problem = _constrained() if plugin == "idas" else _smooth(D)
        tolerances = {"reltol": rtol, "abstol": rtol * 1e-2}
        _MADE[key] = ca.integrator("I", plugin, problem, 0.0, p.H, tolerances)
    integrate = _MADE[key]
    x, z = ca.DM(p.START), ca.DM()
    if plugin == "idas":
        x, z = ca.DM([*p.absolute(*p.START[:2]), *([0.0] * 6)]), ca.DM.zeros(4)
        z = integrate(x0=x, z0=z)["zf"]  # a good first guess of the multipliers
    steps = round(p.T_END / p.H)
    began = perf_counter()
    for _ in range(steps):
        for _ in range(2):
            found = integrate(x0=x, z0=z) if plugin == "idas" else integrate(x0=x)
        x = found["xf"]
        if plugin == "idas":
            z = found["zf"]
    seconds = (perf_counter() - began) / steps / 2
    picked = (2, 5, 8, 11) if plugin == "idas" else range(4)
    return {"seconds": seconds, "answer": [float(x[k]) for k in picked]}


if __name__ == "__main__":
    serve({"restarted": restarted}, "casadi")
