"""Mortar and dual mortar: the target field is the L2 projection of the source field (order 2).

With `M = int N_A N_A^T` over the target and `C = int N_A N_B^T` over the intersections of both meshes, the mortar
operator is `L = M^-1 C`. Dual mortar tests with functions bi-orthogonal to `N_A`, on each cell `psi = D_e M_e^-1 N`
(on a line [[2, -1], [-1, 2]] N), so that `L = D^-1 int psi N_B^T` with the diagonal `D_i = int N_i` is sparse. Rows sum
to one where the source covers the target; elsewhere rows may be scaled to that.
Mortar: Bernardi et al. (1994); dual: Wohlmuth (2000); docs/architecture/mapping.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csc_array, csr_array

from cosolve.basics.arrays import Vector
from cosolve.errors import SetupError
from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Index, Mesh
from cosolve.mapping.mesh_checks import check_cells, check_limit, check_pair
from cosolve.mapping.neighbours import ORIENTATIONS, Normals, cell_tree

#: A cell covered this many times is seen by two layers of the source.
_FOLDED = 1.05
#: A target point whose row sums to less than this has no meaningful value.
_HARDLY = 0.1


class _Integrals(NamedTuple):
    """Per pair of cells: target cell, source cell, `int N_a N_b`; per target cell: `int N_a N_a` and covered share."""

    a: Index
    b: Index
    blocks: npt.NDArray[np.float64]
    masses: npt.NDArray[np.float64]
    shares: Vector


def mortar(
    source: Mesh,
    target: Mesh,
    *,
    enforce_consistency: bool = True,
    normals: Normals = "any",
    max_distance: float | None = None,
) -> FieldMapping:
    """Map by L2 projection onto the target mesh (mortar, order 2).

    Parameters
    ----------
    source : Mesh
        Mesh that has the field.
    target : Mesh
        Mesh that gets it.
    enforce_consistency : bool, default True
        Scale rows to sum to one where the source does not cover a part of the target.
    normals : {"any", "same", "opposite"}, default "any"
        Which source cells a target cell sees: "same" or "opposite" orientation tells the two sides of a thin body
        apart; "any" suits meshes that are not oriented.
    max_distance : float or None, default None
        Distance up to which cells see each other. None: half the diameters of both.

    Returns
    -------
    FieldMapping
        The mapping.

    Notes
    -----
    `L = M^-1 C` with `M = int N_A N_A^T` over the target and `C = int N_A N_B^T` over the intersections. `L` is full,
    so `M` is factorised once and every application solves with it; `dual_mortar` is sparse and nearly as accurate.

    References
    ----------
    .. [1] C. Bernardi, Y. Maday, A. T. Patera, A new nonconforming approach to domain decomposition: the mortar element
       method, in: Nonlinear Partial Differential Equations and Their Applications, Longman, 1994.

    Examples
    --------
    >>> mapping = mortar(Mesh.line([0.0, 1.0, 3.0]), Mesh.line([0.0, 1.5, 3.0]))
    >>> mapping.consistent([0.0, 1.0, 3.0]).round(12)
    array([0. , 1.5, 3. ])
    """
    integrals = _integrate("mortar", source, target, normals, max_distance)
    shape = (target.n_points, target.n_points)
    cells = np.arange(target.n_cells)
    mass = csc_array(_assemble(target, target, cells, cells, integrals.masses, shape))
    coupling = _assemble(target, source, integrals.a, integrals.b, integrals.blocks, (target.n_points, source.n_points))
    return _finished(FieldMapping("mortar", coupling, mass=mass), source, target, integrals.shares, enforce_consistency)


def dual_mortar(
    source: Mesh,
    target: Mesh,
    *,
    enforce_consistency: bool = True,
    normals: Normals = "any",
    max_distance: float | None = None,
) -> FieldMapping:
    """Map by L2 projection with dual shape functions (dual mortar, order 2).

    Parameters
    ----------
    source : Mesh
        Mesh that has the field.
    target : Mesh
        Mesh that gets it.
    enforce_consistency : bool, default True
        See `mortar`.
    normals : {"any", "same", "opposite"}, default "any"
        See `mortar`.
    max_distance : float or None, default None
        See `mortar`.

    Returns
    -------
    FieldMapping
        The mapping.

    Notes
    -----
    `L = D^-1 int psi N_B^T` with shape functions `psi` that are bi-orthogonal to those of the target, and the diagonal
    `D_i = int N_i`. `L` is one sparse matrix.

    References
    ----------
    .. [1] B. I. Wohlmuth, A mortar finite element method using dual spaces for the Lagrange multiplier, SIAM Journal on
       Numerical Analysis 38(3), 2000.

    Examples
    --------
    >>> mapping = dual_mortar(Mesh.line([0.0, 1.0, 3.0]), Mesh.line([0.0, 1.5, 3.0]))
    >>> mapping.consistent([0.0, 1.0, 3.0]).round(12)
    array([0. , 1.5, 3. ])
    """
    integrals = _integrate("dual_mortar", source, target, normals, max_distance)
    masses = integrals.masses.copy()
    diagonals = masses.sum(axis=2)
    if masses.shape[1] == 4:  # the missing corner of a triangle
        masses[target.corners == 3, 3, 3] = 1.0
    dual = diagonals[:, :, np.newaxis] * np.linalg.inv(masses)
    blocks = dual[integrals.a] @ integrals.blocks
    used = target.cells >= 0
    D = np.bincount(target.cells[used], weights=diagonals[used], minlength=target.n_points)
    matrix = _assemble(target, source, integrals.a, integrals.b, blocks, (target.n_points, source.n_points))
    matrix.data /= np.repeat(D, np.diff(matrix.indptr))
    return _finished(FieldMapping("dual mortar", matrix), source, target, integrals.shares, enforce_consistency)


def _integrate(where: str, source: Mesh, target: Mesh, normals: str, max_distance: float | None) -> _Integrals:
    """Checks, then all integrals over the intersections."""
    from cosolve.mapping.kernels.overlap import overlaps

    check_pair(where, source, target)
    check_cells(where, source)
    check_cells(where, target)
    check_limit(where, max_distance)
    if source.dimension != target.dimension:
        raise SetupError(f"{where}: one mesh is made of lines and the other of surface cells; both must be of one kind")
    if normals not in ORIENTATIONS:
        raise SetupError(f"{where}: normals is one of {', '.join(ORIENTATIONS)}, not {normals!r}")
    lonely = np.flatnonzero(np.bincount(target.cells[target.cells >= 0], minlength=target.n_points) == 0)
    if len(lonely):
        raise SetupError(
            f"{where}: point {lonely[0]} of {target.name} belongs to no cell ({len(lonely)} such points); remove it"
        )
    if max_distance is None:
        reach_a, reach_b = target.diameters / 2, source.diameters / 2
    else:
        reach_a, reach_b = np.full(target.n_cells, float(max_distance)), np.zeros(source.n_cells)
    result = _Integrals(
        *overlaps(
            *cell_tree(source),
            source.spatial,
            source.cells,
            source.corners,
            source.directions,
            reach_b,
            target.spatial,
            target.cells,
            target.corners,
            target.directions,
            reach_a,
            ORIENTATIONS[normals],
        )
    )
    if not len(result.a):
        raise SetupError(
            f"{where}: {source.name} and {target.name} do not overlap; check units and positions"
            + (", normals" if normals != "any" else "")
            + ", or give a larger max_distance"
        )
    worst = int(np.argmax(result.shares))
    if result.shares[worst] > _FOLDED:
        raise SetupError(
            f"{where}: {target.label(worst)} is covered {result.shares[worst]:.3g} times by {source.name}, which lies "
            "in layers there; give normals='same' or 'opposite' (thin bodies) or a smaller max_distance"
        )
    return result


def _assemble(
    rows: Mesh, columns: Mesh, a: Index, b: Index, blocks: npt.NDArray[np.float64], shape: tuple[int, int]
) -> csr_array:
    """Sum of cell blocks in the numbering of points."""
    i = np.broadcast_to(rows.cells[a][:, :, np.newaxis], blocks.shape)
    j = np.broadcast_to(columns.cells[b][:, np.newaxis, :], blocks.shape)
    used = (i >= 0) & (j >= 0)
    return csr_array(coo_array((blocks[used], (i[used], j[used])), shape=shape))


def _finished(mapping: FieldMapping, source: Mesh, target: Mesh, shares: Vector, enforce: bool) -> FieldMapping:
    """The mapping with its coverage, and with rows scaled to sum to one where that is asked for and needed."""
    from cosolve.mapping.kernels.overlap import COVERED

    mapping.coverage = min(float(shares.min()), 1.0)
    if enforce and mapping.coverage < 1.0 - COVERED:
        sums = mapping.consistent(np.ones(mapping.n_source))
        open_points = np.flatnonzero(sums < _HARDLY)
        if len(open_points):
            first = int(open_points[0])
            raise SetupError(
                f"{mapping.method}: {len(open_points)} of {target.n_points} points of {target.name} (point {first} at "
                f"{target.points[first].tolist()}) are hardly covered by {source.name}; "
                "extend the source, give a larger max_distance, or use barycentric or radial_basis"
            )
        mapping.scale = 1.0 / sums
    return mapping
