"""PF-1, PF-2 and PF-3: the cost of a macro step of a cheap pair."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from harness import Bench, Ratio, Sample, Unavailable, environment, ratio
from problems import fmus
from problems import oscillator as o

from report import Section, Verdict, agrees, judge, table, timed

LOOP = (
    "the loop takes 2.3 times the bare C master with everything in the cache; what comes on top are 64 bytes of every "
    "row in memory touched for the first time, which this machine charges between 0.1 and 1 ns per byte for (the C "
    "master that records pays it too); rows left out by `every=` or `record=` are what helps (profiles/README.md, 1)"
)
ROLLBACK = (
    "of a step, about 30 % is inside the FMUs; beyond what the C master does stand eight evaluations of the law for "
    "its derivatives (45 ns) and checks on every number. Exact derivatives of jitted laws are what to try next "
    "(profiles/README.md, 1)"
)
#: Masters without a peer file: target, and how many times the C master it took where it was measured (another machine).
ELSEWHERE = {"OMSimulator": (20.0, 73.0), "PyFMI": (200.0, 939.0)}


def run(bench: Bench) -> list[Section]:
    """All three."""
    built = asdict(fmus.build())
    return [_explicit(bench, built), _rollback(bench, built), _python(bench, built)]


def _explicit(bench: Bench, built: dict[str, Any]) -> Section:
    long, short = bench.size(500_000, 20_000), bench.size(10_000, 500)
    few = bench.size(1000, 100)
    common = {"case": "jacobi", "H": o.H}
    jobs: dict[str, tuple[str, dict[str, Any]]] = {
        "C master, whole loop in one call": ("c_master", {**common, "built": built, "steps": long}),
        "C master with checks and recording": (
            "c_master",
            {**common, "case": "jacobi_recorded", "built": built, "steps": long},
        ),
        "**cosolve, compiled loop**": ("cosolve_pair", {**common, "built": built, "steps": long}),
        "cosolve, Python engine": ("cosolve_pair", {**common, "built": built, "steps": short, "compiled": False}),
        "FMPy loop (`FMU2Slave`)": ("fmpy_loop", {**common, "built": built, "steps": short}),
        "libcosim": ("libcosim", {**common, "built": built, "steps": short}),
        "CoFmuPy": ("cofmupy_master", {**common, "built": built, "steps": few}),
        "mosaik, Python simulators in one process": ("mosaik_pair", {**common, "steps": few}),
    }
    samples = bench.interleave(jobs)
    master, ours = samples["C master, whole loop in one call"], samples["**cosolve, compiled loop**"]
    rows = []
    for label, sample in samples.items():
        right = o.jacobi(jobs[label][1]["steps"])
        against = [] if not sample.runs else [str(ratio(sample, master)), str(ratio(sample, ours))]
        same = agrees(sample.answer, right) if sample.runs else ""
        rows.append([label, *timed(sample), *(against or ["", ""]), same])
    section = Section("PF-1: two FMI 2.0 FMUs under Jacobi, every row checked and recorded")
    section.text = [
        f"Two-mass oscillator, force/displacement, held inputs, exact propagation inside the FMUs; {long} macro steps "
        f"for C and the compiled loop, {short} and {few} for the slower ones. For cosolve: the whole `simulate` call "
        "over the number of steps, loading of compiled code taken out (a row of its own below).",
        "",
        *table(["master", "per step", "range", "x C master", "x cosolve", "answer agrees"], rows),
        *_inside(ours, master),
    ]
    fmpy, libcosim = samples["FMPy loop (`FMU2Slave`)"], samples["libcosim"]
    recorded = ratio(ours, samples["C master with checks and recording"])
    section.verdicts = [
        judge("PF-1", "two FMUs / bare C master", ratio(ours, master), "<= 4", lambda r: r <= 4.0, LOOP),
        judge("PF-1", "FMPy loop / cosolve", ratio(fmpy, ours), ">= 100", lambda r: r >= 100.0, LOOP, fmpy.missing),
        judge("PF-1", "libcosim / cosolve", ratio(libcosim, ours), ">= 100", lambda r: r >= 100.0, LOOP),
    ]
    section.text.append(f"Against the C master that checks and records as we do: {recorded}.")
    section.verdicts += [_elsewhere(bench, name, ratio(ours, master)) for name in ELSEWHERE]
    return section


def _elsewhere(bench: Bench, name: str, ours: Ratio | None) -> Verdict:
    """A master that cannot be run here: what follows from its time elsewhere."""
    target, times = ELSEWHERE[name]
    try:
        environment(name.lower(), (name,), install=bench.install)
        why = "it installs here, but no peer file was written for it"
    except Unavailable as error:
        why = str(error)
    if ours is not None:
        why += f"; measured elsewhere, it takes {times:.0f} times the C master: {times / ours.median:.3g} times ours"
    return Verdict("PF-1", f"{name} / cosolve", "-", f">= {target:.0f}", None, why)


def _inside(ours: Sample, master: Sample) -> list[str]:
    """How much of a step is the loop itself, how much recording around it."""
    if not ours.runs:
        return []
    inside, whole = ours.seconds("inside"), ours.seconds()
    share = ratio(ours, master, key="inside")
    return [
        f"Of {whole * 1e9:.0f} ns per step, {inside * 1e9:.0f} ns are spent inside compiled chunks ({share} times the "
        f"C master) and {(whole - inside) * 1e9:.0f} ns on rows, counters and the run around them.",
        "",
    ]


def _rollback(bench: Bench, built: dict[str, Any]) -> Section:
    long, short = bench.size(200_000, 10_000), bench.size(3000, 300)
    common = {"built": built, "H": o.H, "x2": o.X2, "ck": o.CK, "dk": o.DK}
    jobs = {
        "C master": ("c_master", {**common, "case": "semi_implicit", "steps": long}),
        "**cosolve, compiled loop**": ("cosolve_pair", {**common, "case": "semi_implicit", "steps": long}),
        "cosolve, Python engine": (
            "cosolve_pair",
            {**common, "case": "semi_implicit", "steps": short, "compiled": False},
        ),
        "FMPy loop": ("fmpy_loop", {**common, "case": "semi_implicit", "steps": short}),
        "C master, plain Jacobi sweep": ("c_master", {**common, "case": "force_jacobi", "steps": long}),
        "cosolve, plain Jacobi sweep": ("cosolve_pair", {**common, "case": "force_jacobi", "steps": long}),
    }
    samples = bench.interleave(jobs)
    ours, plain = samples["**cosolve, compiled loop**"], samples["cosolve, plain Jacobi sweep"]
    master, fmpy = samples["C master"], samples["FMPy loop"]
    rows = []
    for label, sample in samples.items():
        right = o.semi_implicit(int(str(jobs[label][1]["steps"])))
        same = agrees(sample.answer, right) if sample.runs and "Jacobi" not in label else ""
        rows.append([label, *timed(sample), str(ratio(sample, master) or ""), same])
    for sample in (ours, samples["C master"]):  # three sweeps of two subsystem steps per step
        for run in sample.runs:
            run["sweep"] = run["seconds"] / 3.0
    sweeps = ratio(ours, plain, key="sweep")
    in_c = ratio(master, samples["C master, plain Jacobi sweep"], key="sweep")
    section = Section("PF-2: predictor, one difference column, corrector, with rollback")
    section.text = [
        "Two force-driven FMUs and the law of the spring between them: one coupling variable, three sweeps per step "
        "(predictor, column, corrector), states saved once and set back twice.",
        "",
        *table(["master", "per step", "range", "x C master", "answer agrees"], rows),
        f"A sweep with rollback / a Jacobi sweep of the same system: {sweeps} (C master: {in_c}).",
    ]
    section.verdicts = [
        judge("PF-2", "FMPy loop / cosolve", ratio(fmpy, ours), ">= 100", lambda r: r >= 100.0, ROLLBACK, fmpy.missing),
        judge("PF-2", "sweep with rollback / Jacobi sweep", sweeps, "<= 2.5", lambda r: r <= 2.5, ROLLBACK),
    ]
    return section


def _python(bench: Bench, built: dict[str, Any]) -> Section:
    steps = bench.size(5000, 300)
    jobs = {
        "cosolve, Python-defined subsystems": ("cosolve_pair", {"case": "python_subsystems", "steps": steps, "H": o.H}),
        "FMPy loop": ("fmpy_loop", {"case": "jacobi", "built": built, "steps": steps, "H": o.H}),
    }
    samples = bench.interleave(jobs)
    ours, fmpy = samples["cosolve, Python-defined subsystems"], samples["FMPy loop"]
    section = Section("PF-3: Python-defined subsystems in the Python engine")
    section.text = [
        "The pair as two Python classes. Overhead: a macro step of `simulate` less the same calls in a bare "
        "loop; next to it the whole step of the FMPy loop.",
        "",
        *table(["", "per step", "range"], [[label, *timed(sample)] for label, sample in samples.items()]),
    ]
    why = (
        "what is left is Python itself: some thirty calls and a dozen NumPy operations on one to five numbers per "
        "macro step (profiles/README.md, 2)"
    )
    section.verdicts = [
        judge("PF-3", "overhead / FMPy loop step", ratio(ours, fmpy), "<= 1", lambda r: r <= 1.0, why, fmpy.missing)
    ]
    return section
