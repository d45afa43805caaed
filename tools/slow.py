"""Run the slow tests in shards, oldest first, and keep a ledger of when each one ran last and how it ended.

    make slow                            everything that is due, in shards of at most 20 minutes; Ctrl-C loses nothing
    python -m tools.slow --minutes 5     one shard of five minutes
    python -m tools.slow --due           name what is due and what failed, run nothing (part of `make check`)
    python -m tools.slow --slice 3       three minutes of short ones, others at every commit; the ledger stays as it is
    python -m tools.slow tests/accuracy     only tests whose name begins so, due or not

The ledger is `tests/slow.csv`: test, date, commit, seconds, result and the digest of its subject. The subject of a test
is the code of its file, of the helpers and models that the file imports, and of the modules of the package that they
name (`cs.Jacobi`: the file that defines it) unless more than a tenth of the files with slow tests name them: what all
run through says nothing about one. Names, texts, imports and places do not count, numbers and statements do: a new
name in the whole tree makes nothing due. A test is due when it never ran, when it failed, when its subject has changed
since, or when its last run is more than a week of commits old. `--due` collects nothing: of a file that the ledger does
not know it counts one test.
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
from dataclasses import asdict, dataclass, fields, replace
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
COMMON = 0.1  # share of the files with slow tests
NEVER = "never run"
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
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def _file(module: str, name: str = "") -> Path | None:
    """The source of a module of this tree; of one that only lists names, the module that defines this name."""
    base = ROOT / "src" if module.split(".")[0] == "cosolve" else ROOT
    path = base.joinpath(*module.split("."))
    is_package = (path / "__init__.py").is_file()
    source = path / "__init__.py" if is_package else path.with_suffix(".py")
    if not source.is_file():
        return None
    stub = source.with_suffix(".pyi")
    inside = module if is_package else module.rpartition(".")[0]
    for node in _tree(stub if stub.is_file() else source).body if name and (is_package or stub.is_file()) else ():
        if isinstance(node, ast.ImportFrom) and any(name == (alias.asname or alias.name) for alias in node.names):
            if node.module is None:
                return None  # a module that lists names
            return _file(f"{inside}.{node.module}" if node.level else node.module, name)
    return source


@cache
def _imports(path: Path) -> frozenset[Path]:
    """The files of this tree that a file names: imported modules, and what `cs.` names of the package."""
    named: set[tuple[str, str]] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            named |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            named |= {(node.module, alias.name) for alias in node.names}
            named |= {(f"{node.module}.{alias.name}", "") for alias in node.names}
        elif isinstance(node, ast.Attribute):
            first, *inner = ast.unparse(node.value).split(".") if _is_dotted(node.value) else [""]
            if first == "cs":
                named.add((".".join(["cosolve", *inner]), node.attr))
    roots = ("cosolve", "tests", "examples", "campaigns", "benchmarks", "tools")
    found = {_file(*name) for name in named if name[0].split(".")[0] in roots}
    return frozenset(path for path in found if path is not None)


def _is_dotted(node: ast.AST) -> bool:
    """Whether this is a name, or names with dots between them."""
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_dotted(node.value))


@cache
def _reached(start: Path) -> frozenset[Path]:
    """A file, the helpers and models that it needs, and the modules of the package that these name."""
    seen, waiting = {start}, [start]
    while waiting:
        path = waiting.pop()
        if path.is_relative_to(ROOT / "src"):
            continue  # the modules that tests name, not all that those import
        new = _imports(path) - seen
        seen |= new
        waiting += new
    return frozenset(seen)


@cache
def files_with_slow_tests() -> tuple[str, ...]:
    """Test files in which something is marked as slow."""
    found = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        words = (node for node in ast.walk(_tree(path)) if isinstance(node, ast.Attribute))
        if any(ast.unparse(word) in ("pytest.mark.slow", "pytest.mark.sample") for word in words):
            found.append(path.relative_to(ROOT).as_posix())
    return tuple(found)


@cache
def _common() -> frozenset[Path]:
    """Modules of the package that so many tests name that they are the subject of none."""
    files = files_with_slow_tests()
    count = Counter(path for file in files for path in _reached(ROOT / file))
    return frozenset(
        p for p, n in count.items() if p.is_relative_to(ROOT / "src") and n > max(1.0, COMMON * len(files))
    )


@cache
def _code(path: Path) -> str:
    """The shape of a file's code and its numbers, without names, texts and imports."""
    nodes = list(ast.walk(_tree(path)))
    idle: set[ast.AST] = {n.value for n in nodes if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}
    idle |= {node.value for node in nodes if isinstance(node, ast.Attribute) and _is_dotted(node)}
    found: list[str] = []
    for node in nodes:
        if node in idle or isinstance(node, ast.Import | ast.ImportFrom | ast.alias | ast.expr_context):
            continue
        if isinstance(node, ast.Constant):
            found.append("text" if isinstance(node.value, str) else repr(node.value))
        elif not (isinstance(node, ast.Expr) and node.value in idle):
            found.append("Name" if _is_dotted(node) else type(node).__name__)
    return sha256(" ".join(found).encode()).hexdigest()


