"""Integrals of products of shape functions over the intersections of two meshes.

A target cell is the reference: source cells are projected onto its line or plane, clipped there (Sutherland-Hodgman)
and the pieces integrated by Gauss rules that are exact for linear lines and triangles (degree 2) and for parallelograms
(degree 4). The products of the target's shape functions with themselves use the same Gauss points, so that constant
and linear fields are mapped exactly whatever the quadrature error: `sum_j C_ij = sum_k M_ik` holds term by term.
"""

from __future__ import annotations

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.jit import compiled
from cosolve.mapping.mesh import Index
from cosolve.mapping.neighbours import LEAF

#: Cells more than 78 degrees apart do not face each other.
_FACING = 0.2
#: A target cell whose overlap is complete to this share counts as covered.
COVERED = 1e-9

_GAUSS_LINE = np.array([[0.5 - np.sqrt(1 / 12), 0.5], [0.5 + np.sqrt(1 / 12), 0.5]])
# Triangles: barycentric coordinates and weight. Degree 2 with 3 points; degree 4 with 6 points (Dunavant 1985).
_DEGREE_2 = np.array([[2 / 3, 1 / 6, 1 / 6, 1 / 3], [1 / 6, 2 / 3, 1 / 6, 1 / 3], [1 / 6, 1 / 6, 2 / 3, 1 / 3]])
_A, _B = 0.44594849091596488632, 0.09157621350977074346
_WA, _WB = 0.22338158967801146570, 0.10995174365532186764
_DEGREE_4 = np.array(
    [
        [1 - 2 * _A, _A, _A, _WA],
        [_A, 1 - 2 * _A, _A, _WA],
        [_A, _A, 1 - 2 * _A, _WA],
        [1 - 2 * _B, _B, _B, _WB],
        [_B, 1 - 2 * _B, _B, _WB],
        [_B, _B, 1 - 2 * _B, _WB],
    ]
)


@compiled
def _shape(x: Matrix, corners: int, px: float, py: float, weights: Vector) -> None:
    """Shape functions of a flat triangle or quadrilateral at `(px, py)`; the latter by Newton's method."""
    if corners == 3:
        ax, ay, bx, by = x[1, 0] - x[0, 0], x[1, 1] - x[0, 1], x[2, 0] - x[0, 0], x[2, 1] - x[0, 1]
        det = ax * by - ay * bx
        weights[1] = ((px - x[0, 0]) * by - (py - x[0, 1]) * bx) / det
        weights[2] = (ax * (py - x[0, 1]) - ay * (px - x[0, 0])) / det
        weights[0] = 1.0 - weights[1] - weights[2]
        return
    s, t = 0.5, 0.5
    for _ in range(30):
        ax = (1 - t) * (x[1, 0] - x[0, 0]) + t * (x[2, 0] - x[3, 0])
        ay = (1 - t) * (x[1, 1] - x[0, 1]) + t * (x[2, 1] - x[3, 1])
        bx = (1 - s) * (x[3, 0] - x[0, 0]) + s * (x[2, 0] - x[1, 0])
        by = (1 - s) * (x[3, 1] - x[0, 1]) + s * (x[2, 1] - x[1, 1])
        rx = px - (1 - t) * ((1 - s) * x[0, 0] + s * x[1, 0]) - t * ((1 - s) * x[3, 0] + s * x[2, 0])
        ry = py - (1 - t) * ((1 - s) * x[0, 1] + s * x[1, 1]) - t * ((1 - s) * x[3, 1] + s * x[2, 1])
        det = ax * by - ay * bx
        if det == 0.0:
            break
        ds, dt = (rx * by - ry * bx) / det, (ax * ry - ay * rx) / det
        s, t = min(max(s + ds, -0.5), 1.5), min(max(t + dt, -0.5), 1.5)
        if abs(ds) + abs(dt) < 1e-14:
            break
    weights[0], weights[1], weights[2], weights[3] = (1 - s) * (1 - t), s * (1 - t), s * t, (1 - s) * t


@compiled
def _clip(polygon: Matrix, count: int, window: Matrix, corners: int, spare: Matrix) -> int:
    """Cut `polygon` to the convex, counter-clockwise `window` in place; the number of corners left."""
    for e in range(corners):
        f = (e + 1) % corners
        ex, ey = window[f, 0] - window[e, 0], window[f, 1] - window[e, 1]
        kept = 0
        for i in range(count):
            j = i - 1 if i else count - 1
            here = ex * (polygon[i, 1] - window[e, 1]) - ey * (polygon[i, 0] - window[e, 0])
            before = ex * (polygon[j, 1] - window[e, 1]) - ey * (polygon[j, 0] - window[e, 0])
            if (here >= 0.0) != (before >= 0.0):
                share = before / (before - here)
                for d in range(2):
                    spare[kept, d] = polygon[j, d] + share * (polygon[i, d] - polygon[j, d])
                kept += 1
            if here >= 0.0:
                spare[kept, 0], spare[kept, 1] = polygon[i, 0], polygon[i, 1]
                kept += 1
        count = kept
        for i in range(count):
            polygon[i, 0], polygon[i, 1] = spare[i, 0], spare[i, 1]
        if count < 3:
            return 0
    return count


