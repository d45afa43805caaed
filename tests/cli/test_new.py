"""`cosolve new`: every template runs as it is, and FMUs that are there are coupled where their names say so."""

import shutil
import sys
import tomllib
from pathlib import Path

import pytest
from tests import processes
from tests.choice import quick
from tests.fmu.build import fmu
from tests.fmu.zoo.members import animal
from typer.testing import CliRunner

from cosolve.cli import app
from cosolve.cli.templates import TEMPLATES
from cosolve.result.store import load


@pytest.fixture(autouse=True)
def _in_a_new_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def new(*arguments, code=0):
    done = CliRunner().invoke(app, ["new", *arguments])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture(scope="module")
def reference():
    """The car of the templates as one equation, by the matrix exponential: where it is after 1.5 s."""
    import numpy as np
    from scipy.linalg import expm

    c, d, m, w, k, road = 2e4, 1500.0, 300.0, 40.0, 2e5, 0.05
    A = np.array(
        [
            [0, 1, 0, 0, 0],
            [-c / m, -d / m, c / m, d / m, 0],
            [0, 0, 0, 1, 0],
            [c / w, d / w, -(c + k) / w, -d / w, k * road / w],
            [0, 0, 0, 0, 0],
        ]
    )
    return (expm(1.5 * A) @ [0, 0, 0, 0, 1])[0]


@pytest.mark.parametrize("name", quick(TEMPLATES, "toml"))
def test_every_template_runs_as_it_is(name, reference, monkeypatch):
    """The commands that it says, in the folder that it made; the car is then where it should be."""
    done = new("car", "--template", name)
    commands = [line.removeprefix("next").split() for line in done.stdout.splitlines() if line.startswith("next")]
    assert commands[0] == ["cd", "car"]
    monkeypatch.chdir("car")
    assert not Path("__pycache__").exists()
    for command in commands[1:]:
        if command[0] == "python":
            ran = processes.run([sys.executable, *command[1:]])
            assert ran.returncode == 0, ran.stderr
        else:
            ran = CliRunner().invoke(app, command[1:])
            assert ran.exit_code == 0, ran.output
    assert Path("report.html").stat().st_size > 10_000
    result = load("result.h5")
    assert result.t[-1] == 1.5
    assert result["body.z"][-1] == pytest.approx(reference, abs=5e-4)  # 1 % of the kerb, as the error bar says
    assert "car" in Path("README.md").read_text()


def test_fmus_of_ones_own():
    """Equal names connect, and what nothing feeds is held, with what would fit beside it."""
    shutil.copy(fmu("mass_force", 2), "body.fmu")
    shutil.copy(fmu("mass_spring", 3), "wheel.fmu")
    done = new("car", "--fmu", "body.fmu", "--fmu", "wheel.fmu")
    assert "held at the start value" in done.stdout
    text = Path("car/system.toml").read_text()
    written = tomllib.loads(text)
    assert list(written["subsystems"]) == ["body", "wheel"]
    assert written["connections"] == [{"from": "wheel.F", "to": "body.f"}]  # a force each
    assert written["constants"].keys() == {"wheel.x1", "wheel.v1"}
    assert "would fit: body.x" in text
    assert CliRunner().invoke(app, ["run", "car/system.toml", "-q", "--t-end", "0.01"]).exit_code == 0


def test_what_is_no_number_is_neither_connected_nor_held():
    """A text, binary data and a clock are inputs too, which a constant cannot feed."""
    for name in ("types_arrays", "clocked"):
        shutil.copy(animal(name, 3), f"{name}.fmu")
    new("two", "--fmu", "types_arrays.fmu", "--fmu", "clocked.fmu")
    written = tomllib.loads(Path("two/system.toml").read_text())
    held = {name.partition(".")[2] for name in written["constants"]}
    assert held >= {"u", "field"}
    assert not held & {"blob", "tick", "label"}


def test_names_that_say_what_they_take():
    from cosolve.cli.fmu_system import _says

    assert all(_says(port, "wheel", "z") for port in ("z", "z_wheel", "wheel.z", "wheel_z", "Wheel_Z"))
    assert not any(_says(port, "wheel", "z") for port in ("v", "zwheel", "z_body"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["here", "--template", "fmu-pare"], "there is no template 'fmu-pare'; did you mean 'fmu-pair'?"),
        (["full"], "'full' is there already and not empty"),
        (["here", "--fmu", "missing.fmu"], "there is no file 'missing.fmu'"),
        (["here", "--fmu", "full/text.fmu"], "is not a zip archive"),
        (["here", "--template", "toml", "--fmu", "a.fmu"], "--template and --fmu exclude each other"),
    ],
)
def test_what_cannot_be_made_leaves_nothing(arguments, sentence):
    Path("full").mkdir()
    Path("full/text.fmu").write_text("no archive")
    done = new(*arguments, code=2)
    assert sentence in done.stderr
    assert not Path("here").exists()


def test_a_folder_that_cannot_be_made_is_named():
    """Nothing was made, so nothing is taken away."""
    Path("file").write_text("in the way")
    assert "cannot make 'file/car': Not a directory" in new("file/car", code=2).stderr
    assert Path("file").read_text() == "in the way"


def test_what_ctrl_c_ends_leaves_nothing(monkeypatch):
    """Half a project would be in the way of the same command."""

    def write(template, folder):
        (folder / "parts.py").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(type(TEMPLATES["toml"]), "write", write)
    new("here", "--template", "toml", code=130)
    assert not Path("here").exists()
