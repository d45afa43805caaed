"""The notebooks of docs/notebooks, made from the Markdown pages beside them.

    python -m tools.notebooks            write the .ipynb files
    python -m tools.notebooks --check    say which do not agree with their pages; exit code 1 if any

Blocks of Python become code cells, what stands between them becomes text cells. The page is the source: it reads well
on a code host and in a change, and is a page of the site; the notebook is for running. No outputs are
kept, and the names of cells follow from their places, so that the same page always gives the same bytes (jupytext,
which does the same in general, gives cells random names).
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
_BLOCK = re.compile(r"^```python\n(.*?)^```\n?", flags=re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """The sources.

    >>> "two_mass.md" in [page.name for page in pages()]
    True
    """
    return [page for page in sorted(FOLDER.glob("*.md")) if page.name != "index.md"]


def cells(text: str) -> list[dict[str, Any]]:
    r"""A page as cells.

    >>> [(cell["cell_type"], cell["source"]) for cell in cells("# A\n\n```python\nprint(1)\n```\n\nEnd.\n")]
    [('markdown', ['# A']), ('code', ['print(1)']), ('markdown', ['End.'])]
    """
    found: list[dict[str, Any]] = []
    for place, piece in enumerate(_BLOCK.split(text)):
        source = [line + "\n" for line in piece.strip("\n").split("\n")]
        source[-1] = source[-1].rstrip("\n")
        if not piece.strip():
            continue
        cell: dict[str, Any] = {"cell_type": "markdown", "id": f"cell-{len(found)}", "metadata": {}, "source": source}
        if place % 2:  # between the fences
            cell |= {"cell_type": "code", "execution_count": None, "outputs": []}
        found.append(cell)
    return found


def notebook(page: Path) -> str:
    """The content of the .ipynb file."""
    content = {
        "cells": cells(page.read_text(encoding="utf-8")),
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def stale() -> list[str]:
    """Notebooks that do not agree with their pages, or have none."""
    wanted = {page.with_suffix(".ipynb"): notebook(page) for page in pages()}
    there = {path: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.ipynb")}
    return sorted(path.name for path in wanted.keys() | there.keys() if wanted.get(path) != there.get(path))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args(arguments).check:
        names = stale()
        print(f"{', '.join(names)}: run python -m tools.notebooks" if names else "the notebooks agree with their pages")
        return 1 if names else 0
    for page in pages():
        page.with_suffix(".ipynb").write_text(notebook(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
