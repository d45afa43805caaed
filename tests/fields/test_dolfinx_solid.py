"""The elastic solid by dolfinx in another Python: figures, the solid of scikit-fem on the same mesh, and what may fail.

What needs dolfinx is slow because of loading it; how a worker process fails is shown with workers of this Python.
"""

import copy
import gc
import inspect
import os
import signal
import sys

import numpy as np
import pytest
from tests import processes

import cosolve as cs
from cosolve.fields.adapters import dolfinx_solid, dolfinx_worker
from cosolve.fields.adapters.other_python import OtherPython, find_python
from cosolve.signal.polynomial import Polynomial
from cosolve.state.codec import from_bytes, to_bytes

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals and scripts as programs: Windows")
skfem = pytest.importorskip("skfem")
MATERIAL = {"poisson": 0.4, "density": 1000.0, "gravity": (0.0, -2.0), "clamped": "back", "surface": "flag"}


@pytest.fixture(scope="module")
def dolfinx() -> str:
    """A Python that has it."""
    try:
        return find_python("dolfinx", "install it")
    except cs.errors.SetupError as missing:
        pytest.skip(f"no dolfinx here: {missing}")


def flag_mesh(cells: tuple[int, int] = (35, 2)):
    """0.35 m x 0.02 m, clamped to the back of a cylinder of 0.1 m: its end there is an arc."""
    mesh = skfem.MeshTri.init_tensor(np.linspace(0.0, 1.0, cells[0] + 1), np.linspace(0.19, 0.21, cells[1] + 1))
    share, y = mesh.p
    arc = 0.2 + np.sqrt(0.05**2 - (y - 0.2) ** 2)
    back = mesh.facets_satisfying(lambda x: x[0] == 0.0)
    rest = np.setdiff1d(mesh.boundary_facets(), back)
    return skfem.MeshTri(np.array([arc + share * (0.6 - arc), y]), mesh.t).with_boundaries({"back": back, "flag": rest})


def flag(kind=cs.fields.DolfinxSolid, shear: float = 2.0e6, cells: tuple[int, int] = (35, 2), **more):
    return kind(flag_mesh(cells), **({"young": 2 * 1.4 * shear, "probes": {"A": (0.6, 0.2)}} | MATERIAL | more))


def hold(values: np.ndarray) -> Polynomial:
    return Polynomial(0.0, 1.0, np.array([values]))


@pytest.mark.slow
@pytest.mark.covers("FS-01")
@pytest.mark.parametrize(("shear", "ux", "uy"), [(0.5e6, -7.187, -66.10), (2.0e6, -0.4690, -16.97)])
def test_the_deflection_under_gravity_is_as_published(dolfinx: str, shear: float, ux: float, uy: float) -> None:
    """CSM1 and CSM2 of Turek and Hron (2006): 1 % on 140 triangles, 0.3 % on 560."""
    for cells, allowed in (((35, 2), 0.01), ((70, 4), 0.003)):
        found = flag(shear=shear, cells=cells).static(steps=2)
        assert 1e3 * found["A_x"] == pytest.approx(ux, rel=allowed)
        assert 1e3 * found["A_y"] == pytest.approx(uy, rel=allowed)


@pytest.mark.slow
@pytest.mark.covers("FS-10")
def test_it_swings_as_the_solid_of_scikit_fem_on_the_same_mesh(dolfinx: str) -> None:
    """CSM3, 40 steps, and a pull at the end of the flag: the same equations, solved by other code."""
    one, other = flag(shear=0.5e6), flag(cs.fields.ElasticSolid, shear=0.5e6)
    points = one.meshes["force"].points
    assert points.tobytes() == other.meshes["force"].points.tobytes()
    pull = np.zeros_like(points)
    pull[np.argmax(points[:, 0])] = 0.3, 1.0
    for k in range(40):
        t = 0.005 * k
        moved = [solid.advance(t, t + 0.005, hold(pull.ravel() * np.sin(20 * t))) for solid in (one, other)]
    assert np.abs(moved[1]).max() > 0.02
    assert np.abs(moved[0] - moved[1]).max() < 1e-9 * np.abs(moved[1]).max()
    shown, same = one.snapshot(), other.snapshot()
    assert np.array_equal(shown.cells["triangle6"], same.cells["triangle6"])
    speed = same.point_data["velocity"]
    np.testing.assert_allclose(shown.point_data["velocity"], speed, rtol=0, atol=1e-8 * np.abs(speed).max())
    target = cs.mapping.Mesh.line([[0.3, 0.21], [0.42, 0.21]])
    assert one.trace_to(target).consistent(points[:, 0] ** 2) == pytest.approx([0.09, 0.42**2], abs=1e-12)


