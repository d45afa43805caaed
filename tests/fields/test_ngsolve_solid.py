"""The elastic solid by NGSolve: static cases of Turek and Hron, the order in time, rollback, bad input."""

import sys

import numpy as np
import pytest
from examples.turek_hron.model import CASES, REFERENCE, solid, solid_mesh

import cosolve as cs
from cosolve.signal.polynomial import Polynomial
from cosolve.state.codec import from_bytes, to_bytes


@pytest.fixture(scope="module")
def flag() -> cs.fields.NgsSolid:
    """138 triangles of the stiffer material, under gravity."""
    return solid(CASES["CSM2"])


def hold(values: np.ndarray) -> Polynomial:
    return Polynomial(0.0, 1.0, np.array([values]))


@pytest.mark.covers("FS-01")
@pytest.mark.parametrize(("case", "ux", "uy"), [("CSM1", -7.131, -65.81), ("CSM2", -0.4652, -16.895)])
def test_the_deflection_under_gravity_is_that_of_a_reference_code(case: str, ux: float, uy: float) -> None:
    found = solid(CASES[case]).static(steps=2)
    assert 1e3 * found["A_x"] == pytest.approx(ux, abs=0.01 if case == "CSM1" else 2e-3)
    assert 1e3 * found["A_y"] == pytest.approx(uy, abs=0.05 if case == "CSM1" else 5e-3)


@pytest.mark.covers("FS-01")
def test_a_finer_mesh_comes_to_the_reference() -> None:
    found = solid(CASES["CSM2"], fineness=2.0).static()
    assert 1e3 * found["A_x"] == pytest.approx(REFERENCE["CSM2"]["ux"][0], rel=3e-3)
    assert 1e3 * found["A_y"] == pytest.approx(REFERENCE["CSM2"]["uy"][0], rel=3e-3)


def test_forces_on_the_surface_do_the_work_of_a_pull(flag: cs.fields.NgsSolid) -> None:
    """A force at the free end lifts it by `4 F l^3 / (E' h^3)`, the length being that to the middle of the arc."""
    points = flag.meshes["force"].points
    force = np.zeros_like(points)
    end = np.argmin(np.hypot(*(points - (0.6, 0.2)).T))
    force[end, 1] = 1e-3
    lifted = flag.static(force.ravel())["A_y"] - flag.static()["A_y"]
    young = CASES["CSM2"].young / (1 - 0.4**2)
    assert lifted == pytest.approx(4 * 1e-3 * 0.35**3 / (young * 0.02**3), rel=0.03)


