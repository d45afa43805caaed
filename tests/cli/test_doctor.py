"""`cosolve doctor`: what is here, what is missing, and what that would give."""

import json
import tomllib
from importlib import import_module
from pathlib import Path

from typer.testing import CliRunner

from cosolve.cli import app

examined = import_module("cosolve.cli.doctor")  # the package has the command of the same name
ROOT = Path(__file__).parents[2]


def test_every_extra_is_explained():
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(known) == {*examined.EXTRAS, *examined.OF_DEVELOPERS}
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert [name for name in examined.EXTRAS if f"`{name}`" not in page] == []


def test_it_says_what_is_here():
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 0
    for words in ("with Python 3.", "numba", "machine code is compiled once", "data: sweeps"):
        assert words in done.stdout


def test_a_missing_extra_is_named_with_what_it_gives(monkeypatch):
    here = examined.version_of
    monkeypatch.setattr(examined, "version_of", lambda name: None if name == "exudyn" else here(name))
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 0  # an extra is no duty
    assert "[--]   exudyn: not here (exudyn); with it multibody models built in Exudyn" in done.stdout
    assert "pip install 'cosolve[exudyn]'" in done.stdout


def test_what_is_broken_is_an_exit_code(monkeypatch):
    here = examined.version_of
    monkeypatch.setattr(examined, "version_of", lambda name: "0.1" if name == "numpy" else here(name))
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert not found["ok"]
    broken = [finding for finding in found["findings"] if finding["level"] == "error"]
    assert broken[0]["about"] == "packages"
    assert "numpy 0.1 is not >=2.0" in broken[0]["text"]


def test_a_cache_that_cannot_be_written(monkeypatch, tmp_path):
    monkeypatch.setattr(examined.os, "access", lambda *_: False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert examined._cache().level == "note"
    assert "NUMBA_CACHE_DIR" in examined._cache().text
