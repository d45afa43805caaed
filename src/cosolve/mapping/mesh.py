"""Meshes as the mappings see them: points, and lines, triangles or quadrilaterals between them.

A mesh is checked when it is made, so that no mapping meets an index out of range, a NaN or an element without extent.
Uses numpy only; files come in through `read.py`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import flag
from cosolve.basics.wording import counted
from cosolve.errors import SetupError

Index = npt.NDArray[np.int64]

#: A cell counts as degenerate below this extent relative to its own diameter (lines: to the diameter of the mesh).
_FLAT = 1e-10

_KINDS = ((2, "line", "lines"), (3, "triangle", "triangles"), (4, "quadrilateral", "quadrilaterals"))


class Mesh:
    """A mesh of lines, or of triangles and quadrilaterals, in one to three dimensions.

    Without cells it is a cloud of points, enough for `nearest_neighbour` and `radial_basis`.

    Parameters
    ----------
    points : array_like
        Shape (n, dimensions), or (n,) in one dimension.
    lines : array_like or None, default None
        Shape (cells, 2), numbers of points from 0.
    triangles : array_like or None, default None
        Shape (cells, 3).
    quadrilaterals : array_like or None, default None
        Shape (cells, 4), corners in order around the cell.
    name : str, default "mesh"
        Name for messages.

    Attributes
    ----------
    file_points : ndarray or None
        Number of each point in the file it was read from.
    cells : ndarray
        Point numbers, one row per cell; triangles come first, -1 fills their rows.
    corners : ndarray
        Number of corners of each cell.

    Raises
    ------
    SetupError
        If a number is out of range, a point is not finite or a cell has no extent.

    Examples
    --------
    >>> mesh = Mesh([[0, 0], [2, 0], [2, 1], [0, 1], [3, 0]], triangles=[[1, 4, 2]], quadrilaterals=[[0, 1, 2, 3]])
    >>> print(mesh)
    mesh: 5 points in 2 dimensions, 1 triangle, 1 quadrilateral
    >>> mesh.sizes
    array([0.5, 2. ])
    """

    def __init__(
        self,
        points: npt.ArrayLike,
        *,
        lines: npt.ArrayLike | None = None,
        triangles: npt.ArrayLike | None = None,
        quadrilaterals: npt.ArrayLike | None = None,
        name: str = "mesh",
    ) -> None:
        self.name = name
        # Number of each point in the file the mesh was read from (`read_mesh`), None otherwise.
        self.file_points: Index | None = None
        self.points = _checked_points(points, name)
        given = [
            _checked_cells(cells, corners, kind, len(self.points), name)
            for cells, (corners, kind, _) in zip((lines, triangles, quadrilaterals), _KINDS, strict=True)
        ]
        if len(given[0]) and (len(given[1]) or len(given[2])):
            raise SetupError(f"{name}: holds lines and surface cells; make two meshes, one of each")
        width = max([corners for cells, (corners, _, _) in zip(given, _KINDS, strict=True) if len(cells)] or [2])
        # Corner numbers, one row per cell (lines, or triangles then quadrilaterals); -1 fills the rows of triangles.
        self.cells: Index = np.full((sum(map(len, given)), width), -1, dtype=np.int64)
        row = 0
        for cells, (corners, _, _) in zip(given, _KINDS, strict=True):
            if len(cells):
                self.cells[row : row + len(cells), :corners] = cells
                row += len(cells)
        # Number of corners of each cell: 2, 3 or 4.
        self.corners: Index = np.repeat([2, 3, 4], [len(cells) for cells in given]).astype(np.int64)
        self._refuse_degenerate()

    @classmethod
    def line(cls, points: npt.ArrayLike, *, closed: bool = False, name: str = "mesh") -> Mesh:
        """Make a mesh of points joined one after the other.

        Parameters
        ----------
        points : array_like
            The points in order.
        closed : bool, default False
            Join the last point to the first.
        name : str, default "mesh"
            Name for messages.

        Returns
        -------
        Mesh
            A mesh of lines.

        Examples
        --------
        >>> print(Mesh.line([0.0, 0.5, 1.0], name="string"))
        string: 3 points in 1 dimension, 2 lines
        """
        checked = _checked_points(points, name)
        if len(checked) < 2:
            raise SetupError(f"{name}: a line needs at least two points, got {len(checked)}")
        if checked.shape[1] == 1:
            steps = np.diff(checked[:, 0])
            if flag("closed", closed):
                raise SetupError(f"{name}: a line in one dimension cannot be closed")
            turning = np.flatnonzero(steps * steps[0] < 0)
            if len(turning):
                raise SetupError(
                    f"{name}: the points turn back after point {turning[0]}; a line in one dimension runs one way, so "
                    "sort them"
                )
        start = np.arange(len(checked) if closed else len(checked) - 1)
        return cls(checked, lines=np.column_stack([start, (start + 1) % len(checked)]), name=name)

    @property
    def n_points(self) -> int:
        """Number of points."""
        return len(self.points)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.cells)

    @property
    def dimension(self) -> int:
        """Dimension of the cells: 0 for a cloud of points, 1 for lines, 2 for surfaces."""
        return 0 if not self.n_cells else 1 if self.corners[0] == 2 else 2

    @cached_property
    def spatial(self) -> Matrix:
        """The points in three dimensions, missing coordinates zero: shape (n, 3)."""
        points = np.zeros((self.n_points, 3))
        points[:, : self.points.shape[1]] = self.points
        return points

    @cached_property
    def directions(self) -> Matrix:
        """Unit normals of surface cells (right-hand rule), unit tangents of lines: shape (cells, 3)."""
        unit: Matrix = self._vectors / _lengths(self._vectors)[:, np.newaxis]
        return unit

    @cached_property
    def sizes(self) -> Vector:
        """Length of each line; area of each surface cell (of a warped one: seen along its normal)."""
        length = _lengths(self._vectors)
        return length if self.dimension == 1 else length / 2

    @cached_property
    def diameters(self) -> Vector:
        """Largest distance between two corners of each cell."""
        boxes = self.corner_points
        largest = np.zeros(self.n_cells)
        for i in range(self.cells.shape[1]):
            for j in range(i):
                largest = np.maximum(largest, _lengths(boxes[:, i] - boxes[:, j]))
        return largest

    @cached_property
    def corner_points(self) -> npt.NDArray[np.float64]:
        """Corners of all cells, shape (cells, corners, 3); the missing corner of a triangle repeats its first one."""
        mixed = self.corners[:1] != self.cells.shape[1]  # triangles come first
        return self.spatial[np.where(self.cells < 0, self.cells[:, :1], self.cells) if mixed else self.cells]

    @cached_property
    def _vectors(self) -> Matrix:
        """Tangent of a line with its length; normal of a surface cell with twice its area."""
        x = self.corner_points
        if self.dimension == 1:
            return x[:, 1] - x[:, 0]
        if x.shape[1] == 3:
            return _cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])
        return _cross(x[:, 2] - x[:, 0], x[:, 3] - x[:, 1])  # diagonals; a triangle repeats its first corner

    def _refuse_degenerate(self) -> None:
        """Cells without extent, and quadrilaterals that are not convex, by name."""
        if not self.n_cells:
            return
        reference = float(np.ptp(self.points, axis=0).max()) if self.dimension == 1 else self.diameters**2
        flat = np.flatnonzero(self.sizes <= _FLAT * np.asarray(reference))
        if len(flat):
            what = "length" if self.dimension == 1 else "area"
            raise SetupError(
                f"{self.label(int(flat[0]))} is degenerate: its {what} is {self.sizes[flat[0]]:.3g}"
                f"{_more(len(flat), 'cells')}; remove it or merge its points"
            )
        if self.cells.shape[1] == 4:
            x, quads = self.corner_points, np.flatnonzero(self.corners == 4)
            turns = [
                np.einsum(
                    "ij,ij->i",
                    np.cross(x[:, i] - x[:, i - 1], x[:, (i + 1) % 4] - x[:, i])[quads],
                    self.directions[quads],
                )
                for i in range(4)
            ]
            bad = quads[np.min(turns, axis=0) <= _FLAT * self.diameters[quads] ** 2]
            if len(bad):
                raise SetupError(
                    f"{self.label(int(bad[0]))} is not convex{_more(len(bad), 'quadrilaterals')}; list its corners in "
                    "order around it, or split it into triangles"
                )

    def label(self, cell: int) -> str:
        """Name a cell for messages.

        Parameters
        ----------
        cell : int
            Number of the cell.

        Returns
        -------
        str
            As in "mesh: triangle 3 (points 1, 4, 2)", numbered as given.
        """
        corners = int(self.corners[cell])
        first = int(np.searchsorted(self.corners, corners))
        points = ", ".join(str(p) for p in self.cells[cell, :corners])
        return f"{self.name}: {_KINDS[corners - 2][1]} {cell - first} (points {points})"

    def __str__(self) -> str:
        dim = self.points.shape[1]
        parts = [f"{self.n_points} points in {counted(dim, 'dimension')}"]
        for corners, one, many in _KINDS:
            count = int(np.count_nonzero(self.corners == corners))
            if count:
                parts.append(f"{count} {one if count == 1 else many}")
        return f"{self.name}: {', '.join(parts)}"


def _lengths(vectors: Matrix) -> Vector:
    """Lengths of rows of three; several times as fast as `np.linalg.norm`, with the same bits."""
    x, y, z = vectors.T
    length: Vector = np.sqrt(x * x + y * y + z * z)
    return length


def _cross(a: Matrix, b: Matrix) -> Matrix:
    """Cross products of rows of three; several times as fast as `np.cross`, with the same bits."""
    (a0, a1, a2), (b0, b1, b2) = a.T, b.T
    product = np.empty(a.shape)
    product[:, 0], product[:, 1], product[:, 2] = a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0
    return product


def _checked_points(points: npt.ArrayLike, name: str) -> Matrix:
    try:
        array = np.array(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise SetupError(f"{name}: points must be rows of one to three numbers each") from None
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.size == 0:
        raise SetupError(f"{name}: the mesh is empty; give it points")
    if array.ndim != 2 or not 1 <= array.shape[1] <= 3:
        raise SetupError(f"{name}: points must have the shape (n, 1), (n, 2) or (n, 3), not {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise SetupError(
            f"{name}: point {bad[0]} is {array[bad[0]].tolist()}; every coordinate must be a finite number"
        )
    return array


def _checked_cells(cells: npt.ArrayLike | None, corners: int, kind: str, n_points: int, name: str) -> Index:
    if cells is None:
        return np.zeros((0, corners), dtype=np.int64)
    try:
        array: npt.NDArray[Any] = np.asarray(cells)
    except ValueError:  # ragged
        array = np.zeros(1)
    if array.size == 0:
        return np.zeros((0, corners), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != corners or array.dtype.kind not in "iu":
        raise SetupError(f"{name}: {kind}s must be rows of {corners} whole point numbers each")
    array = array.astype(np.int64)
    outside = np.flatnonzero(((array < 0) | (array >= n_points)).any(axis=1))
    if len(outside):
        raise SetupError(
            f"{name}: {kind} {outside[0]} has the corners {array[outside[0]].tolist()}, but points are numbered "
            f"from 0 to {n_points - 1}"
        )
    return array


def _more(count: int, what: str) -> str:
    return f" ({count} {what} in all)" if count > 1 else ""
