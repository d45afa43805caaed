"""Loops inside loops from a file: right there, in a file of its own, and what is refused."""

import shutil

import numpy as np
import pytest
from tests.fmu.build import fmu
from tests.run.nested.test_nested import nested

import cosolve as cs
from cosolve.io import load_system

MASS = """
kind = "linear"
A = [[0.0, 1.0], [-1.0, -0.3]]
B = [[0.0], [1.0]]
C = [[1.0, 0.0], [0.0, 1.0]]
inputs = ["f"]
outputs = ["x", "v"]
"""

#: the first two of three masses, as in tests/run/nested
PARTS = f"""
[ABOVEsubsystems.one]
{MASS}
x0 = [1.0, 0.0]

[ABOVEsubsystems.two]
kind = "linear"
A = [[0.0, 1.0], [-3.0, -0.3]]
B = [[0.0, 0.0], [1.0, 2.0]]
C = [[1.0, 0.0], [0.0, 1.0]]
x0 = [0.0, 0.0]
inputs = ["f", "end"]
outputs = ["x", "v"]

[[ABOVElaws]]
name = "spring"
inputs = {{"one.f" = 1, "two.f" = -1}}
linear = {{"two.x" = 2.0, "one.x" = -2.0}}
"""

OUTER = f"""
[subsystems.three]
{MASS}
x0 = [0.0, 0.5]

[[connections]]
from = "three.x"
to = "pair.end"

[[laws]]
inputs = "three.f"
linear = {{"pair.x" = 2.0, "three.x" = -2.0}}

[simulation]
t_end = 1.0
method = "jacobi"
step = 0.1
"""

PORTS = """
inputs = {end = "two.end"}
outputs = {x = "two.x", first = "one.x", spring = "spring"}
"""

HERE = f"""
[subsystems.pair]
kind = "system"
method = {{name = "implicit", degree = 1}}
substeps = 4
{PORTS}
{PARTS.replace("ABOVE", "subsystems.pair.")}
{OUTER}
"""

INNER = f"""
{PARTS.replace("ABOVE", "")}
[constants]
two.end = 0.0

[simulation]
t_end = 1.0
method = {{name = "implicit", degree = 1}}
step = 0.025
"""

ELSEWHERE = f"""
[subsystems.pair]
kind = "system"
file = "pair.toml"
{PORTS}
{OUTER}
"""


@pytest.fixture
def load(tmp_path):
    def loader(text: str, inner: str = INNER):
        (tmp_path / "pair.toml").write_text(inner)
        (tmp_path / "system.toml").write_text(text)
        return load_system(tmp_path / "system.toml")

    return loader


@pytest.mark.covers("IJ-42")
@pytest.mark.parametrize("text", [HERE, ELSEWHERE], ids=["here", "elsewhere"])
def test_a_file_gives_what_python_gives(load, text):
    """An implicit loop of four steps inside an explicit one; the file of its own runs by itself too."""
    described = load(text)
    result = described.run()
    system, pair = nested(cs.Implicit(degree=1), substeps=4)
    expected = cs.simulate(system, t_end=1.0, method=cs.Jacobi(), step=0.1)
    for name in ("pair.x", "pair.first", "pair.spring", "three.x"):
        assert np.abs(result[name] - expected[name]).max() < 1e-12, name
    assert described.system.subsystems["pair"].stats.iterations == pair.stats.iterations
    assert any(path.name == "pair.toml" for path in described.files) == (text is ELSEWHERE)


def test_the_inner_file_runs_by_itself(load, tmp_path):
    load(ELSEWHERE)
    assert len(load_system(tmp_path / "pair.toml").run()) == 41


def test_what_the_outer_file_says_counts(load):
    described = load(ELSEWHERE.replace('file = "pair.toml"', 'file = "pair.toml"\nmethod = "jacobi"\nsubsteps = 2'))
    pair = described.system.subsystems["pair"]
    described.run()
    assert isinstance(pair.method, cs.Jacobi)
    assert pair.stats.steps == 20


