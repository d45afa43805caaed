"""Nearest neighbour: every target point takes the value of the nearest source point (order 1).

Nearest neighbour with gradients: the value of the nearest source point, carried on along its gradient (order 2).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from cosolve.basics.arrays import Matrix, Vector
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


class NearestGradient:
    """Map by the nearest source point and its gradient: `u(y) = u_j + (y - x_j)^T grad u_j` (order 2).

    Parameters
    ----------
    source : Mesh
        Mesh that has the field.
    target : Mesh
        Mesh that gets it.

    Examples
    --------
    >>> mapping = NearestGradient(Mesh([[0.0, 0.0], [1.0, 0.0]]), Mesh([[0.25, 0.5]]))
    >>> mapping.consistent([2.0, 9.0], [[[4.0], [1.0]], [[0.0], [0.0]]])    # two points, two axes, one component
    array([3.5])
    """

    def __init__(self, source: Mesh, target: Mesh) -> None:
        check_pair("NearestGradient", source, target)
        _, found = nearest_points(source, target, k=1)
        self.nearest = found[:, 0]
        self.offsets: Matrix = target.points - source.points[self.nearest]
        self.n_source = source.n_points

    def consistent(self, field: npt.ArrayLike, gradient: npt.ArrayLike) -> Vector:
        """Map a field and its gradient from the source to the target.

        Parameters
        ----------
        field : array_like
            Flat values at the source points.
        gradient : array_like
            Shape (points, axes, components).

        Returns
        -------
        ndarray
            Flat values at the target points.
        """
        slopes = np.asarray(gradient, dtype=np.float64)
        rows = np.asarray(field, dtype=np.float64).reshape(self.n_source, -1)
        found = rows[self.nearest] + np.einsum("pa,pac->pc", self.offsets, slopes[self.nearest])
        return np.asarray(found).ravel()


class ScaledToIntegral:
    """A consistent mapping scaled per component so that the integral is kept.

    Parameters
    ----------
    mapping : FieldMapping
        The mapping.
    source_weights : ndarray
        Share of the cells that belongs to each source point (`point_shares`).
    target_weights : ndarray
        The same of the target.

    Examples
    --------
    >>> import cosolve.mapping as cm
    >>> a, b = cm.Mesh.line([0.0, 1.0, 2.0]), cm.Mesh.line([0.0, 2.0])
    >>> plain = cm.barycentric(a, b)
    >>> ScaledToIntegral(plain, point_shares(a), point_shares(b)).consistent([1.0, 2.0, 1.0])
    array([1.5, 1.5])
    """

    def __init__(self, mapping: FieldMapping, source_weights: Vector, target_weights: Vector) -> None:
        self.mapping, self.source_weights, self.target_weights = mapping, source_weights, target_weights

    def consistent(self, field: npt.ArrayLike) -> Vector:
        """Map a field from the source to the target and scale it.

        Parameters
        ----------
        field : array_like
            Flat values at the source points.

        Returns
        -------
        ndarray
            Flat values at the target points.
        """
        values = self.mapping.consistent(field)
        before = self.source_weights @ np.asarray(field, dtype=np.float64).reshape(self.mapping.n_source, -1)
        rows = values.reshape(self.mapping.n_target, -1)
        after = self.target_weights @ rows
        ratio = np.divide(before, after, out=np.ones_like(before), where=np.abs(after) > 1e-300)
        return np.asarray(rows * ratio).ravel()


def point_shares(mesh: Mesh) -> Vector:
    """The part of the cells that belongs to each point: every cell in equal parts to its corners (trapezoidal rule).

    >>> point_shares(Mesh.line([0.0, 1.0, 3.0]))
    array([0.5, 1.5, 1. ])
    """
    shares = np.zeros(mesh.n_points)
    used = mesh.cells >= 0
    np.add.at(shares, mesh.cells[used], np.repeat(mesh.sizes / mesh.corners, mesh.corners))
    return shares
