"""Model descriptions as other tools write them, and malformed ones: each of those ends in a sentence with the file."""

import pytest

import cosolve as cs
from cosolve.fmu.description import read_description
from cosolve.fmu.xml_text import parse_xml
from cosolve.io.ssp.flatten import conversion
from cosolve.subsystem.units import Unit

HEAD_2 = '<fmiModelDescription fmiVersion="2.0" modelName="m" guid="g" numberOfEventIndicators="0">'
KIND = '<CoSimulation modelIdentifier="m" canGetAndSetFMUstate="true" maxOutputDerivativeOrder="1"/>'
VARIABLES_2 = """<ModelVariables>
<ScalarVariable name="x" valueReference="0" causality="output"><Real start="1"/></ScalarVariable>
<ScalarVariable name="der(x)" valueReference="1"><Real derivative="1"/></ScalarVariable>
<ScalarVariable name="u" valueReference="2" causality="input"><Real unit="N" nominal="10"/></ScalarVariable>
<ScalarVariable name="mode" valueReference="3" causality="parameter"><Integer start="1"/></ScalarVariable>
</ModelVariables>"""
STRUCTURE_2 = """<ModelStructure>
<Outputs><Unknown index="1" dependencies="3 1" dependenciesKind="fixed dependent"/></Outputs>
<Derivatives><Unknown index="2" dependencies="3"/></Derivatives></ModelStructure></fmiModelDescription>"""
TEXT_2 = f"{HEAD_2}{KIND}{VARIABLES_2}{STRUCTURE_2}"
TEXT_3 = """<fmiModelDescription fmiVersion="3.0" modelName="m" instantiationToken="g">
<ModelExchange modelIdentifier="m" needsCompletedIntegratorStep="true"/>
<ModelVariables>
<Float64 name="x" valueReference="1" causality="output"><Dimension valueReference="9"/></Float64>
<Float64 name="der(x)" valueReference="2" derivative="1"><Dimension valueReference="9"/></Float64>
<Float64 name="u" valueReference="3" causality="input" intermediateUpdate="true"><Dimension start="2"/></Float64>
<UInt64 name="n" valueReference="9" causality="structuralParameter" variability="fixed" start="3"/>
</ModelVariables>
<ModelStructure><Output valueReference="1" dependencies="3"/><ContinuousStateDerivative valueReference="2"/>
<EventIndicator valueReference="1"/></ModelStructure></fmiModelDescription>"""


@pytest.fixture
def read(tmp_path):
    """A description from its text, in a folder of its own."""
    count = iter(range(100))

    def reader(text, **options):
        folder = tmp_path / f"m{next(count)}"
        folder.mkdir()
        data = text if isinstance(text, bytes) else text.encode()
        (folder / "modelDescription.xml").write_bytes(data)
        return read_description(folder, **options)

    return reader


# -- what is accepted --------------------------------------------------------------------------------------------


PREFIXED = TEXT_2.replace("<", "<f:").replace("<f:/", "</f:").replace("Description ", "Description xmlns:f='u' ", 1)


def same(a, b) -> bool:
    return (a.variables, a.kinds, a.outputs, a.derivatives) == (b.variables, b.kinds, b.outputs, b.derivatives)


@pytest.mark.parametrize(
    "written",
    [
        TEXT_2.encode("utf-8-sig"),
        b'\n  <?xml version="1.0" encoding="UTF-8"?>' + TEXT_2.encode() + b"\0\0\n\x1a",
        ('<?xml version="1.0" encoding="UTF-16"?>' + TEXT_2).encode("utf-16"),
        ('<?xml version="1.0" encoding="utf8"?>' + TEXT_2).encode(),
        ('<?xml version="1.0" encoding="windows-1252"?>' + TEXT_2).encode("cp1252"),
        b'<?xml version="1.0" encoding="Shift_JIS"?>' + TEXT_2.encode(),
        TEXT_2.replace("<fmiModelDescription ", '<fmiModelDescription xmlns="urn:x" ').encode(),
        PREFIXED.encode(),
        TEXT_2.replace("<ModelVariables>", "<!-- <ScalarVariable name='x'/> --><ModelVariables><!-- a -->").encode(),
        TEXT_2.replace('canGetAndSetFMUstate="true"', 'canGetAndSetFMUstate=" True "').encode(),
        TEXT_2.replace('valueReference="2"', 'valueReference=" 2\n"')
        .replace('nominal="10"', 'nominal=" 1E+1 "')
        .encode(),
        TEXT_2.replace('index="1"', 'index=" 01 "').replace('causality="input"', 'causality=" input "').encode(),
        TEXT_2.replace("<Real derivative", "<Annotations/><Real start='' nominal='' derivative")
        .replace("start=''", "")
        .encode(),
    ],
    ids=[
        "mark",
        "blanks",
        "wide",
        "utf8",
        "1252",
        "jis",
        "namespace",
        "prefix",
        "comments",
        "True",
        "blank",
        "zero",
        "empty",
    ],
)
def test_what_real_tools_write_is_read_alike(read, written):
    assert same(read(written), read(TEXT_2))


