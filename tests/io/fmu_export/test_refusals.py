"""What cannot be exported is refused with one sentence, and the same model gives the same file."""

import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

import cosolve as cs

pytest.importorskip("pythonfmu")
pytest.importorskip("pythonfmu3")

MODEL = f"{Path(__file__).parent}/files/masses.py"


@pytest.mark.parametrize(
    ("source", "options", "sentence"),
    [
        ("model.txt", {}, "neither a system file"),
        ("nowhere.py:pair", {}, "there is no file 'nowhere.py'"),
        ("nowhere.toml", {}, "there is no file 'nowhere.toml'"),
        (f"{MODEL}:pear", {}, "has no 'pear'; did you mean 'pair'"),
        (f"{MODEL}:nothing", {}, "returned a int, not a System or Subsystem"),
        (f"{MODEL}:without_method", {}, "a System needs a method; give method= and step="),
        (f"{MODEL}:pair", {"version": "1.0"}, "version must be '2.0' or '3.0'"),
        (f"{MODEL}:pair", {"inputs": ["one.force"]}, "'one.force' is not an input that System.set holds"),
        (f"{MODEL}:pair", {"outputs": ["one.y"]}, "'one.y' is not an output"),
        (f"{MODEL}:pair", {"parameters": {"stiffness": "soft"}}, "must be a number, not 'soft'"),
        (f"{MODEL}:pair", {"parameters": {"softness": 1.0}}, "has no parameter 'softness'"),
        (f"{MODEL}:pair", {"files": ["missing.csv"]}, "there is no file 'missing.csv'"),
    ],
)
def test_a_source_that_does_not_work(source, options, sentence, tmp_path):
    with pytest.raises(cs.errors.SetupError, match=sentence.replace("?", r"\?")):
        cs.fmi.export_fmu(source, tmp_path / "x.fmu", **options)
    assert not list(tmp_path.iterdir())


def test_where_it_cannot_be_written(tmp_path):
    with pytest.raises(cs.errors.SetupError, match=r"must end in \.fmu"):
        cs.fmi.export_fmu(f"{MODEL}:pair", tmp_path / "x.zip")
    with pytest.raises(cs.errors.OutputFileError, match="cannot be written"):
        cs.fmi.export_fmu(f"{MODEL}:pair", tmp_path / "nowhere" / "x.fmu")


def test_an_object_needs_cloudpickle(tmp_path, monkeypatch):
    import cosolve.io.fmu_export.source as module

    def gone(name):
        raise ImportError(name)

    monkeypatch.setattr(module, "import_module", gone)
    clock = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    with pytest.raises(cs.errors.SetupError, match="install cloudpickle, or export a system file"):
        cs.fmi.export_fmu(clock, tmp_path / "x.fmu", method=cs.Jacobi(), step=0.1)


@pytest.mark.parametrize(("version", "form"), [("2.0", r"\{[0-9a-f]{32}\}"), ("3.0", "[0-9a-f]{32}")])
def test_the_token_has_the_form_of_its_version(version, form, tmp_path):
    """The GUID of FMI 2 stands in braces."""
    made = cs.fmi.export_fmu(f"{MODEL}:pair", tmp_path / "pair.fmu", version=version)
    with zipfile.ZipFile(made) as file:
        root = ElementTree.fromstring(file.read("modelDescription.xml"))
    assert re.fullmatch(form, root.get("guid" if version == "2.0" else "instantiationToken"))


def test_the_same_model_gives_the_same_file_with_everything_in_it(tmp_path):
    first = cs.fmi.export_fmu(f"{MODEL}:pair", tmp_path / "pair.fmu", version="3.0")
    data = first.read_bytes()
    assert cs.fmi.export_fmu(f"{MODEL}:pair", tmp_path / "pair.fmu", version="3.0").read_bytes() == data
    with zipfile.ZipFile(first) as file:
        names = set(file.namelist())
        root = ElementTree.fromstring(file.read("modelDescription.xml"))
    assert {"resources/model/masses.py", "resources/model/springs.py", "documentation/index.html"} <= names
    assert "binaries/x86_64-linux/pair.so" in names
    variables = {v.get("name"): v for v in root.find("ModelVariables")}
    assert variables["one.x"].attrib == {
        "name": "one.x",
        "valueReference": "3",
        "causality": "output",
        "variability": "continuous",
        "unit": "m",
    }
    assert variables["two.extra"].get("start") == "0.0"
    assert root.find("DefaultExperiment").get("stepSize") == "0.01"


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_a_subsystem_says_which_outputs_react_at_once(version, tmp_path):
    """Importers need it: inputs at the end of a step reach these outputs only if they are set again."""
    (tmp_path / "part.py").write_text(
        "import cosolve as cs\ndef part():\n"
        "    return cs.Linear([[0.0]], [[1.0, 0.0, 1.0]], [[1.0], [0.0], [2.0]], [[0, 0, 0], [0, 5, 0], [0, 0, 1]],\n"
        "                     x0=[0.0], inputs=['a', ('b', 2)], outputs=['x', ('y', 2)])\n"
    )
    path = cs.fmi.export_fmu(f"{tmp_path}/part.py:part", tmp_path / "part.fmu", version=version)
    found = cs.load_fmu(path).feedthrough()
    # arrays react as a whole; as scalars y[1] takes b[1] and y[2] takes b[2]
    expected = [[0, 0, 0], [0, 1, 0], [0, 0, 1]] if version == "2.0" else [[0, 0, 0], [0, 1, 1], [0, 1, 1]]
    assert found.astype(int).tolist() == expected
    assert not hasattr(
        cs.load_fmu(cs.fmi.export_fmu(f"{MODEL}:pair", tmp_path / "pair.fmu", version=version)), "feedthrough"
    )
