"""cosolve's own integrators, started anew in every macro step: smooth, stiff and constrained.

From Python: `save`, `advance`, `restore`, `advance`, as a coupling method calls them. In the compiled loop: two equal
pendulums under Jacobi, coupled by a law that gives zero: a macro step is two integrations and what the master adds.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numba
import numpy as np
from problems import pendulum as p
from problems.jitted import controlled
from serve import serve

import cosolve as cs
from cosolve.subsystem.ode import INTEGRATORS

STATES = ("p1", "p2", "w1", "w2")
_FUNCTIONS: dict[float, Any] = {}
_ZERO, _ZEROS = numba.njit(lambda angle: 0.0 * angle), numba.njit(lambda place: 0.0 * place)
_SYSTEMS: dict[Any, cs.System] = {}


def _ode(solver: str, rtol: float, D: float) -> cs.Ode:
    if D not in _FUNCTIONS:
        _FUNCTIONS[D] = controlled(D)
    rhs, output = _FUNCTIONS[D]
    tolerances = {} if solver.startswith("ode") else {"rtol": rtol, "atol": rtol * 1e-2}
    fixed = {"internal_step": p.H} if solver.startswith("ode") else {}
    return cs.Ode(rhs, output, x0=p.START, inputs=["u"], outputs=list(STATES), integrator=solver, **tolerances, **fixed)


def _jax_ode(h: float, D: float) -> cs.JaxOde:
    import jax.numpy as jnp

    def rhs(t: Any, x: Any, u: Any) -> Any:
        a1, a2 = p.accelerations(jnp, x[0], x[1], x[2], x[3], u[0], D)
        return jnp.array([x[2], x[3], a1, a2])

    return cs.JaxOde(
        rhs, lambda t, x, u: x, x0=p.START, inputs=["u"], outputs=list(STATES), integrator="radau5", internal_step=h
    )


def _multibody(rtol: float) -> cs.multibody.MultibodySubsystem:
    """Two rods as rigid bodies in space: Euler parameters, ten constraints."""
    x1, y1, p1, x2, y2, p2 = p.absolute(*p.START[:2])
    model = cs.multibody.MultibodyModel(gravity=[0.0, -p.G, 0.0])

    def turned(angle: float) -> list[float]:  # about z, which is the axis of revolute joints
        return [float(np.cos(angle / 2)), 0.0, 0.0, float(np.sin(angle / 2))]

    inertia = [1.0 / 12.0, 1e-3, 1.0 / 12.0]
    model.body("one", mass=1.0, inertia=inertia, position=[x1, y1, 0.0], orientation=turned(p1))
    model.body("two", mass=1.0, inertia=inertia, position=[x2, y2, 0.0], orientation=turned(p2))
    for body, marker, at in (("one", "top1", 0.5), ("one", "end1", -0.5), ("two", "top2", 0.5)):
        model.marker(marker, body, [0.0, at, 0.0])
    model.joint("hinge", "revolute", "top1", "ground")
    model.joint("elbow", "revolute", "end1", "top2")
    return cs.multibody.MultibodySubsystem(model, ports=[("one", ["force"])], rtol=rtol, atol=rtol * 1e-2)


def _angles(body: cs.multibody.MultibodySubsystem) -> list[float]:
    """The planar state: angles and rates."""
    found = [body.state_of(name) for name in ("one", "two")]
    return [*(2.0 * float(np.arctan2(z[6], z[3])) for z in found), *(float(z[12]) for z in found)]


def _made(kind: str, rtol: float, D: float) -> cs.Subsystem:
    if kind == "multibody":
        return _multibody(rtol)
    if kind == "jax radau5":
        return _jax_ode(p.H, D)
    return _ode(kind, rtol, D)


def called(kind: str, rtol: float = 1e-6, D: float = 0.0) -> dict[str, Any]:
    """From Python, every step twice."""
    part = _made(kind, rtol, D)
    part.start(0.0)
    size = sum(port.length for port in part.inputs) if kind == "multibody" else 1
    zero = np.zeros((1, size))
    steps = round(p.T_END / p.H)
    part.advance(0.0, p.H, cs.Polynomial(0.0, p.H, zero))
    part.start(0.0)
    began = perf_counter()
    for k in range(steps):
        t0, t1 = k * p.H, (k + 1) * p.H
        signal = cs.Polynomial(t0, p.H, zero)
        state = part.save()
        part.advance(t0, t1, signal)
        part.restore(state)
        part.advance(t0, t1, signal)
    seconds = (perf_counter() - began) / steps / 2
    answer = (
        _angles(part) if isinstance(part, cs.multibody.MultibodySubsystem) else [float(v) for v in part.get_state()]
    )
    return {"seconds": seconds, "answer": answer}


def compiled(kind: str, rtol: float = 1e-6, D: float = 0.0, rounds: int = 20) -> dict[str, Any]:
    """In the compiled loop, many runs of the same second one after the other."""
    key = (kind, rtol, D)
    if key not in _SYSTEMS:
        system = cs.System({"one": _made(kind, rtol, D), "two": _made(kind, rtol, D)})
        law = _ZEROS if kind == "multibody" else _ZERO
        takes, gives = ("one_force", "one_position") if kind == "multibody" else ("u", "p1")
        system.law(f"one.{takes}", law, of=[f"two.{gives}"])
        system.law(f"two.{takes}", law, of=[f"one.{gives}"])
        _SYSTEMS[key] = system
    system = _SYSTEMS[key]
    why = cs.analysis.why_not_compiled(system, cs.Jacobi(0), p.H)
    if why:
        raise ValueError(why)
    steps, seconds, inside = 0, 0.0, 0.0
    for _ in range(rounds):
        began = perf_counter()
        result = cs.simulate(system, t_end=p.T_END, method=cs.Jacobi(0), step=p.H, compiled=True)
        seconds += perf_counter() - began - result.stats.loading_seconds
        inside += result.stats.compiled_seconds
        steps += result.stats.compiled_steps
    if kind == "multibody":
        answer = _angles(system.plan().subsystems[0])
    else:
        answer = [float(result[f"one.{name}"][-1]) for name in STATES]
    return {"seconds": inside / steps / 2, "whole": seconds / steps / 2, "answer": answer}


def solvers() -> dict[str, Any]:
    """What `Ode` offers."""
    return {"seconds": 0.0, "answer": [], "solvers": list(INTEGRATORS)}


if __name__ == "__main__":
    serve({"called": called, "compiled": compiled, "solvers": solvers}, "cosolve", "numba")
