"""Long runs and many starts: memory and file handles stay flat, and nothing is left behind.

The whole campaign takes 10^8 compiled steps and 10^4 starts and stops of processes (about an hour for the latter);
`COSOLVE_SOAK_STARTS=300` takes fewer, and the table says what was run.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path
from time import perf_counter

import numpy as np
from tests.process.isolated.leftovers import leftovers, stay
from tests.processes import children, until

import cosolve as cs
from campaigns.light import Held
from campaigns.page import Outcome

STEPS, STARTS = 10**8, 10**4
_GROWN = 16 * 2**20  # bytes of memory that a run may grow by after its first tenth: pools of allocators


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def handles() -> int:
    """Open files."""
    return len(os.listdir("/proc/self/fd"))


def _masses() -> cs.System:
    def mass(x: float) -> cs.Linear:
        return cs.Linear([[0, 1], [-40, -1]], [[0], [1]], np.eye(2), x0=[x, 0], inputs=["f"], outputs=["x", "v"])

    system = cs.System({"a": mass(1.0), "b": mass(-1.0)})
    system.connect("a.x", "b.f")
    system.connect("b.x", "a.f")
    return system


def compiled_steps(count: int, parts: int = 20) -> list[tuple[int, int]]:
    """Memory and handles after each part of a run of so many compiled steps, which records its ends only."""
    seen: list[tuple[int, int]] = []
    each = count // parts
    system = _masses()
    for _ in range(parts):
        result = cs.simulate(
            system, t_end=each * 1e-3, method=cs.SemiImplicit(degree=1), step=1e-3, every=each, compiled=True
        )
        assert result.stats.steps == each
        assert np.isfinite(result["a.x"]).all()
        del result
        gc.collect()
        seen.append((resident(), handles()))
    return seen


def starts(count: int) -> list[tuple[int, int]]:
    """Memory and handles while processes are started, used for two calls and stopped, every tenth by a kill."""
    seen: list[tuple[int, int]] = []
    for n in range(count):
        apart = cs.remote.Isolated(Held, timeout=120.0, transport=("shared_memory", "pipe")[n % 2])
        apart.start(0.0)
        if n % 10 == 9:
            os.kill(apart.pid, 9)
        apart.close()
        del apart
        if n % max(1, count // 20) == 0 or n == count - 1:
            gc.collect()
            seen.append((resident(), handles()))
    return seen


def run(quick: bool = False) -> Outcome:
    """The campaign."""
    begun = 3 if quick else int(os.environ.get("COSOLVE_SOAK_STARTS", STARTS))
    steps = 200_000 if quick else STEPS
    outcome = Outcome(["what", "count", "seconds", "memory first, last (MB)", "handles first, last", "left behind"])
    before = leftovers()
    for what, work, count in (("compiled macro steps", compiled_steps, steps), ("starts and stops", starts, begun)):
        began = perf_counter()
        seen = work(count)
        first, last = seen[min(len(seen) // 10, len(seen) - 1)], seen[-1]
        left = len(children(os.getpid())) if not until(lambda: not children(os.getpid()), 20.0) else 0
        files = len(stay(before))
        flat = last[0] - first[0] < _GROWN and last[1] <= first[1]
        outcome.good = outcome.good and flat and not left and not files
        outcome.rows.append(
            [
                *(what, f"{count:.3g}", f"{perf_counter() - began:.0f}", f"{first[0] / 1e6:.1f}, {last[0] / 1e6:.1f}"),
                *(f"{first[1]}, {last[1]}", f"{left} processes, {files} files"),
            ]
        )
    if not quick and begun != STARTS:
        outcome.notes.append(f"run with COSOLVE_SOAK_STARTS={begun}; the whole campaign has {STARTS} starts")
    return outcome
