"""Quadratic fields of NGSolve (extra `cosolve[ngsolve]`) as plain arrays: nodal values, and traces on boundaries.

NGSolve keeps a quadratic field by vertices and by edges, where the number of an edge says how far the field bulges over
the straight line. Ports and snapshots carry values at points: vertices and the middles of edges. `QuadraticSpace` goes
from one to the other and `Trace` does so on a boundary, with the transposed way for forces, so that work is kept.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import SuperLU, splu

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.packages import optional
from cosolve.basics.wording import did_you_mean
from cosolve.errors import NonFiniteError, SetupError, SubsystemError
from cosolve.fields.quadratic_triangle import Index, jacobians, quadratic_trace
from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Mesh


def ngsolve() -> Any:
    """The package, or a sentence that says how to get it."""
    return optional("ngsolve", "ngsolve", "a flow or solid by finite elements")


def checked_mesh(who: str, mesh: Any) -> Any:
    """An NGSolve mesh of triangles in the plane; one of netgen becomes one."""
    ng = ngsolve()
    if type(mesh).__module__.startswith("netgen"):
        mesh = ng.Mesh(mesh)
    if not isinstance(mesh, ng.Mesh) or mesh.dim != 2 or not mesh.ne:
        raise SetupError(f"{who}: mesh must be an ngsolve.Mesh of triangles in the plane, not {type(mesh).__name__}")
    if any(len(element.vertices) != 3 for element in mesh.Elements(ng.VOL)):
        raise SetupError(f"{who}: the mesh must consist of triangles")
    return mesh


def boundary_names(who: str, what: str, mesh: Any, pattern: str) -> tuple[str, ...]:
    """The names of a pattern such as `wall|cylinder`, all of which must be boundaries of the mesh."""
    known = tuple(dict.fromkeys(mesh.GetBoundaries()))
    names = tuple(name for name in str(pattern).split("|") if name)
    for name in names:
        if name not in known:
            raise SetupError(f"{who}: {what} names the boundary '{name}'; {did_you_mean(name, known)}")
    return names


class FreePart:
    """The rows and columns of free coefficients of a matrix of NGSolve, again and again with other values."""

    def __init__(self, matrix: Any, free: npt.NDArray[np.bool_]) -> None:
        rows, columns, _ = matrix.COO()
        n = matrix.height
        order = csc_array((np.arange(1.0, len(rows) + 1.0), (np.array(rows), np.array(columns))), shape=(n, n))
        chosen = csc_array(order[free][:, free])
        self._places = np.round(chosen.data).astype(np.int64) - 1
        self._indices, self._starts, self._n = chosen.indices, chosen.indptr, int(np.count_nonzero(free))

    def of(self, matrix: Any) -> csc_array:
        """That part of a matrix with the same pattern."""
        values: Vector = matrix.AsVector().FV().NumPy()
        return csc_array((values[self._places], self._indices, self._starts), shape=(self._n, self._n))


def whole(matrix: Any) -> csr_array:
    """A matrix of NGSolve as one of scipy."""
    rows, columns, values = matrix.COO()
    return csr_array((np.array(values), (np.array(rows), np.array(columns))), shape=(matrix.height, matrix.width))


def factorised(matrix: csc_array) -> SuperLU:
    """SuperLU solves four times faster than UMFPACK inside of NGSolve, which refines every solution."""
    try:
        return splu(matrix)
    except RuntimeError as error:
        raise SubsystemError(f"its matrix cannot be factorised ({error}); is every part of the mesh held?") from None


class QuadraticSpace:
    """Scalar quadratic fields on a mesh of triangles: `n` values, vertices first, then edges."""

    def __init__(self, mesh: Any) -> None:
        ng = ngsolve()
        self.mesh, self.n_vertices = mesh, mesh.nv
        scalar = ng.H1(mesh, order=2)
        self.n = scalar.ndof
        #: the two vertices of each edge
        self.edges: Index = np.array([[v.nr for v in edge.vertices] for edge in mesh.edges], dtype=np.int64)
        if self.n != mesh.nv + len(self.edges):
            raise SetupError("the mesh has hanging or doubled nodes, which quadratic fields on triangles cannot have")
        #: the value of an edge function in the middle of its edge
        self.bulge = self._height_of_bulge(ng, scalar)
        position = ng.GridFunction(ng.VectorH1(mesh, order=2))
        position.Set(ng.CF((ng.x, ng.y)))
        #: where the values are, at rest: (n, 2)
        self.points: Matrix = self.nodal(position.vec.FV().NumPy().reshape(2, self.n)).T.copy()
        numbers = {frozenset(pair): k for k, pair in enumerate(self.edges.tolist())}
        corners = np.array([[v.nr for v in e.vertices] for e in mesh.Elements(ng.VOL)], dtype=np.int64)
        middles = [
            [self.n_vertices + numbers[frozenset((row[i], row[(i + 1) % 3]))] for i in range(3)]
            for row in corners.tolist()
        ]
        turned = _doubled_area(self.points[corners]) < 0
        #: corners and middles of edges of each triangle, anticlockwise (VTK's quadratic triangle)
        self.triangles: Index = np.hstack([corners, np.array(middles, dtype=np.int64)])
        self.triangles[turned] = self.triangles[turned][:, [0, 2, 1, 5, 4, 3]]

    def _height_of_bulge(self, ng: Any, scalar: Any) -> float:
        """The value of an edge function in the middle of its edge, the same for all edges."""
        field = ng.GridFunction(scalar)
        element = next(iter(self.mesh.Elements(ng.VOL)))
        for number in scalar.GetDofNrs(element):
            field.vec[number] = 1.0 if number >= self.n_vertices else 0.0
        rule = ng.IntegrationRule([(0.5, 0.0), (0.0, 0.5), (0.5, 0.5)], [0.0] * 3)
        transformation = self.mesh.GetTrafo(element)
        values = [float(field(transformation(point))) for point in rule]
        if not values[0] or not np.allclose(values, values[0]):
            raise SetupError(f"this version of NGSolve ({ng.__version__}) has edge functions of an unknown kind")
        return values[0]

    def nodal(self, coefficients: Matrix) -> Matrix:
        """Values at the points, of fields along the last axis."""
        values = np.array(coefficients, dtype=np.float64)
        a, b = values[..., self.edges[:, 0]], values[..., self.edges[:, 1]]
        values[..., self.n_vertices :] = 0.5 * (a + b) + self.bulge * values[..., self.n_vertices :]
        return values

    def coefficients(self, nodal: Matrix) -> Matrix:
        """Coefficients of fields with these values at the points, along the last axis."""
        found = np.array(nodal, dtype=np.float64)
        means = 0.5 * (found[..., self.edges[:, 0]] + found[..., self.edges[:, 1]])
        found[..., self.n_vertices :] = (found[..., self.n_vertices :] - means) / self.bulge
        return found

    def of_nodal_forces(self, forces: Matrix) -> Matrix:
        """Generalised forces of coefficients, of forces at the points along the last axis: `nodal` transposed."""
        dual = np.array(forces, dtype=np.float64)
        middles = dual[..., self.n_vertices :]
        for component in range(len(dual)):
            for side in range(2):
                dual[component, : self.n_vertices] += 0.5 * np.bincount(
                    self.edges[:, side], weights=middles[component], minlength=self.n_vertices
                )
        middles *= self.bulge
        return dual

    def smallest_area_ratio(self, displacement: Matrix) -> float:
        """The smallest ratio of areas, displaced to at rest, at the nodes of all triangles; negative: turned over.

        `displacement` holds coefficients, (2, n).
        """
        return float((jacobians(self.nodal(displacement).T + self.points, self.triangles) / self._areas_at_rest).min())

    @cached_property
    def _areas_at_rest(self) -> Matrix:
        return jacobians(self.points, self.triangles)


def _doubled_area(corners: Matrix) -> Vector:
    a, b = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    area: Vector = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return area


class Trace:
    """The points of a space on boundaries, and what a field there is in terms of values at them.

    Values come point by point (`x0, y0, x1, y1, ...`), vertices of the boundary first, then the middles of its edges.
    """

    def __init__(self, who: str, space: QuadraticSpace, names: tuple[str, ...]) -> None:
        ng = ngsolve()
        self.who, self.space = who, space
        mesh = space.mesh
        chosen = [e for e in mesh.Elements(ng.BND) if e.mat in names]
        edges = np.array([e.edges[0].nr for e in chosen], dtype=np.int64)
        ends = space.edges[edges].reshape(-1, 2)
        self._vertices = np.unique(ends)
        #: numbers of the nodes in the space
        self.nodes: Index = np.concatenate([self._vertices, space.n_vertices + edges])
        self._ends: Index = np.searchsorted(self._vertices, ends)
        self._edges = edges
        n = len(self._vertices)
        middles = n + np.arange(len(edges))
        #: first end, other end and middle of each edge, as numbers of points of the trace
        self.cells: Index = np.column_stack([self._ends, middles])
        halves = np.concatenate([self.cells[:, [0, 2]], self.cells[:, [2, 1]]])
        self.mesh = Mesh(space.points[self.nodes], lines=halves, name=f"{who} on {'|'.join(names)}")
        self.n_points = len(self.nodes)

    def write(self, values: Vector, coefficients: Matrix) -> None:
        """Write values at the points into the coefficients (2, n) of a field."""
        given = self._checked(values)
        n = len(self._vertices)
        coefficients[:, self._vertices] = given[:, :n]
        means = 0.5 * (given[:, self._ends[:, 0]] + given[:, self._ends[:, 1]])
        coefficients[:, self.space.n_vertices + self._edges] = (given[:, n:] - means) / self.space.bulge

    def read(self, coefficients: Matrix) -> Vector:
        """Values at the points of the field with the coefficients (2, n)."""
        corners = coefficients[:, self._vertices]
        means = 0.5 * (corners[:, self._ends[:, 0]] + corners[:, self._ends[:, 1]])
        middles = means + self.space.bulge * coefficients[:, self.space.n_vertices + self._edges]
        return np.hstack([corners, middles]).T.reshape(-1)

    def forces(self, dual: Matrix) -> Vector:
        """Nodal forces that do the work of the generalised forces (2, n) of the coefficients: `write` transposed."""
        of_edges = dual[:, self.space.n_vertices + self._edges] / self.space.bulge
        corners = dual[:, self._vertices].copy()
        for side in range(2):
            for component in range(2):
                corners[component] -= 0.5 * np.bincount(
                    self._ends[:, side], weights=of_edges[component], minlength=len(self._vertices)
                )
        return np.hstack([corners, of_edges]).T.reshape(-1)

    def loads(self, forces: Vector) -> Matrix:
        """Generalised forces (2, n) of nodal forces at the points: `read` transposed."""
        given = self._checked(forces)
        dual, n = np.zeros((2, self.space.n)), len(self._vertices)
        of_middles = given[:, n:]
        for component in range(2):
            corners = given[component, :n].copy()
            for side in range(2):
                corners += 0.5 * np.bincount(self._ends[:, side], weights=of_middles[component], minlength=n)
            dual[component, self._vertices] = corners
        dual[:, self.space.n_vertices + self._edges] = of_middles * self.space.bulge
        return dual

    def _checked(self, values: Vector) -> Matrix:
        """What comes in at the points, one row per component."""
        given = np.asarray(values, dtype=np.float64)
        if given.size != 2 * self.n_points:
            raise SetupError(
                f"{self.who}: two values at each of the {self.n_points} points of its surface are {2 * self.n_points} "
                f"numbers, not {given.size}"
            )
        given = given.reshape(-1, 2).T
        if not np.isfinite(given).all():
            point = int(np.argwhere(~np.isfinite(given.T))[0][0])
            x, y = self.mesh.points[point]
            raise NonFiniteError(
                f"it was given {given[:, point].tolist()} at point {point} of its surface ({x:g}, {y:g})"
            )
        return given

    def mapping(self, target: Mesh) -> FieldMapping:
        """Quadratic interpolation on the nearest edge, at every point of another mesh of the same surface."""
        return quadratic_trace(self.mesh, self.cells, target)
