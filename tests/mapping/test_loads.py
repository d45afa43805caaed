"""Fields and their nodal loads: integrals, work, the way back; and meshes from arrays of numpy."""

import numpy as np
import pytest

import cosolve as cs


def plate(n: int) -> cs.mapping.Mesh:
    """The unit square in triangles and, on the right half, quadrilaterals."""
    x = np.linspace(0.0, 1.0, n)
    points = np.array([[a, b, 0.0] for b in x for a in x])
    triangles, quads = [], []
    for j in range(n - 1):
        for i in range(n - 1):
            a, b, c, d = j * n + i, j * n + i + 1, (j + 1) * n + i + 1, (j + 1) * n + i
            if i < (n - 1) // 2:
                triangles += [[a, b, c], [a, c, d]]
            else:
                quads.append([a, b, c, d])
    return cs.mapping.Mesh(points, triangles=triangles, quadrilaterals=quads)


@pytest.mark.covers("IJ-42")
def test_loads_have_the_integral_and_the_moment_of_a_linear_field():
    mesh = plate(7)
    field = 2.0 + 3.0 * mesh.points[:, 0]
    loads = cs.mapping.field_to_loads(mesh).consistent(field)
    assert loads.sum() == pytest.approx(3.5, abs=1e-13)  # of 2 + 3 x over the unit square
    assert loads @ mesh.points[:, 0] == pytest.approx(2.0, abs=1e-13)  # of (2 + 3 x) x
    assert np.abs(cs.mapping.loads_to_field(mesh).consistent(loads) - field).max() < 1e-12


def test_three_components_at_once():
    mesh = plate(5)
    rng = np.random.default_rng(3)
    traction = rng.normal(size=(mesh.n_points, 3))
    there = cs.mapping.field_to_loads(mesh)
    flat = there.consistent(traction.reshape(-1))
    assert np.array_equal(flat, there.consistent(traction).reshape(-1))
    assert np.abs(there.operator(3) @ traction.reshape(-1) - flat).max() < 1e-15


def test_both_sides_of_a_thin_body_are_told_apart():
    """Two layers that nearly touch: each has loads of its own."""
    one = plate(4)
    points = np.vstack([one.points, one.points + np.array([0.0, 0.0, 1e-3])])
    triangles, quads = one.cells[one.corners == 3][:, :3], one.cells[one.corners == 4]
    n = one.n_points
    both = cs.mapping.Mesh(
        points,
        triangles=np.vstack([triangles[:, ::-1], triangles + n]),
        quadrilaterals=np.vstack([quads[:, ::-1], quads + n]),
    )
    loads = cs.mapping.field_to_loads(both).consistent(np.repeat([1.0, -5.0], n))
    assert loads[:n].sum() == pytest.approx(1.0, abs=1e-12)
    assert loads[n:].sum() == pytest.approx(-5.0, abs=1e-12)


def test_a_cloud_of_points_has_no_loads():
    with pytest.raises(cs.errors.SetupError, match="field_to_loads"):
        cs.mapping.field_to_loads(cs.mapping.Mesh([[0.0], [1.0]]))


def test_a_mesh_from_arrays(tmp_path):
    mesh = plate(4)
    triangles, quads = mesh.cells[mesh.corners == 3][:, :3], mesh.cells[mesh.corners == 4]
    np.savez(tmp_path / "plate.npz", points=mesh.points, triangles=triangles, quadrilaterals=quads)
    found = cs.mapping.read_mesh(tmp_path / "plate.npz")
    assert str(found).startswith("plate: ")
    assert np.array_equal(found.cells, mesh.cells)
    assert found.file_points is not None


@pytest.mark.parametrize(
    ("arrays", "options", "said"),
    [
        ({"nodes": [[0.0]]}, {}, "holds an array 'nodes'; those of a mesh are points, lines"),
        ({"lines": [[0, 1]]}, {}, "has no array 'points'"),
        ({"points": [[0.0], [1.0]]}, {"group": "wet"}, "have no group 'wet'; leave it out"),
        ({"points": np.array([None])}, {}, "is no file of numpy arrays"),
    ],
)
def test_arrays_that_are_no_mesh(tmp_path, arrays, options, said):
    np.savez(tmp_path / "plate.npz", **arrays)
    with pytest.raises(cs.errors.SetupError, match=said):
        cs.mapping.read_mesh(tmp_path / "plate.npz", **options)


def test_a_file_that_is_something_else(tmp_path):
    (tmp_path / "plate.npz").write_text("points")
    with pytest.raises(cs.errors.SetupError, match="is no file of numpy arrays"):
        cs.mapping.read_mesh(tmp_path / "plate.npz")
    with pytest.raises(cs.errors.SetupError, match="there is no file"):
        cs.mapping.read_mesh(tmp_path / "other.npz")
    with (tmp_path / "one.npz").open("wb") as file:
        np.save(file, np.zeros((3, 2)))
    with pytest.raises(cs.errors.SetupError, match="it is one array without a name"):
        cs.mapping.read_mesh(tmp_path / "one.npz")
