"""The first page as a new user follows it: every command of it, one after the other, in an empty folder."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cosolve.cli import app
from cosolve.result.store import load

PAGE = Path(__file__).parents[2] / "docs" / "getting-started.md"


def commands():
    return re.findall(r"^    \$ (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_the_page_goes_all_the_way():
    """From making the FMUs to a report, an error estimate, and FMUs of one's own."""
    words = " ".join(commands())
    for needed in ("cosolve new car", "cosolve check", "--report", "compare", "--error-bar", "inspect", "--fmu"):
        assert needed in words


@pytest.mark.slow
def test_every_command_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for command in commands():
        first, *rest = command.split()
        if first == "cd":
            monkeypatch.chdir(rest[0])
            continue
        done = CliRunner().invoke(app, rest)
        assert done.exit_code == 0, f"{command}: {done.output}"
        assert "Traceback" not in done.output
    assert Path("report.html").exists()
    assert Path("result.png").exists()
    assert load("result.h5").error_bar is not None
