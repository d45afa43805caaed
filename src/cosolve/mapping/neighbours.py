"""Nearest points and nearest cells of a mesh.

The nearest cell and the cells around a place are found by a tree of bounding boxes. Cells are sorted along the Morton
curve and every four form a leaf; the leaves are the lowest row of a complete binary tree in heap order (children of
node `i` are `2 i` and `2 i + 1`, the root is 1). Built by numpy in one pass per level.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.mapping.mesh import Index, Mesh
from cosolve.mapping.threads import in_threads

LEAF = 4
_BITS = 16


class CellTree(NamedTuple):
    """Boxes `low`, `high` of shape (2 leaves, 3) in heap order; `order` lists the cells leaf by leaf."""

    low: Matrix
    high: Matrix
    order: Index


def cell_tree(mesh: Mesh) -> CellTree:
    """The tree over the cells of `mesh`.

    >>> tree = cell_tree(Mesh.line([[0.0, 1.0], [1.0, 3.0], [2.0, 0.0]]))
    >>> tree.low[1].tolist(), tree.high[1].tolist()
    ([0.0, 0.0, 0.0], [2.0, 3.0, 0.0])
    """
    low, high = mesh.corner_points.min(axis=1), mesh.corner_points.max(axis=1)
    order = along_curve(low + high)
    starts = np.arange(0, mesh.n_cells, LEAF)
    leaves = 1 << int(len(starts) - 1).bit_length()
    lows, highs = np.full((2 * leaves, 3), np.inf), np.full((2 * leaves, 3), -np.inf)
    lows[leaves : leaves + len(starts)] = np.minimum.reduceat(low[order], starts)
    highs[leaves : leaves + len(starts)] = np.maximum.reduceat(high[order], starts)
    while leaves > 1:
        children, leaves = slice(leaves, 2 * leaves), leaves // 2
        lows[leaves : 2 * leaves] = lows[children].reshape(-1, 2, 3).min(axis=1)
        highs[leaves : 2 * leaves] = highs[children].reshape(-1, 2, 3).max(axis=1)
    return CellTree(lows, highs, order)


def along_curve(points: Matrix) -> Index:
    """The points in the order of the Morton curve: the bits of their coordinates interleaved.

    >>> along_curve(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.9, 1.0, 1.0]]))
    array([1, 2, 0])
    """
    corner = points.min(axis=0)
    extent = float((points - corner).max()) or 1.0
    cell = ((points - corner) * ((2**_BITS - 1) / extent)).astype(np.int64)
    code = _spread(cell[:, 0]) | _spread(cell[:, 1]) << 1 | _spread(cell[:, 2]) << 2
    return np.argsort(code, kind="stable").astype(np.int64)


def _spread(bits: Index) -> Index:
    """Two zeros between any two of 16 bits: gaps are opened by halves."""
    for shift, mask in ((16, 0xFF0000FF), (8, 0xF00F00F00F), (4, 0xC30C30C30C3), (2, 0x249249249249)):
        bits = (bits | bits << shift) & mask
    return bits


Normals = Literal["any", "same", "opposite"]

ORIENTATIONS = {"any": 0, "same": 1, "opposite": -1}


def nearest_points(source: Mesh, target: Mesh, k: int, workers: int | None = None) -> tuple[Matrix, Index]:
    """Distances and numbers of the `k` source points nearest to each target point, nearest first: shape (targets, k).

    >>> nearest_points(Mesh([[0.0], [1.0]]), Mesh([[0.75]]), k=2)
    (array([[0.25, 0.75]]), array([[1, 0]]))
    """
    from scipy.spatial import cKDTree

    distances, found = cKDTree(source.points).query(target.points, k=np.arange(1, k + 1), workers=workers or -1)
    return np.asarray(distances, dtype=np.float64), np.asarray(found, dtype=np.int64)


def nearest_cells(
    source: Mesh, target: Mesh, normals: Normals = "any", workers: int | None = None
) -> tuple[Index, Matrix, Vector]:
    """For each target point: the nearest cell, the shape functions at its nearest point, and the distance.

    With `normals` "same" or "opposite" only cells count that face a cell of the target point so; the distance of a
    point that none faces is infinite.

    >>> cells, shapes, distances = nearest_cells(Mesh.line([0.0, 1.0, 2.0]), Mesh([[1.25]]))
    >>> cells, shapes, distances
    (array([1]), array([[0.75, 0.25]]), array([0.]))
    """
    from cosolve.mapping.kernels.closest import closest_cells

    tree, n = cell_tree(source), target.n_points
    boxes = source.corner_points[tree.order]
    sequence = along_curve(target.spatial)
    found, weights = np.zeros(n, dtype=np.int64), np.zeros((n, source.cells.shape[1]))
    distances, starts, around = np.empty(n), np.zeros(n + 1, dtype=np.int64), np.zeros((0, 3))
    directions = np.zeros((0, 3)) if normals == "any" else source.directions
    if normals != "any":
        starts, around = _directions_around(target)

    def search(first: int, last: int) -> None:
        closest_cells(
            *(*tree, boxes, source.corners, target.spatial, sequence[first:last], ORIENTATIONS[normals]),
            *(directions, starts, around, found, weights, distances),
        )

    in_threads(search, n, workers)
    return found, weights, distances


def _directions_around(mesh: Mesh) -> tuple[Index, Matrix]:
    """The directions of the cells that meet in each point, point by point, and where those of a point begin."""
    rows, places = np.nonzero(mesh.cells >= 0)
    points = mesh.cells[rows, places]
    sorted_ = np.argsort(points, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(points, minlength=mesh.n_points))])
    return starts.astype(np.int64), mesh.directions[rows[sorted_]]
