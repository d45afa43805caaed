"""Change one formula at a time and see whether a test notices.

    make mutants                                   a sample of 150 mistakes, written to docs/validation/mutants.md
    python -m tools.mutants --count 40 --seed 7    fewer, and others; nothing is written unless --write is given
    python -m tools.mutants --again --write        those of the last run that nothing noticed, and the page anew
    python -m tools.mutants --count 0 --only stepsize/control.py    all mistakes of a module (`control.py:96`: a line)

Each mistake (`mutations.py`) is made in a copy of the tree, never in place, and the tests of its room are run there
(`ROOMS`: the docstring examples of the module and `quick` test files, then `more` where these pass). A run that does
not end in time counts as noticed. The sample is drawn with a seed, the same number from every room.

Survivors are judged in `mutants.toml`: either the mistake changes nothing that anybody could see, with the reason, or
a test is named that notices it since.

Why no tool from outside: mutmut and cosmic-ray know nothing of machine code on disk, which must be made anew for each
mistake and must not be kept (here every mistake gets a copy of the tree and its machine code, made of links), and they
have no table of tests by room, without which one mistake takes the ten minutes of the whole suite. NUMBA_DISABLE_JIT
does not help: the compiled engine calls by address. Where a formula is compiled, tests call the Python it is made from.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from queue import SimpleQueue

from tools.mutations import Mutation, mutations

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "validation" / "mutants.md"
LOG = ROOT / ".mutants.json"
VERDICTS = ROOT / "tools" / "mutants.toml"
COPIED = ("src", "tests", "examples", "tools", "docs", "benchmarks", "conftest.py", "pyproject.toml", "README.md",
          "CONTRIBUTING.md", "Makefile")  # fmt: skip

#: A run may take this many times as long as without a mistake, and this many seconds on top.
PATIENCE, GRACE = 3.0, 60.0
#: Seconds that one test may take, see tests/limits.py.
LIMIT = 120.0


@dataclass(frozen=True)
class Room:
    """Sources (below src/cosolve) that belong together, and the tests (below tests) that should notice mistakes."""

    name: str
    sources: tuple[str, ...]
    quick: tuple[str, ...]
    more: tuple[str, ...] = ()

    def files(self, root: Path) -> list[str]:
        """The sources, relative to `root`."""
        package = root / "src" / "cosolve"
        found = {path for pattern in self.sources for path in package.glob(pattern) if path.name != "__init__.py"}
        return sorted(path.relative_to(root).as_posix() for path in found)


ROOMS = (
    Room(
        "signal",
        ("signal/*.py",),
        ("contract/test_signals.py", "semi_implicit/test_polynomials.py"),
        ("explicit/test_startup.py",),
    ),
    Room(
        "stepsize",
        ("stepsize/*.py",),
        ("stepsize/test_control.py", "stepsize/test_steps_of_a_run.py", "contract/test_clocks.py"),
        ("stepper/test_stepping.py", "stepper/test_end.py"),
    ),
    Room(
        "method",
        ("method/*.py",),
        ("dynamic_static/test_static_kinds.py", "semi_implicit/test_one_correction.py",
         "constraint/test_penalty_hinges.py"),
        ("dynamic_static/test_coupling.py", "constraint/test_two_mass_stability.py",
         "interface/test_methods_by_name.py"),
    ),
    Room(
        "readable",
        ("engine/readable/*.py", "engine/measure.py"),
        ("contract/test_serial_and_startup.py", "corrector/test_tolerances.py", "corrector/test_algebraic_loop.py",
         "semi_implicit/test_one_correction.py", "interface/test_algebraic_start.py"),
        ("contract/test_driven_inputs.py", "corrector/test_sweeps.py", "contract/test_equations_at_the_start.py"),
    ),
    Room(
        "corrector",
        ("corrector/*.py", "corrector/algebra/*.py"),
        ("corrector/test_least_squares.py", "corrector/test_newton_toy.py", "corrector/test_relaxation.py",
         "corrector/test_line_search.py", "corrector/test_aitken.py", "corrector/test_algebraic_loop.py"),
        ("corrector/test_every_corrector.py", "corrector/test_global_jacobian.py", "corrector/test_tolerances.py"),
    ),
    Room(
        "precice",
        ("precice/convergence.py", "precice/acceleration.py", "precice/coupling.py", "precice/fields.py"),
        ("precice/test_convergence.py", "precice/test_windows.py", "precice/test_many.py"),
        ("precice/test_acceleration.py", "precice/test_mappings.py", "precice/test_interface.py"),
    ),
    Room(
        "participants",
        ("participants/client.py", "participants/subsystem.py"),
        ("precice/test_waveforms.py", "precice/test_interface.py"),
        ("precice/test_windows.py", "precice/test_methods.py"),
    ),
    Room(
        "interface",
        ("interface/*.py",),
        ("interface/test_addresses.py", "interface/test_units.py", "contract/test_plan_maps.py"),
        ("contract/test_driven_inputs.py", "stepper/test_changes.py", "drawing/test_representation.py",
         "interface/test_law_partials.py"),
    ),
    Room(
        "multibody",
        ("multibody/equations/constraints.py", "multibody/equations/outside.py", "multibody/equations/dynamics.py",
         "multibody/equations/joint_math.py", "multibody/coupling/laws.py"),
        ("mechanics/test_constraint_rows.py", "joints/test_force_laws.py"),
        ("mechanics/test_multibody_joints.py", "mechanics/test_multibody_ports.py"),
    ),
    Room("ssp", ("io/ssp/*.py",), ("ssp/test_read.py", "ssp/test_strangers.py"), ("ssp/test_fmus.py",)),
    Room(
        "fmu",
        ("fmu/communication_step.py", "integrator/inner_steps.py", "fmu/values.py"),
        ("fmu/test_communication.py", "fmu/test_own_steps.py"),
        ("fmu/test_two_mass.py",),
    ),
    Room(
        "result",
        ("result/recorder.py", "result/store.py", "result/file_columns.py", "result/result.py", "result/labels.py"),
        ("result/test_record.py", "result/test_memory.py", "result/test_labels.py"),
        ("result/test_store.py",),
    ),
)  # fmt: skip


@dataclass
class Fate:
    """What became of a mistake: `noticed` is empty for a survivor."""

    mutation: Mutation
    room: str
    noticed: str
    seconds: float


@dataclass
class Bench:
    """A copy of the tree, with the machine code that it has on disk. Each mistake is made in a copy of that copy.

    That one is made of links, which costs nothing: whatever writes a file there, the interpreter and numba too, puts a
    new one in its place. So nothing that a mistake leaves behind, byte code or machine code, is there for the next.
    """

    root: Path
    limits: dict[tuple[str, ...], float]  # seconds that tests may take, of all benches

    @classmethod
    def of(cls, tree: Path, folder: Path, limits: dict[tuple[str, ...], float]) -> Bench:
        """Copy what tests need."""
        (folder / "tree").mkdir(parents=True)
        leave = shutil.ignore_patterns(".*", "envs")
        for name in COPIED:
            source, target = tree / name, folder / "tree" / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=leave)
            elif source.exists():
                shutil.copy2(source, target)
        return cls(folder, limits)

    def run(self, folder: str, tests: tuple[str, ...], limit: float) -> str:
        """Run tests until one fails; what failed, or nothing."""
        root = self.root / folder
        env = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, (root / "src", root))),
            "OPENBLAS_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider"]
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
        if run.returncode == 0:
            return ""
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
        return failed[1] if failed else (output.strip().splitlines() or ["nothing"])[-1][:120]

    def limit(self, tests: tuple[str, ...]) -> float:
        """Seconds that these tests may take; before they are used first they must pass as they are."""
        if tests not in self.limits:
            began = time.perf_counter()
            failed = self.run("tree", tests, 3600.0)
            if failed:
                raise SystemExit(f"{failed} fails without any mistake; make that pass first")
            self.limits[tests] = PATIENCE * (time.perf_counter() - began) + GRACE  # with the time to compile
        return self.limits[tests]

    def try_out(self, mutation: Mutation, stages: Iterable[tuple[str, ...]]) -> str:
        """Make a mistake and run its module's examples and the tests of each stage; what noticed, or nothing."""
        tree, own = self.root / "tree", self.root / "mistake"
        shutil.copytree(tree, own, copy_function=os.link)
        try:
            path = own / mutation.path
            source = path.read_bytes()
            path.unlink()
            path.write_bytes(mutation.applied(source))
            for k, files in enumerate(stages):
                limit = self.limit(files)
                noticed = self.run(own.name, files if k else (mutation.path, *files), limit)
                if noticed:
                    return noticed
            return ""
        finally:
            shutil.rmtree(own, ignore_errors=True)


