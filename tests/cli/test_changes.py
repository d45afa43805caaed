"""The command line changes what a file says: `--set`, `--input`, `--isolated`, `--log`; files by their suffix."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.fmu.build import fmu
from typer.testing import CliRunner

import cosolve as cs
from cosolve.cli import app
from cosolve.fmu.log import STATUS, FmuLog
from cosolve.result.store import load

SYSTEM = """
[subsystems.one]
fmu = "one.fmu"
parameters = {m = 1.0, c = 4.0, d = 0.1}
[subsystems.two]
kind = "linear"
A = [[-1.0]]
B = [[1.0]]
C = [[1.0]]
x0 = [0.5]
inputs = ["u"]
outputs = ["y"]
[[connections]]
from = "one.x"
to = "two.u"
[constants]
"one.f" = 0.0
[simulation]
t_end = 1.0
method = "jacobi:1"
step = 0.1
"""


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(fmu("mass_force", 2), "one.fmu")
    Path("system.toml").write_text(SYSTEM)
    Path("open.toml").write_text(SYSTEM.replace('[constants]\n"one.f" = 0.0\n', ""))
    Path("f.csv").write_text("t,f\n0,0\n1,2\n")


def cosolve(*words, code=0):
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == code, done.output
    return done.output


def column(*words, name="one.v"):
    """A column of the result of a run."""
    cosolve("run", *words, "-q", "-o", "r.h5")
    return load("r.h5")[name]


def written(text):
    """The same from a file that says so itself."""
    Path("other.toml").write_text(text)
    return column("other.toml")


@pytest.mark.parametrize(
    ("words", "before", "after"),
    [
        (["--set", "one.m=2"], "m = 1.0", "m = 2.0"),  # a parameter of an FMU
        (["--set", "subsystems.one.parameters.m=2"], "m = 1.0", "m = 2.0"),
        (["--set", "one.f=3"], '"one.f" = 0.0', '"one.f" = 3.0'),  # its input
        (["--set", "constants.one.f=3"], '"one.f" = 0.0', '"one.f" = 3.0'),
        (["--input", "one.f=3"], '"one.f" = 0.0', '"one.f" = 3.0'),
        (["--input", "one.f=f.csv:f"], "[constants]\n", '[inputs]\none.f = {table = "f.csv", column = "f"}\n#'),
        (["--set", "two.x0=[2.0]"], "x0 = [0.5]", "x0 = [2.0]"),  # a key of its own table
        (["--set", "simulation.step=0.05"], "step = 0.1", "step = 0.05"),
        (["--set", "simulation.method={name = 'jacobi', degree = 2}"], "jacobi:1", "jacobi:2"),
        (["--set", "one.start.x=0.25"], "[subsystems.two]", "start = {x = 0.25}\n[subsystems.two]"),
    ],
)
def test_a_change_is_what_the_file_would_say(words, before, after):
    assert before in SYSTEM
    changed = SYSTEM.replace(before, after).replace('#"one.f" = 0.0', "")
    assert np.array_equal(
        column("system.toml", *words, "--set", "two.x0=[2.0]"), written(changed.replace("[0.5]", "[2.0]"))
    )


def test_an_open_input_is_fed_from_the_command_line():
    assert "cosolve run --input one.f=0.0" in cosolve("run", "open.toml", code=2)
    assert np.array_equal(column("open.toml", "--input", "one.f=3"), column("system.toml", "--set", "one.f=3"))
    with_table = column("open.toml", "--input", "one.f=f.csv:f")
    assert np.array_equal(with_table, column("system.toml", "--input", "one.f=f.csv:f"))
    assert with_table[-1] > 0.1


def test_the_input_of_one_fmu_needs_no_model_name():
    alone = [column("one.fmu", "--input", f"{name}=3.0", name="mass_force.v") for name in ("f", "mass_force.f")]
    assert np.array_equal(*alone)
    assert not np.array_equal(alone[0], column("one.fmu", name="mass_force.v"))


def test_what_was_changed_stands_in_the_result_and_in_what_to_do_next():
    said = cosolve("run", "system.toml", "--set", "one.m=2", "--input", "one.f=1.5", "--step", "0.05", "-o", "r.h5")
    assert "changed --set one.m=2 --input one.f=1.5" in said
    assert "cosolve run system.toml --set one.m=2 --input one.f=1.5 --step 0.05 --error-bar" in said
    assert load("r.h5").meta["changes"] == {"values": {"one.m": 2}, "inputs": ["one.f=1.5"], "step": 0.05}
    assert "changes" not in cs.load_system("system.toml").run().meta


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--set", "simulation.step=abc"], "[simulation] with simulation.step=abc: step should be a valid number"),
        (["--set", "simulation.sep=1"], "unknown key 'sep'; did you mean 'step'?"),
        (["--set", "oen.m=1"], "write it as TABLE.KEY or SUBSYSTEM.NAME; did you mean 'one'?"),
        (["--set", "one.mm=1"], "has no variable 'mm'; did you mean 'm'?"),
        (["--set", "connections.4.to=two.u"], "'4' is no place in the list, which has places 0 to 0"),
        (["--set", "simulation.step.more=1"], "there is nothing below 0.1"),
        (["--input", "one.x=1"], "with constants.one.x=1.0: set: 'one.x' is an output, but an input is needed"),
        (["--log", "one=loud"], "must be one of debug, warning, discard, error, fatal, not 'loud'"),
        (["--kind", "cs"], "--kind is for running one FMU"),
        (["-o", "r.mat"], "results are written as HDF5 (.h5), and with .csv as CSV besides"),
    ],
)
def test_a_change_that_cannot_be(words, sentence):
    assert sentence in cosolve("run", "system.toml", *words, code=2)


def test_every_fmu_in_a_process_of_its_own(monkeypatch):
    described = cs.load_system("system.toml", isolated=True)
    assert type(described.system.subsystems["one"]).__name__ == "Isolated"
    assert np.array_equal(column("system.toml", "--isolated"), column("system.toml"))
    assert np.array_equal(column("one.fmu", "--isolated", name="mass_force.x"), column("one.fmu", name="mass_force.x"))


def test_messages_of_an_fmu_from_a_level_on():
    shutil.copy(fmu("mass_warning", 2), "one.fmu")
    for level, expected in (("debug", {"warning"}), ("warning", {"warning"}), ("error", set())):
        said = cosolve("run", "system.toml", "--log", f"one={level}", "-o", "r.h5")
        assert f"log     {Path('r.one.log').absolute()}" in said
        assert {line.split()[3] for line in Path("r.one.log").read_text().splitlines()} == expected
    log = FmuLog("one", "all.log", "warning")
    for status in range(5):
        log.add(status, "", STATUS[status])
    log.close()
    assert [line.split()[3] for line in Path("all.log").read_text().splitlines()] == list(STATUS[1:5])
    assert "did you mean 'one'?" in cosolve("run", "one.fmu", "--log", "oen=debug", code=2)


def test_the_suffix_says_what_is_written():
    cosolve("run", "system.toml", "-q", "-o", "r.csv")
    assert Path("r.csv").read_text().splitlines()[0].startswith("t")
    assert len(load("r.h5").t) == 11


def test_an_open_input_becomes_an_input_of_the_exported_fmu():
    cosolve("export", "open.toml", "open.fmu")
    assert [row["name"] for row in cs.fmi.inspect_fmu("open.fmu").inputs] == ["one.f"]


def test_a_system_of_fmus_is_exported_as_an_ssp_and_changed_there():
    Path("two.toml").write_text(
        SYSTEM.partition("[subsystems.two]")[0] + "[constants]\n" + SYSTEM.partition("[constants]\n")[2]
    )
    assert cosolve("export", "two.toml", "two.ssp") == "ssp     two.ssp\n"
    words = ["--set", "one.m=2", "--input", "one.f=1"]
    assert np.array_equal(column("two.ssp", *words), column("two.toml", *words))
    assert "did you mean 'one'?" in cosolve("run", "two.ssp", "--set", "oen.m=2", code=2)
    assert "write_ssp: 'two' is a Linear" in cosolve("export", "system.toml", "all.ssp", code=2)
    assert "--file is for FMUs" in cosolve("export", "two.toml", "two.ssp", "--file", "f.csv", code=2)


def test_several_fmus_lead_to_a_project():
    said = cosolve("run", "one.fmu", "two.fmu", code=2)
    assert said.rstrip().endswith("FMUs are coupled in a project: cosolve new NAME --fmu one.fmu --fmu two.fmu")
