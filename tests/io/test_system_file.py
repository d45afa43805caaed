"""System files: they build what Python would build, and say where and what is wrong."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from examples.two_mass.model import SCHMOLL, split

import cosolve as cs
from cosolve.basics import imports
from cosolve.basics.imports import import_callable
from cosolve.io import load_system
from cosolve.io.toml_text import line_numbers

EXAMPLE = Path(__file__).parents[2] / "examples" / "two_mass" / "system.toml"

MASSES = """\
[subsystems.one]
kind = "linear"
A = [
  [0, 1],
  [-1, 0],
]
B = [[0], [1]]
C = [[1, 0], [0, 1]]
x0 = [1, 0]
inputs = ["f"]
outputs = ["x", {name = "v", unit = "m/s"}]

[subsystems.two]
kind = "linear"
A = [[0, 1], [-1, 0]]
B = [[0], [1]]
C = [[1, 0], [0, 1]]
x0 = [0, 0]
inputs = ["f"]
outputs = ["x", "v"]
"""

LAW = """
[[laws]]
name = "spring"
inputs = {"one.f" = 1, "two.f" = -1}
linear = {"two.x" = 3, "one.x" = -3}
"""

SIMULATION = """
[simulation]
t_end = 1.0
method = "semi-implicit"
step = 0.01
"""


@pytest.fixture
def write(tmp_path):
    def writer(text, name="system.toml", **modules):
        for module, source in modules.items():
            (tmp_path / f"{module}.py").write_text(source)
        path = tmp_path / name
        path.write_text(text)
        return path

    return writer


def test_the_example_is_the_model_built_in_python():
    described = load_system(EXAMPLE)
    from_file = described.run(save=None)
    in_python = cs.simulate(split("F/F", SCHMOLL), t_end=0.1, method=cs.SemiImplicit(degree=2), step=1e-4)
    for name in ("one.x", "one.v", "two.x", "two.v"):
        np.testing.assert_array_equal(from_file[name], in_python[name])
    exact = SCHMOLL.exact(from_file.t)
    # order 3 in H = 1e-4 on a coupling frequency of about 1400 rad/s: (omega H)^3 = 3e-3 per unit of displacement
    assert np.abs(from_file["one.x"] - exact[:, 0]).max() < 3e-3


def test_matrices_and_a_linear_law_need_no_python(write):
    result = load_system(write(MASSES + LAW + SIMULATION)).run()
    # x1 + x2 moves at 1 rad/s and x2 - x1 at sqrt(1 + 2 * 3) rad/s
    t = result.t
    np.testing.assert_allclose(result["one.x"] + result["two.x"], np.cos(t), atol=1e-12)
    np.testing.assert_allclose(result["two.x"] - result["one.x"], -np.cos(np.sqrt(7) * t), atol=3e-4)
    np.testing.assert_array_equal(result["spring"], -result["two.f"])


def test_functions_factories_and_equations_from_a_module_next_to_the_file(write):
    module = """
import cosolve as cs
def mass(m, x=0.0, v=0.0):
    return cs.Linear([[0, 1], [0, 0]], [[0], [1 / m]], [[1, 0], [0, 1]], x0=[x, v], inputs=["f"], outputs=["x", "v"])
def pull(x1, x2, c):
    return c * (x2 - x1)
def make_pull(c):
    return lambda x1, x2: pull(x1, x2, c)
def gap(lam, v1, v2):
    return v2 - v1
"""
    masses = """
[subsystems.one]
factory = "parts:mass"
parameters = {m = 1.0, v = 1.0}
[subsystems.two]
factory = "parts:mass"
parameters.m = 3.0
"""
    function = 'function = "parts:pull"\nparameters.c = 2.0\n'
    factory = 'factory = "parts:make_pull"\nparameters.c = 2.0\n'
    law = '[[laws]]\ninputs = {one.f = 1, two.f = -1}\nof = ["one.x", "two.x"]\n'
    by_function = load_system(write(masses + law + function + SIMULATION, parts=module)).run()
    by_factory = load_system(write(masses + law + factory + SIMULATION)).run()
    np.testing.assert_array_equal(by_function["one.x"], by_factory["one.x"])
    momentum = by_function["one.v"] + 3 * by_function["two.v"]
    np.testing.assert_allclose(momentum, 1.0, rtol=1e-12)  # force and reaction keep it

    joint = """
