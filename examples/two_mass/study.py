"""Accuracy studies on the two-mass oscillator: the error measures and runs behind the plots and the tests.

Runs take the engine (`engine`), or the engine for the first steps and then its own macro step as a matrix
(`by_map`): the same numbers up to rounding, thirty times faster, which is what makes studies with 10^6 macro steps
affordable. Errors are those of the coupling variables `x1, v1, F` at the macro points (Schmoll (2015), 2.5.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numba
import numpy as np

import cosolve as cs
from examples.two_mass.model import SCHMOLL, TwoMass, force_displacement

#: The coupling variables of the force-displacement split.
COUPLING = ("one.x", "one.v", "two.F")
#: What the exact solution needs to start again from a numerical state.
STATES = ("one.x", "one.v", "two.x", "two.v")


@dataclass(frozen=True)
class Trajectory:
    """Macro points `t` (N+1), steps `H` (N), coupling variables `y` (N+1, 3), states (N+1, 4)."""

    t: np.ndarray
    H: np.ndarray
    y: np.ndarray
    states: np.ndarray


def known_past(p: TwoMass = SCHMOLL) -> cs.KnownHistory:
    """Analytic start-up: the exact coupling variables before the start."""

    def outputs(t: float) -> dict[str, float]:
        state = p.exact(t)
        return {"one.x": state[0, 0], "one.v": state[0, 1], "two.F": p.force(state)[0]}

    return cs.KnownHistory(outputs)


def with_micro_steps(
    integrator: str = "ode5", h: float = 1e-6, p: TwoMass = SCHMOLL, *, free: bool = False, degree: int | None = None
) -> cs.System:
    """The force-displacement split with fixed micro steps instead of exact propagation.

    `free=True`: both solvers run on their own time grid past the macro points, and their outputs are interpolated
    back with polynomials of `degree` (default: that of the coupling signals).
    """
    rhs_one, rhs_two = _right_hand_sides(p)
    one: cs.Subsystem = cs.Ode(
        rhs_one,
        lambda t, x, u: x,
        x0=[p.x1, p.v1],
        inputs=["f"],
        outputs=["x", "v"],
        integrator=integrator,
        internal_step=h,
    )
    two: cs.Subsystem = cs.Ode(
        rhs_two,
        lambda t, x, u: (p.ck * (x[0] - u[0]) + p.dk * (x[1] - u[1]), x[0], x[1]),
        x0=[p.x2, p.v2],
        inputs=["x1", "v1"],
        outputs=["F", "x", "v"],
        integrator=integrator,
        internal_step=h,
    )
    if free:
        one, two = cs.InterpolatedOutputs(one, degree), cs.InterpolatedOutputs(two, degree)
    system = cs.System({"one": one, "two": two})
    system.connect("one.x", "two.x1")
    system.connect("one.v", "two.v1")
    system.connect("two.F", "one.f")
    return system


@cache
def _right_hand_sides(p: TwoMass) -> tuple[Any, Any]:
    """Compiled once per parameter set: numba specialises the integrator for each right-hand side."""
    m1, c1, d1, m2, ck, dk = p.m1, p.c1, p.d1, p.m2, p.ck, p.dk
    c22, d22 = p.c2 + p.ck, p.d2 + p.dk

    @numba.njit
    def one(t, x, u):
        return np.array([x[1], (-c1 * x[0] - d1 * x[1] + u[0]) / m1])

    @numba.njit
    def two(t, x, u):
        return np.array([x[1], (-c22 * x[0] - d22 * x[1] + ck * u[0] + dk * u[1]) / m2])

    return one, two


# -- runs --------------------------------------------------------------------------------------------------


def engine(
    method: cs.Method,
    step: float | cs.Adaptive | None,
    t_end: float,
    *,
    system: cs.System | None = None,
    startup: cs.RisingDegree | None = None,
) -> Trajectory:
    """A run of the engine itself, from beginning to end."""
    result = cs.simulate(system or force_displacement(), t_end=t_end, method=method, step=step, startup=startup)
    columns = (np.column_stack([result[name] for name in names]) for names in (COUPLING, STATES))
    return Trajectory(result.t, result.H, *columns)


def by_map(
    method: cs.Method,
    H: float,
    t_end: float,
    *,
    system: cs.System | None = None,
    startup: cs.RisingDegree | None = None,
    first: int = 20,
) -> Trajectory:
    """The engine for the `first` macro steps, then the matrix of its macro step; ends at the last multiple of `H`."""
    system = system or force_displacement()
    begun = engine(method, H, first * H, system=system, startup=startup)
    step = cs.analysis.amplification_matrix(system, method, H)
    assert step.linear, "the two-mass oscillator is linear"
    count = int(t_end / H * (1 + 1e-12))
    newest_first = begun.y[::-1][: method.degree + 1]
    path = np.empty((count - first + 1, len(step.matrix)))
    path[0] = np.concatenate([begun.states[-1], newest_first.ravel()])
    with np.errstate(all="ignore"):  # unstable runs may overflow
        for n in range(count - first):
            np.dot(step.matrix, path[n], out=path[n + 1])
    return Trajectory(
        np.arange(count + 1) * H,
        np.full(count, H),
        np.concatenate([begun.y, path[1:, 4:7]]),
        np.concatenate([begun.states, path[1:, :4]]),
    )


# -- errors ------------------------------------------------------------------------------------------------


def coupling(states: np.ndarray, p: TwoMass = SCHMOLL) -> np.ndarray:
    """The coupling variables that belong to rows of states."""
    return np.column_stack([states[:, 0], states[:, 1], p.force(states)])


def global_error(path: Trajectory, p: TwoMass = SCHMOLL) -> float:
    """NRMSE against the exact solution from the initial state."""
    return _nrmse(coupling(p.exact(path.t), p), path.y)


def local_error(path: Trajectory, p: TwoMass = SCHMOLL, skip: int = 0) -> float:
    """NRMSE against the exact solution restarted at every macro point (without the first `skip` steps)."""
    sizes, which = np.unique(np.round(path.H / path.H.max(), 9), return_inverse=True)
    with np.errstate(all="ignore"):
        if len(sizes) <= 4:
            moved = np.empty_like(path.states[1:])
            for k in range(len(sizes)):
                part = which == k
                moved[part] = path.states[:-1][part] @ p.flow(float(path.H[part][0])).T
        else:
            values, vectors = np.linalg.eig(p.A)
            amplitudes = np.linalg.solve(vectors, path.states[:-1].T.astype(complex))
            moved = (vectors @ (np.exp(np.multiply.outer(values, path.H)) * amplitudes)).real.T
        reference = coupling(moved, p)
    return _nrmse(reference[skip:], path.y[1:][skip:])


def _nrmse(exact: np.ndarray, values: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        error = cs.analysis.nrmse(exact, values) if np.isfinite(values).all() and np.isfinite(exact).all() else np.inf
    return error if np.isfinite(error) else np.inf