@pytest.mark.parametrize(
    ("text", "old", "new", "said"),
    [
        (HERE, "substeps = 4", "substep = 4", "[subsystems.pair]: unknown key 'substep'; did you mean 'substeps'?"),
        (HERE, "substeps = 4", "substeps = 0", "substeps should be greater than or equal to 1, not 0"),
        (HERE, "substeps = 4", "substeps = 4\nstep = 0.1", "give substeps or step, not both"),
        (HERE, 'method = {name = "implicit", degree = 1}', "", "a system inside needs a method"),
        (HERE, '"implicit"', '"implict"', "there is no method 'implict'; did you mean 'implicit'?"),
        (HERE, '"two.end"', '"two.ende"', "Nested: input 'end': 'two' has no input 'ende'; did you mean 'end'?"),
        (HERE, 'inputs = {end = "two.end"}', "", "the inner input 'two.end' is not connected; name it in inputs="),
        (HERE, 'x = "two.x", first', 'x = "two.y", first', "Nested: output 'x': 'two' has no output 'y'"),
        (
            HERE,
            'linear = {"two.x" = 2.0,',
            'liner = {"two.x" = 2.0,',
            "[[subsystems.pair.laws]] number 1: unknown key 'liner'",
        ),
        (HERE, '"one.x" = -2.0}', '"one.z" = -2.0}', "[[subsystems.pair.laws]] number 1: law: 'one' has no output 'z'"),
        (
            HERE,
            'kind = "system"',
            'kind = "system"\nfile = "pair.toml"',
            "comes from a file or stands right here, not both",
        ),
        (ELSEWHERE, 'file = "pair.toml"', "", "a system inside needs a file, or subsystems right here"),
        (ELSEWHERE, '"pair.toml"', '"pear.toml"', "[subsystems.pair]: there is no system file"),
        (ELSEWHERE, '"pair.toml"', '"system.toml"', "'system.toml' would be inside itself"),
    ],
)
def test_what_is_refused_and_where(load, text, old, new, said):
    assert old in text
    with pytest.raises(cs.errors.SetupError) as caught:
        load(text.replace(old, new, 1))
    assert said in str(caught.value)
    assert str(caught.value).startswith("system.toml, line ")


def test_a_mistake_in_the_inner_file_is_told_with_both_files(load):
    with pytest.raises(cs.errors.SetupError) as caught:
        load(ELSEWHERE, INNER.replace("linear = {", "lnear = {", 1))
    assert "system.toml, line " in str(caught.value)
    assert "pair.toml, line " in str(caught.value)
    assert "unknown key 'lnear'" in str(caught.value)


def test_changes_belong_into_the_outer_file(load):
    with pytest.raises(
        cs.errors.SetupError, match=r"pair\.toml, line \d+, \[\[changes\]\] number 1: a system inside takes no changes"
    ):
        load(ELSEWHERE, INNER + "\n[[changes]]\nt = 0.5\nset = {two.end = 1.0}\n")


def test_an_fmu_and_a_module_beside_the_inner_file(tmp_path):
    """Paths in the inner file are relative to that, wherever the outer one lies."""
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "springs.py").write_text("def spring(x):\n    return -2.0 * x\n")
    shutil.copy(fmu("mass_force", 2), tmp_path / "inside" / "body.fmu")
    inner = """
[subsystems.body]
fmu = "body.fmu"
[[laws]]
inputs = "body.f"
function = "springs:spring"
of = "body.x"
[simulation]
t_end = 1.0
method = "jacobi"
step = 0.1
"""
    (tmp_path / "inside" / "body.toml").write_text(inner)
    outer = """
[subsystems.loop]
kind = "system"
file = "inside/body.toml"
outputs = ["body.x"]
[simulation]
t_end = 0.5
method = "jacobi"
step = 0.1
"""
    (tmp_path / "system.toml").write_text(outer)
    described = load_system(tmp_path / "system.toml")
    alone = load_system(tmp_path / "inside" / "body.toml")
    result, expected = (cs.simulate(d.system, t_end=0.5, method=d.options.method, step=0.1) for d in (described, alone))
    assert result["loop.body.x"] == pytest.approx(expected["body.x"], abs=1e-13)
    assert {"body.fmu", "springs.py", "body.toml"} <= {path.name for path in described.files}
