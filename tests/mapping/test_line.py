"""Mappings between two graded lines: a table of errors, exactness, and the string in a dense fluid."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.linalg import eigh

import cosolve as cs
from cosolve.mapping import (
    FieldMapping,
    Mesh,
    barycentric,
    dual_mortar,
    mortar,
    nearest_neighbour,
    radial_basis,
)

Build = Callable[[Mesh, Mesh], FieldMapping]

NODES = ((11, 8), (21, 15), (41, 29))
#: L2 errors of the reference code (docs/validation/sicklinger.md).
PRINTED: dict[Build, tuple[str, str, str]] = {
    mortar: ("7.871e-03", "1.977e-03", "4.950e-04"),
    dual_mortar: ("8.563e-03", "2.154e-03", "5.377e-04"),
    barycentric: ("1.410e-02", "3.554e-03", "8.709e-04"),
    nearest_neighbour: ("5.99e-02", "3.06e-02", "1.67e-02"),
}
ORDER: dict[Build, int] = {mortar: 2, dual_mortar: 2, barycentric: 2, nearest_neighbour: 1}
ALL: tuple[Build, ...] = (*PRINTED, radial_basis)


def lines(n_a: int, n_b: int, dim: int = 1) -> tuple[Mesh, Mesh]:
    """Source B, graded with xi^1.2, and target A, uniform; on a straight line in `dim` dimensions."""
    direction = np.array([[0.6, 0.48, 0.64], [0.8, 0.6, 0.0], [1.0, 0.0, 0.0]])[3 - dim, :dim]
    b, a = np.linspace(0, 1, n_b) ** 1.2, np.linspace(0, 1, n_a)
    return Mesh.line(b[:, np.newaxis] * direction, name="B"), Mesh.line(a[:, np.newaxis] * direction, name="A")


def mass_matrix(n: int) -> np.ndarray:
    """Consistent mass matrix of n uniform points on [0, 1]."""
    h = 1 / (n - 1)
    M = np.diag(np.full(n, 4.0)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    M[0, 0] = M[-1, -1] = 2.0
    return M * h / 6


def l2_error(build: Build, n_a: int, n_b: int) -> float:
    """L2 norm, on the target mesh, of mapped less exact point values of sin(pi x) + 0.3 x."""
    source, target = lines(n_a, n_b)
    f = lambda x: np.sin(np.pi * x[:, 0]) + 0.3 * x[:, 0]  # noqa: E731
    gap = build(source, target).consistent(f(source.points)) - f(target.points)
    return float(np.sqrt(gap @ mass_matrix(n_a) @ gap))


@pytest.mark.covers("IJ-30")
@pytest.mark.parametrize("build", PRINTED)
def test_l2_errors_are_those_of_the_table(build: Build) -> None:
    """All twelve figures to the last printed digit, and the order as a slope over the three meshes."""
    errors = [l2_error(build, *nodes) for nodes in NODES]
    digits = len(PRINTED[build][0].split("e")[0]) - 2
    assert tuple(f"{error:.{digits}e}" for error in errors) == PRINTED[build]
    assert cs.analysis.convergence_order([1 / (n - 1) for n, _ in NODES], errors) == pytest.approx(
        ORDER[build], abs=0.1
    )


@pytest.mark.covers("IJ-30")
@pytest.mark.parametrize("nodes", NODES)
@pytest.mark.parametrize("build", ALL)
def test_constants_work_and_total_force_are_kept(build: Build, nodes: tuple[int, int]) -> None:
    mapping = build(*lines(*nodes))
    rng = np.random.default_rng(0)
    u, f = rng.standard_normal(mapping.n_source), rng.standard_normal(mapping.n_target)
    assert abs(mapping.consistent(np.ones(mapping.n_source)) - 1).max() <= 1e-14
    back = mapping.conservative(f)
    assert abs(f @ mapping.consistent(u) - back @ u) <= 1e-14 * (np.linalg.norm(f) * np.linalg.norm(u))
    assert abs(back.sum() - f.sum()) <= 1e-14 * abs(f).sum()


@pytest.mark.covers("IJ-30")
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("nodes", NODES)
@pytest.mark.parametrize("build", [build for build in ALL if build is not nearest_neighbour])
def test_linear_fields_are_exact(build: Build, nodes: tuple[int, int], dim: int) -> None:
    source, target = lines(*nodes, dim)
    slope = np.arange(1, dim + 1) / dim
    mapped = build(source, target).consistent(source.points @ slope - 0.4)
    assert mapped == pytest.approx(target.points @ slope - 0.4, abs=1e-14)


@pytest.mark.covers("IJ-30")
def test_nearest_neighbour_has_zeros_and_ones_only() -> None:
    mapping = nearest_neighbour(*lines(11, 8))
    assert set(mapping.operator().data) == {1.0}
    assert mapping.matrix.nnz == 11


@pytest.mark.covers("IJ-30")
def test_dual_shape_functions_on_a_uniform_line() -> None:
    """psi = [[2, -1], [-1, 2]] N: between equal meshes both operators are the identity, and D_i = int N_i."""
    mesh = Mesh.line(np.linspace(0, 1, 6))
    assert dual_mortar(mesh, mesh).operator().toarray() == pytest.approx(np.eye(6), abs=1e-15)
    assert mortar(mesh, mesh).operator().toarray() == pytest.approx(np.eye(6), abs=1e-15)


def test_a_line_may_run_backwards() -> None:
    source, target = lines(21, 15)
    turned = Mesh.line(source.points[::-1])
    u = np.sin(source.points[:, 0])
    for build in (mortar, dual_mortar, barycentric):
        forwards, backwards = build(source, target).consistent(u), build(turned, target).consistent(u[::-1])
        assert backwards == pytest.approx(forwards, abs=1e-15)


@pytest.mark.parametrize("build", [mortar, dual_mortar, barycentric])
def test_order_two_on_a_closed_curve(build: Build) -> None:
    """Circles of n and 1.4 n points: cos(2 phi) is mapped with order 2."""
    errors = []
    sizes = (20, 40, 80)
    for n in sizes:
        b, a = (2 * np.pi * (np.arange(k) + 0.3) / k for k in (n, int(1.4 * n)))
        source, target = (Mesh.line(np.column_stack([np.cos(p), np.sin(p)]), closed=True) for p in (b, a))
        mapping = build(source, target)
        assert mapping.report().row_sums == pytest.approx((1, 1), abs=1e-14)
        errors.append(abs(mapping.consistent(np.cos(2 * b)) - np.cos(2 * a)).max())
    assert cs.analysis.convergence_order([1 / n for n in sizes], errors) == pytest.approx(2, abs=0.2)


@pytest.mark.parametrize(("density", "radius"), [(0.2, 0.1260), (1.0, 0.6302), (10.0, 6.3015)])
def test_spectral_radius_of_the_added_mass_string(density: float, radius: float) -> None:
    """Section 3.12: string of 24 elements, fluid of 33, mortar on the interior points, 32 x 23."""
    string, fluid = Mesh.line(np.linspace(0, 1, 25)), Mesh.line(np.linspace(0, 1, 34))
    mapping = mortar(string, fluid).restricted(source=np.arange(1, 24), target=np.arange(1, 33))
    L, h = mapping.operator().toarray(), 0.01
    assert L.shape == (32, 23)

    def stiffness(n: int) -> np.ndarray:
        return (2 * np.eye(n - 2) - np.eye(n - 2, k=1) - np.eye(n - 2, k=-1)) * (n - 1)

    M_f, M_s = mass_matrix(34)[1:-1, 1:-1], mass_matrix(25)[1:-1, 1:-1]
    values, modes = eigh(stiffness(34), M_f)
    added = 2 * density * M_f @ modes @ np.diag(values**-0.5) @ modes.T @ M_f
    sweep = np.linalg.solve(M_s / h**2 + 10 * stiffness(25), L.T @ (added / h**2) @ L)
    assert max(abs(np.linalg.eigvals(sweep))) == pytest.approx(radius, abs=5e-5)


def test_points_on_a_line_find_a_cell_whatever_rounding_says():
    """Two lines along the same edge: a point may lie on a cell and, by rounding, outside the box around it."""
    random = np.random.default_rng(5)
    for _ in range(40):
        source, target = (np.sort(random.uniform(0.2, 0.6, n)) for n in (70, 90))
        height = random.uniform(0.1, 0.3)
        fine = Mesh.line(np.column_stack([source, np.full(70, height)]))
        points = np.column_stack([np.clip(target, source[0], source[-1]), np.full(90, np.nextafter(height, 1.0))])
        found = barycentric(fine, Mesh(points)).consistent(source)
        assert found == pytest.approx(points[:, 0], abs=1e-14)
