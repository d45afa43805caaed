"""What the tools of a cross-check have in common: traces with one column for each number."""

from dataclasses import asdict
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from cosolve_crosscheck import check
from cosolve_crosscheck.cases import CO_SIMULATION, _ports
from cosolve_crosscheck.table import CrossCheck, Row
from cosolve_crosscheck.tools import columns, numbers, plain


def test_an_array_is_a_column_for_each_of_its_numbers():
    matrices = np.arange(12).reshape(3, 2, 2)
    found = columns(
        [0, 1, 2], {"x": [5, 6, 7], "on": [True, False, True], "v": [[1, 2], [3, 4], [5, 6]], "m": matrices}
    )
    assert list(found) == ["t", "x", "on", "v[0]", "v[1]", "m[0]", "m[1]", "m[2]", "m[3]"]
    assert found["on"].tolist() == [1.0, 0.0, 1.0]
    assert found["v[1]"].tolist() == [2.0, 4.0, 6.0]
    assert found["m[2]"].tolist() == [2.0, 6.0, 10.0]
    assert {values.dtype for values in found.values()} == {np.dtype(float)}


@pytest.mark.parametrize(
    ("text", "length", "expected"),
    [(None, 2, [0.0, 0.0]), ("1 2 3", 3, [1.0, 2.0, 3.0]), ("4", 3, [4.0] * 3), ("true false", 2, [1.0, 0.0])],
)
def test_start_values_as_they_are_written(text, length, expected):
    assert numbers(text, length) == expected


@pytest.mark.parametrize("kind", ["Real", "Integer", "Boolean", "String"])
def test_ports_are_those_with_numbers(kind):
    """As FMI 2 and as FMI 3 write them; without a number among the outputs, what varies is watched."""
    variable = (
        f'<ScalarVariable name="{{}}" causality="{{}}" variability="discrete"><{kind} start="1"/></ScalarVariable>'
    )
    newer = f'<{"Float64" if kind == "Real" else kind} name="{{}}" causality="{{}}" variability="discrete" start="1"/>'
    for line in (variable, newer):
        lines = "".join(map(line.format, "uyx", ("input", "output", "local")))
        found = _ports(ElementTree.fromstring(f"<fmi><ModelVariables>{lines}</ModelVariables></fmi>"))
        numeric = {"inputs": {"u": "1"}, "outputs": ("y",)}
        assert found == ({"inputs": {}, "outputs": ()} if kind == "String" else numeric)


def test_names_that_tools_write_in_their_own_way_are_one():
    assert plain("a.b[1]") == plain("a/b(1)") == "a_b_1"


@pytest.mark.parametrize("verdict", ["equal", "close", "fails"])
def test_a_row_has_what_every_tool_gave(verdict, monkeypatch, tmp_path):
    """Numbers of one tool are not put down for another, and none is left out."""
    case = SimpleNamespace(
        name="sub/a.fmu", file=tmp_path / "sub" / "a.fmu", kind=CO_SIMULATION, fmi="2.0", t0=0.5, t_end=2.0, step=0.1,
        copies=("b.fmu",), job=dict,
    )  # fmt: skip
    found = None if verdict == "fails" else SimpleNamespace(size=3e-9)
    monkeypatch.setattr(check, "run", lambda tool, job, timeout: f"{tool} within {timeout:g} s")
    monkeypatch.setattr(check, "judged", lambda ours, theirs, step, end: (verdict, f"{ours}, {theirs}, {end}", found))
    monkeypatch.setattr(check, "_third", lambda tool, ours, case, timeout: f"{tool} beside {ours}")
    monkeypatch.setattr(check, "repeated", lambda ours: f"{tmp_path}/sub/a.fmu differs")
    monkeypatch.setattr(check, "_rounding", lambda ours, case, timeout: "; rounding")
    row = check._row(case, 7.0)
    assert row.reason == "cosolve within 7 s, FMPy within 7 s, 2.0" + "; rounding" * (verdict == "close")
    assert asdict(row) == {
        "file": "sub/a.fmu", "kind": CO_SIMULATION, "fmi": "2.0", "t0": 0.5, "t_end": 2.0, "step": 0.1,
        "verdict": verdict, "difference": None if found is None else 3e-9, "reason": row.reason,
        "repeat": "sub/a.fmu differs", "libcosim": "libcosim beside cosolve within 7 s",
        "omsimulator": "OMSimulator beside cosolve within 7 s", "copies": ("b.fmu",),
    }  # fmt: skip


@pytest.mark.parametrize("libcosim", ["same bits", "not installed"])
@pytest.mark.parametrize("omsimulator", ["died: signal 11", "not installed"])
def test_a_table_has_a_column_for_each_tool_that_was_asked(libcosim, omsimulator):
    """On the terminal; the Markdown, which has all of them, is a table of as many columns as it has heads."""
    row = Row(
        file="a.fmu", kind=CO_SIMULATION, fmi="2.0", t0=0.0, t_end=1.0, step=0.1, verdict="close", difference=3e-9,
        reason="rounding | of y", repeat="same bits", libcosim=libcosim, omsimulator=omsimulator,
    )  # fmt: skip
    check = CrossCheck("folder", (row,), {"cosolve": "1", "libcosim": libcosim, "OMSimulator": omsimulator})
    lines = str(check).splitlines()
    (heads,) = (line.split() for line in lines if line.strip().startswith("file"))
    (cells,) = (line for line in lines if "3.0e-09" in line)
    for name, said, shown in (("libcosim", libcosim, "same bits"), ("OMSimulator", omsimulator, "died")):
        assert (name in heads) is (said != "not installed")
        assert cells.count(shown) == (said != "not installed") + (shown == "same bits")  # that of the second run
    heads, rule, *rows = check.markdown().splitlines()[4:]
    columns = [len(line.replace("\\|", "").split("|")) - 2 for line in (heads, rule, *rows)]
    assert columns == [9, 9, 9]
    assert set(rule) == set("|-")
    assert "rounding \\| of y" in rows[0]
