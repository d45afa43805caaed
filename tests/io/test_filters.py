"""Meshes, fields and filters in a file do what the same joins do in Python."""

import numpy as np
import pytest

import cosolve as cs
from cosolve.io import load_system
from cosolve.io.fields import Chain

MODEL = """
import numpy as np
import cosolve as cs

def ramp(size=3, unit="", start=0.0):
    return cs.Static(lambda t, u: start + np.arange(1.0, size + 1.0) * (1.0 + t), inputs=[],
                     outputs=[cs.Port("y", size, unit=unit)])

def scalar(value=2.0, unit=""):
    return cs.Static(lambda t, u: value + t, inputs=[], outputs=[cs.Port("y", unit=unit)])

def sink(size=None, unit=""):
    return cs.Static(lambda t, u: 0.0 * u, inputs=[cs.Port("u", size, unit=unit)],
                     outputs=[cs.Port("y", size, unit=unit)])

def plate(n=5):
    return cs.mapping.Mesh.line(np.linspace(0.0, 2.0, n))
"""

RUN = """
[simulation]
t_end = 0.2
method = {name = "gauss-seidel", order = ["a", "c"]}
step = 0.1
"""

LINES = """
[meshes.coarse]
line = [0.0, 1.0, 2.0]

[meshes.fine]
points = [0.0, 0.5, 1.0, 1.5, 2.0]
lines = [[0, 1], [1, 2], [2, 3], [3, 4]]

[subsystems.a]
factory = "parts:ramp"

[subsystems.b]
factory = "parts:sink"
parameters = {size = 5}

[fields]
a.y = {mesh = "coarse"}
"b.u" = {mesh = "fine"}
"""


@pytest.fixture
def load(tmp_path):
    def loader(text: str):
        (tmp_path / "parts.py").write_text(MODEL)
        (tmp_path / "system.toml").write_text(text)
        return load_system(tmp_path / "system.toml")

    return loader


def scalars(filters: str, end: str = "", name: str = "") -> str:
    return f"""
[subsystems.a]
factory = "parts:scalar"
[subsystems.c]
factory = "parts:scalar"
parameters = {{value = 10.0}}
[subsystems.b]
factory = "parts:sink"
[[connections]]
from = "a.y"
to = "b.u"
{name}
filters = [{filters}]
{end}
{RUN}
"""


@pytest.mark.covers("IJ-42")
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ("{scale = 3.0}", 6.0),
        ("{offset = -1.0}", 1.0),
        ("{add = {c.y = -0.5}}", -3.0),
        ('{scale = 2.0}, {add = {"c.y" = 1.0}}, {offset = 1.0}', 15.0),
        ('{add = {"c.y" = 1.0}}, {offset = 1.0}, {scale = 2.0}', 26.0),
    ],
    ids=["scale", "offset", "add", "in-order", "another-order"],
)
def test_filters_act_in_their_order(load, filters, expected):
    """a = 2 and c = 10 at the start; the first case a x + b y of the list is add."""
    result = load(scalars(filters)).run()
    assert result["b.u"][0] == expected


def test_a_filtered_connection_has_a_name(load):
    result = load(scalars("{scale = 3.0}", name='name = "tripled"')).run()
    assert np.array_equal(result["tripled"], result["b.u"])


def test_relaxed_prediction_passes_a_blend(load):
    """y = beta u + (1 - beta) (2 y - y before), with the start as its own past; a.y = 2 + t."""
    result = load(scalars("{weak = 0.25}").replace('["a", "c"]', '["a", "weak_b_u"]')).run()
    first = 0.25 * 2.1 + 0.75 * 2.0
    second = 0.25 * 2.2 + 0.75 * (2 * first - 2.0)
    assert result["weak_b_u.y"] == pytest.approx([2.0, first, second], abs=1e-14)
    assert result["b.u"] == pytest.approx(result["weak_b_u.y"], abs=1e-14)


@pytest.mark.covers("IJ-42")
@pytest.mark.parametrize("name", ["mortar", "dual-mortar", "nearest-neighbour", "barycentric", "radial-basis"])
def test_a_field_goes_to_another_mesh(load, name):
    text = (
        LINES
        + f'[[connections]]\nfrom = "a.y"\nto = "b.u"\nfilters = [{{map = "{name}"}}]\n'
        + RUN.replace('"c"', '"b"')
    )
    result = load(text).run()
    mapping = getattr(cs.mapping, name.replace("-", "_"))(
        cs.mapping.Mesh.line([0.0, 1.0, 2.0]), cs.mapping.Mesh.line([0.0, 0.5, 1.0, 1.5, 2.0])
    )
    assert np.array_equal(result["b.u"][0], mapping.consistent([1.0, 2.0, 3.0]))


