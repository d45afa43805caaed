"""Radial basis functions on the source points around each target point, with a linear polynomial, as one matrix.

For the source points `x_j` around a target point `x` the weights `w` (one row of `L`) solve

    [Phi  P] [w]   [phi(|x - x_j|)]
    [P^T  0] [.] = [p(x)          ],     Phi_ij = phi(|x_i - x_j|),  P_i = p(x_i) = (1, linear functions at x_i)

so that the interpolant through their values, evaluated at `x`, is `w . u`, and constants and linear fields are
reproduced (Wendland (2004), 8.5). On surfaces and curves the points of a neighbourhood
nearly lie in a plane or on a line, and linear functions across it are not determined. They are left out where the
points are flat, or where using them would mean to extrapolate across the surface; the target point is then projected.

"Around" means, on a mesh, the cells that touch the nearest cell: a choice that suits stretched cells and thin bodies,
where the nearest points would lie in one row or on the other side. In a cloud it means the nearest points.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.sparse import csr_array, diags_array

from cosolve.basics.checks import whole
from cosolve.errors import SetupError
from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Mesh
from cosolve.mapping.mesh_checks import (
    check_distances,
    check_faced,
    check_limit,
    check_normals,
    check_pair,
    element_size,
)
from cosolve.mapping.neighbours import Normals, nearest_cells, nearest_points
from cosolve.mapping.threads import in_threads

Basis = Literal["cubic", "thin_plate", "wendland"]

#: A patch of fewer points than this gets one more layer of cells.
_FEW = 9
_BASES = ("cubic", "thin_plate", "wendland")


def radial_basis(
    source: Mesh,
    target: Mesh,
    *,
    basis: Basis = "cubic",
    neighbours: int | None = None,
    normals: Normals = "any",
    max_distance: float | None = None,
    workers: int | None = None,
) -> FieldMapping:
    """Map by radial basis functions on the source points around each target point.

    Parameters
    ----------
    source : Mesh
        Mesh that has the field.
    target : Mesh
        Mesh that gets it.
    basis : {"cubic", "thin_plate", "wendland"}, default "cubic"
        Radial function: `r^3`, `r^2 log r`, or `(1 - r)^4 (4 r + 1)` with twice the radius of the neighbourhood as
        support.
    neighbours : int or None, default None
        Number of nearest source points per target point. None: the points of the cells that touch the nearest cell; in
        a cloud 16 points, on a line 6.
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
    Constants and linear fields are reproduced. Needs points only, so it also maps between clouds.

    References
    ----------
    .. [1] H. Wendland, Scattered Data Approximation, Cambridge University Press, 2004, 8.5.

    Examples
    --------
    >>> x = np.linspace(0, 1, 11)
    >>> mapping = radial_basis(Mesh.line(x), Mesh.line([0.03, 0.52, 0.97]))
    >>> abs(mapping.consistent(x**2) - [0.03**2, 0.52**2, 0.97**2]).max() < 2e-3
    np.True_
    """
    from cosolve.mapping.kernels.local_radial import local_weights

    check_pair("radial_basis", source, target)
    check_limit("radial_basis", max_distance)
    if basis not in _BASES:
        raise SetupError(f"radial_basis: basis is one of {', '.join(_BASES)}, not {basis!r}")
    if neighbours is None and source.n_cells:
        check_normals("radial_basis", target, normals)
        cells, _, distances = nearest_cells(source, target, normals, workers)
        check_faced("radial_basis", source, target, distances, normals)
        around = _patches(source)[cells]
        starts, columns = around.indptr.astype(np.int64), around.indices.astype(np.int64)
    else:
        wanted = (6 if source.points.shape[1] == 1 else 16) if neighbours is None else neighbours
        k = min(whole("radial_basis", "neighbours", wanted, 2), source.n_points)
        each, found = nearest_points(source, target, k, workers)
        distances, columns, starts = each[:, 0], found.ravel(), np.arange(0, found.size + 1, k)
    check_distances("radial_basis", source, target, distances, max_distance, element_size(source))
    weights, failures = np.empty(len(columns)), list[int]()

    def solve(first: int, last: int) -> None:
        part = starts[first : last + 1]
        some, failed = local_weights(source.spatial, target.spatial[first:last], part, columns, _BASES.index(basis))
        weights[part[0] : part[-1]] = some
        if failed >= 0:
            failures.append(first + failed)

    in_threads(solve, target.n_points, workers)
    if failures:
        failed = min(failures)
        raise SetupError(
            f"radial_basis: the {starts[failed + 1] - starts[failed]} points of {source.name} around point {failed} of "
            f"{target.name} give a singular system; two of them coincide, or there are too few (raise neighbours)"
        )
    matrix = csr_array((weights, columns, starts), shape=(target.n_points, source.n_points))
    matrix.sort_indices()
    return FieldMapping(f"radial basis ({basis})", matrix, distance=float(distances.max()))


def _patches(mesh: Mesh) -> csr_array:
    """For each cell the points of all cells that touch it; where these are few, those of one more layer of cells."""
    corners = csr_array(
        (np.ones(int(mesh.corners.sum())), mesh.cells[mesh.cells >= 0], np.concatenate([[0], np.cumsum(mesh.corners)])),
        shape=(mesh.n_cells, mesh.n_points),
    )
    linked = csr_array(corners.T @ corners)
    patches = csr_array(corners @ linked)
    few = np.diff(patches.indptr) < _FEW
    wider = csr_array(diags_array(few.astype(np.float64)) @ patches)
    wider.eliminate_zeros()
    return csr_array(patches + wider @ linked)
