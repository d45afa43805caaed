"""The notebooks agree with their pages and run from top to bottom, each in a kernel of its own."""

import json

import pytest
from tests.choice import quick
from tools.notebooks import FOLDER, pages, stale

NAMES = [page.stem for page in pages()]
LIMIT = 240  # seconds for one cell, compiling included


def test_there_are_ten_and_they_agree_with_their_pages():
    assert len(NAMES) == 10
    assert stale() == []


def test_no_outputs_are_kept():
    for name in NAMES:
        cells = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
        assert any(cell["cell_type"] == "code" for cell in cells)
        assert not any(cell.get("outputs") for cell in cells)


def test_all_are_listed():
    text = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert all(f"({name}.md)" in text and f"({name}.ipynb)" in text for name in NAMES)


@pytest.mark.filterwarnings("default")  # what Jupyter itself warns of is not ours
@pytest.mark.parametrize("name", quick(NAMES, "algebraic_loop"))
def test_it_runs_from_top_to_bottom(name, tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel: make install")
    nbformat = pytest.importorskip("nbformat")
    read = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    nbformat.validate(read)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(read, timeout=LIMIT, kernel_name="python3", resources=resources).execute()
    shown = [output for cell in read.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in shown)  # every one of them draws something