@compiled
def _add(weight: float, na: Vector, ka: int, nb: Vector, kb: int, block: Matrix, mass: Matrix) -> None:
    for i in range(ka):
        for j in range(kb):
            block[i, j] += weight * na[i] * nb[j]
        for j in range(ka):
            mass[i, j] += weight * na[i] * na[j]


@compiled
def _segment(a: Matrix, b: Matrix, na: Vector, nb: Vector, block: Matrix, mass: Matrix) -> float:
    """Lines: `b` in coordinates (first column) along `a`; returns the length of the overlap."""
    start, end = b[0, 0], b[1, 0]
    low, high = max(min(start, end), a[0, 0]), min(max(start, end), a[1, 0])
    if high <= low:
        return 0.0
    for g in range(2):
        x = low + _GAUSS_LINE[g, 0] * (high - low)
        na[1] = (x - a[0, 0]) / (a[1, 0] - a[0, 0])
        nb[1] = (x - start) / (end - start)
        na[0], nb[0] = 1.0 - na[1], 1.0 - nb[1]
        _add(_GAUSS_LINE[g, 1] * (high - low), na, 2, nb, 2, block, mass)
    return float(high - low)


@compiled
def _polygon(
    a: Matrix,
    ka: int,
    b: Matrix,
    kb: int,
    work: Matrix,
    spare: Matrix,
    na: Vector,
    nb: Vector,
    block: Matrix,
    mass: Matrix,
) -> float:
    """Surface cells, both in the plane of `a`; returns the area of the overlap."""
    for e in range(ka):  # outside of one edge altogether?
        f = (e + 1) % ka
        ex, ey = a[f, 0] - a[e, 0], a[f, 1] - a[e, 1]
        outside = True
        for i in range(kb):
            outside = outside and ex * (b[i, 1] - a[e, 1]) - ey * (b[i, 0] - a[e, 0]) <= 0.0
        if outside:
            return 0.0
    for i in range(kb):
        work[i, 0], work[i, 1] = b[i, 0], b[i, 1]
    count = _clip(work, kb, a, ka, spare)
    rule = _DEGREE_2 if ka == 3 and kb == 3 else _DEGREE_4
    total = 0.0
    for i in range(1, count - 1):
        ux, uy = work[i, 0] - work[0, 0], work[i, 1] - work[0, 1]
        vx, vy = work[i + 1, 0] - work[0, 0], work[i + 1, 1] - work[0, 1]
        area = abs(ux * vy - uy * vx) / 2
        if area == 0.0:
            continue
        total += area
        for g in range(len(rule)):
            px = work[0, 0] + rule[g, 1] * ux + rule[g, 2] * vx
            py = work[0, 1] + rule[g, 1] * uy + rule[g, 2] * vy
            _shape(a, ka, px, py, na)
            _shape(b, kb, px, py, nb)
            _add(area * rule[g, 3], na, ka, nb, kb, block, mass)
    return total


@compiled
def _frame(x: Matrix, cell: Vector, direction: Vector, surface: bool, axes: Matrix) -> None:
    """Axes of the line (first row) or plane (both rows) of a cell."""
    if not surface:
        for d in range(3):
            axes[0, d] = direction[d]
        return
    along, length = 0.0, 0.0
    for d in range(3):
        axes[0, d] = x[cell[1], d] - x[cell[0], d]
        along += axes[0, d] * direction[d]
    for d in range(3):
        axes[0, d] -= along * direction[d]
        length += axes[0, d] ** 2
    for d in range(3):
        axes[0, d] /= np.sqrt(length)
    axes[1, 0] = direction[1] * axes[0, 2] - direction[2] * axes[0, 1]
    axes[1, 1] = direction[2] * axes[0, 0] - direction[0] * axes[0, 2]
    axes[1, 2] = direction[0] * axes[0, 1] - direction[1] * axes[0, 0]


@compiled
def _project(x: Matrix, cell: Index, corners: int, origin: Vector, axes: Matrix, flat: Matrix) -> None:
    for i in range(corners):
        for k in range(2):
            flat[i, k] = 0.0
            for d in range(3):
                flat[i, k] += (x[cell[i], d] - origin[d]) * axes[k, d]


@compiled
def _size(flat: Matrix, corners: int) -> float:
    """Length of a line, area of a polygon."""
    if corners == 2:
        return float(flat[1, 0] - flat[0, 0])
    twice = 0.0
    for i in range(1, corners - 1):
        ux, uy = flat[i, 0] - flat[0, 0], flat[i, 1] - flat[0, 1]
        twice += ux * (flat[i + 1, 1] - flat[0, 1]) - uy * (flat[i + 1, 0] - flat[0, 0])
    return twice / 2


