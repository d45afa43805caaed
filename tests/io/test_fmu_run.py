"""`cosolve run model.fmu`: one FMU by itself, with what its DefaultExperiment says."""

import sys
import zipfile
from pathlib import Path

import fmpy
import numpy as np
import pytest
from tests import processes
from tests.fmu.build import fmu
from typer.testing import CliRunner

import cosolve as cs
from cosolve.cli import app
from cosolve.io.fmu_run import read_fmu


@pytest.fixture(autouse=True)
def _in_a_new_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def with_experiment(name: str, fmi: int, experiment: str) -> str:
    """A copy of a test FMU with another DefaultExperiment (theirs: t = 0 ... 1, step 0.001, no tolerance)."""
    with zipfile.ZipFile(fmu(name, fmi)) as old, zipfile.ZipFile(f"{name}.fmu", "w") as new:
        for entry in old.namelist():
            data = old.read(entry)
            if entry == "modelDescription.xml":
                before = b'<DefaultExperiment startTime="0" stopTime="1" stepSize="0.001"/>'
                assert before in data
                data = data.replace(before, experiment.encode())
            new.writestr(entry, data)
    return f"{name}.fmu"


def run(*arguments: str):
    return CliRunner().invoke(app, ["run", *arguments])


@pytest.mark.parametrize("fmi", [2, 3])
def test_as_its_default_experiment_says_and_as_fmpy_runs_it(fmi):
    text = '<DefaultExperiment startTime="0.5" stopTime="2.5" stepSize="0.25" tolerance="1e-5"/>'
    path = with_experiment("mass_force", fmi, text)
    done = run(path, "--set", "c=10", "--set", "x=0.5", "--set", "f=2", "--csv", "--plot", "x", "--report", "look.html")
    assert done.exit_code == 0, done.output
    assert "mass_force.fmu finished: 9 macro points, t = 0.5 ... 2.5" in done.output
    for name in ("result.h5", "result.csv", "result.png", "look.html"):
        assert name in done.output
        assert Path(name).stat().st_size > 0
    found = cs.load_result("result.h5")
    values = {"c": 10.0, "x": 0.5, "f": 2.0}
    there = fmpy.simulate_fmu(path, start_values=values, output=["x", "v"])
    np.testing.assert_array_equal(found.t, there["time"])
    for name in ("x", "v"):
        np.testing.assert_allclose(found[f"mass_force.{name}"], there[name], rtol=0, atol=1e-14)
    assert read_fmu(path).system.subsystems["mass_force"].tolerance == 1e-5


def test_what_the_command_line_changes():
    path = str(fmu("mass_force", 2))
    assert run(path, "--t-end", "0.1", "--step", "0.05", "-q", "-o", "a.h5", "--record", "der(v)").exit_code == 0
    found = cs.load_result("a.h5")
    assert list(found.t) == [0.0, 0.05, 0.1]
    assert "mass_force.der(v)" in found.channels
    assert "mass_force.x" not in found.channels


def test_an_fmu_that_says_nothing_runs_a_second_in_500_steps():
    described = read_fmu(with_experiment("mass_force", 2, ""))
    assert (described.options.t_start, described.options.t_end, described.options.step) == (0.0, 1.0, 1 / 500)


def test_the_kind_is_chosen_and_the_tolerance_reaches_the_solver():
    """Both kinds of one FMU solve the same equation; a loose tolerance shows in model exchange, where we integrate."""
    from tests.fmu.catalogue import MODELS

    both = next(name for name, model in MODELS.items() if {"CoSimulation", "ModelExchange"} <= set(model.kinds))
    fmi = MODELS[both].versions[0]
    for words, kind in (("cs", "CoSimulationFmu"), ("model exchange", "ModelExchangeFmu"), ("ME", "ModelExchangeFmu")):
        described = read_fmu(fmu(both, fmi), kind=words)
        assert type(next(iter(described.system.subsystems.values()))).__name__ == kind
    loose = read_fmu(fmu(both, fmi), kind="me", tolerance=1e-3)
    tight = read_fmu(fmu(both, fmi), kind="me")
    noise = [next(iter(d.system.subsystems.values())).noise for d in (loose, tight)]
    assert noise[0] > 100 * noise[1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--set", "cc=1"], "has no variable 'cc'; did you mean"),
        (["--set", "c"], "--set c: write it as --set name=value"),
        (["--set", "der(x)=1"], "has no start value that can be set"),
        (["--kind", "xs"], "there is no kind 'xs' of FMU"),
        (["--kind", "me"], "is not made for model exchange, only for co-simulation"),
        (["--plot", "y"], "there is nothing called 'y' to plot; known are mass_force.x, mass_force.v"),
        (["--tolerance", "-1"], "tolerance must be a positive number"),
    ],
)
def test_what_cannot_work_is_said_in_one_sentence(arguments, sentence):
    done = run(str(fmu("mass_force", 2)), *arguments)
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert not Path("result.h5").exists()


def test_options_of_fmus_are_not_for_system_files():
    Path("a.toml").write_text("")
    done = run("a.toml", "--kind", "me")
    assert done.exit_code == 2
    assert "--kind is for running one FMU" in done.stderr


def test_inspect_shows_the_experiment_and_breaks_no_name_when_piped():
    """In a pipe there is no terminal whose width could matter."""
    path = fmu("mass_force", 2)
    long = str(Path("a" * 100 + ".fmu").absolute())
    Path(long).write_bytes(path.read_bytes())
    done = processes.run([sys.executable, "-m", "cosolve.cli", "inspect", long], check=True)
    assert "default experiment: t = 0 ... 1, step 0.001" in done.stdout
    assert long in done.stdout
    assert "with Jacobians over the step from its derivatives" in done.stdout
    assert cs.fmi.inspect_fmu(path).experiment == {"startTime": 0.0, "stopTime": 1.0, "stepSize": 0.001}
