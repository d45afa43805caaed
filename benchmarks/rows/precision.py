"""PF-8: error against subsystem solves and against time."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict
from itertools import pairwise
from math import inf, log
from pathlib import Path
from typing import Any

import numpy as np
from harness import HERE, Bench, Sample
from problems import fmus
from problems import oscillator as o

from report import Section, Verdict, distance, duration, table

T = 1.0
OURS = (
    *("Jacobi(0)", "Jacobi(1)", "Jacobi(2)", "Jacobi(3)", "GaussSeidel(2)", "GaussSeidel(3)"),
    *("SemiImplicit(2)", "SemiImplicit(3)", "Implicit(3)"),
)
ERRORS = (1e-2, 1e-3)
LIBRARIES = {"FMPy, Jacobi": "fmpy_loop", "libcosim, Jacobi": "libcosim"}


def exact() -> list[float]:
    """x1, v1, x2, v2 at the end, monolithic."""
    A = np.array(
        [
            [0, 1, 0, 0],
            [-(o.C + o.CK), -(o.D + o.DK), o.CK, o.DK],
            [0, 0, 0, 1],
            [o.CK, o.DK, -(o.C + o.CK), -(o.D + o.DK)],
        ]
    )
    values, vectors = np.linalg.eig(A)
    start = np.linalg.solve(vectors, np.array([0, 0, o.X2, 0], dtype=complex))
    return [float(v) for v in (vectors @ (np.exp(values * T) * start)).real]


def run(bench: Bench) -> list[Section]:
    """The oscillator, and the string against the accelerators of Kratos."""
    return [_oscillator(bench), _kratos(bench)]


Curve = list[tuple[float, float, float]]  # error, solves, seconds


def _oscillator(bench: Bench) -> Section:
    built, right = asdict(fmus.build()), exact()
    ours = [100, 200, 400, 800, 1600, 3200, 6400]
    theirs = [*ours, 12800, 25600, 51200, 102400]
    if bench.quick:
        ours, theirs = ours[:4], theirs[:5]
    jobs: dict[str, tuple[str, dict[str, Any]]] = {}
    for method in OURS:
        for steps in ours:
            order = {"case": "advanced", "built": built, "steps": steps, "method": method, "T": T}
            jobs[f"cosolve {method}|{steps}"] = "cosolve_precision", order
    for label, peer in LIBRARIES.items():
        for steps in theirs:
            jobs[f"{label}|{steps}"] = peer, {"case": "jacobi", "built": built, "steps": steps, "H": T / steps}
    samples = bench.interleave(jobs)
    curves: dict[str, Curve] = {}
    missing: dict[str, str] = {}
    for key, sample in samples.items():
        label, _, steps = key.partition("|")
        if sample.missing:
            missing[label] = sample.missing
            continue
        curves.setdefault(label, []).append(_point(sample, int(steps), right, label))
    section = Section("PF-8: work and precision")
    picture = bench.folder / "work_precision.png"
    if curves:
        _draw(curves, picture)
        section.pictures = [picture]
    rows = []
    for label in (*(f"cosolve {m}" for m in OURS), *LIBRARIES):
        if label in missing:
            rows.append([label, missing[label], *[""] * (2 * len(ERRORS) - 1)])
            continue
        cells = [cell for error in ERRORS for cell in _cells(curves[label], error)]
        rows.append([label, *cells])
    head = [cell for error in ERRORS for cell in (f"solves for {error:g}", "time")]
    section.text = [
        "The two FMUs of PF-1 to t = 1 s; error: largest of x1, v1/10, x2, v2/10 at the end against the monolithic "
        "solution. Subsystem solves and time that an error takes, between the measured step sizes by interpolation.",
        "",
        *table(["", *head], rows),
    ]
    section.verdicts = [v for error in ERRORS for v in _verdicts(curves, error)]
    return section


def _point(sample: Sample, steps: int, right: list[float], label: str) -> tuple[float, float, float]:
    scale = (1.0, 10.0, 1.0, 10.0)
    off = distance(
        [a / s for a, s in zip(sample.answer, scale, strict=True)], [r / s for r, s in zip(right, scale, strict=True)]
    )
    if label.startswith("cosolve"):
        return off, float(sample.runs[-1]["solves"]), sample.seconds()
    return off, 2.0 * steps, sample.seconds() * steps


def at_error(curve: Curve, error: float, which: int) -> float:
    """What this error costs (1 solves, 2 seconds): interpolated in logarithms; infinite where it is not reached."""
    best = inf
    points = sorted(curve, key=lambda point: point[1])
    if points and points[0][0] <= error:
        return points[0][which]
    for (e0, *a), (e1, *b) in pairwise(points):
        if e1 <= error < e0:
            share = log(e0 / error) / log(e0 / max(e1, 1e-300))
            best = min(best, a[which - 1] * (b[which - 1] / a[which - 1]) ** share)
    return best


def _cells(curve: Curve, error: float) -> list[str]:
    solves, seconds = (at_error(curve, error, which) for which in (1, 2))
    return ["not reached" if solves == inf else f"{solves:.0f}", "" if seconds == inf else duration(seconds)]


def _verdicts(curves: dict[str, Curve], error: float) -> list[Verdict]:
    found = []
    for which, what in ((1, "subsystem solves"), (2, "time")):
        ours = min((at_error(c, error, which) for n, c in curves.items() if n.startswith("cosolve")), default=inf)
        theirs = min((at_error(c, error, which) for n, c in curves.items() if n in LIBRARIES), default=inf)
        title = f"{what} for an error of {error:g}, FMPy or libcosim explicit / our best"
        if ours == inf:
            found.append(Verdict("PF-8", title, "-", "> 1", None, "none of ours came that far in this run"))
        elif theirs == inf:
            largest = max((c[-1][which] for n, c in curves.items() if n in LIBRARIES), default=inf)
            text = "-" if largest == inf else f"> {largest / ours:.3g} (they do not reach it)"
            found.append(Verdict("PF-8", title, text, "> 1", None if largest == inf else largest > ours, ""))
        else:
            found.append(Verdict("PF-8", title, f"{theirs / ours:.3g}", "> 1", theirs > ours, ""))
    return found


def _draw(curves: dict[str, Curve], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(13, 5), sharey=True, constrained_layout=True)
    colours = plt.get_cmap("tab10")
    for k, (label, curve) in enumerate(curves.items()):
        mine = label.startswith("cosolve")
        style = {"color": colours(k % 10) if mine else "0.25", "lw": 1.4, "ms": 4}
        style |= {"marker": "o" if mine else "sD"[label.startswith("libcosim")], "ls": "-" if mine else "--"}
        shown = [point for point in curve if point[0] < 10.0]
        for axis, which in zip(axes, (1, 2), strict=True):
            axis.loglog([p[which] for p in shown], [p[0] for p in shown], label=label, **style)
    axes[0].set(xlabel="subsystem solves", ylabel="error at t = 1 s")
    axes[1].set(xlabel="time [s]")
    axes[1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    for axis in axes:
        axis.grid(alpha=0.3, which="major")
    figure.suptitle("Two-mass oscillator as two FMUs, force/displacement")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _kratos(bench: Bench) -> Section:
    section = Section("PF-8: accelerators of Kratos on the string in a dense fluid")
    what = "interface evaluations per step, ours never more than Kratos' best"
    if bench.quick or not bench.install:
        section.text = ["Not part of the quick run; `python benchmarks/kratos.py` writes [kratos.md](kratos.md)."]
        section.verdicts = [Verdict("PF-8", what, "-", "never more", None, "not part of the quick run")]
        return section
    ran = subprocess.run([sys.executable, str(HERE / "kratos.py"), "--check"], capture_output=True, text=True)
    tail = (ran.stdout + ran.stderr).strip().splitlines()[-6:]
    section.text = [
        "`benchmarks/kratos.py --check` (tables in [kratos.md](kratos.md)) ended with "
        f"{'success' if ran.returncode == 0 else f'status {ran.returncode}'}; its last lines:",
        "",
        "```",
        *tail,
        "```",
        "",
        "The accelerators of Kratos work there behind our own interface problem; its time loop (0.6 to 2.25 ms per "
        "step elsewhere) is not part of the figure, so time is not compared. preCICE cannot be installed from PyPI.",
    ]
    reached = "never more" if ran.returncode == 0 else "more in some case"
    section.verdicts = [Verdict("PF-8", what, reached, "never more", ran.returncode == 0, "see the last lines below")]
    return section