def test_the_steps_are_of_second_order() -> None:
    """With a load that begins smoothly; a jump wakes modes that no step resolves."""
    flag = solid(CASES["FSI3"], fineness=0.5)
    pull = np.zeros((flag.meshes["force"].n_points, 2))
    pull[np.argmax(flag.meshes["force"].points[:, 0]), 1] = 1.0

    def lifts(steps: int) -> np.ndarray:
        flag.start(0.0)
        found = [
            flag.advance(k / steps, (k + 1) / steps, hold(pull.ravel() * np.sin(np.pi / 2 * (k + 1) / steps) ** 4))[-1]
            for k in range(steps)
        ]
        return np.array(found[steps // 20 - 1 :: steps // 20])

    coarse, middle, fine = (lifts(n) for n in (20, 40, 80))
    assert np.abs(coarse - middle).max() / np.abs(middle - fine).max() == pytest.approx(4.0, rel=0.2)


@pytest.mark.covers("FS-08")
def test_a_step_that_is_repeated_has_the_same_bits_here_and_elsewhere(flag: cs.fields.NgsSolid) -> None:
    rng = np.random.default_rng(1)
    loads = [hold(rng.standard_normal(2 * flag.meshes["force"].n_points)) for _ in range(4)]
    flag.start(0.0)
    for k in range(2):
        flag.advance(k * 0.01, (k + 1) * 0.01, loads[k])
    saved = flag.save()
    first = flag.advance(0.02, 0.03, loads[2])
    flag.restore(saved)
    flag.advance(0.02, 0.03, loads[3])
    flag.restore(saved)
    assert flag.advance(0.02, 0.03, loads[2]).tobytes() == first.tobytes()

    other = solid(CASES["CSM2"])
    other.start(0.0)
    other.set_portable_state(from_bytes(to_bytes({"state": saved}))["state"])
    assert other.advance(0.02, 0.03, loads[2]).tobytes() == first.tobytes()


def test_runs_can_start_in_motion(flag: cs.fields.NgsSolid) -> None:
    """Points that move with one velocity are where they were going to after a short step."""
    x = flag.snapshot().points[:, 0] - flag.snapshot().points[:, 0].min()
    v = np.column_stack([np.zeros_like(x), x**2])
    h = 1e-5
    flag.set_start(h, (np.zeros_like(v), -h * v), (v, v))
    try:
        flag.start(0.0)
        flag.advance(0.0, h, hold(np.zeros(2 * flag.meshes["force"].n_points)))
        tip = flag.advance(0.0, h, hold(np.zeros(2 * flag.meshes["force"].n_points)))[-1]
    finally:
        flag.set_start(h, (0 * v, 0 * v), (0 * v, 0 * v))
    assert tip == pytest.approx(2 * h * v[:, 1].max(), rel=0.02)


def test_a_snapshot_shows_where_the_points_are(flag: cs.fields.NgsSolid) -> None:
    down = flag.static()
    seen = flag.snapshot()
    assert seen.n_cells == 138
    assert set(seen.cells) == {"triangle6"}
    tip = np.argmin(np.hypot(*(flag.space.points - (0.6, 0.2)).T))
    assert seen.points[tip, 1] - 0.2 == pytest.approx(down["A_y"], abs=1e-12)


@pytest.mark.covers("FS-20")
def test_what_cannot_work_is_said(flag: cs.fields.NgsSolid, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"clamped": "clamped", "surface": "surface", "young": 1e6, "poisson": 0.4, "density": 1e3}
    mesh = flag.mesh
    with pytest.raises(cs.errors.SetupError, match=r"surface names the boundary 'surfaec'; .*surface"):
        cs.fields.NgsSolid(mesh, **{**options, "surface": "surfaec"})
    with pytest.raises(cs.errors.SetupError, match="poisson must lie between"):
        cs.fields.NgsSolid(mesh, **{**options, "poisson": 0.5})
    with pytest.raises(cs.errors.SetupError, match=r"probe 'far' at .* lies outside"):
        cs.fields.NgsSolid(mesh, **options, probes={"far": (5.0, 5.0)})
    with pytest.raises(cs.errors.SetupError, match="triangles in the plane, not str"):
        cs.fields.NgsSolid("mesh.vol", **options)
    with pytest.raises(cs.errors.SetupError, match="gravity must be two numbers"):
        cs.fields.NgsSolid(mesh, **options, gravity=(1.0,))
    with pytest.raises(cs.errors.SubsystemError, match=r"did not converge|inside out|not finite"):
        flag.static(1e6 * np.ones(2 * flag.meshes["force"].n_points))
    nan = np.zeros(2 * flag.meshes["force"].n_points)
    nan[5] = np.nan
    with pytest.raises(cs.errors.NonFiniteError, match="at point 2 of its surface"):
        flag.advance(0.0, 0.01, hold(nan))

    monkeypatch.setitem(sys.modules, "ngsolve", None)
    with pytest.raises(cs.errors.SetupError, match=r"pip install 'cosolve\[ngsolve\]'"):
        cs.fields.NgsSolid(mesh, **options)


@pytest.mark.slow
@pytest.mark.covers("FS-01")
def test_the_softer_flag_on_the_finer_mesh() -> None:
    found = solid(CASES["CSM1"], fineness=2.0).static(steps=2)
    assert solid_mesh(2.0).ne == 558
    assert 1e3 * found["A_x"] == pytest.approx(REFERENCE["CSM1"]["ux"][0], rel=3e-3)
    assert 1e3 * found["A_y"] == pytest.approx(REFERENCE["CSM1"]["uy"][0], rel=3e-3)
