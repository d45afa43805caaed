"""Mistakes on purpose: found in sources, made in a copy, noticed or not; and every area has tests that are there."""

import ast
import os
import sys
from datetime import date
from pathlib import Path

import pytest
from tests import processes
from tools.areas import AREAS, Area, nearest
from tools.mutations import mutations
from tools.reach import Reach

from tools import mutants

REPOSITORY = Path(__file__).resolve().parents[2]

SOURCE = b'''"""Not here: 1 + 2."""

def area(a: float, b: float = 1.0) -> float:
    """Nor here: 3 * 4."""
    if a < 0 and b < 0:
        raise ValueError(f"{a + b}")
    if not a:
        return 0.0
    return a * b

def forever(n):
    while n > 0:
        n = n - 1
    return n
'''


def what(source: bytes) -> list[str]:
    return [found.what for found in mutations(source, "a.py")]


def test_one_mistake_at_a_time_and_only_in_formulas():
    assert what(SOURCE) == [
        "1.0 -> 2.0", "if not a: return 0.0 -> pass", "not a -> (a)", "a -> b", "0.0 -> 1.0", "a * b -> -(a * b)",
        "a * b -> a", "a -> b", "* -> /", "b -> a",
        "> -> <=", "> -> >=", "0 -> 1", "n - 1 -> n", "- -> +", "1 -> 2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"x = (a) <= (b)  # < not this one", ["<= -> <", "<= -> >"]),
        (b"x = a is not b", ["is not -> is"]),
        (b"x = a if b else c", ["b -> not b"]),
        (b"x = max(a, -b)", ["max(a, -b) -> -b", "max(a, -b) -> a", "max -> min", "-b -> (b)"]),
        (b"x = y.max()", [".max() -> [0]", "max -> min"]),
        (b"x[0] += y", ["x[0] += y -> pass", "0 -> -1", "0 -> 1", "+= -> -="]),
        (b"x = y[-1] if all(z) else w", ["-1 -> (1)", "-1 -> 0", "1 -> 2", "all -> any", "all(z) -> not all(z)"]),
        (b"x = a or b", ["a or b -> a", "a or b -> b", "or -> and"]),
        (b"x = a and (b) and c", ["and -> or", "and -> or"]),
        (b"x = a or b or c", ["a or -> nothing", "or b -> nothing", "or -> and", "or c -> nothing", "or -> and"]),
        (b"key = (a, b, c)", ["a, -> nothing", ", c -> nothing"]),
        (b"key = [a, b]", ["a, -> nothing", ", b -> nothing"]),
        (b"x = zip(a, b, strict=True)", []),
        (b"x = f(a, k=b)", [", k=b -> nothing"]),
        (b"x = f(k=(b))", ["k=(b) -> nothing"]),
        (b"for k in range(n): pass", ["n -> n - 1"]),
        (b"for k in range(m, n): pass", ["n -> n - 1"]),
        (b"def f(a: int, b: int, c: str): return a + 1", ["a + 1 -> a", "a -> b", "+ -> -", "1 -> 2"]),
        (b"if a:\n    return", ["if a: return -> pass", "a -> not a"]),
        ("é = 2 + é".encode(), ["2 + é -> 2", "2 -> 3", "+ -> -"]),
        (b"x = 1e-12; y = 'a' + b", []),
        (b"def refuse_bad(x):\n    return x + 1", []),
        (b"self.a = b", ["self.a = b -> pass"]),
        (b"f(x)", ["f(x) -> pass"]),
        (b"x = y.copy()", [".copy() -> nothing"]),
        (b"x = f(a, b)", ["a, b -> b, a"]),
        (b"x = isinstance(a, b)", []),
        (b"x = a * b - c", ["a * b -> a", "a * b - c -> a * b", "* -> /", "- -> +"]),
        (b"self.reason = 'too long'; print(x); typer.echo(x)", []),
        (b"LIMIT = 40; LEAST = -0.5; TABLE = (1.0, 2.0)", ["1.0 -> 2.0", "2.0 -> 4.0"]),
        (b"class A:\n    most: int = 3\n    def f(self):\n        most = 4", ["4 -> 5"]),
    ],
)
def test_kinds_of_mistakes(source, expected):
    assert what(source) == expected


@pytest.mark.slow
def test_every_mistake_is_python_that_differs():
    path = REPOSITORY / "src" / "cosolve" / "process" / "network.py"
    source = path.read_bytes()
    found = mutations(source, "network.py")
    assert len(found) > 200
    assert len({mutation.key for mutation in found}) == len(found)
    for mutation in found:
        assert ast.dump(ast.parse(mutation.applied(source))) != ast.dump(ast.parse(source))


