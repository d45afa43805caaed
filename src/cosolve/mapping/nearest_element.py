"""Linear interpolation: shape functions of the nearest source element at the projected target point (order 2).

Also known as barycentric or nearest-projection mapping. See de Boer et al. (2007).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Mesh
from cosolve.mapping.mesh_checks import (
    check_cells,
    check_distances,
    check_faced,
    check_limit,
    check_normals,
    check_pair,
)
from cosolve.mapping.neighbours import Normals, nearest_cells


def barycentric(
    source: Mesh,
    target: Mesh,
    *,
    normals: Normals = "any",
    max_distance: float | None = None,
    workers: int | None = None,
) -> FieldMapping:
    """Map by linear interpolation in the nearest source cell (order 2), also known as nearest projection.

    Parameters
    ----------
    source : Mesh
        Mesh that has the field.
    target : Mesh
        Mesh that gets it.
    normals : {"any", "same", "opposite"}, default "any"
        Which source cells a target point sees: "same" or "opposite" orientation as its own cells tells the two sides of
        a thin body apart; "any" suits meshes that are not oriented.
    max_distance : float or None, default None
        A target point farther than this from the source is refused. None: only meshes that lie apart altogether are.
    workers : int or None, default None
        Number of threads; None is one per core. The bits do not depend on it.

    Returns
    -------
    FieldMapping
        The mapping.

    Notes
    -----
    `L_ij = N_j(p_i)` with the shape functions `N_j` of the source at its point `p_i` nearest to the target point `i`.
    The source needs cells, the target points only. Constants are kept; linear fields where the target points lie on the
    source. Nothing is extrapolated beyond the edge of the source.

    References
    ----------
    .. [1] A. de Boer, A. H. van Zuijlen, H. Bijl, Review of coupling methods for non-matching meshes, Computer Methods
       in Applied Mechanics and Engineering 196(8), 2007.

    Examples
    --------
    >>> square = Mesh([[0, 0], [1, 0], [1, 1], [0, 1]], quadrilaterals=[[0, 1, 2, 3]])
    >>> barycentric(square, Mesh([[0.25, 0.5]])).operator().toarray()
    array([[0.375, 0.125, 0.125, 0.375]])
    """
    check_pair("barycentric", source, target)
    check_cells("barycentric", source)
    check_limit("barycentric", max_distance)
    check_normals("barycentric", target, normals)
    cells, weights, distances = nearest_cells(source, target, normals, workers)
    check_faced("barycentric", source, target, distances, normals)
    check_distances("barycentric", source, target, distances, max_distance, float(source.diameters.max()))
    columns = source.cells[cells]
    used = (columns >= 0) & (weights != 0)
    starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    matrix = csr_array((weights[used], columns[used], starts), shape=(target.n_points, source.n_points))
    matrix.sort_indices()
    return FieldMapping("barycentric", matrix, distance=float(distances.max()))
