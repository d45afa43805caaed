"""`--json`: one object on stdout, with the keys that docs/command-line.md promises, also where something is wrong."""

import json
import re
from pathlib import Path

import pytest
from tests.fmu.build import fmu
from typer.testing import CliRunner

from cosolve.cli import app
from cosolve.cli.screen import plain

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples" / "two_mass" / "system.toml")
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


def said(*arguments, code=0):
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def promised(command):
    """The keys that the page lists for a command, those of every object included."""
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    table = re.search(rf"^### `cosolve {command} --json`\n(.*?)(?=^##|\Z)", page, flags=re.MULTILINE | re.DOTALL)
    assert table is not None, f"the page says nothing about {command}"
    cells = [row.split("|")[1] for row in table.group(1).splitlines() if row.startswith("| `")]
    return {"cosolve", "command", "ok", *re.findall(r"`(\w+)`", " ".join(cells))}


def test_run():
    found = said("run", EXAMPLE, "--t-end", "0.01", "--report", "look.html")
    assert set(found) == promised("run")
    assert (found["command"], found["ok"], found["points"], found["t_end"]) == ("run", True, 101, 0.01)
    assert found["files"] == {"result": "result.h5", "csv": None, "plot": None, "report": "look.html"}
    assert found["stats"]["steps"] == 100
    assert found["error"] is None


def test_a_run_that_stops_early():
    Path("tank.py").write_text(LEAKY)
    Path("tank.toml").write_text(TANK)
    found = said("run", "tank.toml", code=3)
    assert set(found) == promised("run")
    assert not found["ok"]
    assert "valve stuck" in found["error"]
    assert (found["points"], found["t_end"]) == (6, 0.5)  # what there is, is kept
    assert found["stats"]["max_residual"] is None  # not NaN, which is no JSON


def test_check():
    found = said("check", EXAMPLE)
    assert set(found) == promised("check")
    assert found["radius"] == pytest.approx(0.9998, abs=1e-4)
    assert {finding["code"] for finding in found["findings"]} >= {"stable"}
    assert not said("check", EXAMPLE, "--method", "jacobi:1", "--step", "1e-2", code=1)["ok"]


def test_compare():
    found = said("compare", EXAMPLE, "--t-end", "0.002", "--methods", "jacobi:1,leader-follower")
    assert set(found) == promised("compare")
    one, two = found["methods"]
    assert (one["method"], one["finished"], one["failure"]) == ("Jacobi(1)", "yes", None)
    assert 0 < one["error"] < 1
    assert two["finished"] == "refused"
    assert two["error"] is None


def test_inspect():
    assert set(said("inspect", str(fmu("mass_force", 2)))) == promised("inspect")


def test_a_trial_that_finds_a_claim_wrong_leaves_with_one(monkeypatch):
    from cosolve.fmu import trial

    good = trial.Trial("a.fmu", "a", "co-simulation", 0.1, (trial.Finding("runs", "holds", ""),), (), "")
    bad = trial.Trial("a.fmu", "a", "co-simulation", 0.1, (trial.Finding("runs", "fails", "it stops"),), (), "")
    for found, code in ((good, 0), (bad, 1)):
        monkeypatch.setattr(trial, "try_fmu", lambda *_, found=found, **__: found)
        assert said("inspect", "--try", "a.fmu", code=code)["ok"] == (code == 0)


def test_crosscheck():
    Path("models").mkdir()
    Path("models/text.fmu").write_text("no archive")
    found = said("crosscheck", "models")
    assert set(found) == promised("crosscheck")
    assert found["rows"][0]["verdict"] == "both refuse"


@pytest.mark.parametrize(
    "arguments",
    [["run", "nothing.toml"], ["check", "nothing.toml"], ["inspect", "nothing.fmu"], ["run", "--sept", "1"]],
)
def test_what_cannot_start_is_an_object_too(arguments):
    found = said(*arguments, code=2)
    assert set(found) == {"cosolve", "command", "ok", "error"}
    assert not found["ok"]
    assert "nothing" in found["error"] or "--sept" in found["error"]


def test_every_reader_takes_it():
    assert json.dumps(plain({"a": float("inf"), "b": (Path("c"),)}), allow_nan=False) == '{"a": null, "b": ["c"]}'


def test_doctor():
    assert set(said("doctor")) == promised("doctor")


def test_new():
    found = said("new", "car", "--template", "toml")
    assert set(found) == promised("new")
    assert found["made"] == ["README.md", "parts.py", "system.toml"]
    assert found["next"][0] == "cd car"


def test_docs():
    listed = said("docs")
    page = said("docs", "getting-started")
    assert set(listed) | set(page) == promised("docs")
    assert page["text"].startswith(f"# {listed['pages']['getting-started']}")


def test_demo():
    listed, found = said("demo", "--list"), said("demo")
    assert set(listed) | set(found) == promised("demo")
    assert "two_mass" in listed["examples"]
    assert Path(found["report"]).is_file()
    assert all(verdict[0].startswith("Take ") for verdict in found["verdicts"].values())
    assert not said("demo", "two_mass", code=2)["ok"]