@pytest.mark.slow
@pytest.mark.covers("FS-08", "FS-09")
def test_a_step_that_is_repeated_has_the_same_bits_here_and_elsewhere(dolfinx: str) -> None:
    """Also in a process that has computed nothing before."""
    rng = np.random.default_rng(1)
    solid = flag()
    loads = [hold(rng.standard_normal(2 * solid.meshes["force"].n_points)) for _ in range(4)]
    for k in range(2):
        solid.advance(k * 0.01, (k + 1) * 0.01, loads[k])
    saved = solid.save()
    first = solid.advance(0.02, 0.03, loads[2])
    solid.restore(saved)
    assert solid.advance(0.02, 0.03, loads[3]).tobytes() != first.tobytes()
    solid.restore(saved)
    assert solid.advance(0.02, 0.03, loads[2]).tobytes() == first.tobytes()
    other = copy.deepcopy(solid)
    other.start(0.0)
    other.set_portable_state(from_bytes(to_bytes({"state": saved}))["state"])
    assert other.advance(0.02, 0.03, loads[2]).tobytes() == first.tobytes()
    assert other._worker.pid != solid._worker.pid


@pytest.mark.slow
@pytest.mark.covers("FS-20")
def test_a_killed_process_ends_the_run_with_a_sentence_and_the_next_run_has_another(dolfinx: str) -> None:
    solid = flag(cells=(8, 1))
    system = cs.System({"flag": solid})
    system.set("flag.force", np.zeros(2 * solid.meshes["force"].n_points))
    plain = solid._solve

    def killed_later(guess, load, inertia, t):
        if t > 0.015:
            os.kill(solid._worker.pid, signal.SIGKILL)
        return plain(guess, load, inertia, t)

    solid._solve = killed_later
    with pytest.raises(
        cs.errors.SimulationError, match=r"its process \(python3?\S*\) was ended \(signal 9, SIGKILL\)"
    ) as caught:
        cs.simulate(system, t_end=0.05, method=cs.Jacobi(degree=0), step=0.01)
    assert np.allclose(caught.value.result.t, [0.0, 0.01, 0.02])
    solid._solve = plain
    result = cs.simulate(system, t_end=0.05, method=cs.Jacobi(degree=0), step=0.01)
    assert result["flag.A_y"][-1] < 0.0
    assert result["flag.A_y"][2] == caught.value.result["flag.A_y"][2]
    pid = solid._worker.pid
    solid.close()
    assert processes.ends(pid)


@pytest.mark.slow
@pytest.mark.covers("FS-20")
def test_loads_that_are_too_large_are_said(dolfinx: str) -> None:
    solid = flag(cells=(6, 1))
    n = 2 * solid.meshes["force"].n_points
    with pytest.raises(cs.errors.SubsystemError, match=r"(did not converge|inside out|not finite|stiffness).*t = 0"):
        solid.advance(0.0, 10.0, hold(np.full(n, 1e9)))
    with pytest.raises(cs.errors.NonFiniteError, match="not all finite"):
        solid.advance(0.0, 0.1, hold(np.full(n, np.nan)))
    assert np.isfinite(solid.static()["A_y"]), "the same process goes on"


def test_every_argument_arrives_at_the_solid_that_it_replaces(monkeypatch) -> None:
    """Each has a value of its own here, so that none can stand for another; no dolfinx is needed for that."""
    given = {
        "clamped": "back", "surface": "flag", "young": 5.6e6, "poisson": 0.4, "density": 1100.0, "gravity": (0.0, -2.0),
        "probes": {"tip": (1.0, 2.0)}, "tol": 1e-7, "most": 13,
    }  # fmt: skip
    found = {}
    monkeypatch.setattr(
        cs.fields.ElasticSolid, "__init__", lambda self, mesh, **options: found.update(options, mesh=mesh)
    )
    cs.fields.DolfinxSolid("the mesh", **given, timeout=3.0)
    assert found == {"mesh": "the mesh", **given}


def test_the_worker_is_given_what_it_asks_for(monkeypatch) -> None:
    """By name, and each value in its place; no dolfinx is needed for that."""
    calls: dict[str, dict] = {}

    class Worker:
        closed = False

        def __init__(self, *given) -> None: ...
        def close(self) -> None: ...
        def call(self, name: str, **values):
            inspect.signature(getattr(dolfinx_worker, name)).bind(**values)
            calls[name] = values
            unknowns = np.arange(2 * len(calls["set_up"]["points"]))
            mass = {"rows": unknowns, "columns": unknowns, "values": np.ones(len(unknowns)), "version": "0.5"}
            return mass if name == "set_up" else {"d": 0.0 * values["guess"]}

    monkeypatch.setattr(dolfinx_solid, "OtherPython", Worker)
    monkeypatch.setattr(dolfinx_solid, "find_python", lambda *about: sys.executable)
    solid = flag(cells=(3, 1), tol=1e-7, most=13)
    solid.static(steps=1)
    made, asked = calls["set_up"], calls["solve"]
    assert made["points"].shape == (21, 2)  # 8 corners, and the middles of 13 edges
    assert made["triangles"].shape == (6, 6)
    assert sorted(made["points"][made["held"]][:, 1]) == pytest.approx([0.19, 0.2, 0.21])  # the end at the cylinder
    assert made["points"][made["held"]][:, 0].max() < 0.25
    assert (made["mu"], made["lam"], made["density"]) == pytest.approx((2.0e6, 2 * 2.0e6 * 0.4 / 0.2, 1000.0))
    assert (asked["inertia"], asked["tol"], asked["most"]) == (0.0, 1e-7, 13)
    assert asked["guess"].shape == asked["load"].shape == (42,)
    assert asked["load"].any()


