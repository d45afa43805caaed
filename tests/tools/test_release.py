"""`make release-check`: what it takes from the README, which interpreters it finds, and what it builds."""

import re
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import cosolve as cs
from tools import release


def test_blocks_of_the_readme_are_what_is_run():
    page = "A number:\n```python\nx = 1\n```\nPrinted:\n```text\n1\n```\n```python\nprint(x)\n```\n"
    assert release.python_blocks(page) == "x = 1\n\nprint(x)\n"
    assert "cs.simulate(" in release.python_blocks((release.ROOT / "README.md").read_text())


def test_one_version_everywhere():
    """Of the package, its metadata, its citation, and the newest section of the changelog that is a release."""
    project = tomllib.loads((release.ROOT / "pyproject.toml").read_text())["project"]
    (cited,) = re.findall(r"^version: (.*)$", (release.ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE)
    described = re.findall(r"^## \[(\d.*?)\]", (release.ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert {cs.__version__, project["version"], cited, described[0]} == {cs.__version__}


def test_interpreters(tmp_path):
    """This one is found; what does not run is not; what is asked for must run."""
    assert [python.minor for python in release.interpreters([sys.executable])] == [sys.version_info[1]]
    assert sys.version_info[1] in {python.minor for python in release.interpreters([])}
    broken = tmp_path / "python3.99"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(release.Failed, match="is no Python that runs"):
        release.interpreters([str(broken)])


def test_packages_of_extras_and_classifiers():
    assert {"pytest", "jax", "pandas", "ruff"} <= set(release.extras())
    assert not {"numpy", "numba", "h5py", "pythonfmu", "starlette"} & set(release.extras())
    assert release.unnamed([release.Python("", "3.11.7"), release.Python("", "3.99.0")]) == ["3.99"]


def test_a_step_that_fails_says_what_it_said(tmp_path):
    with pytest.raises(release.Failed, match=r"ended with 3:\nbefore it$"):
        release.call(sys.executable, "-c", "print('before it'); raise SystemExit(3)", cwd=tmp_path)


def test_wheel_and_sdist_are_whole(tmp_path):
    """Nothing compiled, no tests in the wheel, the examples with it; the sdist has what a wheel is made from."""
    pytest.importorskip("hatchling")
    wheel, sdist = release.build(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "cosolve/_gallery/examples/two_mass/system.toml" in names
    assert "cosolve/py.typed" in names
    pages = {name.removeprefix("cosolve/_docs/") for name in names if name.startswith("cosolve/_docs/")}
    docs = release.ROOT / "docs"
    assert {page for page in pages if page.endswith(".md")} == {
        path.relative_to(docs).as_posix() for path in docs.rglob("*.md")
    }
    assert {Path(page).suffix for page in pages} <= {".md", ".toml"}  # no pictures
    assert not any(name.startswith(("tests", "benchmarks", "conftest")) for name in names)
    assert not any(name.endswith((".nbi", ".nbc", ".pyc", ".so")) for name in names)
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "conftest.py", "tests/limits.py", "Makefile"} <= held
