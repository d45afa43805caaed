"""Meshes from files: any format that meshio (extra `cosolve[mesh]`) reads (Gmsh, VTK, Abaqus, STL, ...), or arrays."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from cosolve.basics.packages import optional
from cosolve.errors import SetupError
from cosolve.mapping.mesh import Mesh

_SURFACE = ("triangle", "quad")


def read_mesh(path: str | Path, *, group: str | None = None, name: str | None = None) -> Mesh:
    """Read a mesh from a file.

    Parameters
    ----------
    path : str or Path
        A file of any format that meshio reads (Gmsh, VTK, Abaqus, ...), or `.npz` with the arguments of `Mesh` as
        arrays.
    group : str or None, default None
        Take only the cells of this named set.
    name : str or None, default None
        Name for messages. None: that of the file.

    Returns
    -------
    Mesh
        The triangles and quadrilaterals of the file or, if it has none, its lines. Points that no such cell uses are
        left out (not of `.npz`); `file_points` gives their numbers in the file.

    Notes
    -----
    Other files than `.npz` need `cosolve[mesh]`.

    Examples
    --------
    >>> import meshio, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "square.vtu"
    >>> square = meshio.Mesh([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [("triangle", [[0, 1, 2], [0, 2, 3]])])
    >>> square.write(path)
    >>> print(read_mesh(path))
    square: 4 points in 3 dimensions, 2 triangles
    >>> folder.cleanup()
    """
    path = Path(path)
    if path.suffix.lower() == ".npz":
        return _from_arrays(path, group, name)
    file = _read(path)
    where = f"read_mesh: {path}"
    cells: dict[str, list[Any]] = {"line": [], "triangle": [], "quad": []}
    others: set[str] = set()
    chosen = _group(file, group, where)
    for number, block in enumerate(file.cells):
        rows = np.asarray(block.data) if chosen is None else np.asarray(block.data)[chosen[number]]
        if len(rows) and block.type in cells:
            cells[block.type].append(rows)
        elif len(rows):
            others.add(block.type)
    kinds = _SURFACE if cells["triangle"] or cells["quad"] else ("line",)
    kept = {kind: np.concatenate(cells[kind]) for kind in kinds if cells[kind]}
    if not kept:
        found = f"only {', '.join(sorted(others))}" if others else "no cells"
        raise SetupError(f"{where} holds {found}; a mapping needs line, triangle or quad cells with straight edges")
    used = np.unique(np.concatenate([rows.ravel() for rows in kept.values()]))
    if len(used) and (used[0] < 0 or used[-1] >= len(file.points)):
        wrong = used[0] if used[0] < 0 else used[-1]
        raise SetupError(f"{where} has a cell with the point {wrong}, and {len(file.points)} points; write it anew")
    local = {kind: np.searchsorted(used, rows) for kind, rows in kept.items()}
    mesh = Mesh(
        np.asarray(file.points)[used],
        lines=local.get("line"),
        triangles=local.get("triangle"),
        quadrilaterals=local.get("quad"),
        name=name or path.stem,
    )
    mesh.file_points = used.astype(np.int64)
    return mesh


def _from_arrays(path: Path, group: str | None, name: str | None) -> Mesh:
    if group is not None:
        raise SetupError(f"read_mesh: {path} holds arrays of numpy, which have no group '{group}'; leave it out")
    if not path.is_file():
        raise SetupError(f"read_mesh: there is no file {path}")
    try:
        with path.open("rb") as opened:
            file = np.load(opened, allow_pickle=False)
            if isinstance(file, np.ndarray):
                raise ValueError("it is one array without a name")
            arrays = {key: file[key] for key in file.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise SetupError(f"read_mesh: {path} is no file of numpy arrays ({error})") from None
    known = ("points", "lines", "triangles", "quadrilaterals")
    for key in arrays:
        if key not in known:
            raise SetupError(f"read_mesh: {path} holds an array '{key}'; those of a mesh are {', '.join(known)}")
    if "points" not in arrays:
        raise SetupError(f"read_mesh: {path} has no array 'points', the coordinates with one row per point")
    mesh = Mesh(**arrays, name=name or path.stem)
    mesh.file_points = np.arange(mesh.n_points, dtype=np.int64)
    return mesh


def _read(path: Path) -> Any:
    if not path.is_file():
        raise SetupError(f"read_mesh: there is no file {path}")
    meshio = optional("meshio", "mesh", f"read_mesh: a file {path.suffix or path.name}")

    printed = io.StringIO()  # meshio prints what it cannot read and leaves the program
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            return meshio.read(path)
    except (Exception, SystemExit) as error:
        reason = " ".join(printed.getvalue().split()) or f"{error} ({type(error).__name__})"
        raise SetupError(f"read_mesh: meshio cannot read {path}: {reason}") from None


def _group(file: Any, group: str | None, where: str) -> list[Any] | None:
    """The rows of each cell block that belong to the group; None for all."""
    if group is None:
        return None
    if group in file.cell_sets:
        return [np.asarray(rows if rows is not None else [], dtype=np.int64) for rows in file.cell_sets[group]]
    tags = file.cell_data.get("gmsh:physical")  # Gmsh 2.2: names in field_data, a tag per cell
    if tags is not None and group in file.field_data:
        return [np.flatnonzero(np.asarray(block) == file.field_data[group][0]) for block in tags]
    names = {name for name in file.cell_sets if not name.startswith("gmsh:")} | (
        set(file.field_data) if tags else set()
    )
    there = ", ".join(sorted(names)) or "none"
    raise SetupError(f"{where} has no group '{group}' of cells; its groups are: {there}")
