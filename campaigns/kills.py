"""Participants that are killed at random moments: a signal to one of them, to a rank or to the hub, and what is left.

Each case is a run of the command (`cosolve precice run`) with programs in C++ and Python, one of them sometimes as two
ranks. After the signal every process must be gone within seconds, with the name of who died and how in what the command
says; no socket, no file of shared memory and no temporary file may be left, and the result must hold what was before.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from tests.precice.together import config
from tests.process.isolated.leftovers import leftovers, stay
from tests.processes import children, environment, until

import cosolve as cs
import cosolve.precice.running
import cosolve.result.store  # noqa: F401 - in memory before the processes begin
from campaigns.page import Outcome
from cosolve.cli import app

SEED = 20261116
WHOLE = 100
DRAWS = 3  # a signal that came after the last window is no case; it is sent again in a new run
WINDOWS = 150
PATIENCE = 20.0  # seconds to connect: so late is a rank named that died before, where its shell waits for another
PAUSE = 2e-3  # seconds that a participant in Python sleeps in a window, so that a signal finds the run at work
LIMIT = 60.0  # seconds on a machine with other work; what is measured is told
PROGRAMS = Path(cs.__file__).parents[2] / "tests" / "precice" / "programs"
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT)

SOLVER = """
import sys, os, time
import numpy as np
import precice
name, rank, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
mesh, reads, writes = ("MA", "X", "Y") if name == "A" else ("MB", "Y", "X")
own = np.arange(4)[4 * rank // size : 4 * (rank + 1) // size]
p = precice.Participant(name, "config.xml", rank, size)
ids = p.set_mesh_vertices(mesh, np.column_stack([own, 0 * own]))
if p.requires_initial_data():
    p.write_data(mesh, writes, ids, 0.1 * own)
p.initialize()
count = os.open(f"{name}-{rank}.windows", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while p.is_coupling_ongoing():
    dt = p.get_max_time_step_size()
    time.sleep(PAUSE)
    p.write_data(mesh, writes, ids, 0.5 * p.read_data(mesh, reads, ids, dt) + own)
    p.advance(dt)
    os.write(count, b".")
"""


@dataclass(frozen=True)
class Case:
    """Who gets which signal, once so many windows are complete; 0: as soon as it is there."""

    victim: str  # "A", "B", "rank 0", "rank 1", "hub"
    number: signal.Signals
    window: int
    ranks: int = 1
    compiled: bool = False


def cases(count: int, compiled: bool, seed: int = SEED) -> list[Case]:
    """So many of them, the same for the same seed."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        ranks = chance.choice((1, 1, 2))
        victim = chance.choice(("A", "B", "hub") if ranks == 1 else ("rank 0", "rank 1", "B", "hub"))
        early = chance.random() < 0.2
        window = 0 if early else chance.randrange(1, WINDOWS - 30)
        found.append(Case(victim, chance.choice(SIGNALS), window, ranks, compiled and ranks == 1))
    return found


def built(folder: Path) -> Path | None:
    """The participant in C++, where there is a compiler."""
    if shutil.which("c++") is None:
        return None
    library = cs.remote.build_participant_library(folder / "library", precice=True) / "precice"
    words = ["c++", "-O1", str(PROGRAMS / "pair.cpp"), "-o", str(folder / "side_a"), f"-I{library}/include"]
    subprocess.run([*words, f"-L{library}/lib", "-lprecice", f"-Wl,-rpath,{library}/lib"], check=True, timeout=300)
    return folder / "side_a"


class Hub:
    """The command as a fork of this process, which has imported it already: most of a start is imports."""

    def __init__(self, words: list[str], folder: Path, env: dict[str, str], temporary: Path) -> None:
        self._code: int | None = None
        self.pid = os.fork()
        if self.pid:
            return
        code = 70
        try:
            os.setpgid(0, 0)
            os.chdir(folder)
            said = os.open("said", os.O_WRONLY | os.O_CREAT)
            os.dup2(said, 1)
            os.dup2(said, 2)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.default_int_handler)
            os.environ.clear()
            os.environ.update(env)
            tempfile.tempdir = str(temporary)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
            app(words)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def poll(self) -> int | None:
        """How it ended, or None."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def wait(self) -> int:
        """Until it has ended."""
        while self.poll() is None:
            time.sleep(0.01)
        assert self._code is not None
        return self._code


def marked(mark: str) -> list[int]:
    """Processes with this word in their environment or command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


def judged(case: Case, folder: Path, program: Path | None) -> tuple[str, str, float]:
    """A verdict, words for it, and the seconds from the signal until nothing was left."""
    mark = f"kill-{uuid4().hex}"
    temporary = folder / mark  # guards have it in their command line
    temporary.mkdir()
    (folder / "config.xml").write_text(config("serial-explicit", end=f'<max-time-windows value="{WINDOWS}" />'))
    (folder / "solver.py").write_text(SOLVER.replace("PAUSE", str(PAUSE)))
    python = f"{sys.executable} solver.py"
    a = f"{python} A 0 {case.ranks}"
    if case.ranks > 1:
        a = f"{a} & one=$!; {python} A 1 2 & wait $! && wait $one"
    elif case.compiled and program is not None:
        a = f"{program} A config.xml"
    words = ["precice", "run", "config.xml", "--out", "run.h5", "--logs", "logs", "--patience", str(PATIENCE)]
    words += ["-p", f"A={a}", "-p", f"B={python} B 0 1"]
    before = leftovers()
    hub = Hub(words, folder, environment(COSOLVE_MARK=mark), temporary)
    try:
        return _judged(case, folder, hub, mark, temporary, before)
    finally:
        for pid in [*marked(mark), *([hub.pid] if hub.poll() is None else [])]:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        hub.wait()


def _judged(
    case: Case, folder: Path, hub: Hub, mark: str, temporary: Path, before: set[Path]
) -> tuple[str, str, float]:
    found: list[int] = []

    def there() -> bool:
        found[:] = _victims(case, hub)
        return hub.poll() is not None or bool(found and _windows(folder) >= case.window)

    if not until(there, LIMIT):
        return "HANG", "the run did not come to the window", LIMIT
    if hub.poll() is not None or not found:
        return "late", "the run had ended before", 0.0
    all_of_them = children(hub.pid)
    with suppress(ProcessLookupError):
        os.kill(found[0], case.number)
    began = time.monotonic()
    over = _windows(folder) >= WINDOWS
    if not until(lambda: hub.poll() is not None, LIMIT):
        return "HANG", f"the hub goes on {LIMIT:g} s after the signal", LIMIT
    code = hub.wait()
    if over:
        return "late", "all windows were complete before", 0.0
    if not until(lambda: not any(_lives(pid) for pid in all_of_them), LIMIT) or not until(
        lambda: not marked(mark), 5.0
    ):
        return "ORPHAN", ", ".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in marked(mark)), LIMIT
    seconds = time.monotonic() - began
    left = [str(path) for path in temporary.iterdir()] + [str(path) for path in stay(before, 2.0)]
    left += [name for name in ("config.xml.hub",) if (folder / name).exists()]
    if left:
        return "LEFT", ", ".join(left), seconds
    return *_sentence(case, folder, code, found[0]), seconds


