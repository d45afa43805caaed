"""The point of a mesh that is closest to a given one, and its shape functions there.

Segments and triangles in closed form (Ericson, Real-time collision detection, 5.1), bilinear quadrilaterals by
Gauss-Newton on the distance and, when that leaves the cell, on the edges. The tree is searched nearest box first.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.jit import compiled
from cosolve.mapping.mesh import Index
from cosolve.mapping.neighbours import LEAF

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
def _faces(direction: Vector, directions: Matrix, first: int, last: int, orientation: int) -> bool:
    """True where a cell points the way of any of those that meet in the target point (or against it, for -1)."""
    for k in range(first, last):
        facing = 0.0
        for d in range(3):
            facing += direction[d] * directions[k, d]
        if orientation * facing > 0.0:
            return True
    return False


@compiled
def _try_cell(corner: Matrix, count: int, p: Vector, weights: Vector) -> float:
    """Weights of the point of a cell closest to `p`, and the square of its distance."""
    for i in range(4):
        weights[i] = 0.0
    if count == 2:
        share = _on_segment(corner[0], corner[1], p)
        weights[0], weights[1] = 1.0 - share, share
    elif count == 3:
        _on_triangle(corner, p, weights)
    else:
        _on_quadrilateral(corner, p, weights)
    distance = 0.0
    for d in range(3):
        gap = -p[d]
        for i in range(count):
            gap += weights[i] * corner[i, d]
        distance += gap * gap
    return distance


@compiled
def closest_cells(
    low: Matrix,
    high: Matrix,
    order: Index,
    boxes: npt.NDArray[np.float64],
    corners: Index,
    targets: Matrix,
    sequence: Index,
    orientation: int,
    directions: Matrix,
    starts: Index,
    around: Matrix,
    found: Index,
    weights: Matrix,
    distances: Vector,
) -> None:
    """For the target points of `sequence`: the nearest cell, the weights of its corners there, and the distance.

    `boxes` holds the corners of the cells in the order of the tree. With an `orientation` other than 0 only cells count
    whose direction agrees (or, for -1, disagrees) with one of `around[starts[k] : starts[k + 1]]`; a target point that
    no cell faces has the distance infinity. The cell of the point before says how far the search has to go: a target
    is best followed by one beside it. It is a bound only, so that what is found does not depend on the sequence.
    """
    width, leaves, last = weights.shape[1], len(low) // 2, -1
    stack, near, trial = np.empty(128, np.int64), np.empty(128), np.zeros(4)
    # a cell and its box are as far as rounding says, so that a point on both may seem to lie outside the box only
    slack = 1e-300
    for d in range(3):
        slack += (1e-14 * max(abs(low[1, d]), abs(high[1, d]))) ** 2
    for k in sequence:
        p, best, top = targets[k], np.inf, 1
        if last >= 0 and (
            orientation == 0 or _faces(directions[order[last]], around, starts[k], starts[k + 1], orientation)
        ):
            best = _try_cell(boxes[last], corners[order[last]], p, trial) * (1.0 + 1e-9) + slack
        stack[0], near[0] = 1, 0.0
        distances[k], seen = np.inf, last
        while top:
            top -= 1
            node = stack[top]
            if near[top] >= best:
                continue
            if node < leaves:
                left, right = 2 * node, 2 * node + 1
                to_left, to_right = _box_distance(low[left], high[left], p), _box_distance(low[right], high[right], p)
                if to_left < to_right:
                    left, right, to_left, to_right = right, left, to_right, to_left
                if to_left < best:
                    stack[top], near[top] = left, to_left
                    top += 1
                if to_right < best:  # the nearer one is taken first
                    stack[top], near[top] = right, to_right
                    top += 1
                continue
            for position in range((node - leaves) * LEAF, min((node - leaves + 1) * LEAF, len(order))):
                cell = order[position]
                if orientation and not _faces(directions[cell], around, starts[k], starts[k + 1], orientation):
                    continue
                distance = _try_cell(boxes[position], corners[cell], p, trial)
                if distance < best:
                    best, seen = distance, position
                    found[k], distances[k] = cell, np.sqrt(distance)
                    for i in range(width):
                        weights[k, i] = trial[i]
        last = seen
