"""The ledger of slow tests: what is due, what a shard takes, and what is written down."""

import json
from dataclasses import replace
from datetime import date

import pytest
from tools.slow import Entry

from tools import slow

TODAY = date(2026, 3, 20)


def entry(test="tests/a.py::test_one", result="passed", when="2026-03-18", seconds=4.0, subject="same"):
    return Entry(test, when, "abc1234", seconds, result, subject)


@pytest.fixture
def same(monkeypatch):
    monkeypatch.setattr(slow, "subject", lambda file: "same")


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (entry(result="never run", when="", subject=""), "never run"),
        (entry(), ""),
        (entry(when="2026-03-13"), ""),
        (entry(when="2026-03-12"), "more than a week old"),
        (entry(subject="other"), "with a changed subject"),
        (entry(result="failed"), "failed"),
        (entry(result="skipped"), ""),
    ],
)
def test_why_a_test_is_due(same, before, why):
    assert slow.why_due(before, TODAY) == why


CACHED = (
    slow.subject, slow.files_with_slow_tests, slow._tree, slow._imports, slow._reached, slow._common, slow._code,
)  # fmt: skip


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Writes files of a small tree and gives the digest of its test."""

    def digest(**changed):
        for name, text in FILES.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(changed.get(name, text))
        for function in CACHED:
            function.cache_clear()
        return slow.subject("tests/test_it.py")

    monkeypatch.setattr(slow, "ROOT", tmp_path)
    yield digest
    for function in CACHED:
        function.cache_clear()


FILES = {
    "src/cosolve/__init__.py": "",
    "src/cosolve/__init__.pyi": "from . import fmi as fmi\nfrom .method import Jacobi\nfrom .run import run as run\n",
    "src/cosolve/method/__init__.py": "from .explicit import Jacobi\n",
    "src/cosolve/method/explicit.py": "x = 1\n",
    "src/cosolve/method/implicit.py": "x = 1\n",
    "src/cosolve/run/__init__.py": "from cosolve.run.run import run\n",
    "src/cosolve/run/run.py": "x = 1\n",
    "src/cosolve/fmi.py": "",
    "src/cosolve/fmi.pyi": "from .fmu.trial import try_fmu as try_fmu\n",
    "src/cosolve/fmu/trial.py": "x = 1\n",
    "examples/model.py": "import cosolve as cs\nmethod = cs.Jacobi(1)\n",
    "tests/helper.py": "from examples.model import method\n",
    "tests/test_it.py": "import cosolve as cs\nfrom tests import helper\npytest.mark.slow\ncs.run\ncs.fmi.try_fmu\n",
    "tests/test_other.py": "import cosolve as cs\npytest.mark.slow\ncs.run\n",
}


@pytest.mark.parametrize("name", FILES)
def test_the_subject_is_the_file_its_helpers_and_what_they_name(tree, name):
    """Not other modules of the package, nor one that all tests run through."""
    seen = {
        "src/cosolve/method/explicit.py",
        "src/cosolve/fmu/trial.py",
        "examples/model.py",
        "tests/helper.py",
        "tests/test_it.py",
    }
    before = tree()
    assert (tree(**{name: FILES[name] + "x = 2\n"}) != before) == (name in seen)


@pytest.mark.parametrize(
    ("before", "after", "due"),
    [
        ("x = 1", "y = 1", False),
        ("x = 1", "x = 1  # one", False),
        ("f('a')", "g('b')", False),
        ("def f():\n    'One.'\n    return 1", "def g():\n    return 1", False),
        ("import a", "import b\nimport c", False),
        ("a = f(cs.Jacobi)", "b.a = f(cs.Jacobi.label)", False),
        ("a.b", "f().b", True),
        ("x = 1", "x = 2", True),
        ("x = 1.0", "x = 1.5", True),
        ("x = 1 + y", "x = 1 - y", True),
        ("x = 1", "x = True", True),
        ("f(a)", "f(a, b)", True),
        ("if a:\n    f()", "if not a:\n    f()", True),
    ],
)
def test_names_and_texts_make_nothing_due(tree, before, after, due):
    first, second = (tree(**{"tests/helper.py": text}) for text in (before, after))
    assert (first != second) == due


def test_a_file_that_is_gone_has_no_subject(tree):
    tree()
    assert slow.subject("tests/test_gone.py") == ""


def test_a_moved_test_keeps_what_it_did():
    old, other = entry("tests/a.py::test_it[1/2]"), entry("tests/b.py::test_it")
    ledger = {old.test: old, other.test: other}
    new = ["tests/x/a.py::test_it[1/2]", "tests/x/a.py::test_new", other.test]
    found = slow.of_tests(new, ledger, {"tests/a.py": "tests/x/a.py"})
    assert list(found) == [last.test for last in found.values()] == new
    assert [last.result for last in found.values()] == ["passed", "never run", "passed"]
    assert found[new[0]] == replace(old, test=new[0])


def test_moves_are_followed_to_the_last_place(tmp_path, monkeypatch):
    """A file that moved twice, and one that stands at its old place again."""
    moves = ["R100\ttests/y/a.py\ttests/z/a.py", "R099\ttests/b.py\ttests/y/b.py", "R080\ttests/a.py\ttests/y/a.py"]
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "b.py").touch()
    monkeypatch.setattr(slow, "ROOT", tmp_path)
    monkeypatch.setattr(slow, "_git", lambda *words: "\n".join(moves))
    assert slow.moved_files() == {"tests/a.py": "tests/z/a.py", "tests/y/a.py": "tests/z/a.py"}


def test_a_shard_ends_with_its_time(monkeypatch):
    monkeypatch.setattr(slow, "JOBS", 2)
    ledger = {name: entry(name, seconds=seconds) for name, seconds in (("a", 60.0), ("b", 59.0), ("c", 2.0))}
    ledger["x"] = entry("x", "never run", "", 0.0, "")
    assert slow.shard("abc", ledger, 1.0) == ["a", "b"]
    assert slow.shard("cab", ledger, 0.5) == ["c"]
    assert slow.shard("abc", ledger, 0.01) == ["a"]  # at least one, or it would never run
    assert slow.shard("xab", ledger, 1.0) == ["x", "a"]  # of an unknown one the time is guessed


def test_the_worst_phase_of_a_test_counts(tmp_path):
    lines = [
        ("passes", "setup", "passed"), ("passes", "call", "passed"), ("passes", "teardown", "passed"),
        ("fails", "setup", "passed"), ("fails", "call", "failed"), ("fails", "teardown", "passed"),
        ("skips", "setup", "skipped"), ("skips", "teardown", "passed"),
        ("leaves", "setup", "passed"), ("leaves", "call", "passed"), ("leaves", "teardown", "failed"),
        ("cut off", "setup", "passed"),
    ]  # fmt: skip
    keys = ("test", "when", "outcome")
    log = tmp_path / "log"
    log.write_text("".join(json.dumps({**dict(zip(keys, line, strict=True)), "seconds": 1.0}) + "\n" for line in lines))
    found = {test: (seconds, result) for test, seconds, result in slow.outcomes(log)}
    assert found == {
        "passes": (3.0, "passed"), "fails": (3.0, "failed"), "skips": (2.0, "skipped"), "leaves": (3.0, "failed")
    }  # fmt: skip


def test_the_ledger_is_read_as_it_was_written(tmp_path):
    entries = [entry("tests/b.py::test[x,y-'z']", "failed"), entry("tests/a.py::test")]
    slow.write_ledger(entries, tmp_path / "slow.csv")
    assert list(slow.read_ledger(tmp_path / "slow.csv").values()) == entries[::-1]
    assert slow.read_ledger(tmp_path / "none.csv") == {}


def test_a_failure_that_has_not_changed_since_is_named(same, monkeypatch, capsys):
    monkeypatch.setattr(slow, "_git", lambda *words: "2026-03-20")
    monkeypatch.setattr(slow, "files_with_slow_tests", lambda: ("tests/a.py",))
    good, bad = entry(), entry("tests/a.py::test_two", "failed")
    assert slow.tell({good.test: good, bad.test: bad}) == 1
    assert "FAILED at abc1234: tests/a.py::test_two" in capsys.readouterr().out
    assert slow.tell({good.test: good, bad.test: replace(bad, subject="before")}) == 0


def test_what_is_due_is_told_in_five_lines(same, monkeypatch, capsys):
    monkeypatch.setattr(slow, "_git", lambda *words: "2026-03-20")
    monkeypatch.setattr(slow, "files_with_slow_tests", lambda: ("tests/new/b.py",))
    ledger = {f"tests/{k}/a.py::test": entry(f"tests/{k}/a.py::test", "failed") for k in range(9)}
    assert slow.tell(ledger) == 1
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 5
    assert told[0] == "slow tests: 10, due 10 (make slow): 9 failed, 1 never run"
    assert told[1].endswith("and 6 more")
    assert told[4] == "  and 7 more that failed, see tests/slow.csv"
    assert slow.tell({"tests/new/b.py::test": entry("tests/new/b.py::test")}) == 0
    assert capsys.readouterr().out == "slow tests: 1, due 0 (make slow)\n"


def test_the_page_belongs_to_the_ledger():
    assert slow.PAGE.read_text(encoding="utf-8") == slow.page(slow.read_ledger().values())


def test_a_run_is_written_down(tmp_path, monkeypatch):
    """A real run, in this tree: one test that passes."""
    monkeypatch.setattr(slow, "LEDGER", tmp_path / "slow.csv")
    monkeypatch.setattr(slow, "JOBS", 0)
    log = tmp_path / "log"
    log.touch()
    name = "tests/tools/test_slow.py::test_the_ledger_is_read_as_it_was_written"
    assert slow.run([name], log) == 0
    ((test, seconds, result),) = slow.outcomes(log)
    assert (test, result) == (name, "passed")
    assert 0.0 <= seconds < 60.0
