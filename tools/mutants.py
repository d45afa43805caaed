"""Make small mistakes in the sources, one at a time, and see whether a test notices.

    make mutants                                   half an hour of mistakes in places drawn by a new lot
    python -m tools.mutants --count 40 --seed 7    so many, drawn with this seed; nothing is written without --write
    python -m tools.mutants --again --write        those of the last run that nothing noticed, and the page anew
    python -m tools.mutants --count 0 --only stepsize/control.py    all mistakes of a module (`control.py:96`: a line)

Places are drawn from all of src/cosolve by one lot: each line with a place for a mistake counts the same, wherever it
stands, and gets one of the mistakes that `mutations.py` knows there. Each is made in a copy of the tree, never in
place. The tests that run there: the tests that call the function with the mistake (`reach.py`, after `make reach`), the
test files that name most of what the module defines, the tests of its area, then the docstring examples of the module.
A test that fails is run again without the mistake: one that fails there too counts for nothing. A run that does not end
in time counts as noticed.

With --write the page and the list of survivors are written: new ones go to the end of `mutants.toml` as `open`, where
they are judged: either the mistake changes nothing that a user could see, with the reason, or a test is named that
notices it since.

Why no tool from outside: mutmut and cosmic-ray know nothing of machine code on disk, which must be made anew for each
mistake and must not be kept (here every mistake gets a copy of the tree and its machine code, made of links), and they
run the whole suite for each mistake, which takes ten minutes. NUMBA_DISABLE_JIT does not help: the compiled engine
calls by address. Where a formula is compiled, tests call the Python it is made from.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from queue import SimpleQueue

from tools.areas import AREAS, Area, nearest
from tools.mutations import Mutation, mutations
from tools.reach import Reach, function_at

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "validation" / "mutants.md"
LOG = ROOT / ".mutants.json"
VERDICTS = ROOT / "tools" / "mutants.toml"
COPIED = ("src", "tests", "examples", "campaigns", "tools", "docs", "benchmarks", "conftest.py", "pyproject.toml",
          "README.md", "CONTRIBUTING.md", "Makefile")  # fmt: skip

#: Seconds that one test may take (tests/limits.py), and all tests of a stage.
LIMIT, LONGEST = 120.0, 1800.0

#: Seconds of processor time of tests that call little but the function with the mistake, and of others that call it.
BUDGET = 40.0


@dataclass
class Fate:
    """What became of a mistake: `noticed` is empty for a survivor."""

    mutation: Mutation
    area: str
    noticed: str
    seconds: float


@dataclass
class Bench:
    """A copy of the tree, with the machine code that it has on disk. Each mistake is made in a copy of that copy.

    That one is made of links, which costs nothing: whatever writes a file there, the interpreter and numba too, puts a
    new one in its place. So nothing that a mistake leaves behind, byte code or machine code, is there for the next.
    """

    root: Path
    passes: dict[str, bool]  # tests that a mistake made fail: whether they pass without it; of all benches

    @classmethod
    def of(cls, tree: Path, folder: Path, passes: dict[str, bool]) -> Bench:
        """Copy what tests need."""
        (folder / "tree").mkdir(parents=True)
        leave = shutil.ignore_patterns(".*", "envs")
        for name in COPIED:
            source, target = tree / name, folder / "tree" / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=leave)
            elif source.exists():
                shutil.copy2(source, target)
        return cls(folder, passes)

    def run(self, folder: str, tests: tuple[str, ...], limit: float) -> str:
        """Run tests until one fails; what failed, or nothing."""
        root = self.root / folder
        env = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, (root / "src", root))),
            "OPENBLAS_NUM_THREADS": "1",
        }
        log = root / ".pytest_cache" / "v" / "cache" / "lastfailed"  # with names that may have spaces
        log.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=line"]
        command += ["--limit", f"{LIMIT:g}", "--grace", "10"]
        run = subprocess.Popen(
            [*command, *tests], cwd=root, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = run.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
            return f"no end within {limit:.0f} s"
        if run.returncode in (0, 5):  # 5: all tests of these files are slow
            return ""
        if run.returncode == 4:  # the command itself is wrong
            raise SystemExit(output)
        failed = json.loads(log.read_text(encoding="utf-8")) if log.exists() else {}
        return next(iter(failed), "") or (output.strip().splitlines() or ["nothing"])[-1][:120]

    def noticed(self, folder: str, tests: tuple[str, ...], limit: float = LONGEST) -> str:
        """What failed there and passes without the mistake, or nothing."""
        left_out: tuple[str, ...] = ()
        while failed := self.run(folder, (*tests, *left_out), limit):
            if not failed.startswith(("tests/", "src/")):  # no end, or of the whole process
                return failed
            if failed not in self.passes:
                self.passes[failed] = not self.run("tree", (failed, *([] if "::" in failed else ["-k", "none"])), limit)
            if self.passes[failed] or failed in left_out:
                return failed if self.passes[failed] else ""
            left_out += ("--deselect", failed)
        return ""

    def try_out(self, mutation: Mutation, stages: Iterable[tuple[str, ...]]) -> str:
        """Make a mistake and run the tests of each stage; what noticed, or nothing."""
        tree, own = self.root / "tree", self.root / "mistake"
        shutil.copytree(tree, own, copy_function=os.link)
        try:
            path = own / mutation.path
            source = path.read_bytes()
            path.unlink()
            path.write_bytes(mutation.applied(source))
            return next(filter(None, (self.noticed(own.name, tests) for tests in stages)), "")
        finally:
            shutil.rmtree(own, ignore_errors=True)


def drawn(areas: Iterable[Area], root: Path, count: int, seed: int, only: str = "") -> list[tuple[Area, Mutation]]:
    """So many mistakes (0: all), in lines drawn from these areas by one lot; `only`: path, perhaps with a line."""
    path, _, wanted = only.partition(":")
    lines: dict[tuple[str, int], list[tuple[Area, Mutation]]] = {}
    for area in areas:
        for file in area.files(root):
            for m in mutations((root / file).read_bytes(), file) if file.endswith(path) else ():
                if wanted in ("", str(m.line)):
                    lines.setdefault((file, m.line), []).append((area, m))
    draw = random.Random(seed)
    hat = list(lines.values())
    draw.shuffle(hat)
    return [draw.choice(line) for line in hat[:count]] if count else [pair for line in hat for pair in line]


def study(
    chosen: list[tuple[Area, Mutation]], jobs: int, quick: bool, hear: Callable[[Fate], None], minutes: float = 0.0
) -> None:
    """Make these mistakes, in `jobs` copies of the tree, until all are made or the time is over (0: no limit).

    `quick`: only with the first stage of tests.
    """
    end = time.monotonic() + 60.0 * minutes
    reach = Reach.read(ROOT)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        free: SimpleQueue[Bench] = SimpleQueue()
        passes: dict[str, bool] = {}
        for k in range(jobs):
            free.put(Bench.of(ROOT, Path(folder) / str(k), passes))

        def one(pair: tuple[Area, Mutation]) -> Fate | None:
            area, mutation = pair
            if minutes and time.monotonic() > end:
                return None
            bench = free.get()
            try:
                began = time.perf_counter()
                noticed = bench.try_out(mutation, stages(area, mutation, reach)[: 1 if quick else None])
                return Fate(mutation, area.name, noticed, time.perf_counter() - began)
            finally:
                free.put(bench)

        with ThreadPoolExecutor(jobs) as pool:
            for fate in filter(None, pool.map(one, chosen)):
                hear(fate)


def stages(area: Area, mutation: Mutation, reach: Reach, root: Path = ROOT) -> list[tuple[str, ...]]:
    """Tests for a mistake: those that call its function, those that name what the source defines, those of the area.

    At last the examples of the source, apart from the tests: pytest puts a module that it collects by its path into its
    package, where a function may have the same name.
    """
    function = function_at((root / mutation.path).read_bytes(), mutation.line)
    return [
        tests
        for tests in (
            reach.tests(root, mutation.path, function, BUDGET),
            nearest(root, mutation.path),
            _paths(area.tests),
            (mutation.path,),
        )
        if tests
    ]


def _paths(files: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"tests/{file}" for file in files)


def read_log(path: Path) -> tuple[int, int, list[Fate]]:
    """The seed of the last run, how many mistakes it noticed at first, and what became of them."""
    log = json.loads(path.read_text(encoding="utf-8"))
    return (
        log["seed"],
        log["first"],
        [Fate(**{**entry, "mutation": Mutation(**entry["mutation"])}) for entry in log["fates"]],
    )


@dataclass(frozen=True)
class Judged:
    """A survivor of some run: `equivalent` says why it changes nothing, `test` names what notices it since.

    `open` says of which run it is, as long as it is not judged.
    """

    mistake: str
    equivalent: str = ""
    test: str = ""
    open: str = ""


def read_verdicts(path: Path) -> dict[str, Judged]:
    """What was judged by hand."""
    if not path.exists():
        return {}
    with path.open("rb") as file:
        return {entry["mistake"]: Judged(**entry) for entry in tomllib.load(file)["judged"]}


@dataclass(frozen=True)
class Lot:
    """What a fresh sample said when it was made first, and how its mistakes were tried."""

    seed: int
    when: str
    mistakes: int
    noticed: int
    equivalent: int
    how: str


def read_lots(path: Path) -> list[Lot]:
    """Fresh samples so far, kept by hand beside the verdicts: the page of a later sample replaces all else of them."""
    with path.open("rb") as file:
        return [Lot(**entry) for entry in tomllib.load(file).get("lot", [])]


def keep_survivors(path: Path, fates: list[Fate], verdicts: dict[str, Judged], seed: int, when: date) -> None:
    """Add those that are not in the list to its end."""
    new = [fate.mutation.key for fate in fates if not fate.noticed and fate.mutation.key not in verdicts]
    with path.open("a", encoding="utf-8") as file:
        for key in dict.fromkeys(new):
            mistake = json.dumps(key, ensure_ascii=False)  # a string of TOML as well
            file.write(f'\n[[judged]]\nmistake = {mistake}\nopen = "seed {seed}, {when:%d %B %Y}"\n')


def lots_table(lots: Sequence[Lot]) -> list[str]:
    """Lines of the page: fresh samples and their scores at first sight."""
    rows = [
        f"| {lot.seed} | {lot.when} | {lot.mistakes} | {lot.noticed} | {lot.equivalent} | "
        f"{lot.noticed / (lot.mistakes - lot.equivalent):.0%} | {lot.how} |"
        for lot in lots
    ]
    head = [
        "| seed | day | mistakes | noticed | equivalent | score | how they were tried |",
        "|---|---|---|---|---|---|---|",
    ]
    return ["", "## Fresh samples at first sight", "", *head, *rows]


def page(fates: list[Fate], verdicts: dict[str, Judged], seed: int, when: date, first: int, lots: Sequence[Lot]) -> str:
    """The report as a page."""
    areas = list(dict.fromkeys(fate.area for fate in fates))
    survivors = [fate for fate in fates if not fate.noticed]
    equivalent = [fate for fate in survivors if _verdict(fate, verdicts).equivalent]
    still = [fate for fate in survivors if fate not in equivalent]
    rows = [("all", fates), *((area, [fate for fate in fates if fate.area == area]) for area in areas)]
    of_others = f" ({first / (len(fates) - len(equivalent)):.0%} without the equivalent ones)" if still or first else ""
    lines = [
        "# Mistakes that tests notice",
        "",
        "One place at a time is changed in a copy of the tree, and tests of its module and its area are run: does one "
        "fail?",
        f"Written by `make mutants` (tools/mutants.py) on {when:%d %B %Y} with seed {seed} and {len(fates)} mistakes, "
        "in lines drawn from all sources alike.",
        "A mistake is *equivalent* when it changes nothing that a user could see; the reason was judged by hand. The",
        "score is the share of the others that was noticed. Mistakes that were noticed once are not made again when a",
        "run is repeated for its survivors (`--again`). Survivors of a sample get tests of their own, so its score",
        f"grows: a fresh seed is the fairer measure. When this sample was made first, {first} of {len(fates)} were "
        f"noticed{of_others}.",
        "",
        "| area | mistakes | noticed | equivalent | open | score |",
        "|---|---|---|---|---|---|",
    ]
    for name, some in rows:
        seen = sum(bool(fate.noticed) for fate in some)
        same = sum(fate in equivalent for fate in some)
        score = f"{seen / (len(some) - same):.0%}" if len(some) > same else "-"
        lines.append(f"| {name} | {len(some)} | {seen} | {same} | {len(some) - seen - same} | {score} |")
    lines += ["", "## Survivors", ""]
    for title, some in (("open", still), ("equivalent", equivalent)):
        for fate in some:
            reason = _verdict(fate, verdicts).equivalent
            lines.append(f"- {title}: {_place(fate.mutation)}{': ' + reason if reason else ''}")
    if not survivors:
        lines.append("None.")
    if lots:
        lines += lots_table(lots)
    since = [judged for judged in verdicts.values() if judged.test]
    if since:
        lines += ["", "## Survivors of earlier runs that a test notices since", ""]
        lines += [f"- `{judged.mistake.replace('`', '')}`: `{judged.test}`" for judged in since]
    return "\n".join(lines) + "\n"


def _verdict(fate: Fate, verdicts: dict[str, Judged]) -> Judged:
    return verdicts.get(fate.mutation.key, Judged(fate.mutation.key))


def _place(mutation: Mutation) -> str:
    path = mutation.path.removeprefix("src/cosolve/")
    return f"`{path}`, `{mutation.text.replace('`', '')}`, `{mutation.what.replace('`', '')}`"


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Change one formula at a time and see whether a test notices.")
    parser.add_argument("--count", type=int, default=1000, help="mistakes to make (0: all that there are)")
    parser.add_argument("--minutes", type=float, default=0.0, help="time after which none is begun (0: no limit)")
    parser.add_argument("--seed", type=int, help="of the lot (default: a fresh one, which is printed)")
    parser.add_argument("--only", default="", metavar="PATH[:LINE]", help="only mistakes of this source")
    parser.add_argument("--area", default="", help="only mistakes of this area: " + ", ".join(r.name for r in AREAS))
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree at work (default 1)")
    parser.add_argument("--again", action="store_true", help="only those of the last run that survived and are open")
    parser.add_argument("--quick", action="store_true", help="only the tests that are nearest to the source")
    parser.add_argument("--list", action="store_true", help="name the mistakes, make none")
    where = f"{PAGE.relative_to(ROOT)} and {VERDICTS.relative_to(ROOT)}"
    parser.add_argument("--write", action="store_true", help=f"write {where}")
    given = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(10**8) if given.seed is None else given.seed
    areas = [area for area in AREAS if given.area in ("", area.name)]
    verdicts = read_verdicts(VERDICTS)
    fates: list[Fate] = []
    first = -1  # how many were noticed when the sample was made first
    if given.again:
        seed, first, before = read_log(LOG)
        fates = [fate for fate in before if fate.noticed or _verdict(fate, verdicts).equivalent]
        left = {fate.mutation.key for fate in before} - {fate.mutation.key for fate in fates}
        chosen = [pair for pair in drawn(areas, ROOT, 0, seed, given.only) if pair[1].key in left]
        gone = left - {mutation.key for _, mutation in chosen}  # their lines have changed
        fates += [fate for fate in before if fate.mutation.key in gone]
    else:
        chosen = drawn(areas, ROOT, given.count, seed, given.only)
    print(f"seed {seed}", flush=True)
    if given.list:
        for area, mutation in chosen:
            print(f"{area.name:12s} {mutation.path}:{mutation.line}  {mutation.what}  |  {mutation.text}")
        return 0

    def hear(fate: Fate) -> None:
        m = fate.mutation
        fates.append(fate)
        print(f"{len(fates):4d} {m.path}:{m.line}  {m.what}  |  {m.text}")
        print(f"       {fate.seconds:5.1f} s  {fate.noticed or 'SURVIVES'}", flush=True)
        with LOG.open("w", encoding="utf-8") as file:
            noticed = sum(bool(f.noticed) for f in fates) if first < 0 else first
            json.dump({"seed": seed, "first": noticed, "fates": [asdict(fate) for fate in fates]}, file, indent=0)

    study(chosen, given.jobs, given.quick, hear, given.minutes)
    first = sum(bool(f.noticed) for f in fates) if first < 0 else first
    still = [f for f in fates if not f.noticed and not _verdict(f, verdicts).equivalent]
    print(f"{sum(bool(f.noticed) for f in fates)} of {len(fates)} mistakes were noticed, {len(still)} are open")
    for fate in still:
        print(f"  {fate.mutation.key}")
    if given.write:
        keep_survivors(VERDICTS, fates, verdicts, seed, date.today())
        text = page(fates, read_verdicts(VERDICTS), seed, date.today(), first, read_lots(VERDICTS))
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
