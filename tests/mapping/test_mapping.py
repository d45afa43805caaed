"""The operator itself: layouts of fields, restriction, reports, and a coupled system whose fields are mapped."""

from collections.abc import Callable

import numpy as np
import pytest
from tests.mapping.shapes import square

import cosolve as cs
from cosolve.mapping import FieldMapping, Mesh, barycentric, dual_mortar, mortar, nearest_neighbour, radial_basis

Build = Callable[[Mesh, Mesh], FieldMapping]
ALL: tuple[Build, ...] = (mortar, dual_mortar, barycentric, nearest_neighbour, radial_basis)


@pytest.mark.parametrize("build", ALL)
def test_layouts_agree(build: Build) -> None:
    """(n, 3), flat point by point, and three scalar fields give the same numbers, both ways; and so does operator()."""
    mapping = build(square(5, 6, "triangles"), square(7, 4, "triangles"))
    rng = np.random.default_rng(5)
    u, f = rng.random((mapping.n_source, 3)), rng.random((mapping.n_target, 3))
    to, back = mapping.consistent(u), mapping.conservative(f)
    assert to.shape == (mapping.n_target, 3)
    assert np.array_equal(mapping.consistent(u.ravel()), to.ravel())
    assert np.array_equal(mapping.conservative(f.ravel()), back.ravel())
    for c in range(3):
        assert mapping.consistent(u[:, c]) == pytest.approx(to[:, c], abs=1e-15)
        assert mapping.conservative(f[:, c]) == pytest.approx(back[:, c], abs=1e-15)
    assert mapping.operator(3) @ u.ravel() == pytest.approx(to.ravel(), abs=1e-13)
    assert mapping.operator(3).T @ f.ravel() == pytest.approx(back.ravel(), abs=1e-13)


def test_the_given_field_is_not_changed() -> None:
    mapping = mortar(square(5, 6, "triangles"), square(7, 4, "triangles"))
    f = np.ones((mapping.n_target, 2))
    mapping.conservative(f)
    assert (f == 1).all()


@pytest.mark.parametrize("build", ALL)
def test_a_restriction_of_the_target(build: Build) -> None:
    """Rows of an interpolation are independent of each other; a mortar operator is projected anew."""
    mapping = build(Mesh.line(np.linspace(0, 1, 9)), Mesh.line(np.linspace(0, 1, 12)))
    inner = mapping.restricted(target=np.arange(12) % 11 > 0)
    whole = mapping.operator().toarray()[1:-1]
    if build is not mortar:
        assert inner.operator().toarray() == pytest.approx(whole, abs=0)
    else:
        assert mapping.mass is not None
        M, C = mapping.mass.toarray()[1:-1, 1:-1], mapping.matrix.toarray()[1:-1]
        assert inner.operator().toarray() == pytest.approx(np.linalg.solve(M, C), abs=1e-14)
    for wrong in ([0, 0], [12], [0.5], []):
        with pytest.raises(
            cs.errors.SetupError, match="target must be different point numbers from 0 to 11, or 12 Booleans"
        ):
            mapping.restricted(target=wrong)


def test_report() -> None:
    source = Mesh(
        np.concatenate([square(3, 3, "triangles").points, [[5.0, 5.0]]]), triangles=square(3, 3, "triangles").cells
    )
    report = mortar(source, square(4, 4, "triangles")).report()
    assert (report.n_source, report.n_target, report.unused, report.coverage) == (10, 16, 1, pytest.approx(1))
    assert "1 source points influence no target point" in str(report)


@pytest.mark.parametrize("turned", range(4))
def test_the_diameter_of_a_cell_is_its_longest_side_or_diagonal_whichever_corner_is_first(turned: int) -> None:
    """A triangle with sides of 3, 4 and 5, a kite with diagonals of 2 and 6, and a flat rhombus."""
    corners = [[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]]
    kite = [[10.0, 0.0], [11.0, 1.0], [10.0, 6.0], [9.0, 1.0]]
    rhombus = [[20.0, 0.0], [24.0, 1.0], [28.0, 0.0], [24.0, -1.0]]
    mesh = Mesh(
        np.array([*corners, *kite, *rhombus]),
        triangles=[np.roll([0, 1, 2], turned)],
        quadrilaterals=[np.roll([3, 4, 5, 6], turned), np.roll([7, 8, 9, 10], turned)],
    )
    assert mesh.diameters.tolist() == [5.0, 6.0, 8.0]


@pytest.mark.parametrize("build", [mortar, dual_mortar, barycentric, radial_basis])
def test_fields_of_a_coupled_system(build: Build) -> None:
    """Two linear fields of two components on different meshes, solved by the implicit method and at one stroke.

    u = K (p + f) on the source, f_target = -G (L u) on the target, f = L^T f_target:
    (I + K L^T G L) u = K p.
    """
    source, target = Mesh.line(np.linspace(0, 1, 5)), Mesh.line(np.linspace(0, 1, 8))
    mapping = build(source, target)
    rng = np.random.default_rng(7)
    K, G, p = 0.2 * rng.random((10, 10)), rng.random((16, 16)), rng.random(10)
    solid = cs.Static(lambda t, f: K @ (p + f), inputs=[("f", 10)], outputs=[("u", 10)])
    fluid = cs.Static(lambda t, u: -G @ u, inputs=[("u", 16)], outputs=[("f", 16)])
    system = cs.System({"solid": solid, "fluid": fluid})
    system.law("fluid.u", of="solid.u", **mapping.as_law())
    system.law("solid.f", of="fluid.f", **mapping.as_law("conservative"))
    result = cs.simulate(system, t_end=0.1, method=cs.Implicit(), step=0.1)
    L = mapping.operator(2).toarray()
    u = np.linalg.solve(np.eye(10) + K @ L.T @ G @ L, K @ p)
    assert result["solid.u"][-1] == pytest.approx(u, abs=1e-9)


def test_a_large_mapped_interface_is_solved_with_sparse_matrices() -> None:
    """150 coupling variables, so the interface Jacobian is assembled and factorised sparse."""
    source, target = Mesh.line(np.linspace(0, 1, 60)), Mesh.line(np.linspace(0, 1, 90))
    mapping = barycentric(source, target)
    solid = cs.Static(lambda t, f: 1.0 + 0.1 * f, inputs=[("f", 60)], outputs=[("u", 60)])
    fluid = cs.Static(lambda t, u: -0.5 * u, inputs=[("u", 90)], outputs=[("f", 90)])
    system = cs.System({"solid": solid, "fluid": fluid})
    system.map("solid.u", "fluid.u", mapping)
    system.map("fluid.f", "solid.f", mapping, "conservative")
    result = cs.simulate(system, t_end=0.1, method=cs.Implicit(degree=0), step=0.1)
    L = mapping.operator().toarray()
    u = np.linalg.solve(np.eye(60) + 0.05 * L.T @ L, np.ones(60))
    assert result["solid.u"][-1] == pytest.approx(u, abs=1e-9)


def test_jacobians_stay_sparse_or_are_refused() -> None:
    big = square(100, 100, "triangles")
    assert barycentric(big, big).as_law()["jacobian"](np.zeros(10_000)).nnz == 10_000
    with pytest.raises(cs.errors.SetupError, match="the full matrix of a mortar mapping would hold 10000 x 10000"):
        mortar(big, big).operator()
    with pytest.raises(cs.errors.SetupError, match="kind is 'consistent' or 'conservative', not 'both'"):
        barycentric(big, big).as_law("both")  # type: ignore[arg-type]