@pytest.mark.covers("FS-20")
def test_a_missing_stack_is_told_with_what_would_help(tmp_path, monkeypatch) -> None:
    without = tmp_path / "python"
    without.write_text("#!/bin/sh\nexit 1\n")
    without.chmod(0o755)
    for named, sentence in ((without, "no Python here has the module 'dolfinx'"), (tmp_path / "none", "is not there")):
        with pytest.raises(cs.errors.SetupError, match=rf"{sentence}.*apt install python3-dolfinx"):
            flag(cells=(4, 1), python=named)
    with pytest.raises(cs.errors.SetupError, match="timeout"):
        flag(cells=(4, 1), timeout=-1.0)
    (tmp_path / "wrong.py").write_text("def set_up(**given):\n    raise ArithmeticError('dolfinx 9 is here')\n")
    monkeypatch.setattr(dolfinx_solid, "_WORKER", tmp_path / "wrong.py")
    monkeypatch.setattr(dolfinx_solid, "find_python", lambda *about: sys.executable)
    with pytest.raises(cs.errors.SetupError, match="DolfinxSolid: dolfinx 9 is here"):
        flag(cells=(4, 1))


WORKER = """
import os, signal, sys, time
import numpy as np

print("loaded")

def add(a, b):
    return {"sum": a + b, "what": "numbers"}

def lost():
    raise ValueError("no such node")

def end():
    print("out of memory", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

def think():
    time.sleep(600)
"""


@pytest.fixture
def worker(tmp_path):
    (tmp_path / "worker.py").write_text(WORKER)
    other = OtherPython(sys.executable, tmp_path / "worker.py", timeout=60.0)
    yield other
    other.close()


@pytest.mark.covers("FS-20")
def test_a_worker_of_another_python_answers_and_fails_in_sentences(worker: OtherPython) -> None:
    found = worker.call("add", a=np.arange(3.0).reshape(3, 1), b=np.float32([1]))
    assert found["what"] == "numbers"
    assert np.array_equal(found["sum"], [[1.0], [2.0], [3.0]])
    with pytest.raises(cs.errors.SubsystemError, match="lost of its process: ValueError: no such node"):
        worker.call("lost")
    with pytest.raises(TypeError, match="numbers, text, None and arrays go to another Python, but not set"):
        worker.call("add", a={1}, b=2)
    assert worker.call("add", a=np.int64(1), b=2)["sum"] == 3, "it goes on after an error"
    with pytest.raises(
        cs.errors.SubsystemError, match=r"was ended \(signal 9, SIGKILL\); its last output:.*out of memory"
    ):
        worker.call("end")
    assert worker.closed
    with pytest.raises(cs.errors.SubsystemError):
        worker.call("add", a=1, b=2)


@pytest.mark.covers("FS-20")
def test_a_worker_that_hangs_is_ended(worker: OtherPython) -> None:
    worker.call("add", a=1, b=2)
    worker._timeout = 0.2
    with pytest.raises(cs.errors.SubsystemError, match=r"gave no answer within 0.2 s and was ended.*raise timeout"):
        worker.call("think")
    assert processes.ends(worker.pid)


@pytest.mark.covers("FS-20")
def test_a_worker_goes_with_its_object_and_with_a_killed_run(tmp_path) -> None:
    (tmp_path / "worker.py").write_text(WORKER)
    other = OtherPython(sys.executable, tmp_path / "worker.py", timeout=60.0)
    pid = other.pid
    del other
    gc.collect()
    assert processes.ends(pid)
    script = (
        "import sys\nfrom pathlib import Path\nfrom cosolve.fields.adapters.other_python import OtherPython\n"
        "other = OtherPython(sys.executable, Path(sys.argv[1]))\nprint(other.pid, flush=True)\nother.call('think')\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "worker.py")]
    with processes.started(command, env=processes.environment(), stdout=-1) as process:
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        assert processes.ends(pid)
