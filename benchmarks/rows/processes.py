"""PF-7: subsystems in processes of their own."""

from __future__ import annotations

from typing import Any

from harness import Bench, Unavailable, environment, ratio
from problems import oscillator as o

from report import Section, Verdict, agrees, judge, table, timed

_TWO_COMPILED = "**cosolve, two processes (one mass apart), compiled on both sides**"
_TWO = "**cosolve, two processes, Python on both sides, compiled loop between them**"
_HELICS = "HELICS ipc, two processes"
_PRECICE = (
    "preCICE itself, built elsewhere from its sources: an explicit window with one number each way between two Python "
    "programs took 157 us at a load of 2.6. It is not in the table, because it was not measured in this run."
)


def run(bench: Bench) -> list[Section]:
    """cosolve over shared memory, pipes, local sockets, the network and MPI, HELICS over ipc, mosaik over sockets."""
    many, ours, few = bench.size(200_000, 5000), bench.size(3000, 100), bench.size(1000, 60)
    common: dict[str, Any] = {"case": "apart", "H": o.H}
    machine: dict[str, Any] = {**common, "steps": many, "compiled": True, "python": False}
    called: dict[str, Any] = {**common, "steps": bench.size(20_000, 500), "compiled": True}
    jobs: dict[str, tuple[str, dict[str, Any]]] = {
        _TWO_COMPILED: ("cosolve_processes", {**machine, "masses": 1}),
        "cosolve, three processes, compiled on all sides": ("cosolve_processes", machine),
        _TWO: ("cosolve_processes", {**called, "masses": 1}),
        "cosolve, three processes (both masses apart), Python, compiled loop": ("cosolve_processes", called),
        "cosolve, two processes, Python on both sides, Python engine": (
            "cosolve_processes",
            {**common, "steps": ours, "masses": 1},
        ),
        "cosolve, two processes, Python engine, pipe": (
            "cosolve_processes",
            {**common, "steps": ours, "masses": 1, "transport": "pipe"},
        ),
        "cosolve, one mass behind a server, Python engine, encrypted TCP": (
            "cosolve_processes",
            {**common, "steps": ours, "masses": 1, "transport": "network"},
        ),
        "cosolve, three processes, Python engine": ("cosolve_processes", {**common, "steps": ours}),
        "cosolve, three processes, Python engine, two threads": (
            "cosolve_processes",
            {**common, "steps": ours, "workers": 2},
        ),
        "cosolve, three processes, Python engine, pipes": (
            "cosolve_processes",
            {**common, "steps": ours, "transport": "pipe"},
        ),
        "cosolve, two ranks of MPI, Python engine": ("cosolve_ranks", {**common, "steps": ours}),
        "cosolve, two programs that own their loops, through the hub at a local socket": (
            "cosolve_participants",
            {**common, "steps": ours},
        ),
        _HELICS: ("helics_pair", {**common, "steps": few, "core": "ipc"}),
        "mosaik, three processes": ("mosaik_pair", {**common, "steps": few}),
    }
    samples = bench.interleave(jobs)
    helics = samples[_HELICS]
    rows = []
    for label, sample in samples.items():
        same = agrees(sample.answer, o.jacobi(jobs[label][1]["steps"])) if sample.runs else ""
        rows.append([label, *timed(sample), str(ratio(sample, helics) or ""), same])
    section = Section("PF-7: a macro step across processes")
    section.text = [
        "The pair, Jacobi. HELICS runs one federate next to the broker and one in a second process, as `cosolve, two "
        "processes` runs one mass next to the master. *Compiled on both sides* means that the masses are machine code "
        "too (two `Linear`; FMUs and jitted `Ode` go the same way), every row checked and recorded. The federates of "
        "HELICS and mosaik are Python, and so are the masses in the other rows: classes whose `advance` a compiled "
        "loop calls back (`native = cs.Subsystem.by_callback`), as the C++ core of HELICS serves Python federates, or "
        "which the Python engine calls. *Behind a server* is `cosolve serve` on this machine, reached as from "
        "another one: TCP, both sides authenticated, every message encrypted. *Programs that own their loops* are two "
        "Python programs written for preCICE 3 and a hub between them, three processes. With fewer free cores than "
        "processes every subsystem step waits for the scheduler, in either program.",
        "",
        *table(["", "per step", "range", "x HELICS", "answer agrees"], rows),
    ]
    section.text += ["", _PRECICE]
    miss = "the machine had no second core free: what is left of a subsystem step are two exchanges of a cache line"
    compiled = ratio(helics, samples[_TWO_COMPILED])
    plain = ratio(helics, samples[_TWO])
    what = "HELICS ipc / cosolve"
    section.verdicts = [
        judge("PF-7", f"{what}, compiled", compiled, ">= 20", lambda r: r >= 20.0, miss, helics.missing),
        judge("PF-7", f"{what}, Python", plain, ">= 20", lambda r: r >= 20.0, miss, helics.missing),
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
    return f"{why}; measured elsewhere, an explicit `advance` takes 0.86 times a HELICS ipc step"
