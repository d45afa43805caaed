"""What is wrong with an SSP is said in one sentence, with the name of the file."""

import zipfile

import pytest
from tests.io.ssp.structure import UNITS, Boxes, archive, bound, component, connection, description, real

import cosolve as cs

A, B = component("a", {}, {"y": "mm"}), component("b", {"u": "K"}, {"y": ""})


def top(connections="", elements=A + B, inside=""):
    return (
        f'<ssd:System name="top"><ssd:Elements>{elements}</ssd:Elements>'
        f"<ssd:Connections>{connections}</ssd:Connections>{inside}</ssd:System>"
    )


FED = connection("a.y", "b.u", suppressUnitConversion="true")
MAPPED = bound(real("k", 1.0)).replace(
    "</ssd:ParameterBinding>",
    '<ssd:ParameterMapping><ssm:ParameterMapping version="1.0"><ssm:MappingEntry source="q" target="a.k"/>'
    "</ssm:ParameterMapping></ssd:ParameterMapping></ssd:ParameterBinding>",
)

CASES = {
    "missing fmu": (
        top(FED, A.replace("box.fmu", "gone.fmu") + B),
        "the source of 'a' lies at 'gone.fmu', but there is no",
    ),
    "outside": (top(FED, A.replace("box.fmu", "../../box.fmu") + B), "outside the SSP; it is refused"),
    "web": (top(FED, A.replace("box.fmu", "https://x.org/a.fmu") + B), "only files are read"),
    "no source": (top(FED, A.replace('source="box.fmu"', "") + B), "the component 'a' has no source"),
    "other type": (top(FED, A.replace("x-fmu-sharedlibrary", "octet") + B), "is of type 'application/octet'"),
    "unknown element": (top(connection("c.y", "b.u")), "names the element 'c', but there are 'a', 'b'"),
    "unknown connector": (top(connection("a.z", "b.u")), "the connector 'z' of 'a', which has 'y'"),
    "unknown system connector": (top(connection("z", "b.u")), "the connector 'z' of the system 'top', which has none"),
    "units of different kinds": (top(connection("a.y", "b.u")), "goes from mm to K, which measure different things"),
    "undefined unit": (top(connection("a.y", "b.u"), A.replace("mm", "inch") + B), "the unit 'inch' is not defined"),
    "fed twice": (top(FED + FED), "'b.u' is fed by two connections"),
    "two names": (top(FED, A + A + B), "has two elements called 'a'"),
    "not linear": (top(connection("a.y", "b.u", "<ssc:BooleanMappingTransformation/>")), "only linear transformations"),
    "factor": (top(connection("a.y", "b.u", '<ssc:LinearTransformation factor="x"/>')), "is 'x', not a number"),
    "half a connection": (
        top('<ssd:Connection startElement="a" startConnector="y"/>'),
        "lacks its startConnector or end",
    ),
    "not well-formed": (top(FED)[:-5], "'SystemStructure.ssd' cannot be read as XML"),
    "no system": ("", "there is no System in it"),
    "nothing inside": (top("", ""), "there are no components in it"),
    "output not there": (top(FED, A.replace("name='y'", "").replace('name="y"', 'name="q"') + B), "which has 'q'"),
    "parameter of no component": (
        top(FED, inside=bound(real("c.k", 1.0))),
        "name 'c.k', which is neither one of its connectors",
    ),
    "mapping of nothing": (top(FED, inside=MAPPED), "the mapping names 'q', but the values are k"),
    "value not a number": (top(FED, inside=bound(real("a.k", "much"))), "the parameter 'a.k' is 'much', not a number"),
    "no values": (
        top(FED, inside="<ssd:ParameterBindings><ssd:ParameterBinding/></ssd:ParameterBindings>"),
        "have neither a source nor values",
    ),
    "missing ssv": (
        top(FED, inside='<ssd:ParameterBindings><ssd:ParameterBinding source="p.ssv"/></ssd:ParameterBindings>'),
        "lies at 'p.ssv', but there is no such file",
    ),
    "circle": (
        top(
            connection("s.o", "s.i") + connection("s.o", "b.u"),
            B + '<ssd:System name="s"><ssd:Connectors><ssd:Connector name="i" kind="input"/>'
            '<ssd:Connector name="o" kind="output"/></ssd:Connectors><ssd:Connections>'
            f"{connection('i', 'o')}</ssd:Connections></ssd:System>",
        ),
        "run in a circle without a component",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_structure_is_refused(case, tmp_path):
    system, sentence = CASES[case]
    boxes = Boxes({"a": ([], ["y"]), "b": (["u"], ["y"])})
    with pytest.raises(cs.errors.SetupError) as caught:
        cs.fmi.read_ssp(archive(tmp_path / "bad.ssp", description(system, UNITS)), component=boxes)
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("bad.ssp: ")


def test_structures_that_refer_to_each_other_are_refused(tmp_path):
    refer = '<ssd:System name="top"><ssd:Elements><ssd:Component name="s" source="{}"/></ssd:Elements></ssd:System>'
    (tmp_path / "one.ssd").write_text(description(refer.format("two.ssd")))
    (tmp_path / "two.ssd").write_text(description(refer.format("one.ssd")))
    with pytest.raises(cs.errors.SetupError, match=r"refers to itself \(one.ssd -> two.ssd -> one.ssd\)"):
        cs.fmi.read_ssp(tmp_path / "one.ssd")


def test_files_that_are_no_ssp(tmp_path):
    with pytest.raises(cs.errors.SetupError, match="there is no file"):
        cs.fmi.read_ssp(tmp_path / "gone.ssp")
    with pytest.raises(cs.errors.SetupError, match="there is no file"):
        cs.fmi.read_ssp(tmp_path / "gone.ssd")
    (tmp_path / "text.ssp").write_text("hello")
    with pytest.raises(cs.errors.SetupError, match="is not a zip archive"):
        cs.fmi.read_ssp(tmp_path / "text.ssp")
    with zipfile.ZipFile(tmp_path / "empty.ssp", "w") as file:
        file.writestr("other.txt", "x")
    with pytest.raises(cs.errors.SetupError, match=r"holds no SystemStructure\.ssd at its top level"):
        cs.fmi.read_ssp(tmp_path / "empty.ssp")
    with zipfile.ZipFile(tmp_path / "escape.ssp", "w") as file:
        file.writestr("SystemStructure.ssd", "x")
        file.writestr("../evil", "x")
    with pytest.raises(cs.errors.SetupError, match="outside its folder"):
        cs.fmi.read_ssp(tmp_path / "escape.ssp")
    (tmp_path / "fmu.ssd").write_text("<fmiModelDescription/>")
    with pytest.raises(cs.errors.SetupError, match="begins with fmiModelDescription, but SystemStructureDescription"):
        cs.fmi.read_ssp(tmp_path / "fmu.ssd")


def test_a_bad_annotation_is_named(tmp_path):
    note = (
        '<ssd:Annotations><ssc:Annotation type="org.cosolve.run"><run method=\'{"name": "jacoby"}\'/>'
        "</ssc:Annotation></ssd:Annotations>"
    )
    boxes = Boxes({"a": ([], ["y"]), "b": (["u"], ["y"])})
    with pytest.raises(
        cs.errors.SetupError, match=r"annotation org\.cosolve\.run cannot be used: there is no method 'jacoby'"
    ):
        cs.fmi.read_ssp(archive(tmp_path / "x.ssp", description(top(FED), note)), component=boxes)
