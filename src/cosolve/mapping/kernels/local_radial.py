"""Weights of local radial basis interpolation: one small linear system per target point."""

from __future__ import annotations

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.lu import RCOND, eliminate, substitute
from cosolve.jit import compiled
from cosolve.mapping.mesh import Index

#: Extent across a neighbourhood, relative to that along it, below which its points count as flat.
_FLAT = 1e-4
#: Extent below which linear functions across the neighbourhood are used only where they need no extrapolation.
_THIN = 0.1

_eliminate, _substitute = compiled(eliminate), compiled(substitute)


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
def _squared(p: Vector, q: Vector) -> float:
    return float((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 + (p[2] - q[2]) ** 2)


@compiled
def _dot(p: Vector, q: Vector, n: int) -> float:
    total = 0.0
    for i in range(n):
        total += p[i] * q[i]
    return total


@compiled
def _subtract(p: Vector, factor: float, q: Vector) -> None:
    for i in range(len(p)):
        p[i] -= factor * q[i]


@compiled
def _coordinates(y: Matrix, k: int, functions: Matrix, gradients: Matrix) -> int:
    """Linear functions of the points `y[:k]`, the most independent ones first; how many of them to use.

    Pivoted elimination on the covariance: each function is a coordinate less its regression on those before. One that
    hardly varies over the points is dropped, and those after it; likewise one that varies little and whose value at the
    target `y[k]` lies far outside the values at the points.
    """
    for d in range(3):
        for j in range(3):
            gradients[d, j] = 1.0 if j == d else 0.0
        for j in range(k + 1):
            functions[d, j] = y[j, d]
    first = 0.0
    for step in range(3):
        best, pivot = -1.0, step
        for d in range(step, 3):
            size = _dot(functions[d], functions[d], k)
            if size > best:
                best, pivot = size, d
        first = max(first, best)
        for j in range(k + 1):
            functions[step, j], functions[pivot, j] = functions[pivot, j], functions[step, j]
        for j in range(3):
            gradients[step, j], gradients[pivot, j] = gradients[pivot, j], gradients[step, j]
        if best <= _FLAT**2 * first:
            return step
        low, high, value = np.inf, -np.inf, functions[step, k]
        for j in range(k):
            low, high = min(low, functions[step, j]), max(high, functions[step, j])
        if best <= _THIN**2 * first and max(low - value, value - high) > 0.5 * (high - low):
            return step
        for d in range(step + 1, 3):
            slope = _dot(functions[d], functions[step], k) / best
            _subtract(functions[d], slope, functions[step])
            _subtract(gradients[d], slope, gradients[step])
    return 3


@compiled
def _project(y: Matrix, k: int, functions: Matrix, gradients: Matrix, rank: int) -> None:
    """Move the target `y[k]` into the line or plane in which the dropped functions are zero."""
    for f in range(rank, 3):
        for g in range(rank, f):
            _subtract(gradients[f], _dot(gradients[f], gradients[g], 3), gradients[g])
        length = np.sqrt(_dot(gradients[f], gradients[f], 3))
        for d in range(3):
            gradients[f, d] /= length
        _subtract(y[k], _dot(gradients[f], y[k], 3), gradients[f])
    for f in range(rank):
        functions[f, k] = _dot(gradients[f], y[k], 3)


@compiled
def local_weights(sources: Matrix, targets: Matrix, starts: Index, columns: Index, basis: int) -> tuple[Vector, int]:
    """Weights of the source points `columns[starts[t] : starts[t + 1]]` for each target point `t`, one after the other.

    And the first target whose system is singular, or -1.
    """
    weights, most = np.empty(starts[-1] - starts[0]), 0
    for t in range(len(targets)):
        most = max(most, starts[t + 1] - starts[t])
    y, functions, gradients = np.empty((most + 1, 3)), np.empty((3, most + 1)), np.empty((3, 3))
    a, b, x = np.empty((most + 4, most + 4)), np.empty(most + 4), np.empty(most + 4)
    order = np.empty(most + 4, np.intp)
    for t in range(len(targets)):
        first = starts[t]
        k, radius = starts[t + 1] - first, 0.0
        for d in range(3):
            mean = 0.0
            for j in range(k):
                mean += sources[columns[first + j], d] / k
            for j in range(k):
                y[j, d] = sources[columns[first + j], d] - mean
            y[k, d] = targets[t, d] - mean
        for j in range(k):
            radius = max(radius, _dot(y[j], y[j], 3))
        radius = np.sqrt(radius) if radius > 0.0 else 1.0
        for j in range(k + 1):
            for d in range(3):
                y[j, d] /= radius
        rank = _coordinates(y, k, functions, gradients)
        if rank < 3:
            _project(y, k, functions, gradients, rank)
        m = k + 1 + rank
        for i in range(k):
            for j in range(i + 1):
                a[i, j] = a[j, i] = _phi(basis, _squared(y[i], y[j]))
            b[i] = _phi(basis, _squared(y[i], y[k]))
            a[i, k] = a[k, i] = 1.0
            for f in range(rank):
                a[i, k + 1 + f] = a[k + 1 + f, i] = functions[f, i]
        for i in range(k, m):
            for j in range(k, m):
                a[i, j] = 0.0
        b[k] = 1.0
        for f in range(rank):
            b[k + 1 + f] = functions[f, k]
        if not _eliminate(a, order, m, RCOND):
            return weights, t
        _substitute(a, order, m, b, x)
        for j in range(k):
            weights[first - starts[0] + j] = x[j]
    return weights, -1
