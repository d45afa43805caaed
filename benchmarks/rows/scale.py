"""PF-9: cost that grows with the number of subsystems and nothing else, memory that stays bounded; and PF-5."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
from dataclasses import asdict

from harness import HERE, Bench
from problems import fmus

from report import Section, Verdict, table

#: A ratio per subsystem that a busy machine and a cache still explain.
LINEAR = 1.5

#: Seconds that a script may take.
ENOUGH = 300

LONG_RUN = r"""
import json, re, sys, tempfile
from pathlib import Path

def memory(what):
    return int(re.search(what + r":\s+(\d+)", Path("/proc/self/status").read_text()).group(1))

import cosolve as cs
files, steps, every = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
system = cs.System({"one": cs.load_fmu(files["mass_force"]), "two": cs.load_fmu(files["mass_spring"])})
system.connect("one.x", "two.x1")
system.connect("one.v", "two.v1")
system.connect("two.F", "one.f")
run = {"method": cs.Jacobi(0), "step": 1e-4, "compiled": True}
with tempfile.TemporaryDirectory() as folder:
    cs.simulate(system, t_end=1.0, save=Path(folder) / "first.h5", **run)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of compiling
    before = memory("VmRSS")
    result = cs.simulate(system, t_end=steps * 1e-4, every=every, save=Path(folder) / "run.h5", **run)
    after = memory("VmHWM")
    size = (Path(folder) / "run.h5").stat().st_size
    print(json.dumps({"before": before, "after": after, "steps": result.stats.steps, "file": size,
                      "seconds": result.stats.wall_seconds}))
"""


def run(bench: Bench) -> list[Section]:
    """The chain, the long run, the ensembles."""
    return [_chain(bench), _memory(bench), _ensembles(bench)]


def _chain(bench: Bench) -> Section:
    section = Section("PF-9: a chain of 10, 100 and 1000 subsystems")
    what = "time per step and subsystem, 1000 / 10, median and largest over methods"
    if bench.quick:
        section.text = ["Not part of the quick run: `python benchmarks/chain.py`."]
        section.verdicts = [Verdict("PF-9", what, "-", f"<= {LINEAR:g}", None, "not part of the quick run")]
        return section
    ran = subprocess.run([sys.executable, str(HERE / "chain.py")], capture_output=True, text=True)
    lines = ran.stdout.rstrip().splitlines()
    section.text = ["`benchmarks/chain.py`:", "", "```", *lines, "```"]
    ratios = [float(m.group(1)) for line in lines if (m := re.match(r".{26}(?:\s*\d+\.\d+){3}\s+(\d+\.\d+)", line))]
    if ran.returncode or not ratios:
        section.verdicts = [Verdict("PF-9", what, "-", f"<= {LINEAR:g}", None, "chain.py did not finish")]
    else:
        reached = f"{statistics.median(ratios):.2f}, {max(ratios):.2f}"
        why = "see the rows above the limit; the profile of `chain.py --profile` says where they spend it"
        section.verdicts = [Verdict("PF-9", what, reached, f"<= {LINEAR:g}", max(ratios) <= LINEAR, why)]
    return section


def _memory(bench: Bench) -> Section:
    files = json.dumps(asdict(fmus.build())["fmus"])
    sizes = [(100_000, 1), (1_000_000, 1), (10_000_000, 10)] if not bench.quick else [(20_000, 1), (100_000, 1)]
    rows, growth, failure = [], [], ""
    for steps, every in sizes:
        order = [sys.executable, "-c", LONG_RUN, files, str(steps), str(every)]
        ran = subprocess.run(order, capture_output=True, text=True)
        if ran.returncode:
            failure = (ran.stderr.strip().splitlines() or ["no word"])[-1]
            break
        found = json.loads(ran.stdout.splitlines()[-1])
        growth.append((found["after"] - found["before"]) / 1024)
        per_step = f"{found['seconds'] / steps * 1e9:.0f} ns"
        rows.append([f"{steps:.0e}", str(every), f"{growth[-1]:.0f} MB", f"{found['file'] / 1e6:.0f} MB", per_step])
    section = Section("PF-9: memory of long runs, streamed to disk")
    section.text = [
        "Two FMUs, compiled loop, `save=` to HDF5; the peak of resident memory over what it is before the run (Linux).",
        "",
        *table(["macro steps", "recorded each", "more memory", "file", "per step, with the file"], rows),
        failure,
    ]
    what = f"more memory for {sizes[-1][0]:.0e} macro steps"
    met = None if failure else growth[-1] <= 100.0
    section.verdicts = [Verdict("PF-9", what, f"{growth[-1]:.0f} MB" if growth else "-", "<= 100 MB", met, failure)]
    return section


def _ensembles(bench: Bench) -> Section:
    section = Section("PF-5: ensembles")
    script = HERE / "ensemble.py"
    if not script.exists() or bench.quick:
        why = "benchmarks/ensemble.py is not there" if not script.exists() else "not part of the quick run"
        section.text = [why + "."]
        section.verdicts = [Verdict("PF-5", "JAX vmap / our ensembles", "-", ">= 4", None, why)]
        return section
    try:
        order = [sys.executable, str(script)]
        ran = subprocess.run(order, capture_output=True, text=True, cwd=HERE.parent, timeout=ENOUGH)
    except subprocess.TimeoutExpired:
        why = f"it did not finish within {ENOUGH} s"
        section.verdicts = [Verdict("PF-5", "JAX vmap / our ensembles", "-", ">= 4", None, why)]
        return section
    lines = ran.stdout.rstrip().splitlines()
    section.text = ["`benchmarks/ensemble.py`:", "", "```", *lines[-40:], "```"]
    pattern = re.compile(r"^(loop|\+ propagators|whole sweep)\s.*\)\s+([\d.]+)\s+([\d.]+) \.\. ([\d.]+)$")
    title = ""
    for line in lines:
        title = line.partition(",")[0] if line.startswith("Jacobi") else title
        if (found := pattern.match(line)) and found.group(1) != "+ propagators":
            what = f"JAX vmap / cosolve, {title}, {found.group(1)}"
            reached = f"{found.group(2)} ({found.group(3)} to {found.group(4)})"
            met = float(found.group(2)) >= 4.0
            why = "see benchmarks/ensemble.py, which measures loop, propagators and the whole call apart"
            section.verdicts.append(Verdict("PF-5", what, reached, ">= 4", met, "" if met else why))
    if ran.returncode or not section.verdicts:
        why = f"it ended with status {ran.returncode}: {(ran.stderr.strip().splitlines() or ['no table'])[-1]}"
        section.verdicts = [Verdict("PF-5", "JAX vmap / our ensembles", "-", ">= 4", None, why)]
    return section
