"""`cosolve inspect`: what a person sees of an FMU, and that the verdicts agree with what the engine does."""

import json
import sys
from dataclasses import replace

import pytest
from tests import processes
from tests.fmu.build import build, fmu
from tests.fmu.catalogue import MODELS, without
from typer.testing import CliRunner

import cosolve as cs
from cosolve.cli import app


def test_tables():
    done = CliRunner().invoke(app, ["inspect", str(fmu("mass_no_rollback", 2))], env={"COLUMNS": "140"})
    assert done.exit_code == 0
    for text in ("FMI 2.0, co-simulation", "2 continuous states", "Float64", "N.s/m", "14.1421", "tunable"):
        assert text in done.output
    assert "it cannot go back to the start of a step (canGetAndSetFMUState); use Jacobi or GaussSeidel" in done.output


def test_json():
    done = CliRunner().invoke(app, ["inspect", str(fmu("array", 3)), "--json"])
    found = json.loads(done.output)
    assert found["fmi"] == "3.0"
    assert found["inputs"][0] == {
        "name": "u",
        "type": "Float64",
        "size": "3",
        "unit": "",
        "start": "0 0 0",
        "variability": "continuous",
        "description": "",
    }
    assert found["capabilities"]["gives adjoint derivatives"] is True
    assert found["remarks"] == []


def test_one_sentence_for_what_is_no_fmu(tmp_path):
    file = tmp_path / "x.fmu"
    file.write_text("hello")
    done = CliRunner().invoke(app, ["inspect", str(file)])
    assert done.exit_code == 2
    assert "is not a zip archive" in done.output


@pytest.mark.parametrize("name", MODELS)
def test_verdicts_agree_with_the_capabilities(name):
    """What inspect promises without loading the FMU is what the loaded object offers."""
    for fmi in MODELS[name].versions:
        possible = {v.method: v.possible for v in cs.fmi.inspect_fmu(fmu(name, fmi)).methods}
        offered = cs.capabilities(cs.load_fmu(fmu(name, fmi)))
        assert possible["SemiImplicit"] == possible["Implicit"] == ("rollback" in offered)
        assert possible["saved runs"] == ("serialised state" in offered)
        assert possible["DynamicStatic"] == ("equations" in offered)
        why = {v.method: v.reason for v in cs.fmi.inspect_fmu(fmu(name, fmi)).methods}
        if possible["Implicit"]:
            assert ("from its derivatives" in why["Implicit"]) == ("jacobian" in offered)
        assert why["saved runs"].startswith(f"its state {'can' if possible['saved runs'] else 'cannot'} be written")
        if MODELS[name].kinds == ("CoSimulation",):
            assert ("one length only" in why["Adaptive steps"]) == (not possible["Adaptive steps"])
            assert ("cannot be repeated" in why["Adaptive steps"]) <= ("rollback" not in offered)
            assert ("are repeated" in why["Adaptive steps"]) <= ("rollback" in offered)


def test_nothing_of_the_fmu_is_run(tmp_path):
    """A library that could not even be loaded does not matter, a missing one is remarked."""
    from tests.fmu.test_bad_input import changed

    file = changed(fmu("mass_force", 3), tmp_path / "bare.fmu", drop=["binaries"])
    (remark,) = cs.fmi.inspect_fmu(file).remarks
    assert "no binary for this platform" in remark


def test_remarks_of_the_validation(tmp_path):
    from tests.fmu.test_bad_input import changed

    file = changed(fmu("mass_force", 3), tmp_path / "odd.fmu", lambda t: t.replace("<Output ", '<Output odd="1" ', 1))
    assert any("FMPy's validation" in remark for remark in cs.fmi.inspect_fmu(file).remarks)


def test_without_fmpy_nothing_is_validated_and_that_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "fmpy", None)
    monkeypatch.setitem(sys.modules, "fmpy.model_description", None)
    (remark,) = cs.fmi.inspect_fmu(fmu("mass_force", 3)).remarks
    assert remark.endswith("that takes FMPy, pip install cosolve[validate]")


def test_constant_steps_are_named():
    fixed = replace(MODELS["mass_force"], flags=without("canHandleVariableCommunicationStepSize"))
    found = {v.method: v for v in cs.fmi.inspect_fmu(build("mass_force", fixed, 2)).methods}
    assert not found["Adaptive steps"].possible
    assert "constant step" in found["Adaptive steps"].reason


def test_import_of_cosolve_does_not_load_fmpy():
    code = "import sys, cosolve; cosolve.load_fmu; sys.exit('fmpy' in sys.modules)"
    assert processes.run([sys.executable, "-c", code]).returncode == 0
