"""Integrators behind `JaxOde` against diffrax, case by case on the CPU: compiling, a macro step, its Jacobian.

    python benchmarks/jax_integrators.py

Both sides get the same equations, the same input polynomial and the same work: fixed steps of the same length, or the
same tolerances. Each macro step is one call from Python, as `JaxOde.advance` makes it. diffrax is called with forward
mode, no dense output, and nothing saved but the end. Times are the best of many, taken in turn, so that both sides see
the same load. The error is that of the end state against steps of a thousandth.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from cosolve.integrator.kernels import FIXED
from cosolve.jax.integrators import adaptive, explicit, radau

jax.config.update("jax_enable_x64", True)
RTOL, ATOL = 1e-8, 1e-10
ROUNDS = 100


def pendulum(u: Any, t: Any, x: Any) -> Any:
    return jnp.array([x[1], u - 9.81 * jnp.sin(x[0])])


def chain(u: Any, t: Any, x: Any) -> Any:
    """50 masses in a row with cubic springs, the first one pushed."""
    q, v = x[:50], x[50:]
    stretch = jnp.diff(jnp.concatenate([jnp.zeros(1), q, jnp.zeros(1)]))
    force = 100.0 * stretch + 10.0 * stretch**3
    return jnp.concatenate([v, jnp.diff(force) + jnp.zeros(50).at[0].set(u)])


def van_der_pol(u: Any, t: Any, x: Any) -> Any:
    return jnp.array([x[1], 1e3 * ((1.0 - x[0] ** 2) * x[1] - x[0]) + u])


#: name: equations, state, macro step
MODELS = {
    "pendulum (2 states)": (pendulum, np.array([1.0, 0.0]), 0.01),
    "chain (100 states)": (chain, np.linspace(0.0, 0.1, 100), 0.01),
    "van der Pol (2, stiff)": (van_der_pol, np.array([2.0, -0.66]), 0.01),
}
STEPS = 10  # per macro step, of the fixed-step solvers


def by_diffrax(solver: Any, control: Any, first: Any) -> Any:
    """`first(t0, t1, plan)` is the first step size, None for diffrax's own guess."""

    def integrate(rhs: Any, t0: Any, t1: Any, x: Any, plan: Any) -> Any:
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: rhs(t, y)),
            solver,
            t0,
            t1,
            first(t0, t1, plan),
            x,
            stepsize_controller=control,
            adjoint=diffrax.ForwardMode(),
            max_steps=None,
            throw=False,
        )
        return found.ys[-1], 0.0, found.result, t1

    return integrate


def functions(model: Any, integrate: Any) -> tuple[Any, Any]:
    """The macro step, and its derivative by the input, both compiled."""

    def advance(t0: Any, t1: Any, x: Any, coefficients: Any, plan: Any) -> Any:
        def moving(t: Any, x: Any) -> Any:
            s = (t - t0) / (t1 - t0)
            return model(coefficients[0] + s * coefficients[1], t, x)

        return integrate(moving, t0, t1, x, plan)

    def end(eps: Any, t0: Any, t1: Any, x: Any, coefficients: Any, plan: Any) -> Any:
        return advance(t0, t1, x, coefficients + eps * np.array([0.0, 1.0]), plan)[0]

    return jax.jit(advance), jax.jit(jax.jacfwd(end))


def best(calls: list[Any], rounds: int = ROUNDS) -> list[float]:
    """The shortest time of each call, taken in turn."""
    found = [np.inf] * len(calls)
    for _ in range(rounds):
        for k, call in enumerate(calls):
            began = perf_counter()
            jax.block_until_ready(call())
            found[k] = min(found[k], perf_counter() - began)
    return found


def compare(label: str, name: str, ours: Any, theirs: Any, plan: Any) -> None:
    model, x, H = MODELS[name]
    u = np.array([0.3, 0.1])
    step_count, slopes, compiling = [], [], []
    for integrate in (ours, theirs):
        advance, slope = functions(model, integrate)
        began = perf_counter()
        jax.block_until_ready(advance(0.0, H, x, u, plan))
        middle = perf_counter()
        jax.block_until_ready(slope(0.0, 0.0, H, x, u, plan))
        compiling.append((middle - began, perf_counter() - middle))
        step_count.append(partial(advance, 0.0, H, x, u, plan))
        slopes.append(partial(slope, 0.0, 0.0, H, x, u, plan))
    exact = functions(model, partial(radau, jax, jnp))[0](0.0, H, x, u, 1000)[0]
    errors = [float(np.max(np.abs(np.array(c()[0]) - exact))) for c in step_count]
    run, jacobian = best(step_count), best(slopes)
    cells = [label, name]
    cells += [f"{first:.1f} + {second:.1f}" for first, second in compiling]
    cells += [f"{1e6 * spent:.0f}" for spent in (*run, *jacobian)]
    cells += [f"{error:.0e}" for error in errors]
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    heads = [
        f"{what}, {who}" for what in ("compiling [s]", "step [us]", "Jacobian [us]") for who in ("ours", "diffrax")
    ]
    print("| solver | model | " + " | ".join([*heads, "error, ours", "diffrax"]) + " |")
    print("|" + "---|" * 10)
    constant, pid = diffrax.ConstantStepSize(), diffrax.PIDController(rtol=RTOL, atol=ATOL)
    fixed, guessed = (lambda t0, t1, plan: (t1 - t0) / plan), (lambda t0, t1, plan: None)
    for name, (model, x, H) in list(MODELS.items())[:2]:
        for label, solver in (("ode1", diffrax.Euler()), ("ode5", diffrax.Dopri5())):
            ours = partial(explicit, jax, jnp, FIXED[label])
            compare(f"{label}, {STEPS} steps", name, ours, by_diffrax(solver, constant, fixed), STEPS)
        ours = partial(adaptive, jax, jnp, RTOL, ATOL, 10_000)
        compare("dopri5, first macro step", name, ours, by_diffrax(diffrax.Dopri5(), pid, guessed), 0.0)
        going = float(functions(model, ours)[0](0.0, H, x, np.array([0.3, 0.1]), 0.0)[1])
        given = by_diffrax(diffrax.Dopri5(), pid, lambda t0, t1, plan: plan)
        compare("dopri5, later ones", name, ours, given, going)
    newton = diffrax.VeryChord(rtol=1e-10, atol=1e-12)
    ours, theirs = partial(radau, jax, jnp), by_diffrax(diffrax.Kvaerno5(root_finder=newton), constant, fixed)
    for name in list(MODELS)[:2]:
        compare(f"radau5 / Kvaerno5, {STEPS} steps", name, ours, theirs, STEPS)
    theirs = by_diffrax(diffrax.Kvaerno5(), pid, guessed)
    compare("radau5, 2 steps / Kvaerno5, adaptive", list(MODELS)[2], ours, theirs, 2)


if __name__ == "__main__":
    main()
