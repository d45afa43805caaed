"""SSPs as other tools write them: connectors without a unit, mappings half filled in, foreign annotations."""

import pytest
from tests.io.ssp.structure import UNITS, Boxes, archive, bound, component, connection, description, real
from tests.io.ssp.test_bad_input import FED, A, B, top
from tests.io.ssp.test_read import values

import cosolve as cs
from cosolve.io.ssp import document


def read(tmp_path, system, rest=UNITS, ports=None, **options):
    boxes = Boxes(ports or {"a": ([], ["y"]), "b": (["u"], ["y"])})
    made = cs.fmi.read_ssp(archive(tmp_path / "x.ssp", description(system, rest)), component=boxes, **options)
    return made, boxes


# -- units -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("between", "expected"),
    [("", 0.02), ("mm", 0.02), ("m", 0.02)],
    ids=["a connector without a unit", "converted behind it", "converted before it"],
)
def test_millimetres_arrive_as_metres_once(tmp_path, between, expected):
    """20 mm through the connector of a nested system to an input in m are 0.02 m, wherever the unit is said."""
    unit = f"<ssc:Real unit='{between}'/>" if between else ""
    nested = (
        f'<ssd:System name="sub"><ssd:Connectors><ssd:Connector name="in" kind="input">{unit}</ssd:Connector>'
        f"</ssd:Connectors><ssd:Elements>{component('b', {'u': 'm'}, {'y': ''})}</ssd:Elements>"
        f"<ssd:Connections>{connection('in', 'b.u')}</ssd:Connections></ssd:System>"
    )
    system = top(connection("a.y", "sub.in"), A + nested, bound(real("a.k", 20.0)))
    made, _ = read(tmp_path, system, ports={"a": ([], ["y"]), "sub/b": (["u"], ["y"])})
    assert values(made)["sub/b.y"] == pytest.approx(expected, rel=1e-15)


IN_METRES = component("a", {}, {"y": ""}, parameters=["k"]).replace(
    '<ssd:Connector name="k" kind="parameter"><ssc:Real/>',
    '<ssd:Connector name="k" kind="parameter"><ssc:Real unit="m"/>',
)


@pytest.mark.parametrize(
    ("attributes", "inside", "expected"),
    [
        ("", "", 0.02),
        ("", '<ssc:LinearTransformation factor="2" offset="1"/>', 0.041),
        ('suppressUnitConversion="true"', '<ssc:LinearTransformation factor="2" offset="1"/>', 41.0),
        ('suppressUnitConversion="true"', "", 20.0),
        ('suppressUnitConversion="false"', '<ssc:LinearTransformation factor="2"/>', 0.04),
    ],
)
def test_a_mapped_value_keeps_its_unit_unless_conversion_is_suppressed(tmp_path, attributes, inside, expected):
    mapping = (
        '<ssd:ParameterMapping><ssm:ParameterMapping version="1.0">'
        f'<ssm:MappingEntry source="p" target="a.k" {attributes}>{inside}</ssm:MappingEntry>'
        "</ssm:ParameterMapping></ssd:ParameterMapping></ssd:ParameterBinding>"
    )
    bindings = bound(real("p", 20.0, "mm")).replace("</ssd:ParameterBinding>", mapping)
    _, boxes = read(tmp_path, top(connection("a.y", "b.u", suppressUnitConversion="true"), IN_METRES + B, bindings))
    assert boxes.parameters["a"]["k"] == pytest.approx(expected, rel=1e-15)


def test_several_numbers_are_transformed_one_by_one(tmp_path):
    mapping = (
        '<ssd:ParameterMapping><ssm:ParameterMapping version="1.0"><ssm:MappingEntry source="p" target="a.k">'
        '<ssc:LinearTransformation factor="2" offset="1"/></ssm:MappingEntry></ssm:ParameterMapping>'
        "</ssd:ParameterMapping></ssd:ParameterBinding>"
    )
    several = '<ssv:Parameter name="p"><ssv:Real value="1 2 3"/></ssv:Parameter>'
    bindings = bound(several).replace("</ssd:ParameterBinding>", mapping)
    _, boxes = read(tmp_path, top(FED, A + B, bindings), method=cs.Jacobi(), ports=None)
    assert boxes.parameters["a"]["k"] == [3.0, 5.0, 7.0]


# -- notes -------------------------------------------------------------------------------------------------------


def test_entries_of_a_mapping_that_was_not_filled_in_are_left_out(tmp_path):
    """Some tools write a form with an entry for each parameter and nothing as its source."""
    entries = '<ssm:MappingEntry source="k" target="a.k"/>' + "".join(
        f'<ssm:MappingEntry source="" target="a.p{n}"/>' for n in range(300)
    )
    mapping = (
        f'<ssd:ParameterMapping><ssm:ParameterMapping version="1.0">{entries}</ssm:ParameterMapping>'
        "</ssd:ParameterMapping></ssd:ParameterBinding>"
    )
    bindings = bound(real("k", 4.0)).replace("</ssd:ParameterBinding>", mapping)
    with pytest.warns(UserWarning, match=r"x.ssp: .*300 entries of the mapping have no source") as noted:
        _, boxes = read(tmp_path, top(FED, A + B, bindings))
    assert len(str(noted[0].message)) < 300
    assert boxes.parameters["a"] == {"k": 4.0}