def test_names_of_other_languages(read):
    text = '<?xml version="1.0" encoding="ISO-8859-1"?>' + TEXT_2.replace('"mode"', '"Größe"')
    assert "Größe" in read(text.encode("latin-1")).variables


def test_experiments_leave_out_what_is_no_time(read):
    text = TEXT_2.replace(KIND, KIND + '<DefaultExperiment startTime="0" stopTime="INF" stepSize="" other="x"/>')
    assert read(text).experiment == {"startTime": 0.0}


def test_arrays_have_their_sizes(read):
    found = read(TEXT_3)
    assert [v.shape for v in found.variables.values()] == [(3,), (3,), (2,), ()]
    assert [v.name for v in found.states] == ["x"]
    assert found.event_indicators == 3
    assert read(TEXT_3, sizes={"n": 5}).variables["x"].shape == (5,)


# -- units -------------------------------------------------------------------------------------------------------

UNITS = """<UnitDefinitions>
<Unit name="K"><BaseUnit K="1"/><DisplayUnit name="degC" factor="1" offset="-273.15"/></Unit>
<Unit name="rad/s"><BaseUnit s="-1" rad="1"/><DisplayUnit name="rpm" factor="9.5492965855137211"/></Unit>
<Unit name="mm"><BaseUnit m="1" factor="0.001"/></Unit>
<Unit name="furlong"/>
<Unit name="N"><BaseUnit kg="1" m="1" s="-2"/></Unit>
<Unit name="m"><BaseUnit m="1"/><DisplayUnit name="mm" factor="7"/></Unit>
</UnitDefinitions>"""


@pytest.mark.parametrize("text", [TEXT_2, TEXT_3], ids=["2", "3"])
def test_units_say_what_they_measure(read, text):
    assert read(text).units == {}
    units = read(text.replace("<ModelVariables>", UNITS + "<ModelVariables>")).units
    assert "furlong" not in units  # it does not say
    assert units["N"] == Unit("N", 1.0, 0.0, {"kg": 1, "m": 1, "s": -2})
    assert units["mm"] == Unit("mm", 1e-3, 0.0, {"m": 1})  # a unit comes before a display unit of the same name
    assert conversion(units["degC"], units["K"])(20.0) == pytest.approx(293.15, rel=1e-15)
    assert conversion(units["rpm"], units["rad/s"])(60.0) == pytest.approx(6.283185307179586, rel=1e-15)
    assert conversion(units["mm"], units["K"]) is None


