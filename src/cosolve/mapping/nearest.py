"""Nearest neighbour: every target point takes the value of the nearest source point (order 1)."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Mesh
from cosolve.mapping.mesh_checks import check_distances, check_limit, check_pair, element_size
from cosolve.mapping.neighbours import nearest_points


def nearest_neighbour(source: Mesh, target: Mesh, *, max_distance: float | None = None) -> FieldMapping:
    """Map by the nearest source point (order 1).

    Parameters
    ----------
    source : Mesh
        Mesh that has the field.
    target : Mesh
        Mesh that gets it.
    max_distance : float or None, default None
        A target point farther than this from the source is refused. None: only meshes that lie apart altogether are.

    Returns
    -------
    FieldMapping
        The mapping.

    Notes
    -----
    Needs points only. Constants are kept, linear fields are not.

    Examples
    --------
    >>> mapping = nearest_neighbour(Mesh([[0.0], [1.0]]), Mesh([[0.1], [0.4], [0.8]]))
    >>> mapping.consistent([5.0, 7.0])
    array([5., 5., 7.])
    """
    check_pair("nearest_neighbour", source, target)
    check_limit("nearest_neighbour", max_distance)
    distances, found = nearest_points(source, target, k=1)
    check_distances("nearest_neighbour", source, target, distances[:, 0], max_distance, element_size(source))
    ones, rows = np.ones(target.n_points), np.arange(target.n_points + 1)
    matrix = csr_array((ones, found[:, 0], rows), shape=(target.n_points, source.n_points))
    return FieldMapping("nearest neighbour", matrix, distance=float(distances.max()))