@compiled
def _height(x: Matrix, cell: Index, corners: int, origin: Vector, axes: Matrix) -> float:
    """Distance of the centre of a cell from the line or plane of the target cell."""
    total, first, second = 0.0, 0.0, 0.0
    for d in range(3):
        offset = -origin[d]
        for i in range(corners):
            offset += x[cell[i], d] / corners
        total += offset * offset
        first += offset * axes[0, d]
        second += offset * axes[1, d]
    return float(np.sqrt(max(total - first * first - second * second, 0.0)))


@compiled
def overlaps(
    low: Matrix,
    high: Matrix,
    order: Index,
    xb: Matrix,
    cells_b: Index,
    corners_b: Index,
    directions_b: Matrix,
    reach_b: Vector,
    xa: Matrix,
    cells_a: Index,
    corners_a: Index,
    directions_a: Matrix,
    reach_a: Vector,
    orientation: int,
) -> tuple[Index, Index, Matrix, Matrix, Vector]:
    """All overlapping pairs of a target cell `a` and a source cell `b`.

    Returns both cell numbers and `int N_a N_b` per pair, and per target cell `int N_a N_a` and the covered share.
    `low`, `high`, `order` are the tree of the source. Cells further apart than both their reaches, measured across the
    target cell, do not see each other. `orientation` 1 takes only source cells that point the same way, -1 the opposite
    way, 0 both.
    """
    n, width, leaves = len(cells_a), cells_a.shape[1], len(low) // 2
    surface = corners_a[0] > 2
    capacity, pairs = 8 * n + 64, 0
    pair_a, pair_b = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    blocks = np.zeros((capacity, width, cells_b.shape[1]))
    masses, shares = np.zeros((n, width, width)), np.zeros(n)
    stack, axes = np.empty(128, np.int64), np.zeros((2, 3))
    flat_a, flat_b, work, spare = np.zeros((4, 2)), np.zeros((4, 2)), np.zeros((16, 2)), np.zeros((16, 2))
    na, nb = np.zeros(4), np.zeros(4)
    unused = np.zeros((width, width))
    box_low, box_high, widest = np.empty(3), np.empty(3), reach_b.max()
    for a in range(n):
        ka, origin = corners_a[a], xa[cells_a[a, 0]]
        _frame(xa, cells_a[a], directions_a[a], surface, axes)
        _project(xa, cells_a[a], ka, origin, axes, flat_a)
        for d in range(3):  # the box of the cell, extended across it as far as any source cell may be seen
            n2 = directions_a[a, d] ** 2
            reach = (reach_a[a] + widest) * np.sqrt(n2 if surface else max(1.0 - n2, 0.0))
            box_low[d], box_high[d] = np.inf, -np.inf
            for i in range(ka):
                box_low[d] = min(box_low[d], xa[cells_a[a, i], d] - reach)
                box_high[d] = max(box_high[d], xa[cells_a[a, i], d] + reach)
        covered, top = 0.0, 1
        stack[0] = 1
        while top:
            top -= 1
            node = stack[top]
            apart = False
            for d in range(3):
                apart = apart or low[node, d] > box_high[d] or high[node, d] < box_low[d]
            if apart:
                continue
            if node < leaves:
                stack[top], stack[top + 1] = 2 * node, 2 * node + 1
                top += 2
                continue
            for position in range((node - leaves) * LEAF, min((node - leaves + 1) * LEAF, len(order))):
                b = order[position]
                facing = 0.0
                for d in range(3):
                    facing += directions_a[a, d] * directions_b[b, d]
                if (abs(facing) if orientation == 0 else orientation * facing) < _FACING:
                    continue
                if _height(xb, cells_b[b], corners_b[b], origin, axes) > reach_a[a] + reach_b[b]:
                    continue
                _project(xb, cells_b[b], corners_b[b], origin, axes, flat_b)
                if pairs == len(pair_a):
                    pair_a, pair_b = np.append(pair_a, pair_a), np.append(pair_b, pair_b)
                    blocks = np.concatenate((blocks, np.zeros_like(blocks)))
                if surface:
                    size = _polygon(flat_a, ka, flat_b, corners_b[b], work, spare, na, nb, blocks[pairs], masses[a])
                else:
                    size = _segment(flat_a, flat_b, na, nb, blocks[pairs], masses[a])
                if size > 0.0:
                    pair_a[pairs], pair_b[pairs] = a, b
                    pairs += 1
                    covered += size
        shares[a] = covered / _size(flat_a, ka)
        if shares[a] < 1.0 - COVERED:  # a part is left open: integrate over the cell cut with itself instead
            for i in range(width):
                for j in range(width):
                    masses[a, i, j] = 0.0
            if surface:
                _polygon(flat_a, ka, flat_a, ka, work, spare, na, nb, masses[a], unused)
            else:
                _segment(flat_a, flat_a, na, nb, masses[a], unused)
    return pair_a[:pairs], pair_b[:pairs], blocks[:pairs], masses, shares
