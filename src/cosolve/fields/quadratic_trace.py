"""Displacements along edges of second order, at other points of the same surface; transposed, forces back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Mesh
from cosolve.mapping.neighbours import nearest_cells


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
