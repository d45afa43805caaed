"""Meshes with their data as files that viewers read: VTU, VTP and legacy VTK as text, and CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix
from cosolve.precice.fields import Geometry

_TYPES = {"line": 3, "triangle": 5, "tetrahedron": 10}


def write_export(path: Path, mesh: Geometry, data: dict[str, Matrix]) -> None:
    """Write one file; its suffix says how."""
    writer = {".vtu": _vtu, ".vtp": _vtp, ".vtk": _vtk, ".csv": _csv}[path.suffix]
    path.write_text(writer(mesh, data), encoding="utf-8")


def _spatial(rows: Matrix) -> Matrix:
    wide: Matrix = np.zeros((len(rows), 3))
    wide[:, : rows.shape[1]] = rows
    return wide


def _numbers(rows: Any) -> str:
    return "\n".join(" ".join(f"{value:.16e}" for value in row) for row in rows)


def _cells(mesh: Geometry) -> list[tuple[int, list[int]]]:
    found = [(_TYPES[kind], list(map(int, row))) for kind in _TYPES for row in mesh.cells[kind]]
    return found or [(1, [k]) for k in range(len(mesh.points))]


def _fields(data: dict[str, Matrix]) -> str:
    parts = []
    for name, rows in data.items():
        rows = rows if rows.shape[1] == 1 else _spatial(rows)
        parts.append(
            f'<DataArray type="Float64" Name="{name}" NumberOfComponents="{rows.shape[1]}" format="ascii">\n'
            f"{_numbers(rows)}\n</DataArray>"
        )
    return "<PointData>\n" + "\n".join(parts) + "\n</PointData>"


def _points(mesh: Geometry) -> str:
    return (
        '<Points>\n<DataArray type="Float64" Name="Position" NumberOfComponents="3" format="ascii">\n'
        f"{_numbers(_spatial(mesh.points))}\n</DataArray>\n</Points>"
    )


def _whole(name: str, values: Any, kind: str = "Int32") -> str:
    return f'<DataArray type="{kind}" Name="{name}" format="ascii">\n{" ".join(map(str, values))}\n</DataArray>'


def _vtu(mesh: Geometry, data: dict[str, Matrix]) -> str:
    cells = _cells(mesh)
    connected = [k for _, row in cells for k in row]
    ends = np.cumsum([len(row) for _, row in cells]).tolist()
    return (
        '<?xml version="1.0"?>\n<VTKFile type="UnstructuredGrid" version="0.1" byte_order="LittleEndian">\n'
        f'<UnstructuredGrid>\n<Piece NumberOfPoints="{len(mesh.points)}" NumberOfCells="{len(cells)}">\n'
        f"{_points(mesh)}\n<Cells>\n{_whole('connectivity', connected)}\n{_whole('offsets', ends)}\n"
        f"{_whole('types', [kind for kind, _ in cells], 'UInt8')}\n</Cells>\n{_fields(data)}\n"
        "</Piece>\n</UnstructuredGrid>\n</VTKFile>\n"
    )


def _vtp(mesh: Geometry, data: dict[str, Matrix]) -> str:
    kinds = {"Verts": [], "Lines": mesh.cells["line"], "Polys": mesh.cells["triangle"]}
    if not (len(kinds["Lines"]) or len(kinds["Polys"])):
        kinds["Verts"] = [[k] for k in range(len(mesh.points))]
    counts = " ".join(f'NumberOf{name}="{len(rows)}"' for name, rows in kinds.items())
    cells = "\n".join(
        f"<{name}>\n{_whole('connectivity', [int(k) for row in rows for k in row])}\n"
        f"{_whole('offsets', np.cumsum([len(row) for row in rows], dtype=int).tolist())}\n</{name}>"
        for name, rows in kinds.items()
    )
    return (
        '<?xml version="1.0"?>\n<VTKFile type="PolyData" version="0.1" byte_order="LittleEndian">\n<PolyData>\n'
        f'<Piece NumberOfPoints="{len(mesh.points)}" {counts}>\n{_points(mesh)}\n{cells}\n{_fields(data)}\n'
        "</Piece>\n</PolyData>\n</VTKFile>\n"
    )


def _vtk(mesh: Geometry, data: dict[str, Matrix]) -> str:
    cells = _cells(mesh)
    size = sum(1 + len(row) for _, row in cells)
    lines = [
        "# vtk DataFile Version 2.0", mesh.name, "ASCII", "DATASET UNSTRUCTURED_GRID",
        f"POINTS {len(mesh.points)} double", _numbers(_spatial(mesh.points)),
        f"CELLS {len(cells)} {size}", *(" ".join(map(str, [len(row), *row])) for _, row in cells),
        f"CELL_TYPES {len(cells)}", *(str(kind) for kind, _ in cells), f"POINT_DATA {len(mesh.points)}",
    ]  # fmt: skip
    for name, rows in data.items():
        if rows.shape[1] == 1:
            lines += [f"SCALARS {name} double 1", "LOOKUP_TABLE default", _numbers(rows)]
        else:
            lines += [f"VECTORS {name} double", _numbers(_spatial(rows))]
    return "\n".join(lines) + "\n"


def _csv(mesh: Geometry, data: dict[str, Matrix]) -> str:
    axes = "XYZ"[: mesh.points.shape[1]]
    titles = [f"Pos{axis}" for axis in axes] + ["Rank"]
    columns = [mesh.points, np.zeros((len(mesh.points), 1))]
    for name, rows in data.items():
        titles += [name] if rows.shape[1] == 1 else [f"{name}{axis}" for axis in axes]
        columns.append(rows)
    table = np.hstack(columns)
    rank = len(axes)
    body = (";".join(str(int(v)) if k == rank else f"{v:.16g}" for k, v in enumerate(row)) for row in table)
    return ";".join(titles) + "\n" + "\n".join(body) + "\n"
