"""Meshes and fields that cannot work: refused with a sentence that says where and what to do."""

from typing import Any

import numpy as np
import pytest
from tests.mapping.shapes import square

import cosolve as cs
from cosolve.mapping import Mesh, barycentric, dual_mortar, mortar, nearest_neighbour, radial_basis

ALL = (mortar, dual_mortar, barycentric, nearest_neighbour, radial_basis)
P = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 2.0]]


@pytest.mark.parametrize(
    ("points", "cells", "sentence"),
    [
        ([], {}, "wing: the mesh is empty; give it points"),
        ("text", {}, "wing: points must be rows of one to three numbers each"),
        ([[0.0] * 4], {}, r"wing: points must have the shape \(n, 1\), \(n, 2\) or \(n, 3\), not \(1, 4\)"),
        ([[0.0, 1.0], [np.nan, 2.0]], {}, r"wing: point 1 is \[nan, 2.0\]; every coordinate must be a finite number"),
        (P, {"triangles": [[0, 1, 2], [0, 1, 5]]}, r"triangle 1 has the corners \[0, 1, 5\], .* from 0 to 4"),
        (P, {"lines": [[0, -1]]}, r"line 0 has the corners \[0, -1\]"),
        (P, {"triangles": [[0, 1]]}, "triangles must be rows of 3 whole point numbers each"),
        (P, {"lines": [[0.0, 1.0]]}, "lines must be rows of 2 whole point numbers each"),
        (P, {"lines": [[0, 1]], "triangles": [[0, 1, 2]]}, "holds lines and surface cells; make two meshes"),
        (P, {"lines": [[0, 1], [2, 2]]}, r"wing: line 1 \(points 2, 2\) is degenerate: its length is 0"),
        (P, {"triangles": [[0, 1, 2], [0, 2, 4]]}, r"wing: triangle 1 \(points 0, 2, 4\) is degenerate: its area is 0"),
        (P, {"triangles": [[0, 0, 1], [1, 1, 2]]}, r"triangle 0 .*\(2 cells in all\); remove it or merge its points"),
        (P, {"quadrilaterals": [[0, 1, 3, 2]]}, r"quadrilateral 0 \(points 0, 1, 3, 2\) is degenerate"),
        (P, {"quadrilaterals": [[0, 1, 4, 2]]}, "quadrilateral 0 .* is not convex; list its corners in order"),
        (P, {"quadrilaterals": [[0, 1, 1, 3]]}, "quadrilateral 0 .* is not convex"),
    ],
)
def test_meshes(points: Any, cells: dict[str, Any], sentence: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=sentence):
        Mesh(points, **cells, name="wing")


def test_lines() -> None:
    with pytest.raises(cs.errors.SetupError, match="a line needs at least two points, got 1"):
        Mesh.line([1.0])
    with pytest.raises(cs.errors.SetupError, match="the points turn back after point 1"):
        Mesh.line([0.0, 1.0, 0.5])
    with pytest.raises(cs.errors.SetupError, match=r"line 1 \(points 1, 2\) is degenerate"):
        Mesh.line([0.0, 1.0, 1.0, 2.0])
    with pytest.raises(cs.errors.SetupError, match="cannot be closed"):
        Mesh.line([0.0, 1.0], closed=True)


@pytest.mark.parametrize("build", ALL)
def test_meshes_without_overlap(build: Any) -> None:
    """In millimetres instead of metres, say."""
    near = square(5, 5, "triangles")
    far = Mesh(near.points + 1000.0, triangles=near.cells, name="far")
    with pytest.raises(cs.errors.SetupError, match=r"mesh and far do not overlap; .*check units and positions"):
        build(near, far)


@pytest.mark.parametrize("build", [barycentric, nearest_neighbour, radial_basis])
def test_one_point_too_far(build: Any) -> None:
    target = Mesh([[0.1, 0.1], [0.5, 7.0]], name="probes")
    build(square(9, 9, "triangles"), target)
    with pytest.raises(cs.errors.SetupError, match=r"1 of 2 points of probes are further than 0.2 .* \(point 1: 6"):
        build(square(9, 9, "triangles"), target, max_distance=0.2)
    with pytest.raises(cs.errors.SetupError, match="max_distance must be a positive number or None, not -1"):
        build(square(9, 9, "triangles"), target, max_distance=-1)


def test_meshes_that_do_not_suit_the_method() -> None:
    points, line, surface = Mesh(P), Mesh.line(P[:3]), square(3, 3, "triangles")
    with pytest.raises(cs.errors.SetupError, match=r"barycentric: mesh has no cells; .* or use nearest_neighbour"):
        barycentric(points, surface)
    with pytest.raises(cs.errors.SetupError, match="mortar: mesh has no cells"):
        mortar(surface, points)
    with pytest.raises(cs.errors.SetupError, match="one mesh is made of lines and the other of surface cells"):
        mortar(surface, line)
    with pytest.raises(cs.errors.SetupError, match="lies in 1 dimensions and mesh in 2"):
        mortar(Mesh.line([0.0, 1.0]), line)
    with pytest.raises(cs.errors.SetupError, match="the source is a list, not a Mesh"):
        nearest_neighbour([[0.0]], points)  # type: ignore[arg-type]
    with pytest.raises(cs.errors.SetupError, match=r"point 4 of mesh belongs to no cell \(1 such points\); remove it"):
        dual_mortar(surface, Mesh(P, triangles=[[0, 1, 2], [0, 2, 3]]))
    with pytest.raises(cs.errors.SetupError, match="normals is one of any, same, opposite, not 'up'"):
        mortar(surface, surface, normals="up")  # type: ignore[arg-type]


def test_fields_of_wrong_size() -> None:
    mapping = barycentric(square(3, 3, "triangles"), square(4, 4, "triangles"))
    for field in (np.zeros(10), np.zeros((3, 9)), np.zeros(0), np.zeros((9, 1, 1))):
        with pytest.raises(
            cs.errors.SetupError, match=r"the source mesh has 9 points, so the field must have the shape \(9,\)"
        ):
            mapping.consistent(field)
    with pytest.raises(cs.errors.SetupError, match="conservative: the target mesh has 16 points"):
        mapping.conservative(np.zeros(9))
    with pytest.raises(cs.errors.SetupError, match="a field is an array of real numbers"):
        mapping.consistent(["a"])  # type: ignore[list-item]


def test_a_nan_is_located() -> None:
    mapping = barycentric(square(3, 3, "triangles"), square(4, 4, "triangles"))
    field = np.zeros((9, 3))
    field[4, 1] = np.nan
    for given in (field, field.ravel()):
        with pytest.raises(
            cs.errors.NonFiniteError, match="the field is nan at point 4, component 1 of the source mesh"
        ):
            mapping.consistent(given)
