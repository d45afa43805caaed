"""Solvers that are programs of their own: whatever they do, the run ends with a sentence and leaves nothing behind.

Small programs stand in for OpenFOAM and CalculiX, so that this holds everywhere.
"""

import gc
import os
import shutil
import signal
import sys
import tempfile

import numpy as np
import pytest
from tests import processes
from tests.fields.fake_solvers import write_box, write_fakes, write_triangle

import cosolve as cs
from cosolve.fields.adapters.kratos import _first_line

pytestmark = pytest.mark.skipif(os.name == "nt", reason="scripts as programs: Windows")
H = 0.1


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where working folders and programs are."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    write_fakes(tmp_path / "bin")
    return tmp_path


def calculix(place, **more):
    deck = write_triangle(place / "one.inp", more.pop("procedure", "*DYNAMIC, DIRECT"))
    return cs.fields.CalculiX(deck, "EDGE", program=place / "bin" / "ccx", **more)


def openfoam(place, **more):
    case = write_box(place / "case")
    return cs.fields.OpenFoam(case, "wall", density=1.0, application=place / "bin" / "pimpleFoam", **more)


SOLVERS = pytest.mark.parametrize("solver", [calculix, openfoam])


def held(n, value):
    values = np.full(n, value)
    return lambda t: values


def coupled(subsystem):
    """The solver driven by a constant, alone in a system."""
    port = cs.subsystem.Ports(subsystem.inputs).ports[0]
    system = cs.System({"solver": subsystem})
    system.set(f"solver.{port.name}", np.full(port.length, 0.5))
    return system


@pytest.mark.covers("FS-08")
@SOLVERS
def test_a_repeated_step_has_the_same_bits_and_states_stay_usable(place, solver):
    subsystem = solver(place)
    n = len(subsystem.start(0.0))
    first = subsystem.save()
    once = subsystem.advance(0.0, H, held(n, 1.0))
    after = subsystem.save()
    subsystem.restore(first)
    other = subsystem.advance(0.0, H, held(n, 2.0))
    subsystem.restore(first)
    assert np.array_equal(subsystem.advance(0.0, H, held(n, 1.0)), once)
    assert not np.array_equal(once, other)
    two = subsystem.advance(H, 2 * H, held(n, 1.0))
    subsystem.restore(after)  # of another advancing over that came to the same place
    assert np.array_equal(subsystem.advance(H, 2 * H, held(n, 1.0)), two)
    assert np.array_equal(subsystem.start(0.0), np.zeros(n))
    assert np.array_equal(subsystem.advance(0.0, H, held(n, 1.0)), once), "a new run begins at the beginning"


@pytest.mark.covers("FS-09")
@SOLVERS
def test_a_state_goes_through_a_file_into_another_subsystem(place, solver):
    one = solver(place)
    n = len(one.start(0.0))
    one.advance(0.0, H, held(n, 1.0))
    packed = one.portable_state()
    expected = one.advance(H, 2 * H, held(n, 3.0))
    other = solver(place)
    other.start(0.0)
    other.set_portable_state(packed)
    assert np.array_equal(other.advance(H, 2 * H, held(n, 3.0)), expected)


@SOLVERS
def test_only_states_that_are_held_stay_on_disk(place, solver):
    subsystem = solver(place)
    n = len(subsystem.start(0.0))
    for k in range(6):
        state = subsystem.save()
        subsystem.advance(k * H, (k + 1) * H, held(n, 1.0))
        subsystem.restore(state)
        subsystem.advance(k * H, (k + 1) * H, held(n, 1.1))
    states = list((place / "work").glob("*/states/*"))
    assert len(states) == 2, "where the last step began, and where it ended"


FAILURES = {
    "fail": "ended with exit code 3; its last output: reading the mesh / negative Jacobian in element 17",
    "killed": r"was ended \(signal 9, SIGKILL\); its last output: working",
    "hang": "was not ready within 2 s and was ended.*; raise timeout",
    "nothing": "ended well but wrote no",
    "half": "ends in the middle|is incomplete",
    "nan": "returned nan for output",
}


@pytest.mark.covers("FS-20")
@pytest.mark.parametrize("mode", FAILURES)
@SOLVERS
def test_a_solver_that_fails_ends_the_run_with_a_sentence_and_the_result_so_far(place, monkeypatch, solver, mode):
    monkeypatch.setenv("FAKE", mode)
    advanced = 0 if mode == "hang" else 2  # steps that go well; those before a hang might be late themselves
    monkeypatch.setenv("FAKE_FROM", str(advanced * H + H / 2))
    monkeypatch.setenv("FAKE_PID", str(place / "pid"))
    subsystem = solver(place, timeout=2.0 if mode == "hang" else 60.0)
    system = coupled(subsystem)
    with pytest.raises(cs.errors.SimulationError, match=FAILURES[mode]) as caught:
        cs.simulate(system, t_end=0.5, method=cs.Jacobi(), step=H)
    assert "\n" not in str(caught.value)
    assert caught.value.subsystem == "solver"
    assert np.allclose(caught.value.result.t, H * np.arange(advanced + 1))
    if (place / "pid").exists():  # a busy machine may not have come so far within 2 s
        assert processes.ends(int((place / "pid").read_text()))
    del subsystem, system, caught
    gc.collect()
    assert not list((place / "work").iterdir()), "no folder left"


