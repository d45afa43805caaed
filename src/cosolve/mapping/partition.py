"""Radial basis functions in overlapping clusters of points, blended by a partition of unity: for large meshes.

Every cluster is a ball with some dozen source points. Inside, the field is interpolated as `global_radial_basis` does
it with all points; where balls overlap, their interpolants are blended with shares that are smooth, zero at the edge of
a ball, and sum to one (Wendland (2004), 15.4). The operator is one sparse matrix, and the work grows with the number of
points. Balls follow the points: the cloud is halved along its longer side until groups are small enough, so that fine
and coarse parts of a mesh are treated alike. Clusters are worked on in threads, with the same bits for any number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import is_number, whole
from cosolve.errors import SetupError
from cosolve.mapping.global_radial import GlobalBasis, Polynomial, radial_function
from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Index, Mesh
from cosolve.mapping.mesh_checks import check_distances, check_limit, check_pair, element_size
from cosolve.mapping.threads import in_threads

_BASES: tuple[str, ...] = get_args(GlobalBasis)
_POLYNOMIALS = {"off": 0, "separate": 1, "on": 2}
#: A ball around a group of points holds about so many times as many.
_SWELL = 2.5
#: Support of a compact basis, where none is given, relative to the radius of a cluster.
_REACH = 3.0
#: A cluster that is slimmer than this is one row of points; it is widened by this factor, so many times.
_SLIM, _WIDER, _ROUNDS = 0.1, 1.6, 3
#: Cells count as stretched where those that touch the points of a cluster reach so many times as far as these.
_STRETCHED = 1.3
_CLUSTERS = 32  # that are handed out at once
_ROWS = 1 << 16  # of the operator, which are handed out at once


def partition_of_unity(
    source: Mesh,
    target: Mesh,
    *,
    basis: GlobalBasis = "wendland_c2",
    support: float | None = None,
    shape: float | None = None,
    polynomial: Polynomial = "separate",
    per_cluster: int = 50,
    overlap: float = 0.15,
    axes: Sequence[int] | None = None,
    max_distance: float | None = None,
    workers: int | None = None,
) -> FieldMapping:
    """Map by radial basis functions in overlapping clusters of points, for up to millions of points.

    Parameters
    ----------
    source : Mesh
        Mesh that has the field.
    target : Mesh
        Mesh that gets it.
    basis : str, default "wendland_c2"
        Radial function, see `global_radial_basis`.
    support : float or None, default None
        Radius of a compact basis. None: three times the radius of the cluster.
    shape : float or None, default None
        Parameter of a basis that is not compact.
    polynomial : {"separate", "on", "off"}, default "separate"
        See `global_radial_basis`.
    per_cluster : int, default 50
        Number of source points per cluster, about.
    overlap : float, default 0.15
        By how much balls are larger than the points they are made for, above 0 and up to 2.
    axes : sequence of int or None, default None
        Coordinates that count. None: all.
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
    On a mesh of one cluster it agrees with `global_radial_basis`. The operator is one sparse matrix and the work grows
    with the number of points.

    References
    ----------
    .. [1] H. Wendland, Scattered Data Approximation, Cambridge University Press, 2004, 15.4.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0.0, 1.0, 400)
    >>> mapping = partition_of_unity(Mesh.line(x), Mesh.line([0.1234, 0.5, 0.8765]))
    >>> bool(abs(mapping.consistent(np.sin(9 * x)) - np.sin(9 * np.array([0.1234, 0.5, 0.8765]))).max() < 1e-4)
    True
    """
    where = "partition_of_unity"
    check_pair(where, source, target)
    check_limit(where, max_distance)
    if polynomial not in _POLYNOMIALS:
        raise SetupError(f"{where}: polynomial is 'separate', 'on' or 'off', not {polynomial!r}")
    if not is_number(overlap) or not 0 < overlap <= 2:
        raise SetupError(f"{where}: overlap is a number above 0, up to 2, not {overlap!r}")
    compact = basis in _BASES[_BASES.index("wendland_c0") :]
    if not (compact and support is None):
        radial_function(basis, support, shape)  # refuses what does not fit together
    whole(where, "per_cluster", per_cluster, 5)
    chosen = list(range(source.points.shape[1])) if axes is None else list(axes)
    x, y = _spatial(source.points[:, chosen]), _spatial(target.points[:, chosen])
    from scipy.spatial import cKDTree

    tree = cKDTree(x)
    found: Any = tree.query(y, workers=workers or -1)
    distances, nearest = found
    check_distances(where, source, target, distances, max_distance, element_size(source))
    balls = _balls(x, per_cluster, overlap)
    if len(balls.radii) > 1:
        balls = _widened(x, tree, _ringed(source, x, balls))
    if basis == "gaussian" and shape is None and support is not None:
        shape = float(np.sqrt(-np.log(1e-9)) / support)
    given = (_BASES.index(basis), support or 0.0, _REACH if shape is None else shape, _POLYNOMIALS[polynomial])
    members, weights = _interpolants(where, source, (x, y), tree, balls, nearest, given, workers)
    matrix = _blended(members, weights, balls, y, len(x), workers)
    return FieldMapping(f"partition of unity ({basis})", matrix, distance=float(distances.max()))


class _Balls(NamedTuple):
    """Clusters: centres, radii, and the cluster that each source point was sorted into."""

    centres: Matrix
    radii: Vector
    home: Index


class _Members(NamedTuple):
    """Source points and target points of every cluster, one cluster after the other."""

    source_starts: Index
    source_columns: Index
    target_starts: Index
    target_columns: Index


def _spatial(points: Matrix) -> Matrix:
    return np.ascontiguousarray(np.concatenate([points, np.zeros((len(points), 3 - points.shape[1]))], axis=1))


def _balls(x: Matrix, per_cluster: int, overlap: float) -> _Balls:
    from cosolve.mapping.kernels.clusters import halves

    n = len(x)
    if n <= per_cluster:
        centre = x.mean(axis=0)
        return _Balls(centre[np.newaxis], np.array([np.inf]), np.zeros(n, dtype=np.int64))
    leaves = min(max(2, round(n * _SWELL / per_cluster)), n // 2)
    order, starts = halves(x, leaves)
    counts = np.diff(starts)
    home = np.empty(n, dtype=np.int64)
    home[order] = np.repeat(np.arange(leaves), counts)
    centres = np.add.reduceat(x[order], starts[:-1]) / counts[:, np.newaxis]
    reach = np.sqrt(((x - centres[home]) ** 2).sum(axis=1))
    radii = (1.0 + overlap) * np.maximum.reduceat(reach[order], starts[:-1])
    return _Balls(centres, radii, home)


def _ringed(source: Mesh, x: Matrix, balls: _Balls) -> _Balls:
    """Balls that hold, on a mesh of stretched cells, all points of the cells that touch their own points.

    A ball of some dozen points would hold one row of them there and know nothing of the next.
    """
    if not source.n_cells:
        return balls
    reaches = balls.radii.copy()
    for i in range(source.cells.shape[1]):
        for j in range(source.cells.shape[1]):
            both = (source.cells[:, i] >= 0) & (source.cells[:, j] >= 0)
            home = balls.home[source.cells[both, i]]
            reach = np.sqrt(((x[source.cells[both, j]] - balls.centres[home]) ** 2).sum(axis=1))
            np.maximum.at(reaches, home, (1.0 + 1e-9) * reach)
    return balls._replace(radii=np.where(reaches > _STRETCHED * balls.radii, reaches, balls.radii))


def _widened(x: Matrix, tree: Any, balls: _Balls) -> _Balls:
    """Balls that hold one row of points are widened up to the next row; where there is none, it is a curve."""
    from cosolve.mapping.kernels.clusters import slimness

    radii, trial = balls.radii.copy(), balls.radii.copy()
    slim = np.arange(len(radii))
    for _ in range(_ROUNDS + 1):
        wide = [
            slimness(x, *_joined(_inside(tree, balls.centres[some], trial[some]))) > _SLIM
            for some in np.array_split(slim, len(slim) // 1024 + 1)
        ]
        enough = np.concatenate(wide)
        radii[slim[enough]] = trial[slim[enough]]
        slim = slim[~enough]
        if not len(slim):
            break
        trial[slim] *= _WIDER
    return balls._replace(radii=radii)


def _interpolants(
    where: str,
    source: Mesh,
    points: tuple[Matrix, Matrix],
    tree: Any,
    balls: _Balls,
    nearest: Any,
    given: tuple[int, float, float, int],
    workers: int | None,
) -> tuple[_Members, Vector]:
    """Who is in which cluster, and the weights of the interpolant of each."""
    from scipy.spatial import cKDTree

    from cosolve.mapping.kernels.clusters import cluster_weights

    x, y = points
    clusters, targets = len(balls.radii), cKDTree(y)
    own = balls.home[nearest]
    with np.errstate(invalid="ignore"):
        outside = np.sqrt(((y - balls.centres[own]) ** 2).sum(axis=1)) >= balls.radii[own]
    # a point that its own ball does not hold belongs to it nevertheless, in case no other holds it
    strays = np.flatnonzero(outside)
    strays = strays[np.argsort(own[strays], kind="stable")]
    stray_starts = np.searchsorted(own[strays], np.arange(clusters + 1))
    parts: list[Any] = [None] * ((clusters + _CLUSTERS - 1) // _CLUSTERS)

    def solve(first: int, last: int) -> None:
        centres, radii = balls.centres[first:last], balls.radii[first:last]
        inside = [_inside(one, centres, radii) for one in (tree, targets)]
        for k in range(first, last):
            more = strays[stray_starts[k] : stray_starts[k + 1]]
            if len(more):
                inside[1][k - first] = np.union1d(inside[1][k - first], more).astype(np.int64)
        lists = [_joined(one) for one in inside]
        if np.isinf(radii[0]):  # one cluster of all points
            radii = np.array([np.sqrt(((x - centres[0]) ** 2).sum(axis=1)).max() or 1.0])
        weights, failed = cluster_weights(x, y, *lists[0], *lists[1], radii, given[0], given[1], given[2], given[3])
        parts[first // _CLUSTERS] = (*lists[0], *lists[1], weights, first + failed if failed >= 0 else -1)

    in_threads(solve, clusters, workers, _CLUSTERS)
    for *_, failed in parts:
        if failed >= 0:
            raise SetupError(
                f"{where}: points of {source.name} around {balls.centres[failed].tolist()} give a singular system; two "
                "of them coincide, or the support is too large"
            )
    starts = [_continued([part[i] for part in parts]) for i in (0, 2)]
    columns = [np.concatenate([part[i] for part in parts]) for i in (1, 3)]
    return _Members(starts[0], columns[0], starts[1], columns[1]), np.concatenate([part[4] for part in parts])


def _inside(tree: Any, centres: Matrix, radii: Vector) -> list[Any]:
    return list(tree.query_ball_point(centres, radii, return_sorted=True))


def _joined(lists: list[Any]) -> tuple[Index, Index]:
    starts = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    return starts, np.concatenate([np.asarray(one, dtype=np.int64) for one in lists])


def _continued(starts: list[Index]) -> Index:
    counts = np.concatenate([np.diff(one) for one in starts])
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _blended(
    members: _Members, weights: Vector, balls: _Balls, y: Matrix, n_source: int, workers: int | None
) -> csr_array:
    """One row per target point: the interpolants of its clusters, by their shares."""
    from cosolve.mapping.kernels.clusters import blend, blend_sizes

    source_starts, source_columns, target_starts, target_columns = members
    n, counts = len(y), np.diff(target_starts)
    widths = np.diff(source_starts)
    cluster = np.repeat(np.arange(len(counts)), counts)
    # where the row of a target point begins among the weights of its cluster
    first = np.concatenate([[0], np.cumsum(counts * widths)])[:-1]
    begins = first[cluster] + (np.arange(len(cluster)) - target_starts[cluster]) * widths[cluster]
    by_target = np.argsort(target_columns, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(target_columns, minlength=n))]).astype(np.int64)
    clusters, blocks = cluster[by_target], begins[by_target]
    where = target_columns[by_target]
    r = np.sqrt(((y[where] - balls.centres[clusters]) ** 2).sum(axis=1)) / balls.radii[clusters]
    shares = np.maximum(1.0 - r, 0.0) ** 4 * (4.0 * r + 1.0)
    alone = np.bincount(where, weights=shares, minlength=n) <= 0.0
    shares[alone[where]] = 1.0
    sizes = np.zeros(n, dtype=np.int64)
    inside = (source_starts, source_columns, n_source)
    in_threads(lambda a, b: blend_sizes(a, b, starts, clusters, *inside, sizes), n, workers, _ROWS)
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    indices: npt.NDArray[np.int32] = np.empty(indptr[-1], dtype=np.int32)
    data = np.empty(indptr[-1])
    rows = (starts, clusters, blocks, shares, *inside, weights, indptr, indices, data)
    in_threads(lambda a, b: blend(a, b, *rows), n, workers, _ROWS)
    short = indptr.astype(np.int32) if indptr[-1] < 2**31 else indptr  # or both are copied
    return csr_array((data, indices, short), shape=(n, n_source))