[[equations]]
unknowns = {lam = {"one.f" = 1, "two.f" = -1}}
residual = "parts:gap"
of = ["one.v", "two.v"]
initial = {lam = 0.0}
"""
    joined = load_system(write(masses + joint + SIMULATION)).run()
    np.testing.assert_allclose(joined["one.v"][1:], 0.25, rtol=1e-9)  # m v / (m1 + m2) = 1 / 4 after the impact

    rows = 'residual = "parts:gap"\nof = ["one.v", "two.v"]\n'
    geared = joint.replace(rows, 'linear = [{"two.v" = 2.0, "one.v" = -6.0}]\n')
    turned = load_system(write(masses + geared + SIMULATION)).run()
    np.testing.assert_allclose(turned["one.v"][1:], 0.1, rtol=1e-9)  # v1 + 3 v2 = 1 and v2 = 3 v1
    np.testing.assert_allclose(turned["two.v"][1:], 0.3, rtol=1e-9)


def test_connections_constants_and_every_option_of_a_run(write):
    tanks = """
[subsystems.a]
kind = "linear"
A = [[-1.0]]
B = [[1.0]]
C = [[1.0]]
x0 = [1.0]
inputs = ["q"]
outputs = ["h"]
[subsystems.b]
kind = "linear"
A = [[-2.0]]
B = [[2.0]]
C = [[1.0]]
x0 = [0.0]
inputs = ["q"]
outputs = ["h"]
[[connections]]
from = "a.h"
to = ["b.q"]
[constants]
a.q = 1.0
[simulation]
t_start = 1.0
t_end = 3.0
workers = 2
[simulation.method]
name = "implicit"
degree = 2
tol = 1e-9
corrector = {name = "newton", refresh = "run"}
[simulation.step]
rtol = 1e-5
max_step = 0.25
[output]
every = 2
"""
    described = load_system(write(tanks))
    assert isinstance(described.options.method, cs.Implicit)
    assert (described.options.method.tol, described.options.method.corrector.refresh) == (1e-9, "run")
    assert described.options.step == cs.Adaptive(rtol=1e-5, max_step=0.25)
    run = described.options
    assert (run.t_start, run.t_end, run.workers, run.every) == (1.0, 3.0, 2, 2)


def test_a_startup_with_a_function_of_the_user(write):
    text = """
[subsystems.clock]
factory = "clocks:clock"
[subsystems.hold]
factory = "clocks:hold"
[[connections]]
from = "clock.t"
to = "hold.u"
[simulation]
t_end = 0.2
step = 0.1
method = {name = "jacobi", degree = 1}
startup = {name = "known-history", outputs = "clocks:past"}
"""
    module = """
