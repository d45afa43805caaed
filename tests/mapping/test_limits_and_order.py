"""Limits of distance from both sides, and meshes whose cells are graded and come in any order."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.mapping.shapes import in_space, square

import cosolve as cs
from cosolve.mapping import (
    Mesh,
    barycentric,
    dual_mortar,
    mortar,
    nearest_neighbour,
    partition_of_unity,
    radial_basis,
)

GAP = 0.15
POINTWISE = {
    "nearest_neighbour": nearest_neighbour,
    "barycentric": barycentric,
    "radial_basis": radial_basis,
    "radial_basis of 12": partial(radial_basis, neighbours=12),
    "partition_of_unity": partition_of_unity,
    "partition_of_unity of 8": partial(partition_of_unity, per_cluster=8),
}
CELLWISE = {"mortar": mortar, "dual_mortar": dual_mortar}
ALL: dict[str, Any] = {**POINTWISE, **CELLWISE}


def graded(n: int, power: tuple[float, float]) -> Mesh:
    """The unit square with cells that grow from the first to the last."""
    even = square(n, n, "mixed")
    quads, triangles = even.cells[even.corners == 4], even.cells[even.corners == 3][:, :3]
    return Mesh(even.points ** np.array(power), triangles=triangles, quadrilaterals=quads)


def shuffled(mesh: Mesh, seed: int) -> Mesh:
    """The same mesh with its cells in another order, each from another corner on."""
    random = np.random.default_rng(seed)
    cells = {}
    for name, corners in (("triangles", 3), ("quadrilaterals", 4)):
        own = random.permutation(mesh.cells[mesh.corners == corners][:, :corners])
        cells[name] = np.array([np.roll(cell, random.integers(corners)) for cell in own])
    return Mesh(mesh.points, **cells, name=mesh.name)


def above(mesh: Mesh, gap: float, turned: bool) -> tuple[Mesh, Mesh]:
    """A plane mesh in space, and a copy of it at a distance of `gap` everywhere; boxes of cells are flat or wide."""
    if turned:
        return in_space(mesh), in_space(mesh, gap=gap)
    lower, upper = (np.column_stack([mesh.points, np.full(mesh.n_points, z)]) for z in (0.0, gap))
    triangles, quads = mesh.cells[mesh.corners == 3][:, :3], mesh.cells[mesh.corners == 4]
    return Mesh(lower, triangles=triangles, quadrilaterals=quads), Mesh(
        upper, triangles=triangles, quadrilaterals=quads
    )


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("turned", [False, True])
def test_a_limit_of_the_distance_is_sharp(name: str, turned: bool) -> None:
    """All points of the target are `GAP` from their nearest point and cell: a limit just above that accepts them."""
    source, target = above(square(9, 9, "triangles"), GAP, turned)
    mapping = ALL[name](source, target, max_distance=GAP * (1 + 1e-9))
    assert mapping.consistent(np.ones(source.n_points)) == pytest.approx(1.0, abs=1e-9)
    with pytest.raises(cs.errors.SetupError, match="max_distance"):
        ALL[name](source, target, max_distance=GAP * (1 - 1e-9))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_without_a_limit_the_largest_cell_says_how_far_is_too_far(name: str, seed: int, turned: bool) -> None:
    """In a graded mesh that cell is the last, or anywhere; two cells see each other up to half of both diameters."""
    mesh = graded(6, (3.0, 3.0))
    largest = mesh.diameters.max()
    assert mesh.diameters[0] < 0.1 * largest
    mesh = shuffled(mesh, seed) if seed else mesh
    source, target = above(mesh, largest * (1 - 1e-9), turned)
    if name in POINTWISE:
        ALL[name](source, target)
    else:  # the largest cell alone
        assert 0 < ALL[name](source, target, enforce_consistency=False).matrix.nnz <= 16
        with pytest.raises(cs.errors.SetupError, match="hardly covered"):
            ALL[name](source, target)
    source, target = above(mesh, largest * (1 + 1e-9), turned)
    with pytest.raises(cs.errors.SetupError, match="do not overlap"):
        ALL[name](source, target)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_order_of_cells_changes_nothing(name: str, seed: int) -> None:
    """Graded source and target, a little apart: the same operator to rounding, whatever the order of cells."""
    source, target = in_space(graded(7, (2.0, 1.7))), in_space(graded(6, (1.5, 1.2)), gap=0.02)
    expected = ALL[name](source, target).operator()
    found = ALL[name](shuffled(source, seed), shuffled(target, 10 + seed)).operator()
    dense = [each.toarray() if hasattr(each, "toarray") else each for each in (expected, found)]
    assert abs(dense[0] - dense[1]).max() < 1e-11
