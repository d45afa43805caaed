"""What an SSP says is what the system does: nesting, transformations, units, parameters."""

import pytest
from tests.io.ssp.structure import UNITS, Boxes, archive, bound, component, connection, description, real

import cosolve as cs

LINEAR = '<ssc:LinearTransformation factor="2" offset="1"/>'


def values(described):
    result = cs.simulate(described.system, t_end=1.0, method=cs.Jacobi(), step=0.5)
    return {name: result[name][-1] for name in result.names}


def two(tmp_path, link, units=("", ""), rest=UNITS, version="1.0"):
    """A source that gives 20 and a reader of it."""
    text = description(
        f'<ssd:System name="top"><ssd:Elements>{component("a", {}, {"y": units[0]})}'
        f"{component('b', {'u': units[1]}, {'y': ''})}</ssd:Elements><ssd:Connections>{link}</ssd:Connections>"
        f"{bound(real('a.k', 20.0))}</ssd:System>",
        rest,
        version,
    )
    boxes = Boxes({"a": ([], ["y"]), "b": (["u"], ["y"])})
    return cs.fmi.read_ssp(archive(tmp_path / "two.ssp", text), component=boxes)


@pytest.mark.parametrize(
    ("units", "inside", "attributes", "expected"),
    [
        (("", ""), "", {}, 20.0),
        (("", ""), LINEAR, {}, 41.0),
        (("mm", "m"), "", {}, 0.02),
        (("degC", "K"), "", {}, 293.15),
        (("degC", "K"), LINEAR, {}, 2 * 293.15 + 1),  # in addition to the conversion
        (("degC", "K"), LINEAR, {"suppressUnitConversion": "true"}, 41.0),  # instead of it
        (("degC", "m"), "", {"suppressUnitConversion": "true"}, 20.0),
        (("K", "degC"), "", {}, 20.0 - 273.15),
        (("N", "N"), "", {}, 20.0),  # the same name needs no definition
        (("mm", ""), "", {}, 20.0),
    ],
)
def test_a_value_on_its_way(tmp_path, units, inside, attributes, expected):
    described = two(tmp_path, connection("a.y", "b.u", inside, **attributes), units)
    assert values(described)["b.y"] == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_both_versions_are_read(tmp_path, version):
    assert values(two(tmp_path, connection("a.y", "b.u"), version=version))["b.y"] == 20.0


NESTED = description(
    f"""
    <ssd:System name="top">
      <ssd:Connectors>
        <ssd:Connector name="drive" kind="input"><ssc:Real unit="mm"/></ssd:Connector>
        <ssd:Connector name="gain" kind="parameter"><ssc:Real/></ssd:Connector>
      </ssd:Connectors>
      <ssd:Elements>
        {component("a", {"u": "m"}, {"y": ""})}
        <ssd:System name="sub">
          <ssd:Connectors>
            <ssd:Connector name="in" kind="input"/><ssd:Connector name="out" kind="output"/>
            <ssd:Connector name="gain" kind="parameter"/>
          </ssd:Connectors>
          <ssd:Elements>
            {component("a", {"u": "", "w": ""}, {"y": ""}, parameters=["k"])}
            <ssd:System name="deep"><ssd:Connectors><ssd:Connector name="o" kind="output"/></ssd:Connectors>
              <ssd:Elements>{component("src.x", {}, {"y.z": ""})}</ssd:Elements>
              <ssd:Connections>{connection(("src.x", "y.z"), "o")}</ssd:Connections>
            </ssd:System>
          </ssd:Elements>
          <ssd:Connections>
            {connection("in", "a.u", LINEAR)}{connection("deep.o", "a.w")}{connection("a.y", "out")}
            {connection("gain", "a.k", '<ssc:LinearTransformation factor="3"/>')}
          </ssd:Connections>
          {bound(real("a.k", 1.0) + real("deep.src.x.k", 7.0))}
        </ssd:System>
      </ssd:Elements>
      <ssd:Connections>
        {connection("drive", "a.u")}{connection("a.y", "sub.in")}{connection("gain", "sub.gain")}
      </ssd:Connections>
      {bound(real("drive", 4000.0) + real("gain", 5.0))}
    </ssd:System>
    """,
    UNITS,
)


