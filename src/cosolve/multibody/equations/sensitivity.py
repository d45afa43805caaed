"""Derivatives of the outputs at the end of a macro step by the inputs, integrated along with the motion, compiled.

For inputs `u(t) + eps w(s) e_k` the derivative `S_k = dx/d eps` obeys `S_k' = f_x S_k + w f_u e_k`; it is integrated by
the Runge-Kutta method of the state on the same steps. The directional derivatives of `f` are central differences with
increments fitted to `S_k`, so nothing is lost where an input moves the state only by `H^2`: differences of whole
evaluations would lose those digits. Projections are linearised on the constraints, where their derivative is the
projection on the tangent space.
"""

from __future__ import annotations

import numpy as np

from cosolve.jit import address_of, allocating, compiled, internal
from cosolve.multibody.equations.constraints import add_transposed, factorise, rows_times, solve_factorised, weigh_rows
from cosolve.multibody.equations.dynamics import derivative, project_by, violations
from cosolve.multibody.equations.joint_math import Triple, parameter_rate
from cosolve.multibody.equations.observe import observe
from cosolve.multibody.equations.stepping import copy_into, inputs_at
from cosolve.multibody.equations.table import Workspace, make_workspace
from cosolve.multibody.model.arrays import STATE, Arrays, Index, Matrix, Vector

_RELATIVE = 1e-5  # size of central differences


@internal
def increment(direction: Vector) -> float:
    """Factor that makes `direction` a small change; 0 for no direction at all."""
    largest = 0.0
    for value in direction:
        largest = max(largest, abs(value))
    return _RELATIVE / largest if largest > 0.0 else 0.0


@allocating
def slope_along(
    model: Arrays,
    x: Vector,
    S: Vector,
    u: Vector,
    k: int,
    w: float,
    driven: Matrix,
    extra: Matrix,
    work: Workspace,
    out: Vector,
) -> None:
    """`out = f_x S + w f_u e_k`."""
    n = len(x)
    ahead, behind = np.empty(n), np.empty(n)
    for i in range(n):
        out[i] = 0.0
    eps = increment(S)
    if eps > 0.0:
        derivative(model, x + eps * S, u, driven, extra, work, ahead)
        derivative(model, x - eps * S, u, driven, extra, work, behind)
        for i in range(n):
            out[i] += (ahead[i] - behind[i]) / (2.0 * eps)
    if w != 0.0:
        shift, centre = 10.0 * _RELATIVE * max(1.0, abs(u[k])), u[k]
        u[k] = centre + shift
        derivative(model, x, u, driven, extra, work, ahead)
        u[k] = centre - shift
        derivative(model, x, u, driven, extra, work, behind)
        u[k] = centre
        for i in range(n):
            out[i] += w * (ahead[i] - behind[i]) / (2.0 * shift)


@internal
def split(x: Vector, S: Vector, move: Matrix) -> None:
    """Positions of a change of state as velocities are: shift in K0 and small rotation `P dq` in the body frame."""
    for i in range(len(move)):
        q, d = x[STATE * i + 3 : STATE * i + 7], S[STATE * i + 3 : STATE * i + 7]
        for n in range(3):
            move[i, n] = S[STATE * i + n]
        move[i, 3] = 2.0 * (-q[1] * d[0] + q[0] * d[1] + q[3] * d[2] - q[2] * d[3])
        move[i, 4] = 2.0 * (-q[2] * d[0] - q[3] * d[1] + q[0] * d[2] + q[1] * d[3])
        move[i, 5] = 2.0 * (-q[3] * d[0] + q[2] * d[1] - q[1] * d[2] + q[0] * d[3])


@internal
def join(x: Vector, move: Matrix, S: Vector) -> None:
    """The inverse of `split`; what would change the length of `q` is gone."""
    for i in range(len(move)):
        w: Triple = (move[i, 3], move[i, 4], move[i, 5])
        rate = parameter_rate(x, STATE * i + 3, w)
        for n in range(3):
            S[STATE * i + n] = move[i, n]
        for n in range(4):
            S[STATE * i + 3 + n] = rate[n]


