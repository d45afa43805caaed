"""Meshes that several mapping tests use."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cosolve.mapping import Mesh


def grid_cells(nx: int, ny: int, kind: str) -> dict[str, npt.NDArray[np.int64]]:
    """Cells of a grid of nx by ny points: "triangles", "quadrilaterals" or, alternating, "mixed"."""
    corner = (np.arange(nx - 1)[:, np.newaxis] * ny + np.arange(ny - 1)).ravel()
    quads = np.column_stack([corner, corner + ny, corner + ny + 1, corner + 1])
    cut = np.ones(len(quads), bool) if kind == "triangles" else np.zeros(len(quads), bool)
    if kind == "mixed":
        cut = np.arange(len(quads)) % 2 == 0
    triangles = np.concatenate([quads[cut][:, [0, 1, 2]], quads[cut][:, [0, 2, 3]]])
    return {"triangles": triangles, "quadrilaterals": quads[~cut]}


def square(nx: int, ny: int, kind: str, *, wobble: float = 0.0, name: str = "mesh") -> Mesh:
    """The unit square; `wobble` moves the inner points, so that quadrilaterals are no parallelograms."""
    x, y = (a.ravel() for a in np.meshgrid(np.linspace(0, 1, nx), np.linspace(0, 1, ny), indexing="ij"))
    shift = wobble * np.sin(np.pi * x) * np.sin(np.pi * y)
    points = np.column_stack([x + shift * np.cos(7 * y), y + shift * np.sin(5 * x + 1)])
    return Mesh(points, **grid_cells(nx, ny, kind), name=name)


def in_space(mesh: Mesh, *, gap: float = 0.0) -> Mesh:
    """A plane mesh turned into space, `gap` off its plane."""
    first = np.array([1.0, 2.0, -1.0]) / np.sqrt(6)
    second = np.array([1.0, 0.0, 1.0]) / np.sqrt(2)
    points = mesh.points @ np.array([first, second]) + gap * np.cross(first, second)
    triangles, quads = mesh.cells[mesh.corners == 3][:, :3], mesh.cells[mesh.corners == 4]
    return Mesh(points, triangles=triangles, quadrilaterals=quads, name=mesh.name)


def tube(around: int, along: int, kind: str, *, turn: float = 0.0, radius: float = 1.0, name: str = "mesh") -> Mesh:
    """A closed cylinder of length 1."""
    cells = grid_cells(around + 1, along, kind)
    angle = 2 * np.pi * (np.arange(around) + turn) / around
    s, z = (a.ravel() for a in np.meshgrid(angle, np.linspace(0, 1, along), indexing="ij"))
    points = np.column_stack([radius * np.cos(s), radius * np.sin(s), z])
    return Mesh(points, **{key: value % len(points) for key, value in cells.items()}, name=name)
