"""Planar mechanisms in absolute coordinates: the monolithic reference of the rigid-joint examples.

Every body has its own `(x, y, phi)`; joints are constraints `c(q) = 0` between points of bodies. Accelerations and
multipliers follow from the index-1 equations

    M a - C^T lam = f(t, q, v),    C a = -gamma(q, v)

which DOP853 integrates at 1e-12; over a second or two the drift stays below 1e-10. Nothing here is shared with the
split models: those use minimal coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

GROUND = -1
GRAVITY = 9.81
Point = tuple[float, float]
Load = Callable[[float, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Pin:
    """Point `at_i` of body `i` stays on point `at_j` of body `j`: `P_i - P_j = 0`, two multipliers."""

    i: int
    at_i: Point
    j: int = GROUND
    at_j: Point = (0.0, 0.0)


@dataclass(frozen=True)
class Inplane:
    """Point `at_i` of body `i` stays on the line of body `j` through `at_j` with `normal`: one multiplier."""

    i: int
    at_i: Point
    j: int = GROUND
    at_j: Point = (0.0, 0.0)
    normal: Point = (0.0, 1.0)


@dataclass(frozen=True)
class SameAngle:
    """Bodies `i` and `j` turn together: `phi_i - phi_j = 0`, one multiplier (a moment)."""

    i: int
    j: int


Joint = Pin | Inplane | SameAngle


@dataclass(frozen=True)
class Mechanism:
    """Bodies (masses, moments of inertia), joints, and further loads beside gravity."""

    masses: Sequence[float]
    inertias: Sequence[float]
    joints: Sequence[Joint]
    load: Load | None = None

    @property
    def mass(self) -> np.ndarray:
        """Diagonal of the mass matrix."""
        return np.array([entry for m, J in zip(self.masses, self.inertias, strict=True) for entry in (m, m, J)])

    def forces(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Gravity and the loads of the model."""
        f = np.zeros(len(q))
        f[1::3] = -GRAVITY * np.array(self.masses)
        return f if self.load is None else f + self.load(t, q, v)

    def rows(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Constraint values `c`, their Jacobian `C`, and `gamma = (dC/dt) v`."""
        c, C, gamma = [], [], []
        for joint in self.joints:
            for value, row, rest in _rows(joint, q, v):
                c.append(value)
                C.append(row)
                gamma.append(rest)
        return np.array(c), np.array(C), np.array(gamma)

    def accelerations(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations and multipliers, one multiplier per constraint row, `+lam` on body `i`."""
        _, C, gamma = self.rows(q, v)
        mass, f = self.mass, self.forces(t, q, v)
        lam = np.linalg.solve((C / mass) @ C.T, -gamma - C @ (f / mass))
        return (f + C.T @ lam) / mass, lam

    def solve(self, q0: np.ndarray, times: np.ndarray, tol: float = 1e-12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Coordinates, velocities and multipliers at `times`, from rest at `q0`."""
        n = len(q0)
        found = solve_ivp(
            lambda t, s: np.concatenate([s[n:], self.accelerations(t, s[:n], s[n:])[0]]),
            (0.0, float(times[-1])),
            np.concatenate([q0, np.zeros(n)]),
            method="DOP853",
            t_eval=times,
            rtol=tol,
            atol=tol,
        )
        states = found.y.T
        lam = np.array([self.accelerations(t, s[:n], s[n:])[1] for t, s in zip(times, states, strict=True)])
        return states[:, :n], states[:, n:], lam


def _rows(joint: Joint, q: np.ndarray, v: np.ndarray) -> list[tuple[float, np.ndarray, float]]:
    """(value, Jacobian row, rest of the second derivative) of each constraint of a joint."""
    n = len(q)
    if isinstance(joint, SameAngle):
        row = np.zeros(n)
        row[3 * joint.i + 2], row[3 * joint.j + 2] = 1.0, -1.0
        return [(q[3 * joint.i + 2] - q[3 * joint.j + 2], row, 0.0)]
    p_i, B_i, c_i = _point(joint.i, joint.at_i, q, v)
    p_j, B_j, c_j = _point(joint.j, joint.at_j, q, v)
    gap, B, rest = p_i - p_j, B_i - B_j, c_i - c_j
    if isinstance(joint, Pin):
        return [(gap[k], B[k], rest[k]) for k in range(2)]
    normal, N, rest_n = _direction(joint.j, joint.normal, q, v)
    return [(gap @ normal, normal @ B + gap @ N, rest @ normal + 2 * (B @ v) @ (N @ v) + gap @ rest_n)]


def _point(body: int, at: Point, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, Jacobian and centripetal acceleration of a point fixed to a body."""
    arm, N, rest = _direction(body, at, q, v)
    if body == GROUND:
        return arm, N, rest
    N[0, 3 * body] = N[1, 3 * body + 1] = 1.0
    return q[3 * body : 3 * body + 2] + arm, N, rest


def _direction(body: int, a: Point, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for a vector fixed to a body."""
    N = np.zeros((2, len(q)))
    if body == GROUND:
        return np.array(a), N, np.zeros(2)
    cos, sin, w = np.cos(q[3 * body + 2]), np.sin(q[3 * body + 2]), v[3 * body + 2]
    arm = np.array([cos * a[0] - sin * a[1], sin * a[0] + cos * a[1]])
    N[:, 3 * body + 2] = -arm[1], arm[0]
    return arm, N, -(w**2) * arm
