"""The command line as a new user uses it: files, exit codes, one sentence when something is wrong."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests import processes
from typer.testing import CliRunner

import cosolve as cs
from cosolve.cli import app
from cosolve.result.store import load

EXAMPLE = str(Path(__file__).parents[1] / "examples" / "two_mass" / "system.toml")
TANK = """
[subsystems.tank]
factory = "tank:tank"
[simulation]
t_end = 1.0
method = "jacobi"
step = 0.1
"""
LEAKY = """
import cosolve as cs
def rhs(t, x, u):
    if t > 0.5:
        raise RuntimeError("valve stuck")
    return -x
def tank():
    return cs.Ode(rhs, lambda t, x, u: x, x0=[1.0], inputs=[], outputs=["h"], integrator="ode4", internal_step=0.1)
"""


@pytest.fixture(autouse=True)
def _in_a_new_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def _cosolve(*arguments):
    return CliRunner().invoke(app, list(arguments))


def _process(*arguments):
    return processes.run([sys.executable, "-m", "cosolve.cli", *arguments])


def _tank(module=LEAKY, text=TANK):
    Path("tank.py").write_text(module)
    Path("tank.toml").write_text(text)
    return "tank.toml"


def test_run_writes_the_result_and_says_where(tmp_path):
    done = _process("run", EXAMPLE, "--t-end", "0.02", "--csv", "--report", "look.html")
    assert done.returncode == 0
    assert done.stderr == ""  # no progress bar without a terminal
    assert "SemiImplicit(2) finished: 201 macro points, t = 0 ... 0.02" in done.stdout
    for name in ("result.h5", "result.csv", "look.html"):
        assert name in done.stdout
        assert (tmp_path / name).stat().st_size > 0
    assert load("result.h5").t[-1] == 0.02  # exactly: time is an index


def test_what_the_command_line_changes():
    done = _cosolve(
        "run", EXAMPLE, "-o", "a.h5", "--method", "gauss-seidel:1", "--step", "1e-5", "--t-end", "1e-3", "-q"
    )
    assert (done.exit_code, done.output) == (0, "")
    result = load("a.h5")
    assert result.meta["method"].startswith("GaussSeidel(degree=1")
    assert (len(result), result.t[-1]) == (101, 1e-3)
    assert _cosolve("run", EXAMPLE, "-o", "b.h5", "--degree", "0", "--t-end", "1e-3", "-q").exit_code == 0
    assert load("b.h5").meta["method"].startswith("SemiImplicit(degree=0")


def test_a_typo_in_the_file():
    Path("typo.toml").write_text(Path(EXAMPLE).read_text().replace("step =", "stp ="))
    done = _process("run", "typo.toml")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "[simulation]: unknown key 'stp'; did you mean 'step'?" in done.stderr
    assert re.search(r"line \d+", done.stderr)
    assert "Traceback" not in done.stderr
    assert not Path("result.h5").exists()


def test_debug_shows_the_traceback():
    done = _process("run", "nothing.toml", "--debug")
    assert "Traceback" in done.stderr
    assert "SetupError" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out", "missing/result.h5"], "cannot write the result to 'missing/result.h5': the folder 'missing'"),
        (["--out", "result.txt"], "results are written as HDF5 (.h5), and with .csv as CSV"),
        (["--report", "missing/report.html"], "cannot write"),
        (["--t-end", "-1"], "t_end = -1 is not after"),
        (["--step", "0"], "step must be a positive, finite number"),
        (["--method", "jacoby"], "there is no method 'jacoby'; did you mean 'jacobi'?"),
        (["--method", "jacobi:one"], "write a method as name:degree"),
        (["--method", "leader-follower"], "leader='' is not among the subsystems"),
        (["--degree", "-1"], "degree must be 0, 1, 2"),
    ],
)
def test_what_cannot_work_is_refused_before_the_run(arguments, sentence):
    done = _cosolve("run", EXAMPLE, *arguments)
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert done.stdout == ""
    assert not Path("result.h5").exists()


def test_a_run_that_stops_early_keeps_what_it_has():
    done = _process("run", _tank(), "--csv", "--report", "report.html")
    assert done.returncode == 3
    assert "valve stuck" in done.stderr
    assert "kept    result.h5: 6 macro points, t = 0 ... 0.5" in done.stderr
    assert "Traceback" not in done.stderr
    result = load("result.h5")
    np.testing.assert_allclose(result["tank.h"], np.exp(-result.t), rtol=1e-6)  # order 4 in h = 0.1: about 1e-7 a step
    assert "valve stuck" in result.error
    assert len(Path("result.csv").read_text().splitlines()) == 7
    assert Path("report.html").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_keeps_what_there_is():
    slow = "import time\n" + LEAKY.replace("if t > 0.5:", "open('at', 'a').write('.')\n    time.sleep(0.01)\n    if 0:")
    command = [sys.executable, "-m", "cosolve.cli", "run", _tank(slow), "--t-end", "1e6"]
    with processes.started(command, stderr=subprocess.PIPE) as process:
        calls = Path("at")
        assert processes.until(lambda: calls.exists() and calls.stat().st_size > 40)  # four calls a step
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate()
    assert process.returncode == 130
    assert "ended by Ctrl-C; what was computed so far is in result.h5" in stderr
    kept = load("result.h5")
    assert len(kept) > 1
    assert "KeyboardInterrupt" in kept.error


def test_check_says_what_will_happen():
    good = _cosolve("check", EXAMPLE)
    assert good.exit_code == 0
    assert "stable: spectral radius" in good.stdout
    bad = _process("check", EXAMPLE, "--method", "jacobi:1", "--step", "1e-2")  # explicit limit near H = 3e-4
    assert bad.returncode == 1
    assert "unstable" in bad.stdout


def test_compare_ranks_methods_against_a_named_reference():
    done = _cosolve("compare", EXAMPLE, "--t-end", "0.01", "--methods", "jacobi:1,semi-implicit:1,semi-implicit:2")
    assert done.exit_code == 0
    assert "against Implicit(2), step 1.25e-05" in done.output
    errors = [float(e) for e in re.findall(r"yes\D*?(\d\.\d+e-\d+)", done.output)]
    assert errors == sorted(errors, reverse=True)  # explicit, then implicit of order 2, then of order 3
    assert errors[0] > 3 * errors[1] > 9 * errors[2]


def test_compare_tells_how_much_of_all_runs_is_done():
    """One bar over all runs: it never goes back, and ends at one; the finer reference has the larger part."""
    from cosolve.analysis.compare import compare

    tank = cs.Linear([[-1]], [[1]], [[1]], x0=[1.0], inputs=["q"], outputs=["h"])
    system, told = cs.System({"tank": tank}), []
    system.set("tank.q", 0.5)
    compare(system, [cs.Jacobi(0), cs.Jacobi(1)], t_end=1.0, step=0.1, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)
    assert any(abs(share - 0.8) < 1e-12 for share in told)  # the reference is eight runs of ten


def test_compare_reports_what_fails_and_what_does_not_fit():
    done = _cosolve(
        *("compare", EXAMPLE, "--step", "1e-2", "--t-end", "2"),
        *("--methods", "jacobi:1,leader-follower,implicit:0", "--reference", "implicit:1@1e-3"),
    )
    assert done.exit_code == 0
    assert "stopped" in done.output
    assert "refused" in done.output
    assert "against Implicit(1), step 0.001" in done.output
    assert "LeaderFollower(1): LeaderFollower: leader=''" in done.output
    assert _cosolve("compare", EXAMPLE, "--reference", "implicit").exit_code == 2
    assert _cosolve("compare", EXAMPLE, "--methods", ",").exit_code == 2


def test_report_from_a_result():
    assert _cosolve("run", EXAMPLE, "-q", "--t-end", "0.01").exit_code == 0
    done = _cosolve("report", "result.h5")
    assert done.exit_code == 0
    assert Path("result.html").exists()
    missing = _cosolve("report", "nothing.h5")
    assert missing.exit_code == 2
    assert "there is no result file" in missing.stderr


def test_demo_lists_and_runs_examples():
    """Those that come with the package, from any folder, and those in a folder `examples` here."""
    shown = _cosolve("demo", "--list").output
    assert re.search(r"two_mass\s+Two-mass oscillator", shown)
    assert re.search(r"quarter_car_fmus\s+Two FMUs in a loop", shown)
    Path("examples/pump").mkdir(parents=True)
    Path("examples/pump/run.py").write_text('"""A pump and a pipe."""\nimport sys\nraise SystemExit(len(sys.argv))\n')
    assert re.search(r"pump\s+A pump and a pipe\.", _cosolve("demo", "--list").output)
    assert _process("demo", "pump", "--quick", "-o", "here").returncode == 4  # itself, --quick, --out here
    unknown = _cosolve("demo", "pmup")
    assert unknown.exit_code == 2
    assert "there is no example 'pmup'; did you mean 'pump'?" in unknown.stderr


def test_the_demo_writes_where_it_is_told(monkeypatch):
    monkeypatch.setattr("cosolve.demo.run_demo", lambda out, echo, wide: echo(f"into {out}"))
    assert _cosolve("demo", "-o", "here").output == "into here\n"


def test_version_and_help():
    import cosolve

    assert _cosolve("--version").output == f"cosolve {cosolve.__version__}\n"
    text = _cosolve("--help").output
    for command in ("run", "check", "compare", "report", "demo"):
        assert command in text


def test_inputs_are_driven_from_the_command_line():
    text = TANK_ALONE
    Path("tank.toml").write_text(text)
    Path("flow.csv").write_text("t,flow,other\n0,0,9\n1,2,9\n")
    done = _cosolve("run", "tank.toml", "-o", "a.h5", "-q", "--input", "tank.q=flow.csv:flow")
    assert (done.exit_code, done.output) == (0, "")
    assert load("a.h5")["tank.h"][-1] == pytest.approx(1.0)
    done = _cosolve("run", "tank.toml", "-o", "a.h5", "-q", "--input", "tank.q=3")
    assert load("a.h5")["tank.h"][-1] == pytest.approx(3.0)
    for words, said in (("tank.q", "a.u=drive.csv:column"), ("tank.q=flow.csv:flw", "did you mean 'flow'")):
        done = _process("run", "tank.toml", "--input", words)
        assert done.returncode == 2
        assert said in done.stderr


TANK_ALONE = """
[subsystems.tank]
kind = "linear"
A = [[0.0]]
B = [[1.0]]
C = [[1.0]]
x0 = [0.0]
inputs = ["q"]
outputs = ["h"]
[constants]
tank.q = 1.0
[simulation]
t_end = 1.0
method = "jacobi"
step = 0.5
"""


def test_the_coupling_error_on_the_command_line():
    run = ["run", EXAMPLE, "--t-end", "0.02"]
    for option in (["--error-bar"], ["--error-bar", "sure"]):
        done = _cosolve(*run, *option)
        assert done.exit_code == 0
        found = load("result.h5").error_bar
        assert found.sure == (option[-1] == "sure")
        assert f"\ncoupling error at most about {found.worst:.1e} of an output's largest value\n" in done.output
    done = _cosolve("run", "--error-bar", *run[1:], "--step", "0.002")
    assert "\nno estimate of the coupling error: the signals are not resolved" in done.output
    assert "coupling error" not in _cosolve(*run).output
    wrong = _cosolve(*run, "--error-bar=very")
    assert wrong.exit_code == 2
    assert "write --error-bar, or --error-bar sure" in wrong.output


def test_the_coupling_error_in_a_system_file():
    text = Path(EXAMPLE).read_text(encoding="utf-8").replace("t_end = 0.1", 't_end = 0.02\nerror_bar = "sure"')
    text = text.replace('"model:', '"examples.two_mass.model:')
    Path("sure.toml").write_text(text, encoding="utf-8")
    assert "coupling error at most" in _cosolve("run", "sure.toml").output
    Path("sure.toml").write_text(text.replace('"sure"', '"very"'), encoding="utf-8")
    refused = _cosolve("run", "sure.toml")
    assert refused.exit_code == 2
    assert "error_bar" in refused.output


OUTPUTS = '[output]\ncsv = true\nreport = true\nplot = ["tank.h"]\n'
HOPELESS = """
import cosolve as cs
def level(t, x, u):
    return [1 // 0]
def tank():
    return cs.Ode(lambda t, x, u: -x, level, x0=[1.0], inputs=[], outputs=["h"])
"""


@pytest.mark.parametrize("outputs", ["", OUTPUTS])
def test_a_model_that_fails_at_its_start_is_the_message(outputs):
    """Whatever is to be drawn of it."""
    done = _process("run", _tank(HOPELESS, TANK + outputs))
    assert done.returncode == 3
    assert "division" in done.stderr
    assert "raised  tank.py, line 4, in level" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_that_cannot_start_leaves_the_files_of_an_earlier_one():
    names = ("result.h5", "result.csv", "result.png", "result.html")
    good = LEAKY.replace("t > 0.5", "False")
    assert _process("run", _tank(good, TANK + OUTPUTS)).returncode == 0
    before = {name: Path(name).read_bytes() for name in names}
    done = _process("run", _tank(HOPELESS, TANK + OUTPUTS))
    assert done.returncode == 3
    assert "kept    result.h5: the result of an earlier run" in done.stderr
    assert {name: Path(name).read_bytes() for name in names} == before
    assert not list(Path().glob("*.part"))
    assert _process("run", _tank(LEAKY, TANK + OUTPUTS)).returncode == 3  # this one comes as far as t = 0.5
    assert len(load("result.h5")) == 6