import cosolve as cs
clock = lambda: cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
hold = lambda: cs.Static(lambda t, u: u, inputs=["u"], outputs=["y"])
past = lambda t: {"clock.t": t}
"""
    result = load_system(write(text, clocks=module)).run()
    np.testing.assert_allclose(result["hold.y"], [0.0, 0.1, 0.2])  # without the past the first step would hold 0


def test_the_output_table_writes_files(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = '\n[output]\nfile = "out.h5"\ncsv = true\nplot = ["one.x"]\n'
    result = load_system(write(MASSES + LAW + SIMULATION + output)).run()
    assert len(result) == 101
    assert {path.name for path in tmp_path.glob("out.*")} == {"out.h5", "out.csv", "out.png"}


def test_two_files_may_each_have_their_own_module_of_the_same_name(tmp_path):
    levels = []
    for folder, level in (("first", 1.0), ("second", 2.0)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "values.py").write_text(f"LEVEL = {level}\n")
        (tmp_path / folder / "plant.py").write_text(
            "import cosolve as cs\nfrom values import LEVEL\n"
            "def source():\n    return cs.Static(lambda t, u: LEVEL, inputs=[], outputs=['y'])\n"
        )
        path = tmp_path / folder / "system.toml"
        path.write_text('[subsystems.s]\nfactory = "plant:source"\n' + SIMULATION)
        levels.append(float(load_system(path).run()["s.y"][-1]))
    assert levels == [1.0, 2.0]


GOOD = MASSES + LAW + SIMULATION


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("x0 = [1, 0]", "xo = [1, 0]", "line 9, [subsystems.one]: unknown key 'xo'; did you mean 'x0'?"),
        ("x0 = [1, 0]", "x0 = [1, 'a']", "line 9, [subsystems.one]: x0 should be a valid number, not 'a'"),
        ("x0 = [1, 0]", "", "line 1, [subsystems.one]: the key 'x0' is missing"),
        ("x0 = [1, 0]", "x0 = [1, 0, 0]", "line 1, [subsystems.one]: Linear: A has shape (2, 2), expected (3, 3)"),
        (
            'kind = "linear"',
            'kind = "lineal"',
            "line 2, [subsystems.one]: there is no kind 'lineal'; did you mean 'linear'?",
        ),
        ("[simulation]", "[simulations]", "line 27: unknown table 'simulations'; did you mean 'simulation'?"),
        ("t_end = 1.0", "", "line 27, [simulation]: the key 't_end' is missing"),
        (SIMULATION, "", "[simulation]: this table is missing"),
        ("t_end = 1.0", "t_end = -1.0", "line 28, [simulation]: t_end = -1 is not after"),
        ("t_end = 1.0", "t_end = '1'", "line 28, [simulation]: t_end should be a valid number, not '1'"),
        ("step = 0.01", "step = 0", "line 30, [simulation]: step must be a positive, finite number"),
        (
            "step = 0.01",
            "step = {rtoll = 1}",
            "line 30, [simulation]: step has no option 'rtoll'; did you mean 'rtol'?",
        ),
        ('"semi-implicit"', '"semi"', "line 29, [simulation]: there is no method 'semi'; "),
        (
            '"semi-implicit"',
            '{name = "semi-implicit", degre = 1}',
            "line 29, [simulation]: method 'semi-implicit' has no option 'degre'; did you mean 'degree'?",
        ),
        (
            '"semi-implicit"',
            '{name = "semi-implicit", degree = true}',
            "line 29, [simulation]: method 'semi-implicit': degree should be a valid integer, not True",
        ),
        ("[[laws]]", "[laws]", "line 22: there can be several of these tables, so write [[laws]] instead of [laws]"),
        ('"one.f" = 1', '"one.g" = 1', "line 22, [[laws]] number 1: law: 'one' has no input 'g'"),
        ('"two.f" = -1', '"three.f" = -1', "names the subsystem 'three', which does not exist"),
        (', "two.f" = -1', "", "line 13, [subsystems.two]: the input 'two.f' is not connected"),
        ("linear = {", "linaer = {", "line 25, [[laws]] number 1: unknown key 'linaer'; did you mean 'linear'?"),
        ("t_end = 1.0", "t_end = [1.0", "is not valid TOML"),
    ],
)
def test_complaints_name_the_line_the_table_and_the_remedy(write, old, new, complaint):
    assert old in GOOD
    path = write(GOOD.replace(old, new, 1))
    with pytest.raises(cs.errors.SetupError) as refused:
        load_system(path)
    assert complaint in str(refused.value)
    assert str(refused.value).startswith("system.toml")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ('factory = "nowhere:f"', "line 2, [subsystems.one]: there is no module 'nowhere'"),
        ('factory = "broken:f"', "importing 'broken' raised ZeroDivisionError: division by zero (broken.py, line 2)"),
        ('factory = "garbled:f"', "importing 'garbled' raised SyntaxError"),
        ('factory = "hungry:f"', "importing 'hungry' raised ModuleNotFoundError: No module named 'no_such_thing'"),
        ('factory = "math.hypot"', "write it as 'package.module:function'"),
        ('factory = "math:hypotenuse"', "'math' has no 'hypotenuse'; did you mean 'hypot'?"),
        ('factory = "math:pi"', "'math:pi' is a float, which cannot be called"),
        ('factory = "builtins:dict"', "returned a dict, not a cosolve.Subsystem"),
        ('factory = "good:f"\nparameters = {sise = 1}', "'good:f' has no parameter 'sise'; did you mean 'size'?"),
        ('factory = "good:f"', "the parameters do not fit 'good:f(size)': missing a required argument: 'size'"),
        ('factory = "good:f"\nparameters.size = "x"', "'good:f' raised ValueError: no size: x (good.py, line 2)"),
        ("parameters = {}", "give factory = 'module:function', fmu = 'file.fmu', or kind = 'linear'"),
        ("factory = 3", "line 2, [subsystems.one]: factory should be a valid string, not 3"),
    ],
)
def test_complaints_about_the_code_of_the_user(write, table, complaint):
    path = write(
        f"[subsystems.one]\n{table}\n{SIMULATION}",
        broken="x = 1\n1 / 0\n",
        garbled="def f(:\n",
        hungry="import no_such_thing\n",
        good="def f(size):\n    raise ValueError(f'no size: {size}')\n",
    )
    with pytest.raises(cs.errors.SetupError) as refused:
        load_system(path)
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("extra", "complaint"),
    [
        ('[[connections]]\nfrom = "one.x"\n', "the key 'to' is missing"),
        ('[[connections]]\nfrom = "one.x"\nto = "two.f"\n', "input 'two.f' is fed twice"),
        ("[constants]\none.y = 1\n", "line 33, [constants]: set: 'one' has no input 'y'"),
        ('[output]\nplot = ["one.z"]\n', "there is nothing called 'one.z' to plot"),
        ('[[laws]]\ninputs = "one.f"\n', "[[laws]] number 2: a law needs exactly one of function, factory and linear"),
        ('[[laws]]\ninputs = "one.f"\nfunction = "math:sin"\n', "a law needs 'of'"),
        ('[[laws]]\ninputs = "one.f"\nlinear = {one.x = 1}\nof = "one.x"\n', "takes no 'of'"),
        ("[output]\nevery = 0\n", "every should be greater than or equal to 1, not 0"),
    ],
)
def test_complaints_about_further_tables(write, extra, complaint):
    with pytest.raises(cs.errors.SetupError) as refused:
        load_system(write(GOOD + "\n" + extra))
    assert complaint in str(refused.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(cs.errors.SetupError, match="there is no system file"):
        load_system(tmp_path / "nothing.toml")
    with pytest.raises(cs.errors.SetupError, match="cannot be read"):
        load_system(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(cs.errors.SetupError, match="not UTF-8"):
        load_system(tmp_path / "binary.toml")


def test_lines_of_awkward_but_valid_toml():
    text = "\n".join(
        [
            "# comment",  # 1
            'title = """',  # 2
            "[not.a.table]",
            'x = 1"""',
            '["quoted.name"] # comment',  # 5
            "a.b = [ # comment with ]",  # 6
            "  '[', # a string with a bracket",
            "]",
            "[[list]]",  # 9
            "[list.inner]",  # 10
            "k = 1",  # 11
            "[[list]]",  # 12
            "[[list.deep]]",  # 13
            "k = {v = 1}",  # 14
        ]
    )
    lines = line_numbers(text)
    assert lines["title",] == 2
    assert lines["quoted.name",] == 5
    assert lines["quoted.name", "a", "b"] == 6
    assert lines["list", 0, "inner", "k"] == 11
    assert lines["list", 1] == 12
    assert lines["list", 1, "deep", 0, "k", "v"] == 14
    assert ("not", "a", "table") not in lines


