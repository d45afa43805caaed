"""Mappings between surfaces: exactness on planes, order on a cylinder, conservation, integrals of nested meshes."""

from collections.abc import Callable

import numpy as np
import pytest
from tests.mapping.shapes import in_space, square, tube

import cosolve as cs
from cosolve.mapping import FieldMapping, Mesh, barycentric, dual_mortar, mortar, nearest_neighbour, radial_basis

Build = Callable[[Mesh, Mesh], FieldMapping]
SMOOTH: tuple[Build, ...] = (mortar, dual_mortar, barycentric, radial_basis)
KINDS = ("triangles", "quadrilaterals", "mixed")


def pair(kind_b: str, kind_a: str) -> tuple[Mesh, Mesh]:
    return square(7, 9, kind_b, wobble=0.04, name="B"), square(11, 8, kind_a, wobble=-0.03, name="A")


@pytest.mark.covers("IJ-30")
@pytest.mark.sample(3)
@pytest.mark.parametrize("kind_a", KINDS)
@pytest.mark.parametrize("kind_b", KINDS)
@pytest.mark.parametrize("build", SMOOTH)
def test_constant_and_linear_fields_are_exact_on_planes(build: Build, kind_b: str, kind_a: str) -> None:
    """Irregular triangles, quadrilaterals that are no parallelograms, and both mixed; also turned into space."""
    for source, target in (pair(kind_b, kind_a), tuple(map(in_space, pair(kind_b, kind_a)))):
        mapping = build(source, target)
        assert abs(mapping.consistent(np.ones(source.n_points)) - 1).max() <= 1e-14
        slope = np.array([0.7, -0.4, 0.5])[: source.points.shape[1]]
        linear = mapping.consistent(source.points @ slope + 0.2)
        assert abs(linear - (target.points @ slope + 0.2)).max() <= 2e-14


@pytest.mark.covers("IJ-30")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("build", [*SMOOTH, nearest_neighbour])
def test_work_force_and_moment_are_kept(build: Build, kind: str) -> None:
    """Forces of three components go back with their sum and, where linear fields are exact, with their moment."""
    source, target = map(in_space, pair(kind, "triangles"))
    mapping = build(source, target)
    rng = np.random.default_rng(3)
    u, f = rng.standard_normal((source.n_points, 3)), rng.standard_normal((target.n_points, 3))
    back = mapping.conservative(f)
    work = np.vdot(f, mapping.consistent(u))
    assert abs(work - np.vdot(back, u)) <= 1e-14 * np.linalg.norm(f) * np.linalg.norm(u)
    assert abs(back.sum(axis=0) - f.sum(axis=0)).max() <= 1e-14 * abs(f).sum()
    if build is not nearest_neighbour:
        gap = np.cross(source.points, back).sum(axis=0) - np.cross(target.points, f).sum(axis=0)
        assert abs(gap).max() <= 1e-14 * abs(f).sum()


@pytest.mark.parametrize("kind", ["triangles", "quadrilaterals"])
def test_integrals_against_a_nested_mesh(kind: str) -> None:
    """If every fine cell lies in a coarse one, N_coarse = P^T N_fine and C = P^T M_fine, or M_fine P the other way."""
    fine, coarse = square(9, 13, kind), square(5, 7, kind)
    P = barycentric(coarse, fine).operator()  # coarse values to fine points
    down, up = mortar(fine, coarse), mortar(coarse, fine)
    assert up.mass is not None
    assert (down.matrix - P.T @ up.mass).toarray() == pytest.approx(0, abs=1e-16)
    assert (up.matrix - up.mass @ P).toarray() == pytest.approx(0, abs=1e-16)
    assert up.operator().toarray() == pytest.approx(P.toarray(), abs=1e-13)


def test_mass_matrix_of_a_triangle_and_a_parallelogram() -> None:
    """Closed forms: area / 12 (1 + delta_ij), and area / 36 times 4, 2, 1 by distance along the edges."""
    triangle = Mesh([[0, 0], [2, 0.5], [0.3, 1]], triangles=[[0, 1, 2]])
    area = triangle.sizes[0]
    mass = mortar(triangle, triangle).mass
    assert mass is not None
    assert mass.toarray() == pytest.approx(area / 12 * (np.ones((3, 3)) + np.eye(3)), abs=1e-15)
    slanted = Mesh([[0, 0], [2, 0.5], [2.3, 1.5], [0.3, 1]], quadrilaterals=[[0, 1, 2, 3]])
    mass = mortar(slanted, slanted).mass
    assert mass is not None
    pattern = np.array([[4, 2, 1, 2], [2, 4, 2, 1], [1, 2, 4, 2], [2, 1, 2, 4]])
    assert mass.toarray() == pytest.approx(slanted.sizes[0] / 36 * pattern, abs=1e-15)


@pytest.mark.parametrize("kind", ["triangles", "quadrilaterals"])
@pytest.mark.parametrize("build", [*SMOOTH, nearest_neighbour])
def test_order_on_a_cylinder(build: Build, kind: str) -> None:
    """A smooth field on a closed tube: order 2 (nearest neighbour 1, radial basis at least 2); constants exact."""
    errors, sizes = [], (1, 2, 4)
    for k in sizes:
        source, target = tube(16 * k, 5 * k + 1, kind), tube(22 * k, 7 * k + 1, "triangles", turn=0.37)
        f = lambda p: np.cos(2 * np.arctan2(p[:, 1], p[:, 0])) + np.sin(2 * p[:, 2])  # noqa: E731
        mapping = build(source, target)
        error = mapping.consistent(f(source.points)) - f(target.points)
        errors.append(np.sqrt(np.mean(error**2)))
        assert mapping.report().row_sums == pytest.approx((1, 1), abs=1e-14)
    order = cs.analysis.convergence_order([1 / k for k in sizes], errors)
    if build is radial_basis:
        assert order > 2.0
    else:
        assert order == pytest.approx(1 if build is nearest_neighbour else 2, abs=0.2)


@pytest.mark.parametrize("build", [mortar, dual_mortar, barycentric, radial_basis])
def test_a_gap_between_parallel_surfaces_does_not_matter(build: Build) -> None:
    """Two skins 0.01 apart: values are those of the orthogonal projection."""
    flat = pair("triangles", "quadrilaterals")
    source, target = in_space(flat[0]), in_space(flat[1], gap=0.01)
    slope = np.array([0.7, -0.4])
    mapped = build(source, target).consistent(flat[0].points @ slope)
    assert mapped == pytest.approx(flat[1].points @ slope, abs=2e-14)


def test_the_nearest_point_of_a_warped_quadrilateral() -> None:
    """Against a dense search over the bilinear surface."""
    corners = np.array([[0, 0, 0], [1, 0, 0.3], [1.2, 1, 0], [0, 1, 0.2]])
    cell = Mesh(corners, quadrilaterals=[[0, 1, 2, 3]])
    s, t = (a.ravel() for a in np.meshgrid(np.linspace(0, 1, 801), np.linspace(0, 1, 801)))
    weights = np.column_stack([(1 - s) * (1 - t), s * (1 - t), s * t, (1 - s) * t])
    for p in ([0.4, 0.6, 0.5], [0.9, 0.2, -0.3], [1.5, 0.5, 0.1], [-0.2, -0.1, 0.4]):
        distances = np.linalg.norm(weights @ corners - p, axis=1)
        mapping = barycentric(cell, Mesh([p]))
        assert mapping.report().distance == pytest.approx(distances.min(), abs=1e-5)
        assert mapping.report().distance <= distances.min() + 1e-12
