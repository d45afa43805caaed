"""An independent monolithic model: free rigid bodies with rigid or flexible basic joints, in plain numpy.

Written from the formulas of Lu (2015), ch. 2 and 3, without any code of cosolve: the oracle of the joint tests. Rigid
joints by accelerations (index 1) with a tight explicit solver, so drift stays at the solver's tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.integrate import solve_ivp


def T(q):
    q = q / np.linalg.norm(q)
    a, v = q[0], q[1:]
    return (2 * a * a - 1) * np.eye(3) + 2 * np.outer(v, v) + 2 * a * skew(v)


def skew(v):
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def P(q):
    a, b, c, d = q
    return 2 * np.array([[-b, a, d, -c], [-c, -d, a, b], [-d, c, -b, a]])


@dataclass
class Body:
    m: float
    J: np.ndarray
    z0: np.ndarray  # r, q, v, omega
    torque: Callable[[float], np.ndarray] = field(default=lambda t: np.zeros(3))  # body frame
    force: Callable[[float], np.ndarray] = field(default=lambda t: np.zeros(3))  # K0, at the centre of mass


@dataclass
class Basic:
    """`kind` atpoint, inplane or perpendicular between bodies i and j; flexible when `c` is given."""

    kind: str
    i: int
    j: int
    r_i: Sequence[float] = (0, 0, 0)
    r_j: Sequence[float] = (0, 0, 0)
    e_i: Sequence[float] = (0, 0, 0)
    e_j: Sequence[float] = (0, 0, 0)
    c: float | None = None
    d: float = 0.0
    law: Callable | None = None  # instead of c, d: law(g, rate)


class Monolithic:
    def __init__(self, bodies: list[Body], joints: list[Basic], gravity=(0.0, 0.0, -9.81)):
        self.bodies, self.joints, self.g = bodies, joints, np.array(gravity)

    def rows(self, joint, z):
        """Condition, constraint rows (n x 6 for each body: v in K0, omega in body frame), rates and gamma = W' v."""
        zi, zj = z[joint.i], z[joint.j]
        Ti, Tj = T(zi[3:7]), T(zj[3:7])
        wi, wj = Ti @ zi[10:], Tj @ zj[10:]
        ci, cj = Ti @ np.array(joint.r_i, float), Tj @ np.array(joint.r_j, float)
        delta = zi[:3] + ci - zj[:3] - cj
        rate = zi[7:10] + np.cross(wi, ci) - zj[7:10] - np.cross(wj, cj)
        turn = np.cross(wi, np.cross(wi, ci)) - np.cross(wj, np.cross(wj, cj))
        if joint.kind == "atpoint":
            Wi, Wj = np.hstack([np.eye(3), -skew(ci) @ Ti]), np.hstack([-np.eye(3), skew(cj) @ Tj])
            return delta, rate, Wi, Wj, turn
        n = Tj @ np.array(joint.e_j, float)
        n1, n2 = np.cross(wj, n), np.cross(wj, np.cross(wj, n))
        if joint.kind == "inplane":
            Wi = np.hstack([n, np.cross(ci, n) @ Ti])[None]
            Wj = np.hstack([-n, -np.cross(zi[:3] + ci - zj[:3], n) @ Tj])[None]
            gamma = turn @ n + 2 * rate @ n1 + delta @ n2
            return np.array([delta @ n]), np.array([rate @ n + delta @ n1]), Wi, Wj, np.array([gamma])
        a = Ti @ np.array(joint.e_i, float)
        a1, a2 = np.cross(wi, a), np.cross(wi, np.cross(wi, a))
        Wi = np.hstack([np.zeros(3), np.cross(a, n) @ Ti])[None]
        Wj = np.hstack([np.zeros(3), -np.cross(a, n) @ Tj])[None]
        return np.array([a @ n]), np.array([a1 @ n + a @ n1]), Wi, Wj, np.array([a2 @ n + 2 * a1 @ n1 + a @ n2])

    def solve(self, t, x):
        """Accelerations (n x 6) and multipliers."""
        z = x.reshape(-1, 13)
        n = len(self.bodies)
        F, Minv = np.zeros((n, 6)), np.zeros((n, 6, 6))
        for k, (body, zk) in enumerate(zip(self.bodies, z, strict=True)):
            w = zk[10:]
            F[k, :3] = body.m * self.g + body.force(t)
            F[k, 3:] = body.torque(t) - np.cross(w, body.J @ w)
            Minv[k, :3, :3], Minv[k, 3:, 3:] = np.eye(3) / body.m, np.linalg.inv(body.J)
        W, gamma = [], []
        for joint in self.joints:
            g, rate, Wi, Wj, bias = self.rows(joint, z)
            if joint.c is not None or joint.law is not None:
                lam = -joint.c * g - joint.d * rate if joint.law is None else joint.law(g, rate)
                F[joint.i] += Wi.T @ lam
                F[joint.j] += Wj.T @ lam
                continue
            full = np.zeros((len(g), n, 6))
            full[:, joint.i], full[:, joint.j] = Wi, Wj
            W.append(full)
            gamma.append(bias)
        lam = np.zeros(0)
        if W:
            C = np.concatenate(W)
            weighted = np.einsum("rnk,nkl->rnl", C, Minv)
            A = np.einsum("rnk,snk->rs", weighted, C)
            b = -np.concatenate(gamma) - np.einsum("rnk,nk->r", weighted, F)
            lam = np.linalg.solve(A, b)
            F = F + np.einsum("r,rnk->nk", lam, C)
        return np.einsum("nkl,nl->nk", Minv, F), lam

    def rhs(self, t, x):
        z = x.reshape(-1, 13)
        acc, _ = self.solve(t, x)
        out = np.empty_like(z)
        for k, zk in enumerate(z):
            q = zk[3:7]
            out[k, :3] = zk[7:10]
            out[k, 3:7] = P(q).T @ zk[10:] / 4
            out[k, 7:] = acc[k]
        return out.ravel()

    def run(self, times, rtol=1e-11, atol=1e-13):
        x0 = np.concatenate([b.z0 for b in self.bodies])
        sol = solve_ivp(self.rhs, (times[0], times[-1]), x0, "DOP853", t_eval=times, rtol=rtol, atol=atol)
        return sol.y.T.reshape(len(times), -1, 13)

    def energy(self, z):
        total = 0.0
        for body, zk in zip(self.bodies, z, strict=True):
            total += 0.5 * body.m * zk[7:10] @ zk[7:10] + 0.5 * zk[10:] @ body.J @ zk[10:] - body.m * self.g @ zk[:3]
        for joint in self.joints:
            if joint.c is not None:
                g = self.rows(joint, z)[0]
                total += 0.5 * joint.c * g @ g
        return total