@allocating
def project_along(model: Arrays, x: Vector, driven: Matrix, level: int, work: Workspace, S: Matrix) -> None:
    """Project the changes of state `S` (one per row) on the tangent space at the projected state `x`."""
    n_free, m = model.counts[1], len(model.rows)
    move = np.empty((n_free, 6))
    if m == 0 or level == 0:
        for k in range(len(S)):
            split(x, S[k], move)
            join(x, move, S[k])
        return
    J, weighted, L = np.empty((m, 12)), np.empty((m, 12)), np.empty((m, m))
    rate, ahead, behind = np.empty(m), np.empty(m), np.empty(m)
    scale, b, shifted = np.empty(m), np.empty(m), np.empty(len(x))
    violations(model, x, driven, work)
    for r in range(m):
        for n in range(12):
            J[r, n] = work.J[r, n]
    weigh_rows(n_free, model.rows, model.bodies, J, weighted)
    factorise(model.rows, J, weighted, L, scale)
    for k in range(len(S)):
        split(x, S[k], move)
        rows_times(n_free, model.rows, J, move, 0, b)
        solve_factorised(L, scale, b)
        for r in range(m):
            b[r] = -b[r]
        add_transposed(n_free, model.rows, weighted, b, move, 0)
        join(x, move, S[k])
        if level < 2:
            continue
        for r in range(m):
            b[r] = 0.0
        eps = increment(move.ravel())
        if eps > 0.0:  # the rates of the constraints also change with the position
            for side in range(2):
                sign = eps if side == 0 else -eps
                copy_into(shifted, x)
                for i in range(n_free):
                    for n in range(7):
                        shifted[STATE * i + n] += sign * S[k, STATE * i + n]
                violations(model, shifted, driven, work)
                copy_into(ahead if side == 0 else behind, work.rate)
            for r in range(m):
                b[r] = (ahead[r] - behind[r]) / (2.0 * eps)
        for i in range(n_free):
            for n in range(6):
                move[i, n] = S[k, STATE * i + 7 + n]
        rows_times(n_free, model.rows, J, move, 0, rate)
        for r in range(m):
            b[r] += rate[r]
        solve_factorised(L, scale, b)
        for r in range(m):
            b[r] = -b[r]
        add_transposed(n_free, model.rows, weighted, b, move, 0)
        for i in range(n_free):
            for n in range(6):
                S[k, STATE * i + 7 + n] = move[i, n]


@compiled
def response(
    model: Arrays, level: int, t0: float, steps: Vector, x: Vector, u_t0: float, u_H: float, coef: Matrix,
    weight: Vector, driven: Matrix, extra: Matrix, a: Matrix, b: Vector, c: Vector, which: Index, table: int,
    settle: int, Y: Matrix,
) -> None:  # fmt: skip
    """Fill `Y` (inputs x outputs) with the derivatives of the outputs after the steps `steps` by each input.

    `settle` is where the projection is, for the model's `table`.
    """
    stages, n, n_u = len(b), len(x), coef.shape[1]
    K, KS, S = np.empty((stages, n)), np.empty((stages, n_u, n)), np.zeros((n_u, n))
    u, x_now, x_stage, S_stage = np.empty(n_u), x.copy(), np.empty(n), np.empty(n)
    work, t = make_workspace(model), t0
    for h in steps:
        for i in range(stages):
            s = (t + c[i] * h - u_t0) / u_H
            w = 0.0
            for j in range(len(weight) - 1, -1, -1):
                w = w * s + weight[j]
            inputs_at(coef, s, u)
            copy_into(x_stage, x_now)
            for j in range(i):
                if a[i, j] != 0.0:
                    for r in range(n):
                        x_stage[r] += h * a[i, j] * K[j, r]
            derivative(model, x_stage, u, driven, extra, work, K[i])
            for k in range(n_u):
                for r in range(n):
                    S_stage[r] = S[k, r]
                    for j in range(i):
                        S_stage[r] += h * a[i, j] * KS[j, k, r]
                slope_along(model, x_stage, S_stage, u, k, w, driven, extra, work, KS[i, k])
        for i in range(stages):
            for r in range(n):
                x_now[r] += h * b[i] * K[i, r]
                for k in range(n_u):
                    S[k, r] += h * b[i] * KS[i, k, r]
        t += h
        project_by(settle, table, address_of(x_now), level)
        project_along(model, x_now, driven, level, work, S)
    inputs_at(coef, 1.0, u)
    w = 0.0
    for j in range(len(weight)):
        w += weight[j]
    n_y = Y.shape[1]
    ahead, behind = np.empty(n_y), np.empty(n_y)
    for k in range(n_u):
        for r in range(n_y):
            Y[k, r] = 0.0
        eps = increment(S[k])
        if eps > 0.0:
            observe(model, x_now + eps * S[k], u, driven, extra, which, work, ahead)
            observe(model, x_now - eps * S[k], u, driven, extra, which, work, behind)
            for r in range(n_y):
                Y[k, r] += (ahead[r] - behind[r]) / (2.0 * eps)
        shift, centre = 10.0 * _RELATIVE * max(1.0, abs(u[k])), u[k]
        u[k] = centre + shift
        observe(model, x_now, u, driven, extra, which, work, ahead)
        u[k] = centre - shift
        observe(model, x_now, u, driven, extra, which, work, behind)
        u[k] = centre
        for r in range(n_y):
            Y[k, r] += w * (ahead[r] - behind[r]) / (2.0 * shift)
