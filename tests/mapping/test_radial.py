"""Local radial basis interpolation: exactness, order, clouds, curved surfaces, what is refused."""

import numpy as np
import pytest
from tests.mapping.shapes import square, tube

import cosolve as cs
from cosolve.mapping import Mesh, barycentric, radial_basis

BASES = ("cubic", "thin_plate", "wendland")


def cloud(n: int, dim: int, seed: int) -> Mesh:
    return Mesh(np.random.default_rng(seed).random((n, dim)))


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_linear_fields_between_clouds(dim: int, basis) -> None:
    """Scattered points, so no cells; also outside of the hull of the neighbours."""
    source, target = cloud(300, dim, 1), cloud(200, dim, 2)
    slope = np.array([1.0, -2.0, 0.5])[:dim]
    mapped = radial_basis(source, target, basis=basis).consistent(source.points @ slope + 3)
    assert mapped == pytest.approx(target.points @ slope + 3, abs=1e-11)


@pytest.mark.parametrize("basis", BASES)
def test_rigid_motion_of_a_tube(basis) -> None:
    """Functions linear in space, restricted to a curved surface: exact, so rotations carry no strain."""
    source, target = tube(40, 12, "triangles"), tube(53, 17, "triangles", turn=0.3)
    motion = np.cross([0.1, 0.2, 0.3], source.points) + 1.0
    mapped = radial_basis(source, target, basis=basis).consistent(motion)
    assert mapped == pytest.approx(np.cross([0.1, 0.2, 0.3], target.points) + 1.0, abs=1e-11)


@pytest.mark.parametrize("basis", BASES)
def test_source_values_are_interpolated(basis) -> None:
    """A target point on a source point takes exactly its value."""
    mesh = square(9, 9, "triangles", wobble=0.05)
    assert radial_basis(mesh, mesh, basis=basis).operator().toarray() == pytest.approx(np.eye(81), abs=1e-11)


@pytest.mark.parametrize(("basis", "share"), [("cubic", 7), ("thin_plate", 4.5), ("wendland", 2.5)])
def test_order(basis, share: float) -> None:
    """Smooth field on the plane: order 2, that of the polynomial, but far below the error of linear elements."""
    errors, linear, sizes = [], [], (10, 20, 40)
    for n in sizes:
        source, target = square(n + 1, n + 1, "triangles", wobble=0.05), square(33, 35, "triangles", wobble=-0.02)
        f = lambda p: np.sin(3 * p[:, 0]) * np.cos(2 * p[:, 1])  # noqa: E731
        for mapping, where in (
            (radial_basis(source, target, basis=basis), errors),
            (barycentric(source, target), linear),
        ):
            where.append(np.sqrt(np.mean((mapping.consistent(f(source.points)) - f(target.points)) ** 2)))
    assert cs.analysis.convergence_order([1 / n for n in sizes], errors) == pytest.approx(2, abs=0.2)
    assert (share * np.array(errors) < linear).all()


@pytest.mark.parametrize("ratio", [1, 4, 16])
def test_stretched_cells(ratio: int) -> None:
    """Points of the surrounding cells, not the nearest ones: below the error of linear elements at any aspect ratio."""
    source, target = square(10 * ratio + 1, 11, "triangles"), square(33, 35, "triangles", wobble=-0.02)
    f = lambda p: np.sin(3 * p[:, 0]) * np.cos(2 * p[:, 1])  # noqa: E731
    error, linear = (
        abs(build(source, target).consistent(f(source.points)) - f(target.points)).max()
        for build in (radial_basis, barycentric)
    )
    assert error < linear / 3


def test_the_sides_of_a_thin_body_stay_apart() -> None:
    """+1 above and -1 below a plate of thickness 0.001: the nearest points would mix both."""
    plane = square(6, 6, "triangles")
    sides = [np.column_stack([plane.points, np.full(36, z)]) for z in (0.0, 0.001)]
    plate = Mesh(np.concatenate(sides), triangles=np.concatenate([plane.cells[:, ::-1], plane.cells + 36]))
    probe = Mesh([[0.33, 0.41, 0.001], [0.33, 0.41, 0.0]])
    assert radial_basis(plate, probe).consistent(np.repeat([-1.0, 1.0], 36)) == pytest.approx([1, -1], abs=1e-13)


def test_few_points_use_all() -> None:
    mapping = radial_basis(Mesh([[0.0], [2.0], [3.0]]), Mesh([[1.0]]))
    assert mapping.consistent([1.0, 5.0, 7.0]) == pytest.approx([3.0], abs=1e-13)


def test_coinciding_points_are_refused() -> None:
    double = Mesh([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], name="double")
    with pytest.raises(
        cs.errors.SetupError, match="of double around point 0 of mesh give a singular system; two of them"
    ):
        radial_basis(double, Mesh([[0.4, 0.4]]))


def test_arguments() -> None:
    mesh = square(4, 4, "triangles")
    with pytest.raises(cs.errors.SetupError, match="basis is one of cubic, thin_plate, wendland, not 'gauss'"):
        radial_basis(mesh, mesh, basis="gauss")  # type: ignore[arg-type]
    for neighbours in (1, 2.5, True):
        with pytest.raises(cs.errors.SetupError, match="neighbours must be a whole number of at least 2"):
            radial_basis(mesh, mesh, neighbours=neighbours)  # type: ignore[arg-type]
