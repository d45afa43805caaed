"""Nearest points and nearest cells of a mesh."""

from __future__ import annotations

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.mapping.mesh import Index, Mesh
from cosolve.mapping.tree import cell_tree


def nearest_points(source: Mesh, target: Mesh, k: int) -> tuple[Matrix, Index]:
    """Distances and numbers of the `k` source points nearest to each target point, nearest first: shape (targets, k).

    >>> nearest_points(Mesh([[0.0], [1.0]]), Mesh([[0.75]]), k=2)
    (array([[0.25, 0.75]]), array([[1, 0]]))
    """
    from scipy.spatial import cKDTree

    distances, found = cKDTree(source.points).query(target.points, k=np.arange(1, k + 1))
    return np.asarray(distances, dtype=np.float64), np.asarray(found, dtype=np.int64)


def nearest_cells(source: Mesh, target: Mesh) -> tuple[Index, Matrix, Vector]:
    """For each target point: the nearest cell, the shape functions at its nearest point, and the distance.

    >>> cells, shapes, distances = nearest_cells(Mesh.line([0.0, 1.0, 2.0]), Mesh([[1.25]]))
    >>> cells, shapes, distances
    (array([1]), array([[0.75, 0.25]]), array([0.]))
    """
    from cosolve.mapping.kernels.closest import closest_cells

    return closest_cells(*cell_tree(source), source.spatial, source.cells, source.corners, target.spatial)
