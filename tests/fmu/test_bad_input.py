"""What can be wrong with an FMU: each one sentence that says what, where and what would work."""

import stat
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.fmu.build import build, fmu
from tests.fmu.catalogue import MODELS, Var, without

import cosolve as cs
from cosolve.fmu import archive


def changed(source: Path, target: Path, edit=None, extra=(), drop=()) -> Path:
    """A copy of an FMU with another description, more entries or fewer."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            if edit is not None and entry.filename == "modelDescription.xml":
                data = edit(data.decode()).encode()
            if not any(entry.filename.startswith(start) for start in drop):
                new.writestr(entry, data)
        for entry, data in extra:
            new.writestr(entry, data)
    return target


def refused(file: Path, *words: str, **options) -> None:
    with pytest.raises(cs.errors.SetupError) as error:
        cs.load_fmu(file, **options)
    text = str(error.value)
    for word in words:
        assert word in text
    assert "\n" not in text


# -- archives ----------------------------------------------------------------------------------------------------


def test_broken_zip(tmp_path):
    whole = fmu("mass_force", 2).read_bytes()
    for name, data in {"noise": b"not a zip", "short": whole[: len(whole) // 2], "empty": b""}.items():
        file = tmp_path / f"{name}.fmu"
        file.write_bytes(data)
        refused(file, f"{name}.fmu", "zip")
    spoilt = bytearray(whole)
    spoilt[200:260] = b"\xff" * 60  # inside the compressed description
    file = tmp_path / "spoilt.fmu"
    file.write_bytes(bytes(spoilt))
    refused(file, "spoilt.fmu", "export or download it again")
    refused(tmp_path / "nowhere.fmu", "there is no file")
    refused(3, "path of its file", "3")
    refused(tmp_path, "folder without modelDescription.xml")


@pytest.mark.parametrize("name", ["../evil.txt", "/etc/evil.txt", "a/../../evil.txt", "..\\evil.txt", "C:/evil.txt"])
def test_path_escapes(tmp_path, name):
    file = changed(fmu("mass_force", 2), tmp_path / "bad.fmu", extra=[(zipfile.ZipInfo(name), b"evil")])
    refused(file, name, "outside its folder")
    assert not list(tmp_path.parent.rglob("evil.txt"))


def test_links(tmp_path):
    link = zipfile.ZipInfo("resources/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    file = changed(fmu("mass_force", 2), tmp_path / "bad.fmu", extra=[(link, b"/etc/passwd")])
    refused(file, "resources/link", "links are refused")


def test_size_limits(tmp_path, monkeypatch):
    bomb = changed(fmu("mass_force", 2), tmp_path / "bomb.fmu", extra=[(zipfile.ZipInfo("zeros"), b"\0" * 300_000)])
    monkeypatch.setattr(archive, "MAX_BYTES", 200_000)
    refused(bomb, "more than 195.3 KiB", "refused")
    monkeypatch.setattr(archive, "MAX_BYTES", 10**9)
    monkeypatch.setattr(archive, "MAX_ENTRIES", 2)
    refused(bomb, "3 entries")
    monkeypatch.setattr(archive, "MAX_ENTRIES", 3)
    assert cs.load_fmu(bomb).outputs


def test_entry_twice(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate"):
        file = changed(
            fmu("mass_force", 2), tmp_path / "bad.fmu", extra=[(zipfile.ZipInfo("modelDescription.xml"), b"<a/>")]
        )
    refused(file, "modelDescription.xml", "twice")


def test_same_content_is_unpacked_once(tmp_path):
    copy = changed(fmu("mass_force", 2), tmp_path / "one.fmu")
    other = tmp_path / "two.fmu"
    other.write_bytes(copy.read_bytes())
    assert archive.unpack(copy) == archive.unpack(other)


# -- descriptions and libraries -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmi", [2, 3])
def test_missing_parts(tmp_path, fmi):
    good = fmu("mass_force", fmi)
    refused(changed(good, tmp_path / "a.fmu", drop=["modelDescription"]), "a.fmu", "no modelDescription.xml")
    refused(changed(good, tmp_path / "b.fmu", drop=["binaries"]), "b.fmu", "no binary for this platform", "no platform")
    other = changed(good, tmp_path / "c.fmu", drop=["binaries"], extra=[("binaries/win64/mass_force.dll", b"MZ")])
    refused(other, "only for win64", archive.platform_folder(fmi))
    junk = f"binaries/{archive.platform_folder(fmi)}/mass_force.so"
    refused(changed(good, tmp_path / "d.fmu", drop=["binaries"], extra=[(junk, b"junk")]), "d.fmu", "does not load")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda t: t[:300], ["cannot be read as XML"]),
        (lambda t: t.replace('fmiVersion="2.0"', 'fmiVersion="0.9"'), ["FMI 0.9 is not supported", "1.0, 2.0 or 3.0"]),
        (lambda t: t.replace('valueReference="6"', 'valueReference="six"'), ["not valid", "six"]),
        (lambda t: t.replace("CoSimulation ", "Unheard "), ["not made for model exchange"]),
        (lambda t: "<html/>", ["<html>"]),
        (lambda t: t.replace("<fmiModel", '<!DOCTYPE a [<!ENTITY b "c">]><fmiModel', 1), ["document type"]),
    ],
    ids=["cut", "FMI 0.9", "reference", "kind", "html", "entities"],
)
def test_bad_descriptions(tmp_path, edit, words):
    refused(changed(fmu("mass_force", 2), tmp_path / "bad.fmu", edit), *words)


@pytest.mark.parametrize(("fmi", "word"), [(2, "GUID"), (3, "instantiation token")])
def test_wrong_token(tmp_path, fmi, word):
    file = changed(fmu("mass_force", fmi), tmp_path / "bad.fmu", lambda t: t.replace("{6f0c", "{7f0c"))
    refused(file, "cannot be instantiated", word, "is not the one of this library")


@pytest.mark.parametrize("fmi", [2, 3])
def test_value_reference_out_of_range(fmi):
    """Found when the run starts: the FMU refuses, and the sentence says which variable."""
    model = MODELS["mass_force"]
    wrong = replace(
        model, variables=(*model.variables, Var("ghost", 77, "output")), outputs={**model.outputs, "ghost": ""}
    )
    system = cs.System({"mass": cs.load_fmu(build("mass_force", wrong, fmi))})
    system.set("mass.f", 0.0)
    with pytest.raises(
        cs.errors.SubsystemError, match=r"'mass' failed while .* at t = 0.*'ghost'.*reference 77 is out of range"
    ):
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.1)


# -- options -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"parameters": {"mass": 1.0}}, ["no variable 'mass'", "cosolve inspect"]),
        ({"parameters": {"fail-at": 1.0}}, ["did you mean 'fail_at'"]),
        ({"parameters": {"x": 1.0}}, ["'x'", "is an output, not a parameter", "start="]),
        ({"parameters": [1.0]}, ["dict"]),
        ({"start": {"der(x)": 1.0}}, ["'der(x)'", "no start value"]),
        ({"inputs": ["x"]}, ["'x'", "not an input"]),
        ({"outputs": ["y"]}, ["no variable 'y'"]),
        ({"inputs": "f"}, ["['f']"]),
        ({"substeps": 0}, ["substeps", "0"]),
        ({"kind": "model-exchange"}, ["not made for model exchange", "co-simulation"]),
        ({"kind": "scheduled"}, ["no kind 'scheduled'", "'model-exchange'"]),
        ({"tolerance": -1e-6}, ["tolerance", "positive"]),
        ({"noise": "little"}, ["noise"]),
        ({"rtol": 1e-3}, ["no option 'rtol'", "substeps"]),
        ({"derivatives": "all"}, ["derivatives"]),
        ({"log": "/nowhere/at/all.log"}, ["log file", "/nowhere/at/all.log"]),
    ],
    ids=lambda v: next(iter(v)) if isinstance(v, dict) else "",
)
def test_bad_options(fmi, options, words):
    refused(fmu("mass_force", fmi), *words, **options)


@pytest.mark.parametrize("fmi", [2, 3])
def test_bad_values_of_parameters(fmi):
    for given, word in (
        ({"m": "heavy"}, "takes numbers"),
        ({"m": np.nan}, "finite"),
        ({"failure": 1.5}, "whole numbers"),
    ):
        with pytest.raises(cs.errors.SetupError, match=word):
            cs.load_fmu(fmu("mass_force", fmi), parameters=given).start(0.0)
    with pytest.raises(cs.errors.SetupError, match="is a string"):
        cs.load_fmu(fmu("types", fmi), parameters={"label": 3}).start(0.0)
    refused(fmu("types", fmi), "'message'", "cannot be a port", outputs=["message"])


def test_bad_sizes():
    refused(fmu("array", 3), "'n'", "size of an array", parameters={"n": 2.5})


def test_units_must_agree():
    """A force cannot be connected to a displacement; the sentence says what would do."""
    system = cs.System({"a": cs.load_fmu(fmu("mass_force", 2)), "b": cs.load_fmu(fmu("mass_motion", 3))})
    with pytest.raises(
        cs.errors.SetupError, match=r"'b.v' is in m/s but 'a.f' in N, which measure different things; .* a law"
    ):
        system.connect("b.v", "a.f")


# -- failures while running ------------------------------------------------------------------------------------------


def failing(name: str, fmi: int, method: cs.Method) -> cs.errors.SimulationError:
    system = cs.System(
        {"left": cs.load_fmu(fmu(name, fmi)), "right": cs.load_fmu(fmu("mass_force", fmi), start={"x": 1e-3})}
    )
    system.law({"left.f": 1, "right.f": -1}, lambda x1, x2: 1e3 * (x2 - x1), of=["left.x", "right.x"])
    with pytest.raises(cs.errors.SimulationError) as error:
        cs.simulate(system, t_end=0.1, method=method, step=1e-2)
    return error.value


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.SemiImplicit(1)], ids=lambda m: m.label)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "mass_discard",
            [
                "discarded its step from t = 0.05 to 0.06",
                "came to t = 0.0525",
                "did not converge",
                "smaller macro step",
            ],
        ),
        ("mass_error", ["returned 'error' from doStep at t = 0.05", "the FMU says: the tank is empty at t = 0.05"]),
        ("mass_fatal", ["returned 'fatal' from doStep at t = 0.05", "the FMU says: out of memory"]),
        ("mass_nan", ["nan", "'x'"]),
    ],
)
def test_steps_that_fail(fmi, method, name, words):
    """The run stops with the FMU's own words, the time and the name; what came before is kept."""
    error = failing(name, fmi, method)
    for word in ("'left'", "t = 0.05", *words):
        assert word in str(error)
    assert error.subsystem == "left"
    assert error.time == pytest.approx(0.05)
    assert error.result is not None
    assert error.result.t[-1] == pytest.approx(0.05)


