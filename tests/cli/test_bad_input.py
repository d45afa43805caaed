"""What newcomers type that cannot be done: exit code 2 and one sentence, before anything runs or is written."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cosolve.cli import app

KINDS = "is not a system file (.toml), an SSP (.ssp) or an FMU (.fmu)"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project") / "car"
    assert CliRunner().invoke(app, ["new", str(folder), "--template", "toml"]).exit_code == 0
    (folder / "result.h5").write_bytes(b"\x89HDF\r\n\x1a\n of yesterday")
    return folder


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("run parts.py", f"'parts.py' {KINDS}"),
        ("check README.md", f"'README.md' {KINDS}"),
        ("compare result.h5", f"'result.h5' {KINDS}"),
        ("run .", "'.' cannot be read: it is a folder, not a file"),
        ("run nothere.toml", "there is no system file 'nothere.toml'; check the path"),
        ("run a.fmu b.fmu", "FMUs are coupled in a project: cosolve new NAME --fmu a.fmu --fmu b.fmu"),
        ("runn system.toml", "No such command 'runn'. Did you mean 'run'?"),
        ("run system.toml --t-end -1", "t_end = -1 is not after t_start = 0"),
        ("run system.toml --step 0", "step must be a positive, finite number"),
        ("run system.toml --method semiimplicit", "did you mean 'semi-implicit'?"),
        ("run system.toml --plot body.x", "there is nothing called 'body.x' to plot; did you mean 'body.z'?"),
        ("run system.toml --set mass=3", "write it as TABLE.KEY or SUBSYSTEM.NAME; such as body.mass"),
        ("run system.toml --report report.pdf", "'report.pdf' is not the name of a page: reports are HTML"),
        ("run system.toml -o none/x.h5", "to 'none/x.h5': the folder 'none' does not exist"),
        ("view README.md --no-browser", "'README.md' is nothing to view: results end in .h5"),
        ("report system.toml", "system.toml' is not an HDF5 file"),
        ("inspect parts.py", "'parts.py' is not a zip archive"),
        ("export parts.py out.fmu", "'parts.py' is neither a system file (.toml), an SSP, 'model.py:function'"),
        ("export parts.py:boddy out.fmu", "did you mean 'body'?"),
        ("demo quartercar", "did you mean 'quarter_car_fmus'?"),
        ("docs gettingstarted", "did you mean 'getting-started'?"),
    ],
)
def test_one_sentence(project, monkeypatch, line, sentence):
    monkeypatch.chdir(project)
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code == 2, done.output
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


def test_one_model_by_itself_is_not_analysed(project, monkeypatch):
    """No radius of a coupling that is not there."""
    monkeypatch.chdir(project)
    made = CliRunner().invoke(app, ["export", "parts.py:wheel", "wheel.fmu"])
    assert made.exit_code == 0, made.output
    done = CliRunner().invoke(app, ["check", "wheel.fmu"])
    assert "stable at H = 0.002: nothing is coupled" in done.output
    assert "radius" not in done.output
