"""The core runs without the optional packages: none is loaded by a plain run, and a run works where none can be."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
OPTIONAL = ("fields", "multibody", "participants", "precice", "process", "viewer")

#: Refuses to import the optional packages, as if they were not installed.
WITHOUT = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("cosolve.") and name.split(".")[1] in {OPTIONAL}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""
LOADED = f"""
import sys
print([m for m in sys.modules if m.startswith("cosolve.") and m.split(".")[1] in {OPTIONAL}])
"""
RUN = """
import cosolve as cs
tank = lambda h: cs.Linear([[-1]], [[1]], [[1]], x0=[h], inputs=["q"], outputs=["h"])
system = cs.System({"one": tank(1.0), "two": tank(0.0)})
system.connect("one.h", "two.q"); system.connect("two.h", "one.q")
result = cs.simulate(system, t_end=1.0, method="implicit:1", step=0.1)
assert result["two.h"][-1] > 0.2
"""
FILE = """
[subsystems.one]
kind = "linear"
A = [[-1.0]]
B = [[1.0]]
C = [[1.0]]
x0 = [1.0]
inputs = ["q"]
outputs = ["h"]
[constants]
one.q = 0.5
[simulation]
t_end = 1.0
method = "jacobi"
step = 0.1
"""


def python(code: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(*words: str) -> str:
    """Code that carries out a command of `cosolve`, and fails where it does."""
    return f"from cosolve.cli.group import app\napp({list(words)!r}, standalone_mode=False)\n"


def test_they_are_the_layers_above_the_command_line():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["type"] == "layers")
    above = layers[: layers.index("cli")]
    assert sorted(word.strip("()") for line in above for word in line.split(" | ")) == list(OPTIONAL)


def test_a_plain_run_loads_none_of_them(tmp_path):
    (tmp_path / "tank.toml").write_text(FILE)
    assert python("import cosolve" + LOADED, tmp_path) == "[]\n"
    assert python(RUN + LOADED, tmp_path) == "[]\n"
    assert python(command("run", "tank.toml", "--quiet") + LOADED, tmp_path) == "[]\n"
    assert (tmp_path / "result.h5").exists()


def test_a_run_works_where_they_are_missing(tmp_path):
    (tmp_path / "tank.toml").write_text(FILE)
    python(WITHOUT + RUN, tmp_path)
    python(WITHOUT + command("run", "tank.toml", "--quiet", "--report", "page.html"), tmp_path)
    assert "Outputs" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "can run this system" in python(WITHOUT + command("check", "tank.toml"), tmp_path)
    shown = " ".join(python(WITHOUT + command("--help"), tmp_path).split())
    assert "Cannot be used: the command 'view' of the package 'cosolve'" in shown
    assert "Run a system file" in shown