def test_nested_systems_become_flat(tmp_path):
    """drive 4000 mm -> a = 4 -> 2 * 4 + 1 into sub/a, plus 7 from the innermost source: 16."""
    boxes = Boxes({"a": (["u"], ["y"]), "sub/a": (["u", "w"], ["y"]), "sub/deep/src.x": ([], ["y.z"])})
    described = cs.fmi.read_ssp(archive(tmp_path / "nested.ssp", NESTED), component=boxes)
    found = values(described)
    assert list(described.system.subsystems) == ["a", "sub/a", "sub/deep/src_x"]
    assert found["a.y"] == 4.0
    assert found["sub/deep/src_x.y.z"] == 7.0
    assert found["sub/a.y"] == 16.0
    assert boxes.parameters["sub/a"] == {"k": 15.0}  # 3 * gain through two systems wins over the value inside


def test_parameters_from_files_mapped_prefixed_and_overridden(tmp_path):
    ssv = (
        '<ssv:ParameterSet xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues" version="1.0" '
        'xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" name="p"><ssv:Parameters>'
        '<ssv:Parameter name="mass"><ssv:Real value="2.5" unit="mm"/></ssv:Parameter>'
        '<ssv:Parameter name="way"><ssv:Real value="2" unit="mile"/></ssv:Parameter>'
        '<ssv:Parameter name="count"><ssv:Integer value="3"/></ssv:Parameter>'
        '<ssv:Parameter name="on"><ssv:Boolean value="true"/></ssv:Parameter>'
        '<ssv:Parameter name="label"><ssv:String value="x y"/></ssv:Parameter>'
        '<ssv:Parameter name="gear"><ssv:Enumeration value="reverse"/></ssv:Parameter>'
        '</ssv:Parameters><ssv:Units><ssc:Unit name="mile"><ssc:BaseUnit m="1" factor="1609.344"/></ssc:Unit>'
        "</ssv:Units></ssv:ParameterSet>"
    )
    ssm = (
        '<ssm:ParameterMapping xmlns:ssm="http://ssp-standard.org/SSP1/SystemStructureParameterMapping" '
        'xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" version="1.0">'
        f'<ssm:MappingEntry source="mass" target="m">{LINEAR}</ssm:MappingEntry>'
        '<ssm:MappingEntry source="count" target="n"/><ssm:MappingEntry source="on" target="flag"/>'
        '<ssm:MappingEntry source="label" target="text"/><ssm:MappingEntry source="gear" target="gear"/>'
        '<ssm:MappingEntry source="way" target="way"/></ssm:ParameterMapping>'
    )
    inside = (
        '<ssd:ParameterBindings><ssd:ParameterBinding source="p.ssv">'
        '<ssd:ParameterMapping source="p.ssm"/></ssd:ParameterBinding></ssd:ParameterBindings>'
    )
    text = description(
        f'<ssd:System name="top"><ssd:Elements>{component("a", {}, {"y": "", "way": "m"}, inside)}</ssd:Elements>'
        f"{bound(real('n', 8.0), prefix='a.')}</ssd:System>",
        UNITS,
    )
    boxes = Boxes({"a": ([], ["y", "way"])})
    cs.fmi.read_ssp(archive(tmp_path / "p.ssp", text, p__ssv=ssv.encode(), p__ssm=ssm.encode()), component=boxes)
    expected = {"m": 6.0, "n": 8.0, "flag": True, "text": "x y", "gear": "reverse", "way": 2 * 1609.344}
    assert boxes.parameters["a"] == expected


def test_a_signal_dictionary_passes_values_on(tmp_path):
    text = description(
        f'<ssd:System name="top"><ssd:Elements>{component("a", {}, {"y": ""})}{component("b", {"u": ""}, {"y": ""})}'
        '<ssd:SignalDictionaryReference name="bus" dictionary="D"/></ssd:Elements>'
        f"<ssd:Connections>{connection('a.y', 'bus.speed')}{connection('bus.speed', 'b.u', LINEAR)}</ssd:Connections>"
        f"{bound(real('a.k', 2.0))}</ssd:System>"
    )
    boxes = Boxes({"a": ([], ["y"]), "b": (["u"], ["y"])})
    assert values(cs.fmi.read_ssp(archive(tmp_path / "d.ssp", text), component=boxes))["b.y"] == 5.0


