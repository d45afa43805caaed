"""Loops of the partition of unity: clusters of points, interpolation in each, and their blend at every target point."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.lu import eliminate
from cosolve.jit import compiled
from cosolve.mapping.kernels.local_radial import _THIN, _coordinates, _dot
from cosolve.mapping.mesh import Index

_eliminate = compiled(eliminate)

#: A linear function across a thin cluster is not used where a target is so many times its range away.
_FAR = 20.0


@compiled
def halves(points: Matrix, leaves: int) -> tuple[Index, Index]:
    """Points sorted into groups of nearly equal size, halved along the longer side each time.

    The order of the points, and where each group begins.
    """
    order, starts = np.arange(len(points)), np.zeros(leaves + 1, np.int64)
    starts[leaves] = len(points)
    stack, top = np.empty((128, 2), np.int64), 1
    stack[0, 0], stack[0, 1] = 0, leaves
    while top:
        top -= 1
        group, end = stack[top, 0], stack[top, 1]
        if end - group < 2:
            continue
        first, last, half = starts[group], starts[end], (group + end) // 2
        axis, widest = 0, -1.0
        for d in range(points.shape[1]):
            low, high = np.inf, -np.inf
            for k in range(first, last):
                low, high = min(low, points[order[k], d]), max(high, points[order[k], d])
            if high - low > widest:
                axis, widest = d, high - low
        middle = first + (last - first) * (half - group) // (end - group)
        _select(points[:, axis], order, first, last - 1, middle)
        starts[half] = middle
        stack[top, 0], stack[top, 1] = group, half
        stack[top + 1, 0], stack[top + 1, 1] = half, end
        top += 2
    return order, starts


@compiled
def _select(values: Vector, order: Index, first: int, last: int, middle: int) -> None:
    """Let the smaller values stand before `middle` and the larger ones from there on (Hoare's selection)."""
    while first < last:
        pivot = values[order[(first + last) // 2]]
        i, j = first, last
        while i <= j:
            while values[order[i]] < pivot:
                i += 1
            while values[order[j]] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            last = j
        elif middle >= i:
            first = i
        else:
            return


@compiled
def slimness(points: Matrix, starts: Index, columns: Index) -> Vector:
    """How wide each group of points is across its longest direction, relative to that."""
    found, most = np.empty(len(starts) - 1), 0
    for c in range(len(found)):
        most = max(most, starts[c + 1] - starts[c])
    y, functions, gradients = np.empty((most + 1, 3)), np.empty((3, most + 1)), np.empty((3, 3))
    for c in range(len(found)):
        n = starts[c + 1] - starts[c]
        for d in range(3):
            mean = 0.0
            for j in range(n):
                mean += points[columns[starts[c] + j], d] / n
            for j in range(n):
                y[j, d] = points[columns[starts[c] + j], d] - mean
            y[n, d] = 0.0
        if _coordinates(y, n, functions, gradients) < 2:
            found[c] = 0.0
        else:
            found[c] = np.sqrt(_dot(functions[1], functions[1], n) / _dot(functions[0], functions[0], n))
    return found


@compiled
def _phi(basis: int, scale: float, cut: float, r: float) -> float:
    """The basis function of a distance; `scale` is the shape, or one over the support."""
    if basis == 0:
        return float(r * r * np.log(r)) if r > 0.0 else 0.0
    if basis == 1:
        return r
    if basis == 2:
        return float(np.sqrt(scale * scale + r * r))
    if basis == 3:
        return float(1.0 / np.sqrt(scale * scale + r * r))
    if basis == 4:
        return float(np.exp(-((scale * r) ** 2))) if r < cut else 0.0
    r *= scale
    if r >= 1.0:
        return 0.0
    s = 1.0 - r
    if basis == 5:
        return s**2
    if basis == 6:
        return s**4 * (4.0 * r + 1.0)
    if basis == 7:
        return s**6 * ((35.0 * r + 18.0) * r + 3.0)
    if basis == 8:
        return s**8 * (((32.0 * r + 25.0) * r + 8.0) * r + 1.0)
    if basis == 9:
        return s**10 * ((((1287.0 * r + 1350.0) * r + 630.0) * r + 150.0) * r + 15.0)
    log = np.log(r) if r > 0.0 else 0.0
    return float(1.0 - 30.0 * r**2 - 10.0 * r**3 + 45.0 * r**4 - 6.0 * r**5 - 60.0 * r**3 * log)


@compiled
def _distance(p: Vector, q: Vector) -> float:
    return float(np.sqrt((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 + (p[2] - q[2]) ** 2))


@compiled
def _leave(
    function: Vector, n: int, gradient: Vector, mean: Vector, targets: Matrix, columns: Index, t0: int, m: int
) -> bool:
    """True when a linear function is far outside its values at the source points for some target point."""
    low, high = np.inf, -np.inf
    for j in range(n):
        low, high = min(low, function[j]), max(high, function[j])
    for k in range(m):
        value = 0.0
        for d in range(3):
            value += gradient[d] * (targets[columns[t0 + k], d] - mean[d])
        if max(low - value, value - high) > _FAR * (high - low):
            return True
    return False


@compiled
def cluster_weights(
    sources: Matrix,
    targets: Matrix,
    source_starts: Index,
    source_columns: Index,
    target_starts: Index,
    target_columns: Index,
    radii: Vector,
    basis: int,
    support: float,
    shape: float,
    polynomial: int,
) -> tuple[Vector, int]:
    """Weights of the interpolant of each cluster, target by target and source by source; the first singular one, or -1.

    Of a compact basis without `support` it is so many times (`shape`) the radius of the cluster. `polynomial` 0 leaves
    it out, 1 fits it first, 2 has it inside.
    """
    total, wide, high = 0, 0, 0
    for c in range(len(radii)):
        n, m = source_starts[c + 1] - source_starts[c], target_starts[c + 1] - target_starts[c]
        total += n * m
        wide, high = max(wide, n), max(high, m)
    weights, at = np.empty(total), 0
    y, functions, gradients = np.empty((wide + 1, 3)), np.empty((3, wide + 1)), np.empty((3, 3))
    a, b, mean = np.empty((wide + 4, wide + 4)), np.empty((wide + 4, high)), np.empty(3)
    order, p = np.empty(wide + 4, np.intp), np.empty(3)
    x, values = np.empty((wide + 4, high)), np.empty((4, wide))
    for c in range(len(radii)):
        s0, t0 = source_starts[c], target_starts[c]
        n, m = source_starts[c + 1] - s0, target_starts[c + 1] - t0
        if not m:
            continue
        scale, cut = shape, np.inf
        if basis >= 5:
            scale = 1.0 / support if support > 0.0 else 1.0 / (shape * radii[c])
        elif basis == 4 and support > 0.0:
            cut = support
        for d in range(3):
            mean[d] = 0.0
            for j in range(n):
                mean[d] += sources[source_columns[s0 + j], d] / n
            for j in range(n):
                y[j, d] = sources[source_columns[s0 + j], d] - mean[d]
            y[n, d] = 0.0
        rank = -1
        if polynomial:
            rank = _coordinates(y, n, functions, gradients)
            for f in range(1, rank):
                if _dot(functions[f], functions[f], n) <= _THIN**2 * _dot(functions[0], functions[0], n) and _leave(
                    functions[f], n, gradients[f], mean, targets, target_columns, t0, m
                ):
                    rank = f
                    break
        # the polynomial, each function of length one over the points; the constant first
        for f in range(rank + 1):
            length = np.sqrt(float(n)) if f == 0 else np.sqrt(_dot(functions[f - 1], functions[f - 1], n))
            for j in range(n):
                values[f, j] = (1.0 if f == 0 else functions[f - 1, j]) / length
            for d in range(3):
                if f:
                    gradients[f - 1, d] /= length
        size = n + (rank + 1 if polynomial == 2 else 0)
        for i in range(n):
            for j in range(i + 1):
                a[i, j] = a[j, i] = _phi(basis, scale, cut, _distance(y[i], y[j]))
            for f in range(size - n):
                a[i, n + f] = a[n + f, i] = values[f, i]
        for i in range(n, size):
            for j in range(n, size):
                a[i, j] = 0.0
        for k in range(m):
            for d in range(3):
                p[d] = targets[target_columns[t0 + k], d] - mean[d]
            for i in range(n):
                b[i, k] = _phi(basis, scale, cut, _distance(y[i], p))
            for f in range(size - n):
                b[n + f, k] = 1.0 / np.sqrt(float(n)) if f == 0 else _dot(gradients[f - 1], p, 3)
        if not _eliminate(a, order, size, 0.0):
            return weights, c
        _substitute_all(a, order, size, b, x, m)
        for k in range(m):
            for i in range(n):
                weights[at + k * n + i] = x[i, k]
            if polynomial == 1:
                for d in range(3):
                    p[d] = targets[target_columns[t0 + k], d] - mean[d]
                for f in range(rank, -1, -1):  # the constant last: what rows sum to is its part
                    factor = 1.0 / np.sqrt(float(n)) if f == 0 else _dot(gradients[f - 1], p, 3)
                    for i in range(n):
                        factor -= weights[at + k * n + i] * values[f, i]
                    for i in range(n):
                        weights[at + k * n + i] += factor * values[f, i]
        at += n * m
    return weights, -1


@compiled
def _substitute_all(matrix: Matrix, order: Index, n: int, b: Matrix, x: Matrix, m: int) -> None:
    """Solve for the first `m` columns of `b` at once: the inner loop runs along a row."""
    for i in range(n):
        for k in range(m):
            x[i, k] = b[order[i], k]
        for j in range(i):
            factor = matrix[i, j]
            for k in range(m):
                x[i, k] -= factor * x[j, k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            factor = matrix[i, j]
            for k in range(m):
                x[i, k] -= factor * x[j, k]
        factor = 1.0 / matrix[i, i]
        for k in range(m):
            x[i, k] *= factor


@compiled
def blend_sizes(
    first: int,
    last: int,
    starts: Index,
    clusters: Index,
    source_starts: Index,
    source_columns: Index,
    n_source: int,
    sizes: Index,
) -> None:
    """How many source points each target point from `first` on has an entry for."""
    seen = np.full(n_source, -1, np.int32)
    for t in range(first, last):
        count = 0
        for k in range(starts[t], starts[t + 1]):
            for j in range(source_starts[clusters[k]], source_starts[clusters[k] + 1]):
                column = source_columns[j]
                if seen[column] != t:
                    seen[column] = t
                    count += 1
        sizes[t] = count


@compiled
def blend(
    first: int,
    last: int,
    starts: Index,
    clusters: Index,
    blocks: Index,
    shares: Vector,
    source_starts: Index,
    source_columns: Index,
    n_source: int,
    weights: Vector,
    indptr: Index,
    indices: npt.NDArray[np.int32],
    data: Vector,
) -> None:
    """Rows `first` to `last`: the rows of all clusters around a target point, added by their shares.

    `blocks` says where the row of a target point begins in the weights of a cluster.
    """
    place = np.full(n_source, -1, np.int64)
    for t in range(first, last):
        begin, entry, total = indptr[t], indptr[t], 0.0
        for k in range(starts[t], starts[t + 1]):
            total += shares[k]
        for k in range(starts[t], starts[t + 1]):
            share, s0 = shares[k] / total, source_starts[clusters[k]]
            for j in range(source_starts[clusters[k] + 1] - s0):
                column, value = source_columns[s0 + j], share * weights[blocks[k] + j]
                if place[column] < begin:
                    place[column] = entry
                    indices[entry], data[entry] = column, value
                    entry += 1
                else:
                    data[place[column]] += value