INPUTS = """
[inputs]
"one.f" = {table = "drive.csv", column = "force"}
two.f = {function = "model:push", parameters = {size = 3.0}}
"""


def test_inputs_from_tables_and_functions(write, tmp_path):
    (tmp_path / "drive.csv").write_text("t,force\n0,0\n0.335,1\n1,0\n")
    described = load_system(write(MASSES + INPUTS + SIMULATION, model="def push(t, size):\n    return size * t\n"))
    run = described.run()
    assert run["one.f"] == pytest.approx(np.interp(run.t, [0, 0.335, 1], [0, 1, 0]), abs=1e-13)
    assert run["two.f"] == pytest.approx(3 * run.t)
    assert run["two.x"][-1] == pytest.approx(3 * (1 - np.sin(1.0)), rel=1e-10)  # x'' = -x + 3 t
    points = MASSES + INPUTS.replace('{table = "drive.csv", column = "force"}', "{times = [0, 1], values = [0, 2]}")
    assert load_system(write(points + SIMULATION)).run()["one.f"][-1] == 2.0


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('column = "force"', 'column = "torque"', ["system.toml, line 23", "[inputs]", "no column 'torque'"]),
        (
            'table = "drive.csv", ',
            "",
            ["line 23, [inputs.one.f]", "exactly one of table, times (with values) and function"],
        ),
        ('"one.f"', '"one.g"', ["[inputs]", "'one' has no input 'g'"]),
        ('function = "model:push"', 'function = "model:pull"', ["[inputs]", "pull"]),
    ],
)
def test_bad_inputs_are_refused_with_their_place(write, tmp_path, old, new, words):
    (tmp_path / "drive.csv").write_text("t,force\n0,0\n1,1\n")
    with pytest.raises(cs.errors.SetupError) as caught:
        load_system(write(MASSES + INPUTS.replace(old, new) + SIMULATION, model="def push(t, size):\n    return 1.0\n"))
    for word in words:
        assert word in str(caught.value)


