"""The site: what its checks find, that every page has a place, and (slow) that it builds without a warning."""

import importlib.util
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import cosolve as cs
from tools import gallery, reference, site

ROOT = Path(__file__).parents[2]


def test_what_the_checks_find(tmp_path):
    (tmp_path / "searchindex.js").write_text("")
    (tmp_path / "here.html").write_text(
        '<a href="there.html#part">ok</a><a href="there.html#nowhere">no</a><a href="missing.html">no</a>'
        '<a href="https://example.org">elsewhere is fine for a link</a><img src="data:image/png;base64,x">'
        '<script src="https://cdn.example.org/x.js"></script><link rel="stylesheet" href="style.css">'
    )
    (tmp_path / "there.html").write_text('<h2 id="part">Part</h2>')
    (tmp_path / "style.css").write_text(
        '@import "https://fonts.example.org/a.css"; body { background: url(local.png) }'
    )
    found = list(site.faults(tmp_path))
    assert len(found) == 4
    for words in ("#nowhere: there is no such anchor", "missing.html", "cdn.example.org", "style.css loads"):
        assert any(words in sentence for sentence in found)


def test_every_public_name_has_its_area():
    names = reference.public_names()
    at_top = {name: module for name, module in names.items() if "." not in name}
    spaces = {name for name in cs.__all__ if inspect.ismodule(getattr(cs, name))}
    assert {*at_top, *spaces} == set(cs.__all__)
    assert {reference.area_of(module) for module in at_top.values()} == {file for file, *_ in reference.AREAS}
    assert {*(f"cosolve.{space}" for space in spaces), "cosolve_crosscheck"} == set(reference.NAMESPACES)
    for space in spaces:
        listed = {name.partition(".")[2] for name in names if name.startswith(f"{space}.")}
        assert listed >= set(getattr(cs, space).__all__)


def test_every_page_has_a_place_on_the_site():
    places = tomllib.loads((ROOT / "docs" / "navigation.toml").read_text(encoding="utf-8"))
    listed = {page for part in places["parts"] for page in part["pages"]}
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix("").as_posix()
        folder = name.rpartition("/")[0]
        assert name in listed | {"index"} or f"docs/{folder}/index" in places["below"], (
            f"{name} is not in navigation.toml"
        )
    for name in listed - {"reference/index"}:  # which is written when the site is built
        assert (ROOT / "docs" / f"{name}.md").exists()


def test_the_gallery_is_complete():
    assert gallery.faults() == []


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("myst_parser") is None, reason="needs Sphinx and MyST: make docs installs them"
)
def test_the_site_builds_without_a_warning():
    done = subprocess.run([sys.executable, "-m", "tools.site"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (site.SITE / "docs" / "theory.html").read_text(encoding="utf-8")
    assert page.count("<math") > 10  # formulas are drawn by the browser itself, not by a script
    assert not any("mathjax" in address.lower() for address in site.Page(page).loads)
