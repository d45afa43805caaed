"""The contract of a field solver: a subsystem whose vector ports live on meshes, and which can show what it holds.

A port on a mesh carries its values point by point (`x0, y0, x1, y1, ...`), at the points of the mesh at rest, however
far the surface has moved since. Displacements are total, from rest; forces are nodal forces (N, or N per metre of depth
in a plane), so that a consistent mapping of displacements and its transpose for forces keep virtual work.

What rollback asks of a field solver is what it asks of any: `restore` brings back *everything* that the next subsystem
step depends on, to the last bit. Of an implicit solver that includes the vector its inner Newton iteration starts from
and the matrix that is factorised, or rather which state and step it was factorised for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.wording import counted
from cosolve.errors import SetupError
from cosolve.mapping.mesh import Mesh
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import Ports

#: Cell kinds of a snapshot and their number of points, by the names of meshio; second order: corners, then edges.
CELL_POINTS = {
    "line": 2,
    "line3": 3,
    "triangle": 3,
    "triangle6": 6,
    "quad": 4,
    "quad8": 8,
    "quad9": 9,
    "tetra": 4,
    "tetra10": 10,
    "hexahedron": 8,
}


@dataclass(frozen=True)
class FieldSnapshot:
    """The fields of a solver at one time.

    Parameters
    ----------
    points : ndarray
        Points where they are *now*, shape (n, dimensions).
    cells : mapping of str to ndarray
        Point numbers of the cells by kind ("triangle", "quad8" ...), one row per cell. They do not change during a run.
    point_data : mapping of str to ndarray
        Fields at points; vectors have the shape (n, components).
    cell_data : mapping of str to ndarray
        Fields in cells.

    Examples
    --------
    >>> still = FieldSnapshot(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), {"triangle": np.array([[0, 1, 2]])},
    ...                       point_data={"pressure": np.array([1.0, 2.0, 3.0])})
    >>> still.n_points, still.n_cells
    (3, 1)
    """

    points: npt.NDArray[np.float64]
    cells: Mapping[str, npt.NDArray[np.int64]]
    point_data: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    cell_data: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind, cells in self.cells.items():
            if kind not in CELL_POINTS:
                raise SetupError(f"a snapshot has cells of the kinds {', '.join(CELL_POINTS)}, not {kind!r}")
            if cells.ndim != 2 or cells.shape[1] != CELL_POINTS[kind]:
                raise SetupError(f"cells of kind {kind!r} have {CELL_POINTS[kind]} points each, not {cells.shape}")
            if cells.size and not 0 <= cells.min() <= cells.max() < self.n_points:
                raise SetupError(f"cells of kind {kind!r} name points that are not there: 0 to {self.n_points - 1} are")
        for where, data, n in (("point", self.point_data, self.n_points), ("cell", self.cell_data, self.n_cells)):
            for name, values in data.items():
                if len(values) != n:
                    raise SetupError(f"{where} data '{name}' has {len(values)} rows for {counted(n, where)}")

    @property
    def n_points(self) -> int:
        """Number of points."""
        return len(self.points)

    @property
    def n_cells(self) -> int:
        """Number of cells of all kinds."""
        return sum(map(len, self.cells.values()))


class FieldSubsystem(Subsystem):
    """A subsystem with fields: `meshes` says on which mesh the values of a vector port live.

    A solver may say more: `snapshot()` gives what it holds now, for files and pictures. Rollback, states for files and
    all other capabilities are those of every subsystem.

    >>> import cosolve as cs
    >>> class Panel(cs.fields.FieldSubsystem):
    ...     inputs, outputs = [("force", 6)], [("displacement", 6)]
    ...     meshes = dict.fromkeys(["force", "displacement"], cs.mapping.Mesh.line([[0, 0], [0.5, 0], [1, 0]]))
    ...     def start(self, t0):
    ...         return np.zeros(6)
    ...     def advance(self, t0, t1, u):
    ...         return u(t1) / 100.0
    >>> Panel().components("force")
    2
    """

    #: Port -> the mesh, at rest, whose points its values belong to.
    meshes: Mapping[str, Mesh] = {}

    snapshot: Callable[[], FieldSnapshot]
    """snapshot() -> what the solver holds now, at the state that was reached last."""

    def components(self, port: str) -> int:
        """Return the number of values that a port carries per point of its mesh.

        Parameters
        ----------
        port : str
            Name of the port.

        Returns
        -------
        int
            The number.
        """
        for ports in (Ports(self.inputs), Ports(self.outputs)):
            if port in ports and port in self.meshes:
                points, length = self.meshes[port].n_points, ports.by_name[port].length
                if length % points:
                    raise SetupError(
                        f"{type(self).__name__}: port '{port}' carries {length} numbers, which is no multiple of the "
                        f"{points} points of its mesh '{self.meshes[port].name}'"
                    )
                return length // points
        known = ", ".join(self.meshes) or "none"
        raise SetupError(f"{type(self).__name__}: '{port}' is no port on a mesh; those on meshes: {known}")
