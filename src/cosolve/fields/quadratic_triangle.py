"""The triangle with six nodes, corners and middles of edges: shape functions and a rule to integrate on it.

`quadratic_trace`: displacements along edges of second order at other points of the surface; transposed, forces.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from cosolve.basics.arrays import Matrix, Vector
from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Mesh
from cosolve.mapping.neighbours import nearest_cells

Index = npt.NDArray[np.int64]

#: The six nodes on the unit triangle: corners, then the middles of the edges 01, 12 and 20 (VTK's quadratic triangle).
NODES = np.array([[0, 0], [1, 0], [0, 1], [0.5, 0], [0.5, 0.5], [0, 0.5]])


def seven_points() -> tuple[Matrix, Vector]:
    """Radon's rule on the unit triangle, exact for polynomials of degree 5: places (7, 2) and weights."""
    root = np.sqrt(15.0)
    places, weights = [[1 / 3, 1 / 3]], [9 / 80]
    for sign in (1, -1):
        a, w = (6 + sign * root) / 21, (155 + sign * root) / 2400
        places += [[a, a], [1 - 2 * a, a], [a, 1 - 2 * a]]
        weights += [w] * 3
    return np.array(places), np.array(weights)


def shapes(places: Matrix) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Six quadratic shape functions (corners, middles 01, 12, 20), their two derivatives, and three linear ones.

    >>> quadratic, by_first, _, linear = shapes(np.array([[0.5, 0.0]]))
    >>> quadratic.tolist(), by_first.tolist(), linear.tolist()
    ([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0]], [[-1.0, 1.0, 0.0, 0.0, 0.0, 0.0]], [[0.5, 0.5, 0.0]])
    """
    a, b = places.T
    c = 1.0 - a - b
    zero = np.zeros_like(a)
    quadratic = np.array([c * (2 * c - 1), a * (2 * a - 1), b * (2 * b - 1), 4 * a * c, 4 * a * b, 4 * b * c]).T
    by_first = np.array([1 - 4 * c, 4 * a - 1, zero, 4 * (c - a), 4 * b, -4 * b]).T
    by_second = np.array([1 - 4 * c, zero, 4 * b - 1, -4 * a, 4 * a, 4 * (c - b)]).T
    arrays = (quadratic, by_first, by_second, np.array([c, a, b]).T)
    first, second, third, fourth = (np.ascontiguousarray(array + 0.0) for array in arrays)
    return first, second, third, fourth


def jacobians(points: Matrix, triangles: Index) -> Matrix:
    """Determinants of the map from the unit triangle, (6, triangles): at the six nodes of each; negative: turned over.

    >>> jacobians(3.0 * NODES, np.arange(6)[np.newaxis]).ravel().tolist()
    [9.0, 9.0, 9.0, 9.0, 9.0, 9.0]
    """
    x = points[triangles]
    along, across = (np.tensordot(by, x, (1, 1)) for by in (_BY_FIRST, _BY_SECOND))
    determinants: Matrix = along[..., 0] * across[..., 1] - along[..., 1] * across[..., 0]
    return determinants


_, _BY_FIRST, _BY_SECOND, _ = shapes(NODES)


def quadratic_trace(surface: Mesh, edges: npt.NDArray[np.int64], target: Mesh) -> FieldMapping:
    """Parabolas on edges (first end, other end, middle, as points of `surface`) at the points of another mesh.

    Points beside the surface take the value of the nearest point of the nearest edge, which is taken to be straight.

    >>> bow = Mesh([[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]], name="edge")
    >>> trace = quadratic_trace(bow, np.array([[0, 1, 2]]), Mesh([[0.25, 0.0]]))
    >>> trace.consistent(np.array([0.0, 1.0, 0.25]))             # x**2
    array([0.0625])
    """
    straight = Mesh(surface.points, lines=edges[:, :2], name=surface.name)
    nearest, shares, distances = nearest_cells(straight, target)
    s = shares[:, 1]
    weights = np.column_stack([(1 - s) * (1 - 2 * s), s * (2 * s - 1), 4 * s * (1 - s)])
    starts = 3 * np.arange(target.n_points + 1)
    shape = target.n_points, surface.n_points
    matrix = csr_array((weights.ravel(), edges[nearest].ravel(), starts), shape=shape)
    matrix.sort_indices()
    return FieldMapping("quadratic trace", matrix, distance=float(distances.max()))