@pytest.fixture
def tree(tmp_path):
    for folder in ("tree/src/cosolve", "tree/tests"):
        (tmp_path / folder).mkdir(parents=True)
    root = tmp_path / "tree"
    (root / "src" / "cosolve" / "__init__.py").touch()
    (root / "src" / "cosolve" / "area.py").write_bytes(SOURCE)
    (root / "tests" / "test_area.py").write_text(
        "from cosolve.area import area, forever\ndef test_a(): assert area(2.0, 3.0) == 6.0 and forever(3) == 0\n"
    )
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (root / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--limit')\n    parser.addoption('--grace')\n"
    )
    return root


@pytest.mark.slow
def test_mistakes_are_noticed_survive_or_never_end(tree, tmp_path):
    """In copies of a tree, which itself is left as it is."""
    area = Area("area", ("*.py",), ("test_area.py",))
    chosen = {mutation.what: mutation for _, mutation in mutants.drawn([area], tree, 0, seed=3)}
    bench = mutants.Bench.of(tree, tmp_path / "bench", {})
    tests = (("tests/test_area.py",),)
    assert bench.try_out(chosen["* -> /"], tests) == "tests/test_area.py::test_a"
    assert bench.try_out(chosen["1.0 -> 2.0"], tests) == ""  # a default that the test does not use
    assert (tree / "src" / "cosolve" / "area.py").read_bytes() == SOURCE
    fails_anyway = """
import pytest
from cosolve.area import area
def test_b(): assert False
@pytest.mark.parametrize("a", [2.0], ids=["a b - c"])
def test_c(a): assert area(a, 3.0) == 6.0
"""
    (tree / "tests" / "test_area.py").write_text(fails_anyway)
    bench = mutants.Bench.of(tree, tmp_path / "other", {})
    assert bench.try_out(chosen["* -> /"], tests) == "tests/test_area.py::test_c[a b - c]"
    assert bench.try_out(chosen["1.0 -> 2.0"], tests) == ""
    assert bench.passes == {"tests/test_area.py::test_b": False, "tests/test_area.py::test_c[a b - c]": True}
    (tree / "tests" / "test_area.py").write_text("import nothing\ndef test_b(): pass\n")
    assert mutants.Bench.of(tree, tmp_path / "broken", {}).try_out(chosen["1.0 -> 2.0"], tests) == ""


@pytest.mark.slow
def test_what_never_ends_is_noticed(tree, tmp_path, monkeypatch):
    area = Area("area", ("*.py",), ("test_area.py",))
    (endless,) = [m for _, m in mutants.drawn([area], tree, 0, seed=3) if m.what == "- -> +"]
    bench = mutants.Bench.of(tree, tmp_path / "bench", {})
    monkeypatch.setattr(mutants, "LIMIT", 1e6)
    assert bench.run("tree", ("tests/test_area.py",), 100.0) == ""
    (bench.root / "tree" / endless.path).write_bytes(endless.applied(SOURCE))
    assert bench.run("tree", ("tests/test_area.py",), 3.0) == "no end within 3 s"


