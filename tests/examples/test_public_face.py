"""What a reader of the examples meets: one line that says what each shows, and public names only."""

import ast
import re
from pathlib import Path

import pytest

from cosolve import gallery

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path for path in (ROOT / "examples").iterdir() if (path / "__init__.py").exists())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_each_folder_says_in_one_line_what_it_shows(folder):
    """`cosolve demo --list` shows the first line of `run.py`; others say it in `model.py` or `__init__.py`."""
    script = next(path for name in ("run.py", "model.py", "__init__.py") if (path := folder / name).exists())
    line = gallery.about(script)
    assert line.endswith("."), f"{script} begins with {line!r}, which is no sentence of one line"
    assert 20 < len(line) < 118
    assert not re.search(r"\bspec|\bE\d+\b|\b(SC|SL|LU|IJ)-\d", line), "an id that no reader can look up"


def test_examples_use_public_names():
    found = {}
    for path in sorted((ROOT / "examples").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cosolve"):
                for name in (alias.name for alias in node.names):
                    found.setdefault(f"{path.relative_to(ROOT)}", []).append(name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.startswith("cosolve."):
                        found.setdefault(f"{path.relative_to(ROOT)}", []).append(alias.name)
    assert not found, "use `import cosolve as cs` and cs.NAME"