@pytest.mark.covers("IJ-42")
def test_loads_go_back_by_the_transpose_and_keep_their_sum(load):
    """A traction on the coarse mesh as forces on the fine one: the sum is its integral."""
    text = LINES.replace('{mesh = "fine"}', '{mesh = "fine", quantity = "loads"}')
    text += '[[connections]]\nfrom = "a.y"\nto = "b.u"\nfilters = [{to_loads = "coarse"}, {map = "mortar"}]\n'
    forces = load(text + RUN.replace('"c"', '"b"')).run()["b.u"][0]
    assert forces.sum() == pytest.approx(4.0, abs=1e-13)  # of 1, 2, 3 over [0, 2]
    back = cs.mapping.mortar(cs.mapping.Mesh.line([0.0, 0.5, 1.0, 1.5, 2.0]), cs.mapping.Mesh.line([0.0, 1.0, 2.0]))
    loads = cs.mapping.field_to_loads(cs.mapping.Mesh.line([0.0, 1.0, 2.0])).consistent([1.0, 2.0, 3.0])
    assert np.abs(forces - back.conservative(loads)).max() < 1e-15


def test_loads_become_a_field_again(load):
    text = LINES.replace('a.y = {mesh = "coarse"}', 'a.y = {mesh = "coarse", quantity = "loads"}')
    text += '[[connections]]\nfrom = "a.y"\nto = "b.u"\nfilters = [{to_field = "coarse"}, {map = "barycentric"}]\n'
    found = load(text + RUN.replace('"c"', '"b"')).run()["b.u"][0]
    loads = cs.mapping.field_to_loads(cs.mapping.Mesh.line([0.0, 1.0, 2.0]))
    assert loads.consistent(found[::2]) == pytest.approx([1.0, 2.0, 3.0], abs=1e-13)


def test_units_are_converted_where_a_field_is_only_mapped(load):
    text = LINES.replace('factory = "parts:ramp"', 'factory = "parts:ramp"\nparameters = {unit = "mm"}')
    text = text.replace("{size = 5}", '{size = 5, unit = "m"}')
    text += '[[connections]]\nfrom = "a.y"\nto = "b.u"\nfilters = [{map = "barycentric"}]\n' + RUN.replace('"c"', '"b"')
    assert load(text).run()["b.u"][0] == pytest.approx([1e-3, 1.5e-3, 2e-3, 2.5e-3, 3e-3], rel=1e-12)


@pytest.mark.parametrize("way", ["npz", "vtu", "factory"])
def test_meshes_from_elsewhere(load, tmp_path, way):
    """Large meshes come from files of numpy or of mesh generators, or from a function."""
    points = np.linspace(0.0, 2.0, 5)
    lines = np.column_stack([np.arange(4), np.arange(1, 5)])
    if way == "npz":
        np.savez(tmp_path / "fine.npz", points=points, lines=lines)
    elif way == "vtu":
        import meshio

        meshio.Mesh(np.column_stack([points, 0 * points, 0 * points]), [("line", lines)]).write(tmp_path / "fine.vtu")
    given = 'factory = "parts:plate"\nparameters = {n = 5}' if way == "factory" else f'file = "fine.{way}"'
    head, rest = LINES.split("[meshes.fine]")
    text = f"{head}[meshes.fine]\n{given}\n[subsystems.a]{rest.split('[subsystems.a]')[1]}"
    if way == "vtu":  # which knows three coordinates only
        text = text.replace("line = [0.0, 1.0, 2.0]", "line = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]")
    text += '[[connections]]\nfrom = "a.y"\nto = "b.u"\nfilters = [{map = "nearest-neighbour"}]\n'
    described = load(text + RUN.replace('"c"', '"b"'))
    assert described.run()["b.u"][0].tolist()[::2] == [1.0, 2.0, 3.0]
    assert (way == "factory") == (not any(path.name.startswith("fine") for path in described.files))


def test_the_jacobian_of_a_chain():
    """Against differences, for a field with a map, a factor and something added on the way."""
    mapping = cs.mapping.barycentric(
        cs.mapping.Mesh.line([0.0, 1.0, 2.0]), cs.mapping.Mesh.line([0.0, 0.5, 1.0, 1.5, 2.0])
    )
    chain = Chain(False, [("scale", 2.0), ("map", mapping.as_law()), ("add", [-0.5]), ("offset", 3.0), ("scale", 4.0)])
    x, y = np.array([1.0, -2.0, 0.5]), np.arange(5.0)
    J = chain.jacobian(x, y).toarray()
    unit = np.eye(8)
    for k in range(8):
        moved = chain(x + unit[k, :3], y + unit[k, 3:]) - chain(x, y)
        assert np.abs(J[:, k] - moved).max() < 1e-13


MAP = '[[connections]]\nfrom = "a.y"\nto = "b.u"\nfilters = [{map = "mortar"}]\n'


