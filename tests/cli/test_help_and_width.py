"""Help without misleading types, output that survives a narrow terminal, progress in logs, warnings said once."""

import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests import processes
from typer.testing import CliRunner

import cosolve as cs
from cosolve.cli import app
from cosolve.cli.screen import SECONDS
from cosolve.result.notes import Note

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "two_mass" / "system.toml")


@pytest.fixture(autouse=True)
def _in_a_new_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("words", [[], ["run"], ["report"], ["export"], ["view"], ["precice", "run"]])
def test_help_shows_flags_as_flags_and_lists_as_what_is_repeated(words):
    said = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "160"}).stdout
    assert "<bool>" not in said
    assert "<list[" not in said


def test_one_meaning_for_an_option():
    """`--out` is where something is written; what is recorded, driven or offered has names of its own."""
    helps = {
        name: CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "160"}).stdout for name in ("run", "export")
    }
    assert "--output" not in helps["run"] + helps["export"]
    assert "--input" in helps["run"]
    assert "--input" not in helps["export"]


def test_report_and_export_print_json():
    clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
    cs.simulate(cs.System({"clock": clock}), t_end=1.0, step=0.1, method=cs.Jacobi(0)).save("r.h5")
    found = json.loads(CliRunner().invoke(app, ["report", "r.h5", "--json"]).stdout)
    assert (found["command"], found["ok"], found["file"], found["report"]) == ("report", True, "r.h5", "r.html")
    Path("model.py").write_text(
        "import cosolve as cs\ndef clock():\n    return cs.Static(lambda t, u: t, inputs=[], outputs=['t'])\n"
    )
    found = json.loads(CliRunner().invoke(app, ["export", "model.py:clock", "c.fmu", "--json"]).stdout)
    assert (found["ok"], found["source"], found["fmu"]) == (True, "model.py:clock", "c.fmu")
    assert "model.py" in " ".join(found["packed"])


def on_terminal(*words, columns):
    import pty

    keeper, terminal = pty.openpty()
    env = processes.environment(TERM="xterm", COLUMNS=str(columns))
    said = []
    with processes.started([sys.executable, "-m", "cosolve.cli", *words], stdout=terminal, stderr=terminal, env=env):
        os.close(terminal)
        while True:
            try:
                said.append(os.read(keeper, 65536))
            except OSError:  # Linux says the end like this
                break
            if not said[-1]:
                break
    os.close(keeper)
    return b"".join(said).decode()


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_fifty_columns():
    said = on_terminal("compare", EXAMPLE, "--t-end", "0.002", "--methods", "jacobi:1,semi-implicit:1", columns=50)
    assert re.search(r"\d %|\d%", said)  # the bar keeps its percentage
    flat = " ".join(said.split())
    assert re.search(r"SemiImplicit\(1\): finished yes, error \S+, in \S+, calls \d+, iter\. \d+, seconds", flat)


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", EXAMPLE, "--t-end", "0.02"], "not compiled: so few steps do not repay loading machine code"),
        (["run", EXAMPLE, "--method", "none"], "there is no method 'none'"),
    ],
    ids=["result", "error"],
)
def test_lines_break_between_words(tmp_path, words, sentence):
    said = on_terminal(*words, "--out", str(tmp_path / "a.h5"), columns=50)
    lines = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", said).splitlines()
    assert sentence in " ".join(word for line in lines for word in line.split())
    assert [line for line in lines if len(line) > 50 and len(line.split()) > 1] == []


def test_a_log_gets_a_line_now_and_then():
    command = [sys.executable, "-m", "cosolve.cli", "run", EXAMPLE, "--t-end", "0.02", "-o", "a.h5"]
    lines = processes.run(command, env=processes.environment(**{SECONDS: "0"}), check=True).stderr.splitlines()
    assert lines
    assert all(re.fullmatch(r"cosolve: +\d+ % after \d+ s, .*", line) for line in lines)
    assert processes.run(command, env=processes.environment(**{SECONDS: "inf"}), check=True).stderr == ""


def test_a_warning_is_said_once(monkeypatch):
    """When it comes up, and not among the notes at the end."""
    module = sys.modules["cosolve.cli.run"]  # the package has a function of that name

    clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
    result = cs.simulate(cs.System({"clock": clock}), t_end=1.0, step=0.1, method=cs.Jacobi(0))
    for kind, level in (("growth", "warning"), ("startup", "info"), ("convergence", "error")):
        result.stats.add(Note(kind, f"about {kind}", level))
    said = []
    monkeypatch.setattr(module, "say", lambda text, _: said.append(text))
    monkeypatch.setattr(module, "_written", lambda *_: {})
    monkeypatch.setattr(module, "next_steps", lambda *_: [])
    module._say(SimpleNamespace(changes={}), result, "clock", None, ["about growth", "about convergence"])
    assert "about growth" not in said[0]
    assert "NOTE: about startup" in said[0]
    assert "ERROR: about convergence" in said[0]
