"""PF-7: subsystems in processes of their own."""

from __future__ import annotations

from typing import Any

from harness import Bench, Unavailable, environment, ratio
from problems import oscillator as o

from report import Section, Verdict, agrees, judge, table, timed


def run(bench: Bench) -> list[Section]:
    """cosolve over shared memory and pipes, HELICS over ipc, mosaik over sockets."""
    ours, few = bench.size(3000, 100), bench.size(1000, 60)
    common: dict[str, Any] = {"case": "apart", "H": o.H}
    jobs: dict[str, tuple[str, dict[str, Any]]] = {
        "cosolve, two processes (one mass apart), shared memory": (
            "cosolve_processes",
            {**common, "steps": ours, "masses": 1},
        ),
        "cosolve, three processes (both masses apart), shared memory": ("cosolve_processes", {**common, "steps": ours}),
        "cosolve, three processes, two threads": ("cosolve_processes", {**common, "steps": ours, "workers": 2}),
        "cosolve, three processes, pipes": ("cosolve_processes", {**common, "steps": ours, "transport": "pipe"}),
        "HELICS ipc, two processes": ("helics_pair", {**common, "steps": few, "core": "ipc"}),
        "mosaik, three processes": ("mosaik_pair", {**common, "steps": few}),
    }
    samples = bench.interleave(jobs)
    helics = samples["HELICS ipc, two processes"]
    rows = []
    for label, sample in samples.items():
        same = agrees(sample.answer, o.jacobi(jobs[label][1]["steps"])) if sample.runs else ""
        rows.append([label, *timed(sample), str(ratio(sample, helics) or ""), same])
    section = Section("PF-7: a macro step across processes")
    section.text = [
        "The pair in plain Python on both sides, Jacobi. HELICS runs one federate next to the broker and one in a "
        "second process, as `cosolve, two processes` runs one mass next to the master.",
        "",
        *table(["", "per step", "range", "x HELICS", "answer agrees"], rows),
    ]
    two = next(iter(samples.values()))
    miss = (
        "25 us of a step are the readable engine, 66 us the round trip, of which 36 us are one sched_yield "
        "while Python on the far side answers (profiles/README.md, 3); a crossing of shared memory from the compiled "
        "loop, with the far side in machine code too, would leave two exchanges of a cache line. With fewer free "
        "cores than processes every crossing waits for the scheduler, whoever does it"
    )
    section.verdicts = [
        judge("PF-7", "HELICS ipc / cosolve", ratio(helics, two), ">= 20", lambda r: r >= 20.0, miss, helics.missing),
        Verdict("PF-7", "preCICE explicit / cosolve", "-", ">= 20", None, _precice(bench)),
    ]
    return [section]


def _precice(bench: Bench) -> str:
    """Why preCICE is not among the rows."""
    try:
        environment("precice", ("pyprecice",), install=bench.install)
        why = "it installs here, but no peer file was written for it"
    except Unavailable as error:
        why = f"{error} (it needs the preCICE library, which PyPI does not offer)"
    return f"{why}; by the specification an explicit `advance` takes 0.86 times a HELICS ipc step"
