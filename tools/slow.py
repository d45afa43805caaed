"""Run the slow tests in shards, oldest first, and keep a ledger of when each one ran last and how it ended.

    make slow                            everything that is due, in shards of at most 20 minutes; Ctrl-C loses nothing
    python -m tools.slow --minutes 5     one shard of five minutes
    python -m tools.slow --due           name what is due and what failed, run nothing (part of `make check`)
    python -m tools.slow --slice 3       three minutes of short ones, others at every commit; the ledger stays as it is
    python -m tools.slow tests/trust     only tests whose name begins so, due or not

The ledger is `tests/slow.csv`: test, date, commit, seconds, result and the digest of its subject. The subject of a test
is its file, the helpers and models that the file imports, and the modules of the package that they name (`cs.Jacobi`:
the file that defines it). A test is due when it never ran, when its subject has changed since, or when its last run is
more than a week of commits old.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from datetime import date, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEDGER = ROOT / "tests" / "slow.csv"
PAGE = ROOT / "docs" / "validation" / "slow.md"
WEEK = timedelta(days=7)
UNKNOWN = 3.0  # seconds that a test is expected to take which has never run
LONGEST_IN_SLICE = 30.0  # seconds
JOBS = 2


@dataclass(frozen=True)
class Entry:
    """The last run of a test."""

    test: str
    date: str
    commit: str
    seconds: float
    result: str
    subject: str


def read_ledger(path: Path = LEDGER) -> dict[str, Entry]:
    """The entries by test."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        entries = [
            Entry(r["test"], r["date"], r["commit"], float(r["seconds"]), r["result"], r["subject"]) for r in rows
        ]
    return {entry.test: entry for entry in entries}


def write_ledger(entries: Iterable[Entry], path: Path = LEDGER) -> None:
    """All entries, sorted by test, so that a change shows what ran."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Entry)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(entry) for entry in sorted(entries, key=lambda entry: entry.test))


# -- what a test is about ----------------------------------------------------------------------------------


@cache
def public_names() -> dict[str, str]:
    """The module of each public name of the package, read from its stub."""
    package = "cosolve"
    tree = ast.parse((ROOT / "src" / package / "__init__.pyi").read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {alias.asname or alias.name: f"{package}.{node.module}" for alias in node.names}
    return found


def _file(module: str) -> Path | None:
    """The source of a module of this tree."""
    base = ROOT / "src" if module.split(".")[0] == "cosolve" else ROOT
    for path in (
        base.joinpath(*module.split(".")).with_suffix(".py"),
        base.joinpath(*module.split("."), "__init__.py"),
    ):
        if path.is_file():
            return path
    return None


@cache
def _imports(path: Path) -> frozenset[Path]:
    """The files of this tree that a file names: imported modules, and what `cs.` names of the package."""
    tree = ast.parse(path.read_bytes())
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cs":
            modules.add(public_names().get(node.attr, ""))
    roots = ("cosolve", "tests", "examples", "campaigns", "benchmarks", "tools")
    found = {_file(module) for module in modules if module.split(".")[0] in roots and module != "cosolve"}
    return frozenset(path for path in found if path is not None)


@cache
def subject(test_file: str) -> str:
    """A digest of everything that a test file is about."""
    start = ROOT / test_file
    seen, waiting = {start}, [start]
    while waiting:
        path = waiting.pop()
        if path.is_relative_to(ROOT / "src"):
            continue  # the modules that tests name, not all that those import
        new = _imports(path) - seen
        seen |= new
        waiting += new
    digest = sha256()
    for path in sorted(seen):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:8]


def why_due(test: str, entry: Entry | None, today: date) -> str:
    """Why a test should run again; empty where it need not."""
    if entry is None:
        return "never run"
    if entry.subject != subject(test.partition("::")[0]):
        return "its subject has changed"
    if entry.result == "failed":
        return "it failed"
    return "more than a week old" if date.fromisoformat(entry.date) + WEEK < today else ""


# -- running -----------------------------------------------------------------------------------------------


def collected() -> list[str]:
    """All slow tests of the tree."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "slow", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if "::" in line and not line.startswith(("ERROR", "FAILED"))]
    if done.returncode or not found:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    return found


def shard(tests: Iterable[str], ledger: dict[str, Entry], minutes: float) -> list[str]:
    """The first of these tests, as many as are expected to fit."""
    chosen: list[str] = []
    left = 60.0 * minutes * JOBS
    for test in tests:
        left -= ledger[test].seconds if test in ledger else UNKNOWN
        if chosen and left < 0.0:
            break
        chosen.append(test)
    return chosen


