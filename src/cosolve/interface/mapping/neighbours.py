"""Nearest points, by the tree of scipy."""

from __future__ import annotations

import numpy as np

from cosolve.interface.mapping.mesh import Index, Mesh
from cosolve.subsystem.port import Matrix


def nearest_points(source: Mesh, target: Mesh, k: int) -> tuple[Matrix, Index]:
    """Distances and numbers of the `k` source points nearest to each target point, nearest first: shape (targets, k).

    >>> nearest_points(Mesh([[0.0], [1.0]]), Mesh([[0.75]]), k=2)
    (array([[0.25, 0.75]]), array([[1, 0]]))
    """
    from scipy.spatial import cKDTree

    distances, found = cKDTree(source.points).query(target.points, k=np.arange(1, k + 1))
    return np.asarray(distances, dtype=np.float64), np.asarray(found, dtype=np.int64)
