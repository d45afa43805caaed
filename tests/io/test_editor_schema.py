"""The schema for editors: every file of the repository fits it, and broken files are refused by it or by the reader."""

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest
from tests.io.test_filters import LINES, MAP, MODEL
from tests.io.test_inner_systems import ELSEWHERE, HERE
from typer.testing import CliRunner

import cosolve as cs
from cosolve.basics.registry import names
from cosolve.cli import app
from cosolve.io import load_system, schema
from cosolve.io.editor_schema import editor_schema

ROOT = Path(__file__).parents[2]
FILES = sorted(ROOT.glob("examples/*/*.toml"))
PAGE = (ROOT / "docs" / "system-files.md").read_text()
ON_THE_PAGE = dict(re.findall(r"^```toml\n# (\S+)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL))

#: Groups of names that stand in system files.
GROUPS = ("methods", "correctors", "treatments", "startups", "subsystems", "adapters")

SCHEMA = jsonschema.Draft202012Validator(editor_schema())


def complaints(text: str) -> list[str]:
    return [error.message for error in SCHEMA.iter_errors(tomllib.loads(text))]


def test_it_is_a_schema():
    SCHEMA.check_schema(SCHEMA.schema)


@pytest.mark.covers("IJ-42")
def test_every_file_of_the_repository_fits():
    assert len(FILES) >= 8
    for path in FILES:
        assert complaints(path.read_text()) == [], path
    assert len(ON_THE_PAGE) >= 4
    for name, text in ON_THE_PAGE.items():
        assert complaints(text) == [], name
    for text in (HERE, ELSEWHERE):
        assert complaints(text) == []


def test_it_knows_every_key_and_every_name():
    """All tables that the reader has, and methods and correctors with all their options."""
    tables = [t for t in vars(schema).values() if isinstance(t, type) and issubclass(t, schema.Table)]
    known = {**SCHEMA.schema["$defs"], "SystemTable": SCHEMA.schema}
    for table in tables:
        if table not in (schema.Table, schema.PartsTable):
            expected = {field.alias or name for name, field in table.model_fields.items()}
            assert set(known[table.__name__]["properties"]) == expected, table
    text = json.dumps(SCHEMA.schema)
    assert all(f'"{name}"' in text for group in GROUPS for name in names(group))
    assert '"accept_unconverged"' in text


GOOD = (
    LINES
    + MAP
    + """
[[laws]]
inputs = {"d.f" = 1}
linear = {"d.x" = -2.0}

[subsystems.d]
kind = "linear"
A = [[-1.0]]
B = [[1.0]]
C = [[1.0]]
x0 = [1.0]
inputs = ["f"]
outputs = [{name = "x", unit = "m"}]

[subsystems.control]
kind = "pid"
K_P = 2.0
inputs = ["u"]
outputs = ["y"]

[subsystems.bar]
kind = "structure"
M = [1.0]
K = [[2.0]]
integrator = "trapezoidal"
inputs = [{name = "f", dofs = 0, what = "force"}]
outputs = [{name = "u", dofs = 0, what = "displacement"}]

[constants]
control.u = 0.0

[inputs]
bar.f = {times = [0.0, 1.0], values = [0.0, 1.0]}

[simulation]
t_end = 0.2
method = {name = "implicit", degree = 1, corrector = {name = "newton", refresh = "step"}}
step = 0.1

[output]
every = 1
"""
)

#: a line, what it becomes, and whether an editor sees that it is wrong (else only the reader does)
BROKEN = [
    ("[simulation]", "[simulaton]", True),
    ("t_end = 0.2", 't_end = "soon"', True),
    ("t_end = 0.2", "t_end = -0.2", False),
    ("t_end = 0.2\n", "", True),
    ("step = 0.1", "step = -0.1", True),
    ("step = 0.1", "step = {rtoll = 1e-3}", True),
    ('name = "implicit"', 'name = "implict"', True),
    ('refresh = "step"', 'refresh = "often"', True),
    ('refresh = "step"', 'refesh = "step"', True),
    ("degree = 1", "degree = 1.5", True),
    ("every = 1", "every = 0", True),
    ("A = [[-1.0]]", "A = [-1.0]", True),
    ("A = [[-1.0]]", "A = [[-1.0, 2.0]]", False),
    ("x0 = [1.0]\n", "", True),
    ('kind = "pid"', 'kind = "pdi"', True),
    ("K_P = 2.0", "K_p = 2.0", True),
    ("K_P = 2.0", "K_P = [2.0, 3.0]", False),
    ('what = "force"', 'what = "push"', True),
    ('integrator = "trapezoidal"', 'integrator = "trapezodial"', False),
    ('dofs = 0, what = "displacement"', 'dofs = 7, what = "displacement"', False),
    ("control.u = 0.0", 'control.u = "off"', True),
    ("control.u = 0.0", "control.v = 0.0", False),
    ("times = [0.0, 1.0], values", "time = [0.0, 1.0], values", True),
    ('map = "mortar"', 'map = "mortars"', True),
    ('mesh = "coarse"', 'mash = "coarse"', True),
    ("line = [0.0, 1.0, 2.0]", "line = [0.0, 1.0, 2.0]\nclosed = 1", True),
    ('from = "a.y"', 'form = "a.y"', True),
    ('linear = {"d.x" = -2.0}', 'linear = {"d.x" = true}', True),
    ('linear = {"d.x" = -2.0}', 'linear = {"d.q" = -2.0}', False),
    ("degree = 1", 'degree = 1, atol = {"d.ff" = 1e-3}', False),
    ('{name = "newton", refresh = "step"}', '{name = "secant", pairs = [["d.f", "d.q"]]}', False),
    ("[[laws]]", "[[part.laws]]", True),
]


def load(folder: Path, text: str):
    (folder / "parts.py").write_text(MODEL)
    (folder / "system.toml").write_text(text)
    return load_system(folder / "system.toml")


def test_the_good_file_is_good(tmp_path):
    assert complaints(GOOD) == []
    load(tmp_path, GOOD)


@pytest.mark.covers("IJ-42")
@pytest.mark.parametrize(
    ("old", "new", "seen"), BROKEN, ids=[new.strip() or f"no {old.strip()}" for old, new, _ in BROKEN]
)
def test_broken_files_are_refused(tmp_path, old, new, seen):
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    assert bool(complaints(text)) == seen
    with pytest.raises(cs.errors.SetupError, match=r"^system\.toml, line \d+|^system\.toml: "):
        load(tmp_path, text)


def test_the_command_prints_it(tmp_path):
    shown = CliRunner().invoke(app, ["schema"])
    assert json.loads(shown.stdout) == SCHEMA.schema
    written = CliRunner().invoke(app, ["schema", "--out", str(tmp_path / "cosolve.json")])
    assert written.exit_code == 0
    assert json.loads((tmp_path / "cosolve.json").read_text()) == SCHEMA.schema
    refused = CliRunner().invoke(app, ["schema", "--out", str(tmp_path / "no" / "cosolve.json")])
    assert refused.exit_code == 2
    assert "choose another file" in refused.stderr
