"""What a new user reads: errors once, with the line that raised them; lists and tables at 50 columns."""

import io
import re
import sys
import warnings
from pathlib import Path

import pytest
from tests.cli.test_help_and_width import EXAMPLE, on_terminal
from typer.testing import CliRunner

from cosolve.cli import app
from cosolve.cli.screen import progress, told_plainly
from cosolve.errors import StabilityWarning

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["new", "car", "--template", "toml"]).exit_code == 0
    monkeypatch.chdir(tmp_path / "car")
    return tmp_path / "car"


@pytest.fixture
def broken(project):
    """The project with a division by zero in its outputs; where that stands."""
    parts = project / "parts.py"
    text = parts.read_text().replace("[x[0], x[1], suspension(x, u)]", "[1 / 0, x[1], suspension(x, u)]")
    parts.write_text(text)
    (line,) = [n for n, each in enumerate(text.splitlines(), 1) if "1 / 0" in each]
    return f"parts.py, line {line}, in <lambda>"


def test_check_says_where_a_model_failed(broken):
    done = CliRunner().invoke(app, ["check", "system.toml"])
    assert done.exit_code == 1
    assert f"division by zero (ZeroDivisionError) ({broken})" in done.output


def test_compare_says_once_what_stopped_all_methods(broken):
    done = CliRunner().invoke(app, ["compare", "system.toml"])
    assert done.exit_code == 3
    assert done.output.count("division by zero") == 1
    assert "Jacobi(1), GaussSeidel(1), SemiImplicit(1), Implicit(1): 'body' failed" in done.output
    assert f"raised  {broken}" in done.output


def test_a_syntax_error_has_its_place_once(project):
    with (project / "parts.py").open("a") as file:
        file.write("print(\n")
    done = CliRunner().invoke(app, ["run", "system.toml"])
    assert done.exit_code == 2
    assert len(re.findall(r"parts\.py, line \d+", done.output)) == 1


def test_warnings_stand_above_the_bar(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    said = Terminal()
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setenv("TERM", "xterm")
    with progress(hidden=False) as show, told_plainly() as warned:
        show(0.5)
        warnings.warn("it grows", StabilityWarning, stacklevel=1)
    assert warned == ["it grows"]
    assert "\x1b[2K" in said.getvalue().partition("cosolve: warning")[0].rpartition("━")[2]


@POSIX
@pytest.mark.parametrize("words", [["demo"], ["demo", "--list"], ["doctor"], ["check", EXAMPLE]])
def test_no_word_is_cut_at_fifty_columns(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = on_terminal(*words, columns=50)
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in said.replace("\r\n", "\n").split("\n")]
    long = [
        line for line in lines if len(line) > 50 and " " in line.strip() and not line.startswith(("next", "report"))
    ]
    assert not [line for line in long if "\r" not in line]


def test_the_demo_lists_where_a_table_has_no_room(tmp_path):
    from cosolve.demo import WIDTH, run_demo

    narrow: list[str] = []
    run_demo(tmp_path, narrow.append, wide=False)
    assert (
        "  SemiImplicit(1): before the run stable, radius 0.855, error one.x 40 %, steps 100, calls 400"
        in "\n".join(narrow)
    )
    assert WIDTH == 80


def test_an_example_warns_in_sentences(tmp_path, monkeypatch):
    from tests import processes

    (tmp_path / "examples" / "warns").mkdir(parents=True)
    Path(tmp_path, "examples", "warns", "run.py").write_text(
        '"""Warns."""\nfrom cosolve.errors import StabilityWarning, warn\nwarn("it grows", StabilityWarning)\n'
    )
    command = [sys.executable, "-m", "cosolve.cli", "demo", "warns"]
    done = processes.run(command, cwd=tmp_path, env=processes.environment(), check=True)
    assert done.stderr == "cosolve: warning: it grows\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--t-end", "1s"), "--t-end 1s: write a number of seconds, as in --t-end 0.5"),
        (("--step=5ms",), "--step 5ms: write a number of seconds, as in --step 0.5"),
        (("--degree", "x"), "--degree x: write an integer, as in --degree 1"),
        (("--input", "wheel.road=up"), "'up' is neither a number nor a file that is there; write wheel.road=2.5, or"),
    ],
    ids=["seconds", "with =", "integer", "an input"],
)
def test_values_that_are_no_numbers(project, words, sentence):
    """In words of the command line, without those of the library that reads it, and without a path of this folder."""
    done = CliRunner().invoke(app, ["run", "system.toml", *words])
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert "Input should be" not in done.stderr
    assert str(project) not in done.stderr


@pytest.mark.parametrize("command", ["run", "check", "compare"])
def test_the_method_has_one_short_flag(project, command):
    done = CliRunner().invoke(app, [command, "system.toml", "-m", "jacobi:2", "--json"])
    assert "Jacobi(2)" in done.stdout


def test_a_model_that_does_not_start_leaves_no_result(broken):
    done = CliRunner().invoke(app, ["run", "system.toml"])
    assert done.exit_code == 3
    assert "division by zero" in done.stderr
    assert "result  none" in done.stderr
    assert {path.name for path in Path().iterdir()} - {"__pycache__"} == {"README.md", "parts.py", "system.toml"}


def test_a_result_without_a_point_has_a_report(project, broken):
    """As `simulate` gives it with its error; `cosolve report` ended in a traceback."""
    import cosolve as cs
    from cosolve.io import load_system
    from cosolve.report import write_report

    described = load_system("system.toml")
    with pytest.raises(cs.errors.SimulationError) as failed:
        cs.simulate(described.system, t_end=1.0, method=cs.Jacobi(1), step=0.1)
    failed.value.result.save("nothing.h5")
    done = CliRunner().invoke(app, ["report", "nothing.h5"])
    assert done.exit_code == 0
    assert "division by zero" in write_report(failed.value.result, "page.html").read_text(encoding="utf-8")
