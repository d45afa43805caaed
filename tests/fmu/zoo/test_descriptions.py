"""Descriptions and archives as other tools write them, and what an FMU says while it runs."""

import logging
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests import processes
from tests.fmu.zoo.members import STRANGE, animal
from tests.fmu.zoo.pairs import expected, pair, part, y

import cosolve as cs

VERSIONS = pytest.mark.parametrize("fmi", [2, 3])


def run(a, fmi, method=None):
    system = pair(a, fmi)
    first, second = (y(cs.simulate(system, t_end=1.0, method=method or cs.Jacobi(0), step=0.05), a) for _ in range(2))
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, two)
    return first


def equal(found, want):
    for one, two in zip(found, want, strict=True):
        np.testing.assert_array_equal(one, two)


# -- archives --------------------------------------------------------------------------------------------------------


def repacked(source: Path, target: Path, change) -> Path:
    """The same entries, written by hand: `change` gives the name of each as it shall stand in the archive."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            for name in change(entry.filename):
                if name.endswith(("/", "\\")):
                    new.writestr(zipfile.ZipInfo(name), b"")
                else:
                    new.writestr(zipfile.ZipInfo(name), old.read(entry))
    return target


@VERSIONS
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_folders_twice(fmi, tmp_path):
    """Some packers list every folder each time that they add a file to it."""
    file = repacked(animal("black", fmi), tmp_path / "twice.fmu", lambda name: [*folders(name), *folders(name), name])
    equal(
        run(cs.load_fmu(file, parameters={"rate": 3.0, "gain": -0.25}, start={"x": 0.5}), fmi), expected("black", fmi)
    )


def folders(name: str) -> list[str]:
    parts = name.split("/")[:-1]
    return ["/".join(parts[: k + 1]) + "/" for k in range(len(parts))]


@VERSIONS
def test_backslashes(fmi, tmp_path):
    """Some packers on Windows write the separators of Windows."""
    file = repacked(animal("black", fmi), tmp_path / "back.fmu", lambda name: [*folders(name), name.replace("/", "\\")])
    equal(
        run(cs.load_fmu(file, parameters={"rate": 3.0, "gain": -0.25}, start={"x": 0.5}), fmi), expected("black", fmi)
    )


def test_fmi_1_without_a_library_is_refused_by_its_file_name(tmp_path):
    text = (
        '<?xml version="1.0"?><fmiModelDescription fmiVersion="1.0" modelName="old" modelIdentifier="old" guid="g" '
        'numberOfContinuousStates="0" numberOfEventIndicators="0"/>'
    )
    file = tmp_path / "old.fmu"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("modelDescription.xml", text)
    with pytest.raises(cs.errors.SetupError, match=r"old\.fmu' has no binary for this platform"):
        cs.load_fmu(file)


@VERSIONS
def test_resources_in_a_folder_with_spaces_and_umlauts(fmi, tmp_path):
    """The place of the resources is a URI in FMI 2.0 and a path in FMI 3.0; the FMU reads a file there."""
    folder = tmp_path / "Zwischenablage für FMUs 100 %"
    folder.mkdir()
    words = (
        "import cosolve as cs, sys\n"
        f"a = cs.load_fmu({str(animal('resources', fmi))!r}, parameters={{'gain': -0.25}}, start={{'x': 0.5}})\n"
        "s = cs.System({'a': a}); s.set('a.u', 2.0)\n"
        "print(repr(float(cs.simulate(s, t_end=1.0, method=cs.Jacobi(0), step=0.05)['a.y'][-1])))\n"
    )
    done = processes.run(
        [sys.executable, "-c", words],
        env={**os.environ, "TMPDIR": str(folder)},
        check=True,
    )
    assert float(done.stdout) == pytest.approx(2.0 * (np.exp(-5.0) * 0.5 - (1 - np.exp(-5.0)) * 0.5), abs=1e-14)


# -- names, types ------------------------------------------------------------------------------------------------------


@VERSIONS
def test_strange_names(fmi):
    """Blanks, quotes, brackets, umlauts, markup: by their own names in `parameters`, `start` and `get`."""
    a = part("names", fmi)
    assert STRANGE["u"] in str(cs.fmi.inspect_fmu(animal("names", fmi)))
    equal(run(a, fmi), expected("names", fmi))
    assert a.get(STRANGE["rate"]) == 3.0
    with pytest.raises(cs.errors.SetupError, match="Füllstand"):
        cs.load_fmu(animal("names", fmi), outputs=["Füllstand"])


def test_ten_thousand_aliases():
    """Variables that share value references, as tools write every connector of a model."""
    a = part("aliases", 2, outputs=["y", "plant.body[9999].force"])
    result = cs.simulate(pair(a, 2), t_end=1.0, method=cs.Jacobi(0), step=0.05)
    equal((result["a.y"], result["b.y"]), expected("aliases", 2))
    other = result["a." + a.outputs[1].name]  # 9999 % 7 = 3: the state
    np.testing.assert_array_equal(2.0 * other, result["a.y"])


def test_alias_names():
    """FMI 3.0 lists other names inside the variable."""
    equal(run(part("alias_names", 3), 3), expected("alias_names", 3))


@VERSIONS
def test_types(fmi):
    """Whole numbers, Booleans, enumerations, strings, arrays; clocks and binaries are no ports."""
    name = "types" if fmi == 2 else "types_arrays"
    a = cs.load_fmu(animal(name, fmi), parameters={"label": "größer"}, start={"x": 0.5})
    names = [port.name for port in (*a.inputs, *a.outputs)]
    assert not {"blob", "blob_out", "tick", "tock", "message"} & set(names)
    system = cs.System({"a": a})
    values = {"u": 1.0, "small": 3, "switch": True, "gear": 3} | ({"field": [1.0, 2.0, 3.0]} if fmi == 3 else {})
    for key, value in values.items():
        system.set(f"a.{key}", value)
    for _ in range(2):
        result = cs.simulate(system, t_end=0.5, method=cs.Jacobi(0), step=0.05)
        assert a.get("label") == "größer"
        assert result["a.sum"][-1] == 6
        assert result["a.lamp"][-1] == 1
        assert result["a.shift"][-1] == 3
        x = 0.5 * result["a.y"]
        assert x[-1] == pytest.approx(1.0 - 0.5 * np.exp(-1.0), abs=1e-14)
        half = 0.5 * x  # a Float32 where FMI has them
        np.testing.assert_array_equal(result["a.half"], half if fmi == 2 else half.astype(np.float32))
        if fmi == 3:
            np.testing.assert_allclose(result["a.field_out"][-1], x[-1] + np.array([1.0, 2.0, 3.0]), rtol=1e-15)


# -- words -------------------------------------------------------------------------------------------------------------


@VERSIONS
@pytest.mark.parametrize("isolated", [False, True])
def test_format_characters_in_messages(fmi, isolated, tmp_path):
    """Logged without a category, with percent signs and braces: nothing formats them a second time."""
    log = tmp_path / "words.txt"
    a = part("formats", fmi, log=log, isolated=isolated)
    equal(run(a, fmi), expected("formats", fmi))
    assert "100 %s %n %d {0} {} %" in log.read_text()


@VERSIONS
def test_a_warning_in_every_step(fmi, caplog):
    with caplog.at_level(logging.WARNING, "cosolve.fmu"):
        equal(run(part("warns", fmi), fmi, cs.Implicit(1)), run(part("black", fmi), fmi, cs.Implicit(1)))
    assert "the table is extrapolated" in caplog.text


@pytest.mark.parametrize("transport", ["shared_memory", "pipe"])
def test_standard_output_does_not_disturb_the_exchange(transport):
    """The process of an isolated FMU communicates through pipes of its own; what the FMU prints goes elsewhere."""
    from functools import partial

    a = cs.remote.Isolated(partial(part, "chatty", 2), transport=transport)
    equal(run(a, 2), expected("chatty", 2))


def test_fmpy_and_cosolve_log_side_by_side(tmp_path):
    """FMPy's own FMUs take their messages over in the same process; ours keep theirs."""
    log = tmp_path / "words.txt"
    a = part("warns", 2, log=log)
    expected.cache_clear()
    expected("warns", 2)  # FMPy instances come and go meanwhile
    cs.simulate(pair(a, 2), t_end=1.0, method=cs.Jacobi(0), step=0.05)
    assert log.read_text().count("the table is extrapolated") == 20