def _windows(folder: Path) -> int:
    """How many windows the second participant has completed."""
    counted = folder / "B-0.windows"
    return counted.stat().st_size if counted.exists() else 0


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _victims(case: Case, hub: Hub) -> list[int]:
    """The process that gets the signal."""
    if case.victim == "hub":
        return [hub.pid] if len(children(hub.pid)) > case.ranks + 1 else []  # the programs and a guard
    what = {"A": "side_a\0A" if case.compiled else "solver.py\0A\0000", "B": "solver.py\0B\0"}.get(
        case.victim, f"solver.py\0A\0{case.victim[-1]}"
    )
    found = []
    for pid in children(hub.pid):
        with suppress(OSError):
            if what in Path(f"/proc/{pid}/cmdline").read_text():
                found.append(pid)
    return found


def _sentence(case: Case, folder: Path, code: int, pid: int) -> tuple[str, str]:
    """Whether names and reasons were told, and the result was kept."""
    said = " ".join((folder / "said").read_text().split())
    if case.victim == "hub":
        killed = case.number == signal.SIGTERM or code == -case.number
        words = "ended by SIGTERM" if case.number == signal.SIGTERM else ""
        if not killed or words not in said:
            return "POOR", f"the hub ended with {code}: {said}"
        logs = "".join(path.read_text(errors="replace") for path in (folder / "logs").glob("*.log"))
        if case.window and not re.search("the hub is gone|the hub was ended|no hub answers", logs):
            return "POOR", f"no participant says why it ended: {logs}"
    else:
        name = "A" if case.victim.startswith("rank") else case.victim
        rank = f"rank {case.victim[-1]} of participant 'A' \\(process {pid}\\) is gone"
        whole = f"participant '{name}' .*signal {int(case.number)}, {case.number.name}"
        if code == 0 or not re.search(rank if case.ranks > 1 and name == "A" and case.window else whole, said):
            missing = f"'A (rank {case.victim[-1]} of 2)' did not connect within"
            early = not case.window and (f"participant '{name}' ended with exit code" in said or missing in said)
            if not (early and code != 0 and case.ranks > 1):  # of a rank that never connected the shell above it tells
                return "POOR", f"exit code {code}: {said}"
    if case.window > 1:
        result = cs.load_result(folder / "run.h5")
        least = 1 if case.victim == "hub" and case.number != signal.SIGTERM else case.window - 1  # not yet on disk
        if len(result) < least or (result.error or "") == "":
            return "RESULT", f"{len(result)} rows of {case.window} windows, {result.error}"
    return "sentence", ""


