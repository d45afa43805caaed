"""`kill -9` at random moments, again and again: `python -m tests.state.campaign --kills 102`.

A chain of processes works on one file: each begins or resumes the run and is killed after a random time (also while it
starts, while it copies what is there, while it writes a state), until one comes to the end; then the file is compared
with that of an undisturbed run, and the next chain begins. Counted are kills, files that cannot be read after one,
rows (or cases) that were on the disk before a kill and are not afterwards, processes and pieces of shared memory that
stay behind, and files that differ in the end.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests import processes
from tests.state import models
from tests.state.same import differences
from tests.sweeps.models import pendulum

import cosolve as cs

#: kind of run -> end time, and what `simulate` takes besides
LENGTHS: dict[str, tuple[float, dict[str, Any]]] = {
    "readable": (30.0, {}),
    "compiled": (2000.0, {"every": 200}),
    "isolated": (12.0, {}),
    "fmu": (20.0, {}),
    "adaptive": (15.0, {}),
}
KINDS = (*LENGTHS, "sweep")
_SWEEP = {
    "parameters": {"length": [1.0 + k / 50 for k in range(60)]},
    "methods": [cs.Jacobi(1), cs.SemiImplicit(1)],
    "steps": 0.005,
    "t_end": 1.0,
    "record": "rod.x",
    "executor": "processes",
    "workers": 2,
}


def work(kind: str, file: Path) -> None:
    """What is killed: begin the run, or go on with it."""
    print("ready", flush=True)
    if kind == "sweep":
        cs.sweep(pendulum, **_SWEEP, save=file)
    elif file.with_name(file.name + ".state").exists():
        models.resume(kind, file)
    else:
        t_end, more = LENGTHS[kind]
        models.simulate(kind, t_end, file, state_every="0.2 s", **more)


def rows(kind: str, file: Path) -> int:
    """How much is on the disk; raises when that cannot be read."""
    if kind != "sweep":
        return len(cs.load_result(file).t)
    from cosolve.sweeps.journal import _records

    return len(_records(file.read_bytes(), file)[0])


def attempt(kind: str, file: Path, patience: float, at_work: bool, counts: Counter[str]) -> bool:
    """One process, killed so many seconds after it began, or after it wrote for the first time (`at_work`).

    True when it came to its end before that.
    """
    unchanged = _changed(kind, file)
    command = [sys.executable, "-m", "tests.state.campaign", "--work", kind, str(file)]
    options = {"stdout": subprocess.PIPE, "env": processes.environment(), "cwd": processes.ROOT}
    with processes.started(command, **options) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if at_work:
            processes.until(lambda: _changed(kind, file) != unchanged or process.poll() is not None)
        time.sleep(patience)
        before = _rows_now(kind, file)
        descendants = processes.children(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if process.returncode == 0:
            return True
        assert process.returncode == -9, process.returncode
        counts["kills"] += 1
        counts["orphans"] += sum(not processes.ends(pid, 20.0) for pid in descendants)
        begun = file.exists() and (kind == "sweep" or file.with_name(file.name + ".state").exists())
        if not begun:
            counts["before the first state"] += 1
            return False
        try:
            after = rows(kind, file)
        except Exception as error:
            counts["unreadable"] += 1
            print(f"{kind}: {type(error).__name__}: {error}", flush=True)
            return False
        counts["lost rows"] += max(0, _kept_rows(kind, file, before) - after)
    return False


def _changed(kind: str, file: Path) -> int:
    """When states (or cases) were written last."""
    path = file if kind == "sweep" else file.with_name(file.name + ".state")
    return path.stat().st_mtime_ns if path.exists() else 0


def _rows_now(kind: str, file: Path) -> int:
    """Rows on the disk while the run goes on; a reader may meet the file in the middle of a change."""
    try:
        return rows(kind, file)
    except Exception:
        return 0


def _kept_rows(kind: str, file: Path, before: int) -> int:
    """Rows that must be there after a kill: those that the state counts on, and of a sweep all that were seen."""
    if kind == "sweep":
        return before
    from cosolve.io.resume import left_behind

    kept = left_behind(file)[1]
    return 0 if kept is None else int(kept.run["rows"])


def campaign(kinds: tuple[str, ...], kills: int, seed: int, longest: float, folder: Path) -> dict[str, Counter[str]]:
    """About `kills` kills of each kind."""
    found: dict[str, Counter[str]] = {}
    chance = random.Random(seed)
    shared = Path("/dev/shm")
    for kind in kinds:
        counts = found[kind] = Counter()
        whole, file = folder / f"whole {kind}.h5", folder / f"{kind}.h5"
        if kind != "sweep":
            t_end, more = LENGTHS[kind]
            models.simulate(kind, t_end, whole, **more)
        else:
            expected = cs.sweep(pendulum, **_SWEEP)
        segments = set(os.listdir(shared)) if shared.exists() else set()
        while counts["kills"] < kills:
            file.unlink(missing_ok=True)
            file.with_name(file.name + ".state").unlink(missing_ok=True)
            while counts["kills"] < kills:
                if attempt(kind, file, chance.uniform(0.0, longest), chance.random() < 0.8, counts):
                    break
            processes.run(
                [sys.executable, "-m", "tests.state.campaign", "--work", kind, str(file)],
                env=processes.environment(),
                cwd=processes.ROOT,
                check=True,
                limit=1200.0,
            )
            counts["chains"] += 1
            if kind == "sweep":
                counts["different"] += (
                    not cs.sweep(pendulum, **_SWEEP, save=file).drop_attrs().identical(expected.drop_attrs())
                )
            else:
                unlike = differences(whole, file)
                counts["different"] += bool(unlike)
                if unlike:
                    print(f"{kind}: {unlike}", flush=True)
        left = set(os.listdir(shared)) - segments if shared.exists() else set()
        counts["segments"] += sum("cosolve" in name or name.startswith("psm_") for name in left)
        shown = ", ".join(f"{name} {counts[name]}" for name in FIGURES)
        print(f"{kind}: {shown}", flush=True)
    return found


FIGURES = (
    *("kills", "before the first state", "chains", "unreadable", "lost rows", "orphans", "segments", "different"),
)

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", nargs=2)
    parser.add_argument("--kills", type=int, default=102, help="of all kinds together")
    parser.add_argument("--kinds", nargs="+", default=KINDS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=3.0, help="seconds of work after which a process is killed")
    given = parser.parse_args()
    if given.work:
        work(given.work[0], Path(given.work[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            each = -(-given.kills // len(given.kinds))
            campaign(tuple(given.kinds), each, given.seed, given.longest, Path(place))
