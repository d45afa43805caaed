"""Projection on whatever cells there are: surfaces and lines on the same points, tetrahedra, or points alone.

Linear interpolation: shape functions of the nearest source element at the projected target point (order 2).

Also known as barycentric or nearest-projection mapping. See de Boer et al. (2007).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from cosolve.basics.arrays import Matrix, Vector
from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Index, Mesh
from cosolve.mapping.mesh_checks import (
    check_cells,
    check_distances,
    check_faced,
    check_limit,
    check_normals,
    check_pair,
)
from cosolve.mapping.neighbours import Normals, nearest_cells, nearest_points


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
    return FieldMapping("barycentric", _rows(source, cells, weights), distance=float(distances.max()))


_INSIDE = 1e-10  # barycentric coordinates may be below zero by so much


def nearest_projection(sources: Sequence[Mesh], target: Mesh) -> FieldMapping:
    """Map by linear interpolation at the nearest point of several source meshes that share their points.

    Parameters
    ----------
    sources : sequence of Mesh
        Meshes with the same points and different cells. Without any cells it is the nearest neighbour.
    target : Mesh
        Mesh that gets the field.

    Returns
    -------
    FieldMapping
        The mapping.

    Notes
    -----
    Unlike `barycentric` it has no limit of distance.

    Examples
    --------
    >>> points = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [3.0, 0.0]]
    >>> sources = [Mesh(points, triangles=[[0, 1, 2]]), Mesh(points, lines=[[1, 3]])]
    >>> nearest_projection(sources, Mesh([[0.25, 0.25], [2.0, 0.1]])).consistent([0.0, 1.0, 2.0, 3.0])
    array([0.75, 2.  ])
    """
    celled = [mesh for mesh in sources if mesh.n_cells]
    if not celled:
        distances, found = nearest_points(sources[0], target, k=1)
        rows = np.arange(target.n_points + 1)
        matrix = csr_array((np.ones(target.n_points), found[:, 0], rows), shape=(target.n_points, sources[0].n_points))
        return FieldMapping("nearest projection", matrix, distance=float(distances.max()))
    found_by = [nearest_cells(mesh, target) for mesh in celled]
    distance = np.array([d for _, _, d in found_by])
    best = np.argmin(distance, axis=0)
    operators = [_rows(mesh, cells, weights) for mesh, (cells, weights, _) in zip(celled, found_by, strict=True)]
    if len(operators) == 1:
        matrix = operators[0]
    else:
        matrix = csr_array(vstack([operators[k][[i]] for i, k in enumerate(best)]))
    return FieldMapping("nearest projection", matrix, distance=float(distance.min(axis=0).max()))


def _rows(mesh: Mesh, cells: Index, weights: Matrix) -> csr_array:
    columns = mesh.cells[cells]
    used = (columns >= 0) & (weights != 0)
    starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    matrix = csr_array((weights[used], columns[used], starts), shape=(len(cells), mesh.n_points))
    matrix.sort_indices()
    return matrix


def in_tetrahedra(points: Matrix, tetrahedra: npt.NDArray[np.int64], target: Matrix) -> tuple[Index, Matrix]:
    """For each target point a tetrahedron that holds it (-1: none) and its barycentric coordinates there.

    >>> corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    >>> in_tetrahedra(corners, np.array([[0, 1, 2, 3]]), np.array([[0.25, 0.25, 0.25]]))
    (array([0]), array([[0.25, 0.25, 0.25, 0.25]]))
    """
    origin = points[tetrahedra[:, 0]]
    edges = np.stack([points[tetrahedra[:, k]] - origin for k in (1, 2, 3)], axis=2)
    inverse = np.linalg.inv(edges)
    found = np.full(len(target), -1, dtype=np.int64)
    shares: Matrix = np.zeros((len(target), 4))
    for i, y in enumerate(target):
        inner = np.einsum("cij,cj->ci", inverse, y - origin)
        all_four = np.column_stack([1.0 - inner.sum(axis=1), inner])
        best = int(np.argmax(all_four.min(axis=1)))
        if all_four[best].min() >= -_INSIDE:
            found[i], shares[i] = best, all_four[best]
    return found, shares


def linear_in_tetrahedra(source: Mesh, tetrahedra: npt.NDArray[np.int64], target: Mesh) -> FieldMapping:
    """Linear interpolation inside tetrahedra on the points of `source`; outside them on their faces.

    >>> corners = Mesh([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    >>> linear_in_tetrahedra(corners, np.array([[0, 1, 2, 3]]), Mesh([[0.5, 0.25, 0.0]])).consistent([0.0, 1, 2, 3])
    array([1.])
    """
    cells, shares = in_tetrahedra(source.points, tetrahedra, target.points)
    faces = np.unique(
        np.sort(np.concatenate([tetrahedra[:, k] for k in ([0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3])])), axis=0
    )
    outside = nearest_projection([Mesh(source.points, triangles=faces)], target).matrix.tolil()
    for i in np.flatnonzero(cells >= 0):
        outside[[i]] = 0
        outside[i, tetrahedra[cells[i]]] = shares[i]
    return FieldMapping("linear in cells", csr_array(outside))


def tetrahedron_shares(points: Matrix, tetrahedra: npt.NDArray[np.int64]) -> Vector:
    """The volume that belongs to each point.

    >>> corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 6]])
    >>> tetrahedron_shares(corners, np.array([[0, 1, 2, 3]]))
    array([0.25, 0.25, 0.25, 0.25])
    """
    a, b, c, d = (points[tetrahedra[:, k]] for k in range(4))
    volumes = np.abs(np.einsum("ij,ij->i", np.cross(b - a, c - a), d - a)) / 6.0
    shares = np.zeros(len(points))
    np.add.at(shares, tetrahedra.ravel(), np.repeat(volumes / 4.0, 4))
    return shares