def test_changes_at_given_times(write):
    held = MASSES + "\n[constants]\none.f = 0.0\ntwo.f = 1.0\n\n[[changes]]\nt = 0.505\nset = {two.f = 0.0}\n"
    run = load_system(write(held + SIMULATION)).run()
    exact = (1 - np.cos(1.0)) - (1 - np.cos(1.0 - 0.505))  # x'' = -x + f with f = 1 until 0.505
    assert run["two.x"][-1] == pytest.approx(exact, rel=1e-10)
    with pytest.raises(cs.errors.SetupError, match=r"\[\[changes\]\].*'three"):
        load_system(write(held.replace("set = {two.f", "set = {three.f") + SIMULATION))


def test_a_module_of_a_package_has_one_name(tmp_path, monkeypatch):
    """Machine code that numba keeps for a file asks for the module's name: with two names it is found under one."""
    folder = tmp_path / "machines_of_a_test" / "coil"
    folder.mkdir(parents=True)
    for place in (folder.parent, folder):
        (place / "__init__.py").touch()
    (folder / "part.py").write_text("from . import other\n\ndef name():\n    return __name__, other.VALUE\n")
    (folder / "other.py").write_text("VALUE = 3\n")
    found = import_callable("part:name", folder)
    assert found() == ("machines_of_a_test.coil.part", 3)
    monkeypatch.syspath_prepend(tmp_path)
    assert importlib.import_module("machines_of_a_test.coil.part").name is found
    with pytest.raises(cs.errors.SetupError, match="there is no module 'absent' for 'absent:name'"):
        import_callable("absent:name", folder)
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "part.py").write_text("def name():\n    return __name__\n")
    assert import_callable("part:name", plain)() == "part"
    for taken in ("json", "json/inner"):  # the name of a package that was imported from elsewhere
        (tmp_path / taken).mkdir()
        (tmp_path / taken / "__init__.py").touch()
        (tmp_path / taken / "part.py").write_text("def name():\n    return __name__\n")
        assert import_callable("part:name", tmp_path / taken)() == "part"


def test_a_subsystem_of_a_function_in_a_process_of_its_own(write):
    """The same numbers; what is wrong with it there is told with its line here."""
    model = """
import os
import cosolve as cs

def decay(rate):
    if rate < 0:
        raise ValueError("it would grow")
    return cs.Linear([[-rate]], [[1.0]], [[1.0], [0.0]], x0=[1.0], inputs=["u"], outputs=["x", "zero"])
"""
    text = """
[subsystems.far]
factory = "apart:decay"
parameters = {rate = 2.0}
isolated = true
[constants]
far.u = 0.0
[simulation]
t_end = 1.0
method = "jacobi"
step = 0.25
"""
    far = load_system(write(text, apart=model))
    near = load_system(write(text.replace("isolated = true", ""), name="near.toml", apart=model))
    assert isinstance(far.system.subsystems["far"], cs.remote.Isolated)
    assert np.array_equal(far.run()["far.x"], near.run()["far.x"])
    far.system.subsystems["far"].close()
    with pytest.raises(cs.errors.SetupError, match=r"system\.toml, line 3, \[subsystems\.far\]: .*it would grow"):
        load_system(write(text.replace("2.0", "-2.0"), apart=model))
    with pytest.raises(
        cs.errors.SetupError, match=r"line 3, \[subsystems\.far\]: 'apart:decay' has no parameter 'rat'"
    ):
        load_system(write(text.replace("rate", "rat"), apart=model))


def test_another_thread_may_import_meanwhile(tmp_path, monkeypatch):
    """As the server of a live view does while an FMU made of Python builds its model."""
    (tmp_path / "kept.py").write_text("def name():\n    return 'kept'\n")
    looked = []

    def others_import_too(name, module, folder):
        looked.append(name)
        monkeypatch.setitem(sys.modules, f"imported_meanwhile_{len(looked)}", sys)
        return False

    monkeypatch.setattr(imports, "_is_homonym", others_import_too)
    assert import_callable("kept:name", tmp_path)() == "kept"
    assert looked
