"""Configuration files: what is understood, and that every mistake is one sentence with line and tag."""

import os
from pathlib import Path

import pytest
from tests.precice.together import MEASURES, config, constant

from cosolve.errors import SetupError
from cosolve.precice.config import Reader, read_configuration

FOLDER = os.environ.get("COSOLVE_PRECICE_TUTORIALS", "")
GOOD = config("serial-implicit", MEASURES + constant(0.5))


def understood(text):
    return Reader("config.xml", text.encode()).configuration


@pytest.mark.covers("PX-02")
def test_what_a_file_says():
    got = understood(GOOD)
    assert list(got.participants) == ["A", "B"]
    assert got.participants["A"].written == (("MA", "Y"),)
    scheme = got.schemes[0]
    assert (scheme.kind, scheme.participants, scheme.window, scheme.max_windows) == (
        "serial-implicit",
        ("A", "B"),
        0.1,
        10,
    )
    assert [e.substeps for e in scheme.exchanges] == [True, True]
    assert [e.substeps for e in understood(config("serial-explicit")).schemes[0].exchanges] == [False, False]
    assert scheme.acceleration.relaxation == 0.5
    assert [m.limit for m in scheme.measures] == [1e-8, 1e-8]


@pytest.mark.covers("PX-02")
def test_defaults_of_accelerations():
    for kind, factor, columns, reuse in (("IQN-ILS", 0.1, 100, 10), ("IQN-IMVJ", 0.1, 20, 0), ("aitken", 0.5, 100, 10)):
        body = f'<acceleration:{kind}><data name="X" mesh="MB" /></acceleration:{kind}>'
        got = understood(config("serial-implicit", MEASURES + body)).schemes[0].acceleration
        assert (got.relaxation, got.columns, got.reuse, got.filter) == (factor, columns, reuse, "QR3")


BROKEN = {  # what is put into the good file for what, and what the sentence says
    "unknown tag": (
        "<m2n:sockets",
        "<mm2n:sockets",
        r"line 16: <mm2n:sockets> is unknown inside <precice-configuration>",
    ),
    "tag at the wrong place": (
        '<provide-mesh name="MA" />',
        '<use-data name="X" />',
        r"line 7: <use-data> has no place inside <participant>",
    ),
    "unknown attribute": (
        '<write-data name="Y" mesh="MA"',
        '<write-data nam="Y" mesh="MA"',
        r"line 8: <write-data> has no attribute 'nam'; did you mean 'name'",
    ),
    "missing attribute": (
        '<write-data name="Y" mesh="MA" />',
        '<write-data name="Y" />',
        r"<write-data> needs the attribute 'mesh'",
    ),
    "no number": (
        '<time-window-size value="0.1" />',
        '<time-window-size value="short" />',
        r"<time-window-size value=...>: 'short' is no number",
    ),
    "negative window": (
        '<time-window-size value="0.1" />',
        '<time-window-size value="-1" />',
        r"<time-window-size>: -1 is not above 0",
    ),
    "no flag": (
        'initialize="true"',
        'initialize="perhaps"',
        r"<exchange initialize=...>: 'perhaps' is neither true nor false",
    ),
    "wrong word": (
        'constraint="consistent"',
        'constraint="persistent"',
        r"<mapping:nearest-neighbor constraint=...>: 'persistent' is none of consistent",
    ),
    "unknown mesh": ('from="MB" to="MA"', 'from="MC" to="MA"', r"no mesh at this participant called 'MC'"),
    "unknown data": (
        '<use-data name="X" /><use-data name="Y" /></mesh>',
        '<use-data name="Z" /></mesh>',
        r"no data called 'Z'",
    ),
    "unknown participant": ('second="B"', 'second="C"', r"no participant called 'C'"),
    "mesh of another": (
        '<receive-mesh name="MB" from="B" />',
        '<receive-mesh name="MB" from="A" />',
        r"participant 'A' does not provide mesh 'MB'",
    ),
    "writes on a received mesh": (
        '<write-data name="Y" mesh="MA" />',
        '<write-data name="Y" mesh="MB" />',
        r"<write-data>: mesh 'MB' is received; open it with api-access",
    ),
    "exchange without a writer": (
        '<exchange data="Y" mesh="MA" from="A" to="B"',
        '<exchange data="Y" mesh="MA" from="B" to="A"',
        r"'B' does not write data 'Y'",
    ),
    "measure of nothing": (
        'measure data="X" mesh="MB"',
        'measure data="X" mesh="MA"',
        r"<relative-convergence-measure>: data 'X' on mesh 'MA' are not exchanged",
    ),
    "relaxation": ('<relaxation value="0.5" />', '<relaxation value="0" />', r"<relaxation>: 0 is not above 0"),
    "no window": ('<time-window-size value="0.1" />', "", r"<coupling-scheme:serial-implicit> needs <time-window-size"),
    "two windows": (
        '<time-window-size value="0.1" />',
        '<time-window-size value="0.1" />' * 2,
        r"has two <time-window-size>",
    ),
    "python action": (
        '<provide-mesh name="MA" />',
        '<provide-mesh name="MA" /><action:python mesh="MA" />',
        r"<action:python> would run Python",
    ),
    "coarse graining": (
        '<mapping:nearest-neighbor direction="read" from="MB"',
        '<mapping:coarse-graining direction="read" from="MB"',
        r"<mapping:coarse-graining> is not offered yet",
    ),
    "old version": (
        "<precice-configuration>",
        "<precice-configuration><solver-interface dimensions='2' />",
        r"<solver-interface> belongs to version 2",
    ),
    "not closed": ("</precice-configuration>", "", r"is no well-formed XML"),
    "document type": (
        "<precice-configuration>",
        '<!DOCTYPE x [<!ENTITY a "b">]><precice-configuration>',
        r"a document type has no place here",
    ),
    "words": ("<m2n:sockets", "hello <m2n:sockets", r"the text 'hello' has no place here"),
    "mapping against the direction": (
        'direction="read" from="MB" to="MA"',
        'direction="write" from="MB" to="MA"',
        r"a write mapping goes from a mesh that 'A' provides",
    ),
    "no iterations": ('<max-iterations value="100" />', '<max-iterations value="0" />', r"iterations are at least 1"),
}


