"""A system before it is run, as the page shows it, and files that cannot be read."""

import pytest
from typer.testing import CliRunner

import cosolve as cs
from cosolve.cli import app
from cosolve.viewer.command import _shown
from cosolve.viewer.system_view import described

SYSTEM = """
[subsystems.tank]
kind = "linear"
A = [[-1.0]]
B = [[1.0]]
C = [[1.0]]
x0 = [1.0]
inputs = ["inflow"]
outputs = ["level"]

[constants]
tank.inflow = 0.5

[simulation]
t_end = 1
method = "jacobi"
step = 0.1
"""


def test_units_loops_and_methods():
    def gain():
        return cs.Static(lambda t, u: 0.5 * u, inputs=[cs.Port("u", unit="m")], outputs=[cs.Port("y", unit="m")])

    system = cs.System({"a": gain(), "b": gain()})
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u")
    found = described(system, cs.Jacobi(), 0.1)
    assert found["loops"] == [["b.u", "b.y", "a.u", "a.y"]]
    assert found["coupling"]["subsystems"][0]["input_units"] == ["m"]
    assert any("loop" in finding["text"] for finding in found["findings"])
    refused = {one["name"]: one["why"] for one in found["methods"] if not one["fits"]}
    assert all(refused.values())


@pytest.mark.slow
def test_the_map_agrees_with_the_critical_step(masses):
    """Green below the step at which the method loses stability, red above it; the chosen point is in the map."""
    limit = cs.analysis.critical_step(masses, cs.Jacobi(degree=1))
    found = described(masses, cs.Jacobi(degree=1), limit / 2)["map"]
    assert found["methods"][0] == "Jacobi(1)"
    for step, (_, stable) in zip(found["steps"], found["points"][0], strict=True):
        assert stable == (step < limit)
    row, column = found["chosen"]
    assert row == 0
    assert found["steps"][column] == pytest.approx(limit / 2, rel=1e-12)


def test_a_system_file(tmp_path):
    file = tmp_path / "tank.toml"
    file.write_text(SYSTEM)
    about = _shown([file], None, None, None).about()
    assert about["system"]["title"] == "tank.toml"
    assert about["system"]["coupling"]["subsystems"][0]["name"] == "tank"
    assert about["system"]["no_map"] == "Nothing is coupled here, so every step is stable."


def test_a_system_file_with_errors_is_shown_with_its_line(tmp_path, capsys):
    file = tmp_path / "tank.toml"
    file.write_text(SYSTEM.replace('outputs = ["level"]', 'outputs = "level"\nspeed = 3'))
    problem = _shown([file], None, None, None).about()["problem"]
    assert "tank.toml" in problem
    assert "line" in problem
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing.toml"], "there is no file 'nothing.toml'"),
        (["nothing.h5"], "there is no result file"),
        (["a.toml", "b.h5"], "view shows one system at a time"),
    ],
)
def test_the_command_refuses_with_a_sentence(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, ["view", "--no-browser", *arguments])
    assert found.exit_code == 2
    assert said in found.output
