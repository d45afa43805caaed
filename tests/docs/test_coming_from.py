"""The pages for users of another tool: what stands in the right-hand column of their tables runs."""

import re
import shutil
from pathlib import Path

import pytest
from tests.choice import quick
from tests.docs.test_markdown import FMUS, blocks
from tests.fmu.build import fmu
from typer.testing import CliRunner

from cosolve.cli import app

PAGES = sorted((Path(__file__).parents[2] / "docs" / "coming-from").glob("*.md"))
LONG = ("precice.md", "pyfmi.md", "simulink.md")  # compile, or run for many seconds


def right_hand(page):
    """The code in the last cell of each row, in order."""
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]
    rows = [row for row in rows if "](" not in row]  # a page of its own says it
    return [code for row in rows for code in re.findall(r"`([^`]+)`", row.rstrip("| ").rpartition(" | ")[2])]


@pytest.mark.parametrize("page", quick(PAGES, *(p for p in PAGES if p.name not in LONG)), ids=lambda p: p.name)
def test_the_right_hand_column_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, model, fmi in FMUS:
        shutil.copy(fmu(model, fmi), name)
    namespace: dict = {}
    exec("import cosolve as cs", namespace)
    for kind, text in blocks(page):
        if kind == "python":
            exec(compile(text, page.name, "exec"), namespace)
    if "car.ssp" in page.read_text(encoding="utf-8"):
        exec(_CAR, namespace)
    commands = right_hand(page)
    assert len(commands) > 12
    for command in commands:
        if command.startswith("cosolve "):
            done = CliRunner().invoke(app, command.split()[1:])
            assert done.exit_code == 0, f"{command}: {done.output}"
        else:
            exec(compile(command, f"{page.name}: {command}", "exec"), namespace)


#: A file that the page speaks of before it shows how it is written.
_CAR = """
first = cs.System({"body": cs.load_fmu("body.fmu"), "wheel": cs.load_fmu("wheel.fmu")})
first.connect("body.x", "wheel.x1")
first.connect("body.v", "wheel.v1")
first.connect("wheel.F", "body.f")
cs.fmi.write_ssp(first, "car.ssp", method=cs.Jacobi(degree=1), step=2e-3, t_end=1.0)
"""