@pytest.mark.covers("PX-02")
@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_refused_in_one_sentence(case):
    old, new, expected = BROKEN[case]
    assert old in GOOD
    with pytest.raises(SetupError, match=r"^config\.xml, line \d+: .*") as refusal:
        understood(GOOD.replace(old, new, 1))
    assert len(str(refusal.value).splitlines()) == 1
    assert refusal.match(expected)


@pytest.mark.covers("PX-02")
def test_degrees_and_substeps_fit_together():
    with pytest.raises(SetupError, match="waveform-degree 3, which needs substeps"):
        understood(config("serial-implicit", MEASURES, degree=3, substeps='substeps="false"'))
    with pytest.raises(SetupError, match="waveform-degree 0, which knows no substeps"):
        understood(config("serial-implicit", MEASURES, degree=0, substeps='substeps="true"'))


@pytest.mark.covers("PX-02")
def test_serial_schemes_do_not_accelerate_the_first():
    body = MEASURES + '<acceleration:IQN-ILS><data name="Y" mesh="MA" /></acceleration:IQN-ILS>'
    with pytest.raises(SetupError, match="data 'Y' come from the first participant"):
        understood(config("serial-implicit", body))


@pytest.mark.covers("PX-02")
def test_two_implicit_schemes_at_one_participant_get_advice():
    from tests.precice.test_many import measured, side_by_side

    text = side_by_side("serial-implicit", "serial-implicit", measured("YA", "XA"))
    text = text.replace('to="B" /><exchange', 'to="B" />' + '<max-iterations value="2" /><exchange')
    with pytest.raises(SetupError, match="two implicit schemes; couple all of them with a cosolve method"):
        understood(text)


@pytest.mark.covers("PX-02")
def test_what_is_done_otherwise_is_said():
    text = GOOD.replace("m2n:sockets", "m2n:mpi").replace(
        '<mapping:nearest-neighbor direction="read" from="MB" to="MA" constraint="consistent" />',
        '<mapping:rbf-global-iterative direction="read" from="MB" to="MA" constraint="consistent">'
        "<basis-function:thin-plate-splines /></mapping:rbf-global-iterative>",
    )
    remarks = understood(text).remarks
    assert len(remarks) == 2
    assert "the direct solver is used" in remarks[0]
    assert "local sockets are used" in remarks[1]


@pytest.mark.covers("PX-02")
@pytest.mark.skipif(not FOLDER, reason="COSOLVE_PRECICE_TUTORIALS names no folder")
def test_files_of_a_folder_are_read():
    """All configurations of a checkout of the public tutorials: 32 in October 2024, 34 in 2026."""
    files = sorted(Path(FOLDER).glob("**/precice-config*.xml"))
    assert len(files) >= 32
    refused = {}
    for file in files:
        try:
            read_configuration(file)
        except SetupError as error:
            refused[str(file)] = str(error)
    assert not refused