def run(quick: bool = False) -> Outcome:
    """The campaign; Ctrl-C ends it with what was found so far."""
    wrong: list[str] = []
    verdicts: dict[str, Counter[str]] = {}
    longest: dict[str, float] = {}
    done, amount, late = 0, 1 if quick else WHOLE, 0
    with tempfile.TemporaryDirectory() as top, suppress(KeyboardInterrupt):
        program = None if quick else built(Path(top))
        for case in cases(amount, program is not None):
            for drawn in range(DRAWS):
                folder = Path(top, f"{done}-{drawn}")
                folder.mkdir()
                verdict, words, seconds = judged(case, folder, program)
                late += verdict == "late"
                if verdict != "late":
                    break
            kind = "a rank" if case.victim.startswith("rank") else "the hub" if case.victim == "hub" else "a program"
            verdicts.setdefault(kind, Counter())[verdict] += 1
            longest[kind] = max(longest.get(kind, 0.0), seconds)
            if verdict not in ("sentence", "late"):
                wrong.append(f"case {done}, {case}: {verdict}: {words}"[:2000])
            shutil.rmtree(folder, ignore_errors=True)
            done += 1
            print(f"{done} of {amount}: {case.victim}, {case.number.name}: {verdict} in {seconds:.1f} s", flush=True)
    bad = ("POOR", "HANG", "ORPHAN", "LEFT", "RESULT")
    outcome = Outcome(["who is killed", "cases", "ended before", "ended with names and reason", *bad, "longest (s)"])
    for kind in sorted(verdicts):
        counts = verdicts[kind]
        found = [counts[what] for what in ("late", "sentence", *bad)]
        outcome.rows.append([kind, counts.total(), *found, f"{longest[kind]:.1f}"])
    outcome.notes = [
        f"seed {SEED}; signals {', '.join(number.name for number in SIGNALS)}",
        f"{late} signals came after the last window and were sent again in a new run",
        *wrong,
    ]
    if done < amount:
        outcome.notes.append(f"ended by hand after {done} of {amount}")
    outcome.good = not wrong
    return outcome
