"""Disks that fill up, quotas, limits of file size, files cut by others, and two runs with one name: at random moments.

Each case is a process of its own. It tells what it has brought to its file; afterwards the file must hold that, with
the bits of an undisturbed run, and what ended the process must be a sentence. Runs with states, and sweeps, then go on
without the fault and must come to the numbers of the undisturbed one.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

import numpy as np

import cosolve as cs
from campaigns.page import Outcome

SEED, LIMIT = 20261119, 120.0
MODES = ("readable", "compiled", "live", "sweep", "resume")
FAULTS = ("disk full", "quota", "limit of file size", "cut")
GOOD = ("sentence", "right", "refused")
BAD = ("LOST", "BARE", "HANG", "CRASH", "SILENT")
_STEPS, _VARIANTS = {"readable": 9000, "live": 9000, "resume": 9000, "compiled": 150_000}, 24
_H = 0.01


def build(rate: float = 1.0) -> cs.System:
    """Two tanks."""
    one, two = (cs.Linear([[-rate]], [[1.0]], [[1.0]], x0=[x], inputs=["q"], outputs=["h"]) for x in (1.0, 0.0))
    system = cs.System({"a": one, "b": two})
    system.connect("a.h", "b.q")
    system.connect("b.h", "a.q")
    return system


def run_of(mode: str, **more: Any) -> cs.Result:
    """The run, undisturbed unless something disturbs it."""
    options = {"compiled": mode == "compiled", "t_end": _STEPS[mode] * _H, "step": _H, "method": cs.Jacobi(1)} | more
    return cs.simulate(build(), **options)


def sweep_of(save: Path | None) -> Any:
    """The sweep."""
    rates = np.linspace(0.5, 2.0, _VARIANTS)
    return cs.sweep(build, {"rate": rates}, methods=cs.Jacobi(1), steps=0.1, t_end=5.0, save=save, executor="serial")


def disturbed(mode: str, home: Path, cut_at: int, left: float) -> None:
    """What the process of a case does; tells what is in the file as soon as it is there."""
    reference = np.load(home.parent / f"{mode}.npy") if mode != "sweep" else None
    file = home / "run.h5"
    _tell(mode, file, cut_at, left)
    try:
        if mode == "sweep":
            sweep_of(home / "a.sweep")
            print("finished")
            return
        if mode == "resume":
            result = cs.resume(file, build(), max_steps=10**6)
        else:
            more = {"observers": [cs.Live(open_browser=False, told=None)]} if mode == "live" else {}
            result = run_of(mode, save=file, **more)
        print("finished", _same(result, reference))
    except cs.CosolveError as error:
        result = getattr(error, "result", None)
        with suppress(cs.CosolveError):  # of a file that another program has cut
            print("rows", 0 if result is None else len(result), result is None or _same(result, reference))
        print("sentence", error)
    except Exception as error:
        print("BARE", type(error).__name__, error)


def _same(result: cs.Result, reference: Any) -> bool:
    return np.array_equal(result["a.h"], reference[: len(result)])


def _tell(mode: str, file: Path, cut_at: int, left: float) -> None:
    """Print what a run has brought to its file, and cut the file once so much is there."""
    from cosolve.result.store import Stream
    from cosolve.sweeps.journal import Journal

    flush, commit = Stream.flush, Journal.commit

    def flushed(self: Stream) -> None:
        flush(self)
        if self._target is None:
            print("brought", self._journal.rows, self._journal.end, flush=True)
            cut(self.path)

    def committed(self: Journal) -> None:
        commit(self)
        print("brought", int(self.done.sum()), file.parent.joinpath("a.sweep").stat().st_size, flush=True)
        cut(self.path)

    def cut(path: Path) -> None:
        nonlocal cut_at
        size = path.stat().st_size
        if 0 < cut_at <= size:
            os.truncate(path, int(left * size))
            cut_at = 0
            print("cut", path.stat().st_size, flush=True)

    Stream.flush, Journal.commit = flushed, committed  # type: ignore[method-assign]


def serve() -> None:
    """Fork a process for each line of orders, which ends as any Python program does, and answer what became of it."""
    run_of("compiled")  # what all of them load
    sweep_of(None)
    run_of("live", observers=[cs.Live(open_browser=False, told=None)], t_end=1.0)
    gc.freeze()
    for line in sys.stdin:
        mode, home, cut_at, left, full, code, limit = json.loads(line)
        said = Path(f"{home}.said")
        pid = os.fork()
        if pid == 0:
            os.environ.update(
                FULL_ERRNO=str(code), FULL_BYTES=str(full), **({"FULL_FOLDER": home + "/"} if code else {})
            )
            stream = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(stream, 1)
            os.dup2(stream, 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            if limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            disturbed(mode, Path(home), cut_at, left)
            return
        until, status = monotonic() + LIMIT, None
        while status is None and monotonic() < until:
            done, found = os.waitpid(pid, os.WNOHANG)
            status = os.waitstatus_to_exitcode(found) if done else None
            sleep(0.01)
        if status is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        print(json.dumps([status, said.read_text(errors="replace")]), flush=True)
        said.unlink()


class Campaign:
    """A folder with undisturbed runs, what they write, and a disk that fills up."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.sizes = folder, {}
        self.full = folder / "full_disk.so"
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler:
            source = Path(__file__).with_name("full_disk.c")
            subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", self.full, source, "-ldl"], check=True)
        for mode in MODES[:3]:
            np.save(folder / f"{mode}.npy", run_of(mode)["a.h"])
        shutil.copy(folder / "readable.npy", folder / "resume.npy")
        left = folder / "left"
        left.mkdir()
        with suppress(cs.errors.SimulationError):
            run_of("resume", save=left / "run.h5", state_every=1500, max_steps=4000)
        self.rows_left = 3001  # those of its last state: what came after them is computed again
        environment = dict(os.environ, OPENBLAS_NUM_THREADS="1")
        if self.full.exists():
            environment["LD_PRELOAD"] = str(self.full)
        self._server = subprocess.Popen(
            [sys.executable, "-c", "from campaigns.disks import serve; serve()"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.sweep = sweep_of(folder / "whole.sweep")
        self.sizes = {"sweep": (folder / "whole.sweep").stat().st_size, "compiled": 5_000_000}
        self.sizes |= dict.fromkeys(("readable", "live", "resume"), 80 * _STEPS["readable"])

    def case(self, n: int, mode: str, fault: str, seed: int = SEED) -> tuple[str, str]:
        """The verdict on one case, and why."""
        random, home = Random(f"{seed} {n}"), self.folder / f"case{n}"
        shutil.copytree(self.folder / "left", home) if mode == "resume" else home.mkdir()
        moment = random.randrange(self.sizes[mode])  # what a run writes, and a part of what it is rewritten to
        cut_at, left = (moment + 1, random.random()) if fault == "cut" else (0, 0.0)
        code = {"disk full": errno.ENOSPC, "quota": errno.EDQUOT}.get(fault, 0)
        limit = moment if fault == "limit of file size" else 0
        child = self.process(mode, str(home), cut_at, left, moment if code else 0, code, limit)
        if child is None:
            return "HANG", f"no end within {LIMIT:g} s"
        found = self._judged(mode, home, child)
        if found[0] not in BAD:
            shutil.rmtree(home)
        return found

    def process(self, *order: Any) -> tuple[int, str] | None:
        """A process that is disturbed: its exit status and what it said; None for one that had no end."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        status, said = json.loads(self._server.stdout.readline())
        return None if status is None else (status, said)

    def close(self) -> None:
        """No more cases come."""
        self._server.communicate()

    def _judged(self, mode: str, home: Path, child: tuple[int, str]) -> tuple[str, str]:
        status, text = child
        said = [line.split(" ", 2) for line in text.splitlines()]
        last = " ".join(said[-1]) if said else ""
        if status < 0:
            return "CRASH", f"signal {-status}; {last}"
        if status or not last.startswith(("finished", "sentence")):
            return "BARE", last
        if any(line[-1] == "False" for line in said if line[0] in ("rows", "finished")):
            return "SILENT", f"other numbers; {last}"
        brought = [(int(rows), int(end)) for word, rows, end in (line for line in said if line[0] == "brought")]
        size = next((int(line[1]) for line in said if line[0] == "cut"), None)
        whole = max((rows for rows, end in brought if size is None or end <= size), default=0)
        lost = self._sweep_lost(home, whole) if mode == "sweep" else self._rows_lost(mode, home, whole, size)
        if lost:
            return "LOST", f"{lost}; {last}"
        return ("right" if last.startswith("finished") else "sentence"), last

    def _rows_lost(self, mode: str, home: Path, whole: int, size: int | None) -> str:
        """What is missing of so many rows; a run that was resumed had rows before."""
        if mode == "resume" and size is None:
            whole = max(whole, self.rows_left)
        reference = np.load(self.folder / f"{mode}.npy")
        if not whole:
            return ""
        try:
            result = cs.load_result(home / "run.h5")
            if len(result) < whole or not _same(result, reference):
                return f"{len(result)} rows of {whole} are readable"
            if mode == "resume" and size is None and (home / "run.h5.state").exists():
                again = cs.resume(home / "run.h5", build(), max_steps=10**6)
                if not np.array_equal(again["a.h"], reference):
                    return "the run came to other numbers when it was resumed without the fault"
        except cs.CosolveError as error:
            return f"{whole} rows cannot be read: {error}"
        return ""

    def _sweep_lost(self, home: Path, whole: int) -> str:
        """What a sweep has lost of so many finished cases, seen when it is run again."""
        calls = 0

        def counted(rate: float) -> cs.System:
            nonlocal calls
            calls += 1
            return build(rate)

        from cosolve.sweeps.journal import Journal

        found: list[int] = []
        take_over = Journal._take_over

        def noted(self: Journal, here: Any) -> None:
            take_over(self, here)
            found.append(int(self.done.sum()))

        Journal._take_over = noted  # type: ignore[method-assign]
        try:
            again = sweep_of(home / "a.sweep")
        except cs.CosolveError as error:
            return f"{whole} cases cannot be read: {error}"
        finally:
            Journal._take_over = take_over  # type: ignore[method-assign]
        if found[0] < whole:
            return f"{found[0]} cases of {whole} are readable"
        if not np.array_equal(again["a.h"].values, self.sweep["a.h"].values):
            return "the sweep came to other numbers when it was run again"
        return ""

    def twins(self, n: int) -> tuple[str, str]:
        """Two runs with one name, one a little later: one is right, the other right or refused."""
        random, home = Random(f"{SEED} twins {n}"), self.folder / f"twins{n}"
        home.mkdir()
        waits = (0.0, random.random() * random.choice((0.05, 0.5)))
        program = "import time; from campaigns.disks import disturbed, Path; print(flush=True); input(); "
        program += f"time.sleep({{wait}}); disturbed('readable', Path({str(home)!r}), 0, 0.0)"
        pair = [
            subprocess.Popen(
                [sys.executable, "-c", program.format(wait=wait)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for wait in waits
        ]
        for one in pair:  # both have loaded what they need
            assert one.stdout is not None
            one.stdout.readline()
        for one in pair:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
        try:
            said = [(one.communicate(timeout=LIMIT)[0].splitlines() or [""])[-1] for one in pair]
        except subprocess.TimeoutExpired:
            for one in pair:
                one.kill()
                one.communicate()
            return "HANG", f"no end within {LIMIT:g} s"
        if any(one.returncode < 0 for one in pair):
            return "CRASH", str([one.returncode for one in pair])
        words = sorted(line.split(" ")[0] for line in said)
        if words not in (["finished", "sentence"], ["finished", "finished"]) or any("False" in line for line in said):
            return "BARE", str(said)
        result = cs.load_result(home / "run.h5")
        if len(result) != _STEPS["readable"] + 1 or not _same(result, np.load(self.folder / "readable.npy")):
            return "LOST", f"{len(result)} rows; {said}"
        refused = [line for line in said if line.startswith("sentence")]
        if refused and "is still going on" not in refused[0]:
            return "BARE", refused[0]
        shutil.rmtree(home)
        return ("refused", refused[0]) if refused else ("right", "one after the other")


def run(quick: bool = False) -> Outcome:
    """The campaign."""
    amount = 20 if quick else 200
    outcome = Outcome(["fault", "in", "tried", *GOOD, *BAD])
    with tempfile.TemporaryDirectory(prefix="cosolve-disks-") as folder:
        campaign = Campaign(Path(folder))
        faults = FAULTS if campaign.full.exists() else FAULTS[2:]
        if faults != FAULTS:
            outcome.notes.append("there is no C compiler, so full disks and quotas were not tried")
        counts: dict[tuple[str, str], Counter[str]] = {}
        kinds = [(fault, mode) for fault in faults for mode in MODES]
        for n in range(amount):
            fault, mode = kinds[n % len(kinds)]
            _note(outcome, counts, fault, mode, n, campaign.case(n, mode, fault))
        for n in range(amount // 10):
            _note(outcome, counts, "two runs, one name", "readable", n, campaign.twins(n))
        campaign.close()
    for (fault, mode), found in counts.items():
        outcome.rows.append([fault, mode, found.total(), *(found[word] or "" for word in (*GOOD, *BAD))])
    total = sum(counts.values(), Counter[str]())
    outcome.rows.append(["all", "", total.total(), *(total[word] or "" for word in (*GOOD, *BAD))])
    outcome.notes.append(f"seed {SEED}")
    return outcome


def _note(
    outcome: Outcome, counts: dict[tuple[str, str], Counter[str]], fault: str, mode: str, n: int, found: tuple[str, str]
) -> None:
    counts.setdefault((fault, mode), Counter())[found[0]] += 1
    if found[0] in BAD:
        outcome.good = False
        outcome.notes.append(f"**{found[0]}**: {fault}, {mode}, case {n}: {found[1]}")
        print(outcome.notes[-1], flush=True)
