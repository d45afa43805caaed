"""`cosolve crosscheck` on our own FMUs: good ones, one that crashes, one that hangs, and files that are none."""

import json
import os
import shutil
import sys
import zipfile

import numpy as np
import pytest
from tests.fmu.build import fmu
from typer.testing import CliRunner

import cosolve as cs
from cosolve.cli import app
from cosolve_crosscheck import crosscheck
from cosolve_crosscheck.cases import find_cases
from cosolve_crosscheck.verdict import difference, judged, repeated
from cosolve_crosscheck.worker import Outcome, run

PATIENT = 300.0  # seconds: no run below is judged by how busy the machine is


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """One cross-check of a folder with a bit of everything; `rows[file, kind]`."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "sub").mkdir()
    shutil.copy(fmu("mass_both", 2), folder / "both.fmu")
    shutil.copy(fmu("mass_both", 2), folder / "sub" / "twin.fmu")
    shutil.copy(fmu("mass_crash", 2), folder / "crash.fmu")
    (folder / "text.fmu").write_text("this is no archive\n")
    with zipfile.ZipFile(fmu("types", 3)) as archive:
        archive.extractall(folder / "unpacked")
    ball, mass = cs.load_fmu(fmu("ball", 2)), cs.load_fmu(fmu("mass_force", 2))
    system = cs.System({"ball": ball, "mass": mass})
    system.connect("ball.bounces", "mass.f")
    system.connect("ball.rising", "ball.push")
    cs.fmi.write_ssp(system, folder / "pair.ssp", method=cs.Jacobi(0), step=0.01, t_end=1.0)
    (folder / "readme.txt").write_text("not looked at")
    return crosscheck(folder, timeout=PATIENT, jobs=2, max_steps=80)


def row(found, file, kind):
    return next(r for r in found.rows if (r.file, r.kind) == (file, kind))


def test_every_file_is_a_row_and_a_copy_is_none(found):
    assert [(r.file, r.kind) for r in found.rows] == [
        ("both.fmu", "co-simulation"),
        ("both.fmu", "model exchange"),
        ("crash.fmu", "co-simulation"),
        ("pair.ssp", "SSP"),
        ("text.fmu", "unknown"),
        ("unpacked", "co-simulation"),
    ]
    assert row(found, "both.fmu", "co-simulation").copies == ("sub/twin.fmu",)


def test_co_simulation_gives_the_bits_of_fmpy_twice(found):
    for file in ("both.fmu", "unpacked"):
        one = row(found, file, "co-simulation")
        assert (one.verdict, one.difference, one.repeat) == ("equal", 0.0, "same bits"), one.reason


def test_model_exchange_is_as_near_as_two_integrators_can_be(found):
    one = row(found, "both.fmu", "model exchange")
    assert one.verdict in ("equal", "close"), one.reason
    assert one.repeat == "same bits"


def test_a_crash_costs_one_row(found):
    one = row(found, "crash.fmu", "co-simulation")
    assert one.verdict == "crash"
    assert "cosolve died of SIG" in one.reason
    assert "in the first run; FMPy died of SIG" in one.reason
    assert not found.good


def test_a_file_that_is_no_fmu_is_refused_by_both(found):
    one = row(found, "text.fmu", "unknown")
    assert one.verdict == "both refuse"
    assert "'text.fmu' is not a zip archive" in one.reason  # the path inside the folder, not that of this machine


def test_a_structure_runs_as_fmpy_runs_it(found):
    """FMPy starts all connectors at 0, as the count of bounces and the direction do, so the two must agree."""
    one = row(found, "pair.ssp", "SSP")
    assert (one.verdict, one.repeat) == ("equal", "same bits"), one.reason


def test_the_table_can_be_written(found):
    assert json.loads(json.dumps(found.to_dict()))["counts"] == found.counts
    assert found.counts["crash"] == 1
    lines = found.markdown().splitlines()
    assert len([line for line in lines if line.startswith("| ")]) == len(found.rows) + 1
    assert "5 files (1 copies of them), 6 cases" in str(found)


def test_fmpy_can_be_asked_at_the_very_points_of_cosolve():
    """Uneven points, as only a given list of them has: the loop must use them and not points of its own."""
    (case,) = [c for c in find_cases(fmu("ball", 2), 5) if c.kind == "co-simulation"]
    times = [0.0, 0.001, 0.002, 0.003, 0.004 + 1e-17, 0.005]
    outcome = run("FMPy at these points", {**case.job(), "times": times}, PATIENT)
    (found,) = outcome.traces
    assert np.array_equal(found["t"], times)
    assert np.abs(found["x"] - (1.0 - 0.5 * 9.81 * found["t"] ** 2)).max() < 1e-12  # free fall


def test_one_that_hangs_is_ended(tmp_path):
    """However slow the machine: what does not end is ended, and named."""
    shutil.copy(fmu("mass_hang", 2), tmp_path / "hang.fmu")
    (one,) = crosscheck(tmp_path, timeout=2.0, jobs=1, max_steps=80).rows
    assert one.verdict == "timeout"
    assert "not finished within 2 s" in one.reason


def test_libcosim_gives_the_same(tmp_path):
    pytest.importorskip("libcosimpy")
    shutil.copy(fmu("mass_both", 2), tmp_path / "both.fmu")
    rows = crosscheck(tmp_path, timeout=PATIENT, max_steps=80).rows
    assert rows[0].libcosim == "equal (0.0e+00)"


OMSIMULATOR = """#!{python}
import sys
given = dict(word[2:].split("=", 1) for word in sys.argv[2:])
steps, H = int(given["intervals"]), float(given["stepSize"])
assert sys.argv[1].endswith("both.fmu") and given["mode"] in ("cs", "me") and float(given["stopTime"]) == steps * H
with open(given["resultFile"], "w") as file:
    print('"time","model.root.fmu.x","model.root.fmu.v"', file=file)
    for k in range(steps + 1):
        print(k * H, 0, 0, sep=",", file=file)
