"""Cells as triangles: every kind is covered once, and of bodies only the outside is left."""

import numpy as np
import pytest

from cosolve.fields.triangles import DRAWN, triangles

SQUARE = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0], [1, 0.5], [0.5, 1], [0, 0.5], [0.5, 0.5]])
CUBE = np.array([[x, y, z] for z in (0, 1) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))], dtype=float)
CORNER = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
EDGES = [(0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)]
TETRA10 = np.vstack([CORNER, [(CORNER[a] + CORNER[b]) / 2 for a, b in EDGES]])


def area(points, cells):
    points = np.pad(points, ((0, 0), (0, 3 - points.shape[1])))
    corners, owners = triangles(cells)
    assert len(owners) == len(corners)
    a, b, c = points[corners].transpose(1, 0, 2)
    return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()


@pytest.mark.parametrize(
    ("kind", "points", "wanted"),
    [
        ("triangle", SQUARE[[0, 1, 3]], 0.5),
        ("triangle6", SQUARE[[0, 1, 3, 4, 8, 7]], 0.5),
        ("quad", SQUARE[:4], 1.0),
        ("quad8", SQUARE[:8], 1.0),
        ("quad9", SQUARE, 1.0),
        ("tetra", CORNER, 1.5 + np.sqrt(3) / 2),
        ("tetra10", TETRA10, 1.5 + np.sqrt(3) / 2),
        ("hexahedron", CUBE, 6.0),
    ],
)
def test_the_area_of_one_cell_of_every_kind(kind, points, wanted):
    assert kind in DRAWN
    assert area(points, {kind: np.arange(len(points))[np.newaxis]}) == pytest.approx(wanted)


def test_a_face_between_two_cells_is_inside_and_lines_have_no_area():
    points = np.vstack([CUBE, CUBE[4:] + np.array([0, 0, 1])])
    cells = {"line": np.array([[0, 1]]), "hexahedron": np.array([np.arange(8), np.arange(4, 12)])}
    assert area(points, cells) == pytest.approx(10.0)
    assert set(triangles(cells)[1]) == {1, 2}  # the line is the first cell
    assert triangles({"line": np.array([[0, 1]])})[0].shape == (0, 3)