@pytest.mark.parametrize("fmi", [2, 3])
def test_after_an_error_a_new_run_starts_afresh_but_not_after_a_fatal_one(fmi):
    for name, again in (("mass_error", True), ("mass_fatal", False)):
        system = cs.System({"m": cs.load_fmu(fmu(name, fmi))})
        system.set("m.f", 1.0)
        with pytest.raises(cs.errors.SubsystemError):
            cs.simulate(system, t_end=0.1, method=cs.Jacobi(0), step=1e-2)
        if again:
            assert len(cs.simulate(system, t_end=0.05, method=cs.Jacobi(0), step=1e-2).t) == 6
        else:
            with pytest.raises(cs.errors.SubsystemError, match="fatal error before; load the FMU again"):
                cs.simulate(system, t_end=0.05, method=cs.Jacobi(0), step=1e-2)


@pytest.mark.parametrize("fmi", [2, 3])
def test_only_one_instance_where_the_fmu_says_so(fmi):
    lonely = replace(MODELS["mass_force"], flags={**without(), "canBeInstantiatedOnlyOncePerProcess": "true"})
    file = build("mass_force", lonely, fmi)
    first = cs.load_fmu(file)
    refused(file, "one instance per process", "isolated=True")
    first.close()
    second = cs.load_fmu(file)
    del first, second
    cs.load_fmu(file)


def test_constant_step_fmus_refuse_changing_steps():
    fixed = replace(MODELS["mass_force"], flags=without("canHandleVariableCommunicationStepSize"))
    part = cs.load_fmu(build("mass_force", fixed, 2), parameters={"c": 100.0})
    system = cs.System({"m": part, "s": cs.Static(lambda t, u: -u, inputs=["x"], outputs=["f"])})
    system.connect("m.x", "s.x")
    system.connect("s.f", "m.f")
    with pytest.raises(cs.errors.SubsystemError, match=r"takes steps of one size only.*use a constant macro step"):
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=cs.Adaptive(rtol=1e-6, reject=False))
