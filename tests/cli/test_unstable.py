"""A run that finishes with values that cannot be trusted says so, and ends with exit code 4."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import cosolve as cs
from cosolve.cli import app, short_run
from cosolve.cli.templates import TEMPLATES


@pytest.fixture(autouse=True)
def _car(tmp_path, monkeypatch):
    """The quarter car of `cosolve new --template toml`; Jacobi(1) is stable in it up to 9 ms."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(short_run, "LIMIT", float("inf"))  # the machine may be busy
    monkeypatch.setattr("cosolve.accuracy.growth._QUICK", float("inf"))
    TEMPLATES["toml"].write(Path())
    text = Path("system.toml").read_text(encoding="utf-8")
    Path("system.toml").write_text(text.replace('plot = ["body.z", "wheel.z"]\n', ""), encoding="utf-8")


def run(*arguments, code):
    done = CliRunner().invoke(app, ["run", "system.toml", "--method", "jacobi:1", *arguments])
    assert done.exit_code == code, done.output
    return done


def test_eight_steps_that_show_no_growth_by_themselves():
    done = run("--step", "0.2", code=4)
    sentence = "in 64 macro steps instead of 8, values grow without bound"
    assert f"cosolve: warning: {sentence}" in done.stderr
    assert f"ERROR: {sentence}" in done.stdout
    assert "next    cosolve check system.toml --method jacobi:1 --step 0.2: is the step stable" in done.stdout
    result = cs.load_result("result.h5")
    assert result.t[-1] == 1.5  # what was tried further is not in it
    assert sentence in result.stats.note("growth")


def test_json_is_not_ok():
    said = json.loads(run("--step", "0.2", "--json", code=4).stdout)
    assert not said["ok"]
    assert said["error"] is None  # it has finished
    assert [note["level"] for note in said["notes"]] == ["error"]


def test_growth_that_the_run_itself_shows():
    done = run("--step", "0.02", "--t-end", "1.5", code=4)
    assert "macro steps instead of" not in done.output
    assert "values grow without bound" in done.stderr


def test_a_short_run_that_is_stable(monkeypatch):
    tried = []
    growth = short_run._growth
    monkeypatch.setattr(short_run, "_growth", lambda *given: tried.append(growth(*given)) or tried[-1])
    run("--step", "0.005", "--t-end", "0.05", code=0)
    assert tried == [""]
    assert cs.load_result("result.h5").notes == []


@pytest.mark.parametrize("given", [["--t-end", "0.1"], ["--step", "0.2", "--pace", "1000"]])
def test_what_is_not_carried_on(given, monkeypatch):
    """A run of 20 macro steps shows growth by itself; one in real time would take its time again."""
    monkeypatch.setattr(short_run, "_growth", lambda *given: pytest.fail("a run was carried on"))
    said = run("--step", "0.005", *given, code=4 if "0.2" in given else 0).output
    assert ("values grow without bound" in said) == ("0.2" in given)  # by the maps of its own steps


def test_a_run_that_takes_long_is_not_carried_on(monkeypatch):
    monkeypatch.setattr(short_run, "LIMIT", 0.0)
    said = run("--step", "0.2", code=4).output
    assert "instead of" not in said
    assert "values grow without bound" in said  # by the maps of its own steps
