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
        (None, "never run"),
        (entry(), ""),
        (entry(when="2026-03-13"), ""),
        (entry(when="2026-03-12"), "more than a week old"),
        (entry(subject="other"), "its subject has changed"),
        (entry(result="failed"), "it failed"),
        (entry(result="skipped"), ""),
    ],
)
def test_why_a_test_is_due(same, before, why):
    assert slow.why_due("tests/a.py::test_one", before, TODAY) == why


def test_the_subject_is_the_file_its_helpers_and_what_they_name(tmp_path, monkeypatch):
    """A change of any of these is seen, a change of another module of the package is not."""
    files = {
        "src/cosolve/__init__.pyi": "from .method.explicit import Jacobi as Jacobi\n",
        "src/cosolve/method/explicit.py": "x = 1\n",
        "src/cosolve/method/implicit.py": "x = 1\n",
        "examples/model.py": "import cosolve as cs\nmethod = cs.Jacobi\n",
        "tests/helper.py": "from examples.model import method\n",
        "tests/test_it.py": "from tests import helper\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(slow, "ROOT", tmp_path)

    def digest():
        for function in (slow.public_names, slow._imports, slow.subject):
            function.cache_clear()
        return slow.subject("tests/test_it.py")

    try:
        before = digest()
        for name, text in files.items():
            (tmp_path / name).write_text(text + "# another thought\n")
            assert (digest() != before) == (name not in ("src/cosolve/__init__.pyi", "src/cosolve/method/implicit.py"))
            (tmp_path / name).write_text(text)
    finally:
        for function in (slow.public_names, slow._imports, slow.subject):
            function.cache_clear()


def test_a_shard_ends_with_its_time(monkeypatch):
    monkeypatch.setattr(slow, "JOBS", 2)
    ledger = {name: entry(name, seconds=seconds) for name, seconds in (("a", 60.0), ("b", 59.0), ("c", 2.0))}
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
    good, bad = entry(), entry("tests/a.py::test_two", "failed")
    assert slow.tell([good.test, bad.test], {good.test: good, bad.test: bad}) == 1
    assert "FAILED at abc1234: tests/a.py::test_two" in capsys.readouterr().out
    assert slow.tell([good.test, bad.test], {good.test: good, bad.test: replace(bad, subject="before")}) == 0


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
