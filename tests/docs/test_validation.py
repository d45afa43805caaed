"""The tests that the validation pages name are there, and those that only `make slow` runs are marked as such."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MADE = ("coverage.md", "slow.md")
PAGES = [page for page in sorted((ROOT / "docs" / "validation").glob("*.md")) if page.name not in MADE]


@cache
def functions(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


@cache
def texts() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]


@cache
def slow(path: Path) -> set[str]:
    """Tests all of whose cases are slow."""
    module = ast.parse(path.read_text())
    tests = [node for node in module.body if isinstance(node, ast.FunctionDef)]
    return {test.name for test in tests if any(ast.unparse(mark) == "pytest.mark.slow" for mark in test.decorator_list)}


@cache
def located(name: str) -> Path:
    """A test file by its path, or by its name where that is unique."""
    if "/" in name:
        assert (ROOT / name).is_file(), f"there is no {name}"
        return ROOT / name
    found = sorted((ROOT / "tests").rglob(name))
    assert found, f"there is no {name}"
    return found[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_named_tests_exist(page):
    count, path, known = 0, None, {}
    for line in page.read_text().splitlines():
        for file, test, marked in re.findall(r"`((?:[\w/]*/)?\w+\.py)?(?:::(\w+))?`( \(slow\)|, slow)?", line):
            if file and not file.rpartition("/")[2].startswith("test_"):
                continue
            if file:
                count += 1
                path = known.setdefault(file, located(file))
            if test:
                count += 1
                assert path is not None
                assert test in functions(path), f"{page.name} names {test}, which {path.name} has not"
                if page.name != "mutants.md":  # what a tool writes
                    assert bool(marked) == (test in slow(path)), f"{page.name}: is {test} slow?"
        for test in re.findall(r"`(test_\w+)`", line):  # without its file: in any
            count += 1
            assert any(f"def {test}(" in text for text in texts()), f"{page.name} names {test}, which is nowhere"
    assert count > 0 or page.name == "index.md"