def test_a_sample_can_be_drawn_again_and_takes_from_all_lines_alike():
    areas = AREAS[:2]
    first, again, other = (mutants.drawn(areas, REPOSITORY, 200, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len({(mutation.path, mutation.line) for _, mutation in first}) == 200
    lines = [len({(m.path, m.line) for _, m in mutants.drawn([area], REPOSITORY, 0, 1)}) for area in areas]
    expected = 200 * lines[0] / sum(lines)
    assert abs(sum(area is areas[0] for area, _ in first) - expected) < 25  # four standard deviations


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.name)
def test_areas_have_sources_and_tests(area):
    assert area.files(REPOSITORY)
    for place in area.tests:
        assert (REPOSITORY / "tests" / place).exists()


def test_every_source_is_in_one_area():
    sources = [path for path in (REPOSITORY / "src" / "cosolve").rglob("*.py") if path.name != "__init__.py"]
    assert sorted(path.relative_to(REPOSITORY).as_posix() for path in sources) == sorted(
        file for area in AREAS for file in area.files(REPOSITORY)
    )


def test_nearest_tests_name_what_a_source_defines():
    assert "tests/corrector/test_line_search.py" in nearest(REPOSITORY, "src/cosolve/corrector/line_search.py")
    assert nearest(REPOSITORY, "src/cosolve/process/network.py", 1) == ("tests/process/isolated/test_network.py",)


REACH = """
import os, subprocess, sys
import pytest
from cosolve.area import area, forever
@pytest.mark.parametrize("a", [1.0, 2.0, 3.0])
def test_both(a): assert forever(3) == 0 and area(a, 3.0) == 3.0 * a
def test_one(): assert area(2.0, 3.0) == 6.0
def test_none(): assert area
class TestA:
    def test_it(self): assert area(0.0) == 0.0
"""


def test_who_calls_a_function_is_found_by_running_the_tests(tree):
    """First the test that calls nothing else; one that is gone since is not asked for."""
    (tree / "tests" / "test_area.py").write_text(REACH)
    (tree / "tools").mkdir()
    (tree / "tools" / "reach.py").write_bytes((REPOSITORY / "tools" / "reach.py").read_bytes())
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tools.reach", "--reach", ".reach.json", "tests"]
    env = os.environ | {"PYTHONPATH": os.pathsep.join((str(tree / "src"), str(tree)))}
    done = processes.run(command, cwd=tree, env=env)
    assert "5 passed" in done.stdout, done.stdout  # the first and the last of three cases
    found = Reach.read(tree)
    tests = [f"tests/test_area.py::{name}" for name in ("TestA::test_it", "test_one", "test_both")]
    area = "src/cosolve/area.py"
    assert found.tests(tree, area, "area", 10.0) == tuple(tests)
    assert found.tests(tree, area, "forever", 10.0) == (tests[2],)
    assert found.tests(tree, area, "", 10.0) == tuple(tests)
    assert found.tests(tree, area, "compiled", 10.0) == tuple(tests)
    assert found.tests(tree, "src/cosolve/kernel.py", "f", 10.0) == ()
    (tree / "src/cosolve/area.py").write_text(SOURCE.decode() + "\nfrom cosolve.kernel import f\n")
    assert found.tests(tree, "src/cosolve/kernel.py", "f", 10.0) == tuple(tests)
    (tree / "src/cosolve/area.py").write_bytes(SOURCE)
    slow = Reach(found.called, dict.fromkeys(found.called, 4.0))
    assert slow.tests(tree, area, "area", 5.0)[0] == tests[0]
    assert len(slow.tests(tree, area, "area", 5.0)) == 2
    (tree / "tests" / "test_area.py").write_text(REACH.replace("def test_one", "def test_two"))
    assert tests[1] not in Reach.read(tree).called
    whole = Area("area", ("*.py",), ("test_area.py",))
    mistake = next(m for _, m in mutants.drawn([whole], tree, 0, seed=3) if m.what == "- -> +")
    others = [*2 * [("tests/test_area.py",)], (area,)]
    assert mutants.stages(whole, mistake, found, tree) == [(tests[2],), *others]
    assert mutants.stages(whole, mistake, Reach.read(REPOSITORY / "docs"), tree) == others


def test_survivors_are_kept_until_they_are_judged(tree, tmp_path):
    area = Area("area", ("*.py",), ("test_area.py",))
    one, two, three, four = (m for _, m in mutants.drawn([area], tree, 4, seed=1))
    fates = [mutants.Fate(m, "area", "t" if m is one else "", 1.0) for m in (one, two, three, four)]
    path = tmp_path / "mutants.toml"
    path.write_text(f"[[judged]]\nmistake = '{two.key}'\nequivalent = 'it is the same'\n")
    for _ in range(2):  # the second time they are there
        mutants.keep_survivors(path, fates, mutants.read_verdicts(path), 7, date(2026, 1, 2))
    kept = mutants.read_verdicts(path)
    assert list(kept) == [two.key, three.key, four.key]
    assert kept[two.key].equivalent
    assert kept[three.key].open == "seed 7, 02 January 2026"


def test_the_page_counts_and_judges(tree):
    area = Area("area", ("*.py",), ("test_area.py",))
    found = [mutation for _, mutation in mutants.drawn([area], tree, 4, seed=1)]
    fates = [mutants.Fate(m, "area", noticed, 1.0) for m, noticed in zip(found, ("t", "t", "", ""), strict=True)]
    same = mutants.Judged(found[2].key, equivalent="it is the same")
    lots = [mutants.Lot(5, "1 January 2026", 10, 6, 2, "by all tests")]
    text = mutants.page(fates, {same.mistake: same}, 1, date(2026, 1, 2), first=1, lots=lots)
    assert "1 of 4 were noticed (33% without the equivalent ones)" in text
    assert "| area | 4 | 2 | 1 | 1 | 67% |" in text
    assert "it is the same" in text
    assert "02 January 2026" in text
    assert "| 5 | 1 January 2026 | 10 | 6 | 2 | 75% | by all tests |" in text


def test_verdicts_have_a_reason_or_a_test_that_is_there():
    for judged in mutants.read_verdicts(mutants.VERDICTS).values():
        assert [bool(judged.equivalent), bool(judged.test), bool(judged.open)].count(True) == 1, judged.mistake
        if judged.test:
            file, _, name = judged.test.partition("::")
            assert f"def {name.partition('[')[0]}(" in (REPOSITORY / file).read_text(encoding="utf-8")
