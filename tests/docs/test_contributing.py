"""CONTRIBUTING.md, the architecture notes and CITATION.cff say what pyproject.toml and the source say."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_layers_are_those_of_the_contract():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = (c for c in project["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    enforced = [re.sub(r"[()]", "", layer) for layer in contract["layers"]]
    page = (ROOT / "CONTRIBUTING.md").read_text()
    block = re.search(r"The import layers.*?\n\n((?:    [^\n]+\n)+)", page, flags=re.DOTALL)
    assert block is not None
    assert [line.strip() for line in block[1].splitlines()] == enforced


def test_every_package_is_described():
    """The table of packages in the architecture notes has a row for each folder and module under cosolve."""
    page = (ROOT / "docs" / "architecture" / "index.md").read_text()
    described = {
        name for row in re.findall(r"^\| (`.+?`) \|", page, flags=re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    packages = {
        path.stem for path in (ROOT / "src" / "cosolve").iterdir() if not path.name.startswith(("_", "py.typed"))
    }
    assert packages == described & packages
    assert {"io", "subsystem", "errors"} <= packages


def test_the_citation_names_this_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {project['version']}\n" in citation
    assert f"\nlicense: {project['license']}\n" in citation