@pytest.mark.covers("IJ-42")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('map = "mortar"', 'map = "morter"', "[[connections]] number 1, filters number 1: map should be"),
        ('map = "mortar"', 'mapp = "mortar"', "unknown key 'mapp'; did you mean 'map'?"),
        ('map = "mortar"', 'map = "mortar", scale = 2.0', "a filter is one of scale, offset, add, map"),
        ('map = "mortar"', "scale = 2.0, kind = 'consistent'", "options and kind belong to a filter with map"),
        ('map = "mortar"', 'map = "mortar", options = {normal = "same"}', "did you mean 'normals'?"),
        (
            'map = "mortar"',
            'to_loads = "course"',
            "filter 1: the field lies on the mesh 'coarse' here, not on 'course'",
        ),
        ('filters = [{map = "mortar"}]', "", "lies on the mesh 'coarse' and goes to the mesh 'fine'; say how: filters"),
        ('filters = [{map = "mortar"}]', "filters = [{weak = 0.5}, {scale = 2.0}]", "weak is the last filter"),
        (
            'filters = [{map = "mortar"}]',
            "filters = {scale = 2.0}",
            "filters is a list of tables, so write filters = [{...}]",
        ),
        ('{map = "mortar"}', '{map = "mortar"}, {weak = 1.5}', "beta must be a number above 0 and at most 1"),
        (
            '{map = "mortar"}',
            '{map = "mortar"}, {add = {"b.y" = 1.0, "a.z" = 2.0}}',
            "filter 2: add: 'a' has no output 'z'",
        ),
        (
            '{map = "mortar"}',
            '{map = "mortar"}, {to_loads = "fine"}',
            "arrives as loads and is wanted as a field; add {to_field",
        ),
        (
            'a.y = {mesh = "coarse"}',
            'a.y = {mesh = "course"}',
            "[fields]: there is no mesh 'course'; did you mean 'coarse'?",
        ),
        ('a.y = {mesh = "coarse"}', 'a.z = {mesh = "coarse"}', "'a.z' is no port; did you mean 'a.y'?"),
        (
            'a.y = {mesh = "coarse"}',
            'a.y = {mesh = "coarse", components = 3}',
            "carries 3 numbers, but the mesh 'coarse' has 3 points with 3 comp",
        ),
        (
            'a.y = {mesh = "coarse"}',
            'a.y = {mesh = "coarse", quantity = "load"}',
            "quantity should be 'field' or 'loads'",
        ),
        ('a.y = {mesh = "coarse"}\n', "", "map needs to know on which meshes the two ports lie; say so in [fields]"),
        (
            "line = [0.0, 1.0, 2.0]",
            "line = [0.0, 1.0, 0.5]",
            "[meshes.coarse]: coarse: the points turn back after point 1",
        ),
        ("line = [0.0, 1.0, 2.0]", 'file = "coarse.vtu"', "line 2, [meshes.coarse]: read_mesh: there is no file"),
        ("line = [0.0, 1.0, 2.0]", "", "a mesh needs exactly one of points, line, file and factory"),
        (
            "line = [0.0, 1.0, 2.0]",
            'line = [0.0, 1.0, 2.0]\ngroup = "wet"',
            "group belongs to a mesh with file, not to one with line",
        ),
        ("line = [0.0, 1.0, 2.0]", 'factory = "parts:sink"', "returned a Static, not a cosolve.mapping.Mesh"),
    ],
)
def test_what_is_refused_and_where(load, old, new, said):
    good = LINES + MAP + RUN.replace('"c"', '"b"')
    assert old in good
    load(good)
    with pytest.raises(cs.errors.SetupError) as caught:
        load(good.replace(old, new))
    assert said in str(caught.value)
    assert str(caught.value).startswith("system.toml, line ")


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ("{offset = [1.0, 2.0]}", "2 numbers come out of the filters, but 'b.u' takes 1"),
        ('{map = "mortar"}', "say so in [fields]"),
        ('{to_loads = "wet"}', "there is no mesh 'wet'; describe it in [meshes.NAME]"),
    ],
)
def test_filters_that_do_not_fit_a_number(load, filters, said):
    with pytest.raises(cs.errors.SetupError) as caught:
        load(scalars(filters))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ('mesh = "fine"', ""),
        ('mesh = "coarse"', "'d.u' lies on another mesh than 'b.u'"),
        ('mesh = "fine", quantity = "loads"', "'d.u' lies on another mesh than 'b.u'"),
    ],
)
def test_what_one_connection_feeds_lies_on_one_mesh(load, other, said):
    size = 3 if "coarse" in other else 5
    text = LINES + f'"d.u" = {{{other}}}\n'
    text = text.replace(
        "[fields]", f'[subsystems.d]\nfactory = "parts:sink"\nparameters = {{size = {size}}}\n\n[fields]'
    )
    text += '[[connections]]\nfrom = "a.y"\nto = ["b.u", "d.u"]\nfilters = [{map = "mortar"}]\n'
    text += RUN.replace('"c"', '"b", "d"')
    if said:
        with pytest.raises(cs.errors.SetupError, match=said):
            load(text)
        return
    run = load(text).run()
    assert run["d.u"][-1] == pytest.approx(run["b.u"][-1])
    assert run["d.u"][-1] == pytest.approx(1.2 * np.array([1.0, 1.5, 2.0, 2.5, 3.0]))