"""


@pytest.mark.skipif(os.name == "nt", reason="a script as a command")
def test_omsimulator_is_asked_where_it_is_installed(tmp_path, monkeypatch):
    """A stand-in for its command that knows the solution: the mass stays at rest."""
    command = tmp_path / "bin" / "OMSimulator"
    command.parent.mkdir()
    command.write_text(OMSIMULATOR.format(python=sys.executable))
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    shutil.copy(fmu("mass_force", 2), tmp_path / "both.fmu")
    (one,) = crosscheck(tmp_path, timeout=PATIENT, max_steps=20).rows
    assert one.omsimulator == "equal (0.0e+00)"


def test_the_command(tmp_path):
    (tmp_path / "text.fmu").write_text("no archive")
    page = tmp_path / "table.md"
    words = ["crosscheck", str(tmp_path), "--markdown", str(page), "--timeout", "300"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output  # refused by both: no difference
    assert "1 both refuse" in done.output
    assert "| text.fmu |" in page.read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [({"timeout": 0}, "timeout"), ({"jobs": 0}, "jobs"), ({"max_steps": 0.5}, "max_steps")],
)
def test_bad_arguments(tmp_path, options, said):
    (tmp_path / "a.fmu").write_text("")
    with pytest.raises(cs.errors.SetupError, match=said):
        crosscheck(tmp_path, **options)


def test_a_folder_without_models(tmp_path):
    with pytest.raises(cs.errors.SetupError, match=r"no \.fmu or \.ssp file"):
        crosscheck(tmp_path)


# -- how cases are made -----------------------------------------------------------------------------------------


def described(folder, experiment):
    (folder / "binaries").mkdir(parents=True)
    (folder / "modelDescription.xml").write_text(
        f'<fmiModelDescription fmiVersion="2.0"><CoSimulation modelIdentifier="a"/>{experiment}<ModelVariables>'
        '<ScalarVariable name="u" valueReference="0" causality="input"><Real start="2"/></ScalarVariable>'
        '<ScalarVariable name="s" valueReference="1" causality="output"><String/></ScalarVariable>'
        '<ScalarVariable name="y" valueReference="1" causality="output"><Real/></ScalarVariable>'
        "</ModelVariables></fmiModelDescription>"
    )


@pytest.mark.parametrize(
    ("experiment", "t0", "step", "steps"),
    [
        ("", 0.0, 0.01, 100),
        ('<DefaultExperiment startTime="1" stopTime="3" stepSize="0.5"/>', 1.0, 0.5, 4),
        ('<DefaultExperiment stopTime="10" stepSize="0.001"/>', 0.0, 0.001, 200),  # cut, not coarser
        ('<DefaultExperiment startTime="5" stopTime="1" stepSize="x"/>', 5.0, 0.01, 100),
    ],
)
def test_the_default_experiment(tmp_path, experiment, t0, step, steps):
    described(tmp_path / "model", experiment)
    (case,) = find_cases(tmp_path, 200)
    assert (case.t0, case.step, case.steps) == (t0, step, steps)
    assert case.inputs == {"u": "2"}
    assert case.outputs == ("y",)


# -- how traces are compared ------------------------------------------------------------------------------------


def trace(values, name="y", t=None):
    return {"t": np.arange(len(values)) * 0.1 if t is None else t, name: np.array(values, dtype=float)}


@pytest.mark.parametrize(
    ("values", "word", "where"),
    [
        ([0, 1, 2, 1000], "equal", ""),
        ([0, 1, 2, 1000 + 1e-10], "equal", ""),  # relative to 1000
        ([1e-7, 1, 2, 1000], "close", "at the start only"),  # 1e-10 of 1000
        ([0, 1, 2.1, 1001], "differs", "from t = 0.2 on"),
        ([0, 1, np.nan, 1000], "differs", "t = 0.2 ... 0.2"),
    ],
)
def test_the_words(values, word, where):
    found = difference(trace(values), trace([0, 1, 2, 1000]), 0.1)
    assert (found.word, found.where) == (word, where)


def test_of_two_values_at_an_event_the_later_counts():
    theirs = trace([0.0, 5.0, 1.0], t=np.array([0.0, 0.1, 0.1]))
    assert difference(trace([0.0, 1.0]), theirs, 0.1).size == 0.0


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (Outcome(error="no"), Outcome(error="no"), "both refuse"),
        (Outcome(error="no"), Outcome([trace([1, 2])]), "only FMPy"),
        (Outcome([trace([1, 2])]), Outcome(error="no"), "only cosolve"),
        (Outcome([trace([1, 2])]), Outcome(crash="died"), "only cosolve"),
        (Outcome([trace([1, 2])], crash="died when it was freed"), Outcome([trace([1, 2])]), "crash"),
        (Outcome(late=True, crash="late"), Outcome([trace([1, 2])]), "timeout"),
        (Outcome([trace([1, 2])], error="stopped"), Outcome([trace([1, 2, 3, 4, 5])]), "only FMPy"),
        (Outcome([trace([1, 2])], error="stopped"), Outcome([trace([1, 2, 3])]), "equal"),  # both, before the end
    ],
)
def test_the_verdicts(ours, theirs, verdict):
    word, reason, _ = judged(ours, theirs, 0.1, 0.4)
    assert word == verdict
    assert word == "equal" or reason


def test_a_second_run_that_differs_is_named():
    assert repeated(Outcome([trace([1, 2]), trace([1, 2])])) == "same bits"
    assert repeated(Outcome([trace([1, 2]), trace([1, 2.5])])) == "differs by 0.25 (y, from t = 0.1 on)"
    assert repeated(Outcome([trace([1, 2])], crash="died of SIGSEGV in the second run")).startswith("died")


def test_without_fmpy(tmp_path, monkeypatch):
    shutil.copy(fmu("mass_both", 2), tmp_path / "both.fmu")
    monkeypatch.setattr("cosolve_crosscheck.check.find_spec", lambda name: None)
    with pytest.raises(
        cs.errors.SetupError, match=r"compares with FMPy, which is not installed: pip install cosolve\[validate\]"
    ):
        crosscheck(tmp_path)
