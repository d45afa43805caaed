"""Any small constrained mechanical system given by functions, integrated in each form of the drift remedies.

    q' = v,   M(q) v' = f(t, q, v) + C^T lambda,   c(q) = 0,   C = dc/dq,   c'' = C v' + gamma

(`f` is the source's `q^e - q^c`). This is the plain reference for the compiled multibody code (docs/theory.md,
"Drift").
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.errors import NonFiniteError, SetupError, SubsystemError
from cosolve.multibody.model.arrays import Matrix, Vector

FORMS = ("index_1", "baumgarte", "ggl", "projection", "position_projection")

_SIXTH = np.array([1 / 6, 1 / 3, 1 / 3, 1 / 6])
_DIVERGED = 1e3  # a constraint violated by this much: the run is lost


@dataclass(frozen=True)
class Constrained:
    """Mass matrix, forces and constraints as functions of `(t, q, v)`, `q` or `(q, v)`; `mass` may be a constant.

    >>> pendulum = Constrained(
    ...     mass=np.eye(2),
    ...     force=lambda t, q, v: np.array([0.0, -9.81]),
    ...     c=lambda q: np.array([q @ q - 1]),
    ...     C=lambda q: 2 * q[np.newaxis],
    ...     gamma=lambda q, v: np.array([2 * (v @ v)]),
    ... )
    >>> vdot, lam = pendulum.accelerations(0.0, np.array([0.0, -1.0]), np.zeros(2))
    >>> float(abs(vdot).max()), lam                        # hanging at rest: 2 lambda carries the weight
    (0.0, array([-4.905]))
    """

    mass: Matrix | Callable[[Vector], Matrix]
    force: Callable[[float, Vector, Vector], Any]
    c: Callable[[Vector], Any]
    C: Callable[[Vector], Any]
    gamma: Callable[[Vector, Vector], Any]

    def M(self, q: Vector) -> Matrix:
        """Mass matrix at `q`."""
        return self.mass(q) if callable(self.mass) else self.mass

    def accelerations(
        self, t: float, q: Vector, v: Vector, alpha: float = 0.0, beta: float = 0.0
    ) -> tuple[Vector, Vector]:
        """`v'` and the multipliers of the index-1 form, stabilised by Baumgarte's terms.

        Repeated constraints share their force in the least-squares sense.
        """
        M, C = self.M(q), np.asarray(self.C(q))
        n, m = len(q), len(C)
        K, r = np.zeros((n + m, n + m)), np.empty(n + m)
        K[:n, :n], K[:n, n:], K[n:, :n] = M, -C.T, C
        r[:n], r[n:] = self.force(t, q, v), -np.asarray(self.gamma(q, v))
        if alpha or beta:
            r[n:] -= 2.0 * alpha * (C @ v) + beta**2 * np.asarray(self.c(q))
        x: Any
        try:
            x = np.linalg.solve(K, r)
        except np.linalg.LinAlgError:
            x = np.linalg.lstsq(K, r, rcond=None)[0]
        return x[:n], x[n:]

    def project(self, q: Vector, v: Vector, *, velocity: bool = True) -> tuple[Vector, Vector]:
        """Mass-weighted projection of positions and, unless told otherwise, velocities."""
        before = np.inf
        for _ in range(50):
            c = np.asarray(self.c(q))
            size = float(np.abs(c).max(initial=0.0))
            if size <= 1e-15 or (size <= 1e-12 and size >= 0.5 * before):
                break
            before = size
            q = q - self._back(q, c)
        else:
            raise SubsystemError(f"the projection on the constraints does not converge (largest residual {size:.3g})")
        return (q, v - self._back(q, np.asarray(self.C(q)) @ v)) if velocity else (q, v)

    def _back(self, q: Vector, b: Vector) -> Vector:
        """`M^-1 C^T (C M^-1 C^T)^-1 b`."""
        C = np.asarray(self.C(q))
        W = np.linalg.solve(self.M(q), C.T)
        try:
            y = np.linalg.solve(C @ W, b)
        except np.linalg.LinAlgError:
            y = np.linalg.lstsq(C @ W, b, rcond=None)[0]
        step: Vector = W @ y
        return step


@dataclass(frozen=True)
class Motion:
    """A run: times, positions, velocities, multipliers and, for GGL, the correction multipliers `mu` (else zeros)."""

    t: Vector
    q: Matrix
    v: Matrix
    lam: Matrix
    mu: Matrix


def integrate_constrained(
    system: Constrained,
    q0: npt.ArrayLike,
    v0: npt.ArrayLike,
    *,
    t_end: float,
    h: float,
    form: str = "projection",
    alpha: float | None = None,
    beta: float | None = None,
    stages: int = 2,
    every: int = 1,
) -> Motion:
    """Integrate with steps `h`: RK4, or Radau IIA with 2 or 3 `stages` for "ggl"; keeps every `every`-th point.

    Baumgarte's `alpha` is `beta` (critical damping) and `beta` is 10 unless given.

    >>> pendulum = Constrained(
    ...     np.eye(2), lambda t, q, v: np.array([0.0, -9.81]), lambda q: np.array([q @ q - 1]),
    ...     lambda q: 2 * q[np.newaxis], lambda q, v: np.array([2 * (v @ v)]),
    ... )
    >>> run = integrate_constrained(pendulum, [1.0, 0.0], [0.0, 0.0], t_end=0.5, h=0.01)
    >>> bool(abs(run.q[-1] @ run.q[-1] - 1) < 1e-15)
    True
    """
    if form not in FORMS:
        raise SetupError(f"integrate_constrained: unknown form {form!r}; choose one of {', '.join(FORMS)}")
    if not (h > 0 and t_end > 0):
        raise SetupError(f"integrate_constrained: h and t_end must be positive, not {h!r} and {t_end!r}")
    a, b = 0.0, 0.0
    if form == "baumgarte":
        b = (10.0 if alpha is None else alpha) if beta is None else beta
        a = b if alpha is None else alpha
        if a * h > 2.5:
            warnings.warn(
                f"Baumgarte's alpha h = {a * h:.3g} is above 2.5 and RK4 is unstable above 2.78; use alpha below "
                f"{2.5 / h:.3g} or a smaller step",
                stacklevel=2,
            )
    q, v = np.array(q0, dtype=np.float64), np.array(v0, dtype=np.float64)
    lam = system.accelerations(0.0, q, v)[1]
    mu = np.zeros_like(lam)
    count = max(1, ceil(t_end / h - 1e-9))
    h = t_end / count
    kept = [(0.0, q, v, lam, mu)]
    for k in range(count):
        t = k * h
        if form == "ggl":
            q, v, lam, mu = _radau_step(system, t, h, q, v, lam, stages)
        else:
            q, v, lam = rk4_step(system, t, h, q, v, a, b)
            if form != "baumgarte" and form != "index_1":
                q, v = system.project(q, v, velocity=form == "projection")
        if (k + 1) % every == 0 or k + 1 == count:
            violation = np.abs(system.c(q)).max(initial=0.0)
            if not (np.isfinite(v).all() and violation < _DIVERGED):
                raise NonFiniteError(
                    f"the run diverged at t = {t + h:.6g} (constraint residual {violation:.3g}); use a remedy against "
                    "drift, smaller alpha and beta, or a smaller step",
                    time=t + h,
                )
            kept.append(((k + 1) * h, q, v, lam, mu))
    return Motion(*(np.array([row[i] for row in kept]) for i in range(5)))


def rk4_step(
    system: Constrained, t: float, h: float, q: Vector, v: Vector, alpha: float, beta: float
) -> tuple[Vector, Vector, Vector]:
    """One classical Runge-Kutta step; the multipliers are those at its start."""
    a1, lam = system.accelerations(t, q, v, alpha, beta)
    v2 = v + 0.5 * h * a1
    a2, _ = system.accelerations(t + 0.5 * h, q + 0.5 * h * v, v2, alpha, beta)
    v3 = v + 0.5 * h * a2
    a3, _ = system.accelerations(t + 0.5 * h, q + 0.5 * h * v2, v3, alpha, beta)
    v4 = v + h * a3
    a4, _ = system.accelerations(t + h, q + h * v3, v4, alpha, beta)
    q_new = q + h * (_SIXTH @ np.array([v, v2, v3, v4]))
    return q_new, v + h * (_SIXTH @ np.array([a1, a2, a3, a4])), lam


def _radau_step(
    system: Constrained, t: float, h: float, q: Vector, v: Vector, lam: Vector, stages: int
) -> tuple[Vector, Vector, Vector, Vector]:
    """One step of Radau IIA for the GGL form `q' = v - C^T mu`, `0 = c(q)`, `0 = C v`.

    Stage unknowns are `(q, v, h lambda, h mu)`; Newton's matrix is differenced at the end point of the tangent.
    """
    from cosolve.integrator.kernels import RADAU
    from cosolve.multibody.equations.radau import settled

    A, nodes = RADAU[stages]
    n, m, s = len(q), len(lam), stages
    size = 2 * (n + m)

    def G(time: float, y: Vector) -> Vector:
        Q, V, L, U = y[:n], y[n : 2 * n], y[2 * n : 2 * n + m] / h, y[2 * n + m :] / h
        C = np.asarray(system.C(Q))
        vdot = np.linalg.solve(system.M(Q), np.asarray(system.force(time, Q, V)) + C.T @ L)
        return np.concatenate([V - C.T @ U, vdot, np.asarray(system.c(Q)), C @ V])

    slope, lam0 = system.accelerations(t, q, v)
    Y = np.array([np.concatenate([q + c * h * v, v + c * h * slope, h * lam0, np.zeros(m)]) for c in nodes])
    base = G(t + h, Y[-1])
    D = np.empty((size, size))
    for k in range(size):
        shifted = Y[-1].copy()
        step = 1e-8 * max(1.0, abs(shifted[k]))
        shifted[k] += step
        D[:, k] = (G(t + h, shifted) - base) / step
    dynamic = np.zeros((size, 1))
    dynamic[: 2 * n] = 1.0
    whole = np.kron(np.eye(s), np.diag(dynamic[:, 0]) + (1 - dynamic) * D) - h * np.kron(A, dynamic * D)
    inverse = np.linalg.inv(whole)
    start = np.concatenate([q, v])
    before = np.inf
    for _ in range(50):
        g = np.array([G(t + c * h, y) for c, y in zip(nodes, Y, strict=True)])
        residual = g.copy()
        residual[:, : 2 * n] = Y[:, : 2 * n] - start - h * (A @ g[:, : 2 * n])
        move = (inverse @ residual.ravel()).reshape(s, size)
        Y = Y - move
        change = float((np.abs(move) / (1.0 + np.abs(Y)))[:, : 2 * n].max())
        if settled(change, before):
            return Y[-1, :n], Y[-1, n : 2 * n], Y[-1, 2 * n : 2 * n + m] / h, Y[-1, 2 * n + m :] / h
        if not np.isfinite(change):
            break
        before = change
    raise SubsystemError(f"Newton's method of the GGL step does not converge at t = {t:.6g}; try a smaller step")
