"""The amplification matrix of the rigid two-mass oscillator, again from semi-implicit 10.2, without the engine."""

from math import factorial

import numpy as np
from scipy.linalg import expm


def radius(p, kind, parameters, k, H):
    """Spectral radius on (z_N, u_N, ..., u_{N-k}); `kind` 1, 2, 3 with (beta, gamma), (a, b), (omega,)."""
    matrix = macro_matrix(p, kind, parameters, k, H)
    return float(np.abs(np.linalg.eigvals(matrix)).max())


def macro_matrix(p, kind, parameters, k, H):
    """One macro step on (x1, v1, x2, v2, u_N, ..., u_{N-k}) with u = lam or (lam, mu)."""
    A = np.zeros((4, 4))
    A[:2, :2] = [[0, 1], [-p.c1 / p.m1, -p.d1 / p.m1]]
    A[2:, 2:] = [[0, 1], [-p.c2 / p.m2, -p.d2 / p.m2]]
    force, shift = np.array([0, 1 / p.m1, 0, -1 / p.m2]), np.array([1.0, 0, -1.0, 0])
    inputs = np.column_stack([force, shift]) if kind == 3 else force[:, np.newaxis]
    n = inputs.shape[1]
    position, rate = np.array([-1.0, 0, 1, 0]), np.array([0, -1.0, 0, 1])
    acceleration = rate @ A  # of the distance; + rate @ force * lam
    direct = float(rate @ force)
    phi, W = weights(A, inputs, k, H)
    size = 4 + n * (k + 1)
    columns = []
    for unit in np.eye(size):
        z, past = unit[:4], unit[4:].reshape(k + 1, n)
        known = phi @ z + sum((W[m] @ past[m - 1] for m in range(1, k + 1)), np.zeros(4))
        if kind == 3:
            rows = np.array([position, rate])
            u = np.linalg.solve(rows @ W[0], -rows @ known)
            u = parameters[0] * u + (1 - parameters[0]) * past[0]
        else:
            free = np.array([position @ known, rate @ known, acceleration @ known])
            slope = np.array([position @ W[0][:, 0], rate @ W[0][:, 0], acceleration @ W[0][:, 0] + direct])
            levels = np.array([1.0, *parameters])
            if kind == 1:
                u = np.array([-(levels @ free) / (levels @ slope)])
            else:
                u = np.array([levels @ (-free / slope) / levels.sum()])
        columns.append(np.concatenate([known + W[0] @ u, u, past[:k].ravel()]))
    return np.array(columns).T


def weights(A, inputs, k, H):
    """Phi, and the weights of the values at T_{N+1}, T_N, ..., T_{N-k+1}."""
    n = inputs.shape[1]
    chain = np.zeros((4 + n * (k + 1),) * 2)
    chain[:4, :4], chain[:4, 4 : 4 + n] = A, inputs
    for j in range(k):
        chain[4 + n * j : 4 + n * (j + 1), 4 + n * (j + 1) : 4 + n * (j + 2)] = np.eye(n)
    flow = expm(chain * H)
    gamma = [factorial(j) * flow[:4, 4 + n * j : 4 + n * (j + 1)] for j in range(k + 1)]
    L = np.linalg.inv(np.vander(H * np.arange(1.0, -k, -1.0)[: k + 1], k + 1, increasing=True))
    return flow[:4, :4], [sum(L[j, m] * gamma[j] for j in range(k + 1)) for m in range(k + 1)]
