"""Nearest points and nearest cells of a mesh."""

from __future__ import annotations

from typing import Literal

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.mapping.mesh import Index, Mesh
from cosolve.mapping.threads import in_threads
from cosolve.mapping.tree import along_curve, cell_tree

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
