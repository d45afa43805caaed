"""The point of a mesh that is closest to a given one, and its shape functions there.

Segments and triangles in closed form (Ericson, Real-time collision detection, 5.1), bilinear quadrilaterals by
Gauss-Newton on the distance and, when that leaves the cell, on the edges. The tree is searched nearest box first.
"""

from __future__ import annotations

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.jit import compiled
from cosolve.mapping.mesh import Index
from cosolve.mapping.tree import LEAF

_ITERATIONS = 30


@compiled
def _on_segment(a: Vector, b: Vector, p: Vector) -> float:
    """Share of the way from `a` to `b` of the point closest to `p`."""
    along, length = 0.0, 0.0
    for d in range(3):
        along += (p[d] - a[d]) * (b[d] - a[d])
        length += (b[d] - a[d]) ** 2
    return min(max(along / length, 0.0), 1.0)


@compiled
def _on_edges(x: Matrix, corners: int, p: Vector, weights: Vector) -> None:
    """Weights of the point of the boundary of a cell closest to `p`."""
    best = np.inf
    for i in range(corners):
        j = (i + 1) % corners
        share = _on_segment(x[i], x[j], p)
        distance = 0.0
        for d in range(3):
            distance += (x[i, d] + share * (x[j, d] - x[i, d]) - p[d]) ** 2
        if distance < best:
            best = distance
            for k in range(corners):
                weights[k] = 0.0
            weights[i], weights[j] = 1.0 - share, share


@compiled
def _on_triangle(x: Matrix, p: Vector, weights: Vector) -> None:
    g11, g12, g22, r1, r2 = 0.0, 0.0, 0.0, 0.0, 0.0
    for d in range(3):
        e1, e2, r = x[1, d] - x[0, d], x[2, d] - x[0, d], p[d] - x[0, d]
        g11 += e1 * e1
        g12 += e1 * e2
        g22 += e2 * e2
        r1 += e1 * r
        r2 += e2 * r
    det = g11 * g22 - g12 * g12
    s, t = (g22 * r1 - g12 * r2) / det, (g11 * r2 - g12 * r1) / det
    if s >= 0.0 and t >= 0.0 and s + t <= 1.0:
        weights[0], weights[1], weights[2] = 1.0 - s - t, s, t
    else:
        _on_edges(x, 3, p, weights)


@compiled
def _on_quadrilateral(x: Matrix, p: Vector, weights: Vector) -> None:
    s, t = 0.5, 0.5  # x = (1-s)(1-t) x0 + s (1-t) x1 + s t x2 + (1-s) t x3
    for _ in range(_ITERATIONS):
        g11, g12, g22, r1, r2 = 0.0, 0.0, 0.0, 0.0, 0.0
        for d in range(3):
            e1 = (1 - t) * (x[1, d] - x[0, d]) + t * (x[2, d] - x[3, d])
            e2 = (1 - s) * (x[3, d] - x[0, d]) + s * (x[2, d] - x[1, d])
            r = p[d] - (1 - t) * ((1 - s) * x[0, d] + s * x[1, d]) - t * ((1 - s) * x[3, d] + s * x[2, d])
            g11 += e1 * e1
            g12 += e1 * e2
            g22 += e2 * e2
            r1 += e1 * r
            r2 += e2 * r
        det = g11 * g22 - g12 * g12
        if det <= 0.0:
            break
        ds, dt = (g22 * r1 - g12 * r2) / det, (g11 * r2 - g12 * r1) / det
        # keep near the cell, where the map is one to one
        s, t = min(max(s + ds, -0.5), 1.5), min(max(t + dt, -0.5), 1.5)
        if abs(ds) + abs(dt) < 1e-14:
            break
    slack = 1e-12
    if -slack <= s <= 1.0 + slack and -slack <= t <= 1.0 + slack:
        s, t = min(max(s, 0.0), 1.0), min(max(t, 0.0), 1.0)
        weights[0], weights[1], weights[2], weights[3] = (1 - s) * (1 - t), s * (1 - t), s * t, (1 - s) * t
    else:
        _on_edges(x, 4, p, weights)


@compiled
def _box_distance(low: Vector, high: Vector, p: Vector) -> float:
    total = 0.0
    for d in range(3):
        gap = max(low[d] - p[d], p[d] - high[d], 0.0)
        total += gap * gap
    return total


@compiled
def closest_cells(
    low: Matrix, high: Matrix, order: Index, x: Matrix, cells: Index, corners: Index, targets: Matrix
) -> tuple[Index, Matrix, Vector]:
    """For each target point: the nearest cell, the weights of its corners there, and the distance."""
    n, width, leaves = len(targets), cells.shape[1], len(low) // 2
    found, weights, distances = np.zeros(n, np.int64), np.zeros((n, width)), np.empty(n)
    stack, corner, trial = np.empty(128, np.int64), np.empty((4, 3)), np.zeros(4)
    for k in range(n):
        p, best, top = targets[k], np.inf, 1
        stack[0] = 1
        while top:
            top -= 1
            node = stack[top]
            if _box_distance(low[node], high[node], p) >= best:
                continue
            if node < leaves:
                left, right = 2 * node, 2 * node + 1
                if _box_distance(low[left], high[left], p) < _box_distance(low[right], high[right], p):
                    left, right = right, left
                stack[top], stack[top + 1] = left, right  # the nearer one is taken first
                top += 2
                continue
            for position in range((node - leaves) * LEAF, min((node - leaves + 1) * LEAF, len(order))):
                cell = order[position]
                count = corners[cell]
                for i in range(count):
                    for d in range(3):
                        corner[i, d] = x[cells[cell, i], d]
                for i in range(4):
                    trial[i] = 0.0
                if count == 2:
                    share = _on_segment(corner[0], corner[1], p)
                    trial[0], trial[1] = 1.0 - share, share
                elif count == 3:
                    _on_triangle(corner, p, trial)
                else:
                    _on_quadrilateral(corner, p, trial)
                distance = 0.0
                for d in range(3):
                    gap = -p[d]
                    for i in range(count):
                        gap += trial[i] * corner[i, d]
                    distance += gap * gap
                if distance < best:
                    best = distance
                    found[k] = cell
                    for i in range(width):
                        weights[k, i] = trial[i]
        distances[k] = np.sqrt(best)
    return found, weights, distances
