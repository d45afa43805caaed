"""Nonlinear one-mass oscillator: the test model of dynamic-static coupling (Schmoll (2015), 4.3).

    m x'' = F_1 + F_k
    F_1 = -1e5 sgn(x) x^4 - 5e-4 sgn(v) v^2                        in the dynamic subsystem
    F_k = -1e5 sgn(x) (exp(3 |x|) - 1) - 1e-5 sgn(v) |v|^3         in the static subsystem, called from outside

The mass is not given in the source; 1 kg matches the ranges of its plots. `F_k''` jumps at `x = 0`, so orders from 3 on
show only between zero crossings: `SEGMENT` is such a piece.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp

import numpy as np
from scipy.integrate import solve_ivp

import cosolve as cs

MASS = 1.0
X0 = np.array([2.0, -100.0])
T_END = 0.05
#: Between two zero crossings, in seconds.
SEGMENT = (1e-4, 4e-4)


def inner_force(x: float, v: float) -> float:
    """`F_1`, Eq. 4.18."""
    return -1e5 * np.sign(x) * x**4 - 5e-4 * np.sign(v) * v**2


def coupling_force(x: float, v: float) -> float:
    """`F_k`, Eq. 4.19: the expensive one."""
    return -1e5 * np.sign(x) * (exp(3.0 * abs(x)) - 1.0) - 1e-5 * np.sign(v) * abs(v) ** 3


def whole(t: float, z: np.ndarray) -> np.ndarray:
    """The uncoupled model, Eq. 4.20, as `z' = f(t, z)`."""
    x, v = float(z[0]), float(z[1])
    return np.array([v, (inner_force(x, v) + coupling_force(x, v)) / MASS])


def oscillator(x0: np.ndarray = X0, static: cs.Subsystem | None = None) -> cs.System:
    """The coupled model, Eqs. 4.21-4.25; another `static` subsystem takes the place of the force law."""

    def rhs(t: float, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        x, v = float(z[0]), float(z[1])
        return np.array([v, (inner_force(x, v) + u[0]) / MASS])

    motion = [
        cs.Port("x", nominal=2.0),
        cs.Port("v", nominal=5e3),
    ]  # forces of 4e7 beside them say nothing of their size
    mass = cs.Ode(rhs, lambda t, z, u: z, x0=x0, inputs=["force"], outputs=motion)
    law = static or cs.Static(
        lambda t, u: coupling_force(float(u[0]), float(u[1])), inputs=["x", "v"], outputs=["force"]
    )
    system = cs.System({"mass": mass, "law": law})
    system.connect("mass.x", "law.x")
    system.connect("mass.v", "law.v")
    system.connect("law.force", "mass.force")
    return system


@lru_cache(maxsize=2)
def reference(t_end: float = T_END) -> Reference:
    """The uncoupled model at tolerances near rounding, piecewise between the kinks at `x = 0`, `v = 0`."""
    return Reference(t_end)


class Reference:
    """`reference(t)` gives rows (x, v); `zeros` are the zero crossings of x."""

    def __init__(self, t_end: float) -> None:
        self.zeros: list[float] = []
        self._ends, self._pieces = [0.0], []
        t, z, watched = 0.0, X0, 0  # x and v become zero in turn
        while t < t_end:
            piece = solve_ivp(
                whole, (t, t_end), z, method="DOP853", rtol=3e-14, atol=1e-13, dense_output=True, events=_zero(watched)
            )
            self._pieces.append(piece.sol)
            t, z = float(piece.t[-1]), piece.y[:, -1].copy()
            self._ends.append(t)
            if piece.t_events[0].size:
                if watched == 0:
                    self.zeros.append(t)
                z[watched] = 0.0
                watched = 1 - watched

    def __call__(self, t: float | np.ndarray) -> np.ndarray:
        times = np.atleast_1d(t)
        which = np.clip(np.searchsorted(self._ends, times, side="left") - 1, 0, len(self._pieces) - 1)
        return np.array([self._pieces[k](time) for k, time in zip(which, times, strict=True)])


def _zero(k: int):
    def value(t: float, z: np.ndarray) -> float:
        return z[k]

    value.terminal = True
    return value
