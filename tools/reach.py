"""Which tests call which functions of the package: made once by running the quick tests, kept in `.reach.json`.

    python -m pytest -p tools.reach --reach .reach.json tests      (make reach)

`tools/mutants.py` reads it: a mistake in a function is shown to the tests that call this function, those first that
call little else. Only the first and the last case of a parametrised test are run here, for they mostly call the same.
What machine code, other threads and other processes call is not seen; there the tests of the area have to do.
"""

from __future__ import annotations

import ast
import cProfile
import json
import os
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from types import CodeType

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "cosolve"
_profile = cProfile.Profile(subcalls=False, builtins=False)
_calls: dict[str, set[str]] = {}
_seconds: dict[str, float] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    """The file to write."""
    parser.addoption("--reach", type=Path, help="file for the functions that each test calls")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the first and the last case of each test."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    items[:] = [item for item in items if item in (cases[item.nodeid.partition("[")[0]][i] for i in (0, -1))]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note what is called, also by fixtures."""
    began = sum(os.times()[:4])  # of processors, so that a busy machine makes no difference; with processes that ended
    _profile.clear()
    _profile.enable()
    try:
        return (yield)
    finally:
        _profile.disable()
        entries = _profile.getstats()
        test = item.nodeid.partition("[")[0]
        codes = [entry.code for entry in entries if isinstance(entry.code, CodeType)]
        _calls.setdefault(test, set()).update(filter(None, map(_name, codes)))
        _seconds[test] = _seconds.get(test, 0.0) + sum(os.times()[:4]) - began


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the file."""
    path = session.config.getoption("--reach")
    if path is not None:
        names = sorted(set().union(*_calls.values()))
        number = {name: k for k, name in enumerate(names)}
        tests = {
            test: [round(_seconds.get(test, 0.0), 2), *sorted(number[name] for name in called)]
            for test, called in sorted(_calls.items())
        }
        path.write_text(json.dumps({"functions": names, "tests": tests}), encoding="utf-8")


def _name(code: CodeType) -> str:
    """Path and name of a function of the package, or nothing; what stands inside a function counts as it."""
    try:
        path = Path(code.co_filename).relative_to(PACKAGE)
    except ValueError:
        return ""
    name = code.co_qualname.partition(".<locals>")[0]
    return f"{path.as_posix()}: {name}" if name[0] != "<" else ""


# -- reading it ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reach:
    """The functions that each test called, and the seconds of processor time that it took."""

    called: dict[str, frozenset[str]]
    seconds: dict[str, float]

    @classmethod
    def read(cls, root: Path) -> Reach:
        """What `make reach` has written there, without tests that are gone since; empty without the file."""
        path = root / ".reach.json"
        if not path.exists():
            return cls({}, {})
        content = json.loads(path.read_text(encoding="utf-8"))
        names = content["functions"]
        called, seconds, texts = {}, {}, dict[str, str]()
        for test, (took, *numbers) in content["tests"].items():
            file, *_, name = test.split("::")
            if file not in texts:
                texts[file] = (root / file).read_text(encoding="utf-8") if (root / file).exists() else ""
            if f"def {name}(" in texts[file]:
                called[test], seconds[test] = frozenset(names[k] for k in numbers), took
        return cls(called, seconds)

    def tests(self, root: Path, path: str, function: str, budget: float) -> tuple[str, ...]:
        """The tests that call this function (of a source below src/cosolve); if there are none, any of the source.

        What no test calls from Python, machine code for example, is looked for in the sources that import it. First
        those that call little else, then some of the others by lot: `budget` seconds of either.
        """
        found = self._callers([path], function) or self._callers([path]) or self._callers(importing(root, path))
        found.sort(key=lambda test: (len(self.called[test]), test))
        near = self._within(found, budget)
        others = found[len(near) :]
        random.Random(path + function).shuffle(others)
        return (*near, *self._within(others, budget))

    def _callers(self, paths: Sequence[str], function: str = "") -> list[str]:
        places = tuple(f"{path.removeprefix('src/cosolve/')}: {function}" for path in paths)
        return [
            test
            for test, called in self.called.items()
            if any(name in places if function else name.startswith(places) for name in called)
        ]

    def _within(self, tests: Sequence[str], budget: float) -> list[str]:
        ends = accumulate(self.seconds[test] for test in tests)
        return [test for test, end in zip(tests, ends, strict=True) if end <= budget]


def importing(root: Path, path: str) -> list[str]:
    """The sources that import a source, anywhere in their text."""
    module = path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    package, _, name = module.rpartition(".")
    wanted = re.compile(rf"from {re.escape(module)} import|from {re.escape(package)} import [^\n]*\b{name}\b")
    sources = sorted((root / "src").rglob("*.py"))
    texts = {source.relative_to(root).as_posix(): source.read_text(encoding="utf-8") for source in sources}
    return [source for source, text in texts.items() if wanted.search(text)]


def function_at(source: bytes, line: int) -> str:
    r"""The function of a module, or the method of a class, that a line stands in, or nothing.

    >>> function_at(b"class A:\n    x = 1\n    def f(self):\n        return 2", 4)
    'A.f'
    """
    nodes, names = ast.parse(source).body, list[str]()
    while True:
        inside = (
            node
            for node in nodes
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.lineno <= line <= (node.end_lineno or line)
        )
        node = next(inside, None)
        if node is None:
            return ""
        names.append(node.name)
        if isinstance(node, ast.FunctionDef):
            return ".".join(names)
        nodes = node.body
