"""An exported FMU brings its parts along: it runs in an empty folder after everything it was made from is gone."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from tests import processes
from tests.fmu.build import fmu
from typer.testing import CliRunner

import cosolve as cs
from cosolve.cli import app
from cosolve.io import load_system
from cosolve.io.fmu_export import packed_files

pytest.importorskip("pythonfmu")
pytest.importorskip("pythonfmu3")
pytest.importorskip("fmpy")

CAR = """
[subsystems.body]
factory = "cosolve:load_fmu"
parameters = {file = "parts/body.fmu", parameters = {m = 300.0, c = 0.0, d = 0.0}, start = {x = 0.05}}
[subsystems.wheel]
fmu = "../lib/wheel.fmu"
parameters = {m = 40.0, c = 2e5, d = 100.0, ck = 2e4, dk = 1500.0}
isolated = true
[[connections]]
from = "body.x"
to = "wheel.x1"
[[connections]]
from = "body.v"
to = "wheel.v1"
[[laws]]
inputs = "body.f"
factory = "laws:scaled"
parameters = {table = "../lib/factor.txt"}
of = "wheel.F"
[simulation]
t_end = 0.1
method = {name = "semi-implicit", degree = 2}
step = 2e-3
"""
LAWS = """
from pathlib import Path
class Scaled:
    def __init__(self, factor): self.factor = factor
    def __call__(self, force): return self.factor * force
def scaled(table):
    return Scaled(float(Path(table).read_text()))
"""
MODEL = """
from pathlib import Path
import cosolve as cs
from laws import Scaled
ABOVE = Path(__file__).resolve().parents[1]
def car(k=1e4, turns: int = 3, *, lib="lib"):
    body = cs.load_fmu("parts/body.fmu", parameters={"m": 300.0, "c": 0.0, "d": 0.0}, start={"x": 0.05})
    wheel = cs.load_fmu(f"{lib}/wheel.fmu", parameters={"m": 40.0, "c": 2e5, "d": 100.0, "ck": k, "dk": 1500.0})
    system = cs.System({"body": body, "wheel": wheel})
    system.connect("body.x", "wheel.x1")
    system.connect("body.v", "wheel.v1")
    system.law("body.f", Scaled(1.0), of="wheel.F")
    return system, cs.SemiImplicit(degree=2), 2e-3
def far(k=1e4):
    return car(k, lib=ABOVE / "lib")
def reader():
    number = float(Path("number.txt").read_text())
    return cs.Static(lambda t, u: number * u, inputs=["u"], outputs=["y"])
"""
RUN = """
import fmpy, json, sys
found = {}
for path, start in json.loads(sys.argv[1]).items():
    result = fmpy.simulate_fmu(path, stop_time=0.1, output_interval=0.002, start_values=start, output=["body.x"])
    found[path] = [float(x).hex() for x in result["body.x"]]