@cache
def subject(test_file: str) -> str:
    """A digest of what a test file is about; empty where there is no such file."""
    if not (ROOT / test_file).is_file():
        return ""
    codes = sorted(_code(path) for path in _reached(ROOT / test_file) - _common())
    return sha256(" ".join(codes).encode()).hexdigest()[:8]


def why_due(entry: Entry, today: date) -> str:
    """Why a test should run again; empty where it need not."""
    if entry.result == NEVER:
        return NEVER
    if entry.subject != subject(entry.test.partition("::")[0]):
        return "with a changed subject"
    if entry.result == "failed":
        return "failed"
    return "more than a week old" if date.fromisoformat(entry.date) + WEEK < today else ""


def of_tests(tests: Iterable[str], ledger: dict[str, Entry], moved: dict[str, str]) -> dict[str, Entry]:
    """The ledger of these tests: also what ran in a file that stands elsewhere now, and what never ran."""
    before = {}
    for name, entry in ledger.items():
        file, colons, rest = name.partition("::")
        before[moved.get(file, file) + colons + rest] = entry
    never = Entry("", "", "", 0.0, NEVER, "")
    return {test: replace(ledger.get(test) or before.get(test) or never, test=test) for test in tests}


def moved_files() -> dict[str, str]:
    """Where test files went that are at their places no more."""
    found: dict[str, str] = {}
    for line in _git("log", "--diff-filter=R", "--name-status", "--format=", "--", "tests").splitlines():
        _, old, new = line.split("\t")
        found.setdefault(old, found.get(new, new))  # the newest commit comes first
    return {old: new for old, new in found.items() if not (ROOT / old).exists()}


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
        left -= UNKNOWN if ledger[test].result == NEVER else ledger[test].seconds
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


def tell(ledger: dict[str, Entry]) -> int:
    """How many are due and why, where most of them are, what failed; 1 where something failed and has not changed."""
    today = date.fromisoformat(_git("log", "-1", "--format=%cs"))
    unknown = set(files_with_slow_tests()) - {test.partition("::")[0] for test in ledger}
    ledger = ledger | of_tests(unknown, {}, {})
    reasons = {test: why for test, entry in ledger.items() if (why := why_due(entry, today))}
    failed = [test for test, why in reasons.items() if why == "failed"]
    why = ", ".join(f"{n} {reason}" for reason, n in Counter(reasons.values()).most_common())
    print(f"slow tests: {len(ledger)}, due {len(reasons)} (make slow){': ' * bool(why)}{why}")
    folders = Counter("/".join(test.partition("::")[0].split("/")[:2]) for test in reasons).most_common()
    if folders:
        most = ", ".join(f"{folder} {n}" for folder, n in folders[:4])
        print(f"  by folder: {most}" + f" and {len(folders) - 4} more" * (len(folders) > 4))
    for test in failed[:2]:
        print(f"  FAILED at {ledger[test].commit}: {test}")
    if failed[2:]:
        print(f"  and {len(failed) - 2} more that failed, see {LEDGER.relative_to(ROOT)}")
    return 1 if failed else 0


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Run the slow tests in shards and keep a ledger.")
    parser.add_argument("only", nargs="*", help="begin of the names of tests: only these, due or not")
    parser.add_argument("--minutes", type=float, default=0.0, help="one shard of so many minutes, then stop")
    parser.add_argument("--slice", type=float, default=0.0, help="so many minutes of tests, others at every commit")
    parser.add_argument("--due", action="store_true", help="name what is due and what failed, run nothing")
    given = parser.parse_args(arguments)
    if given.due:
        return tell(read_ledger())
    ledger = of_tests(collected(), read_ledger(), moved_files())
    if given.slice:
        short = [test for test, last in ledger.items() if last.result != NEVER and last.seconds < LONGEST_IN_SLICE]
        first = int(_git("rev-list", "--count", "HEAD")) * 997 % max(1, len(short))
        with tempfile.TemporaryDirectory(prefix="slow-") as folder:
            return run(shard(short[first:] + short[:first], ledger, given.slice), Path(folder) / "log")
    today = date.today()
    if given.only:
        wanted = [test for test in ledger if test.startswith(tuple(given.only))]
    else:
        wanted = [test for test, last in ledger.items() if why_due(last, today)]
        wanted.sort(key=lambda test: ledger[test].date)
    began = time.monotonic()
    while wanted:
        some = shard(wanted, ledger, given.minutes or 20.0)
        print(f"{len(some)} of {len(wanted)} slow tests that are due, at {time.monotonic() - began:.0f} s", flush=True)
        run_and_keep(some, ledger)
        wanted = wanted[len(some) :]
        if given.minutes:
            break
    write_ledger(ledger.values())
    return tell(ledger)


if __name__ == "__main__":
    sys.exit(main())