# -- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name="u"', 'name="x"', "two variables called 'x'"),
        ('name="u" ', "", "variable number 3 has no name"),
        ('valueReference="2"', 'valueReference="-2"', "valueReference of the variable 'u' is -2, not a number from 0"),
        ('valueReference="2"', 'valueReference="4294967296"', "not a number from 0 to 4294967295"),
        ('valueReference="2"', 'valueReference="1_0"', "'1_0', not a whole number"),
        ('valueReference="2"', 'valueReference="٣"', "not a whole number"),
        (' valueReference="2"', "", "the variable 'u' has no valueReference"),
        ('index="1"', 'index="0"', "index of one of the Outputs in ModelStructure is 0, not a number from 1 to 4"),
        ('index="1"', 'index="-1"', "is -1, not a number from 1 to 4"),
        ('index="2"', 'index="5"', "is 5, not a number from 1 to 4"),
        ('index="1" ', "", "index of one of the Outputs"),
        ('dependencies="3 1"', 'dependencies="3 9"', "one of the dependencies of 'x' in Outputs is 9"),
        (
            'dependencies="3 1"',
            'dependencies="3"',
            "there are 1 dependencies of 'x' in Outputs, but 2 dependenciesKind",
        ),
        (' dependencies="3 1"', "", "there are 0 dependencies of 'x'"),
        ('derivative="1"', 'derivative="0"', "derivative of the variable 'der(x)' is 0"),
        ('derivative="1"', 'derivative="7"', "derivative of the variable 'der(x)' is 7, not a number from 1 to 4"),
        ("<Integer start", "<Whole start", "the variable 'mode' has no type, one of Real"),
        ('nominal="10"', 'nominal="1,5"', "nominal of the variable 'u' is '1,5', not a number"),
        ('causality="input"', 'causality="inptu"', "the variable 'u' has causality 'inptu'; FMI knows parameter"),
        ('Order="1"', 'Order="one"', "maxOutputDerivativeOrder of CoSimulation is 'one'"),
        ('FMUstate="true"', 'FMUstate="ja"', "canGetAndSetFMUState of CoSimulation is 'ja', neither true nor false"),
        ('Indicators="0"', 'Indicators="-1"', "numberOfEventIndicators of the model is -1"),
        ('Indicators="0"', 'Indicators="99999999"', "99999999 event indicators"),
        (' modelIdentifier="m"', "", "modelIdentifier ''"),
        ('Identifier="m"', 'Identifier="a/b"', "modelIdentifier 'a/b'"),
        (VARIABLES_2, "", "no ModelVariables"),
        (
            "<ModelVariables>",
            '<DefaultExperiment stopTime="soon"/><ModelVariables>',
            "stopTime of DefaultExperiment is 'soon'",
        ),
        (
            "<ModelVariables>",
            "<TypeDefinitions><SimpleType/></TypeDefinitions><ModelVariables>",
            "a declared type has no name",
        ),
        ("<ModelVariables>", UNITS.replace("0.001", "0") + "<ModelVariables>", "factor of the unit 'mm' is 0"),
        ("<ModelVariables>", UNITS.replace('s="-2"', 's="x"') + "<ModelVariables>", "s of the unit 'N' is 'x'"),
        ("<CoSimulation", '<ModelExchange modelIdentifier="m"/><CoSimulation', ""),
        ("<fmiModel", "<!DOCTYPE a><fmiModel", "document type"),
        ('"2.0"', '"2"', ""),
        ('"2.0"', '"4.0"', "FMI 4.0 is not supported"),
        ('"2.0"', '"0.9"', "FMI 0.9 is not supported"),
        ('"2.0"', '"two"', "FMI two is not supported"),
    ],
)
def test_faults_in_descriptions_of_fmi_2(read, old, new, words):
    _refused(read, TEXT_2, old, new, words)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name="u"', 'name="x"', "two variables called 'x'"),
        ('valueReference="3" c', 'valueReference="1" c', "'x' and 'u' have the value reference 1 both"),
        ('derivative="1"', 'derivative="77"', "is the derivative of the value reference 77, which no variable has"),
        (
            '<Dimension valueReference="9"/>',
            '<Dimension valueReference="8"/>',
            "the value reference 8, which no variable has",
        ),
        ('<Dimension valueReference="9"/>', "<Dimension/>", "a dimension of the variable 'x' has no valueReference"),
        (' start="3"/>', "/>", "'n', a dimension of the variable 'x', has no start"),
        (' start="3"/>', ' start="-3"/>', "start of 'n', a dimension of the variable 'x', is -3"),
        ('<Dimension start="2"/>', '<Dimension start="999999999999"/>', "is an array of 999999999999 numbers"),
        ('Output valueReference="1"', 'Output valueReference="5"', "is 5, which is the value reference of no variable"),
        ('dependencies="3"', 'dependencies="4"', "one of the dependencies of 'x' in Output is 4"),
        ("<UInt64 name", "<Text name", "the variable 'n' is a <Text>, which is no type of FMI 3.0"),
        ('derivative="1"', "", "the derivative 'der(x)' in ModelStructure does not say what it is the derivative of"),
        ('derivative="1"', 'derivative="3"', "'der(x)' in ModelStructure and its state 'u' have different shapes"),
        ("<EventIndicator", '<ContinuousStateDerivative valueReference="2"/><EventIndicator', "stands there twice"),
        ('intermediateUpdate="true"', 'intermediateUpdate="2"', "intermediateUpdate of the variable 'u' is '2'"),
    ],
)
def test_faults_in_descriptions_of_fmi_3(read, old, new, words):
    _refused(read, TEXT_3, old, new, words)


def _refused(read, text, old, new, words):
    assert old in text
    changed = text.replace(old, new, 1)
    if not words:  # looks odd, and is allowed
        assert read(changed).fmi == 2
        return
    with pytest.raises(cs.errors.SetupError) as error:
        read(changed)
    said = str(error.value)
    assert words in said
    assert "m0'" in said  # the folder, or the file it came from
    assert "\n" not in said


def test_sizes_without_end(read):
    with pytest.raises(cs.errors.SetupError, match=r"'x' is an array of 9000000000000 numbers"):
        read(TEXT_3, sizes={"n": 9 * 10**12})


def test_a_description_that_went_away(tmp_path):
    with pytest.raises(cs.errors.SetupError, match="cannot be read: No such file"):
        read_description(tmp_path)


def test_an_encoding_hides_no_document_type():
    """Entities can grow without limit, so a type is refused in every encoding that Python knows."""
    inside = '<!DOCTYPE a [<!ENTITY e "grown">]><a>&e;</a>'.encode("utf-7").replace(b"<", b"+ADw-")
    with pytest.raises(cs.errors.SetupError, match="document type of its own"):
        parse_xml(b'<?xml version="1.0" encoding="utf-7"?>' + inside)


@pytest.mark.parametrize(("encoding", "letter"), [("UTF-8", "é"), ("cp1252", "é"), ("utf-16", "é")])
def test_prefixes_that_are_declared_nowhere(encoding, letter):
    """They get a namespace, also in encodings that the parser does not read by itself; other faults stay faults."""
    text = (
        f'<?xml version="1.0" encoding="{encoding}"?><!-- x:y --><a xmlns:p="p"><p:b/><q:c d="{letter}" r:e="1"/></a>'
    )
    found = list(parse_xml(text.encode(encoding)).iter())
    assert [element.tag.rpartition("}")[2] for element in found] == ["a", "b", "c"]
    assert found[2].get("d") == letter
    with pytest.raises(cs.errors.SetupError, match="mismatched tag"):
        parse_xml(text.replace("<p:b/>", "<p:b>").encode(encoding))
