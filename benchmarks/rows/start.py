"""First use, second start, import: in processes of their own, with fresh and with filled compilation caches."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from harness import Bench
from problems import fmus

from report import Section, Verdict, duration, table

#: Names are imported when first asked for: what a run needs counts, not the bare import.
IMPORT = """
from time import perf_counter as clock, process_time as used
began = clock(), used()
import cosolve as cs
cs.System, cs.Ode, cs.SemiImplicit, cs.simulate
print(clock() - began[0], used() - began[1])
"""
#: The time from the start of the process' own code to the end of a run in the compiled loop, and the loading in it.
RUN = """
from time import perf_counter as clock, process_time as used
began = clock()
import json, sys
import cosolve as cs
imported = clock()
files, method = json.loads(sys.argv[1]), sys.argv[2]
system = cs.System({"one": cs.load_fmu(files["mass_force"]), "two": cs.load_fmu(files["mass_spring"])})
system.connect("one.x", "two.x1")
system.connect("one.v", "two.v1")
system.connect("two.F", "one.f")
busy = used()
result = cs.simulate(system, t_end=0.1, method=eval(f"cs.{method}"), step=1e-4, compiled=True)
print(json.dumps([clock() - began, clock() - imported, result.stats.loading_seconds, used() - busy]))
"""
ROOT = Path(__file__).parents[2]
METHODS = ("Jacobi(0)", "SemiImplicit(2)", "Implicit(2)")


def _python(code: str, *more: str, cache: str = "") -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **({"NUMBA_CACHE_DIR": cache} if cache else {})}
    ran = subprocess.run([sys.executable, "-c", code, *more], capture_output=True, text=True, check=True, env=env)
    return ran.stdout.splitlines()[-1]


def run(bench: Bench) -> list[Section]:
    """Import, first use, second start."""
    found = [[float(v) for v in _python(IMPORT).split()] for _ in range(bench.repeats + 1)][1:]
    imports, used = [wall for wall, _ in found], statistics.median(cpu for _, cpu in found)
    files = json.dumps(asdict(fmus.build())["fmus"])
    rows, first, second = [], [], []
    for method in METHODS if not bench.quick else METHODS[:1]:
        with tempfile.TemporaryDirectory() as cache:
            cold = json.loads(_python(RUN, files, method, cache=cache))
            warm = [json.loads(_python(RUN, files, method, cache=cache)) for _ in range(bench.repeats)]
        whole, loading = (statistics.median(w[k] for w in warm) for k in (0, 2))
        first.append(cold[2])
        second.append(loading)
        first_use = [duration(cold[k]) for k in (2, 3, 0)]
        rows.append([method, *first_use, duration(loading), duration(whole)])
    middle = statistics.median(imports)
    section = Section("First use, second start, import")
    head = ["method", "compiling, empty cache", "processor time", "whole process", "loading, filled cache", "whole"]
    section.text = [
        "Two FMUs, 1000 steps in the compiled loop, each in a new process; `NUMBA_CACHE_DIR` is empty, then filled.",
        "",
        *table(head, rows),
        f"`import cosolve` and the names of a run: {duration(middle)} ({duration(min(imports))} to "
        f"{duration(max(imports))}), processor time {duration(used)}. Where processor time is much less than time, the "
        "machine was busy with something else.",
    ]
    compiling = (
        "the implicit loops are large functions, and assignments of whole rows (`Y[s] = y`) bring numba's texts for "
        "shape errors along, 3 s by themselves: plain loops over the entries do not (profiles/README.md, 4)"
    )
    why = "numba reads and links every cached function of the loop; fewer and smaller functions would be read faster"
    section.verdicts = [
        Verdict(
            "start",
            "compiling at first use, slowest method",
            duration(max(first)),
            "< 10 s",
            max(first) < 10.0,
            compiling,
        ),
        Verdict(
            "start", "loading at the second start, slowest", duration(max(second)), "< 1 s", max(second) < 1.0, why
        ),
        Verdict(
            "start",
            "`import cosolve` and the names of a run",
            f"{duration(middle)} ({duration(min(imports))} to {duration(max(imports))})",
            "< 0.3 s",
            middle < 0.3,
            "the imports that `python -X importtime -c 'import cosolve'` shows",
        ),
    ]
    return [section]