@pytest.mark.covers("FS-20")
def test_a_solid_without_restart_file_cannot_go_on(place, monkeypatch):
    monkeypatch.setenv("FAKE", "no restart")
    solid = calculix(place)
    solid.start(0.0)
    with pytest.raises(cs.errors.SubsystemError, match=r"no restart file job\.rout"):
        solid.advance(0.0, H, held(4, 1.0))


@pytest.mark.covers("FS-20")
def test_a_failed_trial_can_be_repeated_with_other_inputs(place, monkeypatch):
    """Step control halves a step whose solver gave up; the state before it must be untouched."""
    flow = openfoam(place)
    flow.start(0.0)
    flow.advance(0.0, H, held(4, 1.0))
    state = flow.save()
    monkeypatch.setenv("FAKE", "fail")
    with pytest.raises(cs.errors.SubsystemError, match="exit code 3"):
        flow.advance(H, 2 * H, held(4, 1.0))
    monkeypatch.delenv("FAKE")
    flow.restore(state)
    force = flow.advance(H, 2 * H, held(4, 1.0))
    # one face of 0.5 m depth with the force (1, -10 (1 + 1)): per metre, shared by two points
    assert np.allclose(force.reshape(2, 2), [1.0, -20.0])


@pytest.mark.covers("FS-20")
def test_missing_programs_are_named_with_what_would_help(place, monkeypatch):
    monkeypatch.setenv("PATH", str(place))
    with pytest.raises(cs.errors.SetupError, match=r"'ccx' is not there; install CalculiX .*apt install calculix-ccx"):
        cs.fields.CalculiX(write_triangle(place / "one.inp"), "EDGE")
    with pytest.raises(
        cs.errors.SetupError, match=r"'pimpleFoam' is not there; install OpenFOAM .*apt install openfoam"
    ):
        cs.fields.OpenFoam(write_box(place / "case"), "wall")
    assert not list((place / "work").iterdir())


def test_a_failure_of_kratos_is_told_in_its_first_line():
    assert _first_line(RuntimeError("\n  no such element \nin line 3 of a long list")) == "no such element"
    assert _first_line(ValueError("\n")) == "ValueError"


@pytest.mark.covers("FS-20")
def test_a_killed_run_takes_its_solver_along(place):
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is missing")
    script = (
        "import sys, numpy as np, cosolve as cs\n"
        "solid = cs.fields.CalculiX(sys.argv[1], 'EDGE', program=sys.argv[2], keep=sys.argv[3])\n"
        "solid.start(0.0)\n"
        "solid.advance(0.0, 0.1, lambda t: np.zeros(4))\n"
    )
    deck, pid = write_triangle(place / "one.inp"), place / "pid"
    arguments = [str(deck), str(place / "bin" / "ccx"), str(place / "kept")]
    env = processes.environment(FAKE="hang", FAKE_PID=str(pid))
    with processes.started([sys.executable, "-c", script, *arguments], env=env) as process:
        assert processes.until(lambda: pid.exists() and pid.read_text())
        process.send_signal(signal.SIGKILL)
        assert processes.ends(int(pid.read_text()))


def test_a_kept_folder_holds_the_last_files(place):
    solid = calculix(place, keep=place / "kept")
    solid.start(0.0)
    solid.advance(0.0, H, held(4, 1.0))
    solid.close()
    assert "*CLOAD" in (place / "kept" / "job.inp").read_text()
    assert (place / "kept" / "log.ccx").exists()
    with pytest.raises(cs.errors.SetupError, match="is there already; name a folder that is new or empty"):
        calculix(place, keep=place / "kept").start(0.0)


def test_a_case_that_cannot_be_coupled_is_refused(place):
    with pytest.raises(cs.errors.SetupError, match="has no patch 'flag'; it has wall, across, sides"):
        cs.fields.OpenFoam(write_box(place / "case"), "flag", application=place / "bin" / "pimpleFoam")
    with pytest.raises(cs.errors.SetupError, match=r"no OpenFOAM case: it has no system/controlDict"):
        cs.fields.OpenFoam(place, "wall")
    (place / "case" / "0" / "pointDisplacement").unlink()
    with pytest.raises(cs.errors.SetupError, match=r"no time directory with a field pointDisplacement"):
        cs.fields.OpenFoam(place / "case", "wall", application=place / "bin" / "pimpleFoam")


def test_long_macro_steps_are_divided_into_steps_of_the_case(place):
    flow = openfoam(place, rigid=True)
    flow.start(0.0)
    moved = []
    flow.advance(0.0, 0.25, lambda t: moved.append(t) or np.array([0.0, t]))
    assert np.allclose(moved, [0.25 / 3, 0.5 / 3, 0.25])  # deltaT 0.1: three steps


def test_static_solids_have_no_memory(place):
    solid = calculix(place, procedure="*STATIC")
    solid.start(0.0)
    once = solid.advance(0.0, 1.0, held(4, 1.0))
    assert np.array_equal(once, np.full(4, 1e-3))
    assert np.array_equal(solid.advance(1.0, 2.0, held(4, 1.0)), once)