def test_a_name_that_is_not_there_is_refused_in_a_short_sentence(tmp_path):
    many = "".join(real(f"parameter_{n}", 1.0) for n in range(500))
    mapping = (
        '<ssd:ParameterMapping><ssm:ParameterMapping version="1.0"><ssm:MappingEntry source="q" target="a.k"/>'
        "</ssm:ParameterMapping></ssd:ParameterMapping></ssd:ParameterBinding>"
    )
    with pytest.raises(
        cs.errors.SetupError, match=r"names 'q', but the values are parameter_0, .* and 492 more"
    ) as refused:
        read(tmp_path, top(FED, A + B, bound(many).replace("</ssd:ParameterBinding>", mapping)))
    assert len(str(refused.value)) < 400


FOREIGN = (
    '<ssd:Annotations><ssc:Annotation type="com.example.tool"><t:Master xmlns:t="urn:t" kind="fixed" stepSize="0.25"/>'
    "</ssc:Annotation></ssd:Annotations>"
)


@pytest.mark.parametrize("place", ["system", "experiment", "top"])
def test_the_step_of_another_tool_is_not_used_and_that_is_said(tmp_path, place):
    inside = FOREIGN if place == "system" else ""
    rest = (
        UNITS
        + {
            "top": '<ssd:DefaultExperiment stopTime="1"/>' + FOREIGN,
            "experiment": f'<ssd:DefaultExperiment stopTime="1">{FOREIGN}</ssd:DefaultExperiment>',
            "system": '<ssd:DefaultExperiment stopTime="1"/>',
        }[place]
    )
    with pytest.warns(UserWarning, match=r"x\.ssp: the annotation 'com.example.tool' has stepSize = 0.25.*give step="):
        made, _ = read(tmp_path, top(FED, A + B, inside), rest)
    assert made.options.step == pytest.approx(1e-3)
    made, _ = read(tmp_path, top(FED, A + B, inside), rest, step=0.5)  # chosen: nothing to say
    assert made.options.step == 0.5


def test_an_annotation_without_its_namespace_is_read(tmp_path):
    """The files of the Open Simulation Platform use a prefix that they do not declare."""
    undeclared = FOREIGN.replace(' xmlns:t="urn:t"', "")
    with pytest.warns(UserWarning, match=r"x\.ssp: the annotation 'com.example.tool' has stepSize = 0.25.*give step="):
        made, _ = read(tmp_path, top(FED, A + B, undeclared), UNITS)
    assert made.options.step == pytest.approx(1e-3)


# -- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "sentence"),
    [
        (top(FED, A.replace("box.fmu", "http://[") + B), "which is no address"),
        (top(FED, A.replace("box.fmu", "a%00b.fmu") + B), "not a path"),
        (top(FED, A.replace("box.fmu", "x" * 5000) + B), "File name too long"),
        (top(FED, A.replace("box.fmu", "/dev/zero") + B), "not a file"),
        (
            top(FED, inside=bound(real("a.k", 1).replace("Real", "Integer").replace('"1"', '"1.5"'))),
            "not a whole number",
        ),
        (
            top(FED, inside=bound(real("a.k", 1).replace("Real", "Boolean").replace('"1"', '"maybe"'))),
            "neither true nor",
        ),
        (top(FED, inside=bound(real("a.k", 1).replace('"1"', '" "'))), "the parameter 'a.k' has no value"),
    ],
)
def test_further_faults(tmp_path, system, sentence):
    with pytest.raises(cs.errors.SetupError) as refused:
        read(tmp_path, system)
    assert sentence in str(refused.value)
    assert str(refused.value).startswith("x.ssp: ")


@pytest.mark.parametrize("power", ["inf", "nan", "1.5", "x"])
def test_powers_of_units_are_whole(tmp_path, power):
    with pytest.raises(cs.errors.SetupError, match=r"m of the unit 'mm' is .*not a whole number"):
        read(tmp_path, top(FED), UNITS.replace('BaseUnit m="1" factor', f'BaseUnit m="{power}" factor'))


def test_a_variant_outside_the_archive(tmp_path):
    (tmp_path / "evil.ssd").write_text(description(top(FED)))
    file = archive(tmp_path / "x.ssp", description(top(FED), UNITS))
    up = "../" * 12
    with pytest.raises(cs.errors.SetupError, match="lies outside the SSP"):
        cs.fmi.read_ssp(file, variant=f"{up}{tmp_path / 'evil.ssd'}")


def test_references_that_multiply(tmp_path, monkeypatch):
    """Ten descriptions, each of which names the next one twice, stand for a thousand systems."""
    monkeypatch.setattr(document, "MAX_DESCRIPTIONS", 50)
    for n in range(10):
        twice = "".join(f'<ssd:Component name="{name}" source="{n + 1}.ssd"/>' for name in "pq")
        (tmp_path / f"{n}.ssd").write_text(description(top("", twice)))
    (tmp_path / "10.ssd").write_text(description(top("", "")))
    with pytest.raises(cs.errors.SetupError, match="more than 50 descriptions"):
        cs.fmi.read_ssp(tmp_path / "0.ssd")


def test_systems_in_systems_without_end(tmp_path):
    deep = '<ssd:System name="s"><ssd:Elements>' * 3000 + "</ssd:Elements></ssd:System>" * 3000
    with pytest.raises(cs.errors.SetupError, match="without end"):
        read(tmp_path, deep)
