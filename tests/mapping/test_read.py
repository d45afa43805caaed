"""Meshes from files: formats, what is kept, groups, what is refused."""

from pathlib import Path

import meshio
import numpy as np
import pytest

import cosolve as cs
from cosolve.mapping import mortar, read_mesh

POINTS = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [2, 0, 0], [2, 1, 0], [9, 9, 9]], dtype=float)
TRIANGLES, QUADS, LINES = np.array([[0, 1, 2], [0, 2, 3]]), np.array([[1, 4, 5, 2]]), np.array([[0, 1], [1, 4]])


@pytest.mark.parametrize("suffix", [".vtu", ".vtk", ".inp", ".bdf", ".xdmf", ".mesh"])
def test_formats(tmp_path: Path, suffix: str) -> None:
    """Triangles and quadrilaterals arrive with their points; the unused point is left out and numbers are kept."""
    path = tmp_path / f"plate{suffix}"
    meshio.Mesh(POINTS, [("line", LINES), ("triangle", TRIANGLES), ("quad", QUADS)]).write(path)
    mesh = read_mesh(path)
    assert str(mesh) == "plate: 6 points in 3 dimensions, 2 triangles, 1 quadrilateral"
    assert mesh.file_points is not None
    assert mesh.file_points.tolist() == [0, 1, 2, 3, 4, 5]
    assert mesh.points == pytest.approx(POINTS[:6])
    assert mesh.sizes == pytest.approx([0.5, 0.5, 1.0])
    assert mortar(mesh, mesh).report().row_sums == pytest.approx((1, 1), abs=1e-14)


def test_lines_where_there_is_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "string.vtu"
    meshio.Mesh(POINTS, [("line", LINES)]).write(path)
    mesh = read_mesh(path, name="string of a guitar")
    assert str(mesh) == "string of a guitar: 3 points in 3 dimensions, 2 lines"
    assert mesh.file_points is not None
    assert mesh.file_points.tolist() == [0, 1, 4]


def test_a_group(tmp_path: Path) -> None:
    path = tmp_path / "body.inp"
    sets = {"wet": [np.array([1]), np.array([], dtype=int)], "dry": [np.array([], dtype=int), np.array([0])]}
    meshio.Mesh(POINTS, [("triangle", TRIANGLES), ("quad", QUADS)], cell_sets=sets).write(path)
    assert read_mesh(path, group="wet").sizes == pytest.approx([0.5])
    assert read_mesh(path, group="dry").sizes == pytest.approx([1.0])
    with pytest.raises(cs.errors.SetupError, match="has no group 'damp' of cells; its groups are: dry, wet"):
        read_mesh(path, group="damp")


def test_a_physical_group_of_gmsh(tmp_path: Path) -> None:
    path = tmp_path / "body.msh"
    tags = [np.array([1, 2]), np.array([2])]
    meshio.Mesh(
        POINTS,
        [("triangle", TRIANGLES), ("quad", QUADS)],
        cell_data={"gmsh:physical": tags, "gmsh:geometrical": tags},
        field_data={"wet": np.array([1, 2]), "dry": np.array([2, 2])},
    ).write(path, file_format="gmsh22")
    assert read_mesh(path).sizes == pytest.approx([0.5, 0.5, 1.0])
    assert read_mesh(path, group="wet").sizes == pytest.approx([0.5])
    assert read_mesh(path, group="dry").sizes == pytest.approx([0.5, 1.0])
    with pytest.raises(cs.errors.SetupError, match="has no group 'damp' of cells; its groups are: dry, wet"):
        read_mesh(path, group="damp")


def test_refused_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(cs.errors.SetupError, match=r"there is no file .*absent.vtu"):
        read_mesh(tmp_path / "absent.vtu")
    broken = tmp_path / "broken.vtu"
    broken.write_text("no mesh at all")
    with pytest.raises(cs.errors.SetupError, match=r"meshio cannot read .*broken.vtu"):
        read_mesh(broken)
    unknown = tmp_path / "mesh.abc"
    unknown.write_text("")
    with pytest.raises(cs.errors.SetupError, match=r"meshio cannot read .*Could not deduce file format"):
        read_mesh(unknown)
    solid = tmp_path / "solid.vtu"
    meshio.Mesh(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]), [("tetra", [[0, 1, 2, 3]])]).write(solid)
    with pytest.raises(cs.errors.SetupError, match="holds only tetra; a mapping needs line, triangle or quad cells"):
        read_mesh(solid)
    beyond = tmp_path / "beyond.off"
    beyond.write_text("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 999999999\n")
    with pytest.raises(cs.errors.SetupError, match="a cell with the point 999999999, and 3 points"):
        read_mesh(beyond)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""
