"""Weights of local radial basis interpolation: one small linear system per target point."""

from __future__ import annotations

import numpy as np

from cosolve.interface.mapping.kernels.compile import compiled
from cosolve.interface.mapping.mesh import Index
from cosolve.subsystem.port import Matrix, Vector

#: Extent across a neighbourhood, relative to that along it, below which its points count as flat.
_FLAT = 1e-4
#: Pivots below this share of the largest entry mean a singular system (entries are scaled to about one).
_SINGULAR = 1e-13


@compiled
def _phi(basis: int, r2: float) -> float:
    """The basis function of a squared distance, in units of the radius of the neighbourhood."""
    if basis == 0:
        return float(r2 * np.sqrt(r2))
    if basis == 1:
        return float(0.5 * r2 * np.log(r2)) if r2 > 0.0 else 0.0
    r = min(0.5 * np.sqrt(r2), 1.0)
    return float((1.0 - r) ** 4 * (4.0 * r + 1.0))


@compiled
def _coordinates(y: Matrix, k: int, functions: Matrix) -> int:
    """Linear functions of the points `y[:k]` and the target `y[k]`, most independent ones first; how many to use.

    Pivoted elimination on the covariance: each function is a coordinate less its regression on those before. One that
    hardly varies over the points is dropped with the rest, and the target moved into the line or plane that is left;
    likewise one that varies little and whose target value lies far outside the values at the points.
    """
    for d in range(3):
        functions[d] = y[:, d]
    first = 0.0
    for step in range(3):
        best, pivot = -1.0, step
        for d in range(step, 3):
            size = 0.0
            for j in range(k):
                size += functions[d, j] ** 2
            if size > best:
                best, pivot = size, d
        if step == 0:
            first = best
        for j in range(k + 1):
            functions[step, j], functions[pivot, j] = functions[pivot, j], functions[step, j]
        if best <= _FLAT**2 * first:
            return step
        low, high = functions[step, :k].min(), functions[step, :k].max()
        beyond = max(low - functions[step, k], functions[step, k] - high) / (high - low)
        if best <= 0.01 * first and beyond > 0.5:
            return step
        for d in range(step + 1, 3):
            slope = 0.0
            for j in range(k):
                slope += functions[d, j] * functions[step, j]
            slope /= best
            for j in range(k + 1):
                functions[d, j] -= slope * functions[step, j]
    return 3


@compiled
def _solve(a: Matrix, b: Vector, n: int) -> bool:
    """Solve in place by elimination with row pivoting; False when singular."""
    for c in range(n):
        p = c
        for i in range(c + 1, n):
            if abs(a[i, c]) > abs(a[p, c]):
                p = i
        if abs(a[p, c]) < _SINGULAR:
            return False
        if p != c:
            for j in range(c, n):
                a[c, j], a[p, j] = a[p, j], a[c, j]
            b[c], b[p] = b[p], b[c]
        for i in range(c + 1, n):
            factor = a[i, c] / a[c, c]
            if factor != 0.0:
                for j in range(c + 1, n):
                    a[i, j] -= factor * a[c, j]
                b[i] -= factor * b[c]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            b[i] -= a[i, j] * b[j]
        b[i] /= a[i, i]
    return True


@compiled
def local_weights(sources: Matrix, targets: Matrix, found: Index, basis: int) -> tuple[Matrix, int]:
    """One row of weights per target point; and the first target whose system is singular, or -1."""
    n, k = found.shape
    weights = np.empty((n, k))
    y, functions = np.empty((k + 1, 3)), np.empty((3, k + 1))
    a, b = np.empty((k + 4, k + 4)), np.empty(k + 4)
    for t in range(n):
        radius = 0.0
        for d in range(3):
            mean = 0.0
            for j in range(k):
                mean += sources[found[t, j], d] / k
            for j in range(k):
                y[j, d] = sources[found[t, j], d] - mean
            y[k, d] = targets[t, d] - mean
        for j in range(k):
            radius = max(radius, (y[j] ** 2).sum())
        y /= np.sqrt(radius) if radius > 0.0 else 1.0
        rank = _coordinates(y, k, functions)
        m = k + 1 + rank
        for i in range(k):
            for j in range(i):
                a[i, j] = a[j, i] = _phi(basis, ((y[i] - y[j]) ** 2).sum())
            a[i, i] = _phi(basis, 0.0)
            b[i] = _phi(basis, ((y[i] - y[k]) ** 2).sum())
            a[i, k] = a[k, i] = 1.0
            for f in range(rank):
                a[i, k + 1 + f] = a[k + 1 + f, i] = functions[f, i]
        a[k:m, k:m] = 0.0
        b[k] = 1.0
        for f in range(rank):
            b[k + 1 + f] = functions[f, k]
        if not _solve(a, b, m):
            return weights, t
        weights[t] = b[:k]
    return weights, -1
