"""The pages at the root and under docs/ are run, block by block, as a reader would; their links lead somewhere."""

import contextlib
import io
import re
import shutil
from pathlib import Path

import pytest
from tests.choice import quick
from tests.docs.car import place
from tests.fmu.build import fmu

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if page.parent.name != "reference"]  # written by make docs

#: pages that go on with the FMUs of `cosolve new car`
CAR = ("howto-fmu.md", "howto-ssp.md")
#: FMUs that the other pages speak of, built from the tests' C sources
FMUS = (("body.fmu", "mass_force", 2), ("wheel.fmu", "mass_spring", 3))


def blocks(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


#: Notebooks run as notebooks, see test_notebooks.py.
PYTHON = [p for p in PAGES if p.parent.name != "notebooks" and any(kind == "python" for kind, _ in blocks(p))]
#: compile, or start processes, for many seconds
LONG = ("howto-field-solvers.md", "howto-fmu.md", "howto-joints.md", "howto-participants.md", "howto-sweep.md")


@pytest.mark.parametrize("page", quick(PYTHON, *(p for p in PYTHON if p.name not in LONG)), ids=lambda p: p.name)
def test_python_blocks_run_and_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.name in CAR:
        place(tmp_path)
    for name, model, fmi in FMUS:
        if name in page.read_text() and page.name not in CAR:
            shutil.copy(fmu(model, fmi), name)
    namespace: dict = {}
    printed = ""
    for kind, text in blocks(page):
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, page.name, "exec"), namespace)
            printed = out.getvalue()
        elif kind == "text" and printed and not text.startswith("#"):
            assert printed.strip() == text.strip(), f"{page.name} shows another output than it prints"


def test_links_between_pages_exist():
    """A relative link in a page leads to a file of the repository, and to a heading in it where it names one."""
    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", page.read_text()):
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name} links to {target}"
            if anchor:
                assert anchor in anchors(there), f"{page.name} links to {there.name}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The names that a page's headings have in links, as GitHub and most generators make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_can_be_reached_from_the_readme():
    found, ways = set(), [ROOT / "README.md"]
    while ways:
        page = ways.pop()
        found.add(page)
        for target in re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", page.read_text()):
            there = (page.parent / target).resolve()
            if there not in found:
                ways.append(there)
    lost = {str(page.relative_to(ROOT)) for page in PAGES} - {str(page.relative_to(ROOT)) for page in found}
    assert not lost
