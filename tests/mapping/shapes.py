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


def loft(around: int, along: int, *, wobble: float = 0.0, name: str = "loft") -> Mesh:
    """A blade: an aerofoil of 12 % thickness, tapered from a chord of 1.5 to 0.5 and twisted by 40 degrees over 10 m.

    Triangles point outwards; the trailing edge is sharp, the ends are open. `wobble` moves points along the surface,
    by so many cells, so that two such meshes do not match; the edge and the ends keep theirs.
    """
    s, z = np.meshgrid(np.arange(around) / around, np.linspace(0.0, 1.0, along), indexing="ij")
    inner = np.sin(np.pi * z) ** 2
    z = z + wobble / along * inner * np.sin(2 * np.pi * 7 * s + 11 * z)
    s = s + wobble / around * inner * np.sin(2 * np.pi * s) ** 2 * np.cos(9 * z)
    x = 0.5 * (1.0 + np.cos(2 * np.pi * s))  # from the trailing edge over the upper side to the nose and back
    half = 0.6 * (0.2969 * np.sqrt(np.abs(x)) - 0.1260 * x - 0.3516 * x**2 + 0.2843 * x**3 - 0.1036 * x**4)
    chord, twist = 1.5 - z, np.deg2rad(40.0) * z
    flat = chord * np.stack([x - 0.25, np.where(s < 0.5, half, -half)])
    points = np.stack(
        [
            np.cos(twist) * flat[0] - np.sin(twist) * flat[1],
            np.sin(twist) * flat[0] + np.cos(twist) * flat[1],
            10.0 * z,
        ],
        axis=-1,
    )
    one, two = np.arange(around)[:, np.newaxis] * along, (np.arange(around)[:, np.newaxis] + 1) % around * along
    k = np.arange(along - 1)
    lower = np.stack([one + k, two + k, two + k + 1], axis=-1).reshape(-1, 3)
    upper = np.stack([one + k, two + k + 1, one + k + 1], axis=-1).reshape(-1, 3)
    return Mesh(points.reshape(-1, 3), triangles=np.concatenate([lower, upper]), name=name)
