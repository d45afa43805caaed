"""The documentation site: `make docs` builds it from the Markdown pages of the repository, without a network.

The source folder is the root of the repository, so that links between pages, and from pages to code, are the same here
and on a code host. Formulas become MathML, which browsers draw themselves: no script, no font, nothing to download.
The API reference is written by `tools/reference.py` before the pages are read.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tools.reference import write_pages  # noqa: E402

import cosolve  # noqa: E402

project = "cosolve"
author = "The cosolve authors"
release = version = cosolve.__version__
copyright = "The cosolve authors"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
]
root_doc = "docs/index"
include_patterns = ["docs/**", "*.md", "benchmarks/*.md", "benchmarks/profiles/*.md"]
exclude_patterns = [".*", "build", "dist", "src", "tests", "examples", "tools", "campaigns", "out", "benchmarks/.*"]

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
suppress_warnings = [
    "misc.highlighting_failure",  # blocks of text that are no program
]

default_role = "code"  # `name` in docstrings, as everywhere in this repository
autodoc_typehints = "none"  # the tables of arguments have the types, which tools/docstrings.py asks for
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autosummary_generate = False  # pages by area, not one for every name
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = "cosolve"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


navigation = tomllib.loads((ROOT / "docs" / "navigation.toml").read_text(encoding="utf-8"))


def _place(app: Any, docname: str, source: list[str]) -> None:
    """Say in a page which others are below it, so that the pages themselves stay plain Markdown."""
    lists = []
    if docname == root_doc:
        lists = [(part["caption"], part["pages"]) for part in navigation["parts"]]
    elif docname in navigation["below"]:
        lists = [("", navigation["below"][docname])]
    for caption, pages in lists:
        lines = [
            "```{toctree}",
            ":hidden:",
            ":glob:",
            *([f":caption: {caption}"] if caption else []),
            "",
            *pages,
            "```",
        ]
        source[0] += "\n" + "\n".join(lines) + "\n"
    if docname == "README":  # the first page of the repository, as docs/index.md is that of the site
        source[0] = "---\norphan: true\n---\n" + source[0]


def _mathml(block: bool) -> Any:
    from docutils import nodes
    from docutils.utils.math import latex2mathml

    def visit(translator: Any, node: Any) -> None:
        drawn = latex2mathml.tex2mathml(node.astext(), as_block=block)
        translator.body.append(f'<div class="math">{drawn}</div>' if block else drawn)
        raise nodes.SkipNode

    return visit


def _tables(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Tables of docstrings, which are written as in the pages."""
    found: list[str] = []
    for line in lines:
        cells = [cell.strip() for cell in line.strip()[1:-1].split("|")]
        if not (line.strip().startswith("|") and line.strip().endswith("|")):  # what an example prints is no table
            found.append(line)
        elif set(line.strip()) <= set("|-"):
            continue
        else:
            if not found or not found[-1].startswith("     "):
                found += [".. list-table::", "   :header-rows: 1", ""]
            found += [f"{'   * - ' if k == 0 else '     - '}{cell}" for k, cell in enumerate(cells)]
    lines[:] = found


def setup(app: Any) -> dict[str, Any]:
    """Formulas, and the pages of the reference."""
    app.add_html_math_renderer("mathml", (_mathml(block=False), None), (_mathml(block=True), None))
    app.add_config_value("navigation", {}, "env")  # another order: all pages anew
    app.connect("source-read", _place)
    app.connect("autodoc-process-docstring", _tables)
    write_pages(ROOT / "docs" / "reference")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
