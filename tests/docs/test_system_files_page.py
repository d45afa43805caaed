"""docs/system-files.md specifies system files: it names every key, and its files run."""

import inspect
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.fmu.build import fmu

from cosolve.basics import registry
from cosolve.io import load_system, schema
from cosolve.io.kinds import linear, pid, structure

PAGE = (Path(__file__).parents[2] / "docs" / "system-files.md").read_text()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files of the page, each named in its first line."""
    for _, name, text in re.findall(r"^```(toml|python)\n# (\S+)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(text)
    shutil.copy(fmu("mass_force", 2), tmp_path / "body.fmu")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_names_every_key_of_every_table():
    tables = [t for t in vars(schema).values() if isinstance(t, type) and issubclass(t, schema.Table)]
    assert len(tables) > 10
    documented = set(re.findall(r"`([A-Za-z_]\w*)`", "\n".join(re.findall(r"^\| `.*?\|", PAGE, flags=re.MULTILINE))))
    for table in tables:
        for name, field in table.model_fields.items():
            key = field.alias or name
            if table in (schema.SystemTable, schema.PartsTable):
                assert re.search(rf"`\[\[?{key}\]?\]`|`\[{key}\.NAME\]`", PAGE), key
            else:
                assert key in documented, f"{table.__name__}.{key}"
    for factory in (linear, pid, structure):
        for key in inspect.signature(factory).parameters:
            assert key in documented, f"{factory.__name__}.{key}"


def test_the_complete_file_uses_every_key_of_its_tables_and_runs(folder):
    described = load_system("car.toml")
    result = described.run()
    assert list(result.channels) == ["body.x", "wheel.x", "suspension"]
    assert len(result) == 501  # every second of 1000 steps, and the start
    assert Path("car.csv").exists()
    assert Path("car.png").exists()
    # it settles on the road, 10 mm up: 40 mm decay with (d + gain) / 2 m = 2.5 per second
    assert abs(result["body.x"][-1] - 0.01) < 1.2 * 0.04 * np.exp(-2.5 * 2)
    assert abs(result["wheel.x"][-1] - 0.01) < 1.2 * 0.04 * np.exp(-2.5 * 2)
    text = PAGE.partition("# car.toml")[2].partition("```")[0]
    keys = [
        name for table in (schema.FmuTable, schema.SimulationTable, schema.OutputTable) for name in table.model_fields
    ]
    for name in [*keys, *schema.PortTable.model_fields, *inspect.signature(linear).parameters]:
        assert re.search(rf"\b{name} = ", text), name


def test_the_rigid_joint_holds(folder):
    result = load_system("joint.toml").run()
    assert np.abs(result["one.x"] - result["two.x"]).max() < 1e-12
    # two masses of 1 as one: 2 x'' + 2 x' + 10 x = 0, order 1 with degree 0 and H = 0.01
    t, w = result.t, np.sqrt(5 - 0.25)
    exact = np.exp(-t / 2) * (np.cos(w * t) + np.sin(w * t) / (2 * w))
    assert np.abs(result["one.x"] - exact).max() < 0.02


def test_the_names_of_methods_are_all_there():
    row = next(line for line in PAGE.partition("## The run")[2].splitlines() if line.startswith("| `method`"))
    for name in registry.names("methods"):
        assert f"`{name}`" in row


def test_the_controller_holds_the_structure(folder):
    described = load_system("held.toml")
    result = described.run()
    assert abs(result["chain.x"][-1] - 0.1) < 1e-3  # the set point, by its integral
    assert abs(result["control.f"][-1]) > 0.1  # against the load
    text = PAGE.partition("# held.toml")[2].partition("```")[0]
    for factory in (structure, pid, schema.PlaceTable):
        for name in inspect.signature(factory).parameters:
            assert re.search(rf"\b{name} = ", text), name


def test_the_string_keeps_forces_and_constants(folder):
    described = load_system("string.toml")
    result = described.run()
    assert np.abs(result["string.u"][-1]).max() <= 1.0
    # the mapped forces have the sum of the pressure's integral: trapezoidal rule for fields linear between points
    pressure, forces = result["fluid.p"][-1], result["drag"][-1]
    assert abs(forces.sum() + 0.2 * (pressure[1:-1].sum() + 0.5 * (pressure[0] + pressure[-1]))) < 1e-8


def test_the_tanks_exchange_inside(folder):
    described = load_system("tanks.toml")
    result = described.run()
    pair = described.system.subsystems["pair"]
    assert pair.stats.steps == 4 * result.stats.steps
    # the quick exchange is done soon, then both have the same level
    assert abs(result["pair.flow"][-1]) < 0.05
    assert "inner macro steps" in result.stats.note("nested")
