"""The package of docs/howto-extend.md, installed by pip: files and the command line know what it registers by name."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import LIMIT
from typer.testing import CliRunner

import cosolve as cs
from cosolve.cli import app, doctor

PAGE = Path(__file__).parents[2] / "docs" / "howto-extend.md"


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The package of the page as pip installs it, without a network."""
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    (source / "mylab.py").write_text("".join(blocks("python")[:-1]), encoding="utf-8")
    (source / "pyproject.toml").write_text(blocks("toml")[0], encoding="utf-8")
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--target", str(site)]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", *options, str(source)]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr
    return site


@pytest.fixture
def package(site, tmp_path, monkeypatch):
    """The package on the path, and the system file of the page."""
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "system.toml").write_text(blocks("toml")[1], encoding="utf-8")
    yield site
    sys.modules.pop("mylab", None)


def invoked(*words):
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.output


def peaks(result):
    return [note.text for note in result.notes if note.kind == "peak"]


def test_a_system_file_names_all_of_it(package):
    """With back = q the exact solution is q = 3 t / 1.5."""
    result = cs.load_system("system.toml").run()
    assert result.method.corrector.share == 0.6
    assert result["ramp.q"][-1] == pytest.approx(2.0, abs=1e-7)
    assert result["plate.T"][-1] == pytest.approx([1.0, 2.0, 3.0], abs=1e-6)
    assert peaks(result) == ["'ramp.q' reached 2"]
    assert cs.fields.read_fields("plate.vtkhdf").t == pytest.approx([0.0, 0.5, 1.0])


def test_the_command_line_names_all_of_it(package):
    words = ["run", "system.toml", "--json", "--observer", "peak of=plate.mean", "-o"]
    told = json.loads(invoked(*words, "held.h5", "--method", "held:0"))
    assert told["method"] == "Held(0)"
    held = cs.load_result("held.h5")
    assert held["ramp.q"][1] == pytest.approx(0.3)  # 3 * 0.1, what comes back counts one macro step later
    # q(t) = 3 t - q(t - 2 H) / 2 with two subsystems in parallel
    q = [3 * 0.1 * k for k in range(2)]
    for k in range(2, 11):
        q.append(3 * 0.1 * k - 0.5 * q[k - 2])
    assert held["ramp.q"] == pytest.approx(q)
    assert peaks(held) == [f"'ramp.q' reached {max(q):.6g}", f"'plate.mean' reached {max(q[:-1]):.6g}"]
    invoked(*words, "half.h5", "--method", "implicit(degree=0, corrector='halfway')")
    assert cs.load_result("half.h5")["ramp.q"][-1] == pytest.approx(2.0, abs=1e-7)
    assert invoked("greet", "--name", "there") == "hello there\n"
    assert "Commands of the package mylab" in invoked("--help")


def test_the_doctor_lists_what_is_registered_and_what_cannot_be_imported(package, tmp_path, monkeypatch):
    broken = tmp_path / "other" / "broken-1.0.dist-info"
    broken.mkdir(parents=True)
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[cosolve.methods]\nlost = no_such_module:Lost\n")
    monkeypatch.syspath_prepend(str(broken.parent))
    found = {finding.about: finding for finding in doctor.examine()}
    assert found["mylab"].level == "good"
    assert "mylab registers method 'held', corrector 'halfway', kind 'ramp'" in found["mylab"].text
    assert found["broken"].level == "note"
    assert "the method 'lost' of the package 'broken' cannot be used" in found["broken"].text


def test_another_process_finds_the_package_by_itself(package):
    env = dict(os.environ, PYTHONPATH=str(package))
    run = [sys.executable, "-m", "cosolve.cli", "run", "system.toml", "--method", "held:0", "--json"]
    done = subprocess.run(run, env=env, capture_output=True, text=True, timeout=LIMIT, check=True)
    assert [note["text"] for note in json.loads(done.stdout)["notes"] if note["kind"] == "peak"]


def test_state_of_a_run_with_named_observers_is_resumed(package):
    """The file is read again, and with it come its observers."""
    whole = cs.load_system("system.toml").run()
    with pytest.raises(cs.errors.SimulationError):
        cs.load_system("system.toml").run(save="run.h5", state_every=2, max_steps=5)
    again = cs.resume("run.h5", max_steps=100)
    assert (again["ramp.q"] == whole["ramp.q"]).all()
    assert cs.fields.read_fields("plate.vtkhdf").t == pytest.approx([0.0, 0.5, 1.0])


def test_the_commands_of_the_page_run(package):
    (lines,) = blocks("sh")
    for line in lines.splitlines():
        program, *words = shlex.split(line)
        assert program == "cosolve"
        invoked(*words)
