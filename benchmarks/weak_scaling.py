"""A macro step with more and more participants: a ring of them in processes of their own, or on ranks of MPI.

    python benchmarks/weak_scaling.py                     2 to 64 processes (`cs.remote.Isolated`, two threads per core)
    python benchmarks/weak_scaling.py --ranks             the same on 2 to 64 ranks: starts mpiexec itself
    python benchmarks/weak_scaling.py --most 16 --runs 5
    python benchmarks/weak_scaling.py --window            two participants: here, on two ranks, in a process, in turn

Every participant does next to nothing in its subsystem step, so what is measured is the coupling: messages, waiting,
the interface. A figure is the best of several short runs of explicit Jacobi steps, seconds per macro step. The model is
`latency + cost * n` (least squares on relative errors), extrapolated to 1000 participants on as few cores; where each
has a core of its own, only what rank 0 does grows with `n`, which the processor time of rank 0 tells.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import cosolve as cs

STEPS, WARM = 30, 3


class Station(cs.Subsystem):
    """Follows its neighbour: two products per subsystem step."""

    inputs, outputs = ("u",), ("x",)

    def start(self, t0: float) -> float:
        self.x = 1.0
        return self.x

    def advance(self, t0: float, t1: float, u: Any) -> float:
        self.x += (t1 - t0) * (u(t0)[0] - self.x)
        return self.x


def ring(parts: dict[str, cs.Subsystem]) -> cs.System:
    system, names = cs.System(parts), list(parts)
    for one, two in zip(names, names[1:] + names[:1], strict=True):
        system.connect(f"{one}.x", f"{two}.u")
    return system


def measured(system: cs.System, runs: int, workers: int = 1) -> tuple[float, float]:
    """Seconds per macro step, and processor time of this process: the best of several runs."""
    wall = busy = float("inf")
    for _ in range(runs):
        with cs.Stepper(system, method=cs.Jacobi(degree=0), step=1e-3, workers=workers) as stepper:
            for _ in range(WARM):
                stepper.step()
            began, used = perf_counter(), process_time()
            for _ in range(STEPS):
                stepper.step()
            wall = min(wall, (perf_counter() - began) / STEPS)
            busy = min(busy, (process_time() - used) / STEPS)
    return wall, busy


def in_processes(n: int, runs: int) -> tuple[float, float]:
    parts = {f"s{k}": cs.remote.Isolated(Station, timeout=120.0) for k in range(n)}
    found = measured(ring(parts), runs, workers=max(2, min(n, 2 * (os.cpu_count() or 1))))
    for part in parts.values():
        part.close()
    return found


def on_ranks(n: int, runs: int) -> tuple[float, float]:
    """In a job of `n` ranks, with one participant each."""
    wall, busy = started(n, "--job", str(n), "--runs", str(runs))
    return wall, busy


def started(n: int, *arguments: str) -> Any:
    """What this program prints in a job of `n` ranks."""
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        raise SystemExit("there is no mpiexec: pip install 'cosolve[mpi]'")
    program = [mpiexec, "-n", str(n), sys.executable, __file__, *arguments]
    ran = subprocess.run(program, capture_output=True, text=True, timeout=900.0)
    if ran.returncode:
        raise SystemExit(ran.stderr)
    return json.loads(ran.stdout.splitlines()[-1])


def window(runs: int) -> None:
    """Two participants, the second of them here, on another rank or in a process; every way in turn."""
    ranks = cs.remote.on_ranks({"one": Station, "two": Station}, placement={"one": 0, "two": 1})
    second = {
        "one process": Station(),
        "two ranks": ranks.subsystems["two"],
        "Isolated, shared memory": cs.remote.Isolated(Station),
        "Isolated, pipe": cs.remote.Isolated(Station, transport="pipe"),
    }
    systems = {way: ring({"one": Station(), "two": two}) for way, two in second.items()}
    best = dict.fromkeys(systems, float("inf"))
    for _ in range(runs):
        for way, system in systems.items():
            best[way] = min(best[way], measured(system, 1)[0])
    print(json.dumps(best))


def job(n: int, runs: int) -> None:
    names = [f"s{k}" for k in range(n)]
    ranks = cs.remote.on_ranks(dict.fromkeys(names, Station), placement={name: k for k, name in enumerate(names)})
    print(json.dumps(measured(ring(ranks.subsystems), runs)))


def fitted(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    """`latency` and `cost` of `latency + cost * n`, with equal relative errors."""
    weight = 1.0 / np.array(seconds)
    rows = np.column_stack([np.ones(len(sizes)), sizes]) * weight[:, np.newaxis]
    latency, cost = np.linalg.lstsq(rows, np.ones(len(sizes)), rcond=None)[0]
    return float(latency), float(cost)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--ranks", action="store_true", help="ranks of MPI instead of processes")
    options.add_argument("--most", type=int, default=64, help="participants")
    options.add_argument("--runs", type=int, default=10, help="of which the best counts")
    options.add_argument("--window", action="store_true", help="two participants in four ways")
    options.add_argument("--job", type=int, default=0, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.window:
        if given.job:
            window(given.runs)
            return
        for way, seconds in started(2, "--window", "--job", "2", "--runs", str(15 * given.runs)).items():
            print(f"{way}: {1e6 * seconds:.0f} us")
        return
    if given.job:
        job(given.job, given.runs)
        return
    sizes = [n for n in (2, 4, 8, 16, 32, 64, 128) if n <= given.most]
    found = [(on_ranks if given.ranks else in_processes)(n, given.runs) for n in sizes]
    print("| participants | per macro step | per participant | processor time here |\n|---|---|---|---|")
    for n, (wall, busy) in zip(sizes, found, strict=True):
        print(f"| {n} | {1e6 * wall:.0f} us | {1e6 * wall / n:.0f} us | {1e6 * busy:.0f} us |")
    for what, column in (("macro step", 0), ("processor time here", 1)):
        latency, cost = fitted(sizes, [row[column] for row in found])
        much = latency + 1000 * cost
        print(f"{what}: {1e6 * latency:.0f} us + {1e6 * cost:.0f} us * n; 1000 participants: {1e3 * much:.1f} ms")


if __name__ == "__main__":
    main()