print("FOUND" + json.dumps(found))
"""


@pytest.fixture
def plant(tmp_path, monkeypatch):
    """A system file and a model in `plant`, their FMUs below it and beside it."""
    for folder in ("plant/parts", "lib", "fmus", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(fmu("mass_force", 2), tmp_path / "plant/parts/body.fmu")
    shutil.copy(fmu("mass_spring", 3), tmp_path / "lib/wheel.fmu")
    (tmp_path / "lib/factor.txt").write_text("1.0")
    for name, text in (("car.toml", CAR), ("laws.py", LAWS), ("model.py", MODEL)):
        (tmp_path / "plant" / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "plant"))
    yield tmp_path
    for name in ("model", "laws"):
        sys.modules.pop(name, None)


def test_it_runs_where_nothing_else_is(plant, monkeypatch):
    monkeypatch.chdir(plant / "plant")  # the factory opens its table from there
    result = load_system("car.toml").run()
    made = CliRunner().invoke(app, ["export", "car.toml", "../fmus/file.fmu"])
    assert made.exit_code == 0, made.output
    assert "parts/body.fmu" in made.output
    monkeypatch.chdir(plant)
    made = CliRunner().invoke(app, ["export", "plant/model.py:car", "fmus/function.fmu", "--fmi", "3.0"])
    assert made.exit_code == 0, made.output
    cs.fmi.export_fmu("plant/model.py:far", "fmus/far.fmu")
    import model

    assert Path(model.__file__).parent == plant / "plant"
    monkeypatch.chdir(plant / "plant")
    system, method, step = model.far(2e4)
    cs.fmi.export_fmu(system, "../fmus/object.fmu", method=method, step=step)
    monkeypatch.chdir(plant)
    shutil.rmtree("plant")
    shutil.rmtree("lib")
    made = {"file": {}, "function": {"k": 2e4}, "far": {"k": 2e4}, "object": {}}
    jobs = {str(plant / f"fmus/{name}.fmu"): start for name, start in made.items()}
    done = processes.run([sys.executable, "-c", RUN, json.dumps(jobs)], cwd=plant / "elsewhere")
    assert "FOUND" in done.stdout, done.stdout + done.stderr
    found = json.loads(done.stdout.rpartition("FOUND")[2])
    expected = [float(x).hex() for x in result["body.x"]]
    assert set(found) == set(jobs)
    for name, column in found.items():
        assert column == expected, name
    assert not list((plant / "elsewhere").iterdir())


def test_what_is_packed_and_what_becomes_a_parameter(plant):
    path = cs.fmi.export_fmu("plant/model.py:far", "far.fmu")
    assert packed_files(path) == [
        *("plant/model.py", "plant/laws.py", "plant/parts/body.fmu"),
        "lib/wheel.fmu",
    ]
    assert [row["name"] for row in cs.fmi.inspect_fmu(path).parameters] == ["k"]  # 'turns' counts something
    assert cs.fmi.inspect_fmu(cs.fmi.export_fmu("plant/model.py:far", "none.fmu", parameters={})).parameters == ()
    made = CliRunner().invoke(app, ["export", "plant/model.py:far", "far.fmu", "--parameter", "k=3e4"])
    assert made.exit_code == 0, made.output
    assert [row["start"] for row in cs.fmi.inspect_fmu(path).parameters] == ["30000.0"]


def test_a_result_of_an_earlier_run_is_not_packed(plant, monkeypatch):
    monkeypatch.chdir(plant / "plant")
    Path("car.toml").write_text(CAR + '[output]\nfile = "r.h5"\n')
    Path("r.h5").write_text("an earlier result")
    packed = packed_files(cs.fmi.export_fmu("car.toml", "car.fmu"))
    assert "plant/car.toml" in packed
    assert not [name for name in packed if name.endswith(".h5")]


def test_a_file_that_would_be_missing_is_found_out_before(plant):
    Path("number.txt").write_text("7.0")
    with pytest.raises(cs.errors.SetupError, match=r"cannot be built from the files .*number\.txt.*--file"):
        cs.fmi.export_fmu("plant/model.py:reader", "reader.fmu")
    made = CliRunner().invoke(app, ["export", "plant/model.py:reader", "reader.fmu", "--file", "number.txt"])
    assert made.exit_code == 0, made.output
    assert "packed  model.py, laws.py, number.txt" in made.output
    absolute = CAR.replace("../lib/factor.txt", str(plant / "lib/factor.txt"))
    Path("plant/car.toml").write_text(absolute)
    with pytest.raises(cs.errors.SetupError, match="by its full path, which leads nowhere on another machine"):
        cs.fmi.export_fmu("plant/car.toml", "car.fmu")


FAILING = """
import cosolve as cs
def tank(area=2.0):
    if area < 0:
        raise ValueError(f"an area of {area}, 100 % wrong: %s %d")
    ode = cs.Ode(lambda t, x, u: u / area, lambda t, x, u: x, x0=[1.0], inputs=["q"], outputs=["h"])
    return cs.System({"tank": ode}), cs.Jacobi(degree=0), 0.1
"""
REASONS = """
import fmpy, sys
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
path = sys.argv[1]
try:
    fmpy.simulate_fmu(path, stop_time=0.1, start_values={"area": -1.0})
except Exception as error:
    print(error)
folder = str(fmpy.extract(path))
description = fmpy.read_model_description(folder)
two = description.fmiVersion == "2.0"
fmu = (FMU2Slave if two else FMU3Slave)(
    guid=description.guid, unzipDirectory=folder, modelIdentifier="tank", instanceName="x"
)
fmu.instantiate(loggingOn=False)
if two:
    fmu.setupExperiment(startTime=0.0)
fmu.enterInitializationMode()
fmu.exitInitializationMode()
try:
    fmu.doStep(0.0, 0.15)
except Exception as error:
    print(error)
fmu.doStep(0.0, 0.2)
print("then", (fmu.getReal if two else fmu.getFloat64)([0]))
"""


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_reasons_reach_the_user_without_debug_logging(version, tmp_path):
    """A failed start says why; a wrong step is discarded with a sentence and the model stays where it was."""
    (tmp_path / "model.py").write_text(FAILING)
    path = cs.fmi.export_fmu(f"{tmp_path}/model.py:tank", tmp_path / "tank.fmu", version=version)
    done = processes.run([sys.executable, "-c", REASONS, str(path)], cwd=tmp_path)
    said = done.stdout + done.stderr
    assert "ExitInitializationMode failed" in said
    assert "an area of -1.0, 100 % wrong: %s %d" in said
    assert "DoStep failed with status 2 (discard)" in said
    assert "a step of 0.15 is not a whole multiple of the macro step 0.1" in said
    assert "then [0.2]" in said
