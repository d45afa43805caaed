"""Global radial bases, projection on mixed cells, tetrahedra, gradients and integrals: what each must reproduce."""

import numpy as np
import pytest

import cosolve.mapping as cm
from cosolve.errors import SetupError
from cosolve.mapping.nearest import point_shares
from cosolve.mapping.projection import in_tetrahedra, linear_in_tetrahedra, tetrahedron_shares

RNG = np.random.default_rng(7)
CLOUD = RNG.random((40, 3))
INSIDE = 0.2 + 0.6 * RNG.random((9, 3))
BASES = {
    "thin_plate": {}, "volume": {}, "multiquadric": {"shape": 0.5}, "inverse_multiquadric": {"shape": 0.5},
    "gaussian": {"shape": 4.0}, "wendland_c0": {"support": 1.0}, "wendland_c2": {"support": 1.0},
    "wendland_c4": {"support": 1.0}, "wendland_c6": {"support": 1.0}, "wendland_c8": {"support": 1.0},
    "compact_thin_plate": {"support": 1.0},
}  # fmt: skip


def linear(x):
    return 1.0 + 2.0 * x[:, 0] - x[:, 1] + 0.5 * x[:, 2]


@pytest.mark.covers("PX-13")
@pytest.mark.parametrize("polynomial", ["separate", "on"])
@pytest.mark.parametrize("basis", BASES)
def test_global_radial_bases_interpolate_and_reproduce_linear_fields(basis, polynomial):
    source = cm.Mesh(CLOUD)
    options = {"basis": basis, "polynomial": polynomial, **BASES[basis]}
    there = cm.global_radial_basis(source, cm.Mesh(INSIDE), **options)
    np.testing.assert_allclose(there.consistent(linear(CLOUD)), linear(INSIDE), atol=1e-8)
    back = cm.global_radial_basis(source, cm.Mesh(CLOUD[5:8]), **options)
    field = np.sin(5 * CLOUD[:, 0])
    np.testing.assert_allclose(back.consistent(field), field[5:8], atol=1e-8)


@pytest.mark.covers("PX-13")
@pytest.mark.parametrize("polynomial", ["separate", "on"])
def test_a_source_without_extent_across_maps_to_targets_beside_it(polynomial):
    """Points in the plane z = 3, targets a little off it: nothing is extrapolated across."""
    flat = CLOUD.copy()
    flat[:, 2] = 3.0
    beside = INSIDE.copy()
    beside[:, 2] = 3.1
    mapping = cm.global_radial_basis(
        cm.Mesh(flat), cm.Mesh(beside), basis="wendland_c6", support=1.0, polynomial=polynomial
    )
    np.testing.assert_allclose(mapping.consistent(np.ones(40)), np.ones(9), atol=2e-2)
    dead = cm.global_radial_basis(
        cm.Mesh(flat), cm.Mesh(beside), basis="wendland_c6", support=1.0, polynomial=polynomial, axes=[0, 1]
    )
    plane = linear(np.column_stack([flat[:, :2], 0 * flat[:, 0]]))
    np.testing.assert_allclose(
        dead.consistent(plane), linear(np.column_stack([beside[:, :2], 0 * beside[:, 0]])), atol=1e-9
    )


def test_bad_arguments_are_refused():
    a, b = cm.Mesh(CLOUD), cm.Mesh(INSIDE)
    for options, words in (
        ({"basis": "linear"}, "basis is one of thin_plate"),
        ({"basis": "wendland_c2"}, "needs a support above 0"),
        ({"basis": "multiquadric"}, "needs a shape above 0"),
        ({"support": 1.0, "polynomial": "maybe"}, "polynomial is 'separate', 'on' or 'off'"),
    ):
        with pytest.raises(SetupError, match=words):
            cm.global_radial_basis(a, b, **options)
    twice = np.vstack([CLOUD[:3], CLOUD[:1]])
    with pytest.raises(SetupError, match="singular system"):
        cm.global_radial_basis(cm.Mesh(twice), b, basis="thin_plate", polynomial="off")


CUBE = np.array([[i, j, k] for i in (0.0, 1.0) for j in (0.0, 1.0) for k in (0.0, 1.0)])
TETRAHEDRA = np.array([[0, 1, 3, 7], [0, 1, 5, 7], [0, 4, 5, 7], [0, 2, 3, 7], [0, 2, 6, 7], [0, 4, 6, 7]])


@pytest.mark.covers("PX-13")
def test_tetrahedra_reproduce_linear_fields_and_their_volume():
    mapping = linear_in_tetrahedra(cm.Mesh(CUBE), TETRAHEDRA, cm.Mesh(INSIDE))
    np.testing.assert_allclose(mapping.consistent(linear(CUBE)), linear(INSIDE), atol=1e-12)
    assert tetrahedron_shares(CUBE, TETRAHEDRA).sum() == pytest.approx(1.0, rel=1e-14)
    outside = linear_in_tetrahedra(cm.Mesh(CUBE), TETRAHEDRA, cm.Mesh([[0.5, 0.5, 1.4]]))
    assert outside.consistent(linear(CUBE))[0] == pytest.approx(linear(np.array([[0.5, 0.5, 1.0]]))[0], abs=1e-12)
    cells, _ = in_tetrahedra(CUBE, TETRAHEDRA, np.array([[2.0, 0.5, 0.5]]))
    assert cells.tolist() == [-1]


def test_projection_without_cells_is_the_nearest_neighbour():
    mapping = cm.nearest_projection([cm.Mesh(CLOUD)], cm.Mesh(INSIDE + 30.0))  # far away: no limit here
    far = np.linalg.norm((INSIDE + 30.0)[:, None] - CLOUD[None], axis=2)
    np.testing.assert_array_equal(mapping.consistent(np.arange(40.0)), far.argmin(axis=1))


@pytest.mark.covers("PX-13")
def test_gradients_make_the_nearest_neighbour_exact_for_linear_fields():
    mapping = cm.NearestGradient(cm.Mesh(CLOUD), cm.Mesh(INSIDE))
    gradient = np.tile([[2.0], [-1.0], [0.5]], (40, 1, 1))
    np.testing.assert_allclose(mapping.consistent(linear(CLOUD), gradient), linear(INSIDE), atol=1e-13)


@pytest.mark.covers("PX-13")
def test_scaling_keeps_the_integral_of_every_component():
    a, b = cm.Mesh.line(np.linspace(0, 1, 7)), cm.Mesh.line([0.0, 0.2, 0.5, 1.0])
    field = np.column_stack([1 + a.points[:, 0] ** 2, np.cos(a.points[:, 0])])
    mapping = cm.ScaledToIntegral(cm.nearest_neighbour(a, b), point_shares(a), point_shares(b))
    mapped = mapping.consistent(field.ravel()).reshape(-1, 2)
    np.testing.assert_allclose(point_shares(b) @ mapped, point_shares(a) @ field, rtol=1e-13)