def drawn(rooms: Iterable[Room], root: Path, count: int, seed: int, only: str = "") -> list[tuple[Room, Mutation]]:
    """So many mistakes (0: all), about the same number from each room; `only`: path, perhaps with a line."""
    path, _, line = only.partition(":")
    shuffle = random.Random(seed).shuffle
    hats = []
    for room in rooms:
        hat = [(room, m) for file in room.files(root) for m in mutations((root / file).read_bytes(), file)]
        hat = [(room, m) for room, m in hat if m.path.endswith(path) and line in ("", str(m.line))]
        shuffle(hat)
        hats.append(hat)
    order = [pair for place in range(max(map(len, hats), default=0)) for hat in hats for pair in hat[place : place + 1]]
    return order[:count] if count else order


def study(chosen: list[tuple[Room, Mutation]], jobs: int, quick: bool, hear: Callable[[Fate], None]) -> None:
    """Make all these mistakes, in `jobs` copies of the tree; `quick`: without the second files of tests."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        kinds = {room.name: (room.quick,) if quick else (room.quick, room.more) for room, _ in chosen}
        stages = {name: tuple(_paths(files) for files in tests if files) for name, tests in kinds.items()}
        free: SimpleQueue[Bench] = SimpleQueue()
        limits: dict[tuple[str, ...], float] = {}
        for k in range(jobs):
            free.put(Bench.of(ROOT, Path(folder) / str(k), limits))

        def one(pair: tuple[Room, Mutation]) -> Fate:
            room, mutation = pair
            bench = free.get()
            try:
                began = time.perf_counter()
                noticed = bench.try_out(mutation, stages[room.name])
                return Fate(mutation, room.name, noticed, time.perf_counter() - began)
            finally:
                free.put(bench)

        with ThreadPoolExecutor(jobs) as pool:
            for fate in pool.map(one, chosen):
                hear(fate)


def _paths(files: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"tests/{file}" for file in files)


def read_log(path: Path) -> list[Fate]:
    """What became of the mistakes of the last run."""
    with path.open(encoding="utf-8") as file:
        return [Fate(**{**entry, "mutation": Mutation(**entry["mutation"])}) for entry in json.load(file)]


@dataclass(frozen=True)
class Judged:
    """A survivor of some run: `equivalent` says why nobody could notice, `test` names what notices it since."""

    mistake: str
    equivalent: str = ""
    test: str = ""


def read_verdicts(path: Path) -> dict[str, Judged]:
    """What was judged by hand."""
    if not path.exists():
        return {}
    with path.open("rb") as file:
        return {entry["mistake"]: Judged(**entry) for entry in tomllib.load(file)["judged"]}


def page(fates: list[Fate], verdicts: dict[str, Judged], seed: int, when: date) -> str:
    """The report as a page."""
    rooms = list(dict.fromkeys(fate.room for fate in fates))
    survivors = [fate for fate in fates if not fate.noticed]
    equivalent = [fate for fate in survivors if _verdict(fate, verdicts).equivalent]
    still = [fate for fate in survivors if fate not in equivalent]
    rows = [("all", fates), *((room, [fate for fate in fates if fate.room == room]) for room in rooms)]
    lines = [
        "# Mistakes that tests notice",
        "",
        "One formula at a time is changed in a copy of the tree, and the tests of its room are run: does one fail?",
        f"Written by `make mutants` (tools/mutants.py) on {when:%d %B %Y} with seed {seed} and {len(fates)} mistakes, "
        "the same number from each room.",
        "A mistake is *equivalent* when it changes nothing that anybody could see; the reason was judged by hand. The",
        "score is the share of the others that was noticed. Mistakes that were noticed once are not made again when a",
        "run is repeated for its survivors (`--again`). Survivors of a sample get tests of their own, so its score",
        "grows: a seed that nobody has looked at is the fairer measure.",
        "",
        "| room | mistakes | noticed | equivalent | open | score |",
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
    parser.add_argument("--count", type=int, default=150, help="mistakes to make (0: all that there are; default 150)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--only", default="", metavar="PATH[:LINE]", help="only mistakes of this source")
    parser.add_argument("--room", default="", help="only mistakes of this room: " + ", ".join(r.name for r in ROOMS))
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree at work (default 1)")
    parser.add_argument(
        "--again", action="store_true", help="only those that nothing noticed last time and that nobody judged"
    )
    parser.add_argument("--quick", action="store_true", help="only the first files of tests of each room")
    parser.add_argument("--list", action="store_true", help="name the mistakes, make none")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    given = parser.parse_args(arguments)
    rooms = [room for room in ROOMS if given.room in ("", room.name)]
    chosen = drawn(rooms, ROOT, given.count, given.seed, given.only)
    known: list[Fate] = []
    verdicts = read_verdicts(VERDICTS)
    if given.again:
        known = [fate for fate in read_log(LOG) if fate.noticed or _verdict(fate, verdicts).equivalent]
        settled = {fate.mutation.key for fate in known}
        chosen = [(room, mutation) for room, mutation in chosen if mutation.key not in settled]
    if given.list:
        for room, mutation in chosen:
            print(f"{room.name:12s} {mutation.path}:{mutation.line}  {mutation.what}  |  {mutation.text}")
        return 0
    fates = known

    def hear(fate: Fate) -> None:
        m = fate.mutation
        fates.append(fate)
        print(f"{len(fates):4d} {m.path}:{m.line}  {m.what}  |  {m.text}")
        print(f"       {fate.seconds:5.1f} s  {fate.noticed or 'SURVIVES'}", flush=True)
        with LOG.open("w", encoding="utf-8") as file:
            json.dump([asdict(fate) for fate in fates], file, indent=0)

    study(chosen, given.jobs, given.quick, hear)
    still = [f for f in fates if not f.noticed and not _verdict(f, verdicts).equivalent]
    print(f"{sum(bool(f.noticed) for f in fates)} of {len(fates)} mistakes were noticed, {len(still)} are open")
    for fate in still:
        print(f"  {fate.mutation.key}")
    if given.write:
        PAGE.write_text(page(fates, verdicts, given.seed, date.today()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