def run(tests: list[str], log: Path) -> int:
    """Run tests; what comes of each is in the log at once. The exit status of pytest."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as listed:
        listed.write("\n".join(tests))
        listed.flush()
        # not `-m slow`: which cases of a sample are slow can only be said of all of them together
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-m",
            "",
            "--limit",
            "3600",
            "-n",
            str(JOBS),
            "--dist",
            "loadfile",
        ]
        command += ["--no-loadscope-reorder", "-p", "tests.slow_log", f"--slow-log={log}", f"@{listed.name}"]
        return subprocess.run(command, cwd=ROOT, check=False).returncode


def outcomes(log: Path) -> Iterator[tuple[str, float, str]]:
    """Test, seconds and result of everything that a log tells; the worst of set-up, call and tear-down counts."""
    seconds: Counter[str] = Counter()
    results: dict[str, str] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        seconds[told["test"]] += told["seconds"]
        if results.get(told["test"]) != "failed":
            worse = told["outcome"] != "passed" or told["when"] == "call"
            results[told["test"]] = told["outcome"] if worse else results.get(told["test"], "")
    return ((test, round(seconds[test], 1), result) for test, result in results.items() if result)


def commit() -> str:
    """The commit of the tree, with a + where files differ from it."""
    name = _git("rev-parse", "--short", "HEAD")
    changed = [line for line in _git("status", "--porcelain", "-uno").splitlines() if not line.endswith(".csv")]
    return name + ("+" if changed else "")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.rstrip()


def run_and_keep(tests: list[str], ledger: dict[str, Entry]) -> None:
    """Run a shard and write its outcome into the ledger, also where it is interrupted."""
    at, when = commit(), date.today().isoformat()
    with tempfile.TemporaryDirectory(prefix="slow-") as folder:
        log = Path(folder) / "log"
        log.touch()
        try:
            run(tests, log)
        finally:
            for test, seconds, result in outcomes(log):
                ledger[test] = Entry(test, when, at, seconds, result, subject(test.partition("::")[0]))
            write_ledger(ledger.values())
            PAGE.write_text(page(ledger.values()), encoding="utf-8")


# -- what is told ------------------------------------------------------------------------------------------


def page(entries: Iterable[Entry]) -> str:
    """The ledger by file, for the documentation."""
    files: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.test):
        files.setdefault(entry.test.partition("::")[0], []).append(entry)
    everything = [entry for some in files.values() for entry in some]
    results = Counter(entry.result for entry in everything)
    total = ", ".join(f"{n} {result}" for result, n in sorted(results.items(), key=lambda pair: -pair[1]))
    hours = sum(entry.seconds for entry in everything) / 3600.0
    lines = [
        "# When the slow tests ran",
        "",
        "<!-- Generated by tools/slow.py (make slow); do not edit by hand. -->",
        "",
        "Tests that take long are not part of `make test`. They run with `make slow`, a slice of them in every",
        "automatic run, and `tests/slow.csv` says of each when it ran last, at which commit, for how long and how it",
        "ended. Figures of these pages that a slow test shows were seen in that run.",
        "",
        f"{len(everything)} tests: {total}; {hours:.1f} hours of one core.",
        "",
        "| file | tests | seconds | last run, oldest | commits | not passed |",
        "|---|---:|---:|---|---|---|",
    ]
    for file, some in files.items():
        left = Counter(entry.result for entry in some if entry.result != "passed")
        rest = ", ".join(f"{n} {result}" for result, n in left.items())
        commits = ", ".join(sorted({entry.commit for entry in some}))
        lines.append(
            f"| {file.removeprefix('tests/')} | {len(some)} | {sum(e.seconds for e in some):.0f} | "
            f"{min(entry.date for entry in some)} | {commits} | {rest} |"
        )
    return "\n".join(lines) + "\n"


def tell(tests: list[str], ledger: dict[str, Entry]) -> int:
    """Name what is due, by folder and reason, and what failed; 1 where something failed and has not changed since."""
    today = date.fromisoformat(_git("log", "-1", "--format=%cs"))
    reasons = {test: why_due(test, ledger.get(test), today) for test in tests}
    due = Counter(("/".join(test.partition("::")[0].split("/")[:2]), why) for test, why in reasons.items() if why)
    failed = [test for test, why in reasons.items() if why == "it failed"]
    print(f"slow tests: {len(tests)}, of which {sum(due.values())} are due (make slow)")
    for (folder, why), count in sorted(due.items()):
        print(f"  {folder}: {count}, {why}")
    for test in failed:
        print(f"  FAILED at {ledger[test].commit}: {test}")
    return 1 if failed else 0


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Run the slow tests in shards and keep a ledger.")
    parser.add_argument("only", nargs="*", help="begin of the names of tests: only these, due or not")
    parser.add_argument("--minutes", type=float, default=0.0, help="one shard of so many minutes, then stop")
    parser.add_argument("--slice", type=float, default=0.0, help="so many minutes of tests, others at every commit")
    parser.add_argument("--due", action="store_true", help="name what is due and what failed, run nothing")
    given = parser.parse_args(arguments)
    ledger, tests = read_ledger(), collected()
    if given.due:
        return tell(tests, ledger)
    if given.slice:
        short = [test for test in tests if test in ledger and ledger[test].seconds < LONGEST_IN_SLICE]
        first = int(_git("rev-list", "--count", "HEAD")) * 997 % max(1, len(short))
        with tempfile.TemporaryDirectory(prefix="slow-") as folder:
            return run(shard(short[first:] + short[:first], ledger, given.slice), Path(folder) / "log")
    gone = set(ledger) - set(tests)
    ledger = {test: entry for test, entry in ledger.items() if test not in gone}
    today = date.today()
    if given.only:
        wanted = [test for test in tests if test.startswith(tuple(given.only))]
    else:
        wanted = [test for test in tests if why_due(test, ledger.get(test), today)]
        wanted.sort(key=lambda test: ledger[test].date if test in ledger else "")
    began = time.monotonic()
    while wanted:
        some = shard(wanted, ledger, given.minutes or 20.0)
        print(f"{len(some)} of {len(wanted)} slow tests that are due, at {time.monotonic() - began:.0f} s", flush=True)
        run_and_keep(some, ledger)
        wanted = wanted[len(some) :]
        if given.minutes:
            break
    write_ledger(ledger.values())
    return tell(tests, ledger)


if __name__ == "__main__":
    sys.exit(main())
