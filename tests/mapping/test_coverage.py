"""Targets that the source covers in part or from two sides: row scaling, orientation, what is refused."""

import numpy as np
import pytest
from tests.mapping.shapes import grid_cells, square, tube

import cosolve as cs
from cosolve.mapping import Mesh, dual_mortar, mortar

N = 11


def open_ended(end: float) -> tuple[Mesh, Mesh]:
    """A source that ends at `end`, a target that goes on to 1."""
    return Mesh.line(np.linspace(0, end, 8), name="short"), Mesh.line(np.linspace(0, 1, N), name="long")


@pytest.mark.covers("IJ-30")
def test_row_sums_without_cover() -> None:
    """Rows of M^-1 C sum to M^-1 int_covered N, written out here for the last, half covered element."""
    source, target = open_ended(0.95)
    mapping = mortar(source, target, enforce_consistency=False)
    h = 1 / (N - 1)
    M = (np.diag(np.full(N, 4.0)) + np.eye(N, k=1) + np.eye(N, k=-1)) * h / 6
    M[0, 0] = M[-1, -1] = h / 3
    covered = np.full(N, h)
    covered[0], covered[-2], covered[-1] = h / 2, h / 2 + h * 3 / 8, h / 8
    assert mapping.consistent(np.ones(8)) == pytest.approx(np.linalg.solve(M, covered), abs=1e-14)
    assert mapping.report().coverage == pytest.approx(0.5)


@pytest.mark.covers("IJ-30")
@pytest.mark.parametrize("build", [mortar, dual_mortar])
def test_enforced_consistency(build) -> None:
    """L_i. / sum_j L_ij: rows sum to one, so that rigid translations and the total force are kept."""
    source, target = open_ended(0.98)
    plain, scaled = build(source, target, enforce_consistency=False), build(source, target)
    sums = plain.operator().toarray().sum(axis=1)
    assert scaled.operator().toarray() == pytest.approx(plain.operator().toarray() / sums[:, np.newaxis], abs=1e-14)
    f = np.cos(np.arange(N))
    assert scaled.conservative(f).sum() == pytest.approx(f.sum(), abs=1e-14)
    assert f @ scaled.consistent(np.arange(8.0)) == pytest.approx(scaled.conservative(f) @ np.arange(8.0), abs=1e-14)


@pytest.mark.parametrize("build", [mortar, dual_mortar])
def test_points_without_cover_are_named(build) -> None:
    for end in (0.6, 0.95):
        with pytest.raises(
            cs.errors.SetupError, match=r"points of long \(point \d+ at \[.*\]\) are hardly covered by short"
        ):
            build(*open_ended(end))


def thin_plate(n: int, *, flipped: bool = False, name: str) -> Mesh:
    """Both sides of a plate of thickness 0.01, normals outwards (or, flipped, inwards)."""
    lower = square(n, n, "triangles").points
    points = np.concatenate([np.column_stack([lower, np.full(len(lower), z)]) for z in (0.0, 0.01)])
    cells = grid_cells(n, n, "triangles")["triangles"]
    both = np.concatenate([cells[:, ::-1], cells + len(lower)])
    return Mesh(points, triangles=both[:, ::-1] if flipped else both, name=name)


@pytest.mark.parametrize("build", [mortar, dual_mortar])
@pytest.mark.parametrize("flipped", [False, True])
def test_orientation_tells_the_sides_of_a_thin_body_apart(build, flipped: bool) -> None:
    """+1 above and -1 below arrives as that; wet and dry surfaces often have opposite normals."""
    source, target = thin_plate(6, flipped=flipped, name="solid"), thin_plate(8, name="fluid")
    mapping = build(source, target, normals="opposite" if flipped else "same")
    side = np.sign(source.points[:, 2] - 0.005)
    assert mapping.consistent(side) == pytest.approx(np.sign(target.points[:, 2] - 0.005), abs=1e-13)
    with pytest.raises(cs.errors.SetupError, match=r"fluid: triangle \d+ .* is covered 2 times by solid.*normals="):
        build(source, target)


def test_wrong_orientation_finds_no_overlap() -> None:
    with pytest.raises(cs.errors.SetupError, match="do not overlap; check units and positions, normals"):
        mortar(tube(12, 4, "triangles"), tube(16, 4, "triangles"), normals="opposite")


def test_a_distance_bridges_a_gap() -> None:
    """Coaxial tubes 0.2 apart see each other when told to."""
    inner, outer = tube(40, 20, "triangles"), tube(64, 30, "triangles", radius=1.2)
    with pytest.raises(cs.errors.SetupError, match="do not overlap"):
        mortar(inner, outer)
    mapping = mortar(inner, outer, max_distance=0.25)
    assert mapping.report().row_sums == pytest.approx((1, 1), abs=1e-14)
    angle = lambda mesh: np.arctan2(mesh.points[:, 1], mesh.points[:, 0])  # noqa: E731
    assert mapping.consistent(np.cos(angle(inner))) == pytest.approx(np.cos(angle(outer)), abs=0.02)