def test_a_structure_within_a_structure_file(tmp_path):
    inner = description(
        '<ssd:System name="inner"><ssd:Connectors><ssd:Connector name="o" kind="output"/></ssd:Connectors>'
        f"<ssd:Elements>{component('a', {}, {'y': ''})}</ssd:Elements>"
        f"<ssd:Connections>{connection('a.y', 'o')}</ssd:Connections>{bound(real('a.k', 3.0))}</ssd:System>"
    )
    outer = description(
        '<ssd:System name="top"><ssd:Elements>'
        '<ssd:Component name="s" type="application/x-ssp-definition" source="inner.ssd"/>'
        f"{component('b', {'u': ''}, {'y': ''})}</ssd:Elements>"
        f"<ssd:Connections>{connection('s.o', 'b.u')}</ssd:Connections></ssd:System>",
        '<ssd:DefaultExperiment startTime="1.0" stopTime="3.0"/>',
    )
    boxes = Boxes({"s/a": ([], ["y"]), "b": (["u"], ["y"])})
    described = cs.fmi.read_ssp(archive(tmp_path / "o.ssp", outer, inner__ssd=inner.encode()), component=boxes)
    assert values(described)["b.y"] == 3.0
    assert (described.options.t_start, described.options.t_end) == (1.0, 3.0)
    assert described.options.step == pytest.approx(0.002)
    packed = outer.replace("x-ssp-definition", "x-ssp-package").replace("inner.ssd", "inner.ssp#other.ssd")
    archive(tmp_path / "inner.ssp", description(""), other__ssd=inner.encode())  # one variant of an archive inside
    data = (tmp_path / "inner.ssp").read_bytes()
    described = cs.fmi.read_ssp(archive(tmp_path / "p.ssp", packed, inner__ssp=data), component=boxes)
    assert values(described)["b.y"] == 3.0
    (tmp_path / "inner.ssd").write_text(inner)  # and without an archive
    (tmp_path / "outer.ssd").write_text(outer)
    (tmp_path / "box.fmu").write_bytes(b"")
    assert values(cs.fmi.read_ssp(tmp_path / "outer.ssd", component=boxes))["b.y"] == 3.0


def test_inputs_that_nothing_feeds_are_held_and_can_be_set(tmp_path):
    text = description(
        f'<ssd:System name="top"><ssd:Elements>{component("b", {"u": "m"}, {"y": ""})}</ssd:Elements>'
        f"{bound(real('b.u', 1500.0, 'mm'))}</ssd:System>",
        UNITS,
    )
    described = cs.fmi.read_ssp(archive(tmp_path / "b.ssp", text), component=Boxes({"b": (["u"], ["y"])}))
    with cs.Stepper(described.system, method=described.options.method, step=described.options.step) as stepper:
        assert stepper["b.y"] == 1.5
        stepper.set("b.u", 2.0)
        stepper.step()
        assert stepper["b.y"] == 2.0


class Forward(cs.Subsystem):
    """Cannot go back."""

    outputs = ("y",)

    def start(self, t0):
        return 0.0

    def advance(self, t0, t1, u):
        return t1


def test_what_a_file_does_not_say_is_chosen(tmp_path):
    """Implicit to first order where every component can go back, a thousand steps, one second."""
    described = two(tmp_path, connection("a.y", "b.u"))
    assert described.options.method == cs.SemiImplicit(degree=1)
    run = described.options
    assert (run.t_start, run.t_end, run.step) == (0.0, 1.0, pytest.approx(1e-3))
    text = description(
        f'<ssd:System name="top"><ssd:Elements>{component("a", {}, {"y": ""})}</ssd:Elements></ssd:System>'
    )
    path = archive(tmp_path / "forward.ssp", text)
    assert cs.fmi.read_ssp(path, component=lambda source, name, parameters: Forward()).options.method == cs.Jacobi(1)
